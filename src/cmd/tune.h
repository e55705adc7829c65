/* `whyslow tune`. */
#pragma once

#include "cmd/cmd.h"

extern const struct command cmd_tune;
