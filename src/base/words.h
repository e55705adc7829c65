/* A command line as typed, split into an argv: quotes and backslashes as in a
 * POSIX shell, and nothing else of one.
 *
 * Blanks separate words. 'single quotes' keep everything; "double quotes" keep
 * everything but \" \\ \$ \` and an escaped line end; a backslash outside quotes
 * keeps the next character. Nothing is expanded: what a shell would have made
 * more of is noted, so that the caller can refuse it instead of passing a '|' on
 * as an argument. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/why.h"

enum { WORDS_MAX = 65536 };

struct words {
    char **argv; /* ends with NULL; the arena's */
    size_t count;
    const char *syntax; /* the first piece of shell syntax, "|" or "$(…)"; NULL: none */
    size_t syntax_at;   /* its position, from 1 */
    /* The first "?" or "[…]" that a shell would look up: as often part of an address or of an
     * expression, where nobody looks it up. NULL: none */
    const char *pattern;
};

/* An unclosed quote or a backslash at the end is WHY_USAGE with its position. An
 * empty text gives no words and is no error here. */
MUST_USE int words_split(struct arena *arena, const char *text, struct words *ret, struct why *why);
