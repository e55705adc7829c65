/* What the files of `whyslow io` share.
 *
 * io.c           options, pipeline, the report
 * io_pictures.c  the flame graph of calls */
#pragma once

#include "cmd/axis.h"
#include "cmd/pictures.h"
#include "present/io_tables.h"

struct io_cmd_opts {
    struct axis_opts axis;
    struct output_opts output;
    struct picture_opts pictures;
    uint64_t limit;
    bool syscalls, files, peers, devices, stacks, requests; /* views */
    bool no_stacks, no_requests, payloads;
};

struct io_run {
    const struct io_cmd_opts *opts;
    struct arena *arena;
    struct recording *recording;
    bool kept; /* the recording can be looked at again */
    struct io io;
    struct io_sums sums;
    struct io_request_groups groups;
    struct io_notes notes;
    struct io_honesty honesty;
    struct io_tables tables;
};

/* Writes the files that were asked for and lists them in `root`. */
MUST_USE int io_pictures(struct io_run *run, struct value *root, struct why *why);
