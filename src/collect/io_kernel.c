/* Calls as the kernel sees them. */
#include "collect/io_kernel.h"

#include <errno.h>

int io_kernel_start(const struct io_opts *opts, const struct collector_target *target,
                    struct sink *sink, struct collector **ret, struct why *why)
{
    (void)opts, (void)target, (void)sink, (void)ret;
    return why_set(why, WHY_FAILED, ENOTSUP, NULL, "calls cannot be recorded in this version");
}

size_t io_kernel_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max)
{
    (void)collector, (void)fds, (void)max;
    return 0;
}

const struct collector_ops io_kernel_ops = {
    .name = "io",
    .summary = "bytes, calls and latency, by file and stack",
};
