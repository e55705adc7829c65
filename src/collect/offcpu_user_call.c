/* What a system call waits for, from its number and arguments: pure, so that made-up lines of
 * /proc can be tried. */
#include "collect/offcpu_user_parts.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

/* "0x7ffc…": hexadecimal with its mark. */
static int hex_parse(struct str word, uint64_t *ret)
{
    if (!str_starts(word, "0x"))
        return -EBADMSG;
    word.data += 2;
    word.len -= 2;
    return word.len > 0 && str_to_u64(word, 16, ret) == 0 ? 0 : -EBADMSG;
}

int user_call_parse(struct str line, struct user_call *ret)
{
    struct user_call call = {.syscall = WAIT_SYSCALL_NONE};
    struct str word = str_word(&line);
    int64_t number;
    if (str_is(word, "running"))
        return str_word(&line).len == 0 ? -EAGAIN : -EBADMSG;
    if (str_to_i64(word, &number) < 0 || number < -1 || number > INT32_MAX)
        return -EBADMSG;
    call.syscall = number < 0 ? WAIT_SYSCALL_NONE : (int32_t)number;
    for (size_t i = 0; i < ARRAY_SIZE(call.args) && number >= 0; i++)
        if (hex_parse(str_word(&line), &call.args[i]) < 0)
            return -EBADMSG;
    if (hex_parse(str_word(&line), &call.sp) < 0 || hex_parse(str_word(&line), &call.pc) < 0 ||
        str_word(&line).len > 0)
        return -EBADMSG;
    /* A thread of the kernel has neither stack nor call of a program, whatever stands there; a
     * program of 32 bits has calls of other numbers. */
    if (user_call_in_kernel(&call))
        call.syscall = WAIT_SYSCALL_NONE;
    else if (number >= 0 && call.sp >> 32 == 0)
        call.syscall = WAIT_SYSCALL_UNKNOWN;
    *ret = call;
    return 0;
}

/* How a call says that it will not wait for ever. */
enum limit {
    LIMIT_NONE,
    LIMIT_ALWAYS,
    LIMIT_POINTER,  /* no NULL */
    LIMIT_TIMESPEC, /* the same, of a struct timespec, from the call's beginning on */
    LIMIT_TIMEVAL,  /* the same, of a struct timeval */
    LIMIT_FUTEX,    /* the same, and what it counts from is for the operation to say */
    LIMIT_MS,       /* an int, negative: none */
};

struct call_row {
    int32_t syscall;
    uint8_t on; /* enum user_call_on */
    uint8_t fd; /* which argument */
    uint8_t limit, limit_arg;
    bool disk; /* may be waiting for storage */
};

static const struct call_row rows[] = {
    {SYS_read, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_readv, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_pread64, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_preadv, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_preadv2, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_write, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_writev, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_pwrite64, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_pwritev, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_pwritev2, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_fsync, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_fdatasync, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_sync_file_range, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_syncfs, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_ftruncate, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_fallocate, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_fadvise64, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_readahead, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_getdents64, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_fstat, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_close, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_copy_file_range, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_splice, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_tee, USER_CALL_ON_FD, 0, 0, 0, false},
    {SYS_sendfile, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_flock, USER_CALL_ON_FD, 0, 0, 0, false},
    {SYS_fcntl, USER_CALL_ON_FD, 0, 0, 0, false},
    {SYS_ioctl, USER_CALL_ON_FD, 0, 0, 0, true},
    {SYS_recvfrom, USER_CALL_ON_FD, 0, 0, 0, false},
    {SYS_recvmsg, USER_CALL_ON_FD, 0, 0, 0, false},
    {SYS_recvmmsg, USER_CALL_ON_FD, 0, LIMIT_POINTER, 4, false},
    {SYS_sendto, USER_CALL_ON_FD, 0, 0, 0, false},
    {SYS_sendmsg, USER_CALL_ON_FD, 0, 0, 0, false},
    {SYS_sendmmsg, USER_CALL_ON_FD, 0, 0, 0, false},
    {SYS_accept, USER_CALL_ON_FD, 0, 0, 0, false},
    {SYS_accept4, USER_CALL_ON_FD, 0, 0, 0, false},
    {SYS_connect, USER_CALL_ON_FD, 0, 0, 0, false},
    {SYS_mq_timedreceive, USER_CALL_ON_FD, 0, LIMIT_POINTER, 4, false},
    {SYS_mq_timedsend, USER_CALL_ON_FD, 0, LIMIT_POINTER, 4, false},
    {SYS_io_uring_enter, USER_CALL_ON_FD, 0, 0, 0, false},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, USER_CALL_ON_FD, 0, LIMIT_MS, 3, false},
#endif
    {SYS_epoll_pwait, USER_CALL_ON_FD, 0, LIMIT_MS, 3, false},
    {SYS_epoll_pwait2, USER_CALL_ON_FD, 0, LIMIT_TIMESPEC, 3, false},
#ifdef SYS_poll
    {SYS_poll, USER_CALL_ON_FDS, 0, LIMIT_MS, 2, false},
#endif
    {SYS_ppoll, USER_CALL_ON_FDS, 0, LIMIT_TIMESPEC, 2, false},
#ifdef SYS_select
    {SYS_select, USER_CALL_ON_NOTHING, 0, LIMIT_TIMEVAL, 4, false},
#endif
    {SYS_pselect6, USER_CALL_ON_NOTHING, 0, LIMIT_TIMESPEC, 4, false},
    {SYS_futex, USER_CALL_ON_FUTEX, 0, LIMIT_FUTEX, 3, false},
    {SYS_futex_waitv, USER_CALL_ON_FUTEX, 0, LIMIT_POINTER, 3, false},
    {SYS_futex_wait, USER_CALL_ON_FUTEX, 0, LIMIT_POINTER, 4, false},
    {SYS_nanosleep, USER_CALL_ON_NOTHING, 0, LIMIT_ALWAYS, 0, false},
    {SYS_clock_nanosleep, USER_CALL_ON_NOTHING, 0, LIMIT_ALWAYS, 0, false},
    {SYS_wait4, USER_CALL_ON_CHILD, 0, 0, 0, false},
    {SYS_waitid, USER_CALL_ON_CHILD, 0, 0, 0, false},
    {SYS_rt_sigtimedwait, USER_CALL_ON_NOTHING, 0, LIMIT_POINTER, 2, false},
    {SYS_semtimedop, USER_CALL_ON_NOTHING, 0, LIMIT_POINTER, 3, false},
    {SYS_io_getevents, USER_CALL_ON_NOTHING, 0, LIMIT_POINTER, 4, false},
};

static uint32_t futex_detail(const struct user_call *call)
{
    if (call->syscall != SYS_futex)
        return WAIT_FUTEX_OTHER;
    uint32_t value = (uint32_t)call->args[2];
    switch ((int)call->args[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        return value == 2 ? WAIT_FUTEX_VALUE_2 : value == 0 ? WAIT_FUTEX_VALUE_0 : WAIT_FUTEX_OTHER;
    case FUTEX_WAIT_BITSET:
        return WAIT_FUTEX_BITSET;
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_WAIT_REQUEUE_PI:
        return WAIT_FUTEX_PI;
    default:
        return WAIT_FUTEX_OTHER;
    }
}

/* wait4() takes a pid, a group as its negative, or -1; waitid() says what its id is. */
static int child_of(const struct user_call *call)
{
    int id = (int)call->args[call->syscall == SYS_waitid];
    bool one = call->syscall == SYS_wait4 || call->args[0] == P_PID;
    return one && id > 0 ? id : 0;
}

static bool is_limited(const struct call_row *row, const struct user_call *call)
{
    uint64_t arg = call->args[row->limit_arg];
    switch (row->limit) {
    case LIMIT_ALWAYS:
        return true;
    case LIMIT_POINTER:
    case LIMIT_TIMESPEC:
    case LIMIT_TIMEVAL:
    case LIMIT_FUTEX:
        return arg != 0;
    case LIMIT_MS:
        return (int32_t)arg >= 0;
    default:
        return false;
    }
}

/* When it ends, as far as it is known how to read that. */
static void limit_facts(const struct call_row *row, const struct user_call *call,
                        struct user_call_facts *ret)
{
    int operation = (int)call->args[1] & FUTEX_CMD_MASK;
    ret->limit = call->args[row->limit_arg];
    switch (row->limit) {
    case LIMIT_MS:
        ret->limit_is = USER_LIMIT_MS;
        break;
    case LIMIT_TIMESPEC:
        ret->limit_is = USER_LIMIT_TIMESPEC;
        break;
    case LIMIT_TIMEVAL:
        ret->limit_is = USER_LIMIT_TIMEVAL;
        break;
    case LIMIT_FUTEX:
        ret->limit_is = operation == FUTEX_WAIT                     ? USER_LIMIT_TIMESPEC
                        : operation != FUTEX_WAIT_BITSET            ? USER_LIMIT_UNKNOWN
                        : (int)call->args[1] & FUTEX_CLOCK_REALTIME ? USER_LIMIT_UNTIL_REAL
                                                                    : USER_LIMIT_UNTIL;
        break;
    default:
        break;
    }
}

void user_call_facts(const struct user_call *call, struct user_call_facts *ret)
{
    *ret = (struct user_call_facts){.fd = -1};
    if (user_call_in_kernel(call))
        return;
    if (call->syscall == WAIT_SYSCALL_NONE) {
        ret->flags = WAIT_FAULT;
        ret->may_be_disk = true;
        return;
    }
    const struct call_row *row = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(rows) && !row; i++)
        if (rows[i].syscall == call->syscall)
            row = &rows[i];
    if (!row) {
        ret->may_be_disk = true; /* open, stat, unlink and many more */
        return;
    }
    ret->on = (enum user_call_on)row->on;
    ret->may_be_disk = row->disk;
    ret->flags = is_limited(row, call) ? WAIT_LIMITED : 0;
    if (ret->flags)
        limit_facts(row, call, ret);
    switch (ret->on) {
    case USER_CALL_ON_FD:
        ret->fd = (int)call->args[row->fd];
        break;
    case USER_CALL_ON_FDS:
        ret->address = call->args[0];
        ret->count = call->args[1];
        break;
    case USER_CALL_ON_FUTEX:
        ret->address = call->args[0];
        ret->detail = futex_detail(call);
        break;
    case USER_CALL_ON_CHILD:
        ret->child = child_of(call);
        break;
    case USER_CALL_ON_NOTHING:
        break;
    }
}
