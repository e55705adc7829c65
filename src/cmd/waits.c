/* `whyslow waits`: what threads do when they do not compute.
 *
 * record or open → waits → critical path → classes → groups → one report → pictures → draw */
#include "cmd/waits_parts.h"

#include "analyze/wait_facts.h"

#include <errno.h>
#include <string.h>

enum { THREADS_SHOWN_MAX = 12, WAKERS_SHOWN_MAX = 3 };

static const struct opt waits_options[] = {
    {"limit", 'n', OPT_U64, offsetof(struct waits_opts, limit), "ROWS",
     "print at most this many rows of a table; 0 prints all", "20", NULL, false},
    {"threads", 0, OPT_FLAG, offsetof(struct waits_opts, threads), NULL,
     "every thread, also when there are many", NULL, NULL, false},
    {"class", 0, OPT_CHOICE, offsetof(struct waits_opts, class), "CLASS",
     "only waits of this class", "all", "all|lock|disk|net|pagefault|child|timer|idle|unknown",
     false},
    {"idle", 0, OPT_FLAG, offsetof(struct waits_opts, idle), NULL,
     "list what is idle, too, in a table of its own", NULL, NULL, false},
    {"stack", 0, OPT_TEXT, offsetof(struct waits_opts, stack), "ID",
     "one wait of the table: its whole stack, those of its wakers, its histogram", NULL, NULL,
     false},
    PICTURE_OPTIONS(struct waits_opts, pictures),
    AXIS_OPTIONS(struct waits_opts, axis),
    OUTPUT_OPTIONS(struct waits_opts, output),
    {0},
};

static int load(struct waits_run *run, struct why *why)
{
    int r = wait_honesty_load(run->arena, run->recording, &run->honesty, why);
    if (r == 0)
        r = waits_load(run->arena, run->recording, &run->waits, why);
    if (r < 0)
        return r;
    if (critical_path_build(run->arena, &run->waits, &run->path) < 0 ||
        wait_classes_build(run->arena, &run->waits, &run->path, &run->classes) < 0 ||
        wait_groups_build(run->arena, &run->waits, &run->classes, &run->path, &run->groups) < 0)
        return why_nomem(why);
    run->tables = (struct wait_tables){
        .arena = run->arena,
        .waits = &run->waits,
        .classes = &run->classes,
        .groups = &run->groups,
        .path = &run->path,
        .limit = run->opts->limit,
    };
    run->choice.class = -1;
    for (int i = 0; i <= WAIT_CLASS_UNKNOWN; i++)
        if (strcmp(run->opts->class, wait_class_name((enum wait_class)i)) == 0)
            run->choice.class = i;
    return 0;
}

static void put_head(struct waits_run *run, struct value *root)
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

static void put_classes(struct waits_run *run, struct value *root)
{
    const struct wait_classes *classes = &run->classes;
    size_t lives = run->waits.lives;
    value_put_machine(root, "thread_count", value_uint(lives, UNIT_COUNT));
    value_put_machine(root, "life_ms", value_real((double)classes->life_ns / 1e6, UNIT_MS));
    value_put_machine(root, "classes_ms", wait_tables_sums(&run->tables, classes->tree));
    value_put_machine(root, "unaccounted_ms",
                      value_real((double)classes->unaccounted_ns / 1e6, UNIT_MS));
    const char *title = arena_printf(run->arena, "Where the time of %zu thread%s went", lives,
                                     lives == 1 ? "" : "s");
    value_put_for(root, SHOW_PEOPLE, "classes", title, wait_tables_classes(&run->tables));
}

/* Machines are given every thread; people, when there are many, groups of them. */
static void put_threads(struct waits_run *run, struct value *root)
{
    struct wait_tables all = run->tables;
    all.limit = 0;
    bool many = run->waits.lives > THREADS_SHOWN_MAX;
    value_put_machine(root, "threads", wait_tables_threads(&all));
    value_put_machine(root, "thread_groups", wait_tables_thread_groups(&all));
    if (many && !run->opts->threads)
        value_put_for(root, SHOW_PEOPLE, "shown_groups", "Groups of threads (--threads: each)",
                      wait_tables_thread_groups(&run->tables));
    else
        value_put_for(root, SHOW_PEOPLE, "shown_threads", "Threads",
                      wait_tables_threads(&run->tables));
}

static const char *idle_text(const struct waits_run *run)
{
    char time[48], count[48];
    const struct wait_tally *idle = &run->groups.idle;
    if (idle->count == 0)
        return "none";
    units_format((double)idle->total_ns, UNIT_NS, time, sizeof(time));
    units_format((double)idle->count, UNIT_COUNT, count, sizeof(count));
    return arena_printf(run->arena, "%s in %s wait%s with nothing to do: not ranked%s", time, count,
                        idle->count == 1 ? "" : "s", run->opts->idle ? "" : "; --idle lists them");
}

static void put_waits(struct waits_run *run, struct value *root)
{
    size_t all = 0, idle_all = 0;
    bool only_idle = run->choice.class == WAIT_CLASS_IDLE;
    struct wait_choice ranked = {.class = run->choice.class};
    struct value table = wait_tables_waits(&run->tables, &ranked, &all);
    size_t shown = table.table ? table.table->row_count : 0;
    if (table.table)
        table.table->empty = run->choice.class >= 0       ? "none of this class"
                             : run->groups.idle.count > 0 ? "none but what is idle"
                                                          : "no thread waited for anything";
    value_put_machine(root, "row_count", value_uint(shown, UNIT_NONE));
    value_put_machine(root, "left_out", value_uint(all - shown, UNIT_NONE));
    value_put_for(root, SHOW_PEOPLE, "idle_line", "idle", value_text(idle_text(run)));
    if (all > shown)
        value_put_for(root, SHOW_PEOPLE, "note", NULL,
                      value_text(arena_printf(run->arena,
                                              "%zu more waits; --limit 0 prints all "
                                              "of them",
                                              all - shown)));
    value_put_for(root, only_idle ? SHOW_MACHINE : SHOW_ALWAYS, "waits", "Waits, the longest first",
                  table);
    value_put_machine(root, "idle", wait_tables_tally(run->arena, &run->groups.idle));
    struct wait_choice idle = {.idle = true, .class = -1};
    if (run->opts->idle || only_idle)
        value_put(root, "idle_waits", "Idle", wait_tables_waits(&run->tables, &idle, &idle_all));
}

static void put_not_known(struct waits_run *run, struct value *root)
{
    struct value list = wait_facts_not_known(run->arena, run->waits.facts_json);
    if (list.items && list.items->len > 0)
        value_put(root, "not_known", "Not known in this tier", list);
}

static void put_latency(struct waits_run *run, struct value *root)
{
    const struct wait_tally *runq = &run->groups.runq;
    bool all = !run->honesty.tier || strcmp(run->honesty.tier, "kernel") == 0;
    if (runq->count == 0) {
        value_put(root, "sched_latency", "scheduler latency",
                  value_na("no wait for a CPU was seen"));
        return;
    }
    char p50[48], p99[48], longest[48];
    units_format(wait_tally_quantile(runq, 0.5), UNIT_NS, p50, sizeof(p50));
    units_format(wait_tally_quantile(runq, 0.99), UNIT_NS, p99, sizeof(p99));
    units_format((double)runq->max_ns, UNIT_NS, longest, sizeof(longest));
    const char *title = arena_printf(run->arena, "Scheduler latency: %s; p50 %s, p99 %s, max %s",
                                     all ? "ready until running" : "preemptions only", p50, p99,
                                     longest);
    struct value tally = wait_tables_tally(run->arena, runq);
    value_put(&tally, "covers", NULL, value_text(all ? "all" : "preemptions"));
    value_put_machine(root, "sched_latency", tally);
    value_put_for(root, SHOW_PEOPLE, "latency", title, wait_tables_histogram(run->arena, runq));
}

static void put_path(struct waits_run *run, struct value *root)
{
    bool known = !run->path.na;
    value_put_machine(root, "critical_path_ms",
                      known ? value_real((double)run->path.ns / 1e6, UNIT_MS)
                            : value_na(run->path.na));
    value_put(root, "critical_path",
              known ? "Critical path: what its end had to wait for" : "critical path",
              wait_tables_path(&run->tables));
}

/* The heaviest ranked wait of a class, or of any (-1). */
static const struct wait_group *heaviest(const struct waits_run *run, int class)
{
    for (size_t i = 0; i < run->groups.count; i++) {
        const struct wait_group *group = &run->groups.groups[i];
        if (group->class != WAIT_CLASS_IDLE && (class < 0 || (int)group->class == class))
            return group;
    }
    return NULL;
}

static void put_next(struct waits_run *run, struct value *root)
{
    struct arena *arena = run->arena;
    struct value next = value_list(arena);
    const struct wait_group *top = heaviest(run, -1), *lock = heaviest(run, WAIT_CLASS_LOCK);
    const char *path = recording_path(run->recording);
    if (!run->kept)
        value_append(&next,
                     value_text("keep the recording to look closer: whyslow waits -o FILE …"));
    if (run->kept && top)
        value_append(&next, value_text(arena_printf(arena, "whyslow waits %s --stack %s", path,
                                                    wait_tables_id(arena, top))));
    if (run->kept && lock)
        value_append(&next, value_text(arena_printf(arena, "whyslow locks %s", path)));
    if (run->classes.tree[WAIT_CLASS_RUNNING] * 2 > run->classes.life_ns)
        value_append(&next, value_text("most of the time is computing: whyslow record -- COMMAND"));
    if (next.items && next.items->len > 0)
        value_put(root, "next", "Next", next);
}

static int group_choose(const struct waits_run *run, const char *id, const struct wait_group **ret,
                        struct why *why)
{
    uint64_t number;
    struct str text = str_from(id);
    if (str_starts(text, "w") && str_to_u64((struct str){id + 1, text.len - 1}, 10, &number) == 0)
        for (size_t i = 0; i < run->groups.count; i++)
            if (run->groups.groups[i].id == number) {
                *ret = &run->groups.groups[i];
                return 0;
            }
    return why_set(why, WHY_USAGE, ENOENT,
                   "take an id from the table, such as w3; --limit 0 prints "
                   "all of them",
                   "no wait '%s' in this recording", id);
}

/* "waker", "waker_2", …; with blanks for people. */
static const char *numbered(struct arena *arena, const char *name, size_t index)
{
    if (index == 0)
        return name;
    return arena_printf(arena, "%s%c%zu", name, strchr(name, ' ') ? ' ' : '_', index + 1);
}

/* The stacks that ended it, the heaviest first. */
static void put_wakers(struct waits_run *run, const struct wait_group *group, struct value *root)
{
    const struct waits *waits = &run->waits;
    uint32_t index = (uint32_t)(group - run->groups.groups) + 1;
    uint32_t shown[WAKERS_SHOWN_MAX];
    for (size_t n = 0; n < WAKERS_SHOWN_MAX; n++) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < waits->row_count; i++) {
            bool fresh = run->groups.of_row[i] == index && waits->rows[i].info.waker_stack != 0;
            for (size_t k = 0; k < n && fresh; k++)
                fresh = waits->rows[shown[k]].info.waker_stack != waits->rows[i].info.waker_stack;
            if (fresh &&
                (best == 0 || waits->rows[i].tally.total_ns > waits->rows[best].tally.total_ns))
                best = i;
        }
        if (best == 0)
            break;
        shown[n] = best;
        const struct wait_info *info = &waits->rows[best].info;
        /* A name is hostile text: it may be a value, but no title. */
        value_put(root, numbered(run->arena, "waker", n), numbered(run->arena, "ended by", n),
                  value_str(waits->profile.threads[info->waker_thread].name));
        value_put(root, numbered(run->arena, "waker_stack", n),
                  numbered(run->arena, "Where it was ended", n),
                  wait_tables_stack(run->arena, &waits->profile, info->waker_stack));
    }
    if (group->waker == 0)
        value_put(root, "waker_stack", "ended by",
                  value_na(waits->rows[group->row].info.flags & WAIT_BY_INTERRUPT
                               ? "a timer or device ended it"
                               : "who ended it is outside of what was recorded, or was not seen"));
}

static int view_stack(struct waits_run *run, struct value *root, struct why *why)
{
    const struct wait_group *group = NULL;
    int r = group_choose(run, run->opts->stack, &group, why);
    if (r < 0 || !group)
        return r;
    struct arena *arena = run->arena;
    value_put(root, "id", NULL, value_text(wait_tables_id(arena, group)));
    value_put(root, "class", NULL, value_text(wait_class_name(group->class)));
    value_put(root, "cause", NULL, value_text(wait_tables_cause(&run->tables, group)));
    value_put(root, "reason", NULL, value_text(run->classes.reasons[group->row]));
    value_put_machine(root, "tally", wait_tables_tally(arena, &group->tally));
    value_put(root, "total_ms", "total", value_real((double)group->tally.total_ns / 1e6, UNIT_MS));
    value_put(root, "count", NULL, value_uint(group->tally.count, UNIT_COUNT));
    value_put(root, "thread_count", "threads", value_uint(group->threads, UNIT_COUNT));
    value_put(root, "object_count", "objects", value_uint(group->objects, UNIT_COUNT));
    if (!run->path.na)
        value_put(root, "path_ms", "on the critical path",
                  value_real((double)group->path_ns / 1e6, UNIT_MS));
    value_put_for(root, SHOW_PEOPLE, "histogram", "How long",
                  wait_tables_histogram(arena, &group->tally));
    value_put(
        root, "stack", "Stack, innermost first",
        wait_tables_stack(arena, &run->waits.profile, run->waits.rows[group->row].info.stack));
    put_wakers(run, group, root);
    return 0;
}

static int waits_draw(const struct cmd_call *call, struct waits_run *run, struct why *why)
{
    struct value root = value_map(run->arena);
    put_head(run, &root);
    int r = 0;
    if (run->opts->stack)
        r = view_stack(run, &root, why);
    else {
        put_classes(run, &root);
        put_threads(run, &root);
        put_waits(run, &root);
        put_path(run, &root);
        put_latency(run, &root);
        put_not_known(run, &root);
        put_next(run, &root);
    }
    if (r == 0)
        r = waits_pictures(run, &root, why);
    if (r == 0 && arena_failed(run->arena))
        r = why_nomem(why);
    if (r < 0)
        return r;
    struct report report = {.schema = "whyslow.waits/1", .root = &root};
    return cmd_render(call, &run->opts->output, &report, why);
}

static int waits_run(const struct cmd_call *call, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct waits_run run = {.opts = call->opts, .arena = &arena};
    struct record_run_opts record = {.cpu = {.no_samples = true}, .offcpu = {.waits = true}};
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
        r = waits_draw(call, &run, why);
    return axis_end(&run.opts->axis, run.recording, &result, r);
}

static const struct cmd_example examples[] = {
    {"whyslow waits -- ./app input", "run it, and say what it waited for"},
    {"whyslow waits -p 1234 -d 10", "a running process for ten seconds"},
    {"whyslow waits recording.whyslow --stack w3", "one wait: whole stacks, who ended it"},
    {"whyslow waits recording.whyslow --flame waits.svg", "the same as a picture"},
    {NULL, NULL},
};

const struct command cmd_waits = {
    .name = "waits",
    .group = "Measure",
    .operands = "[REC | -- COMMAND [ARGUMENT...]]",
    .summary = "what threads wait for: locks, disk, network, children, a free CPU",
    .about =
        "Splits the life of every thread into running, run queue, lock, disk, network reply, page "
        "fault, child, timer and idle, and ranks the stacks that blocked with their cause and who "
        "ended the wait. What is idle (accept, epoll with nothing to do, condition variable of an "
        "idle worker, a timer thread) is shown apart and never ranked.\n\n"
        "A recording made with 'whyslow record --offcpu' is read; a command, -p, -a or --cgroup is "
        "recorded first, and the recording thrown away unless -o keeps it. The exit status is the "
        "command's. With --json or --markdown the command's stdout goes to stderr.\n\n"
        "The critical path is what the end of the command had to wait for: a wait is charged on to "
        "what its waker did meanwhile, across threads and processes of the tree.",
    .options = waits_options,
    .options_size = sizeof(struct waits_opts),
    .stop = OPT_MIXED,
    .operands_min = 0,
    .operands_max = -1,
    .examples = examples,
    .run = waits_run,
};
