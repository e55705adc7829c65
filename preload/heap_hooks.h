/* What the hooks for C and for C++ share: counting around the function behind. */
#pragma once

#include "heap_next.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* It was not counted: a call that failed, that came from a signal handler into the library, or
 * while it is off. */
NOINLINE void hooks_odd(struct heap_thread *thread, void *memory, uint64_t size);
/* The same of a free; true: the memory is to be given back now. */
NOINLINE bool hooks_odd_free(void *memory);

/* Samples are taken, and no function of the allocator's calls another that is hooked: it may be
 * asked at once whether a call is one. */
static ALWAYS_INLINE bool hooks_sample(void)
{
    return heap_sampling && !heap_nests;
}

/* Before the function behind is called. */
static ALWAYS_INLINE void hooks_before(void)
{
    heap_self.last = NULL;
}

/* After it has returned `memory`, in the frame of the hook. */
static ALWAYS_INLINE void hooks_allocated(void *memory, uint64_t size, const struct heap_at *at)
{
    uint64_t mark;
    /* An inner call of the same one was counted, at its own stack. */
    if (UNLIKELY(heap_nests)) {
        if (heap_self.last == memory)
            return;
        heap_self.last = memory;
    }
    if (UNLIKELY(heap_sampling) && LIKELY(memory != NULL) && heap_book_passes(size))
        return;
    struct heap_thread *thread = heap_enter(&mark);
    if (UNLIKELY(!thread || !memory)) {
        hooks_odd(thread, memory, size);
        return;
    }
    if (heap_book_wants(thread, size)) {
        heap_book_expect(memory);
        heap_book_allocated(thread, memory, size, heap_walk(thread, at));
    }
    heap_leave();
}

/* Before memory is given back. False: it is not to be, now or at all. */
static ALWAYS_INLINE bool hooks_freed(void *memory)
{
    uint64_t mark;
    if (UNLIKELY(heap_is_boot(memory)))
        return false;
    if (UNLIKELY(heap_nests) && heap_self.freeing == memory)
        return true;
    if (UNLIKELY(heap_sampling) && heap_book_is_unsampled(memory))
        return true;
    struct heap_thread *thread = heap_enter(&mark);
    if (UNLIKELY(!thread))
        return hooks_odd_free(memory);
    heap_book_freed(thread, memory);
    heap_leave();
    return true;
}
