/* `sample`: the compressed chunks as a table for SQL.
 *
 *     SELECT time_ns, weight FROM sample WHERE series = 1 AND time_ns > 5000
 *
 * Conditions on series and time_ns choose the chunks that are unpacked. */
#pragma once

#include "store/reader.h"

/* Adds the table to the recording's own connection. */
MUST_USE int sample_table_register(struct recording *recording, struct why *why);
