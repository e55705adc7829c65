/* The result of `whyslow compare` as a tree; schema "whyslow.compare/1". */
#pragma once

#include "cmd/ab.h"
#include "cmd/ab_answer.h"
#include "model/value.h"

struct compare_facts {
    struct arena *arena;
    const char *texts[AB_SIDES]; /* the operands, as they may be shown */
    const struct ab_cli *cli;
    const struct ab_question *question;
    const struct ab_answer *answer;
    const struct ab *ab; /* NULL for stored results */
    const struct bench_result *results[AB_SIDES];
    bool duet;
    uint64_t budget_ns;
    uint64_t seed;
    struct value warnings; /* a list to which the report adds its own */
    struct value fingerprint;
    struct value differences; /* of the fingerprints of stored results */
};

struct value compare_report_make(struct compare_facts *facts);
