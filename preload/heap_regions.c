/* Entries by address: tables that grow where something is allocated. */
#include "heap_book.h"

#include <sys/mman.h>
#include <sys/syscall.h>

struct heap_entries heap_entries = {.shift = 4, .plane_mask = 1};

enum {
    ENTRIES_BYTES = HEAP_REGION_ROWS * sizeof(union heap_slot),
    REGION_BYTES = ENTRIES_BYTES + 4096,
    SMALL = 1024,
};

/* Of two threads that make the same at once one gives its own back. */
static void *publish(void **at, void *fresh, size_t bytes)
{
    void *there = NULL;
    if (!fresh ||
        __atomic_compare_exchange_n(at, &there, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    heap_raw6(SYS_munmap, (long)fresh, (long)bytes, 0, 0, 0, 0);
    return there;
}

/* On large pages, if the system has them for those who ask: a heap that grows by small pieces
 * touches all of it, and would fault at every page of ours as it does at every page of its own. */
static void *region_map_dense(void)
{
    char *memory = heap_map(ENTRIES_BYTES + REGION_BYTES);
    if (!memory)
        return NULL;
    uint64_t before = -(uint64_t)memory % ENTRIES_BYTES;
    if (before > 0)
        heap_raw6(SYS_munmap, (long)memory, (long)before, 0, 0, 0, 0);
    memory += before;
    if (before < ENTRIES_BYTES)
        heap_raw6(SYS_munmap, (long)(memory + REGION_BYTES), (long)(ENTRIES_BYTES - before), 0, 0,
                  0, 0);
    heap_advise(memory, ENTRIES_BYTES, MADV_HUGEPAGE);
    return memory;
}

/* A heap grows upwards: it is one if there is something below. The first of each has small pages,
 * as do those of large pieces: there may be many, with little in each. */
static void *region_make(struct heap_middle *middle, uint64_t number, uint64_t size)
{
    bool dense = size < SMALL && heap_header->sample_bytes == 0 && number > 0 &&
                 __atomic_load_n(&middle->regions[number - 1], __ATOMIC_RELAXED);
    void *fresh = dense ? region_map_dense() : heap_map(REGION_BYTES);
    return publish((void **)&middle->regions[number], fresh, REGION_BYTES);
}

static union heap_slot *slot_make(uint64_t address, uint64_t plane, uint64_t size)
{
    struct heap_middle **at = &heap_entries.middles[plane][address >> HEAP_MIDDLE_SHIFT];
    struct heap_middle *middle = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (!middle)
        middle = publish((void **)at, heap_map(sizeof(*middle)), sizeof(*middle));
    if (!middle)
        return NULL;
    uint64_t number = address >> heap_entries.shift >> HEAP_REGION_ROWS_SHIFT;
    number &= HEAP_MIDDLE_REGIONS - 1;
    if (!__atomic_load_n(&middle->regions[number], __ATOMIC_ACQUIRE) &&
        !region_make(middle, number, size))
        return NULL;
    return heap_slot_at(address, plane);
}

static bool is_of(const union heap_slot *slot, uint64_t address)
{
    return slot && slot->row.node != 0 && slot->row.low == heap_address_low(address);
}

union heap_slot *heap_slot_known(const void *memory)
{
    uint64_t address = heap_address(memory);
    union heap_slot *slot = heap_slot_first(memory);
    if (is_of(slot, address))
        return slot;
    for (uint64_t plane = 1; heap_entries.planes_in_turn && plane < HEAP_PLANES; plane++) {
        slot = heap_slot_at(address, plane);
        if (is_of(slot, address))
            return slot;
    }
    return NULL;
}

/* As many planes as there can be addresses to a slot: one of them is free. */
union heap_slot *heap_slot_make(const void *memory, uint64_t size)
{
    uint64_t address = heap_address(memory);
    if (address >> HEAP_ADDRESS_BITS)
        return NULL;
    union heap_slot *slot = heap_slot_known(memory);
    uint64_t plane = address >> 3 & heap_entries.plane_mask;
    uint64_t planes = heap_entries.plane_mask != 0 ? plane + 1 : HEAP_PLANES;
    for (; !slot && plane < planes; plane++) {
        slot = slot_make(address, plane, size);
        if (!slot)
            return NULL;
        if (slot->row.node != 0)
            slot = NULL;
        else if (plane > 0 && heap_entries.plane_mask == 0)
            heap_entries.planes_in_turn = true;
    }
    return slot;
}
