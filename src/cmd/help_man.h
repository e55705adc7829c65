/* Man pages from the command table. */
#pragma once

#include "cmd/cmd.h"

/* whyslow(1) when `command` is NULL, else whyslow-NAME(1). */
void man_print(const struct command *command, const char *version, FILE *out);
