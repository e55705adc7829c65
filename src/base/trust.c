/* Owners and modes, from a file up to the root. */
#include "base/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool trust_stat(const struct stat *st)
{
    uid_t me = geteuid();
    if (st->st_uid != 0 && st->st_uid != me)
        return false;
    if (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX))
        return true;
    bool own_group = me != 0 && st->st_gid == getegid();
    return (st->st_mode & S_IWOTH) == 0 && ((st->st_mode & S_IWGRP) == 0 || own_group);
}

bool trust_path(const char *path)
{
    char real[PATH_MAX];
    struct stat st;
    if (!realpath(path, real))
        return false;
    for (char *end = real + strlen(real);; end = strrchr(real, '/')) {
        *end = '\0';
        if (stat(real[0] ? real : "/", &st) < 0 || !trust_stat(&st))
            return false;
        if (!real[0])
            return true;
    }
}

int trust_entry(const char *path, struct stat *ret)
{
    if (lstat(path, ret) < 0)
        return -errno;
    bool own = ret->st_uid == 0 || ret->st_uid == geteuid();
    if (S_ISLNK(ret->st_mode)) {
        if (!own)
            return -EPERM;
        if (stat(path, ret) < 0)
            return -errno;
    }
    return trust_stat(ret) ? 0 : -EPERM;
}

const char *trust_temporary(void)
{
    const char *given = getenv("TMPDIR");
    if (!given || !*given)
        return "/tmp";
    return trust_path(given) || (access(given, F_OK) < 0 && errno != EACCES) ? given : "/tmp";
}
