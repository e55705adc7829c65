/* A command as given to bench and its relatives: one text, with a shell or without.
 *
 * Without a shell the text is split by base/words.h, and what only a shell could
 * do (pipes, redirections, variables) is refused rather than passed on as an
 * argument. With one the text is the shell's business. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/why.h"

#include <stdbool.h>

struct command_line {
    const char *text; /* as given */
    char **argv;      /* what is executed; ends with NULL */
    const char *path; /* of the program, from program_find() */
    bool shell;
};

/* `shell` is itself a command line ("bash --norc"), or NULL for none; it is given
 * "-c" and the text. All memory is the arena's, but `text` is borrowed. */
MUST_USE int command_line_parse(struct arena *arena, const char *text, const char *shell,
                                struct command_line *ret, struct why *why);

/* The same for an argv that was given word by word; `text` is then its quoted form. */
MUST_USE int command_line_from_argv(struct arena *arena, char *const *argv,
                                    struct command_line *ret, struct why *why);

/* argv as a shell would take it. */
const char *command_quote(struct arena *arena, char *const *argv);
