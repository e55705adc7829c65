/* Where what is worth keeping is kept. */
#include "symbolize/symbols.h"

#include "base/fd.h"
#include "base/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a folder that may not be there yet: what it will be made in. */
static bool place_is_trusted(const char *path)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof(part))
        return false;
    memcpy(part, path, len + 1);
    while (access(part, F_OK) < 0 && errno == ENOENT && strrchr(part, '/') > part)
        *strrchr(part, '/') = '\0';
    return trust_path(part);
}

/* PARENT/MORE/whyslow, made if need be. */
static const char *dir_make(const char *parent, const char *more, char *buffer, size_t size)
{
    /* A relative one would litter wherever we are started. Root started with the HOME of a user
     * (sudo -E) leaves it alone: its owner could exchange what we put there. */
    if (!parent || parent[0] != '/')
        return NULL;
    int n = snprintf(buffer, size, "%s%s", parent, more);
    if (n < 0 || (size_t)n + sizeof("/whyslow") > size)
        return NULL;
    struct stat st;
    if ((geteuid() == 0 && !place_is_trusted(buffer)) || folder_make(buffer, NULL) < 0)
        return NULL;
    snprintf(buffer + n, size - (size_t)n, "/whyslow");
    if (mkdir(buffer, 0700) == 0)
        return buffer;
    /* Somebody else's folder is not trusted: what we read from there becomes our words. */
    if (lstat(buffer, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & (S_IWGRP | S_IWOTH)) != 0 || access(buffer, W_OK | X_OK) < 0)
        return NULL;
    return buffer;
}

const char *symbols_cache_dir(char *buffer, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    return cache && cache[0] == '/' ? dir_make(cache, "", buffer, size)
                                    : dir_make(getenv("HOME"), "/.cache", buffer, size);
}
