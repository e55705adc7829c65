/* The heap as values: what `whyslow heap` prints. Renderers draw them; nothing here prints.
 *
 * Values live in the context's arena. People are shown `limit` rows of a table and the columns of
 * the view, machines `machine_rows` and all columns; both from the same rows. */
#pragma once

#include "analyze/heap_diff.h"
#include "analyze/heap_notes.h"
#include "model/value.h"

struct heap_tables {
    struct arena *arena;
    const struct heap_sums *sums;
    const struct heap_notes *notes;
    size_t limit;        /* rows for people; 0: all */
    size_t machine_rows; /* rows for machines, beyond those of people */
    bool sampled;        /* what people are shown of calls, bytes and lives is estimated: "~" */
    struct heap_sure sure;
    uint64_t start_ns; /* times count from here */
};

/* A figure that samples tell, where they do: an estimate. */
static inline struct value heap_tables_figure(const struct heap_tables *tables, struct value value)
{
    return tables->sampled ? value_about(value) : value;
}

/* [low, high] for machines; null where every call was counted. */
struct value heap_tables_range(const struct heap_tables *tables, struct interval range,
                               enum unit unit);

/* What a table is about: which columns people are shown. */
enum heap_view {
    HEAP_VIEW_FUNCTIONS,
    HEAP_VIEW_PEAK,
    HEAP_VIEW_LEAKS,
    HEAP_VIEW_CHURN,
    HEAP_VIEW_TEMPORARY,
    HEAP_VIEW_GROWTH,
    HEAP_VIEW_THREADS,
    HEAP_VIEW_IMAGES,
    HEAP_VIEW_PROCESSES,
    HEAP_VIEW_SITES, /* for machines */
    HEAP_VIEWS
};

/* {"allocations", …, "temporary_bytes"} into a map: the same keys as rows have. */
void heap_tables_totals(const struct heap_tables *tables, struct value *map);
/* Rows of a list, in its order. */
struct value heap_tables_sums(const struct heap_tables *tables, enum heap_view view,
                              const struct heap_sum_list *list);
/* By what a view puts rows together, and by what it ranks them. */
enum heap_per heap_view_per(enum heap_view view);
enum heap_rank heap_view_rank(enum heap_view view);

/* A stack for people, innermost first, long names folded. */
struct value heap_tables_stack(const struct heap_tables *tables, uint32_t stack);
/* The same for machines, names as they are. */
struct value heap_tables_frames(const struct heap_tables *tables, uint32_t stack);
/* [{"from_bytes", "to_bytes", "count"}] and [{"from_ms", "to_ms", "count"}], with bars. */
struct value heap_tables_sizes(const struct heap_tables *tables);
struct value heap_tables_lifetimes(const struct heap_tables *tables);
/* Moments of every process, and the same of the one with the peak as a drawing. */
struct value heap_tables_timeline(const struct heap_tables *tables);
struct value heap_tables_plot(const struct heap_tables *tables);
struct value heap_tables_snapshots(const struct heap_tables *tables);
/* What lived at one of them, by stack, the most first. 0 or -ENOMEM. */
MUST_USE int heap_tables_snapshot(const struct heap_tables *tables, size_t number,
                                  struct value *ret);
/* What the program maps itself, by place. */
struct value heap_tables_mapped(const struct heap_tables *tables);
struct value heap_tables_notes(const struct heap_tables *tables);
/* `tables` is that of the recording after, `before` of the other. */
struct value heap_tables_diff(const struct heap_tables *tables, const struct heap_tables *before,
                              const struct heap_diff *diff, enum heap_rank rank);
