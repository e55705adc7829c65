/* Indicators that no change of code will help. */
#include "analyze/wrong_tool.h"

#include <errno.h>
#include <math.h>

#define EXTERNAL_MIN   0.90 /* of the path in replies of peers */
#define INFRA_MIN      0.50 /* of the wall time taken by the environment */
#define DEVICE_NS_SLOW 10e6 /* a request: disks that turn, or that are throttled */
#define OPTIMIZED_CPU  0.80 /* of the path on a CPU */
#define OPTIMIZED_TOP  0.10 /* of the wall time in the heaviest function: above it is not flat */

static double class_share(const struct evidence *evidence, enum wait_class class)
{
    const struct path_costs *costs = &evidence->costs_on_path;
    return costs->ns > 0 ? costs->classes[class] / costs->ns : 0;
}

/* The first confirmed one to fix, of a category in the set, or of any (0). */
static const struct finding *confirmed_of(const struct findings *findings, unsigned categories)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        if (finding_is_fix(finding) && (!categories || (categories & 1u << finding->category)))
            return finding;
    }
    return NULL;
}

static struct wrong_tool external(struct arena *arena, const struct evidence *evidence,
                                  const struct findings *findings)
{
    struct wrong_tool row = {.id = "external_service_no_alternative",
                             .instead = "look at the service that it waits for"};
    if (evidence->costs_on_path.na) {
        row.why = arena_printf(arena, "not judged: %s", evidence->costs_on_path.na);
        return row;
    }
    double share = class_share(evidence, WAIT_CLASS_NET);
    const unsigned ways = 1u << CATEGORY_IO_DB | 1u << CATEGORY_IO_NETWORK | 1u << CATEGORY_CACHE |
                          1u << CATEGORY_EXTERNAL;
    const struct finding *way = confirmed_of(findings, ways);
    row.holds = share >= EXTERNAL_MIN && !way && evidence_has(evidence, AXIS_IO);
    if (share < EXTERNAL_MIN)
        row.why = arena_printf(arena,
                               "%.0f%% of the path waits for peers; from %.0f%% on it counts",
                               share * 100, EXTERNAL_MIN * 100);
    else if (way)
        row.why = arena_printf(arena, "%.0f%% of the path waits for peers, but there is a way: %s",
                               share * 100, way->detector);
    else if (!row.holds)
        row.why = arena_printf(arena,
                               "%.0f%% of the path waits for peers; whether it could ask less is "
                               "not judged: %s",
                               share * 100, evidence->axes[AXIS_IO].na);
    else
        row.why = arena_printf(arena,
                               "%.0f%% of the path waits for replies of peers, and no way to "
                               "batch, cache or ask in parallel was found",
                               share * 100);
    return row;
}

static struct wrong_tool norm(void)
{
    return (struct wrong_tool){.id = "within_industry_norm",
                               .why = "not judged: whyslow has no documented norm for this kind of "
                                      "run"};
}

/* The slowest device that was asked often enough to matter; its mean time a request. */
static double device_ns(const struct evidence *evidence, struct str *ret_name)
{
    double slowest = 0;
    for (size_t i = 1; evidence_has(evidence, AXIS_IO) && i < evidence->io.device_count; i++) {
        const struct device_row *device = &evidence->io.devices[i];
        double mean = device->tally.count > 0
                          ? (double)device->tally.total_ns / (double)device->tally.count
                          : 0;
        if (mean > slowest) {
            slowest = mean;
            *ret_name = device->info.name;
        }
    }
    return slowest;
}

/* What the environment took is what its findings say, and nothing else: a share of the wall time.
 * NaN: nobody could judge. */
static double environment_share(const struct evidence *evidence, const struct findings *findings)
{
    double wall = evidence->costs_on_path.ns, ns = 0;
    bool judged = false;
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        if (finding->class != FINDING_ENVIRONMENT)
            continue;
        judged |= finding->verdict != FINDING_NOT_JUDGED;
        if (finding->verdict == FINDING_CONFIRMED && finding->recoverable.ns > 0)
            ns += finding->recoverable.ns;
    }
    return judged && wall > 0 ? fmin(ns / wall, 1) : NAN;
}

static struct wrong_tool infrastructure(struct arena *arena, const struct evidence *evidence,
                                        const struct findings *findings)
{
    struct wrong_tool row = {
        .id = "infrastructure_bound",
        .instead = "measure it again where the environment leaves it the CPUs, then it is known "
                   "what its code costs"};
    double disk = class_share(evidence, WAIT_CLASS_DISK);
    double taken = environment_share(evidence, findings);
    struct str name = {0};
    double device = device_ns(evidence, &name);
    bool slow = device >= DEVICE_NS_SLOW && disk >= INFRA_MIN &&
                !confirmed_of(findings, 1u << CATEGORY_IO_FILE);
    row.holds = taken >= INFRA_MIN || slow;
    if (slow) {
        row.instead = "a faster device, or one with less to do, saves the time";
        row.why = arena_printf(arena,
                               "%.0f%% of the path waits for disks, and %.*s takes %.1f ms a "
                               "request",
                               disk * 100, STR_FMT(name), device / 1e6);
    } else
        row.why = arena_printf(
            arena,
            "the environment (other load, limits, the hypervisor) took %s of the wall time; %.0f%% "
            "of the path waits for disks",
            isnan(taken) ? "n/a: not judged" : arena_printf(arena, "%.0f%%", taken * 100),
            disk * 100);
    return row;
}

static struct wrong_tool optimized(struct arena *arena, const struct evidence *evidence,
                                   const struct findings *findings)
{
    struct wrong_tool row = {.id = "already_optimized",
                             .instead = "give it less to do, or a faster machine"};
    const struct finding *some = confirmed_of(findings, 0);
    const struct path_costs *costs = &evidence->costs_on_path;
    double cpu = class_share(evidence, WAIT_CLASS_RUNNING), top = NAN;
    if (evidence_has(evidence, AXIS_CPU) && evidence->hotspots.count > 0)
        top = evidence->hotspots.rows[0].self_share.high * cpu;
    if (some)
        row.why = arena_printf(arena, "no: %s is confirmed", some->detector);
    else if (costs->na)
        row.why = arena_printf(arena, "not judged: %s", costs->na);
    else if (!evidence->binary || evidence->binary->optimized.answer != BUILD_YES)
        row.why = arena_printf(arena,
                               "not judged: it is not known that the build is optimized (%s)",
                               evidence->binary      ? evidence->binary->optimized.because
                               : evidence->binary_na ? evidence->binary_na
                                                     : "no binary");
    else if (cpu < OPTIMIZED_CPU || !(top <= OPTIMIZED_TOP))
        row.why = arena_printf(arena,
                               "on a CPU for %.0f%% of the path, at most %.0f%% of the time in one "
                               "function: not flat, or not its own work",
                               cpu * 100, top * 100);
    else {
        row.holds = true;
        row.why = arena_printf(
            arena,
            "nothing is confirmed, the build is optimized, %.0f%% of the path is "
            "on a CPU and no function has more than %.0f%%",
            cpu * 100, top * 100);
    }
    return row;
}

int wrong_tools_build(struct arena *arena, const struct evidence *evidence,
                      const struct findings *findings, struct wrong_tools *ret)
{
    enum { ROWS = 4 };
    struct wrong_tool *rows = arena_alloc(arena, ROWS * sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    rows[0] = external(arena, evidence, findings);
    rows[1] = norm();
    rows[2] = infrastructure(arena, evidence, findings);
    rows[3] = optimized(arena, evidence, findings);
    *ret = (struct wrong_tools){.rows = rows, .count = ROWS};
    for (size_t i = 0; i < ROWS && !ret->first; i++)
        if (rows[i].holds)
            ret->first = &rows[i];
    return arena_failed(arena) ? -ENOMEM : 0;
}
