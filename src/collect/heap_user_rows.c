/* What a window has counted, as rows: whole figures, told again when they have changed. */
#include "collect/heap_user_parts.h"

#include "base/clock.h"
#include "target/proc.h"

#include <errno.h>

#define MOMENT_NS (100 * NS_PER_MS)

static uint32_t used_of(const uint32_t *shared, uint32_t max)
{
    return MIN(__atomic_load_n(shared, __ATOMIC_ACQUIRE), max);
}

/* A figure that cannot be, or one row too many: this one, not the recording. */
static int outcome(struct collector *c, int r)
{
    if (r != -EINVAL && r != -E2BIG)
        return r;
    c->malformed += r == -EINVAL;
    c->left_out += r == -E2BIG;
    return 0;
}

/* Room below the peak; less than none: a new one is in the making. */
static int64_t room_of(const struct heap_window *window)
{
    uint32_t used = used_of(&window->shared->threads, window->at.threads_max);
    uint64_t room = (uint64_t)__atomic_load_n(&window->shared->spare, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < used; i++)
        room += (uint64_t)__atomic_load_n(&window->at.threads[i].credit, __ATOMIC_RELAXED);
    return (int64_t)room;
}

/* The epoch whose cells have saved what they were at the peak; HEAP_AT_PEAK: none, they stand. */
static uint32_t epoch_of(const struct heap_window *window)
{
    uint32_t epoch = __atomic_load_n(&window->shared->peak_epoch, __ATOMIC_RELAXED);
    return room_of(window) < 0 ? HEAP_AT_PEAK : epoch;
}

/* What lived at the peak is what it was when the peak was left, for cells that have changed since.
 */
static void tally_of(const struct heap_cell *cell, uint8_t kind, uint32_t epoch,
                     struct heap_tally *ret)
{
    bool is_saved = epoch != HEAP_AT_PEAK && cell->epoch == epoch;
    *ret = (struct heap_tally){
        .allocations = cell->allocations,
        .allocated_bytes = cell->allocated_bytes,
        .frees = cell->frees,
        .freed_bytes = cell->freed_bytes,
        .temporary = cell->temporary,
        .temporary_bytes = cell->temporary_bytes,
        .grown = cell->grown,
        .grown_bytes = cell->grown_bytes,
        .moved = cell->moved,
        .chain_max = cell->chain_max,
        .size_max = cell->size_max,
        .lived_ns = cell->lived_ticks * HEAP_TICK_NS,
        .samples = cell->samples,
        .variance = cell->variance,
    };
    if (kind != HEAP_KIND_HEAP)
        return;
    ret->peak_count = is_saved ? cell->peak_count : (int64_t)(cell->allocations - cell->frees);
    ret->peak_bytes = is_saved ? cell->peak_bytes
                               : (int64_t)(cell->allocated_bytes - cell->freed_bytes);
}

/* Of figures that may be anything. */
static int64_t sum_of(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void tally_add(struct heap_tally *to, const struct heap_tally *more)
{
    to->allocations += more->allocations;
    to->allocated_bytes += more->allocated_bytes;
    to->frees += more->frees;
    to->freed_bytes += more->freed_bytes;
    to->temporary += more->temporary;
    to->temporary_bytes += more->temporary_bytes;
    to->peak_count = sum_of(to->peak_count, more->peak_count);
    to->peak_bytes = sum_of(to->peak_bytes, more->peak_bytes);
    to->grown += more->grown;
    to->grown_bytes += more->grown_bytes;
    to->moved += more->moved;
    to->chain_max = MAX(to->chain_max, more->chain_max);
    to->size_max = MAX(to->size_max, more->size_max);
    to->lived_ns += more->lived_ns;
    to->samples += more->samples;
    to->variance += more->variance;
}

/* ---- cells to sites ---- */

static int cell_site(struct collector *c, struct heap_window *window, uint32_t index, uint32_t node)
{
    const struct heap_cell *cell = &window->at.cells[index];
    uint32_t tid = cell->tid, place = cell->thread, site;
    struct heap_seen_node stack;
    struct heap_site_info info = {0};
    if (tid == 0 && place < window->at.threads_max)
        tid = window->at.threads[place].tid;
    int r = heap_node_stack(c, window, node, &stack);
    if (r == 0)
        r = heap_thread_need(c, window, tid ? tid : window->pid, &info.thread);
    if (r < 0)
        return r;
    info.stack = stack.stack;
    info.kind = stack.kind;
    r = sink_heap_site(c->sink, &info, &site);
    uint64_t *first = r == 0 ? map_u64_at(&window->sites, site, NULL) : NULL;
    if (r < 0 || !first)
        return r < 0 ? r : -ENOMEM;
    struct heap_seen_cell *seen = &window->cells.data[index];
    *seen = (struct heap_seen_cell){
        .site = site, .head = index + 1, .stack = stack.stack, .kind = stack.kind};
    if (*first) { /* two ways through the tree that are one stack */
        struct heap_seen_cell *head = &window->cells.data[*first - 1];
        seen->head = (uint32_t)*first;
        seen->next = head->next;
        head->next = index + 1;
    } else {
        *first = index + 1;
    }
    c->stacks_told++;
    c->stacks_complete += stack.is_complete;
    return 0;
}

static bool cell_changed(struct heap_seen_cell *seen, const struct heap_tally *now)
{
    if (seen->allocations == now->allocations && seen->frees == now->frees &&
        seen->peak_count == now->peak_count && seen->peak_bytes == now->peak_bytes)
        return false;
    seen->allocations = now->allocations;
    seen->frees = now->frees;
    seen->peak_count = now->peak_count;
    seen->peak_bytes = now->peak_bytes;
    return true;
}

static int cell_look(struct collector *c, struct heap_window *window, uint32_t index,
                     uint32_t epoch)
{
    const struct heap_cell *cell = &window->at.cells[index];
    uint32_t node = __atomic_load_n(&cell->node, __ATOMIC_ACQUIRE);
    struct heap_tally tally;
    if (node == 0)
        return 0;
    if (window->cells.data[index].site == 0) {
        if (cell->allocations == 0 && cell->frees == 0)
            return 0; /* made, and not used so far */
        int r = cell_site(c, window, index, node);
        if (r < 0)
            return outcome(c, r);
    }
    struct heap_seen_cell *seen = &window->cells.data[index];
    tally_of(cell, seen->kind, epoch, &tally);
    struct heap_seen_cell *head = &window->cells.data[seen->head - 1];
    if (!cell_changed(seen, &tally) || head->dirty)
        return 0;
    head->dirty = true;
    return VEC_PUSH(&c->dirty, seen->head - 1);
}

static int site_tell(struct collector *c, struct heap_window *window, uint32_t head, uint32_t epoch)
{
    struct heap_tally sum = {0}, tally;
    window->cells.data[head].dirty = false;
    for (uint32_t at = head + 1; at != 0; at = window->cells.data[at - 1].next) {
        tally_of(&window->at.cells[at - 1], window->cells.data[at - 1].kind, epoch, &tally);
        tally_add(&sum, &tally);
    }
    if (c->opts.sample_bytes == 0)
        sum.samples = sum.allocations;
    return outcome(c, sink_heap_site_set(c->sink, window->cells.data[head].site, &sum));
}

int heap_cells_read(struct collector *c, struct heap_window *window)
{
    uint32_t used = used_of(&window->shared->cells, window->at.cells_max);
    uint32_t epoch = epoch_of(window);
    if (VEC_RESERVE(&window->cells, used) < 0)
        return -ENOMEM;
    for (; window->cells.len < used; window->cells.len++)
        window->cells.data[window->cells.len] = (struct heap_seen_cell){0};
    c->dirty.len = 0;
    int r = 0;
    for (uint32_t i = 0; i < used && r == 0; i++)
        r = cell_look(c, window, i, epoch);
    for (size_t i = 0; i < c->dirty.len && r == 0; i++)
        r = site_tell(c, window, c->dirty.data[i], epoch);
    return r;
}

/* ---- the process ---- */

static void threads_add(struct collector *c, const struct heap_window *window, bool is_last,
                        struct heap_process_tally *ret)
{
    uint32_t used = used_of(&window->shared->threads, window->at.threads_max);
    for (uint32_t i = 0; i < used; i++) {
        const struct heap_thread_place *place = &window->at.threads[i];
        ret->unseen_frees += place->unseen_frees;
        ret->inherited_frees += place->inherited_frees;
        ret->inherited_bytes += place->inherited_bytes;
        ret->failed += place->failed;
        for (size_t j = 0; j < HEAP_SIZES; j++)
            ret->sizes[j] += place->sizes[j];
        for (size_t j = 0; j < HEAP_LIVES; j++)
            ret->lives[j] += place->lives[j];
        if (!is_last)
            continue;
        c->threads += MAX(place->serial, 1u);
        c->no_cell += place->no_cell;
        c->no_entry += place->no_entry;
        c->missed += place->missed;
        c->nested += place->nested;
        c->lost += place->lost;
        c->events_lost += place->log_lost;
        c->walks += place->walks;
        c->frames += place->frames;
        c->recognised += place->recognised;
    }
}

/* What all cells of the window come to, for our own account. */
static void cells_sum(const struct heap_window *window, struct heap_tally *ret_heap,
                      uint64_t *ret_mapped)
{
    struct heap_tally tally;
    uint32_t epoch = epoch_of(window);
    for (size_t i = 0; i < window->cells.len; i++) {
        const struct heap_seen_cell *seen = &window->cells.data[i];
        if (seen->site == 0)
            continue;
        tally_of(&window->at.cells[i], seen->kind, epoch, &tally);
        if (seen->kind == HEAP_KIND_HEAP)
            tally_add(ret_heap, &tally);
        else
            *ret_mapped += tally.allocations + tally.frees;
    }
}

int heap_process_read(struct collector *c, struct heap_window *window, bool is_last)
{
    const struct heap_process *shared = window->shared;
    const struct heap_header *header = preload_heap_header(c->preload);
    struct heap_tally sum = {0};
    uint64_t mapped = 0;
    struct heap_process_tally tally = {
        .peak_bytes = heap_peak_bytes(shared, room_of(window)),
        .peak_ns = header->start_ns + (uint64_t)shared->peak_tick * HEAP_TICK_NS,
        .life_unit_ns = HEAP_TICK_NS,
    };
    if (window->process == 0)
        return 0;                                         /* nothing was counted */
    tally.peak_ns = MAX(tally.peak_ns, window->start_ns); /* ticks are coarse */
    cells_sum(window, &sum, &mapped);
    tally.peak_count = sum.peak_count > 0 ? (uint64_t)sum.peak_count : 0;
    threads_add(c, window, is_last, &tally);
    if (is_last) {
        c->allocations += sum.allocations;
        c->allocated_bytes += sum.allocated_bytes;
        c->frees += sum.frees;
        c->mapped += mapped;
        c->unseen_frees += tally.unseen_frees;
        c->inherited_frees += tally.inherited_frees;
        c->failed += tally.failed;
        c->no_rules += shared->no_rules;
        c->nodes_full |= shared->nodes >= window->at.nodes_max;
        c->cells_full |= shared->cells >= window->at.cells_max;
    }
    return outcome(c, sink_heap_process_set(c->sink, window->process, &tally));
}

/* ---- over time ---- */

/* Pages of the window that the target has in its memory, as far as is known. */
static uint64_t own_bytes(const struct heap_window *window)
{
    const struct heap_process *p = window->shared;
    return sizeof(*p) + used_of(&p->threads, window->at.threads_max) * sizeof(*window->at.threads) +
           used_of(&p->images, window->at.images_max) * sizeof(*window->at.images) +
           used_of(&p->nodes, window->at.nodes_max) * (sizeof(*window->at.nodes) + 8) +
           used_of(&p->cells, window->at.cells_max) * sizeof(*window->at.cells);
}

int heap_moment_read(struct collector *c, struct heap_window *window, uint64_t now_ns, bool is_gone)
{
    struct proc_stat stat;
    if (window->process == 0 || (!is_gone && now_ns < window->moment_ns))
        return 0;
    struct heap_moment moment = {.process = window->process,
                                 .time_ns = now_ns,
                                 .live_bytes = heap_live_bytes(window->shared, room_of(window))};
    if (!is_gone && !window->is_foreign && proc_stat_read((int)window->pid, 0, &stat) == 0)
        moment.rss_bytes = stat.rss_bytes - MIN(stat.rss_bytes, own_bytes(window));
    /* The longer it runs, the fewer: a picture has only so many columns. */
    uint64_t wait_ns = MOMENT_NS << MIN(window->moments / HEAP_MOMENTS_EACH, (uint64_t)20);
    window->moments++;
    window->moment_ns = now_ns + wait_ns;
    return outcome(c, sink_heap_moment(c->sink, &moment));
}

/* ---- snapshots ---- */

struct living {
    uint32_t stack;
    int64_t count, bytes;
};
typedef VEC(struct living) living_list;

static int living_add(living_list *list, struct map_u64 *stacks, const struct heap_seen_cell *seen,
                      const struct heap_cell *cell)
{
    uint64_t *at = map_u64_at(stacks, seen->stack, NULL);
    if (!at)
        return -ENOMEM;
    struct living more = {
        .stack = seen->stack,
        .count = (int64_t)(cell->allocations - cell->frees),
        .bytes = (int64_t)(cell->allocated_bytes - cell->freed_bytes),
    };
    if (*at > 0 && *at <= list->len && list->data) {
        struct living *known = &list->data[*at - 1];
        known->count = sum_of(known->count, more.count);
        known->bytes = sum_of(known->bytes, more.bytes);
        return 0;
    }
    *at = list->len + 1;
    return VEC_PUSH(list, more);
}

int heap_snapshot_read(struct collector *c, struct heap_window *window, uint64_t now_ns,
                       enum heap_snapshot_why why)
{
    struct heap_snapshot_info info = {.process = window->process, .time_ns = now_ns, .why = why};
    uint32_t snapshot;
    if (window->process == 0)
        return 0;
    living_list list = {0};
    struct map_u64 stacks = {0};
    int r = sink_heap_snapshot(c->sink, &info, &snapshot);
    if (r < 0)
        return outcome(c, r);
    for (size_t i = 0; i < window->cells.len && r == 0; i++)
        if (window->cells.data[i].site && window->cells.data[i].kind == HEAP_KIND_HEAP)
            r = living_add(&list, &stacks, &window->cells.data[i], &window->at.cells[i]);
    for (size_t i = 0; i < list.len && r == 0; i++) {
        struct heap_snapshot_row row = {snapshot, list.data[i].stack, list.data[i].count,
                                        list.data[i].bytes};
        if (row.count != 0 || row.bytes != 0)
            r = outcome(c, sink_heap_snapshot_row(c->sink, &row));
    }
    c->snapshots += r == 0;
    VEC_FREE(&list);
    map_u64_deinit(&stacks);
    return r;
}
