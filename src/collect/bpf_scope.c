/* From a target to whom a kernel program looks at. */
#include "collect/bpf_scope.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PID_NS_FIRST 0xEFFFFFFCu /* inode of the first PID namespace */

uint64_t own_cpu_ns(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static uint32_t pid_ns_here(void)
{
    struct stat stat_ns;
    if (stat("/proc/self/ns/pid", &stat_ns) < 0 || stat_ns.st_ino == PID_NS_FIRST)
        return 0;
    return (uint32_t)stat_ns.st_ino;
}

/* The folder of a cgroup is named by its inode; the program asks for an ancestor by its depth. */
static int cgroup_find(const char *path, struct bpf_scope *scope, struct why *why)
{
    struct stat now, up;
    char above[PATH_MAX];
    size_t len = strlen(path);
    int n = snprintf(above, sizeof(above), "%s", path);
    if (n < 0 || n >= (int)sizeof(above) || stat(path, &now) < 0)
        return why_errno(why, n < (int)sizeof(above) ? errno : ENAMETOOLONG, NULL,
                         "cannot look at the cgroup '%s'", path);
    scope->cgroup_id = now.st_ino;
    for (uint32_t level = 0; len + 4 < sizeof(above); level++, len += 3) {
        snprintf(above + len, sizeof(above) - len, "/..");
        scope->cgroup_level = level;
        if (stat(above, &up) < 0 || up.st_dev != now.st_dev)
            return 0;
    }
    return why_set(why, WHY_FAILED, ELOOP, NULL, "the cgroup '%s' lies too deep", path);
}

int bpf_scope_find(const struct collector_target *target, struct bpf_scope *ret, struct why *why)
{
    static const enum offcpu_scope scopes[] = {
        [TARGET_SPAWNED] = OFFCPU_TREE,
        [TARGET_ATTACHED] = OFFCPU_TREE,
        [TARGET_SYSTEM] = OFFCPU_MACHINE,
        [TARGET_CGROUP] = OFFCPU_CGROUP,
    };
    struct bpf_scope scope = {
        .scope = scopes[target->scope],
        .root = (uint32_t)target->pid,
        .own = (uint32_t)getpid(),
        .pid_ns = pid_ns_here(),
    };
    int r = target->scope == TARGET_CGROUP ? cgroup_find(target->cgroup, &scope, why) : 0;
    if (r == 0)
        *ret = scope;
    return r;
}
