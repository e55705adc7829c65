/* A command as given to bench and its relatives: one text, with a shell or without.
 *
 * Without a shell the text is split by base/words.h, and what only a shell could
 * do (pipes, redirections, variables) is refused rather than passed on as an
 * argument; a '?' or "[…]" is, since an address has them, too. With one the text is the shell's
 * business. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/why.h"

#include <stdbool.h>

struct command_line {
    const char *text; /* as it may be shown: as given, without secrets */
    char **argv;      /* what is executed; ends with NULL */
    const char *path; /* of the program, from program_find() */
    bool shell;
};

/* Once, before the first command line is shown: secrets in them stay (--keep-arguments). A setting
 * of the process, since command lines of children are read in many places. */
void command_keep_arguments(bool keep);
bool command_arguments_are_kept(void);

/* argv as a shell would take it, but with "[redacted]" in the place of secrets (base/redact.h). */
const char *command_shown(struct arena *arena, char *const *argv);
/* The same for a text; itself when there is nothing to hide. */
const char *command_text_shown(struct arena *arena, const char *text);
/* How many secrets that hides. */
unsigned command_secrets(struct arena *arena, char *const *argv);

/* `shell` is itself a command line ("bash --norc"), or NULL for none; it is given
 * "-c" and the text. All memory is the arena's, but `text` may be borrowed. */
MUST_USE int command_line_parse(struct arena *arena, const char *text, const char *shell,
                                struct command_line *ret, struct why *why);

/* The same for an argv that was given word by word; `text` is then its quoted form. */
MUST_USE int command_line_from_argv(struct arena *arena, char *const *argv,
                                    struct command_line *ret, struct why *why);

/* The first piece of shell syntax in a text ("|"), or a first word that only a shell knows ("cd");
 * NULL: it needs no shell. */
const char *command_shell_syntax(struct arena *arena, const char *text);
/* `shell`, or, when none was named and one of the texts needs it, "sh", with a note that says so.
 * It is for all of them: commands are compared under the same conditions. NULL texts are skipped.
 */
const char *command_shell_for(struct arena *arena, const char *shell, const char *const *texts,
                              size_t count);

/* argv as a shell would take it. */
const char *command_quote(struct arena *arena, char *const *argv);
