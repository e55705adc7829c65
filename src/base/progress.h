/* A progress line on a terminal; silent in a pipe.
 *
 *     struct progress progress;
 *     progress_begin(&progress, stderr, "baseline", runs);
 *     progress_update(&progress, i, "median 12.1 ms");
 *     progress_end(&progress);
 *
 * It redraws at most ten times a second and clears itself at the end, so that
 * the result stands alone. A total of 0 shows a count instead of a bar. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *out;
    const char *label;
    uint64_t total;
    uint64_t start_ns;
    uint64_t drawn_ns;
    bool shown; /* `out` is a terminal */
};

void progress_begin(struct progress *progress, FILE *out, const char *label, uint64_t total);
/* Instead, where nothing can be counted yet: says what takes its time until progress_end(). */
void progress_prepare(struct progress *progress, FILE *out, const char *label);
/* `note` may be NULL. */
void progress_update(struct progress *progress, uint64_t done, const char *note);
void progress_end(struct progress *progress);
