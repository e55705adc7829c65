/* The io collector's row; see io.c. */
#pragma once

#include "collect/collectors.h"

extern const struct collector_ops collector_io;
