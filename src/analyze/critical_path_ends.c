/* Without privileges nobody tells who ended a wait. But a wait for a process ends when that one
 * does, and both moments are known. */
#include "analyze/critical_path_parts.h"

#include <errno.h>
#include <stdlib.h>

/* The end of a process may be told a little after its parent runs again. */
static const uint64_t end_gap_ns_max = 5000000;

struct ending {
    uint64_t end_ns;
    uint32_t thread; /* main thread of a process that ended */
};

static int end_order(const void *a, const void *b)
{
    const struct ending *x = a, *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static uint32_t process_of(const struct waits *waits, uint32_t thread)
{
    uint32_t process = waits->profile.threads[thread].process;
    return process < waits->profile.process_count ? process : 0;
}

static size_t endings_list(const struct waits *waits, struct ending *ret)
{
    size_t count = 0;
    for (uint32_t i = 1; i < waits->profile.thread_count; i++) {
        uint32_t process = process_of(waits, i);
        if (process && waits->threads[i].ended &&
            waits->profile.threads[i].tid == waits->profile.processes[process].pid)
            ret[count++] = (struct ending){waits->threads[i].end_ns, i};
    }
    qsort(ret, count, sizeof(*ret), end_order);
    return count;
}

/* A child by its parent's pid: after exec a process has another entry. */
static bool is_child(const struct waits *waits, uint32_t thread, uint32_t parent)
{
    const struct profile_process *processes = waits->profile.processes;
    uint32_t by = processes[process_of(waits, thread)].parent;
    return by && by < waits->profile.process_count && processes[by].pid == processes[parent].pid;
}

/* The first that ended while it was waited for and can be meant; 0: none. When its parent ran again
 * may be much later: without privileges it is not known when a thread was ready to. */
static uint32_t ended_in(const struct waits *waits, const struct ending *endings, size_t count,
                         const struct path_event *event)
{
    const struct wait_info *info = &waits->rows[event->row].info;
    uint64_t pid = waits->objects[info->object].key;
    uint32_t parent = process_of(waits, info->thread);
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (endings[middle].end_ns < event->start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < count && endings[low].end_ns <= event->wake_ns + end_gap_ns_max; low++) {
        uint32_t thread = endings[low].thread;
        bool meant = pid ? waits->profile.threads[thread].tid == pid
                         : is_child(waits, thread, parent);
        if (meant && thread != info->thread)
            return thread;
    }
    return 0;
}

int path_threads_ends(const struct waits *waits, struct path_threads *threads)
{
    struct ending *endings = calloc(waits->profile.thread_count + 1, sizeof(*endings));
    if (!endings)
        return -ENOMEM;
    size_t count = endings_list(waits, endings);
    for (size_t i = 0; i < threads->count && count > 0; i++) {
        struct path_event *events = threads->events + threads->threads[i].event_first;
        for (size_t k = 0; k < threads->threads[i].event_count; k++) {
            const struct wait_info *info = &waits->rows[events[k].row].info;
            if (events[k].waker == 0 && info->object && info->object < waits->object_count &&
                waits->objects[info->object].kind == OBJECT_PROCESS)
                events[k].waker = ended_in(waits, endings, count, &events[k]);
        }
    }
    free(endings);
    return 0;
}
