/* Whole-file reading and crash-safe replacing. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

int file_read(struct arena *arena, const char *path, size_t size_max, struct str *ret,
              struct why *why)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return why_errno(why, errno, NULL, "cannot open '%s'", path);
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

static int write_and_rename(const char *path, const char *temporary, const void *data, size_t len,
                            struct why *why)
{
    AUTO(fd_close) int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return why_errno(why, errno, "choose a folder you may write to", "cannot create '%s'",
                         temporary);
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
    return write_and_rename(path, temporary, data, len, why);
}

int folder_make(const char *path, struct why *why)
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
        if (mkdir(part, 0777) < 0 && errno != EEXIST)
            return why_errno(why, errno, "choose a folder you may write to",
                             "cannot create folder '%s'", part);
    }
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return why_errno(why, ENOTDIR, "choose another name", "cannot use '%s' as a folder", path);
    return 0;
}
