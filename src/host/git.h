/* The git repository around a folder, read from its files, so that it is known where no git
 * is installed. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

struct git {
    const char *folder; /* of this work tree: HEAD */
    const char *common; /* of the repository: refs, packed-refs */
    const char *na;     /* why there is none; NULL when found */
};

/* The nearest .git above `folder`. All texts are the arena's. */
struct git git_find(struct arena *arena, const char *folder);
/* The commit that is checked out, and its branch; *ret_na is the reason when there is none. */
struct str git_revision(struct arena *arena, const char *folder, const char **ret_na);
struct str git_branch(struct arena *arena, const char *folder, const char **ret_na);
