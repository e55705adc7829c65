/* A flame graph as one SVG file: a picture that is complete without scripts, and a script
 * (web/flame_svg.js) that adds search, zoom and the keyboard. */
#include "base/text.h"
#include "present/embedded.h"
#include "present/flame.h"
#include "present/flame_colors.h"
#include "present/flame_diff.h"
#include "present/flame_layout.h"
#include "present/flame_words.h"
#include "present/markup.h"

#include <math.h>
#include <stdlib.h>

enum {
    ROW_PX = 18,
    MARGIN_PX = 10,
    LINE_PX = 18,
    CONTROLS_PX = 34,
    WIDTH_PX = 1200,
    RECTS_MAX = 10000, /* browsers keep up with so many elements, not with ten times more */
    LEVELS_MAX = 1024,
    LABEL_COLUMNS_MIN = 3,
    SUBTITLE_LINES_MAX = 4,
    PLACE_BYTES_MAX = 256,
};

static const double column_px = 7.225; /* of the 12-pixel monospaced font */
static const double narrow_px = 0.1;

struct drawing {
    const struct flame_opts *opts;
    struct flame_layout layout;
    const struct flame_diff *diff; /* NULL: an ordinary one */
    double diff_limit;
    double width_px;
    unsigned frames_y; /* top of the rows */
    FILE *out;
};

static void put_style(FILE *out)
{
    fputs("<style>\n"
          ":root{color-scheme:light dark}\n"
          "text,input,button{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,"
          "'Liberation Mono',monospace}\n"
          "text{fill:#111}\n"
          ".b{fill:#fff}\n"
          ".t{font-size:16px;font-weight:bold}\n"
          ".d{fill:#555}\n"
          ".r{cursor:pointer}\n"
          ".r rect{stroke:#fff;stroke-width:.5}\n"
          ".r text{pointer-events:none}\n"
          ".r:hover rect,.r:focus rect{stroke:#111;stroke-width:2}\n"
          ".r:focus{outline:none}\n"
          ".u{opacity:.55}\n",
          out);
    flame_colors_classes(out);
    fputs("@media (prefers-color-scheme:dark){\n"
          "text{fill:#f5f5f5}\n"
          ".b{fill:#16171a}\n"
          ".d{fill:#b0b3b8}\n"
          ".r rect{stroke:#16171a}\n"
          ".r:hover rect,.r:focus rect{stroke:#fff}\n"
          "}\n"
          "</style>\n",
          out);
}

/* A line of the header, broken at blanks; returns the next free line's baseline. */
static unsigned put_lines(const struct drawing *d, const char *text, unsigned y)
{
    char buffer[MARKUP_TEXT_BYTES_MAX];
    struct str rest = text_safe(str_from(text), buffer, sizeof(buffer));
    size_t columns = (size_t)fmax((d->width_px - 2 * MARGIN_PX) / column_px, 20);
    for (int line = 0; line < SUBTITLE_LINES_MAX && rest.len > 0; line++, y += LINE_PX) {
        size_t len = text_fit(rest, columns);
        if (len < rest.len && line + 1 < SUBTITLE_LINES_MAX) {
            size_t blank = len;
            while (blank > 0 && rest.data[blank] != ' ')
                blank--;
            len = blank > 0 ? blank : len;
        } else {
            len = rest.len;
        }
        fprintf(d->out, "<text class=\"d\" x=\"%d\" y=\"%u\">", MARGIN_PX, y);
        markup_label(d->out, (struct str){rest.data, len}, columns);
        fputs("</text>\n", d->out);
        rest = str_trim((struct str){rest.data + len, rest.len - len});
    }
    return y;
}

/* One swatch with its word; returns where the next one begins, below if the row is full. */
static double put_swatch(const struct drawing *d, double x, unsigned *y, unsigned color,
                         const char *text)
{
    double width = 20 + (double)text_width(str_from(text)) * column_px + 14;
    if (x + width > d->width_px - MARGIN_PX && x > MARGIN_PX) {
        x = MARGIN_PX;
        *y += LINE_PX;
    }
    fprintf(d->out,
            "<g class=\"f%u\"><rect x=\"%.2f\" y=\"%u\" width=\"14\" height=\"12\"/></g>"
            "<text class=\"d\" x=\"%.2f\" y=\"%u\">%s</text>\n",
            color, x, *y - 10, x + 20, *y, text);
    return x + width;
}

static unsigned put_legend(const struct drawing *d, unsigned y)
{
    double x = MARGIN_PX;
    struct flame_legend legend = {
        .layout = &d->layout, .diff = d->diff, .diff_limit = d->diff_limit};
    fputs("<g id=\"legend\">\n", d->out);
    while (flame_legend_next(&legend))
        x = put_swatch(d, x, &y, legend.color, legend.text);
    fputs("</g>\n", d->out);
    return y + LINE_PX;
}

static unsigned put_header(const struct drawing *d)
{
    unsigned y = 26;
    fprintf(d->out, "<text class=\"t\" x=\"%d\" y=\"%u\">", MARGIN_PX, y);
    markup_label(d->out, str_from(d->opts->title),
                 (size_t)fmax((d->width_px - 2 * MARGIN_PX) / (column_px * 16 / 12), 10));
    fputs("</text>\n", d->out);
    y += LINE_PX + 2;
    char note[512];
    if (d->opts->subtitle)
        y = put_lines(d, d->opts->subtitle, y);
    if (d->diff) {
        y = put_lines(d, flame_note_diff(d->diff, note, sizeof(note)), y);
        y = put_lines(d, flame_note_gone(d->diff, note, sizeof(note)), y);
    }
    y = put_lines(d, flame_note_left_out(&d->layout, note, sizeof(note)), y);
    y = put_legend(d, y);
    /* The script puts the search box here. */
    fprintf(d->out,
            "<text class=\"d\" id=\"hint\" x=\"%d\" y=\"%u\">Point at a frame to read its "
            "numbers.</text>\n",
            MARGIN_PX, y + 4);
    return y - 12 + CONTROLS_PX;
}

static void put_place(const struct drawing *d, uint32_t node)
{
    const struct profile_function *function = flame_function(d->layout.tree, node);
    const struct image_info *image = flame_image(d->layout.tree, node);
    if (function->file.len > 0) {
        fputc('\n', d->out);
        markup_short(d->out, function->file, PLACE_BYTES_MAX);
        if (function->line > 0)
            fprintf(d->out, ":%u", function->line);
    }
    if (image && image->path.len > 0) {
        fputc('\n', d->out);
        markup_short(d->out, image->path, PLACE_BYTES_MAX);
    }
    enum flame_kind kind = flame_kind_of(d->layout.tree, node);
    if (kind != FLAME_USER && kind != FLAME_ROOT)
        fprintf(d->out, "\n%s", flame_kind_text(kind));
    if (kind != FLAME_INLINED && d->layout.tree->nodes[node].inlined)
        fputs("\ninlined", d->out);
}

/* Edges are rounded, not widths, so that children never reach out of their parent. */
static double edge_px(const struct drawing *d, uint64_t at)
{
    double scale = (d->width_px - 2 * MARGIN_PX) / (double)d->layout.rects[0].weight;
    return MARGIN_PX + round((double)at * scale * 100) / 100;
}

static void put_rect(const struct drawing *d, const struct flame_rect *rect)
{
    const struct call_tree *tree = d->layout.tree;
    unsigned row = d->opts->icicle ? rect->depth : d->layout.levels - 1 - rect->depth;
    unsigned y = d->frames_y + row * ROW_PX;
    double left = edge_px(d, rect->start), right = edge_px(d, rect->start + rect->weight);
    unsigned color = d->diff ? flame_color_change(d->diff->change_pct[rect->node], d->diff_limit)
                             : flame_color(tree, rect->node);
    char buffer[FLAME_LABEL_BYTES_MAX], cost[256];
    struct str label = flame_label(tree, d->diff, rect->node, buffer);
    fprintf(d->out, "<g class=\"r f%u\"><title>", color);
    markup_text(d->out, label);
    fprintf(d->out, "\n%s", flame_cost(tree, rect->node, cost, sizeof(cost)));
    if (d->diff && d->diff->before_pct[rect->node] > 0)
        fprintf(d->out, "\nbefore: %.2f%% of all", d->diff->before_pct[rect->node]);
    else if (d->diff)
        fputs("\nbefore: not there", d->out);
    put_place(d, rect->node);
    fprintf(d->out, "</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\"/>", left, y,
            right - left, ROW_PX);
    double columns = floor((right - left - 6) / column_px);
    if (columns >= LABEL_COLUMNS_MIN) {
        fprintf(d->out, "<text x=\"%.2f\" y=\"%u\">", left + 3, y + 13);
        markup_label(d->out, label, (size_t)columns);
        fputs("</text>", d->out);
    }
    fputs("</g>\n", d->out);
}

static void put_document(struct drawing *d, struct str header)
{
    FILE *out = d->out;
    unsigned height = d->frames_y + d->layout.levels * ROW_PX + MARGIN_PX;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%u\" "
            "viewBox=\"0 0 %.0f %u\" role=\"graphics-document\" "
            "aria-roledescription=\"%s\" aria-labelledby=\"name\">\n<title id=\"name\">",
            d->width_px, height, d->width_px, height,
            d->opts->icicle ? "icicle graph" : "flame graph");
    markup_text(out, str_from(d->opts->title));
    fputs("</title>\n", out);
    put_style(out);
    fputs("<rect class=\"b\" width=\"100%\" height=\"100%\"/>\n", out);
    fwrite(header.data, 1, header.len, out);
    fprintf(out, "<g id=\"frames\" data-row=\"%d\" data-margin=\"%d\" data-column=\"%.3f\">\n",
            ROW_PX, MARGIN_PX, column_px);
    for (size_t i = 0; i < d->layout.count; i++)
        put_rect(d, &d->layout.rects[i]);
    fputs("</g>\n<script><![CDATA[\n", out);
    fwrite(web_flame_svg, 1, web_flame_svg_bytes, out);
    fputs("]]></script>\n</svg>\n", out);
}

static int prepare(struct arena *arena, const struct flame_opts *opts, const struct call_tree *tree,
                   struct drawing *ret, struct why *why)
{
    double width = opts->width_px > 0 ? fmin(fmax(opts->width_px, 200), 20000) : WIDTH_PX;
    double narrow = opts->narrow_px > 0 ? opts->narrow_px : narrow_px;
    struct flame_limits limits = {.narrow_share = fmin(narrow / (width - 2 * MARGIN_PX), 1),
                                  .rect_count_max = RECTS_MAX,
                                  .levels_max = LEVELS_MAX};
    ret->opts = opts;
    ret->width_px = width;
    return flame_layout_build(arena, tree, &limits, &ret->layout, why);
}

int flame_svg(const struct flame_opts *opts, const struct call_tree *tree,
              const struct call_tree *before, double scale, FILE *out, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct drawing d = {0};
    struct flame_diff diff;
    int r = prepare(&arena, opts, tree, &d, why);
    if (r == 0 && before)
        r = flame_diff_build(&arena, tree, before, scale, &diff, why);
    if (r < 0)
        return r;
    if (before) {
        d.diff = &diff;
        d.diff_limit = flame_diff_limit(&diff, &d.layout);
    }
    /* How tall the picture is, is known once the header is written. */
    char *header = NULL;
    size_t header_len = 0;
    d.out = open_memstream(&header, &header_len);
    if (!d.out)
        return why_nomem(why);
    d.frames_y = put_header(&d);
    if (fclose(d.out) != 0) {
        free(header);
        return why_nomem(why);
    }
    d.out = out;
    put_document(&d, (struct str){header, header_len});
    free(header);
    return markup_end(out, "flame graph", why);
}
