/* `whyslow query`. */
#pragma once

#include "cmd/cmd.h"

extern const struct command cmd_query;
