/* One line of /proc/PID/maps: "start-end perms offset major:minor inode   path". */
#include "target/maps.h"

#include "base/fd.h"

#include <errno.h>
#include <stdio.h>

enum { MAPS_BYTES_MAX = 64 << 20 };

static int hex(struct str text, uint64_t max, uint64_t *ret)
{
    uint64_t number;
    if (str_to_u64(text, 16, &number) < 0 || number > max)
        return -EBADMSG;
    *ret = number;
    return 0;
}

static int parse(struct str line, struct map_entry *ret)
{
    struct map_entry entry = {0};
    struct str range = str_word(&line);
    struct str start = str_cut(&range, '-');
    struct str perms = str_word(&line);
    struct str offset = str_word(&line);
    struct str device = str_word(&line);
    struct str major = str_cut(&device, ':');
    struct str inode = str_word(&line);
    uint64_t major_number, minor_number;
    if (hex(start, UINT64_MAX, &entry.start) < 0 || hex(range, UINT64_MAX, &entry.end) < 0 ||
        hex(offset, UINT64_MAX, &entry.offset) < 0 || hex(major, UINT32_MAX, &major_number) < 0 ||
        hex(device, UINT32_MAX, &minor_number) < 0 || str_to_u64(inode, 10, &entry.inode) < 0)
        return -EBADMSG;
    if (perms.len != 4 || entry.end <= entry.start)
        return -EBADMSG;
    entry.executable = perms.data[2] == 'x';
    entry.device_major = (uint32_t)major_number;
    entry.device_minor = (uint32_t)minor_number;
    /* Blanks before the path are padding; blanks inside and after it are its own. */
    while (line.len > 0 && line.data[0] == ' ') {
        line.data++;
        line.len--;
    }
    entry.path = line;
    *ret = entry;
    return 1;
}

int maps_next(struct str *text, struct map_entry *ret)
{
    if (text->len == 0)
        return 0;
    return parse(str_cut(text, '\n'), ret);
}

int maps_read(struct arena *arena, int pid, struct str *ret, struct why *why)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    return file_read(arena, path, MAPS_BYTES_MAX, ret, why);
}
