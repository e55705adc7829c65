/* From a recording's counters and its document "io" to the line that every report carries. */
#include "analyze/io_honesty.h"

#define FIGURE(member) offsetof(struct io_honesty, member)

static const struct source {
    const char *counter;
    size_t offset; /* of the figure */
} sources[] = {
    {"io.calls", FIGURE(calls)},
    {"io.folded", FIGURE(folded)},
    {"io.unattributed", FIGURE(unattributed)},
    {"io.stacks_recognised", FIGURE(recognised)},
    {"io.recognised", FIGURE(recognised)},
    {"io.stacks_copied", FIGURE(copied)},
    {"io.copied", FIGURE(copied)},
    {"io.stacks_walked", FIGURE(walked)},
    {"io.stacks_complete", FIGURE(complete)},
    {"io.complete", FIGURE(complete)},
    {"io.stacks_truncated", FIGURE(incomplete)},
    {"io.truncated", FIGURE(incomplete)},
    {"io.own_ns", FIGURE(own_ns)},
    {"io.kernel_ns", FIGURE(kernel_ns)},
    {"cpu.rusage_ns", FIGURE(cpu_ns)},
    {"io.requests", FIGURE(requests)},
    {"io.requests.unanswered", FIGURE(unanswered)},
    {"io.requests.events_left_out", FIGURE(events_left_out)},
    {"io.requests.hopped", FIGURE(hopped)},
    {"io.connections", FIGURE(connections)},
    {"io.connections.unknown", FIGURE(unknown)},
    {"io.connections.broken", FIGURE(broken)},
    {"io.connections.switched", FIGURE(switched)},
    {"io.connections.encrypted", FIGURE(encrypted)},
    {"io.connections.lost", FIGURE(connections_lost)},
    {"io.requests.folded", FIGURE(requests_folded)},
    {"io.requests.cut_off", FIGURE(requests_cut)},
    {"io.compat_calls", FIGURE(compat_calls)},
    {"io.open_calls", FIGURE(open_calls)},
    {"io.calls_before", FIGURE(calls_before)},
    {"io.device_lost", FIGURE(device_lost)},
    {"io.connections.middle", FIGURE(middle)},
    {"io.connections.beyond", FIGURE(beyond)},
    {"io.uring_calls", FIGURE(uring_calls)},
    {"io.inside_bytes", FIGURE(inside_bytes)},
    {"io.calls_unseen", FIGURE(calls_unseen)},
    {"io.bytes_unseen", FIGURE(bytes_unseen)},
    {"io.heads_lost", FIGURE(heads_lost)},
};

/* Of all losses: the call itself was counted. */
static const char *const parts[] = {
    "io.lost.stacks",        "io.lost.stacks_spared",  "io.lost.stacks_unreadable",
    "io.lost.stacks_stale",  "io.lost.stacks_skipped", "io.lost.stacks_stray",
    "io.lost.objects",       "io.lost.paths",          "io.lost.heads",
    "io.lost.kernel_stacks", "loss.request_events",    "loss.io_stacks",
};
/* And nothing at all was lost: stacks were copied instead. */
static const char nothing_lost[] = "io.lost.known_full";

static void figure_add(struct honesty_figure *figure, uint64_t value)
{
    figure->known = true;
    if (__builtin_add_overflow(figure->value, value, &figure->value))
        figure->value = UINT64_MAX;
}

/* The ring of the kernel tier carries names and stacks, calls are added up beside it; that of the
 * user tier carries rows of calls, too. */
static const char ring_full[] = "io.lost.ring_full";

static void read_loss(struct io_honesty *honesty, const struct recorded_counter *row)
{
    if (str_is(row->name, ring_full)) {
        figure_add(&honesty->ring_full, row->value);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (str_is(row->name, parts[i])) {
            figure_add(&honesty->parts_lost, row->value);
            return;
        }
    bool lost = str_starts(row->name, "loss.io_") || str_starts(row->name, "io.lost.") ||
                str_is(row->name, "io.lost");
    if (lost && !str_is(row->name, nothing_lost))
        figure_add(&honesty->lost, row->value);
}

static int read_counter(void *context, const struct recorded_counter *row)
{
    struct io_honesty *honesty = context;
    if (row->unit == UNIT_COUNT)
        read_loss(honesty, row);
    if (str_starts(row->name, "io.end.") && row->unit == UNIT_COUNT)
        figure_add(&honesty->incomplete, row->value);
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
        if (str_is(row->name, sources[i].counter))
            figure_add((struct honesty_figure *)((char *)honesty + sources[i].offset), row->value);
    return 0;
}

struct reading {
    struct arena *arena;
    struct io_honesty *honesty;
};

static int read_document(void *context, const struct recorded_document *row)
{
    struct reading *reading = context;
    if (!str_is(row->name, "io"))
        return 0;
    return io_facts_read(reading->arena, row->json, &reading->honesty->facts);
}

int io_honesty_load(struct arena *arena, struct recording *recording, struct io_honesty *ret,
                    struct why *why)
{
    struct io_honesty honesty = {.finished = recording_finished(recording)};
    struct reading reading = {arena, &honesty};
    int r = recording_each_counter(recording, read_counter, &honesty, why);
    if (r == 0)
        r = recording_each_document(recording, read_document, &reading, why);
    if (arena_failed(arena))
        return why_nomem(why);
    if (r < 0)
        return r;
    bool kernel = honesty.facts.tier && str_is(str_from(honesty.facts.tier), "kernel");
    if (honesty.ring_full.known)
        figure_add(kernel ? &honesty.parts_lost : &honesty.lost, honesty.ring_full.value);
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

static struct value share_value(struct honesty_figure part, double whole, const char *missing,
                                const char *empty)
{
    if (!part.known)
        return value_na(missing);
    if (whole <= 0)
        return value_na(empty);
    return value_real(100.0 * (double)part.value / whole, UNIT_PERCENT);
}

/* `told` is how the document begins to speak of the same: it has the better words then. */
static const struct unseen_row {
    size_t offset;
    enum unit unit;
    const char *told;
    const char *what, *reason;
} unseen_rows[] = {
    {FIGURE(uring_calls), UNIT_COUNT, "io_uring", "io_uring: calls",
     "what is done through its rings passes no system call of its own"},
    {FIGURE(inside_bytes), UNIT_BYTES, "sendfile", "sendfile, splice, copy_file_range: bytes",
     "they move inside the kernel: counted, but what was said with them is not looked at"},
    {FIGURE(compat_calls), UNIT_COUNT, "32-bit", "calls of 32-bit programs",
     "they have other numbers: counted and timed without names"},
    {FIGURE(calls_unseen), UNIT_COUNT, "calls inside libc",
     "reads and writes beside libc's functions",
     "stdio's own, static programs and plain system calls do not pass our library"},
    {FIGURE(bytes_unseen), UNIT_BYTES, NULL, "bytes of those",
     "the kernel counts them for the process"},
    {FIGURE(calls_before), UNIT_COUNT, "calls before", "calls from before",
     "they were under way when recording began, and are not counted"},
    {FIGURE(open_calls), UNIT_COUNT, NULL, "calls that had not returned at the end",
     "they count with the time up to then"},
    {FIGURE(hopped), UNIT_COUNT, NULL, "requests that hop threads",
     "they were answered on another thread than asked: their call site is that of the first"},
    {FIGURE(unknown), UNIT_COUNT, NULL, "connections of no known protocol",
     "calls and bytes are counted, requests are not told apart"},
    {FIGURE(encrypted), UNIT_COUNT, NULL, "encrypted connections",
     "TLS through no library that we look into: linked statically, or not OpenSSL"},
    {FIGURE(broken), UNIT_COUNT, NULL, "connections that stopped making sense",
     "requests after that are not in the tables"},
    {FIGURE(switched), UNIT_COUNT, NULL, "connections that switched to another protocol",
     "to TLS, compression, web sockets: the rest is not decoded"},
    {FIGURE(middle), UNIT_COUNT, NULL, "connections met in the middle",
     "HTTP/2 can be decoded from its beginning only"},
    {FIGURE(beyond), UNIT_COUNT, NULL, "connections beyond what fits", "too many at a time"},
    {FIGURE(connections_lost), UNIT_COUNT, NULL, "connections of which a piece was lost",
     "requests after that are not in the tables"},
    {FIGURE(heads_lost), UNIT_COUNT, NULL, "pieces of messages that were lost",
     "their connections' requests are not in the tables from there on"},
    {FIGURE(requests_folded), UNIT_COUNT, NULL, "requests added up under a common text",
     "too many different ones"},
    {FIGURE(device_lost), UNIT_COUNT, NULL, "requests of devices",
     "there was no room to follow them"},
    {FIGURE(events_left_out), UNIT_COUNT, NULL, "short requests that are only in sums",
     "beyond the first ones only those of 1 ms or more are kept one by one"},
};

static uint64_t unseen_amount(const struct io_honesty *honesty, const struct unseen_row *row)
{
    const struct honesty_figure *figure = (const void *)((const char *)honesty + row->offset);
    return figure->value;
}

static bool is_told(const struct io_facts *facts, const struct unseen_row *row)
{
    for (size_t i = 0; row->told && i < facts->unseen_count; i++)
        if (str_starts(str_from(facts->unseen[i].what), row->told))
            return true;
    return false;
}

/* How much of what the document speaks of, where a counter has it. */
static struct value told_amount(const struct io_honesty *honesty, const char *what)
{
    for (size_t i = 0; i < ARRAY_SIZE(unseen_rows); i++) {
        const struct unseen_row *row = &unseen_rows[i];
        if (row->told && str_starts(str_from(what), row->told) && unseen_amount(honesty, row) > 0)
            return value_uint(unseen_amount(honesty, row), row->unit);
    }
    return value_text("");
}

struct value io_honesty_unseen(struct arena *arena, const struct io_honesty *honesty)
{
    static const struct column columns[] = {
        {"what", "what", SHOW_ALWAYS, false, true},
        {"amount", "how much", SHOW_ALWAYS, true, false},
        {"reason", "why", SHOW_ALWAYS, false, true},
    };
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    const struct io_facts *facts = &honesty->facts;
    for (size_t i = 0; i < ARRAY_SIZE(unseen_rows); i++) {
        uint64_t amount = unseen_amount(honesty, &unseen_rows[i]);
        bool wanted = amount > 0 && !is_told(facts, &unseen_rows[i]);
        struct table_row *row = wanted ? table_add(&table) : NULL;
        if (!row)
            continue;
        row->cells[0] = value_text(unseen_rows[i].what);
        row->cells[1] = value_uint(amount, unseen_rows[i].unit);
        row->cells[2] = value_text(unseen_rows[i].reason);
    }
    for (size_t i = 0; i < facts->unseen_count; i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_text(facts->unseen[i].what);
        row->cells[1] = told_amount(honesty, facts->unseen[i].what);
        row->cells[2] = value_text(facts->unseen[i].reason ? facts->unseen[i].reason : "");
    }
    return table;
}

struct value io_honesty_value(struct arena *arena, const struct io_honesty *honesty)
{
    struct value map = value_map(arena);
    const struct io_facts *facts = &honesty->facts;
    value_put(&map, "tier", NULL,
              facts->tier ? value_text(facts->tier) : value_na("the recording does not say"));
    value_put(&map, "why_not_higher", "why not a higher tier",
              facts->not_higher ? value_text(facts->not_higher) : value_null());
    value_put(&map, "calls", NULL, count_value(honesty->calls, "calls were not counted"));
    value_put(&map, "unattributed", "calls without their stack or object",
              count_value(honesty->unattributed, "it was not counted"));
    value_put(&map, "unattributed_pct", "calls without their stack or object, of all",
              share_value(honesty->unattributed, (double)honesty->calls.value, "it was not counted",
                          "no call was seen"));
    value_put(&map, "folded", "without thread, object or stack",
              count_value(honesty->folded, "it was not counted"));
    /* The user tier copies none: it walks those that are new. */
    double fresh = (double)(honesty->copied.known ? honesty->copied : honesty->walked).value;
    double known = (double)honesty->recognised.value + fresh;
    value_put(&map, "recognised_pct", "stacks recognised",
              share_value(honesty->recognised, known, "stacks were not asked for, or not counted",
                          "no stack was looked at"));
    double walked = honesty->walked.known
                        ? (double)honesty->walked.value
                        : (double)honesty->complete.value + (double)honesty->incomplete.value;
    value_put(&map, "complete_pct", "complete stacks",
              share_value(honesty->complete, walked, "the recording does not count it",
                          "no stack was walked"));
    value_put(&map, "lost", NULL, count_value(honesty->lost, "losses were not counted"));
    value_put(&map, "parts_lost", "without their stack, object or message",
              count_value(honesty->parts_lost, "it was not counted"));
    value_put(&map, "requests", NULL,
              count_value(honesty->requests,
                          facts->requests ? facts->requests : "requests were not looked for"));
    value_put(&map, "requests_left_out", "requests that are only in sums",
              count_value(honesty->events_left_out, "it was not counted"));
    value_put(&map, "connections", "connections with requests",
              count_value(honesty->connections, "connections were not counted"));
    value_put(&map, "own_cpu_ms", "own CPU time",
              ms_value(honesty->own_ns, "whyslow's own CPU time was not measured"));
    value_put(&map, "kernel_ms", "time spent in the kernel for it",
              ms_value(honesty->kernel_ns, "what it cost in the kernel was not measured"));
    value_put(&map, "unseen", NULL, io_honesty_unseen(arena, honesty));
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
static const char *few_text(struct arena *arena, struct honesty_figure figure, const char *name)
{
    char number[48];
    if (figure.value == 0)
        return "";
    units_format((double)figure.value, UNIT_COUNT, number, sizeof(number));
    return arena_printf(arena, ", %s %s", number, name);
}

const char *io_honesty_unattributed(struct arena *arena, const struct io_honesty *honesty)
{
    char share[48], number[48];
    uint64_t calls = MAX(honesty->calls.value, honesty->unattributed.value);
    if (honesty->unattributed.value == 0)
        return "";
    double percent = 100.0 * (double)honesty->unattributed.value / (double)calls;
    bool tiny = percent < 0.1; /* not "0.0%": it is not nothing */
    units_format(tiny ? 0.1 : percent, UNIT_PERCENT, share, sizeof(share));
    units_format((double)honesty->unattributed.value, UNIT_COUNT, number, sizeof(number));
    return arena_printf(arena, "%s%s of calls lost their stack or object (%s)", tiny ? "<" : "",
                        share, number);
}

const char *io_honesty_lost_word(const struct io_honesty *honesty)
{
    return honesty->unattributed.value > 0 ? "not counted" : "lost";
}

/* Recordings of before do not say how many calls it is, only how many parts of calls. */
static const char *parts_text(struct arena *arena, const struct io_honesty *honesty)
{
    if (honesty->unattributed.known)
        return "";
    return arena_printf(
        arena, "%s%s",
        few_text(arena, honesty->parts_lost, "without their stack, object or message"),
        few_text(arena, honesty->folded, "without thread, object or stack"));
}

const char *io_honesty_line(struct arena *arena, const struct io_honesty *honesty)
{
    struct value map = io_honesty_value(arena, honesty);
    const struct io_facts *facts = &honesty->facts;
    bool stacks = honesty->recognised.known || honesty->complete.known;
    const char *part = io_honesty_unattributed(arena, honesty);
    return arena_printf(
        arena, "%s tier: %s%s%s%s%s%s%s%s%s, %s%s; cost: %s, %s%s%s%s",
        facts->tier ? facts->tier : "unknown", part, *part ? ", " : "",
        figure_text(arena, &map, "calls", honesty->calls.value == 1 ? "call" : "calls"),
        few_text(arena, honesty->requests, honesty->requests.value == 1 ? "request" : "requests"),
        stacks ? "" : ", stacks n/a", stacks ? ", stacks " : "",
        stacks ? figure_text(arena, &map, "recognised_pct", "recognised") : "", stacks ? ", " : "",
        stacks ? figure_text(arena, &map, "complete_pct", "complete") : "",
        figure_text(arena, &map, "lost", io_honesty_lost_word(honesty)), parts_text(arena, honesty),
        figure_text(arena, &map, "own_cpu_ms", "own CPU time"),
        figure_text(arena, &map, "kernel_ms", "in the kernel"),
        facts->not_higher ? "; no higher tier: " : "", facts->not_higher ? facts->not_higher : "",
        honesty->finished ? "" : "; the recording was cut off");
}

void io_honesty_put(struct arena *arena, struct value *root, const struct io_honesty *honesty)
{
    value_put_machine(root, "honesty", io_honesty_value(arena, honesty));
    value_put(root, "honesty_line", "honesty", value_text(io_honesty_line(arena, honesty)));
}
