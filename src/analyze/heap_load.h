/* The heap rows of a recording, whole in memory (model/heap.h), with threads, stacks and names.
 *
 * Arrays are indexed by the recording's ids; entry 0 exists and stands for "none". */
#pragma once

#include "base/arena.h"
#include "model/heap.h"
#include "model/profile.h"
#include "store/reader.h"

struct heap_site {
    struct heap_site_info info;
    struct heap_tally tally;
    uint32_t process; /* of its thread */
};
struct heap_process_row {
    bool known; /* it has a tally */
    struct heap_process_tally tally;
};
struct heap_snapshot_rows {
    struct heap_snapshot_info info;
    struct heap_snapshot_row *rows;
    size_t count;
};

struct heap {
    struct profile profile; /* names, threads, stacks; no samples of its own */
    struct heap_site *sites;
    size_t site_count;
    struct heap_process_row *processes; /* by process id */
    size_t process_count;
    struct heap_snapshot_rows *snapshots;
    size_t snapshot_count;
    struct heap_moment *moments; /* a plain list in the order of time */
    size_t moment_count;
    uint64_t event_count; /* with --log */
    uint64_t start_ns, end_ns;
    uint32_t root_process;
    struct str facts_json; /* document "heap" */
};

/* A recording without heap rows is an error with the reason and the command that records them. */
MUST_USE int heap_load(struct arena *arena, struct recording *recording, struct heap *ret,
                       struct why *why);

enum heap_measure {
    HEAP_BY_BYTES, /* allocated */
    HEAP_BY_COUNT,
    HEAP_BY_PEAK,
    HEAP_BY_LEAK, /* not freed at the end */
    HEAP_BY_TEMPORARY,
    HEAP_MEASURES
};
/* The heap as a profile: one sample a site, for call trees, flame graphs, exports and diffs. Sites
 * of all threads of a stack together where they only mean something together (peak, leak). */
MUST_USE int heap_profile(struct arena *arena, const struct heap *heap, enum heap_measure measure,
                          struct profile *ret);
