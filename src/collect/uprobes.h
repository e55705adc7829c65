/* Programs on functions of libraries, wherever processes have them from.
 *
 *     uprobes_open()     can it be done here?
 *     uprobes_add()      a library and its functions, with the program for each
 *     uprobes_usual()    libraries in the places where systems keep them: before a target runs
 *     uprobes_process()  all that a process has mapped; again later: libraries come late
 *     uprobes_close()    all programs are taken off
 *
 * A program sits on a place in a file: all processes that map it meet the program, the target's
 * and others. Files are told apart by device and inode; one that has none of the functions is
 * looked at once. One thread. */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uprobes;

struct uprobe_function {
    const char *name;
    int program_fd;
    bool at_return; /* its program runs on every way out, before the stack is taken down or after */
};

enum {
    UPROBES_LIBRARIES_MAX = 4,
    UPROBES_FILES_MAX = 4096, /* looked at */
    UPROBES_MAX = 1024,       /* set */
};

MUST_USE int uprobes_open(struct uprobes **ret, struct why *why);
void uprobes_close(struct uprobes *uprobes); /* NULL is fine */

/* `file` is how the names of its files begin: "libssl.so". `functions` stay the caller's. A program
 * that has the functions in itself has all of them or is left alone: `functions[0]` tells. */
MUST_USE int uprobes_add(struct uprobes *uprobes, const char *file,
                         const struct uprobe_function *functions, size_t count);
/* What cannot be read or set is counted, not an error: -ENOMEM. */
MUST_USE int uprobes_usual(struct uprobes *uprobes);
/* `whole`: its program as well, which may have the library built in. */
MUST_USE int uprobes_process(struct uprobes *uprobes, int pid, bool whole);

struct uprobes_counts {
    uint64_t files;   /* with programs on them */
    uint64_t set;     /* programs */
    uint64_t refused; /* that could not be set */
    uint64_t beyond;  /* files and programs beyond a bound */
    /* Functions whose ways out could not be told: while a thread is in one, the kernel's own
     * address stands in the stack for the caller's, and no stack can be walked past it. */
    uint64_t trampolines;
};
struct uprobes_counts uprobes_counts(const struct uprobes *uprobes);
