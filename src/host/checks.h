/* Pre-flight: what would spoil a measurement, found before time is spent on it.
 *
 * A check is one function and one row of the table in checks.c. */
#pragma once

#include "host/build_info.h"
#include "host/host.h"

enum check_verdict {
    CHECK_OK,
    CHECK_WARN, /* the result is weaker than it could be */
    CHECK_FAIL, /* the result would mislead, or cannot be had */
    CHECK_NA,   /* could not be looked at, or does not apply; detail says why */
};

struct check_input {
    const struct host *host;
    const struct build_info *binary; /* NULL when no target was named */
    const char *binary_na;           /* why there is none; not NULL then */
    int pid;                         /* 0 when the target does not run yet */
    const char *output_folder;       /* where results go: must have room */
};

struct check_result {
    enum check_verdict verdict;
    const char *detail; /* what was found, with the number */
    const char *spoils; /* what it spoils; NULL when CHECK_OK */
    const char *mend;   /* the one command that mends it; NULL when CHECK_OK or there is none */
};

struct check {
    const char *id;    /* "symbols": stable, for JSON and scripts */
    const char *title; /* "symbols present" */
    void (*run)(const struct check_input *input, struct check_result *ret);
};

extern const struct check checks[]; /* ends with a NULL id */

/* Runs every check: a table value with id, verdict ("ok", "warn", "fail", "n/a"),
 * check, detail, spoils, mend. *ret_failed counts CHECK_FAIL. */
struct value checks_table(const struct check_input *input, unsigned *ret_failed);
