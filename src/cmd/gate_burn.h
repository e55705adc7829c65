/* A known slowdown, for gate's self-test: whyslow starts itself with hidden options, burns what
 * it is told to, and runs the command. The cost falls into the measured run as if the command
 * itself had it.
 *
 * CPU time is burnt beside the command, which is a child: exec would hand the time already used
 * on to the program (which may look at it) and lose what callgrind had counted. Memory is taken
 * before an exec, which hands the peak on: that is wanted here. */
#pragma once

#include "base/why.h"

#include <stdint.h>

struct burn {
    uint64_t cpu_ns;
    uint64_t loops; /* of two instructions each */
    uint64_t kib;   /* peak memory to reach */
};

/* The command's exit status (128 and the signal's number when it was killed), or -errno. Does not
 * return when there is only memory to take. */
int burn_and_run(const struct burn *burn, char **argv, struct why *why);
