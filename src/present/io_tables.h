/* Calls, files, peers, devices and requests as values: what `whyslow io` prints. Renderers draw
 * them; nothing here prints.
 *
 * Values live in the context's arena. People are shown `limit` rows of a table, machines
 * `machine_rows`; both from the same rows. With `brief` people are spared columns that matter
 * less, so that all tables fit one screen. */
#pragma once

#include "analyze/io_notes.h"
#include "model/value.h"

struct io_tables {
    struct arena *arena;
    const struct io_sums *sums;
    const struct io_request_groups *groups;
    const struct io_notes *notes;
    size_t limit;        /* rows for people; 0: all */
    size_t machine_rows; /* rows for machines, beyond those of people */
    bool brief;
    const char *cache_na; /* why it is not known what came from the device; NULL: it is */
};

struct value io_tables_syscalls(const struct io_tables *tables);
struct value io_tables_files(const struct io_tables *tables);
struct value io_tables_peers(const struct io_tables *tables);
struct value io_tables_devices(const struct io_tables *tables);
/* One call at one place of the program. */
struct value io_tables_sites(const struct io_tables *tables);
/* Names that were looked up; those that nothing has, by folder and call site. */
struct value io_tables_lookups(const struct io_tables *tables);
struct value io_tables_missing(const struct io_tables *tables);
/* Groups of requests, the longest first. */
struct value io_tables_requests(const struct io_tables *tables);
/* Single requests in the order of time: of the chain that costs most, else the first ones. */
struct value io_tables_waterfall(const struct io_tables *tables, const char **ret_title);
struct value io_tables_notes(const struct io_tables *tables);

/* How many rows they have in all, for people. */
size_t io_tables_file_count(const struct io_tables *tables);
size_t io_tables_device_count(const struct io_tables *tables);
