/* Writes a recording whose every figure is known, the same on every machine and every time.
 *
 *     make-recording KIND FILE
 *
 * plain    a program with recursion, inlined functions, two functions of one name, the kernel,
 *          unnamed code, a cut-off walk, three workers; source and instructions of the hottest
 * after    the same program once `checksum` was made twice as fast and `copy` came in
 * hostile  names with markup, escapes, newlines, 100 KB
 * bare     one sample, no counters, no names
 * locks    waits for locks of every kind and name, holds, joins, an idle worker
 * locks-hostile, locks-none    the same with names as in hostile; waits, but none for a lock
 * empty    a series without a sample */
#include "../unit/made_profile.h"

#include "model/wait_book.h"
#include "store/writer.h"

#include <inttypes.h>
#include <string.h>

enum { MS = 1000000 };

static uint64_t clock_zero(void)
{
    return 1;
}

struct world {
    struct made made;
    uint32_t app, lib, kernel;
    uint32_t main_thread, workers[3];
    uint32_t f_checksum;
    uint32_t s_start, s_checksum, s_load, s_fib[3], s_helper, s_lib_helper, s_read, s_unnamed,
        s_cut, s_copy;
};

static void threads_make(struct world *world)
{
    struct made *made = &world->made;
    uint32_t process = made_process(made, 4711, "/opt/demo/bin/demo", "demo --input data.bin");
    world->main_thread = made_thread(made, process, 4711, "demo");
    for (uint32_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "worker-%u", i);
        world->workers[i] = made_thread(made, process, 4712 + i, name);
    }
    world->app = made_image(made, IMAGE_FILE, "/opt/demo/bin/demo", "0123456789abcdef");
    world->lib = made_image(made, IMAGE_FILE, "/usr/lib/libhelp.so.2", "fedcba98");
    world->kernel = made_image(made, IMAGE_KERNEL, "[kernel]", "");
}

/* Root to leaf: _start, main, then what each stack is about. */
static void stacks_make(struct world *world)
{
    struct made *made = &world->made;
    uint32_t app = world->app;
    uint32_t f_start = made_function(made, "_start", app, "", 0, 0x1000);
    uint32_t f_main = made_function(made, "main", app, "/src/demo/main.c", 40, 0x2000);
    uint32_t f_load = made_function(made, "load", app, "/src/demo/load.c", 8, 0x3000);
    world->f_checksum = made_function(made, "checksum", app, "/src/demo/sum.c", 10, 0x4000);
    uint32_t f_rotate = made_function(made, "rotate", app, "/src/demo/sum.h", 3, 0);
    uint32_t f_fib = made_function(made, "fib", app, "/src/demo/fib.c", 2, 0x5000);
    uint32_t f_helper = made_function(made, "helper", app, "/src/demo/main.c", 20, 0x6000);
    uint32_t f_other = made_function(made, "helper", world->lib, "", 0, 0x700);
    uint32_t f_read = made_function(made, "ksys_read", world->kernel, "", 0, 0xffffffff81200000);
    uint32_t f_copy = made_function(made, "__memmove_avx_unaligned_erms", app, "", 0, 0x8000);
    uint32_t start = made_code(made, app, 0x1010, f_start, "", 0);
    uint32_t in_main = made_code(made, app, 0x2020, f_main, "/src/demo/main.c", 44);
    uint32_t in_load = made_code(made, app, 0x3011, f_load, "/src/demo/load.c", 12);
    uint32_t sum_11 = made_code(made, app, 0x4004, world->f_checksum, "/src/demo/sum.c", 13);
    uint32_t sum_rotate = made_frame(made, FRAME_USER, app, 0x4008, NULL, 0);
    made_place(made, sum_rotate, 0, f_rotate, "/src/demo/sum.h", 5);
    made_place(made, sum_rotate, 1, world->f_checksum, "/src/demo/sum.c", 14);
    uint32_t fib = made_code(made, app, 0x5020, f_fib, "/src/demo/fib.c", 5);
    uint32_t help = made_code(made, app, 0x6004, f_helper, "/src/demo/main.c", 22);
    uint32_t help_lib = made_code(made, world->lib, 0x710, f_other, "", 0);
    uint32_t unnamed = made_frame(made, FRAME_USER, world->lib, 0x9999, NULL, 0);
    uint32_t kernel = made_frame(made, FRAME_KERNEL, world->kernel, 0xffffffff81200042, NULL, 0);
    made_place(made, kernel, 0, f_read, "", 0);
    uint32_t cut = made_frame(made, FRAME_UNKNOWN, 0, 0, NULL, 1);
    uint32_t copy = made_code(made, app, 0x8010, f_copy, "", 0);
    world->s_start = made_stack(made, start, in_main, 0);
    world->s_load = made_stack(made, start, in_main, in_load, sum_11, 0);
    world->s_checksum = made_stack(made, start, in_main, sum_rotate, 0);
    world->s_fib[0] = made_stack(made, start, in_main, fib, 0);
    world->s_fib[1] = made_stack(made, start, in_main, fib, fib, 0);
    world->s_fib[2] = made_stack(made, start, in_main, fib, fib, fib, 0);
    world->s_helper = made_stack(made, start, in_main, help, 0);
    world->s_lib_helper = made_stack(made, start, in_main, help_lib, 0);
    world->s_unnamed = made_stack(made, start, in_main, help_lib, unnamed, 0);
    world->s_read = made_stack(made, start, in_main, in_load, kernel, 0);
    world->s_cut = made_stack(made, cut, help, 0);
    world->s_copy = made_stack(made, start, in_main, copy, 0);
}

static void embedded_make(struct world *world)
{
    static const char *const lines[] = {
        "uint64_t checksum(const uint8_t *bytes, size_t len)",
        "{",
        "    uint64_t sum = 1;",
        "    for (size_t i = 0; i < len; i++) {",
        "        sum = rotate(sum, 7) ^ bytes[i];",
        "    }",
        "    return sum;",
        "}",
    };
    static const char *const code[] = {"mov eax, 1", "movzx edx, byte ptr [rdi]", "rol rax, 7",
                                       "xor rax, rdx", "jmp 0x4004 <checksum+0x4>"};
    struct made *made = &world->made;
    uint32_t file = made_text(made, "/src/demo/sum.c");
    for (uint32_t i = 0; i < ARRAY_SIZE(lines); i++)
        made_check(sink_source_line(made->sink, file, 10 + i, str_from(lines[i])), "source");
    uint32_t header = made_text(made, "/src/demo/sum.h");
    made_check(sink_source_line(made->sink, header, 5, STR("\treturn x << n | x >> (64 - n);")),
               "source");
    for (uint32_t i = 0; i < ARRAY_SIZE(code); i++)
        made_check(sink_instruction(made->sink, world->app, 0x4000 + 4 * i, 4, str_from(code[i])),
                   "code");
}

static void counters_make(struct world *world, uint64_t samples, uint64_t sampled_ns)
{
    struct {
        const char *name;
        enum unit unit;
        uint64_t value;
    } counters[] = {
        {"cpu.samples", UNIT_COUNT, samples},
        {"cpu.complete", UNIT_COUNT, samples - 10},
        {"cpu.truncated", UNIT_COUNT, 10},
        {"cpu.throttled", UNIT_COUNT, 0},
        {"loss.ring_full", UNIT_COUNT, 0},
        {"cpu.sampled_ns", UNIT_NS, sampled_ns},
        {"cpu.rusage_ns", UNIT_NS, sampled_ns + 5 * MS},
        {"cpu.own_ns", UNIT_NS, 6 * MS},
        {"cpu.kernel_ns", UNIT_NS, 4 * MS},
    };
    for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
        made_check(
            sink_counter(world->made.sink, counters[i].name, counters[i].unit, counters[i].value),
            "counter");
}

/* 1,000 samples of 1 ms in the plain one. */
static void plain_make(struct world *world, bool after)
{
    struct made *made = &world->made;
    threads_make(world);
    stacks_make(world);
    embedded_make(world);
    made_series(made, "cpu", SERIES_SUM, UNIT_NS);
    made_samples(made, world->main_thread, world->s_start, 20, MS);
    made_samples(made, world->main_thread, world->s_load, after ? 50 : 100, MS);
    for (int i = 0; i < 3; i++)
        made_samples(made, world->workers[i], world->s_checksum, after ? 50 : 100, MS);
    made_samples(made, world->main_thread, world->s_fib[0], 50, MS);
    made_samples(made, world->main_thread, world->s_fib[1], 70, MS);
    made_samples(made, world->main_thread, world->s_fib[2], 80, MS);
    made_samples(made, world->main_thread, world->s_helper, 100, MS);
    made_samples(made, world->main_thread, world->s_lib_helper, 60, MS);
    made_samples(made, world->main_thread, world->s_unnamed, 40, MS);
    made_samples(made, world->main_thread, world->s_read, 150, MS);
    made_samples(made, world->main_thread, world->s_cut, 10, MS);
    if (after)
        made_samples(made, world->workers[0], world->s_copy, 90, MS);
    else
        made_samples(made, 0, 0, 20, MS);
    made_series(made, "alloc", SERIES_SUM, UNIT_BYTES);
    made_samples(made, world->main_thread, world->s_load, 10, 4096);
    made_samples(made, world->main_thread, world->s_helper, 5, 1 << 20);
    uint64_t samples = after ? 870 : 1000;
    counters_make(world, samples, samples * MS);
}

static void hostile_make(struct world *world)
{
    static const char *const names[] = {
        "</script><script>alert(1)</script>",
        "\x1b[31mred\x1b[0m\x1b]0;title\x07",
        "two\nlines\r| cell | `code` ]]>",
        "\xff\xfe not UTF-8 \xc3",
        "--diff=/etc/passwd; rm -rf $HOME",
        ("\xe2\x80\xae"
         "desrever"),
    };
    struct made *made = &world->made;
    threads_make(world);
    char *huge = malloc(100001);
    memset(huge, 'A', 100000);
    huge[100000] = '\0';
    made_series(made, "cpu", SERIES_SUM, UNIT_NS);
    for (uint32_t i = 0; i < ARRAY_SIZE(names) + 1; i++) {
        const char *name = i < ARRAY_SIZE(names) ? names[i] : huge;
        uint32_t function = made_function(made, name, world->app, name, 1, 0x1000 + i * 0x100);
        uint32_t frame = made_code(made, world->app, 0x1000 + i * 0x100, function, name, 2);
        uint32_t thread = made_thread(made, 1, 5000 + i, i < ARRAY_SIZE(names) ? name : "t");
        made_samples(made, thread, made_stack(made, frame, 0), 10 * (ARRAY_SIZE(names) + 1 - i),
                     MS);
    }
    free(huge);
}

static void bare_make(struct world *world)
{
    struct made *made = &world->made;
    made_series(made, "cpu", SERIES_SUM, UNIT_NS);
    uint32_t frame = made_frame(made, FRAME_USER, 0, 0x1234, NULL, 0);
    made_samples(made, 0, made_stack(made, frame, 0), 1, MS);
}

/* What a lock waits in, from the thread's root to the kernel. */
struct lock_calls {
    uint32_t start, main, push, pop, in_lock, in_unlock, in_condition, in_join, wait, kernel;
};

static uint32_t libc_code(struct world *world, uint32_t libc, const char *name, uint64_t address)
{
    uint32_t function = made_function(&world->made, name, libc, "", 0, address);
    return made_code(&world->made, libc, address + 0x10, function, "", 0);
}

static struct lock_calls lock_calls_make(struct world *world)
{
    struct made *made = &world->made;
    uint32_t app = world->app;
    uint32_t libc = made_image(made, IMAGE_FILE, "/lib/x86_64-linux-gnu/libc.so.6", "abcd");
    uint32_t f_main = made_function(made, "main", app, "/src/demo/main.c", 40, 0x2000);
    uint32_t f_push = made_function(made, "queue_push", app, "/src/demo/queue.c", 38, 0x3000);
    uint32_t f_pop = made_function(made, "queue_pop", app, "/src/demo/queue.c", 60, 0x4000);
    uint32_t f_kernel = made_function(made, "futex_wait_queue", world->kernel, "", 0,
                                      0xffffffff81300000);
    struct lock_calls calls = {
        .start = libc_code(world, libc, "start_thread", 0x1000),
        .main = made_code(made, app, 0x2020, f_main, "/src/demo/main.c", 44),
        .push = made_code(made, app, 0x3020, f_push, "/src/demo/queue.c", 41),
        .pop = made_code(made, app, 0x4020, f_pop, "/src/demo/queue.c", 63),
        .in_lock = libc_code(world, libc, "___pthread_mutex_lock", 0x5000),
        .in_unlock = libc_code(world, libc, "___pthread_mutex_unlock", 0x5800),
        .in_condition = libc_code(world, libc, "___pthread_cond_wait", 0x6000),
        .in_join = libc_code(world, libc, "__pthread_clockjoin_ex", 0x7000),
        .wait = libc_code(world, libc, "__lll_lock_wait", 0x8000),
        .kernel = made_frame(made, FRAME_KERNEL, world->kernel, 0xffffffff81300042, NULL, 0),
    };
    made_place(made, calls.kernel, 0, f_kernel, "", 0);
    return calls;
}

static uint32_t lock_object(struct world *world, enum object_kind kind, uint64_t address,
                            const char *name)
{
    uint32_t id;
    struct object_info info = {
        .kind = kind, .process = kind == OBJECT_FUTEX, .key = address, .name = str_from(name)};
    made_check(sink_object(world->made.sink, &info, &id), "object");
    return id;
}

/* `count` of them, each `us` microseconds long but the last, which takes twenty times as long. */
static void lock_waits(struct world *world, const struct wait_info *info, uint64_t count,
                       uint64_t us, unsigned owner_off_pct)
{
    struct wait_tally tally = {0};
    uint32_t id;
    for (uint64_t i = 0; i < count; i++)
        wait_tally_one(&tally, (1 + i) * MS, us * 1000 * (i + 1 == count ? 20 : 1));
    if (owner_off_pct > 0) { /* of waits, half of them with a known owner */
        tally.owned_ns = info->kind == WAIT_HOLD ? tally.total_ns : tally.total_ns / 2;
        tally.owner_off_ns = tally.owned_ns * owner_off_pct / 100;
    }
    made_check(sink_wait(world->made.sink, info, &id), "wait");
    made_check(sink_wait_add(world->made.sink, id, &tally), "wait");
}

/* In the kernel, for one of its own locks. */
static uint32_t kernel_lock_stack(struct world *world, uint32_t caller)
{
    static const char *const names[] = {"vm_mmap_pgoff", "down_write_killable",
                                        "rwsem_down_write_slowpath"};
    struct made *made = &world->made;
    uint32_t frames[ARRAY_SIZE(names)];
    for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint64_t address = 0xffffffff81400000 + i * 0x1000;
        uint32_t function = made_function(made, names[i], world->kernel, "", 0, address);
        frames[i] = made_frame(made, FRAME_KERNEL, world->kernel, address + 16, NULL, 0);
        made_place(made, frames[i], 0, function, "", 0);
    }
    return made_stack(made, caller, frames[0], frames[1], frames[2], 0);
}

static void locks_make(struct world *world)
{
    struct made *made = &world->made;
    threads_make(world);
    struct lock_calls c = lock_calls_make(world);
    uint32_t in_push = made_stack(made, c.start, c.push, c.in_lock, c.wait, c.kernel, 0);
    uint32_t in_pop = made_stack(made, c.start, c.pop, c.in_lock, c.wait, c.kernel, 0);
    uint32_t out_push = made_stack(made, c.start, c.push, c.in_unlock, 0);
    uint32_t idle = made_stack(made, c.start, c.pop, c.in_condition, c.kernel, 0);
    uint32_t join = made_stack(made, c.main, c.in_join, c.kernel, 0);
    uint32_t mapping = kernel_lock_stack(world, c.main);
    uint32_t named = lock_object(world, OBJECT_FUTEX, 0x555500004040, "queue_mutex");
    uint32_t heap = lock_object(world, OBJECT_FUTEX, 0x7f0000001000, "");
    uint32_t condition = lock_object(world, OBJECT_FUTEX, 0x7f0000002028, "");
    uint32_t joined = lock_object(world, OBJECT_FUTEX, 0x7f0000003910, "");
    uint32_t mmap_lock = lock_object(world, OBJECT_KERNEL_LOCK, 0xffff888000001000,
                                     "rwsem (write) mmap_lock in vm_mmap_pgoff");
    struct wait_info wait = {.syscall = 202, .detail = WAIT_FUTEX_VALUE_2, .object = named};
    for (uint32_t i = 0; i < 3; i++) {
        wait.thread = world->workers[i];
        wait.stack = i == 2 ? in_pop : in_push;
        wait.waker_thread = world->workers[(i + 1) % 3];
        wait.waker_stack = out_push;
        lock_waits(world, &wait, 100, 100, 50);
    }
    wait = (struct wait_info){.kind = WAIT_HOLD,
                              .thread = world->workers[0],
                              .stack = out_push,
                              .object = named,
                              .syscall = WAIT_SYSCALL_NONE};
    lock_waits(world, &wait, 100, 100, 25);
    wait = (struct wait_info){.thread = world->workers[0],
                              .stack = in_push,
                              .object = heap,
                              .syscall = 202,
                              .detail = WAIT_FUTEX_VALUE_2};
    lock_waits(world, &wait, 10, 30, 0);
    wait.thread = world->workers[2];
    wait.stack = idle;
    wait.object = condition;
    wait.detail = WAIT_FUTEX_BITSET;
    lock_waits(world, &wait, 3, 20000, 0);
    wait.thread = world->main_thread;
    wait.stack = join;
    wait.object = joined;
    lock_waits(world, &wait, 1, 5000, 0);
    wait = (struct wait_info){.thread = world->main_thread,
                              .stack = mapping,
                              .object = mmap_lock,
                              .syscall = 9,
                              .flags = WAIT_UNINTERRUPTIBLE};
    lock_waits(world, &wait, 4, 50, 0);
    made_check(sink_document(made->sink, "waits", STR("{\"tier\":\"kernel\"}")), "document");
    made_series(made, "offcpu", SERIES_SUM, UNIT_NS);
    made_samples(made, world->workers[0], in_push, 1000, MS / 10);
}

static void hostile_locks_make(struct world *world)
{
    static const char *const names[] = {
        "</script><script>alert(1)</script>",
        "\x1b[31mred\x1b[0m\x1b]0;title\x07",
        "two\nlines\r| cell | `code` ]]>",
    };
    struct made *made = &world->made;
    threads_make(world);
    for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint64_t address = 0x1000 + i * 0x100;
        uint32_t function = made_function(made, names[i], world->app, names[i], 1, address);
        uint32_t frame = made_code(made, world->app, address, function, names[i], 2);
        struct wait_info wait = {
            .thread = world->workers[i],
            .stack = made_stack(made, frame, 0),
            .object = lock_object(world, OBJECT_FUTEX, 0x1000 * (i + 1), i < 2 ? names[i] : ""),
            .syscall = 202,
            .detail = WAIT_FUTEX_VALUE_2,
        };
        lock_waits(world, &wait, 10 - i, 100, 0);
    }
}

/* A sleep: nothing that is a lock. */
static void no_locks_make(struct world *world)
{
    threads_make(world);
    struct wait_info wait = {.thread = world->main_thread, .syscall = 230};
    lock_waits(world, &wait, 3, 100, 0);
}

int main(int argc, char **argv)
{
    struct why why = {0};
    struct recording_writer *writer = NULL;
    struct recording_opts opts = {.version = "test", .clock_ns = clock_zero};
    if (argc != 3 || recording_create(argv[2], &opts, &writer, &why) < 0) {
        fprintf(stderr, "make-recording KIND FILE: %s\n", why.what);
        return 2;
    }
    struct world world = {.made = {.sink = recording_writer_sink(writer)}};
    if (strcmp(argv[1], "plain") == 0 || strcmp(argv[1], "after") == 0)
        plain_make(&world, argv[1][0] == 'a');
    else if (strcmp(argv[1], "hostile") == 0)
        hostile_make(&world);
    else if (strcmp(argv[1], "locks") == 0)
        locks_make(&world);
    else if (strcmp(argv[1], "locks-hostile") == 0)
        hostile_locks_make(&world);
    else if (strcmp(argv[1], "locks-none") == 0)
        no_locks_make(&world);
    else if (strcmp(argv[1], "bare") == 0)
        bare_make(&world);
    else
        made_series(&world.made, "cpu", SERIES_SUM, UNIT_NS);
    int r = recording_writer_finish(writer, &why);
    recording_writer_close(writer);
    if (r < 0)
        fprintf(stderr, "make-recording: %s\n", why.what);
    return r < 0;
}
