/* From a recording's counters to the line that every report of waits carries. */
#include "analyze/wait_honesty.h"

#include <jansson.h>
#include <string.h>

static const struct source {
    const char *counter;
    size_t offset; /* of the figure */
} sources[] = {
    {"waits.seen", offsetof(struct wait_honesty, seen)},
    {"waits.recognised", offsetof(struct wait_honesty, recognised)},
    {"waits.stacks_recognised", offsetof(struct wait_honesty, recognised)},
    {"waits.slots_verified", offsetof(struct wait_honesty, verified_slots)},
    {"waits.verified_slots", offsetof(struct wait_honesty, verified_slots)},
    {"waits.stacks_copied", offsetof(struct wait_honesty, copied)},
    {"waits.copied", offsetof(struct wait_honesty, copied)},
    {"waits.stacks_read_again", offsetof(struct wait_honesty, read_again)},
    {"waits.read_again", offsetof(struct wait_honesty, read_again)},
    {"waits.stacks_unlearnable", offsetof(struct wait_honesty, unlearnable)},
    {"waits.unlearnable", offsetof(struct wait_honesty, unlearnable)},
    {"waits.stacks_walked", offsetof(struct wait_honesty, walked)},
    {"waits.stacks_complete", offsetof(struct wait_honesty, complete)},
    {"waits.complete", offsetof(struct wait_honesty, complete)},
    {"waits.stacks_truncated", offsetof(struct wait_honesty, incomplete)},
    {"waits.truncated", offsetof(struct wait_honesty, incomplete)},
    {"waits.own_ns", offsetof(struct wait_honesty, own_ns)},
    {"waits.kernel_ns", offsetof(struct wait_honesty, kernel_ns)},
    {"waits.blocked_ns", offsetof(struct wait_honesty, blocked_ns)},
    {"waits.observed_ns", offsetof(struct wait_honesty, observed_ns)},
    {"waits.alike_ns", offsetof(struct wait_honesty, alike_ns)},
};

/* Of all losses: the wait itself was counted. */
static const char *const parts[] = {
    "waits.lost.stacks_spared", "waits.lost.stacks_unreadable", "waits.lost.stacks_stale",
    "waits.lost.stacks_stray",  "waits.lost.ring_full",         "waits.lost.wakers_merged",
    "waits.lost.kernel_stacks", "waits.lost.kernel_locks",      "waits.lost.objects",
    "loss.wait_events",
};
/* And nothing at all was lost: stacks were copied instead. */
static const char nothing_lost[] = "waits.lost.known_full";

struct reading {
    struct arena *arena;
    struct wait_honesty *honesty;
};

static void figure_add(struct honesty_figure *figure, uint64_t value)
{
    figure->known = true;
    if (__builtin_add_overflow(figure->value, value, &figure->value))
        figure->value = UINT64_MAX;
}

static void read_loss(struct wait_honesty *honesty, const struct recorded_counter *row)
{
    bool lost = str_starts(row->name, "loss.wait_") || str_starts(row->name, "waits.lost.");
    if (!lost || str_is(row->name, nothing_lost))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (str_is(row->name, parts[i])) {
            figure_add(&honesty->parts_lost, row->value);
            return;
        }
    figure_add(&honesty->lost, row->value);
}

static int read_counter(void *context, const struct recorded_counter *row)
{
    struct wait_honesty *honesty = ((struct reading *)context)->honesty;
    if (row->unit == UNIT_COUNT)
        read_loss(honesty, row);
    if (str_starts(row->name, "waits.end.") && row->unit == UNIT_COUNT)
        figure_add(&honesty->incomplete, row->value);
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
        if (str_is(row->name, sources[i].counter))
            figure_add((struct honesty_figure *)((char *)honesty + sources[i].offset), row->value);
    return 0;
}

/* A text under one of the keys, in the arena; NULL when there is none. */
static const char *text_of(struct arena *arena, const json_t *json, const char *const *keys)
{
    for (; *keys; keys++) {
        const char *text = json_string_value(json_object_get(json, *keys));
        if (text && *text)
            return arena_dup(arena, text);
    }
    return NULL;
}

/* Of the user tier: whether the library that times holds was in the target. */
static int read_locks(struct reading *reading, const struct recorded_document *row)
{
    static const char *const library[] = {"library", NULL};
    json_t *json = json_loadb(row->json.data, row->json.len, 0, NULL);
    const char *text = text_of(reading->arena, json, library);
    if (text && !str_is(str_from(text), "loaded"))
        reading->honesty->holds_na = text;
    json_decref(json);
    return 0;
}

static int read_document(void *context, const struct recorded_document *row)
{
    struct reading *reading = context;
    if (str_is(row->name, "locks"))
        return read_locks(reading, row);
    if (!str_is(row->name, "waits"))
        return 0;
    static const char *const tier[] = {"tier", NULL};
    static const char *const not_higher[] = {"why_not_higher", "why_not_kernel", NULL};
    json_t *json = json_loadb(row->json.data, row->json.len, 0, NULL);
    reading->honesty->tier = text_of(reading->arena, json, tier);
    reading->honesty->not_higher = text_of(reading->arena, json, not_higher);
    json_decref(json);
    return 0;
}

int wait_honesty_load(struct arena *arena, struct recording *recording, struct wait_honesty *ret,
                      struct why *why)
{
    struct wait_honesty honesty = {.finished = recording_finished(recording)};
    struct reading reading = {arena, &honesty};
    int r = recording_each_counter(recording, read_counter, &reading, why);
    if (r == 0)
        r = recording_each_document(recording, read_document, &reading, why);
    if (r < 0)
        return r;
    *ret = honesty;
    return arena_failed(arena) ? why_nomem(why) : 0;
}

static struct value count_value(struct honesty_figure figure, const char *missing)
{
    return figure.known ? value_uint(figure.value, UNIT_COUNT) : value_na(missing);
}

static struct value ms_value(struct honesty_figure figure, const char *missing)
{
    return figure.known ? value_real((double)figure.value / 1e6, UNIT_MS) : value_na(missing);
}

static struct value share_value(struct honesty_figure part, double whole, const char *missing,
                                const char *empty)
{
    if (!part.known)
        return value_na(missing);
    if (whole <= 0)
        return value_na(empty);
    return value_real(100.0 * (double)part.value / whole, UNIT_PERCENT);
}

static const char known_again_na[] = "this tier does not know stacks again: it walks each one";

struct value wait_honesty_value(struct arena *arena, const struct wait_honesty *honesty)
{
    struct value map = value_map(arena);
    value_put(&map, "tier", NULL,
              honesty->tier ? value_text(honesty->tier) : value_na("the recording does not say"));
    value_put(&map, "why_not_higher", "why not a higher tier",
              honesty->not_higher ? value_text(honesty->not_higher) : value_null());
    value_put(&map, "waits", NULL, count_value(honesty->seen, "waits were not counted"));
    double known = (double)honesty->recognised.value + (double)honesty->copied.value;
    value_put(&map, "recognised_pct", "stacks recognised",
              share_value(honesty->recognised, known, known_again_na, "no stack was looked at"));
    value_put(&map, "verified_slots", "stack slots compared",
              count_value(honesty->verified_slots, known_again_na));
    value_put(&map, "copied", "stacks copied",
              count_value(honesty->copied, "copies were not counted"));
    value_put(&map, "read_again", "not as known, read again",
              count_value(honesty->read_again, known_again_na));
    value_put(&map, "unlearnable", "stacks that cannot be known again",
              count_value(honesty->unlearnable, known_again_na));
    double walked = honesty->walked.known
                        ? (double)honesty->walked.value
                        : (double)honesty->complete.value + (double)honesty->incomplete.value;
    value_put(&map, "complete_pct", "complete stacks",
              share_value(honesty->complete, walked, "the recording does not count it",
                          "no stack was walked"));
    value_put(&map, "observed_pct", "time off the CPU that was looked at",
              share_value(honesty->observed_ns, (double)honesty->blocked_ns.value,
                          "every wait was seen, not looked at now and then",
                          "no time was spent off the CPU"));
    value_put(&map, "alike_pct", "time taken to be like what was looked at before",
              share_value(honesty->alike_ns, (double)honesty->blocked_ns.value,
                          "every wait was seen, not looked at now and then",
                          "no time was spent off the CPU"));
    value_put(&map, "lost", NULL, count_value(honesty->lost, "losses were not counted"));
    value_put(&map, "parts_lost", "without their stack, waker or own times",
              count_value(honesty->parts_lost, "it was not counted"));
    value_put(&map, "own_cpu_ms", "own CPU time",
              ms_value(honesty->own_ns, "whyslow's own CPU time was not measured"));
    value_put(&map, "kernel_ms", "time spent in the kernel for it",
              ms_value(honesty->kernel_ns, "what it cost in the kernel was not measured"));
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

/* How stacks were come by: what a tier does not do is not in its line. */
static const char *stacks_text(struct arena *arena, const struct wait_honesty *honesty,
                               const struct value *map)
{
    if (honesty->recognised.known)
        return arena_printf(arena, "%s, %s",
                            figure_text(arena, map, "recognised_pct", "recognised"),
                            figure_text(arena, map, "read_again", "read again"));
    if (honesty->observed_ns.known)
        return arena_printf(arena, "%s, %s",
                            figure_text(arena, map, "observed_pct", "of the time looked at"),
                            figure_text(arena, map, "alike_pct", "taken to be alike"));
    return "recognised n/a";
}

/* Worth a word only where there are some. */
static const char *parts_text(struct arena *arena, const struct wait_honesty *honesty)
{
    if (honesty->parts_lost.value == 0)
        return "";
    char number[48];
    units_format((double)honesty->parts_lost.value, UNIT_COUNT, number, sizeof(number));
    return arena_printf(arena, ", %s without their stack, waker or own times", number);
}

const char *wait_honesty_line(struct arena *arena, const struct wait_honesty *honesty)
{
    struct value map = wait_honesty_value(arena, honesty);
    return arena_printf(
        arena, "%s tier: %s, %s, %s, %s%s; cost: %s, %s%s%s%s",
        honesty->tier ? honesty->tier : "unknown",
        figure_text(arena, &map, "waits", honesty->seen.value == 1 ? "wait" : "waits"),
        stacks_text(arena, honesty, &map), figure_text(arena, &map, "complete_pct", "complete"),
        figure_text(arena, &map, "lost", "lost"), parts_text(arena, honesty),
        figure_text(arena, &map, "own_cpu_ms", "own CPU time"),
        figure_text(arena, &map, "kernel_ms", "in the kernel"),
        honesty->not_higher ? "; no higher tier: " : "",
        honesty->not_higher ? honesty->not_higher : "",
        honesty->finished ? "" : "; the recording was cut off");
}

void wait_honesty_put(struct arena *arena, struct value *root, const struct wait_honesty *honesty)
{
    value_put_machine(root, "honesty", wait_honesty_value(arena, honesty));
    value_put(root, "honesty_line", "honesty", value_text(wait_honesty_line(arena, honesty)));
}
