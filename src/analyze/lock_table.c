/* Rows of waits and holds become rows of locks.
 *
 * what each row's stack says → objects that are one lock → sums, stacks, names → order */
#include "analyze/lock_table.h"

#include "analyze/lock_parts.h"
#include "base/intern.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What is known of an object while rows are read. */
struct lock_object {
    uint32_t lock; /* index + 1; 0: none yet */
    uint64_t best_ns;
    struct lock_site site; /* of the row with most time */
    bool seen, reads, writes;
};

struct builder {
    struct arena *arena;
    const struct waits *waits;
    const struct wait_classes *classes;
    struct lock_object *objects;
    struct lock_site *sites; /* by stack; of user locks and of kernel locks */
    uint8_t *sites_known;
    struct intern keys;
    VEC(struct lock_row) rows;
    lock_parts waiters, releases, wakers, meanwhile, threads;
    struct lock_table table;
};

static struct lock_site site_of(struct builder *builder, uint32_t stack, bool kernel_lock)
{
    const struct profile *profile = &builder->waits->profile;
    if (stack >= profile->stack_count)
        return (struct lock_site){.file = STR("")};
    size_t at = 2 * (size_t)stack + kernel_lock;
    if (!builder->sites_known[at]) {
        builder->sites[at] = lock_site_find(profile, stack, kernel_lock);
        builder->sites_known[at] = 1;
    }
    return builder->sites[at];
}

static enum lock_kind kind_of(const struct wait_info *info, const struct lock_site *site,
                              const struct object_info *object)
{
    enum lock_kind told = lock_kind_of_kernel(object->name);
    if (object->kind == OBJECT_KERNEL_LOCK && told == LOCK_UNKNOWN)
        return site->kind == LOCK_UNKNOWN ? LOCK_KERNEL_OTHER : site->kind;
    if (object->kind == OBJECT_KERNEL_LOCK)
        return told;
    if (info->detail == WAIT_FUTEX_PI)
        return LOCK_PI_MUTEX;
    if (site->kind == LOCK_UNKNOWN && info->detail == WAIT_FUTEX_VALUE_2)
        return LOCK_MUTEX;
    return site->kind;
}

static const struct object_info *object_of(const struct waits *waits, const struct wait_row *row)
{
    uint32_t object = row->info.object;
    if (object == 0 || object >= waits->object_count)
        return NULL;
    const struct object_info *info = &waits->objects[object];
    bool lock = info->kind == OBJECT_FUTEX || info->kind == OBJECT_KERNEL_LOCK;
    bool counts = row->info.kind == WAIT_BLOCKED || row->info.kind == WAIT_HOLD;
    return lock && counts ? info : NULL;
}

/* Is it a wait for a lock, or for something else that happens to be a futex? */
static bool row_counts(struct builder *builder, size_t id, const struct object_info *object)
{
    const struct wait_row *row = &builder->waits->rows[id];
    if (object->kind == OBJECT_KERNEL_LOCK || row->info.kind == WAIT_HOLD)
        return true;
    if (builder->classes)
        return builder->classes->rows[id] == WAIT_CLASS_LOCK;
    return site_of(builder, row->info.stack, false).kind != LOCK_JOIN;
}

static void object_read(struct builder *builder, uint32_t id, const struct object_info *object)
{
    const struct wait_row *row = &builder->waits->rows[id];
    struct lock_object *known = &builder->objects[row->info.object];
    bool kernel_lock = object->kind == OBJECT_KERNEL_LOCK;
    struct lock_site site = site_of(builder, row->info.stack, kernel_lock);
    site.kind = kind_of(&row->info, &site, object);
    known->reads |= site.kind == LOCK_RWLOCK_READ;
    known->writes |= site.kind == LOCK_RWLOCK_WRITE;
    /* Where it is released says less than where it is wanted. */
    uint64_t ns = row->info.kind == WAIT_HOLD ? 0 : row->tally.total_ns;
    bool better = !known->seen || (site.function && (!known->site.function || ns > known->best_ns));
    enum lock_kind other = better ? known->site.kind : site.kind;
    if (better) {
        known->best_ns = ns;
        known->site = site;
        known->seen = true;
    }
    if (known->site.kind == LOCK_UNKNOWN)
        known->site.kind = other;
}

static bool has_several_words(enum lock_kind kind)
{
    return kind == LOCK_CONDITION || kind == LOCK_RWLOCK_READ || kind == LOCK_RWLOCK_WRITE;
}

/* The lock of an object, made if need be. Words of one glibc lock stand side by side. */
static int lock_need(struct builder *builder, uint32_t id, uint32_t *ret)
{
    struct lock_object *known = &builder->objects[id];
    const struct object_info *object = &builder->waits->objects[id];
    if (known->lock == 0) {
        bool words = object->kind == OBJECT_FUTEX && has_several_words(known->site.kind);
        struct {
            uint64_t kind, process, key;
        } key = {(uint64_t)object->kind << 1 | words, object->process,
                 words ? object->key >> 3 : object->key};
        uint32_t lock;
        bool fresh;
        int r = intern_add(&builder->keys, (struct str){(const char *)&key, sizeof(key)}, &lock,
                           &fresh);
        struct lock_row row = {
            .object = id,
            .object_kind = object->kind,
            .address = object->key,
            .process = object->process,
        };
        if (r == 0 && fresh)
            r = VEC_PUSH(&builder->rows, row);
        if (r < 0)
            return r;
        known->lock = lock;
    }
    *ret = known->lock - 1;
    return 0;
}

static int row_add(struct builder *builder, uint32_t id)
{
    const struct wait_row *row = &builder->waits->rows[id];
    uint32_t lock;
    int r = lock_need(builder, row->info.object, &lock);
    if (r < 0)
        return r;
    builder->table.of_wait[id] = lock + 1;
    struct lock_row *to = &builder->rows.data[lock];
    if (row->info.kind == WAIT_HOLD) {
        wait_tally_add(&to->holds, &row->tally);
        return lock_part_add(&builder->releases, lock, row->info.stack, &row->tally);
    }
    wait_tally_add(&to->waits, &row->tally);
    r = lock_part_add(&builder->waiters, lock, row->info.stack, &row->tally);
    if (r == 0)
        r = lock_part_add(&builder->wakers, lock, row->info.waker_stack, &row->tally);
    uint32_t life = profile_life(&builder->waits->profile, row->info.thread);
    return r < 0 ? r : lock_part_add(&builder->threads, lock, life, &row->tally);
}

/* Objects first, since what a lock is depends on all of its waits; then the sums. */
static int rows_read(struct builder *builder)
{
    const struct waits *waits = builder->waits;
    for (uint32_t i = 1; i < waits->row_count; i++) {
        const struct object_info *object = object_of(waits, &waits->rows[i]);
        if (!object)
            continue;
        if (row_counts(builder, i, object)) {
            object_read(builder, i, object);
            builder->table.of_wait[i] = 1; /* some lock: which one is the next loop's to say */
        } else {
            builder->table.left_out_count += waits->rows[i].tally.count;
            builder->table.left_out_ns += waits->rows[i].tally.total_ns;
        }
    }
    for (uint32_t i = 1; i < waits->row_count; i++) {
        int r = builder->table.of_wait[i] ? row_add(builder, i) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* Each waiter waited for holds, at most for all of them: holds that are much less were seen in
 * part only, and say little of who made others wait. */
static bool holds_explain(const struct lock_row *row)
{
    return row->holds.count > 0 &&
           (double)row->holds.total_ns * 2 * MAX(row->threads, 1u) >= (double)row->waits.total_ns;
}

static int holders_choose(struct builder *builder, uint32_t lock, struct lock_row *row)
{
    struct lock_stack *stacks[LOCK_HOLDERS_MEANWHILE + 1] = {0};
    size_t counts[LOCK_HOLDERS_MEANWHILE + 1] = {0};
    lock_parts *parts[] = {
        [LOCK_HOLDERS_HELD] = &builder->releases,
        [LOCK_HOLDERS_WAKER] = &builder->wakers,
        [LOCK_HOLDERS_MEANWHILE] = &builder->meanwhile,
    };
    for (size_t i = LOCK_HOLDERS_HELD; i < ARRAY_SIZE(parts); i++) {
        int r = lock_parts_take(builder->arena, parts[i], lock, &stacks[i], &counts[i]);
        if (r < 0)
            return r;
    }
    enum lock_holders best = holds_explain(row) && counts[LOCK_HOLDERS_HELD] > 0 ? LOCK_HOLDERS_HELD
                             : counts[LOCK_HOLDERS_WAKER] > 0     ? LOCK_HOLDERS_WAKER
                             : counts[LOCK_HOLDERS_MEANWHILE] > 0 ? LOCK_HOLDERS_MEANWHILE
                             : counts[LOCK_HOLDERS_HELD] > 0      ? LOCK_HOLDERS_HELD
                                                                  : LOCK_HOLDERS_NONE;
    row->holders_are = best;
    row->holders = stacks[best];
    row->holder_count = counts[best];
    return 0;
}

static int stacks_put(struct builder *builder)
{
    lock_parts *all[] = {&builder->waiters, &builder->releases, &builder->wakers,
                         &builder->meanwhile, &builder->threads};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        lock_parts_merge(all[i]);
    for (uint32_t lock = 0; lock < builder->rows.len; lock++) {
        struct lock_row *row = &builder->rows.data[lock];
        struct lock_stack *threads;
        size_t thread_count;
        int r = lock_parts_take(builder->arena, &builder->waiters, lock, &row->waiters,
                                &row->waiter_count);
        if (r == 0)
            r = lock_parts_take(builder->arena, &builder->threads, lock, &threads, &thread_count);
        if (r < 0)
            return r;
        row->threads = (uint32_t)thread_count;
        r = holders_choose(builder, lock, row);
        if (r < 0)
            return r;
    }
    return 0;
}

/* From all the objects that are this lock: the one with most time says what it is. */
static void row_describe(struct builder *builder, struct lock_row *row,
                         const struct lock_object *object, const struct object_info *info)
{
    row->function = object->site.function;
    row->kind = object->site.kind;
    if (info->name.len > 0) {
        row->name = arena_dup_len(builder->arena, info->name.data, info->name.len);
        row->named = true;
    } else if (object->site.function) {
        row->name = arena_printf(
            builder->arena, "in %s",
            lock_site_text(builder->arena, &builder->waits->profile, &object->site));
    } else {
        row->name = arena_printf(builder->arena, "lock at 0x%llx", (unsigned long long)info->key);
    }
}

static void rows_describe(struct builder *builder)
{
    uint64_t *best = arena_alloc(builder->arena, MAX(builder->rows.len, (size_t)1) * sizeof(*best));
    for (uint32_t i = 1; best && i < builder->waits->object_count; i++) {
        const struct lock_object *object = &builder->objects[i];
        if (object->lock == 0)
            continue;
        struct lock_row *row = &builder->rows.data[object->lock - 1];
        bool reads = object->reads || row->kind == LOCK_RWLOCK || row->kind == LOCK_RWLOCK_READ;
        bool writes = object->writes || row->kind == LOCK_RWLOCK || row->kind == LOCK_RWLOCK_WRITE;
        if (!row->name || object->best_ns > best[object->lock - 1]) {
            row_describe(builder, row, object, &builder->waits->objects[i]);
            best[object->lock - 1] = object->best_ns;
        }
        if (reads && writes)
            row->kind = LOCK_RWLOCK;
    }
}

/* The part of the hold that its holder was off the CPU: by the holds if they tell, else by the
 * waits with a known owner. */
static double off_cpu_pct(const struct lock_row *row)
{
    if (row->holds.owned_ns > 0)
        return 100.0 * (double)row->holds.owner_off_ns / (double)row->holds.owned_ns;
    if (row->waits.owned_ns > 0)
        return 100.0 * (double)row->waits.owner_off_ns / (double)row->waits.owned_ns;
    return NAN;
}

/* With the place that each had before, so that of_wait can follow. */
struct ordered {
    struct lock_row row;
    uint32_t before;
};

static int row_order(const void *a, const void *b)
{
    const struct lock_row *x = &((const struct ordered *)a)->row;
    const struct lock_row *y = &((const struct ordered *)b)->row;
    if (x->waits.total_ns != y->waits.total_ns)
        return x->waits.total_ns < y->waits.total_ns ? 1 : -1;
    if (x->holds.total_ns != y->holds.total_ns)
        return x->holds.total_ns < y->holds.total_ns ? 1 : -1;
    return (x->object > y->object) - (x->object < y->object);
}

static int rows_order(struct builder *builder)
{
    size_t count = builder->rows.len, all = MAX(count, (size_t)1);
    struct ordered *ordered = calloc(all, sizeof(*ordered));
    uint32_t *places = calloc(all, sizeof(*places));
    struct lock_row *rows = arena_alloc(builder->arena, all * sizeof(*rows));
    if (!ordered || !places || !rows) {
        free(ordered);
        free(places);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct lock_row *row = &builder->rows.data[i];
        row->off_cpu_hold_pct = off_cpu_pct(row);
        if (builder->table.wall_ns > 0)
            row->mean_waiters = (double)row->waits.total_ns / (double)builder->table.wall_ns;
        ordered[i] = (struct ordered){*row, i};
    }
    qsort(ordered, count, sizeof(*ordered), row_order);
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = ordered[i].row;
        places[ordered[i].before] = i;
    }
    for (size_t i = 0; i < builder->waits->row_count; i++)
        if (builder->table.of_wait[i])
            builder->table.of_wait[i] = places[builder->table.of_wait[i] - 1] + 1;
    free(ordered);
    free(places);
    builder->table.rows = rows;
    builder->table.count = count;
    return 0;
}

static int builder_init(struct builder *builder)
{
    const struct waits *waits = builder->waits;
    size_t stacks = MAX(waits->profile.stack_count, (size_t)1);
    builder->objects = calloc(MAX(waits->object_count, (size_t)1), sizeof(*builder->objects));
    builder->sites = calloc(2 * stacks, sizeof(*builder->sites));
    builder->sites_known = calloc(2 * stacks, 1);
    builder->table.of_wait = arena_alloc(builder->arena, MAX(waits->row_count, (size_t)1) *
                                                             sizeof(*builder->table.of_wait));
    builder->table.wall_ns = waits->end_ns - MIN(waits->start_ns, waits->end_ns);
    bool good = builder->objects && builder->sites && builder->sites_known &&
                builder->table.of_wait;
    return good ? 0 : -ENOMEM;
}

static void builder_deinit(struct builder *builder)
{
    free(builder->objects);
    free(builder->sites);
    free(builder->sites_known);
    intern_deinit(&builder->keys);
    VEC_FREE(&builder->rows);
    lock_parts *all[] = {&builder->waiters, &builder->releases, &builder->wakers,
                         &builder->meanwhile, &builder->threads};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        VEC_FREE(all[i]);
}

int lock_table_build(struct arena *arena, const struct waits *waits,
                     const struct wait_classes *classes, struct lock_table *ret)
{
    struct builder builder = {.arena = arena, .waits = waits, .classes = classes};
    int r = builder_init(&builder);
    if (r == 0)
        r = rows_read(&builder);
    if (r == 0)
        r = lock_meanwhile_find(waits, builder.table.of_wait, &builder.meanwhile);
    if (r == 0)
        r = stacks_put(&builder);
    if (r == 0) {
        rows_describe(&builder);
        r = rows_order(&builder);
    }
    if (r == 0 && arena_failed(arena))
        r = -ENOMEM;
    if (r == 0)
        *ret = builder.table;
    builder_deinit(&builder);
    return r;
}
