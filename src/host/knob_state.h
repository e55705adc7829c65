/* The memory of tune: which value each changed file had before whyslow touched it.
 *
 * The file is written whole and reaches the disk before any knob is turned, so
 * a crash at any moment leaves either nothing changed or everything known. It is
 * gone when nothing is left to restore. */
#pragma once

#include "base/vec.h"
#include "host/host.h"

/* All texts live in the host's arena. */
struct knob_saved {
    const char *knob;
    const char *path; /* on the machine, without the host's root */
    const char *old;  /* before whyslow's first change */
    const char *set;  /* what whyslow put there last */
};

struct knob_state {
    VEC(struct knob_saved) entries;
};

/* "/var/lib/whyslow/tune.json" under the host's root. */
const char *knob_state_path(const struct host *host);

/* Makes the folder when needed and keeps every other whyslow out while *ret_fd is open. */
MUST_USE int knob_state_lock(const struct host *host, int *ret_fd, struct why *why);

/* An absent file is an empty state; a damaged or foreign one is refused, never replaced. */
MUST_USE int knob_state_load(const struct host *host, struct knob_state *ret, struct why *why);

/* On disk when it returns 0. An empty state removes the file. */
MUST_USE int knob_state_save(const struct host *host, const struct knob_state *state,
                             struct why *why);

/* The entry of a file, or NULL. */
struct knob_saved *knob_state_find(const struct knob_state *state, const char *path);
void knob_state_remove(struct knob_state *state, size_t index);
void knob_state_deinit(struct knob_state *state);
