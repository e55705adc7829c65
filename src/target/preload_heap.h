/* Puts the library that counts allocations (preload/heap.h) into a target that is about to be
 * started: as preload.h does with that for locks and I/O, beside which it may stand.
 *
 * The library lies in the user's cache under the hash of its bytes, or in a folder of its own
 * where there is no cache. The memory shared with the target is a file without a name. */
#pragma once

#include "base/macros.h"
#include "base/why.h"
#include "format/heap.h"

#include <stdbool.h>
#include <stddef.h>

struct preload_heap;

struct preload_heap_opts {
    const char *cache_dir; /* NULL: none */
    uint64_t sample_bytes;
    uint32_t temporary_within; /* at least 1 */
    bool log;
};

MUST_USE int preload_heap_open(const struct preload_heap_opts *opts, struct preload_heap **ret,
                               struct why *why);
/* The target is started: its library stays while it lives, even if we are killed. */
void preload_heap_share(const struct preload_heap *preload, int pid);
void preload_heap_close(struct preload_heap *preload); /* NULL is fine */

/* "NAME=value", ends with NULL; `others` are those of preload_environment(), or NULL: the two
 * libraries share LD_PRELOAD. Lives as long as `preload`. */
const char *const *preload_heap_environment(struct preload_heap *preload,
                                            const char *const *others);
const char *preload_heap_path(const struct preload_heap *preload);

int preload_heap_fd(const struct preload_heap *preload); /* of the shared memory; stays ours */
struct heap_header *preload_heap_header(const struct preload_heap *preload);
/* What the header says of them may not be believed. */
uint32_t preload_heap_windows_max(const struct preload_heap *preload);
/* The beginning of a window, without mapping it or making memory of it. */
MUST_USE int preload_heap_window_look(const struct preload_heap *preload, uint32_t window,
                                      struct heap_process *ret);
/* Maps a window for reading; NULL: it cannot be. */
const struct heap_process *preload_heap_window(struct preload_heap *preload, uint32_t window);
/* It is read to the end: the mapping goes, and so does its memory. */
void preload_heap_window_done(struct preload_heap *preload, uint32_t window);

/* Whether the loader will put it there: false with the reason (static, set-user-ID, capabilities,
 * another machine or libc, a malloc() of its own). */
bool preload_heap_fits(const char *program, char *why, size_t why_size);
