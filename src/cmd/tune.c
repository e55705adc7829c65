/* placeholder */
#include "cmd/tune.h"

static int tune_run(const struct cmd_call *call, struct why *why)
{
    (void)call;
    (void)why;
    return 0;
}

const struct command cmd_tune = {
    .name = "tune",
    .group = "Look",
    .operands = "",
    .summary = "x",
    .about = "x",
    .run = tune_run,
};
