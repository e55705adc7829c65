/* The HTML page. Its parts: html_data.c writes what web/page.js draws; here is the frame
 * around it, the table, and the policy that keeps it harmless. */
#include "present/html.h"

#include "base/text.h"
#include "present/embedded.h"
#include "present/flame_words.h"
#include "present/html_parts.h"
#include "present/markup.h"
#include "present/renderers.h"

#include <stdlib.h>

enum {
    RECTS_MAX = 100000,
    LEVELS_MAX = 4096,
    NOTE_BYTES = 512,
};

static void put_honesty(FILE *out, const struct value *honesty)
{
    char buffer[600];
    if (!honesty)
        return;
    if (honesty->kind != VALUE_MAP) {
        fputs("<p class=\"honesty\">", out);
        markup_text(out, value_display(honesty, buffer, sizeof(buffer)));
        fputs("</p>\n", out);
        return;
    }
    fputs("<dl class=\"honesty\">\n", out);
    for (const struct value_item *item = honesty->items ? honesty->items->first : NULL; item;
         item = item->next) {
        if (!value_is_scalar(&item->value))
            continue;
        fputs("<div><dt>", out);
        markup_text(out, str_from(value_item_title(item)));
        fputs("</dt><dd>", out);
        markup_text(out, value_display(&item->value, buffer, sizeof(buffer)));
        fputs("</dd></div>\n", out);
    }
    fputs("</dl>\n", out);
}

static void put_graph(FILE *out, const struct html_data *data)
{
    char note[NOTE_BYTES];
    fputs("<section aria-labelledby=\"graph\">\n<h2 id=\"graph\">Flame graph</h2>\n", out);
    if (data->diff) {
        html_note(out, flame_note_diff(data->diff, note, sizeof(note)));
        html_note(out, flame_note_gone(data->diff, note, sizeof(note)));
    }
    html_note(out, flame_note_left_out(data->layout, note, sizeof(note)));
    html_legend(out, data);
    fputs("<noscript><p>The picture needs scripts; the table below does not. 'whyslow export "
          "--format flame' writes a picture without.</p></noscript>\n",
          out);
    html_viewer(out, data->diff ? "A differential picture has no inverted view: what is gone would "
                                  "be missing in it"
                     : data->layout->tree->inverted ? "This picture is inverted already"
                                                    : NULL);
    fputs("</section>\n", out);
}

static void put_table(FILE *out, const struct value *hotspots, const char *title)
{
    if (!hotspots || hotspots->kind != VALUE_TABLE || !hotspots->table)
        return;
    const struct table *table = hotspots->table;
    size_t rows = html_rows_shown(table);
    fputs("<section aria-labelledby=\"table\">\n<h2 id=\"table\">", out);
    markup_text(out, str_from(title ? title : "Hotspots"));
    fputs("</h2>\n", out);
    if (rows == 0) {
        html_note(out, table->empty ? table->empty : "none");
        fputs("</section>\n", out);
        return;
    }
    if (rows > HTML_ROWS_MAX)
        fprintf(out, "<p class=\"dim\">The first %d of %zu rows.</p>\n", HTML_ROWS_MAX, rows);
    fputs("<div class=\"bar\"><input id=\"filter\" type=\"search\" placeholder=\"filter rows\" "
          "aria-label=\"Show only rows that contain this text\"><span id=\"rows\" "
          "role=\"status\"></span></div>\n<div class=\"table\"><table id=\"hotspots\">\n",
          out);
    html_table(out, table);
    fputs("</table></div>\n</section>\n", out);
}

static int put_page(const struct html_opts *opts, const struct html_data *data, FILE *out,
                    struct why *why)
{
    char *style = NULL;
    size_t style_len = 0;
    const struct str sheet = {(const char *)web_page_css, web_page_css_bytes};
    const struct str script = {(const char *)web_page_js, web_page_js_bytes};
    if (html_style(&sheet, 1, &style, &style_len) < 0)
        return why_nomem(why);
    html_head(out, data->title, (struct str){style, style_len}, script);
    free(style);
    fputs("<h1>", out);
    markup_text(out, str_from(data->title));
    fputs("</h1>\n", out);
    put_honesty(out, opts->honesty);
    put_graph(out, data);
    put_table(out, opts->hotspots, opts->table_title);
    fputs("<script type=\"application/json\" id=\"data\">", out);
    int r = html_data_write(data, out, why);
    if (r < 0)
        return r;
    fputs("</script>\n<script>", out);
    fwrite(web_page_js, 1, web_page_js_bytes, out);
    fputs("</script>\n</body>\n</html>\n", out);
    return markup_end(out, "HTML page", why);
}

int html_write(const struct html_opts *opts, FILE *out, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct flame_layout layout;
    struct flame_diff diff;
    struct flame_limits limits = {.rect_count_max = RECTS_MAX, .levels_max = LEVELS_MAX};
    struct html_data data = {.layout = &layout, .title = opts->title ? opts->title : "whyslow"};
    int r = flame_layout_build(&arena, opts->tree, &limits, &layout, why);
    if (r == 0 && opts->before)
        r = flame_diff_build(&arena, opts->tree, opts->before, opts->scale, &diff, why);
    if (r < 0)
        return r;
    if (opts->before) {
        data.diff = &diff;
        data.diff_limit = flame_diff_limit(&diff, &layout);
    }
    return put_page(opts, &data, out, why);
}
