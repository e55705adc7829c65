/* Rows of the plain tables as structs, every number checked on the way. */
#include "store/db.h"
#include "store/reader_parts.h"
#include "store/schema.h"
#include "store/wait_buckets.h"

#include <errno.h>

/* One statement being read. The first damage is kept, later columns give 0. */
struct rows {
    struct recording *recording;
    const char *table;
    sqlite3_stmt *stmt;
    struct why *why;
    uint64_t row;
    uint64_t text_bytes;
    int error;
};

/* Pages may be shared by rows or lead back to themselves. SQLite follows them for ever, but no
 * honest table has more rows or text than its file has room for. */
enum {
    ROW_BYTES_LEAST = 4,
    TEXT_GROWTH_MOST = 2, /* a file in UTF-16 is read as UTF-8 */
};

static void rows_begin(struct rows *rows, struct recording *recording, const char *table,
                       const char *sql, struct why *why)
{
    *rows = (struct rows){.recording = recording, .table = table, .why = why};
    int rc = sqlite3_prepare_v2(recording->db, sql, -1, &rows->stmt, NULL);
    if (rc != SQLITE_OK)
        rows->error = reader_fail(recording, rc, why);
}

static bool rows_next(struct rows *rows)
{
    if (rows->error)
        return false;
    int rc = sqlite3_step(rows->stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        rows->error = reader_fail(rows->recording, rc, rows->why);
    rows->row++;
    if (rc == SQLITE_ROW && rows->row > rows->recording->size_bytes / ROW_BYTES_LEAST)
        rows->error = reader_damage(rows->recording, rows->why,
                                    "table '%s': it has more rows than the file has room for",
                                    rows->table);
    return rc == SQLITE_ROW && !rows->error;
}

static int rows_end(struct rows *rows)
{
    db_finalize(&rows->stmt);
    return rows->error;
}

static void rows_damage(struct rows *rows, int column)
{
    if (rows->error == 0)
        rows->error = reader_damage(rows->recording, rows->why, "table '%s', row %llu: %s",
                                    rows->table, (unsigned long long)rows->row,
                                    sqlite3_column_name(rows->stmt, column));
}

/* Addresses and sizes use all 64 bits: SQLite's sign bit is one of them. */
static uint64_t rows_bits(struct rows *rows, int column)
{
    if (sqlite3_column_type(rows->stmt, column) != SQLITE_INTEGER)
        rows_damage(rows, column);
    return (uint64_t)sqlite3_column_int64(rows->stmt, column);
}

static uint64_t rows_number(struct rows *rows, int column, uint64_t max)
{
    uint64_t number = rows_bits(rows, column);
    if (number > max) {
        rows_damage(rows, column);
        return 0;
    }
    return number;
}

static uint32_t rows_u32(struct rows *rows, int column)
{
    return (uint32_t)rows_number(rows, column, UINT32_MAX);
}

/* An id of another table; 0 only where there may be none. */
static uint32_t rows_id(struct rows *rows, int column, enum recording_table table, bool optional)
{
    uint32_t id = (uint32_t)rows_number(rows, column, rows->recording->counts[table]);
    if (id == 0 && !optional)
        rows_damage(rows, column);
    return id;
}

/* The row's own id: 1, 2, 3, … without gaps. */
static uint32_t rows_own_id(struct rows *rows)
{
    uint32_t id = rows_u32(rows, 0);
    if (id != rows->row)
        rows_damage(rows, 0);
    return id;
}

static struct str rows_text(struct rows *rows, int column)
{
    int type = sqlite3_column_type(rows->stmt, column);
    const char *text = (const char *)sqlite3_column_text(rows->stmt, column);
    if (!text && type == SQLITE_TEXT && rows->error == 0)
        rows->error = why_nomem(rows->why);
    if (!text || type != SQLITE_TEXT) {
        rows_damage(rows, column);
        return (struct str){"", 0};
    }
    struct str found = {text, (size_t)sqlite3_column_bytes(rows->stmt, column)};
    rows->text_bytes += found.len;
    if (rows->text_bytes / TEXT_GROWTH_MOST > rows->recording->size_bytes && rows->error == 0)
        rows->error = reader_damage(rows->recording, rows->why,
                                    "table '%s': it has more text than the file has room for",
                                    rows->table);
    return found;
}

static int32_t rows_i32(struct rows *rows, int column)
{
    int64_t number = (int64_t)rows_bits(rows, column);
    if (number < INT32_MIN || number > INT32_MAX) {
        rows_damage(rows, column);
        return 0;
    }
    return (int32_t)number;
}

static struct str rows_blob(struct rows *rows, int column)
{
    const char *bytes = sqlite3_column_blob(rows->stmt, column);
    size_t size = (size_t)sqlite3_column_bytes(rows->stmt, column);
    if (!bytes && size > 0 && rows->error == 0)
        rows->error = why_nomem(rows->why);
    if (sqlite3_column_type(rows->stmt, column) != SQLITE_BLOB)
        rows_damage(rows, column);
    return (struct str){bytes, bytes ? size : 0};
}

static void rows_histogram(struct rows *rows, int column, uint32_t *ret,
                           bool (*decode)(const unsigned char *bytes, size_t size, uint32_t *ret))
{
    struct str blob = rows_blob(rows, column);
    if (!decode((const unsigned char *)blob.data, blob.len, ret))
        rows_damage(rows, column);
}

/* The same with counts of 64 bits. */
static void rows_histogram_u64(struct rows *rows, int column, uint64_t *ret,
                               bool (*decode)(const unsigned char *bytes, size_t size,
                                              uint64_t *ret))
{
    struct str blob = rows_blob(rows, column);
    if (!decode((const unsigned char *)blob.data, blob.len, ret))
        rows_damage(rows, column);
}

/* Counts, durations and bytes in columns that follow each other. */
static void rows_numbers(struct rows *rows, int column, uint64_t *const *ret, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *ret[i] = rows_number(rows, column + (int)i, INT64_MAX);
}

/* A duration behind a time; their sum is a time as well. */
static uint64_t rows_later(struct rows *rows, int column, uint64_t from_ns)
{
    uint64_t ns = rows_number(rows, column, INT64_MAX);
    if (from_ns + ns > INT64_MAX) {
        rows_damage(rows, column);
        return from_ns;
    }
    return from_ns + ns;
}

static int rows_kind(struct rows *rows, int column, int (*find)(const char *name))
{
    int kind = find(rows_text(rows, column).data);
    if (kind < 0) {
        rows_damage(rows, column);
        return 0;
    }
    return kind;
}

static bool rows_null(const struct rows *rows, int column)
{
    return sqlite3_column_type(rows->stmt, column) == SQLITE_NULL;
}

static uint64_t rows_end_ns(struct rows *rows, int column)
{
    return rows_null(rows, column) ? 0 : rows_bits(rows, column);
}

#define EACH(noun, type, sql)                                                                      \
    static void noun##_read(struct rows *rows, __typeof__(type) *row);                             \
    RECORDING_EACH(noun, type)                                                                     \
    {                                                                                              \
        struct rows rows;                                                                          \
        rows_begin(&rows, recording, #noun, sql, why);                                             \
        while (rows_next(&rows)) {                                                                 \
            type row = {0};                                                                        \
            noun##_read(&rows, &row);                                                              \
            if (rows.error == 0)                                                                   \
                rows.error = MIN(fn(context, &row), 0);                                            \
        }                                                                                          \
        return rows_end(&rows);                                                                    \
    }                                                                                              \
    static void noun##_read(struct rows *rows, __typeof__(type) *row)

EACH(text, struct recorded_text, "SELECT id, text FROM text ORDER BY id")
{
    row->id = rows_own_id(rows);
    row->text = rows_text(rows, 1);
}

EACH(process, struct recorded_process,
     "SELECT id, pid, parent, start_ns, end_ns, wait_status, exe, command FROM process ORDER BY id")
{
    row->id = rows_own_id(rows);
    row->info.pid = rows_u32(rows, 1);
    row->info.parent = rows_id(rows, 2, RECORDING_PROCESS, true);
    row->info.start_ns = rows_bits(rows, 3);
    row->ended = !rows_null(rows, 4);
    row->end_ns = rows_end_ns(rows, 4);
    row->wait_status = row->ended ? (int)(int64_t)rows_bits(rows, 5) : 0;
    row->info.exe = rows_text(rows, 6);
    row->info.command = rows_text(rows, 7);
}

EACH(thread, struct recorded_thread,
     "SELECT id, process, tid, start_ns, end_ns, name FROM thread ORDER BY id")
{
    row->id = rows_own_id(rows);
    row->info.process = rows_id(rows, 1, RECORDING_PROCESS, true);
    row->info.tid = rows_u32(rows, 2);
    row->info.start_ns = rows_bits(rows, 3);
    row->ended = !rows_null(rows, 4);
    row->end_ns = rows_end_ns(rows, 4);
    row->info.name = rows_text(rows, 5);
}

EACH(image, struct recorded_image,
     "SELECT id, kind, path, build_id, size_bytes FROM image ORDER BY id")
{
    row->id = rows_own_id(rows);
    row->info.kind = (enum image_kind)rows_kind(rows, 1, schema_image_kind_find);
    row->info.path = rows_text(rows, 2);
    row->info.build_id = rows_text(rows, 3);
    row->info.size_bytes = rows_bits(rows, 4);
}

EACH(mapping, struct recorded_mapping,
     "SELECT id, process, image, start_ns, end_ns, address, size_bytes, file_offset FROM mapping"
     " ORDER BY id")
{
    row->id = rows_own_id(rows);
    row->info.process = rows_id(rows, 1, RECORDING_PROCESS, true);
    row->info.image = rows_id(rows, 2, RECORDING_IMAGE, true);
    row->info.start_ns = rows_bits(rows, 3);
    row->ended = !rows_null(rows, 4);
    row->end_ns = rows_end_ns(rows, 4);
    row->info.address = rows_bits(rows, 5);
    row->info.size_bytes = rows_bits(rows, 6);
    row->info.file_offset = rows_bits(rows, 7);
}

EACH(frame, struct recorded_frame,
     "SELECT id, kind, reason, image, address, name FROM frame ORDER BY id")
{
    row->id = rows_own_id(rows);
    row->info.kind = (enum frame_kind)rows_kind(rows, 1, schema_frame_kind_find);
    row->info.reason = rows_u32(rows, 2);
    row->info.image = rows_id(rows, 3, RECORDING_IMAGE, true);
    row->info.address = rows_bits(rows, 4);
    row->info.name = rows_id(rows, 5, RECORDING_TEXT, true);
}

EACH(function, struct recorded_function,
     "SELECT id, name, linkage, file, line, image, address, size_bytes FROM function ORDER BY id")
{
    row->id = rows_own_id(rows);
    row->info.name = rows_id(rows, 1, RECORDING_TEXT, false);
    row->info.linkage = rows_id(rows, 2, RECORDING_TEXT, true);
    row->info.file = rows_id(rows, 3, RECORDING_TEXT, true);
    row->info.line = rows_u32(rows, 4);
    row->info.image = rows_id(rows, 5, RECORDING_IMAGE, true);
    row->info.address = rows_bits(rows, 6);
    row->info.size_bytes = rows_bits(rows, 7);
}

EACH(location, struct location_info,
     "SELECT frame, depth, function, file, line FROM location ORDER BY frame, depth")
{
    row->frame = rows_id(rows, 0, RECORDING_FRAME, false);
    row->depth = rows_u32(rows, 1);
    row->function = rows_id(rows, 2, RECORDING_FUNCTION, true);
    row->file = rows_id(rows, 3, RECORDING_TEXT, true);
    row->line = rows_u32(rows, 4);
}

EACH(total, struct recorded_total,
     "SELECT series, thread, stack, count, weight FROM total ORDER BY series, thread, stack")
{
    row->series = rows_id(rows, 0, RECORDING_SERIES, false);
    row->thread = rows_id(rows, 1, RECORDING_THREAD, true);
    row->stack = rows_id(rows, 2, RECORDING_STACK, true);
    row->count = rows_number(rows, 3, INT64_MAX);
    row->weight = rows_number(rows, 4, INT64_MAX);
}

EACH(object, struct recorded_object,
     "SELECT id, kind, flags, process, key, name FROM object ORDER BY id")
{
    row->id = rows_own_id(rows);
    row->info.kind = (enum object_kind)rows_kind(rows, 1, schema_object_kind_find);
    row->info.flags = rows_u32(rows, 2);
    row->info.process = rows_id(rows, 3, RECORDING_PROCESS, true);
    row->info.key = rows_bits(rows, 4);
    row->info.name = rows_text(rows, 5);
}

EACH(wait, struct recorded_wait,
     "SELECT id, kind, thread, stack, waker_thread, waker_stack, object, syscall, flags, detail,"
     " count, total_ns, max_ns, first_ns, last_ns, owned_ns, owner_off_ns, buckets"
     " FROM wait ORDER BY id")
{
    row->id = rows_own_id(rows);
    row->info.kind = (enum wait_kind)rows_kind(rows, 1, schema_wait_kind_find);
    row->info.thread = rows_id(rows, 2, RECORDING_THREAD, false);
    row->info.stack = rows_id(rows, 3, RECORDING_STACK, true);
    row->info.waker_thread = rows_id(rows, 4, RECORDING_THREAD, true);
    row->info.waker_stack = rows_id(rows, 5, RECORDING_STACK, true);
    row->info.object = rows_id(rows, 6, RECORDING_OBJECT, true);
    row->info.syscall = rows_i32(rows, 7);
    row->info.flags = rows_u32(rows, 8);
    row->info.detail = rows_u32(rows, 9);
    row->tally.count = rows_number(rows, 10, INT64_MAX);
    row->tally.total_ns = rows_number(rows, 11, INT64_MAX);
    row->tally.max_ns = rows_number(rows, 12, INT64_MAX);
    row->tally.first_ns = rows_number(rows, 13, INT64_MAX);
    row->tally.last_ns = rows_number(rows, 14, INT64_MAX);
    row->tally.owned_ns = rows_number(rows, 15, INT64_MAX);
    row->tally.owner_off_ns = rows_number(rows, 16, INT64_MAX);
    rows_histogram(rows, 17, row->tally.buckets, wait_buckets_decode);
}

EACH(wait_event, struct wait_event,
     "SELECT id, wait, start_ns, blocked_ns, runq_ns FROM wait_event ORDER BY id")
{
    (void)rows_own_id(rows);
    row->wait = rows_id(rows, 1, RECORDING_WAIT, false);
    row->start_ns = rows_number(rows, 2, INT64_MAX);
    row->wake_ns = rows_later(rows, 3, row->start_ns);
    row->run_ns = rows_later(rows, 4, row->wake_ns);
}

EACH(call, struct recorded_call,
     "SELECT id, thread, stack, object, syscall, error, flags, count, total_ns, max_ns, first_ns,"
     " last_ns, bytes, asked_bytes, partial, placed, sequential, missed, missed_bytes, buckets,"
     " sizes FROM call ORDER BY id")
{
    struct call_tally *tally = &row->tally;
    uint64_t *const numbers[] = {&tally->count,       &tally->total_ns, &tally->max_ns,
                                 &tally->first_ns,    &tally->last_ns,  &tally->bytes,
                                 &tally->asked_bytes, &tally->partial,  &tally->placed,
                                 &tally->sequential,  &tally->missed,   &tally->missed_bytes};
    row->id = rows_own_id(rows);
    row->info.thread = rows_id(rows, 1, RECORDING_THREAD, false);
    row->info.stack = rows_id(rows, 2, RECORDING_STACK, true);
    row->info.object = rows_id(rows, 3, RECORDING_OBJECT, true);
    row->info.syscall = rows_i32(rows, 4);
    row->info.error = rows_u32(rows, 5);
    row->info.flags = rows_u32(rows, 6);
    rows_numbers(rows, 7, numbers, ARRAY_SIZE(numbers));
    rows_histogram(rows, 19, tally->buckets, wait_buckets_decode);
    rows_histogram(rows, 20, tally->sizes, call_sizes_decode);
}

EACH(device, struct recorded_device,
     "SELECT id, number, op, name, count, bytes, total_ns, max_ns, first_ns, last_ns, depth_ns,"
     " depth_max, buckets, sizes FROM device ORDER BY id")
{
    struct device_tally *tally = &row->tally;
    uint64_t *const numbers[] = {&tally->count,    &tally->bytes,    &tally->total_ns,
                                 &tally->max_ns,   &tally->first_ns, &tally->last_ns,
                                 &tally->depth_ns, &tally->depth_max};
    row->id = rows_own_id(rows);
    row->info.number = rows_u32(rows, 1);
    row->info.op = (enum device_op)rows_kind(rows, 2, schema_device_op_find);
    row->info.name = rows_text(rows, 3);
    rows_numbers(rows, 4, numbers, ARRAY_SIZE(numbers));
    rows_histogram(rows, 12, tally->buckets, wait_buckets_decode);
    rows_histogram(rows, 13, tally->sizes, call_sizes_decode);
}

EACH(connection, struct recorded_connection,
     "SELECT id, process, object, protocol, role, flags, ifnull(opened_ns, 0) AS opened_ns,"
     " ifnull(closed_ns, 0) AS closed_ns, requests, bytes_out, bytes_in, peer, service"
     " FROM connection ORDER BY id")
{
    uint64_t *const numbers[] = {&row->info.opened_ns, &row->closed_ns, &row->requests,
                                 &row->bytes_out, &row->bytes_in};
    row->id = rows_own_id(rows);
    row->info.process = rows_id(rows, 1, RECORDING_PROCESS, true);
    row->info.object = rows_id(rows, 2, RECORDING_OBJECT, true);
    row->info.protocol = (enum request_protocol)rows_kind(rows, 3, schema_request_protocol_find);
    row->info.role = (enum request_role)rows_kind(rows, 4, schema_request_role_find);
    row->info.flags = rows_u32(rows, 5);
    rows_numbers(rows, 6, numbers, ARRAY_SIZE(numbers));
    row->info.peer = rows_text(rows, 11);
    row->info.service = rows_text(rows, 12);
}

EACH(request, struct recorded_request,
     "SELECT id, protocol, role, thread, stack, peer, text, result, count, total_ns, max_ns,"
     " first_byte_ns, first_ns, last_ns, bytes_out, bytes_in, failed, reused, unanswered,"
     " parameters, buckets FROM request ORDER BY id")
{
    struct request_tally *tally = &row->tally;
    uint64_t *const numbers[] = {&tally->count,         &tally->total_ns,   &tally->max_ns,
                                 &tally->first_byte_ns, &tally->first_ns,   &tally->last_ns,
                                 &tally->bytes_out,     &tally->bytes_in,   &tally->failed,
                                 &tally->reused,        &tally->unanswered, &tally->parameters};
    row->id = rows_own_id(rows);
    row->info.protocol = (enum request_protocol)rows_kind(rows, 1, schema_request_protocol_find);
    row->info.role = (enum request_role)rows_kind(rows, 2, schema_request_role_find);
    row->info.thread = rows_id(rows, 3, RECORDING_THREAD, true);
    row->info.stack = rows_id(rows, 4, RECORDING_STACK, true);
    row->info.peer = rows_id(rows, 5, RECORDING_TEXT, true);
    row->info.text = rows_id(rows, 6, RECORDING_TEXT, true);
    row->info.result = rows_id(rows, 7, RECORDING_TEXT, true);
    rows_numbers(rows, 8, numbers, ARRAY_SIZE(numbers));
    rows_histogram(rows, 20, tally->buckets, wait_buckets_decode);
}

EACH(request_event, struct request_event,
     "SELECT id, request, connection, start_ns, first_byte_ns, rest_ns, bytes_out, bytes_in,"
     " parameters, flags, payload FROM request_event ORDER BY id")
{
    (void)rows_own_id(rows);
    row->request = rows_id(rows, 1, RECORDING_REQUEST, false);
    row->connection = rows_id(rows, 2, RECORDING_CONNECTION, false);
    row->start_ns = rows_number(rows, 3, INT64_MAX);
    row->first_byte_ns = rows_later(rows, 4, row->start_ns);
    row->end_ns = rows_later(rows, 5, row->first_byte_ns);
    row->bytes_out = rows_number(rows, 6, INT64_MAX);
    row->bytes_in = rows_number(rows, 7, INT64_MAX);
    row->parameters = rows_bits(rows, 8);
    row->flags = rows_u32(rows, 9);
    row->payload = rows_id(rows, 10, RECORDING_TEXT, true);
}

EACH(heap_process, struct recorded_heap_process,
     "SELECT process, peak_bytes, peak_count, peak_ns, unseen_frees, inherited_frees,"
     " inherited_bytes, failed, life_unit_ns, sizes, lives FROM heap_process ORDER BY process")
{
    struct heap_process_tally *tally = &row->tally;
    uint64_t *const numbers[] = {
        &tally->peak_bytes,      &tally->peak_count,      &tally->peak_ns, &tally->unseen_frees,
        &tally->inherited_frees, &tally->inherited_bytes, &tally->failed,  &tally->life_unit_ns};
    row->process = rows_id(rows, 0, RECORDING_PROCESS, false);
    rows_numbers(rows, 1, numbers, ARRAY_SIZE(numbers));
    rows_histogram_u64(rows, 9, tally->sizes, heap_sizes_decode);
    rows_histogram_u64(rows, 10, tally->lives, heap_lives_decode);
}

EACH(heap_snapshot, struct recorded_heap_snapshot,
     "SELECT id, process, time_ns, why FROM heap_snapshot ORDER BY id")
{
    row->id = rows_own_id(rows);
    row->info.process = rows_id(rows, 1, RECORDING_PROCESS, false);
    row->info.time_ns = rows_number(rows, 2, INT64_MAX);
    row->info.why = (enum heap_snapshot_why)rows_kind(rows, 3, schema_heap_why_find);
}

EACH(heap_moment, struct heap_moment,
     "SELECT process, time_ns, live_bytes, rss_bytes FROM heap_moment ORDER BY process, number")
{
    row->process = rows_id(rows, 0, RECORDING_PROCESS, false);
    row->time_ns = rows_number(rows, 1, INT64_MAX);
    row->live_bytes = rows_number(rows, 2, INT64_MAX);
    row->rss_bytes = rows_number(rows, 3, INT64_MAX);
}

EACH(source_line, struct recorded_source_line,
     "SELECT file, line, text FROM source_line ORDER BY file, line")
{
    row->file = rows_id(rows, 0, RECORDING_TEXT, false);
    row->line = rows_u32(rows, 1);
    row->text = rows_text(rows, 2);
}

EACH(instruction, struct recorded_instruction,
     "SELECT image, address, size_bytes, text FROM instruction ORDER BY image, address")
{
    row->image = rows_id(rows, 0, RECORDING_IMAGE, false);
    row->address = rows_bits(rows, 1);
    row->size = rows_u32(rows, 2);
    row->text = rows_text(rows, 3);
}

EACH(counter, struct recorded_counter, "SELECT name, unit, value FROM counter ORDER BY name")
{
    row->name = rows_text(rows, 0);
    row->unit = (enum unit)rows_kind(rows, 1, schema_unit_find);
    row->value = rows_number(rows, 2, INT64_MAX);
}

EACH(document, struct recorded_document, "SELECT name, json FROM document ORDER BY name")
{
    row->name = rows_text(rows, 0);
    row->json = rows_text(rows, 1);
}
