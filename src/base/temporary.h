/* Temporary folders and files, which are gone in the end, however whyslow ended.
 *
 * Each is held by a lock (flock) while its maker lives. Whoever makes the next one in the same
 * place first removes those of the same user whose lock nobody holds: the maker was killed. Nothing
 * but plain files in a folder of ours is removed, no link is followed, and what another user could
 * have put there is left alone. */
#pragma once

#include "base/macros.h"

#include <limits.h>

/* In $TMPDIR, else in /tmp; 0700. -errno, with the folder that was tried in `ret` */
MUST_USE int temporary_folder(char ret[PATH_MAX]);
MUST_USE int temporary_folder_in(const char *parent, char ret[PATH_MAX]);
MUST_USE int temporary_file(char ret[PATH_MAX]);

/* Another process needs it, too: it stays for as long as that one lives, also when we have removed
 * it. */
void temporary_share(const char *path, int pid);

/* Removes what killed ones have left where temporary_folder() and temporary_file() make theirs, and
 * in $XDG_RUNTIME_DIR: for those that may make none themselves. */
void temporary_sweep(void);

/* A file that is written whole and then renamed to `path` is called PATH.PID and `suffix` before
 * that. Removes those of the same user that a killed process has left; for whoever is about to make
 * one. Who makes one on its user's account holds it by a lock, too: a process of another container
 * has no number here. */
void temporary_sweep_beside(const char *path, const char *suffix);

/* With all files in it; errno is kept. A path that is none of ours is left alone. */
void temporary_remove(const char *path);
