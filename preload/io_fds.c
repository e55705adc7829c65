/* Where fds come from and where they go. What libc opens inside its own functions is seen where
 * such a function asks the kernel exactly once: fopen(), opendir(), mkstemp(). */
#include "io.h"

#include <stdarg.h>
#include <sys/prctl.h>

#define ALIAS(name) __attribute__((visibility("default"), alias(name)))

static bool has_mode(int flags)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

static struct io_call begin_open(int folder, const char *path, int flags)
{
    struct io_call call = io_begin_path(folder, path);
    call.how = IO_NEW_FD;
    call.origin = PRELOAD_OPENED;
    call.open_flags = flags;
    call.flags = has_mode(flags) ? PRELOAD_CALL_CREATES : 0;
    return call;
}

/* The mode stands where a caller that gives one has put it. */
#define MODE(flags, last)                                                                          \
    mode_t mode = 0;                                                                               \
    if (has_mode(flags)) {                                                                         \
        va_list list;                                                                              \
        va_start(list, last);                                                                      \
        mode = va_arg(list, mode_t);                                                               \
        va_end(list);                                                                              \
    }

EXPORT int open(const char *path, int flags, ...)
{
    MODE(flags, flags)
    IO_PASS(open, (int)IO_RAW(SYS_openat, AT_FDCWD, path, flags, mode), path, flags, mode);
    struct io_call call = begin_open(AT_FDCWD, path, flags);
    int r = next_io.open(path, flags, mode);
    IO_END(&call, SYS_openat, r);
    return r;
}
ALIAS("open") int open64(const char *path, int flags, ...);

EXPORT int __open_2(const char *path, int flags)
{
    IO_PASS(__open_2, (int)io_missing(), path, flags);
    struct io_call call = begin_open(AT_FDCWD, path, flags);
    int r = next_io.__open_2(path, flags);
    IO_END(&call, SYS_openat, r);
    return r;
}
ALIAS("__open_2") int __open64_2(const char *path, int flags);

EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
    MODE(flags, flags)
    IO_PASS(openat, (int)IO_RAW(SYS_openat, dirfd, path, flags, mode), dirfd, path, flags, mode);
    struct io_call call = begin_open(dirfd, path, flags);
    int r = next_io.openat(dirfd, path, flags, mode);
    IO_END(&call, SYS_openat, r);
    return r;
}
ALIAS("openat") int openat64(int dirfd, const char *path, int flags, ...);

EXPORT int __openat_2(int dirfd, const char *path, int flags)
{
    IO_PASS(__openat_2, (int)io_missing(), dirfd, path, flags);
    struct io_call call = begin_open(dirfd, path, flags);
    int r = next_io.__openat_2(dirfd, path, flags);
    IO_END(&call, SYS_openat, r);
    return r;
}
ALIAS("__openat_2") int __openat64_2(int dirfd, const char *path, int flags);

EXPORT int creat(const char *path, mode_t mode)
{
    IO_PASS(creat, (int)io_missing(), path, mode);
    struct io_call call = begin_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC);
    int r = next_io.creat(path, mode);
    IO_END(&call, SYS_creat, r);
    return r;
}
ALIAS("creat") int creat64(const char *path, mode_t mode);

/* Mostly the first name is free: then it is one call. */
EXPORT int mkostemps(char *template, int suffix_len, int flags)
{
    IO_PASS(mkostemps, (int)io_missing(), template, suffix_len, flags);
    struct io_call call = begin_open(AT_FDCWD, template, O_CREAT | O_EXCL | O_RDWR | flags);
    int r = next_io.mkostemps(template, suffix_len, flags);
    IO_END(&call, SYS_openat, r);
    return r;
}
ALIAS("mkostemps") int mkostemps64(char *template, int suffix_len, int flags);

EXPORT int mkostemp(char *template, int flags)
{
    IO_PASS(mkostemp, (int)io_missing(), template, flags);
    struct io_call call = begin_open(AT_FDCWD, template, O_CREAT | O_EXCL | O_RDWR | flags);
    int r = next_io.mkostemp(template, flags);
    IO_END(&call, SYS_openat, r);
    return r;
}
ALIAS("mkostemp") int mkostemp64(char *template, int flags);

EXPORT int mkstemp(char *template)
{
    IO_PASS(mkostemp, (int)io_missing(), template, 0);
    struct io_call call = begin_open(AT_FDCWD, template, O_CREAT | O_EXCL | O_RDWR);
    int r = next_io.mkostemp(template, 0);
    IO_END(&call, SYS_openat, r);
    return r;
}
ALIAS("mkstemp") int mkstemp64(char *template);

EXPORT int close(int fd)
{
    IO_PASS(close, (int)IO_RAW(SYS_close, fd), fd);
    struct io_call call = io_begin_last(fd);
    int r = next_io.close(fd);
    IO_END(&call, SYS_close, r);
    return r;
}

static void forget_range(unsigned first, unsigned last)
{
    for (unsigned fd = first; fd <= last && fd < IO_FDS; fd++)
        io_fd_forget((int)fd);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    IO_PASS(close_range, (int)IO_RAW(SYS_close_range, first, last, flags), first, last, flags);
    struct io_call call = io_begin(-1);
    forget_range(first, last);
    int r = next_io.close_range(first, last, flags);
    IO_END(&call, SYS_close_range, r);
    return r;
}

EXPORT void closefrom(int first)
{
    if (!next_io.closefrom)
        io_resolve();
    forget_range(first < 0 ? 0 : (unsigned)first, IO_FDS - 1);
    if (next_io.closefrom)
        next_io.closefrom(first);
    else
        (void)IO_RAW(SYS_close_range, first < 0 ? 0 : first, ~0u, 0);
}

/* The new fd is looked at when it is used; its position is the old one's, too. */
static void duplicated(int fd, int r)
{
    struct io_fd *known = io_fd_at(fd);
    if (r < 0)
        return;
    io_fd_forget(r);
    if (known && r != fd)
        __atomic_store_n(&known->at, IO_NOWHERE, __ATOMIC_RELAXED);
}

EXPORT int dup(int fd)
{
    IO_PASS(dup, (int)IO_RAW(SYS_dup, fd), fd);
    struct io_call call = io_begin(fd);
    int r = next_io.dup(fd);
    IO_END(&call, SYS_dup, r);
    duplicated(fd, r);
    return r;
}

EXPORT int dup2(int fd, int to)
{
    IO_PASS(dup2, (int)IO_RAW(SYS_dup3, fd, to, 0), fd, to);
    struct io_call call = io_begin(fd);
    int r = next_io.dup2(fd, to);
    IO_END(&call, SYS_dup2, r);
    duplicated(fd, r);
    return r;
}

EXPORT int dup3(int fd, int to, int flags)
{
    IO_PASS(dup3, (int)IO_RAW(SYS_dup3, fd, to, flags), fd, to, flags);
    struct io_call call = io_begin(fd);
    int r = next_io.dup3(fd, to, flags);
    IO_END(&call, SYS_dup3, r);
    duplicated(fd, r);
    return r;
}

/* Not written down: only what it changes is followed. */
EXPORT int fcntl(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *); /* or a number, in the same register */
    va_end(list);
    IO_PASS(fcntl, (int)IO_RAW(SYS_fcntl, fd, command, argument), fd, command, argument);
    int r = next_io.fcntl(fd, command, argument);
    if (r >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC))
        duplicated(fd, r);
    else if (r >= 0 && command == F_SETFL)
        io_fd_forget(fd); /* its flags are others now */
    return r;
}
ALIAS("fcntl") int fcntl64(int fd, int command, ...);

static int stream_flags(const char *mode)
{
    switch (*(const volatile char *)mode) {
    case 'w':
        return O_CREAT | O_TRUNC;
    case 'a':
        return O_CREAT | O_APPEND;
    default:
        return 0;
    }
}

EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
    IO_PASS(fopen, (io_missing(), NULL), path, mode);
    struct io_call call = begin_open(AT_FDCWD, path, 0);
    FILE *stream = next_io.fopen(path, mode);
    int saved = errno;
    if (stream && has_mode(stream_flags(mode)))
        call.flags = PRELOAD_CALL_CREATES;
    int fd = stream ? fileno(stream) : -1;
    errno = saved;
    /* EINVAL: it has not asked the kernel. */
    if (fd >= 0 || (!stream && saved != EINVAL && saved != ENOMEM))
        IO_END(&call, SYS_openat, fd);
    return stream;
}
ALIAS("fopen") FILE *fopen64(const char *restrict path, const char *restrict mode);

EXPORT FILE *freopen(const char *restrict path, const char *restrict mode, FILE *restrict stream)
{
    IO_PASS(freopen, (io_missing(), NULL), path, mode, stream);
    int saved = errno;
    io_fd_forget(fileno(stream));
    errno = saved;
    FILE *r = next_io.freopen(path, mode, stream);
    saved = errno;
    if (r)
        io_fd_forget(fileno(r));
    errno = saved;
    return r;
}
ALIAS("freopen")
FILE *freopen64(const char *restrict path, const char *restrict mode, FILE *restrict stream);

/* What it writes before is stdio's own, but its time is in that of the call. */
EXPORT int fclose(FILE *stream)
{
    IO_PASS(fclose, (int)io_missing(), stream);
    int saved = errno;
    int fd = fileno(stream);
    errno = saved;
    if (fd < 0)
        return next_io.fclose(stream);
    struct io_call call = io_begin_last(fd);
    int r = next_io.fclose(stream);
    IO_END(&call, SYS_close, r);
    return r;
}

EXPORT DIR *opendir(const char *path)
{
    IO_PASS(opendir, (io_missing(), NULL), path);
    struct io_call call = begin_open(AT_FDCWD, path, O_DIRECTORY);
    DIR *folder = next_io.opendir(path);
    int saved = errno;
    int fd = folder ? dirfd(folder) : -1;
    errno = saved;
    IO_END(&call, SYS_openat, fd);
    return folder;
}

EXPORT int closedir(DIR *folder)
{
    IO_PASS(closedir, (int)io_missing(), folder);
    const void *given = folder; /* headers say that it is something; libc bears with nothing */
    __asm__("" : "+r"(given));
    if (!given)
        return next_io.closedir(folder);
    int saved = errno;
    int fd = dirfd(folder);
    errno = saved;
    struct io_call call = io_begin_last(fd);
    int r = next_io.closedir(folder);
    IO_END(&call, SYS_close, r);
    return r;
}

/* Not written down. What a process forbids itself next may be what we would ask. */
EXPORT int prctl(int option, ...)
{
    va_list list;
    va_start(list, option);
    unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long),
                  c = va_arg(list, unsigned long), d = va_arg(list, unsigned long);
    va_end(list);
    /* Then not even the clock may be read. */
    bool strict = (option == PR_SET_SECCOMP && a == 1) ||
                  (option == PR_SET_TSC && a == PR_TSC_SIGSEGV);
    if (strict)
        core_on = core_io_on = false;
    else if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS)
        core_settle();
    if (!next_io.prctl)
        io_resolve();
    if (!next_io.prctl)
        return (int)io_missing();
    return next_io.prctl(option, a, b, c, d);
}
