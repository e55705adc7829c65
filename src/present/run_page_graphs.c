/* Flame graphs behind tabs: one canvas, the data of each graph beside it. */
#include "present/flame_words.h"
#include "present/html_parts.h"
#include "present/markup.h"
#include "present/run_page_parts.h"

enum { RECTS_MAX = 20000, LEVELS_MAX = 1024 };
static const double narrow_share = 1.0 / 8000; /* less than a pixel on any screen */

/* Notes of one graph; the script shows those of the chosen one. */
static void put_about(FILE *out, const struct run_graph *graph, const struct html_data *data)
{
    char note[512];
    fprintf(out, "<div class=\"about\" data-about=\"%s\">\n<h3>%s</h3>\n", graph->id, graph->title);
    if (!data) {
        fputs("<p class=\"na\">n/a: ", out);
        markup_text(out, str_from(graph->na ? graph->na : "not measured"));
        fputs("</p>\n</div>\n", out);
        return;
    }
    fputs("<p>", out);
    markup_text(out, str_from(graph->what));
    fprintf(out, " <a href=\"%s\">%s</a></p>\n", graph->file, graph->file);
    page_text(out, "p", "dim", graph->honesty);
    html_note(out, flame_note_left_out(data->layout, note, sizeof(note)));
    html_legend(out, data);
    fputs("</div>\n", out);
}

static void put_tabs(FILE *out, const struct run_page *page)
{
    fputs("<div role=\"tablist\" aria-label=\"Axes\" class=\"tabs\">\n", out);
    for (size_t i = 0; i < page->graph_count; i++) {
        const struct run_graph *graph = &page->graphs[i];
        fprintf(out,
                "<button type=\"button\" role=\"tab\" id=\"tab-%s\" data-graph=\"%s\" "
                "aria-controls=\"graph-panel\" aria-selected=\"false\" tabindex=\"-1\">%s%s"
                "</button>\n",
                graph->id, graph->id, graph->title,
                graph->tree ? "" : " <span class=\"dim\">n/a</span>");
    }
    fputs("</div>\n", out);
}

static int put_graph(FILE *out, const struct run_graph *graph, bool about, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct flame_layout layout;
    struct flame_limits limits = {
        .narrow_share = narrow_share, .rect_count_max = RECTS_MAX, .levels_max = LEVELS_MAX};
    struct html_data data = {.layout = &layout, .title = graph->title};
    if (!graph->tree) {
        if (about)
            put_about(out, graph, NULL);
        return 0;
    }
    int r = flame_layout_build(&arena, graph->tree, &limits, &layout, why);
    if (r < 0)
        return r;
    if (about) {
        put_about(out, graph, &data);
        return 0;
    }
    fprintf(out, "<script type=\"application/json\" id=\"graph-%s\">", graph->id);
    r = html_data_write(&data, out, why);
    fputs("</script>\n", out);
    return r;
}

int page_graphs(FILE *out, const struct run_page *page, struct why *why)
{
    int r = 0;
    fputs("<section id=\"graphs\" aria-labelledby=\"graphs-title\">\n"
          "<h2 id=\"graphs-title\">Flame graphs</h2>\n",
          out);
    put_tabs(out, page);
    fputs("<noscript><p>The graphs on this page need scripts; the pictures they link to do "
          "not.</p></noscript>\n"
          "<div id=\"graph-panel\" role=\"tabpanel\" tabindex=\"0\" aria-label=\"Flame graph\">\n",
          out);
    for (size_t i = 0; r == 0 && i < page->graph_count; i++)
        r = put_graph(out, &page->graphs[i], true, why);
    fputs("<div id=\"viewer\">\n", out);
    html_viewer(out, NULL);
    fputs("</div>\n</div>\n", out);
    for (size_t i = 0; r == 0 && i < page->graph_count; i++)
        r = put_graph(out, &page->graphs[i], false, why);
    fputs("</section>\n", out);
    return r;
}
