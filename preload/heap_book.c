/* What was allocated at each stack, and what became of it: an entry by address while it lives, a
 * cell for each thread and stack for ever.
 *
 * A free is counted in the freeing thread's cell of the stack that allocated. The order in a call:
 * first the room below the peak, which may begin or end an epoch, then the cell, which keeps what
 * stood at the peak before it changes.
 *
 * Temporary is what its thread frees before it allocates anything more. As heaptrack has it,
 * realloc() frees what it is given: memory that is grown right after it was allocated was
 * temporary. Other than there, another thread's calls and frees of other memory do not matter. */
#include "heap_book.h"

enum {
    NODE_ANY = 1,
    RECENT = 16,
    CHAIN_MAX = 15,
    CELLS_KEPT = 4, /* one part in so many, at most, is kept for cells of NODE_ANY */
};
#define SIZE_MAX_KNOWN ((UINT64_C(1) << 40) - 1)
#define TICK_MASK      (UINT32_MAX >> 1)

/* What one call changes: 1 and its size, or what the sample stands for. */
struct amount {
    uint64_t count, bytes;
};

static uint32_t tick_now(void)
{
    return __atomic_load_n(&heap_header->tick, __ATOMIC_RELAXED) & TICK_MASK;
}

static uint8_t generation_now(void)
{
    return (uint8_t)__atomic_load_n(heap_generation, __ATOMIC_RELAXED);
}

/* ---- cells ---- */

/* Some are kept for NODE_ANY, so that every thread has a place where it counts. */
static uint32_t cell_make(const struct heap_thread *thread, uint32_t node)
{
    struct heap_process *process = heap_process;
    uint32_t kept = process->cells_max / CELLS_KEPT;
    if (kept > process->threads_max)
        kept = process->threads_max;
    uint32_t max = process->cells_max - (node == NODE_ANY ? 0 : kept);
    if (__atomic_load_n(&process->cells, __ATOMIC_RELAXED) >= max)
        return 0;
    uint32_t index = __atomic_fetch_add(&process->cells, 1, __ATOMIC_RELAXED);
    if (index >= process->cells_max)
        return 0;
    struct heap_cell *cell = &heap_cells[index];
    cell->thread = thread->place_index;
    __atomic_store_n(&cell->node, node, __ATOMIC_RELEASE);
    return index + 1;
}

static NOINLINE struct heap_cell *cell_new(struct heap_thread *thread, uint32_t node)
{
    if (!thread->cell_of)
        thread->cell_of = heap_map((size_t)heap_process->nodes_max * sizeof(*thread->cell_of));
    if (thread->cell_any == 0)
        thread->cell_any = cell_make(thread, NODE_ANY);
    uint32_t cell = 0;
    if (node != NODE_ANY && thread->cell_of && node < heap_process->nodes_max)
        cell = thread->cell_of[node] != 0 ? thread->cell_of[node] : cell_make(thread, node);
    if (cell != 0) {
        thread->cell_of[node] = cell;
        return &heap_cells[cell - 1];
    }
    thread->place->no_cell += node != NODE_ANY;
    return thread->cell_any != 0 ? &heap_cells[thread->cell_any - 1] : NULL;
}

/* NULL: there is no room even for what has no place; it is lost, and counted as such. */
static inline struct heap_cell *cell_of(struct heap_thread *thread, uint32_t node)
{
    uint32_t cell = 0;
    if (LIKELY(thread->cell_of && node < heap_process->nodes_max))
        cell = thread->cell_of[node];
    if (LIKELY(cell != 0))
        return &heap_cells[cell - 1];
    struct heap_cell *found = cell_new(thread, node);
    thread->place->lost += !found;
    return found;
}

/* Before a cell changes: what stood there when the peak was left is what it had at the peak. */
static inline void cell_changes(struct heap_cell *cell)
{
    if (__atomic_load_n(&heap_process->spare, __ATOMIC_RELAXED) < 0)
        return;
    uint32_t epoch = __atomic_load_n(&heap_process->peak_epoch, __ATOMIC_RELAXED);
    if (LIKELY(cell->epoch == epoch))
        return;
    cell->peak_count = (int64_t)(cell->allocations - cell->frees);
    cell->peak_bytes = (int64_t)(cell->allocated_bytes - cell->freed_bytes);
    __atomic_store_n(&cell->epoch, epoch, __ATOMIC_RELEASE);
}

/* ---- counts ---- */

static inline void count_allocation(struct heap_thread *thread, struct heap_cell *cell,
                                    uint64_t size, struct amount amount)
{
    thread->place->sizes[heap_bucket(size, HEAP_SIZES)] += amount.count;
    if (UNLIKELY(!cell))
        return;
    cell->allocations += amount.count;
    cell->allocated_bytes += amount.bytes;
    if (UNLIKELY(size > cell->size_max))
        cell->size_max = size;
}

/* `ago`: allocations of the thread since, that do not count. */
static inline bool is_temporary(const struct heap_thread *thread, const struct heap_entry_row *row,
                                const void *memory, uint32_t ago)
{
    if (row->place != thread->place_index)
        return false; /* another thread's, though it lies where one of ours did */
    uint32_t within = heap_header->temporary_within;
    uint32_t last = thread->recent_next - 1 - ago;
    if (LIKELY(thread->recent[last % RECENT] == memory))
        return within != 0;
    for (uint32_t i = 1; i < within && i < RECENT - ago; i++)
        if (thread->recent[(last - i) % RECENT] == memory)
            return true;
    return false;
}

static inline void count_free(struct heap_thread *thread, struct heap_cell *cell,
                              const struct heap_entry_row *row, struct amount amount,
                              bool temporary)
{
    uint32_t lived = (tick_now() - row->tick) & TICK_MASK;
    thread->place->lives[heap_bucket(lived, HEAP_LIVES)] += amount.count;
    if (UNLIKELY(!cell))
        return;
    cell->frees += amount.count;
    cell->freed_bytes += amount.bytes;
    if (temporary) {
        cell->temporary += amount.count;
        cell->temporary_bytes += amount.bytes;
    }
    if (lived > 0)
        cell->lived_ticks += lived * amount.count;
}

static void count_growth(struct heap_cell *cell, const struct heap_entry_row *before,
                         const struct heap_entry_row *now, bool moved, uint64_t count)
{
    cell->grown += count;
    cell->grown_bytes += (now->size - before->size) * count;
    cell->moved += moved ? (uint32_t)count : 0;
    if (now->chain > cell->chain_max)
        cell->chain_max = now->chain;
}

static inline struct amount amount_of(const struct heap_entry_row *row)
{
    uint64_t every = heap_header->sample_bytes;
    if (LIKELY(every == 0))
        return (struct amount){.count = 1, .bytes = row->size};
    struct heap_weight weight = heap_weigh(row->size, every, row->rounded_up);
    return (struct amount){.count = weight.count, .bytes = weight.bytes};
}

/* Beyond what is counted of each: how sure it is. */
static NOINLINE void count_sample(struct heap_cell *cell, uint64_t size)
{
    cell->samples++;
    cell->variance += heap_weigh(size, heap_header->sample_bytes, false).variance;
}

/* ---- entries ---- */

static inline struct heap_entry_row entry_of(struct heap_thread *thread, uint64_t size,
                                             uint32_t node)
{
    uint64_t every = heap_header->sample_bytes;
    size = LIKELY(size <= SIZE_MAX_KNOWN) ? size : SIZE_MAX_KNOWN;
    return (struct heap_entry_row){
        .size = size,
        .place = thread->place_index,
        .generation = generation_now(),
        .node = node,
        .tick = tick_now(),
        .rounded_up = UNLIKELY(every != 0) && heap_round_up(thread, size, every),
    };
}

/* Of memory that the parent allocated before the fork, live bytes know nothing. */
static inline bool is_inherited(const struct heap_entry_row *row)
{
    return row->generation != generation_now();
}

static NOINLINE void count_inherited(struct heap_thread *thread, const struct heap_entry_row *row)
{
    struct amount amount = amount_of(row);
    thread->place->inherited_frees += amount.count;
    thread->place->inherited_bytes += amount.bytes;
}

static inline void freed(struct heap_thread *thread, const struct heap_entry_row *row,
                         bool temporary)
{
    if (UNLIKELY(is_inherited(row))) {
        count_inherited(thread, row);
        return;
    }
    struct amount amount = amount_of(row);
    struct heap_cell *cell = cell_of(thread, row->node);
    heap_room_given(thread, amount.bytes);
    if (LIKELY(cell))
        cell_changes(cell);
    count_free(thread, cell, row, amount, temporary);
}

/* It is handed out anew, and nobody saw it freed. */
static NOINLINE void freed_unseen(struct heap_thread *thread, const struct heap_entry_row *row)
{
    thread->place->missed++;
    freed(thread, row, false);
}

/* Where the entry of what is at `memory` now goes; of what was there before it is told. */
static inline struct heap_entry_row *entry_for(struct heap_thread *thread, const void *memory)
{
    struct heap_entry_row *entry = heap_entry_find(memory);
    if (UNLIKELY(!entry)) {
        entry = heap_entry_make(memory);
        thread->place->no_entry += !entry;
    } else if (UNLIKELY(entry->node != 0)) {
        freed_unseen(thread, entry);
    }
    return entry;
}

static inline void allocated(struct heap_thread *thread, const void *memory,
                             const struct heap_entry_row *row, struct heap_cell *cell,
                             struct amount amount)
{
    count_allocation(thread, cell, row->size, amount);
    if (UNLIKELY(heap_header->sample_bytes != 0) && cell)
        count_sample(cell, row->size);
    thread->recent[thread->recent_next++ % RECENT] = memory;
}

void heap_book_allocated(struct heap_thread *thread, const void *memory, uint64_t size,
                         uint32_t node)
{
    struct heap_entry_row *entry = entry_for(thread, memory);
    struct heap_entry_row row = entry_of(thread, size, node);
    if (LIKELY(entry))
        *entry = row;
    struct amount amount = amount_of(&row);
    struct heap_cell *cell = cell_of(thread, node);
    heap_room_taken(thread, amount.bytes, row.tick);
    if (LIKELY(cell))
        cell_changes(cell);
    allocated(thread, memory, &row, cell, amount);
    if (UNLIKELY(heap_header->log))
        heap_log_allocated(thread, memory, size, node);
}

struct heap_entry_row heap_book_take(struct heap_thread *thread, const void *memory)
{
    (void)thread;
    struct heap_entry_row *entry = heap_entry_find(memory);
    struct heap_entry_row row = {0};
    if (UNLIKELY(!entry))
        return row;
    row = *entry;
    if (row.node != 0)
        entry->node = 0;
    return row;
}

void heap_book_freed(struct heap_thread *thread, const void *memory)
{
    struct heap_entry_row row = heap_book_take(thread, memory);
    if (UNLIKELY(row.node == 0)) {
        thread->place->unseen_frees += heap_header->sample_bytes == 0;
        return;
    }
    freed(thread, &row, is_temporary(thread, &row, memory, 0));
    if (UNLIKELY(heap_header->log))
        heap_log_freed(thread, memory);
}

void heap_book_put_back(struct heap_thread *thread, const void *memory,
                        const struct heap_entry_row *row)
{
    (void)thread;
    struct heap_entry_row *entry = heap_entry_find(memory);
    if (entry && row->node != 0)
        *entry = *row;
}

/* Both at once for the peak: what lives in between has never been. */
static void reallocated(struct heap_thread *thread, const void *before,
                        const struct heap_entry_row *old, const void *memory,
                        struct heap_entry_row *row)
{
    struct amount was = amount_of(old), is = amount_of(row);
    struct heap_cell *old_cell = cell_of(thread, old->node), *cell = cell_of(thread, row->node);
    if (is.bytes >= was.bytes)
        heap_room_taken(thread, is.bytes - was.bytes, row->tick);
    else
        heap_room_given(thread, was.bytes - is.bytes);
    if (old_cell)
        cell_changes(old_cell);
    if (cell)
        cell_changes(cell);
    count_free(thread, old_cell, old, was, is_temporary(thread, old, before, 0));
    allocated(thread, memory, row, cell, is);
    row->chain = old->chain;
    if (row->size <= old->size)
        return;
    row->chain += old->chain < CHAIN_MAX;
    if (cell)
        count_growth(cell, old, row, memory != before, is.count);
}

void heap_book_reallocated(struct heap_thread *thread, const void *before,
                           const struct heap_entry_row *row, const void *memory, uint64_t size,
                           uint32_t node)
{
    bool known = row->node != 0;
    thread->place->unseen_frees += before && !known && heap_header->sample_bytes == 0;
    if (UNLIKELY(heap_header->log) && known)
        heap_log_freed(thread, before);
    bool only_freed = !memory || node == 0;
    if (known && (only_freed || is_inherited(row)))
        freed(thread, row, is_temporary(thread, row, before, memory != NULL && node == 0));
    if (only_freed)
        return;
    if (!known || is_inherited(row)) {
        heap_book_allocated(thread, memory, size, node);
        return;
    }
    struct heap_entry_row *entry = entry_for(thread, memory);
    struct heap_entry_row now = entry_of(thread, size, node);
    reallocated(thread, before, row, memory, &now);
    if (LIKELY(entry))
        *entry = now;
    if (UNLIKELY(heap_header->log))
        heap_log_allocated(thread, memory, size, node);
}

void heap_book_mapped(struct heap_thread *thread, uint64_t bytes, bool unmapped, uint32_t node)
{
    struct heap_thread_place *place = thread->place;
    *(unmapped ? &place->unmapped : &place->mapped) += 1;
    *(unmapped ? &place->unmapped_bytes : &place->mapped_bytes) += bytes;
    struct heap_cell *cell = cell_of(thread, node);
    if (!cell || cell->node == NODE_ANY)
        return; /* that one is the heap's */
    cell->allocations++;
    cell->allocated_bytes += bytes;
    if (bytes > cell->size_max)
        cell->size_max = bytes;
}

/* Entries stay: the child has a copy of the memory. They are of another generation now. */
void heap_book_forked(void)
{
    heap_room = (struct heap_room){0};
}

bool heap_book_begin(void)
{
    heap_book_forked();
    return true;
}
