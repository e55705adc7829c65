/* `heap_event`: the compressed chunks of heap_chunk as a table for SQL.
 *
 *     SELECT stack_text(stack), size FROM heap_event WHERE kind = 'allocated' LIMIT 10 */
#pragma once

#include "store/reader.h"

/* Adds the table to the recording's own connection. */
MUST_USE int heap_event_table_register(struct recording *recording, struct why *why);
