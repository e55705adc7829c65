/* Ways through a function, by following its jumps: all that runs with the caller's frame on top
 * once it is entered, parts that lie elsewhere and functions that it ends with included. Calls are
 * not followed. More than it can leave by is found, never less, unless `blind`. */
#pragma once

#include "symbolize/elf_file.h"

enum { FUNCTION_PATHS_MAX = 256, FUNCTION_PATHS_STEPS_MAX = 65536 };

struct function_paths {
    uint64_t returns[FUNCTION_PATHS_MAX]; /* instructions that return */
    size_t return_count;
    uint64_t jumps[FUNCTION_PATHS_MAX]; /* to one of `known`, or by a register */
    size_t jump_count;
    bool calls_known; /* calls one of `known` by its address */
    bool blind;       /* code that cannot be read, or too much of it */
};

/* `known`: functions of which nobody needs to know more; they are not followed. -ENOTSUP for
 * machines that we do not know, -ENOMEM. */
MUST_USE int function_paths(struct elf_file *file, uint64_t start, const uint64_t *known,
                            size_t known_count, struct function_paths *ret);

/* Where at a function's beginning a probe costs least: the kernel does some instructions itself
 * (pushes, jumps), and steps over others with a second trap. Arguments and stack are there as they
 * were at `start`, which it is if nothing better is found. */
uint64_t function_probe_at(struct elf_file *file, uint64_t start);
