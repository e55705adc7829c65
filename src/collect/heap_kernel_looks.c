/* Which files have the program on them. Libraries come late: a process is looked at again and
 * again, at growing intervals. */
#include "base/clock.h"
#include "collect/heap_kernel_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    LOOK_FIRST_MS = 1,
    LOOK_LAST_MS = 1000,
    LOOKED_MAX = 4096,
    LOOKS_A_ROUND = 16,
    COST_PAIRS = 1000,
    COST_ROUNDS = 5,
    COST_RUNS_A_PAIR = 3, /* malloc() begins and returns, free() begins */
    COST_BYTES = 40,
};

int heap_looks_begin(struct collector *c, const struct collector_target *target)
{
    int r = heap_probes_open(bpf_unit_program_fd(c->unit, "heap_call"),
                             bpf_unit_program_fd(c->unit, "heap_returned"), c->attached,
                             &c->probes);
    if (r < 0)
        return r;
    if (c->attached)
        return heap_looks_add(c, target->pid);
    r = heap_probes_usual(c->probes);
    if (r == 0 && target->program)
        r = heap_probes_program(c->probes, target->program);
    return r;
}

int heap_looks_add(struct collector *c, int pid)
{
    const struct heap_looked fresh = {pid, LOOK_FIRST_MS,
                                      clock_mono_ns() + LOOK_FIRST_MS * NS_PER_MS};
    if (!c->probes)
        return 0;
    for (size_t i = 0; i < c->looked.len; i++)
        if (c->looked.data[i].pid == pid) {
            c->looked.data[i] = fresh;
            return heap_probes_process(c->probes, pid);
        }
    if (c->looked.len >= LOOKED_MAX)
        c->looks_beyond++;
    else if (VEC_PUSH(&c->looked, fresh) < 0)
        return -ENOMEM;
    return heap_probes_process(c->probes, pid);
}

void heap_looks_end(struct collector *c, int pid)
{
    for (size_t i = 0; i < c->looked.len; i++)
        if (c->looked.data[i].pid == pid) {
            c->looked.data[i] = c->looked.data[--c->looked.len];
            return;
        }
}

int heap_looks_drain(struct collector *c, uint64_t now_ns)
{
    int looks = 0, r = 0;
    for (size_t i = 0; i < c->looked.len && looks < LOOKS_A_ROUND && r == 0 && c->probes; i++) {
        struct heap_looked *looked = &c->looked.data[i];
        if (looked->next_ns > now_ns)
            continue;
        r = heap_probes_process(c->probes, looked->pid);
        looked->pause_ms = MIN(2 * looked->pause_ms, (uint32_t)LOOK_LAST_MS);
        looked->next_ns = now_ns + looked->pause_ms * NS_PER_MS;
        looks++;
    }
    return r;
}

/* ---- the cost ---- */

/* Of the fastest round: others disturb us. */
static uint64_t pairs_time(void)
{
    uint64_t best_ns = UINT64_MAX;
    for (int round = 0; round < COST_ROUNDS; round++) {
        uint64_t start_ns = clock_mono_ns();
        for (int i = 0; i < COST_PAIRS; i++) {
            void *volatile memory = malloc(COST_BYTES);
            free(memory);
        }
        best_ns = MIN(best_ns, clock_mono_ns() - start_ns);
    }
    return best_ns / COST_PAIRS;
}

/* The same program in this process, which is not recorded: all that it takes but for the program's
 * own work, which is timed where it is done. */
static void trap_measure(struct collector *c)
{
    uint64_t before = c->probed.set, plain_ns = c->attached ? pairs_time() : 0;
    if (heap_probes_process(c->probes, getpid()) < 0)
        return;
    bool met = !c->attached || heap_probes_counts(c->probes).set > before;
    uint64_t pair_ns = pairs_time();
    if (met && pair_ns > plain_ns)
        c->trap_ns = (pair_ns - plain_ns) / COST_RUNS_A_PAIR;
}

void heap_looks_stop(struct collector *c)
{
    if (!c->probes)
        return;
    c->probed = heap_probes_counts(c->probes);
    trap_measure(c);
    heap_probes_close(c->probes);
    c->probes = NULL;
}
