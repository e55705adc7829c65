/* A profile's answers as values: what `whyslow report` prints, `record` ends with, and later
 * the servers hand out. Renderers draw them; nothing here prints.
 *
 * Weights of time are in milliseconds under keys that end in _ms; those of another unit are
 * under self_weight and total_weight, in that unit. Values live in the context's arena. */
#pragma once

#include "analyze/hotspots.h"
#include "analyze/profile_diff.h"
#include "model/call_tree.h"
#include "model/value.h"

struct tables {
    struct arena *arena;
    const struct profile *profile;
    const struct hotspots *hotspots;
    const char *recording; /* its path, for evidence */
    size_t limit;          /* rows; 0: all */
};

/* A weight in the unit of the profile, and a share of the whole in percent. */
struct value tables_weight(const struct profile *profile, double weight);
struct value tables_percent(const struct profile *profile, double weight);
/* "f12"; in the arena. */
struct value tables_id(struct arena *arena, uint32_t function);
struct str tables_image(const struct profile *profile, uint32_t function);
/* "self_ms" or "self_weight": the same columns with the keys that fit the unit. */
const struct column *tables_columns(struct arena *arena, const struct profile *profile,
                                    const struct column *columns, size_t count);

struct value tables_hotspots(const struct tables *tables);
/* `source` gives the text of a line, or an empty one; may be NULL. */
struct value tables_lines(const struct tables *tables,
                          struct str (*source)(void *context, struct str file, uint32_t line),
                          void *context);
/* Two tables: by group into *ret_groups, single threads into *ret_threads. -ENOMEM. */
MUST_USE int tables_threads(const struct tables *tables, struct value *ret_groups,
                            struct value *ret_threads);
/* Nodes in depth-first order, those below min_pct left out with all below them.
 * *ret_left_out counts them. */
struct value tables_tree(const struct tables *tables, const struct call_tree *tree, double min_pct,
                         size_t *ret_left_out);
struct value tables_diff(struct arena *arena, const struct profile_diff *diff, size_t limit);
