/* What is mounted where: lines of /proc/PID/mountinfo. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

struct mount_line {
    struct str device_id; /* "259:2" */
    const char *root;     /* what of the filesystem is mounted */
    const char *point;
    struct str type;   /* "ext4" */
    struct str source; /* "/dev/nvme0n1p2" */
    struct str own;    /* options of the mount */
    struct str super;  /* options of the superblock */
};
/* False when it is none. Texts are borrowed of `line`, or in the arena. */
bool mount_line_parse(struct arena *arena, struct str line, struct mount_line *ret);
/* "/" holds everything, "/home" holds "/home" and "/home/x" but not "/homes". */
bool mount_holds(const char *point, const char *path);
