/* Several questions at once: Holm's step-down correction (1979).
 *
 * Asked m times at 5%, chance alone answers "yes" far more often than in 5% of
 * the sessions. Adjusted p-values may be held against 5% each, and the chance of
 * one or more wrong "yes" stays at 5%, however the questions depend on each other. */
#pragma once

#include "base/macros.h"

#include <stddef.h>

enum { HOLM_MAX = 4096 };

/* `adjusted` may be `p` itself. NaN (no answer) stays NaN and does not count as
 * a question. -EINVAL for a p outside 0 to 1, -E2BIG beyond HOLM_MAX. */
MUST_USE int holm_adjust(const double *p, size_t count, double *adjusted);
