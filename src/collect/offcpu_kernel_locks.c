/* Locks of the kernel itself, beside the waits: asked for with `locks`. A kernel that does not
 * tell of them costs only this part. */
#include "collect/offcpu_kernel_parts.h"

#include <errno.h>

static int thread_of(void *context, uint64_t time_ns, const struct kernel_lock_thread *thread,
                     uint32_t *ret_thread)
{
    struct collector *c = context;
    struct offcpu_seen *seen;
    uint64_t now_ns = MIN(time_ns, c->until_ns ? c->until_ns : time_ns);
    int r = offcpu_seen_get(c, thread->tid, thread->pid, thread->exec, now_ns, &seen);
    if (r == -E2BIG) {
        *ret_thread = 0;
        return 0;
    }
    if (r == 0)
        *ret_thread = seen->thread;
    return r;
}

int offcpu_locks_start(struct collector *c, const char *cache_dir)
{
    struct kernel_locks_opts opts = {
        .threads_fd = c->fds.threads,
        .pid_ns = c->config.pid_ns,
        .cache_dir = cache_dir,
        .stacks = c->stacks,
        .objects = c->objects,
        .sink = c->sink,
        .thread = thread_of,
        .context = c,
    };
    if (!c->opts.locks)
        return 0;
    int r = kernel_locks_open(&opts, &c->kernel_locks, &c->kernel_locks_why);
    if (r == 0)
        c->map_bytes += kernel_locks_map_bytes();
    return r == -ENOMEM ? r : 0;
}

const char *offcpu_locks_na(const struct collector *c)
{
    return c->opts.locks && !c->kernel_locks ? c->kernel_locks_why.what : NULL;
}
