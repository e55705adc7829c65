/* File descriptors and whole small files. */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "base/why.h"

#include <stdio.h>

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

/* The same for a file in a folder of others, named by nobody: a pipe or device that lies there
 * under its name is refused, and waited for never. */
MUST_USE int file_read_regular(struct arena *arena, const char *path, size_t size_max,
                               struct str *ret, struct why *why);
/* And no link, which would show a file of elsewhere under this name. */
MUST_USE int file_read_own(struct arena *arena, const char *path, size_t size_max, struct str *ret,
                           struct why *why);

/* Opens a regular file for reading and nothing else, since a device may act on being opened (a
 * watchdog is started) and a pipe joined is seen by who writes: it is looked at before it is
 * opened. An fd, or -errno: -EISDIR, -ELOOP (a link), -EINVAL (anything else). `path_fd` was opened
 * with O_PATH. */
MUST_USE int file_open_regular(const char *path);
MUST_USE int file_reopen_regular(int path_fd);

/* Replaces `path` whole or not at all: a new file beside it, fsync, rename. For its owner alone
 * (0600), whatever it was before: what is written may quote the target. */
MUST_USE int file_write_atomic(const char *path, const void *data, size_t len, struct why *why);

/* A stream to a file that is made for its owner alone; `append` to one that may be there already,
 * which keeps its mode. NULL with errno. */
FILE *file_open_private(const char *path, bool append);

/* mkdir -p; 0 when it exists already. What is made is for its owner alone (0700). */
MUST_USE int folder_make(const char *path, struct why *why);
/* The same for what others may read (0755, less the umask). */
MUST_USE int folder_make_shared(const char *path, struct why *why);
