/* System calls by what they do. By name, since numbers differ from machine to machine and a
 * recording is read anywhere; waiting is as analyze/wait_families.c has it. */
#include "analyze/io_kinds.h"

#include "analyze/wait_parts.h"

#include <errno.h>

static const struct {
    enum io_kind kind;
    const char *names; /* separated by blanks */
} calls[] = {
    /* They may wait, as far as waits are told apart, but hardly ever do. */
    {IO_OTHER, "clone clone3 fork fcntl"},
    {IO_SYNC, "fsync fdatasync sync_file_range msync sync syncfs"},
    {IO_OPEN, "open openat openat2 creat"},
    {IO_STAT, "stat lstat newfstatat fstatat64 statx access faccessat faccessat2"},
    {IO_REMOVE, "unlink unlinkat rmdir"},
    {IO_NAME, "rename renameat renameat2 mkdir mkdirat link linkat symlink symlinkat readlink "
              "readlinkat chmod fchmodat fchmodat2 chown lchown fchownat truncate utimensat "
              "getxattr lgetxattr execve execveat chdir statfs"},
};

static enum io_kind kind_named(const char *name, enum wait_family family)
{
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        struct str rest = str_from(calls[i].names);
        while (rest.len > 0)
            if (str_is(str_word(&rest), name))
                return calls[i].kind;
    }
    switch (family) {
    case FAMILY_READ:
    case FAMILY_RECEIVE:
        return IO_READ;
    case FAMILY_WRITE:
    case FAMILY_SEND:
        return IO_WRITE;
    case FAMILY_COPY:
        return IO_COPY;
    case FAMILY_CONNECT:
        return IO_CONNECT;
    case FAMILY_ACCEPT:
        return IO_ACCEPT;
    case FAMILY_FUTEX:
    case FAMILY_SLEEP:
    case FAMILY_EPOLL:
    case FAMILY_POLL:
    case FAMILY_SIGNAL:
    case FAMILY_CHILD:
    case FAMILY_LOCK:
    case FAMILY_RING:
    case FAMILY_RESTART:
        return IO_WAIT;
    default:
        return IO_OTHER;
    }
}

void io_kinds_init(const struct profile *profile, struct io_kinds *ret)
{
    ret->machine = profile_machine(profile);
    for (int32_t i = 0; i < SYSCALLS_MAX; i++) {
        const char *name = syscall_name_on(ret->machine, i);
        ret->of[i] = (uint8_t)(name ? kind_named(name, wait_family_on(ret->machine, i)) : IO_OTHER);
    }
}

enum io_kind io_kind_of(const struct io_kinds *kinds, const struct call_info *info)
{
    if (info->flags & CALL_FAULT)
        return IO_FAULT;
    if (info->syscall < 0 || info->syscall >= SYSCALLS_MAX)
        return IO_OTHER;
    return (enum io_kind)kinds->of[info->syscall];
}

const char *io_call_name(struct arena *arena, const struct io_kinds *kinds, int32_t syscall)
{
    if (syscall == CALL_NO_SYSCALL)
        return "page fault";
    const char *name = syscall_name_on(kinds->machine, syscall);
    return name ? name : arena_printf(arena, "system call %d", syscall);
}

/* Somebody types there; /dev/zero and its like answer at once. */
static bool is_terminal(struct str name)
{
    return str_starts(name, "/dev/pts") || str_starts(name, "/dev/tty") ||
           str_starts(name, "/dev/console");
}

bool io_is_idle(const struct io_kinds *kinds, const struct call_info *info,
                const struct object_info *object)
{
    enum io_kind kind = io_kind_of(kinds, info);
    if (kind == IO_WAIT || kind == IO_ACCEPT)
        return true;
    if (kind != IO_READ)
        return false;
    switch (object->kind) {
    case OBJECT_SOCKET:
        return (object->flags & (OBJECT_SERVER | OBJECT_LISTENING)) != 0;
    case OBJECT_CHAR_DEVICE:
        return is_terminal(object->name);
    case OBJECT_PIPE:
    case OBJECT_EVENT:
    case OBJECT_TIMER:
    case OBJECT_POLL_SET:
    case OBJECT_OTHER:
        return true;
    default:
        return false;
    }
}

bool io_is_failed_lookup(const struct io_kinds *kinds, const struct call_info *info)
{
    enum io_kind kind = io_kind_of(kinds, info);
    bool by_name = kind == IO_OPEN || kind == IO_STAT || kind == IO_REMOVE || kind == IO_NAME;
    return by_name && (info->error == ENOENT || info->error == ENOTDIR);
}
