/* Profiles of other tools become recordings: one file and one row of the table in
 * importers.c each.
 *
 * An importer reads a source and feeds a sink; it knows nothing of the store. Input is
 * hostile: a record that makes no sense is skipped and counted by reason, a file that makes
 * no sense is a named error, and memory is bounded whatever the file says. Nothing without a
 * sample is a result: that is an error too. */
#pragma once

#include "collect/import_source.h"
#include "model/sink.h"

struct import_opts {
    enum unit unit;        /* of folded weights: UNIT_COUNT unless a person says otherwise */
    const char *cache_dir; /* for symbols of perf's files; NULL: none */
    bool debuginfod;
    bool no_symbols; /* frames of perf's files stay addresses */
};

enum { IMPORT_REASONS_MAX = 24, IMPORT_SERIES_MAX = 64, IMPORT_NOTES_MAX = 8 };

struct import_skip {
    const char *reason; /* "no_count": also the counter import.skipped.no_count */
    uint64_t count;
};

struct import_result {
    uint64_t samples; /* given to the sink */
    struct import_skip skips[IMPORT_REASONS_MAX];
    size_t skip_count;
    const char *series[IMPORT_SERIES_MAX]; /* names, in the arena of the caller */
    size_t series_count;
    const char *notes[IMPORT_NOTES_MAX]; /* for people: what a weight is, what was left out */
    size_t note_count;
};

struct arena;

struct importer {
    const char *name;  /* "folded": for --format */
    const char *about; /* one line for help */
    bool (*detect)(struct str head);
    /* Texts of the result live in the arena. */
    int (*import)(struct import_source *source, struct sink *sink, const struct import_opts *opts,
                  struct arena *arena, struct import_result *ret, struct why *why);
};

extern const struct importer *const importers[]; /* ends with NULL; asked in this order */
const struct importer *importer_find(const char *name);
/* NULL when no importer knows it. */
const struct importer *importer_detect(struct str head);
