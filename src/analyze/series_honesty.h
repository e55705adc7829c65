/* Which line of honesty a series has: samples of the CPU (honesty.h), waits (wait_honesty.h),
 * calls (io_honesty.h), or the heap (heap_honesty.h). */
#pragma once

#include "analyze/heap_honesty.h"
#include "analyze/io_honesty.h"
#include "analyze/wait_honesty.h"

enum series_honesty_kind {
    HONESTY_OF_SAMPLES,
    HONESTY_OF_WAITS,
    HONESTY_OF_CALLS,
    HONESTY_OF_HEAP
};

struct series_honesty {
    enum series_honesty_kind kind;
    struct honesty samples; /* the one of that kind is filled */
    struct wait_honesty waits;
    struct io_honesty calls;
    struct heap_honesty heap;
};

/* `series` is its name; texts live in the arena. */
MUST_USE int series_honesty_load(struct arena *arena, struct recording *recording,
                                 const char *series, struct series_honesty *ret, struct why *why);
struct value series_honesty_value(struct arena *arena, const struct series_honesty *honesty);
const char *series_honesty_line(struct arena *arena, const struct series_honesty *honesty);
/* Both into a report's map: `honesty` for machines, `honesty_line` for people. */
void series_honesty_put(struct arena *arena, struct value *root,
                        const struct series_honesty *honesty);
