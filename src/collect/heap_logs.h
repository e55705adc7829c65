/* Reads the logs of the heap library (format/heap.h) as fast as they are written: threads of the
 * target wait when theirs is full, so a thread of ours does nothing else.
 *
 *     heap_logs_start() → heap_logs_take() now and then → heap_logs_window_done() →
 * heap_logs_stop()
 *
 * What was read is kept here until it is taken, bounded: beyond that the target waits. */
#pragma once

#include "base/macros.h"
#include "base/why.h"
#include "format/heap.h"

#include <stddef.h>

struct heap_logs;

/* `fd` is the shared memory's; it is borrowed. */
MUST_USE int heap_logs_start(int fd, struct heap_logs **ret, struct why *why);
/* Reads what is left, ends the thread; what was read can still be taken. */
void heap_logs_stop(struct heap_logs *logs);
void heap_logs_free(struct heap_logs *logs); /* stopped or not; NULL is fine */

/* Words of one place in their order; what an allocation or a tick begins may end in the next
 * piece of that place. */
struct heap_logs_piece {
    struct heap_logs_piece *next; /* the queue's */
    uint32_t window;
    uint32_t place;
    uint32_t count;
    uint32_t unused;
    uint64_t words[];
};
/* The next piece; NULL: there is none now. Freed by the caller. */
struct heap_logs_piece *heap_logs_take(struct heap_logs *logs);
/* The process is dead and no window is to be read any more: all that was left in it has been
 * read when this returns. */
void heap_logs_window_done(struct heap_logs *logs, uint32_t window);
