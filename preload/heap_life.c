/* The life of a process and its threads in the heap library: a window of the memory shared with
 * whyslow, a place in it for each thread, and what changes with fork(). heap.h says what is
 * promised. */
#include "find.h"
#include "heap_next.h"
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Another libc lacks these, and must not fail to load us for it. */
#pragma weak gnu_get_libc_version
extern char single_threaded __asm__("__libc_single_threaded") __attribute__((weak));

enum {
    PAGE = 4096,
    FD_HIGH = 1000,
    PATH_BYTES = 64,
    LOGS_MAX = 1024,
    ADOPT_FROM = 16, /* threads, from which on places of dead ones are looked for */
    ADOPT_TRIES = 16,
    SPINS = 100,
};

bool heap_on;
struct heap_header *heap_header;
struct heap_process *heap_process;
struct heap_node *heap_nodes;
struct heap_cell *heap_cells;
uint32_t *heap_hash;
uint32_t heap_hash_mask;
uint64_t *heap_generation;
static const char never_alone;
const char *heap_single = &never_alone;
__thread struct heap_self heap_self __attribute__((tls_model("initial-exec")));

/* What a window is made of. */
static struct {
    uint64_t threads_at, images_at, hash_at, nodes_at, cells_at, logs_at;
    uint32_t threads, images, nodes, cells, logs;
    size_t bytes;
} layout;
static struct {
    int fd; /* high up, for children of fork(); -1: none */
    dev_t device;
    ino_t inode;
    char path[PATH_BYTES];
    uint32_t window;
    uint64_t generations;
    uint32_t adopt_next;
} life = {.fd = -1};
/* By place, kept when its thread is dead, and in children, for the next one there. */
static struct heap_thread *threads[HEAP_THREADS_MAX];
/* For those for whom there is no place, or no memory: one at a time. */
static struct heap_thread *shared;
static uint64_t shared_generation;
static const struct heap_self *shared_owner;

/* ---- the kernel ---- */

long heap_raw6(long number, long a, long b, long c, long d, long e, long f)
{
    return preload_raw6(number, a, b, c, d, e, f);
}

static long raw(long number, long a, long b, long c)
{
    return heap_raw6(number, a, b, c, 0, 0, 0);
}

static void *map(void *at, size_t bytes, int flags, int fd, uint64_t offset)
{
    long r = heap_raw6(SYS_mmap, (long)at, (long)bytes, PROT_READ | PROT_WRITE,
                       flags | MAP_NORESERVE, fd, (long)offset);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return r < 0 && r > -PAGE ? NULL : (void *)r;
}

void *heap_map(size_t bytes)
{
    return map(NULL, bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

/* ---- the place of all the rest ---- */

static void shared_take(const struct heap_self *self)
{
    if (shared_owner == self)
        return;
    const struct heap_self *none = NULL;
    for (unsigned i = 0; !__atomic_compare_exchange_n(&shared_owner, &none, self, false,
                                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
         i++) {
        none = NULL;
        relax();
        if (i >= SPINS)
            raw(SYS_sched_yield, 0, 0, 0);
    }
}

static void shared_give(const struct heap_self *self)
{
    if (shared_owner == self)
        __atomic_store_n(&shared_owner, NULL, __ATOMIC_RELEASE);
}

/* ---- the window of a process ---- */

static uint64_t between(uint64_t value, uint64_t low, uint64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static uint64_t power_below(uint64_t value)
{
    return UINT64_C(1) << (63 - __builtin_clzll(value | 1));
}

/* A target whose memory is limited gets a smaller window, so that the limit stays its own. */
static uint64_t budget_bytes(void)
{
    static const int kinds[] = {RLIMIT_AS, RLIMIT_DATA};
    uint64_t bytes = HEAP_WINDOW_BYTES;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
        if (heap_raw6(SYS_prlimit64, 0, kinds[i], 0, (long)&limit, 0, 0) == 0 &&
            limit.rlim_cur / 64 < bytes)
            bytes = limit.rlim_cur / 64;
    }
    return bytes;
}

static uint64_t part_after(uint64_t *at, uint64_t bytes)
{
    uint64_t start = *at;
    *at += (bytes + PAGE - 1) / PAGE * PAGE;
    return start;
}

static void layout_make(void)
{
    uint64_t budget = budget_bytes(), at = PAGE;
    layout.threads = (uint32_t)between(budget / 16 / sizeof(struct heap_thread_place), 16,
                                       HEAP_THREADS_MAX);
    layout.images = (uint32_t)between(budget / 16 / sizeof(struct heap_image), 64, HEAP_IMAGES_MAX);
    layout.nodes = (uint32_t)between(
        power_below(budget / 4 / (sizeof(struct heap_node) + sizeof(uint32_t))), 4096,
        HEAP_NODES_MAX);
    layout.logs = heap_header->log ? (uint32_t)between(budget / 4 / HEAP_LOG_BYTES, 1, LOGS_MAX)
                                   : 0;
    layout.threads_at = part_after(&at, layout.threads * sizeof(struct heap_thread_place));
    layout.images_at = part_after(&at, layout.images * sizeof(struct heap_image));
    layout.hash_at = part_after(&at, layout.nodes * sizeof(uint32_t));
    layout.nodes_at = part_after(&at, layout.nodes * sizeof(struct heap_node));
    layout.logs_at = layout.logs == 0 ? 0 : part_after(&at, layout.logs * HEAP_LOG_BYTES);
    uint64_t left = budget > at ? budget - at : 0;
    layout.cells = (uint32_t)between(left / sizeof(struct heap_cell), 4096, HEAP_CELLS_MAX);
    layout.cells_at = part_after(&at, layout.cells * sizeof(struct heap_cell));
    layout.bytes = at;
}

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void process_fill(uint32_t parent)
{
    struct heap_process *process = heap_process;
    process->pid = (uint32_t)raw(SYS_getpid, 0, 0, 0);
    process->parent_window = parent;
    process->start_ns = now_ns();
    process->threads_at = layout.threads_at;
    process->images_at = layout.images_at;
    process->nodes_at = layout.nodes_at;
    process->cells_at = layout.cells_at;
    process->logs_at = layout.logs_at;
    process->threads_max = layout.threads;
    process->images_max = layout.images;
    process->nodes_max = layout.nodes;
    process->cells_max = layout.cells;
    process->logs_max = layout.logs;
    process->nodes = 2; /* none, and "somewhere" */
    __atomic_store_n(&process->magic, HEAP_MAGIC, __ATOMIC_RELEASE);
}

static bool is_ours(int fd, bool known)
{
    struct stat stat = {0};
    if (fd < 0 || raw(SYS_fstat, fd, (long)&stat, 0) != 0)
        return false;
    if (!known) {
        life.device = stat.st_dev;
        life.inode = stat.st_ino;
    }
    return stat.st_dev == life.device && stat.st_ino == life.inode && S_ISREG(stat.st_mode) &&
           (uint64_t)stat.st_size > HEAP_HEADER_BYTES;
}

static int file_open(void)
{
    return (int)heap_raw6(SYS_openat, AT_FDCWD, (long)life.path, O_RDWR | O_CLOEXEC, 0, 0, 0);
}

/* The next window, over the one before if there is one: pointers into it stay what they are. */
static bool window_take(int fd, uint32_t parent)
{
    uint32_t number = __atomic_fetch_add(&heap_header->windows, 1, __ATOMIC_RELAXED);
    if (number >= HEAP_WINDOWS_MAX || number >= heap_header->windows_max)
        return false;
    uint64_t offset = HEAP_HEADER_BYTES + number * HEAP_WINDOW_BYTES;
    char *window = map(heap_process, layout.bytes, MAP_SHARED | (heap_process ? MAP_FIXED : 0), fd,
                       offset);
    if (!window)
        return false;
    raw(SYS_madvise, (long)window, (long)layout.bytes, MADV_DONTDUMP);
    heap_process = (void *)window;
    heap_hash = (void *)(window + layout.hash_at);
    heap_hash_mask = layout.nodes - 1;
    heap_nodes = (void *)(window + layout.nodes_at);
    heap_cells = (void *)(window + layout.cells_at);
    life.window = number;
    process_fill(parent);
    return true;
}

/* ---- threads ---- */

static struct heap_thread_place *place_at(uint32_t index)
{
    return (struct heap_thread_place *)(void *)((char *)heap_process + layout.threads_at) + index;
}

static size_t thread_bytes(void)
{
    return (sizeof(struct heap_thread) + PAGE - 1) / PAGE * PAGE;
}

/* Memory of the thread at a place: that of the one before, or new. */
static struct heap_thread *thread_memory(uint32_t index)
{
    struct heap_thread *thread = threads[index];
    if (thread)
        return thread;
    size_t cells = layout.nodes * sizeof(uint32_t);
    char *memory = heap_map(thread_bytes() + cells);
    if (!memory)
        return NULL;
    /* Touched here and there: large pages would make much of little. */
    heap_advise(memory, thread_bytes() + cells, MADV_NOHUGEPAGE);
    thread = (void *)memory;
    thread->cell_of = (void *)(memory + thread_bytes());
    thread->walker = heap_walker_make();
    if (!thread->walker) {
        raw(SYS_munmap, (long)memory, (long)(thread_bytes() + cells), 0);
        return NULL;
    }
    threads[index] = thread;
    return thread;
}

/* What the thread before left there, if it was one of this process, still holds: cells. */
static void thread_settle(struct heap_thread *thread, uint32_t index, uint64_t generation)
{
    if (thread->generation != generation && thread->generation != 0)
        raw(SYS_madvise, (long)thread->cell_of, (long)(layout.nodes * sizeof(uint32_t)),
            MADV_DONTNEED);
    heap_walker_forget(thread->walker);
    *thread = (struct heap_thread){
        .generation = generation,
        .place = place_at(index),
        .place_index = (uint16_t)index,
        .walker = thread->walker,
        .cell_of = thread->cell_of,
        .cell_any = thread->generation == generation ? thread->cell_any : 0,
    };
}

static void place_settle(struct heap_thread_place *place)
{
    place->serial++;
    place->began_tick = __atomic_load_n(&heap_header->tick, __ATOMIC_RELAXED);
    __atomic_store_n(&place->state, HEAP_THREAD_TAKEN, __ATOMIC_RELEASE);
}

/* A place whose thread is dead; UINT32_MAX: of a few there is none. */
static uint32_t place_adopt(uint32_t tid, uint32_t tries)
{
    uint32_t used = __atomic_load_n(&heap_process->threads, __ATOMIC_RELAXED);
    for (uint32_t i = 0; used > ADOPT_FROM && i < tries; i++) {
        uint32_t index = __atomic_fetch_add(&life.adopt_next, 1, __ATOMIC_RELAXED) % used;
        struct heap_thread_place *place = place_at(index);
        uint32_t owner = __atomic_load_n(&place->tid, __ATOMIC_ACQUIRE);
        if (owner == 0 || !threads[index] || threads[index] == shared ||
            (owner != tid && raw(SYS_tgkill, heap_process->pid, owner, 0) != -ESRCH))
            continue;
        if (owner == tid || __atomic_compare_exchange_n(&place->tid, &owner, tid, false,
                                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return index;
    }
    return UINT32_MAX;
}

/* A place that nobody has had; UINT32_MAX: none is left. The last is for all the rest. */
static uint32_t place_fresh(uint32_t tid)
{
    uint32_t index = __atomic_load_n(&heap_process->threads, __ATOMIC_RELAXED);
    do {
        if (index >= layout.threads - 1)
            return UINT32_MAX;
    } while (!__atomic_compare_exchange_n(&heap_process->threads, &index, index + 1, false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    __atomic_store_n(&place_at(index)->tid, tid, __ATOMIC_RELEASE);
    return index;
}

static uint32_t place_find(uint32_t tid)
{
    uint32_t index = place_adopt(tid, ADOPT_TRIES);
    if (index == UINT32_MAX)
        index = place_fresh(tid);
    return index != UINT32_MAX ? index : place_adopt(tid, layout.threads);
}

static bool shared_begin(uint64_t generation)
{
    shared_owner = NULL;
    shared = thread_memory(layout.threads - 1);
    if (!shared)
        return false;
    shared->generation = shared_generation;
    thread_settle(shared, layout.threads - 1, generation);
    shared_generation = generation;
    shared->generation = UINT64_MAX; /* nobody goes in without the lock */
    return true;
}

/* Readers look at as many places as were used: this is the last. */
static struct heap_thread *shared_use(uint32_t tid)
{
    if (shared->place->state != HEAP_THREAD_TAKEN) {
        shared->place->tid = tid;
        place_settle(shared->place);
        __atomic_store_n(&heap_process->threads, layout.threads, __ATOMIC_RELEASE);
    }
    return shared;
}

static struct heap_thread *thread_make(void)
{
    uint32_t tid = (uint32_t)raw(SYS_gettid, 0, 0, 0);
    uint32_t index = place_find(tid);
    struct heap_thread *thread = index == UINT32_MAX ? NULL : thread_memory(index);
    if (!thread)
        return shared_use(tid);
    place_settle(place_at(index));
    thread_settle(thread, index, __atomic_load_n(heap_generation, __ATOMIC_RELAXED));
    return thread;
}

/* ---- fork ---- */

static bool process_renew(void)
{
    int fd = life.fd;
    bool opened = !is_ours(fd, true);
    if (opened)
        fd = file_open();
    bool done = is_ours(fd, true) && window_take(fd, life.window);
    if (opened && fd >= 0)
        raw(SYS_close, fd, 0, 0);
    if (!done || !shared_begin(life.generations + 1)) {
        __atomic_fetch_add(&heap_header->refused, 1, __ATOMIC_RELAXED);
        heap_on = false;
        return false;
    }
    heap_walk_forked();
    heap_book_forked();
    __atomic_store_n(heap_generation, ++life.generations, __ATOMIC_RELEASE);
    return true;
}

/* The first to come, should there be several, takes the window; the others wait for it. */
static bool process_is_current(void)
{
    if (LIKELY(__atomic_load_n(heap_generation, __ATOMIC_ACQUIRE) != 0))
        return true;
    if (__atomic_exchange_n(&heap_generation[1], 1, __ATOMIC_ACQ_REL) == 0)
        return process_renew();
    while (__atomic_load_n(heap_generation, __ATOMIC_ACQUIRE) == 0 &&
           __atomic_load_n(&heap_on, __ATOMIC_RELAXED))
        relax();
    return heap_on;
}

/* ---- the beginning ---- */

static bool generation_make(void)
{
    uint64_t *page = heap_map(PAGE);
    /* Large pages of the machine round up; Linux before 4.14 cannot do it. */
    if (!page || raw(SYS_madvise, (long)page, PAGE, MADV_WIPEONFORK) != 0)
        return false;
    heap_generation = page;
    page[1] = 1;
    *page = ++life.generations;
    return true;
}

/* High up, where a program does not count on it; it may close it. */
static void fd_keep(int fd)
{
    struct rlimit limit = {.rlim_cur = FD_HIGH};
    heap_raw6(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0);
    long low = limit.rlim_cur < FD_HIGH + 8 ? (long)limit.rlim_cur - 8 : FD_HIGH;
    life.fd = low > fd ? (int)raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC, low) : -1;
}

/* A sanitizer's runtime has to be the first that knows of memory, and a program that has its own
 * malloc() never comes here but for a part of its calls. */
static bool is_alone_with_libc(void)
{
    static const char *const runtimes[] = {"__asan_init", "__tsan_init", "__msan_init",
                                           "__hwasan_init"};
    bool sanitized = false;
    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
        sanitized |= find_first(runtimes[i]).address != NULL;
    return !sanitized && gnu_get_libc_version && heap_hooks_are_first();
}

static bool header_map(int fd)
{
    heap_header = is_ours(fd, false) ? map(NULL, PAGE, MAP_SHARED, fd, 0) : NULL;
    return heap_header && heap_header->magic == HEAP_MAGIC &&
           heap_header->version == HEAP_VERSION && !heap_header->over;
}

static bool process_begin(int fd)
{
    layout_make();
    if (is_alone_with_libc() && generation_make() && window_take(fd, UINT32_MAX) &&
        heap_book_begin(!heap_nests) && shared_begin(life.generations)) {
        fd_keep(fd);
        return true;
    }
    __atomic_fetch_add(&heap_header->refused, 1, __ATOMIC_RELAXED);
    return false;
}

static bool path_keep(const char *path)
{
    size_t i = 0;
    for (; path && path[i] && i < PATH_BYTES - 1; i++)
        life.path[i] = path[i];
    return i > 0 && !path[i];
}

/* Now, and not when it is asked for: by then the program may have forbidden itself to. */
static void program_keep(void)
{
    long len = heap_raw6(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)heap_program,
                         sizeof(heap_program), 0, 0);
    bool whole = len > 0 && len < (long)sizeof(heap_program);
    /* A file that is deleted has no path: it ends with words that say so. */
    heap_program[whole && heap_program[len - 1] != ')' ? len : 0] = '\0';
}

/* With the first call that comes once there is an environment: libraries allocate while they are
 * set up, and may be set up before this one. */
static bool life_begin(void)
{
    static bool begun;
    if (LIKELY(__atomic_load_n(&begun, __ATOMIC_RELAXED)) || !environ ||
        __atomic_exchange_n(&begun, true, __ATOMIC_ACQ_REL))
        return false;
    int saved = errno;
    int fd = heap_hooks_resolve() && path_keep(find_environment(HEAP_VARIABLE)) ? file_open() : -1;
    if (fd >= 0) {
        if (&single_threaded)
            heap_single = &single_threaded;
        program_keep();
        heap_on = header_map(fd) && process_begin(fd);
        raw(SYS_close, fd, 0, 0);
    }
    errno = saved;
    return heap_on;
}

/* The first thread is made here: behind a filter that the program puts up it may ask the kernel
 * for little more than memory. */
__attribute__((constructor(101))) static void life_construct(void)
{
    uint64_t mark;
    if (heap_enter(&mark))
        heap_leave();
}

/* ---- in and out ---- */

static bool is_on_signal_stack(void)
{
    stack_t stack = {0};
    return raw(SYS_sigaltstack, 0, (long)&stack, 0) != 0 || (stack.ss_flags & SS_ONSTACK);
}

/* A handler has left the hook that it interrupted for good: its frame is gone. */
static bool is_left(const uint64_t *busy, const uint64_t *mark)
{
    if (*(const volatile uint64_t *)busy != heap_mark(busy))
        return true;
    return mark >= busy && !is_on_signal_stack();
}

static void take_over(const struct heap_self *self)
{
    struct heap_thread *thread = self->thread;
    if (!thread)
        return;
    heap_book_left();
    heap_walker_forget(thread->walker);
    thread->place->lost++;
}

static bool is_current(const struct heap_thread *thread)
{
    uint64_t now = __atomic_load_n(heap_generation, __ATOMIC_RELAXED);
    return thread && (thread == shared ? shared_generation : thread->generation) == now;
}

/* While a thread gets its place there is nothing yet that could put off what a handler does. */
static uint64_t signals_mask(int how, uint64_t mask)
{
    uint64_t before = 0;
    heap_raw6(SYS_rt_sigprocmask, how, (long)&mask, (long)&before, sizeof(mask), 0, 0);
    return before;
}

static bool thread_renew(struct heap_self *self)
{
    if (!process_is_current())
        return false;
    if (!is_current(self->thread))
        self->thread = thread_make();
    return true;
}

struct heap_thread *heap_enter_slow(uint64_t *mark)
{
    struct heap_self *self = &heap_self;
    if (!heap_on && (self->looking || !life_begin()))
        return NULL;
    if (__atomic_load_n(&heap_header->over, __ATOMIC_RELAXED)) {
        heap_on = false;
        return NULL;
    }
    if (self->busy) {
        if (!is_left(self->busy, mark))
            return NULL;
        take_over(self);
    }
    bool known = is_current(self->thread);
    uint64_t signals = known ? 0 : signals_mask(SIG_BLOCK, UINT64_MAX);
    *(volatile uint64_t *)mark = heap_mark(mark);
    self->busy = mark;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    bool counts = known || thread_renew(self);
    if (!counts)
        self->busy = NULL;
    if (!known)
        signals_mask(SIG_SETMASK, signals);
    if (!counts)
        return NULL;
    if (self->thread == shared) {
        shared_take(self);
        self->later = true; /* to be given back */
    }
    self->thread->alone = self->thread != shared && *(const volatile char *)heap_single != 0;
    return self->thread;
}

static void later_do(struct heap_thread *thread, const struct heap_later *later)
{
    thread->place->nested++;
    if (!later->freed) {
        if (heap_book_wants(thread, later->size))
            heap_book_allocated(thread, later->memory, later->size, 1);
        return;
    }
    heap_book_freed(thread, later->memory);
    heap_next.free(later->memory);
}

void heap_leave_slow(void)
{
    struct heap_self *self = &heap_self;
    struct heap_thread *thread = self->thread;
    uint64_t mark = heap_mark(&mark);
    do {
        self->busy = &mark;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        self->later = false;
        if (thread == shared)
            shared_take(self);
        uint32_t done = 0, count;
        do {
            while (done < __atomic_load_n(&thread->later_count, __ATOMIC_RELAXED))
                later_do(thread, &thread->later[done++]);
            count = done;
        } while (!__atomic_compare_exchange_n(&thread->later_count, &count, 0, false,
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        if (thread == shared)
            shared_give(self);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        self->busy = NULL;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } while (self->later);
}

bool heap_put_off(void *memory, uint64_t size, bool freed)
{
    struct heap_self *self = &heap_self;
    struct heap_thread *thread = self->thread;
    if (!self->busy || !is_current(thread))
        return false;
    if (thread->later_count >= HEAP_LATER_MAX) {
        thread->place->lost++;
        return false;
    }
    thread->later[thread->later_count] = (struct heap_later){memory, size, freed};
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->later_count++;
    self->later = true;
    return true;
}
