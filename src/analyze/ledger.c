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

/* Bounds are shares of the wall time: from the first on an angle supports, below the second it
 * rejects. docs/run-ranking.md lists them. */
static const struct ledger_rule rules[] = {
    {"cpu_bound",
     "a hot loop on the CPU",
     "running",
     "cpu compute hot_loop cpu_bound_hot_loop",
     0.50,
     0.25,
     WAIT_CLASS_RUNNING,
     claim_class,
     {ledger_sampling_cpu, ledger_tracing_cpu, ledger_counting_cpu}},
    {"allocation",
     "allocating and freeing memory",
     "in the allocator",
     "alloc allocations malloc memory heap gc",
     0.05,
     0.02,
     WAIT_CLASS_RUNNING,
     claim_alloc,
     {ledger_sampling_alloc, ledger_tracing_alloc, ledger_counting_alloc}},
    {"lock", "waiting for locks", "waits for locks", "locks contention mutex lock_contention", 0.10,
     0.05, WAIT_CLASS_LOCK, claim_class, WAITS_ANGLES},
    {"io_wait", "waiting for disks", "waits for disks", "io disk disk_io io_bound file_io", 0.10,
     0.05, WAIT_CLASS_DISK, claim_class, WAITS_ANGLES},
    {"fsync",
     "forcing data to disk",
     "in fsync and its kind",
     "sync flush durability",
     0.05,
     0.02,
     WAIT_CLASS_DISK,
     claim_syncs,
     {ledger_sampling_waits, ledger_tracing_syncs, ledger_counting_waits}},
    {"network_wait", "waiting for the network", "waits for peers",
     "net network network_io http db database rpc", 0.10, 0.05, WAIT_CLASS_NET, claim_class,
     WAITS_ANGLES},
    {"serial_section",
     "one thread works while others could",
     "in the thread that has most of it",
     "serial serialization single_threaded",
     0.80,
     0.50,
     WAIT_CLASS_RUNNING,
     claim_serial,
     {ledger_sampling_serial, ledger_tracing_serial, ledger_counting_serial}},
    {"starvation",
     "waiting for a CPU",
     "waits for a CPU",
     "runq throttling cpu_starvation scheduler",
     0.10,
     0.05,
     WAIT_CLASS_RUNQ,
     claim_class,
     {ledger_sampling_waits, ledger_tracing_waits, ledger_counting_starvation}},
    {"page_faults",
     "page faults",
     "in page faults",
     "faults paging page_fault swap",
     0.05,
     0.02,
     WAIT_CLASS_PAGEFAULT,
     claim_faults,
     {ledger_sampling_faults, ledger_tracing_faults, ledger_counting_faults}},
    {"startup",
     "start-up: loading and linking",
     "before main()",
     "start init loading start_up",
     0.20,
     0.05,
     WAIT_CLASS_RUNNING,
     claim_start,
     {ledger_sampling_start, ledger_tracing_start, ledger_counting_start}},
    {"child_processes",
     "child processes take the time",
     "in child processes",
     "children subprocess fork exec",
     0.20,
     0.05,
     WAIT_CLASS_CHILD,
     claim_children,
     {ledger_sampling_children, ledger_tracing_children, ledger_counting_children}},
    {"sleep", "it sleeps: timers and time limits", "sleeping", "timer sleeping backoff timeout",
     0.10, 0.05, WAIT_CLASS_TIMER, claim_class, WAITS_ANGLES},
    {"kernel_time",
     "the kernel works for it",
     "running in the kernel",
     "kernel syscalls system",
     0.30,
     0.10,
     WAIT_CLASS_RUNNING,
     claim_kernel,
     {ledger_sampling_kernel, ledger_tracing_kernel, ledger_counting_kernel}},
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
    if (supports == ANGLES)
        return LEDGER_CONFIRMED;
    if (supports > 0)
        return rejects > 0 ? LEDGER_DISPUTED : LEDGER_SUPPORTED;
    return rejects > 0 ? LEDGER_REJECTED : LEDGER_OPEN;
}

static void hypothesis_judge(const struct ledger_facts *facts, const struct ledger_rule *rule,
                             struct hypothesis *ret)
{
    double claim = facts->sampled || facts->traced ? rule->claim(facts, rule) : NAN;
    *ret = (struct hypothesis){.id = rule->id, .statement = rule->statement, .share = claim};
    for (int i = 0; i < ANGLES; i++)
        ret->angles[i] = rule->angles[i](facts, rule, claim);
    ret->verdict = verdict_of(ret->angles);
}

static bool is_word_of(const char *words, struct str word)
{
    struct str rest = str_from(words);
    while (rest.len > 0)
        if (str_eq(str_word(&rest), word))
            return true;
    return false;
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
    (void)findings; /* judged apart: the ledger is another opinion */
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
        hypothesis_judge(&facts, &rules[i], &ledger.rows[i]);
    for (size_t i = 0; i < told; i++)
        target_add(arena, &spans->hypotheses[i], &ledger);
    if (ledger_sort(&ledger) < 0 || arena_failed(arena))
        return -ENOMEM;
    *ret = ledger;
    return 0;
}
