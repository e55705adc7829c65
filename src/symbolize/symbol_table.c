/* Sorting symbols, and deciding which of several counts. */
#include "symbolize/symbol_table.h"

#include "symbolize/internal.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

int symbol_table_add(struct symbol_table *table, uint64_t start, uint64_t size_bytes,
                     struct str name, uint32_t rank, uint32_t flags)
{
    name.len = MIN(name.len, (size_t)SYMBOL_NAME_BYTES_MAX);
    if (table->rows.len >= SYMBOL_TABLE_ROWS_MAX || table->names.len + name.len > UINT32_MAX / 2) {
        table->dropped++;
        return 0;
    }
    struct symbol_row row = {start, size_bytes, (uint32_t)table->names.len, (uint32_t)name.len,
                             rank,  flags};
    if (VEC_RESERVE(&table->names, table->names.len + name.len) < 0 ||
        VEC_PUSH(&table->rows, row) < 0)
        return -ENOMEM;
    if (name.len > 0)
        memcpy(table->names.data + table->names.len, name.data, name.len);
    table->names.len += name.len;
    return 0;
}

static int row_order(const void *a, const void *b)
{
    const struct symbol_row *left = a;
    const struct symbol_row *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return left->name < right->name ? -1 : left->name > right->name; /* as it was added */
}

/* Of those that start together the best name; the largest size any of them tells. */
static void rows_join(struct symbol_table *table)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->rows.len; i++) {
        struct symbol_row *row = &table->rows.data[i];
        struct symbol_row *last = kept > 0 ? &table->rows.data[kept - 1] : NULL;
        if (last && last->start == row->start)
            last->size_bytes = MAX(last->size_bytes, row->size_bytes);
        else
            table->rows.data[kept++] = *row;
    }
    table->rows.len = kept;
}

/* A symbol without a size ends where the next one starts, or its section ends. Inside one
 * with a size it is a label, and says nothing of its own. */
static void rows_size(struct symbol_table *table, const uint64_t *ends, size_t end_count)
{
    uint64_t covered = 0; /* up to here a sized symbol tells */
    size_t at = 0;
    size_t kept = 0;
    for (size_t i = 0; i < table->rows.len; i++) {
        struct symbol_row row = table->rows.data[i];
        while (at < end_count && ends[at] <= row.start)
            at++;
        if (row.size_bytes == 0 && row.start < covered)
            continue;
        if (row.size_bytes > UINT64_MAX - row.start)
            row.size_bytes = UINT64_MAX - row.start;
        if (row.size_bytes == 0) {
            uint64_t end = i + 1 < table->rows.len ? table->rows.data[i + 1].start : UINT64_MAX;
            if (at < end_count)
                end = MIN(end, ends[at]);
            row.size_bytes = end - row.start;
            if (table->limit && row.size_bytes > table->limit)
                row.size_bytes = table->limit;
        } else
            covered = MAX(covered, row.start + row.size_bytes);
        table->rows.data[kept++] = row;
    }
    table->rows.len = kept;
}

int symbol_table_finish(struct symbol_table *table, const uint64_t *ends, size_t end_count)
{
    if (!table->last_wins) {
        if (table->rows.len > 1)
            qsort(table->rows.data, table->rows.len, sizeof(struct symbol_row), row_order);
        rows_join(table);
        rows_size(table, ends, end_count);
    }
    size_t count = 0;
    struct range *ranges = malloc((table->rows.len + 1) * sizeof(*ranges));
    if (!ranges)
        return -ENOMEM;
    for (size_t i = 0; i < table->rows.len; i++) {
        const struct symbol_row *row = &table->rows.data[i];
        if (row->flags & SYMBOL_END)
            continue;
        uint64_t end = row->start + MIN(row->size_bytes, UINT64_MAX - row->start);
        ranges[count++] = (struct range){row->start, end, (uint32_t)i, (uint32_t)i};
    }
    range_map_deinit(&table->map);
    int r = range_map_build(ranges, count, &table->map);
    free(ranges);
    return r;
}

void symbol_table_deinit(struct symbol_table *table)
{
    VEC_FREE(&table->rows);
    VEC_FREE(&table->names);
    range_map_deinit(&table->map);
    map_u64_deinit(&table->shown);
}

const struct symbol_row *symbol_table_find(const struct symbol_table *table, uint64_t vaddr)
{
    uint32_t row = range_map_find(&table->map, vaddr);
    return row < table->rows.len ? &table->rows.data[row] : NULL;
}

struct str symbol_table_name(const struct symbol_table *table, const struct symbol_row *row)
{
    return (struct str){table->names.data + row->name, row->name_len};
}

/* A part that was split off as cold belongs to the function it came from, if that is the
 * only one of its name. */
static const struct symbol_row *hot_part(const struct symbol_table *table,
                                         const struct symbol_row *row)
{
    struct str name = symbol_table_name(table, row);
    if (!str_contains(name, ".cold"))
        return row;
    struct str base = symbol_base_name(name);
    const struct symbol_row *found = NULL;
    for (size_t i = 0; i < table->rows.len; i++)
        if (str_eq(symbol_table_name(table, &table->rows.data[i]), base)) {
            if (found)
                return row;
            found = &table->rows.data[i];
        }
    return found ? found : row;
}

uint32_t symbol_table_function(struct symbol_table *table, struct symbols *symbols,
                               const struct symbol_row *row)
{
    size_t index = (size_t)(row - table->rows.data);
    bool fresh;
    uint64_t *known = map_u64_at(&table->shown, index, &fresh);
    if (!known)
        return UINT32_MAX;
    if (!fresh && *known != 0)
        return (uint32_t)*known - 1;
    const struct symbol_row *hot = table->last_wins ? row : hot_part(table, row);
    struct str linkage = symbol_table_name(table, hot);
    if (table->last_wins) { /* it may grow, and its names move */
        const char *copy = arena_dup_len(&symbols->arena, linkage.data, linkage.len);
        linkage = (struct str){copy, arena_failed(&symbols->arena) ? 0 : linkage.len};
    }
    struct symbol_function function = {
        .name = row->flags & SYMBOL_TEXT ? linkage : symbol_pretty(&symbols->arena, linkage),
        .linkage = linkage,
        .start = hot->start,
        .size_bytes = hot->size_bytes,
    };
    uint32_t added = symbols_function_add(symbols, &function);
    *known = (uint64_t)added + 1;
    return added;
}

size_t symbol_table_at(struct symbols *symbols, void *state, uint64_t vaddr, struct symbol_hit *ret,
                       size_t max)
{
    const struct symbol_row *row = symbol_table_find(state, vaddr);
    if (!row || max == 0)
        return 0;
    ret[0] = (struct symbol_hit){.function = symbol_table_function(state, symbols, row)};
    return ret[0].function != UINT32_MAX;
}

void symbol_table_close(void *state)
{
    if (state)
        symbol_table_deinit(state);
    free(state);
}
