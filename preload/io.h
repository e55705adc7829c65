/* What the hooks for I/O share: the functions behind them, what an fd stands for, and how a call
 * is written down.
 *
 *     struct io_call call = io_begin(fd);
 *     r = next_io.read(fd, …);                      libc's own, untouched: errno, EINTR,
 * cancellation IO_END(&call, SYS_read, r);                   after it, in the hook's own frame
 *
 * Nothing is held while the call runs: a signal handler, a cancellation or a longjmp may leave
 * it. All that is read of the program's memory has just been read by the kernel. */
#pragma once

/* The names below are meant as they stand here. */
#undef _FILE_OFFSET_BITS

#include "core.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct statx;

/* What compilers call in their place when they check sizes (_FORTIFY_SOURCE), and what programs
 * of older libcs were linked against; headers may not declare them. */
ssize_t __read_chk(int fd, void *buf, size_t count, size_t size);
ssize_t __pread_chk(int fd, void *buf, size_t count, off_t offset, size_t size);
int __open_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *to, size_t bytes, size_t size);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *to, size_t bytes, size_t size);
ssize_t __recv_chk(int fd, void *buffer, size_t count, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *buffer, size_t count, size_t size, int flags,
                       struct sockaddr *address, socklen_t *len);
int __poll_chk(struct pollfd *fds, nfds_t count, int limit_ms, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                const sigset_t *mask, size_t size);
int __xstat(int version, const char *path, struct stat *to);
int __lxstat(int version, const char *path, struct stat *to);
int __fxstat(int version, int fd, struct stat *to);
int __fxstatat(int version, int dirfd, const char *path, struct stat *to, int flags);

/* What each returns, its name, its arguments. */
#define IO_FUNCTIONS(ROW)                                                                          \
    ROW(ssize_t, read, (int, void *, size_t))                                                      \
    ROW(ssize_t, __read_chk, (int, void *, size_t, size_t))                                        \
    ROW(ssize_t, pread, (int, void *, size_t, off_t))                                              \
    ROW(ssize_t, __pread_chk, (int, void *, size_t, off_t, size_t))                                \
    ROW(ssize_t, readv, (int, const struct iovec *, int))                                          \
    ROW(ssize_t, preadv, (int, const struct iovec *, int, off_t))                                  \
    ROW(ssize_t, preadv2, (int, const struct iovec *, int, off_t, int))                            \
    ROW(ssize_t, write, (int, const void *, size_t))                                               \
    ROW(ssize_t, pwrite, (int, const void *, size_t, off_t))                                       \
    ROW(ssize_t, writev, (int, const struct iovec *, int))                                         \
    ROW(ssize_t, pwritev, (int, const struct iovec *, int, off_t))                                 \
    ROW(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int))                           \
    ROW(off_t, lseek, (int, off_t, int))                                                           \
    ROW(int, fsync, (int))                                                                         \
    ROW(int, fdatasync, (int))                                                                     \
    ROW(int, sync_file_range, (int, off_t, off_t, unsigned))                                       \
    ROW(int, ftruncate, (int, off_t))                                                              \
    ROW(ssize_t, sendfile, (int, int, off_t *, size_t))                                            \
    ROW(ssize_t, splice, (int, off_t *, int, off_t *, size_t, unsigned))                           \
    ROW(ssize_t, copy_file_range, (int, off_t *, int, off_t *, size_t, unsigned))                  \
    ROW(ssize_t, getdents64, (int, void *, size_t))                                                \
    ROW(void *, mmap, (void *, size_t, int, int, int, off_t))                                      \
    ROW(int, open, (const char *, int, ...))                                                       \
    ROW(int, __open_2, (const char *, int))                                                        \
    ROW(int, openat, (int, const char *, int, ...))                                                \
    ROW(int, __openat_2, (int, const char *, int))                                                 \
    ROW(int, creat, (const char *, mode_t))                                                        \
    ROW(int, mkostemp, (char *, int))                                                              \
    ROW(int, mkostemps, (char *, int, int))                                                        \
    ROW(int, close, (int))                                                                         \
    ROW(int, close_range, (unsigned, unsigned, int))                                               \
    ROW(void, closefrom, (int))                                                                    \
    ROW(int, dup, (int))                                                                           \
    ROW(int, dup2, (int, int))                                                                     \
    ROW(int, dup3, (int, int, int))                                                                \
    ROW(int, fcntl, (int, int, ...))                                                               \
    ROW(int, chdir, (const char *))                                                                \
    ROW(int, fchdir, (int))                                                                        \
    ROW(int, prctl, (int, ...))                                                                    \
    ROW(FILE *, fopen, (const char *, const char *))                                               \
    ROW(FILE *, freopen, (const char *, const char *, FILE *))                                     \
    ROW(int, fclose, (FILE *))                                                                     \
    ROW(DIR *, opendir, (const char *))                                                            \
    ROW(int, closedir, (DIR *))                                                                    \
    ROW(int, stat, (const char *, struct stat *))                                                  \
    ROW(int, lstat, (const char *, struct stat *))                                                 \
    ROW(int, fstat, (int, struct stat *))                                                          \
    ROW(int, fstatat, (int, const char *, struct stat *, int))                                     \
    ROW(int, statx, (int, const char *, int, unsigned, struct statx *))                            \
    ROW(int, __xstat, (int, const char *, struct stat *))                                          \
    ROW(int, __lxstat, (int, const char *, struct stat *))                                         \
    ROW(int, __fxstat, (int, int, struct stat *))                                                  \
    ROW(int, __fxstatat, (int, int, const char *, struct stat *, int))                             \
    ROW(int, access, (const char *, int))                                                          \
    ROW(int, faccessat, (int, const char *, int, int))                                             \
    ROW(int, unlink, (const char *))                                                               \
    ROW(int, unlinkat, (int, const char *, int))                                                   \
    ROW(int, rename, (const char *, const char *))                                                 \
    ROW(int, renameat, (int, const char *, int, const char *))                                     \
    ROW(int, renameat2, (int, const char *, int, const char *, unsigned))                          \
    ROW(int, mkdir, (const char *, mode_t))                                                        \
    ROW(int, mkdirat, (int, const char *, mode_t))                                                 \
    ROW(int, rmdir, (const char *))                                                                \
    ROW(int, truncate, (const char *, off_t))                                                      \
    ROW(int, symlink, (const char *, const char *))                                                \
    ROW(int, link, (const char *, const char *))                                                   \
    ROW(ssize_t, readlink, (const char *, char *, size_t))                                         \
    ROW(ssize_t, __readlink_chk, (const char *, char *, size_t, size_t))                           \
    ROW(ssize_t, readlinkat, (int, const char *, char *, size_t))                                  \
    ROW(ssize_t, __readlinkat_chk, (int, const char *, char *, size_t, size_t))                    \
    ROW(int, connect, (int, const struct sockaddr *, socklen_t))                                   \
    ROW(int, accept, (int, struct sockaddr *, socklen_t *))                                        \
    ROW(int, accept4, (int, struct sockaddr *, socklen_t *, int))                                  \
    ROW(int, shutdown, (int, int))                                                                 \
    ROW(ssize_t, send, (int, const void *, size_t, int))                                           \
    ROW(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))     \
    ROW(ssize_t, sendmsg, (int, const struct msghdr *, int))                                       \
    ROW(int, sendmmsg, (int, struct mmsghdr *, unsigned, int))                                     \
    ROW(ssize_t, recv, (int, void *, size_t, int))                                                 \
    ROW(ssize_t, __recv_chk, (int, void *, size_t, size_t, int))                                   \
    ROW(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *))             \
    ROW(ssize_t, __recvfrom_chk,                                                                   \
        (int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *))                        \
    ROW(ssize_t, recvmsg, (int, struct msghdr *, int))                                             \
    ROW(int, recvmmsg, (int, struct mmsghdr *, unsigned, int, struct timespec *))                  \
    ROW(int, poll, (struct pollfd *, nfds_t, int))                                                 \
    ROW(int, __poll_chk, (struct pollfd *, nfds_t, int, size_t))                                   \
    ROW(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))          \
    ROW(int, __ppoll_chk,                                                                          \
        (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t))              \
    ROW(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *))                        \
    ROW(int, pselect,                                                                              \
        (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *))            \
    ROW(int, epoll_wait, (int, struct epoll_event *, int, int))                                    \
    ROW(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *))                 \
    ROW(int, epoll_pwait2,                                                                         \
        (int, struct epoll_event *, int, const struct timespec *, const sigset_t *))

/* NOLINTBEGIN(bugprone-macro-parentheses): how a function is declared cannot stand in them */
struct next_io {
#define IO_MEMBER(type, name, arguments) type(*name) arguments;
    IO_FUNCTIONS(IO_MEMBER)
#undef IO_MEMBER
};
/* NOLINTEND(bugprone-macro-parentheses) */
extern struct next_io next_io;

/* What a hook does while the library is off, or not yet on; `missing` is the answer of a libc
 * that has no such function, or of the moment in which the functions are being looked for. */
#define IO_PASS(name, missing, ...)                                                                \
    do {                                                                                           \
        if (UNLIKELY(!core_io_on)) {                                                               \
            if (UNLIKELY(!next_io.name))                                                           \
                io_resolve();                                                                      \
            return next_io.name ? next_io.name(__VA_ARGS__) : (missing);                           \
        }                                                                                          \
        if (UNLIKELY(!next_io.name))                                                               \
            return (missing);                                                                      \
    } while (0)
/* The kernel itself, where libc adds nothing; -1 and errno as libc's. */
long io_kernel(long number, long a, long b, long c, long d);
#define IO_RAW(number, ...) io_raw_(number, ##__VA_ARGS__, 0, 0, 0, 0)
#define io_raw_(number, a, b, c, d, ...)                                                           \
    io_kernel((number), (long)(a), (long)(b), (long)(c), (long)(d))
long io_missing(void); /* -1, ENOSYS */

/* ---- fds ---- */

enum { IO_FDS = 65536 };
#define IO_NOWHERE UINT64_MAX

enum io_kind { IO_UNKNOWN, IO_FILE, IO_SOCKET, IO_OTHER };

struct io_fd {
    uint64_t number; /* in the table of objects; 0: not told yet */
    uint64_t at;     /* position; IO_NOWHERE: not known */
    uint64_t end;    /* of the transfer before */
    uint32_t flags;  /* enum preload_call_flag: what its calls have in common */
    uint32_t kind;   /* enum io_kind */
};
extern struct io_fd io_fds[IO_FDS];

struct io_address {
    const void *bytes;
    uint32_t len;
};
/* How the program came to it. */
struct io_origin {
    enum preload_origin origin;
    int folder;       /* as in struct io_call */
    const char *path; /* NULL: none */
    int flags;        /* of open() */
    struct io_address peer;
};
/* What the fd is now, told to whyslow; only between core_enter() and core_leave(). */
uint64_t io_fd_tell(int fd, const struct io_origin *origin);
/* A path that was asked for. */
uint64_t io_path_tell(int folder, const char *path);
/* Relative paths begin elsewhere from now on. */
void io_path_moved(void);

static inline struct io_fd *io_fd_at(int fd)
{
    return (unsigned)fd < IO_FDS ? &io_fds[fd] : NULL;
}
static inline uint64_t io_object(uint64_t number, int fd)
{
    return number << PRELOAD_FD_BITS |
           (fd >= 0 && fd < (1 << PRELOAD_FD_BITS) - 1 ? (uint64_t)fd + 1 : 0);
}
/* The number is another's from now on. */
static inline void io_fd_forget(int fd)
{
    struct io_fd *at = io_fd_at(fd);
    if (at)
        __atomic_store_n(&at->number, 0, __ATOMIC_RELAXED);
}

/* ---- calls ---- */

enum io_how {
    IO_MOVES = 1 << 0,  /* the result is a number of bytes */
    IO_PLACED = 1 << 1, /* at `at` */
    IO_ALONG = 1 << 2,  /* at the position of the fd, which goes along */
    IO_SENDS = 1 << 3,  /* to a socket, if it is one */
    IO_RECEIVES = 1 << 4,
    IO_NEW_FD = 1 << 5, /* the result is one */
    IO_ENDS_FD = 1 << 6,
    IO_BY_PATH = 1 << 7, /* `path` is what it is about */
    IO_ACCEPTS = 1 << 8, /* the result is a new fd, but the call is about the one that it has */
};

struct io_call {
    uint64_t start_ns;
    uint64_t number; /* of the fd's object, as it was at the beginning */
    int fd;          /* -1: none */
    uint32_t flags;  /* enum preload_call_flag */
    uint32_t how;    /* enum io_how */
    int open_flags;
    enum preload_origin origin; /* of a new fd */
    uint64_t asked;
    uint64_t at;
    const char *path;
    int folder; /* from which it begins: AT_FDCWD, or an fd */
    struct io_address peer;
    const struct iovec *pieces; /* what was moved, for sockets */
    size_t piece_count;
    int error;
};

static inline struct io_call io_begin(int fd)
{
    const struct io_fd *at = io_fd_at(fd);
    return (struct io_call){
        .start_ns = core_now_ns(),
        .number = at ? __atomic_load_n(&at->number, __ATOMIC_RELAXED) : 0,
        .fd = fd,
    };
}
/* Before what takes the fd away: what it stands for must be known by then. */
struct io_call io_begin_last(int fd);
static inline struct io_call io_begin_path(int folder, const char *path)
{
    return (struct io_call){
        .start_ns = core_now_ns(), .fd = -1, .path = path, .folder = folder, .how = IO_BY_PATH};
}

/* In the hook itself: the stack begins there. */
#define IO_END(call, number, result)                                                               \
    do {                                                                                           \
        struct preload_registers registers_;                                                       \
        int64_t result_ = (int64_t)(result);                                                       \
        (call)->error = result_ < 0 ? errno : 0;                                                   \
        CORE_HERE(&registers_);                                                                    \
        io_end((call), (number), result_, &registers_);                                            \
    } while (0)
void io_end(struct io_call *call, long number, int64_t result,
            const struct preload_registers *registers);

/* One row a call that moves bytes between memory and an fd. */
uint64_t io_iov_bytes(const struct iovec *iov, size_t count);

/* As glibc calls the kernel on this machine. */
#ifndef SYS_access
#define SYS_access SYS_faccessat
#endif
#ifndef SYS_unlink
#define SYS_unlink SYS_unlinkat
#endif
#ifndef SYS_rename
#define SYS_rename SYS_renameat2
#endif
#ifndef SYS_renameat
#define SYS_renameat SYS_renameat2
#endif
#ifndef SYS_mkdir
#define SYS_mkdir SYS_mkdirat
#endif
#ifndef SYS_rmdir
#define SYS_rmdir SYS_unlinkat
#endif
#ifndef SYS_readlink
#define SYS_readlink SYS_readlinkat
#endif
#ifndef SYS_symlink
#define SYS_symlink SYS_symlinkat
#endif
#ifndef SYS_link
#define SYS_link SYS_linkat
#endif
#ifndef SYS_poll
#define SYS_poll SYS_ppoll
#endif
#ifndef SYS_epoll_wait
#define SYS_epoll_wait SYS_epoll_pwait
#endif
#ifndef SYS_creat
#define SYS_creat SYS_openat
#endif
#ifndef SYS_dup2
#define SYS_dup2 SYS_dup3
#endif
