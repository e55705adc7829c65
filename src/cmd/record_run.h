/* One recording from start to end: the target, the collectors, the file. */
#pragma once

#include "collect/cpu.h"
#include "collect/heap.h"
#include "collect/io.h"
#include "collect/offcpu.h"
#include "target/spawn.h"

#include <limits.h>
#include <stdio.h>

struct record_run_opts {
    struct cpu_opts cpu;       /* .no_samples: another axis was asked for, not this one */
    struct offcpu_opts offcpu; /* neither waits nor locks: not asked for */
    struct io_opts io;         /* .calls: asked for */
    struct heap_opts heap;     /* .on: asked for */
    char *const *argv;         /* TARGET_SPAWNED */
    const char *program;
    const char *output;   /* NULL: the first free of recording.whyslow, recording-2.whyslow, … */
    uint64_t duration_ns; /* 0: to the end */
    FILE *progress;
    bool output_to_stderr; /* the target's stdout: ours is for the answer alone */
    /* A run like those of a baseline: what it prints is hashed and thrown away, its input is
     * `input_path` (NULL: none), it leads its own process group and ends at `timeout_ns`. */
    bool apart;
    const char *input_path;
    uint64_t timeout_ns; /* 0: none; only with `apart` */
};

struct record_run_result {
    char path[PATH_MAX];
    int status;                  /* for the shell: the target's, 0 if there is none of ours */
    struct spawn_result spawned; /* of a target of ours */
    uint64_t samples;
    char event[32];
    char kernel_na[256]; /* empty: kernel code is in it */
    char deep_na[512];   /* empty: stacks deeper than the slice are complete, or there are none */
    char waits_tier[16]; /* empty: waits were not asked for */
    char waits_na[512];  /* why not a higher tier; empty: it is the best */
    char locks_na[512];  /* why owners and holds of locks are not in it; empty: they are */
    char io_tier[16];    /* empty: calls were not asked for */
    char io_na[512];     /* why not a higher tier; empty: it is the best */
    char heap_tier[16];  /* empty: the heap was not asked for */
    char heap_na[768];   /* why nothing was seen of it; empty: something was */
};

/* Interrupts must be watched. A target that fails is no error; a heap that was not seen is one,
 * unless something else was asked for, too: then it is told in the result. */
MUST_USE int record_into_file(const struct record_run_opts *opts, struct record_run_result *ret,
                              struct why *why);
/* The error of a result with `heap_na`. */
int record_heap_unseen(const struct record_run_result *result, struct why *why);
