/* `whyslow help`: also the source of the man pages and shell completions. */
#pragma once

#include "cmd/cmd.h"

/* The overview of all commands, for `whyslow --help`. */
void help_overview(FILE *out);
/* Usage, options and examples of one command. */
void help_command(const struct command *command, FILE *out);
