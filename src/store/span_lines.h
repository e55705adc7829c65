/* Lines of JSON in which a program tells what it measured itself (M9):
 *
 *     {"event": "perf.profile.span_summary", "span": "parse", "cumulative_us": 1200, "count": 3}
 *
 * Any language writes them, in more than one spelling: the event is named by "event", "type",
 * "name", "msg" or "message"; fields stand beside it or in "fields", "data", "attributes" or
 * "payload"; a time is "p50_us" or "p50"; a number may be a text. Lines of something else
 * are passed over; what begins as ours and makes no sense is counted. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "model/span.h"

enum { SPAN_LINE_BYTES_MAX = 16384, SPANS_MAX = 1024 };
#define SPAN_LINE_MARK "perf.profile."

/* A "run_start" begins anew: of several runs the last one counts. Summaries of one name are added
 * up: several processes may tell of it. Texts are copied to the arena. 0 or -ENOMEM. */
MUST_USE int span_lines_read(struct arena *arena, struct str text, struct spans *ret);
