/* `whyslow doctor`. */
#pragma once

#include "cmd/cmd.h"

extern const struct command cmd_doctor;
