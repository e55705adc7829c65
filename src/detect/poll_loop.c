/* Asking again and again whether something has happened, where one could wait for it.
 *
 * Two kinds. Who asks without a pause burns a CPU: what others lacked of it is recoverable, and
 * nothing else, since what is waited for does not come sooner. Who sleeps between comes too late
 * by half a pause, each time that something has happened. */
#include "analyze/places.h"
#include "detect/net_common.h"

#include <errno.h>
#include <math.h>

enum { POLLS_MIN = 100, LOOPS_MAX = 32, THREADS_MAX = 64 };
#define RATE_MIN_HZ 100.0
#define USEFUL_MAX  0.05
#define SPIN_MAX_NS 50e3 /* a call that takes less on average does not wait */

struct poll_loop {
    struct place place;
    uint32_t threads[THREADS_MAX]; /* that ask there; more are not looked at */
    size_t thread_count;
    uint64_t polls;  /* questions */
    uint64_t sleeps; /* beside them */
    uint64_t useful; /* at most: what its thread read of that which one can wait for */
    double ns;       /* in polls, of the recording of calls */
    uint64_t first_ns, last_ns;
    int32_t syscall; /* of most */
    uint64_t most;
};

struct poll_loops {
    struct poll_loop loops[LOOPS_MAX];
    size_t count;
};

enum asking { ASKS_NOTHING, ASKS, SLEEPS };

static enum asking asking_of(const struct io_kinds *kinds, const struct call_row *row)
{
    static const char *const names[] = {"poll",       "ppoll",       "select",     "pselect6",
                                        "epoll_wait", "epoll_pwait", "sched_yield"};
    enum io_kind kind = io_kind_of(kinds, &row->info);
    const char *name = syscall_name_on(kinds->machine, row->info.syscall);
    if (row->info.error == EAGAIN && (kind == IO_READ || kind == IO_ACCEPT))
        return ASKS;
    for (size_t i = 0; name && i < ARRAY_SIZE(names); i++)
        if (strcmp(name, names[i]) == 0)
            return ASKS;
    bool sleeps = name && (strcmp(name, "nanosleep") == 0 || strcmp(name, "clock_nanosleep") == 0);
    return sleeps ? SLEEPS : ASKS_NOTHING;
}

/* What one can wait for: not files, which are always ready. */
static bool is_useful(const struct evidence *evidence, const struct call_row *row)
{
    enum object_kind object = evidence->io.objects[row->info.object].kind;
    enum io_kind kind = io_kind_of(&evidence->io_sums.kinds, &row->info);
    bool waitable = object == OBJECT_SOCKET || object == OBJECT_PIPE || object == OBJECT_EVENT ||
                    object == OBJECT_TIMER || object == OBJECT_CHAR_DEVICE;
    return waitable && row->info.error == 0 && (kind == IO_READ || kind == IO_ACCEPT);
}

static bool is_of(const struct poll_loop *loop, uint32_t thread)
{
    for (size_t i = 0; i < loop->thread_count; i++)
        if (loop->threads[i] == thread)
            return true;
    return false;
}

static void call_add(const struct evidence *evidence, struct poll_loops *loops,
                     const struct call_row *row, enum asking asking)
{
    struct place place = place_of_stack(&evidence->io.profile, row->info.stack);
    struct poll_loop *to = NULL;
    for (size_t i = 0; i < loops->count && !to; i++)
        if (place.function.len == 0 ? is_of(&loops->loops[i], row->info.thread)
                                    : place_same(&loops->loops[i].place, &place, false))
            to = &loops->loops[i];
    if (!to && loops->count == LOOPS_MAX)
        return;
    if (!to) {
        to = &loops->loops[loops->count++];
        *to = (struct poll_loop){.place = place, .first_ns = row->tally.first_ns};
    }
    if (!is_of(to, row->info.thread) && to->thread_count < THREADS_MAX)
        to->threads[to->thread_count++] = row->info.thread;
    *(asking == SLEEPS ? &to->sleeps : &to->polls) += row->tally.count;
    to->ns += (double)row->tally.total_ns;
    to->first_ns = MIN(to->first_ns, row->tally.first_ns);
    to->last_ns = MAX(to->last_ns, row->tally.last_ns);
    if (asking == ASKS && row->tally.count > to->most) {
        to->most = row->tally.count;
        to->syscall = row->info.syscall;
    }
}

static void loops_find(const struct evidence *evidence, struct poll_loops *loops)
{
    const struct io *io = &evidence->io;
    /* Those whose place is not known go with one of their thread. */
    for (int known = 1; known >= 0; known--)
        for (size_t i = 1; i < io->call_count; i++) {
            enum asking asking = asking_of(&evidence->io_sums.kinds, &io->calls[i]);
            if (io->calls[i].tally.count > 0 && (io->calls[i].info.stack != 0) == known &&
                asking != ASKS_NOTHING)
                call_add(evidence, loops, &io->calls[i], asking);
        }
    for (size_t i = 1; i < io->call_count; i++)
        for (size_t k = 0; k < loops->count && is_useful(evidence, &io->calls[i]); k++)
            if (is_of(&loops->loops[k], io->calls[i].info.thread))
                loops->loops[k].useful += io->calls[i].tally.count;
}

static double rate_hz(const struct poll_loop *loop)
{
    double span = (double)(loop->last_ns - loop->first_ns) / 1e9;
    return span > 0 ? (double)loop->polls / span : 0;
}

static bool is_spin(const struct poll_loop *loop)
{
    return loop->ns / (double)MAX(loop->polls, 1u) < SPIN_MAX_NS;
}

/* The loop's part of what the program computes is its part of the wall time, where CPUs are what
 * is lacking: of two CPUs a loop that runs all the time takes one. No more than the longest that
 * another thread waited for a CPU meanwhile. */
static struct estimate taken(const struct evidence *evidence, const struct place *place)
{
    const struct profile *cpu = &evidence->cpu;
    if (!evidence->cpu_with_waits)
        return (struct estimate){0, 0, 0};
    double ran = 0, lacked = 0, samples = 0;
    for (uint32_t thread = 1; thread < evidence->waits.profile.thread_count; thread++) {
        double own = 0;
        for (size_t i = 0; i < cpu->total_count; i++)
            if (cpu->totals[i].thread == thread &&
                place_on_stack(cpu, cpu->totals[i].stack, place, false)) {
                own += (double)cpu->totals[i].weight;
                samples += (double)cpu->totals[i].count;
            }
        ran += own;
        if (own == 0)
            lacked = fmax(lacked, (double)evidence->waits.threads[thread].runq_ns);
    }
    double part = cpu->weight > 0 ? ran / (double)cpu->weight : 0;
    double most = lacked * evidence->axes[AXIS_WAITS].scale;
    double ns = fmin(part * evidence->costs_on_path.ns, most);
    double width = samples > 0 ? fmin(1.96 / sqrt(samples), 1) : 1;
    return (struct estimate){ns, ns * (1 - width), ns * (1 + width)};
}

static struct estimate recoverable(const struct evidence *evidence, const struct poll_loop *loop)
{
    double pause = loop->ns / (double)MAX(loop->polls, 1u) * evidence->axes[AXIS_IO].scale;
    double late = loop->polls > 0 ? pause * (double)MAX(loop->useful, 1u) : 0;
    if (loop->polls == 0 || !is_spin(loop))
        return (struct estimate){late / 2, 0, late};
    return taken(evidence, &loop->place);
}

static const char *reason_of(struct arena *arena, const struct evidence *evidence,
                             const struct poll_loop *loop, struct estimate gain)
{
    const char *name = io_call_name(arena, &evidence->io_sums.kinds, loop->syscall);
    double share = (double)loop->useful / (double)MAX(loop->polls, 1u);
    if (loop->polls == 0)
        return arena_printf(arena,
                            "%s sleeps at %s: whether it asks for something between was not "
                            "recorded",
                            net_count(arena, loop->sleeps), place_text(arena, &loop->place));
    if (loop->polls < POLLS_MIN || rate_hz(loop) < RATE_MIN_HZ)
        return arena_printf(arena, "%s calls of %s, %.0f a second; from %.0f on it counts",
                            net_count(arena, loop->polls), name, rate_hz(loop), RATE_MIN_HZ);
    if (share > USEFUL_MAX)
        return arena_printf(arena,
                            "of %s calls of %s up to %.0f%% found something; up to %.0f%% it "
                            "counts",
                            net_count(arena, loop->polls), name, fmin(share, 1) * 100,
                            USEFUL_MAX * 100);
    if (gain.ns < DETECT_SHARE_MIN * evidence->costs_on_path.ns)
        return arena_printf(
            arena, "%s calls of %s in vain, but %s", net_count(arena, loop->polls), name,
            is_spin(loop) ? "no other thread lacked the CPU that it burns"
                          : arena_printf(arena, "what is waited for comes only %s late by it",
                                         net_time(arena, gain.ns)));
    return NULL;
}

static void tell(const struct evidence *evidence, const struct poll_loop *loop,
                 struct findings *ret, struct finding *finding)
{
    struct arena *arena = ret->arena;
    const char *io = evidence->axes[AXIS_IO].artifact, *place = place_text(arena, &finding->place);
    const char *waits = evidence->axes[AXIS_WAITS].artifact;
    const char *name = io_call_name(arena, &evidence->io_sums.kinds, loop->syscall);
    const char *many = net_count(arena, loop->polls);
    double wall = evidence->costs_on_path.ns;
    double gain = finding->recoverable.ns, share = wall > 0 ? gain / wall * 100 : 0;
    finding->title = is_spin(loop)
                         ? arena_printf(arena,
                                        "%s asks %s times without a pause (%s) and takes the "
                                        "CPU from others: %.0f%% of the wall time",
                                        place, many, name, share)
                         : arena_printf(arena,
                                        "%s asks %s times with pauses (%s) and learns late: "
                                        "%.0f%% of the wall time",
                                        place, many, name, share);
    finding_fact(ret, finding, "polls", "asked", value_uint(loop->polls, UNIT_COUNT), io, NULL);
    finding_fact(ret, finding, "useful", "with something found, at most",
                 value_uint(loop->useful, UNIT_COUNT), io, NULL);
    finding_fact(ret, finding, "rate_hz", "a second", value_real(rate_hz(loop), UNIT_COUNT), io,
                 NULL);
    finding->angles[ANGLE_TRACING] = (struct angle_word){
        ANGLE_SUPPORTS, arena_printf(arena, "%s calls, %.0f a second, at most %s found something",
                                     many, rate_hz(loop), net_count(arena, loop->useful))};
    double burnt = finding->cost_ns;
    finding->angles[ANGLE_SAMPLING] = (struct angle_word){
        !is_spin(loop)        ? ANGLE_SILENT
        : burnt > 0.01 * wall ? ANGLE_SUPPORTS
                              : ANGLE_REJECTS,
        is_spin(loop)
            ? arena_printf(arena, "samples on the path: %s in the loop", net_time(arena, burnt))
            : "a sleeping loop has no samples"};
    const struct run_costs *costs = &evidence->costs;
    double switches = is_spin(loop) ? costs->switches_involuntary : costs->switches_voluntary;
    finding->angles[ANGLE_COUNTING] =
        isnan(switches)
            ? (struct angle_word){ANGLE_SILENT, "the baseline has no count of context switches"}
            : (struct angle_word){switches >= 3 ? ANGLE_SUPPORTS : ANGLE_REJECTS,
                                  arena_printf(arena, "a plain run %s the CPU %s times",
                                               is_spin(loop) ? "is taken off" : "gives up",
                                               net_count(arena, (uint64_t)switches))};
    finding_why(ret, finding, waits,
                is_spin(loop) ? "%s runs while another thread is ready and has no CPU, %s of it"
                              : "%s sleeps while what it waits for has happened already, %s of it",
                place, net_time(arena, gain));
    finding_why(ret, finding, io,
                "it asks %.0f times a second, %s times in all, in vain but for %s", rate_hz(loop),
                many, net_count(arena, loop->useful));
    finding_why(ret, finding, io, "%s returns %s: it is a loop around a question, not a wait", name,
                is_spin(loop) ? "at once" : "when its time is over");
    finding->advice = arena_printf(
        arena,
        "%s: wait for it (poll without a limit, a condition variable, an "
        "eventfd, inotify) instead of asking",
        place);
    finding->measure_next = arena_printf(arena, "whyslow io --syscalls whyslow-out/latest/%s", io);
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct poll_loops *loops = ARENA_NEW(ret->arena, struct poll_loops);
    if (!loops)
        return -ENOMEM;
    loops_find(evidence, loops);
    size_t first = ret->count, left_out = 0;
    for (size_t i = 0; i < loops->count; i++) {
        const struct poll_loop *loop = &loops->loops[i];
        struct estimate gain = recoverable(evidence, loop);
        const char *reason = reason_of(ret->arena, evidence, loop, gain);
        if (loop->polls + loop->sleeps < POLLS_MIN || (reason && left_out++ > 0))
            continue;
        struct finding *finding = detected(ret, self);
        if (!finding)
            return -ENOMEM;
        struct path_choice choice = {
            .place = &loop->place, .class = is_spin(loop) ? WAIT_CLASS_RUNNING : WAIT_CLASS_TIMER};
        finding->recoverable = gain;
        path_costs_cover(ret->arena, &evidence->costs_on_path, path_choose, &choice, finding);
        finding->place = loop->place;
        finding->occurrences = loop->polls;
        tell(evidence, loop, ret, finding);
        finding->verdict = reason ? FINDING_DISMISSED : FINDING_CONFIRMED;
        finding->reason = reason;
        finding->title = reason ? self->title : finding->title;
    }
    if (ret->count > first)
        return 0;
    return dismissed(ret, self, "no place asked %d times or more", POLLS_MIN) ? 0 : -ENOMEM;
}

const struct detector detect_poll_loop = {
    .id = "poll_loop",
    .title = "asking again and again instead of waiting",
    .category = CATEGORY_ARCHITECTURE,
    .remedy = REMEDY_REDESIGN,
    .axes = AXIS_BIT_IO | AXIS_BIT_WAITS,
    .judge = judge,
};
