/* What a system call does, as far as a report of I/O tells calls apart, and whether the time in it
 * is waiting for something to do. */
#pragma once

#include "analyze/io_load.h"
#include "base/syscalls.h"

enum io_kind {
    IO_OTHER,
    IO_READ, /* bytes come in: files, sockets, pipes */
    IO_WRITE,
    IO_COPY,   /* bytes move inside the kernel: sendfile, splice */
    IO_SYNC,   /* fsync, fdatasync, sync_file_range, msync */
    IO_OPEN,   /* by name */
    IO_STAT,   /* by name: what is it, may I */
    IO_REMOVE, /* by name: unlink, rmdir */
    IO_NAME,   /* anything else by name: rename, mkdir, readlink, exec */
    IO_CONNECT,
    IO_ACCEPT,
    IO_WAIT,  /* for whatever comes first: poll, futex, sleep, a child */
    IO_FAULT, /* no call: page faults on a mapped file */
    IO_KINDS,
};

struct io_kinds {
    enum syscall_machine machine; /* that was recorded */
    uint8_t of[SYSCALLS_MAX];     /* enum io_kind by number */
};

void io_kinds_init(const struct profile *profile, struct io_kinds *ret);
enum io_kind io_kind_of(const struct io_kinds *kinds, const struct call_info *info);
/* "read", "page fault", "system call 999". Lives as long as the arena. */
const char *io_call_name(struct arena *arena, const struct io_kinds *kinds, int32_t syscall);
/* Nothing was to be done meanwhile, or somebody else did it: accept, poll, futex, sleep, wait4;
 * reads of listening sockets, of a server's connections, terminals, pipes, events and timers. What
 * is idle is counted, but ranks nowhere. */
bool io_is_idle(const struct io_kinds *kinds, const struct call_info *info,
                const struct object_info *object);
/* Failed because nothing has that name. */
bool io_is_failed_lookup(const struct io_kinds *kinds, const struct call_info *info);
