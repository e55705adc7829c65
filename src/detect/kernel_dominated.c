/* Most of the CPU time is the kernel's: the program asks for too much, or too often. */
#include "analyze/places.h"
#include "detect/cpu_common.h"
#include "detect/each.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SHARE_MIN       0.60 /* of the CPU time on the path */
#define WALL_MIN        0.10 /* of the wall time */
#define MOST_MIN        0.50 /* of the kernel's time, in one system call: a word in the title */
#define FAULTS_HAVE_ALL 0.50 /* of the kernel's time: then page_faults speaks of it */

struct judging {
    const struct evidence *evidence;
    struct findings *ret;
    struct cpu_rows rows;
    double fault_ns;    /* running, in faults */
    struct str syscall; /* the heaviest; empty */
    double syscall_ns;
    double share; /* of the CPU time */
};

/* System calls by name: there are few. */
static void syscall_find(struct judging *judging)
{
    const struct path_costs *costs = judging->rows.costs;
    struct {
        struct str name;
        double ns;
    } calls[32];
    size_t count = 0;
    for (size_t i = 0; i < costs->count; i++) {
        const struct cpu_row *row = &judging->rows.rows[i];
        struct str name = costs->rows[i].syscall;
        if (!row->running || !row->kernel || row->fault || name.len == 0)
            continue;
        size_t at = 0;
        while (at < count && !str_eq(calls[at].name, name))
            at++;
        if (at == ARRAY_SIZE(calls))
            continue; /* rows come the longest first: it is none of the heavy ones */
        if (at == count) {
            calls[count].name = name;
            calls[count++].ns = 0;
        }
        calls[at].ns += costs->rows[i].ns;
        if (calls[at].ns > judging->syscall_ns) {
            judging->syscall_ns = calls[at].ns;
            judging->syscall = calls[at].name;
        }
    }
}

/* The counting angle is the one that needs no samples: rusage. */
static void angles_put(struct judging *judging, struct finding *finding, const float *parts)
{
    const struct run_costs *plain = &judging->evidence->costs;
    struct arena *arena = judging->ret->arena;
    cpu_angles(judging->evidence, judging->ret, finding, parts);
    double counted = plain->system_ns / (plain->system_ns + plain->user_ns);
    if (isnan(counted))
        return;
    finding->angles[ANGLE_COUNTING] = (struct angle_word){
        counted >= SHARE_MIN * 0.8 ? ANGLE_SUPPORTS : ANGLE_REJECTS,
        arena_printf(arena, "plain runs were charged %s in the kernel, %.0f%% of their CPU time",
                     cpu_ns_text(arena, plain->system_ns), counted * 100)};
}

/* The heaviest of many may have next to nothing of it: then it says nothing. */
static const char *most_text(const struct judging *judging, double kernel_ns)
{
    double part = kernel_ns > 0 ? judging->syscall_ns / kernel_ns : 0;
    if (judging->syscall.len == 0 || part < MOST_MIN)
        return "";
    return arena_printf(judging->ret->arena, ", %.0f%% of that in %.*s()", part * 100,
                        STR_FMT(judging->syscall));
}

static void words_put(struct judging *judging, struct finding *finding)
{
    struct findings *ret = judging->ret;
    const struct evidence *evidence = judging->evidence;
    const char *artifact = evidence->axes[AXIS_CPU].artifact;
    double wall = cpu_share(evidence, finding->cost_ns);
    finding_fact(ret, finding, "kernel_share", "of the CPU time in the kernel",
                 value_real(judging->share * 100, UNIT_PERCENT), artifact, NULL);
    finding_fact(ret, finding, "wall_share", "of the wall time",
                 value_real(wall * 100, UNIT_PERCENT), artifact, NULL);
    finding_why(ret, finding, artifact,
                "%.0f%% of the CPU time on the critical path is the kernel's",
                judging->share * 100);
    if (judging->syscall.len > 0) {
        finding_fact(ret, finding, "syscall", "system call", value_str(judging->syscall), artifact,
                     NULL);
        finding_why(ret, finding, artifact, "%.0f%% of that in %.*s()",
                    judging->syscall_ns / finding->cost_ns * 100, STR_FMT(judging->syscall));
        if (finding->place.function.len > 0)
            finding_why(ret, finding, artifact, "called from %s",
                        place_text(ret->arena, &finding->place));
    }
    finding->title = arena_printf(ret->arena, "the kernel has %.0f%% of the CPU time%s",
                                  judging->share * 100, most_text(judging, finding->cost_ns));
    finding->caution = "how much of the kernel's time is needed, samples cannot say: what asks too "
                       "often, or for too little at once, is a finding of its own";
    finding->measure_next = arena_printf(ret->arena, "whyslow io -- %s", evidence->command);
}

static void verdict(struct judging *judging, struct finding *finding)
{
    struct arena *arena = judging->ret->arena;
    double wall = cpu_share(judging->evidence, finding->cost_ns);
    if (judging->share < SHARE_MIN || wall < WALL_MIN)
        finding->reason = arena_printf(arena,
                                       "the kernel has %.0f%% of the CPU time and %.0f%% of the "
                                       "wall time; from %.0f%% and %.0f%% on it counts",
                                       judging->share * 100, wall * 100, SHARE_MIN * 100,
                                       WALL_MIN * 100);
    else if (judging->fault_ns >= FAULTS_HAVE_ALL * finding->cost_ns) {
        finding->explained = true;
        finding->reason = arena_printf(arena,
                                       "the kernel has %.0f%% of the CPU time, but %.0f%% of that "
                                       "serves page faults: see page_faults",
                                       judging->share * 100,
                                       judging->fault_ns / finding->cost_ns * 100);
    }
    if (finding->reason)
        finding->verdict = FINDING_DISMISSED;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct judging judging = {.evidence = evidence, .ret = ret};
    const struct path_costs *costs = &evidence->costs_on_path;
    int r = cpu_rows_build(ret->arena, evidence, &judging.rows);
    float *parts = cpu_parts(ret->arena, costs);
    if (r < 0 || !parts)
        return -ENOMEM;
    if (!judging.rows.kernel_seen) {
        struct finding *none = dismissed(
            ret, self, "no sample in the kernel; plain runs were charged %s there",
            cpu_ns_text(ret->arena, evidence->costs.system_ns));
        if (none && evidence->costs.system_ns > SHARE_MIN * evidence->costs.cpu_ns)
            none->verdict = FINDING_NOT_JUDGED;
        return none ? 0 : -ENOMEM;
    }
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    syscall_find(&judging);
    for (size_t i = 0; i < costs->count; i++) {
        const struct cpu_row *row = &judging.rows.rows[i];
        parts[i] = row->running && row->kernel;
        if (!parts[i])
            continue;
        judging.fault_ns += row->fault ? costs->rows[i].ns : 0;
        if (finding->place.function.len == 0 && str_eq(costs->rows[i].syscall, judging.syscall))
            finding->place = costs->rows[i].place;
    }
    struct estimate cost = path_costs_cover(ret->arena, costs, cpu_parts_pick, parts, finding);
    /* How much of it is needed nobody knows: it is no gain. */
    finding->recoverable = (struct estimate){0, 0, 0};
    judging.share = judging.rows.running_ns > 0 ? cost.ns / judging.rows.running_ns : 0;
    finding->occurrences = cpu_parts_samples(costs, parts);
    angles_put(&judging, finding, parts);
    words_put(&judging, finding);
    verdict(&judging, finding);
    return 0;
}

const struct detector detect_kernel_dominated = {
    .id = "kernel_dominated",
    .title = "the kernel has most of the CPU time",
    .class = FINDING_CONTEXT,
    .category = CATEGORY_CPU,
    .remedy = REMEDY_BATCH,
    .axes = AXIS_BIT_CPU,
    .generic = true,
    .judge = judge,
};
