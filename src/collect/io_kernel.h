/* Calls as the kernel sees them: the upper tier of collect/io.h, with BPF. */
#pragma once

#include "collect/io.h"

/* Follows target->cpu. */
MUST_USE int io_kernel_start(const struct io_opts *opts, const struct collector_target *target,
                             struct sink *sink, struct collector **ret, struct why *why);
extern const struct collector_ops io_kernel_ops; /* without probe: collector_io's has it */
size_t io_kernel_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max);
