/* Shell completion scripts from the command table. */
#pragma once

#include <stdio.h>

/* `shell` is "bash", "zsh" or "fish". */
void completion_print(const char *shell, FILE *out);
