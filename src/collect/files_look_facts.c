/* What one file is asked: nothing that could wait, nothing that changes it.
 *
 * It is found first (O_PATH opens nothing), then seen to be a regular file, and only then opened:
 * a FIFO or a device would wait, or do something. FIEMAP is asked for extents as they are, without
 * FIEMAP_FLAG_SYNC, which would write the target's dirty pages out. */
#include "base/fd.h"
#include "collect/files_look_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES_BYTES = 32 << 10 };

const char *const fact_keys[FACTS] = {
    "filesystem", "size_bytes", "free_pct", "extents", "folder_entries",
};

/* As the kernel gives them; libc has a name for it only in some versions. */
struct folder_entry {
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

const char *look_error(int error, char *buffer, size_t size)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return "it is not there any more";
    case EACCES:
        return "not permitted";
    case ELOOP:
        return "a link stands in its way now";
    case ENOSYS:
        return "it takes openat2(), which Linux has since 5.6";
    case EWOULDBLOCK:
        return "somebody holds a lease on it";
    default:
        return strerror_r(error, buffer, size);
    }
}

const char *look_forbidden(const struct view_mount *mount)
{
    if (mount->flags & FILESYSTEM_NETWORK)
        return "a network file system: it is not asked, since it may not answer";
    if (mount->flags & FILESYSTEM_SILENT)
        return "another program serves this file system: it is not asked, since it may not answer";
    if (mount->flags & FILESYSTEM_MADE_UP)
        return "the kernel makes this file up";
    return NULL;
}

static void na_set(struct file_facts *facts, unsigned from, const char *reason)
{
    for (unsigned i = from; i < FACTS; i++)
        snprintf(facts->na[i], sizeof(facts->na[i]), "%s", reason);
}

static void na_one(struct file_facts *facts, enum fact fact, const char *reason)
{
    snprintf(facts->na[fact], sizeof(facts->na[fact]), "%s", reason);
}

bool folder_of(struct str path, char *buffer, size_t size)
{
    const char *slash = memrchr(path.data, '/', path.len);
    size_t len = slash ? (size_t)(slash - path.data) : 0;
    if (!slash || len >= size || size < 2)
        return false;
    memcpy(buffer, len > 0 ? path.data : "/", len > 0 ? len : 1);
    buffer[len > 0 ? len : 1] = '\0';
    return true;
}

size_t fiemap_bytes(void)
{
    return sizeof(struct fiemap) + FILES_LOOK_EXTENTS_MAX * sizeof(struct fiemap_extent);
}

/* A file system splits what lies in one piece, for reasons of its own; what is not on the device
 * yet lies nowhere. */
void extents_count(const struct fiemap *fiemap, struct file_facts *ret)
{
    uint64_t next = 0, unplaced = 0;
    uint32_t count = MIN(fiemap->fm_mapped_extents, (uint32_t)FILES_LOOK_EXTENTS_MAX);
    bool last = count < FILES_LOOK_EXTENTS_MAX;
    ret->extents = ret->fragments = ret->shared_extents = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct fiemap_extent *extent = &fiemap->fm_extents[i];
        last = last || extent->fe_flags & FIEMAP_EXTENT_LAST;
        if (extent->fe_flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC)) {
            unplaced++;
            continue;
        }
        ret->extents++;
        ret->shared_extents += (extent->fe_flags & FIEMAP_EXTENT_SHARED) != 0;
        /* Within the file system's own blocks there is no place to compare. */
        if (extent->fe_flags & FIEMAP_EXTENT_NOT_ALIGNED || ret->fragments == 0 ||
            extent->fe_physical != next)
            ret->fragments++;
        next = extent->fe_physical + extent->fe_length;
    }
    ret->extents_more = !last;
    if (unplaced > 0 && ret->extents == 0)
        na_one(ret, FACT_EXTENTS, "it is not on the device yet");
}

static void extents_look(int path_fd, struct fiemap *fiemap, struct file_facts *ret)
{
    char link[64], words[128];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
    int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    /* O_NOATIME is for the owner; without it nothing changes either, as nothing is read. */
    AUTO(fd_close) int fd = open(link, flags | O_NOATIME);
    if (fd < 0 && errno == EPERM)
        fd = open(link, flags);
    if (fd < 0) {
        na_one(ret, FACT_EXTENTS, look_error(errno, words, sizeof(words)));
        return;
    }
    memset(fiemap, 0, sizeof(*fiemap));
    fiemap->fm_length = FIEMAP_MAX_OFFSET;
    fiemap->fm_extent_count = FILES_LOOK_EXTENTS_MAX;
    if (ioctl(fd, FS_IOC_FIEMAP, fiemap) == 0)
        extents_count(fiemap, ret);
    else if (errno == EOPNOTSUPP || errno == ENOTTY || errno == EINVAL)
        snprintf(ret->na[FACT_EXTENTS], sizeof(ret->na[FACT_EXTENTS]),
                 "%.*s does not tell where a file lies", (int)MIN(ret->mount->type.len, (size_t)32),
                 ret->mount->type.data);
    else
        na_one(ret, FACT_EXTENTS, look_error(errno, words, sizeof(words)));
}

static void space_look(int path_fd, struct file_facts *ret)
{
    struct statfs space;
    char words[128];
    if (fstatfs(path_fd, &space) < 0) {
        na_one(ret, FACT_FREE, look_error(errno, words, sizeof(words)));
        return;
    }
    if (space.f_blocks <= 0) {
        na_one(ret, FACT_FREE, "the file system has no size of its own");
        return;
    }
    uint64_t block = space.f_bsize > 0 ? (uint64_t)space.f_bsize : 1;
    ret->free_bytes = (uint64_t)space.f_bavail * block;
    ret->free_permille = (uint64_t)((double)space.f_bavail / (double)space.f_blocks * 1000 + 0.5);
}

/* -errno where the folder cannot be read without a trace. */
static int entries_count(const struct view *view, const char *path, uint64_t *ret, bool *ret_more)
{
    uint64_t count = 0;
    char bytes[ENTRIES_BYTES] __attribute__((aligned(8)));
    AUTO(fd_close)
    int fd = view_open(view, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_NOATIME);
    if (fd < 0)
        return fd;
    /* Each round gives at least one entry. */
    while (count <= FILES_LOOK_ENTRIES_MAX) {
        long got = syscall(SYS_getdents64, fd, bytes, sizeof(bytes));
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        for (long at = 0; at < got;) {
            const struct folder_entry *entry = (const void *)(bytes + at);
            at += entry->bytes;
            count += strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0;
        }
    }
    *ret_more = count > FILES_LOOK_ENTRIES_MAX;
    *ret = MIN(count, (uint64_t)FILES_LOOK_ENTRIES_MAX);
    return 0;
}

int folder_count(const struct view *view, const char *path, struct counted_folders *counted,
                 uint64_t *ret, bool *ret_more)
{
    char key[4096 + 32];
    struct counted_folder folder = {0};
    uint32_t id;
    bool fresh;
    /* The same path is another folder to other eyes. */
    int len = snprintf(key, sizeof(key), "%" PRIx64 " %s %s", view->space, view->root, path);
    if (len < 0 || (size_t)len >= sizeof(key))
        return -ENAMETOOLONG;
    if (VEC_RESERVE(&counted->list, counted->list.len + 1) < 0 ||
        intern_add(&counted->keys, (struct str){key, (size_t)len}, &id, &fresh) < 0)
        return -ENOMEM;
    if (fresh) {
        folder.error = entries_count(view, path, &folder.entries, &folder.more);
        counted->list.data[counted->list.len++] = folder;
    }
    folder = counted->list.data[id - 1];
    if (folder.error < 0)
        return folder.error;
    *ret = folder.entries;
    *ret_more = folder.more;
    return 0;
}

void counted_folders_deinit(struct counted_folders *counted)
{
    intern_deinit(&counted->keys);
    VEC_FREE(&counted->list);
}

static void folder_look(const struct view *view, const char *path, struct counted_folders *counted,
                        struct file_facts *ret)
{
    char folder[4096], words[128];
    int r = folder_of(str_from(path), folder, sizeof(folder)) ? 0 : -ENAMETOOLONG;
    if (r == 0)
        r = folder_count(view, folder, counted, &ret->folder_entries, &ret->folder_entries_more);
    if (r == -EPERM)
        na_one(ret, FACT_FOLDER, "to read it as somebody else would change its access time");
    else if (r < 0)
        na_one(ret, FACT_FOLDER, look_error(-r, words, sizeof(words)));
}

/* Of an overlay the kernel's number of a file is not the one that is shown. */
static bool is_same(const struct looked_file *file, const struct stat *status, uint32_t flags)
{
    return file->inode == 0 || flags & FILESYSTEM_OVERLAY ||
           (uint32_t)file->inode == (uint32_t)status->st_ino;
}

void file_look(const struct view *view, const struct looked_file *file,
               struct counted_folders *counted, struct fiemap *fiemap, struct file_facts *ret)
{
    struct stat status;
    char words[128];
    *ret = (struct file_facts){.mount = view_mount_of(view, file->path)};
    if (!ret->mount) {
        na_set(ret, FACT_FILESYSTEM, "no mount is known that holds it");
        return;
    }
    const char *forbidden = look_forbidden(ret->mount);
    if (forbidden) {
        na_set(ret, FACT_SIZE, forbidden);
        return;
    }
    AUTO(fd_close) int fd = view_open(view, file->path, O_PATH);
    if (fd < 0 || fstat(fd, &status) < 0) {
        na_set(ret, FACT_SIZE, look_error(fd < 0 ? -fd : errno, words, sizeof(words)));
        return;
    }
    if (!S_ISREG(status.st_mode)) {
        na_set(ret, FACT_SIZE, "no regular file stands there now");
        return;
    }
    if (!is_same(file, &status, ret->mount->flags)) {
        na_set(ret, FACT_SIZE, "another file stands there now");
        return;
    }
    ret->size_bytes = (uint64_t)status.st_size;
    ret->allocated_bytes = (uint64_t)status.st_blocks * 512;
    space_look(fd, ret);
    extents_look(fd, fiemap, ret);
    folder_look(view, file->path, counted, ret);
}
