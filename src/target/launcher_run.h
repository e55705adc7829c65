/* One run as the launcher's files see it. For launcher*.c only. */
#pragma once

#include "target/launcher.h"

#include <stdbool.h>

/* Written by the child too, which shares our memory until its exec. */
struct launcher_run {
    const struct launcher_opts *opts;
    uint32_t flags;
    int streams[LAUNCHER_STREAMS]; /* -1: as inherited, or none */
    uint32_t nulls;                /* as in the request */
    int null_fd;
    bool told; /* LAUNCHER_FORKED was sent */
    int pid;
    int io_fd;
    int exec_error;
    bool traced;
    bool orphaned; /* whyslow is gone */
    int stop_signal;
    struct launcher_event event; /* LAUNCHER_EXITED, then LAUNCHER_REAPED */
};

void launcher_event_send(struct launcher_run *run, struct launcher_event *event);

/* Waits for `fd`, a while; true when it is ready. Looks after whyslow and the drains. */
bool launcher_poll(struct launcher_run *run, int fd);

/* The next request and its streams (-1 where it has none); false when whyslow is gone. */
bool launcher_request_take(const struct launcher_opts *opts, struct launcher_request *ret,
                           int ret_streams[LAUNCHER_STREAMS]);
/* Makes the padding variable `bytes` long; the place to put an 'x' back, or NULL. */
char *launcher_padding_cut(const struct launcher_opts *opts, uint32_t bytes);

/* In the child, before exec: may we be stopped? */
bool launcher_trace_me(void);
/* Until the target is about to exit: reads its peak of memory then, and lets it go. */
void launcher_trace_wait(struct launcher_run *run);
