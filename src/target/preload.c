/* The library as a file, the memory shared with it, and the two variables that say where. */
#include "target/preload.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Made by tools/embed from preload/; empty where there is no library. */
extern const unsigned char preload_blob[];
extern const size_t preload_blob_bytes;

/* A program built with AddressSanitizer refuses to run unless the first library's name has
 * "libasan.so" in it. Ours defines nothing that its runtime wants to be first with, so that it
 * may stand before it, but for the name. */
#define LIBRARY_NAME "whyslow-before-libasan.so"

struct preload {
    char folder[PATH_MAX];
    char path[PATH_MAX];
    char *variables[3]; /* the last is NULL */
    char *memory;       /* NULL: none */
    int fd;             /* of the memory: children open it through our /proc/PID/fd */
};

/* The loader maps the file as code: where that is forbidden (noexec) it would complain to the
 * target's stderr, so it is tried here. */
static int library_write(const char *path)
{
    AUTO(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    if (fd < 0)
        return -errno;
    int r = fd_write_all(fd, preload_blob, preload_blob_bytes);
    if (r < 0)
        return r;
    void *code = mmap(NULL, preload_blob_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (code == MAP_FAILED)
        return -errno;
    munmap(code, preload_blob_bytes);
    return 0;
}

static int folder_try(struct preload *preload, const char *parent)
{
    /* What separates the entries of LD_PRELOAD cannot be part of one. */
    if (!parent || parent[0] != '/' || strpbrk(parent, ": $"))
        return -EINVAL;
    int folder = snprintf(preload->folder, sizeof(preload->folder), "%s/whyslow-XXXXXX", parent);
    if (folder < 0 || (size_t)folder + sizeof(LIBRARY_NAME) >= sizeof(preload->folder))
        return -ENAMETOOLONG;
    if (!mkdtemp(preload->folder)) {
        int r = -errno;
        preload->folder[0] = '\0';
        return r;
    }
    memcpy(preload->path, preload->folder, (size_t)folder);
    memcpy(preload->path + folder, "/" LIBRARY_NAME, sizeof("/" LIBRARY_NAME));
    int r = library_write(preload->path);
    /* A child that runs as somebody else must find the library, or its loader complains. The
     * name is not to be guessed, and there is nothing secret in it. */
    if (r == 0 && geteuid() == 0 && chmod(preload->folder, 0711) < 0)
        r = -errno;
    if (r < 0) {
        unlink(preload->path);
        rmdir(preload->folder);
        preload->folder[0] = '\0';
    }
    return r;
}

static int library_place(struct preload *preload, struct why *why)
{
    /* Root's runtime folder is closed to others, among whom children may be. */
    const char *const parents[] = {geteuid() != 0 ? getenv("XDG_RUNTIME_DIR") : NULL,
                                   getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    int r = -ENOENT;
    for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
        int tried = folder_try(preload, parents[i]);
        if (tried == 0)
            return 0;
        if (parents[i])
            r = tried;
    }
    return why_errno(why, -r, "set TMPDIR to a folder of your own that is not mounted noexec",
                     "the library for the target finds no place in $XDG_RUNTIME_DIR, $TMPDIR, "
                     "/tmp, /var/tmp or /dev/shm");
}

static int memory_make(struct preload *preload, struct why *why)
{
    preload->fd = memfd_create("whyslow-preload", MFD_CLOEXEC);
    if (preload->fd < 0 || ftruncate(preload->fd, PRELOAD_BYTES) < 0)
        return why_errno(why, errno, NULL, "cannot make memory to share with the target");
    void *memory = mmap(NULL, PRELOAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, preload->fd, 0);
    if (memory == MAP_FAILED)
        return why_errno(why, errno, "raise 'ulimit -v'",
                         "cannot map the memory shared with the target");
    preload->memory = memory;
    *preload_header(preload) = (struct preload_header){
        .magic = PRELOAD_MAGIC, .version = PRELOAD_VERSION, .bytes = PRELOAD_BYTES};
    return 0;
}

static int variables_make(struct preload *preload, struct why *why)
{
    const char *before = getenv("LD_PRELOAD");
    bool more = before && *before;
    if (asprintf(&preload->variables[0], "LD_PRELOAD=%s%s%s", preload->path, more ? ":" : "",
                 more ? before : "") < 0)
        preload->variables[0] = NULL;
    if (asprintf(&preload->variables[1], PRELOAD_VARIABLE "=/proc/%d/fd/%d", (int)getpid(),
                 preload->fd) < 0)
        preload->variables[1] = NULL;
    return preload->variables[0] && preload->variables[1] ? 0 : why_nomem(why);
}

int preload_open(struct preload **ret, struct why *why)
{
    if (preload_blob_bytes == 0)
        return why_set(why, WHY_DENIED, ENOTSUP, "build whyslow on x86_64 or aarch64 with glibc",
                       "this build of whyslow has no library for the target");
    struct preload *preload = calloc(1, sizeof(*preload));
    if (!preload)
        return why_nomem(why);
    preload->fd = -1;
    int r = library_place(preload, why);
    if (r == 0)
        r = memory_make(preload, why);
    if (r == 0)
        r = variables_make(preload, why);
    if (r < 0) {
        preload_close(preload);
        return r;
    }
    *ret = preload;
    return 0;
}

void preload_close(struct preload *preload)
{
    if (!preload)
        return;
    if (preload->memory) {
        __atomic_store_n(&preload_header(preload)->over, 1, __ATOMIC_RELEASE);
        munmap(preload->memory, PRELOAD_BYTES);
    }
    fd_close(&preload->fd);
    if (preload->folder[0]) {
        unlink(preload->path);
        rmdir(preload->folder);
    }
    free(preload->variables[0]);
    free(preload->variables[1]);
    free(preload);
}

const char *const *preload_environment(const struct preload *preload)
{
    return (const char *const *)preload->variables;
}

const char *preload_path(const struct preload *preload)
{
    return preload->path;
}

struct preload_header *preload_header(const struct preload *preload)
{
    return (struct preload_header *)(void *)preload->memory;
}

struct preload_thread *preload_place(const struct preload *preload, enum preload_family_name family,
                                     size_t index)
{
    if (family == PRELOAD_IO_HOOKS)
        return &preload_io_place(preload, index)->thread;
    return (struct preload_thread *)(void *)(preload->memory + PRELOAD_HEADER_BYTES +
                                             index * sizeof(struct preload_thread));
}

struct preload_io_objects *preload_io_objects(const struct preload *preload)
{
    return (struct preload_io_objects *)(void *)(preload->memory + PRELOAD_IO_OFFSET);
}

struct preload_io_thread *preload_io_place(const struct preload *preload, size_t index)
{
    struct preload_io_objects *objects = preload_io_objects(preload);
    return (struct preload_io_thread *)(void *)(objects + 1) + index;
}
