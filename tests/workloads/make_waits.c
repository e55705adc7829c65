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
#include "../unit/made_profile.h"

#include "base/syscalls.h"
#include "model/wait_book.h"
#include "store/writer.h"

#include <inttypes.h>
#include <string.h>

enum { MS = 1000000, ZERO_MS = 1000, SPAN_MS = 1000 };

static uint64_t clock_zero(void)
{
    return 1;
}

struct world {
    struct made made;
    uint32_t app, libc, kernel;
    uint32_t server, helper_process;
    uint32_t main_thread, workers[3], timer, logger, helper;
    char names[128][128]; /* of functions: the same name is the same function */
    size_t name_count;
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

static int32_t call_number(const char *name)
{
    for (int32_t i = 0; name && i < SYSCALLS_MAX; i++) {
        const char *known = syscall_name_on(SYSCALLS_X86_64, i);
        if (known && strcmp(known, name) == 0)
            return i;
    }
    return WAIT_SYSCALL_NONE;
}

static uint64_t at_ns(double ms)
{
    return (uint64_t)((ZERO_MS + ms) * MS);
}

static void put(struct world *world, enum wait_kind kind, const struct put *put)
{
    struct sink *sink = world->made.sink;
    struct wait_info info = {
        .kind = kind,
        .thread = put->thread,
        .stack = put->stack,
        .waker_thread = world->sampled ? 0 : put->waker,
        .waker_stack = world->sampled ? 0 : put->waker_stack,
        .object = put->object,
        .syscall = call_number(put->call),
        .flags = put->flags | (world->sampled ? WAIT_SAMPLED : 0),
        .detail = put->detail,
    };
    uint32_t row;
    made_check(sink_wait(sink, &info, &row), "wait");
    for (unsigned i = 0; i < (put->count ? put->count : 1); i++) {
        uint64_t start = at_ns(put->start + i * put->every),
                 end = start + at_ns(put->end) - at_ns(put->start);
        struct wait_tally tally = {0};
        wait_tally_one(&tally, start, end - start);
        made_check(sink_wait_add(sink, row, &tally), "tally");
        struct wait_event event = {row, start, end, end};
        if (kind == WAIT_BLOCKED && end - start >= MS)
            made_check(sink_wait_event(sink, &event), "event");
    }
}

static uint64_t name_number(struct world *world, const char *name)
{
    size_t i = 0;
    while (i < world->name_count && strcmp(world->names[i], name) != 0)
        i++;
    if (i == ARRAY_SIZE(world->names))
        abort();
    if (i == world->name_count)
        snprintf(world->names[world->name_count++], sizeof(world->names[0]), "%s", name);
    return i;
}

/* Functions from the root to the leaf, separated by blanks: "libc:" and "kernel:" say where. */
static uint32_t stack(struct world *world, const char *names)
{
    struct made *made = &world->made;
    struct str rest = str_from(names);
    uint32_t id = 0;
    while (rest.len > 0) {
        struct str name = str_cut(&rest, ' ');
        bool libc = str_starts(name, "libc:"), kernel = str_starts(name, "kernel:");
        size_t skip = libc ? 5 : kernel ? 7 : 0;
        char text[128], file[160] = "";
        snprintf(text, sizeof(text), "%.*s", (int)(name.len - skip), name.data + skip);
        if (!libc && !kernel)
            snprintf(file, sizeof(file), "/src/%s.c", text);
        uint32_t image = libc ? world->libc : kernel ? world->kernel : world->app;
        uint64_t address = 0x1000 + name_number(world, text) * 0x100;
        uint32_t function = made_function(made, text, image, file, 1, address);
        uint32_t frame = made_frame(made, kernel ? FRAME_KERNEL : FRAME_USER, image, address + 4,
                                    NULL, 0);
        made_place(made, frame, 0, function, file, 7);
        made_check(sink_stack(made->sink, id, frame, &id), "stack");
    }
    return id;
}

static uint32_t object(struct world *world, enum object_kind kind, uint32_t flags, uint64_t key,
                       const char *name)
{
    struct object_info info = {kind, flags, 0, key, str_from(name)};
    if (kind == OBJECT_FUTEX || kind == OBJECT_PROCESS)
        info.process = world->server;
    uint32_t id;
    made_check(sink_object(world->made.sink, &info, &id), "object");
    return id;
}

static uint32_t thread(struct world *world, uint32_t process, uint32_t tid, const char *name,
                       double start, double end)
{
    uint32_t id;
    struct thread_info info = {process, tid, at_ns(start), str_from(name)};
    made_check(sink_thread(world->made.sink, &info, &id), "thread");
    if (end < SPAN_MS)
        made_check(sink_thread_end(world->made.sink, id, at_ns(end)), "end");
    return id;
}

static void document(struct world *world, const char *name, const char *json)
{
    made_check(sink_document(world->made.sink, name, str_from(json)), name);
}

static void documents(struct world *world, const char *scope)
{
    char target[160];
    snprintf(target, sizeof(target),
             "{\"scope\": \"%s\", \"pid\": 4711, \"start_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64
             "}",
             scope, at_ns(0), at_ns(SPAN_MS));
    document(world, "target", target);
    document(world, "fingerprint", "{\"kernel\": {\"arch\": \"x86_64\"}}");
    document(world, "waits",
             world->sampled
                 ? "{\"tier\": \"user\", \"why_not_kernel\": \"not root\", \"not_known\": "
                   "[\"who ended a wait\", 7, \"run queue: only preemptions\"]}"
                 : "{\"tier\": \"kernel\"}");
}

static void counters(struct world *world, uint64_t waits)
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
        made_check(sink_counter(world->made.sink, rows[i].name, rows[i].unit, rows[i].value),
                   "counter");
}

static void running(struct world *world, uint32_t owner, double ms)
{
    struct sample sample = {world->made.series, owner, 0, at_ns(SPAN_MS), (uint64_t)(ms * MS)};
    made_check(sink_sample(world->made.sink, &sample), "running");
}

static void threads_make(struct world *world)
{
    struct made *made = &world->made;
    world->server = made_process(made, 4711, "/opt/demo/bin/server", "server --data /var/lib/demo");
    struct process_info helper = {.pid = 4720,
                                  .parent = world->server,
                                  .start_ns = at_ns(0),
                                  .exe = STR("/opt/demo/bin/helper")};
    made_check(sink_process(made->sink, &helper, &world->helper_process), "helper");
    world->main_thread = thread(world, world->server, 4711, "server", 0, SPAN_MS);
    for (uint32_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "worker-%u", i);
        world->workers[i] = thread(world, world->server, 4712 + i, name, 0, i == 0 ? 700 : SPAN_MS);
    }
    world->timer = thread(world, world->server, 4715, "timer", 0, SPAN_MS);
    world->logger = thread(world, world->server, 4716, "logger", 0, SPAN_MS);
    world->helper = thread(world, world->helper_process, 4720, "helper", 0, 350);
    world->app = made_image(made, IMAGE_FILE, "/opt/demo/bin/server", "0123456789abcdef");
    world->libc = made_image(made, IMAGE_FILE, "/usr/lib/libc.so.6", "fedcba98");
    world->kernel = made_image(made, IMAGE_KERNEL, "[kernel]", "");
}

#define TIMED (WAIT_LIMITED | WAIT_BY_INTERRUPT)

static void put_all(struct world *world, const struct put *waits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(world, WAIT_BLOCKED, &waits[i]);
}

/* It waits for a sleep, a child and a worker. */
static void main_begin(struct world *world)
{
    uint32_t main_thread = world->main_thread, helper = world->helper, worker = world->workers[0];
    uint32_t pipe = object(world, OBJECT_PIPE, 0, 99, "pipe:[99]");
    uint32_t child = object(world, OBJECT_PROCESS, 0, 4720, "");
    struct put waits[] = {
        {.thread = main_thread,
         .call = "clock_nanosleep",
         .flags = TIMED,
         .start = 100,
         .end = 150,
         .stack = stack(world, "_start main warm_up back_off libc:usleep libc:__clock_nanosleep "
                               "kernel:hrtimer_nanosleep")},
        {.thread = main_thread,
         .call = "read",
         .object = pipe,
         .waker = helper,
         .start = 150,
         .end = 230,
         .stack = stack(world,
                        "_start main configure read_answer libc:__GI___libc_read kernel:pipe_read"),
         .waker_stack = stack(world, "_start main answer libc:__write kernel:anon_pipe_write")},
        {.thread = main_thread,
         .call = "wait4",
         .object = child,
         .waker = helper,
         .start = 250,
         .end = 350,
         .stack = stack(world, "_start main configure libc:wait4 kernel:do_wait"),
         .waker_stack = stack(world, "_start main libc:_exit kernel:do_exit")},
        {.thread = main_thread,
         .call = "futex",
         .object = object(world, OBJECT_FUTEX, 0, 0x7f00, ""),
         .detail = WAIT_FUTEX_BITSET,
         .waker = worker,
         .start = 400,
         .end = 700,
         .stack = stack(world, "_start main finish libc:___pthread_join "
                               "libc:__pthread_clockjoin_ex kernel:futex_wait"),
         .waker_stack = stack(world, "libc:start_thread kernel:do_exit")},
    };
    put_all(world, waits, ARRAY_SIZE(waits));
}

/* And for a peer, a page, a lock and a CPU. */
static void main_end(struct world *world, uint32_t mutex)
{
    uint32_t main_thread = world->main_thread;
    uint32_t database = object(world, OBJECT_SOCKET, OBJECT_CLIENT, 7, "10.0.0.5:5432");
    uint32_t table = object(world, OBJECT_FILE, 0, 12, "/var/lib/demo/table");
    struct put waits[] = {
        {.thread = main_thread,
         .call = "recvfrom",
         .object = database,
         .flags = WAIT_ASKED,
         .start = 700,
         .end = 740,
         .stack = stack(world, "_start main query PQexec libc:__libc_recv kernel:tcp_recvmsg")},
        {.thread = main_thread,
         .object = table,
         .flags = WAIT_FAULT | WAIT_IO | WAIT_UNINTERRUPTIBLE,
         .start = 740,
         .end = 770,
         .stack = stack(world, "_start main scan_table kernel:handle_mm_fault")},
        {.thread = main_thread,
         .call = "futex",
         .object = mutex,
         .detail = WAIT_FUTEX_VALUE_2,
         .waker = world->workers[1],
         .start = 800,
         .end = 810,
         .count = 6,
         .every = 20,
         .stack = stack(
             world,
             "_start main push libc:___pthread_mutex_lock libc:__lll_lock_wait kernel:futex_wait"),
         .waker_stack = stack(
             world,
             "libc:start_thread worker drain libc:___pthread_mutex_unlock kernel:futex_wake")},
    };
    put_all(world, waits, ARRAY_SIZE(waits));
    struct put runq = {.thread = main_thread, .start = 0, .end = 0.1, .count = 200, .every = 5};
    put(world, WAIT_RUNQ, &runq);
    struct put slow = {.thread = main_thread, .start = 900, .end = 905, .count = 2, .every = 10};
    put(world, WAIT_RUNQ, &slow);
}

static void workers_make(struct world *world, uint32_t mutex)
{
    uint32_t *workers = world->workers;
    uint32_t log = object(world, OBJECT_FILE, 0, 13, "/var/log/demo.log");
    uint32_t condition = object(world, OBJECT_FUTEX, 0, 0x5000, "work_ready");
    uint32_t sync = stack(world, "libc:start_thread worker commit libc:fsync kernel:do_fsync");
    uint32_t lock = stack(
        world, "libc:start_thread worker pop libc:___pthread_mutex_lock kernel:futex_wait");
    uint32_t wait = stack(
        world, "libc:start_thread worker idle_wait libc:___pthread_cond_wait kernel:futex_wait");
    uint32_t unlock = stack(
        world, "libc:start_thread worker drain libc:___pthread_mutex_unlock kernel:futex_wake");
    uint32_t unseen = stack(world, "libc:start_thread worker tune libc:ioctl kernel:vfs_ioctl");
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
         .waker = world->main_thread,
         .stack = wait,
         .start = 0,
         .end = 40,
         .count = 10,
         .every = 41},
        {.thread = workers[2],
         .call = "futex",
         .object = condition,
         .detail = WAIT_FUTEX_BITSET,
         .waker = world->main_thread,
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
    put_all(world, waits, ARRAY_SIZE(waits));
}

/* Beside them: a timer thread, a logger, the child. */
static void others_make(struct world *world)
{
    uint32_t log = object(world, OBJECT_FILE, 0, 13, "/var/log/demo.log");
    uint32_t poll = object(world, OBJECT_POLL_SET, 0, 1, "[eventpoll]");
    struct put waits[] = {
        {.thread = world->timer,
         .call = "clock_nanosleep",
         .flags = TIMED,
         .start = 0,
         .end = 96,
         .count = 10,
         .every = 100,
         .stack = stack(world,
                        "libc:start_thread tick libc:__clock_nanosleep kernel:hrtimer_nanosleep")},
        {.thread = world->logger,
         .call = "epoll_wait",
         .object = poll,
         .start = 0,
         .end = 50,
         .count = 10,
         .every = 99,
         .stack = stack(world, "libc:start_thread log_loop libc:epoll_wait kernel:do_epoll_wait")},
        {.thread = world->logger,
         .call = "fsync",
         .object = log,
         .flags = WAIT_IO | WAIT_UNINTERRUPTIBLE,
         .start = 50,
         .end = 90,
         .count = 10,
         .every = 99,
         .stack = stack(world, "libc:start_thread log_loop flush libc:fsync kernel:do_fsync")},
        {.thread = world->helper,
         .call = "openat",
         .flags = WAIT_IO,
         .start = 160,
         .end = 200,
         .stack = stack(world, "_start main load libc:open64 kernel:do_sys_openat2")},
    };
    put_all(world, waits, ARRAY_SIZE(waits));
}

static void plain_make(struct world *world, const char *scope)
{
    threads_make(world);
    uint32_t mutex = object(world, OBJECT_FUTEX, 0, 0x6000, "queue_mutex");
    made_series(&world->made, "offcpu", SERIES_SUM, UNIT_NS);
    made_series(&world->made, "running", SERIES_SUM, UNIT_NS);
    main_begin(world);
    main_end(world, mutex);
    workers_make(world, mutex);
    others_make(world);
    running(world, world->main_thread, 310);
    running(world, world->workers[0], 455);
    running(world, world->workers[1], 595);
    running(world, world->workers[2], 60);
    running(world, world->timer, 8);
    running(world, world->logger, 95);
    running(world, world->helper, 308);
    documents(world, scope);
    counters(world, 300);
}

static void many_make(struct world *world)
{
    threads_make(world);
    made_series(&world->made, "offcpu", SERIES_SUM, UNIT_NS);
    made_series(&world->made, "running", SERIES_SUM, UNIT_NS);
    uint32_t mutex = object(world, OBJECT_FUTEX, 0, 0x6000, "queue_mutex");
    uint32_t lock = stack(
        world, "libc:start_thread worker pop libc:___pthread_mutex_lock kernel:futex_wait");
    for (uint32_t i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof(name), "pool-%u", i);
        uint32_t owner = thread(world, world->server, 5000 + i, name, 0, SPAN_MS);
        struct put wait = {.thread = owner,
                           .call = "futex",
                           .object = mutex,
                           .detail = WAIT_FUTEX_VALUE_2,
                           .waker = world->main_thread,
                           .stack = lock,
                           .start = i,
                           .end = i + 2,
                           .count = 400,
                           .every = 2.4};
        put(world, WAIT_BLOCKED, &wait);
        running(world, owner, 150);
    }
    documents(world, "command");
    counters(world, 16000);
}

static void idle_make(struct world *world)
{
    threads_make(world);
    made_series(&world->made, "offcpu", SERIES_SUM, UNIT_NS);
    struct put wait = {.thread = world->main_thread,
                       .call = "accept4",
                       .start = 0,
                       .end = 99,
                       .count = 10,
                       .every = 100,
                       .object = object(world, OBJECT_SOCKET, OBJECT_LISTENING, 3, "0.0.0.0:8080"),
                       .stack = stack(world, "_start main serve libc:accept4")};
    put(world, WAIT_BLOCKED, &wait);
    documents(world, "command");
}

static void bare_make(struct world *world)
{
    struct thread_info nameless = {.tid = 1, .start_ns = at_ns(0)};
    struct put wait = {.start = 1, .end = 3};
    made_check(sink_process(world->made.sink, &(struct process_info){.pid = 1}, &nameless.process),
               "process");
    made_check(sink_thread(world->made.sink, &nameless, &wait.thread), "thread");
    made_series(&world->made, "offcpu", SERIES_SUM, UNIT_NS);
    put(world, WAIT_BLOCKED, &wait);
}

static void hostile_make(struct world *world)
{
    static const char *const names[] = {
        "</script><script>alert(1)</script>", "\x1b[31mred\x1b[0m\x1b]0;title\x07",
        "two\nlines\r|_cell_|_`code`_]]>",    "\xff\xfe_not_UTF-8_\xc3",
        "--stack=w1;_rm_-rf_$HOME",
    };
    threads_make(world);
    made_series(&world->made, "offcpu", SERIES_SUM, UNIT_NS);
    for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint32_t owner = thread(world, world->server, 5000 + i, names[i], 0, SPAN_MS);
        struct put wait = {.thread = owner,
                           .call = "read",
                           .start = i,
                           .end = 500 - i * 50,
                           .waker = owner,
                           .object = object(world, OBJECT_FILE, 0, 50 + i, names[i]),
                           .stack = stack(world, names[i]),
                           .waker_stack = stack(world, names[i])};
        put(world, WAIT_BLOCKED, &wait);
    }
    documents(world, "command");
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
    struct world world = {.made = {.sink = recording_writer_sink(writer)}};
    world.sampled = strcmp(argv[1], "user") == 0;
    if (strcmp(argv[1], "machine") == 0)
        plain_make(&world, "system");
    else if (strcmp(argv[1], "many") == 0)
        many_make(&world);
    else if (strcmp(argv[1], "idle") == 0)
        idle_make(&world);
    else if (strcmp(argv[1], "bare") == 0)
        bare_make(&world);
    else if (strcmp(argv[1], "hostile") == 0)
        hostile_make(&world);
    else
        plain_make(&world, "command");
    int r = recording_writer_finish(writer, &why);
    recording_writer_close(writer);
    if (r < 0)
        fprintf(stderr, "make-waits: %s\n", why.what);
    return r < 0;
}
