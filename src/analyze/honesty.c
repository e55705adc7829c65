/* Counters to one line. */
#include "analyze/honesty.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum fact {
    SAMPLES,
    COMPLETE,
    TRUNCATED,
    LOST,
    THROTTLED,
    SAMPLED_NS,
    RUSAGE_NS,
    OWN_NS,
    KERNEL_NS,
    FACTS,
};

static const char *const names[FACTS] = {
    [SAMPLES] = "cpu.samples",     [COMPLETE] = "cpu.complete",   [TRUNCATED] = "cpu.truncated",
    [LOST] = "loss.ring_full",     [THROTTLED] = "cpu.throttled", [SAMPLED_NS] = "cpu.sampled_ns",
    [RUSAGE_NS] = "cpu.rusage_ns", [OWN_NS] = "cpu.own_ns",       [KERNEL_NS] = "cpu.kernel_ns",
};

static int note(void *context, const struct recorded_counter *row)
{
    double *facts = context;
    for (size_t i = 0; i < FACTS; i++)
        if (str_is(row->name, names[i]))
            facts[i] = (double)row->value;
    return 0;
}

static double share_pct(double part, double whole)
{
    return whole > 0 ? part / whole * 100 : NAN;
}

int honesty_read(struct recording *recording, struct honesty *ret, struct why *why)
{
    double facts[FACTS];
    for (size_t i = 0; i < FACTS; i++)
        facts[i] = NAN;
    int r = recording_each_counter(recording, note, facts, why);
    if (r < 0)
        return r;
    double kernel_ns = isnan(facts[KERNEL_NS]) ? 0 : facts[KERNEL_NS];
    *ret = (struct honesty){
        .samples = facts[SAMPLES],
        .complete_pct = share_pct(facts[COMPLETE], facts[SAMPLES]),
        .truncated_pct = share_pct(facts[TRUNCATED], facts[SAMPLES]),
        .lost = facts[LOST],
        .throttled = facts[THROTTLED],
        .sampled_cpu_ms = facts[SAMPLED_NS] / 1e6,
        .rusage_cpu_ms = facts[RUSAGE_NS] / 1e6,
        .overhead_pct = share_pct(facts[OWN_NS] + kernel_ns, facts[RUSAGE_NS]),
        .kernel_estimated = !isnan(facts[KERNEL_NS]),
    };
    return 0;
}

struct field {
    const char *key;
    const char *title;
    size_t offset;
    enum unit unit;
    const char *na; /* why it may be missing */
};

static const struct field fields[] = {
    {"samples", "samples", offsetof(struct honesty, samples), UNIT_COUNT,
     "the recording does not count its samples"},
    {"complete_pct", "complete", offsetof(struct honesty, complete_pct), UNIT_PERCENT,
     "no stacks were walked"},
    {"truncated_pct", "truncated", offsetof(struct honesty, truncated_pct), UNIT_PERCENT,
     "no stacks were walked"},
    {"lost", "lost", offsetof(struct honesty, lost), UNIT_COUNT, "losses were not counted"},
    {"throttled", "throttled", offsetof(struct honesty, throttled), UNIT_COUNT,
     "throttling was not counted"},
    {"sampled_cpu_ms", "sampled CPU time", offsetof(struct honesty, sampled_cpu_ms), UNIT_MS,
     "weights are no CPU time"},
    {"rusage_cpu_ms", "CPU time by rusage", offsetof(struct honesty, rusage_cpu_ms), UNIT_MS,
     "the target's CPU time was not measured otherwise"},
    {"overhead_pct", "overhead", offsetof(struct honesty, overhead_pct), UNIT_PERCENT,
     "needs the target's CPU time and whyslow's own"},
};

static double number_of(const struct honesty *honesty, const struct field *field)
{
    double number;
    memcpy(&number, (const char *)honesty + field->offset, sizeof(number));
    return number;
}

struct value honesty_value(struct arena *arena, const struct honesty *honesty)
{
    struct value map = value_map(arena);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        double number = number_of(honesty, &fields[i]);
        struct value value = isnan(number) ? value_na(fields[i].na)
                             : fields[i].unit == UNIT_COUNT
                                 ? value_uint((uint64_t)number, UNIT_COUNT)
                                 : value_real(number, fields[i].unit);
        value_put(&map, fields[i].key, fields[i].title, value);
    }
    return map;
}

static const char *figure(struct arena *arena, const struct honesty *honesty, size_t index)
{
    double number = number_of(honesty, &fields[index]);
    char text[48];
    return isnan(number)
               ? "n/a"
               : arena_dup(arena, units_format(number, fields[index].unit, text, sizeof(text)));
}

const char *honesty_line(struct arena *arena, const struct honesty *honesty)
{
    const char *f[ARRAY_SIZE(fields)];
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        f[i] = figure(arena, honesty, i);
    const char *gap = "";
    if (honesty->rusage_cpu_ms > 0)
        gap = arena_printf(arena, " (%.1f%%)",
                           honesty->sampled_cpu_ms / honesty->rusage_cpu_ms * 100);
    return arena_printf(arena,
                        "%s samples, %s complete, %s truncated, %s lost, %s throttled; sampled %s "
                        "of %s CPU time%s; overhead %s%s",
                        f[0], f[1], f[2], f[3], f[4], f[5], f[6], gap, f[7],
                        honesty->kernel_estimated ? " (the kernel's share estimated)" : "");
}
