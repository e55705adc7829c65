/* The table of functions that are part of a lock.
 *
 * A lock is known by who uses it: on the way from the sleeping thread to its root the first
 * function that is not the lock's own code. What lies in between often tells the kind. */
#include "analyze/lock_sites.h"

#include "base/macros.h"

enum { NAME_READ_MAX = 512 };

struct row {
    const char *name; /* of the linker, or demangled; '*' is any text */
    enum lock_kind kind;
};

/* The first that fits counts. Names are compared without what stands before them: underscores,
 * "<" of Rust's newer names. */
static const struct row user_rows[] = {
    /* glibc */
    {"pthread_mutex_*", LOCK_MUTEX},
    {"mtx_lock", LOCK_MUTEX},
    {"mtx_timedlock", LOCK_MUTEX},
    {"pthread_rwlock_unlock*", LOCK_UNKNOWN},
    {"pthread_rwlock_rdlock*", LOCK_RWLOCK_READ},
    {"pthread_rwlock_timedrdlock*", LOCK_RWLOCK_READ},
    {"pthread_rwlock_clockrdlock*", LOCK_RWLOCK_READ},
    {"pthread_rwlock_wrlock*", LOCK_RWLOCK_WRITE},
    {"pthread_rwlock_timedwrlock*", LOCK_RWLOCK_WRITE},
    {"pthread_rwlock_clockwrlock*", LOCK_RWLOCK_WRITE},
    {"pthread_rwlock_*", LOCK_UNKNOWN},
    {"pthread_cond_*", LOCK_CONDITION},
    {"cnd_wait", LOCK_CONDITION},
    {"cnd_timedwait", LOCK_CONDITION},
    {"sem_wait*", LOCK_SEMAPHORE},
    {"sem_timedwait*", LOCK_SEMAPHORE},
    {"sem_clockwait*", LOCK_SEMAPHORE},
    {"sem_post*", LOCK_SEMAPHORE},
    {"new_sem_*", LOCK_SEMAPHORE},
    {"pthread_barrier_wait*", LOCK_BARRIER},
    {"pthread_once*", LOCK_ONCE},
    {"call_once", LOCK_ONCE},
    {"pthread_join*", LOCK_JOIN},
    {"pthread_timedjoin*", LOCK_JOIN},
    {"pthread_clockjoin*", LOCK_JOIN},
    {"thrd_join", LOCK_JOIN},
    {"lll_*", LOCK_UNKNOWN},
    {"futex_lock_pi*", LOCK_UNKNOWN},
    {"futex_unlock_pi*", LOCK_UNKNOWN},
    {"futex_wake*", LOCK_UNKNOWN},
    {"internal_atomic_wait*", LOCK_UNKNOWN},
    {"futex_wait*", LOCK_UNKNOWN},
    {"futex_abstimed_*", LOCK_UNKNOWN},
    {"do_futex_wait*", LOCK_UNKNOWN},
    {"syscall", LOCK_UNKNOWN},
    /* C++ */
    {"gthread_mutex_*", LOCK_MUTEX},
    {"gthread_cond_*", LOCK_CONDITION},
    {"gthread_*", LOCK_UNKNOWN},
    {"std::mutex::*", LOCK_MUTEX},
    {"std::recursive_mutex::*", LOCK_MUTEX},
    {"std::timed_mutex::*", LOCK_MUTEX},
    {"std::__mutex_base::*", LOCK_MUTEX},
    {"std::unique_lock<*", LOCK_UNKNOWN},
    {"std::lock_guard<*", LOCK_UNKNOWN},
    {"std::scoped_lock<*", LOCK_UNKNOWN},
    {"std::shared_lock<*", LOCK_UNKNOWN},
    {"std::lock<*", LOCK_UNKNOWN},
    {"std::shared_mutex::lock_shared*", LOCK_RWLOCK_READ},
    {"std::shared_mutex::lock*", LOCK_RWLOCK_WRITE},
    {"std::shared_timed_mutex::lock_shared*", LOCK_RWLOCK_READ},
    {"std::shared_timed_mutex::lock*", LOCK_RWLOCK_WRITE},
    {"std::__shared_mutex_pthread::lock_shared*", LOCK_RWLOCK_READ},
    {"std::__shared_mutex_pthread::*", LOCK_RWLOCK_WRITE},
    {"std::__glibcxx_rwlock_rdlock*", LOCK_RWLOCK_READ},
    {"std::__glibcxx_rwlock_*", LOCK_RWLOCK_WRITE},
    {"std::condition_variable::*", LOCK_CONDITION},
    {"void std::condition_variable::*", LOCK_CONDITION},
    {"bool std::condition_variable::*", LOCK_CONDITION},
    {"std::_V2::condition_variable*", LOCK_CONDITION},
    {"std::condition_variable_any::*", LOCK_CONDITION},
    {"void std::condition_variable_any::*", LOCK_CONDITION},
    {"std::__condvar::*", LOCK_CONDITION},
    {"std::counting_semaphore<*", LOCK_SEMAPHORE},
    {"std::__atomic_semaphore::*", LOCK_SEMAPHORE},
    {"std::__platform_semaphore::*", LOCK_SEMAPHORE},
    {"std::barrier<*", LOCK_BARRIER},
    {"std::latch::*", LOCK_BARRIER},
    {"std::thread::join*", LOCK_JOIN},
    {"std::call_once<*", LOCK_ONCE},
    {"void std::call_once<*", LOCK_ONCE},
    {"cxa_guard_acquire", LOCK_ONCE},
    {"std::__atomic_wait*", LOCK_UNKNOWN},
    {"void std::__atomic_wait*", LOCK_UNKNOWN},
    {"std::__atomic_futex_unsigned_base::*", LOCK_UNKNOWN},
    {"std::__detail::__*wait*", LOCK_UNKNOWN},
    {"absl::*Mutex::*", LOCK_MUTEX},
    {"absl::*CondVar::*", LOCK_CONDITION},
    {"absl::*synchronization_internal::*", LOCK_UNKNOWN},
    {"AbslInternalPerThreadSem*", LOCK_UNKNOWN},
    {"sanitizer::*Mutex::*", LOCK_MUTEX},
    {"sanitizer::Semaphore::*", LOCK_UNKNOWN},
    {"sanitizer::FutexWait*", LOCK_UNKNOWN},
    /* GLib, PostgreSQL */
    {"g_mutex_lock*", LOCK_MUTEX},
    {"g_rec_mutex_lock*", LOCK_MUTEX},
    {"g_cond_wait*", LOCK_CONDITION},
    {"g_rw_lock_reader_lock*", LOCK_RWLOCK_READ},
    {"g_rw_lock_writer_lock*", LOCK_RWLOCK_WRITE},
    {"PGSemaphoreLock", LOCK_SEMAPHORE},
    {"LWLockAcquire*", LOCK_UNKNOWN},
    /* Rust: modules of std have moved more than once. */
    {"std::sync::*RwLock<*>::read*", LOCK_RWLOCK_READ},
    {"std::sync::*RwLock<*>::write*", LOCK_RWLOCK_WRITE},
    {"std::sys::*RwLock::read*", LOCK_RWLOCK_READ},
    {"std::sys::*RwLock::write*", LOCK_RWLOCK_WRITE},
    {"std::sync::*mutex::*", LOCK_MUTEX},
    {"std::sync::*condvar::*", LOCK_CONDITION},
    {"std::sync::barrier::*", LOCK_BARRIER},
    {"std::sync::*once*", LOCK_ONCE},
    {"std::sync::lazy_lock::*", LOCK_ONCE},
    {"std::sys::*mutex::*", LOCK_MUTEX},
    {"std::sys::*condvar::*", LOCK_CONDITION},
    {"std::sys::*once::*", LOCK_ONCE},
    {"std::sys::*::locks::*", LOCK_UNKNOWN},
    {"std::sys::sync::*", LOCK_UNKNOWN},
    {"std::sys::*futex*", LOCK_UNKNOWN},
    {"std::thread::Join*::join*", LOCK_JOIN},
    {"parking_lot::raw_mutex::*", LOCK_MUTEX},
    {"parking_lot::raw_rwlock::*lock_shared*", LOCK_RWLOCK_READ},
    {"parking_lot::raw_rwlock::*lock_exclusive*", LOCK_RWLOCK_WRITE},
    {"parking_lot::condvar::*", LOCK_CONDITION},
    {"parking_lot::once::*", LOCK_ONCE},
    {"parking_lot::*", LOCK_UNKNOWN},
    {"parking_lot_core::*", LOCK_UNKNOWN},
    {"lock_api::mutex::*", LOCK_MUTEX},
    {"lock_api::rwlock::RwLock<*>::read*", LOCK_RWLOCK_READ},
    {"lock_api::rwlock::RwLock<*>::write*", LOCK_RWLOCK_WRITE},
    {"lock_api::*", LOCK_UNKNOWN},
    /* Go: locks of the runtime itself; sync.Mutex parks goroutines, not threads. */
    {"runtime.lock*", LOCK_GO_RUNTIME},
    {"runtime.futex*", LOCK_GO_RUNTIME},
    {"runtime.notesleep*", LOCK_GO_RUNTIME},
    {"runtime.notetsleep*", LOCK_GO_RUNTIME},
    {"runtime.semasleep*", LOCK_GO_RUNTIME},
    {"runtime.mPark*", LOCK_GO_RUNTIME},
};

static const struct row kernel_rows[] = {
    {"rwsem_*", LOCK_KERNEL_RWSEM},
    {"down_read*", LOCK_KERNEL_RWSEM},
    {"down_write*", LOCK_KERNEL_RWSEM},
    {"percpu_down_*", LOCK_KERNEL_RWSEM},
    {"percpu_rwsem_*", LOCK_KERNEL_RWSEM},
    {"mutex_*", LOCK_KERNEL_MUTEX},
    {"ww_mutex_*", LOCK_KERNEL_MUTEX},
    {"rt_mutex_*", LOCK_KERNEL_MUTEX},
    {"queued_spin_lock_slowpath", LOCK_KERNEL_SPIN},
    {"native_queued_spin_lock_slowpath", LOCK_KERNEL_SPIN},
    {"pv_queued_spin_lock_slowpath", LOCK_KERNEL_SPIN},
    {"queued_read_lock_slowpath", LOCK_KERNEL_SPIN},
    {"queued_write_lock_slowpath", LOCK_KERNEL_SPIN},
    {"raw_spin_*", LOCK_KERNEL_SPIN},
    {"raw_read_*", LOCK_KERNEL_SPIN},
    {"raw_write_*", LOCK_KERNEL_SPIN},
    {"do_raw_spin_*", LOCK_KERNEL_SPIN},
    {"down", LOCK_KERNEL_OTHER},
    {"down_*", LOCK_KERNEL_OTHER},
    {"down*", LOCK_KERNEL_OTHER},
    {"schedule*", LOCK_UNKNOWN},
    {"preempt_schedule*", LOCK_UNKNOWN},
    {"traceiter_*", LOCK_UNKNOWN},
    {"bpf_*", LOCK_UNKNOWN},
    {"trace_call_bpf*", LOCK_UNKNOWN},
    {"trace_contention_*", LOCK_UNKNOWN},
    {"up_*", LOCK_UNKNOWN},
};

static const char *const kind_names[LOCK_KINDS] = {
    [LOCK_UNKNOWN] = "lock of unknown kind",
    [LOCK_MUTEX] = "mutex",
    [LOCK_PI_MUTEX] = "PI mutex",
    [LOCK_RWLOCK_READ] = "rwlock, read",
    [LOCK_RWLOCK_WRITE] = "rwlock, write",
    [LOCK_RWLOCK] = "rwlock, read and write",
    [LOCK_CONDITION] = "condition variable",
    [LOCK_SEMAPHORE] = "semaphore",
    [LOCK_BARRIER] = "barrier",
    [LOCK_ONCE] = "once",
    [LOCK_JOIN] = "join",
    [LOCK_GO_RUNTIME] = "Go runtime lock",
    [LOCK_KERNEL_SPIN] = "kernel spin lock",
    [LOCK_KERNEL_MUTEX] = "kernel mutex",
    [LOCK_KERNEL_RWSEM] = "kernel rwsem",
    [LOCK_KERNEL_OTHER] = "kernel lock",
};

const char *lock_kind_name(enum lock_kind kind)
{
    return kind_names[kind];
}

enum lock_kind lock_kind_of_kernel(struct str name)
{
    static const struct row words[] = {
        {"mutex ", LOCK_KERNEL_MUTEX},         {"rtmutex ", LOCK_KERNEL_MUTEX},
        {"spinlock ", LOCK_KERNEL_SPIN},       {"rwlock ", LOCK_KERNEL_SPIN},
        {"rt rwlock ", LOCK_KERNEL_SPIN},      {"rwsem ", LOCK_KERNEL_RWSEM},
        {"per-CPU rwsem ", LOCK_KERNEL_RWSEM}, {"semaphore ", LOCK_KERNEL_OTHER},
    };
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_starts(name, words[i].name))
            return words[i].kind;
    return LOCK_UNKNOWN;
}

static bool matches(struct str name, const char *pattern)
{
    size_t at = 0, retry = 0;
    const char *star = NULL;
    while (at < name.len) {
        if (*pattern == '*') {
            star = pattern++;
            retry = at;
        } else if (*pattern == name.data[at]) {
            pattern++;
            at++;
        } else if (star) {
            pattern = star + 1;
            at = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static struct str name_plain(struct str name)
{
    if (str_starts(name, "__GI_"))
        name = (struct str){name.data + 5, name.len - 5};
    while (name.len > 0 && (name.data[0] == '_' || name.data[0] == '<'))
        name = (struct str){name.data + 1, name.len - 1};
    return (struct str){name.data, MIN(name.len, (size_t)NAME_READ_MAX)};
}

static const struct row *row_of(const struct profile_function *function, const struct row *rows,
                                size_t count)
{
    struct str name = name_plain(function->name), linkage = name_plain(function->linkage);
    for (size_t i = 0; i < count; i++)
        if (matches(name, rows[i].name) || matches(linkage, rows[i].name))
            return &rows[i];
    return NULL;
}

static struct str base_name(struct str path)
{
    for (size_t i = path.len; i > 0; i--)
        if (path.data[i - 1] == '/')
            return (struct str){path.data + i, path.len - i};
    return path;
}

static bool in_library(const struct profile *profile, const struct profile_function *function)
{
    if (function->image == 0)
        return false;
    struct str path = base_name(profile->images[function->image].path);
    return str_starts(path, "libc.so") || str_starts(path, "libc-") ||
           str_starts(path, "libpthread") || str_starts(path, "libstdc++") ||
           str_starts(path, "libc++") || str_starts(path, "ld-") || str_starts(path, "libwhyslow");
}

enum verdict { SITE_IS_HERE, SITE_IS_FURTHER };

struct search {
    const struct profile *profile;
    bool kernel_lock;
    bool no_library; /* whatever a library's function is called, it is not the site */
};

static enum verdict place_judge(const struct search *search, const struct profile_place *place,
                                struct lock_site *site)
{
    const struct profile_function *function = &search->profile->functions[place->function];
    const struct row *row;
    if (!search->kernel_lock && function->kernel)
        return SITE_IS_FURTHER;
    if (function->kernel)
        row = row_of(function, kernel_rows, ARRAY_SIZE(kernel_rows));
    else
        row = row_of(function, user_rows, ARRAY_SIZE(user_rows));
    if (row && site->kind == LOCK_UNKNOWN)
        site->kind = row->kind;
    if (row)
        return SITE_IS_FURTHER;
    /* Without a symbol, in a library that has the locks, it is the locking. */
    if ((function->unnamed || search->no_library) && in_library(search->profile, function))
        return SITE_IS_FURTHER;
    if (function->unnamed && function->image == 0)
        return SITE_IS_FURTHER; /* where a walk ended */
    site->function = place->function;
    site->file = place->file.len > 0 ? place->file : function->file;
    site->line = place->line ? place->line : function->line;
    return SITE_IS_HERE;
}

static struct lock_site site_search(const struct search *search, uint32_t stack)
{
    const struct profile *profile = search->profile;
    struct lock_site site = {.file = STR("")};
    /* A parent's number is smaller than its child's: the loop ends. */
    for (uint32_t at = stack; at != 0 && at < profile->stack_count;
         at = profile->stacks[at].parent) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[at].frame];
        for (uint32_t i = 0; i < frame->place_count; i++)
            if (place_judge(search, &profile->places[frame->places + i], &site) == SITE_IS_HERE)
                return site;
    }
    return site;
}

struct lock_site lock_site_find(const struct profile *profile, uint32_t stack, bool kernel_lock)
{
    struct search search = {.profile = profile, .kernel_lock = kernel_lock};
    return site_search(&search, stack);
}

struct lock_site lock_holder_find(const struct profile *profile, uint32_t stack, bool kernel_lock)
{
    struct search search = {.profile = profile, .kernel_lock = kernel_lock, .no_library = true};
    struct lock_site site = site_search(&search, stack);
    search.no_library = false;
    return site.function ? site : site_search(&search, stack);
}

const char *lock_site_text(struct arena *arena, const struct profile *profile,
                           const struct lock_site *site)
{
    if (site->function == 0)
        return "";
    const struct profile_function *function = &profile->functions[site->function];
    struct str file = base_name(site->file);
    struct str image = base_name(profile->images[function->image].path);
    if (file.len > 0 && site->line > 0)
        return arena_printf(arena, "%.*s (%.*s:%u)", STR_FMT(function->name), STR_FMT(file),
                            site->line);
    if (image.len > 0 && !function->unnamed)
        return arena_printf(arena, "%.*s (%.*s)", STR_FMT(function->name), STR_FMT(image));
    return arena_dup_len(arena, function->name.data, function->name.len);
}
