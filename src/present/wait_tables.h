/* Waits as values: what `whyslow waits` prints. Renderers draw them; nothing here prints.
 *
 * Values live in the context's arena. Ids of waits ("w12") are stable for one recording. */
#pragma once

#include "analyze/wait_groups.h"
#include "model/value.h"

struct wait_tables {
    struct arena *arena;
    const struct waits *waits;
    const struct wait_classes *classes;
    const struct wait_groups *groups;
    const struct critical_path *path;
    size_t limit; /* rows; 0: all */
};

/* {"running": ms, …} for machines. */
struct value wait_tables_sums(const struct wait_tables *tables, const uint64_t *sums);
/* The same of the tree for people, with shares of all threads' lives. */
struct value wait_tables_classes(const struct wait_tables *tables);
/* Single threads, and threads whose names differ only in numbers together; the busiest first. */
struct value wait_tables_threads(const struct wait_tables *tables);
struct value wait_tables_thread_groups(const struct wait_tables *tables);

/* Which groups of waits are listed. */
struct wait_choice {
    bool idle; /* the idle ones and no others */
    int class; /* enum wait_class; -1: all */
};
/* *ret_all counts also those beyond the limit. */
struct value wait_tables_waits(const struct wait_tables *tables, const struct wait_choice *choice,
                               size_t *ret_all);
/* What lies on the critical path, the longest first; n/a with the reason if there is none. */
struct value wait_tables_path(const struct wait_tables *tables);

/* Of a tally: count, total, quantiles and a histogram; a row for machines. */
struct value wait_tables_tally(struct arena *arena, const struct wait_tally *tally);
/* Its histogram with bars, for people. */
struct value wait_tables_histogram(struct arena *arena, const struct wait_tally *tally);
/* The same in a dozen characters, from 1 us to 1 s. */
const char *wait_tables_shape(struct arena *arena, const struct wait_tally *tally);
#define WAIT_SHAPE_TITLE "1us..1ms..1s"

/* A whole stack, innermost first: function, file, line, image. */
struct value wait_tables_stack(struct arena *arena, const struct profile *profile, uint32_t stack);
/* Its functions alone. */
struct value wait_tables_names(struct arena *arena, const struct profile *profile, uint32_t stack);
/* "w12". */
const char *wait_tables_id(struct arena *arena, const struct wait_group *group);
/* The cause, and how many others there are. */
const char *wait_tables_cause(const struct wait_tables *tables, const struct wait_group *group);
