/* Where the stacks of threads begin, learned from walks that got there.
 *
 * The program in the kernel cannot tell a deep stack from a shallow one with something else
 * mapped above it (a library, a heap, another stack). A walk can: it ends at the thread's
 * first frame. So the program copies for threads only what a walk has shown to be stack, and
 * tries its luck only where a walk ran out of slice. Threads that change stacks all the time
 * (goroutines, fibers) are left alone: what would be copied is somebody else's memory. */
#include "collect/cpu_deep.h"

#include <bpf/bpf.h>

enum {
    CHANGES_MAX = 8,   /* of where a thread's stack begins; failed tries count as such */
    ABOVE_BYTES = 256, /* a thread's first frame is read, too */
};

/* A value is what the program was told, with a count of changes above it. */
#define CHANGE_ONE (UINT64_C(1) << 56)
#define TOP_MASK   (CHANGE_ONE - 1)

static void tell(const struct cpu_tops *tops, uint32_t tid, uint64_t top)
{
    struct cpu_deep_thread thread = {.top = top};
    /* A full map is no failure: that thread's stacks stay as perf copies them. */
    if (tops->map_fd >= 0)
        (void)bpf_map_update_elem(tops->map_fd, &tid, &thread, BPF_ANY);
}

static void set(const struct cpu_tops *tops, uint64_t *value, uint32_t tid, uint64_t top)
{
    uint64_t changes = *value / CHANGE_ONE;
    uint64_t was = *value & TOP_MASK;
    if (was != CPU_DEEP_NEVER)
        changes++;
    if (changes > CHANGES_MAX)
        top = CPU_DEEP_NEVER;
    *value = changes * CHANGE_ONE | top;
    if (top != was)
        tell(tops, tid, top);
}

void cpu_tops_learn(struct cpu_tops *tops, uint32_t tid, enum unwind_end end, bool copied,
                    uint64_t top)
{
    if (end != UNWIND_ROOT && end != UNWIND_TRUNCATED)
        return;
    top += ABOVE_BYTES;
    uint64_t *value = top <= TOP_MASK ? map_u64_at(&tops->threads, tid, NULL) : NULL;
    if (!value || *value / CHANGE_ONE > CHANGES_MAX)
        return;
    uint64_t known = *value & TOP_MASK;
    bool failed = known == CPU_DEEP_TRY && copied; /* set once more, it counts as a change */
    if (end == UNWIND_ROOT && known != top)
        set(tops, value, tid, top);
    else if (end == UNWIND_TRUNCATED && (known == CPU_DEEP_NEVER || failed))
        set(tops, value, tid, CPU_DEEP_TRY);
}

void cpu_tops_forget(struct cpu_tops *tops, uint32_t tid)
{
    uint64_t *value = map_u64_find(&tops->threads, tid);
    if (!value || *value == 0)
        return;
    if ((*value & TOP_MASK) != CPU_DEEP_NEVER && tops->map_fd >= 0)
        (void)bpf_map_delete_elem(tops->map_fd, &tid);
    *value = 0;
}

uint64_t cpu_tops_get(const struct cpu_tops *tops, uint32_t tid)
{
    const uint64_t *value = map_u64_find(&tops->threads, tid);
    return value ? *value & TOP_MASK : CPU_DEEP_NEVER;
}
