/* Locks as values: what `whyslow locks` prints. Renderers draw them; nothing here prints.
 *
 * Values live in the context's arena. Ids of locks ("l12") are stable for one recording. */
#pragma once

#include "analyze/lock_table.h"
#include "model/value.h"

struct lock_tables {
    struct arena *arena;
    const struct waits *waits;
    const struct lock_table *table;
    size_t limit; /* rows; 0: all */
};

/* One row a lock, the longest waited for first. */
struct value lock_tables_locks(const struct lock_tables *tables);
/* All about one lock, into a report's map: figures, histograms, stacks of waiters and holders. */
void lock_tables_detail(const struct lock_tables *tables, size_t lock, struct value *root);
/* "l12". */
const char *lock_tables_id(struct arena *arena, const struct lock_row *row);
/* Was it recorded how long any of them was held? */
bool lock_tables_hold_known(const struct lock_table *table);
