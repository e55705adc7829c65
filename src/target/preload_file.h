/* A library for targets as a file: in a folder of its own that is removed afterwards, or kept in
 * the user's cache under the hash of its bytes. */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct preload_file {
    char folder[PATH_MAX]; /* ours, to be removed; empty: it lies in the cache */
    char path[PATH_MAX];
};

struct preload_blob { /* made by tools/embed */
    const unsigned char *bytes;
    size_t len;
    const char *name; /* of the file */
};

/* Private, and gone with preload_file_remove(). */
MUST_USE int preload_file_make(const struct preload_blob *blob, struct preload_file *ret,
                               struct why *why);
/* In the cache, where the next run finds it; -errno where that is not safe or not possible. */
MUST_USE int preload_file_keep(const struct preload_blob *blob, const char *cache_dir,
                               struct preload_file *ret);
/* The target's, which may outlive us: it and its children find the library for as long as it lives.
 */
void preload_file_share(const struct preload_file *file, int pid);
void preload_file_remove(struct preload_file *file);
