/* The parts of `whyslow gate`: pairs of a baseline and a candidate, judged against a threshold.
 * gate.c is the flow, gate_looks.c measures and judges, gate_counts.c does so by simulation,
 * gate_selftest.c puts the gate itself to the test, gate_report.c draws. */
#pragma once

#include "cmd/ab_answer.h"
#include "cmd/ab_source.h"
#include "cmd/cmd.h"
#include "stats/looks.h"

enum { GATE_PAIRS_MAX = OPT_LIST_MAX };

struct gate_opts {
    struct opt_list baselines;
    struct opt_list candidates;
    struct ab_cli ab;
    double max_regression_percent;
    uint64_t budget_ns;
    bool counts;
    bool self_test;
    const char *summary;
    uint64_t burn_ns; /* hidden, for the self-test: see gate_burn.h */
    uint64_t burn_kib;
    uint64_t burn_loops;
    bool burn;
    bool keep_arguments;
    struct output_opts output;
};

struct gate_pair {
    const char *texts[AB_SIDES]; /* as given; once defined, as they may be shown */
    const char *title;           /* for people; NULL: the candidate */
    struct ab_source sources[AB_SIDES];
    bool stored; /* nothing is run */
    bool alone;  /* only the candidate is run: the baseline is stored */
    struct ab_opts ab_opts;
    struct ab ab;
    const struct bench_result *results[AB_SIDES];
    struct ab_line line;
    double p_adjusted;
    double confidence; /* of the interval in `line` */
    enum look_answer answer;
    unsigned looked; /* how often */
    bool slowed;     /* self-test: this one must fail */
};

struct gate {
    const struct gate_opts *opts;
    const struct cmd_call *call;
    struct arena *arena;
    struct metric_spec spec;
    double threshold; /* 1.1 for 10% */
    struct gate_pair *pairs;
    size_t pair_count;
    bool family; /* the pairs are several questions: their p are corrected (Holm) */
    struct value warnings;
    struct value fingerprint;
    struct value differences;       /* of stored results against this machine or each other */
    const struct gate_pair *failed; /* a command of this one failed */
    int signal;
};

/* Runs and looks until every pair is answered or the budget is spent. */
MUST_USE int gate_measure(struct gate *gate, struct why *why);
/* The same by counting instructions under callgrind. */
MUST_USE int gate_count(struct gate *gate, struct why *why);
/* Makes the pairs of a self-test: A/A, and A against A slowed down by twice the threshold, for
 * each baseline. */
MUST_USE int gate_selftest_make(struct gate *gate, struct why *why);

enum gate_verdict { GATE_PASS, GATE_FAIL, GATE_INCONCLUSIVE };
/* Fail when one fails; pass when all pass. In a self-test: pass when the gate behaved. */
enum gate_verdict gate_verdict(const struct gate *gate);
const char *gate_verdict_name(enum gate_verdict verdict);
struct value gate_report_make(const struct gate *gate);
