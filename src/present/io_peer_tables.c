/* Peers on sockets, and block devices, as tables; see io_tables.h. */
#include "present/io_table_parts.h"

#include "present/wait_tables.h"
#include "protocol/protocol.h"

enum {
    PEER_TOTAL,
    PEER_PCT,
    PEER_WALL,
    PEER_CALLS,
    PEER_ERRORS,
    PEER_ERRORS_TEXT,
    PEER_SENDS,
    PEER_SENT,
    PEER_SENT_TEXT,
    PEER_RECEIVES,
    PEER_RECEIVED,
    PEER_RECEIVED_TEXT,
    PEER_COPIED,
    PEER_SOCKETS,
    PEER_CONNECTS,
    PEER_CONNECT_MS,
    PEER_ACCEPTS,
    PEER_LATENCY,
    PEER_P50,
    PEER_P99,
    PEER_MAX,
    PEER_SHAPE,
    PEER_IDLE,
    PEER_IDLE_MS,
    PEER_IDLE_TEXT,
    PEER_ROLE,
    PEER_NAME,
    PEER_PROTOCOL,
    PEER_SERVICE,
    PEER_WHERE,
    PEER_STACK,
    PEER_COLUMNS
};

static const struct io_column peer_columns[PEER_COLUMNS] = {
    [PEER_TOTAL] = {{"total_ms", "time", SHOW_ALWAYS, true, false}, true},
    [PEER_PCT] = {{"pct", "%", SHOW_ALWAYS, true, false}, true},
    [PEER_WALL] = {{"wall_pct", "of wall", SHOW_ALWAYS, true, false}, false},
    [PEER_CALLS] = {{"calls", "calls", SHOW_ALWAYS, true, false}, true},
    [PEER_ERRORS] = {{"errors", "errors", SHOW_MACHINE, true, false}, false},
    [PEER_ERRORS_TEXT] = {{"errors_text", "errors", SHOW_PEOPLE, true, false}, false},
    [PEER_SENDS] = {{"sends", "sends", SHOW_MACHINE, true, false}, false},
    [PEER_SENT] = {{"sent_bytes", "sent", SHOW_MACHINE, true, false}, false},
    [PEER_SENT_TEXT] = {{"sent", "sent", SHOW_PEOPLE, true, false}, true},
    [PEER_RECEIVES] = {{"receives", "receives", SHOW_MACHINE, true, false}, false},
    [PEER_RECEIVED] = {{"received_bytes", "received", SHOW_MACHINE, true, false}, false},
    [PEER_RECEIVED_TEXT] = {{"received", "received", SHOW_PEOPLE, true, false}, true},
    [PEER_COPIED] = {{"copied_bytes", "copied", SHOW_MACHINE, true, false}, false},
    [PEER_SOCKETS] = {{"sockets", "sockets", SHOW_ALWAYS, true, false}, true},
    [PEER_CONNECTS] = {{"connects", "connects", SHOW_MACHINE, true, false}, false},
    [PEER_CONNECT_MS] = {{"connect_ms", "connecting", SHOW_MACHINE, true, false}, false},
    [PEER_ACCEPTS] = {{"accepts", "accepts", SHOW_MACHINE, true, false}, false},
    [PEER_LATENCY] = {{"latency", "latency", SHOW_MACHINE, false, false}, false},
    [PEER_P50] = {{"p50", "p50", SHOW_PEOPLE, true, false}, false},
    [PEER_P99] = {{"p99", "p99", SHOW_PEOPLE, true, false}, true},
    [PEER_MAX] = {{"max", "max", SHOW_PEOPLE, true, false}, true},
    [PEER_SHAPE] = {{"shape", WAIT_SHAPE_TITLE, SHOW_PEOPLE, false, false}, false},
    [PEER_IDLE] = {{"idle_calls", "idle", SHOW_MACHINE, true, false}, false},
    [PEER_IDLE_MS] = {{"idle_ms", "idle", SHOW_MACHINE, true, false}, false},
    [PEER_IDLE_TEXT] = {{"idle", "idle", SHOW_PEOPLE, true, false}, false},
    [PEER_ROLE] = {{"role", "role", SHOW_ALWAYS, false, false}, true},
    [PEER_NAME] = {{"name", "peer", SHOW_ALWAYS, false, true}, true},
    [PEER_PROTOCOL] = {{"protocol", "protocol", SHOW_ALWAYS, false, false}, true},
    [PEER_SERVICE] = {{"service", "service", SHOW_ALWAYS, false, true}, true},
    [PEER_WHERE] = {{"where", "where", SHOW_ALWAYS, false, true}, false},
    [PEER_STACK] = {{"stack", "stack", SHOW_MACHINE, false, false}, false},
};

/* "client": we ask this peer; "server": this is our own address, others ask. */
static const char *role_name(uint32_t flags)
{
    return flags & OBJECT_LISTENING ? "listening"
           : flags & OBJECT_CLIENT  ? "client"
           : flags & OBJECT_SERVER  ? "server"
                                    : "";
}

static void peer_counts(const struct io_peer *peer, struct value *cells)
{
    cells[PEER_ERRORS] = value_uint(peer->errors, UNIT_COUNT);
    cells[PEER_ERRORS_TEXT] = io_some(peer->errors, UNIT_COUNT);
    cells[PEER_SENDS] = value_uint(peer->sent.calls, UNIT_COUNT);
    cells[PEER_SENT] = value_uint(peer->sent.bytes, UNIT_BYTES);
    cells[PEER_SENT_TEXT] = io_some(peer->sent.bytes, UNIT_BYTES);
    cells[PEER_RECEIVES] = value_uint(peer->received.calls, UNIT_COUNT);
    cells[PEER_RECEIVED] = value_uint(peer->received.bytes, UNIT_BYTES);
    cells[PEER_RECEIVED_TEXT] = io_some(peer->received.bytes, UNIT_BYTES);
    cells[PEER_COPIED] = value_uint(peer->copies.bytes, UNIT_BYTES);
    cells[PEER_SOCKETS] = value_uint(peer->sockets, UNIT_COUNT);
    cells[PEER_CONNECTS] = value_uint(peer->connects.calls, UNIT_COUNT);
    cells[PEER_CONNECT_MS] = io_ms(peer->connects.ns);
    cells[PEER_ACCEPTS] = value_uint(peer->accepts.calls, UNIT_COUNT);
    cells[PEER_IDLE] = value_uint(peer->idle_calls, UNIT_COUNT);
    cells[PEER_IDLE_MS] = io_ms(peer->idle_ns);
    cells[PEER_IDLE_TEXT] = io_some_ms(peer->idle_ns);
}

static void peer_cells(const struct io_tables *tables, const struct io_peer *peer,
                       struct value *cells)
{
    const struct io_sums *sums = tables->sums;
    const struct call_tally *tally = &peer->tally;
    cells[PEER_TOTAL] = io_ms(tally->total_ns);
    cells[PEER_PCT] = io_pct(tally->total_ns, sums->busy_ns, "no time was measured");
    cells[PEER_WALL] = io_pct(tally->total_ns, sums->wall_ns, "no time has passed");
    cells[PEER_CALLS] = value_uint(tally->count, UNIT_COUNT);
    peer_counts(peer, cells);
    cells[PEER_LATENCY] = io_latency(tables->arena, tally->buckets, tally->count, tally->max_ns);
    cells[PEER_P50] = tally->count > 0 ? io_p(tally->buckets, tally->count, tally->max_ns, 0.5)
                                       : value_text("");
    cells[PEER_P99] = tally->count > 0 ? io_p(tally->buckets, tally->count, tally->max_ns, 0.99)
                                       : value_text("");
    cells[PEER_MAX] = io_some_ms(tally->max_ns);
    cells[PEER_SHAPE] = value_text(io_shape(tables->arena, tally->buckets));
    cells[PEER_ROLE] = value_text(role_name(peer->flags));
    cells[PEER_NAME] = value_str(io_object_name(tables, peer->object));
    const char *protocol = peer->protocol ? protocol_name((enum request_protocol)peer->protocol)
                                          : NULL;
    cells[PEER_PROTOCOL] = value_text(protocol ? protocol : "");
    cells[PEER_SERVICE] = value_str(peer->service);
    cells[PEER_WHERE] = io_where(tables, peer->stack);
    cells[PEER_STACK] = io_stack(tables, peer->stack);
}

struct value io_tables_peers(const struct io_tables *tables)
{
    struct value table = io_table_begin(tables, peer_columns, PEER_COLUMNS, "no socket was used");
    for (size_t i = 0; i < tables->sums->peer_count; i++) {
        struct table_row *row = io_table_row(tables, &table, i);
        if (!row)
            break;
        peer_cells(tables, &tables->sums->peers[i], row->cells);
    }
    return table;
}

/* ---- devices ---- */

enum {
    DEVICE_NAME,
    DEVICE_OP,
    DEVICE_COUNT,
    DEVICE_BYTES,
    DEVICE_MEAN,
    DEVICE_TOTAL,
    DEVICE_LATENCY,
    DEVICE_P50,
    DEVICE_P99,
    DEVICE_MAX,
    DEVICE_SHAPE,
    DEVICE_SIZES,
    DEVICE_SIZES_SHAPE,
    DEVICE_DEPTH,
    DEVICE_DEPTH_TEXT,
    DEVICE_DEPTH_MAX,
    DEVICE_COLUMNS
};

static const struct io_column device_columns[DEVICE_COLUMNS] = {
    [DEVICE_NAME] = {{"device", "device", SHOW_ALWAYS, false, false}, true},
    [DEVICE_OP] = {{"op", "operation", SHOW_ALWAYS, false, false}, true},
    [DEVICE_COUNT] = {{"count", "count", SHOW_ALWAYS, true, false}, true},
    [DEVICE_BYTES] = {{"bytes", "bytes", SHOW_ALWAYS, true, false}, true},
    [DEVICE_MEAN] = {{"mean_bytes", "mean size", SHOW_ALWAYS, true, false}, false},
    [DEVICE_TOTAL] = {{"total_ms", "time", SHOW_ALWAYS, true, false}, true},
    [DEVICE_LATENCY] = {{"latency", "latency", SHOW_MACHINE, false, false}, false},
    [DEVICE_P50] = {{"p50", "p50", SHOW_PEOPLE, true, false}, true},
    [DEVICE_P99] = {{"p99", "p99", SHOW_PEOPLE, true, false}, true},
    [DEVICE_MAX] = {{"max", "max", SHOW_PEOPLE, true, false}, true},
    [DEVICE_SHAPE] = {{"shape", WAIT_SHAPE_TITLE, SHOW_PEOPLE, false, false}, false},
    [DEVICE_SIZES] = {{"sizes", "sizes", SHOW_MACHINE, false, false}, false},
    [DEVICE_SIZES_SHAPE] = {{"sizes_shape", IO_SIZES_TITLE, SHOW_PEOPLE, false, false}, false},
    [DEVICE_DEPTH] = {{"mean_depth", "depth", SHOW_MACHINE, true, false}, false},
    [DEVICE_DEPTH_TEXT] = {{"depth", "mean depth", SHOW_PEOPLE, true, false}, true},
    [DEVICE_DEPTH_MAX] = {{"max_depth", "max depth", SHOW_ALWAYS, true, false}, true},
};

/* Depth is counted for all operations of a device together, in the row of its reads. */
static const struct device_tally *depth_of(const struct io *io, uint32_t number)
{
    for (size_t i = 1; i < io->device_count; i++)
        if (io->devices[i].info.number == number && io->devices[i].info.op == DEVICE_READ)
            return &io->devices[i].tally;
    return NULL;
}

static void device_cells(const struct io_tables *tables, const struct device_row *device,
                         struct value *cells)
{
    static const char *const ops[] = {"read", "write", "flush", "discard"};
    static const char no_depth[] = "how many were under way was not counted";
    const struct device_tally *tally = &device->tally;
    const struct device_tally *depth = depth_of(tables->sums->io, device->info.number);
    bool known = depth && depth->depth_max > 0 && tables->sums->wall_ns > 0;
    double mean = known ? (double)depth->depth_ns / (double)tables->sums->wall_ns : 0;
    cells[DEVICE_NAME] = value_str(device->info.name);
    cells[DEVICE_OP] = value_text(device->info.op < DEVICE_OPS ? ops[device->info.op] : "other");
    cells[DEVICE_COUNT] = value_uint(tally->count, UNIT_COUNT);
    cells[DEVICE_BYTES] = value_uint(tally->bytes, UNIT_BYTES);
    cells[DEVICE_MEAN] = tally->count > 0
                             ? value_real((double)tally->bytes / (double)tally->count, UNIT_BYTES)
                             : value_na("there was none");
    cells[DEVICE_TOTAL] = io_ms(tally->total_ns);
    cells[DEVICE_LATENCY] = io_latency(tables->arena, tally->buckets, tally->count, tally->max_ns);
    cells[DEVICE_P50] = io_p(tally->buckets, tally->count, tally->max_ns, 0.5);
    cells[DEVICE_P99] = io_p(tally->buckets, tally->count, tally->max_ns, 0.99);
    cells[DEVICE_MAX] = io_ms(tally->max_ns);
    cells[DEVICE_SHAPE] = value_text(io_shape(tables->arena, tally->buckets));
    cells[DEVICE_SIZES] = io_sizes(tables->arena, tally->sizes);
    cells[DEVICE_SIZES_SHAPE] = value_text(io_sizes_shape(tables->arena, tally->sizes));
    cells[DEVICE_DEPTH] = known ? value_real(mean, UNIT_NONE) : value_na(no_depth);
    cells[DEVICE_DEPTH_TEXT] = value_text(
        known ? arena_printf(tables->arena, mean < 0.01 ? "<0.01" : "%.3g", mean) : "n/a");
    cells[DEVICE_DEPTH_MAX] = known ? value_uint(depth->depth_max, UNIT_COUNT) : value_na(no_depth);
}

size_t io_tables_device_count(const struct io_tables *tables)
{
    const struct io *io = tables->sums->io;
    size_t count = 0;
    for (size_t i = 1; i < io->device_count; i++)
        count += io->devices[i].tally.count > 0;
    return count;
}

/* The longest first. Few rows: what is left is looked through again for each. */
struct value io_tables_devices(const struct io_tables *tables)
{
    const struct io *io = tables->sums->io;
    struct value table = io_table_begin(tables, device_columns, DEVICE_COLUMNS,
                                        "no block device was used");
    bool *taken = arena_alloc(tables->arena, io->device_count + 1);
    size_t count = io_tables_device_count(tables);
    for (size_t n = 0; taken && n < count; n++) {
        size_t best = 0;
        for (size_t i = 1; i < io->device_count; i++)
            if (!taken[i] && io->devices[i].tally.count > 0 &&
                (best == 0 || io->devices[i].tally.total_ns > io->devices[best].tally.total_ns))
                best = i;
        struct table_row *row = io_table_row(tables, &table, n);
        if (!row || best == 0)
            break;
        taken[best] = true;
        device_cells(tables, &io->devices[best], row->cells);
    }
    return table;
}
