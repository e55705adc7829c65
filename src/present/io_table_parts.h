/* What the files that make tables of I/O share.
 *
 * io_tables.c          calls, files, places in the program, lookups
 * io_peer_tables.c     peers and devices
 * io_request_tables.c  requests, waterfall, notes */
#pragma once

#include "present/io_tables.h"

/* A column, and whether it is shown to people also where all tables share a screen. */
struct io_column {
    struct column column;
    bool brief;
};

/* A table of these columns. */
struct value io_table_begin(const struct io_tables *tables, const struct io_column *columns,
                            size_t count, const char *empty);
/* The next row; NULL when nobody is shown more of them, or out of memory. */
struct table_row *io_table_row(const struct io_tables *tables, struct value *table, size_t index);

struct value io_ms(uint64_t ns);
struct value io_pct(uint64_t part, uint64_t whole, const char *empty);
/* {"p50_ms", "p99_ms", "max_ms", "histogram"}. */
struct value io_latency(struct arena *arena, const uint32_t *buckets, uint64_t count,
                        uint64_t max_ns);
struct value io_p(const uint32_t *buckets, uint64_t count, uint64_t max_ns, double quantile);
const char *io_shape(struct arena *arena, const uint32_t *buckets);
/* [{"from_bytes", "to_bytes", "count"}], and the same in a dozen characters. */
struct value io_sizes(struct arena *arena, const uint32_t *sizes);
const char *io_sizes_shape(struct arena *arena, const uint32_t *sizes);
#define IO_SIZES_TITLE "1B..4K..16M"
/* For people: nothing where there is none. */
struct value io_some(uint64_t number, enum unit unit);
struct value io_some_ms(uint64_t ns);
struct value io_where(const struct io_tables *tables, uint32_t stack);
struct value io_stack(const struct io_tables *tables, uint32_t stack);
/* "[no name]" for an object without one. */
struct str io_object_name(const struct io_tables *tables, uint32_t object);
