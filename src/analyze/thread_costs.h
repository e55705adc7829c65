/* What threads and groups of threads cost, and what each spent most of it in. */
#pragma once

#include "base/arena.h"
#include "model/profile.h"

struct thread_cost {
    uint32_t id; /* a thread's, or a group's */
    uint32_t threads;
    uint64_t weight, count;
    uint32_t top_function;
    uint64_t top_weight; /* self weight of that function here */
};

struct thread_costs {
    struct thread_cost *groups; /* heaviest first; only those with samples */
    size_t group_count;
    struct thread_cost *threads;
    size_t thread_count;
};

MUST_USE int thread_costs_build(struct arena *arena, const struct profile *profile,
                                struct thread_costs *ret);
