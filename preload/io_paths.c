/* Calls about files by their names. */
#include "io.h"

#define ALIAS(name) __attribute__((visibility("default"), alias(name)))

/* One that returns 0, -1 or a length; `path`, from `folder`, is what it is about. */
#define BY_PATH(type, name, number, folder, path, parameters, ...)                                 \
    EXPORT type name parameters                                                                    \
    {                                                                                              \
        IO_PASS(name, (type)io_missing(), __VA_ARGS__);                                            \
        struct io_call call = io_begin_path(folder, path);                                         \
        type r = next_io.name(__VA_ARGS__);                                                        \
        IO_END(&call, number, r);                                                                  \
        return r;                                                                                  \
    }

/* NOLINTBEGIN(bugprone-macro-parentheses) */
BY_PATH(int, stat, SYS_newfstatat, AT_FDCWD, path,
        (const char *restrict path, struct stat *restrict to), path, to)
ALIAS("stat") int stat64(const char *restrict path, struct stat64 *restrict to);
BY_PATH(int, lstat, SYS_newfstatat, AT_FDCWD, path,
        (const char *restrict path, struct stat *restrict to), path, to)
ALIAS("lstat") int lstat64(const char *restrict path, struct stat64 *restrict to);
BY_PATH(int, __xstat, SYS_newfstatat, AT_FDCWD, path,
        (int version, const char *path, struct stat *to), version, path, to)
ALIAS("__xstat") int __xstat64(int version, const char *path, struct stat64 *to);
BY_PATH(int, __lxstat, SYS_newfstatat, AT_FDCWD, path,
        (int version, const char *path, struct stat *to), version, path, to)
ALIAS("__lxstat") int __lxstat64(int version, const char *path, struct stat64 *to);
BY_PATH(int, __fxstatat, SYS_newfstatat, dirfd, path,
        (int version, int dirfd, const char *path, struct stat *to, int flags), version, dirfd,
        path, to, flags)
ALIAS("__fxstatat")
int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *to, int flags);
BY_PATH(int, access, SYS_access, AT_FDCWD, path, (const char *path, int mode), path, mode)
BY_PATH(int, faccessat, SYS_faccessat, dirfd, path,
        (int dirfd, const char *path, int mode, int flags), dirfd, path, mode, flags)
BY_PATH(int, unlink, SYS_unlink, AT_FDCWD, path, (const char *path), path)
BY_PATH(int, unlinkat, SYS_unlinkat, dirfd, path, (int dirfd, const char *path, int flags), dirfd,
        path, flags)
BY_PATH(int, rename, SYS_rename, AT_FDCWD, path, (const char *path, const char *to), path, to)
BY_PATH(int, renameat, SYS_renameat, dirfd, path,
        (int dirfd, const char *path, int to_dirfd, const char *to), dirfd, path, to_dirfd, to)
BY_PATH(int, renameat2, SYS_renameat2, dirfd, path,
        (int dirfd, const char *path, int to_dirfd, const char *to, unsigned flags), dirfd, path,
        to_dirfd, to, flags)
BY_PATH(int, mkdir, SYS_mkdir, AT_FDCWD, path, (const char *path, mode_t mode), path, mode)
BY_PATH(int, mkdirat, SYS_mkdirat, dirfd, path, (int dirfd, const char *path, mode_t mode), dirfd,
        path, mode)
BY_PATH(int, rmdir, SYS_rmdir, AT_FDCWD, path, (const char *path), path)
BY_PATH(int, truncate, SYS_truncate, AT_FDCWD, path, (const char *path, off_t length), path, length)
ALIAS("truncate") int truncate64(const char *path, off_t length);
BY_PATH(int, symlink, SYS_symlink, AT_FDCWD, path, (const char *target, const char *path), target,
        path)
BY_PATH(int, link, SYS_link, AT_FDCWD, path, (const char *path, const char *to), path, to)
BY_PATH(ssize_t, readlink, SYS_readlink, AT_FDCWD, path,
        (const char *restrict path, char *restrict to, size_t bytes), path, to, bytes)
BY_PATH(ssize_t, __readlink_chk, SYS_readlink, AT_FDCWD, path,
        (const char *restrict path, char *restrict to, size_t bytes, size_t size), path, to, bytes,
        size)
BY_PATH(ssize_t, readlinkat, SYS_readlinkat, dirfd, path,
        (int dirfd, const char *restrict path, char *restrict to, size_t bytes), dirfd, path, to,
        bytes)
BY_PATH(ssize_t, __readlinkat_chk, SYS_readlinkat, dirfd, path,
        (int dirfd, const char *restrict path, char *restrict to, size_t bytes, size_t size), dirfd,
        path, to, bytes, size)
/* NOLINTEND(bugprone-macro-parentheses) */

/* With an empty path it is about the fd. */
static struct io_call begin_at(int dirfd, const char *path, int flags)
{
    return flags & AT_EMPTY_PATH && dirfd >= 0 && (!path || !*(const volatile char *)path)
               ? io_begin(dirfd)
               : io_begin_path(dirfd, path);
}

EXPORT int fstatat(int dirfd, const char *restrict path, struct stat *restrict to, int flags)
{
    IO_PASS(fstatat, (int)io_missing(), dirfd, path, to, flags);
    struct io_call call = begin_at(dirfd, path, flags);
    int r = next_io.fstatat(dirfd, path, to, flags);
    IO_END(&call, SYS_newfstatat, r);
    return r;
}
ALIAS("fstatat")
int fstatat64(int dirfd, const char *restrict path, struct stat64 *restrict to, int flags);

EXPORT int statx(int dirfd, const char *restrict path, int flags, unsigned mask,
                 struct statx *restrict to)
{
    IO_PASS(statx, (int)io_missing(), dirfd, path, flags, mask, to);
    struct io_call call = begin_at(dirfd, path, flags);
    int r = next_io.statx(dirfd, path, flags, mask, to);
    IO_END(&call, SYS_statx, r);
    return r;
}

EXPORT int fstat(int fd, struct stat *to)
{
    IO_PASS(fstat, (int)IO_RAW(SYS_fstat, fd, to), fd, to);
    struct io_call call = io_begin(fd);
    int r = next_io.fstat(fd, to);
    IO_END(&call, SYS_fstat, r);
    return r;
}
ALIAS("fstat") int fstat64(int fd, struct stat64 *to);

EXPORT int __fxstat(int version, int fd, struct stat *to)
{
    IO_PASS(__fxstat, (int)io_missing(), version, fd, to);
    struct io_call call = io_begin(fd);
    int r = next_io.__fxstat(version, fd, to);
    IO_END(&call, SYS_fstat, r);
    return r;
}
ALIAS("__fxstat") int __fxstat64(int version, int fd, struct stat64 *to);

/* Not written down: only what it changes is followed. */
EXPORT int chdir(const char *path)
{
    IO_PASS(chdir, (int)IO_RAW(SYS_chdir, path), path);
    io_path_moved();
    return next_io.chdir(path);
}

EXPORT int fchdir(int fd)
{
    IO_PASS(fchdir, (int)IO_RAW(SYS_fchdir, fd), fd);
    io_path_moved();
    return next_io.fchdir(fd);
}
