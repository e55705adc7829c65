/* From the runs of every step to a law, a table and a picture. */
#include "cmd/scale_report.h"

#include "present/chart.h"

#include <errno.h>
#include <math.h>

enum { SEED = 20, CURVE_POINTS = 60 };
#define SURE     0.9 /* from this weight on a law is named alone */
#define POSSIBLE 0.1 /* and from this one on beside others */

static double reference_p95(const struct scale *scale)
{
    return scale->steps[0].summary.p95;
}

int scale_fit(struct scale *scale, struct why *why)
{
    struct growth_step steps[SCALE_STEPS_MAX];
    for (size_t i = 0; i < scale->count; i++) {
        struct scale_step *step = &scale->steps[i];
        int r = summary_make(step->costs.data, step->costs.len, &step->summary);
        if (r == -ENOMEM)
            return why_nomem(why);
        if (r < 0)
            return why_set(why, WHY_FAILED, EINVAL, "see the steps with --json, or raise --budget",
                           "the step of %g units has no run that could be measured", step->units);
        steps[i] = (struct growth_step){step->units, step->costs.data, step->costs.len};
    }
    int r = scale->threads ? scalability_fit(steps, scale->count, scale->work_per_thread, SEED,
                                             &scale->scalability)
                           : growth_fit(steps, scale->count, SEED, scale->laws);
    if (r == -ENOMEM)
        return why_nomem(why);
    if (r == -ERANGE)
        scale->fit_na = scale->threads ? "a law needs at least 3 different numbers of threads"
                                       : "a law needs at least 4 different sizes";
    else if (r < 0)
        scale->fit_na = "the metric was 0 in some run: there is nothing to fit";
    return 0;
}

static const struct column step_columns[] = {
    {"units", "units", SHOW_ALWAYS, true, false},
    {"command", "command", SHOW_MACHINE, false, false},
    {"runs", "runs", SHOW_ALWAYS, true, false},
    {"median", "median", SHOW_ALWAYS, true, false},
    {"ci95_low", "95% from", SHOW_ALWAYS, true, false},
    {"ci95_high", "to", SHOW_ALWAYS, true, false},
    {"p95", "p95", SHOW_ALWAYS, true, false},
    {"p95_carried", "p95 carried", SHOW_MACHINE, false, false},
    {"p95_ratio", "p95 ratio", SHOW_ALWAYS, true, false},
    {"fitted", "law says", SHOW_ALWAYS, true, false},
    {"cv_percent", "CV", SHOW_ALWAYS, true, false},
    {"values", "values", SHOW_MACHINE, false, false},
};

static double fitted(const struct scale *scale, double units)
{
    if (scale->fit_na)
        return NAN;
    if (!scale->threads)
        return growth_at(&scale->laws[0], units);
    double work = scale->work_per_thread ? units : 1;
    return work / (scale->scalability.rate * scalability_at(&scale->scalability, units));
}

static struct value steps_value(const struct scale *scale)
{
    struct arena *arena = scale->arena;
    enum unit unit = bench_metrics[scale->metric].unit;
    struct value table = value_table(arena, step_columns, ARRAY_SIZE(step_columns));
    for (size_t i = 0; i < scale->count; i++) {
        const struct scale_step *step = &scale->steps[i];
        const struct summary *s = &step->summary;
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        struct value values = value_list(arena);
        for (size_t k = 0; k < step->costs.len; k++)
            value_append(&values, value_real(step->costs.data[k], unit));
        struct value none = value_na("under 6 runs");
        double law = fitted(scale, step->units);
        size_t at = 0;
        row->cells[at++] = value_real(step->units, UNIT_COUNT);
        row->cells[at++] = value_text(step->command);
        row->cells[at++] = value_uint(s->count, UNIT_COUNT);
        row->cells[at++] = value_real(s->median, unit);
        row->cells[at++] = s->has_interval ? value_real(s->median_low, unit) : none;
        row->cells[at++] = s->has_interval ? value_real(s->median_high, unit) : none;
        row->cells[at++] = value_real(s->p95, unit);
        row->cells[at++] = value_bool(s->p95_carried);
        row->cells[at++] = reference_p95(scale) > 0
                               ? value_real(s->p95 / reference_p95(scale), UNIT_NONE)
                               : value_na("the first step's p95 is 0");
        row->cells[at++] = isfinite(law) ? value_real(law, unit) : value_na("no law");
        row->cells[at++] = isfinite(s->cv_percent)
                               ? value_real(s->cv_percent, UNIT_PERCENT)
                               : value_na(s->count > 1 ? "the mean is 0" : "one run only");
        row->cells[at++] = values;
    }
    return table;
}

static const struct column law_columns[] = {
    {"law", "law", SHOW_ALWAYS, false, false},
    {"weight_percent", "weight", SHOW_ALWAYS, true, false},
    {"wins_percent", "first in draws", SHOW_ALWAYS, true, false},
    {"error_percent", "error", SHOW_ALWAYS, true, false},
    {"base", "base", SHOW_MACHINE, true, false},
    {"factor", "factor", SHOW_MACHINE, true, false},
};

static struct value laws_value(const struct scale *scale)
{
    struct value table = value_table(scale->arena, law_columns, ARRAY_SIZE(law_columns));
    for (size_t i = 0; i < GROWTH_LAWS; i++) {
        const struct growth_fit *fit = &scale->laws[i];
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_text(growth_law_name(fit->law));
        row->cells[1] = value_real(fit->weight * 100, UNIT_PERCENT);
        row->cells[2] = value_real(fit->wins * 100, UNIT_PERCENT);
        row->cells[3] = value_real(fit->error * 100, UNIT_PERCENT);
        row->cells[4] = value_real(fit->base, UNIT_NONE);
        row->cells[5] = value_real(fit->factor, UNIT_NONE);
        if (fit->weight < 0.005 && fit->wins < 0.005)
            row->show = SHOW_MACHINE;
    }
    return table;
}

static const char *growth_words(const struct scale *scale)
{
    const struct growth_fit *best = &scale->laws[0], *next = &scale->laws[1];
    struct arena *arena = scale->arena;
    const struct scale_step *last = &scale->steps[scale->count - 1];
    const char *law = growth_law_name(best->law);
    char now[48], then[48];
    enum unit unit = bench_metrics[scale->metric].unit;
    units_format(growth_at(best, last->units), unit, now, sizeof(now));
    units_format(growth_at(best, last->units * 10), unit, then, sizeof(then));
    bool constant = best->law == GROWTH_CONSTANT || next->law == GROWTH_CONSTANT;
    if (best->weight < SURE && !constant) {
        const char *either = arena_printf(arena, "%s or %s", law, growth_law_name(next->law));
        for (size_t i = 2; i < GROWTH_LAWS; i++)
            if (scale->laws[i].weight > POSSIBLE && scale->laws[i].law != GROWTH_CONSTANT)
                either = arena_printf(arena, "%s or %s", either,
                                      growth_law_name(scale->laws[i].law));
        return arena_printf(arena,
                            "%s (the range from %g to %g units cannot tell them apart): add larger "
                            "steps",
                            either, scale->steps[0].units, last->units);
    }
    if (best->wins < 0.8 || best->weight < next->weight * 2)
        return arena_printf(arena,
                            "%s fits best, but %s is not ruled out: add larger steps or more runs",
                            law, growth_law_name(next->law));
    if (best->law == GROWTH_CONSTANT)
        return "constant: the size of the input does not show in this range";
    return arena_printf(arena, "%s: from %g to %g units it would go from %s to %s", law,
                        last->units, last->units * 10, now, then);
}

static const char *scalability_words(const struct scale *scale)
{
    const struct scalability_fit *fit = &scale->scalability;
    struct arena *arena = scale->arena;
    if (fit->rate == 0)
        return "no law of scalability fits: the time does not fall with threads at all";
    const char *peak = fit->has_peak
                           ? arena_printf(arena,
                                          "; it is fastest at about %.0f threads and slower "
                                          "beyond",
                                          fmax(1, round(fit->peak)))
                           : "";
    double limit = fit->contention > 0 ? 1 / fit->contention : INFINITY;
    if (fit->contention < 0.005)
        return arena_printf(arena, "nearly every thread counts in full%s", peak);
    return arena_printf(arena,
                        "%.1f%% of the work is done one thread at a time, so no number of "
                        "threads makes it more than %.1f times as fast%s",
                        fit->contention * 100, limit, peak);
}

static struct value scalability_value(const struct scale *scale)
{
    const struct scalability_fit *fit = &scale->scalability;
    struct value map = value_map(scale->arena);
    value_put(&map, "contention", "contention", value_real(fit->contention, UNIT_NONE));
    struct value ci = value_list(scale->arena);
    value_append(&ci, value_real(fit->contention_low, UNIT_NONE));
    value_append(&ci, value_real(fit->contention_high, UNIT_NONE));
    value_put(&map, "contention_ci95", "95%", ci);
    value_put(&map, "coherency", "coherency", value_real(fit->coherency, UNIT_NONE));
    ci = value_list(scale->arena);
    value_append(&ci, value_real(fit->coherency_low, UNIT_NONE));
    value_append(&ci, value_real(fit->coherency_high, UNIT_NONE));
    value_put(&map, "coherency_ci95", "95%", ci);
    value_put(&map, "peak_threads", "peak at threads",
              fit->has_peak ? value_real(fit->peak, UNIT_NONE)
                            : value_na("it does not get slower with more threads"));
    value_put(&map, "error_percent", "error", value_real(fit->error * 100, UNIT_PERCENT));
    return map;
}

static const char *left_out_words(const struct scale *scale)
{
    const char *sizes = "";
    char time[48];
    for (size_t i = 0; i < scale->left_out_count; i++)
        sizes = arena_printf(scale->arena, "%s%s%.0f", sizes, i ? ", " : "", scale->left_out[i]);
    units_format(scale->left_out_ns, UNIT_NS, time, sizeof(time));
    return arena_printf(scale->arena,
                        "left out, since the budget is no larger: %s units (a run of %.0f %s %s); "
                        "--budget allows more, --units names smaller ones",
                        sizes, scale->left_out[0],
                        scale->left_out_ended ? "was ended after" : "would take", time);
}

static struct value warnings_value(const struct scale *scale)
{
    struct value list = value_list(scale->arena);
    if (scale->signal)
        value_append(&list, value_text("interrupted: fewer rounds than asked for"));
    else if (scale->budget_spent)
        value_append(&list, value_text(arena_printf(scale->arena,
                                                    "the budget ended after %zu rounds; --budget "
                                                    "allows more",
                                                    scale->rounds)));
    if (scale->left_out_count > 0)
        value_append(&list, value_text(left_out_words(scale)));
    for (size_t i = 0; i < scale->count; i++) {
        const struct scale_step *step = &scale->steps[i];
        size_t failed = step->result.runs.len - step->costs.len;
        if (failed > 0)
            value_append(&list, value_text(arena_printf(scale->arena,
                                                        "%zu runs at %g units failed and are left "
                                                        "out",
                                                        failed, step->units)));
    }
    if (scale->count > 0 && !scale->steps[0].summary.p95_carried)
        value_append(&list, value_text("p95 is conservative: fewer than 20 runs a step carry the "
                                       "largest value instead"));
    return list;
}

struct value scale_value(const struct scale *scale)
{
    struct value root = value_map(scale->arena);
    value_put(&root, "command", NULL, value_text(scale->command));
    value_put(&root, "metric", NULL, value_text(bench_metrics[scale->metric].key));
    value_put(&root, "rounds", NULL, value_uint(scale->rounds, UNIT_COUNT));
    struct value none = value_na(scale->fit_na ? scale->fit_na : "");
    if (scale->threads) {
        value_put(&root, "verdict", NULL,
                  scale->fit_na ? none : value_text(scalability_words(scale)));
        value_put(&root, "scalability", "universal scalability law",
                  scale->fit_na ? none : scalability_value(scale));
    } else {
        value_put(&root, "verdict", NULL, scale->fit_na ? none : value_text(growth_words(scale)));
        value_put_machine(&root, "law",
                          scale->fit_na ? none : value_text(growth_law_name(scale->laws[0].law)));
        value_put(&root, "laws", "laws", scale->fit_na ? none : laws_value(scale));
    }
    value_put(&root, "steps", "steps", steps_value(scale));
    struct value warnings = warnings_value(scale);
    if (warnings.items && warnings.items->len > 0)
        value_put(&root, "warnings", NULL, warnings);
    else
        value_put_machine(&root, "warnings", warnings);
    value_put_machine(&root, "fingerprint", scale->fingerprint);
    return root;
}

int scale_plot(const struct scale *scale, FILE *out, unsigned width, const char *path,
               struct why *why)
{
    double x[SCALE_STEPS_MAX], y[SCALE_STEPS_MAX], curve_x[CURVE_POINTS], curve_y[CURVE_POINTS];
    if (scale->count == 0)
        return 0;
    x[0] = scale->steps[0].units;
    for (size_t i = 0; i < scale->count; i++) {
        x[i] = scale->steps[i].units;
        y[i] = scale->steps[i].summary.median;
    }
    double low = log(x[0]), high = log(x[scale->count - 1]);
    for (size_t i = 0; i < CURVE_POINTS; i++) {
        curve_x[i] = exp(low + (high - low) * (double)i / (CURVE_POINTS - 1));
        curve_y[i] = fitted(scale, curve_x[i]);
    }
    const char *law = scale->threads ? "universal scalability law"
                                     : growth_law_name(scale->laws[0].law);
    const struct chart_series series[] = {
        {"median", CHART_POINTS, x, y, scale->count},
        {law, CHART_LINE, curve_x, curve_y, CURVE_POINTS},
    };
    const struct chart chart = {
        .title = scale->command,
        .x_title = scale->threads ? "threads" : "units",
        .y_title = bench_metrics[scale->metric].about,
        .y_unit = bench_metrics[scale->metric].unit,
        .log_x = true,
        .log_y = true,
        .series = series,
        .series_count = scale->fit_na ? 1 : 2,
    };
    if (path)
        return chart_svg_file(&chart, path, why);
    chart_text(&chart, width, 16, out);
    return 0;
}
