/* Least squares with few unknowns that may not be negative: every choice of unknowns held
 * at zero is solved, the best of those without a negative one wins. */
#include "stats/growth.h"

#include "stats/random.h"
#include "stats/summary.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWNS_MAX = 3, STEPS_TELLING = 6 };

static const char *const names[GROWTH_LAWS] = {
    [GROWTH_CONSTANT] = "constant", [GROWTH_LOG] = "log n",           [GROWTH_LINEAR] = "linear",
    [GROWTH_N_LOG_N] = "n log n",   [GROWTH_QUADRATIC] = "quadratic", [GROWTH_CUBIC] = "cubic",
};

const char *growth_law_name(enum growth_law law)
{
    return law < GROWTH_LAWS ? names[law] : "unknown";
}

static double shape(enum growth_law law, double n)
{
    switch (law) {
    case GROWTH_LOG:
        return log2(n + 1); /* n itself may be 1 */
    case GROWTH_LINEAR:
        return n;
    case GROWTH_N_LOG_N:
        return n * log2(n + 1);
    case GROWTH_QUADRATIC:
        return n * n;
    case GROWTH_CUBIC:
        return n * n * n;
    case GROWTH_CONSTANT:
    case GROWTH_LAWS:
        break;
    }
    return 0;
}

double growth_at(const struct growth_fit *fit, double units)
{
    return fit->base + fit->factor * shape(fit->law, units);
}

/* Rows of (terms, 1): every equation is divided by its cost, which makes the error relative. */
struct system {
    size_t rows;
    size_t unknowns;
    double term[GROWTH_STEPS_MAX][UNKNOWNS_MAX];
};

/* Gaussian elimination with pivoting; false when the terms do not tell the unknowns apart. */
static bool solve_square(double a[UNKNOWNS_MAX][UNKNOWNS_MAX + 1], size_t n, double *ret)
{
    for (size_t column = 0; column < n; column++) {
        size_t pivot = column;
        for (size_t row = column + 1; row < n; row++)
            if (fabs(a[row][column]) > fabs(a[pivot][column]))
                pivot = row;
        if (fabs(a[pivot][column]) < 1e-12)
            return false;
        for (size_t k = 0; k <= n; k++) {
            double swap = a[column][k];
            a[column][k] = a[pivot][k];
            a[pivot][k] = swap;
        }
        for (size_t row = 0; row < n; row++) {
            double factor = row == column ? 0 : a[row][column] / a[column][column];
            for (size_t k = column; k <= n; k++)
                a[row][k] -= factor * a[column][k];
        }
    }
    for (size_t i = 0; i < n; i++)
        ret[i] = a[i][n] / a[i][i];
    return true;
}

/* The unknowns in `mask` by the normal equations, the others 0. */
static bool solve_some(const struct system *s, unsigned mask, double ret[UNKNOWNS_MAX])
{
    size_t at[UNKNOWNS_MAX], n = 0;
    double scale[UNKNOWNS_MAX];
    for (size_t i = 0; i < s->unknowns; i++)
        if (mask & 1u << i)
            at[n++] = i;
    for (size_t i = 0; i < n; i++) { /* n³ and 1 in one system: bring them to one size */
        double sum = 0;
        for (size_t row = 0; row < s->rows; row++)
            sum += s->term[row][at[i]] * s->term[row][at[i]];
        scale[i] = sum > 0 ? sqrt(sum) : 1;
    }
    double a[UNKNOWNS_MAX][UNKNOWNS_MAX + 1] = {0};
    for (size_t row = 0; row < s->rows; row++)
        for (size_t i = 0; i < n; i++) {
            double x = s->term[row][at[i]] / scale[i];
            for (size_t k = 0; k < n; k++)
                a[i][k] += x * s->term[row][at[k]] / scale[k];
            a[i][n] += x;
        }
    double found[UNKNOWNS_MAX];
    if (!solve_square(a, n, found))
        return false;
    memset(ret, 0, UNKNOWNS_MAX * sizeof(*ret));
    for (size_t i = 0; i < n; i++)
        ret[at[i]] = found[i] / scale[i];
    return true;
}

static double residual(const struct system *s, const double x[UNKNOWNS_MAX])
{
    double sum = 0;
    for (size_t row = 0; row < s->rows; row++) {
        double error = -1;
        for (size_t i = 0; i < s->unknowns; i++)
            error += s->term[row][i] * x[i];
        sum += error * error;
    }
    return sum;
}

/* The sum of squares; `ret` are the unknowns. */
static double solve(const struct system *s, double ret[UNKNOWNS_MAX])
{
    double best = INFINITY;
    for (unsigned mask = 1; mask < 1u << s->unknowns; mask++) {
        double x[UNKNOWNS_MAX];
        if (!solve_some(s, mask, x))
            continue;
        bool possible = true;
        for (size_t i = 0; i < s->unknowns; i++)
            possible = possible && x[i] >= 0;
        double sum = possible ? residual(s, x) : INFINITY;
        if (sum < best) {
            best = sum;
            memcpy(ret, x, sizeof(x));
        }
    }
    return best;
}

static void fit_law(const double *units, const double *costs, size_t count, enum growth_law law,
                    struct growth_fit *ret)
{
    struct system s = {.rows = count, .unknowns = law == GROWTH_CONSTANT ? 1 : 2};
    for (size_t i = 0; i < count; i++) {
        s.term[i][0] = 1 / costs[i];
        s.term[i][1] = shape(law, units[i]) / costs[i];
    }
    double x[UNKNOWNS_MAX] = {0};
    double sum = solve(&s, x);
    *ret = (struct growth_fit){
        .law = law, .base = x[0], .factor = x[1], .error = sqrt(sum / (double)count)};
}

/* Akaike's criterion for small samples. An error below the noise floor of a clock (0.01%) is
 * no evidence for one law over another. */
static double criterion(const struct growth_fit *fit, size_t count)
{
    double n = (double)count;
    double k = fit->law == GROWTH_CONSTANT ? 2 : 3; /* the variance is a parameter too */
    double variance = fit->error * fit->error + 1e-8;
    double penalty = n - k - 1 > 0 ? 2 * k * (k + 1) / (n - k - 1) : 2 * k * (k + 1);
    return n * log(variance) + 2 * k + penalty;
}

/* Of one law against another, both growing. More steps than a few do not tell more: what a law
 * misses, it misses at all of them alike. */
static double shape_criterion(const struct growth_fit *fit, double floor, size_t count)
{
    return fmin((double)count, STEPS_TELLING) * log(fit->error * fit->error + floor * floor);
}

/* How far the cost strays from any law, all steps together: only of what grows. */
static double systematic_of(const struct growth_fit *fit, const double *units, size_t count)
{
    double sum = 1e-8;
    for (size_t i = 0; i < count; i++) {
        double grown = GROWTH_SYSTEMATIC * (1 - fit->base / growth_at(fit, units[i]));
        sum += grown * grown / (double)count;
    }
    return sqrt(sum);
}

static int better(const void *a, const void *b)
{
    const struct growth_fit *x = a, *y = b;
    return (x->weight < y->weight) - (x->weight > y->weight);
}

/* All laws with their weights, in the order of the enum. */
static void fit_all(const double *units, const double *costs, size_t count,
                    struct growth_fit fits[GROWTH_LAWS])
{
    double score[GROWTH_LAWS], best = INFINITY, sum = 0, growing = 0;
    int closest = GROWTH_LOG;
    for (int law = 0; law < GROWTH_LAWS; law++) {
        fit_law(units, costs, count, (enum growth_law)law, &fits[law]);
        score[law] = criterion(&fits[law], count);
        best = fmin(best, score[law]);
        if (law != GROWTH_CONSTANT && fits[law].error < fits[closest].error)
            closest = law;
    }
    for (int law = 0; law < GROWTH_LAWS; law++)
        sum += exp((best - score[law]) / 2);
    fits[GROWTH_CONSTANT].weight = exp((best - score[GROWTH_CONSTANT]) / 2) / sum;
    double floor = systematic_of(&fits[closest], units, count);
    best = shape_criterion(&fits[closest], floor, count);
    for (int law = GROWTH_CONSTANT + 1; law < GROWTH_LAWS; law++) {
        fits[law].weight = exp((best - shape_criterion(&fits[law], floor, count)) / 2);
        growing += fits[law].weight;
    }
    for (int law = GROWTH_CONSTANT + 1; law < GROWTH_LAWS; law++)
        fits[law].weight *= (1 - fits[GROWTH_CONSTANT].weight) / growing;
}

static double power_between(const double *units, const double *costs, size_t from, size_t to)
{
    return costs[from] > 0 && costs[to] > costs[from]
               ? log(costs[to] / costs[from]) / log(units[to] / units[from])
               : 0;
}

double growth_next(const double *units, const double *costs, size_t count, double next_units)
{
    if (count == 0)
        return 0;
    size_t last = count - 1;
    double power = count > 1 ? fmin(power_between(units, costs, last - 1, last),
                                    power_between(units, costs, 0, last))
                             : 0;
    return costs[last] * pow(next_units / units[last], power);
}

static int steps_check(const struct growth_step *steps, size_t count, size_t different_min)
{
    if (count > GROWTH_STEPS_MAX)
        return -EINVAL;
    size_t different = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(steps[i].units > 0) || !isfinite(steps[i].units) || steps[i].runs == 0 ||
            steps[i].runs > SUMMARY_RUNS_MAX)
            return -EINVAL;
        for (size_t k = 0; k < steps[i].runs; k++)
            if (!(steps[i].costs[k] > 0) || !isfinite(steps[i].costs[k]))
                return -EINVAL;
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen = seen || steps[k].units == steps[i].units;
        different += !seen;
    }
    return different < different_min ? -ERANGE : 0;
}

static size_t runs_min(const struct growth_step *steps, size_t count)
{
    size_t min = SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        min = steps[i].runs < min ? steps[i].runs : min;
    return min;
}

static size_t runs_max(const struct growth_step *steps, size_t count)
{
    size_t max = 0;
    for (size_t i = 0; i < count; i++)
        max = steps[i].runs > max ? steps[i].runs : max;
    return max;
}

/* Medians of the runs, or of as many runs drawn with replacement. */
static void medians(const struct growth_step *steps, size_t count, uint64_t *random,
                    double *scratch, double *units, double *costs)
{
    for (size_t i = 0; i < count; i++) {
        size_t runs = steps[i].runs;
        for (size_t k = 0; k < runs; k++)
            scratch[k] = steps[i].costs[random ? random_below(random, runs) : k];
        units[i] = steps[i].units;
        costs[i] = median_in_place(scratch, runs);
    }
}

int growth_fit(const struct growth_step *steps, size_t count, uint64_t seed,
               struct growth_fit ret[GROWTH_LAWS])
{
    int r = steps_check(steps, count, GROWTH_STEPS_MIN);
    if (r < 0)
        return r;
    double *scratch = calloc(runs_max(steps, count) + 1, sizeof(*scratch));
    if (!scratch)
        return -ENOMEM;
    double units[GROWTH_STEPS_MAX], costs[GROWTH_STEPS_MAX];
    struct growth_fit fits[GROWTH_LAWS], drawn[GROWTH_LAWS];
    medians(steps, count, NULL, scratch, units, costs);
    fit_all(units, costs, count, fits);
    for (int draw = 0; draw < GROWTH_DRAWS; draw++) {
        medians(steps, count, &seed, scratch, units, costs);
        fit_all(units, costs, count, drawn);
        int first = 0;
        for (int law = 1; law < GROWTH_LAWS; law++)
            first = drawn[law].weight > drawn[first].weight ? law : first;
        fits[first].wins++;
    }
    free(scratch);
    for (int law = 0; law < GROWTH_LAWS; law++)
        fits[law].wins = runs_min(steps, count) < GROWTH_RUNS_MIN ? NAN
                                                                  : fits[law].wins / GROWTH_DRAWS;
    qsort(fits, GROWTH_LAWS, sizeof(fits[0]), better);
    memcpy(ret, fits, sizeof(fits));
    return 0;
}

/* cost/work * n = (1-contention)/rate + contention/rate * n + coherency/rate * n*(n-1): linear in
 * the three fractions, and none of them negative is what keeps contention between 0 and 1. What
 * grows by more than all of the work in turn is coherency. */
static void fit_scalability(const double *threads, const double *costs, size_t count,
                            bool per_thread, struct scalability_fit *ret)
{
    struct system s = {.rows = count, .unknowns = 3};
    for (size_t i = 0; i < count; i++) {
        double n = threads[i];
        double work = per_thread ? n : 1;
        double y = costs[i] / work * n;
        s.term[i][0] = 1 / y;
        s.term[i][1] = n / y;
        s.term[i][2] = n * (n - 1) / y;
    }
    double x[UNKNOWNS_MAX] = {0};
    double sum = solve(&s, x);
    *ret = (struct scalability_fit){.error = sqrt(sum / (double)count)};
    double one = x[0] + x[1]; /* the cost of one thread */
    if (one > 0) {
        ret->rate = 1 / one;
        ret->contention = x[1] / one;
        ret->coherency = x[2] / one;
    }
    if (ret->coherency > 0) {
        ret->has_peak = true;
        ret->peak = fmax(1, sqrt((1 - ret->contention) / ret->coherency));
    }
}

static void interval(double *values, size_t count, double *ret_low, double *ret_high)
{
    sort_in_place(values, count);
    *ret_low = percentile_sorted(values, count, 0.025);
    *ret_high = percentile_sorted(values, count, 0.975);
}

int scalability_fit(const struct growth_step *steps, size_t count, bool per_thread, uint64_t seed,
                    struct scalability_fit *ret)
{
    int r = steps_check(steps, count, 3); /* as many as unknowns */
    if (r < 0)
        return r;
    double *scratch = calloc(runs_max(steps, count) + 1, sizeof(*scratch));
    if (!scratch)
        return -ENOMEM;
    double units[GROWTH_STEPS_MAX], costs[GROWTH_STEPS_MAX];
    medians(steps, count, NULL, scratch, units, costs);
    struct scalability_fit fit, drawn;
    fit_scalability(units, costs, count, per_thread, &fit);
    double contention[GROWTH_DRAWS], coherency[GROWTH_DRAWS], two[GROWTH_DRAWS];
    for (int draw = 0; draw < GROWTH_DRAWS; draw++) {
        medians(steps, count, &seed, scratch, units, costs);
        fit_scalability(units, costs, count, per_thread, &drawn);
        contention[draw] = drawn.contention;
        coherency[draw] = drawn.coherency;
        two[draw] = scalability_at(&drawn, 2);
    }
    free(scratch);
    interval(contention, GROWTH_DRAWS, &fit.contention_low, &fit.contention_high);
    interval(coherency, GROWTH_DRAWS, &fit.coherency_low, &fit.coherency_high);
    interval(two, GROWTH_DRAWS, &fit.two_low, &fit.two_high);
    fit.has_interval = runs_min(steps, count) >= GROWTH_RUNS_MIN;
    if (!fit.has_interval)
        fit.contention_low = fit.contention_high = fit.coherency_low = fit.coherency_high =
            fit.two_low = fit.two_high = NAN;
    *ret = fit;
    return 0;
}

double scalability_at(const struct scalability_fit *fit, double threads)
{
    return threads /
           (1 + fit->contention * (threads - 1) + fit->coherency * threads * (threads - 1));
}

double scalability_best(const struct scalability_fit *fit)
{
    double below = floor(fit->peak);
    return scalability_at(fit, below + 1) > scalability_at(fit, below) ? below + 1 : below;
}
