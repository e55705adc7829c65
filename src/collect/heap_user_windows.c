/* Windows: found as they are taken, matched to processes, read to the end when these are over. */
#include "collect/heap_user_parts.h"

#include "base/clock.h"
#include "base/fd.h"
#include "target/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define UNFINISHED_NS (10 * NS_PER_SEC) /* a window that nobody has filled by then, nobody will */
#define UNKNOWN_NS    (500 * NS_PER_MS) /* so long a process may be announced late */
enum { LOOKS_MAX = 256, ENVIRONMENT_MAX = 4 << 20 }; /* windows that wait, at one look */

/* One that nobody has waited for is gone as well. */
static bool is_gone(uint32_t pid)
{
    struct proc_stat stat;
    if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
        return true;
    return proc_stat_read((int)pid, 0, &stat) == 0 && (stat.state == 'Z' || stat.state == 'X');
}

static bool part_fits(uint64_t at, uint64_t count, uint64_t size)
{
    return at >= sizeof(struct heap_process) && at % 64 == 0 && at <= HEAP_WINDOW_BYTES &&
           count <= (HEAP_WINDOW_BYTES - at) / size;
}

int heap_layout_check(const struct heap_process *p, const void *window, struct heap_layout *ret)
{
    const char *base = window;
    if (p->threads_max > HEAP_THREADS_MAX || p->images_max > HEAP_IMAGES_MAX ||
        p->nodes_max > HEAP_NODES_MAX ||
        !part_fits(p->threads_at, p->threads_max, sizeof(struct heap_thread_place)) ||
        !part_fits(p->images_at, p->images_max, sizeof(struct heap_image)) ||
        !part_fits(p->nodes_at, p->nodes_max, sizeof(struct heap_node)) ||
        !part_fits(p->cells_at, p->cells_max, sizeof(struct heap_cell)))
        return -EBADMSG;
    *ret = (struct heap_layout){
        .threads = (const void *)(base + p->threads_at),
        .images = (const void *)(base + p->images_at),
        .nodes = (const void *)(base + p->nodes_at),
        .cells = (const void *)(base + p->cells_at),
        .threads_max = p->threads_max,
        .images_max = p->images_max,
        .nodes_max = p->nodes_max,
        .cells_max = p->cells_max,
    };
    return 0;
}

static void window_free(struct collector *c, struct heap_window *window)
{
    preload_heap_window_done(c->preload, window->index);
    VEC_FREE(&window->images);
    VEC_FREE(&window->nodes);
    VEC_FREE(&window->cells);
    VEC_FREE(&window->log_places);
    map_u64_deinit(&window->sites);
    map_u64_deinit(&window->threads);
    free(window);
}

void heap_windows_deinit(struct collector *c)
{
    for (size_t i = 0; i < c->windows.len; i++)
        window_free(c, c->windows.data[i].it);
    VEC_FREE(&c->windows);
    VEC_FREE(&c->pending);
}

static int window_add(struct collector *c, uint32_t index, const struct heap_process *seen,
                      bool is_foreign)
{
    struct heap_layout at;
    const struct heap_process *shared = NULL;
    if (c->windows.len < HEAP_WINDOWS_LIVE_MAX)
        shared = preload_heap_window(c->preload, index);
    if (!shared) {
        c->left_out++;
        preload_heap_window_done(c->preload, index);
        return 0;
    }
    if (heap_layout_check(seen, shared, &at) < 0) {
        c->malformed++;
        preload_heap_window_done(c->preload, index);
        return 0;
    }
    struct heap_window *window = calloc(1, sizeof(*window));
    struct heap_window_at place = {window};
    uint64_t *program = map_u64_at(&c->programs, seen->pid, NULL);
    if (!window || !program || VEC_PUSH(&c->windows, place) < 0) {
        free(window);
        return -ENOMEM;
    }
    *program |= HEAP_PROGRAM_COVERED;
    c->processes++;
    window->index = index;
    window->pid = seen->pid;
    window->start_ns = seen->start_ns;
    window->shared = shared;
    window->at = at;
    window->is_foreign = is_foreign;
    return 0;
}

/* One that was not announced, but has our memory: where processes are looked for now and then some
 * are met here first. Its environment says whose it is; pids may be of another namespace. */
static bool is_adopted(struct collector *c, const struct heap_process *seen)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    const char *variable = preload_heap_environment(c->preload, NULL)[1];
    char path[32];
    struct str text;
    uint32_t process;
    snprintf(path, sizeof(path), "/proc/%u/environ", seen->pid);
    return file_read(&arena, path, ENVIRONMENT_MAX, &text, NULL) == 0 &&
           memmem(text.data, text.len, variable, strlen(variable) + 1) &&
           stacks_process(c->stacks, seen->start_ns, (int)seen->pid, &process) == 0;
}

/* 1: it is dealt with, 0: it has to wait. */
static int pending_look(struct collector *c, const struct heap_pending *pending, uint64_t time_ns)
{
    struct heap_process seen;
    bool is_end = time_ns == UINT64_MAX;
    uint64_t age_ns = clock_mono_ns() - pending->since_ns;
    if (preload_heap_window_look(c->preload, pending->index, &seen) < 0 ||
        seen.magic != HEAP_MAGIC) {
        bool is_over = is_end || age_ns > UNFINISHED_NS;
        c->unfinished += is_over;
        return is_over;
    }
    if (seen.pid == 0 || seen.pid > INT32_MAX) {
        c->malformed++;
        return 1;
    }
    if (seen.start_ns >= time_ns && age_ns < UNFINISHED_NS)
        return 0;
    /* Only processes that are recorded: in another PID namespace the same number is another's. */
    bool is_known = stacks_generation(c->stacks, (int)seen.pid) != 0;
    if (!is_known && !is_end && !c->blind && age_ns < UNKNOWN_NS)
        return 0;
    if (!is_known)
        is_known = is_adopted(c, &seen);
    if (!is_known && !is_gone(seen.pid)) {
        bool is_over = is_end || age_ns > UNFINISHED_NS;
        c->unmatched += is_over;
        return is_over;
    }
    /* Its end was told, or missed: nobody knows more of it than its window. */
    int r = window_add(c, pending->index, &seen, !is_known);
    return r < 0 ? r : 1;
}

static int pending_add(struct collector *c)
{
    uint32_t taken = __atomic_load_n(&preload_heap_header(c->preload)->windows, __ATOMIC_ACQUIRE);
    uint32_t max = preload_heap_windows_max(c->preload);
    uint64_t now_ns = clock_mono_ns();
    for (taken = MIN(taken, max); c->windows_seen < taken; c->windows_seen++) {
        struct heap_pending pending = {c->windows_seen, now_ns};
        if (VEC_PUSH(&c->pending, pending) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int window_end(struct collector *c, size_t at)
{
    struct heap_window *window = c->windows.data[at].it;
    int r = heap_images_read(c, window);
    if (r == 0)
        r = heap_log_window_end(c, window);
    c->windows.data[at] = c->windows.data[--c->windows.len];
    if (r == 0)
        r = heap_cells_read(c, window);
    if (r == 0)
        r = heap_process_read(c, window, true);
    if (r == 0)
        r = heap_moment_read(c, window, clock_mono_ns(), true);
    window_free(c, window);
    return r;
}

int heap_windows_look(struct collector *c, uint64_t time_ns)
{
    int r = pending_add(c);
    size_t looks = time_ns == UINT64_MAX ? c->pending.len : MIN(c->pending.len, (size_t)LOOKS_MAX);
    size_t kept = 0;
    for (size_t i = 0; i < c->pending.len; i++) {
        struct heap_pending pending = c->pending.data[i];
        int done = i < looks && r == 0 ? pending_look(c, &pending, time_ns) : 0;
        if (done < 0)
            r = done;
        if (done <= 0)
            c->pending.data[kept++] = pending;
    }
    c->pending.len = kept;
    return r;
}

int heap_windows_end(struct collector *c, int pid, uint64_t time_ns)
{
    int failed = 0;
    for (size_t i = c->windows.len; i-- > 0;) {
        const struct heap_window *window = c->windows.data[i].it;
        if (window->pid != (uint32_t)pid || window->start_ns >= time_ns)
            continue;
        int r = window_end(c, i);
        if (failed == 0)
            failed = r;
    }
    return failed;
}

/* It has become another program: that one has a window of its own. */
static bool is_replaced(const struct collector *c, const struct heap_window *window)
{
    for (size_t i = 0; i < c->windows.len; i++)
        if (c->windows.data[i].it->pid == window->pid &&
            c->windows.data[i].it->start_ns > window->start_ns)
            return true;
    return false;
}

int heap_windows_sweep(struct collector *c)
{
    int failed = 0;
    for (size_t i = c->windows.len; i-- > 0;) {
        struct heap_window *window = c->windows.data[i].it;
        bool is_known = stacks_generation(c->stacks, (int)window->pid) != 0;
        /* While it is known its end is still to be told, and with it its threads. */
        if ((is_known && !c->blind) || (!is_gone(window->pid) && !is_replaced(c, window)))
            continue;
        window->is_foreign |= !is_known;
        int r = window_end(c, i);
        if (failed == 0)
            failed = r;
    }
    return failed;
}

int heap_windows_end_all(struct collector *c)
{
    int failed = 0;
    while (c->windows.len > 0) {
        int r = window_end(c, c->windows.len - 1);
        if (failed == 0)
            failed = r;
    }
    return failed;
}
