/* Requests that a run made, by what was asked: who waits for the network wants to see for what. */
#include "present/run_tables.h"

#include "analyze/places.h"
#include "present/io_tables.h"
#include "protocol/protocol.h"

#include <math.h>

enum { REQUESTS_MAX = 20 };

static const struct column columns[] = {
    {"request", "request", SHOW_PEOPLE, false, true},
    {"text", "request", SHOW_MACHINE, false, false},
    {"count", "count", SHOW_ALWAYS, true, false},
    {"total_ms", "total", SHOW_ALWAYS, true, false},
    {"mean_ms", "mean", SHOW_ALWAYS, true, false},
    {"protocol", "protocol", SHOW_ALWAYS, false, false},
    {"peer", "peer", SHOW_ALWAYS, false, true},
    {"location", "where", SHOW_ALWAYS, false, true},
    {"source", "source", SHOW_MACHINE, false, false},
    {"owner", "owner", SHOW_MACHINE, false, false},
};

static struct str text_of(const struct io *io, uint32_t id)
{
    return id < io->text_count ? io->texts[id] : (struct str){0};
}

static struct value str_or(struct str text, const char *reason)
{
    return text.len > 0 ? value_str(text) : value_na(reason);
}

static void row_put(struct arena *arena, const struct evidence *evidence,
                    const struct io_request_group *group, struct value *cells)
{
    const struct io *io = &evidence->io;
    double scale = evidence->axes[AXIS_IO].scale > 0 ? evidence->axes[AXIS_IO].scale : 1;
    double total_ns = scale * (double)group->tally.total_ns;
    struct place place = place_of_stack(&io->profile, group->stack);
    const char *protocol = protocol_name(group->protocol), *source = run_source(arena, &place);
    cells[0] = value_text(io_text_short(arena, text_of(io, group->text)));
    cells[1] = str_or(text_of(io, group->text), "its text was not seen");
    cells[2] = value_uint(group->tally.count, UNIT_COUNT);
    cells[3] = value_real(total_ns / 1e6, UNIT_MS);
    cells[4] = value_real(total_ns / fmax((double)group->tally.count, 1) / 1e6, UNIT_MS);
    cells[5] = value_text(protocol ? protocol : "unknown");
    cells[6] = str_or(text_of(io, group->peer), "not known");
    cells[7] = value_text(place_text(arena, &place));
    cells[8] = *source ? value_text(source) : value_na(run_source_na(arena, &place));
    cells[9] = value_text(finding_owner_name(place.owner));
}

struct value run_request_table(struct arena *arena, const struct interpretation *run, size_t max)
{
    const struct evidence *evidence = run->evidence;
    const struct io_request_groups *groups = &evidence->requests;
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    size_t count = 0;
    for (size_t i = 0; evidence_has(evidence, AXIS_IO) && i < groups->count; i++) {
        if (groups->groups[i].role == REQUEST_SERVER || count == REQUESTS_MAX)
            continue;
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row_put(arena, evidence, &groups->groups[i], row->cells);
        row->show = count++ < max ? SHOW_ALWAYS : SHOW_MACHINE;
    }
    return table;
}
