/* Sockets, and waiting for several things at once. */
#include "io.h"

/* NOLINTBEGIN(bugprone-reserved-identifier): the names are libc's */

#define MESSAGE(call, how_, message, result)                                                       \
    do {                                                                                           \
        (call).how = IO_MOVES | (how_);                                                            \
        if ((result) >= 0) {                                                                       \
            (call).asked = io_iov_bytes((message)->msg_iov, (message)->msg_iovlen);                \
            (call).pieces = (message)->msg_iov;                                                    \
            (call).piece_count = (message)->msg_iovlen;                                            \
        }                                                                                          \
    } while (0)

#define BUFFER(call, how_, buffer, count)                                                          \
    struct iovec iov_ = {.iov_base = (void *)(buffer), .iov_len = (count)};                        \
    (call).how = IO_MOVES | (how_);                                                                \
    (call).asked = (count);                                                                        \
    (call).pieces = &iov_;                                                                         \
    (call).piece_count = 1

/* What MSG_PEEK shows comes once more. */
static void by_flags(struct io_call *call, int flags)
{
    if (flags & MSG_PEEK)
        call->pieces = NULL;
    if (flags & MSG_DONTWAIT)
        call->flags |= PRELOAD_CALL_NONBLOCK;
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t len)
{
    IO_PASS(connect, (int)IO_RAW(SYS_connect, fd, address, len), fd, address, len);
    struct io_call call = io_begin(fd);
    int r = next_io.connect(fd, address, len);
    int error = r < 0 ? errno : 0;
    call.number = 0; /* it is another one's end from now on */
    call.origin = PRELOAD_CONNECTED;
    if (error == 0 || error == EINPROGRESS || error == ECONNREFUSED || error == ETIMEDOUT ||
        error == ENOENT || error == EINTR)
        call.peer = (struct io_address){address, len};
    IO_END(&call, SYS_connect, r);
    return r;
}

EXPORT int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict len)
{
    IO_PASS(accept, (int)IO_RAW(SYS_accept, fd, address, len), fd, address, len);
    struct io_call call = io_begin(fd);
    int r = next_io.accept(fd, address, len);
    call.how = IO_ACCEPTS;
    IO_END(&call, SYS_accept, r);
    return r;
}

EXPORT int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict len, int flags)
{
    IO_PASS(accept4, (int)IO_RAW(SYS_accept4, fd, address, len, flags), fd, address, len, flags);
    struct io_call call = io_begin(fd);
    int r = next_io.accept4(fd, address, len, flags);
    call.how = IO_ACCEPTS;
    IO_END(&call, SYS_accept4, r);
    return r;
}

EXPORT int shutdown(int fd, int how)
{
    IO_PASS(shutdown, (int)IO_RAW(SYS_shutdown, fd, how), fd, how);
    struct io_call call = io_begin(fd);
    int r = next_io.shutdown(fd, how);
    IO_END(&call, SYS_shutdown, r);
    return r;
}

EXPORT ssize_t send(int fd, const void *buffer, size_t count, int flags)
{
    IO_PASS(send, io_missing(), fd, buffer, count, flags);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.send(fd, buffer, count, flags);
    BUFFER(call, IO_SENDS, buffer, count);
    by_flags(&call, flags);
    IO_END(&call, SYS_sendto, r);
    return r;
}

EXPORT ssize_t sendto(int fd, const void *buffer, size_t count, int flags,
                      const struct sockaddr *address, socklen_t len)
{
    IO_PASS(sendto, io_missing(), fd, buffer, count, flags, address, len);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.sendto(fd, buffer, count, flags, address, len);
    BUFFER(call, IO_SENDS, buffer, count);
    by_flags(&call, flags);
    if (call.number == 0 && address && r >= 0) {
        call.peer = (struct io_address){address, len};
        call.origin = PRELOAD_CONNECTED;
    }
    IO_END(&call, SYS_sendto, r);
    return r;
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    IO_PASS(sendmsg, IO_RAW(SYS_sendmsg, fd, message, flags), fd, message, flags);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.sendmsg(fd, message, flags);
    MESSAGE(call, IO_SENDS, message, r);
    by_flags(&call, flags);
    IO_END(&call, SYS_sendmsg, r);
    return r;
}

static int64_t messages_bytes(const struct mmsghdr *messages, int count)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += messages[i].msg_len;
    return count < 0 ? -1 : bytes;
}

/* Of several messages in one call only the bytes are told. */
EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    IO_PASS(sendmmsg, (int)IO_RAW(SYS_sendmmsg, fd, messages, count, flags), fd, messages, count,
            flags);
    struct io_call call = io_begin(fd);
    int r = next_io.sendmmsg(fd, messages, count, flags);
    call.how = IO_MOVES;
    by_flags(&call, flags);
    IO_END(&call, SYS_sendmmsg, messages_bytes(messages, r));
    return r;
}

EXPORT ssize_t recv(int fd, void *buffer, size_t count, int flags)
{
    IO_PASS(recv, io_missing(), fd, buffer, count, flags);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.recv(fd, buffer, count, flags);
    BUFFER(call, IO_RECEIVES, buffer, count);
    by_flags(&call, flags);
    IO_END(&call, SYS_recvfrom, r);
    return r;
}

EXPORT ssize_t __recv_chk(int fd, void *buffer, size_t count, size_t size, int flags)
{
    IO_PASS(__recv_chk, io_missing(), fd, buffer, count, size, flags);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.__recv_chk(fd, buffer, count, size, flags);
    BUFFER(call, IO_RECEIVES, buffer, count);
    by_flags(&call, flags);
    IO_END(&call, SYS_recvfrom, r);
    return r;
}

EXPORT ssize_t recvfrom(int fd, void *restrict buffer, size_t count, int flags,
                        struct sockaddr *restrict address, socklen_t *restrict len)
{
    IO_PASS(recvfrom, io_missing(), fd, buffer, count, flags, address, len);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.recvfrom(fd, buffer, count, flags, address, len);
    BUFFER(call, IO_RECEIVES, buffer, count);
    by_flags(&call, flags);
    IO_END(&call, SYS_recvfrom, r);
    return r;
}

EXPORT ssize_t __recvfrom_chk(int fd, void *restrict buffer, size_t count, size_t size, int flags,
                              struct sockaddr *restrict address, socklen_t *restrict len)
{
    IO_PASS(__recvfrom_chk, io_missing(), fd, buffer, count, size, flags, address, len);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.__recvfrom_chk(fd, buffer, count, size, flags, address, len);
    BUFFER(call, IO_RECEIVES, buffer, count);
    by_flags(&call, flags);
    IO_END(&call, SYS_recvfrom, r);
    return r;
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    IO_PASS(recvmsg, IO_RAW(SYS_recvmsg, fd, message, flags), fd, message, flags);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.recvmsg(fd, message, flags);
    MESSAGE(call, IO_RECEIVES, message, r);
    by_flags(&call, flags);
    IO_END(&call, SYS_recvmsg, r);
    return r;
}

EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                    struct timespec *limit)
{
    IO_PASS(recvmmsg, (int)io_missing(), fd, messages, count, flags, limit);
    struct io_call call = io_begin(fd);
    int r = next_io.recvmmsg(fd, messages, count, flags, limit);
    call.how = IO_MOVES;
    by_flags(&call, flags);
    IO_END(&call, SYS_recvmmsg, messages_bytes(messages, r));
    return r;
}

/* One fd is what is waited for; several are nobody's. */
static void end_poll(struct io_call *call, const struct pollfd *fds, nfds_t count, int r)
{
    const struct io_fd *known = count == 1 && r >= 0 ? io_fd_at(fds[0].fd) : NULL;
    if (!known)
        return;
    call->fd = fds[0].fd;
    call->number = __atomic_load_n(&known->number, __ATOMIC_RELAXED);
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int limit_ms)
{
    IO_PASS(poll, (int)io_missing(), fds, count, limit_ms);
    struct io_call call = io_begin(-1);
    int r = next_io.poll(fds, count, limit_ms);
    end_poll(&call, fds, count, r);
    IO_END(&call, SYS_poll, r);
    return r;
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int limit_ms, size_t size)
{
    IO_PASS(__poll_chk, (int)io_missing(), fds, count, limit_ms, size);
    struct io_call call = io_begin(-1);
    int r = next_io.__poll_chk(fds, count, limit_ms, size);
    end_poll(&call, fds, count, r);
    IO_END(&call, SYS_poll, r);
    return r;
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                 const sigset_t *mask)
{
    IO_PASS(ppoll, (int)io_missing(), fds, count, limit, mask);
    struct io_call call = io_begin(-1);
    int r = next_io.ppoll(fds, count, limit, mask);
    end_poll(&call, fds, count, r);
    IO_END(&call, SYS_ppoll, r);
    return r;
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                       const sigset_t *mask, size_t size)
{
    IO_PASS(__ppoll_chk, (int)io_missing(), fds, count, limit, mask, size);
    struct io_call call = io_begin(-1);
    int r = next_io.__ppoll_chk(fds, count, limit, mask, size);
    end_poll(&call, fds, count, r);
    IO_END(&call, SYS_ppoll, r);
    return r;
}

EXPORT int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
                  struct timeval *restrict limit)
{
    IO_PASS(select, (int)io_missing(), count, in, out, other, limit);
    struct io_call call = io_begin(-1);
    int r = next_io.select(count, in, out, other, limit);
    IO_END(&call, SYS_pselect6, r);
    return r;
}

EXPORT int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
                   const struct timespec *restrict limit, const sigset_t *restrict mask)
{
    IO_PASS(pselect, (int)io_missing(), count, in, out, other, limit, mask);
    struct io_call call = io_begin(-1);
    int r = next_io.pselect(count, in, out, other, limit, mask);
    IO_END(&call, SYS_pselect6, r);
    return r;
}

EXPORT int epoll_wait(int fd, struct epoll_event *events, int max, int limit_ms)
{
    IO_PASS(epoll_wait, (int)io_missing(), fd, events, max, limit_ms);
    struct io_call call = io_begin(fd);
    int r = next_io.epoll_wait(fd, events, max, limit_ms);
    IO_END(&call, SYS_epoll_wait, r);
    return r;
}

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int max, int limit_ms,
                       const sigset_t *mask)
{
    IO_PASS(epoll_pwait, (int)io_missing(), fd, events, max, limit_ms, mask);
    struct io_call call = io_begin(fd);
    int r = next_io.epoll_pwait(fd, events, max, limit_ms, mask);
    IO_END(&call, SYS_epoll_pwait, r);
    return r;
}

EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *limit,
                        const sigset_t *mask)
{
    IO_PASS(epoll_pwait2, (int)io_missing(), fd, events, max, limit, mask);
    struct io_call call = io_begin(fd);
    int r = next_io.epoll_pwait2(fd, events, max, limit, mask);
    IO_END(&call, SYS_epoll_pwait2, r);
    return r;
}

/* NOLINTEND(bugprone-reserved-identifier) */
