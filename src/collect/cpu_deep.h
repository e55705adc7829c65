/* Stacks deeper than the slice that perf copies (64 KiB at most): a BPF program copies the
 * rest at the moment of the sample; here it is found again and put behind the slice.
 *
 *     cpu_deep_open()       the program is in the kernel; its fd goes to every sampling event
 *     cpu_deep_look()       once a round, after perf_rings_begin()
 *     cpu_deep_find()       with every sample: the pieces that belong to it
 *     cpu_deep_learn()      what its walk has shown about the thread's stack
 *     cpu_deep_settle()     at the end of a round: older pieces will not be asked for
 *
 * A piece belongs to a sample when thread, stack pointer, program counter and time are the
 * same. Before Linux 6.2 the sample's time is not known to the program: then the sample must
 * follow the copy at once. Pieces that belong to none are dropped and counted; the stack of a
 * sample whose pieces were lost ends as it would have without them. */
#pragma once

#include "base/macros.h"
#include "base/map.h"
#include "base/why.h"
#include "collect/bpf_ring.h"
#include "format/cpu_deep.h"
#include "unwind/unwind.h"

/* cpu_deep.c: pieces in a ring, and which sample they belong to. */
struct cpu_deep_entry; /* the pieces of one sample */

struct cpu_pieces {
    struct bpf_ring *ring;
    struct cpu_deep_entry *entries; /* a queue in the order of the ring */
    size_t cap, head, len;
    uint64_t unmatched; /* stacks whose sample never came */
    uint64_t refused;   /* pieces that make no sense, or beyond our bounds */
};

enum {
    CPU_DEEP_PARTS_MAX = 64, /* of one stack: pages that could not be read split pieces */
    /* Without the sample's own time: from the end of the copy to the sample. */
    CPU_DEEP_NEAR_NS = 50000,
    CPU_DEEP_LATE_NS = 1000000, /* samples come in the order of time but for this */
};

MUST_USE int cpu_pieces_init(struct bpf_ring *ring, struct cpu_pieces *ret);
void cpu_pieces_deinit(struct cpu_pieces *pieces);
void cpu_pieces_look(struct cpu_pieces *pieces);

struct cpu_moment { /* of a sample, by its registers */
    uint64_t time_ns, sp, pc;
    uint32_t tid;
};
/* How many parts; they stay where they are until the next call with this `pieces`. */
size_t cpu_pieces_find(struct cpu_pieces *pieces, const struct cpu_moment *moment,
                       struct unwind_slice parts[CPU_DEEP_PARTS_MAX]);
/* No sample older than this comes any more. */
void cpu_pieces_settle(struct cpu_pieces *pieces, uint64_t time_ns);

/* cpu_deep_threads.c: where the stacks of threads begin. */
struct cpu_tops {
    struct map_u64 threads; /* tid to what is known, see cpu_deep_threads.c */
    int map_fd;             /* "threads" of the program; -1: nobody is told (tests) */
};
/* After a walk. `copied`: more than the slice was there. `top`: where it ended. */
void cpu_tops_learn(struct cpu_tops *tops, uint32_t tid, enum unwind_end end, bool copied,
                    uint64_t top);
void cpu_tops_forget(struct cpu_tops *tops, uint32_t tid); /* it has ended */
/* CPU_DEEP_NEVER, CPU_DEEP_TRY or an address, as the program sees it. */
uint64_t cpu_tops_get(const struct cpu_tops *tops, uint32_t tid);

/* The two with their program. */
struct cpu_deep;

MUST_USE int cpu_deep_open(size_t cpu_count, const char *cache_dir, struct cpu_deep **ret,
                           struct why *why);
void cpu_deep_close(struct cpu_deep *deep); /* NULL is fine */
int cpu_deep_program_fd(const struct cpu_deep *deep);
int cpu_deep_wake_fd(const struct cpu_deep *deep); /* readable when the ring is half full */
struct cpu_pieces *cpu_deep_pieces(struct cpu_deep *deep);
struct cpu_tops *cpu_deep_tops(struct cpu_deep *deep);
/* The program's own figures, by enum cpu_deep_count. */
MUST_USE int cpu_deep_counts(const struct cpu_deep *deep, uint64_t ret[CPU_DEEP_COUNTS]);
