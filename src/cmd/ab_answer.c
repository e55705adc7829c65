/* Figures of runs to ratios; the statistics are stats/'s. */
#include "cmd/ab_answer.h"

#include "stats/blocks.h"
#include "stats/holm.h"
#include "stats/samples.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The same runs give the same interval, whatever the order of the runs was drawn from. */
enum { ANSWER_SEED = 1 };

static int double_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All runs' figures, or NULL where one is not known. */
static double *figures_take(struct arena *arena, const struct bench_result *result, int metric)
{
    size_t count = result->runs.len;
    double *figures = arena_alloc(arena, (count ? count : 1) * sizeof(*figures));
    for (size_t i = 0; figures && i < count; i++) {
        figures[i] = result->runs.data[i].value[metric];
        if (isnan(figures[i]))
            return NULL;
    }
    return count ? figures : NULL;
}

static double quantile(struct arena *arena, const double *figures, size_t count, double share)
{
    double *sorted = arena_alloc(arena, count * sizeof(*sorted));
    if (!sorted)
        return NAN;
    memcpy(sorted, figures, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), double_compare);
    return percentile_sorted(sorted, count, share);
}

static const char *reason_of(const struct bench_result *a, const struct bench_result *b, int metric)
{
    const char *reason = a->missing[metric] ? a->missing[metric] : b->missing[metric];
    if (a->runs.len == 0 || b->runs.len == 0)
        return "no block was finished";
    if (!reason)
        return "not known for every run";
    return strncmp(reason, "n/a: ", 5) == 0 ? reason + 5 : reason;
}

static int ratio_make(const struct ab_question *question, const double *a, size_t a_count,
                      const double *b, size_t b_count, struct ratio *ret)
{
    struct ratio_opts opts = {.share = question->spec.share,
                              .confidence = question->confidence,
                              .threshold = question->threshold,
                              .seed = ANSWER_SEED};
    return question->interleaved ? blocks_compare(a, b, a_count, &opts, ret)
                                 : samples_compare(a, a_count, b, b_count, &opts, ret);
}

int ab_line_make(struct arena *arena, const struct ab_question *question,
                 const struct bench_result *a, const struct bench_result *b, struct ab_line *ret,
                 struct why *why)
{
    int metric = question->spec.metric;
    struct ab_line line = {
        .a = NAN, .b = NAN, .ratio = {.p = NAN}, .p_adjusted = NAN, .detectable = NAN};
    double *figures_a = figures_take(arena, a, metric), *figures_b = figures_take(arena, b, metric);
    if (figures_a)
        line.a = quantile(arena, figures_a, a->runs.len, question->spec.share);
    if (figures_b)
        line.b = quantile(arena, figures_b, b->runs.len, question->spec.share);
    int r = 0;
    if (!figures_a || !figures_b)
        line.na = reason_of(a, b, metric);
    else
        r = ratio_make(question, figures_a, a->runs.len, figures_b, b->runs.len, &line.ratio);
    if (arena_failed(arena) || r == -ENOMEM)
        return why_nomem(why);
    if (r == -EDOM)
        line.na = "0 in some runs";
    else if (r < 0)
        line.na = "too many runs, or a figure that is none";
    if (line.na) {
        line.ratio = (struct ratio){.p = NAN};
    } else {
        line.p_adjusted = line.ratio.p;
        line.verdict = ratio_verdict(&line.ratio, question->margin, question->confidence);
        line.detectable = ratio_detectable(&line.ratio, question->margin);
    }
    *ret = line;
    return 0;
}

/* The metrics nobody asked about: corrected for their number. */
static int lines_adjust(const struct ab_question *question, struct ab_answer *answer,
                        struct why *why)
{
    double p[BENCH_METRICS];
    for (int i = 0; i < BENCH_METRICS; i++)
        p[i] = i == question->spec.metric ? NAN : answer->lines[i].ratio.p;
    if (holm_adjust(p, BENCH_METRICS, p) < 0)
        return why_nomem(why);
    for (int i = 0; i < BENCH_METRICS; i++) {
        struct ab_line *line = &answer->lines[i];
        if (line->na || i == question->spec.metric)
            continue;
        struct ratio corrected = line->ratio;
        corrected.p = line->p_adjusted = p[i];
        line->verdict = ratio_verdict(&corrected, question->margin, question->confidence);
    }
    return 0;
}

int ab_answer_make(struct arena *arena, const struct ab_question *question,
                   const struct bench_result *a, const struct bench_result *b,
                   struct ab_answer *ret, struct why *why)
{
    int r = ab_line_make(arena, question, a, b, &ret->asked, why);
    for (int i = 0; r == 0 && i < BENCH_METRICS; i++) {
        struct ab_question each = *question;
        each.spec = (struct metric_spec){.metric = i, .share = 0.5};
        r = ab_line_make(arena, &each, a, b, &ret->lines[i], why);
    }
    return r < 0 ? r : lines_adjust(question, ret, why);
}
