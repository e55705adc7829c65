/* From what was typed to a file that can be read. */
#include "cmd/doctor_target.h"

#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The nicest name under which the very file that runs can be opened: its own path, the path
 * through the process's root (another mount namespace), or, when it was deleted or
 * replaced since, the kernel's link. */
static int find_by_pid(struct arena *arena, const char *text, uint64_t pid,
                       struct doctor_target *ret, struct why *why)
{
    const char *folder = arena_printf(arena, "/proc/%llu", (unsigned long long)pid);
    if (pid == 0 || pid > INT_MAX || access(folder, F_OK) < 0)
        return why_set(why, WHY_USAGE, ESRCH,
                       "'ps -e' lists the processes; a file whose name is a number is './123'",
                       "there is no process %s", text);
    const char *link = arena_printf(arena, "%s/exe", folder);
    char target[PATH_MAX];
    ssize_t len = readlink(link, target, sizeof(target) - 1);
    if (len < 0 && errno == ENOENT)
        return why_set(why, WHY_USAGE, ENOENT, "name a process of user space",
                       "process %s has no program: it is a kernel thread or has ended", text);
    if (len < 0)
        return why_errno(why, errno, "run it as the owner of the process, or with sudo",
                         "cannot see which program process %s runs", text);
    target[len] = '\0';
    const char *inside = arena_printf(arena, "%s/root%s", folder, target);
    *ret = (struct doctor_target){.pid = (int)pid, .path = link};
    if (same_file(target, link))
        ret->path = arena_dup(arena, target);
    else if (same_file(inside, link))
        ret->path = inside;
    return 0;
}

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int find_on_path(struct arena *arena, const char *name, struct doctor_target *ret,
                        struct why *why)
{
    const char *path = getenv("PATH");
    struct str rest = str_from(path ? path : "/usr/local/bin:/usr/bin:/bin");
    while (rest.len > 0) {
        struct str folder = str_cut(&rest, ':');
        const char *file = folder.len > 0 ? arena_printf(arena, "%.*s/%s", STR_FMT(folder), name)
                                          : arena_printf(arena, "./%s", name);
        if (is_program(file)) {
            *ret = (struct doctor_target){.path = file};
            return 0;
        }
    }
    why_set(why, WHY_USAGE, ENOENT, "give the path of the program, or the number of a process",
            "no program '%s' on PATH", name);
    if (access(name, F_OK) == 0)
        why_set_remedy(why, "for the file in this folder type './%s'", name);
    return -ENOENT;
}

int doctor_target_find(struct arena *arena, const char *text, struct doctor_target *ret,
                       struct why *why)
{
    uint64_t pid;
    int r = str_to_u64(str_from(text), 10, &pid);
    if (r != -EINVAL)
        return find_by_pid(arena, text, r == 0 ? pid : UINT64_MAX, ret, why);
    if (!strchr(text, '/'))
        return find_on_path(arena, text, ret, why);
    struct stat st;
    if (stat(text, &st) < 0)
        return why_errno(why, errno, "check the path", "cannot look at '%s'", text);
    if (!S_ISREG(st.st_mode))
        return why_set(why, WHY_USAGE, EINVAL, "name a program", "'%s' is no file", text);
    *ret = (struct doctor_target){.path = text};
    return 0;
}
