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
#define TICK_MASK (UINT32_MAX >> 1)
/* What must be as expected for an entry to be the memory's, in this process. */
#define SLOT_KEY (UINT64_C(3) << HEAP_SLOT_LOW_SHIFT | UINT64_C(0xff) << HEAP_SLOT_GENERATION_SHIFT)

/* What one call changes: 1 and its size, or what the sample stands for. */
struct amount {
    uint64_t count, bytes;
};

/* Only its thread writes it; a reader sees it whole. */
static inline void add(uint64_t *counter, uint64_t more)
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
}

static uint32_t tick_now(void)
{
    return __atomic_load_n(&heap_header->tick, __ATOMIC_RELAXED) & TICK_MASK;
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
    cell->tid = thread->place->tid;
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
static inline void cell_changes(struct heap_cell *cell, bool past_peak)
{
    uint32_t epoch = __atomic_load_n(&heap_process->peak_epoch, __ATOMIC_RELAXED);
    if (past_peak || LIKELY(cell->epoch == epoch))
        return;
    cell->peak_count = (int64_t)(cell->allocations - cell->frees);
    cell->peak_bytes = (int64_t)(cell->allocated_bytes - cell->freed_bytes);
    __atomic_store_n(&cell->epoch, epoch, __ATOMIC_RELEASE);
}

/* ---- counts ---- */

static inline void count_allocation(struct heap_thread *thread, struct heap_cell *cell,
                                    uint64_t size, struct amount amount)
{
    add(&thread->place->sizes[heap_bucket(size, HEAP_SIZES)], amount.count);
    if (UNLIKELY(!cell))
        return;
    add(&cell->allocations, amount.count);
    add(&cell->allocated_bytes, amount.bytes);
    if (UNLIKELY(size > cell->size_max))
        cell->size_max = size;
}

static NOINLINE bool is_among_recent(const struct heap_thread *thread, const void *memory,
                                     uint32_t ago)
{
    uint32_t within = heap_header->temporary_within;
    for (uint32_t i = ago; i < within + ago && i < RECENT; i++)
        if (thread->recent[(thread->recent_next - 1 - i) % RECENT] == memory)
            return true;
    return false;
}

/* `own`: it is the thread's; another one's may lie where it had one of its own. `ago`: allocations
 * of the thread since, that do not count. */
static inline bool is_temporary(const struct heap_thread *thread, const void *memory, bool own,
                                uint32_t ago)
{
    if (UNLIKELY(heap_header->temporary_within != 1))
        return own && is_among_recent(thread, memory, ago);
    return own && thread->recent[(thread->recent_next - 1 - ago) % RECENT] == memory;
}

static inline void count_free(struct heap_thread *thread, struct heap_cell *cell, uint32_t tick,
                              struct amount amount, bool temporary)
{
    uint32_t lived = (tick_now() - tick) & TICK_MASK;
    add(&thread->place->lives[heap_bucket(lived, HEAP_LIVES)], amount.count);
    if (UNLIKELY(!cell))
        return;
    add(&cell->frees, amount.count);
    add(&cell->freed_bytes, amount.bytes);
    if (temporary) {
        add(&cell->temporary, amount.count);
        add(&cell->temporary_bytes, amount.bytes);
    }
    if (lived > 0)
        add(&cell->lived_ticks, lived * amount.count);
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
static void count_sample(struct heap_cell *cell, uint64_t size)
{
    cell->samples++;
    cell->variance += heap_weigh(size, heap_header->sample_bytes, false).variance;
}

/* ---- entries ---- */

static inline struct heap_entry_row entry_of(struct heap_thread *thread, const void *memory,
                                             uint64_t size, uint32_t node)
{
    uint64_t every = heap_header->sample_bytes;
    size = LIKELY(size <= HEAP_SLOT_SIZE_MAX) ? size : HEAP_SLOT_SIZE_MAX;
    return (struct heap_entry_row){
        .size = size,
        .low = heap_address_low(heap_address(memory)),
        .place = thread->place_index,
        .generation = (uint8_t)thread->generation,
        .node = node,
        .tick = tick_now(),
        .rounded_up = UNLIKELY(every != 0) && heap_round_up(thread, size, every),
    };
}

/* Of memory that the parent allocated before the fork, live bytes know nothing. */
static inline bool is_inherited(const struct heap_thread *thread, const struct heap_entry_row *row)
{
    return row->generation != (uint8_t)thread->generation;
}

static inline bool is_own(const struct heap_thread *thread, const struct heap_entry_row *row)
{
    return row->place == thread->place_index;
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
    if (UNLIKELY(is_inherited(thread, row))) {
        count_inherited(thread, row);
        return;
    }
    struct amount amount = amount_of(row);
    struct heap_cell *cell = cell_of(thread, row->node);
    heap_room_give(thread, amount.bytes);
    if (LIKELY(cell))
        cell_changes(cell, heap_room_is_past_peak());
    count_free(thread, cell, row->tick, amount, temporary);
}

/* It is handed out anew, and nobody saw it freed. */
static NOINLINE void freed_unseen(struct heap_thread *thread, const struct heap_entry_row *row)
{
    thread->place->missed++;
    freed(thread, row, false);
}

/* More or fewer samples in the page of that entry. What is too many to count stays so. */
static NOINLINE void page_add(const void *memory, int change)
{
    uint8_t *samples = heap_samples_at(memory);
    uint8_t now = samples ? __atomic_load_n(samples, __ATOMIC_RELAXED) : UINT8_MAX;
    while (now != UINT8_MAX &&
           !__atomic_compare_exchange_n(samples, &now, (uint8_t)(now + change), false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

bool heap_book_is_unsampled(const void *memory)
{
    const uint8_t *samples = heap_samples_at(memory);
    return !samples || __atomic_load_n(samples, __ATOMIC_RELAXED) == 0;
}

/* Where the entry of what is at `memory` now goes; of what was there before it is told. */
static union heap_slot *slot_for(struct heap_thread *thread, const void *memory, uint64_t size)
{
    union heap_slot *slot = heap_slot_make(memory, size);
    thread->place->no_entry += !slot;
    if (slot && slot->row.node != 0)
        freed_unseen(thread, &slot->row);
    else if (slot && heap_header->sample_bytes != 0)
        page_add(memory, 1);
    return slot;
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

/* A thread that was made anew, though its cells may be those of one before. */
static void thread_begin(struct heap_thread *thread)
{
    thread->entry_base = (uint64_t)thread->place_index << HEAP_SLOT_PLACE_SHIFT |
                         (thread->generation & UINT8_MAX) << HEAP_SLOT_GENERATION_SHIFT;
}

static NOINLINE void allocated_any(struct heap_thread *thread, const void *memory, uint64_t size,
                                   uint32_t node)
{
    thread_begin(thread);
    union heap_slot *slot = slot_for(thread, memory, size);
    struct heap_entry_row row = entry_of(thread, memory, size, node);
    if (slot)
        slot->row = row;
    struct amount amount = amount_of(&row);
    struct heap_cell *cell = cell_of(thread, node);
    heap_room_take(thread, amount.bytes, row.tick);
    if (cell)
        cell_changes(cell, heap_room_is_past_peak());
    allocated(thread, memory, &row, cell, amount);
    if (heap_header->log)
        heap_log_allocated(thread, memory, size, node);
}

static NOINLINE void freed_any(struct heap_thread *thread, const void *memory)
{
    thread_begin(thread);
    struct heap_entry_row row = heap_book_take(thread, memory);
    if (row.node == 0) {
        thread->place->unseen_frees += heap_header->sample_bytes == 0;
        return;
    }
    freed(thread, &row, is_temporary(thread, memory, is_own(thread, &row), 0));
    if (heap_header->log)
        heap_log_freed(thread, memory);
}

/* ---- the same for what is usual: every call counts, no log, all is known ---- */

bool heap_sampling;
static bool usual; /* in this process */

/* Number + 1. */
static inline uint32_t cell_known(const struct heap_thread *thread, uint32_t node)
{
    return LIKELY(thread->cell_of) ? thread->cell_of[node] : 0;
}

static inline bool room_is_simple(const struct heap_thread *thread)
{
    return thread->alone && heap_room.way % HEAP_ROOM_WAYS == HEAP_ROOM_COMMON;
}

/* False: nothing is done, there is more to it. */
static inline __attribute__((always_inline)) bool allocated_usual(struct heap_thread *thread,
                                                                  const void *memory, uint64_t size,
                                                                  uint32_t node, bool shared)
{
    union heap_slot *slot = heap_slot_first(memory);
    uint32_t known = LIKELY(thread->entry_base != 0) ? cell_known(thread, node) : 0;
    if (UNLIKELY(!slot || known == 0 || (uint32_t)slot->words[1] != 0 || size > HEAP_SLOT_SIZE_MAX))
        return false;
    struct heap_cell *cell = &heap_cells[known - 1];
    uint32_t tick = tick_now();
    uint64_t low = heap_address_low(heap_address(memory)) << HEAP_SLOT_LOW_SHIFT;
    __atomic_store_n(&slot->words[0], thread->entry_base | low | size, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->words[1], (uint64_t)tick << HEAP_SLOT_TICK_SHIFT | node,
                     __ATOMIC_RELAXED);
    if (shared) {
        heap_room_take(thread, size, tick);
        cell_changes(cell, heap_room_is_past_peak());
    } else {
        cell_changes(cell, heap_room_taken_alone(size, tick));
    }
    count_allocation(thread, cell, size, (struct amount){.count = 1, .bytes = size});
    thread->recent[thread->recent_next++ % RECENT] = memory;
    return true;
}

static inline __attribute__((always_inline)) bool freed_usual(struct heap_thread *thread,
                                                              const void *memory, bool shared)
{
    union heap_slot *slot = heap_slot_first(memory);
    if (UNLIKELY(!slot))
        return false;
    /* In two words, as it was written: the CPU hands on only what was stored at once. */
    uint64_t first = __atomic_load_n(&slot->words[0], __ATOMIC_RELAXED);
    uint64_t second = __atomic_load_n(&slot->words[1], __ATOMIC_RELAXED);
    uint64_t low = heap_address_low(heap_address(memory)) << HEAP_SLOT_LOW_SHIFT;
    uint64_t differs = first ^ (thread->entry_base | low);
    if (UNLIKELY((uint32_t)second == 0 || (differs & SLOT_KEY) != 0))
        return false;
    uint32_t known = cell_known(thread, (uint32_t)second);
    if (UNLIKELY(known == 0))
        return false;
    struct heap_cell *cell = &heap_cells[known - 1];
    uint64_t size = first & HEAP_SLOT_SIZE_MAX;
    __atomic_store_n(&slot->words[1], 0, __ATOMIC_RELAXED);
    if (shared)
        heap_room_give(thread, size);
    else
        heap_room_given_alone(size);
    cell_changes(cell, shared && heap_room_is_past_peak());
    bool own = (differs >> HEAP_SLOT_PLACE_SHIFT) % HEAP_THREADS_MAX == 0;
    count_free(thread, cell, (uint32_t)(second >> HEAP_SLOT_TICK_SHIFT),
               (struct amount){.count = 1, .bytes = size}, is_temporary(thread, memory, own, 0));
    return true;
}

static NOINLINE void allocated_shared(struct heap_thread *thread, const void *memory, uint64_t size,
                                      uint32_t node)
{
    if (UNLIKELY(!usual || !allocated_usual(thread, memory, size, node, true)))
        allocated_any(thread, memory, size, node);
}

static NOINLINE void freed_shared(struct heap_thread *thread, const void *memory)
{
    if (UNLIKELY(!usual || !freed_usual(thread, memory, true)))
        freed_any(thread, memory);
}

void heap_book_expect(const void *memory)
{
    __builtin_prefetch(heap_slot_first(memory), 1);
}

void heap_book_allocated(struct heap_thread *thread, const void *memory, uint64_t size,
                         uint32_t node)
{
    if (UNLIKELY(!usual || !room_is_simple(thread)))
        allocated_shared(thread, memory, size, node);
    else if (UNLIKELY(!allocated_usual(thread, memory, size, node, false)))
        allocated_any(thread, memory, size, node);
}

void heap_book_freed(struct heap_thread *thread, const void *memory)
{
    if (UNLIKELY(!usual && heap_sampling && heap_book_is_unsampled(memory)))
        return;
    if (UNLIKELY(!usual || !room_is_simple(thread)))
        freed_shared(thread, memory);
    else if (UNLIKELY(!freed_usual(thread, memory, false)))
        freed_any(thread, memory);
}

/* ---- realloc() ---- */

struct heap_entry_row heap_book_take(struct heap_thread *thread, const void *memory)
{
    (void)thread;
    bool sampled = heap_header->sample_bytes != 0;
    union heap_slot *slot = sampled && heap_book_is_unsampled(memory) ? NULL
                                                                      : heap_slot_known(memory);
    union heap_slot was = {.words = {0, 0}};
    if (!slot)
        return was.row;
    if (sampled)
        page_add(memory, -1);
    was.words[0] = __atomic_load_n(&slot->words[0], __ATOMIC_RELAXED);
    was.words[1] = __atomic_load_n(&slot->words[1], __ATOMIC_RELAXED);
    __atomic_store_n(&slot->words[1], 0, __ATOMIC_RELAXED);
    return was.row;
}

void heap_book_put_back(struct heap_thread *thread, const void *memory,
                        const struct heap_entry_row *row)
{
    union heap_slot *slot = row->node != 0 ? slot_for(thread, memory, row->size) : NULL;
    if (slot)
        slot->row = *row;
}

/* Both at once for the peak: what lives in between has never been. */
static void reallocated(struct heap_thread *thread, const void *before,
                        const struct heap_entry_row *old, const void *memory,
                        struct heap_entry_row *row)
{
    struct amount was = amount_of(old), is = amount_of(row);
    struct heap_cell *old_cell = cell_of(thread, old->node), *cell = cell_of(thread, row->node);
    if (is.bytes >= was.bytes)
        heap_room_take(thread, is.bytes - was.bytes, row->tick);
    else
        heap_room_give(thread, was.bytes - is.bytes);
    if (old_cell)
        cell_changes(old_cell, heap_room_is_past_peak());
    if (cell)
        cell_changes(cell, heap_room_is_past_peak());
    count_free(thread, old_cell, old->tick, was,
               is_temporary(thread, before, is_own(thread, old), 0));
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
    if (known && (only_freed || is_inherited(thread, row)))
        freed(thread, row, is_temporary(thread, before, is_own(thread, row), memory && node == 0));
    if (only_freed)
        return;
    if (!known || is_inherited(thread, row)) {
        heap_book_allocated(thread, memory, size, node);
        return;
    }
    union heap_slot *slot = slot_for(thread, memory, size);
    struct heap_entry_row now = entry_of(thread, memory, size, node);
    reallocated(thread, before, row, memory, &now);
    if (LIKELY(slot))
        slot->row = now;
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
    heap_sampling = heap_header->sample_bytes != 0;
    usual = !heap_sampling && !heap_header->log;
}

bool heap_book_begin(bool apart)
{
    heap_entries.shift = apart ? 5 : 4;
    heap_entries.plane_mask = apart ? 0 : 1;
    heap_book_forked();
    return true;
}
