/* Calls as the program sees them: the lower tier of collect/io.h, through our library in the
 * target. */
#pragma once

#include "collect/io.h"

/* Follows target->cpu. */
MUST_USE int io_user_start(const struct io_opts *opts, const struct collector_target *target,
                           struct sink *sink, struct collector **ret, struct why *why);
extern const struct collector_ops io_user_ops; /* without probe: collector_io's has it */
size_t io_user_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max);
/* Why a higher tier was not had, for the document "io". */
void io_user_why_not(struct collector *collector, const char *reason);
