/* Waits seen from user space, without privileges: the lower tiers of collect/offcpu.h.
 *
 * User tier: switch records tell exactly when a thread of ours left the CPU and came back; a
 * reader looks at threads that are off the CPU, at 97 Hz, for what they sit in and where. Floor:
 * there are no switch records, so the times are those of the reader's looks, too.
 *
 * What is not known here is said in document "waits": who woke a thread (but owners of
 * mutexes), and how long it was ready before it ran again. */
#pragma once

#include "collect/offcpu.h"

/* The cpu collector of `target` should have been started with `switches`. */
MUST_USE int offcpu_user_start(const struct offcpu_opts *opts,
                               const struct collector_target *target, struct sink *sink,
                               struct collector **ret, struct why *why);
extern const struct collector_ops offcpu_user_ops; /* without probe: that is collector_offcpu's */
size_t offcpu_user_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max);
enum tier offcpu_user_tier(const struct collector *collector);
const char *offcpu_user_not_higher(const struct collector *collector);
/* Why the kernel tier could not be had, by somebody who tried. */
void offcpu_user_why_not(struct collector *collector, const char *text);
/* Waits for futexes of threads that somebody else reports on are left out. */
void offcpu_user_leave_out(struct collector *collector,
                           bool (*covered)(void *context, int pid, int tid), void *context);
/* Series "offcpu", for those waits by whoever reports on them. */
uint32_t offcpu_user_series(const struct collector *collector);
