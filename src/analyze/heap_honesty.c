/* From a recording's counters and its document "heap" to the line that every report carries. */
#include "analyze/heap_honesty.h"

#include <jansson.h>

enum { SHARE_CPU_NS_MIN = 100000000 };

#define FIGURE(member) offsetof(struct heap_honesty, member)

static const struct source {
    const char *counter;
    size_t offset; /* of the figure */
} sources[] = {
    {"heap.processes", FIGURE(processes)},
    {"heap.threads", FIGURE(threads)},
    {"heap.stacks", FIGURE(stacks)},
    {"heap.incomplete", FIGURE(incomplete)},
    {"heap.stacks_walked", FIGURE(walked)},
    {"heap.stacks_complete", FIGURE(complete)},
    {"heap.frames", FIGURE(fresh)},
    {"heap.stacks_copied", FIGURE(fresh)},
    {"heap.recognised", FIGURE(recognised)},
    {"heap.stacks_recognised", FIGURE(recognised)},
    {"heap.lost.stacks", FIGURE(stacks_lost)},
    {"heap.lost.stacks_unreadable", FIGURE(stacks_lost)},
    {"heap.lost.stacks_stale", FIGURE(stacks_lost)},
    {"heap.lost.stacks_stray", FIGURE(stacks_lost)},
    {"heap.no_cell", FIGURE(no_cell)},
    {"heap.no_entry", FIGURE(no_entry)},
    {"heap.refused", FIGURE(refused)},
    {"heap.uncovered", FIGURE(uncovered)},
    {"heap.windows_unmatched", FIGURE(unread)},
    {"heap.malformed", FIGURE(unread)},
    {"heap.unseen_frees", FIGURE(unseen_frees)},
    {"heap.missed_frees", FIGURE(missed_frees)},
    {"heap.inherited_frees", FIGURE(inherited_frees)},
    {"heap.failed", FIGURE(failed)},
    {"heap.own_ns", FIGURE(own_ns)},
    {"heap.kernel_ns", FIGURE(kernel_ns)},
    {"cpu.rusage_ns", FIGURE(rusage_ns)},
};

static void figure_add(struct honesty_figure *figure, uint64_t value)
{
    figure->known = true;
    if (__builtin_add_overflow(figure->value, value, &figure->value))
        figure->value = UINT64_MAX;
}

static int read_counter(void *context, const struct recorded_counter *row)
{
    struct heap_honesty *honesty = context;
    bool lost = str_is(row->name, "heap.lost") || str_starts(row->name, "heap.lost.");
    /* Such calls are counted; stacks beyond what can be known again are copied instead. */
    bool counted = str_starts(row->name, "heap.lost.stacks") ||
                   str_is(row->name, "heap.lost.known_full");
    if (lost && !counted && row->unit == UNIT_COUNT)
        figure_add(&honesty->lost, row->value);
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
        if (str_is(row->name, sources[i].counter))
            figure_add((struct honesty_figure *)((char *)honesty + sources[i].offset), row->value);
    return 0;
}

struct reading {
    struct arena *arena;
    struct heap_honesty *honesty;
};

static uint64_t number_of(const json_t *object, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(object, key));
    return number > 0 ? (uint64_t)number : 0;
}

static int read_document(void *context, const struct recorded_document *row)
{
    struct reading *reading = context;
    if (!str_is(row->name, "heap"))
        return 0;
    json_t *root = json_loadb(row->json.data, row->json.len, 0, NULL);
    reading->honesty->mode_known = json_is_integer(json_object_get(root, "sample_bytes")) ||
                                   json_is_string(json_object_get(root, "mode"));
    if (json_is_integer(json_object_get(root, "cost_ns_per_call")))
        figure_add(&reading->honesty->call_ns, number_of(root, "cost_ns_per_call"));
    reading->honesty->sample_bytes = number_of(root, "sample_bytes");
    reading->honesty->temporary_within = number_of(root, "temporary_within");
    json_decref(root);
    return io_facts_read(reading->arena, row->json, &reading->honesty->facts);
}

int heap_honesty_load(struct arena *arena, struct recording *recording, struct heap_honesty *ret,
                      struct why *why)
{
    struct heap_honesty honesty = {.finished = recording_finished(recording)};
    struct reading reading = {arena, &honesty};
    int r = recording_each_counter(recording, read_counter, &honesty, why);
    if (r == 0)
        r = recording_each_document(recording, read_document, &reading, why);
    if (arena_failed(arena))
        return why_nomem(why);
    if (r == 0)
        *ret = honesty;
    return r;
}

static struct value count_value(struct honesty_figure figure, const char *missing)
{
    return figure.known ? value_uint(figure.value, UNIT_COUNT) : value_na(missing);
}

static struct value ms_value(struct honesty_figure figure, const char *missing)
{
    return figure.known ? value_real((double)figure.value / 1e6, UNIT_MS) : value_na(missing);
}

/* `part` in percent of `whole`. */
static struct value share_value(struct honesty_figure part, double whole, const char *missing)
{
    if (!part.known || whole <= 0)
        return value_na(missing);
    return value_real(100.0 * (double)part.value / whole, UNIT_PERCENT);
}

/* The user tier counts different stacks, the kernel tier those that it had to walk. */
static struct honesty_figure stacks_of(const struct heap_honesty *honesty)
{
    return honesty->stacks.known ? honesty->stacks : honesty->walked;
}

static struct value complete_value(const struct heap_honesty *honesty)
{
    struct honesty_figure complete = honesty->complete;
    if (honesty->stacks.known) {
        complete.known = honesty->incomplete.known;
        complete.value = honesty->stacks.value -
                         MIN(honesty->incomplete.value, honesty->stacks.value);
    }
    return share_value(complete, (double)stacks_of(honesty).value, "stacks were not counted");
}

static const struct unseen_row {
    size_t offset;
    const char *what, *reason;
} unseen_rows[] = {
    {FIGURE(refused), "processes",
     "they could not be counted: no memory to count in, or no room to map it"},
    {FIGURE(uncovered), "programs", "our library is not in them: see below"},
    {FIGURE(unread), "processes whose counts were of no use",
     "they made no sense, or are of a process that was not recorded"},
    {FIGURE(unseen_frees), "frees of memory that was not seen allocated",
     "it was allocated before we came, or by something that we do not see"},
    {FIGURE(missed_frees), "memory that was handed out again",
     "its free was not seen: it counts as freed from then on"},
    {FIGURE(inherited_frees), "frees of memory that a fork left to a process",
     "it counts where it was allocated: with the parent"},
    {FIGURE(no_cell), "calls without a stack of their own",
     "there was no room for more: they are in sums of processes only"},
    {FIGURE(no_entry), "allocations whose free cannot be told",
     "there was no room to remember them: they count as not freed"},
    {FIGURE(stacks_lost), "stacks that were lost", "their calls are counted, without a place"},
    {FIGURE(lost), "calls that were lost", "they could not be counted at that moment"},
};

static uint64_t unseen_amount(const struct heap_honesty *honesty, const struct unseen_row *row)
{
    const struct honesty_figure *figure = (const void *)((const char *)honesty + row->offset);
    return figure->value;
}

struct value heap_honesty_unseen(struct arena *arena, const struct heap_honesty *honesty)
{
    static const struct column columns[] = {
        {"what", "what", SHOW_ALWAYS, false, true},
        {"amount", "how much", SHOW_ALWAYS, true, false},
        {"reason", "why", SHOW_ALWAYS, false, true},
    };
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    const struct io_facts *facts = &honesty->facts;
    for (size_t i = 0; i < ARRAY_SIZE(unseen_rows) + facts->unseen_count; i++) {
        bool told = i >= ARRAY_SIZE(unseen_rows);
        const struct unseen_row *known = told ? NULL : &unseen_rows[i];
        uint64_t amount = known ? unseen_amount(honesty, known) : 0;
        struct table_row *row = told || amount > 0 ? table_add(&table) : NULL;
        if (!row)
            continue;
        const struct io_unseen *fact = told ? &facts->unseen[i - ARRAY_SIZE(unseen_rows)] : NULL;
        row->cells[0] = value_text(fact ? fact->what : known->what);
        row->cells[1] = fact ? value_text("") : value_uint(amount, UNIT_COUNT);
        row->cells[2] = value_text(fact ? (fact->reason ? fact->reason : "") : known->reason);
    }
    return table;
}

struct value heap_honesty_value(struct arena *arena, const struct heap_honesty *honesty)
{
    struct value map = value_map(arena);
    const struct io_facts *facts = &honesty->facts;
    const char *unsaid = "the recording does not say";
    value_put(&map, "tier", NULL, facts->tier ? value_text(facts->tier) : value_na(unsaid));
    value_put(&map, "why_not_higher", "why not a higher tier",
              facts->not_higher ? value_text(facts->not_higher) : value_null());
    value_put(&map, "mode", NULL,
              honesty->mode_known ? value_text(honesty->sample_bytes ? "sampled" : "exact")
                                  : value_na(unsaid));
    value_put(&map, "estimated", "figures are estimates",
              honesty->mode_known ? value_bool(honesty->sample_bytes > 0) : value_na(unsaid));
    value_put(&map, "sample_bytes", "one in, on average",
              honesty->sample_bytes ? value_uint(honesty->sample_bytes, UNIT_BYTES) : value_null());
    value_put(&map, "temporary_within", "temporary: freed before so many allocations",
              honesty->temporary_within ? value_uint(honesty->temporary_within, UNIT_COUNT)
                                        : value_na(unsaid));
    value_put(&map, "processes", NULL, count_value(honesty->processes, "it was not counted"));
    value_put(&map, "threads", NULL, count_value(honesty->threads, "it was not counted"));
    value_put(&map, "stacks", "different stacks",
              count_value(stacks_of(honesty), "stacks were not counted"));
    value_put(&map, "complete_pct", "complete stacks", complete_value(honesty));
    double frames = (double)honesty->recognised.value + (double)honesty->fresh.value;
    value_put(&map, "recognised_pct", "stacks recognised",
              share_value(honesty->recognised, frames, "it was not counted"));
    value_put(&map, "lost", NULL, count_value(honesty->lost, "losses were not counted"));
    value_put(&map, "stacks_lost", "stacks lost",
              value_uint(honesty->stacks_lost.value, UNIT_COUNT));
    value_put(&map, "in_sums_only", "calls in sums only",
              count_value(honesty->no_cell, "it was not counted"));
    value_put(&map, "unseen_frees", "frees of memory not seen allocated",
              count_value(honesty->unseen_frees, "it was not counted"));
    value_put(&map, "own_cpu_ms", "own CPU time",
              ms_value(honesty->own_ns, "whyslow's own CPU time was not measured"));
    value_put(&map, "own_pct", "of the program's CPU time",
              share_value(honesty->own_ns, (double)honesty->rusage_ns.value,
                          "the program's CPU time was not measured"));
    value_put(
        &map, "kernel_ms", "time spent in the kernel for it",
        ms_value(honesty->kernel_ns, "nothing of it was done in the kernel, or not measured"));
    value_put(&map, "call_ns", "cost of a call",
              honesty->call_ns.known ? value_uint(honesty->call_ns.value, UNIT_NS)
                                     : value_na("the cost of a call was not measured"));
    value_put(&map, "unseen", NULL, heap_honesty_unseen(arena, honesty));
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

/* Worth a word only where there are some. */
static const char *few_text(struct arena *arena, struct honesty_figure figure, enum unit unit,
                            const char *name)
{
    char number[48];
    if (figure.value == 0)
        return "";
    units_format((double)figure.value, unit, number, sizeof(number));
    return arena_printf(arena, ", %s %s", number, name);
}

static const char *mode_text(struct arena *arena, const struct heap_honesty *honesty)
{
    char size[48];
    if (!honesty->mode_known)
        return "mode n/a";
    if (honesty->sample_bytes == 0)
        return "exact: every call counted";
    return arena_printf(
        arena,
        "sampled: one in %s on average, figures are estimates, with 95%% intervals in the head",
        units_format((double)honesty->sample_bytes, UNIT_BYTES, size, sizeof(size)));
}

/* Beside a program that ran for a moment it says nothing: whyslow has to begin, too. */
static const char *share_text(struct arena *arena, const struct heap_honesty *honesty,
                              const struct value *map)
{
    const struct value *share = value_get(map, "own_pct");
    if (!share || share->kind == VALUE_NA || honesty->rusage_ns.value < SHARE_CPU_NS_MIN)
        return "";
    return arena_printf(arena, " (%.1f%% of the program's)", value_number(share));
}

const char *heap_honesty_line(struct arena *arena, const struct heap_honesty *honesty)
{
    struct value map = heap_honesty_value(arena, honesty);
    const struct io_facts *facts = &honesty->facts;
    return arena_printf(
        arena, "%s tier, %s; %s, %s, %s%s%s%s%s%s%s; cost: %s%s%s%s%s%s%s",
        facts->tier ? facts->tier : "unknown", mode_text(arena, honesty),
        figure_text(arena, &map, "stacks", stacks_of(honesty).value == 1 ? "stack" : "stacks"),
        figure_text(arena, &map, "complete_pct", "complete"),
        figure_text(arena, &map, "lost", "lost"),
        few_text(arena, honesty->stacks_lost, UNIT_COUNT, "without their stack"),
        few_text(arena, honesty->no_cell, UNIT_COUNT, "in sums only"),
        few_text(arena, honesty->unseen_frees, UNIT_COUNT,
                 honesty->unseen_frees.value == 1 ? "free of memory not seen allocated"
                                                  : "frees of memory not seen allocated"),
        few_text(arena, honesty->refused, UNIT_COUNT,
                 honesty->refused.value == 1 ? "process not counted" : "processes not counted"),
        few_text(arena, honesty->uncovered, UNIT_COUNT,
                 honesty->uncovered.value == 1 ? "program not covered" : "programs not covered"),
        few_text(arena, honesty->failed, UNIT_COUNT,
                 honesty->failed.value == 1 ? "call that failed" : "calls that failed"),
        figure_text(arena, &map, "own_cpu_ms", "own CPU time"), share_text(arena, honesty, &map),
        few_text(arena, honesty->kernel_ns, UNIT_NS, "in the kernel"),
        few_text(arena, honesty->call_ns, UNIT_NS, "a call"),
        facts->not_higher ? "; no higher tier: " : "", facts->not_higher ? facts->not_higher : "",
        honesty->finished ? "" : "; the recording was cut off");
}

void heap_honesty_put(struct arena *arena, struct value *root, const struct heap_honesty *honesty)
{
    value_put_machine(root, "honesty", heap_honesty_value(arena, honesty));
    value_put(root, "honesty_line", "honesty", value_text(heap_honesty_line(arena, honesty)));
}
