/* Waits for conditions, by where they are; who ended them, and what was done afterwards. */
#include "detect/herd.h"

#include "analyze/lock_sites.h"
#include "analyze/places.h"
#include "detect/lock_common.h"

#include <errno.h>
#include <math.h>

enum { PLACES_MAX = 64 };

struct gathering { /* waits for conditions in one function */
    uint32_t function, row, waker;
    uint64_t wakes, known, to_all, row_ns, waker_count;
};

/* Functions that tell all who wait. */
static bool tells_all(const struct profile *profile, uint32_t stack)
{
    static const char *const names[] = {"pthread_cond_broadcast", "cnd_broadcast", "notify_all",
                                        "notifyAll", "Broadcast"};
    /* A parent's number is smaller than its child's: the loop ends. */
    for (; stack != 0 && stack < profile->stack_count; stack = profile->stacks[stack].parent) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[stack].frame];
        for (uint32_t i = 0; i < frame->place_count; i++) {
            struct str name = profile->functions[profile->places[frame->places + i].function].name;
            for (size_t k = 0; k < ARRAY_SIZE(names); k++)
                if (str_contains(name, names[k]))
                    return true;
        }
    }
    return false;
}

/* Where each row waits for a condition: a function, 0 if it does not. Once a stack. */
static uint32_t *places_find(const struct evidence *evidence, struct arena *arena)
{
    const struct waits *waits = &evidence->waits;
    const struct profile *profile = &waits->profile;
    uint32_t *places = arena_alloc(arena, (waits->row_count + 1) * sizeof(*places));
    uint32_t *known = arena_alloc(arena, (profile->stack_count + 1) * sizeof(*known));
    for (size_t i = 1; places && known && i < waits->row_count; i++) {
        const struct wait_info *info = &waits->rows[i].info;
        if (info->kind != WAIT_BLOCKED || info->object == 0 || info->stack == 0 ||
            info->object >= waits->object_count || info->stack >= profile->stack_count ||
            info->thread >= profile->thread_count ||
            waits->objects[info->object].kind != OBJECT_FUTEX)
            continue;
        if (known[info->stack] == 0) {
            struct lock_site site = lock_site_find(profile, info->stack, false);
            known[info->stack] = 1 + (site.kind == LOCK_CONDITION ? site.function : 0);
        }
        places[i] = known[info->stack] - 1;
    }
    return known ? places : NULL;
}

static void row_add(const struct evidence *evidence, uint32_t id, struct gathering *gathering)
{
    const struct wait_row *row = &evidence->waits.rows[id];
    gathering->wakes += row->tally.count;
    if (row->tally.total_ns >= gathering->row_ns) {
        gathering->row_ns = row->tally.total_ns;
        gathering->row = id;
    }
    if (row->info.waker_stack == 0)
        return;
    gathering->known += row->tally.count;
    if (!tells_all(&evidence->waits.profile, row->info.waker_stack))
        return;
    gathering->to_all += row->tally.count;
    if (row->tally.count > gathering->waker_count) {
        gathering->waker_count = row->tally.count;
        gathering->waker = id;
    }
}

static struct gathering gather(const struct evidence *evidence, const uint32_t *places)
{
    struct gathering all[PLACES_MAX] = {0}, most = {0};
    size_t count = 0;
    for (uint32_t i = 1; i < evidence->waits.row_count; i++) {
        size_t at = 0;
        if (places[i] == 0)
            continue;
        while (at < count && all[at].function != places[i])
            at++;
        if (at == PLACES_MAX)
            continue;
        count = MAX(count, at + 1);
        all[at].function = places[i];
        row_add(evidence, i, &all[at]);
    }
    for (size_t i = 0; i < count; i++)
        if (all[i].wakes > most.wakes)
            most = all[i];
    return most;
}

struct counts { /* by thread */
    uint64_t *wakes;
    bool *wakers;
};

/* Who is woken there how often, and who wakes. */
static int counts_make(const struct evidence *evidence, struct arena *arena, const uint32_t *places,
                       struct herd *herd, struct counts *ret)
{
    size_t threads = evidence->waits.profile.thread_count;
    ret->wakes = arena_alloc(arena, (threads + 1) * sizeof(*ret->wakes));
    ret->wakers = arena_alloc(arena, (threads + 1) * sizeof(*ret->wakers));
    if (!ret->wakes || !ret->wakers)
        return -ENOMEM;
    uint64_t most = 0;
    for (uint32_t i = 1; i < evidence->waits.row_count; i++) {
        const struct wait_row *row = &evidence->waits.rows[i];
        if (places[i] == 0 || places[i] != herd->function)
            continue;
        herd->threads += ret->wakes[row->info.thread] == 0;
        ret->wakes[row->info.thread] += row->tally.count;
        most = MAX(most, ret->wakes[row->info.thread]);
        if (row->info.waker_thread < threads)
            ret->wakers[row->info.waker_thread] = true;
    }
    herd->vain_high = herd->wakes > 0 ? 1 - (double)most / (double)herd->wakes : 0;
    return 0;
}

/* What the woken compute, and what all of it takes of the kernel, by samples; how much that is in a
 * plain run the baseline tells, for a traced one is slower just there. */
static void cpu_split(const struct evidence *evidence, const struct counts *counts,
                      struct herd *herd)
{
    const struct profile *cpu = &evidence->cpu;
    double work = 0, calls = 0, kernel = 0, all = 0;
    for (size_t i = 0; i < cpu->total_count; i++) {
        const struct profile_total *total = &cpu->totals[i];
        double ns = (double)total->weight;
        all += ns;
        if (total->thread >= evidence->waits.profile.thread_count || total->stack == 0)
            continue;
        const struct profile_frame *leaf = &cpu->frames[cpu->stacks[total->stack].frame];
        bool in_kernel = cpu->functions[cpu->places[leaf->places].function].kernel;
        bool woken = counts->wakes[total->thread] > 0;
        bool call = str_is(place_syscall(cpu, total->stack), "futex");
        kernel += in_kernel * ns;
        calls += (call && (woken || counts->wakers[total->thread])) * ns;
        work += (woken && !call) * ns;
    }
    double scale = all > 0 && evidence->costs.cpu_ns > 0 ? evidence->costs.cpu_ns / all : 1;
    herd->work_ns = work * scale / (double)MAX(herd->wakes, (uint64_t)1);
    herd->cpu_ns = all * scale;
    herd->calls_ns = calls * scale;
    if (kernel > 0 && evidence->costs.system_ns > 0)
        herd->calls_ns = fmin(herd->calls_ns, evidence->costs.system_ns * fmin(calls / kernel, 1));
    herd->vain_low = fmin(fmax(0, 1 - herd->work_ns / HERD_SOON_NS), herd->vain_high);
}

/* What the wall time loses when the CPUs have so much less to do. At most its share of all they do:
 * what is left is done by as many at a time as now. At least what one CPU could not do in the time:
 * who has the work may have run beside those that were woken in vain all along. */
static void less_to_do(const struct evidence *evidence, const struct herd *herd, double ns,
                       double *ret_least, double *ret_most)
{
    double wall = evidence->costs_on_path.ns;
    *ret_most = herd->cpu_ns > 0 ? ns / herd->cpu_ns * wall : 0;
    *ret_least = fmin(fmax(0, wall - (herd->cpu_ns - ns)), *ret_most);
}

/* How many were woken in vain is known within bounds, too: the middle of all of them is said. */
static struct estimate gain(const struct evidence *evidence, const struct herd *herd)
{
    const struct path_costs *costs = &evidence->costs_on_path;
    double low, high, unused;
    less_to_do(evidence, herd, herd->calls_ns * herd->vain_low, &low, &unused);
    less_to_do(evidence, herd, herd->calls_ns * herd->vain_high, &unused, &high);
    return (struct estimate){(low + high) / 2, low * costs->wall_low, high * costs->wall_high};
}

static const char *fine_reason(const struct herd *herd, struct arena *arena)
{
    if (herd->threads < HERD_THREADS_MIN || herd->wakes < HERD_WAKES_MIN)
        return arena_printf(arena,
                            "%u threads wait for a condition at one place and were woken %s times; "
                            "from %d threads and %d times on it counts",
                            herd->threads, count_text(arena, herd->wakes), HERD_THREADS_MIN,
                            HERD_WAKES_MIN);
    if (herd->known == 0)
        return "who wakes the threads that wait for conditions is known only with privileges";
    if ((double)herd->to_all < HERD_TOLD_MIN * (double)herd->known)
        return arena_printf(arena, "of %s wake-ups %.0f%% come from a call that tells all",
                            count_text(arena, herd->known),
                            100.0 * (double)herd->to_all / (double)herd->known);
    if (herd->vain_low >= HERD_SURE_MIN && (herd->vain_low + herd->vain_high) / 2 >= HERD_VAIN_MIN)
        return NULL;
    return arena_printf(arena,
                        "%u threads are told at once, and each computes for %s then: it is told "
                        "for good reason",
                        herd->threads, time_text(arena, herd->work_ns));
}

int herd_find(const struct evidence *evidence, struct arena *arena, struct herd *ret)
{
    const uint32_t *places = places_find(evidence, arena);
    if (!places)
        return -ENOMEM;
    struct gathering most = gather(evidence, places);
    struct herd herd = {
        .function = most.function,
        .row = most.row,
        .waker = most.waker,
        .wakes = most.wakes,
        .known = most.known,
        .to_all = most.to_all,
        .work_ns = NAN,
        .fine = "no thread waits for a condition",
    };
    herd.unknown = herd.function && !evidence->cpu_with_waits;
    if (herd.unknown)
        herd.fine = "what threads do once they are woken is known from CPU samples of the same "
                    "run, and there are none";
    if (herd.function && evidence->cpu_with_waits) {
        struct counts counts;
        if (counts_make(evidence, arena, places, &herd, &counts) < 0)
            return -ENOMEM;
        cpu_split(evidence, &counts, &herd);
        herd.recoverable = gain(evidence, &herd);
        herd.fine = fine_reason(&herd, arena);
        herd.unknown = herd.known == 0 && herd.threads >= HERD_THREADS_MIN &&
                       herd.wakes >= HERD_WAKES_MIN;
    }
    *ret = herd;
    return arena_failed(arena) ? -ENOMEM : 0;
}
