/* The machine as its files tell it. All reading of /proc and /sys for facts
 * about the host goes through here, so that a test (or a captured machine) can
 * stand in for the real one: `root` is put before every path. */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "base/why.h"

struct host {
    const char *root;    /* "" for this machine, else a folder that holds proc/, sys/, … */
    struct arena *arena; /* what is read lives here */
};

/* Reads a whole small file; *ret is trimmed of white space at both ends.
 * -errno when it cannot be read, with `why` (may be NULL) filled. */
MUST_USE int host_read(const struct host *host, const char *path, struct str *ret, struct why *why);
MUST_USE int host_read_u64(const struct host *host, const char *path, uint64_t *ret);
bool host_exists(const struct host *host, const char *path);
/* root + path, in the arena. */
const char *host_path(const struct host *host, const char *path);
/* Is this the machine we run on? Live probes (syscalls) mean nothing under a fake root. */
bool host_is_live(const struct host *host);
