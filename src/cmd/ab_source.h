/* What an operand of compare or gate is: a stored result, a recording, or a command. */
#pragma once

#include "cmd/ab.h"
#include "host/fingerprint.h"
#include "model/value.h"
#include "store/bench_file.h"

enum ab_kind { AB_COMMAND, AB_STORED, AB_RECORDING };

struct ab_source {
    enum ab_kind kind;
    const char *text; /* as given */
    struct bench_file file;
    const struct bench_result *result; /* of the file; for AB_STORED */
};

/* A name of a readable file that holds JSON is a stored result, one of a recording is that;
 * everything else is a command. */
MUST_USE int ab_source_open(struct arena *arena, const char *text, struct ab_source *ret,
                            struct why *why);
void ab_source_close(struct ab_source *source); /* zeroed is fine */

/* Chooses the results to compare: the only one of each file, or those of one name. Failed runs
 * are refused unless they may count. */
MUST_USE int ab_sources_choose(struct ab_source *a, struct ab_source *b, const struct ab_cli *cli,
                               struct why *why);
/* The same for one side, the other being a command. */
MUST_USE int ab_source_choose(struct ab_source *source, const struct ab_cli *cli, struct why *why);

/* Do the machines match? The differences; refused without --force when they forbid a comparison
 * or a file has no fingerprint. `*ret_warning` is what --force went over, or NULL. */
MUST_USE int ab_fingerprints_check(struct arena *arena, const struct ab_source *a,
                                   const struct ab_source *b, bool force, struct value *ret,
                                   const char **ret_warning, struct why *why);

/* This machine and a program on it. */
struct value ab_fingerprint_here(struct arena *arena, const char *binary);
/* Does a stored result match this machine? As ab_fingerprints_check(). */
MUST_USE int ab_fingerprint_check_here(struct arena *arena, const struct ab_source *source,
                                       const struct value *here, bool force, struct value *ret,
                                       const char **ret_warning, struct why *why);
