/* Where what is worth keeping is kept. */
#include "symbolize/symbols.h"

#include "base/fd.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *symbols_cache_dir(char *buffer, size_t size)
{
    /* Both must be absolute: a relative one would litter wherever we are started. */
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    bool own = cache && cache[0] == '/';
    if (!own && (!home || home[0] != '/'))
        return NULL;
    int n = own ? snprintf(buffer, size, "%s", cache) : snprintf(buffer, size, "%s/.cache", home);
    if (n < 0 || (size_t)n + sizeof("/whyslow") > size)
        return NULL;
    struct stat st;
    if (folder_make(buffer, NULL) < 0)
        return NULL;
    snprintf(buffer + n, size - (size_t)n, "/whyslow");
    if (mkdir(buffer, 0700) == 0)
        return buffer;
    /* Somebody else's folder is not trusted: what we read from there becomes our words. */
    if (lstat(buffer, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        access(buffer, W_OK | X_OK) < 0)
        return NULL;
    return buffer;
}
