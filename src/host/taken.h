/* What is taken from a program while it wants to run: by the limit of its cgroup, by the
 * hypervisor under the machine, and by whoever else computes. Read before and after; the difference
 * is what counts. */
#pragma once

#include "host/host.h"

struct taken {           /* NaN: cannot be read here */
    double throttled_ns; /* of our cgroup, or the one above it that was throttled the most */
    double steal_ns;     /* of all CPUs of the machine */
    double busy_ns;      /* the same: with work of anybody */
};

void taken_read(const struct host *host, struct taken *ret);
struct taken taken_since(const struct taken *before, const struct taken *after);
