/* Files for other tools: one file and one row of the table in exporters.c each.
 *
 * An exporter draws a profile and knows nothing of the store. Names from a target are
 * hostile: every format escapes them its own way. */
#pragma once

#include "base/why.h"
#include "model/profile.h"

#include <stdio.h>

/* Several values of each total, where a format has room for them: a heap has four. */
struct export_value {
    const char *type, *unit; /* "inuse_space", "bytes" */
};
struct export_values {
    const struct export_value *types;
    size_t count;
    const uint64_t *rows; /* `count` for each total of the profile */
    const char *main;     /* the type that is shown first */
    const char *drop;     /* functions that are no one's: a regular expression; NULL: none */
};

struct export_opts {
    const char *title; /* NULL: the profile's command */
    /* What a reader should know about how far to trust it; ends with NULL. NULL: nothing. */
    const char *const *comments;
    uint64_t start_real_ns; /* wall clock of the first sample; 0: unknown */
    /* In place of count and weight; formats that have one value take those. NULL: none. */
    const struct export_values *values;
};

struct exporter {
    const char *name;      /* "pprof": for --format */
    const char *extension; /* ".pb.gz": chosen by -o when --format is absent; the longest wins */
    const char *about;     /* one line for help: what reads it */
    bool binary;           /* refused on a terminal */
    bool samples;          /* wants the single samples loaded */
    int (*write)(const struct profile *profile, const struct export_opts *opts, FILE *out,
                 struct why *why);
};

extern const struct exporter *const exporters[]; /* ends with NULL */
/* By name, or by what a file name ends with; NULL when there is none. */
const struct exporter *exporter_find(const char *name);
const struct exporter *exporter_for_file(const char *path);
