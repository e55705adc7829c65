/* What the files of `whyslow report` share.
 *
 * report.c           options, pipeline, what was written where
 * report_range.c     "--time a..b" and "--work a:b"
 * report_views.c     one view: hotspots, tree, callers, threads, lines, diff
 * report_annotate.c  one function: source and instructions with their cost
 * report_reread.c    what the recording lacks for that, from the files here
 * report_pictures.c  flame graphs and the page */
#pragma once

#include "analyze/embedded.h"
#include "analyze/profile_load.h"
#include "analyze/series_honesty.h"
#include "cmd/cmd.h"
#include "present/profile_tables.h"

struct report_opts {
    struct output_opts output;
    uint64_t limit;
    bool tree;
    bool threads;
    bool lines;
    const char *callers;
    const char *callees;
    const char *annotate;
    const char *diff;
    double min_pct;
    bool inverted;
    const char *time;
    const char *filter;
    const char *focus;
    const char *series;
    const char *work;
    const char *flame;
    const char *icicle;
    const char *html;
};

/* One recording, loaded. */
struct loaded {
    struct recording *recording;
    struct profile profile;
    struct hotspots hotspots;
    struct series_honesty honesty;
};

struct report_run {
    const struct report_opts *opts;
    struct arena *arena;
    struct loaded main;
    struct loaded other; /* --diff: after; main is before */
    struct profile_diff diff;
    double work[2]; /* --work; 0 and 0 if not given */
};

/* "2..5", "500ms..2s", "..10", "10%..20%": nanoseconds since the first sample. */
MUST_USE int report_time_range(const char *text, const struct recorded_series *series,
                               uint64_t *ret_from_ns, uint64_t *ret_to_ns, struct why *why);
/* "1000:2000". */
MUST_USE int report_work(const char *text, double *ret_before, double *ret_after, struct why *why);
/* Puts the view that was asked for into `root`. */
MUST_USE int report_view(struct report_run *run, struct value *root, struct why *why);
MUST_USE int report_annotate(struct report_run *run, struct value *root, struct why *why);
/* Source and instructions of a function from the files here, if its build-id is the recorded
 * one. *ret_note says what was done, or why nothing could be. Only -ENOMEM is an error. */
MUST_USE int report_reread(const struct report_run *run, uint32_t function, struct embedded *ret,
                           const char **ret_note);
/* Writes the files that were asked for and lists them in `root`. */
MUST_USE int report_pictures(struct report_run *run, struct value *root, struct why *why);
