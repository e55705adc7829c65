/* A look at the files that a target used, and at what they stand on: size, file system, free
 * space, extents, the folder around them. Facts only; what is too many is for analyze/ to say.
 *
 *     files_look_open()
 *     files_look_named()   a file, when its path is learnt
 *     files_look_used()    how long calls on it took, and what they moved; adds up
 *     files_look_finish()  looks, and writes the document "files"
 *     files_look_close()
 *
 * The look is made at the end, with the eyes of the process that had the file (its root and its
 * mounts) while that lives, else with our own. It opens nothing but regular files and folders,
 * follows no link, reads no data, writes nothing out and changes no access time. File systems
 * whose answer may never come (network, FUSE, autofs) are told by name and asked for nothing. It
 * takes no longer than it is given, plus the one file it is at; what was not looked at says so.
 *
 *     {"schema": 1,
 *      "files": [{"object": 7, "path": "/srv/a.db", "size_bytes": …, "allocated_bytes": …,
 *                 "filesystem": "ext4", "mount": "/srv", "network": false, "memory": false,
 *                 "overlay": false, "cow": false, "free_pct": 12.5, "free_bytes": …,
 *                 "extents": 3, "fragments": 1, "shared_extents": 0, "extents_more": false,
 *                 "folder_entries": 12, "folder_entries_more": false,
 *                 "na": {"extents": "tmpfs does not tell where a file lies"}}, …],
 *      "folders": [{"path": "/srv/cache", "used": 4000, "tiny": 3998, "gone": 0,
 *                   "entries": 10000, "entries_more": true, "na": {}}, …],
 *      "left_out": 0}
 *
 * "files" are those with the most time and bytes; "folders" are those of which at least
 * FILES_LOOK_FOLDER_MIN files were used, "tiny" of them below FILES_LOOK_TINY_BYTES. What is n/a is
 * not there, and its key is in "na" with the reason. "extents" are as the file system counts
 * them, "fragments" pieces that do not touch each other on the device; "…_more": at least so many,
 * nobody counted on. "left_out" are files that found no room. One thread. */
#pragma once

#include "base/why.h"
#include "model/sink.h"

enum {
    FILES_LOOK_SEEN_MAX = 1 << 15,
    FILES_LOOK_PATH_BYTES_MAX = 8 << 20, /* of all paths together */
    FILES_LOOK_FILES_MAX = 64,           /* that are looked at closely */
    FILES_LOOK_FOLDERS_MAX = 16,
    FILES_LOOK_FOLDER_MIN = 32,
    FILES_LOOK_TINY_BYTES = 4096,
    FILES_LOOK_ENTRIES_MAX = 10000,
    FILES_LOOK_EXTENTS_MAX = 1000,
    FILES_LOOK_NS = 1000000000, /* that a look may take, as a rule */
};

struct files_look;

MUST_USE int files_look_open(struct files_look **ret);
void files_look_close(struct files_look *look); /* NULL is fine */

/* `object`: the sink's id; `pid`: who has it open; `inode`: its number, as far as known (0: not),
 * so that another file in its place is noticed. Only a file: what is not at an absolute path is
 * passed over. A name that comes again is the one that counts. 0 or -ENOMEM. */
MUST_USE int files_look_named(struct files_look *look, uint32_t object, int pid, uint64_t inode,
                              struct str path);
/* Of any object: one that was not named before is none of those. */
void files_look_used(struct files_look *look, uint32_t object, uint64_t ns, uint64_t bytes);
/* Takes at most `ns_max`. Without files no document. 0, -ENOMEM or the sink's error. */
MUST_USE int files_look_finish(struct files_look *look, uint64_t ns_max, struct sink *sink);
