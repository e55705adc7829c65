/* storage.*: what the folder of the work stands on. The mount comes from
 * mountinfo (longest match, the last one mounted wins), the device from sysfs. */
#include "host/fp.h"
#include "host/mounts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/statvfs.h>

struct fp_mount {
    struct mount_line line;
    const char *options; /* of the mount and of the superblock, joined */
    const char *disk;    /* folder in sysfs of the whole disk, or NULL */
};

/* The device's folder in sysfs: by number, or, where a filesystem has numbers of
 * its own (btrfs), by the name it was mounted from. */
static void block_find(const struct fp *fp, struct fp_mount *mount)
{
    const char *block = arena_printf(fp->arena, "/sys/dev/block/%.*s",
                                     STR_FMT(mount->line.device_id));
    if (!host_exists(fp->host, block)) {
        if (!str_starts(mount->line.source, "/dev/"))
            return;
        const char *slash = memrchr(mount->line.source.data, '/', mount->line.source.len);
        block = arena_printf(fp->arena, "/sys/class/block/%s", slash + 1);
        if (!slash[1] || !host_exists(fp->host, block))
            return;
    }
    bool part = host_exists(fp->host, arena_printf(fp->arena, "%s/partition", block));
    mount->disk = part ? arena_printf(fp->arena, "%s/..", block) : block;
}

void fp_mount_find(struct fp *fp)
{
    struct str text;
    if (host_read(fp->host, "/proc/self/mountinfo", &text, NULL) < 0) {
        fp->mount_na = "/proc/self/mountinfo cannot be read";
        return;
    }
    const char *folder = fp->input->folder ? fp->input->folder : "/";
    char real[PATH_MAX];
    if (host_is_live(fp->host) && realpath(folder, real))
        folder = arena_dup(fp->arena, real);
    struct fp_mount *best = NULL;
    while (text.len > 0) {
        struct fp_mount mount = {0};
        struct str line = str_cut(&text, '\n');
        if (!mount_line_parse(fp->arena, line, &mount.line) ||
            !mount_holds(mount.line.point, folder))
            continue;
        if (best && strlen(mount.line.point) < strlen(best->line.point))
            continue;
        if (!best)
            best = ARENA_NEW(fp->arena, struct fp_mount);
        if (best)
            *best = mount;
    }
    if (!best) {
        fp->mount_na = "no line of /proc/self/mountinfo holds the folder";
        return;
    }
    best->options = arena_printf(fp->arena, "%.*s%s%.*s", STR_FMT(best->line.own),
                                 best->line.super.len ? ";" : "", STR_FMT(best->line.super));
    block_find(fp, best);
    fp->mount = best;
}

struct value fp_storage_folder(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    const char *folder = fp->input->folder ? fp->input->folder : "/";
    char real[PATH_MAX];
    if (host_is_live(fp->host) && realpath(folder, real))
        folder = arena_dup(fp->arena, real);
    return value_text(folder);
}

struct value fp_storage_mount(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    return fp->mount ? value_text(fp->mount->line.point) : value_na(fp->mount_na);
}

struct value fp_storage_device(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    return fp->mount ? value_str(fp->mount->line.source) : value_na(fp->mount_na);
}

struct value fp_storage_fs(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    return fp->mount ? value_str(fp->mount->line.type) : value_na(fp->mount_na);
}

struct value fp_storage_options(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    return fp->mount ? value_text(fp->mount->options) : value_na(fp->mount_na);
}

static struct str disk_name(const struct fp *fp)
{
    struct str uevent;
    if (host_read(fp->host, arena_printf(fp->arena, "%s/uevent", fp->mount->disk), &uevent, NULL) ==
        0)
        while (uevent.len > 0) {
            struct str line = str_cut(&uevent, '\n');
            if (str_starts(line, "DEVNAME="))
                return (struct str){line.data + 8, line.len - 8};
        }
    struct str source = fp->mount->line.source;
    return str_starts(source, "/dev/") ? (struct str){source.data + 5, source.len - 5} : source;
}

static struct value disk_kind(const struct fp *fp)
{
    static const struct {
        const char *prefix, *kind;
    } kinds[] = {
        {"nvme", "NVMe SSD"},
        {"vd", "virtual disk (virtio)"},
        {"xvd", "virtual disk (Xen)"},
        {"dm-", "device mapper"},
        {"md", "software RAID"},
        {"loop", "loop device"},
        {"mmcblk", "SD card or eMMC"},
        {"zram", "memory (zram)"},
        {"ram", "memory (ramdisk)"},
        {"pmem", "persistent memory"},
        {"nbd", "network block device"},
        {"rbd", "network block device"},
    };
    struct str name = disk_name(fp);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (str_starts(name, kinds[i].prefix))
            return value_text(kinds[i].kind);
    uint64_t rotational;
    const char *path = arena_printf(fp->arena, "%s/queue/rotational", fp->mount->disk);
    if (host_read_u64(fp->host, path, &rotational) < 0)
        return value_na_printf(fp->arena, "%s cannot be read", path);
    return value_text(rotational ? "rotating disk" : "SSD");
}

struct value fp_storage_kind(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    static const struct {
        const char *type, *kind;
    } kinds[] = {
        {"tmpfs", "memory"},
        {"ramfs", "memory"},
        {"nfs", "network"},
        {"nfs4", "network"},
        {"cifs", "network"},
        {"smb3", "network"},
        {"ceph", "network"},
        {"9p", "share of the host"},
        {"virtiofs", "share of the host"},
        {"drvfs", "share of the host"},
    };
    if (!fp->mount)
        return value_na(fp->mount_na);
    if (fp->mount->disk)
        return disk_kind(fp);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (str_is(fp->mount->line.type, kinds[i].type))
            return value_text(kinds[i].kind);
    return value_na_printf(fp->arena, "%.*s has no block device of its own that sysfs shows",
                           STR_FMT(fp->mount->line.type));
}

#define NO_BLOCK "the filesystem has no block device that sysfs shows"

struct value fp_storage_model(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (!fp->mount || !fp->mount->disk)
        return value_na(fp->mount ? NO_BLOCK : fp->mount_na);
    struct str model;
    if (host_read(fp->host, arena_printf(fp->arena, "%s/device/model", fp->mount->disk), &model,
                  NULL) < 0)
        return value_na("the device tells no model");
    return value_str(model);
}

struct value fp_storage_scheduler(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (!fp->mount || !fp->mount->disk)
        return value_na(fp->mount ? NO_BLOCK : fp->mount_na);
    struct str text;
    if (host_read(fp->host, arena_printf(fp->arena, "%s/queue/scheduler", fp->mount->disk), &text,
                  NULL) < 0)
        return value_na("the device has no I/O scheduler file");
    struct str rest = text;
    str_cut(&rest, '[');
    struct str chosen = str_cut(&rest, ']');
    return value_str(chosen.len > 0 ? chosen : text);
}

/* arg: "free" or "size". */
struct value fp_storage_space(const struct fp *fp, const struct fp_field *field)
{
    if (!host_is_live(fp->host))
        return fp_not_live();
    struct statvfs st;
    const char *folder = fp->input->folder ? fp->input->folder : "/";
    if (statvfs(folder, &st) < 0)
        return value_na_printf(fp->arena, "statvfs of '%s': %s", folder, strerror(errno));
    uint64_t blocks = strcmp(field->arg, "free") == 0 ? st.f_bavail : st.f_blocks;
    return value_uint(blocks * st.f_frsize, UNIT_BYTES);
}
