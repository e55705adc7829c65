/* The heap of a recording as something that exporters draw.
 *
 * "heap" has four values, as pprof's heap profiles have them: how often and how much was
 * allocated, and what of it was not freed; formats with room for one take allocated bytes.
 * "heap_bytes", "heap_count", "heap_peak", "heap_leak" and "heap_temporary" are one measure. */
#pragma once

#include "present/exporters.h"
#include "store/reader.h"

struct arena;

/* Whether the heap is meant: by its name, or since there is nothing else. */
bool export_is_heap(struct recording *recording, const char *series);
/* *ret_values stays NULL for a single measure. */
MUST_USE int export_heap_load(struct arena *arena, struct recording *recording, const char *series,
                              struct profile *ret, const struct export_values **ret_values,
                              struct why *why);
