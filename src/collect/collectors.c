/* stub: stands in until the real table is merged. */
#include "collect/collectors.h"

const struct collector_ops *const collectors[] = {NULL};

const char *tier_name(enum tier tier)
{
    static const char *const names[] = {"none", "floor", "user", "kernel"};
    return names[tier];
}

static const struct column columns[] = {
    {"collector", "collector", SHOW_ALWAYS, false, false},
    {"tier", "tier", SHOW_ALWAYS, false, false},
    {"gives", "gives", SHOW_ALWAYS, false, true},
    {"why_not_higher", "why not higher", SHOW_ALWAYS, false, true},
    {"remedy", "remedy", SHOW_ALWAYS, false, true},
    {"status", "status", SHOW_ALWAYS, false, false},
};

struct value collectors_table(struct arena *arena)
{
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    struct table_row *row = table_add(&table);
    if (row) {
        row->cells[0] = value_text("cpu");
        row->cells[1] = value_text(tier_name(TIER_USER));
        for (size_t i = 2; i < ARRAY_SIZE(columns); i++)
            row->cells[i] = value_text("stub");
    }
    return table;
}
