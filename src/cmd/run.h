/* `whyslow run`. */
#pragma once

#include "cmd/cmd.h"

extern const struct command cmd_run;
