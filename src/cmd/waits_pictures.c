/* The off-CPU flame graph: stacks of waits, each with its class and cause as the leaf. */
#include "cmd/waits_parts.h"

#include "analyze/call_tree.h"
#include "analyze/wait_profile.h"

#include <errno.h>

/* Rows that are ranked, as the table has them: idle only where it was asked for. */
static const char *leaf(void *context, uint32_t row)
{
    const struct waits_run *run = context;
    uint32_t group = run->groups.of_row[row];
    enum wait_class class = run->classes.rows[row];
    if (group == 0 || (class == WAIT_CLASS_IDLE && !run->opts->idle) ||
        (run->choice.class >= 0 && (int)class != run->choice.class))
        return NULL;
    return arena_printf(run->arena, "%s: %s", wait_class_name(class),
                        wait_cause(run->arena, &run->waits, row));
}

int waits_pictures(struct waits_run *run, struct value *root, struct why *why)
{
    struct profile profile;
    struct call_tree tree;
    if (!pictures_wanted(&run->opts->pictures))
        return 0;
    if (wait_profile_build(run->arena, &run->waits, leaf, run, &profile) < 0 ||
        call_tree_build(run->arena, &profile, NULL, &tree) < 0)
        return why_nomem(why);
    if (profile.weight == 0)
        return why_set(why, WHY_USAGE, ENODATA,
                       run->opts->idle ? "leave --class out" : "add --idle to draw what is idle",
                       "there is no wait to draw");
    struct str command = profile.command;
    size_t all;
    struct value honesty = wait_honesty_value(run->arena, &run->honesty);
    struct value table = wait_tables_waits(&run->tables, &run->choice, &all);
    struct pictured pictured = {
        .tree = &tree,
        .scale = 1,
        .title = arena_printf(run->arena, "waits: %.*s", STR_FMT(command)),
        .subtitle = wait_honesty_line(run->arena, &run->honesty),
        .honesty = &honesty,
        .table = &table,
        .table_title = "Waits",
    };
    return pictures_write(&run->opts->pictures, &pictured, run->arena, root, why);
}
