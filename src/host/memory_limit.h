/* How much memory may be had here, besides what the machine has. */
#pragma once

#include "host/host.h"

/* The tightest limit of our cgroup and those above it; INFINITY: there is none, or none to be seen.
 */
double memory_limit_bytes(const struct host *host);
