/* A value as HTML: what text.c draws for a terminal. */
#include "present/html_parts.h"
#include "present/markup.h"
#include "present/renderers.h"
#include "present/run_page_parts.h"

enum { LEVEL_MAX = 4 };

static bool is_shown(const struct value_item *item)
{
    return item->show == SHOW_ALWAYS || item->show == SHOW_PEOPLE;
}

static const char *tone_class(const struct value *value)
{
    static const char *const classes[] = {
        [TONE_PLAIN] = "",
        [TONE_GOOD] = " class=\"good\"",
        [TONE_WARN] = " class=\"warn\"",
        [TONE_BAD] = " class=\"bad\"",
        [TONE_DIM] = " class=\"dim\"",
        [TONE_BLUE] = "",
        [TONE_MAGENTA] = "",
        [TONE_CYAN] = "",
    };
    return value->kind == VALUE_NA ? classes[TONE_DIM] : classes[value->tone];
}

static void put_display(FILE *out, const struct value *value)
{
    char buffer[MARKUP_TEXT_BYTES_MAX];
    markup_text(out, value_display(value, buffer, sizeof(buffer)));
}

void page_scalars(FILE *out, const struct value *map)
{
    bool any = false;
    for (const struct value_item *item = map->items ? map->items->first : NULL; item;
         item = item->next) {
        if (!is_shown(item) || !value_is_scalar(&item->value))
            continue;
        fprintf(out, "%s<div><dt>", any ? "" : "<dl class=\"facts\">\n");
        any = true;
        markup_text(out, str_from(value_item_title(item)));
        fprintf(out, "</dt><dd%s>", tone_class(&item->value));
        put_display(out, &item->value);
        fputs("</dd></div>\n", out);
    }
    if (any)
        fputs("</dl>\n", out);
}

static void put_table(FILE *out, const struct table *table)
{
    if (!table || !table_shown(table, NULL)) {
        html_note(out, table && table->empty ? table->empty : "none");
        return;
    }
    /* A region that scrolls must be reached by the keyboard. */
    fputs("<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n", out);
    html_table(out, table);
    fputs("</table></div>\n", out);
}

static void put_list(FILE *out, const struct value *list)
{
    fputs("<ul>\n", out);
    for (const struct value_item *item = list->items ? list->items->first : NULL; item;
         item = item->next) {
        fprintf(out, "<li%s>", tone_class(&item->value));
        put_display(out, &item->value);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

void page_value(FILE *out, const struct value_item *item, int level)
{
    if (!is_shown(item))
        return;
    fprintf(out, "<section>\n<h%d>", MIN(level, LEVEL_MAX));
    markup_text(out, str_from(value_item_title(item)));
    fprintf(out, "</h%d>\n", MIN(level, LEVEL_MAX));
    if (item->value.kind == VALUE_TABLE)
        put_table(out, item->value.table);
    else if (item->value.kind == VALUE_LIST)
        put_list(out, &item->value);
    else
        page_scalars(out, &item->value);
    for (const struct value_item *child =
             item->value.kind == VALUE_MAP && item->value.items ? item->value.items->first : NULL;
         child; child = child->next)
        if (!value_is_scalar(&child->value))
            page_value(out, child, level + 1);
    fputs("</section>\n", out);
}
