/* Small images for the unwinder's tests, made by the compiler while the test runs. */
#pragma once

#include "unwind_helpers.h"

#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

static char build_dir[64];

/* Formats and runs a shell command in the folder; its exit status. */
PRINTF_LIKE(1, 2) static inline int build_run(const char *fmt, ...)
{
    char command[2048], line[2200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(command, sizeof(command), fmt, args);
    va_end(args);
    snprintf(line, sizeof(line), "cd %s && ( %s ) >log 2>&1 || { sed 's/^/# /' log; false; }",
             build_dir, command);
    return system(line); /* NOLINT: a fixed command in a test */
}

static inline int build_group_setup(void **state)
{
    (void)state;
    snprintf(build_dir, sizeof(build_dir), "/tmp/unwind-test.XXXXXX");
    return mkdtemp(build_dir) ? 0 : -1;
}

static inline int build_remove(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static inline int build_group_teardown(void **state)
{
    (void)state;
    return nftw(build_dir, build_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *build_path(const char *name)
{
    static char path[4][256];
    static unsigned next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof(path[next]), "%s/%s", build_dir, name);
    return path[next];
}

/* `name`.so from assembly, its code at vaddr CODE; false if there is no compiler. */
enum { CODE = 0x10000 };
static inline bool build_image(const char *name, const char *assembly)
{
    char source[32];
    snprintf(source, sizeof(source), "%s.s", name);
    FILE *file = fopen(build_path(source), "we");
    if (!file)
        return false;
    fputs(assembly, file);
    fclose(file);
    return build_run("${CC:-cc} -shared -nostdlib -Wl,--build-id -Wl,-Ttext=0x%x -o %s.so %s.s",
                     CODE, name, name) == 0;
}

static inline int build_load(const char *name, const struct unwind_image_opts *opts,
                             struct unwind_image **ret, struct why *why)
{
    AUTO(fd_close) int fd = open(build_path(name), O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -1 : unwind_image_load(fd, opts, ret, why);
}
