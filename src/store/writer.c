/* The sink of a recording. Names, frames and stacks are interned in memory and
 * become rows at a commit, samples become chunks (writer_series.c); all other
 * rows are few and are written at once, inside the open transaction. */
#include "store/writer.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "store/db.h"
#include "store/schema.h"
#include "store/writer_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many samples may pass before the clock is looked at. Samples of live
 * collectors carry the time themselves; this is for imported, old ones. */
enum { CLOCK_EVERY = 256 };

static struct recording_writer *of(struct sink *sink)
{
    return (struct recording_writer *)sink; /* the sink is its first member */
}

static int write_text(struct sink *sink, struct str text, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    bool fresh;
    return writer->error
               ? writer->error
               : writer_settle(writer, interned_text(&writer->interned, text, ret_id, &fresh));
}

static int write_process(struct sink *sink, const struct process_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (info->parent > writer->processes)
        return -EINVAL;
    if (writer->processes >= WRITER_ROWS_MAX || info->exe.len > INTERNED_TEXT_BYTES_MAX ||
        info->command.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    int r = writer_put(writer, SQL_PROCESS, "iiiiss", (int64_t)writer->processes + 1,
                       (int64_t)info->pid, (int64_t)info->parent, (int64_t)info->start_ns,
                       info->exe, info->command);
    if (r == 0)
        *ret_id = ++writer->processes;
    return r;
}

static int write_process_program(struct sink *sink, uint32_t process, struct str exe,
                                 struct str command)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (process == 0 || process > writer->processes)
        return -EINVAL;
    if (exe.len > INTERNED_TEXT_BYTES_MAX || command.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    return writer_put(writer, SQL_PROCESS_PROGRAM, "iss", (int64_t)process, exe, command);
}

static int write_process_end(struct sink *sink, uint32_t process, uint64_t end_ns, int wait_status)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (process == 0 || process > writer->processes)
        return -EINVAL;
    return writer_put(writer, SQL_PROCESS_END, "iii", (int64_t)process, (int64_t)end_ns,
                      (int64_t)wait_status);
}

static int write_thread(struct sink *sink, const struct thread_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (info->process > writer->processes)
        return -EINVAL;
    if (writer->threads >= WRITER_ROWS_MAX || info->name.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    int r = writer_put(writer, SQL_THREAD, "iiiis", (int64_t)writer->threads + 1,
                       (int64_t)info->process, (int64_t)info->tid, (int64_t)info->start_ns,
                       info->name);
    if (r == 0)
        *ret_id = ++writer->threads;
    return r;
}

static int write_thread_end(struct sink *sink, uint32_t thread, uint64_t end_ns)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (thread == 0 || thread > writer->threads)
        return -EINVAL;
    return writer_put(writer, SQL_THREAD_END, "ii", (int64_t)thread, (int64_t)end_ns);
}

static int write_image(struct sink *sink, const struct image_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    const char *kind = schema_image_kind_name(info->kind);
    if (!kind)
        return -EINVAL;
    bool fresh;
    uint32_t id;
    int r = writer_settle(writer, interned_image(&writer->interned, info, &id, &fresh));
    if (r == 0 && fresh)
        r = writer_put(writer, SQL_IMAGE, "isssi", (int64_t)id, str_from(kind), info->path,
                       info->build_id, (int64_t)info->size_bytes);
    if (r == 0)
        *ret_id = id;
    return r;
}

static int write_mapping(struct sink *sink, const struct mapping_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (info->process > writer->processes || info->image > writer->interned.images.len)
        return -EINVAL;
    if (writer->mappings >= WRITER_ROWS_MAX)
        return -E2BIG;
    int r = writer_put(writer, SQL_MAPPING, "iiiiiii", (int64_t)writer->mappings + 1,
                       (int64_t)info->process, (int64_t)info->image, (int64_t)info->start_ns,
                       (int64_t)info->address, (int64_t)info->size_bytes,
                       (int64_t)info->file_offset);
    if (r == 0)
        *ret_id = ++writer->mappings;
    return r;
}

static int write_mapping_end(struct sink *sink, uint32_t mapping, uint64_t end_ns)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (mapping == 0 || mapping > writer->mappings)
        return -EINVAL;
    return writer_put(writer, SQL_MAPPING_END, "ii", (int64_t)mapping, (int64_t)end_ns);
}

static int write_frame(struct sink *sink, const struct frame_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (!schema_frame_kind_name(info->kind))
        return -EINVAL;
    bool fresh;
    return writer_settle(writer, interned_frame(&writer->interned, info, ret_id, &fresh));
}

static int write_stack(struct sink *sink, uint32_t parent, uint32_t frame, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    bool fresh;
    return writer->error ? writer->error
                         : writer_settle(writer, interned_stack(&writer->interned, parent, frame,
                                                                ret_id, &fresh));
}

static int write_function(struct sink *sink, const struct function_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    bool fresh;
    uint32_t id;
    int r = writer_settle(writer, interned_function(&writer->interned, info, &id, &fresh));
    if (r == 0 && fresh)
        r = writer_put(writer, SQL_FUNCTION, "iiiiiiii", (int64_t)id, (int64_t)info->name,
                       (int64_t)info->linkage, (int64_t)info->file, (int64_t)info->line,
                       (int64_t)info->image, (int64_t)info->address, (int64_t)info->size_bytes);
    if (r == 0)
        *ret_id = id;
    return r;
}

static int write_location(struct sink *sink, const struct location_info *info)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    const struct interned *interned = &writer->interned;
    if (info->frame == 0 || info->frame > interned->frames.len ||
        info->function > interned->functions.len || info->file > interned->texts.len)
        return -EINVAL;
    const int64_t row[] = {info->frame, info->depth, info->function, info->file, info->line};
    return writer_bulk_put(writer, BULK_LOCATION, row);
}

static int write_source_line(struct sink *sink, uint32_t file, uint32_t line, struct str text)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (file == 0 || file > writer->interned.texts.len)
        return -EINVAL;
    if (text.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    return writer_put(writer, SQL_SOURCE_LINE, "iis", (int64_t)file, (int64_t)line, text);
}

static int write_instruction(struct sink *sink, uint32_t image, uint64_t address, uint32_t size,
                             struct str text)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (image == 0 || image > writer->interned.images.len)
        return -EINVAL;
    if (text.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    return writer_put(writer, SQL_INSTRUCTION, "iiis", (int64_t)image, (int64_t)address,
                      (int64_t)size, text);
}

static int series_add(struct recording_writer *writer, const struct series_info *info)
{
    struct series_buffer buffer;
    if (VEC_RESERVE(&writer->series, writer->series.len + 1) < 0 ||
        series_buffer_init(&buffer, info->kind) < 0)
        return writer_fail_errno(writer, ENOMEM, "add to");
    writer->series.data[writer->series.len++] = buffer;
    return 0;
}

static int write_series(struct sink *sink, const struct series_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    struct str name = str_from(info->name), about = str_from(info->about);
    const char *kind = schema_series_kind_name(info->kind);
    const char *unit = schema_unit_name(info->unit);
    if (name.len == 0 || !kind || !unit || intern_find(&writer->series_names, name) != 0)
        return -EINVAL;
    if (writer->series.len >= WRITER_SERIES_MAX || name.len > INTERNED_TEXT_BYTES_MAX ||
        about.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    uint32_t id;
    int r = writer_settle(writer, intern_add(&writer->series_names, name, &id, NULL));
    if (r == 0)
        r = series_add(writer, info);
    if (r == 0)
        r = writer_put(writer, SQL_SERIES, "issss", (int64_t)id, name, str_from(kind),
                       str_from(unit), about);
    if (r == 0)
        *ret_id = id;
    return r;
}

static bool sample_is_good(const struct recording_writer *writer, const struct sample *sample)
{
    return sample->series != 0 && sample->series <= writer->series.len &&
           sample->thread <= writer->threads && sample->stack <= writer->interned.stacks.len &&
           sample->time_ns <= INT64_MAX && sample->weight <= INT64_MAX;
}

static int tick(struct recording_writer *writer)
{
    writer->since_clock = 0;
    return writer->clock_ns() >= writer->due_ns ? recording_writer_commit(writer) : 0;
}

static int write_sample(struct sink *sink, const struct sample *sample)
{
    struct recording_writer *writer = of(sink);
    if (!sample_is_good(writer, sample)) {
        writer->invalid++;
        return writer->error ? writer->error : -EINVAL;
    }
    writer->given++;
    if (writer->error)
        return writer->error;
    struct chunk_columns *columns = &writer->series.data[sample->series - 1].columns;
    uint32_t at = columns->samples++;
    columns->time_ns[at] = sample->time_ns;
    columns->thread[at] = sample->thread;
    columns->stack[at] = sample->stack;
    columns->weight[at] = sample->weight;
    if (at + 1 == CHUNK_SAMPLES) {
        int r = series_seal(writer, sample->series);
        if (r < 0)
            return r;
    }
    if (sample->time_ns >= writer->due_ns || ++writer->since_clock >= CLOCK_EVERY)
        return tick(writer);
    return 0;
}

static int write_counter(struct sink *sink, const char *name, enum unit unit, uint64_t add)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    struct str text = str_from(name);
    if (text.len == 0 || !schema_unit_name(unit))
        return -EINVAL;
    uint32_t id = intern_find(&writer->counter_names, text);
    if (id == 0) {
        if (writer->counters.len >= WRITER_COUNTERS_MAX || text.len > INTERNED_TEXT_BYTES_MAX)
            return -E2BIG;
        struct counter_value counter = {.unit = unit};
        if (VEC_RESERVE(&writer->counters, writer->counters.len + 1) < 0 ||
            intern_add(&writer->counter_names, text, &id, NULL) < 0)
            return writer_fail_errno(writer, ENOMEM, "add to");
        writer->counters.data[writer->counters.len++] = counter;
    }
    struct counter_value *counter = &writer->counters.data[id - 1];
    if (__builtin_add_overflow(counter->value, add, &counter->value) || counter->value > INT64_MAX)
        counter->value = INT64_MAX;
    counter->dirty = true;
    return 0;
}

static int write_document(struct sink *sink, const char *name, struct str json)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    struct str text = str_from(name);
    if (text.len == 0)
        return -EINVAL;
    if (text.len > INTERNED_TEXT_BYTES_MAX || json.len > WRITER_BLOB_BYTES_MAX)
        return -E2BIG;
    return writer_put(writer, SQL_DOCUMENT, "ss", text, json);
}

static const struct sink_ops writer_ops = {
    .text = write_text,
    .process = write_process,
    .process_program = write_process_program,
    .process_end = write_process_end,
    .thread = write_thread,
    .thread_end = write_thread_end,
    .image = write_image,
    .mapping = write_mapping,
    .mapping_end = write_mapping_end,
    .frame = write_frame,
    .stack = write_stack,
    .function = write_function,
    .location = write_location,
    .source_line = write_source_line,
    .instruction = write_instruction,
    .series = write_series,
    .sample = write_sample,
    .counter = write_counter,
    .document = write_document,
    .object = writer_object,
    .object_name = writer_object_name,
    .wait = writer_wait,
    .wait_add = writer_wait_add,
    .wait_event = writer_wait_event,
    .call = writer_call,
    .call_add = writer_call_add,
    .device = writer_device,
    .device_add = writer_device_add,
    .connection = writer_connection,
    .connection_end = writer_connection_end,
    .request = writer_request,
    .request_add = writer_request_add,
    .request_event = writer_request_event,
    .heap_site = writer_heap_site,
    .heap_site_set = writer_heap_site_set,
    .heap_process_set = writer_heap_process_set,
    .heap_snapshot = writer_heap_snapshot,
    .heap_snapshot_row = writer_heap_snapshot_row,
    .heap_moment = writer_heap_moment,
    .heap_event = writer_heap_event,
};

static int flush_interned(struct recording_writer *writer)
{
    const struct interned *interned = &writer->interned;
    int r = 0;
    for (; writer->texts_written < interned->texts.len && r == 0; writer->texts_written++)
        r = writer_put(writer, SQL_TEXT, "is", (int64_t)writer->texts_written + 1,
                       interned->texts.texts[writer->texts_written]);
    for (; writer->frames_written < interned->frames.len && r == 0; writer->frames_written++) {
        struct frame_info frame = interned_frame_get(interned,
                                                     (uint32_t)writer->frames_written + 1);
        const int64_t row[] = {(int64_t)writer->frames_written + 1,
                               frame.kind,
                               frame.reason,
                               frame.image,
                               (int64_t)frame.address,
                               frame.name};
        r = writer_bulk_put(writer, BULK_FRAME, row);
    }
    for (; writer->stacks_written < interned->stacks.len && r == 0; writer->stacks_written++) {
        const struct stack_node *node = &interned->stacks.data[writer->stacks_written];
        const int64_t row[] = {(int64_t)writer->stacks_written + 1, node->parent, node->frame};
        r = writer_bulk_put(writer, BULK_STACK, row);
    }
    return r;
}

static int flush_counters(struct recording_writer *writer)
{
    int r = 0;
    for (size_t i = 0; i < writer->counters.len && r == 0; i++) {
        struct counter_value *counter = &writer->counters.data[i];
        if (!counter->dirty)
            continue;
        r = writer_put(writer, SQL_COUNTER, "ssi",
                       intern_get(&writer->counter_names, (uint32_t)i + 1),
                       str_from(schema_unit_name(counter->unit)), (int64_t)counter->value);
        counter->dirty = false;
    }
    return r;
}

int recording_writer_commit(struct recording_writer *writer)
{
    if (writer->error)
        return writer->error;
    int r = flush_interned(writer);
    for (uint32_t id = 1; id <= writer->series.len && r == 0; id++)
        r = series_flush(writer, id);
    if (r == 0)
        r = writer_waits_flush(writer);
    if (r == 0)
        r = writer_calls_flush(writer);
    if (r == 0)
        r = writer_heap_flush(writer);
    if (r == 0)
        r = flush_counters(writer);
    if (r == 0)
        r = writer_bulk_flush(writer);
    if (r < 0)
        return r;
    if (writer->in_transaction) {
        errno = 0; /* db_errno() looks at it after a failed write */
        int rc = sqlite3_step(writer->sql[SQL_COMMIT]);
        int reset = sqlite3_reset(writer->sql[SQL_COMMIT]);
        if (rc != SQLITE_DONE)
            return writer_fail(writer, reset != SQLITE_OK ? reset : rc, "write");
        writer->in_transaction = false;
    }
    writer->committed = writer->given;
    writer->due_ns = writer->clock_ns() + writer->interval_ns;
    writer->since_clock = 0;
    return 0;
}

int recording_writer_tick(struct recording_writer *writer)
{
    return writer->error ? writer->error : tick(writer);
}

/* One file: the log goes back into it, synced this once. Another program that
 * reads just now keeps SQLite from ending the log; then it stays beside the
 * file until the last of them closes it, and nothing is lost. */
static int fold(struct recording_writer *writer)
{
    writer_unprepare(writer);
    sqlite3_busy_timeout(writer->db, 500); /* readers may stay for long: do not wait for them */
    int rc = db_exec(writer->db, "PRAGMA synchronous = NORMAL; PRAGMA wal_checkpoint(TRUNCATE);"
                                 "PRAGMA journal_mode = DELETE");
    if ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED) {
        log_warning("'%s' is being read: its log (-wal) stays beside it for now", writer->path);
        return 0;
    }
    return rc == SQLITE_OK ? 0 : writer_fail(writer, rc, "finish");
}

int recording_writer_finish(struct recording_writer *writer, struct why *why)
{
    int r = writer->error;
    if (r == 0 && writer->invalid > 0)
        r = write_counter(&writer->sink, "loss.store_invalid", UNIT_COUNT, writer->invalid);
    if (r == 0)
        r = writer_put(writer, SQL_META, "si", STR("finished_mono_ns"),
                       (int64_t)writer->clock_ns());
    if (r == 0)
        r = writer_put(writer, SQL_META, "si", STR("finished"), (int64_t)1);
    if (r == 0)
        r = recording_writer_commit(writer);
    if (r == 0)
        r = fold(writer);
    if (r < 0) {
        if (why)
            *why = writer->why;
        return r;
    }
    writer->finished = true;
    return 0;
}

/* The loss belongs into the file too. When the disk is full this may well fail
 * again; the missing 'finished' mark still tells readers that it was cut off. */
static void note_loss(struct recording_writer *writer)
{
    char *sql = sqlite3_mprintf("INSERT OR REPLACE INTO counter VALUES"
                                "('loss.store_failed', 'count', %lld);"
                                "INSERT OR REPLACE INTO meta VALUES('failure', %Q)",
                                (long long)(writer->given - writer->committed), writer->why.what);
    if (sql)
        (void)db_exec(writer->db, sql);
    sqlite3_free(sql);
}

void recording_writer_close(struct recording_writer *writer)
{
    if (!writer)
        return;
    if (writer->db && writer->error)
        note_loss(writer);
    writer_unprepare(writer);
    db_close(&writer->db);
    chunk_encoder_deinit(&writer->encoder);
    for (size_t i = 0; i < writer->series.len; i++)
        series_buffer_deinit(&writer->series.data[i]);
    VEC_FREE(&writer->series);
    VEC_FREE(&writer->counters);
    intern_deinit(&writer->series_names);
    intern_deinit(&writer->counter_names);
    interned_deinit(&writer->interned);
    wait_book_deinit(&writer->book);
    VEC_FREE(&writer->waits_dirty);
    writer_calls_deinit(writer);
    writer_heap_deinit(writer);
    free(writer->path);
    free(writer);
}

static int writer_start(struct recording_writer *writer, int *held, struct why *why)
{
    int r = writer_open_file(writer->path, &writer->db, why);
    fd_close(held);
    if (r < 0)
        return r;
    int rc = writer_prepare(writer);
    if (rc == SQLITE_OK)
        return 0;
    r = db_why(writer->db, rc, "open", writer->path, why);
    writer_unprepare(writer);
    db_close(&writer->db); /* takes the log with it */
    return r;
}

int recording_create(const char *path, const struct recording_opts *opts,
                     struct recording_writer **ret, struct why *why)
{
    if (!*path)
        return why_set(why, WHY_USAGE, EINVAL, "name a file with -o", "a recording needs a name");
    struct recording_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return why_nomem(why);
    writer->sink.ops = &writer_ops;
    writer->wait_events_max = WRITER_WAIT_EVENTS_MAX;
    writer->request_events_max = WRITER_REQUEST_EVENTS_MAX;
    writer->heap_snapshot_rows_max = WRITER_HEAP_SNAPSHOT_ROWS_MAX;
    writer->clock_ns = opts->clock_ns ? opts->clock_ns : clock_mono_ns;
    writer->interval_ns = opts->commit_interval_ns ? opts->commit_interval_ns : NS_PER_SEC;
    writer->path = strdup(path);
    AUTO(fd_close) int held = -1;
    int r = writer->path && chunk_encoder_init(&writer->encoder) == 0 ? 0 : why_nomem(why);
    if (r == 0)
        r = writer_create_file(path, opts->version, &held, why);
    if (r == 0) {
        r = writer_start(writer, &held, why);
        if (r < 0)
            writer_remove_file(path); /* ours, just made, and without a sample in it */
    }
    if (r < 0) {
        recording_writer_close(writer);
        return r;
    }
    writer->due_ns = writer->clock_ns() + writer->interval_ns;
    *ret = writer;
    return 0;
}

struct sink *recording_writer_sink(struct recording_writer *writer)
{
    return &writer->sink;
}

const struct why *recording_writer_why(const struct recording_writer *writer)
{
    return &writer->why;
}

uint64_t recording_writer_committed(const struct recording_writer *writer)
{
    return writer->committed;
}

uint64_t recording_writer_dropped(const struct recording_writer *writer)
{
    return writer->invalid + (writer->error ? writer->given - writer->committed : 0);
}
