/* Entries by address: tables that grow where something is allocated. */
#include "heap_book.h"

#include <sys/syscall.h>

struct heap_middle *heap_middles[2][HEAP_MIDDLES];

/* Maps what is missing; of two threads that do so at once one gives its own back. */
static void *made(void **slot, size_t bytes)
{
    void *there = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (there)
        return there;
    void *fresh = heap_map(bytes);
    if (!fresh)
        return NULL;
    if (__atomic_compare_exchange_n(slot, &there, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    heap_raw6(SYS_munmap, (long)fresh, (long)bytes, 0, 0, 0, 0);
    return there;
}

union heap_slot *heap_slot_make(const void *memory)
{
    uint64_t address = heap_address(memory);
    if (address >> HEAP_ADDRESS_BITS)
        return NULL;
    struct heap_middle *middle = made(
        (void **)&heap_middles[address >> 3 & 1][address >> HEAP_MIDDLE_SHIFT],
        sizeof(struct heap_middle));
    if (!middle)
        return NULL;
    uint64_t at = address >> HEAP_REGION_SHIFT & (HEAP_MIDDLE_REGIONS - 1);
    if (!made((void **)&middle->regions[at], HEAP_REGION_ROWS * sizeof(union heap_slot)))
        return NULL;
    return heap_slot_find(memory);
}
