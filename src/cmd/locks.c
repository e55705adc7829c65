/* `whyslow locks`: which locks threads wait for, and who holds them.
 *
 * record or open → waits → critical path → classes → locks → one report → pictures → draw */
#include "analyze/call_tree.h"
#include "analyze/lock_table.h"
#include "analyze/wait_honesty.h"
#include "analyze/wait_profile.h"
#include "cmd/axis.h"
#include "cmd/pictures.h"
#include "present/lock_tables.h"

#include <errno.h>

struct locks_opts {
    struct axis_opts axis;
    struct output_opts output;
    struct picture_opts pictures;
    uint64_t limit;
    const char *lock;
};

static const struct opt locks_options[] = {
    {"limit", 'n', OPT_U64, offsetof(struct locks_opts, limit), "ROWS",
     "print at most this many rows of a table; 0 prints all", "20", NULL, false},
    {"lock", 0, OPT_TEXT, offsetof(struct locks_opts, lock), "ID",
     "one lock of the table, by id or name: histograms, stacks of waiters and holders", NULL, NULL,
     false},
    PICTURE_OPTIONS(struct locks_opts, pictures),
    AXIS_OPTIONS(struct locks_opts, axis),
    OUTPUT_OPTIONS(struct locks_opts, output),
    {0},
};

struct locks_run {
    const struct locks_opts *opts;
    struct arena *arena;
    struct recording *recording;
    bool kept; /* the recording can be looked at again */
    struct waits waits;
    struct lock_table table;
    struct wait_honesty honesty;
    struct lock_tables tables;
    size_t lock; /* the one that was asked for; SIZE_MAX: all */
};

static int load(struct locks_run *run, struct why *why)
{
    struct critical_path path;
    struct wait_classes classes;
    int r = wait_honesty_load(run->arena, run->recording, &run->honesty, why);
    if (r == 0)
        r = waits_load(run->arena, run->recording, &run->waits, why);
    if (r < 0)
        return r;
    if (critical_path_build(run->arena, &run->waits, &path) < 0 ||
        wait_classes_build(run->arena, &run->waits, &path, &classes) < 0 ||
        lock_table_build(run->arena, &run->waits, &classes, &run->table) < 0)
        return why_nomem(why);
    run->tables = (struct lock_tables){
        .arena = run->arena,
        .waits = &run->waits,
        .table = &run->table,
        .limit = run->opts->limit,
    };
    run->lock = SIZE_MAX;
    return run->opts->lock ? lock_table_choose(&run->table, run->opts->lock, &run->lock, why) : 0;
}

static void put_head(struct locks_run *run, struct value *root)
{
    const struct waits *waits = &run->waits;
    wait_honesty_put(run->arena, root, &run->honesty);
    if (run->kept)
        value_put_machine(root, "recording", value_text(recording_path(run->recording)));
    value_put_machine(root, "finished", value_bool(recording_finished(run->recording)));
    if (waits->profile.command.len > 0)
        value_put(root, "command", NULL, value_str(waits->profile.command));
    value_put(root, "span_ms", "recorded for",
              value_real((double)(waits->end_ns - waits->start_ns) / 1e6, UNIT_MS));
}

/* What all locks cost together, and what is no lock though it looks like one. */
static void put_sums(struct locks_run *run, struct value *root)
{
    const struct lock_table *table = &run->table;
    uint64_t ns = 0, count = 0;
    for (size_t i = 0; i < table->count; i++) {
        ns += table->rows[i].waits.total_ns;
        count += table->rows[i].waits.count;
    }
    value_put(root, "lock_count", "locks", value_uint(table->count, UNIT_COUNT));
    value_put(root, "total_ms", "waited for them", value_real((double)ns / 1e6, UNIT_MS));
    value_put(root, "wait_count", "waits", value_uint(count, UNIT_COUNT));
    value_put_machine(root, "left_out_ms", value_real((double)table->left_out_ns / 1e6, UNIT_MS));
    value_put_machine(root, "left_out_waits", value_uint(table->left_out_count, UNIT_COUNT));
    if (table->count > 0 && !lock_tables_hold_known(table))
        value_put_for(root, SHOW_PEOPLE, "hold", "hold times",
                      value_na(run->honesty.holds_na
                                   ? run->honesty.holds_na
                                   : "how long locks were held was not recorded"));
    if (table->left_out_count == 0)
        return;
    char time[48], waits[48];
    units_format((double)table->left_out_ns, UNIT_NS, time, sizeof(time));
    units_format((double)table->left_out_count, UNIT_COUNT, waits, sizeof(waits));
    value_put_for(root, SHOW_PEOPLE, "left_out", "left out",
                  value_text(arena_printf(run->arena,
                                          "%s in %s wait%s that are none for a lock: joined "
                                          "threads, idle workers; see 'whyslow waits'",
                                          time, waits, table->left_out_count == 1 ? "" : "s")));
}

static void put_locks(struct locks_run *run, struct value *root)
{
    struct value table = lock_tables_locks(&run->tables);
    size_t shown = table.table ? table.table->row_count : 0, all = run->table.count;
    value_put_machine(root, "row_count", value_uint(shown, UNIT_NONE));
    value_put_machine(root, "left_out_rows", value_uint(all - shown, UNIT_NONE));
    if (all > shown)
        value_put_for(
            root, SHOW_PEOPLE, "note", NULL,
            value_text(arena_printf(run->arena, "%zu more locks; --limit 0 prints all of them",
                                    all - shown)));
    value_put(root, "locks", "Locks, the longest waited for first", table);
}

static void put_next(struct locks_run *run, struct value *root)
{
    struct value next = value_list(run->arena);
    if (run->table.count == 0)
        return;
    if (run->kept)
        value_append(&next,
                     value_text(arena_printf(run->arena, "whyslow locks %s --lock %s",
                                             recording_path(run->recording),
                                             lock_tables_id(run->arena, &run->table.rows[0]))));
    else
        value_append(&next,
                     value_text("keep the recording to look closer: whyslow locks -o FILE …"));
    value_put(root, "next", "Next", next);
}

/* A waiter's stack ends in the lock it waited for. */
static const char *leaf(void *context, uint32_t row)
{
    const struct locks_run *run = context;
    uint32_t lock = run->table.of_wait[row];
    if (lock == 0 || run->waits.rows[row].info.kind != WAIT_BLOCKED ||
        (run->lock != SIZE_MAX && run->lock != lock - 1))
        return NULL;
    return arena_printf(run->arena, "lock: %s", run->table.rows[lock - 1].name);
}

static int locks_pictures(struct locks_run *run, struct value *root, struct why *why)
{
    struct profile profile;
    struct call_tree tree;
    if (!pictures_wanted(&run->opts->pictures))
        return 0;
    if (wait_profile_build(run->arena, &run->waits, leaf, run, &profile) < 0 ||
        call_tree_build(run->arena, &profile, &(struct call_tree_opts){0}, &tree) < 0)
        return why_nomem(why);
    if (profile.weight == 0)
        return why_set(why, WHY_USAGE, ENODATA, "leave --flame, --icicle and --html out",
                       "nobody waited for a lock: there is nothing to draw");
    struct value honesty = wait_honesty_value(run->arena, &run->honesty);
    struct value table = lock_tables_locks(&run->tables);
    struct pictured pictured = {
        .tree = &tree,
        .scale = 1,
        .title = arena_printf(run->arena, "locks: %.*s", STR_FMT(profile.command)),
        .subtitle = wait_honesty_line(run->arena, &run->honesty),
        .honesty = &honesty,
        .table = &table,
    };
    return pictures_write(&run->opts->pictures, &pictured, run->arena, root, why);
}

static int locks_draw(const struct cmd_call *call, struct locks_run *run, struct why *why)
{
    struct value root = value_map(run->arena);
    put_head(run, &root);
    if (run->lock != SIZE_MAX) {
        lock_tables_detail(&run->tables, run->lock, &root);
    } else {
        put_sums(run, &root);
        put_locks(run, &root);
        put_next(run, &root);
    }
    int r = locks_pictures(run, &root, why);
    if (r == 0 && arena_failed(run->arena))
        r = why_nomem(why);
    if (r < 0)
        return r;
    struct report report = {.schema = "whyslow.locks/1", .root = &root};
    return cmd_render(call, &run->opts->output, &report, why);
}

static int locks_run(const struct cmd_call *call, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct locks_run run = {.opts = call->opts, .arena = &arena};
    struct record_run_opts record = {.cpu = {.no_samples = true}, .offcpu = {.locks = true}};
    struct record_run_result result = {0};
    int r = axis_recording(call, &run.opts->axis, &record,
                           run.opts->output.json || run.opts->output.markdown, &run.recording,
                           &result, why);
    if (r < 0)
        return r;
    run.kept = axis_is_kept(&run.opts->axis, &result);
    r = load(&run, why);
    if (r < 0)
        axis_load_failed(&result, why);
    else
        r = locks_draw(call, &run, why);
    return axis_end(&run.opts->axis, run.recording, &result, r);
}

static const struct cmd_example examples[] = {
    {"whyslow locks -- ./app input", "run it, and rank the locks its threads waited for"},
    {"whyslow locks -p 1234 -d 10", "a running process for ten seconds"},
    {"whyslow locks recording.whyslow --lock l3", "one lock: who wants it, who holds it"},
    {"whyslow locks recording.whyslow --flame locks.svg", "the waiters as a picture"},
    {NULL, NULL},
};

const struct command cmd_locks = {
    .name = "locks",
    .group = "Measure",
    .operands = "[REC | -- COMMAND [ARGUMENT...]]",
    .summary = "which locks threads wait for, how long, and who holds them",
    .about =
        "Ranks locks by the time that threads waited for them: mutexes, reader-writer locks, "
        "condition variables, semaphores, barriers of any library that sleeps in the kernel "
        "(glibc, C++, Rust, Go's runtime), and the kernel's own. A lock is called by the variable "
        "it is, else by the function that waited for it longest. 'waiting' is how many threads "
        "waited at a time, on average; 'held off CPU' the part of the hold that its holder spent "
        "off "
        "the CPU itself.\n\n"
        "Waits that are no contention are left out: threads that are joined, conditions of idle "
        "workers. A lock that is taken without waiting costs nothing here and is not seen.\n\n"
        "A recording made with 'whyslow record --locks' (or --offcpu) is read; a command, -p, -a "
        "or "
        "--cgroup is recorded first, and the recording thrown away unless -o keeps it. The exit "
        "status is the command's. With --json or --markdown the command's stdout goes to stderr.",
    .options = locks_options,
    .options_size = sizeof(struct locks_opts),
    .stop = OPT_MIXED,
    .operands_min = 0,
    .operands_max = -1,
    .examples = examples,
    .run = locks_run,
};
