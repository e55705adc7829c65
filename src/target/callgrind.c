/* Runs valgrind in a folder of its own, and sums what it wrote there. */
#include "target/callgrind.h"

#include "base/str.h"
#include "base/temporary.h"
#include "target/program.h"
#include "target/spawn.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 65536, PROCESSES_MAX = 100000, FIXED_ARGUMENTS = 7 };

static_assert(PATH_MAX <= 4096, "a path must fit");

int callgrind_find(char ret_path[4096], struct why *why)
{
    char path[PATH_MAX];
    if (program_find_own("valgrind", path, NULL) < 0)
        return why_set(why, WHY_DENIED, ENOENT,
                       "install valgrind (Debian, Ubuntu: apt install valgrind); or gate on time "
                       "without --counts",
                       "simulated counts: n/a: valgrind is not installed");
    memcpy(ret_path, path, sizeof(path));
    return 0;
}

int callgrind_file_read(const char *path, uint64_t *ret_instructions, struct why *why)
{
    FILE *in = fopen(path, "re");
    if (!in)
        return why_errno(why, errno, NULL, "cannot read what callgrind wrote, '%s'", path);
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    int r = -EINVAL;
    uint64_t total = 0;
    bool counts_instructions = false;
    while ((len = getline(&line, &size, in)) > 0) {
        struct str rest = str_trim((struct str){line, (size_t)len});
        struct str key = str_cut(&rest, ':');
        rest = str_trim(rest);
        /* "events: Ir", then "totals: 12345" at the end; Ir stands first when there are more. */
        if (str_is(key, "events"))
            counts_instructions = str_is(str_word(&rest), "Ir");
        else if (counts_instructions && str_is(key, "totals"))
            r = str_to_u64(str_word(&rest), 10, &total);
    }
    free(line);
    fclose(in);
    if (r < 0)
        return why_set(why, WHY_FAILED, EINVAL, "is this a whole valgrind, with callgrind?",
                       "callgrind left no total of instructions in '%s'", path);
    *ret_instructions = total;
    return 0;
}

/* Sums all files of the folder and removes them and it. */
static int folder_take(const char *folder, struct callgrind_result *ret, struct why *why)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return why_errno(why, errno, NULL, "cannot read folder '%s'", folder);
    int r = 0;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (n < 0 || (size_t)n >= sizeof(path))
            continue;
        uint64_t instructions = 0;
        if (r == 0 && ret->processes < PROCESSES_MAX) {
            r = callgrind_file_read(path, &instructions, why);
            ret->instructions += instructions;
            ret->processes++;
        }
    }
    closedir(dir);
    if (r == 0 && ret->processes == 0)
        r = why_set(why, WHY_FAILED, ENOENT, "try it by hand: valgrind --tool=callgrind CMD",
                    "callgrind wrote nothing");
    return r;
}

static int run(const char *valgrind, const struct callgrind_opts *opts, const char *folder,
               struct spawn_result *ret, struct why *why)
{
    size_t count = 0;
    while (opts->argv[count] && count < ARGUMENTS_MAX)
        count++;
    const char **argv = calloc(count + FIXED_ARGUMENTS + 1, sizeof(*argv));
    if (!argv)
        return why_nomem(why);
    char file[PATH_MAX + 64];
    snprintf(file, sizeof(file), "--callgrind-out-file=%s/%%p", folder);
    size_t at = 0;
    argv[at++] = "valgrind";
    argv[at++] = "--command-line-only=yes"; /* no .valgrindrc of the folder we happen to be in */
    argv[at++] = "--tool=callgrind";
    argv[at++] = "--quiet";
    argv[at++] = "--trace-children=yes";
    argv[at++] = file;
    argv[at++] = opts->path;
    for (size_t i = 1; i < count; i++)
        argv[at++] = opts->argv[i];
    struct spawn_opts spawn = {
        .argv = (char *const *)argv,
        .path = valgrind,
        .input = opts->input ? SPAWN_FILE : SPAWN_NULL,
        .input_path = opts->input,
        .output = SPAWN_NULL,
        .error = SPAWN_NULL,
        .timeout_ns = opts->timeout_ns,
    };
    int r = spawn_run(&spawn, ret, why);
    free(argv);
    return r;
}

int callgrind_count(const char *valgrind, const struct callgrind_opts *opts,
                    struct callgrind_result *ret, struct why *why)
{
    char folder[PATH_MAX];
    int r = temporary_folder(folder);
    if (r < 0)
        return why_errno(why, -r, "set TMPDIR to a folder you may write to",
                         "cannot make a folder for callgrind's files in '%s'", folder);
    struct spawn_result spawned = {0};
    struct callgrind_result result = {0};
    r = run(valgrind, opts, folder, &spawned, why);
    int cleaned = folder_take(folder, &result, r < 0 ? NULL : why);
    temporary_remove(folder);
    bool ended = spawned.timed_out || spawned.interrupted;
    if (r < 0)
        return r;
    if (cleaned < 0 && !ended)
        return cleaned;
    result.status = spawned.status;
    result.timed_out = spawned.timed_out;
    result.interrupted = spawned.interrupted;
    *ret = result;
    return 0;
}
