/* Threads as kernel programs name them (tid, tgid, how often they became another program), and
 * their ids in the sink. Shared by the collectors that follow the cpu collector with BPF.
 *
 *     told_threads_get()    the ids, made if need be; at the last moment they can be asked for
 *     told_threads_task()   what the cpu collector announces, before stacks learns of it
 *
 * What a program adds up comes late: when a thread has ended, or is another program by then, its
 * ids are the ones of its time. One thread. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "collect/cpu.h"
#include "collect/stacks.h"

enum { TOLD_THREADS_MAX = 1 << 20, TOLD_MOMENT_NS = 1 << 20 };

/* A thread as one program: another one after exec. */
struct told_thread {
    uint32_t thread, process; /* ids of the sink; 0: not asked for yet */
    uint64_t running_ns;      /* told so far; the caller's */
    bool ended;               /* its ids can no longer be asked for */
};

struct told_threads {
    struct stacks *stacks;  /* set by the owner; all else begins with 0 */
    struct map_u64 at;      /* tid << 32 | exec to index + 1 */
    struct map_u64 gone;    /* tid of a thread that has ended to process id << 32 | thread id; 0 */
    struct map_u64 exec_of; /* tid to the exec it was last seen with */
    VEC(struct told_thread) seen;
    /* Who was asked for last: the next one is the same, as a rule. */
    struct {
        uint64_t moment; /* TOLD_MOMENT_NS; it may be called something else in the next one */
        uint32_t tid, tgid, exec;
        uint32_t at; /* index + 1; 0: none */
    } last;
};

void told_threads_deinit(struct told_threads *threads);

/* *ret is valid until the next call. -E2BIG: too many, -ENOMEM, or the sink's. */
MUST_USE int told_threads_get(struct told_threads *threads, uint32_t tid, uint32_t tgid,
                              uint32_t exec, uint64_t time_ns, struct told_thread **ret);
/* A thread begins, becomes another program or ends; before stacks learns of it. */
MUST_USE int told_threads_task(struct told_threads *threads, uint64_t time_ns, enum cpu_task task,
                               int pid, int tid);
