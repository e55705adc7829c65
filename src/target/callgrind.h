/* Instructions counted by simulation: one run of a command under valgrind's callgrind.
 *
 * For machines without a PMU, and for gates that must not depend on noise: the same binary with
 * the same input executes nearly the same instructions every time. What it cannot see: time spent
 * waiting, in the kernel, in caches; threads run one at a time. So the result is always to be
 * called simulated. Processes the command starts are counted too. */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <stdbool.h>
#include <stdint.h>

struct callgrind_opts {
    char *const *argv; /* ends with NULL */
    const char *path;  /* of the program, from program_find() */
    const char *input; /* file for stdin; NULL: /dev/null */
    uint64_t timeout_ns;
};

struct callgrind_result {
    uint64_t instructions;
    uint32_t processes;
    int status; /* as from wait4 */
    bool timed_out;
    int interrupted; /* the signal that whyslow got meanwhile, or 0 */
};

/* Where valgrind is; WHY_DENIED with a remedy when it is not installed. */
MUST_USE int callgrind_find(char ret_path[4096], struct why *why);

/* A command that fails is not an error: look at the status. Counts are of what ran till then. */
MUST_USE int callgrind_count(const char *valgrind, const struct callgrind_opts *opts,
                             struct callgrind_result *ret, struct why *why);

/* The sum of one file that callgrind wrote; -EINVAL when it is none. For tests too. */
MUST_USE int callgrind_file_read(const char *path, uint64_t *ret_instructions, struct why *why);
