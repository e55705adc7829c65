/* Classes, threads and ranked waits as tables; see wait_tables.h. */
#include "present/wait_tables.h"

#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAR_COLUMNS = 20 };

static struct value ms(uint64_t ns)
{
    return value_real((double)ns / 1e6, UNIT_MS);
}

static struct value percent(uint64_t ns, uint64_t of_ns)
{
    return of_ns > 0 ? value_real(100.0 * (double)ns / (double)of_ns, UNIT_PERCENT)
                     : value_na("nothing was recorded");
}

static const char *bar(struct arena *arena, uint64_t part, uint64_t whole)
{
    static const char full[] = "####################";
    size_t len = whole > 0 ? (size_t)((double)part / (double)whole * BAR_COLUMNS + 0.5) : 0;
    len = MIN(part > 0 ? MAX(len, (size_t)1) : len, (size_t)BAR_COLUMNS);
    return arena_dup_len(arena, full, len);
}

static size_t rows_shown(const struct wait_tables *tables, size_t count)
{
    return tables->limit == 0 ? count : MIN(count, tables->limit);
}

struct value wait_tables_sums(const struct wait_tables *tables, const uint64_t *sums)
{
    struct value map = value_map(tables->arena);
    /* Some thread must have run: where none has, it was not looked at. */
    bool ran = tables->classes->tree[WAIT_CLASS_RUNNING] > 0;
    value_put(&map, wait_class_name(WAIT_CLASS_RUNNING), NULL,
              ran ? ms(sums[WAIT_CLASS_RUNNING]) : value_na("running time was not recorded"));
    for (unsigned i = WAIT_CLASS_RUNNING + 1; i < WAIT_CLASSES; i++)
        value_put(&map, wait_class_name((enum wait_class)i), NULL, ms(sums[i]));
    return map;
}

static const char *const meanings[WAIT_CLASSES] = {
    [WAIT_CLASS_RUNNING] = "on a CPU",
    [WAIT_CLASS_RUNQ] = "ready to run, no CPU was free",
    [WAIT_CLASS_LOCK] = "held by another thread",
    [WAIT_CLASS_DISK] = "files and block devices",
    [WAIT_CLASS_NET] = "the reply of a peer",
    [WAIT_CLASS_PAGEFAULT] = "pages that were not there",
    [WAIT_CLASS_CHILD] = "another process or the end of a thread",
    [WAIT_CLASS_PIPE] = "the reader of a pipe does not keep up",
    [WAIT_CLASS_TIMER] = "sleep",
    [WAIT_CLASS_IDLE] = "nothing to do: not ranked",
};

static void class_row(const struct wait_tables *tables, struct value *table, const char *name,
                      uint64_t ns, const char *meaning)
{
    uint64_t life = tables->classes->life_ns;
    struct table_row *row = ns > 0 ? table_add(table) : NULL;
    if (!row)
        return;
    row->cells[0] = value_text(name);
    row->cells[1] = ms(ns);
    row->cells[2] = percent(ns, life);
    row->cells[3] = value_text(bar(tables->arena, ns, life));
    row->cells[4] = value_text(meaning);
}

struct value wait_tables_classes(const struct wait_tables *tables)
{
    static const struct column columns[] = {
        {"class", "class", SHOW_ALWAYS, false, false}, {"ms", "time", SHOW_ALWAYS, true, false},
        {"pct", "%", SHOW_ALWAYS, true, false},        {"bar", "", SHOW_PEOPLE, false, false},
        {"meaning", "", SHOW_ALWAYS, false, true},
    };
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    for (unsigned i = 0; i < WAIT_CLASSES; i++)
        class_row(tables, &table, wait_class_name((enum wait_class)i), tables->classes->tree[i],
                  meanings[i]);
    class_row(tables, &table, "unaccounted", tables->classes->unaccounted_ns,
              "not seen, or for no known reason");
    return table;
}

/* One line of the tables of threads: a thread's or a group's. */
struct owner {
    uint32_t id;
    uint32_t threads;
    uint64_t life_ns, unaccounted_ns;
    uint64_t sums[WAIT_CLASSES];
};

static void owner_add(const struct wait_tables *tables, struct owner *owner, uint32_t thread)
{
    const struct wait_classes *classes = tables->classes;
    owner->threads += profile_life(&tables->waits->profile, thread) == thread;
    owner->unaccounted_ns += classes->unaccounted[thread];
    owner->life_ns += classes->unaccounted[thread];
    for (unsigned c = 0; c < WAIT_CLASSES; c++) {
        owner->sums[c] += classes->threads[thread][c];
        owner->life_ns += classes->threads[thread][c];
    }
}

/* Of a life what is known and not idle. */
static uint64_t busy_ns(const struct owner *owner)
{
    return owner->life_ns - owner->sums[WAIT_CLASS_IDLE] - owner->unaccounted_ns;
}

static int by_busy(const void *left, const void *right)
{
    const struct owner *a = left, *b = right;
    if (busy_ns(a) != busy_ns(b))
        return busy_ns(a) > busy_ns(b) ? -1 : 1;
    if (a->life_ns != b->life_ns)
        return a->life_ns > b->life_ns ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Of threads or of groups of them, those with a life; the busiest first. NULL: out of memory. */
static struct owner *owners_make(const struct wait_tables *tables, bool groups, size_t *ret_count)
{
    const struct profile *profile = &tables->waits->profile;
    size_t count = groups ? profile->thread_group_count : profile->thread_count, kept = 0;
    struct owner *owners = arena_alloc(tables->arena, (count + 1) * sizeof(*owners));
    if (!owners)
        return NULL;
    for (uint32_t i = 1; i < profile->thread_count; i++) {
        uint32_t life = profile_life(profile, i);
        uint32_t id = groups ? profile->threads[life].group : life;
        owners[id].id = id;
        owner_add(tables, &owners[id], i);
    }
    for (size_t i = 0; i < count; i++)
        if (owners[i].life_ns > 0)
            owners[kept++] = owners[i];
    if (kept > 1)
        qsort(owners, kept, sizeof(*owners), by_busy);
    *ret_count = kept;
    return owners;
}

enum { OWNER_COLUMNS = 3 + WAIT_CLASSES };

#define OWNER_CLASS(name, title)                                                                   \
    {                                                                                              \
        name, title, SHOW_PEOPLE, true, false                                                      \
    }
#define OWNER_COLUMN_ROWS                                                                          \
    {"life_ms", "life", SHOW_ALWAYS, true, false}, {"classes_ms", "", SHOW_MACHINE, false, false}, \
        OWNER_CLASS("running", "running"), OWNER_CLASS("runq", "runq"),                            \
        OWNER_CLASS("lock", "lock"), OWNER_CLASS("disk", "disk"), OWNER_CLASS("net", "net"),       \
        OWNER_CLASS("pagefault", "pagefault"), OWNER_CLASS("child", "child"),                      \
        OWNER_CLASS("pipe", "pipe"), OWNER_CLASS("timer", "timer"), OWNER_CLASS("idle", "idle"),   \
    {                                                                                              \
        "unaccounted_ms", "unaccounted", SHOW_ALWAYS, true, false                                  \
    }

static void owner_cells(const struct wait_tables *tables, const struct owner *owner,
                        struct value *cells)
{
    cells[0] = ms(owner->life_ns);
    cells[1] = wait_tables_sums(tables, owner->sums);
    for (unsigned c = 0; c < WAIT_CLASSES; c++)
        cells[2 + c] = owner->sums[c] > 0 ? ms(owner->sums[c]) : value_text("");
    cells[2 + WAIT_CLASSES] = ms(owner->unaccounted_ns);
}

struct value wait_tables_threads(const struct wait_tables *tables)
{
    static const struct column columns[4 + OWNER_COLUMNS] = {
        {"name", "thread", SHOW_ALWAYS, false, false},
        {"tid", "tid", SHOW_ALWAYS, true, false},
        {"pid", "pid", SHOW_ALWAYS, true, false},
        {"group", "group", SHOW_MACHINE, false, false},
        OWNER_COLUMN_ROWS,
    };
    const struct profile *profile = &tables->waits->profile;
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    size_t count = 0;
    const struct owner *owners = owners_make(tables, false, &count);
    for (size_t i = 0; owners && i < rows_shown(tables, count); i++) {
        const struct profile_thread *thread = &profile->threads[owners[i].id];
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_str(thread->name);
        row->cells[1] = value_uint(thread->tid, UNIT_NONE);
        row->cells[2] = value_uint(profile->processes[thread->process].pid, UNIT_NONE);
        row->cells[3] = value_str(profile->thread_groups[thread->group]);
        owner_cells(tables, &owners[i], row->cells + 4);
    }
    return table;
}

struct value wait_tables_thread_groups(const struct wait_tables *tables)
{
    static const struct column columns[2 + OWNER_COLUMNS] = {
        {"group", "group", SHOW_ALWAYS, false, false},
        {"threads", "threads", SHOW_ALWAYS, true, false},
        OWNER_COLUMN_ROWS,
    };
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    size_t count = 0;
    const struct owner *owners = owners_make(tables, true, &count);
    for (size_t i = 0; owners && i < rows_shown(tables, count); i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_str(tables->waits->profile.thread_groups[owners[i].id]);
        row->cells[1] = value_uint(owners[i].threads, UNIT_COUNT);
        owner_cells(tables, &owners[i], row->cells + 2);
    }
    return table;
}

const char *wait_tables_id(struct arena *arena, const struct wait_group *group)
{
    return arena_printf(arena, "w%u", group->id);
}

const char *wait_tables_cause(const struct wait_tables *tables, const struct wait_group *group)
{
    const char *cause = wait_cause(tables->arena, tables->waits, group->row);
    if (group->objects < 2)
        return cause;
    return arena_printf(tables->arena, "%s and %u more", cause, group->objects - 1);
}

static struct value quantile(const struct wait_tally *tally, double share)
{
    return value_real(wait_tally_quantile(tally, share) / 1e6, UNIT_MS);
}

enum wait_column {
    COL_ID,
    COL_RANK,
    COL_CLASS,
    COL_TOTAL,
    COL_COUNT,
    COL_P50,
    COL_P99,
    COL_MAX,
    COL_SHAPE,
    COL_THREADS,
    COL_PATH,
    COL_PATH_SHOWN,
    COL_CAUSE,
    COL_WHERE,
    COL_WAKER,
    COL_REASON,
    COL_STACK,
    COL_WAKER_STACK,
    WAIT_COLUMNS,
};

static const struct column wait_columns[WAIT_COLUMNS] = {
    [COL_ID] = {"id", "id", SHOW_ALWAYS, false, false},
    [COL_RANK] = {"rank", "rank", SHOW_MACHINE, true, false},
    [COL_CLASS] = {"class", "class", SHOW_ALWAYS, false, false},
    [COL_TOTAL] = {"total_ms", "total", SHOW_ALWAYS, true, false},
    [COL_COUNT] = {"count", "count", SHOW_ALWAYS, true, false},
    [COL_P50] = {"p50_ms", "p50", SHOW_ALWAYS, true, false},
    [COL_P99] = {"p99_ms", "p99", SHOW_ALWAYS, true, false},
    [COL_MAX] = {"max_ms", "max", SHOW_ALWAYS, true, false},
    [COL_SHAPE] = {"shape", WAIT_SHAPE_TITLE, SHOW_PEOPLE, false, false},
    [COL_THREADS] = {"threads", "thr", SHOW_ALWAYS, true, false},
    [COL_PATH] = {"path_ms", "on path", SHOW_MACHINE, true, false},
    [COL_PATH_SHOWN] = {"path", "on path", SHOW_PEOPLE, true, false},
    [COL_CAUSE] = {"cause", "cause", SHOW_ALWAYS, false, true},
    [COL_WHERE] = {"where", "where", SHOW_ALWAYS, false, true},
    [COL_WAKER] = {"waker", "ended by", SHOW_ALWAYS, false, true},
    [COL_REASON] = {"reason", "reason", SHOW_MACHINE, false, false},
    [COL_STACK] = {"stack", "stack", SHOW_MACHINE, false, false},
    [COL_WAKER_STACK] = {"waker_stack", "waker's stack", SHOW_MACHINE, false, false},
};

/* Who ended it: the thread, and where it was. */
static struct value waker_value(const struct wait_tables *tables, const struct wait_group *group)
{
    const struct profile *profile = &tables->waits->profile;
    const struct wait_info *info = &tables->waits->rows[group->waker ? group->waker : group->row]
                                        .info;
    if (info->waker_thread == 0)
        return value_text(info->flags & WAIT_BY_INTERRUPT ? "timer or device" : "");
    struct str name = profile->threads[info->waker_thread].name;
    if (info->waker_stack == 0)
        return value_text(arena_printf(tables->arena, "%.*s", STR_FMT(name)));
    return value_text(arena_printf(tables->arena, "%.*s: %s", STR_FMT(name),
                                   wait_where(tables->arena, profile, info->waker_stack)));
}

static void wait_cells(const struct wait_tables *tables, const struct wait_group *group,
                       struct value *cells)
{
    struct arena *arena = tables->arena;
    const struct profile *profile = &tables->waits->profile;
    const struct wait_row *row = &tables->waits->rows[group->row];
    const struct wait_row *waker = &tables->waits->rows[group->waker];
    bool path = tables->path && !tables->path->na;
    cells[COL_ID] = value_text(wait_tables_id(arena, group));
    cells[COL_CLASS] = value_text(wait_class_name(group->class));
    cells[COL_TOTAL] = ms(group->tally.total_ns);
    cells[COL_COUNT] = value_uint(group->tally.count, UNIT_COUNT);
    cells[COL_P50] = quantile(&group->tally, 0.5);
    cells[COL_P99] = quantile(&group->tally, 0.99);
    cells[COL_MAX] = ms(group->tally.max_ns);
    cells[COL_SHAPE] = value_text(wait_tables_shape(arena, &group->tally));
    cells[COL_THREADS] = value_uint(group->threads, UNIT_COUNT);
    cells[COL_PATH] = path ? ms(group->path_ns) : value_na("there is no critical path");
    cells[COL_PATH_SHOWN] = group->path_ns > 0 ? ms(group->path_ns) : value_text("");
    cells[COL_CAUSE] = value_text(wait_tables_cause(tables, group));
    cells[COL_WHERE] = value_text(wait_where(arena, profile, row->info.stack));
    cells[COL_WAKER] = waker_value(tables, group);
    cells[COL_REASON] = value_text(tables->classes->reasons[group->row]);
    cells[COL_STACK] = wait_tables_names(arena, profile, row->info.stack);
    cells[COL_WAKER_STACK] = wait_tables_names(arena, profile, waker->info.waker_stack);
}

static bool is_chosen(const struct wait_group *group, const struct wait_choice *choice)
{
    return (group->class == WAIT_CLASS_IDLE) == choice->idle &&
           (choice->class < 0 || (int)group->class == choice->class);
}

struct value wait_tables_waits(const struct wait_tables *tables, const struct wait_choice *choice,
                               size_t *ret_all)
{
    struct value table = value_table(tables->arena, wait_columns, WAIT_COLUMNS);
    size_t all = 0;
    for (size_t i = 0; i < tables->groups->count; i++) {
        const struct wait_group *group = &tables->groups->groups[i];
        if (!is_chosen(group, choice))
            continue;
        all++;
        struct table_row *row = tables->limit == 0 || all <= tables->limit ? table_add(&table)
                                                                           : NULL;
        if (!row)
            continue;
        wait_cells(tables, group, row->cells);
        row->cells[COL_RANK] = value_uint(all, UNIT_NONE);
    }
    *ret_all = all;
    return table;
}
