/* Which line of honesty a series has: samples of the CPU (honesty.h), or waits
 * (wait_honesty.h). */
#pragma once

#include "analyze/wait_honesty.h"

struct series_honesty {
    bool of_waits;
    struct honesty samples;    /* unless of waits */
    struct wait_honesty waits; /* else */
};

/* `series` is its name; texts live in the arena. */
MUST_USE int series_honesty_load(struct arena *arena, struct recording *recording,
                                 const char *series, struct series_honesty *ret, struct why *why);
struct value series_honesty_value(struct arena *arena, const struct series_honesty *honesty);
const char *series_honesty_line(struct arena *arena, const struct series_honesty *honesty);
/* Both into a report's map: `honesty` for machines, `honesty_line` for people. */
void series_honesty_put(struct arena *arena, struct value *root,
                        const struct series_honesty *honesty);
