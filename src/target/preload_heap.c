/* The heap library as a file, the memory shared with it, and the variables that say where. */
#include "target/preload_heap.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "target/preload_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Made by tools/embed from preload/; empty where there is no library. */
extern const unsigned char preload_heap_blob[];
extern const size_t preload_heap_blob_bytes;

/* Why it has "libasan.so" in its name is told in preload.c. */
#define LIBRARY_NAME "whyslow-heap-before-libasan.so"

enum { VARIABLES_MAX = 16, WINDOWS_MIN = 1 };

struct preload_heap {
    struct preload_file file;
    struct heap_header *header; /* NULL: none */
    uint32_t windows;           /* that fit */
    int fd;                     /* of the memory: targets open it through our /proc/PID/fd */
    struct map_u64 mapped;      /* window to its address; 0: not mapped */
    char *own[2];               /* LD_PRELOAD and where the memory is */
    const char *variables[VARIABLES_MAX + 1];
};

/* As large as it can be: a limit on files holds for those without a name, too. Ours to raise as
 * far as it goes. */
static int file_size(int fd, uint32_t *ret_windows)
{
    struct rlimit limit, wide;
    bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    if (limited) {
        wide = limit;
        wide.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_FSIZE, &wide);
    }
    int r = -EFBIG;
    for (uint32_t windows = HEAP_WINDOWS_MAX; windows >= WINDOWS_MIN && r < 0; windows /= 2) {
        uint64_t bytes = HEAP_HEADER_BYTES + windows * HEAP_WINDOW_BYTES;
        r = ftruncate(fd, (off_t)bytes) == 0 ? 0 : -errno;
        *ret_windows = windows;
    }
    if (limited)
        setrlimit(RLIMIT_FSIZE, &limit);
    return r;
}

static int memory_make(struct preload_heap *preload, const struct preload_heap_opts *opts,
                       struct why *why)
{
    uint32_t windows = 0;
    preload->fd = memfd_create("whyslow-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r = preload->fd < 0 ? -errno : file_size(preload->fd, &windows);
    if (r == -EFBIG)
        return why_set(why, WHY_DENIED, EFBIG, "raise 'ulimit -f' to unlimited",
                       "the memory shared with the target is larger than files may be here");
    /* A target that cuts it short would end us with SIGBUS. */
    if (r == 0 && fcntl(preload->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        r = -errno;
    if (r < 0)
        return why_errno(why, -r, NULL, "cannot make memory to share with the target");
    void *memory = mmap(NULL, HEAP_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, preload->fd,
                        0);
    if (memory == MAP_FAILED)
        return why_errno(why, errno, "raise 'ulimit -v'",
                         "cannot map the memory shared with the target");
    preload->header = memory;
    preload->windows = windows;
    *preload->header = (struct heap_header){
        .version = HEAP_VERSION,
        .temporary_within = opts->temporary_within,
        .sample_bytes = opts->sample_bytes,
        .log = opts->log,
        .windows_max = windows,
        .start_ns = clock_mono_ns(),
        .magic = HEAP_MAGIC,
    };
    return 0;
}

static const char *value_of(const char *const *variables, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; variables && variables[i]; i++)
        if (strncmp(variables[i], name, len) == 0 && variables[i][len] == '=')
            return variables[i] + len + 1;
    return NULL;
}

const char *const *preload_heap_environment(struct preload_heap *preload, const char *const *others)
{
    const char *before = value_of(others, "LD_PRELOAD");
    if (!before)
        before = getenv("LD_PRELOAD");
    bool more = before && *before;
    free(preload->own[0]);
    if (asprintf(&preload->own[0], "LD_PRELOAD=%s%s%s", preload->file.path, more ? ":" : "",
                 more ? before : "") < 0)
        preload->own[0] = NULL;
    size_t count = 0;
    preload->variables[count++] = preload->own[0] ? preload->own[0] : "LD_PRELOAD=";
    preload->variables[count++] = preload->own[1];
    for (size_t i = 0; others && others[i] && count < VARIABLES_MAX; i++)
        if (strncmp(others[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0)
            preload->variables[count++] = others[i];
    preload->variables[count] = NULL;
    return preload->variables;
}

static int library_place(struct preload_heap *preload, const struct preload_heap_opts *opts,
                         struct why *why)
{
    struct preload_blob blob = {preload_heap_blob, preload_heap_blob_bytes, LIBRARY_NAME};
    if (opts->cache_dir && preload_file_keep(&blob, opts->cache_dir, &preload->file) == 0)
        return 0;
    return preload_file_make(&blob, &preload->file, why);
}

int preload_heap_open(const struct preload_heap_opts *opts, struct preload_heap **ret,
                      struct why *why)
{
    if (preload_heap_blob_bytes == 0)
        return why_set(why, WHY_DENIED, ENOTSUP, "build whyslow on x86_64 or aarch64 with glibc",
                       "this build of whyslow has no heap library for the target");
    struct preload_heap *preload = calloc(1, sizeof(*preload));
    if (!preload)
        return why_nomem(why);
    preload->fd = -1;
    int r = library_place(preload, opts, why);
    if (r == 0)
        r = memory_make(preload, opts, why);
    if (r == 0 && asprintf(&preload->own[1], HEAP_VARIABLE "=/proc/%d/fd/%d", (int)getpid(),
                           preload->fd) < 0) {
        preload->own[1] = NULL;
        r = why_nomem(why);
    }
    if (r < 0) {
        preload_heap_close(preload);
        return r;
    }
    *ret = preload;
    return 0;
}

void preload_heap_share(const struct preload_heap *preload, int pid)
{
    preload_file_share(&preload->file, pid);
}

void preload_heap_close(struct preload_heap *preload)
{
    if (!preload)
        return;
    size_t at = 0;
    uint64_t window, address;
    while (map_u64_next(&preload->mapped, &at, &window, &address))
        if (address)
            munmap((void *)(uintptr_t)address, HEAP_WINDOW_BYTES);
    map_u64_deinit(&preload->mapped);
    if (preload->header) {
        __atomic_store_n(&preload->header->over, 1, __ATOMIC_RELEASE);
        munmap(preload->header, HEAP_HEADER_BYTES);
    }
    fd_close(&preload->fd);
    preload_file_remove(&preload->file);
    free(preload->own[0]);
    free(preload->own[1]);
    free(preload);
}

const char *preload_heap_path(const struct preload_heap *preload)
{
    return preload->file.path;
}

int preload_heap_fd(const struct preload_heap *preload)
{
    return preload->fd;
}

struct heap_header *preload_heap_header(const struct preload_heap *preload)
{
    return preload->header;
}

uint32_t preload_heap_windows_max(const struct preload_heap *preload)
{
    return preload->windows;
}

int preload_heap_window_look(const struct preload_heap *preload, uint32_t window,
                             struct heap_process *ret)
{
    struct heap_process process;
    uint64_t from = HEAP_HEADER_BYTES + window * HEAP_WINDOW_BYTES;
    if (window >= preload->windows ||
        pread(preload->fd, &process, sizeof(process), (off_t)from) != (ssize_t)sizeof(process))
        return -EIO;
    *ret = process;
    return 0;
}

const struct heap_process *preload_heap_window(struct preload_heap *preload, uint32_t window)
{
    uint64_t *address = window < preload->windows ? map_u64_at(&preload->mapped, window, NULL)
                                                  : NULL;
    if (!address)
        return NULL;
    if (*address == 0) {
        uint64_t from = HEAP_HEADER_BYTES + window * HEAP_WINDOW_BYTES;
        void *memory = mmap(NULL, HEAP_WINDOW_BYTES, PROT_READ, MAP_SHARED | MAP_NORESERVE,
                            preload->fd, (off_t)from);
        if (memory == MAP_FAILED)
            return NULL;
        *address = (uintptr_t)memory;
    }
    return (const struct heap_process *)(uintptr_t)*address;
}

void preload_heap_window_done(struct preload_heap *preload, uint32_t window)
{
    uint64_t *address = map_u64_find(&preload->mapped, window);
    if (address && *address) {
        munmap((void *)(uintptr_t)*address, HEAP_WINDOW_BYTES);
        *address = 0;
    }
    if (window >= preload->windows)
        return;
    /* Where it fails the memory comes back at the end. */
    (void)!fallocate(preload->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     (off_t)(HEAP_HEADER_BYTES + window * HEAP_WINDOW_BYTES),
                     (off_t)HEAP_WINDOW_BYTES);
}
