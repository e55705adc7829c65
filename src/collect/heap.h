/* The heap collector's row; see heap.c. */
#pragma once

#include "collect/collectors.h"

extern const struct collector_ops collector_heap;
