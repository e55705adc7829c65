/* Building and reading of result trees. */
#include "model/value.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct value value_na(const char *reason)
{
    return (struct value){.kind = VALUE_NA, .text = str_from(reason)};
}

struct value value_na_printf(struct arena *arena, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return value_na(arena_dup(arena, text));
}

struct value value_null(void)
{
    return (struct value){.kind = VALUE_NULL};
}

struct value value_bool(bool truth)
{
    return (struct value){.kind = VALUE_BOOL, .truth = truth};
}

struct value value_int(int64_t number, enum unit unit)
{
    return (struct value){.kind = VALUE_INT, .unit = unit, .i64 = number};
}

struct value value_uint(uint64_t number, enum unit unit)
{
    return (struct value){.kind = VALUE_UINT, .unit = unit, .u64 = number};
}

struct value value_real(double number, enum unit unit)
{
    return (struct value){.kind = VALUE_REAL, .unit = unit, .real = number};
}

struct value value_text(const char *text)
{
    return value_str(str_from(text));
}

struct value value_str(struct str text)
{
    return (struct value){.kind = VALUE_TEXT, .text = text};
}

struct value value_tone(struct value value, enum tone tone)
{
    value.tone = tone;
    return value;
}

struct value value_about(struct value value)
{
    bool number = value.kind == VALUE_INT || value.kind == VALUE_UINT || value.kind == VALUE_REAL;
    value.about = number && value_number(&value) != 0;
    return value;
}

static struct value container(struct arena *arena, enum value_kind kind)
{
    struct value_items *items = ARENA_NEW(arena, struct value_items);
    if (items)
        items->arena = arena;
    return (struct value){.kind = kind, .items = items};
}

struct value value_map(struct arena *arena)
{
    return container(arena, VALUE_MAP);
}

struct value value_list(struct arena *arena)
{
    return container(arena, VALUE_LIST);
}

struct value value_table(struct arena *arena, const struct column *columns, size_t count)
{
    assert(count <= TABLE_COLUMNS_MAX);
    struct table *table = ARENA_NEW(arena, struct table);
    if (table)
        *table = (struct table){.arena = arena, .columns = columns, .column_count = count};
    return (struct value){.kind = VALUE_TABLE, .table = table};
}

static struct value *item_add(struct value *parent, const char *key, const char *title,
                              enum value_show show, struct value child)
{
    if (!parent || !parent->items)
        return NULL;
    struct value_items *items = parent->items;
    struct value_item *item = ARENA_NEW(items->arena, struct value_item);
    if (!item)
        return NULL;
    *item = (struct value_item){.key = key, .title = title, .show = show, .value = child};
    if (items->last)
        items->last->next = item;
    else
        items->first = item;
    items->last = item;
    items->len++;
    return &item->value;
}

struct value *value_put(struct value *parent, const char *key, const char *title,
                        struct value child)
{
    assert(!parent || parent->kind == VALUE_MAP);
    return item_add(parent, key, title, SHOW_ALWAYS, child);
}

struct value *value_put_machine(struct value *parent, const char *key, struct value child)
{
    assert(!parent || parent->kind == VALUE_MAP);
    return item_add(parent, key, NULL, SHOW_MACHINE, child);
}

struct value *value_put_for(struct value *parent, enum value_show show, const char *key,
                            const char *title, struct value child)
{
    assert(!parent || parent->kind == VALUE_MAP);
    return item_add(parent, key, title, show, child);
}

struct value *value_append(struct value *list, struct value child)
{
    assert(!list || list->kind == VALUE_LIST);
    return item_add(list, NULL, NULL, SHOW_ALWAYS, child);
}

struct table_row *table_add(struct value *value)
{
    struct table *table = value && value->kind == VALUE_TABLE ? value->table : NULL;
    if (!table)
        return NULL;
    struct table_row *row = arena_alloc(table->arena,
                                        sizeof(*row) + table->column_count * sizeof(row->cells[0]));
    if (!row)
        return NULL;
    for (size_t i = 0; i < table->column_count; i++)
        row->cells[i] = value_na("not set");
    if (table->last)
        table->last->next = row;
    else
        table->first = row;
    table->last = row;
    table->row_count++;
    return row;
}

const struct table_row *table_shown(const struct table *table, const struct table_row *row)
{
    row = row ? row->next : table->first;
    while (row && row->show != SHOW_ALWAYS)
        row = row->next;
    return row;
}

struct str table_text(const struct table *table, const struct table_row *row, const char *key)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (strcmp(table->columns[i].key, key) == 0 && row->cells[i].kind == VALUE_TEXT)
            return row->cells[i].text;
    return (struct str){"", 0};
}

bool table_shows(const struct table *table, size_t column)
{
    enum value_show show = table->columns[column].show;
    if (show != SHOW_ALWAYS && show != SHOW_PEOPLE)
        return false;
    for (const struct table_row *row = NULL; (row = table_shown(table, row));)
        if (row->cells[column].kind != VALUE_TEXT || row->cells[column].text.len > 0)
            return true;
    return false;
}

static const struct value *get(const struct value *map, struct str key)
{
    if (!map || map->kind != VALUE_MAP || !map->items)
        return NULL;
    for (const struct value_item *item = map->items->first; item; item = item->next)
        if (str_is(key, item->key))
            return &item->value;
    return NULL;
}

const struct value *value_get(const struct value *map, const char *key)
{
    return get(map, str_from(key));
}

const struct value *value_find(const struct value *map, const char *path)
{
    struct str rest = str_from(path);
    while (map && rest.len > 0)
        map = get(map, str_cut(&rest, '.'));
    return map;
}

double value_number(const struct value *value)
{
    if (!value)
        return NAN;
    switch (value->kind) {
    case VALUE_INT:
        return (double)value->i64;
    case VALUE_UINT:
        return (double)value->u64;
    case VALUE_REAL:
        return value->real;
    default:
        return NAN;
    }
}

bool value_is_scalar(const struct value *value)
{
    return value->kind != VALUE_LIST && value->kind != VALUE_MAP && value->kind != VALUE_TABLE;
}

const char *value_item_title(const struct value_item *item)
{
    return item->title ? item->title : item->key;
}
