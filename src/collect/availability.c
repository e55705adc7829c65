/* What each collector could measure here, as a table for doctor. */
#include "collect/collectors.h"

static const struct column columns[] = {
    {"collector", "collector", SHOW_ALWAYS, false, false},
    {"about", "about", SHOW_MACHINE, false, false},
    {"status", "in this version", SHOW_ALWAYS, false, false},
    {"tier", "tier", SHOW_ALWAYS, false, false},
    {"gives", "gives", SHOW_ALWAYS, false, true},
    {"why_not_higher", "why not higher", SHOW_ALWAYS, false, true},
    {"remedy", "remedy", SHOW_ALWAYS, false, true},
};

const char *tier_name(enum tier tier)
{
    static const char *const names[] = {[TIER_NONE] = "none",
                                        [TIER_FLOOR] = "floor",
                                        [TIER_USER] = "user",
                                        [TIER_KERNEL] = "kernel"};
    return names[tier];
}

static enum tone tier_tone(enum tier tier)
{
    return tier == TIER_NONE ? TONE_BAD : tier == TIER_KERNEL ? TONE_GOOD : TONE_PLAIN;
}

struct value collectors_table(struct arena *arena)
{
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; collectors[i]; i++) {
        struct collector_probe probe = {0};
        collectors[i]->probe(arena, &probe);
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_text(collectors[i]->name);
        row->cells[1] = value_text(collectors[i]->summary);
        row->cells[2] = collectors[i]->built ? value_text("ready")
                                             : value_tone(value_text("not yet"), TONE_DIM);
        row->cells[3] = value_tone(value_text(tier_name(probe.tier)), tier_tone(probe.tier));
        row->cells[4] = value_text(probe.gives);
        row->cells[5] = value_text(probe.not_higher ? probe.not_higher : "");
        row->cells[6] = value_text(probe.remedy ? probe.remedy : "");
    }
    return table;
}
