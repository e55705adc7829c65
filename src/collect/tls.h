/* What is said inside of TLS (bpf/tls.bpf.c): programs on functions of OpenSSL, whose records come
 * through the ring of the io program to io_heads.h. */
#pragma once

#include "collect/uprobes.h"
#include "model/sink.h"

struct tls;

/* Maps of the io program; the fds stay the caller's. */
struct tls_opts {
    const char *cache_dir;
    int told_fd, threads_fd, now_fd, begun_fd;
    uint32_t ring_bytes;
};

/* Loads the programs and adds the library to `uprobes`, which must be closed first. */
MUST_USE int tls_open(const struct tls_opts *opts, struct uprobes *uprobes, struct tls **ret,
                      struct why *why);
void tls_close(struct tls *tls); /* NULL is fine */
/* Counters io.tls (pieces), io.tls_lost. */
MUST_USE int tls_finish(struct tls *tls, struct sink *sink);
