/* What a resident launcher is asked for: one message a run, with its streams. */
#include "target/launcher_run.h"
#include "target/launcher_sys.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Closes what came and is not wanted. */
static void streams_close(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        sys_call(SYS_close, fds[i], 0, 0, 0, 0);
}

static int streams_take(struct msghdr *message, int fds[LAUNCHER_STREAMS])
{
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
        return 0;
    int count = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    for (int i = 0; i < count && i < LAUNCHER_STREAMS; i++)
        fds[i] = ((const int *)(const void *)CMSG_DATA(head))[i];
    return count;
}

static int bits_count(uint32_t bits)
{
    int count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

bool launcher_request_take(const struct launcher_opts *opts, struct launcher_request *ret,
                           int ret_streams[LAUNCHER_STREAMS])
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * LAUNCHER_STREAMS)] = {0};
    int fds[LAUNCHER_STREAMS] = {-1, -1, -1, -1, -1};
    struct iovec data = {.iov_base = ret, .iov_len = sizeof(*ret)};
    for (;;) {
        struct msghdr message = {.msg_iov = &data,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        long n = sys_call(SYS_recvmsg, opts->control_fd, (long)&message, MSG_CMSG_CLOEXEC, 0, 0);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return false;
        int count = streams_take(&message, fds);
        if (n != (long)sizeof(*ret) || count != bits_count(ret->streams)) {
            streams_close(fds, count); /* a byte of a run that is over already */
            continue;
        }
        int next = 0;
        for (int i = 0; i < LAUNCHER_STREAMS; i++)
            ret_streams[i] = ret->streams & (1u << i) ? fds[next++] : -1;
        return true;
    }
}

char *launcher_padding_cut(const struct launcher_opts *opts, uint32_t bytes)
{
    const char name[] = LAUNCHER_PADDING;
    char *last = NULL;
    for (int i = 0; opts->env[i]; i++)
        last = opts->env[i];
    for (size_t i = 0; last && i < sizeof(name) - 1; i++)
        if (last[i] != name[i])
            return NULL;
    if (!last)
        return NULL;
    char *at = last + sizeof(name) - 1;
    while (bytes > 0 && *at) {
        at++;
        bytes--;
    }
    if (!*at)
        return NULL; /* as long as it can be */
    *at = '\0';
    return at;
}
