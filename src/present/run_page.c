/* The frame of report.html: head, navigation, the screen's sections in their order. */
#include "present/run_page.h"

#include "present/embedded.h"
#include "present/html_parts.h"
#include "present/markup.h"
#include "present/run_page_parts.h"
#include "present/run_tables.h"

#include <stdlib.h>
#include <string.h>

void page_text(FILE *out, const char *tag, const char *class, const char *text)
{
    if (!text || !text[0])
        return;
    fprintf(out, "<%s", tag);
    if (class)
        fprintf(out, " class=\"%s\"", class);
    fputc('>', out);
    markup_text(out, str_from(text));
    fprintf(out, "</%s>\n", tag);
}

void page_estimate(FILE *out, const struct estimate *estimate)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    const char *text = run_estimate_text(&arena, *estimate);
    size_t head = text ? strcspn(text, "(") : 0;
    if (!text)
        return;
    fputs("<b>", out);
    markup_text(out, str_trim((struct str){text, head}));
    fputs("</b> <span class=\"dim\">", out);
    markup_text(out, str_from(text + head));
    fputs("</span>", out);
}

/* The one sentence to take away. */
static void put_lead(FILE *out, const struct interpretation *run)
{
    const struct finding *first = run->findings.count > 0 ? &run->findings.items[0] : NULL;
    if (run->wrong_tools.first) {
        fputs("<p class=\"lead\">Changing code is the wrong tool here: ", out);
        markup_text(out, str_from(run->wrong_tools.first->why));
        fputs(". ", out);
        markup_text(out, str_from(run->wrong_tools.first->instead));
        fputs("</p>\n", out);
    } else if (first && finding_is_fix(first)) {
        fputs("<p class=\"lead\">First: ", out);
        markup_text(out, str_from(first->title));
        fputs("</p>\n", out);
    } else {
        fputs("<p class=\"lead\">No suspicion is confirmed; the hotspots say where the time "
              "goes.</p>\n",
              out);
    }
}

static void put_header(FILE *out, const struct run_page *page)
{
    const struct run_about *about = &page->run->about;
    fputs("<header>\n<p class=\"kicker\">whyslow run", out);
    if (about->run_id) {
        fputs(" · ", out);
        markup_text(out, str_from(about->run_id));
    }
    fputs("</p>\n<h1>", out);
    markup_text(out, str_from(about->command ? about->command : "a run"));
    fputs("</h1>\n", out);
    put_lead(out, page->run);
    for (const char *const *mark = about->marks; mark && *mark; mark++)
        page_text(out, "p", "warn", *mark);
    for (const char *const *missing = about->missing; missing && *missing; missing++)
        page_text(out, "p", "warn", *missing);
    fputs("<nav aria-label=\"Sections\"><a href=\"#overview\">Overview</a>"
          "<a href=\"#findings\">Findings</a><a href=\"#graphs\">Flame graphs</a>"
          "<a href=\"#timeline\">Timeline</a><a href=\"#details\">Details</a></nav>\n</header>\n",
          out);
}

/* What has a place of its own on the page, by its key in the screen: the rest is drawn as it is. */
static bool has_own_place(const struct value_item *item)
{
    static const char *const keys[] = {"suspicions", "confirmed", "bar", "hotspots"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(item->key, keys[i]) == 0)
            return true;
    return false;
}

/* After the pictures: how far to trust it, where the files are, what to type next. */
static bool is_detail(const struct value_item *item)
{
    static const char *const keys[] = {"honesty", "artifacts", "files", "next", "metrics"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(item->key, keys[i]) == 0)
            return true;
    return false;
}

static void put_sections(FILE *out, const struct run_page *page, bool details)
{
    for (const struct value_item *item = page->screen->items ? page->screen->items->first : NULL;
         item; item = item->next)
        if (!value_is_scalar(&item->value) && !has_own_place(item) && is_detail(item) == details) {
            page_value(out, item, 2);
            if (strcmp(item->key, "hypotheses") == 0)
                page_ledger(out, page->run);
        }
}

static int put_body(FILE *out, const struct run_page *page, struct why *why)
{
    put_header(out, page);
    fputs("<main>\n<section id=\"overview\" aria-label=\"Overview\">\n", out);
    page_scalars(out, page->screen);
    page_split(out, &page->run->evidence->costs_on_path);
    fputs("</section>\n", out);
    page_findings(out, page->run);
    page_hotspots(out, page->run);
    put_sections(out, page, false);
    int r = page_graphs(out, page, why);
    if (r < 0)
        return r;
    if (page_timeline(out, page->run->evidence) < 0)
        return why_nomem(why);
    fputs("<div id=\"details\">\n", out);
    put_sections(out, page, true);
    fputs("</div>\n</main>\n", out);
    return 0;
}

int run_page_write(const struct run_page *page, FILE *out, struct why *why)
{
    const struct str sheets[] = {{(const char *)web_page_css, web_page_css_bytes},
                                 {(const char *)web_run_page_css, web_run_page_css_bytes}};
    const struct str script = {(const char *)web_run_page_js, web_run_page_js_bytes};
    const char *command = page->run->about.command;
    char *style = NULL;
    size_t style_len = 0;
    if (html_style(sheets, ARRAY_SIZE(sheets), &style, &style_len) < 0)
        return why_nomem(why);
    html_head(out, command ? command : "whyslow run", (struct str){style, style_len}, script);
    free(style);
    int r = put_body(out, page, why);
    if (r < 0)
        return r;
    fputs("<script>", out);
    fwrite(script.data, 1, script.len, out);
    fputs("</script>\n</body>\n</html>\n", out);
    return markup_end(out, "report", why);
}
