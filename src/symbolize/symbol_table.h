/* Symbols sorted for lookup: what ELF files, kallsyms and perf maps have in common.
 *
 * Filled with symbol_table_add(), made searchable once with symbol_table_finish(). Names are
 * kept in one block, so that a finished table can be written to the cache as it is. */
#pragma once

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "symbolize/range_map.h"

struct symbol_row {
    uint64_t start;
    uint64_t size_bytes; /* 0 while adding: up to the next symbol */
    uint32_t name;       /* offset into the names */
    uint32_t name_len;
    uint32_t rank; /* of symbols that start together the lowest is shown */
    uint32_t flags;
};

enum symbol_flag {
    SYMBOL_END = 1,  /* no function: only ends the one before it */
    SYMBOL_TEXT = 2, /* the name is for people as it stands (perf maps): not demangled */
};

enum { SYMBOL_TABLE_ROWS_MAX = 1 << 24, SYMBOL_NAME_BYTES_MAX = 1 << 20 };

struct symbol_table {
    VEC(struct symbol_row) rows;
    VEC(char) names;
    struct range_map map; /* address → row */
    struct map_u64 shown; /* row → index of its symbol_function, plus one */
    uint64_t limit;       /* no symbol of unknown size is longer; 0: no limit */
    uint64_t dropped;     /* beyond the bounds */
    bool last_wins;       /* of overlapping ones the last added, not the innermost */
};

MUST_USE int symbol_table_add(struct symbol_table *table, uint64_t start, uint64_t size_bytes,
                              struct str name, uint32_t rank, uint32_t flags);
/* Gives zero-size symbols their size, keeps one of those that start together, and builds the
 * map. Only code counts: `ends` are ascending addresses where sections end. */
MUST_USE int symbol_table_finish(struct symbol_table *table, const uint64_t *ends,
                                 size_t end_count);
void symbol_table_deinit(struct symbol_table *table);

/* NULL when no symbol is there. */
const struct symbol_row *symbol_table_find(const struct symbol_table *table, uint64_t vaddr);
struct str symbol_table_name(const struct symbol_table *table, const struct symbol_row *row);

/* The function of a symbol, made when it is first asked for; UINT32_MAX when out of memory. */
struct symbols;
uint32_t symbol_table_function(struct symbol_table *table, struct symbols *symbols,
                               const struct symbol_row *row);
/* The `at` of symbolizers whose state is a table. */
struct symbol_hit;
size_t symbol_table_at(struct symbols *symbols, void *state, uint64_t vaddr, struct symbol_hit *ret,
                       size_t max);
void symbol_table_close(void *state); /* one on the heap; NULL is fine */
