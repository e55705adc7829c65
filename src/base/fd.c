/* Whole-file reading and crash-safe replacing. */
#include "base/fd.h"

#include "base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void fd_close(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

int fd_take(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

int fd_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int read_all(int fd, size_t size_max, char **ret_data, size_t *ret_len)
{
    size_t cap = 4096, len = 0;
    char *data = malloc(cap);
    if (!data)
        return -ENOMEM;
    for (;;) {
        ssize_t n = read(fd, data + len, cap - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int error = errno;
            if (n < 0) {
                free(data);
                return -error;
            }
            *ret_data = data;
            *ret_len = len;
            return 0;
        }
        len += (size_t)n;
        if (len > size_max) {
            free(data);
            return -EFBIG;
        }
        if (len == cap) {
            char *grown = realloc(data, cap * 2);
            if (!grown) {
                free(data);
                return -ENOMEM;
            }
            data = grown;
            cap *= 2;
        }
    }
}

static int file_take(struct arena *arena, int fd, const char *path, size_t size_max,
                     struct str *ret, struct why *why)
{
    char *data = NULL;
    size_t len = 0;
    int r = read_all(fd, size_max, &data, &len);
    if (r < 0)
        return why_errno(why, -r, NULL, "cannot read '%s'", path);
    const char *copy = arena_dup_len(arena, data, len);
    free(data);
    if (arena_failed(arena))
        return why_nomem(why);
    *ret = (struct str){copy, len};
    return 0;
}

int file_read(struct arena *arena, const char *path, size_t size_max, struct str *ret,
              struct why *why)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return why_errno(why, errno, NULL, "cannot open '%s'", path);
    return file_take(arena, fd, path, size_max, ret, why);
}

int file_reopen_regular(int path_fd)
{
    struct stat st;
    char path[64];
    if (fstat(path_fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : S_ISLNK(st.st_mode) ? -ELOOP : -EINVAL;
    /* The file that was looked at, whatever has its name by now. */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

static int open_regular(const char *path, int flags)
{
    AUTO(fd_close) int fd = open(path, O_PATH | O_CLOEXEC | flags);
    return fd < 0 ? -errno : file_reopen_regular(fd);
}

int file_open_regular(const char *path)
{
    return open_regular(path, 0);
}

int file_read_own(struct arena *arena, const char *path, size_t size_max, struct str *ret,
                  struct why *why)
{
    AUTO(fd_close) int fd = open_regular(path, O_NOFOLLOW);
    if (fd < 0)
        return why_errno(why, -fd, NULL, "cannot open '%s'", path);
    return file_take(arena, fd, path, size_max, ret, why);
}

int file_read_regular(struct arena *arena, const char *path, size_t size_max, struct str *ret,
                      struct why *why)
{
    AUTO(fd_close) int fd = file_open_regular(path);
    if (fd == -EINVAL || fd == -EISDIR)
        return why_set(why, WHY_USAGE, EINVAL, NULL, "'%s' is not a regular file", path);
    if (fd < 0)
        return why_errno(why, -fd, NULL, "cannot open '%s'", path);
    return file_take(arena, fd, path, size_max, ret, why);
}

static int write_and_rename(const char *path, const char *temporary, const void *data, size_t len,
                            struct why *why)
{
    AUTO(fd_close) int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return why_errno(why, errno, "choose a folder you may write to", "cannot create '%s'",
                         temporary);
    (void)flock(fd, LOCK_EX | LOCK_NB); /* for temporary_sweep_beside() */
    int r = fd_write_all(fd, data, len);
    if (r == 0 && fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
        r = -errno;
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0) {
        unlink(temporary);
        return why_errno(why, -r, NULL, "cannot write '%s'", path);
    }
    return 0;
}

int file_write_atomic(const char *path, const void *data, size_t len, struct why *why)
{
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof(temporary), "%s.%d.tmp", path, (int)getpid());
    if (n < 0 || (size_t)n >= sizeof(temporary))
        return why_set(why, WHY_USAGE, ENAMETOOLONG, "use a shorter path", "path too long: '%s'",
                       path);
    temporary_sweep_beside(path, ".tmp");
    return write_and_rename(path, temporary, data, len, why);
}

FILE *file_open_private(const char *path, bool append)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_EXCL);
    AUTO(fd_close) int fd = open(path, flags, 0600);
    FILE *out = fd < 0 ? NULL : fdopen(fd, append ? "a" : "w");
    if (out)
        fd_take(&fd);
    return out;
}

static int folders_make(const char *path, mode_t mode, struct why *why)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof(part))
        return why_set(why, WHY_USAGE, ENAMETOOLONG, "use a shorter path",
                       "cannot create folder '%s'", path);
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, mode) < 0 && errno != EEXIST)
            return why_errno(why, errno, "choose a folder you may write to",
                             "cannot create folder '%s'", part);
    }
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return why_errno(why, ENOTDIR, "choose another name", "cannot use '%s' as a folder", path);
    return 0;
}

int folder_make(const char *path, struct why *why)
{
    return folders_make(path, 0700, why);
}

int folder_make_shared(const char *path, struct why *why)
{
    return folders_make(path, 0755, why);
}
