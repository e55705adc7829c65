/* Single samples: for a range of time, and for those who want each of them.
 *
 * The stored order is that of the rings of several CPUs; whoever asks for samples gets them
 * in the order of time, by a radix sort (stable, and no worse on a hostile file). */
#include "analyze/profile_parts.h"

#include "base/map.h"

#include <errno.h>
#include <string.h>

struct kept_sample {
    uint64_t time_ns;
    uint64_t weight;
    uint32_t thread;
    uint32_t stack;
};

struct reading {
    struct loader *loader;
    bool total; /* sum them up: a time range has no ready totals */
    bool keep;
    struct map_u64 total_at; /* thread and stack to index */
    VEC(struct kept_sample) samples;
    uint64_t first_ns, last_ns;
    bool sorted;
};

enum { DIGIT_BITS = 16, DIGITS = 1 << DIGIT_BITS };

static int total_add(struct reading *reading, uint32_t thread, uint32_t stack, uint64_t weight)
{
    struct loader *loader = reading->loader;
    bool fresh;
    uint64_t *at = map_u64_at(&reading->total_at, (uint64_t)thread << 32 | stack, &fresh);
    if (!at)
        return why_nomem(loader->why);
    if (fresh) {
        *at = loader->totals.len;
        struct profile_total total = {.thread = thread, .stack = stack};
        if (VEC_PUSH(&loader->totals, total) < 0)
            return why_nomem(loader->why);
    }
    struct profile_total *total = &loader->totals.data[*at];
    total->count++;
    if (__builtin_add_overflow(total->weight, weight, &total->weight))
        total->weight = UINT64_MAX; /* found damaged when all is summed up */
    return 0;
}

static int block_add(struct reading *reading, const struct sample_block *block)
{
    for (size_t i = 0; reading->total && i < block->count; i++) {
        int r = total_add(reading, block->thread[i], block->stack[i], block->weight[i]);
        if (r < 0)
            return r;
    }
    uint64_t max = reading->loader->opts->samples_max;
    if (reading->keep &&
        reading->samples.len + block->count > (max ? max : (uint64_t)PROFILE_SAMPLES_MAX))
        return why_set(reading->loader->why, WHY_USAGE, E2BIG, "narrow it with --time A..B",
                       "more than %llu samples: too many to take each by itself",
                       (unsigned long long)(max ? max : (uint64_t)PROFILE_SAMPLES_MAX));
    if (reading->keep && VEC_RESERVE(&reading->samples, reading->samples.len + block->count) < 0)
        return why_nomem(reading->loader->why);
    for (size_t i = 0; i < block->count; i++) {
        uint64_t time_ns = block->time_ns[i];
        reading->sorted = reading->sorted && time_ns >= reading->last_ns;
        reading->first_ns = MIN(reading->first_ns, time_ns);
        reading->last_ns = MAX(reading->last_ns, time_ns);
        if (reading->keep)
            reading->samples.data[reading->samples.len++] = (struct kept_sample){
                time_ns, block->weight[i], block->thread[i], block->stack[i]};
    }
    return 0;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int samples_read(struct reading *reading)
{
    struct loader *loader = reading->loader;
    uint64_t from_ns = 0, to_ns = UINT64_MAX;
    if (reading->total) {
        from_ns = add_saturated(loader->series->start_ns, loader->opts->from_ns);
        to_ns = add_saturated(loader->series->start_ns, loader->opts->to_ns);
    }
    struct sample_cursor *cursor = NULL;
    struct sample_block block;
    int r = sample_cursor_open(loader->recording, loader->series->id, from_ns, to_ns, &cursor,
                               loader->why);
    if (r < 0)
        return r;
    while ((r = sample_cursor_next(cursor, &block, loader->why)) > 0) {
        r = block_add(reading, &block);
        if (r < 0)
            break;
    }
    sample_cursor_close(cursor);
    return r;
}

/* One pass over 16 bits of the time since the first sample. */
static void radix_pass(const struct kept_sample *from, struct kept_sample *to, size_t count,
                       uint64_t first_ns, unsigned shift, size_t *places)
{
    memset(places, 0, DIGITS * sizeof(*places));
    for (size_t i = 0; i < count; i++)
        places[(from[i].time_ns - first_ns) >> shift & (DIGITS - 1)]++;
    size_t sum = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        size_t here = places[i];
        places[i] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[places[(from[i].time_ns - first_ns) >> shift & (DIGITS - 1)]++] = from[i];
}

static int samples_sort(struct reading *reading)
{
    size_t count = reading->samples.len;
    struct kept_sample *other = malloc(count * sizeof(*other));
    size_t *places = malloc(DIGITS * sizeof(*places));
    if (!other || !places) {
        free(other);
        free(places);
        return why_nomem(reading->loader->why);
    }
    uint64_t range = reading->last_ns - reading->first_ns;
    for (unsigned shift = 0; shift < 64 && range >> shift > 0; shift += DIGIT_BITS) {
        radix_pass(reading->samples.data, other, count, reading->first_ns, shift, places);
        struct kept_sample *swap = reading->samples.data;
        reading->samples.data = other;
        other = swap;
        reading->samples.cap = count;
    }
    free(other);
    free(places);
    return 0;
}

/* Into columns of the profile's arena. */
static int samples_keep(struct reading *reading)
{
    struct profile *profile = reading->loader->profile;
    struct arena *arena = reading->loader->arena;
    size_t count = reading->samples.len, room = MAX(count, (size_t)1);
    profile->sample_time_ns = arena_alloc(arena, room * sizeof(uint64_t));
    profile->sample_weight = arena_alloc(arena, room * sizeof(uint64_t));
    profile->sample_thread = arena_alloc(arena, room * sizeof(uint32_t));
    profile->sample_stack = arena_alloc(arena, room * sizeof(uint32_t));
    if (!profile->sample_time_ns || !profile->sample_weight || !profile->sample_thread ||
        !profile->sample_stack)
        return why_nomem(reading->loader->why);
    for (size_t i = 0; i < count; i++) {
        profile->sample_time_ns[i] = reading->samples.data[i].time_ns;
        profile->sample_weight[i] = reading->samples.data[i].weight;
        profile->sample_thread[i] = reading->samples.data[i].thread;
        profile->sample_stack[i] = reading->samples.data[i].stack;
    }
    profile->sample_count = count;
    return 0;
}

int profile_read_samples(struct loader *loader)
{
    struct reading reading = {
        .loader = loader,
        .total = loader->opts->from_ns || loader->opts->to_ns,
        .keep = loader->opts->samples,
        .first_ns = UINT64_MAX,
        .sorted = true,
    };
    int r = samples_read(&reading);
    if (r == 0 && reading.first_ns != UINT64_MAX) {
        loader->profile->start_ns = reading.first_ns;
        loader->profile->end_ns = reading.last_ns;
    }
    if (r == 0 && reading.keep && !reading.sorted)
        r = samples_sort(&reading);
    if (r == 0 && reading.keep)
        r = samples_keep(&reading);
    VEC_FREE(&reading.samples);
    map_u64_deinit(&reading.total_at);
    return r;
}
