/* Promises of collect/kernel_lock*.c and bpf/contention.bpf.c: whoever waits for a lock of the
 * kernel's is seen with lock, kind, place and system call; and only whoever was asked for. */
#include "unit.h"

#include "base/clock.h"
#include "collect/kernel_locks.h"
#include "format/contention.h"
#include "host/probe.h"
#include "model/sink_memory.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const size_t contention_bpf_bytes;

static void a_static_lock_is_called_by_its_variable(void **state)
{
    (void)state;
    static const char text[] = "ffffffff81000000 T _stext\n"
                               "ffffffff82a0b100 D console_mutex\n"
                               "ffffffff82a0b080 D tasklist_lock\n"
                               "ffffffff82a0b080 T not_a_variable\n"
                               "ffffffff82a0b200 r constants\n"
                               "ffffffff82b00000 B _end\n"
                               "ffffffffc0a01000 b lock\t[driver]\n"
                               "00000000000002c0 A per_cpu_thing\n"
                               "garbage\n"
                               "ffffffff82a0b1zz D bad\n";
    struct kernel_lock locks[] = {
        {.address = 0xffff888100000000, .flags = CONTENTION_WRITE},
        {.address = 0xffffffff82a0b080, .flags = CONTENTION_SPIN | CONTENTION_WRITE},
        {.address = 0xffffffff82a0b140, .flags = CONTENTION_MUTEX},
        {.address = 0xffffffff82a0b204, .flags = CONTENTION_SPIN},
        {.address = 0xffffffffc0a01000, .flags = CONTENTION_SPIN},
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    kernel_lock_symbols(&arena, STR(text), locks, ARRAY_SIZE(locks));
    static const char *const names[] = {
        "rwsem (write) at 0xffff888100000000",
        "rwlock (write) tasklist_lock",
        "mutex console_mutex+0x40",
        "spinlock at 0xffffffff82a0b204",
        "spinlock lock",
    };
    for (size_t i = 0; i < ARRAY_SIZE(locks); i++) {
        struct str name = kernel_lock_name(&arena, &locks[i], STR(""));
        assert_string_equal(name.data, names[i]);
    }
}

static void other_locks_are_called_by_who_takes_them(void **state)
{
    (void)state;
    static const struct {
        uint32_t flags;
        const char *name;
    } rows[] = {
        {CONTENTION_SPIN, "spinlock in f"},
        {CONTENTION_SPIN | CONTENTION_READ, "rwlock (read) in f"},
        {CONTENTION_READ, "rwsem (read) in f"},
        {CONTENTION_WRITE | CONTENTION_MMAP_LOCK, "rwsem (write) mmap_lock in f"},
        {CONTENTION_MUTEX, "mutex in f"},
        {CONTENTION_MUTEX | CONTENTION_SPIN, "mutex in f"},
        {CONTENTION_RT, "rtmutex in f"},
        {CONTENTION_RT | CONTENTION_READ, "rt rwlock (read) in f"},
        {CONTENTION_PERCPU | CONTENTION_READ, "per-CPU rwsem (read) in f"},
        {CONTENTION_PERCPU | CONTENTION_WRITE, "per-CPU rwsem (write) in f"},
        {0, "semaphore in f"},
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct kernel_lock lock = {.address = 0xffff888100000000, .flags = rows[i].flags};
        assert_string_equal(kernel_lock_name(&arena, &lock, STR("f")).data, rows[i].name);
    }
}

static void locking_itself_is_not_who_takes_a_lock(void **state)
{
    (void)state;
    static const char *const locking[] = {
        "__mutex_lock.constprop.0", "mutex_lock",     "rwsem_down_write_slowpath",
        "down_write_killable",      "down_read",      "native_queued_spin_lock_slowpath",
        "_raw_spin_lock_irqsave",   "bpf_trace_run2", "__traceiter_contention_begin",
        "bpf_prog_1234_lock_begin", "down",           "queued_write_lock_slowpath",
    };
    static const char *const taking[] = {"vm_mmap_pgoff", "pipe_write",           "do_exit",
                                         "downgrade",     "ext4_file_write_iter", ""};
    for (size_t i = 0; i < ARRAY_SIZE(locking); i++)
        assert_true(kernel_lock_is_locking(str_from(locking[i])));
    for (size_t i = 0; i < ARRAY_SIZE(taking); i++)
        assert_false(kernel_lock_is_locking(str_from(taking[i])));
}

static void buckets_are_those_of_the_model(void **state)
{
    (void)state;
    for (uint64_t ns = 1; ns < UINT64_MAX / 3; ns += ns / 16 + 1)
        assert_int_equal(contention_bucket(ns), wait_bucket(ns));
    assert_int_equal(contention_bucket(0), wait_bucket(0));
    assert_int_equal(contention_bucket(UINT64_MAX), wait_bucket(UINT64_MAX));
}

/* ---- against the real kernel ---- */

struct watch {
    struct sink_memory memory;
    struct stacks *stacks;
    struct objects *objects;
    struct kernel_locks *locks;
    int threads_fd;
};

static int watch_start(void **state)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    struct stacks_opts stacks_opts = {.live = true, .machine = unwind_machine_here()};
    struct why why = {0};
    struct probe probe;
    *state = watch;
    watch->memory = SINK_MEMORY_INIT;
    watch->threads_fd = -1;
    probe_bpf_tracing(&probe);
    if (!probe.ok || contention_bpf_bytes == 0) {
        print_message("no BPF here: %s\n", probe.ok ? "built without clang" : probe.detail);
        return 0;
    }
    watch->threads_fd = bpf_map_create(BPF_MAP_TYPE_HASH, "threads", 4, 176, 64, NULL);
    assert_true(watch->threads_fd >= 0);
    assert_int_equal(stacks_open(&stacks_opts, &watch->memory.sink, &watch->stacks, &why), 0);
    assert_int_equal(stacks_attach(watch->stacks, getpid(), clock_mono_ns(), &why), 0);
    assert_int_equal(objects_open(&watch->memory.sink, &watch->objects), 0);
    struct kernel_locks_opts opts = {
        .threads_fd = watch->threads_fd,
        .stacks = watch->stacks,
        .objects = watch->objects,
        .sink = &watch->memory.sink,
    };
    int r = kernel_locks_open(&opts, &watch->locks, &why);
    if (r == 0)
        r = kernel_locks_begin(watch->locks, clock_mono_ns(), &why);
    if (r < 0)
        fail_msg("%s", why.what);
    return 0;
}

static int watch_end(void **state)
{
    struct watch *watch = *state;
    kernel_locks_close(watch->locks);
    objects_close(watch->objects);
    stacks_close(watch->stacks);
    sink_memory_deinit(&watch->memory);
    if (watch->threads_fd >= 0)
        close(watch->threads_fd);
    free(watch);
    return 0;
}

enum { WORKERS = 2, BYTES = 32 << 20, LONG_NS = 1000000 };

struct work {
    struct watch *watch;
    int fd;
    const char *bytes;
    bool stop, maps, watched;
    uint64_t elapsed_ns;
    uint32_t tids[WORKERS];
    uint32_t started;
};

static bool stopped(struct work *work)
{
    return __atomic_load_n(&work->stop, __ATOMIC_RELAXED);
}

static void *worker(void *context)
{
    struct work *work = context;
    uint32_t tid = (uint32_t)gettid(),
             slot = __atomic_fetch_add(&work->started, 1, __ATOMIC_SEQ_CST);
    uint8_t value[176] = {0};
    work->tids[slot] = tid;
    if (work->watched)
        assert_int_equal(bpf_map_update_elem(work->watch->threads_fd, &tid, value, BPF_ANY), 0);
    while (!stopped(work)) {
        if (!work->maps) {
            assert_int_equal(pwrite(work->fd, work->bytes, BYTES, 0), BYTES);
            continue;
        }
        void *pages = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        assert_true(pages != MAP_FAILED);
        assert_int_equal(munmap(pages, 8 << 20), 0);
    }
    return NULL;
}

/* The row with the longest time that has a lock of this name; the name must be final. */
static const struct wait_row *row_of(const struct watch *watch, const char *beginning)
{
    const struct wait_row *best = NULL;
    for (size_t i = 0; i < watch->memory.book.waits.len; i++) {
        const struct wait_row *row = &watch->memory.book.waits.data[i];
        if (row->info.object == 0)
            continue;
        const struct object_info *object = &watch->memory.book.objects.data[row->info.object - 1]
                                                .info;
        if (str_starts(object->name, beginning) &&
            (!best || row->tally.total_ns > best->tally.total_ns))
            best = row;
    }
    return best;
}

static uint64_t waited_ns(const struct watch *watch)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < watch->memory.book.waits.len; i++)
        sum += watch->memory.book.waits.data[i].tally.total_ns;
    return sum;
}

/* Two threads at one lock until enough was seen, or ten minutes are over. */
static void contend(struct work *work)
{
    pthread_t threads[WORKERS];
    uint64_t start_ns = clock_mono_ns();
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, work), 0);
    for (int i = 0; i < (work->watched ? 30000 : 25); i++) {
        usleep(20000);
        assert_int_equal(kernel_locks_drain(work->watch->locks), 0);
        if (waited_ns(work->watch) > 20 * LONG_NS)
            break;
    }
    __atomic_store_n(&work->stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    work->elapsed_ns = clock_mono_ns() - start_ns;
    assert_int_equal(kernel_locks_finish(work->watch->locks), 0);
}

static void work_init(struct work *work, struct watch *watch)
{
    *work = (struct work){.watch = watch, .watched = true};
    work->fd = memfd_create("contended", MFD_CLOEXEC);
    assert_true(work->fd >= 0);
    work->bytes = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(work->bytes != MAP_FAILED);
}

static void work_deinit(struct work *work)
{
    munmap((void *)(uintptr_t)work->bytes, BYTES);
    close(work->fd);
}

static void row_is_sound(const struct work *work, const struct wait_row *row)
{
    const struct watch *watch = work->watch;
    uint64_t sum = 0;
    for (unsigned i = 0; i < WAIT_BUCKETS; i++)
        sum += row->tally.buckets[i];
    assert_int_equal(sum, row->tally.count);
    assert_true(row->tally.max_ns <= row->tally.total_ns);
    assert_true(row->tally.total_ns <= work->elapsed_ns);
    assert_int_equal(row->info.kind, WAIT_BLOCKED);
    assert_in_range(row->info.thread, 1, watch->memory.threads.len);
    uint32_t tid = watch->memory.threads.data[row->info.thread - 1].info.tid;
    assert_true(tid == work->tids[0] || tid == work->tids[1]);
    assert_int_not_equal(row->info.stack, 0);
    const struct memory_counter *counter = sink_memory_counter(&watch->memory,
                                                               "waits.lost.kernel_locks");
    assert_non_null(counter);
    assert_int_equal(counter->value, 0);
}

/* A write of 32 MiB holds the file's lock for milliseconds: the other one has to wait. */
static void writers_of_one_file_wait_for_its_lock(void **state)
{
    struct watch *watch = *state;
    struct work work;
    if (!watch->locks)
        skip("no BPF here");
    work_init(&work, watch);
    contend(&work);
    const struct wait_row *row = row_of(watch, "rwsem (write) in ");
    assert_non_null(row);
    row_is_sound(&work, row);
    assert_true(row->tally.max_ns > LONG_NS / 10);
    assert_int_equal(row->info.syscall, SYS_pwrite64);
    assert_int_equal(row->info.detail & ~(uint32_t)WAIT_LOCK_SPIN, WAIT_LOCK_WRITE);
    const struct object_info *object = &watch->memory.book.objects.data[row->info.object - 1].info;
    assert_int_equal(object->kind, OBJECT_KERNEL_LOCK);
    assert_true(str_contains(object->name, "file_write_iter"));
    work_deinit(&work);
}

static void threads_that_map_wait_for_the_lock_of_their_space(void **state)
{
    struct watch *watch = *state;
    struct work work;
    if (!watch->locks)
        skip("no BPF here");
    work_init(&work, watch);
    work.maps = true;
    contend(&work);
    const struct wait_row *row = row_of(watch, "rwsem (write) mmap_lock in ");
    if (!row)
        row = row_of(watch, "rwsem (read) mmap_lock in ");
    assert_non_null(row);
    row_is_sound(&work, row);
    assert_true(row->info.syscall == SYS_mmap || row->info.syscall == SYS_munmap);
    work_deinit(&work);
}

static void threads_that_nobody_asked_for_are_not_seen(void **state)
{
    struct watch *watch = *state;
    struct work work;
    if (!watch->locks)
        skip("no BPF here");
    work_init(&work, watch);
    work.watched = false;
    contend(&work);
    assert_int_equal(watch->memory.book.waits.len, 0);
    assert_int_equal(watch->memory.book.objects.len, 0);
    assert_int_equal(sink_memory_counter(&watch->memory, "locks.kernel_waits")->value, 0);
    work_deinit(&work);
}

static void what_is_no_map_is_refused(void **state)
{
    struct watch *watch = *state;
    struct why why = {0};
    struct kernel_locks *locks = NULL;
    struct kernel_locks_opts opts = {.threads_fd = -1};
    if (!watch->locks)
        skip("no BPF here");
    assert_true(kernel_locks_open(&opts, &locks, &why) < 0);
    assert_null(locks);
    assert_non_null(strstr(why.what, "threads"));
    kernel_locks_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_static_lock_is_called_by_its_variable),
        cmocka_unit_test(other_locks_are_called_by_who_takes_them),
        cmocka_unit_test(locking_itself_is_not_who_takes_a_lock),
        cmocka_unit_test(buckets_are_those_of_the_model),
#define LIVE(test) cmocka_unit_test_setup_teardown(test, watch_start, watch_end)
        LIVE(writers_of_one_file_wait_for_its_lock),
        LIVE(threads_that_map_wait_for_the_lock_of_their_space),
        LIVE(threads_that_nobody_asked_for_are_not_seen),
        LIVE(what_is_no_map_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
