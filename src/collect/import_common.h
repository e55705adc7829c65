/* What the importers share; nobody else includes this. */
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "base/vec.h"
#include "collect/importers.h"

enum {
    IMPORT_DEPTH_MAX = 1 << 14,      /* frames of one stack */
    IMPORT_NAME_BYTES_MAX = 1 << 17, /* of one name; a longer one is cut */
    IMPORT_THREADS_MAX = 1 << 20,
    IMPORT_LINE_SAMPLES_MAX = 1 << 20, /* a count above is kept as a weight */
    IMPORT_SAMPLES_MAX = 50000000,     /* in all; then counts are kept as weights */
};

struct import {
    struct import_source *source;
    struct sink *sink;
    const struct import_opts *opts;
    struct arena *arena;
    struct import_result *result;
    struct why *why;
    const char *format;
    uint64_t start_real_ns; /* wall clock of the beginning; 0 if unknown */
    const char *command;    /* what was profiled; NULL if unknown */
    /* caches */
    struct intern thread_keys; /* pid, tid and name as bytes */
    VEC(uint32_t) thread_ids;  /* beside them */
    struct intern process_keys;
    VEC(uint32_t) process_ids;
    uint64_t spread; /* samples made from counts so far */
};

void import_deinit(struct import *import);

/* Counts a record that was left out. */
void import_skip(struct import *import, const char *reason);
void import_note(struct import *import, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* -E2BIG (a table is full) and -EINVAL become a skipped record and 0; anything else is the
 * sink's failure. *ret_skipped says which. */
MUST_USE int import_settle(struct import *import, int r, const char *reason, bool *ret_skipped);
/* The sink failed: why. */
int import_sink_failed(struct import *import, int r);

/* Hands every line of the source to `add`, until it fails; a line that was too long to be read
 * whole is skipped. `add` returns 0 or -errno with the import's `why` filled. */
MUST_USE int import_lines(struct import *import, int (*add)(void *context, struct str line),
                          void *context);

/* A frame that has only a name. `image` may be 0, `name` may be empty. */
MUST_USE int import_frame(struct import *import, uint32_t image, struct str name, uint32_t *ret);
/* "[kernel.kallsyms]", "[vdso]", "/usr/lib/libc.so.6": the kind follows from the name. An empty
 * or unknown one is 0. */
MUST_USE int import_image(struct import *import, struct str path, struct str build_id,
                          uint32_t *ret);
/* Threads and processes by what a file tells of them. A pid of 0 and no name is no thread: 0. */
MUST_USE int import_thread(struct import *import, uint32_t pid, uint32_t tid, struct str name,
                           uint32_t *ret);
/* A series; its name is made to fit (lower case, no blanks) and unique. */
MUST_USE int import_series(struct import *import, const char *name, enum unit unit,
                           const char *about, uint32_t *ret);
/* `count` samples of together `weight`, as that many samples if they are not too many. */
MUST_USE int import_samples(struct import *import, const struct sample *sample, uint64_t count);

/* At the end: counters, the document "import". An import without a sample is an error. */
MUST_USE int import_finish(struct import *import);
