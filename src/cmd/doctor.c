/* placeholder */
#include "cmd/doctor.h"

static int doctor_run(const struct cmd_call *call, struct why *why)
{
    (void)call;
    (void)why;
    return 0;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .group = "Look",
    .operands = "",
    .summary = "x",
    .about = "x",
    .run = doctor_run,
};
