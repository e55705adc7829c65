/* What the files of a compiler or an interpreter say of its version. For fp_toolchain.c.
 *
 * Only files that nobody else may change are read, each with a bound; an empty answer means that
 * they do not tell. Texts are the arena's. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

#include <stdbool.h>

struct fp_tool_file {
    const char *name;   /* as it was asked for: "cc" */
    const char *path;   /* links resolved: "/usr/bin/x86_64-linux-gnu-gcc-12" */
    const char *prefix; /* what bin/ lies in: "/usr" */
    const char *base;   /* "x86_64-linux-gnu-gcc-12" */
};

/* False when the file is not in a folder below another one. */
bool fp_tool_file_make(struct arena *arena, const char *name, const char *path,
                       struct fp_tool_file *ret);

struct str fp_tool_compiler(struct arena *arena, const struct fp_tool_file *file);
struct str fp_tool_linker(struct arena *arena, const struct fp_tool_file *file);
struct str fp_tool_go(struct arena *arena, const struct fp_tool_file *file);
struct str fp_tool_python(struct arena *arena, const struct fp_tool_file *file);
struct str fp_tool_node(struct arena *arena, const struct fp_tool_file *file);
struct str fp_tool_java(struct arena *arena, const struct fp_tool_file *file);
/* Of any ELF file: the package that it says it comes from, that Debian's list of files says, or
 * at least which build it is. `package` may be NULL. */
struct str fp_tool_identity(struct arena *arena, const struct fp_tool_file *file,
                            const char *package);
