/* Finished symbol tables, kept by build-id so that the next run need not sort them again. */
#pragma once

#include "symbolize/internal.h"
#include "symbolize/symbol_table.h"

/* Fills an empty table; -ENOENT when nothing that fits is kept, -ENOMEM. */
MUST_USE int symbol_cache_load(struct symbols *symbols, struct symbol_table *table);
/* As well as it can: a cache that cannot be written is no failure. */
void symbol_cache_store(const struct symbols *symbols, const struct symbol_table *table);
/* The checked contents of a cache file (8-byte aligned) into an empty table; `*ret_source` lies
 * in the bytes. */
MUST_USE int symbol_cache_parse(const void *bytes, size_t len, uint64_t origin,
                                struct symbol_table *table, const char **ret_source);
