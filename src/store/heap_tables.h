/* What is packed of the heap as tables for SQL: `heap_site`, `heap_snapshot_row`, `heap_event`.
 *
 *     SELECT stack_text(stack), sum(allocated_bytes) FROM heap_site GROUP BY stack */
#pragma once

#include "store/reader.h"

/* Adds the tables to the recording's own connection. */
MUST_USE int heap_tables_register(struct recording *recording, struct why *why);
