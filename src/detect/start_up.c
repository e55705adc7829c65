/* Starting programs has the time: exec, mapping libraries, looking up their symbols.
 *
 * One program that is long at it is seen by samples in the loader. Many that are short are hardly
 * sampled at all: there the switches tell how many there were and how long they ran, and a process
 * that ran for so short a time was mostly started and ended. */
#include "analyze/places.h"
#include "base/map.h"
#include "detect/cpu_common.h"
#include "detect/each.h"

#include <errno.h>

#define SHARE_MIN 0.15 /* of the wall time */
/* A program of a few milliseconds is mostly start-up, and nothing is wrong with that. */
enum { SAMPLES_MIN = 20, PROCESSES_MIN = 20 };
#define SHORT_NS 3e6 /* on the path, in all */

struct judging {
    const struct evidence *evidence;
    struct findings *ret;
    struct cpu_rows rows;
    size_t process_count;
    uint32_t *first;  /* by process: the entry that has its sum */
    double *ran;      /* by process, on the path; 0: not there */
    size_t processes; /* short ones */
    bool many;
    double exec_ns, loader_ns, short_ns, child_ns;
};

/* Its first entry: a process that becomes another program by exec gets one more. */
static uint32_t process_of(const struct judging *judging, size_t row)
{
    const struct profile *profile = judging->rows.costs->profile;
    uint32_t thread = judging->rows.costs->rows[row].thread;
    uint32_t process = profile && thread < profile->thread_count ? profile->threads[thread].process
                                                                 : 0;
    return process < judging->process_count ? judging->first[process] : 0;
}

static int processes_join(struct judging *judging)
{
    const struct profile *profile = judging->rows.costs->profile;
    struct map_u64 pids = {0};
    for (uint32_t i = 1; i < judging->process_count; i++) {
        bool new = false;
        uint64_t *first = map_u64_at(&pids, profile->processes[i].pid, &new);
        if (!first) {
            map_u64_deinit(&pids);
            return -ENOMEM;
        }
        if (new)
            *first = i;
        judging->first[i] = (uint32_t)*first;
    }
    map_u64_deinit(&pids);
    return 0;
}

static int processes_look(struct judging *judging)
{
    const struct path_costs *costs = judging->rows.costs;
    size_t count = costs->profile ? costs->profile->process_count : 0;
    judging->process_count = count;
    judging->first = arena_alloc(judging->ret->arena, (count + 1) * sizeof(uint32_t));
    judging->ran = arena_alloc(judging->ret->arena, (count + 1) * sizeof(double));
    if (!judging->first || !judging->ran || processes_join(judging) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < costs->count; i++)
        if (costs->rows[i].class == WAIT_CLASS_RUNNING)
            judging->ran[process_of(judging, i)] += costs->rows[i].ns;
    for (size_t i = 1; i < count; i++)
        judging->processes += judging->ran[i] > 0 && judging->ran[i] <= SHORT_NS;
    judging->many = judging->processes >= PROCESSES_MIN;
    return 0;
}

static float part_of(struct judging *judging, size_t i)
{
    const struct path_cost *cost = &judging->rows.costs->rows[i];
    const struct cpu_row *row = &judging->rows.rows[i];
    if (judging->many && cost->class == WAIT_CLASS_RUNNING &&
        judging->ran[process_of(judging, i)] <= SHORT_NS)
        judging->short_ns += cost->ns;
    else if (judging->many && cost->class == WAIT_CLASS_CHILD)
        judging->child_ns += cost->ns;
    else if (row->loader && row->kernel && str_starts(cost->syscall, "execve"))
        judging->exec_ns += cost->ns;
    else if (row->loader)
        judging->loader_ns += cost->ns;
    else
        return 0;
    return 1;
}

static void words_put(struct judging *judging, struct finding *finding, double share)
{
    struct findings *ret = judging->ret;
    struct arena *arena = ret->arena;
    const struct evidence *evidence = judging->evidence;
    bool sampled = evidence_has(evidence, AXIS_CPU);
    const char *artifact = evidence->axes[sampled ? AXIS_CPU : AXIS_WAITS].artifact;
    bool many = judging->many;
    finding->title = many ? arena_printf(arena,
                                         "starting %zu short processes takes %.0f%% of the wall "
                                         "time",
                                         judging->processes, share * 100)
                          : arena_printf(arena, "loading the program takes %.0f%% of the wall time",
                                         share * 100);
    finding_fact(ret, finding, "start_up_share", "of the wall time",
                 value_real(share * 100, UNIT_PERCENT), artifact, NULL);
    finding_fact(ret, finding, "short_processes", "short processes on the path",
                 value_uint(judging->processes, UNIT_COUNT), artifact, NULL);
    finding_fact(ret, finding, "short_processes_ms", "in which it ran",
                 value_real(judging->short_ns / 1e6, UNIT_MS), artifact, NULL);
    finding_fact(ret, finding, "exec_ms", "in exec", value_real(judging->exec_ns / 1e6, UNIT_MS),
                 artifact, NULL);
    finding_fact(ret, finding, "loader_ms", "in the dynamic loader",
                 value_real(judging->loader_ns / 1e6, UNIT_MS), artifact, NULL);
    if (many) {
        finding_why(ret, finding, artifact,
                    "%.0f%% of the wall time is in processes that run for %s at most",
                    cpu_share(evidence, judging->short_ns) * 100, cpu_ns_text(arena, SHORT_NS));
        finding_why(ret, finding, artifact, "there are %zu of them, %s each on average",
                    judging->processes,
                    cpu_ns_text(arena, judging->short_ns / (double)judging->processes));
        finding_why(ret, finding, artifact, "their parent waits %s more for them",
                    cpu_ns_text(arena, judging->child_ns));
    } else {
        finding_why(ret, finding, artifact, "%.0f%% of the wall time passes before main()",
                    share * 100);
        finding_why(ret, finding, artifact, "%s in exec, %s in the dynamic loader",
                    cpu_ns_text(arena, judging->exec_ns), cpu_ns_text(arena, judging->loader_ns));
    }
    finding->advice = many ? "start fewer processes: let one do the work of many, or keep it alive"
                           : "link fewer and smaller libraries, hide symbols that nobody needs "
                             "(-fvisibility=hidden), link with -Wl,-z,pack-relative-relocs or "
                             "prelink statically";
    if (many)
        finding->remedy = REMEDY_BATCH;
    if (!many)
        finding->measure_next = arena_printf(arena, "LD_DEBUG=statistics %s", evidence->command);
}

/* Short processes are known by their switches alone; what one program does before main() is not. */
static int unsampled(const struct evidence *evidence, const struct detector *self,
                     struct findings *ret)
{
    struct finding *finding = dismissed(ret, self, "cpu was not recorded: %s",
                                        evidence->axes[AXIS_CPU].na);
    if (finding)
        finding->verdict = FINDING_NOT_JUDGED;
    return finding ? 0 : -ENOMEM;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct judging judging = {.evidence = evidence, .ret = ret};
    const struct path_costs *costs = &evidence->costs_on_path;
    bool sampled = evidence_has(evidence, AXIS_CPU);
    if (!sampled && costs->na)
        return unsampled(evidence, self, ret);
    int r = cpu_rows_build(ret->arena, evidence, &judging.rows);
    float *parts = cpu_parts(ret->arena, costs);
    if (r < 0 || !parts || processes_look(&judging) < 0)
        return -ENOMEM;
    if (!sampled && !judging.many)
        return unsampled(evidence, self, ret);
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    finding->axes = sampled ? AXIS_BIT_CPU : AXIS_BIT_WAITS;
    for (size_t i = 0; i < costs->count; i++) {
        parts[i] = part_of(&judging, i);
        if (parts[i] > 0 && finding->place.function.len == 0)
            finding->place = costs->rows[i].place;
    }
    struct estimate cost = path_costs_cover(ret->arena, costs, cpu_parts_pick, parts, finding);
    double share = cpu_share(evidence, cost.ns);
    /* Of many processes one stays; of one, nobody knows how much. */
    finding->recoverable = judging.many ? estimate_scale(cost, 1 - 1.0 / (double)judging.processes)
                                        : cpu_at_most(cost, 1);
    uint64_t samples = cpu_parts_samples(costs, parts);
    finding->occurrences = judging.many ? judging.processes : samples;
    cpu_angles(evidence, ret, finding, parts);
    if (judging.many)
        finding->angles[ANGLE_TRACING] = (struct angle_word){
            ANGLE_SUPPORTS,
            arena_printf(ret->arena, "%zu short processes were on the path", judging.processes)};
    words_put(&judging, finding, share);
    if (share < SHARE_MIN || (!judging.many && samples < SAMPLES_MIN)) {
        finding->verdict = FINDING_DISMISSED;
        finding->reason = arena_printf(ret->arena,
                                       "start-up has %.0f%% of the wall time, %llu samples, %zu "
                                       "short processes; from %.0f%% and %d samples or %d such "
                                       "processes on it counts",
                                       share * 100, (unsigned long long)samples, judging.processes,
                                       SHARE_MIN * 100, SAMPLES_MIN, PROCESSES_MIN);
    }
    return 0;
}

const struct detector detect_start_up = {
    .id = "start_up",
    .title = "loading the program has the time",
    .category = CATEGORY_CPU,
    .remedy = REMEDY_SETTING,
    .axes = 0, /* many short processes are known without samples */
    .generic = true,
    .judge = judge,
};
