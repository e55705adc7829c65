/* The cache folder: opening, replacing and removing files. */
#include "symbolize/cache_file.h"

#include "base/fd.h"
#include "base/temporary.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CACHE_FILE_BYTES_MAX = 1 << 29, CACHE_ENTRIES_MAX = 1 << 14 };
static const uint64_t cache_bytes_max = 256ull << 20;

bool cache_file_path(const char *cache_dir, const char *key, const char *suffix, char *path)
{
    size_t len = strlen(key);
    if (!cache_dir || len < 8 || strspn(key, "0123456789abcdef") != len)
        return false;
    int n = snprintf(path, PATH_MAX, "%s/symbols/%s%s", cache_dir, key, suffix);
    return n > 0 && n < PATH_MAX;
}

int cache_file_open(const char *path, size_t *ret_len)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & (S_IWGRP | S_IWOTH)) != 0 || st.st_size > CACHE_FILE_BYTES_MAX) {
        close(fd);
        return -1;
    }
    futimens(fd, NULL); /* used: the oldest are removed first */
    *ret_len = (size_t)st.st_size;
    return fd;
}

static int file_write(const char *path, const struct str *parts, size_t count)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 ? -errno : 0;
    for (size_t i = 0; i < count && r == 0; i++)
        r = fd_write_all(fd, parts[i].data, parts[i].len);
    return r;
}

struct cache_entry {
    struct timespec used;
    uint64_t bytes;
    char name[NAME_MAX + 1];
};

static int entry_order(const void *a, const void *b)
{
    const struct cache_entry *left = a;
    const struct cache_entry *right = b;
    if (left->used.tv_sec != right->used.tv_sec)
        return left->used.tv_sec < right->used.tv_sec ? -1 : 1;
    return left->used.tv_nsec < right->used.tv_nsec ? -1 : left->used.tv_nsec > right->used.tv_nsec;
}

/* Removes the oldest files until `room` more bytes fit. */
static void cache_trim(const char *folder, uint64_t room)
{
    VEC(struct cache_entry) entries = {0};
    uint64_t sum = room;
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    struct dirent *found;
    while ((found = readdir(dir)) && entries.len < CACHE_ENTRIES_MAX) {
        struct cache_entry entry;
        struct stat st;
        if (found->d_name[0] == '.' ||
            fstatat(dirfd(dir), found->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(st.st_mode))
            continue;
        entry.used = st.st_mtim;
        entry.bytes = (uint64_t)st.st_size;
        snprintf(entry.name, sizeof(entry.name), "%s", found->d_name);
        sum += entry.bytes;
        if (VEC_PUSH(&entries, entry) < 0)
            break;
    }
    if (sum > cache_bytes_max && entries.data) {
        qsort(entries.data, entries.len, sizeof(struct cache_entry), entry_order);
        for (size_t i = 0; i < entries.len && sum > cache_bytes_max; i++) {
            if (unlinkat(dirfd(dir), entries.data[i].name, 0) == 0)
                sum -= entries.data[i].bytes;
        }
    }
    closedir(dir);
    VEC_FREE(&entries);
}

void cache_file_store(const char *cache_dir, const char *path, const struct str *parts,
                      size_t count)
{
    char folder[PATH_MAX], fresh[PATH_MAX];
    int n = snprintf(folder, sizeof(folder), "%s/symbols", cache_dir);
    int m = snprintf(fresh, sizeof(fresh), "%s.%d.new", path, (int)getpid());
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += parts[i].len;
    if (n < 0 || (size_t)n >= sizeof(folder) || m < 0 || (size_t)m >= sizeof(fresh) ||
        bytes > CACHE_FILE_BYTES_MAX / 2 || (mkdir(folder, 0700) < 0 && errno != EEXIST))
        return;
    cache_trim(folder, bytes);
    temporary_sweep_beside(path, ".new");
    if (file_write(fresh, parts, count) < 0 || rename(fresh, path) < 0)
        unlink(fresh);
}
