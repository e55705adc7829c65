/* One program on many places of a file, as the kernel has it from Linux 6.6 on. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uprobe_multi {
    int program_fd;
    const char *path;
    const uint64_t *offsets; /* in the file */
    const uint64_t *cookies; /* of each place, for the program; NULL: none */
    uint32_t count;
    bool at_return;
    int pid; /* only in this process; 0: in all that have the file */
};

/* An fd, which keeps the program there; -errno: refused, or this kernel cannot. */
MUST_USE int uprobe_multi_set(const struct uprobe_multi *multi);

/* The kernel waits for everybody who may be in the program, some 200 ms for each: together, where
 * it lets us. */
void uprobe_links_close(const int *fds, size_t count);
