/* Classic explanations of slowness, judged. */
#include "analyze/ledger_parts.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *ledger_verdict_name(enum ledger_verdict verdict)
{
    static const char *const names[] = {"confirmed", "supported", "disputed", "rejected", "open"};
    return names[verdict];
}

static double claim_class(const struct ledger_facts *facts, const struct ledger_rule *rule)
{
    return facts->classes[rule->class];
}
static double claim_hottest(const struct ledger_facts *facts, const struct ledger_rule *rule)
{
    (void)rule;
    return facts->hottest;
}
static double claim_alloc(const struct ledger_facts *facts, const struct ledger_rule *rule)
{
    (void)rule;
    return facts->alloc;
}
static double claim_syncs(const struct ledger_facts *facts, const struct ledger_rule *rule)
{
    (void)rule;
    return facts->syncs;
}
static double claim_serial(const struct ledger_facts *facts, const struct ledger_rule *rule)
{
    (void)rule;
    return facts->threads > 1 ? facts->alone : 0;
}
static double claim_faults(const struct ledger_facts *facts, const struct ledger_rule *rule)
{
    return facts->faults + facts->classes[rule->class];
}
static double claim_start(const struct ledger_facts *facts, const struct ledger_rule *rule)
{
    (void)rule;
    return facts->starting;
}
static double claim_children(const struct ledger_facts *facts, const struct ledger_rule *rule)
{
    (void)rule;
    return facts->children;
}
static double claim_kernel(const struct ledger_facts *facts, const struct ledger_rule *rule)
{
    (void)rule;
    return facts->kernel;
}

#define WAITS_ANGLES                                                                               \
    {                                                                                              \
        ledger_sampling_waits, ledger_tracing_waits, ledger_counting_waits                         \
    }

/* Bounds are shares of the wall time: from the first on a source supports, below the second it
 * rejects. docs/run-ranking.md lists them. An explanation that is true of every program with the
 * same class of time (it computes, it runs in user mode) explains nothing and has no row. */
static const struct ledger_rule rules[] = {
    {
        .id = "hot_loop",
        .statement = "one function has the CPU",
        .what = "in the hottest function",
        .aliases = "cpu compute cpu_bound cpu_bound_hot_loop",
        .findings = "one_function one_line",
        .same = true,
        .supports_min = 0.30,
        .rejects_below = 0.10,
        .class = WAIT_CLASS_RUNNING,
        .claim = claim_hottest,
        .angles = {ledger_sampling_hottest, ledger_tracing_running, ledger_counting_running},
    },
    {
        .id = "allocation",
        .statement = "allocating and freeing memory",
        .what = "in the allocator",
        .aliases = "alloc allocations malloc memory heap gc",
        .findings = "allocation_churn realloc_growth",
        .supports_min = 0.05,
        .rejects_below = 0.02,
        .class = WAIT_CLASS_RUNNING,
        .claim = claim_alloc,
        .angles = {ledger_sampling_alloc, ledger_tracing_alloc, ledger_counting_alloc},
    },
    {
        .id = "lock",
        .statement = "waiting for locks",
        .what = "waits for locks",
        .aliases = "locks contention mutex lock_contention",
        .findings = "hot_lock lock_convoy io_under_lock thundering_herd",
        .supports_min = 0.10,
        .rejects_below = 0.05,
        .class = WAIT_CLASS_LOCK,
        .claim = claim_class,
        .angles = WAITS_ANGLES,
    },
    {
        .id = "io_wait",
        .statement = "waiting for disks",
        .what = "waits for disks",
        .aliases = "io disk disk_io io_bound file_io",
        .findings = "fsync_per_message io_under_lock file_reread temporary_files",
        .supports_min = 0.10,
        .rejects_below = 0.05,
        .class = WAIT_CLASS_DISK,
        .claim = claim_class,
        .angles = WAITS_ANGLES,
    },
    {
        .id = "fsync",
        .statement = "forcing data to disk",
        .what = "in fsync and its kind",
        .aliases = "sync flush durability",
        .findings = "fsync_per_message",
        .supports_min = 0.05,
        .rejects_below = 0.02,
        .class = WAIT_CLASS_DISK,
        .claim = claim_syncs,
        .angles = {ledger_sampling_waits, ledger_tracing_syncs, ledger_counting_waits},
    },
    {
        .id = "network_wait",
        .statement = "waiting for the network",
        .what = "waits for peers",
        .aliases = "net network network_io http db database rpc",
        .findings = "n_plus_one duplicate_query sequential_http connection_per_request "
                    "delayed_ack repeated_dns",
        .supports_min = 0.10,
        .rejects_below = 0.05,
        .class = WAIT_CLASS_NET,
        .claim = claim_class,
        .angles = WAITS_ANGLES,
    },
    {
        .id = "serial_section",
        .statement = "one thread works while others could",
        .what = "in the thread that has most of it",
        .aliases = "serial serialization single_threaded",
        .findings = "serial_section",
        .same = true,
        .supports_min = 0.80,
        .rejects_below = 0.50,
        .class = WAIT_CLASS_RUNNING,
        .claim = claim_serial,
        .angles = {ledger_sampling_serial, ledger_tracing_serial, ledger_counting_serial},
    },
    {
        .id = "starvation",
        .statement = "waiting for a CPU",
        .what = "waits for a CPU",
        .aliases = "runq throttling cpu_starvation scheduler",
        .findings = "cpu_starvation cgroup_throttling",
        .same = true,
        .supports_min = 0.10,
        .rejects_below = 0.05,
        .class = WAIT_CLASS_RUNQ,
        .claim = claim_class,
        .angles = {ledger_sampling_waits, ledger_tracing_starvation, ledger_counting_starvation},
    },
    {
        .id = "page_faults",
        .statement = "page faults",
        .what = "in page faults",
        .aliases = "faults paging page_fault swap",
        .findings = "page_faults",
        .same = true,
        .supports_min = 0.05,
        .rejects_below = 0.02,
        .class = WAIT_CLASS_PAGEFAULT,
        .claim = claim_faults,
        .angles = {ledger_sampling_faults, ledger_tracing_faults, ledger_counting_faults},
    },
    {
        .id = "startup",
        .statement = "start-up: loading and linking",
        .what = "before main()",
        .aliases = "start init loading start_up",
        .findings = "start_up",
        .same = true,
        .supports_min = 0.20,
        .rejects_below = 0.05,
        .class = WAIT_CLASS_RUNNING,
        .claim = claim_start,
        .angles = {ledger_sampling_start, ledger_tracing_start, ledger_counting_start},
    },
    {
        .id = "child_processes",
        .statement = "child processes take the time",
        .what = "in child processes",
        .aliases = "children subprocess fork exec",
        .findings = "",
        .supports_min = 0.20,
        .rejects_below = 0.05,
        .class = WAIT_CLASS_CHILD,
        .claim = claim_children,
        .angles = {ledger_sampling_children, ledger_tracing_children, ledger_counting_children},
    },
    {
        .id = "sleep",
        .statement = "it sleeps: timers and time limits",
        .what = "sleeping",
        .aliases = "timer sleeping backoff timeout",
        .findings = "poll_loop",
        .supports_min = 0.10,
        .rejects_below = 0.05,
        .class = WAIT_CLASS_TIMER,
        .claim = claim_class,
        .angles = {ledger_sampling_waits, ledger_tracing_sleep, ledger_counting_waits},
    },
    {
        .id = "kernel_time",
        .statement = "the kernel works for it",
        .what = "running in the kernel",
        .aliases = "kernel syscalls system",
        .findings = "kernel_dominated",
        .same = true,
        .supports_min = 0.30,
        .rejects_below = 0.10,
        .class = WAIT_CLASS_RUNNING,
        .claim = claim_kernel,
        .angles = {ledger_sampling_kernel, ledger_tracing_kernel, ledger_counting_kernel},
    },
};

bool ledger_bounds(size_t at, const char **ret_id, double *ret_supports, double *ret_rejects)
{
    if (at >= ARRAY_SIZE(rules))
        return false;
    *ret_id = rules[at].id;
    *ret_supports = rules[at].supports_min;
    *ret_rejects = rules[at].rejects_below;
    return true;
}

struct angle_word ledger_word(const struct ledger_facts *facts, enum angle_verdict verdict,
                              const char *fmt, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof(text), fmt, arguments);
    va_end(arguments);
    return (struct angle_word){verdict, arena_dup(facts->arena, text)};
}

static enum ledger_verdict verdict_of(const struct angle_word *angles)
{
    unsigned supports = 0, rejects = 0;
    for (int i = 0; i < ANGLES; i++) {
        supports += angles[i].verdict == ANGLE_SUPPORTS;
        rejects += angles[i].verdict == ANGLE_REJECTS;
    }
    if (supports > 0)
        return rejects > 0 ? LEDGER_DISPUTED : LEDGER_SUPPORTED;
    return rejects > 0 ? LEDGER_REJECTED : LEDGER_OPEN;
}

static bool is_word_of(const char *words, struct str word)
{
    struct str rest = str_from(words);
    while (rest.len > 0)
        if (str_eq(str_word(&rest), word))
            return true;
    return false;
}

/* That it gave way to another, or that too little was recorded, says nothing against it. */
static bool denies(const struct finding *finding)
{
    return finding->verdict == FINDING_DISMISSED && !finding->explained && !finding->unsure;
}

/* Of the findings that speak of the same trouble the one that decides: confirmed, else dismissed
 * without a denial, else dismissed, else not judged. NULL: nobody looked for it. */
static const struct finding *finding_of(const struct findings *findings,
                                        const struct ledger_rule *rule)
{
    const struct finding *best = NULL;
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        if (!is_word_of(rule->findings, str_from(finding->detector)))
            continue;
        if (!best || finding->verdict < best->verdict ||
            (finding->verdict == best->verdict && !denies(finding) && denies(best)))
            best = finding;
    }
    return best;
}

/* One verdict a thing: what its finding says holds here, too. Confirmed is what all three sources
 * support and a finding confirms (M22); where one of them does not, a finding of the same thing has
 * weighed that already. */
static enum ledger_verdict verdict_with(const struct ledger_rule *rule,
                                        const struct finding *finding,
                                        const struct angle_word *angles)
{
    enum ledger_verdict verdict = verdict_of(angles);
    bool all = true, against = false;
    for (int i = 0; i < ANGLES; i++) {
        all &= angles[i].verdict == ANGLE_SUPPORTS;
        against |= angles[i].verdict == ANGLE_REJECTS;
    }
    if (!finding)
        return verdict;
    if (finding->verdict == FINDING_CONFIRMED)
        return all ? LEDGER_CONFIRMED : against && !rule->same ? LEDGER_DISPUTED : LEDGER_SUPPORTED;
    if (rule->same && denies(finding))
        return LEDGER_REJECTED;
    return verdict;
}

static double claim_alone(const struct ledger_facts *facts, const struct ledger_rule *rule)
{
    return facts->sampled || facts->traced ? rule->claim(facts, rule) : NAN;
}

/* The same thing has one size, too: that of its findings, where these know it. */
static double claim_with(const struct ledger_facts *facts, const struct ledger_rule *rule,
                         const struct findings *findings, const struct finding *best)
{
    double took = 0, cost = NAN;
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        if (!is_word_of(rule->findings, str_from(finding->detector)) ||
            finding->verdict != best->verdict)
            continue;
        if (finding->class == FINDING_ENVIRONMENT && finding->verdict == FINDING_CONFIRMED)
            took += finding->recoverable.ns; /* of different times */
        else if (finding->class != FINDING_ENVIRONMENT)
            cost = fmax(cost, finding->cost_ns);
    }
    double ns = took > 0 ? took : cost;
    if (!isnan(ns) && facts->wall_ns > 0)
        return fmin(ns / facts->wall_ns, 1);
    return claim_alone(facts, rule);
}

static const char *finding_words(struct arena *arena, const struct finding *finding)
{
    const char *verdict = finding_verdict_name(finding->verdict);
    return finding->reason
               ? arena_printf(arena, "%s: %s: %s", finding->detector, verdict, finding->reason)
               : arena_printf(arena, "%s: %s", finding->detector, verdict);
}

static void hypothesis_judge(const struct ledger_facts *facts, const struct ledger_rule *rule,
                             const struct findings *findings, struct hypothesis *ret)
{
    const struct finding *finding = finding_of(findings, rule);
    double claim = rule->same && finding ? claim_with(facts, rule, findings, finding)
                                         : claim_alone(facts, rule);
    *ret = (struct hypothesis){.id = rule->id, .statement = rule->statement, .share = claim};
    for (int i = 0; i < ANGLES; i++)
        ret->angles[i] = rule->angles[i](facts, rule, claim);
    ret->verdict = verdict_with(rule, finding, ret->angles);
    ret->finding = finding ? finding_words(facts->arena, finding) : NULL;
}

/* "CPU-bound" → "cpu_bound": programs spell as they like. */
static struct str plain_name(struct arena *arena, struct str name)
{
    char *text = arena_alloc(arena, name.len + 1);
    for (size_t i = 0; text && i < name.len; i++) {
        char c = name.data[i];
        text[i] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c == '-' || c == ' ' ? '_' : c);
    }
    return text ? (struct str){text, name.len} : (struct str){0};
}

static const char *said(struct arena *arena, const struct span_hypothesis *one)
{
    const char *verdict = one->supports ? "supports" : "rejects";
    if (one->evidence.len == 0)
        return arena_printf(arena, "the program %s it", verdict);
    return arena_printf(arena, "the program %s it: %.*s", verdict, STR_FMT(one->evidence));
}

/* What the program itself thinks (M9): beside our row if it is about the same, else by itself. */
static void target_add(struct arena *arena, const struct span_hypothesis *one,
                       struct ledger *ledger)
{
    struct str name = plain_name(arena, one->name);
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        if (!str_is(name, rules[i].id) && !is_word_of(rules[i].aliases, name))
            continue;
        struct hypothesis *row = &ledger->rows[i];
        row->from_target = row->from_target
                               ? arena_printf(arena, "%s; %s", row->from_target, said(arena, one))
                               : said(arena, one);
        return;
    }
    ledger->rows[ledger->count++] = (struct hypothesis){
        .id = arena_printf(arena, "target:%.*s", STR_FMT(one->name)),
        .statement = arena_dup_len(arena, one->name.data, one->name.len),
        .verdict = LEDGER_OPEN,
        .share = NAN,
        .from_target = said(arena, one),
    };
}

/* `at` of each row: its place in the table. */
struct placed {
    struct hypothesis row;
    size_t at;
};

static int by_share(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    double left = isnan(x->row.share) ? -1 : x->row.share;
    double right = isnan(y->row.share) ? -1 : y->row.share;
    if (left != right)
        return left > right ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int ledger_sort(struct ledger *ledger)
{
    struct placed *placed = calloc(ledger->count + 1, sizeof(*placed));
    if (!placed)
        return -ENOMEM;
    for (size_t i = 0; i < ledger->count; i++)
        placed[i] = (struct placed){ledger->rows[i], i};
    qsort(placed, ledger->count, sizeof(*placed), by_share);
    for (size_t i = 0; i < ledger->count; i++)
        ledger->rows[i] = placed[i].row;
    free(placed);
    return 0;
}

int ledger_build(struct arena *arena, const struct evidence *evidence,
                 const struct findings *findings, struct ledger *ret)
{
    const struct spans *spans = evidence->spans;
    size_t told = spans ? spans->hypothesis_count : 0;
    struct ledger_facts facts;
    struct ledger ledger = {
        .rows = arena_alloc(arena, (ARRAY_SIZE(rules) + told) * sizeof(*ledger.rows)),
        .count = ARRAY_SIZE(rules),
    };
    if (!ledger.rows || ledger_facts_build(arena, evidence, &facts) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        hypothesis_judge(&facts, &rules[i], findings, &ledger.rows[i]);
    for (size_t i = 0; i < told; i++)
        target_add(arena, &spans->hypotheses[i], &ledger);
    if (ledger_sort(&ledger) < 0 || arena_failed(arena))
        return -ENOMEM;
    *ret = ledger;
    return 0;
}
