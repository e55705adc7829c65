/* What each angle says of a claim, with its numbers.
 *
 * A claim is the share of the wall time that an explanation would explain. An angle supports it
 * when what it measures by itself has room for most of the claim, and rejects it when there is no
 * room, or when there is nothing that wants explaining. What an angle cannot see it is silent
 * about: that a thread was off the CPU does not say what it waited for. */
#include "analyze/ledger_parts.h"

#include <math.h>

/* Of a claim that another angle must find by itself: it measures other runs, with other errors. */
#define AGREES_MIN 0.60
/* Shares that are printed alike. */
#define SAME_SHARE 0.005
/* A thread that is alone keeps one CPU busy, and hardly more. */
#define ALONE_CPUS_MAX 1.50
/* Calls of the allocator a second of wall time: some 50 ns each make 5% and 0.5%. */
#define ALLOC_RATE_HIGH 1e6
#define ALLOC_RATE_LOW  1e5
/* What a page fault costs: less is no fault, more is a wait. */
#define FAULT_NS_MIN    100.0
#define FAULT_NS_MAX    50e3
#define FAULT_NS_USUAL  500.0
#define MAJOR_FAULT_MAX 50e6
/* Forced switches a second: the time slice of a CPU that two want is a few milliseconds. */
#define FORCED_RATE_HIGH 20.0
#define FORCED_RATE_LOW  5.0
/* What starting a program takes at most, and the pages it touches at least. */
#define START_NS_MAX     1e9
#define START_FAULTS_MIN 50.0

static bool is_much(const struct ledger_rule *rule, double claim)
{
    return claim >= rule->supports_min;
}

static struct angle_word not_sampled(const struct ledger_facts *facts)
{
    const char *na = facts->evidence->axes[AXIS_CPU].na;
    return ledger_word(facts, ANGLE_SILENT, "n/a: %s", na ? na : "no sample on the path");
}

static struct angle_word not_traced(const struct ledger_facts *facts, enum axis axis)
{
    const char *na = facts->evidence->axes[axis].na;
    if (!na)
        na = facts->evidence->costs_on_path.na;
    return ledger_word(facts, ANGLE_SILENT, "n/a: %s", na ? na : "not recorded");
}

static struct angle_word not_counted(const struct ledger_facts *facts)
{
    return ledger_word(facts, ANGLE_SILENT, "n/a: the baseline has no such count");
}

/* By the bounds of the rule alone. */
static enum angle_verdict by_bounds(const struct ledger_rule *rule, double share)
{
    return share >= rule->supports_min    ? ANGLE_SUPPORTS
           : share >= rule->rejects_below ? ANGLE_SILENT
                                          : ANGLE_REJECTS;
}

static const char *unsure(enum angle_verdict verdict)
{
    return verdict == ANGLE_SILENT ? ": too little to decide" : "";
}

static struct angle_word share_word(const struct ledger_facts *facts,
                                    const struct ledger_rule *rule, double share, const char *fmt)
{
    enum angle_verdict verdict = by_bounds(rule, share);
    return ledger_word(facts, verdict, "%.1f%% of the path %s%s%s", share * 100, rule->what, fmt,
                       unsure(verdict));
}

/* A finding may speak of the function with what it calls, which is more than its own row has, or of
 * the hottest one that is not a library's or the kernel's. */
struct angle_word ledger_sampling_hottest(const struct ledger_facts *facts,
                                          const struct ledger_rule *rule, double claim)
{
    double alone = rule->claim(facts, rule);
    if (!facts->sampled)
        return not_sampled(facts);
    return share_word(facts, rule, claim,
                      claim > alone + SAME_SHARE   ? " and what it calls"
                      : claim < alone - SAME_SHARE ? " of its own code"
                                                   : "");
}

/* Waits and counts cannot tell functions apart: they can have room for one, or none. */
static struct angle_word running_room(const struct ledger_facts *facts,
                                      const struct ledger_rule *rule, double claim, double running,
                                      const char *what)
{
    enum angle_verdict verdict = ANGLE_SILENT;
    if (is_much(rule, claim))
        verdict = running >= AGREES_MIN * claim ? ANGLE_SUPPORTS : ANGLE_REJECTS;
    else if (running < rule->rejects_below)
        verdict = ANGLE_REJECTS;
    return ledger_word(facts, verdict, "%s for %.0f%% of the time%s", what, running * 100,
                       verdict == ANGLE_SILENT ? ": in which function is not seen" : "");
}

struct angle_word ledger_tracing_running(const struct ledger_facts *facts,
                                         const struct ledger_rule *rule, double claim)
{
    if (!facts->traced)
        return not_traced(facts, AXIS_WAITS);
    return running_room(facts, rule, claim, facts->classes[rule->class],
                        "the path runs between waits");
}

struct angle_word ledger_counting_running(const struct ledger_facts *facts,
                                          const struct ledger_rule *rule, double claim)
{
    if (!facts->counted)
        return not_counted(facts);
    return running_room(facts, rule, claim, facts->cpu_used, "plain runs used a CPU");
}

/* Samples tell when nobody ran, not why. */
struct angle_word ledger_sampling_waits(const struct ledger_facts *facts,
                                        const struct ledger_rule *rule, double claim)
{
    if (!facts->sampled)
        return not_sampled(facts);
    double off = 1 - facts->on_cpu;
    if (is_much(rule, claim))
        return ledger_word(facts, off >= AGREES_MIN * claim ? ANGLE_SUPPORTS : ANGLE_REJECTS,
                           "no sample for %.0f%% of the path, where %.0f%% is claimed", off * 100,
                           claim * 100);
    if (off < rule->rejects_below)
        return ledger_word(facts, ANGLE_REJECTS, "on a CPU for %.0f%% of the path",
                           facts->on_cpu * 100);
    return ledger_word(facts, ANGLE_SILENT, "no sample for %.0f%% of the path: why is not seen",
                       off * 100);
}

struct angle_word ledger_tracing_waits(const struct ledger_facts *facts,
                                       const struct ledger_rule *rule, double claim)
{
    (void)claim;
    if (!facts->traced)
        return not_traced(facts, AXIS_WAITS);
    double waited = rule->claim(facts, rule);
    enum angle_verdict verdict = by_bounds(rule, waited);
    return ledger_word(facts, verdict, "%s: %.1f%% of the path in %llu steps%s", rule->what,
                       waited * 100, (unsigned long long)facts->steps[rule->class],
                       unsure(verdict));
}

/* What the hypervisor takes a guest does not see: its threads seem to run. */
struct angle_word ledger_tracing_starvation(const struct ledger_facts *facts,
                                            const struct ledger_rule *rule, double claim)
{
    struct angle_word word = ledger_tracing_waits(facts, rule, claim);
    double stolen = evidence_stolen_ns(facts->evidence);
    if (!facts->traced || word.verdict == ANGLE_SUPPORTS ||
        stolen < rule->rejects_below * facts->wall_ns)
        return word;
    return ledger_word(facts, ANGLE_SILENT,
                       "%s: %.1f%% of the path; what the hypervisor takes is not traced",
                       rule->what, rule->claim(facts, rule) * 100);
}

/* Idle waits on the path with a time limit of which nobody knows whether it ended them: a sleep
 * may be made of them. */
static double maybe_sleeping(const struct ledger_facts *facts)
{
    const struct evidence *evidence = facts->evidence;
    const struct critical_path *path = &evidence->path;
    uint64_t ns = 0;
    for (size_t i = 1; i < evidence->waits.row_count && !path->na && path->ns > 0; i++) {
        uint32_t flags = evidence->waits.rows[i].info.flags;
        bool unknown = (flags & WAIT_SAMPLED) && (flags & WAIT_LIMITED);
        if (unknown && evidence->classes.rows[i] == WAIT_CLASS_IDLE)
            ns += path->waits[i];
    }
    return ns > 0 ? (double)ns / (double)path->ns : 0;
}

struct angle_word ledger_tracing_sleep(const struct ledger_facts *facts,
                                       const struct ledger_rule *rule, double claim)
{
    struct angle_word word = ledger_tracing_waits(facts, rule, claim);
    double maybe = word.verdict == ANGLE_REJECTS ? maybe_sleeping(facts) : 0;
    if (rule->claim(facts, rule) + maybe < rule->rejects_below || maybe == 0)
        return word;
    return ledger_word(facts, ANGLE_SILENT,
                       "%s: %.1f%% of the path; %.1f%% waited with a time limit: what ended it is "
                       "not known",
                       rule->what, rule->claim(facts, rule) * 100, maybe * 100);
}

struct angle_word ledger_tracing_syncs(const struct ledger_facts *facts,
                                       const struct ledger_rule *rule, double claim)
{
    if (!facts->traced)
        return not_traced(facts, AXIS_WAITS);
    enum angle_verdict verdict = by_bounds(rule, claim);
    return ledger_word(facts, verdict, "%s: %.1f%% of the path, %llu waits%s", rule->what,
                       claim * 100, (unsigned long long)facts->sync_steps, unsure(verdict));
}

/* Without threads the time off the CPU is the rest of the wall time; a wait is a switch. */
struct angle_word ledger_counting_waits(const struct ledger_facts *facts,
                                        const struct ledger_rule *rule, double claim)
{
    if (!facts->counted)
        return not_counted(facts);
    double off = fmax(0, 1 - facts->cpu_used);
    double switches = facts->evidence->costs.switches_voluntary;
    if (isnan(switches))
        return not_counted(facts);
    if (is_much(rule, claim)) {
        bool room = facts->threads > 1 || off >= AGREES_MIN * claim;
        bool waits = switches >= 1;
        return ledger_word(facts, room && waits ? ANGLE_SUPPORTS : ANGLE_REJECTS,
                           "plain runs used a CPU for %.0f%% of the wall time and waited %.0f "
                           "times",
                           facts->cpu_used * 100, switches);
    }
    if (facts->threads <= 1 && off < rule->rejects_below)
        return ledger_word(facts, ANGLE_REJECTS, "plain runs used a CPU for %.0f%% of the time",
                           facts->cpu_used * 100);
    return ledger_word(facts, ANGLE_SILENT, "plain runs waited %.0f times: for what is not counted",
                       switches);
}

struct angle_word ledger_sampling_alloc(const struct ledger_facts *facts,
                                        const struct ledger_rule *rule, double claim)
{
    return facts->sampled ? share_word(facts, rule, claim, "") : not_sampled(facts);
}

struct angle_word ledger_tracing_alloc(const struct ledger_facts *facts,
                                       const struct ledger_rule *rule, double claim)
{
    (void)rule, (void)claim;
    if (!evidence_has(facts->evidence, AXIS_HEAP))
        return not_traced(facts, AXIS_HEAP);
    const struct heap_figures *all = &facts->evidence->heap_sums.all;
    double calls = (double)(all->allocations + all->frees);
    double rate = facts->wall_ns > 0 ? calls / facts->wall_ns * 1e9 : 0;
    enum angle_verdict verdict = rate >= ALLOC_RATE_HIGH  ? ANGLE_SUPPORTS
                                 : rate >= ALLOC_RATE_LOW ? ANGLE_SILENT
                                                          : ANGLE_REJECTS;
    const char *about = facts->evidence->axes[AXIS_HEAP].sampled && calls > 0 ? "~" : "";
    return ledger_word(facts, verdict, "%s%.0f calls of the allocator, %s%.0f a second%s", about,
                       calls, about, rate, unsure(verdict));
}

/* The kernel does not count calls of malloc(): only what they make it do. */
struct angle_word ledger_counting_alloc(const struct ledger_facts *facts,
                                        const struct ledger_rule *rule, double claim)
{
    const struct run_costs *costs = &facts->evidence->costs;
    if (!facts->counted || isnan(costs->faults_minor))
        return not_counted(facts);
    if (facts->cpu_used < rule->rejects_below)
        return ledger_word(facts, ANGLE_REJECTS, "plain runs used a CPU for %.1f%% of the time",
                           facts->cpu_used * 100);
    if (is_much(rule, claim) &&
        costs->faults_minor * FAULT_NS_USUAL >= rule->rejects_below * facts->wall_ns)
        return ledger_word(facts, ANGLE_SUPPORTS, "plain runs took %.0f page faults for new memory",
                           costs->faults_minor);
    return ledger_word(facts, ANGLE_SILENT,
                       "%.0f page faults; calls of the allocator are not counted by the kernel",
                       costs->faults_minor);
}

static struct angle_word one_thread(const struct ledger_facts *facts)
{
    return ledger_word(facts, ANGLE_REJECTS,
                       "one thread does all the work: it keeps nobody waiting");
}

/* Few CPUs in use do not say that one thread keeps the others waiting: they may wait for a disk. */
static enum angle_verdict alone(const struct ledger_rule *rule, double claim, double cpus)
{
    if (cpus >= ALONE_CPUS_MAX)
        return ANGLE_REJECTS;
    return is_much(rule, claim) ? ANGLE_SUPPORTS : ANGLE_SILENT;
}

struct angle_word ledger_sampling_serial(const struct ledger_facts *facts,
                                         const struct ledger_rule *rule, double claim)
{
    if (!facts->sampled)
        return not_sampled(facts);
    if (facts->threads <= 1)
        return one_thread(facts);
    double cpus = facts->wall_ns > 0 ? (double)facts->evidence->cpu.weight *
                                           facts->evidence->axes[AXIS_CPU].scale / facts->wall_ns
                                     : 0;
    return ledger_word(facts, alone(rule, claim, cpus),
                       "%u threads, %.2f of them on a CPU at a time", facts->threads, cpus);
}

struct angle_word ledger_tracing_serial(const struct ledger_facts *facts,
                                        const struct ledger_rule *rule, double claim)
{
    (void)claim;
    if (!facts->traced)
        return not_traced(facts, AXIS_WAITS);
    return facts->threads > 1 ? share_word(facts, rule, rule->claim(facts, rule), "")
                              : one_thread(facts);
}

struct angle_word ledger_counting_serial(const struct ledger_facts *facts,
                                         const struct ledger_rule *rule, double claim)
{
    uint32_t cpus = facts->evidence->costs.cpus;
    if (!facts->counted)
        return not_counted(facts);
    if (facts->threads <= 1)
        return one_thread(facts);
    return ledger_word(facts, cpus > 1 ? alone(rule, claim, facts->cpu_used) : ANGLE_REJECTS,
                       "plain runs used %.2f of %u CPUs", facts->cpu_used, cpus);
}

struct angle_word ledger_counting_starvation(const struct ledger_facts *facts,
                                             const struct ledger_rule *rule, double claim)
{
    (void)claim;
    const struct run_costs *costs = &facts->evidence->costs;
    if (!facts->counted || isnan(costs->switches_involuntary))
        return not_counted(facts);
    double rate = costs->switches_involuntary / costs->wall_ns * 1e9;
    double stolen = evidence_stolen_ns(facts->evidence), gap = evidence_gap_ns(facts->evidence);
    double taken = fmin(fmax(0, costs->throttled_ns) + stolen, gap); /* NaN counts as 0 */
    bool much = rate >= FORCED_RATE_HIGH || taken >= rule->supports_min * costs->wall_ns;
    bool little = rate < FORCED_RATE_LOW && taken < rule->rejects_below * costs->wall_ns;
    enum angle_verdict verdict = much ? ANGLE_SUPPORTS : little ? ANGLE_REJECTS : ANGLE_SILENT;
    return ledger_word(facts, verdict,
                       "plain runs were forced off a CPU %.0f times a second; limits and the "
                       "hypervisor took %.1f%%%s",
                       rate, taken / costs->wall_ns * 100, unsure(verdict));
}

struct angle_word ledger_sampling_faults(const struct ledger_facts *facts,
                                         const struct ledger_rule *rule, double claim)
{
    (void)claim;
    if (!facts->sampled)
        return not_sampled(facts);
    if (!facts->kernel_seen)
        return ledger_word(facts, ANGLE_SILENT, "n/a: samples do not show the kernel's functions");
    return share_word(facts, rule, facts->faults, "");
}

/* Faults that need no disk are taken one by one by nobody. */
struct angle_word ledger_tracing_faults(const struct ledger_facts *facts,
                                        const struct ledger_rule *rule, double claim)
{
    if (!facts->traced)
        return not_traced(facts, AXIS_WAITS);
    double waited = facts->classes[rule->class];
    if (waited >= rule->supports_min || !is_much(rule, claim))
        return share_word(facts, rule, waited, ", waiting");
    return ledger_word(facts, ANGLE_SILENT, "only faults that wait are traced: %.1f%% of the path",
                       waited * 100);
}

struct angle_word ledger_counting_faults(const struct ledger_facts *facts,
                                         const struct ledger_rule *rule, double claim)
{
    const struct run_costs *costs = &facts->evidence->costs;
    double faults = costs->faults_minor + fmax(0, costs->faults_major);
    if (isnan(faults))
        return not_counted(facts);
    double each = faults > 0 ? claim * facts->wall_ns / faults : INFINITY;
    if (is_much(rule, claim)) {
        double most = costs->faults_major > 0 ? MAJOR_FAULT_MAX : FAULT_NS_MAX;
        return ledger_word(facts,
                           each >= FAULT_NS_MIN && each <= most ? ANGLE_SUPPORTS : ANGLE_REJECTS,
                           "%.0f page faults in a plain run: %.2f µs each would make the claim",
                           faults, each / 1e3);
    }
    bool few = faults * FAULT_NS_USUAL < rule->rejects_below * facts->wall_ns;
    return ledger_word(facts, few ? ANGLE_REJECTS : ANGLE_SILENT, "%.0f page faults in a plain run",
                       faults);
}

struct angle_word ledger_sampling_start(const struct ledger_facts *facts,
                                        const struct ledger_rule *rule, double claim)
{
    (void)claim;
    if (!facts->sampled)
        return not_sampled(facts);
    return share_word(facts, rule, facts->starting - facts->starting_waits, ", running");
}

struct angle_word ledger_tracing_start(const struct ledger_facts *facts,
                                       const struct ledger_rule *rule, double claim)
{
    if (!facts->traced)
        return not_traced(facts, AXIS_WAITS);
    double waited = facts->starting_waits;
    if (waited >= rule->supports_min || !is_much(rule, claim))
        return share_word(facts, rule, waited, ", waiting");
    return ledger_word(facts, ANGLE_SILENT, "%.1f%% of the path waited before main()",
                       waited * 100);
}

struct angle_word ledger_counting_start(const struct ledger_facts *facts,
                                        const struct ledger_rule *rule, double claim)
{
    const struct run_costs *costs = &facts->evidence->costs;
    if (!facts->counted || isnan(costs->faults_minor))
        return not_counted(facts);
    bool small = claim * costs->wall_ns <= START_NS_MAX;
    if (is_much(rule, claim))
        return ledger_word(facts,
                           small && costs->faults_minor >= START_FAULTS_MIN ? ANGLE_SUPPORTS
                                                                            : ANGLE_REJECTS,
                           "a plain run takes %.1f ms and %.0f page faults", costs->wall_ns / 1e6,
                           costs->faults_minor);
    return ledger_word(facts, costs->wall_ns > START_NS_MAX ? ANGLE_REJECTS : ANGLE_SILENT,
                       "a plain run takes %.1f ms", costs->wall_ns / 1e6);
}

struct angle_word ledger_sampling_children(const struct ledger_facts *facts,
                                           const struct ledger_rule *rule, double claim)
{
    if (!facts->sampled || !facts->traced)
        return not_sampled(facts);
    double share = facts->children_running;
    if (share < rule->supports_min && is_much(rule, claim))
        return ledger_word(facts, ANGLE_SILENT, "%.1f%% of the path running there", share * 100);
    return share_word(facts, rule, share, ", running");
}

struct angle_word ledger_tracing_children(const struct ledger_facts *facts,
                                          const struct ledger_rule *rule, double claim)
{
    return facts->traced ? share_word(facts, rule, claim, "") : not_traced(facts, AXIS_WAITS);
}

struct angle_word ledger_counting_children(const struct ledger_facts *facts,
                                           const struct ledger_rule *rule, double claim)
{
    (void)rule, (void)claim;
    return ledger_word(facts, ANGLE_SILENT, "counts of a run are those of all its processes");
}

struct angle_word ledger_sampling_kernel(const struct ledger_facts *facts,
                                         const struct ledger_rule *rule, double claim)
{
    if (!facts->sampled)
        return not_sampled(facts);
    if (!facts->kernel_seen)
        return ledger_word(facts, ANGLE_SILENT, "n/a: samples do not show the kernel's functions");
    return share_word(facts, rule, claim, "");
}

/* Time in calls is running and waiting; faults are in none. */
struct angle_word ledger_tracing_kernel(const struct ledger_facts *facts,
                                        const struct ledger_rule *rule, double claim)
{
    if (!evidence_has(facts->evidence, AXIS_IO))
        return not_traced(facts, AXIS_IO);
    const struct io_sums *sums = &facts->evidence->io_sums;
    unsigned long long calls = sums->calls + sums->faults;
    double share = sums->wall_ns > 0 ? (double)sums->busy_ns / (double)sums->wall_ns : 0;
    enum angle_verdict verdict = is_much(rule, claim) && share >= AGREES_MIN * claim
                                     ? ANGLE_SUPPORTS
                                 : share < rule->rejects_below && !is_much(rule, claim)
                                     ? ANGLE_REJECTS
                                     : ANGLE_SILENT;
    return ledger_word(facts, verdict, "%llu calls and faults took %.1f%% of the recorded run",
                       calls, share * 100);
}

struct angle_word ledger_counting_kernel(const struct ledger_facts *facts,
                                         const struct ledger_rule *rule, double claim)
{
    (void)claim;
    const struct run_costs *costs = &facts->evidence->costs;
    if (!facts->counted || isnan(costs->system_ns))
        return not_counted(facts);
    enum angle_verdict verdict = by_bounds(rule, costs->system_ns / costs->wall_ns);
    return ledger_word(facts, verdict, "plain runs were in the kernel for %.1f%% of the time%s",
                       costs->system_ns / costs->wall_ns * 100, unsure(verdict));
}
