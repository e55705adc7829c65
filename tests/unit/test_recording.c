/* Promises of store/writer.h and store/reader.h: what goes into the sink comes
 * out of the file, and is there when they say so. */
#include "recording_helpers.h"

#include "model/sink_memory.h"

static bool same(struct str a, struct str b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Reads the whole recording into the memory sink, as any consumer would. */
static struct sink_memory copied;

static int to_text(void *context, const struct recorded_text *row)
{
    (void)context;
    uint32_t id = 0;
    assert_int_equal(sink_text(&copied.sink, row->text, &id), 0);
    assert_int_equal(id, row->id);
    return 0;
}
static int to_process(void *context, const struct recorded_process *row)
{
    (void)context;
    uint32_t id = 0;
    assert_int_equal(sink_process(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return row->ended ? sink_process_end(&copied.sink, id, row->end_ns, row->wait_status) : 0;
}
static int to_thread(void *context, const struct recorded_thread *row)
{
    (void)context;
    uint32_t id = 0;
    assert_int_equal(sink_thread(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return row->ended ? sink_thread_end(&copied.sink, id, row->end_ns) : 0;
}
static int to_image(void *context, const struct recorded_image *row)
{
    (void)context;
    uint32_t id = 0;
    assert_int_equal(sink_image(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return 0;
}
static int to_mapping(void *context, const struct recorded_mapping *row)
{
    (void)context;
    uint32_t id = 0;
    assert_int_equal(sink_mapping(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return row->ended ? sink_mapping_end(&copied.sink, id, row->end_ns) : 0;
}
static int to_frame(void *context, const struct recorded_frame *row)
{
    (void)context;
    uint32_t id = 0;
    assert_int_equal(sink_frame(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return 0;
}
static int to_function(void *context, const struct recorded_function *row)
{
    (void)context;
    uint32_t id = 0;
    assert_int_equal(sink_function(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return 0;
}
static int to_location(void *context, const struct location_info *row)
{
    (void)context;
    return sink_location(&copied.sink, row);
}
static int to_source_line(void *context, const struct recorded_source_line *row)
{
    (void)context;
    return sink_source_line(&copied.sink, row->file, row->line, row->text);
}
static int to_instruction(void *context, const struct recorded_instruction *row)
{
    (void)context;
    return sink_instruction(&copied.sink, row->image, row->address, row->size, row->text);
}
static int to_object(void *context, const struct recorded_object *row)
{
    (void)context;
    uint32_t id = 0;
    assert_int_equal(sink_object(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return 0;
}
static int to_wait(void *context, const struct recorded_wait *row)
{
    (void)context;
    uint32_t id = 0;
    assert_int_equal(sink_wait(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return sink_wait_add(&copied.sink, id, &row->tally);
}
static int to_call(void *context, const struct recorded_call *row)
{
    (void)context;
    uint32_t id;
    assert_int_equal(sink_call(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return sink_call_add(&copied.sink, id, &row->tally);
}
static int to_device(void *context, const struct recorded_device *row)
{
    (void)context;
    uint32_t id;
    assert_int_equal(sink_device(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return sink_device_add(&copied.sink, id, &row->tally);
}
static int to_connection(void *context, const struct recorded_connection *row)
{
    (void)context;
    uint32_t id;
    assert_int_equal(sink_connection(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    struct connection_end last = {row->closed_ns, row->info.flags, row->requests,
                                  row->bytes_out, row->bytes_in,   row->info.service};
    return sink_connection_end(&copied.sink, id, &last);
}
static int to_request(void *context, const struct recorded_request *row)
{
    (void)context;
    uint32_t id;
    assert_int_equal(sink_request(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return sink_request_add(&copied.sink, id, &row->tally);
}
static int to_request_event(void *context, const struct request_event *row)
{
    (void)context;
    return sink_request_event(&copied.sink, row);
}
static int to_wait_event(void *context, const struct wait_event *row)
{
    (void)context;
    return sink_wait_event(&copied.sink, row);
}
static int to_heap_site(void *context, const struct recorded_heap_site *row)
{
    (void)context;
    uint32_t id;
    assert_int_equal(sink_heap_site(&copied.sink, &row->info, &id), 0);
    assert_int_equal(id, row->id);
    return sink_heap_site_set(&copied.sink, id, &row->tally);
}
static int to_heap_process(void *context, const struct recorded_heap_process *row)
{
    (void)context;
    return sink_heap_process_set(&copied.sink, row->process, &row->tally);
}
static struct recording *reading;
static uint32_t copied_snapshot;
static int to_heap_snapshot_row(void *context, const struct heap_snapshot_row *row)
{
    (void)context;
    return row->snapshot == copied_snapshot ? sink_heap_snapshot_row(&copied.sink, row) : 0;
}
/* Its rows follow before the next one. */
static int to_heap_snapshot(void *context, const struct recorded_heap_snapshot *row)
{
    (void)context;
    assert_int_equal(sink_heap_snapshot(&copied.sink, &row->info, &copied_snapshot), 0);
    assert_int_equal(copied_snapshot, row->id);
    return recording_each_heap_snapshot_row(reading, to_heap_snapshot_row, NULL, NULL);
}
static int to_heap_moment(void *context, const struct heap_moment *row)
{
    (void)context;
    return sink_heap_moment(&copied.sink, row);
}
static int to_counter(void *context, const struct recorded_counter *row)
{
    (void)context;
    char name[64];
    snprintf(name, sizeof(name), "%.*s", STR_FMT(row->name));
    return sink_counter(&copied.sink, name, row->unit, row->value);
}
static int to_document(void *context, const struct recorded_document *row)
{
    (void)context;
    char name[64];
    snprintf(name, sizeof(name), "%.*s", STR_FMT(row->name));
    return sink_document(&copied.sink, name, row->json);
}

static void copy_stacks(struct recording *recording)
{
    for (uint32_t stack = 1; stack <= recording_count(recording, RECORDING_STACK); stack++) {
        uint32_t parent, frame, id;
        assert_int_equal(recording_stack_node(recording, stack, &parent, &frame, NULL), 0);
        assert_int_equal(sink_stack(&copied.sink, parent, frame, &id), 0);
        assert_int_equal(id, stack);
    }
}

static void copy_heap(struct recording *recording)
{
    reading = recording;
    assert_int_equal(recording_each_heap_site(recording, to_heap_site, NULL, NULL), 0);
    assert_int_equal(recording_each_heap_process(recording, to_heap_process, NULL, NULL), 0);
    assert_int_equal(recording_each_heap_snapshot(recording, to_heap_snapshot, NULL, NULL), 0);
    assert_int_equal(recording_each_heap_moment(recording, to_heap_moment, NULL, NULL), 0);
    struct heap_cursor *cursor;
    struct heap_block block;
    assert_int_equal(heap_cursor_open(recording, HEAP_ROWS_EVENTS, &cursor, NULL), 0);
    while (heap_cursor_next(cursor, &block, NULL) > 0)
        for (size_t i = 0; i < block.count; i++)
            assert_int_equal(sink_heap_event(&copied.sink, &block.events[i]), 0);
    heap_cursor_close(cursor);
}

static void copy_all(struct recording *recording)
{
    copied = SINK_MEMORY_INIT;
    assert_int_equal(recording_each_text(recording, to_text, NULL, NULL), 0);
    assert_int_equal(recording_each_process(recording, to_process, NULL, NULL), 0);
    assert_int_equal(recording_each_thread(recording, to_thread, NULL, NULL), 0);
    assert_int_equal(recording_each_image(recording, to_image, NULL, NULL), 0);
    assert_int_equal(recording_each_mapping(recording, to_mapping, NULL, NULL), 0);
    assert_int_equal(recording_each_frame(recording, to_frame, NULL, NULL), 0);
    assert_int_equal(recording_each_function(recording, to_function, NULL, NULL), 0);
    assert_int_equal(recording_each_location(recording, to_location, NULL, NULL), 0);
    assert_int_equal(recording_each_source_line(recording, to_source_line, NULL, NULL), 0);
    assert_int_equal(recording_each_instruction(recording, to_instruction, NULL, NULL), 0);
    assert_int_equal(recording_each_counter(recording, to_counter, NULL, NULL), 0);
    assert_int_equal(recording_each_document(recording, to_document, NULL, NULL), 0);
    copy_stacks(recording);
    assert_int_equal(recording_each_object(recording, to_object, NULL, NULL), 0);
    assert_int_equal(recording_each_wait(recording, to_wait, NULL, NULL), 0);
    assert_int_equal(recording_each_wait_event(recording, to_wait_event, NULL, NULL), 0);
    assert_int_equal(recording_each_call(recording, to_call, NULL, NULL), 0);
    assert_int_equal(recording_each_device(recording, to_device, NULL, NULL), 0);
    assert_int_equal(recording_each_connection(recording, to_connection, NULL, NULL), 0);
    assert_int_equal(recording_each_request(recording, to_request, NULL, NULL), 0);
    assert_int_equal(recording_each_request_event(recording, to_request_event, NULL, NULL), 0);
    copy_heap(recording);
}

static void assert_same_tables(const struct sink_memory *a, const struct sink_memory *b)
{
    assert_int_equal(a->interned.texts.len, b->interned.texts.len);
    for (uint32_t i = 1; i <= a->interned.texts.len; i++)
        assert_true(same(intern_get(&a->interned.texts, i), intern_get(&b->interned.texts, i)));
    assert_int_equal(a->interned.frames.len, b->interned.frames.len);
    for (uint32_t i = 1; i <= a->interned.frames.len; i++)
        assert_true(same(intern_get(&a->interned.frames, i), intern_get(&b->interned.frames, i)));
    assert_int_equal(a->interned.stacks.len, b->interned.stacks.len);
    assert_memory_equal(a->interned.stacks.data, b->interned.stacks.data,
                        a->interned.stacks.len * sizeof(struct stack_node));
    assert_int_equal(a->processes.len, b->processes.len);
    for (size_t i = 0; i < a->processes.len; i++) {
        const struct memory_process *x = &a->processes.data[i], *y = &b->processes.data[i];
        assert_true(x->info.pid == y->info.pid && x->info.parent == y->info.parent);
        assert_true(x->info.start_ns == y->info.start_ns && x->end_ns == y->end_ns);
        assert_int_equal(x->wait_status, y->wait_status);
        assert_true(same(x->info.exe, y->info.exe) && same(x->info.command, y->info.command));
    }
    assert_int_equal(a->threads.len, b->threads.len);
    for (size_t i = 0; i < a->threads.len; i++) {
        const struct memory_thread *x = &a->threads.data[i], *y = &b->threads.data[i];
        assert_true(x->info.tid == y->info.tid && x->info.process == y->info.process);
        assert_true(x->info.start_ns == y->info.start_ns && x->end_ns == y->end_ns);
        assert_true(same(x->info.name, y->info.name));
    }
    assert_int_equal(a->images.len, b->images.len);
    for (size_t i = 0; i < a->images.len; i++) {
        assert_true(a->images.data[i].kind == b->images.data[i].kind);
        assert_true(same(a->images.data[i].path, b->images.data[i].path));
        assert_true(same(a->images.data[i].build_id, b->images.data[i].build_id));
        assert_true(a->images.data[i].size_bytes == b->images.data[i].size_bytes);
    }
    assert_int_equal(a->mappings.len, b->mappings.len);
    assert_memory_equal(a->mappings.data, b->mappings.data,
                        a->mappings.len * sizeof(a->mappings.data[0]));
}

static void assert_same_texts(const struct sink_memory *a, const struct sink_memory *b)
{
    assert_int_equal(a->functions.len, b->functions.len);
    assert_memory_equal(a->functions.data, b->functions.data,
                        a->functions.len * sizeof(a->functions.data[0]));
    assert_int_equal(a->locations.len, b->locations.len);
    assert_memory_equal(a->locations.data, b->locations.data,
                        a->locations.len * sizeof(a->locations.data[0]));
    assert_int_equal(a->source_lines.len, b->source_lines.len);
    for (size_t i = 0; i < a->source_lines.len; i++) {
        assert_int_equal(a->source_lines.data[i].file, b->source_lines.data[i].file);
        assert_int_equal(a->source_lines.data[i].line, b->source_lines.data[i].line);
        assert_true(same(a->source_lines.data[i].text, b->source_lines.data[i].text));
    }
    assert_int_equal(a->instructions.len, b->instructions.len);
    for (size_t i = 0; i < a->instructions.len; i++) {
        assert_true(a->instructions.data[i].address == b->instructions.data[i].address);
        assert_int_equal(a->instructions.data[i].size, b->instructions.data[i].size);
        assert_true(same(a->instructions.data[i].text, b->instructions.data[i].text));
    }
    assert_int_equal(a->counters.len, b->counters.len);
    for (size_t i = 0; i < a->counters.len; i++) {
        const struct memory_counter *x = &a->counters.data[i];
        const struct memory_counter *y = sink_memory_counter(b, x->name);
        assert_true(y && x->unit == y->unit && x->value == y->value);
    }
    assert_int_equal(a->documents.len, b->documents.len);
    for (size_t i = 0; i < a->documents.len; i++) {
        assert_string_equal(a->documents.data[i].name, b->documents.data[i].name);
        assert_true(same(a->documents.data[i].json, b->documents.data[i].json));
    }
}

static void assert_same_waits(const struct sink_memory *a, const struct sink_memory *b)
{
    assert_int_equal(a->book.objects.len, b->book.objects.len);
    for (size_t i = 0; i < a->book.objects.len; i++) {
        const struct object_info *x = &a->book.objects.data[i].info,
                                 *y = &b->book.objects.data[i].info;
        assert_true(x->kind == y->kind && x->flags == y->flags && x->process == y->process);
        assert_true(x->key == y->key && same(x->name, y->name));
    }
    assert_int_equal(a->book.waits.len, b->book.waits.len);
    for (size_t i = 0; i < a->book.waits.len; i++) {
        const struct wait_row *x = &a->book.waits.data[i], *y = &b->book.waits.data[i];
        assert_memory_equal(&x->info, &y->info, sizeof(x->info));
        assert_memory_equal(&x->tally, &y->tally, sizeof(x->tally));
    }
    assert_int_equal(a->wait_events.len, b->wait_events.len);
    for (size_t i = 0; i < a->wait_events.len; i++) {
        const struct wait_event *x = &a->wait_events.data[i], *y = &b->wait_events.data[i];
        assert_true(x->wait == y->wait && x->start_ns == y->start_ns);
        assert_true(x->wake_ns == y->wake_ns && x->run_ns == y->run_ns);
    }
}

static void assert_same_calls(const struct call_book *a, const struct call_book *b)
{
    assert_int_equal(a->calls.len, b->calls.len);
    for (size_t i = 0; i < a->calls.len; i++) {
        const struct call_row *x = &a->calls.data[i], *y = &b->calls.data[i];
        assert_memory_equal(&x->info, &y->info, sizeof(x->info));
        assert_memory_equal(&x->tally, &y->tally, sizeof(x->tally));
    }
    assert_int_equal(a->devices.len, b->devices.len);
    for (size_t i = 0; i < a->devices.len; i++) {
        const struct device_row *x = &a->devices.data[i], *y = &b->devices.data[i];
        assert_true(x->info.number == y->info.number && x->info.op == y->info.op);
        assert_true(same(x->info.name, y->info.name));
        assert_memory_equal(&x->tally, &y->tally, sizeof(x->tally));
    }
    assert_int_equal(a->requests.len, b->requests.len);
    for (size_t i = 0; i < a->requests.len; i++) {
        const struct request_row *x = &a->requests.data[i], *y = &b->requests.data[i];
        assert_memory_equal(&x->info, &y->info, sizeof(x->info));
        assert_memory_equal(&x->tally, &y->tally, sizeof(x->tally));
    }
}

static void assert_same_connections(const struct sink_memory *a, const struct sink_memory *b)
{
    assert_int_equal(a->calls.connections.len, b->calls.connections.len);
    for (size_t i = 0; i < a->calls.connections.len; i++) {
        const struct connection_row *x = &a->calls.connections.data[i],
                                    *y = &b->calls.connections.data[i];
        assert_true(x->info.process == y->info.process && x->info.object == y->info.object);
        assert_true(x->info.protocol == y->info.protocol && x->info.role == y->info.role);
        assert_true(x->info.flags == y->info.flags && x->info.opened_ns == y->info.opened_ns);
        assert_true(same(x->info.peer, y->info.peer) && same(x->info.service, y->info.service));
        assert_true(x->closed_ns == y->closed_ns && x->requests == y->requests);
        assert_true(x->bytes_out == y->bytes_out && x->bytes_in == y->bytes_in);
    }
    assert_int_equal(a->request_events.len, b->request_events.len);
    for (size_t i = 0; i < a->request_events.len; i++)
        assert_memory_equal(&a->request_events.data[i], &b->request_events.data[i],
                            sizeof(a->request_events.data[i]));
}

static void assert_same_heap(const struct sink_memory *a, const struct sink_memory *b)
{
    assert_int_equal(a->heap.sites.len, b->heap.sites.len);
    for (size_t i = 0; i < a->heap.sites.len; i++) {
        const struct heap_site_row *x = &a->heap.sites.data[i], *y = &b->heap.sites.data[i];
        assert_memory_equal(&x->info, &y->info, sizeof(x->info));
        assert_memory_equal(&x->tally, &y->tally, sizeof(x->tally));
    }
    assert_int_equal(a->heap.processes.len, b->heap.processes.len);
    for (size_t i = 0; i < a->heap.processes.len; i++) {
        const struct heap_process_book *x = &a->heap.processes.data[i],
                                       *y = &b->heap.processes.data[i];
        assert_true(x->process == y->process && x->known == y->known);
        assert_memory_equal(&x->tally, &y->tally, sizeof(x->tally));
        assert_int_equal(x->moments.len, y->moments.len);
        for (size_t at = 0; at < x->moments.len; at++) {
            const struct heap_moment *m = &x->moments.data[at], *n = &y->moments.data[at];
            assert_true(m->process == n->process && m->time_ns == n->time_ns);
            assert_true(m->live_bytes == n->live_bytes && m->rss_bytes == n->rss_bytes);
        }
    }
}

static void assert_same_snapshots(const struct sink_memory *a, const struct sink_memory *b)
{
    assert_int_equal(a->heap_snapshots.len, b->heap_snapshots.len);
    for (size_t i = 0; i < a->heap_snapshots.len; i++) {
        const struct heap_snapshot_info *x = &a->heap_snapshots.data[i],
                                        *y = &b->heap_snapshots.data[i];
        assert_true(x->process == y->process && x->time_ns == y->time_ns && x->why == y->why);
    }
    assert_int_equal(a->heap_snapshot_rows.len, b->heap_snapshot_rows.len);
    assert_memory_equal(a->heap_snapshot_rows.data, b->heap_snapshot_rows.data,
                        a->heap_snapshot_rows.len * sizeof(a->heap_snapshot_rows.data[0]));
}

/* They come back put together by thread. */
static void assert_same_heap_events(const struct sink_memory *a, const struct sink_memory *b)
{
    size_t at = 0;
    assert_int_equal(a->heap_events.len, b->heap_events.len);
    for (uint32_t thread = 1; thread <= FIXTURE_THREADS; thread++)
        for (size_t i = 0; i < a->heap_events.len; i++)
            if (a->heap_events.data[i].thread == thread)
                assert_true(
                    fixture_same_event(&a->heap_events.data[i], &b->heap_events.data[at++]));
    assert_int_equal(at, a->heap_events.len);
}

static void every_call_of_the_sink_comes_back(void **state)
{
    (void)state;
    write_fixture(1000);
    AUTO(sink_memory_deinit) struct sink_memory given = SINK_MEMORY_INIT;
    struct fixture fixture;
    assert_int_equal(fixture_begin(&given.sink, &fixture), 0);
    assert_int_equal(fixture_samples(&given.sink, &fixture, 1000), 0);

    struct recording *recording = open_good();
    assert_true(recording_finished(recording));
    assert_string_equal(recording_writer_version(recording), "1.2.3");
    copy_all(recording);
    assert_same_tables(&given, &copied);
    assert_same_texts(&given, &copied);
    assert_same_waits(&given, &copied);
    assert_same_calls(&given.calls, &copied.calls);
    assert_same_connections(&given, &copied);
    assert_same_heap(&given, &copied);
    assert_same_snapshots(&given, &copied);
    assert_same_heap_events(&given, &copied);
    assert_int_equal(copied.heap_events.len, 1000 / FIXTURE_WAIT_EVERY);
    assert_int_equal(copied.request_events.len, 1000 / FIXTURE_WAIT_EVERY);
    assert_int_equal(copied.wait_events.len, 1000 / FIXTURE_WAIT_EVERY);
    assert_int_equal(recording_count(recording, RECORDING_OBJECT), 3);
    assert_int_equal(recording_count(recording, RECORDING_WAIT), FIXTURE_WAITS);
    for (uint32_t id = 1; id <= 2; id++) {
        const struct recorded_series *series = recording_series(recording, id);
        const struct series_info *info = &given.series.data[id - 1];
        assert_non_null(series);
        assert_string_equal(series->info.name, info->name);
        assert_string_equal(series->info.about, info->about);
        assert_true(series->info.kind == info->kind && series->info.unit == info->unit);
        assert_int_equal(series->samples, id == 1 ? 900 : 100);
    }
    assert_int_equal(recording_series_find(recording, "rss")->id, 2);
    assert_null(recording_series_find(recording, "nothing"));
    sink_memory_deinit(&copied);
    recording_close(recording);
}

static void samples_come_back_in_order_over_many_chunks(void **state)
{
    (void)state;
    struct fixture fixture = write_fixture(70001);
    struct recording *recording = open_good();
    assert_samples(recording, &fixture, 70001);
    recording_close(recording);
}

static void a_time_range_gives_exactly_its_samples(void **state)
{
    (void)state;
    struct fixture fixture = write_fixture(50000);
    struct recording *recording = open_good();
    static const uint64_t ranges[][2] = {{0, 0},
                                         {0, 10000},
                                         {17500, 17500},
                                         {20000, 30000},
                                         {30000000, 30000500},
                                         {49000000, UINT64_MAX},
                                         {UINT64_MAX, UINT64_MAX},
                                         {40000000, 30000000}};
    for (size_t k = 0; k < ARRAY_SIZE(ranges); k++) {
        uint64_t expected = 0, got = 0;
        for (uint64_t n = 0; n < 50000; n++) {
            struct sample sample = fixture_sample(&fixture, n);
            expected += sample.series == 1 && sample.time_ns >= ranges[k][0] &&
                        sample.time_ns <= ranges[k][1];
        }
        struct sample_cursor *cursor;
        struct sample_block block;
        assert_int_equal(
            sample_cursor_open(recording, 1, ranges[k][0], ranges[k][1], &cursor, NULL), 0);
        while (sample_cursor_next(cursor, &block, NULL) > 0) {
            for (size_t i = 0; i < block.count; i++)
                assert_true(block.time_ns[i] >= ranges[k][0] && block.time_ns[i] <= ranges[k][1]);
            got += block.count;
        }
        assert_int_equal(got, expected);
        sample_cursor_close(cursor);
    }
    recording_close(recording);
}

struct tally {
    uint64_t count, sum, highest;
};

static int to_tally(void *context, const struct recorded_total *row)
{
    struct tally *tally = &((struct tally *)context)[row->series - 1];
    tally->count += row->count;
    tally->sum += row->weight;
    tally->highest = MAX(tally->highest, row->weight);
    return 0;
}

static void totals_are_sums_and_for_levels_the_highest(void **state)
{
    (void)state;
    struct fixture fixture = write_fixture(40000);
    struct recording *recording = open_good();
    struct tally read[2] = {0}, given[2] = {0};
    assert_int_equal(recording_each_total(recording, to_tally, read, NULL), 0);
    for (uint64_t n = 0; n < 40000; n++) {
        struct sample sample = fixture_sample(&fixture, n);
        struct tally *tally = &given[sample.series - 1];
        tally->count++;
        tally->sum += sample.weight;
        tally->highest = MAX(tally->highest, sample.weight);
    }
    assert_true(read[0].count == given[0].count && read[0].sum == given[0].sum);
    assert_true(read[1].count == given[1].count && read[1].highest == given[1].highest);
    recording_close(recording);
}

static void a_second_later_samples_are_in_the_file(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    assert_int_equal(fixture_begin(sink, &fixture), 0);
    assert_int_equal(fixture_samples(sink, &fixture, 10), 0);
    assert_int_equal(recording_writer_committed(writer), 0);
    fake_now_ns += 999999999;
    assert_int_equal(recording_writer_tick(writer), 0);
    assert_int_equal(recording_writer_committed(writer), 0);
    fake_now_ns += 2;
    assert_int_equal(recording_writer_tick(writer), 0);
    assert_int_equal(recording_writer_committed(writer), 10);
    /* Without ticks, the samples themselves drive the clock. */
    fake_now_ns += 2000000000;
    assert_int_equal(fixture_samples(sink, &fixture, 300), 0);
    assert_true(recording_writer_committed(writer) >= 256);
    struct sample late = fixture_sample(&fixture, 1);
    late.time_ns = fake_now_ns += 1000000001;
    assert_int_equal(sink_sample(sink, &late), 0);
    assert_int_equal(recording_writer_committed(writer), 311);
    recording_writer_close(writer);
}

static void slow_series_do_not_end_in_tiny_chunks(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    struct why why = {0};
    assert_int_equal(fixture_begin(sink, &fixture), 0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(fixture_samples(sink, &fixture, 50), 0);
        assert_int_equal(recording_writer_commit(writer), 0);
    }
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    struct recording *recording = open_good();
    int64_t chunks;
    assert_int_equal(db_int(recording_db(recording), "SELECT count(*) FROM chunk", &chunks), 0);
    assert_in_range(chunks, 2, 5);
    assert_samples(recording, &fixture, 10000);
    recording_close(recording);
}

static void what_was_committed_can_be_read_while_recording(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    assert_int_equal(fixture_begin(sink, &fixture), 0);
    assert_int_equal(fixture_samples(sink, &fixture, 5000), 0);
    assert_int_equal(recording_writer_commit(writer), 0);
    assert_int_equal(fixture_samples(sink, &fixture, 20000), 0);
    struct recording *recording = open_good();
    assert_false(recording_finished(recording));
    assert_samples(recording, &fixture, 5000);
    assert_int_equal(recording_writer_commit(writer), 0);
    recording_close(recording);
    recording_writer_close(writer);
    recording = open_good();
    assert_false(recording_finished(recording));
    assert_samples(recording, &fixture, 25000);
    recording_close(recording);
}

static void a_reader_does_not_keep_the_writer_from_finishing(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    struct sample_cursor *cursor;
    struct sample_block block;
    struct why why = {0};
    assert_int_equal(fixture_begin(sink, &fixture), 0);
    assert_int_equal(fixture_samples(sink, &fixture, 40000), 0);
    assert_int_equal(recording_writer_commit(writer), 0);
    struct recording *recording = open_good();
    assert_int_equal(sample_cursor_open(recording, 1, SAMPLES_ALL, &cursor, &why), 0);
    assert_int_equal(sample_cursor_next(cursor, &block, &why), 1);
    assert_int_equal(fixture_samples(sink, &fixture, 5000), 0);
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    /* The reader still sees what it began with. */
    uint64_t seen = block.count;
    while (sample_cursor_next(cursor, &block, &why) > 0)
        seen += block.count;
    assert_int_equal(seen, 36000);
    sample_cursor_close(cursor);
    recording_close(recording);
    recording = open_good();
    assert_true(recording_finished(recording));
    assert_samples(recording, &fixture, 45000);
    recording_close(recording);
}

static void a_bad_id_is_refused_and_the_recording_goes_on(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    struct why why = {0};
    uint32_t id = 77;
    assert_int_equal(fixture_begin(sink, &fixture), 0);
    static const struct sample bad[] = {{.series = 0},
                                        {.series = 3},
                                        {.series = 1, .thread = 4},
                                        {.series = 1, .stack = 1000},
                                        {.series = 1, .time_ns = UINT64_MAX},
                                        {.series = 1, .weight = UINT64_MAX}};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(sink_sample(sink, &bad[i]), -EINVAL);
    assert_int_equal(sink_stack(sink, 1000, 1, &id), -EINVAL);
    assert_int_equal(sink_stack(sink, 0, 0, &id), -EINVAL);
    assert_int_equal(sink_frame(sink, &(struct frame_info){.image = 9}, &id), -EINVAL);
    assert_int_equal(sink_thread(sink, &(struct thread_info){.process = 9}, &id), -EINVAL);
    assert_int_equal(sink_thread_end(sink, 9, 1), -EINVAL);
    assert_int_equal(sink_mapping_end(sink, 0, 1), -EINVAL);
    assert_int_equal(sink_series(sink, &(struct series_info){.name = "cpu"}, &id), -EINVAL);
    size_t huge = INTERNED_TEXT_BYTES_MAX + 1;
    char *text = calloc(1, huge);
    assert_int_equal(sink_text(sink, (struct str){text, huge}, &id), -E2BIG);
    free(text);
    assert_int_equal(id, 77);
    assert_int_equal(recording_writer_dropped(writer), 6);
    assert_int_equal(fixture_samples(sink, &fixture, 100), 0);
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    struct recording *recording = open_good();
    assert_samples(recording, &fixture, 100);
    int64_t lost;
    assert_int_equal(db_int(recording_db(recording),
                            "SELECT value FROM counter WHERE name = 'loss.store_invalid'", &lost),
                     0);
    assert_int_equal(lost, 6);
    recording_close(recording);
}

static void the_same_thing_gets_the_same_id(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture first, second;
    assert_int_equal(fixture_stacks(sink, &first), -EINVAL); /* no process yet */
    struct process_info process = {.pid = 1};
    uint32_t id;
    assert_int_equal(sink_process(sink, &process, &id), 0);
    assert_int_equal(sink_process(sink, &process, &id), 0);
    assert_int_equal(fixture_stacks(sink, &first), 0);
    assert_int_equal(recording_writer_commit(writer), 0);
    assert_int_equal(fixture_stacks(sink, &second), 0);
    assert_memory_equal(first.stacks, second.stacks, sizeof(first.stacks));
    recording_writer_close(writer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(every_call_of_the_sink_comes_back),
        TEST(samples_come_back_in_order_over_many_chunks),
        TEST(a_time_range_gives_exactly_its_samples),
        TEST(totals_are_sums_and_for_levels_the_highest),
        TEST(a_second_later_samples_are_in_the_file),
        TEST(slow_series_do_not_end_in_tiny_chunks),
        TEST(what_was_committed_can_be_read_while_recording),
        TEST(a_reader_does_not_keep_the_writer_from_finishing),
        TEST(a_bad_id_is_refused_and_the_recording_goes_on),
        TEST(the_same_thing_gets_the_same_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
