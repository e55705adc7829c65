/* --log: every event of every thread, from the rings' words to rows. */
#include "collect/heap_user_parts.h"

#include "collect/heap_logs.h"

#include <errno.h>
#include <stdlib.h>

enum { WAITING_BYTES_MAX = 64 << 20 }; /* of windows that have no process yet: then targets wait */

int heap_log_start(struct collector *c, struct why *why)
{
    if (!c->opts.log)
        return 0;
    return heap_logs_start(preload_heap_fd(c->preload), &c->logs, why);
}

/* Where the reading of a place stands. */
static struct heap_log_place *place_of(struct heap_window *window, uint32_t place)
{
    if (place >= window->at.threads_max)
        return NULL;
    if (place >= window->log_places.len) {
        if (VEC_RESERVE(&window->log_places, place + 1) < 0)
            return NULL;
        while (window->log_places.len <= place)
            window->log_places.data[window->log_places.len++] = (struct heap_log_place){0};
    }
    return &window->log_places.data[place];
}

static int event_put(struct collector *c, struct heap_window *window, uint32_t place,
                     struct heap_event *event)
{
    const struct heap_header *header = preload_heap_header(c->preload);
    uint32_t tid = window->at.threads[place].tid;
    int r = heap_thread_need(c, window, tid ? tid : window->pid, &event->thread);
    if (r < 0)
        return r;
    event->time_ns = header->start_ns +
                     (uint64_t)window->log_places.data[place].tick * HEAP_TICK_NS;
    r = sink_heap_event(c->sink, event);
    c->events += r == 0;
    c->malformed += r == -EINVAL;
    return r == -EINVAL ? 0 : r;
}

static int word_take(struct collector *c, struct heap_window *window, uint32_t place, uint64_t word)
{
    struct heap_log_place *at = &window->log_places.data[place];
    uint64_t value = word & ((UINT64_C(1) << HEAP_LOG_SHIFT) - 1);
    struct heap_event event = {.kind = HEAP_EVENT_ALLOCATED, .address = at->address};
    if (at->is_amid) { /* its second word: node and size */
        struct heap_seen_node node;
        at->is_amid = false;
        int r = heap_node_stack(c, window, (uint32_t)(word >> 40), &node);
        event.stack = node.stack;
        event.size = word & ((UINT64_C(1) << 40) - 1);
        return r < 0 ? r : event_put(c, window, place, &event);
    }
    switch (word >> HEAP_LOG_SHIFT) {
    case HEAP_LOG_TICK:
        at->tick = (uint32_t)value;
        return 0;
    case HEAP_LOG_ALLOCATED:
        at->is_amid = true;
        at->address = value;
        return 0;
    case HEAP_LOG_FREED:
        event.kind = HEAP_EVENT_FREED;
        event.address = value;
        return event_put(c, window, place, &event);
    default:
        c->malformed++;
        return 0;
    }
}

static int piece_read(struct collector *c, struct heap_window *window,
                      const struct heap_logs_piece *piece)
{
    int r = heap_process_need(c, window);
    if (!place_of(window, piece->place))
        return r < 0 ? r : -ENOMEM;
    for (uint32_t i = 0; i < piece->count && r == 0; i++)
        r = word_take(c, window, piece->place, piece->words[i]);
    return r;
}

static struct heap_window *window_of(const struct collector *c, uint32_t index)
{
    for (size_t i = 0; i < c->windows.len; i++)
        if (c->windows.data[i].it->index == index)
            return c->windows.data[i].it;
    return NULL;
}

static bool is_pending(const struct collector *c, uint32_t index)
{
    if (index >= c->windows_seen)
        return true;
    for (size_t i = 0; i < c->pending.len; i++)
        if (c->pending.data[i].index == index)
            return true;
    return false;
}

/* 1: it has to wait for its process; else it is dealt with. */
static int piece_take(struct collector *c, const struct heap_logs_piece *piece)
{
    struct heap_window *window = window_of(c, piece->window);
    if (window)
        return piece_read(c, window, piece);
    if (is_pending(c, piece->window) && !c->over)
        return 1;
    c->events_lost += piece->count; /* of a window that was refused */
    return 0;
}

static int waiting_take(struct collector *c)
{
    struct heap_logs_piece **at = &c->log_waiting;
    int failed = 0;
    while (*at) {
        struct heap_logs_piece *piece = *at;
        int r = failed ? 1 : piece_take(c, piece);
        if (r < 0)
            failed = r;
        if (r > 0) {
            at = &piece->next;
            continue;
        }
        *at = piece->next;
        c->log_waiting_bytes -= piece->count * sizeof(uint64_t);
        free(piece);
    }
    c->log_waiting_end = at;
    return failed;
}

int heap_log_take(struct collector *c)
{
    struct heap_logs_piece *piece;
    if (!c->logs)
        return 0;
    int r = waiting_take(c);
    while (r == 0 && c->log_waiting_bytes < WAITING_BYTES_MAX &&
           (piece = heap_logs_take(c->logs)) != NULL) {
        r = piece_take(c, piece);
        if (r <= 0) {
            free(piece);
            continue;
        }
        r = 0;
        piece->next = NULL;
        *c->log_waiting_end = piece;
        c->log_waiting_end = &piece->next;
        c->log_waiting_bytes += piece->count * sizeof(uint64_t);
    }
    return r;
}

int heap_log_window_end(struct collector *c, const struct heap_window *window)
{
    if (!c->logs)
        return 0;
    heap_logs_window_done(c->logs, window->index);
    return heap_log_take(c);
}

void heap_log_stop(struct collector *c)
{
    if (c->logs)
        heap_logs_stop(c->logs);
}

void heap_log_free(struct collector *c)
{
    while (c->log_waiting) {
        struct heap_logs_piece *piece = c->log_waiting;
        c->log_waiting = piece->next;
        free(piece);
    }
    heap_logs_free(c->logs);
}
