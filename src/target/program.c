/* PATH lookup with a reason for every refusal. */
#include "target/program.h"

#include "base/str.h"
#include "base/trust.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0, or why exec would refuse this file. */
static int refusal(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    if (!S_ISREG(st.st_mode))
        return EACCES;
    /* Root may "execute" anything by access(), but exec wants one x bit. */
    if ((st.st_mode & 0111) == 0 || access(path, X_OK) < 0)
        return EACCES;
    return 0;
}

static int refuse(const char *name, const char *path, int error, struct why *why)
{
    char remedy[256];
    switch (error) {
    case EACCES:
        snprintf(remedy, sizeof(remedy),
                 "'chmod +x' it if it is a program; give a script's interpreter otherwise "
                 "(e.g. 'sh FILE')");
        return why_set(why, WHY_USAGE, error, remedy, "'%s' may not be executed", path);
    case EISDIR:
        return why_set(why, WHY_USAGE, error, "name the program inside it", "'%s' is a folder",
                       path);
    case ENOENT:
    case ENOTDIR:
        if (strchr(name, '/'))
            return why_set(why, WHY_USAGE, error, "check the path; is the program built?",
                           "there is no file '%s'", name);
        snprintf(remedy, sizeof(remedy),
                 "check the spelling, or give its path; shell built-ins, pipes and aliases need "
                 "a shell: sh -c '…'");
        return why_set(why, WHY_USAGE, error, remedy, "command '%s' was not found on PATH", name);
    default:
        return why_errno(why, error, NULL, "cannot use '%s'", path);
    }
}

/* `own`: see program_find_own(). */
static int path_search(const char *name, bool own, char ret_path[PATH_MAX], struct why *why)
{
    const char *path = getenv("PATH");
    struct str rest = str_from(path ? path : "/usr/local/bin:/usr/bin:/bin");
    char candidate[PATH_MAX], refused[PATH_MAX];
    int error = ENOENT;
    while (rest.len > 0) {
        struct str folder = str_cut(&rest, ':');
        if (folder.len == 0)
            folder = STR(".");
        if (own && folder.data[0] != '/')
            continue;
        int n = snprintf(candidate, sizeof(candidate), "%.*s/%s", STR_FMT(folder), name);
        if (n < 0 || (size_t)n >= sizeof(candidate))
            continue;
        int found = refusal(candidate);
        /* What is judged is what is started: a link on the way may be another one by then. */
        char real[PATH_MAX];
        if (found == 0 && own && !realpath(candidate, real))
            found = errno;
        if (found == 0 && own && geteuid() == 0 && !trust_path(real))
            found = EACCES;
        if (found == 0) {
            memcpy(ret_path, own ? real : candidate, (own ? strlen(real) : (size_t)n) + 1);
            return 0;
        }
        /* Like execvp: a file that may not be run is worth more than none. */
        if (found == EACCES && error != EACCES) {
            error = EACCES;
            memcpy(refused, candidate, (size_t)n + 1);
        }
    }
    return refuse(name, error == EACCES ? refused : name, error, why);
}

int program_find(const char *name, char ret_path[PATH_MAX], struct why *why)
{
    if (strlen(name) >= PATH_MAX)
        return refuse(name, name, ENAMETOOLONG, why);
    if (strchr(name, '/')) {
        int error = refusal(name);
        if (error)
            return refuse(name, name, error, why);
        memcpy(ret_path, name, strlen(name) + 1);
        return 0;
    }
    if (*name == '\0')
        return refuse(name, name, ENOENT, why);
    return path_search(name, false, ret_path, why);
}

int program_find_own(const char *name, char ret_path[PATH_MAX], struct why *why)
{
    return path_search(name, true, ret_path, why);
}
