/* From a recording's counters to the line that every result carries. */
#include "analyze/honesty.h"

#include <stdio.h>

struct source {
    const char *counter;
    size_t offset; /* of the figure */
};

static const struct source sources[] = {
    {"cpu.samples", offsetof(struct honesty, samples)},
    {"cpu.complete", offsetof(struct honesty, complete)},
    {"cpu.truncated", offsetof(struct honesty, truncated)},
    {"cpu.deep_complete", offsetof(struct honesty, deep_complete)},
    {"cpu.throttled", offsetof(struct honesty, throttled)},
    {"cpu.sampled_ns", offsetof(struct honesty, sampled_ns)},
    {"cpu.rusage_ns", offsetof(struct honesty, rusage_ns)},
    {"cpu.own_ns", offsetof(struct honesty, own_ns)},
    {"cpu.kernel_ns", offsetof(struct honesty, kernel_ns)},
};

static void figure_add(struct honesty_figure *figure, uint64_t value)
{
    figure->known = true;
    if (__builtin_add_overflow(figure->value, value, &figure->value))
        figure->value = UINT64_MAX;
}

static int read_counter(void *context, const struct recorded_counter *row)
{
    struct honesty *honesty = context;
    if (str_starts(row->name, "loss.") && !str_starts(row->name, "loss.wait_") &&
        row->unit == UNIT_COUNT)
        figure_add(&honesty->lost, row->value);
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
        if (str_is(row->name, sources[i].counter))
            figure_add((struct honesty_figure *)((char *)honesty + sources[i].offset), row->value);
    return 0;
}

int honesty_load(struct recording *recording, struct honesty *ret, struct why *why)
{
    struct honesty honesty = {.finished = recording_finished(recording)};
    int r = recording_each_counter(recording, read_counter, &honesty, why);
    if (r < 0)
        return r;
    const struct recorded_series *cpu = recording_series_find(recording, "cpu");
    if (!honesty.samples.known && cpu)
        honesty.samples = (struct honesty_figure){cpu->samples, true};
    *ret = honesty;
    return 0;
}

static struct value count_value(struct honesty_figure figure, const char *missing)
{
    return figure.known ? value_uint(figure.value, UNIT_COUNT) : value_na(missing);
}

static struct value ms_value(struct honesty_figure figure, const char *missing)
{
    return figure.known ? value_real((double)figure.value / 1e6, UNIT_MS) : value_na(missing);
}

static struct value share_value(struct honesty_figure part, struct honesty_figure whole)
{
    if (!part.known || !whole.known)
        return value_na("the recording does not count it: no stacks were walked");
    if (whole.value == 0)
        return value_na("there is no sample");
    return value_real(100.0 * (double)part.value / (double)whole.value, UNIT_PERCENT);
}

/* What measuring cost, over the CPU time of the target. */
static struct value overhead_value(const struct honesty *honesty)
{
    struct honesty_figure target = honesty->rusage_ns.known ? honesty->rusage_ns
                                                            : honesty->sampled_ns;
    if (!honesty->own_ns.known || !target.known)
        return value_na("needs the target's CPU time and whyslow's own");
    if (target.value == 0)
        return value_na("the target used no CPU time");
    double cost = (double)honesty->own_ns.value + (double)honesty->kernel_ns.value;
    return value_real(100.0 * cost / (double)target.value, UNIT_PERCENT);
}

struct value honesty_value(struct arena *arena, const struct honesty *honesty)
{
    struct value map = value_map(arena);
    value_put(&map, "samples", NULL,
              count_value(honesty->samples, "the recording has no CPU samples"));
    value_put(&map, "complete_pct", "complete stacks",
              share_value(honesty->complete, honesty->samples));
    value_put(&map, "truncated_pct", "truncated stacks",
              share_value(honesty->truncated, honesty->samples));
    value_put(&map, "deep_complete", "complete beyond the slice",
              count_value(honesty->deep_complete, "no more than the slice was copied of stacks"));
    value_put(&map, "lost", NULL, count_value(honesty->lost, "losses were not counted"));
    value_put(&map, "throttled", NULL,
              count_value(honesty->throttled, "throttling was not counted"));
    value_put(&map, "sampled_cpu_ms", "sampled CPU time",
              ms_value(honesty->sampled_ns, "the recording does not sum it up"));
    value_put(&map, "rusage_cpu_ms", "CPU time by the kernel's account",
              ms_value(honesty->rusage_ns, "the kernel's account was not read"));
    value_put(&map, "overhead_pct", "overhead", overhead_value(honesty));
    return map;
}

/* "99.0% complete", or "complete n/a". */
static const char *figure_text(struct arena *arena, const struct value *map, const char *key,
                               const char *name)
{
    const struct value *value = value_get(map, key);
    if (!value || value->kind == VALUE_NA)
        return arena_printf(arena, "%s n/a", name);
    char number[48];
    units_format(value_number(value), value->unit, number, sizeof(number));
    return arena_printf(arena, "%s %s", number, name);
}

/* "1.50 s of 1.52 s CPU time sampled (98.7%)", as far as it is known. */
static const char *cpu_text(struct arena *arena, const struct honesty *honesty)
{
    char sampled[48] = "n/a", rusage[48] = "n/a", share[48] = "";
    if (honesty->sampled_ns.known)
        units_format((double)honesty->sampled_ns.value, UNIT_NS, sampled, sizeof(sampled));
    if (honesty->rusage_ns.known)
        units_format((double)honesty->rusage_ns.value, UNIT_NS, rusage, sizeof(rusage));
    if (honesty->sampled_ns.known && honesty->rusage_ns.known && honesty->rusage_ns.value > 0)
        snprintf(share, sizeof(share), " (%.1f%%)",
                 100.0 * (double)honesty->sampled_ns.value / (double)honesty->rusage_ns.value);
    return arena_printf(arena, "sampled %s of %s CPU time%s", sampled, rusage, share);
}

const char *honesty_line(struct arena *arena, const struct honesty *honesty)
{
    struct value map = honesty_value(arena, honesty);
    return arena_printf(
        arena, "%s, %s, %s, %s, %s; %s; %s%s%s", figure_text(arena, &map, "samples", "samples"),
        figure_text(arena, &map, "complete_pct", "complete"),
        figure_text(arena, &map, "truncated_pct", "truncated"),
        figure_text(arena, &map, "lost", "lost"),
        figure_text(arena, &map, "throttled", "throttled"), cpu_text(arena, honesty),
        figure_text(arena, &map, "overhead_pct", "overhead"),
        honesty->kernel_ns.known ? " (the kernel's share estimated)" : "",
        honesty->finished ? "" : "; the recording was cut off");
}

void honesty_put(struct arena *arena, struct value *root, const struct honesty *honesty)
{
    value_put_machine(root, "honesty", honesty_value(arena, honesty));
    value_put(root, "honesty_line", "honesty", value_text(honesty_line(arena, honesty)));
}
