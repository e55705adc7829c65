/* Locks of the target, told by the library in it (preload/): exact waits and holds of pthread
 * locks, without privileges.
 *
 *     preload_open() → spawn with preload_environment() → locks_user_start() → drain …
 *
 * Follows the cpu collector (target->cpu) and writes rows of waits and holds, long waits one by
 * one, and counters locks.*. A wait for a lock that had an owner names it as the waker. Stacks
 * are walked once and recognised in the target from then on (format/preload.h). */
#pragma once

#include "collect/collectors.h"
#include "target/preload.h"

#include <poll.h>

extern const struct collector_ops locks_user_ops; /* drain to close; start is below */

/* `preload` is borrowed; its environment is the target's. Only for TARGET_SPAWNED. */
MUST_USE int locks_user_start(struct preload *preload, const struct collector_target *target,
                              struct sink *sink, struct collector **ret, struct why *why);
size_t locks_user_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max);

/* Waits go into this series, too: ns by thread and stack. */
void locks_user_series(struct collector *collector, uint32_t series);
/* The library tells what this thread waits for in pthread calls: for whoever sees the same waits
 * as futexes. False for threads that the library knows nothing of: a futex is then another's. */
bool locks_user_covered(void *collector, int pid, int tid);
/* Document "locks": whether the library was there; `na` says why not, NULL: it was. */
MUST_USE int locks_user_document(struct sink *sink, const char *na);
/* After stop: why the library told nothing; NULL: it did, or was there. */
const char *locks_user_na(const struct collector *collector);
