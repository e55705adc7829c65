/* How sure estimates from samples are: 95% intervals of bytes, calls and shares.
 *
 * Samples are the points of a Poisson process over bytes, one in `every`: a piece of s bytes is one
 * with p = 1 - e^(-s/every) and stands for w = 1/p pieces, s/p bytes. A sum of such has the
 * variance of its parts. Of bytes that is no more than every·bytes, of whatever pieces they are:
 * s/p·(1-p) is at most `every`. Of calls it is Σ w(w-1), which sizes tell: from the buckets of all
 * calls, each taken for its smallest size, and of a row from how many samples its calls rest on,
 * widened by what mixed sizes make of it in all.
 *
 * Intervals are those of weighted Poisson counts (Fay and Feuer 1997, gamma quantiles by Wilson and
 * Hilferty): never below 0, and their upper end allows for what no sample hit. Small pieces weigh
 * most, so that a few samples say little about calls, and the interval says so. Pieces that nobody
 * saw are taken for no smaller than the smallest seen, or 16 bytes, which malloc() gives at least.
 */
#pragma once

#include "analyze/heap_sums.h"
#include "stats/share.h"

struct heap_sure {
    uint64_t every; /* 0: every call was counted; then an interval is the figure itself */
    double unseen;  /* calls that a sample of the smallest piece stands for */
    double wide;    /* variance of all calls by their sizes, to that by their number; at least 1 */
};

struct heap_sure heap_sure_of(const struct heap_sums *sums, uint64_t every);
/* Of bytes or calls that are part of `figures`: all of them, what lives, what lived at the peak. */
struct interval heap_sure_bytes(const struct heap_sure *sure, const struct heap_figures *figures,
                                int64_t bytes);
struct interval heap_sure_calls(const struct heap_sure *sure, const struct heap_figures *figures,
                                int64_t calls);
/* Temporary ones, 0 to 1 of all calls. */
struct interval heap_sure_temporary(const struct heap_sure *sure,
                                    const struct heap_figures *figures);
/* The difference from 0 is no chance: the usual ± leaves 0 out. */
bool heap_sure_is_some(const struct heap_sure *sure, const struct heap_figures *figures,
                       int64_t bytes);
bool heap_sure_are_some(const struct heap_sure *sure, const struct heap_figures *figures,
                        uint64_t calls);

/* From one moment to another, as if nothing had lived at both. */
bool heap_sure_is_change(const struct heap_sure *sure, int64_t first_bytes, int64_t last_bytes);

/* Buckets below whose upper end half of all lie: as estimated, and from where to where it may be.
 */
struct heap_half {
    size_t at, low, high;
    bool known; /* enough samples for an upper end */
};
struct heap_half heap_sure_half_size(const struct heap_sure *sure, const struct heap_sums *sums);
struct heap_half heap_sure_half_life(const struct heap_sure *sure, const struct heap_sums *sums);
