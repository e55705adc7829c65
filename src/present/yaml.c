/* The tree as YAML, in blocks. Texts always stand in double quotes, so that no name of a target
 * can be taken for a number, a date, "no", or a line of its own. */
#include "present/yaml.h"

#include "base/text.h"

#include <math.h>
#include <stdlib.h>

enum { INDENT = 2 };

/* What YAML does not allow as it is, and what some readers take for the end of a line. */
static bool is_plain(int32_t code)
{
    if (code < 0x20 || code == '"' || code == '\\')
        return false;
    if ((code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 || code == 0xfeff)
        return false;
    return code != 0xfffe && code != 0xffff;
}

static void put_text(FILE *out, struct str text)
{
    fputc('"', out);
    while (text.len > 0) {
        int32_t code;
        size_t len = utf8_decode(text, &code);
        if (code < 0)
            fputs("\xef\xbf\xbd", out); /* no UTF-8: U+FFFD */
        else if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (char)code);
        else if (code == '\n')
            fputs("\\n", out);
        else if (is_plain(code))
            fwrite(text.data, 1, len, out);
        else
            fprintf(out, "\\u%04x", (unsigned)code);
        text.data += len;
        text.len -= len;
    }
    fputc('"', out);
}

/* A name of ours may stand bare; anything else in quotes. "no", "on" and "y" are no names. */
static void put_key(FILE *out, const char *key)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    static const char *const words[] = {"true", "false", "yes", "no", "on",
                                        "off",  "null",  "y",   "n",  "nan"};
    bool bare = key[0] && strchr(letters, key[0]);
    for (const char *at = key; *at; at++)
        bare = bare && (strchr(letters, *at) || (*at >= '0' && *at <= '9'));
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        bare = bare && strcmp(key, words[i]) != 0;
    if (bare)
        fputs(key, out);
    else
        put_text(out, str_from(key));
    fputc(':', out);
}

/* The shortest that reads back as the same; with a point, without which an exponent makes it a
 * text for readers of YAML 1.1. */
static void put_real(FILE *out, double number)
{
    char text[64];
    if (!isfinite(number)) {
        fputs("null", out);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    const char *exponent = strchr(text, 'e');
    if (exponent && !strchr(text, '.'))
        fprintf(out, "%.*s.0%s", (int)(exponent - text), text, exponent);
    else
        fputs(text, out);
}

static void put_scalar(FILE *out, const struct value *value)
{
    switch (value->kind) {
    case VALUE_NA: {
        char text[600];
        snprintf(text, sizeof(text), "n/a: %.*s", STR_FMT(value->text));
        put_text(out, str_from(text));
        break;
    }
    case VALUE_BOOL:
        fputs(value->truth ? "true" : "false", out);
        break;
    case VALUE_INT:
        fprintf(out, "%lld", (long long)value->i64);
        break;
    case VALUE_UINT:
        fprintf(out, "%llu", (unsigned long long)value->u64);
        break;
    case VALUE_REAL:
        put_real(out, value->real);
        break;
    case VALUE_TEXT:
        put_text(out, value->text);
        break;
    default:
        fputs("null", out);
    }
}

static bool is_shown(enum value_show show)
{
    return show == SHOW_ALWAYS || show == SHOW_MACHINE;
}

static void put_indent(FILE *out, int depth)
{
    fprintf(out, "%*s", depth * INDENT, "");
}

static void draw(FILE *out, const struct value *value, int depth, bool dash);

/* "key: value"; the first of a list's map stands on the line of its dash. */
static void draw_entry(FILE *out, const char *key, const struct value *value, int depth, bool *dash)
{
    if (!*dash)
        put_indent(out, depth);
    *dash = false;
    put_key(out, key);
    draw(out, value, depth + 1, false);
}

static void draw_map(FILE *out, const struct value *map, int depth, bool dash)
{
    for (const struct value_item *item = map->items ? map->items->first : NULL; item;
         item = item->next)
        if (is_shown(item->show))
            draw_entry(out, item->key, &item->value, depth, &dash);
}

static void draw_list(FILE *out, const struct value *list, int depth)
{
    for (const struct value_item *item = list->items->first; item; item = item->next) {
        if (!is_shown(item->show))
            continue;
        put_indent(out, depth);
        fputc('-', out);
        draw(out, &item->value, depth + 1, true);
    }
}

static void draw_table(FILE *out, const struct table *table, int depth)
{
    for (const struct table_row *row = table->first; row; row = row->next) {
        bool dash = true;
        put_indent(out, depth);
        fputs("- ", out);
        for (size_t i = 0; i < table->column_count; i++)
            if (is_shown(table->columns[i].show))
                draw_entry(out, table->columns[i].key, &row->cells[i], depth + 1, &dash);
    }
}

static bool is_empty(const struct value *value)
{
    if (value->kind == VALUE_TABLE)
        return !value->table || !value->table->first;
    for (const struct value_item *item = value->items ? value->items->first : NULL; item;
         item = item->next)
        if (is_shown(item->show))
            return false;
    return true;
}

/* What stands after "key:" or "-", with the end of its line. */
static void draw(FILE *out, const struct value *value, int depth, bool dash)
{
    if (value_is_scalar(value)) {
        fputc(' ', out);
        put_scalar(out, value);
        fputc('\n', out);
    } else if (is_empty(value)) {
        fputs(value->kind == VALUE_MAP ? " {}\n" : " []\n", out);
    } else if (value->kind == VALUE_MAP) {
        fputc(dash ? ' ' : '\n', out);
        draw_map(out, value, depth, dash);
    } else {
        fputc('\n', out);
        if (value->kind == VALUE_TABLE)
            draw_table(out, value->table, depth);
        else
            draw_list(out, value, depth);
    }
}

void yaml_draw(const struct report *report, const struct render_opts *opts, FILE *out)
{
    (void)opts;
    fputs("schema: ", out);
    put_text(out, str_from(report->schema));
    fputc('\n', out);
    draw_map(out, report->root, 0, false);
}
