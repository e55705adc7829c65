/* Tests that look only at the order of values: no normal distribution is assumed,
 * and one wild run weighs as much as one that is a little off.
 *
 * p is two-sided: the chance, if there were no difference, of ranks at least as
 * uneven as these. It is exact for small samples, ties included; beyond that the
 * sign-flip test draws flips from a fixed seed and Mann–Whitney uses the normal
 * approximation with ties and continuity. */
#pragma once

#include "base/macros.h"

#include <stddef.h>
#include <stdint.h>

enum { RANKS_MAX = 1000000, RANKS_EXACT_BLOCKS = 200, RANKS_EXACT_SAMPLES = 50 };

/* Twice the rank (from 1) of each value, ties sharing the mean of theirs: whole numbers.
 * -EINVAL for none, too many, or a value that is not finite. */
MUST_USE int ranks_doubled(const double *values, size_t count, uint32_t *ret);

/* Is `values` symmetric around 0? The signs of the values are flipped in every
 * possible way (Wilcoxon's signed ranks); zeros say nothing and are left out. With
 * blocks in random order, swapping the two sides of a block is such a flip: the test
 * then holds by design, whatever the noise is like. */
MUST_USE int ranks_sign_flip(const double *values, size_t count, uint64_t seed, double *ret_p);

/* Do two independent samples come from the same distribution (Mann–Whitney)? */
MUST_USE int ranks_two_samples(const double *a, size_t a_count, const double *b, size_t b_count,
                               double *ret_p);
