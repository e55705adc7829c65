/* File descriptors and whole small files. */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "base/why.h"

/* For AUTO(fd_close): closes and sets -1; a negative fd is left alone. errno is kept. */
void fd_close(int *fd);
/* Hands the fd over: returns it and leaves -1 behind. */
int fd_take(int *fd);

/* Writes all of it, or returns -errno. */
MUST_USE int fd_write_all(int fd, const void *data, size_t len);

/* Reads a whole file of at most `size_max` bytes into the arena; works on /proc
 * and /sys, where sizes are not known beforehand. -EFBIG when it is larger.
 * The text is NUL-terminated, the NUL not counted. */
MUST_USE int file_read(struct arena *arena, const char *path, size_t size_max, struct str *ret,
                       struct why *why);

/* Replaces `path` whole or not at all: a new file beside it, fsync, rename. */
MUST_USE int file_write_atomic(const char *path, const void *data, size_t len, struct why *why);

/* mkdir -p; 0 when it exists already. */
MUST_USE int folder_make(const char *path, struct why *why);
