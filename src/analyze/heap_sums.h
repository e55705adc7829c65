/* Heap rows added up the ways people ask for them: by stack, by the function that asks for memory,
 * by thread, image and process, and what grew from snapshot to snapshot.
 *
 * A stack is one row whatever the thread and the process: who allocates and who frees may differ,
 * so that only the sum says what lives. What lived at a peak is that of one process, the one with
 * the highest: peaks of several processes are of different moments and add up to nothing.
 * Mappings that the program asks for itself are apart from the heap. */
#pragma once

#include "analyze/heap_load.h"

/* Chains of reallocations are counted so far: that long, or longer. */
enum { HEAP_CHAIN_TOP = 15 };

struct heap_figures {
    uint64_t allocations, allocated_bytes;
    uint64_t frees, freed_bytes;
    uint64_t temporary, temporary_bytes;
    int64_t peak_count, peak_bytes; /* of the process with the highest peak */
    uint64_t grown, grown_bytes, moved, chain_max;
    uint64_t size_max;
    uint64_t lived_ns;
    uint64_t samples;
    double variance;       /* of allocated_bytes */
    double calls_variance; /* of allocations, were the pieces of a site of one size */
};

/* What lives at the end. Negative only where counters are of two moments, or estimates. */
static inline int64_t heap_live_bytes(const struct heap_figures *figures)
{
    return (int64_t)(figures->allocated_bytes - figures->freed_bytes);
}
static inline int64_t heap_live_count(const struct heap_figures *figures)
{
    return (int64_t)(figures->allocations - figures->frees);
}
/* Half of the interval that holds the true allocated_bytes 95 times in 100; 0 when exact. */
double heap_plus_minus(const struct heap_figures *figures);

/* By what rows are put together. */
enum heap_per {
    HEAP_PER_STACK,
    HEAP_PER_FUNCTION, /* the program's own that asks: see heap_place_of() */
    HEAP_PER_THREAD,
    HEAP_PER_IMAGE, /* of that function */
    HEAP_PER_PROCESS,
    HEAP_PERS
};

/* Snapshots of a process, in turn. */
struct heap_rise {
    bool known;     /* at least HEAP_RISE_MIN snapshots were taken of a process that has it */
    bool each_time; /* more at each than at the one before */
    int64_t first_bytes, last_bytes;
    uint64_t first_ns, last_ns;
    uint32_t snapshots;
};
enum { HEAP_RISE_MIN = 3 };

struct heap_sum {
    uint32_t id;              /* of the stack, function, thread, image or process */
    uint32_t stack;           /* with the most bytes */
    uint32_t stacks, threads; /* different ones */
    struct heap_figures figures;
    struct heap_rise rise; /* by stack and by function */
};
struct heap_sum_list {
    struct heap_sum *rows; /* most bytes at the peak first, then allocated; threads by allocated */
    size_t count;
};

/* Mappings by stack. */
struct heap_mapped {
    uint32_t stack;
    uint64_t mapped, mapped_bytes, unmapped, unmapped_bytes;
};

/* Whose functions are; each is asked about once. */
struct heap_owners {
    const struct profile *profile;
    uint8_t *known; /* by function id */
};
MUST_USE int heap_owners_init(struct arena *arena, const struct profile *profile,
                              struct heap_owners *ret);
/* Wrappers without a name, by what they do: a good part of all calls comes through them, from many
 * functions. They count as the allocator's from then on. */
MUST_USE int heap_owners_learn(struct arena *arena, const struct heap *heap,
                               struct heap_owners *owners);

struct heap_sums {
    const struct heap *heap;
    struct heap_owners owners;
    struct heap_figures all;
    struct heap_sum_list per[HEAP_PERS];
    struct heap_mapped *mapped; /* most bytes first */
    size_t mapped_count;
    struct heap_mapped all_mapped;
    bool peak_known;
    uint32_t peak_process;
    uint64_t peak_bytes, peak_count, peak_ns;
    uint32_t processes; /* that have allocated */
    uint32_t threads;   /* that have */
    uint32_t snapshots; /* of the process that has most */
    uint64_t unseen_frees, inherited_frees, inherited_bytes, failed;
    uint64_t sizes[HEAP_SIZE_BUCKETS];
    uint64_t lives[HEAP_LIFE_BUCKETS];
    uint64_t life_unit_ns; /* 0: lives are not known */
    /* Of the process with the peak. */
    uint64_t rss_max_bytes;                        /* 0: not known */
    uint64_t rss_at_live_bytes, live_at_rss_bytes; /* both, when the heap was at its highest */
};

/* 0 or -ENOMEM. Texts are borrowed from `heap`. */
MUST_USE int heap_sums_build(struct arena *arena, const struct heap *heap, struct heap_sums *ret);

/* Rows by one measure, the most first, those without any left out; a copy in the arena. */
enum heap_rank {
    HEAP_RANK_PEAK,
    HEAP_RANK_LEAK,
    HEAP_RANK_CHURN, /* calls */
    HEAP_RANK_BYTES,
    HEAP_RANK_TEMPORARY,
    HEAP_RANK_GROWTH, /* bytes that realloc() added */
    HEAP_RANKS
};
MUST_USE int heap_sums_rank(struct arena *arena, const struct heap_sum_list *list,
                            enum heap_rank rank, struct heap_sum_list *ret);
double heap_rank_value(const struct heap_figures *figures, enum heap_rank rank);

/* Where a stack asks for memory: the innermost function that is neither the allocator nor one of
 * its wrappers nor of the C or C++ library; where all are, the innermost that is no allocator. */
struct heap_place {
    uint32_t function;
    uint32_t image;
    struct str file; /* empty: not known */
    uint32_t line;
    bool inlined; /* into its caller */
};
struct heap_place heap_place_of(const struct heap_owners *owners, uint32_t stack);
/* "load ← parse ← main": that function and its callers, for a line of a table. */
const char *heap_where(struct arena *arena, const struct heap_owners *owners, uint32_t stack);
/* What was called: "malloc", "operator new"; empty if the stack does not say. */
struct str heap_entry_of(const struct heap_owners *owners, uint32_t stack);
/* A name that is long with what stands in its brackets left out: "std::map<…>::find(…)". */
const char *heap_name(struct arena *arena, struct str name);
