/* Two profiles side by side, function by function.
 *
 * Functions are matched by name and by the last part of their image's path: ids of two
 * recordings have nothing to do with each other. Weights are normalised to the work done, so
 * that a run that did twice as much is not called slower: `before_scale` and `after_scale`
 * are what a weight is multiplied by. Ranked by the size of the change of self weight.
 *
 * Intervals come from the samples of each recording; they do not know how one run of the
 * program differs from the next. */
#pragma once

#include "base/arena.h"
#include "model/profile.h"
#include "stats/share.h"

struct profile_diff_opts {
    double before_work, after_work; /* operations done; 0 and 0: one run is one unit of work */
};

enum diff_state { DIFF_BOTH, DIFF_NEW, DIFF_VANISHED };

struct diff_row {
    uint32_t before, after; /* functions of the two profiles; 0: not in it */
    enum diff_state state;
    struct interval before_self, after_self; /* normalised weights */
    double before_total, after_total;
    struct interval change; /* after_self − before_self */
    bool sure;              /* the interval of the change leaves out 0 */
};

struct profile_diff {
    const struct profile *before, *after;
    double before_scale, after_scale;
    struct diff_row *rows;
    size_t count;
    double before_weight, after_weight; /* normalised, of the whole */
};

/* Series and unit must agree; -EINVAL with the reason otherwise. */
struct why;
MUST_USE int profile_diff_build(struct arena *arena, const struct profile *before,
                                const struct profile *after, const struct profile_diff_opts *opts,
                                struct profile_diff *ret, struct why *why);
