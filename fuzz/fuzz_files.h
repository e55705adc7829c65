/* For readers that want a path, and for commands: the bytes become a file in a folder of this
 * process, and a command is called as main.c would, what it prints thrown away. */
#pragma once

#include "base/arena.h"
#include "base/fd.h"
#include "cmd/cmd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FUZZ_ARGUMENTS_MAX = 16 };

static char fuzz_folder[PATH_MAX - 64];

static inline const char *fuzz_path(const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", fuzz_folder, name);
    return path;
}

/* What SQLite puts beside a file is removed with it. */
static inline void fuzz_file_remove(const char *name)
{
    static const char *const beside[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < ARRAY_SIZE(beside); i++) {
        char path[PATH_MAX], full[64];
        snprintf(full, sizeof(full), "%s%s", name, beside[i]);
        unlink(fuzz_path(full, path));
    }
}

static inline void fuzz_folder_remove(void)
{
    rmdir(fuzz_folder);
}

static inline void fuzz_folder_make(void)
{
    if (fuzz_folder[0])
        return;
    /* In memory where there is such a place: a file a call would wear out a disk. */
    bool memory = access("/dev/shm", W_OK) == 0;
    snprintf(fuzz_folder, sizeof(fuzz_folder), "%s/whyslow-fuzz-XXXXXX",
             memory ? "/dev/shm" : "/tmp");
    if (!mkdtemp(fuzz_folder))
        abort();
    atexit(fuzz_folder_remove);
}

/* Never executable: a command line that names it must not run it. */
static inline void fuzz_file_write(const char *name, const void *data, size_t size)
{
    char path[PATH_MAX];
    fuzz_folder_make();
    AUTO(fd_close)
    int fd = open(fuzz_path(name, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_all(fd, data, size) < 0)
        abort();
}

static inline FILE *fuzz_nowhere(void)
{
    static FILE *out;
    if (!out)
        out = fopen("/dev/null", "we");
    if (!out)
        abort();
    return out;
}

/* Name and arguments, ended by NULL. Whatever the command makes of its input, a failure has
 * words, and the arguments themselves are right. */
static inline void fuzz_command(const char *const *words)
{
    const struct command *command = command_find(words[0]);
    char *argv[FUZZ_ARGUMENTS_MAX + 1] = {0};
    int argc = 0;
    for (; words[argc] && argc < FUZZ_ARGUMENTS_MAX; argc++)
        argv[argc] = strdup(words[argc]);
    char *owned[FUZZ_ARGUMENTS_MAX + 1];
    memcpy(owned, argv, sizeof(owned)); /* parsing moves operands to the front */
    void *opts = command ? calloc(1, command->options_size) : NULL;
    struct why why = {0};
    int operands = opts ? opt_parse(command->options, command->stop, argc, argv, opts, &why) : -1;
    if (operands < 0)
        abort();
    struct cmd_call call = {.opts = opts,
                            .argc = operands,
                            .argv = argv,
                            .out = fuzz_nowhere(),
                            .err = fuzz_nowhere(),
                            .notes = fuzz_nowhere()};
    int r = command->run(&call, &why);
    if (r < 0 && why.what[0] == '\0')
        abort(); /* refused without a word */
    free(opts);
    for (int i = 0; i < argc; i++)
        free(owned[i]);
}
