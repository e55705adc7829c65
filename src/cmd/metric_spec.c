/* "wall:p95" to a metric and a share. */
#include "cmd/metric_spec.h"

#include "base/opt.h"
#include "base/str.h"

#include <errno.h>

static bool share_parse(struct str text, double *ret)
{
    double percent = 0;
    if (str_is(text, "median")) {
        *ret = 0.5;
        return true;
    }
    if (!str_starts(text, "p"))
        return false;
    if (str_to_f64((struct str){text.data + 1, text.len - 1}, &percent) < 0 || !(percent > 0) ||
        !(percent < 100))
        return false;
    *ret = percent / 100;
    return true;
}

static int refuse(const char *text, const char *name, struct why *why)
{
    const char *names[BENCH_METRICS];
    for (size_t i = 0; i < BENCH_METRICS; i++)
        names[i] = bench_metrics[i].name;
    const char *nearest = opt_nearest(name, names, BENCH_METRICS);
    why_set(why, WHY_USAGE, EINVAL,
            "wall, user, system, cpu, peak_rss, faults_minor, …; p95, p99 or median of wall time; "
            "or both, such as peak_rss:p95",
            "--metric: there is no metric '%s'", text);
    if (nearest)
        why_set_remedy(why, "did you mean '%s'?", nearest);
    return -EINVAL;
}

int metric_spec_parse(struct arena *arena, const char *text, struct metric_spec *ret,
                      struct why *why)
{
    struct str rest = str_from(text);
    bool two = str_contains(rest, ":");
    struct str first = str_cut(&rest, ':');
    struct metric_spec spec = {.metric = BENCH_WALL, .share = 0.5};
    const char *name = arena_dup_len(arena, first.data, first.len);
    if (two || !share_parse(first, &spec.share)) {
        spec.metric = bench_metric_find(name);
        if (spec.metric < 0)
            return refuse(text, name, why);
    }
    if (two && !share_parse(rest, &spec.share))
        return why_set(why, WHY_USAGE, EINVAL, "write median, p95, p99 or p99.9 after the colon",
                       "--metric: '%.*s' is no part of the runs", STR_FMT(rest));
    const char *about = bench_metrics[spec.metric].about;
    spec.label = spec.share == 0.5 ? about
                                   : arena_printf(arena, "p%g of %s", spec.share * 100, about);
    *ret = spec;
    return 0;
}
