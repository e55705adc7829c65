/* stub: replaced by the reader of ELF and DWARF. */
#include "host/build_info.h"

#include <errno.h>

int build_info_read(struct arena *arena, const char *path, struct build_info *ret, struct why *why)
{
    (void)arena;
    (void)path;
    (void)ret;
    return why_set(why, WHY_FAILED, ENOSYS, NULL, "reading of binaries is not built");
}

struct value build_info_value(struct arena *arena, const struct build_info *info)
{
    (void)info;
    return value_map(arena);
}
