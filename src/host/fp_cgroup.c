/* isolation.cgroup*: the limits that hold for the target, for cgroup v2, v1 and both mixed.
 * A limit anywhere above a process holds for it, so the tightest on the way up is the answer. */
#include "host/fp.h"
#include "host/memory_limit.h"
#include "host/mounts.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

enum controller { CPU, MEMORY, CPUSET, CONTROLLERS };
static const char *const controller_names[CONTROLLERS] = {"cpu", "memory", "cpuset"};

struct hierarchy {
    const char *path;   /* as /proc/PID/cgroup tells it; NULL when there is none */
    const char *mount;  /* where it can be seen; NULL when it is not mounted */
    const char *folder; /* mount and path joined; NULL when not to be seen */
};

struct fp_cgroups {
    struct hierarchy v2;
    struct hierarchy v1[CONTROLLERS];
};

enum { LEVELS_MAX = 64 };

static bool list_has(struct str list, const char *name)
{
    while (list.len > 0)
        if (str_is(str_cut(&list, ','), name))
            return true;
    return false;
}

static void paths_read(const struct fp *fp, struct fp_cgroups *cgroups)
{
    struct str text;
    if (host_read(fp->host, arena_printf(fp->arena, "%s/cgroup", fp->proc), &text, NULL) < 0)
        return;
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n');
        struct str number = str_cut(&line, ':');
        struct str controllers = str_cut(&line, ':');
        const char *path = arena_dup_len(fp->arena, line.data, line.len);
        if (str_is(number, "0") && controllers.len == 0)
            cgroups->v2.path = path;
        for (size_t i = 0; i < CONTROLLERS; i++)
            if (list_has(controllers, controller_names[i]))
                cgroups->v1[i].path = path;
    }
}

/* In a container the mount may show only a part of the hierarchy, and the path may be
 * told from outside of it: what cannot be joined is taken as the mount itself. */
static void hierarchy_mount(const struct fp *fp, struct hierarchy *hierarchy,
                            const struct mount_line *line)
{
    if (!hierarchy->path || hierarchy->mount)
        return;
    hierarchy->mount = line->point;
    const char *path = hierarchy->path;
    size_t root_len = strcmp(line->root, "/") == 0 ? 0 : strlen(line->root);
    if (strncmp(path, line->root, root_len) == 0 &&
        (path[root_len] == '/' || path[root_len] == '\0'))
        path += root_len;
    hierarchy->folder = arena_printf(fp->arena, "%s%s", line->point,
                                     strcmp(path, "/") == 0 ? "" : path);
    if (strncmp(path, "/..", 3) == 0 || !host_exists(fp->host, hierarchy->folder))
        hierarchy->folder = host_exists(fp->host, line->point) ? line->point : NULL;
}

const struct fp_cgroups *fp_cgroups_find(const struct fp *fp)
{
    static const struct fp_cgroups none;
    struct fp_cgroups *cgroups = ARENA_NEW(fp->arena, struct fp_cgroups);
    if (!cgroups)
        return &none;
    paths_read(fp, cgroups);
    struct str text;
    if (host_read(fp->host, "/proc/self/mountinfo", &text, NULL) < 0)
        return cgroups;
    while (text.len > 0) {
        struct mount_line line;
        if (!mount_line_parse(fp->arena, str_cut(&text, '\n'), &line))
            continue;
        if (str_is(line.type, "cgroup2"))
            hierarchy_mount(fp, &cgroups->v2, &line);
        for (size_t i = 0; i < CONTROLLERS; i++)
            if (str_is(line.type, "cgroup") && list_has(line.super, controller_names[i]))
                hierarchy_mount(fp, &cgroups->v1[i], &line);
    }
    return cgroups;
}

/* Where a controller's files are; *ret_v2 says of which version. NULL with a reason. */
static const struct hierarchy *controller_get(const struct fp *fp, enum controller controller,
                                              bool *ret_v2, const char **ret_na)
{
    const struct hierarchy *v1 = &fp->cgroups->v1[controller], *v2 = &fp->cgroups->v2;
    *ret_v2 = !v1->path;
    const struct hierarchy *hierarchy = v1->path ? v1 : v2;
    *ret_na = !hierarchy->path    ? "the process's cgroup cannot be read"
              : !hierarchy->mount ? "the cgroup filesystem is not mounted here"
                                  : "the cgroup's folder cannot be seen from here";
    return hierarchy->folder ? hierarchy : NULL;
}

struct value fp_cgroup_version(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    bool v1 = false;
    for (size_t i = 0; i < CONTROLLERS; i++)
        v1 = v1 || fp->cgroups->v1[i].path;
    if (v1)
        return value_text(fp->cgroups->v2.path ? "v1, with v2 beside it" : "v1");
    return fp->cgroups->v2.path ? value_text("v2")
                                : value_na("the process's cgroup cannot be read");
}

struct value fp_cgroup_path(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    const struct fp_cgroups *cgroups = fp->cgroups;
    const char *path = cgroups->v1[MEMORY].path ? cgroups->v1[MEMORY].path : cgroups->v2.path;
    return path ? value_text(path) : value_na("the process's cgroup cannot be read");
}

typedef double limit_reader(const struct fp *fp, const char *folder, bool v2);

static double cpu_limit(const struct fp *fp, const char *folder, bool v2)
{
    double quota, period;
    struct str text;
    if (!v2) {
        uint64_t quota_us, period_us; /* a quota of -1 is none, and no u64 */
        if (host_read_u64(fp->host, arena_printf(fp->arena, "%s/cpu.cfs_quota_us", folder),
                          &quota_us) < 0 ||
            host_read_u64(fp->host, arena_printf(fp->arena, "%s/cpu.cfs_period_us", folder),
                          &period_us) < 0 ||
            period_us == 0)
            return INFINITY;
        return (double)quota_us / (double)period_us;
    }
    if (host_read(fp->host, arena_printf(fp->arena, "%s/cpu.max", folder), &text, NULL) < 0 ||
        str_to_f64(str_word(&text), &quota) < 0 || str_to_f64(str_word(&text), &period) < 0 ||
        period <= 0)
        return INFINITY;
    return quota / period;
}

static double memory_limit(const struct fp *fp, const char *folder, bool v2)
{
    uint64_t bytes;
    const char *file = v2 ? "memory.max" : "memory.limit_in_bytes";
    if (host_read_u64(fp->host, arena_printf(fp->arena, "%s/%s", folder, file), &bytes) < 0)
        return INFINITY;
    /* v1 writes "no limit" as the largest page-aligned number. */
    return bytes >= (uint64_t)1 << 60 ? INFINITY : (double)bytes;
}

/* The least of the limits from the cgroup up to where it is mounted. */
static double limit_least(const struct fp *fp, const struct hierarchy *hierarchy, bool v2,
                          limit_reader *read)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", hierarchy->folder);
    size_t mount_len = strlen(hierarchy->mount);
    double least = INFINITY;
    for (int i = 0; i < LEVELS_MAX && strlen(folder) >= mount_len; i++) {
        least = fmin(least, read(fp, folder, v2));
        char *slash = strrchr(folder, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    return least;
}

struct value fp_cgroup_cpu_limit(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    bool v2;
    const char *na;
    const struct hierarchy *hierarchy = controller_get(fp, CPU, &v2, &na);
    if (!hierarchy)
        return value_na(na);
    double cpus = limit_least(fp, hierarchy, v2, cpu_limit);
    return isinf(cpus) ? value_text("unlimited") : value_real(cpus, UNIT_NONE);
}

struct value fp_cgroup_memory_limit(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    bool v2;
    const char *na;
    const struct hierarchy *hierarchy = controller_get(fp, MEMORY, &v2, &na);
    if (!hierarchy)
        return value_na(na);
    double bytes = limit_least(fp, hierarchy, v2, memory_limit);
    return isinf(bytes) ? value_text("unlimited") : value_uint((uint64_t)bytes, UNIT_BYTES);
}

double memory_limit_bytes(const struct host *host)
{
    struct fp fp = {.host = host, .arena = host->arena, .proc = "/proc/self"};
    bool v2;
    const char *na;
    fp.cgroups = fp_cgroups_find(&fp);
    const struct hierarchy *hierarchy = controller_get(&fp, MEMORY, &v2, &na);
    return hierarchy ? limit_least(&fp, hierarchy, v2, memory_limit) : INFINITY;
}

struct value fp_cgroup_cpuset(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    bool v2;
    const char *na;
    const struct hierarchy *hierarchy = controller_get(fp, CPUSET, &v2, &na);
    if (!hierarchy)
        return value_na(na);
    static const char *const files[] = {"cpuset.cpus.effective", "cpuset.effective_cpus",
                                        "cpuset.cpus"};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        struct str text;
        const char *path = arena_printf(fp->arena, "%s/%s", hierarchy->folder, files[i]);
        if (host_read(fp->host, path, &text, NULL) == 0 && text.len > 0)
            return value_str(text);
    }
    return value_text("unlimited"); /* the controller is not switched on for this cgroup */
}

struct value fp_cgroup_throttled(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    bool v2;
    const char *na;
    const struct hierarchy *hierarchy = controller_get(fp, CPU, &v2, &na);
    struct str text;
    uint64_t count;
    if (!hierarchy)
        return value_na(na);
    if (host_read(fp->host, arena_printf(fp->arena, "%s/cpu.stat", hierarchy->folder), &text,
                  NULL) < 0 ||
        str_to_u64(str_field(text, "nr_throttled"), 10, &count) < 0)
        return value_na("the cgroup has no CPU controller that counts it");
    return value_uint(count, UNIT_COUNT);
}
