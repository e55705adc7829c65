/* Measures pairs look by look and judges each look; the rules are stats/looks.h's. */
#include "cmd/gate.h"

#include "base/clock.h"
#include "stats/holm.h"

#include <errno.h>
#include <math.h>

static bool runs_something(const struct gate *gate)
{
    for (size_t i = 0; i < gate->pair_count; i++)
        if (!gate->pairs[i].stored)
            return true;
    return false;
}

static size_t live_count(const struct gate *gate)
{
    size_t live = 0;
    for (size_t i = 0; i < gate->pair_count; i++)
        live += !gate->pairs[i].stored;
    return live;
}

/* Goes on with one pair until its share of the budget for this look is spent. */
static int pair_measure(struct gate *gate, struct gate_pair *pair, const struct look *look,
                        struct progress *progress, struct why *why)
{
    if (pair->stored || pair->answer != LOOK_OPEN)
        return 0;
    int r = pair->looked == 0 ? ab_begin(&pair->ab_opts, &pair->ab, why) : 0;
    if (r < 0)
        return r;
    double budget_ns = (double)gate->opts->budget_ns / (double)live_count(gate) * look->share;
    double left_ns = fmax(0, budget_ns - (double)pair->ab.elapsed_ns);
    /* One block at the least: a figure to show, even if nothing can be said. */
    r = ab_measure(&pair->ab_opts, 1, AB_BLOCKS_MAX, clock_mono_ns() + (uint64_t)left_ns, progress,
                   &pair->ab, why);
    if (pair->ab.end == AB_FAILED)
        gate->failed = pair;
    if (pair->ab.end == AB_INTERRUPTED)
        gate->signal = pair->ab.signal;
    return r;
}

static int pair_estimate(struct gate *gate, struct gate_pair *pair, double alpha, struct why *why)
{
    if (pair->answer != LOOK_OPEN)
        return 0;
    struct ab_question question = {
        .spec = gate->spec,
        .interleaved = !pair->stored && !pair->alone,
        .margin = 0,
        .confidence = 1 - alpha,
        .threshold = gate->threshold,
    };
    pair->confidence = 1 - alpha;
    pair->looked++;
    return ab_line_make(gate->arena, &question, pair->results[0], pair->results[1], &pair->line,
                        why);
}

/* All pairs' p together, also those answered before: they were questions too. */
static int look_judge(struct gate *gate, double alpha, struct why *why)
{
    double p[GATE_PAIRS_MAX];
    for (size_t i = 0; i < gate->pair_count; i++)
        p[i] = gate->pairs[i].looked && !gate->pairs[i].line.na ? gate->pairs[i].line.ratio.p : NAN;
    if (gate->family && holm_adjust(p, gate->pair_count, p) < 0)
        return why_nomem(why);
    for (size_t i = 0; i < gate->pair_count; i++) {
        struct gate_pair *pair = &gate->pairs[i];
        if (pair->answer != LOOK_OPEN || pair->looked == 0)
            continue;
        pair->p_adjusted = p[i];
        if (!pair->line.na)
            pair->answer = look_decide(&pair->line.ratio, p[i], gate->threshold, alpha);
    }
    return 0;
}

static bool is_open(const struct gate *gate)
{
    if (gate->failed || gate->signal)
        return false;
    for (size_t i = 0; i < gate->pair_count; i++)
        if (gate->pairs[i].answer == LOOK_OPEN)
            return true;
    return false;
}

int gate_measure(struct gate *gate, struct why *why)
{
    /* Stored runs are there once and for all: one look, with all of the 5%. */
    static const struct look only = {1, 0.05};
    bool live = runs_something(gate);
    struct progress progress;
    progress_begin(&progress, gate->call->notes, "gate", 0);
    int r = 0;
    for (size_t k = 0; r == 0 && k < (live ? LOOKS : 1) && is_open(gate); k++) {
        const struct look *look = live ? &looks[k] : &only;
        bool last = !live || k == LOOKS - 1;
        for (size_t i = 0; r == 0 && i < gate->pair_count && !gate->failed && !gate->signal; i++)
            r = pair_measure(gate, &gate->pairs[i], look, &progress, why);
        if (gate->failed)
            break;
        for (size_t i = 0; r == 0 && i < gate->pair_count; i++)
            if (!gate->pairs[i].stored || last)
                r = pair_estimate(gate, &gate->pairs[i], look->alpha, why);
        if (r == 0)
            r = look_judge(gate, look->alpha, why);
    }
    progress_end(&progress);
    return r;
}
