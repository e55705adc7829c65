/* What is known about the kernel beforehand: system calls that can block, on which argument, and
 * whether they end by themselves; and where switching begins. */
#include "base/str.h"
#include "collect/offcpu_kernel_parts.h"

#include <sys/syscall.h>

struct row {
    int number;
    struct offcpu_call call;
};

#define SENDS    OFFCPU_CALL_SENDS
#define RECEIVES OFFCPU_CALL_RECEIVES
#define ASKS     (OFFCPU_CALL_RECEIVES | OFFCPU_CALL_ASKS)
#define POINTER  OFFCPU_LIMIT_POINTER
#define MS       OFFCPU_LIMIT_MS
#define ALWAYS   OFFCPU_LIMIT_ALWAYS

/* Number, {fd's argument, limit's argument, what the limit is, kind}. */
static const struct row rows[] = {
    {SYS_read, {1, 0, 0, ASKS}},
    {SYS_pread64, {1, 0, 0, 0}},
    {SYS_readv, {1, 0, 0, ASKS}},
    {SYS_preadv, {1, 0, 0, 0}},
    {SYS_preadv2, {1, 0, 0, ASKS}},
    {SYS_write, {1, 0, 0, SENDS | RECEIVES}},
    {SYS_pwrite64, {1, 0, 0, 0}},
    {SYS_writev, {1, 0, 0, SENDS | RECEIVES}},
    {SYS_pwritev, {1, 0, 0, 0}},
    {SYS_pwritev2, {1, 0, 0, SENDS | RECEIVES}},
    {SYS_recvfrom, {1, 0, 0, ASKS}},
    {SYS_recvmsg, {1, 0, 0, ASKS}},
    {SYS_recvmmsg, {1, 5, POINTER, ASKS}},
    {SYS_sendto, {1, 0, 0, SENDS | RECEIVES}},
    {SYS_sendmsg, {1, 0, 0, SENDS | RECEIVES}},
    {SYS_sendmmsg, {1, 0, 0, SENDS | RECEIVES}},
    {SYS_sendfile, {1, 0, 0, SENDS | RECEIVES}},
    {SYS_splice, {1, 0, 0, SENDS | RECEIVES}},
    {SYS_tee, {1, 0, 0, SENDS | RECEIVES}},
    {SYS_copy_file_range, {1, 0, 0, 0}},
    {SYS_accept, {1, 0, 0, RECEIVES}},
    {SYS_accept4, {1, 0, 0, RECEIVES}},
    {SYS_connect, {1, 0, 0, SENDS | ASKS}},
    {SYS_shutdown, {1, 0, 0, SENDS}},
    {SYS_close, {0, 0, 0, SENDS}},
    {SYS_fsync, {1, 0, 0, 0}},
    {SYS_fdatasync, {1, 0, 0, 0}},
    {SYS_sync_file_range, {1, 0, 0, 0}},
    {SYS_syncfs, {1, 0, 0, 0}},
    {SYS_ftruncate, {1, 0, 0, 0}},
    {SYS_fallocate, {1, 0, 0, 0}},
    {SYS_fstat, {1, 0, 0, 0}},
    {SYS_getdents64, {1, 0, 0, 0}},
    {SYS_flock, {1, 0, 0, 0}},
    {SYS_fcntl, {1, 0, 0, 0}},
    {SYS_ioctl, {1, 0, 0, RECEIVES}},
    {SYS_epoll_pwait, {1, 4, MS, ASKS}},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, {1, 4, MS, ASKS}},
    {SYS_poll, {0, 3, MS, ASKS}},
    {SYS_select, {0, 5, POINTER, ASKS}},
#endif
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, {1, 4, POINTER, ASKS}},
#endif
    {SYS_ppoll, {0, 3, POINTER, ASKS}},
    {SYS_pselect6, {0, 5, POINTER, ASKS}},
    {SYS_nanosleep, {0, 0, ALWAYS, 0}},
    {SYS_clock_nanosleep, {0, 0, ALWAYS, 0}},
    {SYS_futex, {0, 4, POINTER, OFFCPU_CALL_FUTEX}},
    {SYS_rt_sigtimedwait, {0, 3, POINTER, 0}},
    {SYS_semtimedop, {0, 4, POINTER, 0}},
    {SYS_mq_timedreceive, {1, 5, POINTER, 0}},
    {SYS_mq_timedsend, {1, 5, POINTER, 0}},
    {SYS_io_getevents, {0, 5, POINTER, 0}},
    {SYS_wait4, {0, 0, 0, OFFCPU_CALL_WAIT4}},
    {SYS_waitid, {0, 0, 0, OFFCPU_CALL_WAITID}},
};

void offcpu_calls_fill(struct offcpu_call calls[OFFCPU_CALLS_MAX])
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].number >= 0 && rows[i].number < OFFCPU_CALLS_MAX)
            calls[rows[i].number] = rows[i].call;
}

void offcpu_schedule_find(struct str text, uint64_t *ret_start, uint64_t *ret_end)
{
    uint64_t start = 0, address;
    *ret_start = *ret_end = 0;
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n');
        struct str word = str_word(&line);
        (void)str_word(&line);
        if (start == 0 && str_is(str_word(&line), "__schedule") && str_to_u64(word, 16, &start) < 0)
            return;
        /* The list is in the order of addresses; several names may stand at one. */
        if (start != 0 && str_to_u64(word, 16, &address) == 0 && address > start) {
            *ret_start = start;
            *ret_end = address;
            return;
        }
    }
}
