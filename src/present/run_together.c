/* What mending everything that was confirmed is worth: time that two findings speak of is saved
 * once. */
#include "present/run_tables.h"

#include <math.h>

/* Not known where there was no memory to work it out. */
static struct opportunity_sum sum_of(const struct interpretation *run)
{
    struct opportunity_sum sum = {.recoverable = {NAN, NAN, NAN}, .ceiling = NAN};
    int r = opportunity_together(run->evidence, &run->findings, &sum);
    (void)r; /* outputs are untouched on failure */
    return sum;
}

struct value run_together(struct arena *arena, const struct interpretation *run)
{
    struct opportunity_sum sum = sum_of(run);
    struct value map = value_map(arena);
    double wall_ns = run->evidence->costs_on_path.ns;
    value_put(&map, "findings", NULL, value_uint(sum.findings, UNIT_COUNT));
    value_put(&map, "recoverable_ms", NULL, run_ms(sum.recoverable.ns, "not known"));
    value_put(&map, "recoverable_low_ms", NULL, run_ms(sum.recoverable.low_ns, "not known"));
    value_put(&map, "recoverable_high_ms", NULL, run_ms(sum.recoverable.high_ns, "not known"));
    value_put(&map, "wall_after_ms", NULL,
              run_ms(wall_ns > 0 ? wall_ns - sum.recoverable.ns : NAN, "no run was recorded"));
    value_put(&map, "amdahl_ceiling", NULL,
              isfinite(sum.ceiling) ? value_real(sum.ceiling, UNIT_NONE)
                                    : value_na("nothing would be left"));
    return map;
}

const char *run_together_text(struct arena *arena, const struct interpretation *run)
{
    struct opportunity_sum sum = sum_of(run);
    char wall[48];
    if (sum.findings < 2 || run->wrong_tools.first)
        return NULL;
    return arena_printf(arena, "all %zu confirmed: saves %s of %s", sum.findings,
                        run_estimate_text(arena, sum.recoverable),
                        units_format(run->evidence->costs_on_path.ns, UNIT_NS, wall, sizeof(wall)));
}
