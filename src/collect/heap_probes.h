/* Where malloc() and its relatives are, and the program of bpf/heap.bpf.c on them.
 *
 *     heap_probes_usual()    libraries in the places where systems keep them: before a target runs
 *     heap_probes_program()  a program that is about to be started: it may have its own
 *     heap_probes_process()  all that a process has mapped; again later: libraries come late
 *     heap_probes_close()    all programs are taken off
 *
 * An image that defines malloc(), or je_malloc(), mi_malloc(), tc_malloc(), has the program where
 * these functions begin and where they return. operator new is looked at only there, and only if
 * it does not call malloc() itself. One thread. */
#pragma once

#include "base/macros.h"
#include "base/str.h"
#include "base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HEAP_PROBES_FILES_MAX = 16384, /* looked at */
    HEAP_PROBES_MAX = 2048,        /* links */
};

struct heap_probes;

/* `only`: no process but those that are named to heap_probes_process() meets the program. Else
 * all that have the file do, and those that are not recorded lose a microsecond a call. */
MUST_USE int heap_probes_open(int call_fd, int returned_fd, bool only, struct heap_probes **ret);
void heap_probes_close(struct heap_probes *probes); /* NULL is fine */

/* -ENOMEM; what cannot be read or set is counted. */
MUST_USE int heap_probes_usual(struct heap_probes *probes);
MUST_USE int heap_probes_program(struct heap_probes *probes, const char *path);
MUST_USE int heap_probes_process(struct heap_probes *probes, int pid);

struct heap_probes_counts {
    uint64_t files;   /* with the program on them */
    uint64_t set;     /* places */
    uint64_t refused; /* links that could not be made */
    uint64_t beyond;  /* files and links beyond a bound */
    /* Functions whose return the kernel tells: while a thread is in one, the kernel's own address
     * stands in the stack for the caller's. */
    uint64_t trampolines;
    uint64_t left_out; /* functions of which not all ways out are known */
    int error;         /* errno of the first that was refused */
};
struct heap_probes_counts heap_probes_counts(const struct heap_probes *probes);
