/* Inside the book: entries by address (heap_regions.c), the room below the peak
 * (heap_book_peak.c), what a sample stands for (heap_book_sample.c). */
#pragma once

#include "heap.h"

#pragma GCC visibility push(hidden)

/* ---- entries ---- */

/* An entry for each 16 bytes of address space, in regions that are mapped when something is
 * allocated there; a second plane has those of addresses that 16 does not divide, for allocators
 * that hand out pieces of 8 bytes. An entry needs no lock: memory belongs to one thread from
 * malloc()'s return to free(). Private memory, so that a fork copies it.
 *
 * Where pieces lie 32 bytes apart, an entry for each 32 bytes will do: half the memory to touch. If
 * the slot is another's all the same, the next plane has one. */
enum {
    HEAP_REGION_ROWS_SHIFT = 17,
    HEAP_REGION_ROWS = 1 << HEAP_REGION_ROWS_SHIFT,
    HEAP_REGION_PAGES = 1024, /* of 4096 bytes of address space, at most */
    HEAP_PLANES = 4,
    HEAP_MIDDLE_SHIFT = 38,
    HEAP_MIDDLE_REGIONS = 1 << (HEAP_MIDDLE_SHIFT - HEAP_REGION_ROWS_SHIFT - 4),
    HEAP_ADDRESS_BITS = 48,
    HEAP_MIDDLES = 1 << (HEAP_ADDRESS_BITS - HEAP_MIDDLE_SHIFT),
};
union heap_slot {
    struct heap_entry_row row;
    uint64_t words[2]; /* the same, at once: size and what its thread gives, node and tick */
};
enum {
    HEAP_SLOT_LOW_SHIFT = 38,
    HEAP_SLOT_PLACE_SHIFT = 40,
    HEAP_SLOT_GENERATION_SHIFT = 52,
    HEAP_SLOT_TICK_SHIFT = 32
};
#define HEAP_SLOT_SIZE_MAX ((UINT64_C(1) << HEAP_SLOT_LOW_SHIFT) - 1)
struct heap_middle {
    union heap_slot *regions[HEAP_MIDDLE_REGIONS];
};
struct heap_entries {
    uint8_t shift;       /* bytes of an entry: 16 or 32 */
    uint8_t plane_mask;  /* of the address in 8 bytes: in which plane it is, to begin with */
    bool planes_in_turn; /* there are entries in others than that */
    struct heap_middle *middles[HEAP_PLANES][HEAP_MIDDLES];
};
extern struct heap_entries heap_entries;

static inline uint64_t heap_address(const void *memory)
{
#if defined(__aarch64__)
    return (uint64_t)memory & ~(UINT64_C(0xff) << 56); /* a tag, if there is one */
#else
    return (uint64_t)memory;
#endif
}
static inline uint64_t heap_address_low(uint64_t address)
{
    return address >> 3 & 3;
}

/* NULL: nothing was allocated there so far, or there was no memory to know of it. */
static inline union heap_slot *heap_region_at(uint64_t address, uint64_t plane)
{
    uint64_t at = address >> HEAP_MIDDLE_SHIFT;
    if (UNLIKELY(at >= HEAP_MIDDLES))
        return NULL;
    struct heap_middle *middle = __atomic_load_n(&heap_entries.middles[plane][at],
                                                 __ATOMIC_ACQUIRE);
    if (UNLIKELY(!middle))
        return NULL;
    uint64_t number = address >> heap_entries.shift >> HEAP_REGION_ROWS_SHIFT;
    return __atomic_load_n(&middle->regions[number & (HEAP_MIDDLE_REGIONS - 1)], __ATOMIC_ACQUIRE);
}
static inline union heap_slot *heap_slot_at(uint64_t address, uint64_t plane)
{
    union heap_slot *region = heap_region_at(address, plane);
    return LIKELY(region) ? &region[address >> heap_entries.shift & (HEAP_REGION_ROWS - 1)] : NULL;
}
/* Where its entry is, if nothing else has taken the slot. */
static inline union heap_slot *heap_slot_first(const void *memory)
{
    uint64_t address = heap_address(memory);
    return heap_slot_at(address, address >> 3 & heap_entries.plane_mask);
}
/* How many samples live in a page, behind the region's entries: most have none, and who frees
 * there need not look for an entry. NULL: there is no region. */
static inline uint8_t *heap_samples_at(const void *memory)
{
    uint64_t address = heap_address(memory);
    union heap_slot *region = heap_region_at(address, address >> 3 & heap_entries.plane_mask);
    uint8_t *counts = (uint8_t *)(region + HEAP_REGION_ROWS);
    return LIKELY(region) ? &counts[address >> 12 & (HEAP_REGION_PAGES - 1)] : NULL;
}
/* With the entry of this memory; NULL: it has none. */
union heap_slot *heap_slot_known(const void *memory);
/* With that, or with none, for a piece of that size; NULL: no memory. */
union heap_slot *heap_slot_make(const void *memory, uint64_t size);

/* ---- room below the peak ---- */

/* How threads get at it. The upper bits count changes: who finds another number than before has
 * been overtaken. */
enum heap_room_way {
    HEAP_ROOM_COMMON = 0,    /* all of it is `spare` */
    HEAP_ROOM_LENT = 1,      /* threads have parts of it as their credit */
    HEAP_ROOM_CLIMB = 2,     /* live bytes are the peak: credits may fall below 0 */
    HEAP_ROOM_COLLECTED = 3, /* credits are being put together */
    HEAP_ROOM_WAYS = 4,      /* what a change adds */
};
struct heap_room {
    _Alignas(64) uint32_t way;
    uint32_t lock;
};
extern struct heap_room heap_room;

void heap_room_take(struct heap_thread *thread, uint64_t bytes, uint32_t tick);
void heap_room_give(struct heap_thread *thread, uint64_t bytes);

/* `bytes` more live than before. The only thread there is needs no atomics, as long as the way is
 * COMMON. Both tell whether live bytes are past the peak now. */
static inline bool heap_room_taken_alone(uint64_t bytes, uint32_t tick)
{
    struct heap_process *process = heap_process;
    int64_t spare = process->spare - (int64_t)bytes;
    process->spare = spare;
    if (spare >= 0)
        return false;
    process->peak_tick = tick;
    return true;
}

/* `bytes` less live. When they were past the peak, this is the moment to set it down. */
static inline void heap_room_given_alone(uint64_t bytes)
{
    struct heap_process *process = heap_process;
    int64_t spare = process->spare;
    if (spare < 0) {
        process->peak_bytes -= (uint64_t)spare;
        process->peak_epoch++;
        spare = 0;
    }
    process->spare = spare + (int64_t)bytes;
}
static inline bool heap_room_is_past_peak(void)
{
    return __atomic_load_n(&heap_process->spare, __ATOMIC_RELAXED) < 0;
}

/* ---- samples ---- */

/* What a piece of so many bytes stands for when one in `every` bytes is a sample. A function of
 * the size and of how it was rounded, so that a free takes away what was added. */
struct heap_weight {
    uint64_t count, bytes;
    double variance; /* of bytes */
};
struct heap_weight heap_weigh(uint64_t size, uint64_t every, bool rounded_up);
/* By chance, so that the number is right on average. */
bool heap_round_up(struct heap_thread *thread, uint64_t size, uint64_t every);

#pragma GCC visibility pop
