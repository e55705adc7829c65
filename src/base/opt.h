/* Options as data. One table per command is the source of parsing, help, man
 * page, shell completion and, later, the schema offered to coding agents.
 *
 *     static const struct opt record_options[] = {
 *         { "rate", 'F', OPT_U32, offsetof(struct record_opts, rate_hz), "HZ",
 *           "samples per second per CPU", .fallback = "999" },
 *         { 0 },
 *     };
 *
 * The command's struct starts zeroed; `fallback` texts are then parsed into it
 * as if they had been typed, so that the default in the help is the default.
 *
 * A hidden flag whose name is "" is set by "--", for commands to which it matters. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/why.h"

#include <stdbool.h>
#include <stdint.h>

enum opt_type {
    OPT_FLAG,     /* bool */
    OPT_U32,      /* uint32_t */
    OPT_U64,      /* uint64_t */
    OPT_F64,      /* double */
    OPT_TEXT,     /* const char *, borrowed from argv */
    OPT_FILE,     /* the same, completed as a path */
    OPT_CHOICE,   /* const char *, one of `choices` (separated by '|') */
    OPT_DURATION, /* uint64_t nanoseconds */
    OPT_SIZE,     /* uint64_t bytes */
    OPT_PERCENT,  /* double */
    OPT_LIST,     /* struct opt_list: may be given several times */
};

struct opt {
    const char *name; /* long name without dashes; NULL ends the table */
    char letter;      /* short name, or 0 */
    enum opt_type type;
    size_t offset;        /* of the field in the command's option struct */
    const char *argument; /* name of the argument in help; NULL for flags */
    const char *help;
    const char *fallback; /* default as text; NULL for zero */
    const char *choices;  /* for OPT_CHOICE */
    bool hidden;          /* for tests: parsed, but in no help */
    unsigned words;       /* for OPT_LIST: values taken each time; 0 means one */
};

enum { OPT_LIST_MAX = 64 };

struct opt_list {
    const char *items[OPT_LIST_MAX];
    size_t len;
};

enum opt_stop {
    OPT_MIXED,         /* options and operands in any order, until "--" */
    OPT_FIRST_OPERAND, /* options end at the first operand: it is the target's argv */
};

/* Fills `opts` from the defaults and argv[1..]. Operands are moved to the front
 * of argv, and their number returned. A usage error is -EINVAL with a remedy
 * that names the closest option. */
MUST_USE int opt_parse(const struct opt *table, enum opt_stop stop, int argc, char **argv,
                       void *opts, struct why *why);

/* The text of `candidates` nearest to `typed`, or NULL when none is near. */
const char *opt_nearest(const char *typed, const char *const *candidates, size_t count);
