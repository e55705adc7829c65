/* Waits as the kernel sees them: the upper tier of collect/offcpu.h, with BPF. */
#pragma once

#include "collect/offcpu.h"

/* Follows target->cpu. */
MUST_USE int offcpu_kernel_start(const struct offcpu_opts *opts,
                                 const struct collector_target *target, struct sink *sink,
                                 struct collector **ret, struct why *why);
extern const struct collector_ops offcpu_kernel_ops; /* without probe: collector_offcpu's has it */
size_t offcpu_kernel_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max);
