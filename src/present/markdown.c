/* The tree as Markdown: maps become two-column tables, tables become tables. */
#include "present/markdown.h"

#include "base/text.h"

enum { HEADING_DEPTH_MAX = 5 };

static bool is_shown(const struct value_item *item)
{
    return item->show == SHOW_ALWAYS || item->show == SHOW_PEOPLE;
}

void markdown_text(FILE *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        struct str one = {text.data + i, 1};
        if (strchr("|\\`*_<>[]#~", text.data[i]) && text.data[i] != '\0')
            fputc('\\', out);
        int32_t code;
        size_t len = utf8_decode((struct str){text.data + i, text.len - i}, &code);
        one.len = len;
        text_print(out, one);
        i += len - 1;
    }
}

static void put_value(FILE *out, const struct value *value)
{
    char buffer[600];
    markdown_text(out, value_display(value, buffer, sizeof(buffer)));
}

void markdown_table(FILE *out, const struct table *table)
{
    if (!table || !table_shown(table, NULL)) {
        fprintf(out, "%s\n\n", table && table->empty ? table->empty : "none");
        return;
    }
    for (size_t i = 0; i < table->column_count; i++)
        if (table_shows(table, i)) {
            fputs("| ", out);
            markdown_text(out,
                          str_from(table->columns[i].title)); /* a query's titles are data too */
            fputc(' ', out);
        }
    fputs("|\n", out);
    for (size_t i = 0; i < table->column_count; i++)
        if (table_shows(table, i))
            fputs(table->columns[i].right ? "|---:" : "|---", out);
    fputs("|\n", out);
    for (const struct table_row *row = NULL; (row = table_shown(table, row));) {
        for (size_t i = 0; i < table->column_count; i++) {
            if (!table_shows(table, i))
                continue;
            fputs("| ", out);
            put_value(out, &row->cells[i]);
            fputc(' ', out);
        }
        fputs("|\n", out);
    }
    fputc('\n', out);
}

/* The fence is longer than any in the text, so that none ends it. */
void markdown_code(FILE *out, const char *language, struct str text)
{
    size_t longest = 2, ticks = 0;
    for (size_t i = 0; i < text.len; i++) {
        ticks = text.data[i] == '`' ? ticks + 1 : 0;
        longest = MAX(longest, ticks);
    }
    for (size_t i = 0; i <= longest; i++)
        fputc('`', out);
    fprintf(out, "%s\n", language);
    while (text.len > 0) {
        text_print(out, str_cut(&text, '\n'));
        fputc('\n', out);
    }
    for (size_t i = 0; i <= longest; i++)
        fputc('`', out);
    fputs("\n\n", out);
}

static void draw_map(const struct value *map, int depth, FILE *out);

static void draw_child(const struct value_item *item, int depth, FILE *out)
{
    for (int i = 0; i < MIN(depth, HEADING_DEPTH_MAX); i++)
        fputc('#', out);
    fprintf(out, " %s\n\n", value_item_title(item));
    if (item->value.kind == VALUE_MAP) {
        draw_map(&item->value, depth + 1, out);
    } else if (item->value.kind == VALUE_TABLE) {
        markdown_table(out, item->value.table);
    } else {
        const struct value_items *items = item->value.items;
        for (const struct value_item *line = items ? items->first : NULL; line; line = line->next) {
            if (line->show == SHOW_TERMINAL)
                continue;
            fputs("- ", out);
            put_value(out, &line->value);
            fputc('\n', out);
        }
        fputs(items && items->len > 0 ? "\n" : "none\n\n", out);
    }
}

static void draw_map(const struct value *map, int depth, FILE *out)
{
    bool any = false;
    const struct value_item *first = map->items ? map->items->first : NULL;
    for (const struct value_item *item = first; item; item = item->next) {
        if (!is_shown(item) || !value_is_scalar(&item->value))
            continue;
        if (!any)
            fputs("| field | value |\n|---|---|\n", out);
        any = true;
        fprintf(out, "| %s | ", value_item_title(item));
        put_value(out, &item->value);
        fputs(" |\n", out);
    }
    if (any)
        fputc('\n', out);
    for (const struct value_item *item = first; item; item = item->next)
        if (is_shown(item) && !value_is_scalar(&item->value))
            draw_child(item, depth, out);
}

void markdown_draw(const struct report *report, const struct render_opts *opts, FILE *out)
{
    (void)opts;
    draw_map(report->root, 2, out);
}
