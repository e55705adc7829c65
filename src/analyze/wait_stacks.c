/* The names on a stack: which of them say what a thread waits for.
 *
 * A futex is whatever a library makes of it: only the functions around the call tell a mutex
 * from a condition variable or the end of a thread. */
#include "analyze/wait_parts.h"

#include <errno.h>

enum { PLACES_READ_MAX = 24, KERNEL_FRAMES_READ_MAX = 12, FRAMES_WALKED_MAX = 64 };

enum match { MATCH_START, MATCH_INSIDE };

struct name_sign {
    const char *text;
    enum match match;
    enum wait_sign sign;
};

/* What glibc puts before a name is left out: ___pthread_mutex_lock, __GI___lll_lock_wait. */
static const struct name_sign signs[] = {
    /* C: glibc, musl, C11 threads */
    {"lll_lock_wait", MATCH_START, SIGN_LOCK},
    {"pthread_mutex_", MATCH_START, SIGN_LOCK},
    {"pthread_rwlock_", MATCH_START, SIGN_LOCK},
    {"pthread_barrier_", MATCH_START, SIGN_LOCK},
    {"pthread_cond_", MATCH_START, SIGN_CONDITION},
    {"pthread_join", MATCH_START, SIGN_JOIN},
    {"pthread_clockjoin", MATCH_START, SIGN_JOIN},
    {"pthread_timedjoin", MATCH_START, SIGN_JOIN},
    {"sem_wait", MATCH_START, SIGN_SEMAPHORE},
    {"sem_timedwait", MATCH_START, SIGN_SEMAPHORE},
    {"sem_clockwait", MATCH_START, SIGN_SEMAPHORE},
    {"new_sem_wait", MATCH_START, SIGN_SEMAPHORE},
    {"mtx_lock", MATCH_START, SIGN_LOCK},
    {"mtx_timedlock", MATCH_START, SIGN_LOCK},
    {"cnd_wait", MATCH_START, SIGN_CONDITION},
    {"cnd_timedwait", MATCH_START, SIGN_CONDITION},
    {"thrd_join", MATCH_START, SIGN_JOIN},
    {"g_cond_wait", MATCH_START, SIGN_CONDITION},
    {"g_mutex_lock", MATCH_START, SIGN_LOCK},
    /* C++ */
    {"std::condition_variable", MATCH_START, SIGN_CONDITION},
    {"std::_V2::condition_variable", MATCH_START, SIGN_CONDITION},
    {"std::thread::join", MATCH_START, SIGN_JOIN},
    {"std::__atomic_wait", MATCH_START, SIGN_CONDITION},
    {"std::__detail::__platform_wait", MATCH_START, SIGN_CONDITION},
    {"absl::Mutex::Await", MATCH_INSIDE, SIGN_CONDITION},
    {"absl::CondVar::Wait", MATCH_INSIDE, SIGN_CONDITION},
    {"absl::Mutex::Lock", MATCH_INSIDE, SIGN_LOCK},
    /* Rust */
    {"Mutex::lock_contended", MATCH_INSIDE, SIGN_LOCK},
    {"RwLock::read_contended", MATCH_INSIDE, SIGN_LOCK},
    {"RwLock::write_contended", MATCH_INSIDE, SIGN_LOCK},
    {"RawMutex::lock_slow", MATCH_INSIDE, SIGN_LOCK},
    {"RawRwLock::lock_", MATCH_INSIDE, SIGN_LOCK},
    {"Condvar::wait", MATCH_INSIDE, SIGN_CONDITION},
    {"Parker::park", MATCH_INSIDE, SIGN_CONDITION},
    {"std::thread::park", MATCH_START, SIGN_CONDITION},
    {"JoinHandle", MATCH_INSIDE, SIGN_JOIN},
    {"JoinInner", MATCH_INSIDE, SIGN_JOIN},
    {"Thread::join", MATCH_INSIDE, SIGN_JOIN},
    /* Go: threads of its runtime, not goroutines */
    {"runtime.lock2", MATCH_START, SIGN_LOCK},
    {"runtime.stopTheWorld", MATCH_START, SIGN_LOCK},
    {"runtime.findRunnable", MATCH_START, SIGN_GO_IDLE},
    {"runtime.findrunnable", MATCH_START, SIGN_GO_IDLE},
    {"runtime.stopm", MATCH_START, SIGN_GO_IDLE},
    {"runtime.gcstopm", MATCH_START, SIGN_GO_IDLE},
    {"runtime.stoplockedm", MATCH_START, SIGN_GO_IDLE},
    {"runtime.mPark", MATCH_START, SIGN_GO_IDLE},
    {"runtime.sysmon", MATCH_START, SIGN_GO_IDLE},
    {"runtime.notetsleep", MATCH_START, SIGN_GO_IDLE},
    {"runtime.templateThread", MATCH_START, SIGN_GO_IDLE},
    /* Java */
    {"PlatformMonitor::wait", MATCH_INSIDE, SIGN_CONDITION},
};

/* Get a lock by means of something else: a condition variable, an epoll set, a semaphore. */
static const char *const sure_locks[] = {
    "take_gil",  /* Python's interpreter lock */
    "ProcSleep", /* PostgreSQL's lock manager */
    "LWLockAcquire", "LWLockWaitForVar", "runtime.stopTheWorld",
};

/* All of a language's waits look alike from outside: locks, conditions, queues, joins. */
static const char *const any_waits[] = {"PyThread_acquire_lock"};

static const char *const kernel_locks[] = {
    "rwsem_down_", "mutex_lock", "percpu_rwsem_wait", "percpu_down_",  "rt_mutex_",
    "down_read",   "down_write", "down_killable",     "ww_mutex_lock",
};

static const char *const kernel_exits[] = {"do_exit", "do_group_exit", "exit_mm", "mm_release"};
static const char *const kernel_pipes[] = {"pipe_write", "anon_pipe_write", "pipe_release"};

static struct str name_plain(struct str name)
{
    for (;;) {
        size_t skip = str_starts(name, "_") ? 1 : str_starts(name, "GI_") ? 3 : 0;
        if (skip == 0)
            return name;
        name = (struct str){name.data + skip, name.len - skip};
    }
}

static bool starts_any(struct str name, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_starts(name, texts[i]))
            return true;
    return false;
}

static enum wait_sign sign_of(struct str name)
{
    for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
        if (signs[i].match == MATCH_START ? str_starts(name, signs[i].text)
                                          : str_contains(name, signs[i].text))
            return signs[i].sign;
    return SIGN_NONE;
}

bool wait_is_plumbing(struct str function)
{
    static const char *const names[] = {"futex_",           "lll_",         "syscall", "libc_",
                                        "internal_syscall", "do_futex_wait"};
    struct str name = name_plain(function);
    return sign_of(name) != SIGN_NONE || starts_any(name, names, ARRAY_SIZE(names));
}

struct reading {
    struct wait_stack found;
    unsigned kernel_frames, places;
};

static void function_read(struct reading *reading, const struct profile_function *function)
{
    struct str name = name_plain(function->name);
    if (function->kernel) {
        if (reading->kernel_frames++ >= KERNEL_FRAMES_READ_MAX)
            return;
        if (starts_any(name, kernel_locks, ARRAY_SIZE(kernel_locks)))
            reading->found.kernel_lock = true;
        if (starts_any(name, kernel_exits, ARRAY_SIZE(kernel_exits)))
            reading->found.exits = true;
        if (starts_any(name, kernel_pipes, ARRAY_SIZE(kernel_pipes)))
            reading->found.pipe = true;
        return;
    }
    /* glibc's thread ends itself in the function it began in. */
    if (reading->places == 0 && str_is(name, "start_thread"))
        reading->found.exits = true;
    reading->places++;
    if (reading->found.sign == SIGN_NONE)
        reading->found.sign = sign_of(name);
    if (starts_any(name, any_waits, ARRAY_SIZE(any_waits)))
        reading->found.sign = SIGN_CONDITION;
    if (starts_any(name, sure_locks, ARRAY_SIZE(sure_locks)))
        reading->found.surely_lock = true;
}

struct wait_stack wait_stack_read(const struct profile *profile, uint32_t stack)
{
    struct reading reading = {0};
    unsigned walked = 0;
    for (uint32_t at = stack; at != 0 && at < profile->stack_count && walked < FRAMES_WALKED_MAX;
         walked++) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[at].frame];
        for (uint32_t i = 0; i < frame->place_count && reading.places < PLACES_READ_MAX; i++)
            function_read(&reading,
                          &profile->functions[profile->places[frame->places + i].function]);
        at = profile->stacks[at].parent;
    }
    return reading.found;
}

int wait_stacks_init(struct arena *arena, const struct profile *profile, struct wait_stacks *ret)
{
    uint8_t *known = arena_alloc(arena, MAX(profile->stack_count, (size_t)1));
    if (!known)
        return -ENOMEM;
    *ret = (struct wait_stacks){profile, known};
    return 0;
}

enum {
    PACK_SIGN = 7,
    PACK_READ = 1 << 3,
    PACK_SURE = 1 << 4,
    PACK_KERNEL = 1 << 5,
    PACK_EXITS = 1 << 6,
    PACK_PIPE = 1 << 7,
};

struct wait_stack wait_stack_of(struct wait_stacks *stacks, uint32_t stack)
{
    if (stack == 0 || stack >= stacks->profile->stack_count)
        return (struct wait_stack){0};
    uint8_t *packed = &stacks->known[stack];
    if (*packed == 0) {
        struct wait_stack read = wait_stack_read(stacks->profile, stack);
        *packed = (uint8_t)((unsigned)read.sign | PACK_READ | (read.surely_lock ? PACK_SURE : 0) |
                            (read.kernel_lock ? PACK_KERNEL : 0) | (read.exits ? PACK_EXITS : 0) |
                            (read.pipe ? PACK_PIPE : 0));
    }
    return (struct wait_stack){
        .sign = (enum wait_sign)(*packed & PACK_SIGN),
        .surely_lock = *packed & PACK_SURE,
        .kernel_lock = *packed & PACK_KERNEL,
        .exits = *packed & PACK_EXITS,
        .pipe = *packed & PACK_PIPE,
    };
}
