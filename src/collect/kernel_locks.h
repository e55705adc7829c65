/* Waits for locks of the kernel itself (bpf/contention.bpf.c), beside the engine that follows a
 * target's threads.
 *
 *     kernel_locks_open()    it is all there
 *     kernel_locks_begin()   from now on contended locks are added up
 *     kernel_locks_drain()   what is new goes to rows of waits, with object and kernel stack
 *     kernel_locks_finish()  the last of it, names for the locks, counters locks.kernel_*,
 *                            waits.lost.kernel_locks
 *     kernel_locks_close()
 *
 * A row's time is what it took to get the lock, trying or asleep. The part asleep is in the
 * engine's own rows, too: rows with OBJECT_KERNEL_LOCK belong to no sum. The kernel keeps at most
 * CONTENTION_TALLIES_MAX of them; what finds no room is counted. One thread. */
#pragma once

#include "base/arena.h"
#include "collect/objects.h"
#include "collect/stacks.h"

struct kernel_locks;

struct kernel_locks_opts {
    int threads_fd;        /* a BPF map whose keys are the kernel's ids of threads to look at */
    uint32_t pid_ns;       /* inode of our PID namespace; 0: the first one */
    const char *cache_dir; /* borrowed; NULL: no cache */
    struct stacks *stacks;
    struct objects *objects;
    struct sink *sink;
    /* The sink's id of a thread, which may have ended; 0 in *ret_thread: leave it out. NULL:
     * stacks_thread(). */
    int (*thread)(void *context, uint64_t time_ns, int pid, int tid, uint32_t *ret_thread);
    void *context;
};

/* -ENOENT or so with a reason where the kernel (before 5.19) does not tell of its locks. */
MUST_USE int kernel_locks_open(const struct kernel_locks_opts *opts, struct kernel_locks **ret,
                               struct why *why);
void kernel_locks_close(struct kernel_locks *locks); /* NULL is fine */

/* Of all its maps, about. */
uint64_t kernel_locks_map_bytes(void);
MUST_USE int kernel_locks_begin(struct kernel_locks *locks, uint64_t start_ns, struct why *why);
MUST_USE int kernel_locks_drain(struct kernel_locks *locks);
MUST_USE int kernel_locks_finish(struct kernel_locks *locks);

/* What a lock is called: kind, and symbol or function (kernel_lock_names.c). */
struct kernel_lock {
    uint64_t address;
    uint32_t flags; /* enum contention_flag */
    uint64_t total_ns;
    const uint64_t *frames; /* of the place that waited longest, innermost first */
    size_t frame_count;
    struct str symbol; /* of a variable at the address; empty if there is none */
};
/* Variables among `text`, which is of the form of /proc/kallsyms; `locks` are sorted by it. */
void kernel_lock_symbols(struct arena *arena, struct str text, struct kernel_lock *locks,
                         size_t count);
/* `function` is where it was taken, empty if not known. */
struct str kernel_lock_name(struct arena *arena, const struct kernel_lock *lock,
                            struct str function);
/* Does a kernel function of this name only serve to get a lock? */
bool kernel_lock_is_locking(struct str function);
