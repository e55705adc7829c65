/* placeholder */
#include "cmd/run.h"

static int run_run(const struct cmd_call *call, struct why *why)
{
    (void)call;
    (void)why;
    return 0;
}

const struct command cmd_run = {
    .name = "run",
    .group = "Look",
    .operands = "",
    .summary = "x",
    .about = "x",
    .run = run_run,
};
