/* The report of the heap: the head, the views that were asked for, or all of it on one screen. */
#include "cmd/heap_parts.h"

#include <errno.h>
#include <math.h>

enum { STACKS_DRAWN = 3 /* frame by frame */ };

static const struct view {
    size_t option; /* of struct heap_cmd_opts */
    enum heap_view view;
    const char *key, *flag, *title;
} views[] = {
    {offsetof(struct heap_cmd_opts, functions), HEAP_VIEW_FUNCTIONS, "functions", "--functions",
     "Functions that ask for memory, by what lived at the peak"},
    {offsetof(struct heap_cmd_opts, peak), HEAP_VIEW_PEAK, "peak", "--peak",
     "What lived at the peak"},
    {offsetof(struct heap_cmd_opts, leaks), HEAP_VIEW_LEAKS, "leaks", "--leaks",
     "What was not freed at the end"},
    {offsetof(struct heap_cmd_opts, churn), HEAP_VIEW_CHURN, "churn", "--churn",
     "Where most calls come from"},
    {offsetof(struct heap_cmd_opts, temporary_sites), HEAP_VIEW_TEMPORARY, "temporary_sites",
     "--temporary-sites", "Temporary allocations"},
    {offsetof(struct heap_cmd_opts, growth), HEAP_VIEW_GROWTH, "growth", "--growth",
     "Reallocations to a larger size"},
    {offsetof(struct heap_cmd_opts, threads), HEAP_VIEW_THREADS, "threads", "--threads", "Threads"},
    {offsetof(struct heap_cmd_opts, threads), HEAP_VIEW_PROCESSES, "processes", "--threads",
     "Processes"},
    {offsetof(struct heap_cmd_opts, images), HEAP_VIEW_IMAGES, "images", "--images",
     "Programs and libraries"},
};

static bool is_asked(const struct heap_cmd_opts *opts, const struct view *view)
{
    return *(const bool *)((const char *)opts + view->option);
}

bool heap_is_narrowed(const struct heap_cmd_opts *opts)
{
    for (size_t i = 0; i < ARRAY_SIZE(views); i++)
        if (is_asked(opts, &views[i]))
            return true;
    return opts->sizes || opts->timeline || opts->at > 0 || opts->diff;
}

static const char *amount(struct heap_run *run, double number, enum unit unit)
{
    char text[48];
    return arena_dup(run->arena, units_format(number, unit, text, sizeof(text)));
}

/* Where one in so many was looked at: "~12.0 MiB". */
static const char *estimated(struct heap_run *run, double number, enum unit unit)
{
    bool about = run->main.tables.sampled && number != 0;
    return arena_printf(run->arena, "%s%s", about ? "~" : "", amount(run, number, unit));
}

/* "1,234 pieces", "~1,234 calls", "1 call". */
static const char *counted(struct heap_run *run, int64_t count, const char *what)
{
    return arena_printf(run->arena, "%s %s%s", estimated(run, (double)count, UNIT_COUNT), what,
                        count == 1 ? "" : "s");
}

/* " (95%: 12 to 131)"; nothing where every call was counted. */
static const char *range(struct heap_run *run, struct interval range, enum unit unit)
{
    if (!run->main.tables.sampled)
        return "";
    return arena_printf(run->arena, " (95%%: %s to %s)", amount(run, range.low, unit),
                        amount(run, range.high, unit));
}

/* Bytes and calls that are part of all, each with how sure it is. */
static const char *bytes_range(struct heap_run *run, int64_t bytes)
{
    return range(run, heap_sure_bytes(&run->main.tables.sure, &run->main.sums.all, bytes),
                 UNIT_BYTES);
}

static const char *calls_range(struct heap_run *run, int64_t calls)
{
    return range(run, heap_sure_calls(&run->main.tables.sure, &run->main.sums.all, calls),
                 UNIT_COUNT);
}

static void put_line(struct value *root, const char *key, const char *title, const char *text)
{
    value_put_for(root, SHOW_PEOPLE, key, title, value_text(text));
}

/* ---- the head ---- */

static struct value peak_line(struct heap_run *run)
{
    const struct heap_side *side = &run->main;
    const struct heap_sums *sums = &side->sums;
    if (!sums->peak_known)
        return value_na("the peak was not followed");
    const char *process = "";
    if (sums->processes > 1)
        process = arena_printf(run->arena, ", in process %u: the highest of %u",
                               side->heap.profile.processes[sums->peak_process].pid,
                               sums->processes);
    const char *when = "";
    if (sums->peak_ns >= side->heap.start_ns && sums->peak_ns > 0)
        when = arena_printf(run->arena, ", after %s",
                            amount(run, (double)(sums->peak_ns - side->heap.start_ns), UNIT_NS));
    return value_text(arena_printf(run->arena, "%s%s in %s%s%s%s",
                                   estimated(run, (double)sums->peak_bytes, UNIT_BYTES),
                                   bytes_range(run, (int64_t)sums->peak_bytes),
                                   counted(run, (int64_t)sums->peak_count, "piece"),
                                   calls_range(run, (int64_t)sums->peak_count), when, process));
}

static const char *allocated_line(struct heap_run *run)
{
    const struct heap_sums *sums = &run->main.sums;
    const char *interval = "";
    bool sampled = run->main.tables.sampled; /* a thread without a sample is not seen */
    if (sampled)
        interval = arena_printf(run->arena, " ± %s",
                                amount(run, heap_plus_minus(&sums->all), UNIT_BYTES));
    return arena_printf(run->arena, "%s%s in %s%s of %s",
                        estimated(run, (double)sums->all.allocated_bytes, UNIT_BYTES), interval,
                        counted(run, (int64_t)sums->all.allocations, "call"),
                        calls_range(run, (int64_t)sums->all.allocations),
                        arena_printf(run->arena, "%s%s thread%s", sampled ? "at least " : "",
                                     amount(run, sums->threads, UNIT_COUNT),
                                     sums->threads == 1 ? "" : "s"));
}

static const char *leaked_line(struct heap_run *run)
{
    const struct heap_figures *all = &run->main.sums.all;
    bool none = heap_live_count(all) == 0;
    if (none && run->main.tables.sampled)
        return arena_printf(
            run->arena, "none was seen (less than about %s)",
            amount(run, heap_sure_bytes(&run->main.tables.sure, all, 0).high, UNIT_BYTES));
    if (none)
        return "nothing: all of it was freed";
    return arena_printf(
        run->arena, "%s%s in %s%s: what was still in use %s is in it, and not lost",
        estimated(run, (double)heap_live_bytes(all), UNIT_BYTES),
        bytes_range(run, heap_live_bytes(all)), counted(run, heap_live_count(all), "piece"),
        calls_range(run, heap_live_count(all)),
        run->main.honesty.finished ? "at the end" : "when the recording was cut off");
}

static const char *temporary_line(struct heap_run *run)
{
    const struct heap_figures *all = &run->main.sums.all;
    uint64_t within = run->main.honesty.temporary_within;
    const char *next = within > 1 ? arena_printf(run->arena, "%s next allocations",
                                                 amount(run, (double)within, UNIT_COUNT))
                                  : "next allocation";
    struct interval share = heap_sure_temporary(&run->main.tables.sure, all);
    return arena_printf(
        run->arena, "%s%s of all calls: %s%s freed before the thread's %s",
        estimated(run, 100.0 * (double)all->temporary / (double)MAX(all->allocations, 1u),
                  UNIT_PERCENT),
        range(run, interval_scale(share, 100), UNIT_PERCENT),
        estimated(run, (double)all->temporary, UNIT_COUNT),
        calls_range(run, (int64_t)all->temporary), next);
}

static const char few[] = "too few samples: the interval has no upper end";

static bool any_of(const uint64_t *buckets, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= buckets[i] > 0;
    return any;
}

/* The most that is below the end of a bucket. */
static double size_of(const struct heap_sums *sums, size_t bucket)
{
    return fmin((double)sums->all.size_max, bucket == 0 ? 0 : ldexp(1, (int)bucket) - 1);
}

static void put_sizes_line(struct heap_run *run, struct value *root)
{
    const struct heap_sums *sums = &run->main.sums;
    bool sampled = run->main.tables.sampled;
    struct heap_half half = heap_sure_half_size(&run->main.tables.sure, sums);
    double size = size_of(sums, half.at);
    struct interval sizes = {size, size_of(sums, half.low), size_of(sums, half.high)};
    bool any = any_of(sums->sizes, HEAP_SIZE_BUCKETS);
    value_put_machine(root, "half_size_bytes_ci95",
                      !any         ? value_na("sizes were not counted")
                      : half.known ? heap_tables_range(&run->main.tables, sizes, UNIT_BYTES)
                                   : value_na(few));
    if (run->opts->diff || !any)
        return;
    const char *most = amount(run, (double)sums->all.size_max, UNIT_BYTES);
    const char *largest = arena_printf(run->arena, "the largest%s for %s",
                                       sampled ? " that was seen" : "", most);
    put_line(root, "sizes_line", "sizes",
             half.known
                 ? arena_printf(run->arena, "half of the calls ask for at most %s%s, %s",
                                estimated(run, size, UNIT_BYTES), range(run, sizes, UNIT_BYTES),
                                largest)
                 : arena_printf(run->arena, "n/a of half of the calls (%s), %s", few, largest));
}

static void put_lives_line(struct heap_run *run, struct value *root)
{
    const struct heap_sums *sums = &run->main.sums;
    double unit = (double)sums->life_unit_ns;
    struct heap_half half = heap_sure_half_life(&run->main.tables.sure, sums);
    struct interval lives = {ldexp(unit, (int)half.at), ldexp(unit, (int)half.low),
                             ldexp(unit, (int)half.high)};
    if (unit <= 0 || !any_of(sums->lives, HEAP_LIFE_BUCKETS))
        return;
    value_put_for(root, SHOW_PEOPLE, "lifetimes_line", "lifetimes",
                  half.known
                      ? value_text(arena_printf(
                            run->arena, "half of what was freed lived less than %s%s",
                            estimated(run, lives.value, UNIT_NS), range(run, lives, UNIT_NS)))
                      : value_na(few));
}

static void put_resident(struct heap_run *run, struct value *root)
{
    const struct heap_sums *sums = &run->main.sums;
    bool known = sums->rss_max_bytes > 0;
    value_put_machine(root, "rss_max_bytes",
                      known ? value_uint(sums->rss_max_bytes, UNIT_BYTES)
                            : value_na("it was not looked at while the program ran"));
    if (known)
        put_line(root, "resident", "resident",
                 arena_printf(run->arena, "%s at most; %s when the heap held %s",
                              amount(run, (double)sums->rss_max_bytes, UNIT_BYTES),
                              amount(run, (double)sums->rss_at_live_bytes, UNIT_BYTES),
                              estimated(run, (double)sums->live_at_rss_bytes, UNIT_BYTES)));
}

static void put_mapped(struct heap_run *run, struct value *root)
{
    const struct heap_mapped *all = &run->main.sums.all_mapped;
    struct value map = value_map(run->arena);
    value_put(&map, "mapped", NULL, value_uint(all->mapped, UNIT_COUNT));
    value_put(&map, "mapped_bytes", NULL, value_uint(all->mapped_bytes, UNIT_BYTES));
    value_put(&map, "unmapped", NULL, value_uint(all->unmapped, UNIT_COUNT));
    value_put(&map, "unmapped_bytes", NULL, value_uint(all->unmapped_bytes, UNIT_BYTES));
    value_put_machine(root, "mapped", map);
    if (all->mapped > 0)
        put_line(root, "mapped_line", "mapped",
                 arena_printf(run->arena, "%s in %s by the program itself: apart from the heap",
                              amount(run, (double)all->mapped_bytes, UNIT_BYTES),
                              arena_printf(run->arena, "%s call%s",
                                           amount(run, (double)all->mapped, UNIT_COUNT),
                                           all->mapped == 1 ? "" : "s")));
}

static void put_totals(struct heap_run *run, struct value *root)
{
    const struct heap_side *side = &run->main;
    const struct heap_sums *sums = &side->sums;
    heap_tables_totals(&side->tables, root);
    value_put_machine(root, "failed", value_uint(sums->failed, UNIT_COUNT));
    value_put_machine(root, "unseen_frees", value_uint(sums->unseen_frees, UNIT_COUNT));
    value_put_machine(root, "inherited_frees", value_uint(sums->inherited_frees, UNIT_COUNT));
    value_put_machine(root, "events",
                      side->heap.event_count > 0
                          ? value_uint(side->heap.event_count, UNIT_COUNT)
                          : value_na("single calls were not kept: --log does that"));
    value_put_machine(root, "peak_ms",
                      sums->peak_known && sums->peak_ns >= side->heap.start_ns
                          ? value_real((double)(sums->peak_ns - side->heap.start_ns) / 1e6, UNIT_MS)
                          : value_na("the peak was not followed"));
    value_put_machine(
        root, "peak_pid",
        sums->peak_known
            ? value_uint(side->heap.profile.processes[sums->peak_process].pid, UNIT_NONE)
            : value_na("the peak was not followed"));
    struct interval share = heap_sure_temporary(&side->tables.sure, &sums->all);
    value_put_machine(root, "temporary_pct_ci95",
                      heap_tables_range(&side->tables, interval_scale(share, 100), UNIT_PERCENT));
    if (run->opts->diff) {
        put_sizes_line(run, root);
        return; /* people see both sides in a table */
    }
    value_put_for(root, SHOW_PEOPLE, "peak_line", "peak", peak_line(run));
    put_line(root, "allocated_line", "allocated", allocated_line(run));
    put_line(root, "leaked_line", "not freed", leaked_line(run));
    put_line(root, "temporary_line", "temporary", temporary_line(run));
    put_sizes_line(run, root);
    put_lives_line(run, root);
    put_resident(run, root);
    put_mapped(run, root);
}

static void put_head(struct heap_run *run, struct value *root)
{
    const struct heap *heap = &run->main.heap;
    heap_honesty_put(run->arena, root, &run->main.honesty);
    if (run->kept)
        value_put_machine(root, "recording", value_text(recording_path(run->main.recording)));
    value_put_machine(root, "finished", value_bool(recording_finished(run->main.recording)));
    if (heap->profile.command.len > 0)
        value_put(root, "command", NULL, value_str(heap->profile.command));
    value_put(root, "span_ms", "recorded for",
              value_real((double)(heap->end_ns - heap->start_ns) / 1e6, UNIT_MS));
    put_totals(run, root);
}

/* ---- tables ---- */

/* A table, and for people its title with how many more there are. */
static void put_table(struct heap_run *run, struct value *root, const char *key, const char *title,
                      const char *flag, struct value table, size_t all)
{
    const struct heap_tables *tables = &run->main.tables;
    size_t shown = tables->limit == 0 ? all : MIN(all, tables->limit);
    if (shown < all)
        title = arena_printf(run->arena, "%s (%zu of %s; %s)", title, shown,
                             amount(run, (double)all, UNIT_COUNT),
                             heap_is_narrowed(run->opts) ? "--limit 0: all" : flag);
    value_put(root, key, title, table);
    if (run->opts->output.json && table.table && table.table->row_count < all)
        value_put_machine(root, arena_printf(run->arena, "%s_left_out", key),
                          value_uint(all - table.table->row_count, UNIT_COUNT));
}

static void put_stacks(struct heap_run *run, struct value *root, const struct view *view,
                       const struct heap_sum_list *list)
{
    for (size_t i = 0; i < MIN(list->count, (size_t)STACKS_DRAWN); i++)
        if (list->rows[i].stack != 0)
            value_put_for(root, SHOW_PEOPLE,
                          arena_printf(run->arena, "%s_stack_%zu", view->key, i + 1),
                          arena_printf(run->arena, "Stack %zu", i + 1),
                          heap_tables_stack(&run->main.tables, list->rows[i].stack));
}

static const char *const reachable =
    "memory that is reachable at the end is in it: it is not lost, and need not be freed to exit; "
    "what grows from snapshot to snapshot is what to look at";

static int put_view(struct heap_run *run, struct value *root, const struct view *view)
{
    const struct heap_tables *tables = &run->main.tables;
    enum heap_per per = heap_view_per(view->view);
    struct heap_sum_list list = run->main.sums.per[per];
    if (per == HEAP_PER_STACK &&
        heap_sums_rank(run->arena, &list, heap_view_rank(view->view), &list) < 0)
        return -1;
    put_table(run, root, view->key, view->title, view->flag,
              heap_tables_sums(tables, view->view, &list), list.count);
    if (view->view == HEAP_VIEW_LEAKS)
        put_line(root, "about_leaks", "note",
                 run->main.sums.snapshots >= HEAP_RISE_MIN
                     ? reachable
                     : arena_printf(run->arena, "%s (--snapshot 10s while recording)", reachable));
    if (per == HEAP_PER_STACK)
        put_stacks(run, root, view, &list);
    return 0;
}

static void put_sizes(struct heap_run *run, struct value *root)
{
    value_put(root, "sizes", "Sizes of what was asked for", heap_tables_sizes(&run->main.tables));
    value_put(root, "lifetimes", "How long it lived until it was freed",
              heap_tables_lifetimes(&run->main.tables));
}

static void put_plot(struct heap_run *run, struct value *root)
{
    struct value plot = heap_tables_plot(&run->main.tables);
    if (plot.items && plot.items->len > 0)
        value_put_for(root, SHOW_TERMINAL, "plot", "Heap (*) and resident memory (o) over time",
                      plot);
}

static void put_timeline(struct heap_run *run, struct value *root)
{
    const struct heap *heap = &run->main.heap;
    size_t snapshots = heap->snapshot_count > 0 ? heap->snapshot_count - 1 : 0;
    put_table(run, root, "timeline", "Heap and resident memory", "--timeline",
              heap_tables_timeline(&run->main.tables), heap->moment_count);
    if (snapshots > 0 || run->opts->output.json)
        put_table(run, root, "snapshots", "Snapshots", "--timeline",
                  heap_tables_snapshots(&run->main.tables), snapshots);
}

/* What lived at one snapshot. */
static int put_snapshot(struct heap_run *run, struct value *root, struct why *why)
{
    const struct heap *heap = &run->main.heap;
    size_t taken = heap->snapshot_count > 0 ? heap->snapshot_count - 1 : 0;
    if (run->opts->at > taken)
        return why_set(why, WHY_USAGE, ERANGE,
                       taken > 0 ? "--timeline lists them" : "record with --snapshot TIME",
                       "there is no snapshot %u: the recording has %zu", run->opts->at, taken);
    const struct heap_snapshot_rows *snapshot = &heap->snapshots[run->opts->at];
    const char *title = arena_printf(
        run->arena, "What lived at snapshot %u, after %s", run->opts->at,
        amount(run, (double)(snapshot->info.time_ns - MIN(heap->start_ns, snapshot->info.time_ns)),
               UNIT_NS));
    struct value table;
    if (heap_tables_snapshot(&run->main.tables, run->opts->at, &table) < 0)
        return why_nomem(why);
    put_table(run, root, "at_snapshot", title, "", table, snapshot->count);
    return 0;
}

static void put_mappings(struct heap_run *run, struct value *root)
{
    put_table(run, root, "mappings", "Mapped by the program itself", "--json",
              heap_tables_mapped(&run->main.tables), run->main.sums.mapped_count);
}

static void put_notes(struct heap_run *run, struct value *root)
{
    bool any = run->main.notes.count > 0;
    value_put_for(root, any ? SHOW_ALWAYS : SHOW_MACHINE, "notes", "Worth a look",
                  heap_tables_notes(&run->main.tables));
    value_put_machine(root, "notes_left_out", value_uint(run->main.notes.left_out, UNIT_COUNT));
    struct value unseen = heap_honesty_unseen(run->arena, &run->main.honesty);
    if (unseen.table && unseen.table->row_count > 0)
        value_put_for(root, SHOW_PEOPLE, "unseen", "What was not seen", unseen);
}

static void put_next(struct heap_run *run, struct value *root)
{
    const struct heap_figures *all = &run->main.sums.all;
    struct value next = value_list(run->arena);
    const char *path = recording_path(run->main.recording);
    bool temporary = all->temporary * 2 > all->allocations;
    if (!run->kept)
        value_append(&next,
                     value_text("keep the recording to look closer: whyslow heap -o FILE …"));
    else {
        value_append(&next, value_text(arena_printf(run->arena, "whyslow heap %s --peak", path)));
        value_append(&next, value_text(arena_printf(run->arena, "whyslow heap %s %s", path,
                                                    temporary ? "--temporary-sites" : "--leaks")));
    }
    if (run->main.sums.snapshots < HEAP_RISE_MIN && heap_live_bytes(all) > 0 &&
        run->main.heap.end_ns - run->main.heap.start_ns > 10 * UINT64_C(1000000000))
        value_append(&next, value_text("to see what grows: whyslow heap --snapshot 2s -- COMMAND"));
    value_put(root, "next", "Next", next);
}

/* ---- the whole ---- */

static int put_views(struct heap_run *run, struct value *root)
{
    const struct heap_cmd_opts *opts = run->opts;
    for (size_t i = 0; i < ARRAY_SIZE(views); i++)
        if (is_asked(opts, &views[i]) && put_view(run, root, &views[i]) < 0)
            return -1;
    if (opts->sizes)
        put_sizes(run, root);
    if (opts->timeline) {
        put_plot(run, root);
        put_timeline(run, root);
    }
    return 0;
}

/* The stack behind the first row: evidence that needs no second look. */
static void put_evidence(struct heap_run *run, struct value *root)
{
    const struct heap_sum_list *list = &run->main.sums.per[HEAP_PER_STACK];
    if (list->count > 0 && list->rows[0].stack != 0)
        value_put_for(root, SHOW_PEOPLE, "evidence", "The stack with most of the peak",
                      heap_tables_stack(&run->main.tables, list->rows[0].stack));
}

static int put_overview(struct heap_run *run, struct value *root)
{
    const struct heap_sum_list *stacks = &run->main.sums.per[HEAP_PER_STACK];
    if (put_view(run, root, &views[0]) < 0)
        return -1;
    if (!run->opts->output.json) {
        put_evidence(run, root);
        put_plot(run, root);
    } else {
        put_table(run, root, "sites", NULL, "",
                  heap_tables_sums(&run->main.tables, HEAP_VIEW_SITES, stacks), stacks->count);
        for (size_t i = 0; i < ARRAY_SIZE(views); i++)
            if (heap_view_per(views[i].view) != HEAP_PER_STACK && i > 0 &&
                put_view(run, root, &views[i]) < 0)
                return -1;
        put_sizes(run, root);
        put_timeline(run, root);
        put_mappings(run, root);
    }
    put_notes(run, root);
    put_next(run, root);
    return 0;
}

static struct value total(const struct heap_side *side, enum heap_rank rank, enum unit unit)
{
    double number = heap_rank_value(&side->sums.all, rank);
    return heap_tables_figure(&side->tables, value_int((int64_t)number, unit));
}

/* Totals of both sides, then functions. */
static void put_diff(struct heap_run *run, struct value *root)
{
    static const struct column columns[] = {
        {"what", "", SHOW_ALWAYS, false, false},
        {"before", "before", SHOW_ALWAYS, true, false},
        {"after", "after", SHOW_ALWAYS, true, false},
    };
    static const struct {
        const char *what;
        enum heap_rank rank;
        enum unit unit;
    } rows[] = {
        {"peak", HEAP_RANK_PEAK, UNIT_BYTES},           {"allocated", HEAP_RANK_BYTES, UNIT_BYTES},
        {"calls", HEAP_RANK_CHURN, UNIT_COUNT},         {"not freed", HEAP_RANK_LEAK, UNIT_BYTES},
        {"temporary", HEAP_RANK_TEMPORARY, UNIT_COUNT},
    };
    value_put(root, "after_recording", "compared with",
              value_text(recording_path(run->other.recording)));
    value_put_machine(root, "after_honesty", heap_honesty_value(run->arena, &run->other.honesty));
    value_put(root, "after_honesty_line", "its honesty",
              value_text(heap_honesty_line(run->arena, &run->other.honesty)));
    struct value totals = value_table(run->arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct table_row *row = table_add(&totals);
        if (!row)
            break;
        row->cells[0] = value_text(rows[i].what);
        row->cells[1] = total(&run->main, rows[i].rank, rows[i].unit);
        row->cells[2] = total(&run->other, rows[i].rank, rows[i].unit);
    }
    value_put(root, "totals", "In all", totals);
    static const char *const titles[HEAP_RANKS] = {
        [HEAP_RANK_PEAK] = "Functions by change of the peak",
        [HEAP_RANK_LEAK] = "Functions by change of what was not freed",
        [HEAP_RANK_CHURN] = "Functions by change of calls",
        [HEAP_RANK_BYTES] = "Functions by change of allocated bytes",
        [HEAP_RANK_TEMPORARY] = "Functions by change of temporary allocations",
        [HEAP_RANK_GROWTH] = "Functions by change of what realloc() made larger",
    };
    put_table(run, root, "diff", titles[run->diff_rank], "",
              heap_tables_diff(&run->other.tables, &run->main.tables, &run->diff, run->diff_rank),
              run->diff.changed);
    value_put(root, "unchanged", "functions without a change",
              value_uint(run->diff.count - run->diff.changed, UNIT_COUNT));
}

int heap_report(struct heap_run *run, struct value *root, struct why *why)
{
    int r = 0;
    put_head(run, root);
    if (run->opts->diff)
        put_diff(run, root);
    else
        r = heap_is_narrowed(run->opts) ? put_views(run, root) : put_overview(run, root);
    if (r < 0)
        return why_nomem(why);
    return run->opts->at > 0 ? put_snapshot(run, root, why) : 0;
}
