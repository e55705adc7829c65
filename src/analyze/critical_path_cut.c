/* A run that is cut short ends in a wait that nobody ended: what it was for is still at work.
 *
 * A main thread that waits for its own threads, with a limit again and again or for their ends, is
 * found waiting when a signal ends the run or the recording stops. Nobody ever woke it, and yet
 * what the end hung on is the thread that computed meanwhile. */
#include "analyze/critical_path_parts.h"

#include "analyze/wait_parts.h"

/* Its condition, or its end, can only be told by threads of the same process. */
static bool is_for_threads(const struct waits *waits, const struct path_event *event)
{
    enum wait_sign sign = wait_stack_read(&waits->profile, waits->rows[event->row].info.stack).sign;
    return sign == SIGN_CONDITION || sign == SIGN_SEMAPHORE || sign == SIGN_JOIN;
}

static bool is_at_work(const struct waits *waits, const struct path_threads *threads,
                       uint32_t thread, uint64_t time_ns)
{
    const struct waits_thread *life = &waits->threads[thread];
    if (life->start_ns >= time_ns || life->end_ns < time_ns)
        return false;
    const struct path_event *event = path_threads_before(threads, thread, time_ns);
    return !event || event->wake_ns < time_ns;
}

/* Who has computed most of those that were at it then. 0: nobody. */
static uint32_t worker_at(const struct waits *waits, const struct path_threads *threads,
                          uint32_t waiter, uint64_t time_ns)
{
    uint32_t best = 0;
    uint64_t best_ns = 0;
    for (uint32_t i = 1; i < waits->profile.thread_count; i++) {
        if (i == waiter ||
            waits->profile.threads[i].process != waits->profile.threads[waiter].process ||
            waits->threads[i].running_ns <= best_ns || !is_at_work(waits, threads, i, time_ns))
            continue;
        best = i;
        best_ns = waits->threads[i].running_ns;
    }
    return best;
}

void path_threads_cut(const struct waits *waits, struct path_threads *threads)
{
    uint32_t root = waits->root_thread;
    struct path_event *events = threads->events + threads->threads[root].event_first;
    size_t count = threads->threads[root].event_count, first = count - 1;
    if (count == 0)
        return;
    const struct path_event *last = &events[count - 1];
    if (last->waker != 0 || last->run_ns + PATH_LOOK_NS_MAX < waits->threads[root].end_ns ||
        !is_for_threads(waits, last))
        return;
    bool cut = waits_is_cut(waits, &waits->rows[last->row].info);
    for (; first > 0 && path_goes_on(waits, &events[first - 1], &events[first]); first--)
        cut |= waits_is_cut(waits, &waits->rows[events[first - 1].row].info);
    uint32_t worker = cut ? worker_at(waits, threads, root, last->wake_ns) : 0;
    for (size_t i = first; i < count && worker; i++)
        events[i].waker = worker;
}
