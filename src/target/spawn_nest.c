/* A launcher that is started once and asked for one run after another. */
#include "base/clock.h"
#include "base/fd.h"
#include "target/spawn_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NEST_CLOSE_MS_MAX = 1000 };

static int nest_start(const struct spawn_opts *opts, struct spawn_nest *nest)
{
    AUTO(spawn_ends_close) struct spawn_ends ends = SPAWN_ENDS_INIT;
    int events[2], control[2];
    if (pipe2(events, O_CLOEXEC) < 0)
        return -errno;
    nest->event_fd = spawn_lift(events[0]);
    ends.event = spawn_lift(events[1]);
    /* A socket, since streams can be handed over through it. */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
        return -errno;
    nest->control_fd = spawn_lift(control[0]);
    ends.control = spawn_lift(control[1]);
    if (nest->event_fd < 0 || ends.event < 0 || nest->control_fd < 0 || ends.control < 0)
        return -EMFILE;
    char **env = environment_make(opts);
    if (!env)
        return -ENOMEM;
    struct launcher_opts launcher = {
        .event_fd = ends.event,
        .control_fd = ends.control,
        .drain_fd = {-1, -1},
        .flags = LAUNCHER_RESIDENT,
        .path = opts->path,
        .argv = opts->argv,
        .env = env,
    };
    const int ours[] = {nest->event_fd, nest->control_fd};
    int r = spawn_launcher_start(&launcher, &ends, ours, opts->plain, &nest->launcher);
    environment_free(env);
    return r;
}

int spawn_nest_open(const struct spawn_opts *opts, struct spawn_nest **ret, struct why *why)
{
    struct spawn_nest *nest = calloc(1, sizeof(*nest));
    if (!nest)
        return why_nomem(why);
    nest->event_fd = nest->control_fd = -1;
    int r = nest_start(opts, nest);
    if (r < 0) {
        spawn_nest_close(nest);
        return spawn_launch_failed(-r, opts->argv[0], why);
    }
    *ret = nest;
    return 0;
}

static int request_send(const struct spawn_nest *nest, const struct launcher_request *request,
                        const int *fds, size_t count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * LAUNCHER_STREAMS)] = {0};
    struct iovec data = {.iov_base = (void *)request, .iov_len = sizeof(*request)};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
    }
    ssize_t n;
    do
        n = sendmsg(nest->control_fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int spawn_nest_request(const struct spawn_opts *opts, struct spawn *spawn, struct why *why)
{
    struct spawn_nest *nest = opts->nest;
    if (nest->broken)
        return why_set(why, WHY_FAILED, ECHILD, "run it again",
                       "a run of '%s' before this one could not be ended", spawn->name);
    AUTO(spawn_ends_close) struct spawn_ends ends = SPAWN_ENDS_INIT;
    /* The launcher has a /dev/null of its own. */
    enum spawn_stream kinds[] = {opts->input, opts->output, opts->error};
    struct spawn_opts others = *opts;
    enum spawn_stream *const streams[] = {&others.input, &others.output, &others.error};
    uint32_t nulls = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (kinds[i] != SPAWN_NULL)
            continue;
        nulls |= 1u << i;
        *streams[i] = SPAWN_INHERIT;
    }
    int r = spawn_streams_open(&others, spawn, &ends, why);
    if (r < 0)
        return r;
    bool late = opts->late && !opts->hold;
    struct launcher_request request = {
        .nulls = nulls,
        .flags = (opts->foreground ? 0u : LAUNCHER_OWN_GROUP) | (opts->hold ? LAUNCHER_HOLD : 0u) |
                 (opts->trace ? LAUNCHER_TRACE : 0u) | (late ? LAUNCHER_LATE : 0u) | LAUNCHER_REAP,
        .padding_bytes = (uint32_t)MIN(opts->environment_bytes, (size_t)SPAWN_ENVIRONMENT_MAX),
    };
    const int all[LAUNCHER_STREAMS] = {ends.stdio[0], ends.stdio[1], ends.stdio[2],
                                       spawn->output.fd, spawn->error.fd};
    int fds[LAUNCHER_STREAMS];
    size_t count = 0;
    for (unsigned i = 0; i < LAUNCHER_STREAMS; i++) {
        if (all[i] < 0)
            continue;
        request.streams |= 1u << i;
        fds[count++] = all[i];
    }
    r = request_send(nest, &request, fds, count);
    if (r < 0)
        return why_errno(why, -r, "run it again; was a process of whyslow killed?",
                         "lost the launcher of '%s'", spawn->name);
    spawn->nest = nest;
    spawn->reap = true;
    spawn->late = late;
    spawn->event_fd = nest->event_fd;
    spawn->control_fd = nest->control_fd;
    return 0;
}

void spawn_nest_close(struct spawn_nest *nest)
{
    if (!nest)
        return;
    fd_close(&nest->control_fd);
    fd_close(&nest->event_fd);
    for (int i = 0; i < NEST_CLOSE_MS_MAX && nest->launcher > 0; i++) {
        if (waitpid(nest->launcher, NULL, WNOHANG) != 0)
            break;
        clock_sleep_ns(i < 20 ? NS_PER_MS / 20 : NS_PER_MS);
    }
    free(nest);
}
