/* The HTML page. Its parts: html_data.c writes what web/page.js draws; here is the frame
 * around it, the table, and the policy that keeps it harmless. */
#include "present/html.h"

#include "base/sha256.h"
#include "base/text.h"
#include "present/embedded.h"
#include "present/flame_colors.h"
#include "present/flame_words.h"
#include "present/html_data.h"
#include "present/markup.h"
#include "present/renderers.h"

#include <math.h>
#include <stdlib.h>

enum {
    RECTS_MAX = 100000,
    LEVELS_MAX = 4096,
    ROWS_MAX = 5000, /* of the table; browsers slow down long before */
    NOTE_BYTES = 512,
};

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* 'sha256-…' as a content security policy wants it: base64 of what sha256_finish() gives as
 * hex. 32 bytes are 10 groups of three and two more. */
static void put_hash(FILE *out, const void *data, size_t len)
{
    char hex[SHA256_TEXT_BYTES];
    struct sha256 hash;
    sha256_init(&hash);
    sha256_add(&hash, data, len);
    sha256_finish(&hash, hex);
    unsigned bytes[SHA256_BYTES + 1] = {0};
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        const char two[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (unsigned)strtoul(two, NULL, 16);
    }
    fputs("'sha256-", out);
    for (size_t i = 0; i < SHA256_BYTES; i += 3) {
        unsigned group = bytes[i] << 16 | bytes[i + 1] << 8;
        bool whole = i + 2 < SHA256_BYTES;
        group |= whole ? bytes[i + 2] : 0;
        fprintf(out, "%c%c%c%c", base64[group >> 18], base64[group >> 12 & 63],
                base64[group >> 6 & 63], whole ? base64[group & 63] : '=');
    }
    fputc('\'', out);
}

static int style_text(char **ret, size_t *ret_len)
{
    FILE *style = open_memstream(ret, ret_len);
    if (!style)
        return -1;
    flame_colors_variables(style);
    flame_colors_classes(style);
    fwrite(web_page_css, 1, web_page_css_bytes, style);
    return fclose(style) == 0 ? 0 : -1;
}

static void put_head(FILE *out, const char *title, struct str style)
{
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "script-src ",
          out);
    put_hash(out, web_page_js, web_page_js_bytes);
    fputs("; style-src ", out);
    put_hash(out, style.data, style.len);
    fputs("; base-uri 'none'; form-action 'none'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta name=\"generator\" content=\"whyslow\">\n<title>",
          out);
    markup_text(out, str_from(title));
    fputs("</title>\n<style>", out);
    fwrite(style.data, 1, style.len, out);
    fputs("</style>\n</head>\n<body>\n<h1>", out);
    markup_text(out, str_from(title));
    fputs("</h1>\n", out);
}

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

static void put_note(FILE *out, const char *note)
{
    if (!note[0])
        return;
    fputs("<p class=\"dim\">", out);
    markup_text(out, str_from(note));
    fputs("</p>\n", out);
}

static void put_legend(FILE *out, const struct html_data *data)
{
    struct flame_legend legend = {
        .layout = data->layout, .diff = data->diff, .diff_limit = data->diff_limit};
    fputs("<p class=\"legend\">", out);
    while (flame_legend_next(&legend)) {
        fprintf(out,
                "<span><svg class=\"f%u\" aria-hidden=\"true\"><rect width=\"14\" height=\"12\"/>"
                "</svg>",
                legend.color);
        markup_text(out, str_from(legend.text));
        fputs("</span>\n", out);
    }
    fputs("</p>\n", out);
}

static void put_graph(FILE *out, const struct html_data *data)
{
    char note[NOTE_BYTES];
    bool inverts = !data->diff && !data->layout->tree->inverted;
    fputs("<section aria-labelledby=\"graph\">\n<h2 id=\"graph\">Flame graph</h2>\n", out);
    if (data->diff) {
        put_note(out, flame_note_diff(data->diff, note, sizeof(note)));
        put_note(out, flame_note_gone(data->diff, note, sizeof(note)));
    }
    put_note(out, flame_note_left_out(data->layout, note, sizeof(note)));
    put_legend(out, data);
    fprintf(out,
            "<noscript><p>The picture needs scripts; the table below does not. 'whyslow export "
            "--format flame' writes a picture without.</p></noscript>\n"
            "<div class=\"bar\">\n"
            "<input id=\"find\" type=\"search\" placeholder=\"find frames (/)\" "
            "aria-label=\"Find frames by a part of their name\">\n"
            "<button type=\"button\" data-view=\"flame\" aria-pressed=\"true\">Flame</button>\n"
            "<button type=\"button\" data-view=\"icicle\" aria-pressed=\"false\">Icicle</button>\n"
            "<button type=\"button\" data-view=\"inverted\" "
            "aria-pressed=\"false\"%s>Inverted</button>\n"
            "<button type=\"button\" id=\"reset\" disabled>Reset zoom (Esc)</button>\n"
            "<span id=\"status\" role=\"status\"></span>\n</div>\n"
            "<div id=\"scroller\"><div id=\"spacer\"><canvas id=\"canvas\" tabindex=\"0\" "
            "role=\"application\" aria-label=\"Flame graph: arrows walk, Enter zooms, Esc resets. "
            "The table of hotspots has the same functions.\"></canvas></div></div>\n"
            "<div id=\"panel\"><div id=\"frame-name\"></div><div id=\"frame-lines\"></div></div>\n"
            "<div id=\"live\" aria-live=\"polite\"></div>\n</section>\n",
            inverts      ? ""
            : data->diff ? " disabled title=\"A differential picture has no inverted view: what is "
                           "gone would be missing in it\""
                         : " disabled title=\"This picture is inverted already\"");
}

/* What a cell is sorted by: its number, or of a list (an interval) the first one. */
static double sort_number(const struct value *value)
{
    if (value->kind == VALUE_LIST && value->items && value->items->first)
        return value_number(&value->items->first->value);
    return value_number(value);
}

/* Columns stand as they do in the text report: some break, others do not. */
static const char *column_class(const struct column *column)
{
    return column->right ? " class=\"right\"" : column->wrap ? " class=\"wrap\"" : "";
}

static void put_cell(FILE *out, const struct column *column, const struct value *value)
{
    char buffer[600];
    double number = sort_number(value);
    fprintf(out, "<td%s", column_class(column));
    if (isfinite(number))
        fprintf(out, " data-v=\"%.17g\"", number);
    fputc('>', out);
    markup_text(out, value_display(value, buffer, sizeof(buffer)));
    fputs("</td>", out);
}

static void put_rows(FILE *out, const struct table *table)
{
    size_t count = 0;
    for (const struct table_row *row = NULL; (row = table_shown(table, row)) && count < ROWS_MAX;
         count++) {
        fputs("<tr>", out);
        for (size_t i = 0; i < table->column_count; i++)
            if (table_shows(table, i))
                put_cell(out, &table->columns[i], &row->cells[i]);
        fputs("</tr>\n", out);
    }
}

static size_t rows_shown(const struct table *table)
{
    size_t count = 0;
    for (const struct table_row *row = NULL; (row = table_shown(table, row));)
        count++;
    return count;
}

static void put_table(FILE *out, const struct value *hotspots, const char *title)
{
    if (!hotspots || hotspots->kind != VALUE_TABLE || !hotspots->table)
        return;
    const struct table *table = hotspots->table;
    size_t rows = rows_shown(table);
    fputs("<section aria-labelledby=\"table\">\n<h2 id=\"table\">", out);
    markup_text(out, str_from(title ? title : "Hotspots"));
    fputs("</h2>\n", out);
    if (rows == 0) {
        put_note(out, table->empty ? table->empty : "none");
        fputs("</section>\n", out);
        return;
    }
    if (rows > ROWS_MAX)
        fprintf(out, "<p class=\"dim\">The first %d of %zu rows.</p>\n", ROWS_MAX, rows);
    fputs("<div class=\"bar\"><input id=\"filter\" type=\"search\" placeholder=\"filter rows\" "
          "aria-label=\"Show only rows that contain this text\"><span id=\"rows\" "
          "role=\"status\"></span></div>\n<div class=\"table\"><table id=\"hotspots\">\n"
          "<thead><tr>",
          out);
    for (size_t i = 0; i < table->column_count; i++) {
        if (!table_shows(table, i))
            continue;
        fprintf(out, "<th scope=\"col\"%s data-key=\"", column_class(&table->columns[i]));
        markup_text(out, str_from(table->columns[i].key));
        fputs("\">", out);
        markup_text(out, str_from(table->columns[i].title));
        fputs("</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
    put_rows(out, table);
    fputs("</tbody>\n</table></div>\n</section>\n", out);
}

static int put_page(const struct html_opts *opts, const struct html_data *data, FILE *out,
                    struct why *why)
{
    char *style = NULL;
    size_t style_len = 0;
    if (style_text(&style, &style_len) < 0) {
        free(style);
        return why_nomem(why);
    }
    put_head(out, data->title, (struct str){style, style_len});
    free(style);
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
