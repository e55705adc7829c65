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
    if (str_starts(row->name, "loss.") && row->unit == UNIT_COUNT)
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

static struct value not_counted(void)
{
    return value_na("the recording has no counter for it");
}

static struct value count_value(struct honesty_figure figure)
{
    return figure.known ? value_uint(figure.value, UNIT_COUNT) : not_counted();
}

static struct value ms_value(struct honesty_figure figure)
{
    return figure.known ? value_real((double)figure.value / 1e6, UNIT_MS) : not_counted();
}

static struct value share_value(struct honesty_figure part, struct honesty_figure whole)
{
    if (!part.known || !whole.known)
        return not_counted();
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
        return not_counted();
    if (target.value == 0)
        return value_na("the target used no CPU time");
    double cost = (double)honesty->own_ns.value + (double)honesty->kernel_ns.value;
    return value_real(100.0 * cost / (double)target.value, UNIT_PERCENT);
}

struct value honesty_value(struct arena *arena, const struct honesty *honesty)
{
    struct value map = value_map(arena);
    value_put(&map, "samples", NULL, count_value(honesty->samples));
    value_put(&map, "complete_pct", "complete stacks",
              share_value(honesty->complete, honesty->samples));
    value_put(&map, "truncated_pct", "truncated stacks",
              share_value(honesty->truncated, honesty->samples));
    value_put(&map, "lost", NULL, count_value(honesty->lost));
    value_put(&map, "throttled", NULL, count_value(honesty->throttled));
    value_put(&map, "sampled_cpu_ms", "sampled CPU time", ms_value(honesty->sampled_ns));
    value_put(&map, "rusage_cpu_ms", "CPU time by the kernel's account",
              ms_value(honesty->rusage_ns));
    value_put(&map, "overhead_pct", "overhead", overhead_value(honesty));
    return map;
}

struct line {
    char text[512];
    size_t len;
    const char *missing[8];
    size_t missing_count;
};

static void line_add(struct line *line, const struct value *value, const char *before,
                     const char *after, const char *name)
{
    if (value->kind == VALUE_NA) {
        if (line->missing_count < ARRAY_SIZE(line->missing))
            line->missing[line->missing_count++] = name;
        return;
    }
    char number[48];
    units_format(value_number(value), value->unit, number, sizeof(number));
    int n = snprintf(line->text + line->len, sizeof(line->text) - line->len, "%s%s%s%s",
                     line->len > 0 ? ", " : "", before, number, after);
    line->len = MIN(line->len + (size_t)MAX(n, 0), sizeof(line->text) - 1);
}

const char *honesty_line(struct arena *arena, const struct honesty *honesty)
{
    static const struct {
        const char *key, *before, *after, *name;
    } parts[] = {
        {"samples", "", " samples", "samples"},
        {"complete_pct", "", " complete", "complete stacks"},
        {"truncated_pct", "", " truncated", "truncated stacks"},
        {"lost", "", " lost", "lost samples"},
        {"throttled", "", " throttled", "throttling"},
        {"sampled_cpu_ms", "", " CPU sampled", "sampled CPU time"},
        {"rusage_cpu_ms", "", " CPU by the kernel's account", "the kernel's account"},
        {"overhead_pct", "overhead ", "", "overhead"},
    };
    struct value map = honesty_value(arena, honesty);
    struct line line = {0};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        const struct value *value = value_get(&map, parts[i].key);
        if (value)
            line_add(&line, value, parts[i].before, parts[i].after, parts[i].name);
    }
    const char *text = arena_dup(arena, line.text);
    for (size_t i = 0; i < line.missing_count; i++)
        text = arena_printf(arena, "%s%s%s", text, i == 0 ? "; n/a (no counter): " : ", ",
                            line.missing[i]);
    return honesty->finished ? text : arena_printf(arena, "%s; the recording was cut off", text);
}

void honesty_put(struct arena *arena, struct value *root, const struct honesty *honesty)
{
    value_put_machine(root, "honesty", honesty_value(arena, honesty));
    value_put(root, "honesty_line", "honesty", value_text(honesty_line(arena, honesty)));
}
