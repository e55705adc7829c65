/* A thread that empties rings into a queue of pieces. */
#include "collect/heap_logs.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    QUEUE_BYTES_MAX = 256 << 20,
    WINDOWS_MAP_MAX = 1024, /* at once: a thousand living processes */
    IDLE_NS = 200000,
};

struct log_window {
    uint32_t number;
    char *memory; /* NULL: this entry is free */
};

/* What a process says of its window, copied before it is believed. */
struct log_layout {
    uint64_t threads_at, logs_at;
    uint32_t threads_max, logs_max;
    uint32_t threads;
};

struct heap_logs {
    int fd;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* over all below */
    bool over;
    const struct heap_header *header;
    uint32_t windows_max;
    uint32_t seen; /* windows looked at so far */
    struct log_window windows[WINDOWS_MAP_MAX];
    struct heap_logs_piece *first, **last;
    size_t queued_bytes;
};

static bool layout_read(const struct heap_process *process, struct log_layout *ret)
{
    if (__atomic_load_n(&process->magic, __ATOMIC_ACQUIRE) != HEAP_MAGIC)
        return false;
    *ret = (struct log_layout){
        .threads_at = *(const volatile uint64_t *)&process->threads_at,
        .logs_at = *(const volatile uint64_t *)&process->logs_at,
        .threads_max = *(const volatile uint32_t *)&process->threads_max,
        .logs_max = *(const volatile uint32_t *)&process->logs_max,
        .threads = __atomic_load_n(&process->threads, __ATOMIC_ACQUIRE),
    };
    uint64_t places = (uint64_t)ret->threads_max * sizeof(struct heap_thread_place);
    uint64_t rings = (uint64_t)ret->logs_max * HEAP_LOG_BYTES;
    return ret->threads_max <= HEAP_THREADS_MAX && ret->logs_max <= HEAP_THREADS_MAX &&
           ret->threads_at % 8 == 0 && ret->logs_at % 8 == 0 && ret->logs_at > 0 &&
           ret->threads_at < HEAP_WINDOW_BYTES && ret->logs_at < HEAP_WINDOW_BYTES &&
           ret->threads_at + places <= HEAP_WINDOW_BYTES &&
           ret->logs_at + rings <= HEAP_WINDOW_BYTES;
}

static void queue(struct heap_logs *logs, struct heap_logs_piece *piece)
{
    *logs->last = piece;
    logs->last = &piece->next;
    logs->queued_bytes += sizeof(*piece) + piece->count * sizeof(uint64_t);
}

static bool place_read(struct heap_logs *logs, const struct log_window *window,
                       const struct log_layout *layout, uint32_t index)
{
    struct heap_thread_place *place = (struct heap_thread_place *)(void *)(window->memory +
                                                                           layout->threads_at) +
                                      index;
    uint32_t log = __atomic_load_n(&place->log, __ATOMIC_ACQUIRE);
    if (log == 0 || log > layout->logs_max)
        return false;
    uint64_t read = *(volatile uint64_t *)&place->log_read;
    uint64_t count = __atomic_load_n(&place->log_written, __ATOMIC_ACQUIRE) - read;
    if (count == 0 || count > HEAP_LOG_WORDS || logs->queued_bytes > QUEUE_BYTES_MAX)
        return false;
    struct heap_logs_piece *piece = malloc(sizeof(*piece) + count * sizeof(uint64_t));
    if (!piece)
        return false; /* later, perhaps: nothing is lost, the target waits */
    *piece = (struct heap_logs_piece){
        .window = window->number, .place = index, .count = (uint32_t)count};
    const uint64_t *ring = (const uint64_t *)(const void *)(window->memory + layout->logs_at +
                                                            (log - 1) * HEAP_LOG_BYTES);
    for (uint64_t i = 0; i < count; i++)
        piece->words[i] = ring[(read + i) % HEAP_LOG_WORDS];
    __atomic_store_n(&place->log_read, read + count, __ATOMIC_RELEASE);
    queue(logs, piece);
    return true;
}

static bool window_read(struct heap_logs *logs, const struct log_window *window)
{
    struct log_layout layout;
    bool any = false;
    if (!layout_read((const struct heap_process *)(const void *)window->memory, &layout))
        return false;
    for (uint32_t i = 0; i < layout.threads && i < layout.threads_max; i++)
        any |= place_read(logs, window, &layout, i);
    return any;
}

static void window_add(struct heap_logs *logs, uint32_t number)
{
    for (size_t i = 0; i < WINDOWS_MAP_MAX; i++) {
        if (logs->windows[i].memory)
            continue;
        void *memory = mmap(NULL, HEAP_WINDOW_BYTES, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, logs->fd,
                            (off_t)(HEAP_HEADER_BYTES + number * HEAP_WINDOW_BYTES));
        if (memory != MAP_FAILED)
            logs->windows[i] = (struct log_window){number, memory};
        return;
    }
}

static bool all_read(struct heap_logs *logs)
{
    bool any = false;
    uint32_t windows = __atomic_load_n(&logs->header->windows, __ATOMIC_ACQUIRE);
    for (; logs->seen < windows && logs->seen < logs->windows_max; logs->seen++)
        window_add(logs, logs->seen);
    for (size_t i = 0; i < WINDOWS_MAP_MAX; i++)
        if (logs->windows[i].memory)
            any |= window_read(logs, &logs->windows[i]);
    return any;
}

static void *reader(void *context)
{
    struct heap_logs *logs = context;
    for (;;) {
        pthread_mutex_lock(&logs->lock);
        bool any = all_read(logs);
        bool over = logs->over;
        pthread_mutex_unlock(&logs->lock);
        if (over && !any)
            return NULL;
        if (!any)
            clock_sleep_ns(IDLE_NS);
    }
}

/* Signals are for whoever waits for the target. */
static int reader_start(struct heap_logs *logs)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = -pthread_create(&logs->thread, NULL, reader, logs);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

int heap_logs_start(int fd, struct heap_logs **ret, struct why *why)
{
    struct heap_logs *logs = calloc(1, sizeof(*logs));
    if (!logs)
        return why_nomem(why);
    logs->fd = fd;
    logs->last = &logs->first;
    pthread_mutex_init(&logs->lock, NULL);
    void *header = mmap(NULL, sizeof(struct heap_header), PROT_READ, MAP_SHARED, fd, 0);
    int r = header == MAP_FAILED ? -errno : 0;
    if (r == 0) {
        logs->header = header;
        logs->windows_max = MIN(logs->header->windows_max, (uint32_t)HEAP_WINDOWS_MAX);
        r = reader_start(logs);
    }
    if (r < 0) {
        heap_logs_free(logs);
        return why_errno(why, -r, NULL, "cannot start the reader of the heap log");
    }
    logs->running = true;
    *ret = logs;
    return 0;
}

void heap_logs_stop(struct heap_logs *logs)
{
    if (!logs->running)
        return;
    pthread_mutex_lock(&logs->lock);
    logs->over = true;
    logs->queued_bytes = 0; /* the target waits no longer: the rest fits */
    pthread_mutex_unlock(&logs->lock);
    pthread_join(logs->thread, NULL);
    logs->running = false;
}

void heap_logs_free(struct heap_logs *logs)
{
    struct heap_logs_piece *piece;
    if (!logs)
        return;
    heap_logs_stop(logs);
    while ((piece = heap_logs_take(logs)) != NULL)
        free(piece);
    for (size_t i = 0; i < WINDOWS_MAP_MAX; i++)
        if (logs->windows[i].memory)
            munmap(logs->windows[i].memory, HEAP_WINDOW_BYTES);
    if (logs->header)
        munmap((void *)(uintptr_t)logs->header, sizeof(struct heap_header));
    pthread_mutex_destroy(&logs->lock);
    free(logs);
}

struct heap_logs_piece *heap_logs_take(struct heap_logs *logs)
{
    pthread_mutex_lock(&logs->lock);
    struct heap_logs_piece *piece = logs->first;
    if (piece) {
        logs->first = piece->next;
        if (!logs->first)
            logs->last = &logs->first;
        size_t bytes = sizeof(*piece) + piece->count * sizeof(uint64_t);
        logs->queued_bytes -= bytes < logs->queued_bytes ? bytes : logs->queued_bytes;
    }
    pthread_mutex_unlock(&logs->lock);
    return piece;
}

void heap_logs_window_done(struct heap_logs *logs, uint32_t window)
{
    pthread_mutex_lock(&logs->lock);
    if (logs->seen <= window)
        all_read(logs);
    for (size_t i = 0; i < WINDOWS_MAP_MAX; i++) {
        struct log_window *entry = &logs->windows[i];
        if (!entry->memory || entry->number != window)
            continue;
        size_t bytes = logs->queued_bytes;
        logs->queued_bytes = 0; /* nobody writes there any more: what is left is little */
        window_read(logs, entry);
        logs->queued_bytes += bytes;
        munmap(entry->memory, HEAP_WINDOW_BYTES);
        entry->memory = NULL;
    }
    pthread_mutex_unlock(&logs->lock);
}
