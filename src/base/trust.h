/* Whose files may be believed: those that nobody but root and the user we run as can change.
 *
 * What whyslow reads or writes on its own account (caches, libraries for the target, tools it
 * looks at or starts) must pass; what the user names on the command line need not. docs/security.md
 * says where each rule holds. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Owned by root or by us, and not writable by anybody else. A folder that all may write to is good
 * enough when it is sticky (/tmp): there only owners rename. The group of a user who is not root
 * may write, since many systems give each user one. */
bool trust_stat(const struct stat *st);
/* The file or folder and every folder on the way to it, links resolved; false when there is none.
 */
bool trust_path(const char *path);

/* A file or folder by a name that somebody else may have put there: what it leads to is handed
 * back and must pass, and a link must belong to root or us, since its owner may turn it elsewhere
 * at any moment. -EPERM when it does not pass, -errno when it cannot be looked at; *ret is then
 * what was seen of it, if anything was. */
MUST_USE int trust_entry(const char *path, struct stat *ret);

/* Where temporary files go: $TMPDIR unless somebody else could replace what is made in it, else
 * /tmp. A $TMPDIR that is not there is handed back, so that its error is told. */
const char *trust_temporary(void);
