/* What /proc tells about one process or thread, read without allocating.
 *
 * Every function returns 0 or -errno; -ENOENT and -ESRCH mean that it is gone.
 * A `tid` of 0 means the whole process (all its threads, also ended ones). */
#pragma once

#include "base/macros.h"

#include <stddef.h>
#include <stdint.h>

struct proc_stat {
    char name[64];
    char state; /* 'R', 'S', 'D', 'T', 'Z', … */
    int parent;
    int exit_status; /* as from wait4; only for a zombie, and 0 if we may not look */
    uint32_t threads;
    uint64_t user_ns; /* in steps of a clock tick, mostly 10 ms */
    uint64_t system_ns;
    uint64_t children_cpu_ns; /* of children it has waited for */
    uint64_t start_ns;        /* CLOCK_MONOTONIC, in steps of a clock tick */
    uint64_t rss_bytes;
};

struct proc_io {
    uint64_t read_bytes; /* through system calls */
    uint64_t write_bytes;
    uint64_t storage_read_bytes;
    uint64_t storage_write_bytes;
};

MUST_USE int proc_stat_read(int pid, int tid, struct proc_stat *ret);
MUST_USE int proc_io_read(int pid, struct proc_io *ret);
/* An fd of it, or -errno. A zombie's file belongs to root; one opened before can be read on. */
MUST_USE int proc_io_open(int pid);
MUST_USE int proc_io_read_fd(int fd, struct proc_io *ret);
/* Exact time on a CPU, and time spent waiting for one. */
MUST_USE int proc_schedstat_read(int pid, int tid, uint64_t *ret_run_ns, uint64_t *ret_wait_ns);
/* Of one thread: the kernel keeps no sum for the process. */
MUST_USE int proc_switches_read(int pid, int tid, uint64_t *ret_voluntary,
                                uint64_t *ret_involuntary);
MUST_USE int proc_pss_read(int pid, uint64_t *ret_bytes);

/* At most `max` ids; *ret_left is the number that did not fit. */
MUST_USE int proc_threads_read(int pid, int *tids, size_t max, size_t *ret_count, size_t *ret_left);
/* Children started by one thread. -ENOSYS without CONFIG_PROC_CHILDREN. */
MUST_USE int proc_children_read(int pid, int tid, int *pids, size_t max, size_t *ret_count,
                                size_t *ret_left);

/* NUL-terminated, cut to size; "" when it cannot be read. */
void proc_exe_read(int pid, char *text, size_t size);
/* argv joined by blanks, as command_shown() has it: without secrets. */
void proc_command_read(int pid, char *text, size_t size);
