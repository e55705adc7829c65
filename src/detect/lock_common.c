/* One lock: its window, what was computed in it, and the run without its waits. */
#include "detect/lock_common.h"

#include "analyze/places.h"
#include "analyze/what_if.h"
#include "base/units.h"

#include <errno.h>
#include <math.h>

enum { CONDITION_BYTES = 48 }; /* of glibc's */

/* What is added up by thread. */
struct lock_sums {
    const struct evidence *evidence;
    struct lock_look *look;
    bool *wants;      /* it waited for the lock */
    double *wakes;    /* how often */
    double *cpu_ns;   /* computing in the window, without calls for locks */
    double *calls_ns; /* these */
};

/* One has it, others wait: only then is there somebody in the way. */
static bool excludes(enum lock_kind kind)
{
    return kind == LOCK_MUTEX || kind == LOCK_PI_MUTEX || kind == LOCK_RWLOCK ||
           kind == LOCK_RWLOCK_READ || kind == LOCK_RWLOCK_WRITE || kind == LOCK_UNKNOWN ||
           kind == LOCK_KERNEL_MUTEX || kind == LOCK_KERNEL_RWSEM;
}

const char *time_text(struct arena *arena, double ns)
{
    char text[48];
    return arena_dup(arena, units_format(ns, UNIT_NS, text, sizeof(text)));
}

const char *count_text(struct arena *arena, uint64_t count)
{
    char text[48];
    return arena_dup(arena, units_format((double)count, UNIT_COUNT, text, sizeof(text)));
}

const char *lock_id(struct arena *arena, const struct lock_look *look)
{
    return arena_printf(arena, "l%u", look->row->object);
}

const char *lock_name(struct arena *arena, const struct lock_look *look)
{
    return look->row->named ? look->row->name : arena_printf(arena, "the lock %s", look->row->name);
}

static double overlap_ns(uint64_t a_start, uint64_t a_end, uint64_t b_start, uint64_t b_end)
{
    uint64_t start = MAX(a_start, b_start), end = MIN(a_end, b_end);
    return end > start ? (double)(end - start) : 0;
}

static bool of_lock(const struct evidence *evidence, size_t row, uint32_t lock)
{
    return evidence->locks.of_wait[row] == lock + 1 &&
           evidence->waits.rows[row].info.kind == WAIT_BLOCKED;
}

/* Who is woken has the lock only once it runs: the way to a CPU is part of the wait. */
static double delays_sum(const struct lock_sums *sums)
{
    const struct waits *waits = &sums->evidence->waits;
    double ns = 0;
    for (size_t i = 1; i < waits->row_count; i++) {
        const struct wait_row *row = &waits->rows[i];
        if (row->info.kind != WAIT_RUNQ || row->info.thread >= waits->profile.thread_count ||
            row->tally.count == 0)
            continue;
        double part = sums->wakes[row->info.thread] / (double)row->tally.count;
        ns += fmin(part, 1) * (double)row->tally.total_ns;
    }
    return ns;
}

/* From the first wait for it to the end of the last, and who waited. */
static bool window_find(struct lock_sums *sums)
{
    const struct evidence *evidence = sums->evidence;
    const struct waits *waits = &evidence->waits;
    struct lock_look *look = sums->look;
    double lives = 0;
    look->start_ns = UINT64_MAX;
    for (size_t i = 1; i < waits->row_count; i++) {
        const struct wait_row *row = &waits->rows[i];
        if (!of_lock(evidence, i, look->index) || row->info.thread >= waits->profile.thread_count)
            continue;
        look->start_ns = MIN(look->start_ns, row->tally.first_ns);
        look->end_ns = MAX(look->end_ns, row->tally.last_ns);
        if (!sums->wants[row->info.thread])
            lives += (double)(waits->threads[row->info.thread].end_ns -
                              waits->threads[row->info.thread].start_ns);
        sums->wants[row->info.thread] = true;
        sums->wakes[row->info.thread] += (double)row->tally.count;
    }
    double window = look->end_ns > look->start_ns ? (double)(look->end_ns - look->start_ns) : 0;
    double waited = (double)look->row->waits.total_ns + delays_sum(sums);
    look->thread_share = lives > 0 ? fmin(waited / lives, 1) : 0;
    look->wait_share = lives > 0 ? (double)look->row->waits.total_ns / lives : 0;
    /* Delays are known by thread and not by wait: some of them may lie outside of the window. */
    look->mean_waiters = window > 0 ? fmin(waited / window, look->row->threads) : 0;
    return window > 0 && look->row->waits.count > 0;
}

/* Waits with a lock in hand: for what is no thread's to give. */
static bool is_outside(enum wait_class class)
{
    return class == WAIT_CLASS_DISK || class == WAIT_CLASS_NET || class == WAIT_CLASS_PAGEFAULT ||
           class == WAIT_CLASS_TIMER || class == WAIT_CLASS_CHILD || class == WAIT_CLASS_PIPE ||
           class == WAIT_CLASS_UNKNOWN;
}

/* Whoever takes a lock does what is under it from the same function, or from one below. */
static void under_add(const struct evidence *evidence, struct lock_look *look)
{
    const struct waits *waits = &evidence->waits;
    for (uint32_t i = 1; i < waits->row_count; i++) {
        const struct wait_row *row = &waits->rows[i];
        if (row->info.kind != WAIT_BLOCKED || row->info.stack == 0 ||
            !is_outside(evidence->classes.rows[i]) ||
            !(place_on_stack(&waits->profile, row->info.stack, &look->wanted, false) ||
              (look->held.function.len > 0 &&
               place_on_stack(&waits->profile, row->info.stack, &look->held, false))))
            continue;
        look->under_ns += (double)row->tally.total_ns;
        look->under_count += row->tally.count;
        if (look->under_row == 0 ||
            waits->rows[look->under_row].tally.total_ns < row->tally.total_ns)
            look->under_row = i;
    }
}

/* A call that only a lock makes that is not free, or that others wait for. */
static bool is_call_for(const struct profile *cpu, uint32_t stack, const struct lock_look *look)
{
    if (!str_is(place_syscall(cpu, stack), "futex"))
        return false;
    enum lock_kind kind = lock_site_find(cpu, stack, false).kind;
    return kind != LOCK_UNKNOWN && excludes(kind) &&
           (place_on_stack(cpu, stack, &look->wanted, false) ||
            (look->held.function.len > 0 && place_on_stack(cpu, stack, &look->held, false)));
}

/* By samples, as long as they are of the same run; else a thread's computing is spread evenly. */
static void cpu_add(struct lock_sums *sums)
{
    const struct evidence *evidence = sums->evidence;
    const struct waits *waits = &evidence->waits;
    const struct profile *cpu = &evidence->cpu;
    struct lock_look *look = sums->look;
    size_t threads = waits->profile.thread_count;
    if (!evidence->cpu_with_waits) {
        for (size_t i = 1; i < threads; i++) {
            const struct waits_thread *life = &waits->threads[i];
            double span = (double)(life->end_ns - life->start_ns);
            double in = overlap_ns(life->start_ns, life->end_ns, look->start_ns, look->end_ns);
            sums->cpu_ns[i] = span > 0 ? (double)life->running_ns * in / span : 0;
        }
        return;
    }
    double all = 0;
    for (size_t i = 0; i < cpu->sample_count; i++) {
        uint32_t thread = cpu->sample_thread[i];
        if (thread >= threads || cpu->sample_time_ns[i] < look->start_ns ||
            cpu->sample_time_ns[i] > look->end_ns)
            continue;
        double ns = (double)cpu->sample_weight[i];
        all += ns;
        look->samples++;
        bool call = sums->wants[thread] && is_call_for(cpu, cpu->sample_stack[i], look);
        if (call) {
            sums->calls_ns[thread] += ns;
            look->calls_samples++;
        } else {
            sums->cpu_ns[thread] += ns;
        }
    }
    look->busy_cpus = all / (double)(look->end_ns - look->start_ns);
}

static double least_find(const struct lock_sums *sums)
{
    double all = 0;
    for (size_t i = 1; i < sums->evidence->waits.profile.thread_count; i++)
        all += sums->cpu_ns[i];
    return all / (double)MAX(sums->evidence->costs.cpus, 1u);
}

static int gain_find(const struct lock_sums *sums, struct arena *arena, double *ret_ns)
{
    const struct evidence *evidence = sums->evidence;
    size_t rows = evidence->waits.row_count;
    float *gone = arena_alloc(arena, (rows + 1) * sizeof(*gone));
    if (!gone)
        return -ENOMEM;
    for (size_t i = 1; i < rows; i++)
        gone[i] = of_lock(evidence, i, sums->look->index);
    struct what_if what = {
        .waits = &evidence->waits,
        .gone = gone,
        .lighter = sums->calls_ns,
        .start_ns = sums->look->start_ns,
        .end_ns = sums->look->end_ns,
    };
    return what_if_gain(arena, &what, ret_ns);
}

/* Sampling tells how much was computed, the baseline how long a run is: both widen it. */
static struct estimate interval_of(const struct evidence *evidence, const struct lock_look *look,
                                   double ns)
{
    const struct path_costs *costs = &evidence->costs_on_path;
    double sampling = look->samples > 0 ? 1.96 * look->least_ns / sqrt((double)look->samples) : 0;
    double low = hypot(sampling, ns * (1 - costs->wall_low));
    double high = hypot(sampling, ns * (costs->wall_high - 1));
    return (struct estimate){ns, fmax(0, ns - low), fmin(ns + high, fmax(look->window_ns, ns))};
}

/* Where the program uses the lock. The site is the innermost function that is no part of locking:
 * the user's if it is so, else who called it, for a lock of a library is mended by its callers. */
static struct place place_of_use(const struct profile *profile, uint32_t stack,
                                 struct lock_site site)
{
    struct place place = place_of_stack(profile, stack);
    if (site.function == 0)
        return place;
    struct place used = place_of_function(profile, site.function);
    if (used.owner != FINDING_OWNER_USER && place.owner == FINDING_OWNER_USER)
        return place;
    if (site.line) {
        used.file = site.file;
        used.line = site.line;
    }
    return used;
}

static void places_find(const struct evidence *evidence, struct lock_look *look)
{
    const struct profile *profile = &evidence->waits.profile;
    const struct lock_row *row = look->row;
    bool kernel = row->object_kind == OBJECT_KERNEL_LOCK;
    if (row->waiter_count > 0)
        look->wanted = place_of_use(profile, row->waiters[0].stack,
                                    lock_site_find(profile, row->waiters[0].stack, kernel));
    if (row->holder_count > 0)
        look->held = place_of_use(profile, row->holders[0].stack,
                                  lock_holder_find(profile, row->holders[0].stack, kernel));
}

static bool sums_make(struct lock_sums *sums, struct arena *arena)
{
    size_t threads = sums->evidence->waits.profile.thread_count + 1;
    sums->wants = arena_alloc(arena, threads * sizeof(*sums->wants));
    sums->wakes = arena_alloc(arena, threads * sizeof(*sums->wakes));
    sums->cpu_ns = arena_alloc(arena, threads * sizeof(*sums->cpu_ns));
    sums->calls_ns = arena_alloc(arena, threads * sizeof(*sums->calls_ns));
    return sums->wants && sums->wakes && sums->cpu_ns && sums->calls_ns;
}

/* Below that no more is asked: a replay takes time, and a program may have very many locks. */
static bool is_wanted(const struct lock_look *look)
{
    return look->wait_share >= LOCK_THREAD_SHARE_MIN || look->thread_share >= LOCK_DELAY_SHARE_MIN;
}

bool lock_look(const struct evidence *evidence, struct arena *arena, uint32_t index,
               struct lock_look *ret)
{
    const struct lock_row *row = &evidence->locks.rows[index];
    struct lock_look look = {.row = row,
                             .index = index,
                             .busy_cpus = NAN,
                             .window_ns = NAN,
                             .gain_ns = NAN,
                             .least_ns = NAN,
                             .recoverable = {NAN, NAN, NAN}};
    struct lock_sums sums = {.evidence = evidence, .look = &look};
    if (!excludes(row->kind) || evidence->path.na || evidence->path.ns == 0 ||
        !sums_make(&sums, arena) || !window_find(&sums))
        return false;
    double scale = evidence->costs_on_path.ns / (double)evidence->path.ns;
    look.wait_mean_ns = (double)row->waits.total_ns / (double)row->waits.count;
    look.hold_mean_ns = row->holds.count > 0
                            ? (double)row->holds.total_ns / (double)row->holds.count
                            : NAN;
    places_find(evidence, &look);
    if (!is_wanted(&look)) {
        *ret = look;
        return true;
    }
    under_add(evidence, &look);
    cpu_add(&sums);
    double gain_ns = 0;
    if (gain_find(&sums, arena, &gain_ns) < 0)
        return false;
    look.window_ns = scale * (double)(look.end_ns - look.start_ns);
    look.least_ns = scale * least_find(&sums);
    look.gain_ns = scale * gain_ns;
    double ns = fmax(0, fmin(look.gain_ns, look.window_ns - look.least_ns));
    look.recoverable = interval_of(evidence, &look, ns);
    *ret = look;
    return true;
}

/* A condition variable has a lock of its own inside. */
static bool inside_condition(const struct evidence *evidence, const struct lock_look *look,
                             uint32_t row)
{
    uint32_t object = evidence->waits.rows[row].info.object;
    uint64_t key = evidence->waits.objects[object].key, address = look->row->address;
    return evidence->waits.objects[object].process == look->row->process &&
           (key > address ? key - address : address - key) < CONDITION_BYTES;
}

/* How much of its waits is who was woken from a condition there, and wants it back. */
static double after_condition(const struct evidence *evidence, const struct lock_look *look,
                              uint32_t function)
{
    const struct profile *profile = &evidence->waits.profile;
    struct place place = place_of_function(profile, function);
    double ns = 0, all = 0;
    for (size_t i = 0; i < look->row->waiter_count; i++) {
        const struct lock_stack *waiter = &look->row->waiters[i];
        all += (double)waiter->ns;
        if (place_on_stack(profile, waiter->stack, &place, false))
            ns += (double)waiter->ns;
    }
    return all > 0 ? ns / all : 0;
}

/* Who is preempted with the lock is off the CPU, too: something must have been waited for. Often is
 * enough, for where CPUs are scarce it is the way back to one that takes long. */
static bool waits_under(const struct lock_look *look)
{
    double waited = fmin((double)(look->end_ns - look->start_ns),
                         (double)look->row->waits.total_ns);
    return look->under_ns * 100 > LOCK_OFF_CPU_PCT_MIN * waited ||
           look->under_count * 2 >= look->row->waits.count;
}

enum lock_trouble lock_judge(struct arena *arena, const struct lock_look *look,
                             const struct evidence *evidence, const struct herd *herd,
                             const char **ret_reason)
{
    double wall = evidence->costs_on_path.ns;
    const char *name = lock_name(arena, look);
    if (!is_wanted(look)) {
        *ret_reason = arena_printf(
            arena,
            "threads waited %s for %s, %.2f%% of their time, and %.2f%% with the way to a CPU; "
            "from %.0f%% or %.0f%% on it counts",
            time_text(arena, (double)look->row->waits.total_ns), name, look->wait_share * 100,
            look->thread_share * 100, LOCK_THREAD_SHARE_MIN * 100, LOCK_DELAY_SHARE_MIN * 100);
        return LOCK_FINE;
    }
    if (look->row->waits.count < LOCK_WAITS_MIN &&
        look->recoverable.ns < LOCK_PATH_SHARE_MIN * wall) {
        *ret_reason = arena_printf(arena,
                                   "%s was waited for %s times, and without it %.1f%% of the wall "
                                   "time would be saved; from %d waits or %.0f%% on it counts",
                                   name, count_text(arena, look->row->waits.count),
                                   wall > 0 ? look->recoverable.ns / wall * 100 : 0, LOCK_WAITS_MIN,
                                   LOCK_PATH_SHARE_MIN * 100);
        return LOCK_FINE;
    }
    if (!herd->fine && (inside_condition(evidence, look, herd->row) ||
                        after_condition(evidence, look, herd->function) >= 0.5))
        return LOCK_OF_HERD;
    if (look->row->off_cpu_hold_pct > LOCK_OFF_CPU_PCT_MIN && waits_under(look))
        return LOCK_HAS_IO;
    bool far_below = !(look->hold_mean_ns * LOCK_WAITERS_MIN > look->wait_mean_ns);
    return look->mean_waiters >= LOCK_WAITERS_MIN && far_below ? LOCK_IS_CONVOY : LOCK_IS_HOT;
}
