/* What the files of the kernel tier of the heap share; nobody else includes this.
 *
 * heap_kernel.c         the collector's life
 * heap_kernel_rows.c    what the ring says, to the accounts of processes (heap_count.h)
 * heap_kernel_looks.c   which processes are looked at for images that define malloc()
 * heap_kernel_finish.c  counters, how it was measured, what it cost, why nothing was seen */
#pragma once

#include "collect/bpf_ring.h"
#include "collect/bpf_scope.h"
#include "collect/bpf_unit.h"
#include "collect/heap_count.h"
#include "collect/heap_kernel.h"
#include "collect/heap_probes.h"
#include "collect/told_stacks.h"
#include "format/heap_kernel.h"

enum {
    HEAP_KERNEL_ACCOUNTS_MAX = 1 << 16,
};

struct heap_fds {
    int control, deep, known, known_long, counts;
};

/* A process as one program. */
struct heap_account {
    struct heap_count count;
    int pid;
    uint32_t users; /* processes that share its memory: vfork() */
    uint32_t threads;
    bool over;
};

struct heap_account_ref {
    struct heap_account *account;
};

struct heap_thread_state {
    struct heap_count_thread thread;
    struct heap_account *account;
    uint64_t giving; /* realloc() is at it; 0: none */
    struct heap_live_entry given;
    uint64_t freed; /* the last address */
};

/* When a process is looked at again for new images. */
struct heap_looked {
    int pid;
    uint32_t pause_ms;
    uint64_t next_ns;
};

struct collector {
    struct heap_opts opts;
    struct sink *sink;
    struct stacks *stacks; /* the cpu collector's */
    struct bpf_unit *unit;
    struct bpf_ring ring;
    struct heap_fds fds;
    struct told_threads threads;
    struct told_stacks told;
    struct heap_probes *probes; /* NULL after stop */
    struct heap_probes_counts probed;
    struct heap_kernel_config config;
    bool attached;

    struct map_u64 account_at; /* tgid << 32 | exec to index + 1 */
    VEC(struct heap_account_ref) accounts;
    struct map_u64 state_at; /* tid << 32 | exec to index + 1 */
    VEC(struct heap_thread_state) states;
    VEC(struct heap_looked) looked;

    uint64_t until_ns; /* all that the ring had to say up to here is taken */
    uint64_t round, round_ns;
    uint64_t moment_ns, put_ns, snapshot_ns; /* when they are due */
    bool stopped, wants_snapshot;

    uint64_t allocations, frees; /* told */
    uint64_t handed_on;          /* frees that were told twice: operator delete calls free() */
    uint64_t malformed, refused, looks_beyond, accounts_beyond;
    uint64_t trap_ns; /* what it takes to come to the program and back; 0: not known */
    uint64_t own_ns;
};

/* heap_kernel_rows.c */
/* Takes all records up to a moment. */
MUST_USE int heap_records_take(struct collector *c, uint64_t time_ns);
void heap_accounts_close(struct collector *c);

/* heap_kernel_looks.c */
MUST_USE int heap_looks_begin(struct collector *c, const struct collector_target *target);
MUST_USE int heap_looks_add(struct collector *c, int pid); /* now, and later again */
MUST_USE int heap_looks_drain(struct collector *c, uint64_t now_ns);
void heap_looks_end(struct collector *c, int pid);
/* What a call costs, measured on our own; then all programs are taken off. */
void heap_looks_stop(struct collector *c);

/* heap_kernel_finish.c */
MUST_USE int heap_finish_put(struct collector *c);
