/* Whose eyes: the root and the mounts of a process, and the way to a file without following
 * anything that leads elsewhere. */
#include "base/fd.h"
#include "collect/files_look_parts.h"
#include "host/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOUNTS_BYTES_MAX = 8 << 20, MOUNTS_MAX = 65536 };

uint32_t filesystem_flags(struct str type)
{
    static const struct {
        const char *type;
        uint32_t flags;
    } rows[] = {
        {"9p", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"afs", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"autofs", FILESYSTEM_SILENT},
        {"bcachefs", FILESYSTEM_COW},
        {"beegfs", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"binfmt_misc", FILESYSTEM_MADE_UP},
        {"bpf", FILESYSTEM_MADE_UP},
        {"btrfs", FILESYSTEM_COW},
        {"ceph", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"cgroup", FILESYSTEM_MADE_UP},
        {"cgroup2", FILESYSTEM_MADE_UP},
        {"cifs", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"coda", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"debugfs", FILESYSTEM_MADE_UP},
        {"devpts", FILESYSTEM_MADE_UP},
        {"devtmpfs", FILESYSTEM_MEMORY},
        {"fuse", FILESYSTEM_SILENT},
        {"fuse.glusterfs", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"fuse.s3fs", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"fuse.sshfs", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"fuseblk", FILESYSTEM_SILENT},
        {"gfs2", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"gpfs", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"hugetlbfs", FILESYSTEM_MEMORY},
        {"lustre", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"mqueue", FILESYSTEM_MADE_UP},
        {"nfs", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"nfs4", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"nilfs2", FILESYSTEM_COW},
        {"ocfs2", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"orangefs", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"overlay", FILESYSTEM_OVERLAY},
        {"proc", FILESYSTEM_MADE_UP},
        {"pstore", FILESYSTEM_MADE_UP},
        {"ramfs", FILESYSTEM_MEMORY},
        {"securityfs", FILESYSTEM_MADE_UP},
        {"smb3", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"sysfs", FILESYSTEM_MADE_UP},
        {"tmpfs", FILESYSTEM_MEMORY},
        {"tracefs", FILESYSTEM_MADE_UP},
        {"virtiofs", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"zfs", FILESYSTEM_COW},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (str_is(type, rows[i].type))
            return rows[i].flags;
    return str_starts(type, "fuse.") ? FILESYSTEM_SILENT : 0;
}

int view_mounts_read(struct arena *arena, struct view *view, struct str text)
{
    while (text.len > 0 && view->mounts.len < MOUNTS_MAX) {
        struct mount_line line;
        if (!mount_line_parse(arena, str_cut(&text, '\n'), &line))
            continue;
        struct view_mount mount = {
            .point = line.point,
            .type = line.type,
            .flags = filesystem_flags(line.type),
        };
        if (VEC_PUSH(&view->mounts, mount) < 0)
            return -ENOMEM;
    }
    return arena_failed(arena) ? -ENOMEM : 0;
}

/* The longest holds it; of equals the last, which is mounted over the others. */
const struct view_mount *view_mount_of(const struct view *view, const char *path)
{
    const struct view_mount *best = NULL;
    size_t best_len = 0;
    for (size_t i = 0; i < view->mounts.len; i++) {
        const struct view_mount *mount = &view->mounts.data[i];
        size_t len = strlen(mount->point);
        if (mount_holds(mount->point, path) && (!best || len >= best_len)) {
            best = mount;
            best_len = len;
        }
    }
    return best;
}

int view_open(const struct view *view, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    if (view->root_fd < 0)
        return -ENOENT;
    long fd = syscall(SYS_openat2, view->root_fd, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

/* `folder` is /proc/self or /proc/PID. */
static int view_read(struct views *views, const char *folder, struct view *ret)
{
    char path[64];
    struct str text;
    snprintf(path, sizeof(path), "%s/root", folder);
    ret->root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ret->root_fd < 0)
        return -errno;
    snprintf(path, sizeof(path), "%s/mountinfo", folder);
    int r = file_read(&views->arena, path, MOUNTS_BYTES_MAX, &text, NULL);
    if (r == 0)
        r = view_mounts_read(&views->arena, ret, text);
    if (r < 0) {
        fd_close(&ret->root_fd);
        VEC_FREE(&ret->mounts);
    }
    return r;
}

/* Namespace and root together: the same for all processes that see the same. */
static bool view_name(const char *folder, struct view *ret)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "%s/ns/mnt", folder);
    if (stat(path, &status) < 0)
        return false;
    ret->space = status.st_ino;
    snprintf(path, sizeof(path), "%s/root", folder);
    ssize_t len = readlink(path, ret->root, sizeof(ret->root) - 1);
    if (len < 0 || (size_t)len == sizeof(ret->root) - 1)
        return false;
    ret->root[len] = '\0';
    return true;
}

static struct view *view_need(struct views *views, const char *folder)
{
    struct view fresh = {.root_fd = -1};
    if (!view_name(folder, &fresh))
        return NULL;
    for (size_t i = 0; i < views->count; i++)
        if (views->list[i].space == fresh.space && strcmp(views->list[i].root, fresh.root) == 0)
            return &views->list[i];
    if (views->count == VIEWS_MAX || view_read(views, folder, &fresh) < 0)
        return NULL;
    views->list[views->count] = fresh;
    return &views->list[views->count++];
}

const struct view *views_of(struct views *views, int pid)
{
    char folder[32];
    if (views->count == 0 && !view_need(views, "/proc/self"))
        return NULL;
    if (pid <= 0)
        return &views->list[0];
    if (pid == views->last_pid && views->last)
        return views->last;
    snprintf(folder, sizeof(folder), "/proc/%d", pid);
    struct view *view = view_need(views, folder);
    views->last_pid = pid;
    views->last = view ? view : &views->list[0];
    return views->last;
}

void views_deinit(struct views *views)
{
    for (size_t i = 0; i < views->count; i++) {
        fd_close(&views->list[i].root_fd);
        VEC_FREE(&views->list[i].mounts);
    }
    arena_deinit(&views->arena);
}
