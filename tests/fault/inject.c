/* Preloaded into a program to make its Nth allocation, open, write or sync fail.
 *
 *     FAULT_KIND=malloc|open|write|sync FAULT_AT=N [FAULT_STICKY=1] FAULT_MARK=FILE
 *
 * Sticky faults go on from there, as a full disk does. FILE appears when a
 * fault has happened: a loop over N ends when it does not. */
/* Both spellings of open and pwrite are wanted, not one under two names. */
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* glibc's own, behind the names we take over. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

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

void *malloc(size_t size)
{
    if (fails(KIND_MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (fails(KIND_MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (fails(KIND_MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(old, size);
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
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* Standard output and error still work: a program must be able to say why. */
static bool write_fails(int fd)
{
    if (fd <= 2 || !fails(KIND_WRITE))
        return false;
    errno = ENOSPC;
    return true;
}

ssize_t write(int fd, const void *data, size_t len)
{
    return write_fails(fd) ? -1 : syscall(SYS_write, fd, data, len);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
    return write_fails(fd) ? -1 : syscall(SYS_pwrite64, fd, data, len, at);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
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

int fsync(int fd)
{
    return do_sync(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return do_sync(fd, SYS_fdatasync);
}
