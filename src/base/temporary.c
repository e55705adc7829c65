/* Made with a lock on it, and swept when the lock is free; temporary.h says why. */
#include "base/temporary.h"

#include "base/fd.h"
#include "base/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HELD_MAX = 64,
    TRIES = 16,
    SWEEP_MAX = 1 << 20,
    SWEPT_FILES_MAX = 1 << 16,
    STAT_BYTES = 1024
};

/* Nobody else calls anything so. */
static const char prefix[] = "whyslow-tmp-";
static const char letters[] = "XXXXXX";
/* In a folder: "PID START" of a process that needs it. */
static const char shared_name[] = "target";

/* The locks: they end with the process, so they are its own. */
static struct {
    char *path;
    int fd;
} held[HELD_MAX];

/* When a process started, as the kernel writes it; "" when it is gone. */
static void process_start(int pid, char start[32])
{
    char path[64], text[STAT_BYTES];
    start[0] = '\0';
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return;
    text[n] = '\0';
    /* Its name may hold anything; behind it state is the third field of all, the start the 22nd. */
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
        return;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at)
        sscanf(at, " %31[0-9]", start);
}

static bool is_shared(int folder)
{
    char text[64], start[32], now[32];
    int pid;
    AUTO(fd_close) int fd = openat(folder, shared_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    if (sscanf(text, "%d %31[0-9]", &pid, start) != 2)
        return false;
    process_start(pid, now);
    return strcmp(start, now) == 0;
}

void temporary_share(const char *path, int pid)
{
    char name[PATH_MAX + sizeof(shared_name) + 1], text[64], start[32];
    process_start(pid, start);
    int n = snprintf(text, sizeof(text), "%d %s\n", pid, start);
    snprintf(name, sizeof(name), "%s/%s", path, shared_name);
    AUTO(fd_close) int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    /* What cannot be said costs the other process no more than messages of its loader. */
    if (fd >= 0)
        (void)!fd_write_all(fd, text, (size_t)n);
}

static void folder_empty(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        fd_close(&fd);
        return;
    }
    const struct dirent *entry;
    for (int i = 0; i < SWEPT_FILES_MAX && (entry = readdir(dir)); i++)
        (void)unlinkat(folder, entry->d_name, 0); /* not what is a folder */
    closedir(dir);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* What is locked is still what the name leads to. */
static void remove_locked(int parent, const char *name, int fd)
{
    struct stat mine, there;
    if (fstat(fd, &mine) < 0 || (S_ISDIR(mine.st_mode) && is_shared(fd)))
        return;
    if (S_ISDIR(mine.st_mode))
        folder_empty(fd);
    if (fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&mine, &there))
        (void)unlinkat(parent, name, S_ISDIR(mine.st_mode) ? AT_REMOVEDIR : 0);
}

static bool may_sweep(const struct stat *st)
{
    return st->st_uid == geteuid() &&
           (S_ISDIR(st->st_mode) || (S_ISREG(st->st_mode) && st->st_nlink == 1));
}

static void sweep_one(int parent, const char *name)
{
    struct stat st;
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0 ||
        strlen(name) != sizeof(prefix) + sizeof(letters) - 2 ||
        fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !may_sweep(&st))
        return;
    AUTO(fd_close) int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && may_sweep(&st) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        remove_locked(parent, name, fd);
}

static void sweep(const char *parent)
{
    DIR *dir = opendir(parent);
    if (!dir)
        return;
    const struct dirent *entry;
    for (int i = 0; i < SWEEP_MAX && (entry = readdir(dir)); i++)
        sweep_one(dirfd(dir), entry->d_name);
    closedir(dir);
}

void temporary_sweep(void)
{
    const char *const parents[] = {trust_temporary(),
                                   geteuid() != 0 ? getenv("XDG_RUNTIME_DIR") : NULL};
    for (size_t i = 0; i < ARRAY_SIZE(parents); i++)
        if (parents[i])
            sweep(parents[i]);
}

/* Is it "BASE.PID" and `suffix`, and no process of that number there? Ours is not: it is about to
 * make its first. */
static bool is_left(const char *name, const char *base, const char *suffix)
{
    size_t len = strlen(base);
    char *end;
    if (strncmp(name, base, len) != 0 || name[len] != '.' || name[len + 1] < '1' ||
        name[len + 1] > '9')
        return false;
    long pid = strtol(name + len + 1, &end, 10);
    if (strcmp(end, suffix) != 0 || pid > INT_MAX)
        return false;
    return pid == getpid() || (kill((pid_t)pid, 0) < 0 && errno == ESRCH);
}

static void left_remove(int parent, const char *name)
{
    struct stat st;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != geteuid())
        return;
    if (S_ISLNK(st.st_mode)) {
        (void)unlinkat(parent, name, 0);
        return;
    }
    AUTO(fd_close) int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && may_sweep(&st) &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        remove_locked(parent, name, fd);
}

void temporary_sweep_beside(const char *path, const char *suffix)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + 1 : 0;
    if (len >= sizeof(parent) - 2)
        return;
    memcpy(parent, path, len);
    memcpy(parent + len, ".", 2);
    DIR *dir = opendir(parent);
    if (!dir)
        return;
    const struct dirent *entry;
    for (int i = 0; i < SWEEP_MAX && (entry = readdir(dir)); i++)
        if (is_left(entry->d_name, path + len, suffix))
            left_remove(dirfd(dir), entry->d_name);
    closedir(dir);
}

static int keep(const char *path, int *fd)
{
    for (size_t i = 0; i < HELD_MAX; i++) {
        if (held[i].path)
            continue;
        held[i].path = strdup(path);
        if (!held[i].path)
            return -ENOMEM;
        held[i].fd = fd_take(fd);
        return 0;
    }
    return -EMFILE;
}

/* 0, 1 when somebody who sweeps was quicker, -errno. */
static int make_once(const char *parent, bool folder, char ret[PATH_MAX])
{
    struct stat mine, there;
    int n = snprintf(ret, PATH_MAX, "%s/%s%s", parent, prefix, letters);
    if (n < 0 || n >= PATH_MAX - 64)
        return -ENAMETOOLONG;
    AUTO(fd_close) int fd = -1;
    if (!folder)
        fd = mkostemp(ret, O_CLOEXEC);
    else if (!mkdtemp(ret))
        return -errno;
    else if ((fd = open(ret, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 &&
             errno == ENOENT)
        return 1;
    if (fd < 0)
        return -errno;
    /* Where there are no locks nobody sweeps either. */
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return 1;
    if (fstat(fd, &mine) < 0 || lstat(ret, &there) < 0 || !is_same(&mine, &there))
        return 1;
    return keep(ret, &fd);
}

static int make(const char *parent, bool folder, char ret[PATH_MAX])
{
    int r = 1;
    sweep(parent);
    for (int i = 0; i < TRIES && r == 1; i++)
        r = make_once(parent, folder, ret);
    if (r != 0)
        snprintf(ret, PATH_MAX, "%s", parent);
    return r == 1 ? -EAGAIN : r;
}

int temporary_folder_in(const char *parent, char ret[PATH_MAX])
{
    return make(parent, true, ret);
}

int temporary_folder(char ret[PATH_MAX])
{
    return make(trust_temporary(), true, ret);
}

int temporary_file(char ret[PATH_MAX])
{
    return make(trust_temporary(), false, ret);
}

void temporary_remove(const char *path)
{
    int saved = errno;
    for (size_t i = 0; i < HELD_MAX; i++) {
        if (!held[i].path || strcmp(held[i].path, path) != 0)
            continue;
        remove_locked(AT_FDCWD, path, held[i].fd);
        fd_close(&held[i].fd);
        free(held[i].path);
        held[i].path = NULL;
    }
    errno = saved;
}
