/* What the kernel lets this process do, found by doing it once.
 *
 * Asking (capabilities, sysctls, kernel config) misleads: containers, seccomp
 * and LSMs say no elsewhere. So each probe opens or loads the real thing and
 * closes it again. No probe leaves anything behind or needs more than 50 ms, except
 * probe_bpf_uprobe(): the kernel takes a uprobe away only after a grace period, some
 * 100 to 200 ms. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>

struct probe {
    bool ok;
    int error;        /* errno when not ok */
    char detail[200]; /* "cycles:u at precision 0", or what the kernel said */
    char remedy[200]; /* the command or change that would make it work; "" when ok or none */
};

bool probe_seccomp(void); /* a filter decides which system calls we may make */

void probe_perf_own(struct probe *ret);    /* sample our own process, user space only */
void probe_perf_kernel(struct probe *ret); /* the same with kernel stacks */
void probe_perf_system(struct probe *ret); /* every process of the machine */
void probe_perf_pmu(struct probe *ret);    /* hardware cycles and instructions */
void probe_perf_switch(struct probe *ret); /* PERF_RECORD_SWITCH for our own threads */
void probe_bpf_tracing(struct probe *ret); /* a tp_btf program on sched_switch loads */
void probe_bpf_uprobe(struct probe *ret);  /* a uprobe on a library function attaches */
void probe_preload(struct probe *ret);     /* LD_PRELOAD is honoured for our children */
void probe_remote_read(struct probe *ret); /* process_vm_readv and /proc/TID/syscall of a child */

/* bpf() said no to something real: the reason and the remedy, for those who tried it. */
void probe_bpf_refused(struct probe *ret, int error, const char *what);
