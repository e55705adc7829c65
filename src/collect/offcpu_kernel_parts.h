/* What the files of the kernel tier of offcpu share; nobody else includes this.
 *
 * offcpu_kernel.c          the collector's life
 * offcpu_kernel_attach.c   threads that wait already
 * offcpu_kernel_calls.c    what is known about system calls, as data
 * offcpu_kernel_records.c  what the ring says: stacks to walk, long waits, ends of threads
 * offcpu_kernel_rows.c     from the program's keys to rows of the sink
 * offcpu_kernel_frames.c   kernel stacks
 * offcpu_kernel_finish.c   what still went on, counters, how it was measured */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "collect/bpf_ring.h"
#include "collect/bpf_scope.h"
#include "collect/bpf_unit.h"
#include "collect/cpu.h"
#include "collect/kernel_locks.h"
#include "collect/lock_names.h"
#include "collect/objects.h"
#include "collect/offcpu_kernel.h"
#include "collect/stacks.h"
#include "collect/told_stacks.h"
#include "format/offcpu.h"

enum {
    OFFCPU_ROUND_MS = 90, /* how long a map of tallies is written to, at least */
    OFFCPU_BATCH = 512,
};

/* A kernel stack that the program is told how to recognise. */
struct offcpu_kernel_learnt {
    struct offcpu_kernel_place place;
    int32_t id;
    uint32_t samples;
    uint32_t below_top;
    uint64_t top_value;
    uint64_t slots[OFFCPU_KERNEL_WORDS / 64]; /* bit n: word n is a return address, it seems */
    uint64_t words[OFFCPU_KERNEL_WORDS];
};

struct offcpu_fds {
    int control, threads, deep, tallies[2], kernel_stacks, kernel_known, counts, known, known_long;
};

struct collector {
    struct offcpu_opts opts;
    struct sink *sink;
    struct stacks *stacks; /* the cpu collector's */
    struct bpf_unit *unit;
    struct bpf_ring ring;
    struct offcpu_fds fds;
    struct told_threads threads;
    struct told_stacks told;
    struct objects *objects;
    struct lock_names *lock_names;
    struct map_u64 futexes;            /* objects whose names were asked for */
    struct kernel_locks *kernel_locks; /* NULL: */
    char kernel_locks_na[512];         /* why not */
    struct offcpu_config config;
    uint32_t ring_bytes;
    char ring_na[512];  /* why it is smaller than it ought to be; empty: it is not */
    uint64_t map_bytes; /* of all maps, about */
    bool asked_na;      /* this kernel does not tell what is sent and received */

    uint64_t round;
    uint64_t round_ns; /* when it began */
    uint64_t until_ns; /* all that the ring had to say up to here is taken */
    uint64_t start_ns, stop_ns;
    bool stopped;

    struct map_u64 tops;          /* stack << 32 | kernel stack to stack with both */
    struct map_u64 kernel_places; /* call, kind and which to index + 1 */
    VEC(struct offcpu_kernel_learnt) kernel_learnt;

    struct offcpu_key *batch_keys;
    struct offcpu_tally *batch_tallies;
    uint64_t schedule_start, schedule_end; /* addresses of __schedule(); 0: not known */

    uint32_t series_offcpu, series_running;
    uint64_t events, malformed, refused;
    uint64_t open_waits, filled;
    uint64_t own_ns; /* CPU time of ours, spent here */
    struct why why;  /* of a failure while following */
};

/* offcpu_kernel_calls.c */
void offcpu_calls_fill(struct offcpu_call calls[OFFCPU_CALLS_MAX]);

/* Addresses of __schedule(), from a text like /proc/kallsyms; both 0 when it is not in there. */
void offcpu_schedule_find(struct str text, uint64_t *ret_start, uint64_t *ret_end);

/* offcpu_kernel_records.c */
/* Takes all records up to a moment. */
MUST_USE int offcpu_records_take(struct collector *c, uint64_t time_ns);

/* offcpu_kernel_frames.c */
/* A kernel stack on top of another one; negative: none. */
MUST_USE int offcpu_kernel_part(struct collector *c, uint32_t stack, int32_t kernel_stack,
                                uint32_t *ret);
/* Tells the program how to recognise a kernel stack. */
void offcpu_kernel_learn(struct collector *c, const struct offcpu_kernel *kernel);
/* Of a walked stack: which words can be return addresses. Words that look like one but are left
 * over from earlier calls are not the same in the next sample: they drop out. The true ones never
 * do. False: the sample is of no use. */
bool offcpu_kernel_narrow(struct offcpu_kernel_learnt *learnt, const struct offcpu_kernel *kernel,
                          const uint64_t *frames, size_t count);
/* What the program compares. The innermost frames are its own and lie below what was read. False:
 * not all return addresses are there, or too many words could be one. */
bool offcpu_kernel_slots(const struct offcpu_kernel_learnt *learnt, const uint64_t *frames,
                         size_t count, struct offcpu_kernel_known *ret);

/* offcpu_kernel_attach.c */
MUST_USE int offcpu_attach_fill(struct collector *c, int pid);

/* offcpu_kernel_rows.c */
struct offcpu_span {
    uint64_t start_ns, wake_ns, end_ns;
};
/* A futex of a process that is there: its object, with a name as far as it has one. */
MUST_USE int offcpu_futex_see(struct collector *c, uint32_t process, uint32_t tgid,
                              uint64_t address, uint32_t *ret_object);
/* A row's id. `last_ns`: when the last of its waits began, to tell whether its stack holds. */
MUST_USE int offcpu_row(struct collector *c, const struct offcpu_key *key, uint64_t last_ns,
                        struct wait_info *ret_info, uint32_t *ret_row);
MUST_USE int offcpu_event_put(struct collector *c, const struct offcpu_key *key,
                              const struct offcpu_span *span, uint64_t owned_ns,
                              uint64_t owner_off_ns);
/* Empties one of the maps of tallies. */
MUST_USE int offcpu_tallies_take(struct collector *c, unsigned which);
/* Time on the CPU of threads that are there; at the end their open waits as well. */
MUST_USE int offcpu_threads_take(struct collector *c, uint64_t now_ns, bool end);

/* offcpu_kernel_finish.c */
MUST_USE int offcpu_finish_put(struct collector *c);
