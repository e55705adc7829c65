/* Every rule of docs/waits.md with a wait that it is about and one that it is not about; sums
 * that make up a thread's life; causes in words; groups as people see them. */
#include "unit.h"

#include "analyze/call_tree.h"
#include "analyze/wait_classes.h"
#include "analyze/wait_groups.h"
#include "analyze/wait_parts.h"
#include "analyze/wait_profile.h"
#include "base/syscalls.h"
#include "made_wait_rows.h"

#include <errno.h>

enum { MS = 1000000 };

static int32_t number(const char *name)
{
    if (!name)
        return WAIT_SYSCALL_NONE;
    if (strcmp(name, "?") == 0)
        return WAIT_SYSCALL_UNKNOWN;
    for (int32_t i = 0; i < SYSCALLS_MAX; i++) {
        const char *known = syscall_name_on(SYSCALLS_X86_64, i);
        if (known && strcmp(known, name) == 0)
            return i;
    }
    fail_msg("no system call %s", name);
    return 0;
}

enum who { MAIN, WORKER, OTHER }; /* the root's main thread, a thread beside it, another process */
enum by { NOBODY, SAME, CHILD_OF_TREE };

struct wait_case {
    enum wait_class class;
    const char *call; /* NULL: in none; "?": not known */
    uint32_t flags;
    const char *stack;
    enum object_kind kind;
    uint32_t object_flags;
    const char *object;
    enum who who;
    enum by by;
    const char *waker_stack;
    bool on_path;
    uint32_t detail;
};

#define TIMED    (WAIT_LIMITED | WAIT_BY_INTERRUPT)
#define C(class) WAIT_CLASS_##class

static const struct wait_case cases[] = {
    /* In no call of its own. */
    {C(PAGEFAULT), NULL, WAIT_FAULT | WAIT_IO | WAIT_UNINTERRUPTIBLE, "main load", 0, 0, "", MAIN,
     0, "", 0, 0},
    {C(PAGEFAULT), "read", WAIT_FAULT, "main load", OBJECT_FILE, 0, "/data", MAIN, 0, "", 0, 0},
    {C(DISK), NULL, WAIT_UNINTERRUPTIBLE, "", 0, 0, "", WORKER, 0, "", 0, 0},
    {C(UNKNOWN), NULL, 0, "", 0, 0, "", WORKER, 0, "", 0, 0},
    {C(UNKNOWN), "?", WAIT_SAMPLED, "", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(LOCK), "?", WAIT_SAMPLED, "", OBJECT_FUTEX, 0, "", MAIN, 0, "", 0, 0},
    /* Children. */
    {C(CHILD), "wait4", 0, "main k:do_wait", 0, 0, "", MAIN, CHILD_OF_TREE, "", 0, 0},
    {C(CHILD), "waitid", 0, "main", OBJECT_PROCESS, 0, "", WORKER, 0, "", 0, 0},
    {C(CHILD), "poll", TIMED, "main", OBJECT_PROCESS, 0, "", MAIN, 0, "", 0, 0},
    {C(CHILD), "vfork", WAIT_UNINTERRUPTIBLE, "main system", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(CHILD), "rt_sigsuspend", 0, "main waitforit", 0, 0, "", MAIN, CHILD_OF_TREE, "k:do_exit", 0,
     0},
    {C(CHILD), "futex", 0, "main pthread_join __pthread_clockjoin_ex", OBJECT_FUTEX, 0, "", MAIN,
     SAME, "", 0, WAIT_FUTEX_BITSET},
    {C(CHILD), "futex", 0, "main std::thread::join()", OBJECT_FUTEX, 0, "", WORKER, 0, "", 0,
     WAIT_FUTEX_BITSET},
    {C(CHILD), "futex", 0, "main", OBJECT_FUTEX, 0, "", WORKER, SAME, "start_thread", 0,
     WAIT_FUTEX_BITSET},
    /* Timers. */
    {C(TIMER), "nanosleep", WAIT_BY_INTERRUPT, "main sleep", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(TIMER), "clock_nanosleep", TIMED, "main usleep", 0, 0, "", WORKER, 0, "", 0, 0},
    {C(TIMER), "read", WAIT_BY_INTERRUPT, "main", OBJECT_TIMER, 0, "[timerfd]", WORKER, 0, "", 0,
     0},
    {C(TIMER), "pause", WAIT_BY_INTERRUPT, "main", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(IDLE), "pause", 0, "main", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(TIMER), "poll", TIMED, "main", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(TIMER), "epoll_wait", TIMED, "main", OBJECT_POLL_SET, 0, "[eventpoll]", MAIN, 0, "", 0, 0},
    {C(TIMER), "futex", TIMED, "main pthread_cond_timedwait", OBJECT_FUTEX, 0, "", MAIN, 0, "", 0,
     WAIT_FUTEX_BITSET},
    {C(TIMER), "restart_syscall", WAIT_BY_INTERRUPT, "main sleep", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(LOCK), "futex", TIMED, "main pthread_mutex_timedlock", OBJECT_FUTEX, 0, "", MAIN, 0, "", 0,
     WAIT_FUTEX_VALUE_2},
    /* Files. */
    {C(DISK), "read", WAIT_IO | WAIT_UNINTERRUPTIBLE, "main", OBJECT_FILE, 0, "/data", MAIN, 0, "",
     0, 0},
    {C(DISK), "pread64", 0, "main", OBJECT_BLOCK_DEVICE, 0, "/dev/sda", WORKER, 0, "", 0, 0},
    {C(DISK), "getdents64", 0, "main", OBJECT_DIRECTORY, 0, "/tmp", WORKER, 0, "", 0, 0},
    {C(DISK), "fsync", WAIT_UNINTERRUPTIBLE, "main", OBJECT_FILE, 0, "/log", WORKER, 0, "", 0, 0},
    {C(DISK), "openat", WAIT_IO, "main", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(DISK), "write", WAIT_UNINTERRUPTIBLE, "main", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(DISK), "ioctl", WAIT_UNINTERRUPTIBLE, "main", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(UNKNOWN), "ioctl", 0, "main", OBJECT_CHAR_DEVICE, 0, "/dev/dri", MAIN, 0, "", 0, 0},
    {C(LOCK), "write", WAIT_UNINTERRUPTIBLE,
     "main k:ext4_write k:rwsem_down_write_slowpath k:schedule", OBJECT_FILE, 0, "/log", MAIN, 0,
     "", 0, 0},
    {C(LOCK), "mmap", WAIT_UNINTERRUPTIBLE, "main", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(LOCK), "fcntl", 0, "main", OBJECT_FILE, 0, "/pid", WORKER, 0, "", 0, 0},
    {C(LOCK), "flock", 0, "main", OBJECT_FILE, 0, "/pid", MAIN, 0, "", 0, 0},
    {C(LOCK), "semop", 0, "main", 0, 0, "", WORKER, 0, "", 0, 0},
    /* Sockets. */
    {C(NET), "recvfrom", 0, "main", OBJECT_SOCKET, OBJECT_CLIENT, "10.0.0.1:80", WORKER, 0, "", 0,
     0},
    {C(NET), "read", 0, "main", OBJECT_SOCKET, OBJECT_CLIENT, "10.0.0.1:80", WORKER, 0, "", 0, 0},
    {C(IDLE), "recvfrom", 0, "main", OBJECT_SOCKET, OBJECT_SERVER, "10.0.0.9:4711", MAIN, 0, "", 1,
     0},
    {C(NET), "recvfrom", WAIT_ASKED, "main", OBJECT_SOCKET, OBJECT_SERVER, "10.0.0.9:4711", MAIN, 0,
     "", 0, 0},
    {C(NET), "connect", 0, "main", OBJECT_SOCKET, OBJECT_CLIENT, "10.0.0.1:80", MAIN, 0, "", 0, 0},
    {C(NET), "sendto", 0, "main", OBJECT_SOCKET, OBJECT_SERVER, "10.0.0.9:4711", WORKER, 0, "", 0,
     0},
    {C(IDLE), "accept4", 0, "main", OBJECT_SOCKET, OBJECT_LISTENING, "0.0.0.0:80", MAIN, 0, "", 1,
     0},
    {C(IDLE), "accept", 0, "main", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(IDLE), "recvfrom", 0, "main", OBJECT_SOCKET, 0, "udp 0.0.0.0:53", WORKER, 0, "", 0, 0},
    {C(NET), "recvfrom", 0, "main", OBJECT_SOCKET, 0, "udp 0.0.0.0:53", MAIN, 0, "", 0, 0},
    {C(NET), "recvmsg", 0, "main", OBJECT_SOCKET, OBJECT_CLIENT | OBJECT_LOCAL, "unix:/run/x",
     WORKER, 0, "", 0, 0},
    {C(CHILD), "recvmsg", 0, "main", OBJECT_SOCKET, OBJECT_CLIENT | OBJECT_LOCAL, "unix:/run/x",
     MAIN, CHILD_OF_TREE, "", 0, 0},
    {C(NET), "recvmsg", WAIT_ASKED, "main", OBJECT_SOCKET, OBJECT_CLIENT | OBJECT_LOCAL,
     "unix:/run/x", MAIN, CHILD_OF_TREE, "", 0, 0},
    {C(IDLE), "recvmsg", 0, "main", OBJECT_SOCKET, OBJECT_SERVER | OBJECT_LOCAL, "unix:/run/x",
     WORKER, 0, "", 0, 0},
    {C(CHILD), "read", 0, "main", OBJECT_SOCKET, OBJECT_LOCAL, "socket:[7]", MAIN, CHILD_OF_TREE,
     "", 0, 0},
    {C(IDLE), "read", 0, "main", OBJECT_SOCKET, OBJECT_LOCAL, "socket:[7]", WORKER, CHILD_OF_TREE,
     "", 0, 0},
    /* Many at once. */
    {C(NET), "epoll_wait", WAIT_ASKED | TIMED, "main", OBJECT_POLL_SET, 0, "", MAIN, 0, "", 0, 0},
    {C(IDLE), "epoll_wait", 0, "main", OBJECT_POLL_SET, 0, "", MAIN, 0, "", 1, 0},
    {C(IDLE), "epoll_wait", 0, "main", OBJECT_POLL_SET, 0, "", MAIN, CHILD_OF_TREE,
     "client k:tcp_sendmsg", 1, 0},
    {C(CHILD), "epoll_wait", 0, "main", OBJECT_POLL_SET, 0, "", MAIN, CHILD_OF_TREE,
     "main k:anon_pipe_write", 1, 0},
    {C(CHILD), "ppoll", 0, "main", 0, 0, "", MAIN, CHILD_OF_TREE, "k:pipe_release k:do_exit", 1, 0},
    {C(IDLE), "ppoll", 0, "main", 0, 0, "", WORKER, CHILD_OF_TREE, "k:pipe_write", 0, 0},
    {C(NET), "poll", WAIT_LIMITED, "main", OBJECT_SOCKET, OBJECT_CLIENT, "10.0.0.1:80", MAIN, 0, "",
     0, 0},
    {C(IDLE), "select", 0, "main", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(LOCK), "epoll_wait", 0, "main ProcSleep WaitLatch WaitEventSetWait", OBJECT_POLL_SET, 0, "",
     WORKER, 0, "", 0, 0},
    /* Pipes, eventfds, terminals. */
    {C(CHILD), "read", 0, "main", OBJECT_PIPE, 0, "pipe:[5]", MAIN, CHILD_OF_TREE, "", 0, 0},
    {C(CHILD), "read", 0, "main", OBJECT_PIPE, 0, "pipe:[5]", OTHER, SAME + 1, "", 1, 0},
    {C(IDLE), "read", 0, "main", OBJECT_PIPE, 0, "pipe:[5]", WORKER, CHILD_OF_TREE, "", 0, 0},
    {C(CHILD), "read", 0, "main", OBJECT_PIPE, 0, "pipe:[5]", MAIN, NOBODY, "", 0, 0},
    {C(LOCK), "read", 0, "main", OBJECT_PIPE, 0, "pipe:[5]", MAIN, SAME, "", 0, 0},
    {C(IDLE), "read", 0, "main", OBJECT_PIPE, 0, "pipe:[5]", WORKER, SAME, "", 0, 0},
    {C(PIPE), "write", 0, "main", OBJECT_PIPE, 0, "pipe:[5]", WORKER, CHILD_OF_TREE, "", 0, 0},
    {C(PIPE), "write", 0, "main", OBJECT_PIPE, 0, "pipe:[5] to whyslow", MAIN, NOBODY, "", 1, 0},
    {C(LOCK), "write", 0, "main", OBJECT_PIPE, 0, "pipe:[5]", WORKER, SAME, "", 0, 0},
    {C(LOCK), "read", 0, "main", OBJECT_EVENT, 0, "[eventfd]", WORKER, SAME, "", 1, 0},
    {C(IDLE), "read", 0, "main", OBJECT_EVENT, 0, "[eventfd]", WORKER, SAME, "", 0, 0},
    {C(IDLE), "read", 0, "main", OBJECT_CHAR_DEVICE, 0, "/dev/pts/1", MAIN, 0, "", 0, 0},
    {C(UNKNOWN), "read", 0, "main", OBJECT_OTHER, 0, "[inotify]", MAIN, 0, "", 0, 0},
    /* Futexes. */
    {C(LOCK), "futex", TIMED, "main __GI___lll_lock_wait", OBJECT_FUTEX, 0, "m", WORKER, SAME, "",
     0, WAIT_FUTEX_OTHER},
    {C(LOCK), "futex", 0, "main", OBJECT_FUTEX, 0, "m", WORKER, SAME, "", 0, WAIT_FUTEX_VALUE_2},
    {C(LOCK), "futex", 0, "main", OBJECT_FUTEX, 0, "b", WORKER, SAME, "", 0, WAIT_FUTEX_VALUE_0},
    {C(LOCK), "futex", 0, "main", OBJECT_FUTEX, 0, "p", WORKER, SAME, "", 0, WAIT_FUTEX_PI},
    {C(LOCK), "futex", 0, "main ___pthread_rwlock_rdlock", OBJECT_FUTEX, 0, "", WORKER, SAME, "", 0,
     WAIT_FUTEX_BITSET},
    {C(IDLE), "futex", 0, "main __new_sem_wait_slow64", OBJECT_FUTEX, 0, "", WORKER, SAME, "", 0,
     WAIT_FUTEX_BITSET},
    {C(LOCK), "futex", 0, "main __new_sem_wait_slow64", OBJECT_FUTEX, 0, "", WORKER, SAME, "", 1,
     WAIT_FUTEX_BITSET},
    {C(IDLE), "futex", 0, "GangWorker::loop() sem_wait do_futex_wait", OBJECT_FUTEX, 0, "", WORKER,
     NOBODY, "", 0, WAIT_FUTEX_BITSET},
    {C(LOCK), "futex", 0, "main sem_wait", OBJECT_FUTEX, 0, "", MAIN, SAME, "", 0,
     WAIT_FUTEX_BITSET},
    {C(TIMER), "futex", TIMED, "main sem_timedwait", OBJECT_FUTEX, 0, "", MAIN, 0, "", 0,
     WAIT_FUTEX_BITSET},
    {C(LOCK), "futex", 0, "main", OBJECT_FUTEX, 0, "", WORKER, SAME, "", 0, WAIT_FUTEX_OTHER},
    {C(IDLE), "futex", 0, "start_thread worker ___pthread_cond_wait", OBJECT_FUTEX, 0, "", WORKER,
     SAME, "", 0, WAIT_FUTEX_BITSET},
    {C(LOCK), "futex", 0, "start_thread worker ___pthread_cond_wait", OBJECT_FUTEX, 0, "", WORKER,
     SAME, "", 1, WAIT_FUTEX_BITSET},
    {C(LOCK), "futex", 0, "main ___pthread_cond_wait", OBJECT_FUTEX, 0, "", MAIN, SAME, "", 0,
     WAIT_FUTEX_BITSET},
    {C(LOCK), "futex", 0, "worker ___pthread_cond_wait __pthread_mutex_cond_lock", OBJECT_FUTEX, 0,
     "", WORKER, SAME, "", 0, WAIT_FUTEX_VALUE_2},
    {C(IDLE), "futex", 0, "worker std::condition_variable::wait(std::unique_lock<std::mutex>&)",
     OBJECT_FUTEX, 0, "", WORKER, SAME, "", 0, WAIT_FUTEX_BITSET},
    {C(LOCK), "futex", 0, "main _PyEval_EvalFrameDefault take_gil ___pthread_cond_timedwait",
     OBJECT_FUTEX, 0, "", WORKER, SAME, "", 0, WAIT_FUTEX_BITSET},
    {C(LOCK), "futex", 0, "work std::sys::sync::mutex::futex::Mutex::lock_contended", OBJECT_FUTEX,
     0, "", WORKER, SAME, "", 0, WAIT_FUTEX_BITSET},
    {C(IDLE), "futex", 0, "work std::sys::sync::condvar::futex::Condvar::wait_optional_timeout",
     OBJECT_FUTEX, 0, "", WORKER, SAME, "", 0, WAIT_FUTEX_BITSET},
    {C(IDLE), "futex", 0,
     "runtime.mstart runtime.schedule runtime.findRunnable runtime.stopm runtime.mPark "
     "runtime.notesleep runtime.futexsleep runtime.futex",
     OBJECT_FUTEX, 0, "", MAIN, SAME, "", 1, WAIT_FUTEX_VALUE_0},
    {C(LOCK), "futex", 0, "main.work runtime.lock2 runtime.futexsleep runtime.futex", OBJECT_FUTEX,
     0, "", WORKER, SAME, "", 0, WAIT_FUTEX_VALUE_2},
    {C(IDLE), "epoll_pwait", 0, "runtime.schedule runtime.findRunnable runtime.netpoll",
     OBJECT_POLL_SET, 0, "", MAIN, 0, "", 1, 0},
    {C(LOCK), NULL, 0, "main", OBJECT_KERNEL_LOCK, 0, "rwsem (read) in do_mmap", WORKER, 0, "", 0,
     0},
    {C(IDLE), "futex", 0, "lock_PyThread_acquire_lock PyThread_acquire_lock_timed sem_clockwait",
     OBJECT_FUTEX, 0, "", WORKER, SAME, "", 0, WAIT_FUTEX_BITSET},
    {C(LOCK), "futex", 0, "lock_PyThread_acquire_lock PyThread_acquire_lock_timed sem_clockwait",
     OBJECT_FUTEX, 0, "", WORKER, SAME, "", 1, WAIT_FUTEX_BITSET},
    /* Rings. */
    {C(DISK), "io_uring_enter", 0, "main", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(NET), "io_uring_enter", WAIT_ASKED, "main", 0, 0, "", MAIN, 0, "", 0, 0},
    {C(IDLE), "io_uring_enter", 0, "main", 0, 0, "", WORKER, 0, "", 0, 0},
};

struct world {
    struct made_waits *made;
    uint32_t threads[3];
    struct arena arena;
    struct critical_path path;
    uint64_t path_waits[MADE_WAITS_MAX];
    struct wait_classes classes;
};

static void world_begin(struct world *world)
{
    *world = (struct world){.made = made_waits_new()};
    struct made_waits *made = world->made;
    uint32_t root = made_waits_process(made, 100, 0), child = made_waits_process(made, 200, root);
    world->threads[MAIN] = made_waits_thread(made, root, 100, "app", 1000 * (uint64_t)MS);
    world->threads[WORKER] = made_waits_thread(made, root, 101, "worker", 1000 * (uint64_t)MS);
    world->threads[OTHER] = made_waits_thread(made, child, 200, "child", 1000 * (uint64_t)MS);
    made->waits.root_process = root;
    made->waits.root_thread = world->threads[MAIN];
    made->waits.profile.fingerprint_json = STR("{\"kernel\": {\"arch\": \"x86_64\"}}");
    world->path = (struct critical_path){.ns = 1000 * (uint64_t)MS, .waits = world->path_waits};
}

static void world_judge(struct world *world)
{
    int r = wait_classes_build(&world->arena, &world->made->waits, &world->path, &world->classes);
    if (r < 0 || !world->classes.rows || !world->classes.threads)
        abort();
}

static void world_end(struct world *world)
{
    arena_deinit(&world->arena);
    free(world->made);
}

static uint32_t case_put(struct world *world, const struct wait_case *wanted, uint64_t count,
                         uint64_t ns)
{
    struct made_waits *made = world->made;
    struct wait_info info = {
        .thread = world->threads[wanted->who],
        .stack = made_waits_stack(made, wanted->stack),
        .syscall = number(wanted->call),
        .flags = wanted->flags,
        .detail = wanted->detail,
    };
    if (wanted->kind != OBJECT_NONE)
        info.object = made_waits_object(made, wanted->kind, wanted->object_flags, wanted->object);
    if (wanted->by == SAME)
        info.waker_thread = world->threads[wanted->who == MAIN ? WORKER : MAIN];
    else if (wanted->by == CHILD_OF_TREE)
        info.waker_thread = world->threads[wanted->who == OTHER ? MAIN : OTHER];
    info.waker_stack = made_waits_stack(made, wanted->waker_stack);
    uint32_t row = made_waits_row(made, &info, count, ns);
    if (wanted->on_path)
        world->path_waits[row] = 10 * MS; /* just the 1% */
    return row;
}

static void every_rule_gives_its_class_and_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world world;
        world_begin(&world);
        uint32_t row = case_put(&world, &cases[i], 1, 20 * MS);
        world_judge(&world);
        if (world.classes.rows[row] != cases[i].class)
            print_error("case %zu: %s at '%s': %s (%s)\n", i, cases[i].call, cases[i].stack,
                        wait_class_name(world.classes.rows[row]), world.classes.reasons[row]);
        assert_int_equal(world.classes.rows[row], cases[i].class);
        assert_true(strlen(world.classes.reasons[row]) > 3);
        assert_true(*wait_cause(&world.arena, &world.made->waits, row));
        world_end(&world);
    }
}

/* The same wait a little below 1% of the path is idle. */
static void below_one_percent_of_the_path_is_not_on_it(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct wait_case condition = {C(LOCK),      "futex", 0,    "worker pthread_cond_wait",
                                  OBJECT_FUTEX, 0,       "",   WORKER,
                                  SAME,         "",      true, WAIT_FUTEX_BITSET};
    uint32_t row = case_put(&world, &condition, 1, 20 * MS);
    world.path_waits[row] = 10 * MS - 1;
    world_judge(&world);
    assert_int_equal(world.classes.rows[row], WAIT_CLASS_IDLE);
    /* Several rows of one thread and stack are one wait: by different wakers. */
    struct wait_info again = world.made->rows[row].info;
    again.waker_thread = world.threads[OTHER];
    uint32_t second = made_waits_row(world.made, &again, 1, MS);
    world.path_waits[second] = 1;
    world_judge(&world);
    assert_int_equal(world.classes.rows[row], WAIT_CLASS_LOCK);
    /* Without a path only the root's main thread matters. */
    world.path.na = "the whole machine";
    world_judge(&world);
    assert_int_equal(world.classes.rows[row], WAIT_CLASS_IDLE);
    assert_int_equal(wait_classes_build(&world.arena, &world.made->waits, NULL, &world.classes), 0);
    assert_int_equal(world.classes.rows[row], WAIT_CLASS_IDLE);
    world_end(&world);
}

static void an_event_loop_that_is_woken_at_times_is_idle_also_when_its_limit_ends_it(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct wait_case timed = {C(TIMER), "poll", TIMED, "main loop", 0,     0,
                              "",       MAIN,   0,     "",          false, 0};
    uint32_t row = case_put(&world, &timed, 5, 20 * MS);
    world_judge(&world);
    assert_int_equal(world.classes.rows[row], WAIT_CLASS_TIMER);
    struct wait_info woken = world.made->rows[row].info;
    woken.flags = WAIT_LIMITED;
    made_waits_row(world.made, &woken, 1, MS);
    world_judge(&world);
    assert_int_equal(world.classes.rows[row], WAIT_CLASS_IDLE);
    /* An epoll set that comes back again and again is a server's. */
    timed.call = "epoll_wait";
    uint32_t twice = case_put(&world, &timed, 2, 20 * MS),
             often = case_put(&world, &timed, 3, 20 * MS);
    world_judge(&world);
    assert_int_equal(world.classes.rows[twice], WAIT_CLASS_TIMER);
    assert_int_equal(world.classes.rows[often], WAIT_CLASS_IDLE);
    world_end(&world);
}

/* A main thread that looks at a condition again and again when the run is cut short. */
static void a_wait_that_the_runs_end_ended_says_nothing_of_its_condition(void **state)
{
    (void)state;
    static const struct {
        uint32_t flags;
        enum by by;
        uint64_t count;
        enum wait_class limits, last;
    } ends[] = {
        {WAIT_LIMITED, NOBODY, 1, WAIT_CLASS_TIMER, WAIT_CLASS_TIMER}, /* killed */
        {WAIT_LIMITED | WAIT_OPEN, NOBODY, 1, WAIT_CLASS_TIMER, WAIT_CLASS_TIMER},
        {WAIT_LIMITED, NOBODY, 2, WAIT_CLASS_TIMER, WAIT_CLASS_TIMER}, /* told, then killed */
        {WAIT_LIMITED, NOBODY, 3, WAIT_CLASS_LOCK, WAIT_CLASS_LOCK},   /* somebody signals it */
        {WAIT_LIMITED, SAME, 1, WAIT_CLASS_LOCK, WAIT_CLASS_LOCK},
        {WAIT_LIMITED, CHILD_OF_TREE, 1, WAIT_CLASS_LOCK, WAIT_CLASS_LOCK},
        /* Without privileges nobody knows who it was. */
        {WAIT_LIMITED | WAIT_SAMPLED, NOBODY, 1, WAIT_CLASS_LOCK, WAIT_CLASS_LOCK},
    };
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        struct world world;
        world_begin(&world);
        struct wait_case wait = {C(TIMER),
                                 "futex",
                                 TIMED,
                                 "main look pthread_cond_timedwait",
                                 OBJECT_FUTEX,
                                 0,
                                 "",
                                 MAIN,
                                 0,
                                 "",
                                 true,
                                 WAIT_FUTEX_BITSET};
        uint32_t row = case_put(&world, &wait, 8, 800 * MS);
        struct wait_info info = world.made->rows[row].info;
        info.flags = ends[i].flags;
        if (ends[i].by != NOBODY)
            info.waker_thread = world.threads[ends[i].by == SAME ? WORKER : OTHER];
        uint32_t last = made_waits_row(world.made, &info, ends[i].count, 90 * MS);
        world_judge(&world);
        assert_int_equal(world.classes.rows[row], ends[i].limits);
        assert_int_equal(world.classes.rows[last], ends[i].last);
        world_end(&world);
    }
}

/* Without privileges short waits that nobody looked at are taken for those that were seen. */
static void what_may_be_a_guess_does_not_say_that_something_else_ended_a_wait(void **state)
{
    (void)state;
    static const struct {
        uint64_t count, ms;
        enum wait_class class;
    } others[] = {
        {4, 60, WAIT_CLASS_TIMER},
        {4, 61, WAIT_CLASS_IDLE}, /* more than a tenth */
        {1, 52, WAIT_CLASS_TIMER},
        {1, 53, WAIT_CLASS_IDLE}, /* too long to be a guess */
    };
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        struct world world;
        world_begin(&world);
        struct wait_case timed = {
            C(TIMER), "poll", TIMED | WAIT_SAMPLED, "main sleep", 0, 0, "", MAIN, 0, "", true, 0};
        uint32_t row = case_put(&world, &timed, 1, 600 * MS);
        struct wait_info other = world.made->rows[row].info;
        other.flags = WAIT_LIMITED | WAIT_SAMPLED;
        uint32_t short_row = made_waits_row(world.made, &other, others[i].count, others[i].ms * MS);
        world_judge(&world);
        assert_int_equal(world.classes.rows[row], others[i].class);
        assert_int_equal(world.classes.rows[short_row], WAIT_CLASS_IDLE);
        world_end(&world);
    }
}

/* Off the critical path: by who posts it. */
static void a_semaphore_that_its_takers_post_is_a_lock(void **state)
{
    (void)state;
    static const struct {
        uint64_t by_taker, by_main;
        enum wait_class class;
    } posts[] = {
        {4, 0, WAIT_CLASS_LOCK},
        {4, 4, WAIT_CLASS_LOCK}, /* somebody else let them in at first */
        {4, 5, WAIT_CLASS_IDLE}, /* what is given out by one, and at times by who has too much */
        {0, 9, WAIT_CLASS_IDLE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(posts); i++) {
        struct world world;
        world_begin(&world);
        struct wait_case wait = {C(LOCK),      "futex", 0,     "worker sem_wait",
                                 OBJECT_FUTEX, 0,       "",    WORKER,
                                 NOBODY,       "",      false, WAIT_FUTEX_BITSET};
        uint32_t open = case_put(&world, &wait, 1, MS), rows[2];
        struct wait_info info = world.made->rows[open].info;
        info.thread = world.threads[OTHER];
        info.waker_thread = world.threads[WORKER];
        rows[0] = made_waits_row(world.made, &info, posts[i].by_taker, 20 * MS + 1);
        info.waker_thread = world.threads[MAIN];
        rows[1] = made_waits_row(world.made, &info, posts[i].by_main, 20 * MS + 1);
        world_judge(&world);
        assert_int_equal(world.classes.rows[open], posts[i].class);
        assert_int_equal(world.classes.rows[rows[0]], posts[i].class);
        assert_int_equal(world.classes.rows[rows[1]], posts[i].class);
        world_end(&world);
    }
}

static void a_thread_that_only_sleeps_is_idle_unless_it_matters(void **state)
{
    (void)state;
    static const struct {
        enum who who;
        uint64_t count, ms, longest_ms;
        bool on_path;
        enum wait_class class;
    } sleeps[] = {
        {WORKER, 9, 900, 100, false, WAIT_CLASS_IDLE},  /* nine times, 90% of its life */
        {WORKER, 9, 890, 100, false, WAIT_CLASS_TIMER}, /* it does something else, too */
        {WORKER, 2, 900, 100, false, WAIT_CLASS_TIMER}, /* no habit */
        {WORKER, 9, 900, 449, false, WAIT_CLASS_IDLE},
        {WORKER, 9, 900, 450, false, WAIT_CLASS_TIMER}, /* one sleep, and moments beside it */
        {WORKER, 9, 900, 100, true, WAIT_CLASS_TIMER},  /* somebody waits for it */
        {MAIN, 9, 900, 100, false, WAIT_CLASS_TIMER},
    };
    for (size_t i = 0; i < ARRAY_SIZE(sleeps); i++) {
        struct world world;
        world_begin(&world);
        struct wait_case sleep = {
            C(TIMER), "clock_nanosleep", TIMED, "tick nanosleep", 0, 0, "", sleeps[i].who, 0,
            "",       sleeps[i].on_path, 0};
        uint32_t row = case_put(&world, &sleep, sleeps[i].count, sleeps[i].ms * MS);
        world.made->rows[row].tally.max_ns = sleeps[i].longest_ms * MS;
        world_judge(&world);
        assert_int_equal(world.classes.rows[row], sleeps[i].class);
        world_end(&world);
    }
}

static void classes_and_what_is_unaccounted_for_make_up_a_life(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made_waits *made = world.made;
    uint32_t main_thread = world.threads[MAIN];
    made->lives[main_thread].running_ns = 300 * MS;
    struct wait_case sleep = {C(TIMER), "nanosleep", TIMED, "main sleep", 0,     0,
                              "",       MAIN,        0,     "",           false, 0};
    struct wait_case unseen = {C(UNKNOWN), "?", 0, "", 0, 0, "", MAIN, 0, "", false, 0};
    struct wait_case spin = {C(LOCK), NULL, 0,     "main", OBJECT_KERNEL_LOCK, 0, "spin", MAIN,
                             0,       "",   false, 0};
    case_put(&world, &sleep, 1, 400 * MS);
    case_put(&world, &unseen, 1, 50 * MS);
    case_put(&world, &spin, 1, 70 * MS); /* in the running time already */
    struct wait_info info = {
        .kind = WAIT_RUNQ, .thread = main_thread, .syscall = WAIT_SYSCALL_NONE};
    made_waits_row(made, &info, 10, 200 * MS);
    info.kind = WAIT_HOLD;
    made_waits_row(made, &info, 1, 500 * MS); /* no wait */
    /* More than its life: sampled sums may be. Nothing becomes negative. */
    struct wait_case more = sleep;
    more.who = WORKER;
    case_put(&world, &more, 1, 1500 * (uint64_t)MS);
    world_judge(&world);
    const uint64_t *sums = world.classes.threads[main_thread];
    assert_int_equal(sums[WAIT_CLASS_RUNNING], 300 * MS);
    assert_int_equal(sums[WAIT_CLASS_RUNQ], 200 * MS);
    assert_int_equal(sums[WAIT_CLASS_TIMER], 400 * MS);
    assert_int_equal(sums[WAIT_CLASS_LOCK], 0);
    assert_int_equal(world.classes.unaccounted[main_thread], 100 * MS);
    assert_int_equal(world.classes.unaccounted[world.threads[WORKER]], 0);
    assert_int_equal(world.classes.unaccounted[world.threads[OTHER]], 1000 * (uint64_t)MS);
    assert_int_equal(world.classes.tree[WAIT_CLASS_TIMER], 1900 * (uint64_t)MS);
    assert_int_equal(world.classes.unaccounted_ns, 1100 * (uint64_t)MS);
    uint64_t all = world.classes.unaccounted_ns;
    for (unsigned i = 0; i < WAIT_CLASSES; i++)
        all += world.classes.tree[i];
    assert_int_equal(all, world.classes.life_ns);
    world_end(&world);
}

static void causes_name_the_call_and_what_it_is_about(void **state)
{
    (void)state;
    static const struct {
        struct wait_case wait;
        const char *cause;
    } causes[] = {
        {{C(CHILD), "read", 0, "main", OBJECT_PIPE, 0, "pipe:[1234]", MAIN, 0, "", 0, 0},
         "read of pipe:[1234]"},
        {{C(NET), "connect", 0, "main", OBJECT_SOCKET, 0, "10.0.0.1:80", MAIN, 0, "", 0, 0},
         "connect to 10.0.0.1:80"},
        {{C(DISK), "fsync", 0, "main", OBJECT_FILE, 0, "/log", MAIN, 0, "", 0, 0}, "fsync of /log"},
        {{C(LOCK), "futex", 0, "main", OBJECT_FUTEX, 0, "queue_mutex", MAIN, 0, "", 0, 0},
         "futex of queue_mutex"},
        {{C(LOCK), "futex", 0, "main", OBJECT_FUTEX, 0, "", MAIN, 0, "", 0, 0}, "futex of 0x1001"},
        {{C(TIMER), "nanosleep", 0, "main", 0, 0, "", MAIN, 0, "", 0, 0}, "nanosleep"},
        {{C(PAGEFAULT), NULL, WAIT_FAULT, "main", 0, 0, "", MAIN, 0, "", 0, 0}, "page fault"},
        {{C(PAGEFAULT), NULL, WAIT_FAULT, "main", OBJECT_FILE, 0, "/db", MAIN, 0, "", 0, 0},
         "page fault of /db"},
        {{C(CHILD), "wait4", 0, "main", OBJECT_PROCESS, 0, "", MAIN, 0, "", 0, 0}, "child 4097"},
        {{C(CHILD), "futex", 0, "main pthread_join", OBJECT_FUTEX, 0, "", MAIN, SAME, "", 0, 0},
         "end of thread worker (101)"},
        {{C(CHILD), "futex", 0, "main pthread_join", OBJECT_FUTEX, 0, "", MAIN, NOBODY, "", 0, 0},
         "end of a thread"},
        {{C(LOCK), NULL, 0, "main", OBJECT_KERNEL_LOCK, 0, "rwsem in do_mmap", MAIN, 0, "", 0, 0},
         "kernel lock rwsem in do_mmap"},
        {{C(UNKNOWN), "?", 0, "", 0, 0, "", MAIN, 0, "", 0, 0}, "not seen"},
        {{C(UNKNOWN), NULL, 0, "", 0, 0, "", MAIN, 0, "", 0, 0}, "no system call"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
        struct world world;
        world_begin(&world);
        uint32_t row = case_put(&world, &causes[i].wait, 1, MS);
        assert_string_equal(wait_cause(&world.arena, &world.made->waits, row), causes[i].cause);
        world_end(&world);
    }
    struct world world;
    world_begin(&world);
    struct wait_info odd = {.thread = 1, .syscall = 9999};
    uint32_t row = made_waits_row(world.made, &odd, 1, MS);
    assert_string_equal(wait_cause(&world.arena, &world.made->waits, row), "system call 9999");
    world_end(&world);
}

static void numbers_are_those_of_the_recorded_machine(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    world.made->waits.profile.fingerprint_json = STR("{\"kernel\":{\"arch\":\"aarch64\"}}");
    struct wait_info info = {.thread = world.threads[MAIN], .syscall = 115};
    uint32_t row = made_waits_row(world.made, &info, 1, MS);
    world_judge(&world);
    assert_int_equal(world.classes.rows[row], WAIT_CLASS_TIMER);
    assert_string_equal(wait_cause(&world.arena, &world.made->waits, row), "clock_nanosleep");
    assert_string_equal(syscall_name_on(SYSCALLS_X86_64, 0), "read");
    assert_string_equal(syscall_name_on(SYSCALLS_X86_64, 232), "epoll_wait");
    assert_string_equal(syscall_name_on(SYSCALLS_AARCH64, 63), "read");
    assert_string_equal(syscall_name(__NR_read), "read");
    assert_string_equal(syscall_name(__NR_clock_nanosleep), "clock_nanosleep");
    assert_null(syscall_name(-1));
    assert_null(syscall_name(SYSCALLS_MAX));
    assert_null(syscall_name(INT32_MIN));
    assert_null(syscall_name_on(SYSCALLS_X86_64, 400)); /* a gap */
    world_end(&world);
}

static void waits_of_one_stack_are_one_group_of_the_heaviest_object(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made_waits *made = world.made;
    struct wait_info info = {
        .thread = world.threads[MAIN],
        .stack = made_waits_stack(made, "main lock pthread_mutex_lock"),
        .syscall = number("futex"),
        .detail = WAIT_FUTEX_VALUE_2,
        .object = made_waits_object(made, OBJECT_FUTEX, 0, "small"),
    };
    uint32_t first = made_waits_row(made, &info, 1, 15 * MS);
    info.object = made_waits_object(made, OBJECT_FUTEX, 0, "large");
    info.waker_stack = made_waits_stack(made, "holder unlock");
    uint32_t light = made_waits_row(made, &info, 1, 8 * MS);
    info.thread = world.threads[WORKER];
    uint32_t heavy = made_waits_row(made, &info, 4, 12 * MS);
    struct wait_case sleep = {C(TIMER), "nanosleep", TIMED, "main sleep", 0,    0,
                              "",       MAIN,        0,     "",           true, 0};
    uint32_t slept = case_put(&world, &sleep, 1, 100 * MS);
    struct wait_info runq = {.kind = WAIT_RUNQ, .thread = 1, .syscall = WAIT_SYSCALL_NONE};
    made_waits_row(made, &runq, 7, 7 * MS);
    world_judge(&world);
    struct wait_groups groups;
    assert_int_equal(
        wait_groups_build(&world.arena, &made->waits, &world.classes, &world.path, &groups), 0);
    assert_int_equal(groups.count, 2);
    assert_int_equal(groups.groups[0].id, slept);
    assert_int_equal(groups.groups[0].path_ns, 10 * MS);
    const struct wait_group *lock = &groups.groups[1];
    assert_int_equal(lock->id, first);
    assert_int_equal(lock->row, heavy);
    assert_int_equal(lock->waker, heavy);
    assert_int_equal(lock->tally.count, 6);
    assert_int_equal(lock->tally.total_ns, 35 * MS);
    assert_int_equal(lock->tally.max_ns, 15 * MS);
    assert_int_equal(lock->threads, 2);
    assert_int_equal(lock->objects, 2);
    assert_int_equal(lock->wakers, 1);
    assert_int_equal(groups.of_row[light], 2);
    assert_int_equal(groups.of_row[slept], 1);
    assert_int_equal(groups.runq.count, 7);
    world_end(&world);
}

static void where_is_told_by_functions_of_the_program(void **state)
{
    (void)state;
    static const struct {
        const char *stack, *where;
    } stacks[] = {
        {"_start main push ___pthread_mutex_lock k:futex_wait", "push ← main"},
        {"_start main a b c d read k:ksys_read", "d ← c ← b"},
        {"clone3 start_thread", "start_thread"},
        {"___pthread_mutex_lock k:futex_wait", "futex_wait ← ___pthread_mutex_lock"},
        {"main read parse", "parse ← read ← main"}, /* a function of that name, not the call */
        {"", "[no stack]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
        struct world world;
        world_begin(&world);
        uint32_t stack = made_waits_stack(world.made, stacks[i].stack);
        assert_string_equal(wait_where(&world.arena, &world.made->waits.profile, stack),
                            stacks[i].where);
        world_end(&world);
    }
    /* A library's functions are left out by its name. */
    struct world world;
    world_begin(&world);
    world.made->images[1].path = STR("/usr/lib/libc.so.6");
    uint32_t stack = made_waits_stack(world.made, "main helper");
    world.made->functions[world.made->waits.profile.function_count - 1].image = 1;
    assert_string_equal(wait_where(&world.arena, &world.made->waits.profile, stack), "main");
    world_end(&world);
}

static const char *leaf_of(void *context, uint32_t row)
{
    const char *const *names = context;
    return names[row];
}

static void waits_become_a_profile_with_leaves(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made_waits *made = world.made;
    struct wait_info info = {.thread = 1, .stack = made_waits_stack(made, "main lock")};
    made_waits_row(made, &info, 2, 20 * MS);
    info.thread = 2;
    made_waits_row(made, &info, 1, 5 * MS);
    made_waits_row(made, &info, 1, 7 * MS);
    info.stack = 0;
    made_waits_row(made, &info, 1, 9 * MS);
    const char *names[] = {NULL, "lock: a", "lock: a", NULL, "lock: a"};
    struct profile profile;
    size_t stacks = made->waits.profile.stack_count;
    assert_int_equal(
        wait_profile_build(&world.arena, &made->waits, leaf_of, (void *)names, &profile), 0);
    assert_int_equal(profile.weight, 34 * MS);
    assert_int_equal(profile.count, 4);
    assert_int_equal(profile.total_count, 3);
    assert_int_equal(profile.stack_count, stacks + 2); /* one leaf on two stacks */
    assert_int_equal(profile.totals[0].stack, profile.totals[1].stack);
    uint32_t leaf = profile.totals[0].stack;
    assert_int_equal(profile.stacks[leaf].parent, made->rows[1].info.stack);
    const struct profile_frame *frame = &profile.frames[profile.stacks[leaf].frame];
    assert_int_equal(frame->kind, FRAME_NAMED);
    assert_true(str_is(profile.functions[profile.places[frame->places].function].name, "lock: a"));
    struct call_tree tree;
    assert_int_equal(call_tree_build(&world.arena, &profile, NULL, &tree), 0);
    assert_int_equal(tree.nodes[0].total_weight, 34 * MS);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_gives_its_class_and_a_reason),
        cmocka_unit_test(below_one_percent_of_the_path_is_not_on_it),
        cmocka_unit_test(an_event_loop_that_is_woken_at_times_is_idle_also_when_its_limit_ends_it),
        cmocka_unit_test(a_wait_that_the_runs_end_ended_says_nothing_of_its_condition),
        cmocka_unit_test(what_may_be_a_guess_does_not_say_that_something_else_ended_a_wait),
        cmocka_unit_test(a_semaphore_that_its_takers_post_is_a_lock),
        cmocka_unit_test(a_thread_that_only_sleeps_is_idle_unless_it_matters),
        cmocka_unit_test(classes_and_what_is_unaccounted_for_make_up_a_life),
        cmocka_unit_test(causes_name_the_call_and_what_it_is_about),
        cmocka_unit_test(numbers_are_those_of_the_recorded_machine),
        cmocka_unit_test(waits_of_one_stack_are_one_group_of_the_heaviest_object),
        cmocka_unit_test(where_is_told_by_functions_of_the_program),
        cmocka_unit_test(waits_become_a_profile_with_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
