/* The locks collector's row; see locks.c. */
#pragma once

#include "collect/collectors.h"

extern const struct collector_ops collector_locks;
