/* What is known about system calls: which argument is what. All others are counted and timed as
 * well, with no object. */
#include "collect/io_kernel_parts.h"

#include <sys/syscall.h>

struct row {
    int number;
    struct io_call call;
};

enum {
    READ = IO_BYTES | IO_READS,
    WRITE = IO_BYTES | IO_WRITES,
    HERE = IO_PLACE_CURRENT,
};

static const struct row rows[] = {
    /* Number, what: fd's argument, bytes asked for, place, path, folder of the path, flags. */
    {SYS_read, {.fd = 1, .asked = 3, .kind = READ | HERE}},
    {SYS_pread64, {.fd = 1, .asked = 3, .place = 4, .kind = READ}},
    {SYS_readv, {.fd = 1, .asked = 2, .kind = READ | HERE | IO_VECTOR}},
    {SYS_preadv, {.fd = 1, .asked = 2, .place = 4, .kind = READ | IO_VECTOR}},
    {SYS_preadv2, {.fd = 1, .asked = 2, .place = 4, .kind = READ | HERE | IO_VECTOR}},
    {SYS_write, {.fd = 1, .asked = 3, .kind = WRITE | HERE}},
    {SYS_pwrite64, {.fd = 1, .asked = 3, .place = 4, .kind = WRITE}},
    {SYS_writev, {.fd = 1, .asked = 2, .kind = WRITE | HERE | IO_VECTOR}},
    {SYS_pwritev, {.fd = 1, .asked = 2, .place = 4, .kind = WRITE | IO_VECTOR}},
    {SYS_pwritev2, {.fd = 1, .asked = 2, .place = 4, .kind = WRITE | HERE | IO_VECTOR}},
    {SYS_recvfrom, {.fd = 1, .asked = 3, .flags = 4, .kind = IO_BYTES | IO_SENDS}},
    {SYS_recvmsg, {.fd = 1, .flags = 3, .kind = IO_BYTES | IO_SENDS}},
    {SYS_recvmmsg, {.fd = 1, .flags = 4, .kind = IO_BYTES | IO_SENDS | IO_MESSAGES}},
    {SYS_sendto, {.fd = 1, .asked = 3, .flags = 4, .kind = WRITE | IO_SENDS}},
    {SYS_sendmsg, {.fd = 1, .flags = 3, .kind = WRITE | IO_SENDS}},
    {SYS_sendmmsg, {.fd = 1, .flags = 4, .kind = WRITE | IO_SENDS | IO_MESSAGES}},
    /* Of two fds the one that is read is the object: bytes would count twice otherwise. */
    {SYS_sendfile, {.fd = 2, .other = 1, .asked = 4, .kind = READ | IO_INSIDE}},
    {SYS_splice, {.fd = 1, .other = 3, .asked = 5, .kind = READ | IO_INSIDE}},
    {SYS_tee, {.fd = 1, .asked = 3, .kind = READ | IO_INSIDE}},
    {SYS_vmsplice, {.fd = 1, .asked = 2, .kind = WRITE | IO_VECTOR | IO_INSIDE}},
    {SYS_copy_file_range, {.fd = 1, .other = 3, .asked = 5, .kind = READ | IO_INSIDE}},
    {SYS_mq_timedsend, {.fd = 1}},
    {SYS_mq_timedreceive, {.fd = 1, .asked = 3, .kind = IO_BYTES}},

    {SYS_fsync, {.fd = 1}},
    {SYS_fdatasync, {.fd = 1}},
    {SYS_sync_file_range, {.fd = 1}},
    {SYS_syncfs, {.fd = 1}},
    {SYS_ftruncate, {.fd = 1}},
    {SYS_fallocate, {.fd = 1}},
    {SYS_fadvise64, {.fd = 1}},
    {SYS_readahead, {.fd = 1, .kind = IO_READS}},
    {SYS_lseek, {.fd = 1}},
    {SYS_fstat, {.fd = 1}},
    {SYS_fstatfs, {.fd = 1}},
    {SYS_getdents64, {.fd = 1, .asked = 3, .kind = READ}},
    {SYS_flock, {.fd = 1}},
    {SYS_fcntl, {.fd = 1, .kind = IO_MODES}},
    {SYS_ioctl, {.fd = 1, .kind = IO_MODES}},
    {SYS_fchmod, {.fd = 1}},
    {SYS_fchown, {.fd = 1}},
    {SYS_fgetxattr, {.fd = 1}},
    {SYS_fsetxattr, {.fd = 1}},
    {SYS_fchdir, {.fd = 1}},
    {SYS_mmap, {.fd = 5}},
    {SYS_close, {.fd = 1, .kind = IO_CLOSES_ONE}},
    {SYS_dup, {.fd = 1}},
    {SYS_dup3, {.fd = 1, .kind = IO_CLOSES}},
#ifdef SYS_close_range
    {SYS_close_range, {.kind = IO_CLOSES}},
#endif

    {SYS_openat, {.path = 2, .folder = 1, .flags = 3, .kind = IO_OPENS}},
    {SYS_openat2, {.path = 2, .folder = 1, .flags = 3, .kind = IO_OPENS | IO_HOW}},
    {SYS_newfstatat, {.path = 2, .folder = 1}},
    {SYS_statx, {.path = 2, .folder = 1}},
    {SYS_faccessat, {.path = 2, .folder = 1}},
    {SYS_faccessat2, {.path = 2, .folder = 1}},
    {SYS_unlinkat, {.path = 2, .folder = 1}},
    {SYS_mkdirat, {.path = 2, .folder = 1}},
    {SYS_mknodat, {.path = 2, .folder = 1}},
    {SYS_renameat2, {.path = 2, .folder = 1, .kind = IO_RENAMES}},
    {SYS_linkat, {.path = 2, .folder = 1}},
    {SYS_symlinkat, {.path = 3, .folder = 2}},
    {SYS_readlinkat, {.path = 2, .folder = 1}},
    {SYS_fchmodat, {.path = 2, .folder = 1}},
    {SYS_fchownat, {.path = 2, .folder = 1}},
    {SYS_utimensat, {.path = 2, .folder = 1}},
    {SYS_mount, {.kind = IO_RENAMES}},
    {SYS_pivot_root, {.kind = IO_RENAMES}},
#ifdef SYS_move_mount
    {SYS_move_mount, {.kind = IO_RENAMES}},
#endif
    {SYS_execve, {.path = 1, .kind = IO_EXECS}},
    {SYS_execveat, {.path = 2, .folder = 1, .kind = IO_EXECS}},
    {SYS_truncate, {.path = 1}},
    {SYS_statfs, {.path = 1}},
    {SYS_chdir, {.path = 1}},
    {SYS_getxattr, {.path = 1}},
    {SYS_lgetxattr, {.path = 1}},
    {SYS_inotify_add_watch, {.path = 2}},
#ifdef SYS_open /* machines of before 2011 have these as well */
    {SYS_open, {.path = 1, .flags = 2, .kind = IO_OPENS}},
    {SYS_creat, {.path = 1, .kind = IO_OPENS | IO_CREATES}},
    {SYS_stat, {.path = 1}},
    {SYS_lstat, {.path = 1}},
    {SYS_access, {.path = 1}},
    {SYS_unlink, {.path = 1}},
    {SYS_rmdir, {.path = 1}},
    {SYS_mkdir, {.path = 1}},
    {SYS_rename, {.path = 1, .kind = IO_RENAMES}},
    {SYS_link, {.path = 1}},
    {SYS_symlink, {.path = 2}},
    {SYS_readlink, {.path = 1}},
    {SYS_chmod, {.path = 1}},
    {SYS_chown, {.path = 1}},
    {SYS_dup2, {.fd = 1, .kind = IO_CLOSES}},
    {SYS_getdents, {.fd = 1, .asked = 3, .kind = READ}},
    {SYS_epoll_wait, {.fd = 1}},
#endif
#ifdef SYS_renameat
    {SYS_renameat, {.path = 2, .folder = 1, .kind = IO_RENAMES}},
#endif
    {SYS_socket, {.kind = IO_OPENS}},
    {SYS_accept, {.fd = 1, .kind = IO_ACCEPTS}},
    {SYS_accept4, {.fd = 1, .kind = IO_ACCEPTS}},
    {SYS_connect, {.fd = 1, .kind = IO_SETTLES}},
    {SYS_bind, {.fd = 1, .kind = IO_SETTLES}},
    {SYS_listen, {.fd = 1, .kind = IO_SETTLES}},
    {SYS_shutdown, {.fd = 1}},
    {SYS_getsockopt, {.fd = 1}},
    {SYS_setsockopt, {.fd = 1}},
    {SYS_getsockname, {.fd = 1}},
    {SYS_getpeername, {.fd = 1}},
    {SYS_epoll_ctl, {.fd = 1}},
    {SYS_epoll_pwait, {.fd = 1}},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, {.fd = 1}},
#endif
    {SYS_memfd_create, {.kind = IO_OPENS}},
    {SYS_io_uring_enter, {.fd = 1, .kind = IO_URING}},
    {SYS_rt_sigreturn, {.kind = IO_NO_RESULT}},
#if defined(__x86_64__)
    /* uretprobe() and uprobe(): how a program on a function comes to run, from Linux 6.11 on. */
    {335, {.kind = IO_OURS}},
    {336, {.kind = IO_OURS}},
#endif
};

void io_calls_fill(struct io_call calls[IO_CALLS_MAX])
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].number >= 0 && rows[i].number < IO_CALLS_MAX)
            calls[rows[i].number] = rows[i].call;
}
