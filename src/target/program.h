/* From what was typed to the file that exec will run. */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <limits.h>

/* As the shell finds it: a name with a slash as it stands, any other on PATH.
 * What cannot be run is WHY_USAGE with the reason (-ENOENT, -EACCES, -EISDIR). */
MUST_USE int program_find(const char *name, char ret_path[PATH_MAX], struct why *why);
/* For a program that nobody typed: only absolute folders of PATH count, and for root only files
 * that nobody else can change. */
MUST_USE int program_find_own(const char *name, char ret_path[PATH_MAX], struct why *why);
