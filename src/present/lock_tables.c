/* The table of locks, and one lock in full; see lock_tables.h. */
#include "present/lock_tables.h"

#include "present/wait_tables.h"

#include <math.h>

enum {
    STACKS_LISTED = 5, /* of a lock in the table of all */
    STACKS_DRAWN = 3,  /* frame by frame, of one lock */
};

static const char hold_missing[] = "how long locks were held was not recorded";
static const char owner_missing[] = "who held it was not recorded";

static struct value ms(double ns)
{
    return value_real(ns / 1e6, UNIT_MS);
}

static struct value quantile(const struct wait_tally *tally, double share)
{
    return tally->count > 0 ? ms(wait_tally_quantile(tally, share))
                            : value_na("nobody waited for it");
}

const char *lock_tables_id(struct arena *arena, const struct lock_row *row)
{
    return arena_printf(arena, "l%u", row->object);
}

static struct value off_cpu(const struct lock_row *row)
{
    return isnan(row->off_cpu_hold_pct) ? value_na(owner_missing)
                                        : value_real(row->off_cpu_hold_pct, UNIT_PERCENT);
}

/* Who did it, in a few words: the innermost function that is not the lock's. */
static const char *stack_site(const struct lock_tables *tables, const struct lock_row *row,
                              const struct lock_stack *stacks, size_t at)
{
    const struct profile *profile = &tables->waits->profile;
    bool kernel_lock = row->object_kind == OBJECT_KERNEL_LOCK, holder = stacks == row->holders;
    struct lock_site site = holder ? lock_holder_find(profile, stacks[at].stack, kernel_lock)
                                   : lock_site_find(profile, stacks[at].stack, kernel_lock);
    return lock_site_text(tables->arena, profile, &site);
}

static const char *first_site(const struct lock_tables *tables, const struct lock_row *row,
                              const struct lock_stack *stacks, size_t count)
{
    const char *text = count > 0 ? stack_site(tables, row, stacks, 0) : "";
    if (count < 2)
        return text;
    return arena_printf(tables->arena, "%s and %zu more", text, count - 1);
}

static const struct column stack_columns[] = {
    {"where", "where", SHOW_ALWAYS, false, true},   {"total_ms", "total", SHOW_ALWAYS, true, false},
    {"pct", "%", SHOW_ALWAYS, true, false},         {"count", "count", SHOW_ALWAYS, true, false},
    {"stack", "stack", SHOW_MACHINE, false, false},
};

/* Stacks with their share of all of them. */
static struct value stacks_table(const struct lock_tables *tables, const struct lock_row *row,
                                 const struct lock_stack *stacks, size_t count, size_t limit)
{
    struct value table = value_table(tables->arena, stack_columns, ARRAY_SIZE(stack_columns));
    uint64_t whole = 0;
    for (size_t i = 0; i < count; i++)
        whole += stacks[i].ns;
    for (size_t i = 0; i < (limit == 0 ? count : MIN(count, limit)); i++) {
        struct table_row *to = table_add(&table);
        if (!to)
            break;
        to->cells[0] = value_text(stack_site(tables, row, stacks, i));
        to->cells[1] = ms((double)stacks[i].ns);
        to->cells[2] = whole > 0
                           ? value_real(100.0 * (double)stacks[i].ns / (double)whole, UNIT_PERCENT)
                           : value_na("no time was measured");
        to->cells[3] = value_uint(stacks[i].count, UNIT_COUNT);
        to->cells[4] = wait_tables_names(tables->arena, &tables->waits->profile, stacks[i].stack);
    }
    return table;
}

enum lock_column {
    COL_ID,
    COL_LOCK,
    COL_NAMED,
    COL_KIND,
    COL_TOTAL,
    COL_WAITS,
    COL_P50,
    COL_P99,
    COL_MAX,
    COL_SHAPE,
    COL_MEAN,
    COL_MEAN_SHORT,
    COL_THREADS,
    COL_HOLD_P50,
    COL_HOLD,
    COL_OFF_CPU,
    COL_OFF_CPU_SHORT,
    COL_WAITER,
    COL_HOLDER,
    COL_HOLDERS_ARE,
    COL_WAITERS,
    COL_HOLDERS,
    LOCK_COLUMNS,
};

static const struct column lock_columns[LOCK_COLUMNS] = {
    [COL_ID] = {"id", "id", SHOW_ALWAYS, false, false},
    [COL_LOCK] = {"lock", "lock", SHOW_ALWAYS, false, true},
    [COL_NAMED] = {"named", "named", SHOW_MACHINE, false, false},
    [COL_KIND] = {"kind", "kind", SHOW_ALWAYS, false, true},
    [COL_TOTAL] = {"total_ms", "waited", SHOW_ALWAYS, true, false},
    [COL_WAITS] = {"waits", "waits", SHOW_ALWAYS, true, false},
    [COL_P50] = {"p50_ms", "p50", SHOW_ALWAYS, true, false},
    [COL_P99] = {"p99_ms", "p99", SHOW_ALWAYS, true, false},
    [COL_MAX] = {"max_ms", "max", SHOW_ALWAYS, true, false},
    [COL_SHAPE] = {"shape", WAIT_SHAPE_TITLE, SHOW_PEOPLE, false, false},
    [COL_MEAN] = {"mean_waiters", "waiting", SHOW_MACHINE, true, false},
    [COL_MEAN_SHORT] = {"waiting", "waiting", SHOW_PEOPLE, true, false},
    [COL_THREADS] = {"threads", "threads", SHOW_MACHINE, true, false},
    [COL_HOLD_P50] = {"hold_p50", "held p50", SHOW_PEOPLE, true, false},
    [COL_HOLD] = {"hold", "hold", SHOW_MACHINE, false, false},
    [COL_OFF_CPU] = {"off_cpu_hold_pct", "off CPU", SHOW_MACHINE, true, false},
    [COL_OFF_CPU_SHORT] = {"off_cpu", "held off CPU", SHOW_PEOPLE, true, false},
    [COL_WAITER] = {"waiter", "wanted by", SHOW_PEOPLE, false, true},
    [COL_HOLDER] = {"holder", "held by", SHOW_PEOPLE, false, true},
    [COL_HOLDERS_ARE] = {"holders_by", "holders by", SHOW_MACHINE, false, false},
    [COL_WAITERS] = {"waiters", "waiters", SHOW_MACHINE, false, false},
    [COL_HOLDERS] = {"holders", "holders", SHOW_MACHINE, false, false},
};

static struct value holders_by(const struct lock_row *row)
{
    switch (row->holders_are) {
    case LOCK_HOLDERS_HELD:
        return value_text("time held");
    case LOCK_HOLDERS_WAKER:
        return value_text("time that those had waited who got it then");
    case LOCK_HOLDERS_MEANWHILE:
        return value_text("time off the CPU while others waited");
    default:
        return value_na(owner_missing);
    }
}

static struct value hold_value(struct arena *arena, const struct lock_row *row)
{
    return row->holds.count > 0 ? wait_tables_tally(arena, &row->holds) : value_na(hold_missing);
}

bool lock_tables_hold_known(const struct lock_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].holds.count > 0)
            return true;
    return false;
}

/* Where no lock has one the cells are empty, and the column vanishes. */
static struct value hold_median(const struct lock_tables *tables, const struct lock_row *row)
{
    if (row->holds.count > 0)
        return ms(wait_tally_quantile(&row->holds, 0.5));
    return value_text(lock_tables_hold_known(tables->table) ? "n/a" : "");
}

static const char *mean_text(struct arena *arena, double waiters)
{
    if (waiters > 0 && waiters < 0.001)
        return "<0.001";
    return arena_printf(arena, "%.3g", waiters);
}

static void lock_cells(const struct lock_tables *tables, const struct lock_row *row,
                       struct value *cells)
{
    struct arena *arena = tables->arena;
    cells[COL_ID] = value_text(lock_tables_id(arena, row));
    cells[COL_LOCK] = value_text(row->name);
    cells[COL_NAMED] = value_bool(row->named);
    cells[COL_KIND] = value_text(lock_kind_name(row->kind));
    cells[COL_TOTAL] = ms((double)row->waits.total_ns);
    cells[COL_WAITS] = value_uint(row->waits.count, UNIT_COUNT);
    cells[COL_P50] = quantile(&row->waits, 0.5);
    cells[COL_P99] = quantile(&row->waits, 0.99);
    cells[COL_MAX] = ms((double)row->waits.max_ns);
    cells[COL_SHAPE] = value_text(wait_tables_shape(arena, &row->waits));
    cells[COL_MEAN] = value_real(row->mean_waiters, UNIT_NONE);
    cells[COL_MEAN_SHORT] = value_text(mean_text(arena, row->mean_waiters));
    cells[COL_THREADS] = value_uint(row->threads, UNIT_COUNT);
    cells[COL_HOLD_P50] = hold_median(tables, row);
    cells[COL_HOLD] = hold_value(arena, row);
    cells[COL_OFF_CPU] = off_cpu(row);
    cells[COL_OFF_CPU_SHORT] = isnan(row->off_cpu_hold_pct) ? value_text("n/a") : off_cpu(row);
    cells[COL_WAITER] = value_text(first_site(tables, row, row->waiters, row->waiter_count));
    cells[COL_HOLDER] = value_text(first_site(tables, row, row->holders, row->holder_count));
    cells[COL_HOLDERS_ARE] = holders_by(row);
    cells[COL_WAITERS] = stacks_table(tables, row, row->waiters, row->waiter_count, STACKS_LISTED);
    cells[COL_HOLDERS] = stacks_table(tables, row, row->holders, row->holder_count, STACKS_LISTED);
}

struct value lock_tables_locks(const struct lock_tables *tables)
{
    struct value table = value_table(tables->arena, lock_columns, LOCK_COLUMNS);
    size_t count = tables->table->count;
    if (table.table)
        table.table->empty = "no thread waited for a lock";
    for (size_t i = 0; i < (tables->limit == 0 ? count : MIN(count, tables->limit)); i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        lock_cells(tables, &tables->table->rows[i], row->cells);
    }
    return table;
}

static void put_stacks(const struct lock_tables *tables, const struct lock_row *row,
                       const struct lock_stack *stacks, size_t count, const char *key,
                       const char *title, struct value *root)
{
    struct arena *arena = tables->arena;
    value_put_for(root, count > 0 ? SHOW_ALWAYS : SHOW_MACHINE, key, title,
                  stacks_table(tables, row, stacks, count, tables->limit));
    for (size_t i = 0; i < MIN(count, (size_t)STACKS_DRAWN); i++)
        value_put_for(root, SHOW_PEOPLE, arena_printf(arena, "%s_%zu", key, i + 1),
                      arena_printf(arena, "%s: stack %zu", title, i + 1),
                      wait_tables_stack(arena, &tables->waits->profile, stacks[i].stack));
}

void lock_tables_detail(const struct lock_tables *tables, size_t lock, struct value *root)
{
    const struct lock_row *row = &tables->table->rows[lock];
    const struct profile *profile = &tables->waits->profile;
    struct arena *arena = tables->arena;
    value_put(root, "id", NULL, value_text(lock_tables_id(arena, row)));
    value_put(root, "lock", NULL, value_text(row->name));
    value_put_machine(root, "named", value_bool(row->named));
    value_put(root, "kind", NULL, value_text(lock_kind_name(row->kind)));
    value_put(root, "address", NULL,
              value_text(arena_printf(arena, "0x%llx", (unsigned long long)row->address)));
    if (row->process && row->process < profile->process_count)
        value_put(root, "pid", NULL, value_uint(profile->processes[row->process].pid, UNIT_NONE));
    value_put(root, "threads", "threads that waited", value_uint(row->threads, UNIT_COUNT));
    value_put(root, "mean_waiters", "waiters, mean", value_real(row->mean_waiters, UNIT_NONE));
    value_put(root, "off_cpu_hold_pct", "held off CPU", off_cpu(row));
    value_put(root, "waits", "Waits", wait_tables_tally(arena, &row->waits));
    value_put_for(root, SHOW_PEOPLE, "waits_histogram", "How long they took",
                  wait_tables_histogram(arena, &row->waits));
    value_put(root, "hold", row->holds.count > 0 ? "Held" : "held", hold_value(arena, row));
    if (row->holds.count > 0)
        value_put_for(root, SHOW_PEOPLE, "hold_histogram", "How long it was held",
                      wait_tables_histogram(arena, &row->holds));
    put_stacks(tables, row, row->waiters, row->waiter_count, "waiters", "Waiters", root);
    value_put(root, "holders_by", "holders by", holders_by(row));
    put_stacks(tables, row, row->holders, row->holder_count, "holders", "Holders", root);
}
