/* A script's first line leads to the program that really runs. */
#include "host/build_internal.h"

#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCRIPT_LINE_BYTES_MAX = 4096 };

/* Searched as execvp() would; NULL when no folder of PATH has it. */
static const char *path_search(struct arena *arena, struct str name)
{
    const char *path = getenv("PATH");
    struct str rest = str_from(path ? path : "/usr/local/bin:/usr/bin:/bin");
    while (rest.len > 0) {
        struct str folder = str_cut(&rest, ':');
        if (folder.len == 0)
            folder = STR(".");
        const char *found = arena_printf(arena, "%.*s/%.*s", STR_FMT(folder), STR_FMT(name));
        struct stat st;
        if (access(found, X_OK) == 0 && stat(found, &st) == 0 && S_ISREG(st.st_mode))
            return found;
    }
    return NULL;
}

/* "#!/usr/bin/env -S VAR=x python3 -u": options and assignments come first. */
static struct str env_program(struct str arguments)
{
    struct str word;
    while ((word = str_word(&arguments)).len > 0) {
        if (str_is(word, "-u") || str_is(word, "-C")) {
            (void)str_word(&arguments);
            continue;
        }
        if (str_starts(word, "-S") && word.len > 2)
            return (struct str){word.data + 2, word.len - 2};
        if (word.data[0] != '-' && !memchr(word.data, '=', word.len))
            return word;
    }
    return (struct str){"", 0};
}

int build_script_read(struct arena *arena, const char *path, const char **ret_interpreter,
                      struct why *why)
{
    AUTO(fd_close) int fd = file_open_regular(path);
    bool is_file = fd != -EINVAL && fd != -EISDIR;
    if (fd < 0 && is_file)
        return why_errno(why, -fd, fd == -EACCES ? "run as a user who may read it" : NULL,
                         "cannot open '%s'", path);
    char buffer[SCRIPT_LINE_BYTES_MAX];
    ssize_t len = is_file ? pread(fd, buffer, sizeof(buffer), 0) : 0;
    if (len < 2 || buffer[0] != '#' || buffer[1] != '!') {
        *ret_interpreter = NULL;
        return 0;
    }
    struct str text = {buffer + 2, (size_t)len - 2};
    if (!memchr(text.data, '\n', text.len) && len == sizeof(buffer))
        return why_set(why, WHY_USAGE, ENOEXEC, "shorten the first line",
                       "the #! line of '%s' is longer than %d bytes", path, SCRIPT_LINE_BYTES_MAX);
    struct str line = str_cut(&text, '\n');
    struct str program = str_word(&line);
    if (program.len == 0 || memchr(program.data, '\0', program.len))
        return why_set(why, WHY_USAGE, ENOEXEC, "name the interpreter after #!",
                       "the #! line of '%s' names no interpreter", path);
    if (!str_ends(program, "/env")) {
        *ret_interpreter = arena_dup_len(arena, program.data, program.len);
        return 0;
    }
    struct str name = env_program(line);
    const char *found = memchr(name.data, '/', name.len)
                            ? arena_dup_len(arena, name.data, name.len)
                            : (name.len > 0 ? path_search(arena, name) : NULL);
    if (!found)
        return why_set(why, WHY_USAGE, ENOENT, "install the interpreter, or put it into PATH",
                       "the #! line of '%s' asks env for '%.*s', which is not in PATH", path,
                       STR_FMT(name));
    *ret_interpreter = found;
    return 0;
}
