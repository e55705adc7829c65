/* Hooks on the functions of C that allocate and free. An allocation is counted after the real
 * call has returned it, a free before the real call: in between nobody else can have it. */
#include "heap_hooks.h"

#include "find.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Our own, whoever else defines one. */
extern void *own_malloc(size_t size) __THROW
    __attribute__((malloc, alloc_size(1), alias("malloc"), visibility("hidden")));

/* Read from the tables of the images, and never called: this may be asked from inside the mmap() of
 * a program's own malloc(), which has a lock of its own by then. */
bool heap_hooks_are_first(void)
{
    return find_first("malloc").address == (void *)own_malloc;
}

void hooks_odd(struct heap_thread *thread, void *memory, uint64_t size)
{
    if (!thread) {
        if (memory)
            (void)heap_put_off(memory, size, false);
        return;
    }
    thread->place->failed++;
    heap_leave();
}

bool hooks_odd_free(void *memory)
{
    return !heap_put_off(memory, 0, true);
}

/* Jumped to from the hook: the frame is where the hook's would be. */
static NOINLINE void *malloc_counted(size_t size)
{
    struct heap_at at = HEAP_HERE(HEAP_MALLOC);
    hooks_before();
    void *memory = heap_next.malloc(size);
    hooks_allocated(memory, size, &at);
    return memory;
}

EXPORT void *malloc(size_t size)
{
    if (UNLIKELY(hooks_sample()) && heap_book_passes(size))
        return heap_next.malloc(size);
    return malloc_counted(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    struct heap_at at = HEAP_HERE(HEAP_CALLOC);
    hooks_before();
    void *memory = heap_next.calloc(count, size);
    hooks_allocated(memory, count * size, &at); /* it failed if that is too much */
    return memory;
}

static NOINLINE void free_counted(void *memory)
{
    if (LIKELY(hooks_freed(memory)))
        heap_next.free(memory);
}

EXPORT void free(void *memory)
{
    if (UNLIKELY(memory == NULL))
        return;
    if (UNLIKELY(hooks_sample()) && !heap_is_boot(memory) && heap_book_is_unsampled(memory))
        heap_next.free(memory);
    else
        free_counted(memory);
}

EXPORT void cfree(void *memory);
EXPORT void cfree(void *memory)
{
    if (memory && hooks_freed(memory))
        heap_next.cfree(memory);
}

/* ---- realloc ---- */

/* Taken out before the real call, so that whoever gets this address next is alone with it. */
static bool grown_take(void *memory, struct heap_entry_row *ret)
{
    uint64_t mark;
    struct heap_thread *thread = heap_enter(&mark);
    if (!thread)
        return false;
    *ret = heap_book_take(thread, memory);
    heap_leave();
    return true;
}

static ALWAYS_INLINE void grown_done(void *before, const struct heap_entry_row *row, void *memory,
                                     size_t size, const struct heap_at *at)
{
    uint64_t mark;
    struct heap_thread *thread = heap_enter(&mark);
    if (!thread)
        return; /* it was stopped in between */
    if (!memory) {
        heap_book_put_back(thread, before, row);
        thread->place->failed++;
    } else if (UNLIKELY(heap_nests) && heap_self.last == memory) {
        heap_book_reallocated(thread, before, row, NULL, 0, 0); /* an inner malloc() was counted */
    } else {
        uint32_t node = heap_book_wants(thread, size) ? heap_walk(thread, at) : 0;
        heap_book_reallocated(thread, before, row, memory, size, node);
    }
    heap_leave();
}

/* In a signal handler that has interrupted the library: what is freed has to wait. */
static NOINLINE void *grown_later(void *before, size_t size)
{
    size_t had = heap_next.malloc_usable_size(before);
    if (!heap_self.busy || had == 0)
        return heap_next.realloc(before, size);
    void *memory = heap_next.malloc(size);
    if (!memory)
        return NULL;
    __builtin_memcpy(memory, before, had < size ? had : size);
    (void)heap_put_off(memory, size, false);
    if (!heap_put_off(before, 0, true))
        heap_next.free(before);
    return memory;
}

static ALWAYS_INLINE void *grown(void *before, size_t size, const struct heap_at *at)
{
    struct heap_entry_row row;
    if (UNLIKELY(heap_is_boot(before)))
        return heap_boot_realloc(before, size);
    if (UNLIKELY(!before || (heap_nests && heap_self.freeing == before))) {
        hooks_before();
        void *memory = heap_next.realloc(before, size);
        hooks_allocated(memory, size, at);
        return memory;
    }
    if (UNLIKELY(size == 0)) {
        /* A free that may return something nevertheless. */
        if (!hooks_freed(before))
            return NULL;
        void *memory = heap_next.realloc(before, size);
        if (memory)
            hooks_allocated(memory, size, at);
        return memory;
    }
    if (UNLIKELY(!grown_take(before, &row)))
        return grown_later(before, size);
    const void *outer = heap_self.freeing;
    heap_self.freeing = before;
    hooks_before();
    void *memory = heap_next.realloc(before, size);
    heap_self.freeing = outer;
    grown_done(before, &row, memory, size, at);
    return memory;
}

EXPORT void *realloc(void *memory, size_t size)
{
    struct heap_at at = HEAP_HERE(HEAP_REALLOC);
    return grown(memory, size, &at);
}

EXPORT void *reallocarray(void *memory, size_t count, size_t size)
{
    struct heap_at at = HEAP_HERE(HEAP_REALLOCARRAY);
    size_t bytes;
    if (!__builtin_mul_overflow(count, size, &bytes))
        return grown(memory, bytes, &at);
    void *none = heap_next.reallocarray(memory, count, size);
    hooks_allocated(none, 0, &at);
    return none;
}

/* ---- with an alignment ---- */

EXPORT int posix_memalign(void **ret, size_t alignment, size_t size)
{
    struct heap_at at = HEAP_HERE(HEAP_POSIX_MEMALIGN);
    hooks_before();
    int r = heap_next.posix_memalign(ret, alignment, size);
    hooks_allocated(r == 0 ? *ret : NULL, size, &at);
    return r;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    struct heap_at at = HEAP_HERE(HEAP_ALIGNED_ALLOC);
    hooks_before();
    void *memory = heap_next.aligned_alloc(alignment, size);
    hooks_allocated(memory, size, &at);
    return memory;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    struct heap_at at = HEAP_HERE(HEAP_MEMALIGN);
    hooks_before();
    void *memory = heap_next.memalign(alignment, size);
    hooks_allocated(memory, size, &at);
    return memory;
}

EXPORT void *valloc(size_t size)
{
    struct heap_at at = HEAP_HERE(HEAP_VALLOC);
    hooks_before();
    void *memory = heap_next.valloc(size);
    hooks_allocated(memory, size, &at);
    return memory;
}

EXPORT void *pvalloc(size_t size)
{
    struct heap_at at = HEAP_HERE(HEAP_PVALLOC);
    hooks_before();
    void *memory = heap_next.pvalloc(size);
    hooks_allocated(memory, size, &at);
    return memory;
}
