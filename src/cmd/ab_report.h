/* What compare and gate print alike: percentages, the picture of an interval, the table of metrics.
 */
#pragma once

#include "cmd/ab_answer.h"
#include "model/value.h"

/* "+2.1%" for a ratio of 1.021. */
const char *change_text(struct arena *arena, double ratio);
/* "+1.6% to +2.7%". */
const char *interval_text(struct arena *arena, const struct ratio *ratio);
/* "p = 0.031", "p < 0.0001". */
const char *p_text(struct arena *arena, double p);
/* "peak memory (RSS)" has no speed: "more" and "less" in the place of "slower" and "faster". */
const char *verdict_word(enum verdict verdict, int metric);

/* Two lines: the interval on an axis (of logs, so that half and twice are as far from 0) with the
 * marks (ratios) that decide; a list.
 *
 *   -4.8% ..............:.|.:....[===*===]........ +5%
 *
 * An empty list without an interval. */
struct value interval_picture(struct arena *arena, const struct ratio *ratio, const double *marks,
                              size_t mark_count);

/* One row a metric. Those that are not known on this machine are for programs only; people get
 * them as a list of reasons, metrics_missing(). */
struct value metrics_table(struct arena *arena, const struct ab_answer *answer);
struct value metrics_missing(struct arena *arena, const struct ab_answer *answer);

struct value ratio_value(const struct ab_line *line, double number);
struct value ci_value(struct arena *arena, const struct ab_line *line);
