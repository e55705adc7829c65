/* One question, asked of the honesty that fits the series. */
#include "analyze/series_honesty.h"

#include <string.h>

static enum series_honesty_kind kind_of(const char *series)
{
    if (strcmp(series, "offcpu") == 0 || strcmp(series, "running") == 0)
        return HONESTY_OF_WAITS;
    if (strncmp(series, "heap", strlen("heap")) == 0)
        return HONESTY_OF_HEAP;
    return strcmp(series, "io") == 0 ? HONESTY_OF_CALLS : HONESTY_OF_SAMPLES;
}

int series_honesty_load(struct arena *arena, struct recording *recording, const char *series,
                        struct series_honesty *ret, struct why *why)
{
    struct series_honesty honesty = {.kind = kind_of(series)};
    int r;
    if (honesty.kind == HONESTY_OF_WAITS)
        r = wait_honesty_load(arena, recording, &honesty.waits, why);
    else if (honesty.kind == HONESTY_OF_CALLS)
        r = io_honesty_load(arena, recording, &honesty.calls, why);
    else if (honesty.kind == HONESTY_OF_HEAP)
        r = heap_honesty_load(arena, recording, &honesty.heap, why);
    else
        r = honesty_load(recording, &honesty.samples, why);
    if (r == 0)
        *ret = honesty;
    return r;
}

struct value series_honesty_value(struct arena *arena, const struct series_honesty *honesty)
{
    if (honesty->kind == HONESTY_OF_WAITS)
        return wait_honesty_value(arena, &honesty->waits);
    if (honesty->kind == HONESTY_OF_CALLS)
        return io_honesty_value(arena, &honesty->calls);
    if (honesty->kind == HONESTY_OF_HEAP)
        return heap_honesty_value(arena, &honesty->heap);
    return honesty_value(arena, &honesty->samples);
}

const char *series_honesty_line(struct arena *arena, const struct series_honesty *honesty)
{
    if (honesty->kind == HONESTY_OF_WAITS)
        return wait_honesty_line(arena, &honesty->waits);
    if (honesty->kind == HONESTY_OF_CALLS)
        return io_honesty_line(arena, &honesty->calls);
    if (honesty->kind == HONESTY_OF_HEAP)
        return heap_honesty_line(arena, &honesty->heap);
    return honesty_line(arena, &honesty->samples);
}

void series_honesty_put(struct arena *arena, struct value *root,
                        const struct series_honesty *honesty)
{
    if (honesty->kind == HONESTY_OF_WAITS)
        wait_honesty_put(arena, root, &honesty->waits);
    else if (honesty->kind == HONESTY_OF_CALLS)
        io_honesty_put(arena, root, &honesty->calls);
    else if (honesty->kind == HONESTY_OF_HEAP)
        heap_honesty_put(arena, root, &honesty->heap);
    else
        honesty_put(arena, root, &honesty->samples);
}
