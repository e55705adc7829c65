/* Memory that is touched for the first time, again and again: page faults have the time.
 *
 * What could be saved has two bounds. Memory that is given back and faulted in again could be kept:
 * then only as many faults stay as its largest size has pages. And larger pages need one fault for
 * 512: what stays is filling them with zeros. The larger of the two is what a change can bring. */
#include "analyze/places.h"
#include "detect/cpu_common.h"
#include "detect/each.h"

#include <errno.h>
#include <math.h>

#define SHARE_MIN  0.15 /* of the wall time */
#define AGAIN_MIN  2.0  /* faults for each page that was resident at most */
#define PAGE_BYTES 4096.0

struct judging {
    const struct evidence *evidence;
    struct findings *ret;
    struct cpu_rows rows;
    double zeroing_ns, major_ns;
    double again; /* faults for each page of the largest size; NaN */
};

/* Of the time of all faults: what a change would bring. */
static double part_saved(const struct judging *judging, double cost_ns)
{
    double larger = cost_ns > 0 ? 1 - (judging->zeroing_ns + judging->major_ns) / cost_ns : 0;
    double kept = judging->again > 1 ? 1 - 1 / judging->again : 0;
    return fmax(fmax(larger, kept), 0);
}

static void angles_put(struct judging *judging, struct finding *finding, const float *parts)
{
    const struct run_costs *plain = &judging->evidence->costs;
    struct arena *arena = judging->ret->arena;
    cpu_angles(judging->evidence, judging->ret, finding, parts);
    if (isnan(plain->faults_minor))
        return;
    double faults = plain->faults_minor + (isnan(plain->faults_major) ? 0 : plain->faults_major);
    double each = faults > 0 ? finding->cost_ns / faults : INFINITY;
    /* A fault costs some 0.1 us at least, and hardly 50 us unless it reads from a disk. */
    bool fits = each > 50 && (each < 50e3 || plain->faults_major > 0);
    finding->angles[ANGLE_COUNTING] = (struct angle_word){
        fits ? ANGLE_SUPPORTS : ANGLE_REJECTS,
        arena_printf(arena, "plain runs counted %s page faults: %s each",
                     cpu_number(arena, faults, UNIT_COUNT), cpu_ns_text(arena, each))};
}

static void words_put(struct judging *judging, struct finding *finding, double share)
{
    struct findings *ret = judging->ret;
    struct arena *arena = ret->arena;
    const struct run_costs *plain = &judging->evidence->costs;
    const char *artifact = judging->evidence->axes[AXIS_CPU].artifact;
    bool again = judging->again >= AGAIN_MIN;
    const char *faults = cpu_number(arena, plain->faults_minor, UNIT_COUNT);
    const char *peak = cpu_number(arena, plain->peak_rss_bytes, UNIT_BYTES);
    finding->title = arena_printf(arena, "%s page faults take %.0f%% of the wall time", faults,
                                  share * 100);
    finding_fact(ret, finding, "fault_share", "of the wall time",
                 value_real(share * 100, UNIT_PERCENT), artifact, NULL);
    finding_fact(ret, finding, "faults_minor", "page faults",
                 isnan(plain->faults_minor) ? value_na("not counted")
                                            : value_real(plain->faults_minor, UNIT_COUNT),
                 "baseline.json", NULL);
    finding_fact(ret, finding, "faults_per_page", "faults for each page of the largest size",
                 isnan(judging->again) ? value_na("the largest size is not known")
                                       : value_real(judging->again, UNIT_NONE),
                 "baseline.json", NULL);
    finding_fact(ret, finding, "tlb_misses", "TLB misses",
                 value_na("needs hardware counters, which are not read here"), artifact, NULL);
    finding_why(ret, finding, artifact, "%.0f%% of the wall time the kernel serves page faults",
                share * 100);
    if (finding->place.function.len > 0)
        finding_why(ret, finding, artifact, "most are of %s", place_text(arena, &finding->place));
    if (again)
        finding_why(ret, finding, "baseline.json",
                    "%s faults for at most %s resident: memory is given back and asked for again",
                    faults, peak);
    else if (!isnan(plain->peak_rss_bytes))
        finding_why(ret, finding, "baseline.json",
                    "each page of %s is touched for the first time, 4 KiB a fault", peak);
    finding->advice = arena_printf(
        arena,
        again ? "keep the memory and use it again instead of giving it back (a buffer that lives "
                "longer than the loop; glibc: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD): %s"
              : "touch less memory, or ask for larger pages with madvise(MADV_HUGEPAGE): %s",
        place_text(arena, &finding->place));
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct judging judging = {.evidence = evidence, .ret = ret};
    const struct path_costs *costs = &evidence->costs_on_path;
    const struct run_costs *plain = &evidence->costs;
    int r = cpu_rows_build(ret->arena, evidence, &judging.rows);
    float *parts = cpu_parts(ret->arena, costs);
    if (r < 0 || !parts)
        return -ENOMEM;
    if (!(judging.rows.fault_ns > 0)) {
        struct finding *none = dismissed(ret, self, "%s on the path; plain runs counted %s",
                                         judging.rows.kernel_seen ? "no page fault"
                                                                  : "no sample in the kernel",
                                         cpu_number(ret->arena, plain->faults_minor, UNIT_COUNT));
        if (none && !judging.rows.kernel_seen && plain->system_ns > SHARE_MIN * plain->wall_ns)
            none->verdict = FINDING_NOT_JUDGED;
        return none ? 0 : -ENOMEM;
    }
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    for (size_t i = 0; i < costs->count; i++) {
        const struct cpu_row *row = &judging.rows.rows[i];
        parts[i] = row->fault;
        if (!row->fault)
            continue;
        judging.zeroing_ns += row->zeroing ? costs->rows[i].ns : 0;
        judging.major_ns += row->running ? 0 : costs->rows[i].ns;
        if (finding->place.function.len == 0)
            finding->place = costs->rows[i].place;
    }
    judging.again = plain->faults_minor * PAGE_BYTES / plain->peak_rss_bytes;
    struct estimate cost = path_costs_cover(ret->arena, costs, cpu_parts_pick, parts, finding);
    double share = cpu_share(evidence, cost.ns);
    finding->recoverable = estimate_scale(cost, part_saved(&judging, cost.ns));
    finding->occurrences = plain->faults_minor > 0 ? (uint64_t)plain->faults_minor
                                                   : cpu_parts_samples(costs, parts);
    /* What larger pages bring depends on whether the kernel has some left. */
    if (!(judging.again >= AGAIN_MIN))
        finding->recoverable.low_ns = 0;
    finding->remedy = judging.again >= AGAIN_MIN ? REMEDY_REUSE : REMEDY_LOCAL;
    angles_put(&judging, finding, parts);
    words_put(&judging, finding, share);
    if (share < SHARE_MIN) {
        finding->verdict = FINDING_DISMISSED;
        finding->reason = arena_printf(ret->arena,
                                       "page faults have %.1f%% of the wall time; from %.0f%% on "
                                       "it counts",
                                       share * 100, SHARE_MIN * 100);
    }
    return 0;
}

const struct detector detect_page_faults = {
    .id = "page_faults",
    .title = "page faults have the time",
    .category = CATEGORY_MEMORY,
    .remedy = REMEDY_LOCAL,
    .axes = AXIS_BIT_CPU,
    .generic = true,
    .judge = judge,
};
