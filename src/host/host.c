/* File reading under a root that may be a fake one. */
#include "host/host.h"

#include "base/fd.h"

#include <errno.h>
#include <unistd.h>

enum { HOST_FILE_BYTES_MAX = 16 * 1024 * 1024 };

const char *host_path(const struct host *host, const char *path)
{
    return host_is_live(host) ? path : arena_printf(host->arena, "%s%s", host->root, path);
}

bool host_is_live(const struct host *host)
{
    return host->root[0] == '\0';
}

int host_read(const struct host *host, const char *path, struct str *ret, struct why *why)
{
    struct str text;
    int r = file_read(host->arena, host_path(host, path), HOST_FILE_BYTES_MAX, &text, why);
    if (r < 0)
        return r;
    *ret = str_trim(text);
    return 0;
}

int host_read_u64(const struct host *host, const char *path, uint64_t *ret)
{
    struct str text;
    int r = host_read(host, path, &text, NULL);
    return r < 0 ? r : str_to_u64(text, 10, ret);
}

bool host_exists(const struct host *host, const char *path)
{
    return access(host_path(host, path), F_OK) == 0;
}
