/* The flame graph of calls: stacks, each with its call and what it was about as the leaf. */
#include "cmd/io_parts.h"

#include "analyze/call_tree.h"
#include "analyze/wait_profile.h"

#include <errno.h>

/* Rows that are ranked, as the tables have them. */
static const char *leaf(void *context, uint32_t row)
{
    struct io_run *run = context;
    const struct call_info *info = &run->io.calls[row].info;
    const struct object_info *object = &run->io.objects[info->object];
    if (io_is_idle(&run->sums.kinds, info, object))
        return NULL;
    const char *call = io_call_name(run->arena, &run->sums.kinds, info->syscall);
    if (object->name.len == 0)
        return call;
    return arena_printf(run->arena, "%s of %.*s", call, STR_FMT(object->name));
}

/* Calls as rows of waits, which the shared way to a profile takes. */
static int profile_build(struct io_run *run, struct profile *ret)
{
    const struct io *io = &run->io;
    struct waits waits = {.profile = io->profile, .row_count = io->call_count};
    waits.rows = arena_alloc(run->arena, (io->call_count + 1) * sizeof(*waits.rows));
    if (!waits.rows)
        return -ENOMEM;
    for (size_t i = 1; i < io->call_count; i++) {
        waits.rows[i].info.thread = io->calls[i].info.thread;
        waits.rows[i].info.stack = io->calls[i].info.stack;
        waits.rows[i].tally.count = io->calls[i].tally.count;
        waits.rows[i].tally.total_ns = io->calls[i].tally.total_ns;
    }
    return wait_profile_build(run->arena, &waits, leaf, run, ret);
}

int io_pictures(struct io_run *run, struct value *root, struct why *why)
{
    struct profile profile;
    struct call_tree tree;
    if (!pictures_wanted(&run->opts->pictures))
        return 0;
    if (profile_build(run, &profile) < 0 || call_tree_build(run->arena, &profile, NULL, &tree) < 0)
        return why_nomem(why);
    if (profile.weight == 0)
        return why_set(why, WHY_USAGE, ENODATA, "leave --flame, --icicle and --html out",
                       "there is no call but what is idle: there is nothing to draw");
    struct value honesty = io_honesty_value(run->arena, &run->honesty);
    struct value table = io_tables_sites(&run->tables);
    struct pictured pictured = {
        .tree = &tree,
        .scale = 1,
        .title = arena_printf(run->arena, "time in calls: %.*s", STR_FMT(profile.command)),
        .subtitle = io_honesty_line(run->arena, &run->honesty),
        .honesty = &honesty,
        .table = &table,
        .table_title = "Calls",
    };
    return pictures_write(&run->opts->pictures, &pictured, run->arena, root, why);
}
