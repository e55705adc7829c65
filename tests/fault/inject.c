/* Preloaded into a program to make its Nth allocation, open, write or sync fail.
 *
 *     FAULT_KIND=malloc|open|write|sync FAULT_AT=N [FAULT_STICKY=1] FAULT_MARK=FILE
 *
 * Sticky faults go on from there, as a full disk does. FILE appears when a
 * fault has happened: a loop over N ends when it does not. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Our functions are called inject_NAME in C and NAME to the linker; what they
 * stand in front of is reached through glibc's inner names and system calls. */
#define SYMBOL(name) __asm__(#name)

void *real_malloc(size_t size) SYMBOL(__libc_malloc);
void *real_calloc(size_t count, size_t size) SYMBOL(__libc_calloc);
void *real_realloc(void *old, size_t size) SYMBOL(__libc_realloc);

void *inject_malloc(size_t size) SYMBOL(malloc);
void *inject_calloc(size_t count, size_t size) SYMBOL(calloc);
void *inject_realloc(void *old, size_t size) SYMBOL(realloc);
int inject_open(const char *path, int flags, ...) SYMBOL(open);
int inject_open64(const char *path, int flags, ...) SYMBOL(open64);
int inject_openat(int folder, const char *path, int flags, ...) SYMBOL(openat);
int inject_openat64(int folder, const char *path, int flags, ...) SYMBOL(openat64);
ssize_t inject_write(int fd, const void *data, size_t len) SYMBOL(write);
ssize_t inject_pwrite(int fd, const void *data, size_t len, off64_t at) SYMBOL(pwrite);
ssize_t inject_pwrite64(int fd, const void *data, size_t len, off64_t at) SYMBOL(pwrite64);
int inject_fsync(int fd) SYMBOL(fsync);
int inject_fdatasync(int fd) SYMBOL(fdatasync);

static enum { KIND_NONE, KIND_MALLOC, KIND_OPEN, KIND_WRITE, KIND_SYNC } kind;
static long countdown;
static bool sticky;
static const char *mark;

__attribute__((constructor)) static void inject_start(void)
{
    const char *name = getenv("FAULT_KIND"), *at = getenv("FAULT_AT");
    if (!name || !at)
        return;
    countdown = strtol(at, NULL, 10);
    sticky = getenv("FAULT_STICKY") != NULL;
    mark = getenv("FAULT_MARK");
    kind = strcmp(name, "malloc") == 0  ? KIND_MALLOC
           : strcmp(name, "open") == 0  ? KIND_OPEN
           : strcmp(name, "write") == 0 ? KIND_WRITE
                                        : KIND_SYNC;
}

/* Only system calls in here: anything else might come back to us. */
static bool fails(int which)
{
    if ((int)kind != which)
        return false;
    countdown--;
    if (countdown > 0 || (countdown < 0 && !sticky))
        return false;
    if (mark)
        syscall(SYS_close, (int)syscall(SYS_openat, AT_FDCWD, mark, O_CREAT | O_WRONLY, 0600));
    return true;
}

void *inject_malloc(size_t size)
{
    if (fails(KIND_MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    return real_malloc(size);
}

void *inject_calloc(size_t count, size_t size)
{
    if (fails(KIND_MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    return real_calloc(count, size);
}

void *inject_realloc(void *old, size_t size)
{
    if (fails(KIND_MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    return real_realloc(old, size);
}

static int do_open(int folder, const char *path, int flags, mode_t mode)
{
    if (fails(KIND_OPEN)) {
        errno = EMFILE;
        return -1;
    }
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;                    \
        va_end(args);                                                                              \
        return do_open(AT_FDCWD, path, flags, mode);                                               \
    }
#define OPENAT(name)                                                                               \
    int name(int folder, const char *path, int flags, ...)                                         \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;                    \
        va_end(args);                                                                              \
        return do_open(folder, path, flags, mode);                                                 \
    }
OPEN(inject_open)
OPEN(inject_open64)
OPENAT(inject_openat)
OPENAT(inject_openat64)

/* Standard output and error still work: a program must be able to say why. */
static bool write_fails(int fd)
{
    if (fd <= 2 || !fails(KIND_WRITE))
        return false;
    errno = ENOSPC;
    return true;
}

ssize_t inject_write(int fd, const void *data, size_t len)
{
    return write_fails(fd) ? -1 : syscall(SYS_write, fd, data, len);
}

ssize_t inject_pwrite(int fd, const void *data, size_t len, off64_t at)
{
    return write_fails(fd) ? -1 : syscall(SYS_pwrite64, fd, data, len, at);
}

ssize_t inject_pwrite64(int fd, const void *data, size_t len, off64_t at)
{
    return write_fails(fd) ? -1 : syscall(SYS_pwrite64, fd, data, len, at);
}

static int do_sync(int fd, long call)
{
    if (fails(KIND_SYNC)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(call, fd);
}

int inject_fsync(int fd)
{
    return do_sync(fd, SYS_fsync);
}

int inject_fdatasync(int fd)
{
    return do_sync(fd, SYS_fdatasync);
}
