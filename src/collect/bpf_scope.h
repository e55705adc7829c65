/* Whom a kernel program is to look at (bpf/whose.h), from a target. */
#pragma once

#include "collect/collectors.h"
#include "format/offcpu.h"

struct bpf_scope {
    enum offcpu_scope scope;
    uint64_t cgroup_id; /* OFFCPU_CGROUP, with its depth below the root */
    uint32_t cgroup_level;
    uint32_t root;   /* process */
    uint32_t own;    /* our own process: not recorded */
    uint32_t pid_ns; /* inode of our PID namespace; 0: the first one */
};

MUST_USE int bpf_scope_find(const struct collector_target *target, struct bpf_scope *ret,
                            struct why *why);
/* CPU time of this thread so far. */
uint64_t own_cpu_ns(void);
