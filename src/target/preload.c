/* The library as a file, the memory shared with it, and the two variables that say where. */
#include "target/preload.h"

#include "base/fd.h"
#include "target/preload_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Made by tools/embed from preload/; empty where there is no library. */
extern const unsigned char preload_blob[];
extern const size_t preload_blob_bytes;

/* A program built with AddressSanitizer refuses to run unless the first library's name has
 * "libasan.so" in it. Ours defines nothing that its runtime wants to be first with, so that it
 * may stand before it, but for the name. */
#define LIBRARY_NAME "whyslow-before-libasan.so"

struct preload {
    struct preload_file file;
    char *variables[3]; /* the last is NULL */
    char *memory;       /* NULL: none */
    int fd;             /* of the memory: children open it through our /proc/PID/fd */
};

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
    if (asprintf(&preload->variables[0], "LD_PRELOAD=%s%s%s", preload->file.path, more ? ":" : "",
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
    struct preload_blob blob = {preload_blob, preload_blob_bytes, LIBRARY_NAME};
    int r = preload_file_make(&blob, &preload->file, why);
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

void preload_share(const struct preload *preload, int pid)
{
    preload_file_share(&preload->file, pid);
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
    preload_file_remove(&preload->file);
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
    return preload->file.path;
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
