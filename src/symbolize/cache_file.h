/* Files in the user's cache folder: whole or not at all, the oldest go first. */
#pragma once

#include "base/macros.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* The path of what is kept under a build-id (or a key that looks like one) and a suffix; false
 * when nothing can be kept. `path` has room for PATH_MAX. */
bool cache_file_path(const char *cache_dir, const char *key, const char *suffix, char *path);
/* An fd to read from, or -1: ours, a plain file, not too large. Counts as used. */
int cache_file_open(const char *path, size_t *ret_len);
/* As well as it can: a cache that cannot be written is no failure. */
void cache_file_store(const char *cache_dir, const char *path, const struct str *parts,
                      size_t count);
