/* What stands in for the walk and the book until they are there. */
#include "heap.h"

#define WEAK __attribute__((weak))

WEAK uint32_t heap_walk(struct heap_thread *thread, const struct heap_at *at)
{
    (void)thread, (void)at;
    return 1;
}
WEAK struct heap_walker *heap_walker_make(void)
{
    return heap_map(4096);
}
WEAK void heap_walker_forget(struct heap_walker *walker)
{
    (void)walker;
}
WEAK void heap_walk_images_changed(bool gone)
{
    (void)gone;
}
WEAK void heap_walk_forked(void)
{
}
WEAK bool heap_book_wants_sample(struct heap_thread *thread)
{
    (void)thread;
    return true;
}
WEAK void heap_book_allocated(struct heap_thread *thread, const void *memory, uint64_t size,
                              uint32_t node)
{
    (void)thread, (void)memory, (void)size, (void)node;
}
WEAK void heap_book_freed(struct heap_thread *thread, const void *memory)
{
    (void)thread, (void)memory;
}
WEAK struct heap_entry_row heap_book_take(struct heap_thread *thread, const void *memory)
{
    (void)thread, (void)memory;
    return (struct heap_entry_row){0};
}
WEAK void heap_book_put_back(struct heap_thread *thread, const void *memory,
                             const struct heap_entry_row *row)
{
    (void)thread, (void)memory, (void)row;
}
WEAK void heap_book_reallocated(struct heap_thread *thread, const void *before,
                                const struct heap_entry_row *row, const void *memory, uint64_t size,
                                uint32_t node)
{
    (void)thread, (void)before, (void)row, (void)memory, (void)size, (void)node;
}
WEAK void heap_book_mapped(struct heap_thread *thread, uint64_t bytes, bool unmapped, uint32_t node)
{
    (void)thread, (void)bytes, (void)unmapped, (void)node;
}
WEAK void heap_book_forked(void)
{
}
WEAK bool heap_book_begin(void)
{
    return true;
}
