/* /proc/PID/maps as data. Paths in it are the target's: hostile text of any bytes. */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "base/why.h"

struct map_entry {
    uint64_t start;
    uint64_t end; /* past the last byte */
    uint64_t offset;
    bool executable;
    uint32_t device_major, device_minor;
    uint64_t inode;  /* 0: not a file */
    struct str path; /* as the kernel writes it: "", "[vdso]", "/lib/x.so", "/x (deleted)" */
};

/* Takes one line off *text. 1 with an entry, 0 at the end, -EBADMSG for a line that is none
 * (it is taken off all the same, so that a loop ends). */
MUST_USE int maps_next(struct str *text, struct map_entry *ret);

/* The whole text, at most 64 MiB. -ENOENT or -ESRCH: the process is gone. */
MUST_USE int maps_read(struct arena *arena, int pid, struct str *ret, struct why *why);
