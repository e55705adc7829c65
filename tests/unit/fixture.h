/* A small profile that uses every call of a sink, with texts that are hard to
 * keep: quotes, a NUL byte, bytes that are no UTF-8, all 64 bits of an address.
 * The same calls go to any sink, so that two sinks can be compared. */
#pragma once

#include "model/sink.h"

#include <stdio.h>

enum { FIXTURE_STACKS = 40, FIXTURE_THREADS = 3, FIXTURE_WAITS = 12, FIXTURE_WAIT_EVERY = 8 };
enum { FIXTURE_SITES = 6, FIXTURE_SNAPSHOT_EVERY = 64 };
enum { FIXTURE_CALLS = 9, FIXTURE_DEVICES = 5, FIXTURE_CONNECTIONS = 6, FIXTURE_REQUESTS = 7 };

struct fixture {
    uint32_t cpu, rss;
    uint32_t threads[FIXTURE_THREADS];
    uint32_t stacks[FIXTURE_STACKS];
    uint32_t waits[FIXTURE_WAITS];
    uint32_t calls[FIXTURE_CALLS], devices[FIXTURE_DEVICES];
    uint32_t connections[FIXTURE_CONNECTIONS], requests[FIXTURE_REQUESTS];
    uint32_t sites[FIXTURE_SITES];
    uint64_t samples; /* given so far */
};

#define FIXTURE_TRY(call)                                                                          \
    do {                                                                                           \
        int fixture_r = (call);                                                                    \
        if (fixture_r < 0)                                                                         \
            return fixture_r;                                                                      \
    } while (0)

static inline int fixture_processes(struct sink *sink, struct fixture *fixture)
{
    static const char odd_name[] = {'a', '\'', '"', '\0', (char)0xff, ';', '\n'};
    uint32_t parent, child;
    struct process_info shell = {.pid = 100, .start_ns = 1000, .exe = STR("/bin/sh")};
    shell.command = STR("sh -c 'make; test'");
    FIXTURE_TRY(sink_process(sink, &shell, &parent));
    struct process_info server = {.pid = UINT32_MAX, .parent = parent, .start_ns = 2000};
    server.exe = STR("/opt/a b/server");
    server.command = (struct str){odd_name, sizeof(odd_name)};
    FIXTURE_TRY(sink_process(sink, &server, &child));
    for (uint32_t i = 0; i < FIXTURE_THREADS; i++) {
        char name[16];
        int len = snprintf(name, sizeof(name), "worker-%u", i);
        struct thread_info thread = {child, 200 + i, 3000 + i, {name, (size_t)len}};
        FIXTURE_TRY(sink_thread(sink, &thread, &fixture->threads[i]));
    }
    FIXTURE_TRY(sink_thread_end(sink, fixture->threads[1], 9000000));
    return sink_process_end(sink, parent, 9999999, 0x8b00 | 6);
}

/* main calls decode, decode calls one of 40 leaves; kernel and unknown frames too. */
static inline int fixture_stacks(struct sink *sink, struct fixture *fixture)
{
    uint32_t exe, kernel, mapping, name, frame, root, decode, text;
    struct image_info info = {IMAGE_FILE, STR("/opt/a b/server"), STR("00ff17"), 1 << 20};
    FIXTURE_TRY(sink_image(sink, &info, &exe));
    struct image_info kernel_info = {.kind = IMAGE_KERNEL, .path = STR("[kernel]")};
    FIXTURE_TRY(sink_image(sink, &kernel_info, &kernel));
    struct mapping_info map = {2, exe, 2500, 0x7f0000000000, 0x5000, 0x1000};
    FIXTURE_TRY(sink_mapping(sink, &map, &mapping));
    FIXTURE_TRY(sink_mapping_end(sink, mapping, 8000000));
    map.address = 0xffffffffff600000;
    FIXTURE_TRY(sink_mapping(sink, &map, &mapping));

    FIXTURE_TRY(sink_text(sink, STR("main"), &name));
    struct frame_info main_frame = {.kind = FRAME_NAMED, .name = name};
    FIXTURE_TRY(sink_frame(sink, &main_frame, &frame));
    FIXTURE_TRY(sink_stack(sink, 0, frame, &root));
    struct frame_info decode_frame = {.kind = FRAME_USER, .image = exe, .address = 0x1234};
    FIXTURE_TRY(sink_frame(sink, &decode_frame, &frame));
    FIXTURE_TRY(sink_stack(sink, root, frame, &decode));
    uint32_t inlined, caller, file;
    FIXTURE_TRY(sink_text(sink, STR("step<int;2>"), &inlined));
    FIXTURE_TRY(sink_text(sink, STR("decode"), &caller));
    FIXTURE_TRY(sink_text(sink, STR("src/decode.c"), &file));
    uint32_t step, whole;
    struct function_info function = {.name = inlined, .file = file, .line = 12, .image = exe};
    FIXTURE_TRY(sink_function(sink, &function, &step));
    function = (struct function_info){caller, caller, file, 90, exe, 0x1200, 0x80};
    FIXTURE_TRY(sink_function(sink, &function, &whole));
    FIXTURE_TRY(sink_location(sink, &(struct location_info){frame, 0, step, file, 17}));
    FIXTURE_TRY(sink_location(sink, &(struct location_info){frame, 1, whole, file, 99}));
    FIXTURE_TRY(sink_source_line(sink, file, 17, STR("\treturn x << 1; /* \"twice\" */")));
    FIXTURE_TRY(sink_instruction(sink, exe, 0x1234, 4, STR("shl %eax")));
    for (uint32_t i = 0; i < FIXTURE_STACKS; i++) {
        struct frame_info leaf = {.kind = FRAME_USER, .image = exe, .address = 0x2000 + i * 16};
        if (i % 7 == 3)
            leaf = (struct frame_info){FRAME_KERNEL, 0, kernel, 0xffffffff81000000 + i, 0};
        if (i % 11 == 5)
            leaf = (struct frame_info){.kind = FRAME_UNKNOWN, .reason = i};
        FIXTURE_TRY(sink_frame(sink, &leaf, &frame));
        FIXTURE_TRY(sink_stack(sink, decode, frame, &fixture->stacks[i]));
    }
    return sink_text(sink, STR("an unused text"), &text);
}

/* A futex with a name learnt later, a pipe of the machine, a lock of the kernel; rows of every
 * kind on them. */
static inline int fixture_waits(struct sink *sink, struct fixture *fixture)
{
    uint32_t objects[3], again;
    struct object_info futex = {.kind = OBJECT_FUTEX, .process = 2, .key = 0x7fff00001000};
    FIXTURE_TRY(sink_object(sink, &futex, &objects[0]));
    FIXTURE_TRY(sink_object_name(sink, objects[0], STR("queue.\"lock\"")));
    struct object_info pipe = {.kind = OBJECT_PIPE, .key = 77, .name = STR("pipe:[77]")};
    FIXTURE_TRY(sink_object(sink, &pipe, &objects[1]));
    pipe.flags = OBJECT_LOCAL;
    FIXTURE_TRY(sink_object(sink, &pipe, &again));
    struct object_info lock = {.kind = OBJECT_KERNEL_LOCK, .key = 0xffff888100000010};
    FIXTURE_TRY(sink_object(sink, &lock, &objects[2]));
    for (uint32_t i = 0; i < FIXTURE_WAITS; i++) {
        struct wait_info info = {
            .kind = i % 5 == 4 ? WAIT_HOLD : WAIT_BLOCKED,
            .thread = fixture->threads[i % FIXTURE_THREADS],
            .stack = fixture->stacks[i],
            .waker_thread = i % 2 ? fixture->threads[(i + 1) % FIXTURE_THREADS] : 0,
            .waker_stack = i % 2 ? fixture->stacks[i + 1] : 0,
            .object = i % 4 ? objects[i % 3] : 0,
            .syscall = i % 4 ? (int32_t)(i * 20) : WAIT_SYSCALL_NONE - (int32_t)(i % 2),
            .flags = 1u << i % 8,
            .detail = i % 5,
        };
        if (i == 0) /* one row a thread, without a stack */
            info = (struct wait_info){WAIT_RUNQ, fixture->threads[0], 0, 0, 0, 0, -1, 0, 0};
        FIXTURE_TRY(sink_wait(sink, &info, &fixture->waits[i]));
    }
    return 0;
}

/* Calls of all sorts on the objects of above, every operation of a device, and connections of
 * which some end. */
static inline int fixture_calls(struct sink *sink, struct fixture *fixture)
{
    for (uint32_t i = 0; i < FIXTURE_CALLS; i++) {
        struct call_info info = {
            .thread = fixture->threads[i % FIXTURE_THREADS],
            .stack = i % 3 ? fixture->stacks[i] : 0,
            .object = i % 4,
            .syscall = i % 5 ? (int32_t)(i * 40) : CALL_NO_SYSCALL,
            .error = i % 2 ? i : 0,
            .flags = 1u << i % 5,
        };
        FIXTURE_TRY(sink_call(sink, &info, &fixture->calls[i]));
    }
    for (uint32_t i = 0; i < FIXTURE_DEVICES; i++) {
        struct device_info info = {259u << 20 | i / DEVICE_OPS, (enum device_op)(i % DEVICE_OPS),
                                   i % 2 ? STR("nvme0n1") : STR("v'd\"a")};
        FIXTURE_TRY(sink_device(sink, &info, &fixture->devices[i]));
    }
    return 0;
}

static inline int fixture_requests(struct sink *sink, struct fixture *fixture)
{
    uint32_t peer, text, result;
    FIXTURE_TRY(sink_text(sink, STR("10.0.0.7:5432"), &peer));
    FIXTURE_TRY(sink_text(sink, STR("SELECT \"a\" FROM t WHERE id = ?"), &text));
    FIXTURE_TRY(sink_text(sink, STR("ERROR 23505"), &result));
    for (uint32_t i = 0; i < FIXTURE_CONNECTIONS; i++) {
        struct connection_info info = {
            .process = i % 3,
            .object = i % 4,
            .protocol = (enum request_protocol)(1 + i),
            .role = (enum request_role)(1 + i % 3),
            .flags = 1u << i % 3,
            .opened_ns = i % 2 ? 4000 + i : 0,
            .peer = STR("10.0.0.7:5432"),
            .service = i % 2 ? STR("shop") : STR(""),
        };
        FIXTURE_TRY(sink_connection(sink, &info, &fixture->connections[i]));
    }
    struct connection_end end = {77000, CONNECTION_BROKEN, 12, 3000, UINT32_MAX, STR("s;h'op")};
    FIXTURE_TRY(sink_connection_end(sink, fixture->connections[0], &end));
    end = (struct connection_end){0, CONNECTION_TLS, 1, 0, 5, STR("")};
    FIXTURE_TRY(sink_connection_end(sink, fixture->connections[1], &end));
    for (uint32_t i = 0; i < FIXTURE_REQUESTS; i++) {
        struct request_info info = {
            .protocol = (enum request_protocol)(1 + i),
            .role = (enum request_role)(1 + i % 3),
            .thread = i % (FIXTURE_THREADS + 1),
            .stack = i % 2 ? fixture->stacks[i] : 0,
            .peer = peer,
            .text = text,
            .result = i % 3 ? 0 : result,
        };
        FIXTURE_TRY(sink_request(sink, &info, &fixture->requests[i]));
    }
    return 0;
}

/* Sites of every kind, one without a stack. */
static inline int fixture_sites(struct sink *sink, struct fixture *fixture)
{
    for (uint32_t i = 0; i < FIXTURE_SITES; i++) {
        struct heap_site_info info = {fixture->threads[i % FIXTURE_THREADS],
                                      i == 2 ? 0 : fixture->stacks[i / 2],
                                      (enum heap_kind)(i % HEAP_KINDS)};
        FIXTURE_TRY(sink_heap_site(sink, &info, &fixture->sites[i]));
    }
    return 0;
}

static inline int fixture_begin(struct sink *sink, struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    FIXTURE_TRY(fixture_processes(sink, fixture));
    FIXTURE_TRY(fixture_stacks(sink, fixture));
    FIXTURE_TRY(fixture_waits(sink, fixture));
    FIXTURE_TRY(fixture_calls(sink, fixture));
    FIXTURE_TRY(fixture_requests(sink, fixture));
    FIXTURE_TRY(fixture_sites(sink, fixture));
    struct series_info cpu = {"cpu", SERIES_SUM, UNIT_NS, "time on a CPU"};
    struct series_info rss = {"rss", SERIES_LEVEL, UNIT_BYTES, "resident memory"};
    FIXTURE_TRY(sink_series(sink, &cpu, &fixture->cpu));
    FIXTURE_TRY(sink_series(sink, &rss, &fixture->rss));
    FIXTURE_TRY(sink_document(sink, "fingerprint", STR("{\"old\": true}")));
    return sink_document(sink, "fingerprint", STR("{\"cpu\": \"\u00b5\"}"));
}

/* The n-th sample is the same in every run: a reader can check what it finds. */
static inline struct sample fixture_sample(const struct fixture *fixture, uint64_t n)
{
    uint64_t mixed = n * 0x9e3779b97f4a7c15u;
    bool level = n % 10 == 9;
    return (struct sample){
        .series = level ? fixture->rss : fixture->cpu,
        .thread = n % 13 == 0 ? 0 : fixture->threads[mixed >> 40 & 1],
        .stack = level ? 0 : fixture->stacks[(mixed >> 32) % FIXTURE_STACKS],
        /* Some steps go back, as between the rings of two CPUs. */
        .time_ns = 10000 + n * 1000 + (n % 5 == 0 ? 7500 : 0),
        .weight = level ? (mixed >> 20) : 1000 + (mixed >> 60),
    };
}

/* With every eighth sample comes a wait: into the tally of its row, and told by itself. */
static inline struct wait_event fixture_event(const struct fixture *fixture, uint64_t n)
{
    uint64_t start_ns = 5000 + n * 1000, blocked_ns = (n * 0x9e3779b97f4a7c15u) >> (30 + n % 20);
    return (struct wait_event){fixture->waits[n / FIXTURE_WAIT_EVERY % FIXTURE_WAITS], start_ns,
                               start_ns + blocked_ns, start_ns + blocked_ns + n % 700};
}

static inline struct wait_tally fixture_tally(const struct wait_event *event)
{
    uint64_t ns = event->run_ns - event->start_ns;
    struct wait_tally tally = {1, ns, ns, event->start_ns, event->run_ns, ns / 2, ns / 3, {0}};
    tally.buckets[wait_bucket(ns)] = 1;
    return tally;
}

static inline int fixture_wait(struct sink *sink, const struct fixture *fixture)
{
    struct wait_event event = fixture_event(fixture, fixture->samples);
    struct wait_tally tally = fixture_tally(&event);
    FIXTURE_TRY(sink_wait_add(sink, event.wait, &tally));
    return sink_wait_event(sink, &event);
}

/* And a call, what it asked of a device, and a request. */
static inline struct request_event fixture_request(const struct fixture *fixture, uint64_t n)
{
    uint64_t at = n / FIXTURE_WAIT_EVERY, start_ns = 6000 + n * 1000;
    return (struct request_event){
        .request = fixture->requests[at % FIXTURE_REQUESTS],
        .connection = fixture->connections[at % FIXTURE_CONNECTIONS],
        .start_ns = start_ns,
        .first_byte_ns = start_ns + n % 501,
        .end_ns = start_ns + n % 501 + n % 77,
        .bytes_out = n % 3000,
        .bytes_in = n << n % 30,
        .parameters = n * 0x9e3779b97f4a7c15u,
        .flags = (uint32_t)(at % 16),
        .payload = (uint32_t)(at % 3),
    };
}

static inline struct request_tally fixture_request_tally(const struct request_event *event)
{
    uint64_t ns = event->end_ns - event->start_ns;
    struct request_tally tally = {
        .count = 1,
        .total_ns = ns,
        .max_ns = ns,
        .first_byte_ns = event->first_byte_ns - event->start_ns,
        .first_ns = event->start_ns,
        .last_ns = event->end_ns,
        .bytes_out = event->bytes_out,
        .bytes_in = event->bytes_in,
        .failed = (event->flags & REQUEST_FAILED) != 0,
        .reused = (event->flags & REQUEST_REUSED) != 0,
        .unanswered = (event->flags & REQUEST_UNANSWERED) != 0,
        .parameters = 1,
    };
    tally.buckets[wait_bucket(ns)] = 1;
    return tally;
}

static inline struct call_tally fixture_call_tally(const struct request_event *event)
{
    uint64_t ns = event->end_ns - event->start_ns, bytes = event->bytes_in;
    struct call_tally tally = {
        2,    ns,  ns / 2, event->start_ns, event->end_ns, bytes, bytes * 2, 1, 2, 1, 1,
        4096, {0}, {0}};
    tally.buckets[wait_bucket(ns)] = 2;
    tally.sizes[call_size(bytes)] = 2;
    return tally;
}

static inline struct device_tally fixture_device_tally(const struct request_event *event)
{
    uint64_t ns = event->end_ns - event->start_ns, bytes = event->bytes_out;
    struct device_tally tally = {1,      bytes,       ns,  ns, event->start_ns, event->end_ns,
                                 ns * 3, ns % 31 + 1, {0}, {0}};
    tally.buckets[wait_bucket(ns)] = 1;
    tally.sizes[call_size(bytes)] = 1;
    return tally;
}

static inline int fixture_io(struct sink *sink, const struct fixture *fixture)
{
    uint64_t at = fixture->samples / FIXTURE_WAIT_EVERY;
    struct request_event event = fixture_request(fixture, fixture->samples);
    struct request_tally request = fixture_request_tally(&event);
    struct call_tally call = fixture_call_tally(&event);
    struct device_tally device = fixture_device_tally(&event);
    FIXTURE_TRY(sink_call_add(sink, fixture->calls[at % FIXTURE_CALLS], &call));
    FIXTURE_TRY(sink_device_add(sink, fixture->devices[at % FIXTURE_DEVICES], &device));
    FIXTURE_TRY(sink_request_add(sink, event.request, &request));
    return sink_request_event(sink, &event);
}

/* And an event of the heap, after which a site, a process and a moment say more than before. */
static inline struct heap_event fixture_heap_event(const struct fixture *fixture, uint64_t at)
{
    uint64_t piece = at / (2 * FIXTURE_THREADS) % 97;
    return (struct heap_event){
        .thread = fixture->threads[at % FIXTURE_THREADS],
        .stack = fixture->stacks[piece % FIXTURE_STACKS],
        .kind = at / FIXTURE_THREADS % 2 ? HEAP_EVENT_FREED : HEAP_EVENT_ALLOCATED,
        .address = 0x7f0000000000 + piece * 4096 + at % FIXTURE_THREADS,
        .size = piece * piece,
        .time_ns = 6000 + at * 8,
    };
}

/* Field by field: there is padding between them. */
static inline bool fixture_same_event(const struct heap_event *a, const struct heap_event *b)
{
    return a->thread == b->thread && a->stack == b->stack && a->kind == b->kind &&
           a->address == b->address && a->size == b->size && a->time_ns == b->time_ns;
}

static inline struct heap_tally fixture_heap_tally(uint64_t at)
{
    return (struct heap_tally){
        .allocations = at + 1,
        .allocated_bytes = (at + 1) * 1000,
        .frees = at,
        .freed_bytes = at * 999,
        .temporary = at / 2,
        .temporary_bytes = at * 3,
        .peak_count = -(int64_t)at,
        .peak_bytes = at % 2 ? INT64_MIN : INT64_MAX,
        .grown = at / 3,
        .grown_bytes = at * 7,
        .moved = at / 4,
        .chain_max = at % 100,
        .size_max = at << at % 30,
        .lived_ns = at * 4000000,
        .samples = at + 2,
        .variance = (double)at / 8,
    };
}

static inline struct heap_process_tally fixture_heap_process(uint64_t at)
{
    struct heap_process_tally tally = {at + 1, at + 2, at + 3, at + 4, at + 5,
                                       at + 6, at + 7, at + 8, {0},    {0}};
    tally.sizes[at % HEAP_SIZE_BUCKETS] = INT64_MAX - at;
    tally.lives[at % HEAP_LIFE_BUCKETS] = at + 1;
    return tally;
}

static inline int fixture_snapshot(struct sink *sink, const struct fixture *fixture, uint64_t at)
{
    struct heap_snapshot_info info = {2, at, (enum heap_snapshot_why)(at / 64 % 2)};
    uint32_t id;
    FIXTURE_TRY(sink_heap_snapshot(sink, &info, &id));
    for (uint32_t i = 0; i < 3; i++) {
        struct heap_snapshot_row row = {id, fixture->stacks[i], (int64_t)i - 1, (int64_t)at};
        FIXTURE_TRY(sink_heap_snapshot_row(sink, &row));
    }
    return 0;
}

static inline int fixture_heap(struct sink *sink, const struct fixture *fixture)
{
    uint64_t at = fixture->samples / FIXTURE_WAIT_EVERY;
    struct heap_event event = fixture_heap_event(fixture, at);
    struct heap_tally tally = fixture_heap_tally(at);
    struct heap_process_tally process = fixture_heap_process(at);
    struct heap_moment moment = {2, 6000 + at * 8000, at * 10, at % 3};
    FIXTURE_TRY(sink_heap_event(sink, &event));
    FIXTURE_TRY(sink_heap_site_set(sink, fixture->sites[at % FIXTURE_SITES], &tally));
    FIXTURE_TRY(sink_heap_process_set(sink, 2, &process));
    if (at % FIXTURE_SNAPSHOT_EVERY == 0)
        FIXTURE_TRY(fixture_snapshot(sink, fixture, at));
    return sink_heap_moment(sink, &moment);
}

static inline int fixture_samples(struct sink *sink, struct fixture *fixture, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct sample sample = fixture_sample(fixture, fixture->samples);
        FIXTURE_TRY(sink_sample(sink, &sample));
        if (fixture->samples % FIXTURE_WAIT_EVERY == 0) {
            FIXTURE_TRY(fixture_wait(sink, fixture));
            FIXTURE_TRY(fixture_io(sink, fixture));
            FIXTURE_TRY(fixture_heap(sink, fixture));
        }
        fixture->samples++;
    }
    FIXTURE_TRY(sink_counter(sink, "loss.ring_full", UNIT_COUNT, 3));
    return sink_counter(sink, "own.cpu", UNIT_NS, 123456789);
}
