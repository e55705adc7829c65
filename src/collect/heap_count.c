/* From allocations and frees to tallies of sites, and the peak. */
#include "collect/heap_count.h"

#include "format/heap.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert((int)HEAP_SIZES == (int)HEAP_SIZE_BUCKETS, "the same buckets");
_Static_assert((int)HEAP_LIVES == (int)HEAP_LIFE_BUCKETS, "the same buckets");

struct heap_inherited {
    struct heap_live live;
    size_t users;
};

static void inherited_leave(struct heap_inherited *inherited)
{
    if (!inherited || --inherited->users > 0)
        return;
    heap_live_deinit(&inherited->live);
    free(inherited);
}

void heap_count_init(struct heap_count *count, uint32_t temporary_within)
{
    *count = (struct heap_count){
        .temporary_within = MAX(temporary_within, 1u),
        .tally.life_unit_ns = HEAP_TICK_NS,
    };
}

void heap_count_deinit(struct heap_count *count)
{
    heap_live_deinit(&count->live);
    inherited_leave(count->inherited);
    inherited_leave(count->last_fork);
    map_u64_deinit(&count->inherited_gone);
    map_u64_deinit(&count->gone);
    map_u64_deinit(&count->site_at);
    VEC_FREE(&count->sites);
    *count = (struct heap_count){0};
}

/* ---- sites ---- */

/* NULL and 0: beyond the bound. */
static int site_of(struct heap_count *count, uint32_t thread, uint32_t stack,
                   struct heap_count_site **ret)
{
    const struct heap_count_site fresh = {.thread = thread, .stack = stack, .epoch = count->epoch};
    uint64_t key = (uint64_t)thread << 32 | stack;
    uint64_t *at = map_u64_find(&count->site_at, key);
    *ret = NULL;
    if (!at) {
        if (count->sites.len >= HEAP_COUNT_SITES_MAX)
            return 0;
        at = map_u64_at(&count->site_at, key, NULL);
        if (!at || VEC_PUSH(&count->sites, fresh) < 0)
            return -ENOMEM;
        *at = count->sites.len;
    }
    *ret = &count->sites.data[*at - 1];
    return 0;
}

static int64_t site_count(const struct heap_tally *tally)
{
    return (int64_t)(tally->allocations - tally->frees);
}

static int64_t site_bytes(const struct heap_tally *tally)
{
    return (int64_t)(tally->allocated_bytes - tally->freed_bytes);
}

/* Before anything of it changes. */
static void site_touch(struct heap_count *count, struct heap_count_site *site)
{
    struct heap_tally *tally = &site->tally;
    site->changed = count->changed = true;
    if (!count->below_peak || site->epoch == count->epoch)
        return;
    site->epoch = count->epoch;
    tally->peak_count = site_count(tally);
    tally->peak_bytes = site_bytes(tally);
}

/* ---- the three deeds ---- */

static int entry_free(struct heap_count *count, const struct heap_live_entry *entry,
                      const struct heap_count_event *event)
{
    const struct heap_count_thread *thread = event->thread;
    struct heap_count_site *site;
    if (!count->below_peak) {
        count->below_peak = true;
        count->epoch++;
    }
    if (count->gone.len >= HEAP_COUNT_GONE_MAX)
        map_u64_clear(&count->gone);
    if (!map_u64_at(&count->gone, entry->address, NULL))
        return -ENOMEM;
    int r = site_of(count, thread->thread, entry->stack, &site);
    if (r < 0)
        return r;
    uint64_t lived_ns = event->time_ns > entry->time_ns ? event->time_ns - entry->time_ns : 0;
    count->live_bytes -= entry->size;
    count->live_count--;
    count->tally.lives[heap_bucket(lived_ns / HEAP_TICK_NS, HEAP_LIVES)]++;
    if (!site) {
        count->beyond++;
        return 0;
    }
    site_touch(count, site);
    struct heap_tally *tally = &site->tally;
    tally->frees++;
    tally->freed_bytes += entry->size;
    tally->lived_ns += lived_ns;
    if (entry->maker == thread->number &&
        thread->serial - entry->serial < count->temporary_within) {
        tally->temporary++;
        tally->temporary_bytes += entry->size;
    }
    return 0;
}

/* What was there has been given back without our seeing it. */
static int missed_free(struct heap_count *count, const struct heap_count_event *event)
{
    struct heap_live_entry old;
    struct heap_count_thread nobody = {0};
    if (!heap_live_take(&count->live, event->address, &old))
        return 0;
    struct heap_count_event missed = *event;
    nobody.thread = old.thread;
    missed.thread = &nobody;
    count->missed++;
    return entry_free(count, &old, &missed);
}

static bool is_inherited(const struct heap_count *count, uint64_t address)
{
    return count->inherited && heap_live_find(&count->inherited->live, address) &&
           !map_u64_find(&count->inherited_gone, address);
}

static void peak_look(struct heap_count *count, uint64_t time_ns)
{
    if (count->live_bytes <= count->tally.peak_bytes)
        return;
    count->tally.peak_bytes = count->live_bytes;
    count->tally.peak_count = count->live_count;
    count->tally.peak_ns = time_ns;
    count->below_peak = false;
}

static int entry_make(struct heap_count *count, const struct heap_count_event *event,
                      const struct heap_live_entry *old)
{
    struct heap_count_thread *thread = event->thread;
    struct heap_count_site *site = NULL;
    bool grown = old->address != 0 && event->size > old->size;
    struct heap_live_entry entry = {
        .address = event->address,
        .size = event->size,
        .time_ns = event->time_ns,
        .stack = event->stack,
        .thread = thread->thread,
        .maker = thread->number,
        .serial = ++thread->serial,
        .chain = grown ? old->chain + 1 : old->chain,
    };
    int r = missed_free(count, event);
    if (r == 0 && is_inherited(count, event->address) &&
        !map_u64_at(&count->inherited_gone, event->address, NULL))
        r = -ENOMEM;
    if (r == 0)
        r = site_of(count, thread->thread, event->stack, &site);
    if (r < 0)
        return r;
    r = site ? heap_live_put(&count->live, &entry) : -E2BIG;
    if (r < 0) {
        count->beyond++;
        return r == -E2BIG ? 0 : r;
    }
    site_touch(count, site);
    struct heap_tally *tally = &site->tally;
    tally->allocations++;
    tally->samples++;
    tally->allocated_bytes += event->size;
    tally->size_max = MAX(tally->size_max, event->size);
    if (grown) {
        tally->grown++;
        tally->grown_bytes += event->size - old->size;
        tally->moved += event->address != old->address;
        tally->chain_max = MAX(tally->chain_max, (uint64_t)entry.chain);
    }
    count->tally.sizes[heap_bucket(event->size, HEAP_SIZES)]++;
    count->live_bytes += event->size;
    count->live_count++;
    count->version++;
    peak_look(count, event->time_ns);
    return 0;
}

int heap_count_allocated(struct heap_count *count, const struct heap_count_event *event)
{
    const struct heap_live_entry none = {0};
    count->changed = true;
    if (event->address == 0) {
        count->tally.failed++;
        return 0;
    }
    return entry_make(count, event, &none);
}

/* Nobody saw it allocated; or a parent had it. */
static int unknown_free(struct heap_count *count, uint64_t address)
{
    count->changed = true;
    if (!is_inherited(count, address)) {
        bool again = map_u64_find(&count->gone, address);
        count->again += again;
        count->tally.unseen_frees += !again;
        return 0;
    }
    count->tally.inherited_frees++;
    count->tally.inherited_bytes += heap_live_find(&count->inherited->live, address)->size;
    return map_u64_at(&count->inherited_gone, address, NULL) ? 0 : -ENOMEM;
}

int heap_count_freed(struct heap_count *count, const struct heap_count_event *event,
                     struct heap_live_entry *ret)
{
    *ret = (struct heap_live_entry){0};
    count->version++;
    if (!heap_live_take(&count->live, event->address, ret))
        return unknown_free(count, event->address);
    return entry_free(count, ret, event);
}

struct heap_live_entry heap_count_take(struct heap_count *count, uint64_t address)
{
    struct heap_live_entry entry = {0};
    count->version++;
    if (!heap_live_take(&count->live, address, &entry))
        entry = (struct heap_live_entry){0};
    return entry;
}

int heap_count_put_back(struct heap_count *count, const struct heap_live_entry *old)
{
    count->changed = true;
    count->tally.failed++;
    if (old->address == 0 || heap_live_find(&count->live, old->address))
        return 0;
    count->version++;
    return heap_live_put(&count->live, old);
}

int heap_count_reallocated(struct heap_count *count, uint64_t before,
                           const struct heap_live_entry *old, const struct heap_count_event *event)
{
    int r = old->address != 0 ? entry_free(count, old, event) : unknown_free(count, before);
    return r < 0 || event->address == 0 ? r : entry_make(count, event, old);
}

void heap_count_over(struct heap_count *count)
{
    heap_live_deinit(&count->live);
    inherited_leave(count->inherited);
    inherited_leave(count->last_fork);
    count->inherited = count->last_fork = NULL;
    map_u64_deinit(&count->inherited_gone);
    map_u64_deinit(&count->gone);
}

/* ---- fork ---- */

/* What lives in the parent, and what it had inherited itself. */
static int inherited_make(const struct heap_count *parent, struct heap_inherited **ret)
{
    struct heap_inherited *all = calloc(1, sizeof(*all));
    int r = all ? heap_live_copy(&parent->live, &all->live) : -ENOMEM;
    const struct heap_live *older = parent->inherited ? &parent->inherited->live : NULL;
    for (size_t i = 0; r == 0 && older && i < older->cap; i++) {
        const struct heap_live_entry *entry = &older->slots[i];
        if (entry->address != 0 && !map_u64_find(&parent->inherited_gone, entry->address) &&
            !heap_live_find(&all->live, entry->address))
            r = heap_live_put(&all->live, entry);
    }
    if (r < 0) {
        if (all)
            heap_live_deinit(&all->live);
        free(all);
        return r;
    }
    *ret = all;
    return 0;
}

int heap_count_forked(struct heap_count *parent, struct heap_count *child)
{
    if (!parent->last_fork || parent->forked_at != parent->version) {
        struct heap_inherited *all;
        int r = inherited_make(parent, &all);
        if (r < 0)
            return r;
        inherited_leave(parent->last_fork);
        all->users = 1;
        parent->last_fork = all;
        parent->forked_at = parent->version;
    }
    child->inherited = parent->last_fork;
    child->inherited->users++;
    return 0;
}

/* ---- to the sink ---- */

static int site_put(const struct heap_count *count, struct heap_count_site *site, struct sink *sink)
{
    struct heap_tally tally = site->tally;
    const struct heap_site_info info = {site->thread, site->stack, HEAP_KIND_HEAP};
    int r = site->id == 0 ? sink_heap_site(sink, &info, &site->id) : 0;
    if (r < 0)
        return r;
    if (!count->below_peak || site->epoch != count->epoch) {
        tally.peak_count = site_count(&tally);
        tally.peak_bytes = site_bytes(&tally);
    }
    return sink_heap_site_set(sink, site->id, &tally);
}

int heap_count_put(struct heap_count *count, struct sink *sink, bool all)
{
    int r = 0;
    if (count->process == 0 || (!count->changed && !all))
        return 0;
    for (size_t i = 0; i < count->sites.len && r == 0; i++) {
        struct heap_count_site *site = &count->sites.data[i];
        if (!site->changed && !all)
            continue;
        r = site_put(count, site, sink);
        site->changed = r < 0;
    }
    if (count->last_fork && count->last_fork->users == 1 && count->forked_at != count->version) {
        inherited_leave(count->last_fork);
        count->last_fork = NULL;
    }
    if (r == 0)
        r = sink_heap_process_set(sink, count->process, &count->tally);
    count->changed = r < 0;
    return r;
}

struct snapshot {
    uint32_t id;
    struct map_u64 row_at; /* stack to index + 1 */
    VEC(struct heap_snapshot_row) rows;
};

/* Of a stack; made if need be. */
static int row_of(struct snapshot *snapshot, uint32_t stack, struct heap_snapshot_row **ret)
{
    const struct heap_snapshot_row fresh = {.snapshot = snapshot->id, .stack = stack};
    uint64_t *at = map_u64_at(&snapshot->row_at, stack, NULL);
    if (!at || (*at == 0 && VEC_PUSH(&snapshot->rows, fresh) < 0))
        return -ENOMEM;
    *at = *at ? *at : snapshot->rows.len;
    *ret = &snapshot->rows.data[*at - 1];
    return 0;
}

int heap_count_snapshot(const struct heap_count *count, struct sink *sink, uint64_t time_ns,
                        enum heap_snapshot_why why)
{
    const struct heap_snapshot_info info = {count->process, time_ns, why};
    struct snapshot snapshot = {0};
    struct heap_snapshot_row *row = NULL;
    if (count->process == 0)
        return 0;
    int r = sink_heap_snapshot(sink, &info, &snapshot.id);
    for (size_t i = 0; i < count->sites.len && r == 0; i++) {
        const struct heap_count_site *site = &count->sites.data[i];
        r = row_of(&snapshot, site->stack, &row);
        if (r == 0) {
            row->count += site_count(&site->tally);
            row->bytes += site_bytes(&site->tally);
        }
    }
    for (size_t i = 0; i < snapshot.rows.len && r == 0; i++)
        if (snapshot.rows.data[i].count != 0 || snapshot.rows.data[i].bytes != 0)
            r = sink_heap_snapshot_row(sink, &snapshot.rows.data[i]);
    map_u64_deinit(&snapshot.row_at);
    VEC_FREE(&snapshot.rows);
    return r;
}
