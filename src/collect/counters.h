/* The counters collector's row; see counters.c. */
#pragma once

#include "collect/collectors.h"

extern const struct collector_ops collector_counters;
