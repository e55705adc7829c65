/* An allocator of a program's own: its realloc() calls its malloc() and free(), and operator new
 * is not its concern. Nothing is ever given again. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static char room[64 << 20] __attribute__((aligned(4096)));
static size_t used;

#define OWN __attribute__((noinline, used))

static void *take(size_t alignment, size_t size)
{
    for (;;) {
        size_t before = __atomic_load_n(&used, __ATOMIC_RELAXED);
        size_t at = (before + sizeof(size_t) + alignment - 1) & ~(alignment - 1);
        if (size > sizeof(room) || at + size > sizeof(room)) {
            errno = ENOMEM;
            return NULL;
        }
        if (!__atomic_compare_exchange_n(&used, &before, at + size, 0, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            continue;
        memcpy(room + at - sizeof(size), &size, sizeof(size));
        return room + at;
    }
}

OWN void *malloc(size_t size)
{
    return take(16, size);
}

OWN void free(void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

OWN void *calloc(size_t count, size_t size)
{
    return malloc(count * size); /* it is zero still */
}

OWN void *realloc(void *old, size_t size)
{
    size_t before = 0;
    void *memory = malloc(size);
    if (!memory || !old)
        return memory;
    memcpy(&before, (char *)old - sizeof(before), sizeof(before));
    memcpy(memory, old, before < size ? before : size);
    free(old);
    return memory;
}

OWN void *reallocarray(void *old, size_t count, size_t size)
{
    return realloc(old, count * size);
}

OWN int posix_memalign(void **ret, size_t alignment, size_t size)
{
    void *memory = take(alignment, size);
    if (!memory)
        return ENOMEM;
    *ret = memory;
    return 0;
}

OWN void *aligned_alloc(size_t alignment, size_t size)
{
    return take(alignment, size);
}

OWN void *memalign(size_t alignment, size_t size)
{
    return take(alignment, size);
}

OWN void *valloc(size_t size)
{
    return take(4096, size);
}

OWN void *pvalloc(size_t size)
{
    return take(4096, size);
}
