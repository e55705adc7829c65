/* Where a library may lie so that the loader takes it, and nobody else can change it. */
#include "target/preload_file.h"

#include "base/fd.h"
#include "base/sha256.h"
#include "base/temporary.h"
#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The loader maps the file as code: where that is forbidden (noexec) it would complain to the
 * target's stderr, so it is tried here. */
static int code_try(int fd, const struct preload_blob *blob)
{
    void *code = mmap(NULL, blob->len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (code == MAP_FAILED)
        return -errno;
    munmap(code, blob->len);
    return 0;
}

static int library_write(const char *path, const struct preload_blob *blob)
{
    AUTO(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    if (fd < 0)
        return -errno;
    if (fchmod(fd, 0755) < 0) /* not what our umask makes of it */
        return -errno;
    int r = fd_write_all(fd, blob->bytes, blob->len);
    return r < 0 ? r : code_try(fd, blob);
}

/* What separates the entries of LD_PRELOAD cannot be part of one. */
static bool is_for_loader(const char *folder)
{
    return folder && folder[0] == '/' && !strpbrk(folder, ": $");
}

static int folder_try(struct preload_file *file, const char *parent,
                      const struct preload_blob *blob)
{
    if (!is_for_loader(parent))
        return -EINVAL;
    /* Who can rename our folder can put another library in its place. */
    if (access(parent, F_OK) == 0 && !trust_path(parent))
        return -EPERM;
    int r = temporary_folder_in(parent, file->folder);
    if (r < 0) {
        file->folder[0] = '\0';
        return r;
    }
    int n = snprintf(file->path, sizeof(file->path), "%s/%s", file->folder, blob->name);
    r = n < 0 || (size_t)n >= sizeof(file->path) ? -ENAMETOOLONG : library_write(file->path, blob);
    /* A child that runs as somebody else must find the library, or its loader complains. The
     * name is not to be guessed, and there is nothing secret in it. */
    if (r == 0 && geteuid() == 0 && chmod(file->folder, 0711) < 0)
        r = -errno;
    if (r < 0)
        preload_file_remove(file);
    return r;
}

int preload_file_make(const struct preload_blob *blob, struct preload_file *ret, struct why *why)
{
    /* Root's runtime folder is closed to others, among whom children may be. */
    const char *const parents[] = {geteuid() != 0 ? getenv("XDG_RUNTIME_DIR") : NULL,
                                   trust_temporary(), "/tmp", "/var/tmp", "/dev/shm"};
    int r = -ENOENT;
    for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
        int tried = folder_try(ret, parents[i], blob);
        if (tried == 0)
            return 0;
        if (parents[i])
            r = tried;
    }
    return why_errno(why, -r, "set TMPDIR to a folder of your own that is not mounted noexec",
                     "the library for the target finds no place in $XDG_RUNTIME_DIR, $TMPDIR, "
                     "/tmp, /var/tmp or /dev/shm");
}

/* Only we can change what lies there, or rename the folder or one on the way. Root's programs may
 * become somebody else, who must be able to read it, and trust every folder, too. */
static bool folder_is_safe(const char *folder)
{
    char path[PATH_MAX];
    struct stat st;
    if (!trust_path(folder) || !realpath(folder, path))
        return false;
    if (geteuid() != 0)
        return stat(path, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 022) == 0;
    for (char *end = path + strlen(path);; end = strrchr(path, '/')) {
        *end = '\0';
        if (stat(path[0] ? path : "/", &st) < 0 || st.st_uid != 0 || (st.st_mode & 022) != 0 ||
            (st.st_mode & 001) == 0)
            return false;
        if (!path[0])
            return true;
    }
}

/* The file that is there is ours to the byte. */
static bool file_holds(int fd, const struct preload_blob *blob)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022) != 0 || (st.st_mode & 0555) != 0555 || st.st_size < 0 ||
        (uint64_t)st.st_size != blob->len)
        return false;
    char part[65536];
    for (size_t at = 0; at < blob->len;) {
        ssize_t n = pread(fd, part, MIN(sizeof(part), blob->len - at), (off_t)at);
        if (n <= 0 || memcmp(part, blob->bytes + at, (size_t)n) != 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static int file_check(const char *path, const struct preload_blob *blob)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return file_holds(fd, blob) ? code_try(fd, blob) : -ESTALE;
}

int preload_file_keep(const struct preload_blob *blob, const char *cache_dir,
                      struct preload_file *ret)
{
    char hash_text[SHA256_TEXT_BYTES], fresh[PATH_MAX];
    struct sha256 hash;
    if (!is_for_loader(cache_dir) || !folder_is_safe(cache_dir))
        return -EPERM;
    sha256_init(&hash);
    sha256_add(&hash, blob->bytes, blob->len);
    sha256_finish(&hash, hash_text);
    int n = snprintf(ret->path, sizeof(ret->path), "%s/%s-%s", cache_dir, hash_text, blob->name);
    ret->folder[0] = '\0';
    if (n < 0 || (size_t)n >= sizeof(ret->path))
        return -ENAMETOOLONG;
    if (file_check(ret->path, blob) == 0)
        return 0;
    n = snprintf(fresh, sizeof(fresh), "%s/%s", cache_dir, hash_text);
    if (n < 0 || (size_t)n >= sizeof(fresh) - 16)
        return -ENAMETOOLONG;
    temporary_sweep_beside(fresh, "");
    snprintf(fresh + n, sizeof(fresh) - (size_t)n, ".%d", (int)getpid());
    int r = library_write(fresh, blob);
    if (r == 0 && rename(fresh, ret->path) < 0)
        r = -errno;
    if (r < 0)
        unlink(fresh);
    return r < 0 ? r : file_check(ret->path, blob);
}

void preload_file_share(const struct preload_file *file, int pid)
{
    if (file->folder[0])
        temporary_share(file->folder, pid);
}

void preload_file_remove(struct preload_file *file)
{
    if (!file->folder[0])
        return;
    temporary_remove(file->folder);
    file->folder[0] = '\0';
}
