/* One question, asked of the honesty that fits the series. */
#include "analyze/series_honesty.h"

#include <string.h>

int series_honesty_load(struct arena *arena, struct recording *recording, const char *series,
                        struct series_honesty *ret, struct why *why)
{
    struct series_honesty honesty = {.of_waits = strcmp(series, "offcpu") == 0 ||
                                                 strcmp(series, "running") == 0};
    int r = honesty.of_waits ? wait_honesty_load(arena, recording, &honesty.waits, why)
                             : honesty_load(recording, &honesty.samples, why);
    if (r == 0)
        *ret = honesty;
    return r;
}

struct value series_honesty_value(struct arena *arena, const struct series_honesty *honesty)
{
    return honesty->of_waits ? wait_honesty_value(arena, &honesty->waits)
                             : honesty_value(arena, &honesty->samples);
}

const char *series_honesty_line(struct arena *arena, const struct series_honesty *honesty)
{
    return honesty->of_waits ? wait_honesty_line(arena, &honesty->waits)
                             : honesty_line(arena, &honesty->samples);
}

void series_honesty_put(struct arena *arena, struct value *root,
                        const struct series_honesty *honesty)
{
    if (honesty->of_waits)
        wait_honesty_put(arena, root, &honesty->waits);
    else
        honesty_put(arena, root, &honesty->samples);
}
