/* How long threads were off the CPU between two moments of the near past. */
#include "collect/locks_user_parts.h"

#include <errno.h>

enum { OFF_TIMES = 256 };

struct off_time {
    uint64_t out_ns, in_ns; /* in_ns UINT64_MAX: not back yet */
    uint64_t before_ns;     /* off the CPU before this time, in all */
};

struct lock_off {
    uint64_t first_ns; /* nothing is known of before */
    size_t count;      /* since ever; the last OFF_TIMES are there */
    struct off_time times[OFF_TIMES];
};

static struct lock_off *off_of(const struct lock_offs *offs, int tid)
{
    const uint64_t *index = map_u64_find(&offs->tids, (uint32_t)tid);
    return index ? offs->threads.data[*index - 1].off : NULL;
}

static int off_make(struct lock_offs *offs, uint64_t time_ns, int tid, struct lock_off **ret)
{
    if (offs->threads.len >= LOCKS_OFF_THREADS_MAX)
        return 0; /* it stays unknown */
    struct lock_off *off = calloc(1, sizeof(*off));
    uint64_t *index = off ? map_u64_at(&offs->tids, (uint32_t)tid, NULL) : NULL;
    if (!index || VEC_PUSH(&offs->threads, ((struct lock_off_at){off})) < 0) {
        free(off);
        return -ENOMEM;
    }
    *index = offs->threads.len;
    off->first_ns = time_ns;
    *ret = off;
    return 0;
}

static struct off_time *off_last(struct lock_off *off)
{
    return off->count > 0 ? &off->times[(off->count - 1) % OFF_TIMES] : NULL;
}

int lock_offs_switch(struct lock_offs *offs, uint64_t time_ns, int tid, bool out)
{
    struct lock_off *off = off_of(offs, tid);
    if (!off) {
        int r = off_make(offs, time_ns, tid, &off);
        if (r < 0 || !off)
            return r;
    }
    struct off_time *last = off_last(off);
    if (!out) {
        if (last && last->in_ns == UINT64_MAX)
            last->in_ns = time_ns;
        return 0;
    }
    if (last && last->in_ns == UINT64_MAX)
        return 0; /* it went twice: a switch was lost */
    uint64_t before_ns = last ? last->before_ns + (last->in_ns - last->out_ns) : 0;
    off->times[off->count++ % OFF_TIMES] = (struct off_time){time_ns, UINT64_MAX, before_ns};
    return 0;
}

/* Off the CPU up to a moment, in all. */
static bool off_until(const struct lock_off *off, uint64_t time_ns, uint64_t *ret_ns)
{
    size_t kept = MIN(off->count, (size_t)OFF_TIMES);
    for (size_t i = 1; i <= kept; i++) {
        const struct off_time *time = &off->times[(off->count - i) % OFF_TIMES];
        if (time->out_ns > time_ns)
            continue;
        *ret_ns = time->before_ns + (MIN(time->in_ns, time_ns) - time->out_ns);
        return true;
    }
    *ret_ns = 0;
    return kept == off->count && time_ns >= off->first_ns;
}

bool lock_offs_between(const struct lock_offs *offs, int tid, uint64_t start_ns, uint64_t end_ns,
                       uint64_t *ret_ns)
{
    const struct lock_off *off = off_of(offs, tid);
    uint64_t before_ns, after_ns;
    if (!off || !off_until(off, start_ns, &before_ns) || !off_until(off, end_ns, &after_ns))
        return false;
    *ret_ns = MIN(after_ns - before_ns, end_ns - start_ns);
    return true;
}

void lock_offs_deinit(struct lock_offs *offs)
{
    for (size_t i = 0; i < offs->threads.len; i++)
        free(offs->threads.data[i].off);
    VEC_FREE(&offs->threads);
    map_u64_deinit(&offs->tids);
}
