/* The frame of a page and its tables. */
#include "present/html_parts.h"

#include "base/sha256.h"
#include "present/flame_colors.h"
#include "present/flame_words.h"
#include "present/markup.h"
#include "present/renderers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

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

int html_style(const struct str *sheets, size_t count, char **ret, size_t *ret_len)
{
    char *text = NULL;
    size_t len = 0;
    FILE *style = open_memstream(&text, &len);
    if (!style)
        return -ENOMEM;
    flame_colors_variables(style);
    flame_colors_classes(style);
    for (size_t i = 0; i < count; i++)
        fwrite(sheets[i].data, 1, sheets[i].len, style);
    if (fclose(style) != 0) {
        free(text);
        return -ENOMEM;
    }
    *ret = text;
    *ret_len = len;
    return 0;
}

void html_head(FILE *out, const char *title, struct str style, struct str script)
{
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "script-src ",
          out);
    put_hash(out, script.data, script.len);
    fputs("; style-src ", out);
    put_hash(out, style.data, style.len);
    fputs("; base-uri 'none'; form-action 'none'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta name=\"generator\" content=\"whyslow\">\n<title>",
          out);
    markup_text(out, str_from(title));
    fputs("</title>\n<style>", out);
    fwrite(style.data, 1, style.len, out);
    fputs("</style>\n</head>\n<body>\n", out);
}

void html_note(FILE *out, const char *note)
{
    if (!note[0])
        return;
    fputs("<p class=\"dim\">", out);
    markup_text(out, str_from(note));
    fputs("</p>\n", out);
}

void html_legend(FILE *out, const struct html_data *data)
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

void html_cells(FILE *out, const struct table *table, const struct table_row *row)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (table_shows(table, i))
            put_cell(out, &table->columns[i], &row->cells[i]);
}

static void put_rows(FILE *out, const struct table *table)
{
    size_t count = 0;
    for (const struct table_row *row = NULL;
         (row = table_shown(table, row)) && count < HTML_ROWS_MAX; count++) {
        fputs("<tr>", out);
        html_cells(out, table, row);
        fputs("</tr>\n", out);
    }
}

size_t html_rows_shown(const struct table *table)
{
    size_t count = 0;
    for (const struct table_row *row = NULL; (row = table_shown(table, row));)
        count++;
    return count;
}

void html_columns(FILE *out, const struct table *table)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (!table_shows(table, i))
            continue;
        fprintf(out, "<th scope=\"col\"%s data-key=\"", column_class(&table->columns[i]));
        markup_text(out, str_from(table->columns[i].key));
        fputs("\">", out);
        markup_text(out, str_from(table->columns[i].title));
        fputs("</th>", out);
    }
}

void html_table(FILE *out, const struct table *table)
{
    fputs("<thead><tr>", out);
    html_columns(out, table);
    fputs("</tr></thead>\n<tbody>\n", out);
    put_rows(out, table);
    fputs("</tbody>\n", out);
}

void html_viewer(FILE *out, const char *no_inverted)
{
    fputs("<div class=\"bar\">\n"
          "<input id=\"find\" type=\"search\" placeholder=\"find frames (/)\" "
          "aria-label=\"Find frames by a part of their name\">\n"
          "<button type=\"button\" data-view=\"flame\" aria-pressed=\"true\">Flame</button>\n"
          "<button type=\"button\" data-view=\"icicle\" aria-pressed=\"false\">Icicle</button>\n"
          "<button type=\"button\" data-view=\"inverted\" aria-pressed=\"false\"",
          out);
    if (no_inverted)
        fprintf(out, " disabled title=\"%s\"", no_inverted);
    fputs(">Inverted</button>\n"
          "<button type=\"button\" id=\"reset\" disabled>Reset zoom (Esc)</button>\n"
          "<span id=\"status\" role=\"status\"></span>\n</div>\n"
          "<div id=\"scroller\"><div id=\"spacer\"><canvas id=\"canvas\" tabindex=\"0\" "
          "role=\"application\" aria-label=\"Flame graph: arrows walk, Enter zooms, Esc resets. "
          "The table of hotspots has the same functions.\"></canvas></div></div>\n"
          "<div id=\"panel\"><div id=\"frame-name\"></div><div id=\"frame-lines\"></div></div>\n"
          "<div id=\"live\" aria-live=\"polite\"></div>\n",
          out);
}
