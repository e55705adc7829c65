/* Allocations of the target, counted by the library in it (preload/heap.h): exact or sampled,
 * without privileges. Reads the windows of its processes (format/heap.h) now and then, and to
 * their ends when they are dead; what the target writes is hostile. */
#pragma once

#include "collect/heap.h"
#include "target/preload_heap.h"

extern const struct collector_ops heap_user_ops; /* drain to close */

/* Follows target->cpu; `preload` is borrowed. Only for TARGET_SPAWNED. */
MUST_USE int heap_user_start(const struct heap_opts *opts, struct preload_heap *preload,
                             const struct collector_target *target, struct sink *sink,
                             struct collector **ret, struct why *why);
size_t heap_user_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max);
void heap_user_snapshot(struct collector *collector);
const char *heap_user_na(const struct collector *collector);
