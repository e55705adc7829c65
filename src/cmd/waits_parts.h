/* What the files of `whyslow waits` share.
 *
 * waits.c           options, pipeline, the report
 * waits_pictures.c  the off-CPU flame graph */
#pragma once

#include "analyze/wait_honesty.h"
#include "cmd/axis.h"
#include "cmd/pictures.h"
#include "present/wait_tables.h"

struct waits_opts {
    struct axis_opts axis;
    struct output_opts output;
    struct picture_opts pictures;
    uint64_t limit;
    bool threads;
    bool idle;
    const char *class;
    const char *stack;
};

struct waits_run {
    const struct waits_opts *opts;
    struct arena *arena;
    struct recording *recording;
    bool kept; /* the recording can be looked at again */
    struct waits waits;
    struct critical_path path;
    struct wait_classes classes;
    struct wait_groups groups;
    struct wait_honesty honesty;
    struct wait_tables tables;
    struct wait_choice choice;
};

/* Writes the files that were asked for and lists them in `root`. */
MUST_USE int waits_pictures(struct waits_run *run, struct value *root, struct why *why);
