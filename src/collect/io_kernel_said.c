/* What is said on sockets and in libraries, in the kernel tier: who takes the records of the ring
 * that are about it, and whom they ask for threads, stacks and objects. */
#include "collect/io_heads.h"
#include "collect/io_kernel_parts.h"

#include <errno.h>
#include <stdlib.h>

struct io_kernel_said {
    struct io_requests *requests;
    struct io_heads *heads;
};

static int thread_of(void *context, uint32_t tid, uint32_t tgid, uint32_t exec, uint64_t time_ns,
                     uint32_t *ret_process, uint32_t *ret_thread)
{
    struct collector *c = context;
    struct told_thread *seen;
    int r = told_threads_get(&c->threads, tid, tgid, exec, time_ns, &seen);
    if (r < 0)
        return r;
    *ret_process = seen->process;
    *ret_thread = seen->thread;
    return 0;
}

static int stack_of(void *context, uint64_t ref, uint64_t time_ns, uint32_t *ret)
{
    struct collector *c = context;
    *ret = told_stacks_find(&c->told, ref, time_ns);
    return 0;
}

static int object_of(void *context, const struct object_record *record, uint32_t *ret)
{
    struct collector *c = context;
    int r = objects_take(c->objects, record, sizeof(*record));
    return r < 0 ? r : objects_find(c->objects, &record->id, ret);
}

int io_said_start(struct collector *c, struct why *why)
{
    if (!c->opts.requests)
        return 0;
    const struct io_requests_opts opts = {.payloads = c->opts.payloads};
    struct io_heads_opts heads = {
        .conns_fd = bpf_unit_map_fd(c->unit, "io_conns"),
        .counts_fd = bpf_unit_map_fd(c->unit, "io_heads_counts"),
        .context = c,
        .thread = thread_of,
        .stack = stack_of,
        .object = object_of,
    };
    c->said = calloc(1, sizeof(*c->said));
    if (!c->said || io_requests_open(&opts, c->sink, &c->said->requests) < 0)
        return why_nomem(why);
    heads.requests = c->said->requests;
    return io_heads_open(&heads, &c->said->heads) < 0 ? why_nomem(why) : 0;
}

int io_said_take(struct collector *c, const struct offcpu_head *head, size_t bytes)
{
    int r = c->said ? io_heads_take(c->said->heads, head, bytes) : 0;
    if (r == 0)
        c->malformed++;
    return r < 0 ? r : 0;
}

int io_said_finish(struct collector *c)
{
    if (!c->said)
        return 0;
    int r = io_requests_finish(c->said->requests, c->stop_ns);
    return r < 0 ? r : io_heads_finish(c->said->heads, c->sink);
}

void io_said_close(struct collector *c)
{
    if (!c->said)
        return;
    io_heads_close(c->said->heads);
    io_requests_close(c->said->requests);
    free(c->said);
    c->said = NULL;
}
