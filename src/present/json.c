/* The tree as JSON. What is not available is the text "n/a: reason", in the
 * place of the number, so that a reader can neither miss it nor sum it up. */
#include "present/json.h"

#include "base/jsonw.h"

static void draw(struct jsonw *json, const struct value *value);

static void draw_na(struct jsonw *json, struct str reason)
{
    char text[600];
    snprintf(text, sizeof(text), "n/a: %.*s", STR_FMT(reason));
    jsonw_text(json, str_from(text));
}

static bool is_shown(const struct value_item *item)
{
    return item->show == SHOW_ALWAYS || item->show == SHOW_MACHINE;
}

static void draw_items(struct jsonw *json, const struct value *value)
{
    bool map = value->kind == VALUE_MAP;
    if (map)
        jsonw_object_begin(json);
    else
        jsonw_array_begin(json);
    for (const struct value_item *item = value->items ? value->items->first : NULL; item;
         item = item->next) {
        if (!is_shown(item))
            continue;
        if (map)
            jsonw_key(json, item->key);
        draw(json, &item->value);
    }
    if (map)
        jsonw_object_end(json);
    else
        jsonw_array_end(json);
}

static void draw_table(struct jsonw *json, const struct table *table)
{
    jsonw_array_begin(json);
    for (const struct table_row *row = table ? table->first : NULL; row; row = row->next) {
        jsonw_object_begin(json);
        for (size_t i = 0; i < table->column_count; i++) {
            if (table->columns[i].show == SHOW_PEOPLE || table->columns[i].show == SHOW_TERMINAL)
                continue;
            jsonw_key(json, table->columns[i].key);
            draw(json, &row->cells[i]);
        }
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void draw(struct jsonw *json, const struct value *value)
{
    switch (value->kind) {
    case VALUE_NA:
        draw_na(json, value->text);
        break;
    case VALUE_NULL:
        jsonw_null(json);
        break;
    case VALUE_BOOL:
        jsonw_bool(json, value->truth);
        break;
    case VALUE_INT:
        jsonw_i64(json, value->i64);
        break;
    case VALUE_UINT:
        jsonw_u64(json, value->u64);
        break;
    case VALUE_REAL:
        jsonw_f64(json, value->real);
        break;
    case VALUE_TEXT:
        jsonw_text(json, value->text);
        break;
    case VALUE_LIST:
    case VALUE_MAP:
        draw_items(json, value);
        break;
    case VALUE_TABLE:
        draw_table(json, value->table);
        break;
    }
}

void json_draw(const struct report *report, const struct render_opts *opts, FILE *out)
{
    (void)opts;
    struct jsonw json;
    jsonw_init(&json, out, 2);
    jsonw_object_begin(&json);
    jsonw_key(&json, "schema");
    jsonw_text(&json, str_from(report->schema));
    for (const struct value_item *item = report->root->items ? report->root->items->first : NULL;
         item; item = item->next) {
        if (!is_shown(item))
            continue;
        jsonw_key(&json, item->key);
        draw(&json, &item->value);
    }
    jsonw_object_end(&json);
    fputc('\n', out);
}
