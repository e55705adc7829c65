/* Writes a recording of waits whose every figure is known, the same on every machine.
 *
 *     make-waits KIND FILE
 *
 * plain    one second of a server: a wait of every class, its critical path through a child, a
 *          worker and a lock; idle workers, a timer thread, time that nobody saw
 * machine  the same as seen from the whole machine: no root, no critical path
 * user     the same as the user tier sees it
 * many     forty workers behind one lock
 * idle     a server that waits for connections, and nothing else
 * bare     one wait without stack, call, object or name
 * hostile  names with markup, escapes and newlines */
#include "world.h"

#include "model/wait_book.h"
#include "store/writer.h"

#include <inttypes.h>

enum { SPAN_MS = 1000 };

static uint64_t clock_zero(void)
{
    return 1;
}

struct scene {
    struct world world;
    uint32_t server, helper_process;
    uint32_t main_thread, workers[3], timer, logger, helper;
    bool sampled; /* the user tier: nothing is known about wakers */
};

/* One wait. Times in ms since the start of the recording. */
struct put {
    uint32_t thread, stack, object, waker, waker_stack;
    const char *call; /* NULL: none */
    uint32_t flags, detail;
    double start, end; /* of the first */
    unsigned count;    /* so many, `every` ms apart; 0: one */
    double every;
};

static void put(struct scene *scene, enum wait_kind kind, const struct put *put)
{
    struct sink *sink = scene->world.made.sink;
    struct wait_info info = {
        .kind = kind,
        .thread = put->thread,
        .stack = put->stack,
        .waker_thread = scene->sampled ? 0 : put->waker,
        .waker_stack = scene->sampled ? 0 : put->waker_stack,
        .object = put->object,
        .syscall = world_call(put->call),
        .flags = put->flags | (scene->sampled ? WAIT_SAMPLED : 0),
        .detail = put->detail,
    };
    uint32_t row;
    made_check(sink_wait(sink, &info, &row), "wait");
    for (unsigned i = 0; i < (put->count ? put->count : 1); i++) {
        uint64_t start = world_ns(put->start + i * put->every),
                 end = start + world_ns(put->end) - world_ns(put->start);
        struct wait_tally tally = {0};
        wait_tally_one(&tally, start, end - start);
        made_check(sink_wait_add(sink, row, &tally), "tally");
        struct wait_event event = {row, start, end, end};
        if (kind == WAIT_BLOCKED && end - start >= MS)
            made_check(sink_wait_event(sink, &event), "event");
    }
}

static uint32_t object(struct scene *scene, enum object_kind kind, uint32_t flags, uint64_t key,
                       const char *name)
{
    struct object_info info = {kind, flags, 0, key, str_from(name)};
    if (kind == OBJECT_FUTEX || kind == OBJECT_PROCESS)
        info.process = scene->server;
    uint32_t id;
    made_check(sink_object(scene->world.made.sink, &info, &id), "object");
    return id;
}

static void documents(struct scene *scene, const char *scope)
{
    char target[160];
    snprintf(target, sizeof(target),
             "{\"scope\": \"%s\", \"pid\": 4711, \"start_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64
             "}",
             scope, world_ns(0), world_ns(SPAN_MS));
    world_document(&scene->world, "target", target);
    world_document(&scene->world, "fingerprint", "{\"kernel\": {\"arch\": \"x86_64\"}}");
    world_document(&scene->world, "waits",
                   scene->sampled
                       ? "{\"tier\": \"user\", \"why_not_kernel\": \"not root\", \"not_known\": "
                         "[\"who ended a wait\", 7, \"run queue: only preemptions\"]}"
                       : "{\"tier\": \"kernel\"}");
}

static void counters(struct scene *scene, uint64_t waits)
{
    struct {
        const char *name;
        enum unit unit;
        uint64_t value;
    } rows[] = {
        {"waits.seen", UNIT_COUNT, waits},         {"waits.recognised", UNIT_COUNT, waits - 20},
        {"waits.verified_slots", UNIT_COUNT, 900}, {"waits.copied", UNIT_COUNT, 20},
        {"waits.read_again", UNIT_COUNT, 1},       {"waits.unlearnable", UNIT_COUNT, 0},
        {"waits.complete", UNIT_COUNT, 20},        {"waits.truncated", UNIT_COUNT, 0},
        {"waits.own_ns", UNIT_NS, 5 * MS},         {"waits.kernel_ns", UNIT_NS, 2 * MS},
        {"loss.wait_ring_full", UNIT_COUNT, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        made_check(sink_counter(scene->world.made.sink, rows[i].name, rows[i].unit, rows[i].value),
                   "counter");
}

static void running(struct scene *scene, uint32_t owner, double ms)
{
    struct sample sample = {scene->world.made.series, owner, 0, world_ns(SPAN_MS),
                            (uint64_t)(ms * MS)};
    made_check(sink_sample(scene->world.made.sink, &sample), "running");
}

static void threads_make(struct scene *scene)
{
    struct made *made = &scene->world.made;
    scene->server = made_process(made, 4711, "/opt/demo/bin/server", "server --data /var/lib/demo");
    struct process_info helper = {.pid = 4720,
                                  .parent = scene->server,
                                  .start_ns = world_ns(0),
                                  .exe = STR("/opt/demo/bin/helper")};
    made_check(sink_process(made->sink, &helper, &scene->helper_process), "helper");
    scene->main_thread = world_thread(&scene->world, scene->server, 4711, "server", 0, 0);
    for (uint32_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "worker-%u", i);
        scene->workers[i] = world_thread(&scene->world, scene->server, 4712 + i, name, 0,
                                         i == 0 ? 700 : 0);
    }
    scene->timer = world_thread(&scene->world, scene->server, 4715, "timer", 0, 0);
    scene->logger = world_thread(&scene->world, scene->server, 4716, "logger", 0, 0);
    scene->helper = world_thread(&scene->world, scene->helper_process, 4720, "helper", 0, 350);
    world_images(&scene->world, "/opt/demo/bin/server", "0123456789abcdef");
}

#define TIMED (WAIT_LIMITED | WAIT_BY_INTERRUPT)

static void put_all(struct scene *scene, const struct put *waits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(scene, WAIT_BLOCKED, &waits[i]);
}

/* It waits for a sleep, a child and a worker. */
static void main_begin(struct scene *scene)
{
    uint32_t main_thread = scene->main_thread, helper = scene->helper, worker = scene->workers[0];
    uint32_t pipe = object(scene, OBJECT_PIPE, 0, 99, "pipe:[99]");
    uint32_t child = object(scene, OBJECT_PROCESS, 0, 4720, "");
    struct put waits[] = {
        {.thread = main_thread,
         .call = "clock_nanosleep",
         .flags = TIMED,
         .start = 100,
         .end = 150,
         .stack = world_stack(&scene->world,
                              "_start main warm_up back_off libc:usleep libc:__clock_nanosleep "
                              "kernel:hrtimer_nanosleep")},
        {.thread = main_thread,
         .call = "read",
         .object = pipe,
         .waker = helper,
         .start = 150,
         .end = 230,
         .stack = world_stack(
             &scene->world,
             "_start main configure read_answer libc:__GI___libc_read kernel:pipe_read"),
         .waker_stack = world_stack(&scene->world,
                                    "_start main answer libc:__write kernel:anon_pipe_write")},
        {.thread = main_thread,
         .call = "wait4",
         .object = child,
         .waker = helper,
         .start = 250,
         .end = 350,
         .stack = world_stack(&scene->world, "_start main configure libc:wait4 kernel:do_wait"),
         .waker_stack = world_stack(&scene->world, "_start main libc:_exit kernel:do_exit")},
        {.thread = main_thread,
         .call = "futex",
         .object = object(scene, OBJECT_FUTEX, 0, 0x7f00, ""),
         .detail = WAIT_FUTEX_BITSET,
         .waker = worker,
         .start = 400,
         .end = 700,
         .stack = world_stack(&scene->world, "_start main finish libc:___pthread_join "
                                             "libc:__pthread_clockjoin_ex kernel:futex_wait"),
         .waker_stack = world_stack(&scene->world, "libc:start_thread kernel:do_exit")},
    };
    put_all(scene, waits, ARRAY_SIZE(waits));
}

/* And for a peer, a page, a lock and a CPU. */
static void main_end(struct scene *scene, uint32_t mutex)
{
    uint32_t main_thread = scene->main_thread;
    uint32_t database = object(scene, OBJECT_SOCKET, OBJECT_CLIENT, 7, "10.0.0.5:5432");
    uint32_t table = object(scene, OBJECT_FILE, 0, 12, "/var/lib/demo/table");
    struct put waits[] = {
        {.thread = main_thread,
         .call = "recvfrom",
         .object = database,
         .flags = WAIT_ASKED,
         .start = 700,
         .end = 740,
         .stack = world_stack(&scene->world,
                              "_start main query PQexec libc:__libc_recv kernel:tcp_recvmsg")},
        {.thread = main_thread,
         .object = table,
         .flags = WAIT_FAULT | WAIT_IO | WAIT_UNINTERRUPTIBLE,
         .start = 740,
         .end = 770,
         .stack = world_stack(&scene->world, "_start main scan_table kernel:handle_mm_fault")},
        {.thread = main_thread,
         .call = "futex",
         .object = mutex,
         .detail = WAIT_FUTEX_VALUE_2,
         .waker = scene->workers[1],
         .start = 800,
         .end = 810,
         .count = 6,
         .every = 20,
         .stack = world_stack(
             &scene->world,
             "_start main push libc:___pthread_mutex_lock libc:__lll_lock_wait kernel:futex_wait"),
         .waker_stack = world_stack(
             &scene->world,
             "libc:start_thread worker drain libc:___pthread_mutex_unlock kernel:futex_wake")},
    };
    put_all(scene, waits, ARRAY_SIZE(waits));
    struct put runq = {.thread = main_thread, .start = 0, .end = 0.1, .count = 200, .every = 5};
    put(scene, WAIT_RUNQ, &runq);
    struct put slow = {.thread = main_thread, .start = 900, .end = 905, .count = 2, .every = 10};
    put(scene, WAIT_RUNQ, &slow);
}

static void workers_make(struct scene *scene, uint32_t mutex)
{
    uint32_t *workers = scene->workers;
    uint32_t log = object(scene, OBJECT_FILE, 0, 13, "/var/log/demo.log");
    uint32_t condition = object(scene, OBJECT_FUTEX, 0, 0x5000, "work_ready");
    uint32_t sync = world_stack(&scene->world,
                                "libc:start_thread worker commit libc:fsync kernel:do_fsync");
    uint32_t lock = world_stack(
        &scene->world, "libc:start_thread worker pop libc:___pthread_mutex_lock kernel:futex_wait");
    uint32_t wait = world_stack(
        &scene->world,
        "libc:start_thread worker idle_wait libc:___pthread_cond_wait kernel:futex_wait");
    uint32_t unlock = world_stack(
        &scene->world,
        "libc:start_thread worker drain libc:___pthread_mutex_unlock kernel:futex_wake");
    uint32_t unseen = world_stack(&scene->world,
                                  "libc:start_thread worker tune libc:ioctl kernel:vfs_ioctl");
    struct put waits[] = {
        {.thread = workers[0],
         .call = "futex",
         .object = mutex,
         .detail = WAIT_FUTEX_VALUE_2,
         .waker = workers[1],
         .waker_stack = unlock,
         .stack = lock,
         .start = 420,
         .end = 540},
        {.thread = workers[0],
         .call = "fsync",
         .object = log,
         .flags = WAIT_IO | WAIT_UNINTERRUPTIBLE,
         .stack = sync,
         .start = 560,
         .end = 680},
        {.thread = workers[1],
         .call = "futex",
         .object = condition,
         .detail = WAIT_FUTEX_BITSET,
         .waker = scene->main_thread,
         .stack = wait,
         .start = 0,
         .end = 40,
         .count = 10,
         .every = 41},
        {.thread = workers[2],
         .call = "futex",
         .object = condition,
         .detail = WAIT_FUTEX_BITSET,
         .waker = scene->main_thread,
         .stack = wait,
         .start = 0,
         .end = 90,
         .count = 10,
         .every = 95},
        {.thread = workers[2],
         .call = "futex",
         .object = mutex,
         .detail = WAIT_FUTEX_VALUE_2,
         .waker = workers[1],
         .waker_stack = unlock,
         .stack = lock,
         .start = 960,
         .end = 960.3,
         .count = 20,
         .every = 0.5},
        {.thread = workers[2], .call = "ioctl", .stack = unseen, .start = 970, .end = 990},
    };
    put_all(scene, waits, ARRAY_SIZE(waits));
}

/* Beside them: a timer thread, a logger, the child. */
static void others_make(struct scene *scene)
{
    uint32_t log = object(scene, OBJECT_FILE, 0, 13, "/var/log/demo.log");
    uint32_t poll = object(scene, OBJECT_POLL_SET, 0, 1, "[eventpoll]");
    struct put waits[] = {
        {.thread = scene->timer,
         .call = "clock_nanosleep",
         .flags = TIMED,
         .start = 0,
         .end = 96,
         .count = 10,
         .every = 100,
         .stack = world_stack(
             &scene->world,
             "libc:start_thread tick libc:__clock_nanosleep kernel:hrtimer_nanosleep")},
        {.thread = scene->logger,
         .call = "epoll_wait",
         .object = poll,
         .start = 0,
         .end = 50,
         .count = 10,
         .every = 99,
         .stack = world_stack(&scene->world,
                              "libc:start_thread log_loop libc:epoll_wait kernel:do_epoll_wait")},
        {.thread = scene->logger,
         .call = "fsync",
         .object = log,
         .flags = WAIT_IO | WAIT_UNINTERRUPTIBLE,
         .start = 50,
         .end = 90,
         .count = 10,
         .every = 99,
         .stack = world_stack(&scene->world,
                              "libc:start_thread log_loop flush libc:fsync kernel:do_fsync")},
        {.thread = scene->helper,
         .call = "openat",
         .flags = WAIT_IO,
         .start = 160,
         .end = 200,
         .stack = world_stack(&scene->world, "_start main load libc:open64 kernel:do_sys_openat2")},
    };
    put_all(scene, waits, ARRAY_SIZE(waits));
}

static void plain_make(struct scene *scene, const char *scope)
{
    threads_make(scene);
    uint32_t mutex = object(scene, OBJECT_FUTEX, 0, 0x6000, "queue_mutex");
    made_series(&scene->world.made, "offcpu", SERIES_SUM, UNIT_NS);
    made_series(&scene->world.made, "running", SERIES_SUM, UNIT_NS);
    main_begin(scene);
    main_end(scene, mutex);
    workers_make(scene, mutex);
    others_make(scene);
    running(scene, scene->main_thread, 310);
    running(scene, scene->workers[0], 455);
    running(scene, scene->workers[1], 595);
    running(scene, scene->workers[2], 60);
    running(scene, scene->timer, 8);
    running(scene, scene->logger, 95);
    running(scene, scene->helper, 308);
    documents(scene, scope);
    counters(scene, 300);
}

static void many_make(struct scene *scene)
{
    threads_make(scene);
    made_series(&scene->world.made, "offcpu", SERIES_SUM, UNIT_NS);
    made_series(&scene->world.made, "running", SERIES_SUM, UNIT_NS);
    uint32_t mutex = object(scene, OBJECT_FUTEX, 0, 0x6000, "queue_mutex");
    uint32_t lock = world_stack(
        &scene->world, "libc:start_thread worker pop libc:___pthread_mutex_lock kernel:futex_wait");
    for (uint32_t i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof(name), "pool-%u", i);
        uint32_t owner = world_thread(&scene->world, scene->server, 5000 + i, name, 0, 0);
        struct put wait = {.thread = owner,
                           .call = "futex",
                           .object = mutex,
                           .detail = WAIT_FUTEX_VALUE_2,
                           .waker = scene->main_thread,
                           .stack = lock,
                           .start = i,
                           .end = i + 2,
                           .count = 400,
                           .every = 2.4};
        put(scene, WAIT_BLOCKED, &wait);
        running(scene, owner, 150);
    }
    documents(scene, "command");
    counters(scene, 16000);
}

static void idle_make(struct scene *scene)
{
    threads_make(scene);
    made_series(&scene->world.made, "offcpu", SERIES_SUM, UNIT_NS);
    struct put wait = {.thread = scene->main_thread,
                       .call = "accept4",
                       .start = 0,
                       .end = 99,
                       .count = 10,
                       .every = 100,
                       .object = object(scene, OBJECT_SOCKET, OBJECT_LISTENING, 3, "0.0.0.0:8080"),
                       .stack = world_stack(&scene->world, "_start main serve libc:accept4")};
    put(scene, WAIT_BLOCKED, &wait);
    documents(scene, "command");
}

static void bare_make(struct scene *scene)
{
    struct thread_info nameless = {.tid = 1, .start_ns = world_ns(0)};
    struct put wait = {.start = 1, .end = 3};
    made_check(
        sink_process(scene->world.made.sink, &(struct process_info){.pid = 1}, &nameless.process),
        "process");
    made_check(sink_thread(scene->world.made.sink, &nameless, &wait.thread), "thread");
    made_series(&scene->world.made, "offcpu", SERIES_SUM, UNIT_NS);
    put(scene, WAIT_BLOCKED, &wait);
}

static void hostile_make(struct scene *scene)
{
    static const char *const names[] = {
        "</script><script>alert(1)</script>", "\x1b[31mred\x1b[0m\x1b]0;title\x07",
        "two\nlines\r|_cell_|_`code`_]]>",    "\xff\xfe_not_UTF-8_\xc3",
        "--stack=w1;_rm_-rf_$HOME",
    };
    threads_make(scene);
    made_series(&scene->world.made, "offcpu", SERIES_SUM, UNIT_NS);
    for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint32_t owner = world_thread(&scene->world, scene->server, 5000 + i, names[i], 0, 0);
        struct put wait = {.thread = owner,
                           .call = "read",
                           .start = i,
                           .end = 500 - i * 50,
                           .waker = owner,
                           .object = object(scene, OBJECT_FILE, 0, 50 + i, names[i]),
                           .stack = world_stack(&scene->world, names[i]),
                           .waker_stack = world_stack(&scene->world, names[i])};
        put(scene, WAIT_BLOCKED, &wait);
    }
    documents(scene, "command");
}

int main(int argc, char **argv)
{
    struct why why = {0};
    struct recording_writer *writer = NULL;
    struct recording_opts opts = {.version = "test", .clock_ns = clock_zero};
    if (argc != 3 || recording_create(argv[2], &opts, &writer, &why) < 0) {
        fprintf(stderr, "make-waits KIND FILE: %s\n", why.what);
        return 2;
    }
    struct scene scene = {.world.made = {.sink = recording_writer_sink(writer)}};
    scene.sampled = strcmp(argv[1], "user") == 0;
    if (strcmp(argv[1], "machine") == 0)
        plain_make(&scene, "system");
    else if (strcmp(argv[1], "many") == 0)
        many_make(&scene);
    else if (strcmp(argv[1], "idle") == 0)
        idle_make(&scene);
    else if (strcmp(argv[1], "bare") == 0)
        bare_make(&scene);
    else if (strcmp(argv[1], "hostile") == 0)
        hostile_make(&scene);
    else
        plain_make(&scene, "command");
    int r = recording_writer_finish(writer, &why);
    recording_writer_close(writer);
    if (r < 0)
        fprintf(stderr, "make-waits: %s\n", why.what);
    return r < 0;
}
