/* stub: stands in until the real checks are merged. */
#include "host/checks.h"

const struct check checks[] = {{0}};

static const struct column columns[] = {
    {"id", "id", SHOW_MACHINE, false, false},
    {"verdict", "verdict", SHOW_ALWAYS, false, false},
    {"check", "check", SHOW_ALWAYS, false, true},
    {"detail", "detail", SHOW_ALWAYS, false, true},
    {"spoils", "spoils", SHOW_ALWAYS, false, true},
    {"mend", "mend", SHOW_ALWAYS, false, true},
};

static void row_add(struct value *table, const char *id, const char *verdict, const char *mend)
{
    struct table_row *row = table_add(table);
    if (!row)
        return;
    row->cells[0] = value_text(id);
    row->cells[1] = value_text(verdict);
    row->cells[2] = value_text(id);
    row->cells[3] = value_text("stub");
    row->cells[4] = value_text(mend ? "the result" : "");
    row->cells[5] = value_text(mend ? mend : "");
}

struct value checks_table(const struct check_input *input, unsigned *ret_failed)
{
    struct value table = value_table(input->host->arena, columns, ARRAY_SIZE(columns));
    row_add(&table, "disk", "ok", NULL);
    row_add(&table, "load", "warn", NULL);
    struct str governor;
    bool slow = host_read(input->host, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                          &governor, NULL) == 0 &&
                str_is(governor, "powersave");
    row_add(&table, "governor", slow ? "fail" : "ok",
            slow ? "sudo whyslow tune apply governor" : NULL);
    *ret_failed = slow;
    return table;
}
