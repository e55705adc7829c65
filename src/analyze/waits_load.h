/* The waits of a recording, whole in memory (model/wait.h), with threads, stacks and names.
 *
 * Arrays are indexed by the recording's ids; entry 0 exists and stands for "none". */
#pragma once

#include "base/arena.h"
#include "model/profile.h"
#include "model/wait_book.h"
#include "store/reader.h"

struct waits_thread {          /* beside profile.threads */
    uint64_t start_ns, end_ns; /* of its life, as far as it was recorded */
    uint64_t running_ns;       /* series "running" */
    uint64_t runq_ns;          /* rows WAIT_RUNQ */
    bool ended;                /* by itself, not by the end of the recording */
};

struct waits {
    struct profile profile; /* series "offcpu", its names; may have no sample */
    struct waits_thread *threads;
    struct object_info *objects;
    size_t object_count; /* of each array: entries, the 0th included */
    struct wait_row *rows;
    size_t row_count;
    struct wait_event *events; /* a plain list in the order of run_ns */
    size_t event_count;
    uint64_t start_ns, end_ns; /* of the recording */
    size_t lives;              /* threads that were there: each once, whatever it was called */
    uint32_t root_process;     /* the command's or the pid's; 0: the whole machine */
    uint32_t root_thread;      /* its main thread */
    struct str facts_json;     /* document "waits": tier and why not higher; empty: none */
};

/* A recording without waits is an error with the reason and the command that records them. */
MUST_USE int waits_load(struct arena *arena, struct recording *recording, struct waits *ret,
                        struct why *why);

/* Time of a thread off the CPU. What the kernel tells of its own locks is in other rows, too. */
static inline bool waits_is_off(const struct waits *waits, const struct wait_info *info)
{
    return info->kind == WAIT_BLOCKED && info->object < waits->object_count &&
           waits->objects[info->object].kind != OBJECT_KERNEL_LOCK;
}

/* Ended by nobody of what is recorded, or not at all: the recording stopped, or a signal came from
 * outside, as when a run is cut short. A futex belongs to its process, so that nobody else wakes
 * from it. Where wakers are not told (user tier) only the former is known. */
static inline bool waits_is_cut(const struct waits *waits, const struct wait_info *info)
{
    bool told = !(info->flags & (WAIT_BY_INTERRUPT | WAIT_SAMPLED)) && info->waker_thread == 0;
    return (info->flags & WAIT_OPEN) || (told && info->object < waits->object_count &&
                                         waits->objects[info->object].kind == OBJECT_FUTEX);
}

/* A quantile (0 to 1) of a tally in ns, from its buckets; never beyond its longest. */
double wait_tally_quantile(const struct wait_tally *tally, double quantile);
