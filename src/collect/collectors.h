/* The collectors: one file and one row of the table in collectors.c each.
 *
 * A collector's life is probe → start → begin → drain → stop → finish. To start takes a while,
 * seconds where programs are loaded into the kernel on a busy machine, and each begins to see on
 * its own: nothing counts before `begin`, which gives all of them one moment. `probe` says
 * what is possible here and what would make more possible; `doctor` is a loop
 * over this table. Collectors write to a sink and know nothing of the store. */
#pragma once

#include "base/arena.h"
#include "base/why.h"
#include "model/sink.h"
#include "model/value.h"

enum tier {
    TIER_NONE,   /* cannot be had here */
    TIER_FLOOR,  /* perf_event_open denied: preload timer, wait4 and /proc figures */
    TIER_USER,   /* no privileges: perf_event_open on own processes, /proc, preload */
    TIER_KERNEL, /* root or CAP_BPF + CAP_PERFMON: BPF, system-wide, kernel stacks */
};

struct collector_probe {
    enum tier tier;         /* the best one available */
    const char *gives;      /* what that tier measures */
    const char *not_higher; /* why not a higher tier; NULL at the top */
    const char *remedy;     /* what would make the next one available; NULL if nothing */
};

struct collector;

enum target_scope {
    TARGET_SPAWNED,  /* a held process and all it starts */
    TARGET_ATTACHED, /* a running process: all its threads, and what they start from now on */
    TARGET_SYSTEM,
    TARGET_CGROUP,
};

struct collector_target {
    int pid;           /* root of the process tree */
    uint64_t start_ns; /* when it was started or attached to */
    const char *command;
    const char *program; /* path of what a spawned one will run; NULL: not known */
    enum target_scope scope;
    const char *cgroup;      /* path of its folder */
    const char *cache_dir;   /* NULL: no cache */
    struct collector *cpu;   /* runs beside; follow it with cpu_follow() (cpu.h) */
    struct preload *preload; /* our library is in the target (target/preload.h); or NULL */
    struct collector *locks; /* tells waits for locks of covered threads (locks_user.h); or NULL */
};

struct collector_ops {
    const char *name;    /* "cpu": also the option --cpu of record */
    const char *summary; /* one line */
    bool built;          /* false: probed and shown by doctor, its collection comes later */
    void (*probe)(struct arena *arena, struct collector_probe *ret);
    int (*start)(const struct collector_target *target, struct sink *sink, struct collector **ret,
                 struct why *why);
    /* From `start_ns` on, which has just passed, what it sees counts. NULL: it sees nothing of a
     * target that is held. */
    int (*begin)(struct collector *collector, uint64_t start_ns, struct why *why);
    int (*drain)(struct collector *collector,
                 struct why *why); /* takes what is there, no waiting */
    int (*stop)(struct collector *collector,
                struct why *why); /* the target has ended, or we detach */
    int (*finish)(struct collector *collector, struct why *why); /* last words to the sink */
    void (*close)(struct collector *collector);                  /* NULL is fine */
};

extern const struct collector_ops *const collectors[]; /* ends with NULL */

const char *tier_name(enum tier tier);

/* A table value with collector, tier, gives, why_not_higher, remedy, status. */
struct value collectors_table(struct arena *arena);
