/* Which class a wait belongs to, why, and whether it is idle. */
#pragma once

#include "analyze/critical_path.h"
#include "analyze/waits_load.h"

/* In the order of reports. */
enum wait_class {
    WAIT_CLASS_RUNNING,
    WAIT_CLASS_RUNQ,
    WAIT_CLASS_LOCK,
    WAIT_CLASS_DISK,
    WAIT_CLASS_NET,
    WAIT_CLASS_PAGEFAULT,
    WAIT_CLASS_CHILD, /* a process or thread whose end is waited for, or what it writes */
    WAIT_CLASS_PIPE,  /* whoever reads a pipe does not keep up */
    WAIT_CLASS_TIMER,
    WAIT_CLASS_IDLE,
    WAIT_CLASSES,
    /* Off the CPU for a reason that was not seen, or that fits none of them. Such waits are ranked,
     * but they are in no class's sum: their time stays unaccounted for. */
    WAIT_CLASS_UNKNOWN = WAIT_CLASSES,
};
/* "running", "runq", "lock", "disk", "net", "pagefault", "child", "pipe", "timer", "idle": JSON
 * keys; "unknown". */
const char *wait_class_name(enum wait_class class);

struct wait_classes {
    enum wait_class *rows; /* by row id; not of WAIT_HOLD */
    const char **reasons;  /* by row id, few words: "nothing was asked for" */
    /* Sums in ns, of the tree and by thread id. All of a thread's and what is unaccounted for
     * make up its life. */
    uint64_t tree[WAIT_CLASSES];
    uint64_t (*threads)[WAIT_CLASSES];
    uint64_t life_ns, unaccounted_ns; /* of the tree */
    uint64_t *unaccounted;            /* by thread id */
};

/* 0 or -ENOMEM. */
MUST_USE int wait_classes_build(struct arena *arena, const struct waits *waits,
                                const struct critical_path *path, struct wait_classes *ret);

/* What was waited for, for people: "read of pipe:[1234]", "futex of queue_mutex", "child 4711". */
const char *wait_cause(struct arena *arena, const struct waits *waits, uint32_t row);
/* Where: the innermost functions that are the program's own, not the kernel's or a library's way
 * to wait: "queue_pop ← worker ← run". "[no stack]" without one. */
const char *wait_where(struct arena *arena, const struct profile *profile, uint32_t stack);
