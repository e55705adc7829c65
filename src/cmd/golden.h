/* The golden output (M1): what every run of a scenario must print.
 *
 * A hash, a file, or a command that reads the output from its stdin and says by its status
 * whether it is right. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/sha256.h"
#include "base/why.h"

enum golden_kind { GOLDEN_NONE, GOLDEN_HASH, GOLDEN_CHECK };

struct golden {
    enum golden_kind kind;
    const char *given;
    char sha256[SHA256_TEXT_BYTES];
};

/* "sha256:HEX", a file, or a command; NULL is none. `given` is borrowed. */
MUST_USE int golden_make(struct arena *arena, const char *given, struct golden *ret,
                         struct why *why);
