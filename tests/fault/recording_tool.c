/* Writes and checks recordings for the fault tests; it is what gets killed, runs
 * out of disk and is denied memory.
 *
 *     recording-tool write PATH SAMPLES EVERY [finish|close|abandon]
 *     recording-tool check PATH AT_LEAST
 *
 * `write` prints "committed N" after every EVERY samples, once they are safe.
 * `check` compares every sample and every wait with what `write` gives, and the
 * totals with the samples, the rows of waits with their events; it prints "samples N" and whether
 * the recording was finished. */
#include "../unit/fixture.h"
#include "base/map.h"
#include "model/call_book.h"
#include "model/wait_book.h"
#include "store/reader.h"
#include "store/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int complain(const char *doing, int r, const struct why *why)
{
    fprintf(stderr, "recording-tool: %s: %s\n", doing, why->what[0] ? why->what : strerror(-r));
    return 5;
}

/* Not stdio: the test reads what was really said before the kill. */
static void say(const char *what, uint64_t number)
{
    char line[80];
    int len = snprintf(line, sizeof(line), "%s %" PRIu64 "\n", what, number);
    if (write(1, line, (size_t)len) != len)
        _exit(6);
}

static int write_samples(struct recording_writer *writer, uint64_t samples, uint64_t every)
{
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    int r = fixture_begin(sink, &fixture);
    while (r == 0 && fixture.samples < samples) {
        r = fixture_samples(sink, &fixture, MIN(every, samples - fixture.samples));
        if (r == 0)
            r = recording_writer_commit(writer);
        if (r == 0)
            say("committed", recording_writer_committed(writer));
    }
    return r;
}

static int tool_write(const char *path, uint64_t samples, uint64_t every, const char *how)
{
    struct recording_writer *writer;
    struct why why = {0};
    int r = recording_create(path, &(struct recording_opts){.version = "test"}, &writer, &why);
    if (r < 0)
        return complain("create", r, &why);
    r = write_samples(writer, samples, every);
    if (r < 0) {
        /* A collector that goes on loses samples, and they are counted. */
        struct sample sample = {.series = 1, .time_ns = 1};
        for (int i = 0; i < 100; i++)
            if (sink_sample(recording_writer_sink(writer), &sample) != r)
                return 9;
        int status = complain("write", r, recording_writer_why(writer));
        say("dropped", recording_writer_dropped(writer));
        recording_writer_close(writer);
        return status;
    }
    if (strcmp(how, "abandon") == 0)
        _exit(0);
    if (strcmp(how, "finish") == 0)
        r = recording_writer_finish(writer, &why);
    recording_writer_close(writer);
    return r < 0 ? complain("finish", r, &why) : 0;
}

struct tally {
    struct map_u64 sums[3];
    uint64_t totals;
    bool wrong;
};

static uint64_t *sum_at(struct map_u64 *map, uint32_t thread, uint32_t stack)
{
    uint64_t *sum = map_u64_at(map, (uint64_t)thread << 32 | stack, NULL);
    if (!sum)
        exit(5);
    return sum;
}

static int check_total(void *context, const struct recorded_total *row)
{
    struct tally *tally = context;
    if (row->series > 2 ||
        *sum_at(&tally->sums[row->series], row->thread, row->stack) != row->weight)
        tally->wrong = true;
    tally->totals++;
    return 0;
}

/* The ids that fixture_begin() gives out; they depend on nothing. */
static struct fixture expected_fixture(void)
{
    struct fixture fixture = {.cpu = 1, .rss = 2, .threads = {1, 2, 3}};
    for (uint32_t i = 0; i < FIXTURE_STACKS; i++)
        fixture.stacks[i] = 3 + i;
    return fixture;
}

static int check_series(struct recording *recording, uint32_t series, struct tally *tally,
                        uint64_t *ret_samples, struct why *why)
{
    struct fixture fixture = expected_fixture();
    struct sample_cursor *cursor;
    struct sample_block block;
    uint64_t n = 0;
    int r = sample_cursor_open(recording, series, SAMPLES_ALL, &cursor, why);
    if (r < 0)
        return r;
    while ((r = sample_cursor_next(cursor, &block, why)) > 0) {
        for (size_t i = 0; i < block.count; i++, n++) {
            struct sample sample = fixture_sample(&fixture, n);
            while (sample.series != series)
                sample = fixture_sample(&fixture, ++n);
            uint64_t *sum = sum_at(&tally->sums[series], block.thread[i], block.stack[i]);
            *sum = series == 1 ? *sum + block.weight[i] : MAX(*sum, block.weight[i]);
            tally->wrong = tally->wrong || block.time_ns[i] != sample.time_ns ||
                           block.thread[i] != sample.thread || block.stack[i] != sample.stack ||
                           block.weight[i] != sample.weight;
        }
        *ret_samples += block.count;
    }
    sample_cursor_close(cursor);
    return r;
}

struct wait_check {
    struct fixture fixture;
    struct wait_tally tallies[FIXTURE_WAITS]; /* of the events that are there */
    uint64_t events;
    uint32_t objects, waits;
    bool wrong;
};

static int check_event(void *context, const struct wait_event *row)
{
    struct wait_check *check = context;
    struct wait_event given = fixture_event(&check->fixture,
                                            check->events++ * (uint64_t)FIXTURE_WAIT_EVERY);
    struct wait_tally tally = fixture_tally(row);
    check->wrong = check->wrong || row->wait != given.wait || row->start_ns != given.start_ns ||
                   row->wake_ns != given.wake_ns || row->run_ns != given.run_ns;
    if (row->wait <= FIXTURE_WAITS)
        wait_tally_add(&check->tallies[row->wait - 1], &tally);
    return 0;
}

static int check_wait(void *context, const struct recorded_wait *row)
{
    struct wait_check *check = context;
    if (row->id > FIXTURE_WAITS ||
        memcmp(&row->tally, &check->tallies[row->id - 1], sizeof(row->tally)) != 0)
        check->wrong = true;
    check->waits++;
    return 0;
}

static int check_object(void *context, const struct recorded_object *row)
{
    struct wait_check *check = context;
    bool named = row->info.name.len > 0;
    if (named != (row->info.kind != OBJECT_KERNEL_LOCK))
        check->wrong = true;
    check->objects++;
    return 0;
}

/* With every eighth sample came a wait: whoever has the samples has these, too. A commit that
 * falls between a sample and its wait is the only way to have one less. */
static int check_waits(struct recording *recording, uint64_t samples, struct tally *tally,
                       struct why *why)
{
    struct wait_check check = {0};
    for (uint32_t i = 0; i < FIXTURE_WAITS; i++)
        check.fixture.waits[i] = i + 1;
    int r = recording_each_object(recording, check_object, &check, why);
    if (r == 0)
        r = recording_each_wait_event(recording, check_event, &check, why);
    if (r == 0)
        r = recording_each_wait(recording, check_wait, &check, why);
    uint64_t due = (samples + FIXTURE_WAIT_EVERY - 1) / FIXTURE_WAIT_EVERY;
    bool whole = samples == 0 || (check.waits == FIXTURE_WAITS && check.objects == 3);
    if (check.wrong || !whole || (check.events != due && check.events + 1 != due))
        tally->wrong = true;
    return r;
}

struct io_check {
    struct fixture fixture;
    struct call_tally calls[FIXTURE_CALLS]; /* of the events that are there */
    struct device_tally devices[FIXTURE_DEVICES];
    struct request_tally requests[FIXTURE_REQUESTS];
    uint64_t events;
    uint32_t rows;
    bool wrong;
};

static int check_request_event(void *context, const struct request_event *row)
{
    struct io_check *check = context;
    uint64_t at = check->events++;
    struct request_event given = fixture_request(&check->fixture,
                                                 at * (uint64_t)FIXTURE_WAIT_EVERY);
    struct call_tally call = fixture_call_tally(row);
    struct device_tally device = fixture_device_tally(row);
    struct request_tally request = fixture_request_tally(row);
    check->wrong = check->wrong || memcmp(row, &given, sizeof(given)) != 0;
    call_tally_add(&check->calls[at % FIXTURE_CALLS], &call);
    device_tally_add(&check->devices[at % FIXTURE_DEVICES], &device);
    request_tally_add(&check->requests[at % FIXTURE_REQUESTS], &request);
    return 0;
}

#define CHECK_ROWS(noun, count, sums)                                                              \
    static int check_##noun(void *context, const struct recorded_##noun *row)                      \
    {                                                                                              \
        struct io_check *check = context;                                                          \
        if (row->id > (count) ||                                                                   \
            memcmp(&row->tally, &check->sums[row->id - 1], sizeof(row->tally)) != 0)               \
            check->wrong = true;                                                                   \
        check->rows++;                                                                             \
        return 0;                                                                                  \
    }
CHECK_ROWS(call, FIXTURE_CALLS, calls)
CHECK_ROWS(device, FIXTURE_DEVICES, devices)
CHECK_ROWS(request, FIXTURE_REQUESTS, requests)

static int check_connection(void *context, const struct recorded_connection *row)
{
    struct io_check *check = context;
    check->wrong = check->wrong || row->info.peer.len != strlen("10.0.0.7:5432");
    check->rows++;
    return 0;
}

/* A call and a request came with every wait; a commit never falls in between them. */
static int check_io(struct recording *recording, uint64_t samples, struct tally *tally,
                    struct why *why)
{
    struct io_check check = {0};
    for (uint32_t i = 0; i < FIXTURE_CONNECTIONS; i++)
        check.fixture.connections[i] = i + 1;
    for (uint32_t i = 0; i < FIXTURE_REQUESTS; i++)
        check.fixture.requests[i] = i + 1;
    int r = recording_each_request_event(recording, check_request_event, &check, why);
    if (r == 0)
        r = recording_each_call(recording, check_call, &check, why);
    if (r == 0)
        r = recording_each_device(recording, check_device, &check, why);
    if (r == 0)
        r = recording_each_request(recording, check_request, &check, why);
    if (r == 0)
        r = recording_each_connection(recording, check_connection, &check, why);
    uint64_t due = (samples + FIXTURE_WAIT_EVERY - 1) / FIXTURE_WAIT_EVERY;
    uint32_t rows = FIXTURE_CALLS + FIXTURE_DEVICES + FIXTURE_REQUESTS + FIXTURE_CONNECTIONS;
    if (check.wrong || (samples > 0 && check.rows != rows) ||
        (check.events != due && check.events + 1 != due))
        tally->wrong = true;
    return r;
}

struct heap_check {
    struct fixture fixture;
    uint64_t events, of_thread[FIXTURE_THREADS];
    uint64_t last_ns;
    uint32_t rows, snapshots, snapshot_rows;
    bool wrong;
};

/* The last one that stayed is the one that came with the last event of its site. */
static int check_heap_site(void *context, const struct recorded_heap_site *row)
{
    struct heap_check *check = context;
    struct heap_tally given = {0};
    uint64_t first = row->id - 1;
    if (check->events > first)
        given = fixture_heap_tally((check->events - 1 - first) / FIXTURE_SITES * FIXTURE_SITES +
                                   first);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): words without holes between them */
    check->wrong = check->wrong || memcmp(&row->tally, &given, sizeof(given)) != 0;
    check->rows++;
    return 0;
}

static int check_heap_process(void *context, const struct recorded_heap_process *row)
{
    struct heap_check *check = context;
    struct heap_process_tally given = fixture_heap_process(check->events - 1);
    check->wrong = check->wrong || row->process != 2 ||
                   memcmp(&row->tally, &given, sizeof(given)) != 0;
    check->rows++;
    return 0;
}

static int check_heap_snapshot(void *context, const struct recorded_heap_snapshot *row)
{
    struct heap_check *check = context;
    check->wrong = check->wrong ||
                   row->info.time_ns != check->snapshots++ * (uint64_t)FIXTURE_SNAPSHOT_EVERY;
    return 0;
}

static int check_heap_snapshot_row(void *context, const struct heap_snapshot_row *row)
{
    struct heap_check *check = context;
    int64_t at = (int64_t)(row->snapshot - 1) * FIXTURE_SNAPSHOT_EVERY;
    check->wrong = check->wrong || row->bytes != at ||
                   row->count != (int64_t)(check->snapshot_rows++ % 3) - 1;
    return 0;
}

/* Some may have become one, but none was made up. */
static int check_heap_moment(void *context, const struct heap_moment *row)
{
    struct heap_check *check = context;
    uint64_t at = (row->time_ns - 6000) / 8000;
    check->wrong = check->wrong || row->time_ns <= check->last_ns || row->live_bytes != at * 10 ||
                   row->rss_bytes != at % 3;
    check->last_ns = row->time_ns;
    return 0;
}

static int check_heap_events(struct recording *recording, struct heap_check *check, struct why *why)
{
    struct heap_cursor *cursor;
    struct heap_block block;
    int r = heap_cursor_open(recording, HEAP_ROWS_EVENTS, &cursor, why);
    if (r < 0)
        return r;
    while ((r = heap_cursor_next(cursor, &block, why)) > 0) {
        for (size_t i = 0; i < block.count; i++) {
            const struct heap_event *event = &block.events[i];
            uint32_t thread = event->thread - 1;
            struct heap_event given = {0};
            if (thread < FIXTURE_THREADS)
                given = fixture_heap_event(&check->fixture,
                                           check->of_thread[thread]++ * FIXTURE_THREADS + thread);
            check->wrong = check->wrong || !fixture_same_event(event, &given);
        }
        check->events += block.count;
    }
    heap_cursor_close(cursor);
    return r;
}

static int check_heap(struct recording *recording, uint64_t samples, struct tally *tally,
                      struct why *why)
{
    struct heap_check check = {0};
    for (uint32_t i = 0; i < FIXTURE_THREADS; i++)
        check.fixture.threads[i] = i + 1;
    for (uint32_t i = 0; i < FIXTURE_STACKS; i++)
        check.fixture.stacks[i] = i + 3; /* two callers come before */
    int r = check_heap_events(recording, &check, why);
    if (r == 0)
        r = recording_each_heap_site(recording, check_heap_site, &check, why);
    if (r == 0)
        r = recording_each_heap_process(recording, check_heap_process, &check, why);
    if (r == 0)
        r = recording_each_heap_snapshot(recording, check_heap_snapshot, &check, why);
    if (r == 0)
        r = recording_each_heap_snapshot_row(recording, check_heap_snapshot_row, &check, why);
    if (r == 0)
        r = recording_each_heap_moment(recording, check_heap_moment, &check, why);
    uint64_t due = (samples + FIXTURE_WAIT_EVERY - 1) / FIXTURE_WAIT_EVERY;
    uint64_t snapshots = (check.events + FIXTURE_SNAPSHOT_EVERY - 1) / FIXTURE_SNAPSHOT_EVERY;
    if (check.wrong || (check.events != due && check.events + 1 != due) ||
        check.snapshots != snapshots || check.snapshot_rows != 3 * snapshots ||
        (check.events > 0 && (check.rows != FIXTURE_SITES + 1 || check.last_ns == 0)))
        tally->wrong = true;
    return r;
}

static int check_all(struct recording *recording, uint64_t *ret_samples, struct tally *tally,
                     struct why *why)
{
    int r = 0;
    for (uint32_t series = 1; r == 0 && series <= recording_count(recording, RECORDING_SERIES);
         series++)
        r = check_series(recording, series, tally, ret_samples, why);
    if (r == 0)
        r = recording_each_total(recording, check_total, tally, why);
    if (r == 0)
        r = check_waits(recording, *ret_samples, tally, why);
    if (r == 0)
        r = check_io(recording, *ret_samples, tally, why);
    if (r == 0)
        r = check_heap(recording, *ret_samples, tally, why);
    uint32_t frames[4];
    for (uint32_t id = 1; r == 0 && id <= recording_count(recording, RECORDING_STACK); id++)
        r = MIN(recording_stack(recording, id, frames, ARRAY_SIZE(frames), why), 0);
    return r;
}

static int tool_check(const char *path, uint64_t at_least)
{
    struct recording *recording;
    struct why why = {0};
    struct tally tally = {0};
    uint64_t samples = 0;
    int r = recording_open(path, &recording, &why);
    if (r < 0)
        return complain("open", r, &why);
    bool finished = recording_finished(recording);
    r = check_all(recording, &samples, &tally, &why);
    recording_close(recording);
    uint64_t sums = tally.sums[1].len + tally.sums[2].len;
    map_u64_deinit(&tally.sums[1]);
    map_u64_deinit(&tally.sums[2]);
    if (r < 0)
        return complain("read", r, &why);
    say("samples", samples);
    say("finished", finished);
    if (tally.wrong || tally.totals != sums || samples < at_least) {
        fprintf(stderr,
                "recording-tool: %s, %" PRIu64 " totals of %" PRIu64 ", %" PRIu64
                " samples of %" PRIu64 "\n",
                tally.wrong ? "wrong data" : "data is missing", tally.totals, sums, samples,
                at_least);
        return 9;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 5 && strcmp(argv[1], "write") == 0)
        return tool_write(argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10),
                          argc > 5 ? argv[5] : "finish");
    if (argc == 4 && strcmp(argv[1], "check") == 0)
        return tool_check(argv[2], strtoull(argv[3], NULL, 10));
    fputs("usage: recording-tool write PATH SAMPLES EVERY [finish|close|abandon]\n"
          "       recording-tool check PATH AT_LEAST\n",
          stderr);
    return 2;
}
