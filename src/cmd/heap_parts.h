/* What the files of `whyslow heap` share.
 *
 * heap.c           options, pipeline
 * heap_report.c    the report: what was asked for, as values
 * heap_pictures.c  flame graphs by bytes, calls, peak, leaks, temporaries */
#pragma once

#include "analyze/heap_honesty.h"
#include "cmd/axis.h"
#include "cmd/pictures.h"
#include "present/heap_tables.h"

struct heap_cmd_opts {
    struct axis_opts axis;
    struct output_opts output;
    struct picture_opts pictures;
    uint64_t limit;
    /* Views. */
    bool functions, peak, leaks, churn, temporary_sites, growth, threads, images, sizes, timeline;
    uint32_t at; /* number of a snapshot; 0: not asked for */
    const char *diff;
    const char *flame_by;
    /* How it is recorded. */
    bool exact, log;
    uint64_t sample_bytes, snapshot_ns;
    uint32_t temporary_within;
};

/* One recording, loaded. */
struct heap_side {
    struct recording *recording;
    struct heap heap;
    struct heap_honesty honesty;
    struct heap_sums sums;
    struct heap_notes notes;
    struct heap_tables tables;
};

struct heap_run {
    const struct heap_cmd_opts *opts;
    struct arena *arena;
    struct heap_side main;
    struct heap_side other; /* --diff: after; main is before */
    struct heap_diff diff;
    enum heap_rank diff_rank;
    bool kept; /* the recording can be looked at again */
};

/* Some view was asked for, or a diff: the overview was not. */
bool heap_is_narrowed(const struct heap_cmd_opts *opts);
/* The report as a map: what was asked for. */
MUST_USE int heap_report(struct heap_run *run, struct value *root, struct why *why);
/* Writes the files that were asked for and lists them in `root`. */
MUST_USE int heap_pictures(struct heap_run *run, struct value *root, struct why *why);
