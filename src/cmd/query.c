/* placeholder */
#include "cmd/query.h"

static int query_run(const struct cmd_call *call, struct why *why)
{
    (void)call;
    (void)why;
    return 0;
}

const struct command cmd_query = {
    .name = "query",
    .group = "Look",
    .operands = "",
    .summary = "x",
    .about = "x",
    .run = query_run,
};
