/* Statements that a program sends to a database again and again, one after another: with values
 * that differ (N+1) or with the same (duplicate query). */
#pragma once

#include "detect/net_common.h"

enum { STATEMENTS_MIN = 5, STATEMENTS_PATTERN_MAX = 8 };
#define STATEMENTS_NS_MIN    50e6 /* either is enough */
#define STATEMENTS_SHARE_MIN 0.05

struct statements {
    uint64_t set;                  /* groups of `net` */
    unsigned texts;                /* different statements, asked in turn */
    struct io_request_group asked; /* the most expensive of them, all its groups together */
    struct place place;
    uint64_t chains; /* runs of requests, of which one each stays */
};

/* What is said of such statements when they are worth it. */
typedef void statements_tell(const struct net *net, const struct statements *statements,
                             struct findings *ret, struct finding *finding);

/* Judges those that are duplicates, or those that are not. 0 or -ENOMEM. */
MUST_USE int statements_judge(const struct evidence *evidence, const struct detector *self,
                              bool duplicates, statements_tell *tell, struct findings *ret);
/* The statement, cut for a line. */
const char *statements_short(const struct net *net, const struct statements *statements);
