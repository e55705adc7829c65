/* The collector of /proc figures; see usage.c. Floor tier: always there. */
#pragma once

#include "collect/collectors.h"

extern const struct collector_ops collector_usage;

/* For the line of honesty: what was read, and what was not. */
struct usage_counts {
    uint64_t readings;
    uint64_t late;          /* readings that fell out because nobody called in time */
    uint64_t missed;        /* files that could not be read of a process that was there */
    uint64_t ended_between; /* processes whose last part is unknown */
    uint64_t own_cpu_ns;
};

/* `collector` must come from collector_usage.start(). */
void usage_counts(const struct collector *collector, struct usage_counts *ret);
