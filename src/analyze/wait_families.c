/* System calls by what a thread that blocks in them waits for. By name, since numbers differ from
 * machine to machine and a recording is read anywhere. */
#include "analyze/wait_parts.h"

#include <string.h>

static const struct {
    enum wait_family family;
    const char *names; /* separated by blanks */
} calls[] = {
    {FAMILY_FUTEX, "futex futex_wait futex_waitv"},
    {FAMILY_SLEEP, "nanosleep clock_nanosleep"},
    {FAMILY_EPOLL, "epoll_wait epoll_pwait epoll_pwait2 epoll_wait_old"},
    {FAMILY_POLL, "poll ppoll select pselect6"},
    {FAMILY_SIGNAL, "pause rt_sigsuspend rt_sigtimedwait"},
    {FAMILY_CHILD, "wait4 waitid vfork clone clone3 fork"},
    {FAMILY_ACCEPT, "accept accept4"},
    {FAMILY_CONNECT, "connect"},
    {FAMILY_READ, "read readv pread64 preadv preadv2"},
    {FAMILY_WRITE, "write writev pwrite64 pwritev pwritev2"},
    {FAMILY_RECEIVE, "recvfrom recvmsg recvmmsg msgrcv mq_timedreceive"},
    {FAMILY_SEND, "sendto sendmsg sendmmsg msgsnd mq_timedsend"},
    {FAMILY_COPY, "sendfile splice tee vmsplice copy_file_range"},
    {FAMILY_FILE,
     "open openat openat2 creat close stat fstat lstat newfstatat statx access faccessat "
     "faccessat2 statfs fstatfs getdents getdents64 rename renameat renameat2 mkdir mkdirat rmdir "
     "link linkat unlink unlinkat symlink symlinkat readlink readlinkat chmod fchmod fchmodat "
     "fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat truncate ftruncate "
     "fallocate fadvise64 readahead lseek fsync fdatasync sync syncfs sync_file_range msync mknod "
     "mknodat chdir fchdir chroot mount umount2 setxattr lsetxattr fsetxattr getxattr lgetxattr "
     "fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr execve "
     "execveat swapon swapoff quotactl uselib name_to_handle_at open_by_handle_at"},
    {FAMILY_LOCK, "flock fcntl semop semtimedop"},
    {FAMILY_RING, "io_uring_enter io_getevents io_pgetevents"},
    {FAMILY_MEMORY, "mmap munmap mprotect mremap brk madvise mlock mlock2 mlockall munlock mbind "
                    "process_madvise pkey_mprotect exit exit_group"},
    {FAMILY_RESTART, "restart_syscall"},
};

static enum wait_family family_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        struct str rest = str_from(calls[i].names);
        while (rest.len > 0)
            if (str_is(str_word(&rest), name))
                return calls[i].family;
    }
    return FAMILY_OTHER;
}

/* The fingerprint says "arch": "aarch64". Without one it was recorded here, or by a program that
 * had no fingerprint to give. */
enum syscall_machine profile_machine(const struct profile *profile)
{
    struct str json = profile->fingerprint_json;
    const char *at = json.len > 0 ? memmem(json.data, json.len, "\"arch\"", 6) : NULL;
    if (!at)
        return syscall_machine_here();
    struct str rest = {at + 6, json.len - (size_t)(at + 6 - json.data)};
    str_cut(&rest, '"');
    return syscall_machine_named(str_cut(&rest, '"'));
}

enum syscall_machine wait_machine(const struct waits *waits)
{
    return profile_machine(&waits->profile);
}

enum wait_family wait_family_on(enum syscall_machine machine, int32_t syscall)
{
    if (syscall == WAIT_SYSCALL_NONE)
        return FAMILY_NONE;
    if (syscall < 0)
        return FAMILY_UNKNOWN;
    const char *name = syscall_name_on(machine, syscall);
    return name ? family_named(name) : FAMILY_OTHER;
}

void wait_families_init(const struct waits *waits, struct wait_families *ret)
{
    ret->machine = wait_machine(waits);
    for (int32_t i = 0; i < SYSCALLS_MAX; i++)
        ret->of[i] = (uint8_t)wait_family_on(ret->machine, i);
}

enum wait_family wait_family_of(const struct wait_families *families, int32_t syscall)
{
    if (syscall < 0 || syscall >= SYSCALLS_MAX)
        return wait_family_on(families->machine, syscall);
    return (enum wait_family)families->of[syscall];
}
