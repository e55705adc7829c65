/* Statements of SQLite (bpf/sqlite.bpf.c), to io_requests_told(): programs on functions of the
 * library, whose records come through the ring of the io program.
 *
 * A statement that was prepared before we came has no text that we know: it is counted. */
#pragma once

#include "collect/io_requests.h"
#include "collect/uprobes.h"

struct sqlite_calls;

enum { SQLITE_STATEMENTS_MAX = 65536, SQLITE_DATABASES_MAX = 4096 };

struct sqlite_calls_opts {
    const char *cache_dir;
    bool stacks;
    uint32_t ring_bytes;
    /* Maps of the io program; the fds stay the caller's. */
    int told_fd, threads_fd, control_fd, deep_fd, known_fd, known_long_fd, begun_fd;
    struct io_requests *requests;
    /* As in struct io_heads_opts. */
    void *context;
    int (*thread)(void *context, uint32_t tid, uint32_t tgid, uint32_t exec, uint64_t time_ns,
                  uint32_t *ret_process, uint32_t *ret_thread);
    int (*stack)(void *context, uint64_t ref, uint64_t time_ns, uint32_t *ret);
};

/* Loads the programs and adds the library to `uprobes`, which must be closed first. */
MUST_USE int sqlite_calls_open(const struct sqlite_calls_opts *opts, struct uprobes *uprobes,
                               struct sqlite_calls **ret, struct why *why);
void sqlite_calls_close(struct sqlite_calls *calls); /* NULL is fine */
/* 1: it was a record of ours, 0: it was not, or an error of the sink or the functions. */
MUST_USE int sqlite_calls_take(struct sqlite_calls *calls, const void *record, size_t bytes);
/* Counters io.sqlite (runs), io.sqlite_lost, io.sqlite_unknown (of no statement that we know). */
MUST_USE int sqlite_calls_finish(struct sqlite_calls *calls, struct sink *sink);
