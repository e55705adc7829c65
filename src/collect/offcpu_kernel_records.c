/* The ring in the order of time: stacks are walked while the mappings are those of their moment. */
#include "collect/offcpu_kernel_parts.h"

#include <errno.h>

static int event_take(struct collector *c, const struct offcpu_event *event, size_t bytes)
{
    if (bytes != sizeof(*event)) {
        c->malformed++;
        return 0;
    }
    struct offcpu_span span = {event->start_ns, event->wake_ns, event->head.time_ns};
    c->events++;
    return offcpu_event_put(c, &event->key, &span, event->owned_ns, event->owner_off_ns);
}

/* The last moment at which its names can be asked for. */
static int exit_take(struct collector *c, const struct offcpu_head *head)
{
    struct told_thread *seen;
    int r = told_threads_get(&c->threads, head->tid, head->tgid, head->exec, head->time_ns, &seen);
    if (r == 0)
        seen->ended = true;
    return r;
}

static int futex_take(struct collector *c, const struct offcpu_futex *futex, size_t bytes)
{
    const struct offcpu_head *head = &futex->head;
    struct told_thread *seen;
    uint32_t object;
    if (bytes != sizeof(*futex)) {
        c->malformed++;
        return 0;
    }
    int r = told_threads_get(&c->threads, head->tid, head->tgid, head->exec, head->time_ns, &seen);
    return r < 0 ? r : offcpu_futex_see(c, seen->process, head->tgid, futex->address, &object);
}

static int record_take(struct collector *c, const struct offcpu_head *head, size_t bytes)
{
    switch (head->record) {
    case OFFCPU_COPY:
        return told_stacks_take(&c->told, (const void *)head, bytes);
    case OFFCPU_EVENT:
        return event_take(c, (const void *)head, bytes);
    case OFFCPU_EXIT:
        return exit_take(c, head);
    case OFFCPU_FUTEX:
        return futex_take(c, (const void *)head, bytes);
    case OFFCPU_KERNEL:
        if (bytes == sizeof(struct offcpu_kernel))
            offcpu_kernel_learn(c, (const void *)head);
        else
            c->malformed++;
        return 0;
    default:
        c->malformed++;
        return 0;
    }
}

int offcpu_records_take(struct collector *c, uint64_t time_ns)
{
    const struct offcpu_head *head;
    size_t bytes;
    uint64_t place;
    int failed = 0;
    bpf_ring_begin(&c->ring);
    /* What an announcement has changed counts from the moment we were told of it. */
    told_stacks_check(&c->told, c->until_ns);
    while ((head = bpf_ring_next(&c->ring, &bytes, &place))) {
        if (bytes < sizeof(*head)) {
            c->malformed++;
            continue;
        }
        if (head->record == OBJECT_RECORD_TYPE) { /* what it is called: any time is right */
            int r = objects_take(c->objects, head, bytes);
            failed = failed ? failed : r;
            continue;
        }
        if (head->time_ns > time_ns) { /* the next time */
            c->ring.at = place;
            break;
        }
        int r = record_take(c, head, bytes);
        if (r == -E2BIG || r == -EINVAL)
            c->refused++; /* beyond a bound of the sink: this one, not the recording */
        else if (r < 0 && failed == 0)
            failed = r; /* go on: the sink counts what it drops */
        bpf_ring_release(&c->ring, UINT64_MAX);
    }
    bpf_ring_release(&c->ring, UINT64_MAX);
    if (time_ns != UINT64_MAX)
        c->until_ns = time_ns;
    return failed;
}
