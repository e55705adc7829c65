/* The cpu collector's row; see cpu.c. */
#pragma once

#include "collect/collectors.h"

extern const struct collector_ops collector_cpu;
