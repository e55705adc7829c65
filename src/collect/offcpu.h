/* The offcpu collector's row; see offcpu.c. */
#pragma once

#include "collect/collectors.h"

extern const struct collector_ops collector_offcpu;
