/* Requests, the waterfall and notes as tables; see io_tables.h. */
#include "present/io_table_parts.h"

#include "present/wait_tables.h"
#include "protocol/protocol.h"

#include <inttypes.h>
#include <string.h>

enum { BAR_COLUMNS = 40, WATERFALL_ROWS_MAX = 1000, RESULTS_SHOWN = 8 };

/* What was asked comes first: whoever reads the table looks for that. People see what fits beside
 * it; all else is for machines. */
enum {
    REQ_TEXT,
    REQ_TEXT_SHORT,
    REQ_TOTAL,
    REQ_COUNT,
    REQ_MEAN,
    REQ_P50,
    REQ_P99,
    REQ_MAX,
    REQ_HISTOGRAM,
    REQ_FIRST_BYTE,
    REQ_OUT,
    REQ_IN,
    REQ_FAILED,
    REQ_UNANSWERED,
    REQ_RESULTS,
    REQ_PARAMETERS,
    REQ_PARAMETERS_LEAST,
    REQ_PARAMETERS_TEXT,
    REQ_CONNECTIONS,
    REQ_REUSED,
    REQ_SEQUENTIAL,
    REQ_CHAIN,
    REQ_CHAIN_MS,
    REQ_THREADS,
    REQ_ROLE,
    REQ_PROTOCOL,
    REQ_PEER,
    REQ_SERVICE,
    REQ_PEER_TEXT,
    REQ_REMARKS,
    REQ_WHERE,
    REQ_STACK,
    REQ_COLUMNS
};

static const struct io_column request_columns[REQ_COLUMNS] = {
    [REQ_TEXT] = {{"text", "request", SHOW_MACHINE, false, true}, true},
    [REQ_TEXT_SHORT] = {{"request", "request", SHOW_PEOPLE, false, true}, true},
    [REQ_TOTAL] = {{"total_ms", "total", SHOW_ALWAYS, true, false}, true},
    [REQ_COUNT] = {{"count", "count", SHOW_ALWAYS, true, false}, true},
    [REQ_MEAN] = {{"mean_ms", "mean", SHOW_ALWAYS, true, false}, true},
    [REQ_P50] = {{"p50_ms", "p50", SHOW_MACHINE, true, false}, false},
    [REQ_P99] = {{"p99_ms", "p99", SHOW_ALWAYS, true, false}, true},
    [REQ_MAX] = {{"max_ms", "max", SHOW_MACHINE, true, false}, false},
    [REQ_HISTOGRAM] = {{"histogram", "histogram", SHOW_MACHINE, false, false}, false},
    [REQ_FIRST_BYTE] = {{"first_byte_ms", "first byte", SHOW_MACHINE, true, false}, false},
    [REQ_OUT] = {{"bytes_out", "asked", SHOW_MACHINE, true, false}, false},
    [REQ_IN] = {{"bytes_in", "answered", SHOW_MACHINE, true, false}, false},
    [REQ_FAILED] = {{"errors", "errors", SHOW_MACHINE, true, false}, false},
    [REQ_UNANSWERED] = {{"unanswered", "unanswered", SHOW_MACHINE, true, false}, false},
    [REQ_RESULTS] = {{"results", "results", SHOW_MACHINE, false, false}, false},
    [REQ_PARAMETERS] = {{"parameters", "parameters", SHOW_MACHINE, true, false}, false},
    [REQ_PARAMETERS_LEAST] = {{"parameters_at_least", "at least", SHOW_MACHINE, false, false},
                              false},
    [REQ_PARAMETERS_TEXT] = {{"parameters_text", "params", SHOW_PEOPLE, true, false}, true},
    [REQ_CONNECTIONS] = {{"connections", "connections", SHOW_MACHINE, true, false}, false},
    [REQ_REUSED] = {{"reused_pct", "reused", SHOW_MACHINE, true, false}, false},
    [REQ_SEQUENTIAL] = {{"sequential", "in a row", SHOW_MACHINE, true, false}, false},
    [REQ_CHAIN] = {{"longest_chain", "chain", SHOW_MACHINE, true, false}, false},
    [REQ_CHAIN_MS] = {{"longest_chain_ms", "chain", SHOW_MACHINE, true, false}, false},
    [REQ_THREADS] = {{"threads", "threads", SHOW_MACHINE, true, false}, false},
    [REQ_ROLE] = {{"role", "role", SHOW_MACHINE, false, false}, false},
    [REQ_PROTOCOL] = {{"protocol", "protocol", SHOW_MACHINE, false, false}, true},
    [REQ_PEER] = {{"peer", "peer", SHOW_MACHINE, false, true}, true},
    [REQ_SERVICE] = {{"service", "service", SHOW_MACHINE, false, true}, false},
    [REQ_PEER_TEXT] = {{"asked_of", "peer", SHOW_PEOPLE, false, true}, true},
    [REQ_REMARKS] = {{"remarks", "remarks", SHOW_PEOPLE, false, true}, true},
    [REQ_WHERE] = {{"where", "where", SHOW_ALWAYS, false, true}, true},
    [REQ_STACK] = {{"stack", "stack", SHOW_MACHINE, false, false}, false},
};

static struct str text_of(const struct io_tables *tables, uint32_t id)
{
    const struct io *io = tables->sums->io;
    return id < io->text_count ? io->texts[id] : STR("");
}

static const char *role_name(enum request_role role)
{
    return role == REQUEST_SERVER ? "server" : role == REQUEST_INSIDE ? "inside" : "client";
}

static const char *protocol_word(enum request_protocol protocol)
{
    const char *name = protocol_name(protocol);
    return name ? name : "unknown";
}

/* {"200": 12, "404": 1}; keys are what the other side said, so they are data, not keys. */
static struct value results_list(const struct io_tables *tables,
                                 const struct io_request_group *group)
{
    static const struct column columns[] = {
        {"result", "result", SHOW_ALWAYS, false, false},
        {"count", "count", SHOW_ALWAYS, true, false},
    };
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    for (uint32_t i = 0; i < MIN(group->result_count, (uint32_t)RESULTS_SHOWN); i++) {
        const struct io_result *result = &tables->groups->results[group->result_first + i];
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_str(text_of(tables, result->text));
        row->cells[1] = value_uint(result->count, UNIT_COUNT);
    }
    return table;
}

/* "13 in a row", "2 failed" and the like: only what is the case. */
static const char *group_remarks(const struct io_tables *tables,
                                 const struct io_request_group *group)
{
    const char *text = "";
    if (group->role == REQUEST_SERVER)
        text = "answered by us";
    if (group->sequential >= IO_CHAIN_MIN)
        text = arena_printf(tables->arena, "%s%s%" PRIu64 " in a row", text, *text ? ", " : "",
                            group->sequential);
    if (group->tally.failed > 0)
        text = arena_printf(tables->arena, "%s%s%" PRIu64 " failed", text, *text ? ", " : "",
                            group->tally.failed);
    if (group->tally.unanswered > 0)
        text = arena_printf(tables->arena, "%s%s%" PRIu64 " unanswered", text, *text ? ", " : "",
                            group->tally.unanswered);
    return text;
}

static void group_uses(const struct io_tables *tables, const struct io_request_group *group,
                       struct value *cells)
{
    static const char not_single[] = "none of them is known by itself";
    const struct io_chain *chain = group->chain != SIZE_MAX ? &tables->groups->chains[group->chain]
                                                            : NULL;
    bool inside = group->role == REQUEST_INSIDE;
    cells[REQ_PARAMETERS] = value_uint(group->parameters, UNIT_COUNT);
    cells[REQ_PARAMETERS_LEAST] = value_bool(group->parameters_more);
    cells[REQ_PARAMETERS_TEXT] = value_text(group->parameters == 0
                                                ? ""
                                                : arena_printf(tables->arena, "%s%" PRIu64,
                                                               group->parameters_more ? "≥" : "",
                                                               group->parameters));
    cells[REQ_CONNECTIONS] = group->events > 0 ? value_uint(group->connections, UNIT_COUNT)
                                               : value_na(not_single);
    cells[REQ_REUSED] = inside ? value_na("there is no connection to it")
                               : io_pct(group->tally.reused, group->tally.count, "there was none");
    cells[REQ_SEQUENTIAL] = group->events > 0 ? value_uint(group->sequential, UNIT_COUNT)
                                              : value_na(not_single);
    cells[REQ_CHAIN] = value_uint(chain ? chain->count : 0, UNIT_COUNT);
    cells[REQ_CHAIN_MS] = io_ms(chain ? chain->sum_ns : 0);
    cells[REQ_THREADS] = value_uint(group->threads, UNIT_COUNT);
}

/* "postgresql 10.0.0.5:5432 shop": what it speaks, where it is, what it calls itself. */
static const char *peer_text(const struct io_tables *tables, const struct io_request_group *group)
{
    struct str peer = text_of(tables, group->peer), service = group->service;
    bool named = service.len > 0 && !str_eq(service, peer);
    return arena_printf(tables->arena, "%s%s%.*s%s%.*s", protocol_word(group->protocol),
                        peer.len > 0 ? " " : "", STR_FMT(peer), named ? " " : "",
                        named ? (int)service.len : 0, named ? service.data : "");
}

static void group_cells(const struct io_tables *tables, const struct io_request_group *group,
                        struct value *cells)
{
    struct arena *arena = tables->arena;
    const struct request_tally *tally = &group->tally;
    uint64_t count = MAX(tally->count, 1u);
    uint64_t answered = tally->count - MIN(tally->unanswered, tally->count);
    struct wait_tally waits = {0};
    memcpy(waits.buckets, tally->buckets, sizeof(waits.buckets));
    cells[REQ_TOTAL] = io_ms(tally->total_ns);
    cells[REQ_COUNT] = value_uint(tally->count, UNIT_COUNT);
    cells[REQ_MEAN] = value_real((double)tally->total_ns / (double)count / 1e6, UNIT_MS);
    cells[REQ_P50] = io_p(tally->buckets, tally->count, tally->max_ns, 0.5);
    cells[REQ_P99] = io_p(tally->buckets, tally->count, tally->max_ns, 0.99);
    cells[REQ_MAX] = io_ms(tally->max_ns);
    cells[REQ_HISTOGRAM] = wait_tables_histogram(arena, &waits);
    cells[REQ_FIRST_BYTE] = answered > 0
                                ? value_real((double)tally->first_byte_ns / (double)answered / 1e6,
                                             UNIT_MS)
                                : value_na("none was answered");
    cells[REQ_OUT] = value_uint(tally->bytes_out, UNIT_BYTES);
    cells[REQ_IN] = value_uint(tally->bytes_in, UNIT_BYTES);
    cells[REQ_FAILED] = value_uint(tally->failed, UNIT_COUNT);
    cells[REQ_UNANSWERED] = value_uint(tally->unanswered, UNIT_COUNT);
    cells[REQ_RESULTS] = results_list(tables, group);
    group_uses(tables, group, cells);
    cells[REQ_ROLE] = value_text(role_name(group->role));
    cells[REQ_PROTOCOL] = value_text(protocol_word(group->protocol));
    cells[REQ_PEER] = value_str(text_of(tables, group->peer));
    cells[REQ_SERVICE] = value_str(group->service);
    cells[REQ_PEER_TEXT] = value_text(peer_text(tables, group));
    cells[REQ_TEXT] = value_str(text_of(tables, group->text));
    cells[REQ_TEXT_SHORT] = value_text(io_text_short(arena, text_of(tables, group->text)));
    cells[REQ_REMARKS] = value_text(group_remarks(tables, group));
    cells[REQ_WHERE] = io_where(tables, group->stack);
    cells[REQ_STACK] = io_stack(tables, group->stack);
}

struct value io_tables_requests(const struct io_tables *tables)
{
    struct value table = io_table_begin(tables, request_columns, REQ_COLUMNS,
                                        "no request of a known protocol was seen");
    for (size_t i = 0; i < tables->groups->count; i++) {
        struct table_row *row = io_table_row(tables, &table, i);
        if (!row)
            break;
        group_cells(tables, &tables->groups->groups[i], row->cells);
    }
    return table;
}

/* ---- the waterfall ---- */

static const struct io_column waterfall_columns[] = {
    {{"start_ms", "start", SHOW_ALWAYS, true, false}, true},
    {{"first_byte_ms", "first byte", SHOW_MACHINE, true, false}, true},
    {{"end_ms", "end", SHOW_MACHINE, true, false}, true},
    {{"took_ms", "took", SHOW_ALWAYS, true, false}, true},
    {{"bar", "· waiting, # answer", SHOW_PEOPLE, false, false}, true},
    {{"tid", "tid", SHOW_ALWAYS, true, false}, true},
    {{"protocol", "protocol", SHOW_MACHINE, false, false}, true},
    {{"peer", "peer", SHOW_ALWAYS, false, true}, true},
    {{"connection", "conn", SHOW_ALWAYS, true, false}, true},
    {{"reused", "reused", SHOW_MACHINE, false, false}, true},
    {{"result", "result", SHOW_ALWAYS, false, false}, true},
    {{"text", "request", SHOW_ALWAYS, false, true}, true},
    {{"payload", "as it was said", SHOW_ALWAYS, false, true}, true},
};

struct scale {
    uint64_t start_ns, end_ns;
};

static unsigned column_at(const struct scale *scale, uint64_t ns)
{
    double whole = (double)MAX(scale->end_ns - scale->start_ns, 1u);
    double at = (double)(ns - scale->start_ns) / whole * BAR_COLUMNS;
    return at < 0 ? 0 : at > BAR_COLUMNS ? BAR_COLUMNS : (unsigned)at;
}

/* "      ·····##": dots until the first byte, then until the last. At least one sign. */
static const char *bar(struct arena *arena, const struct scale *scale,
                       const struct request_event *event)
{
    char text[BAR_COLUMNS * 2 + 8];
    size_t len = 0;
    uint64_t first_ns = event->first_byte_ns ? event->first_byte_ns : event->end_ns;
    unsigned start = MIN(column_at(scale, event->start_ns), (unsigned)BAR_COLUMNS - 1);
    unsigned first = MAX(column_at(scale, first_ns), start);
    unsigned end = MIN(MAX(column_at(scale, event->end_ns), start + 1), (unsigned)BAR_COLUMNS);
    for (unsigned i = 0; i < end && len + 3 < sizeof(text); i++) {
        if (i < start)
            text[len++] = ' ';
        else if (i < first && !(event->first_byte_ns && i + 1 == end)) {
            text[len++] = '\xc2'; /* "·" */
            text[len++] = '\xb7';
        } else
            text[len++] = event->flags & REQUEST_UNANSWERED ? '?' : '#';
    }
    return arena_dup_len(arena, text, len);
}

static void event_cells(const struct io_tables *tables, const struct scale *scale,
                        const struct request_event *event, struct value *cells)
{
    const struct io *io = tables->sums->io;
    const struct request_info *info = &io->requests[event->request].info;
    struct str text = text_of(tables, info->text), peer = text_of(tables, info->peer);
    bool answered = !(event->flags & REQUEST_UNANSWERED);
    cells[0] = io_ms(event->start_ns - scale->start_ns);
    cells[1] = answered && event->first_byte_ns >= event->start_ns
                   ? io_ms(event->first_byte_ns - scale->start_ns)
                   : value_na("it was not answered");
    cells[2] = io_ms(event->end_ns - scale->start_ns);
    cells[3] = io_ms(event->end_ns - event->start_ns);
    cells[4] = value_text(bar(tables->arena, scale, event));
    cells[5] = value_uint(io->profile.threads[info->thread].tid, UNIT_NONE);
    cells[6] = value_text(protocol_word(info->protocol));
    cells[7] = value_str(peer);
    cells[8] = io_some(event->connection, UNIT_NONE);
    cells[9] = value_bool(event->flags & REQUEST_REUSED);
    cells[10] = value_str(text_of(tables, info->result));
    cells[11] = value_text(io_text_short(tables->arena, text));
    cells[12] = value_str(text_of(tables, event->payload));
}

struct value io_tables_waterfall(const struct io_tables *tables, const char **ret_title)
{
    const struct io *io = tables->sums->io;
    struct value table = io_table_begin(tables, waterfall_columns, ARRAY_SIZE(waterfall_columns),
                                        "no request is known by itself");
    const struct io_chain *chain = tables->groups->chain_count > 0 ? &tables->groups->chains[0]
                                                                   : NULL;
    size_t all = MIN(chain ? (size_t)chain->count : io->event_count, (size_t)WATERFALL_ROWS_MAX);
    size_t count = tables->limit == 0 ? all : MIN(all, tables->limit);
    struct scale scale = {0};
    for (size_t i = 0; i < count; i++) {
        const struct request_event *event = &io->events[chain ? chain->events[i] : i];
        scale.start_ns = i == 0 ? event->start_ns : MIN(scale.start_ns, event->start_ns);
        scale.end_ns = MAX(scale.end_ns, event->end_ns);
    }
    for (size_t i = 0; i < all; i++) {
        struct table_row *row = io_table_row(tables, &table, i);
        if (!row)
            break;
        event_cells(tables, &scale, &io->events[chain ? chain->events[i] : i], row->cells);
    }
    *ret_title = chain ? arena_printf(tables->arena,
                                      "One after another: the longest row of requests, %zu of "
                                      "%" PRIu64,
                                      count, chain->count)
                       : arena_printf(tables->arena, "The first %zu of %zu requests", count,
                                      io->event_count);
    return table;
}

/* ---- notes ---- */

struct value io_tables_notes(const struct io_tables *tables)
{
    static const struct column columns[] = {
        {"kind", "kind", SHOW_MACHINE, false, false},
        {"text", "what", SHOW_ALWAYS, false, true},
        {"count", "count", SHOW_MACHINE, true, false},
        {"total_ms", "time", SHOW_MACHINE, true, false},
        {"where", "where", SHOW_ALWAYS, false, true},
        {"stack", "stack", SHOW_MACHINE, false, false},
    };
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    if (table.table)
        table.table->empty = "nothing stands out";
    for (size_t i = 0; i < tables->notes->count; i++) {
        const struct io_note *note = &tables->notes->notes[i];
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_text(io_note_name(note->kind));
        row->cells[1] = value_text(note->text);
        row->cells[2] = value_uint(note->count, UNIT_COUNT);
        row->cells[3] = note->ns == UINT64_MAX ? value_na("no time was measured") : io_ms(note->ns);
        row->cells[4] = io_where(tables, note->stack);
        row->cells[5] = io_stack(tables, note->stack);
    }
    return table;
}
