/* An allocator that may be interrupted anywhere, and asked again there: what signal handlers do
 * with it is right, so that it can be counted. Nothing is given out twice. Its calloc() calls
 * malloc(), as others do. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc has names of its own */

#define ARENA_BYTES ((size_t)8 << 30)

static char *arena;
static size_t used;

#define EXPORTED __attribute__((visibility("default"), noinline))

static char *begin(void)
{
    char *memory = __atomic_load_n(&arena, __ATOMIC_ACQUIRE), *none = NULL;
    if (memory)
        return memory;
    memory = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    if (__atomic_compare_exchange_n(&arena, &none, memory, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return memory;
    munmap(memory, ARENA_BYTES);
    return none;
}

/* The size stands before the memory. */
EXPORTED void *malloc(size_t size)
{
    char *memory = begin();
    size_t bytes = (size + 31) / 16 * 16;
    if (size >= ARENA_BYTES / 4) {
        errno = ENOMEM;
        return NULL;
    }
    size_t at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
    if (at + bytes > ARENA_BYTES)
        abort();
    *(size_t *)(void *)(memory + at) = size;
    return memory + at + 16;
}

EXPORTED void free(void *memory)
{
    (void)memory;
}

size_t malloc_usable_size(void *memory);
EXPORTED size_t malloc_usable_size(void *memory)
{
    return memory ? ((const size_t *)memory)[-2] : 0;
}

static void *(*volatile do_malloc)(size_t) = malloc;

EXPORTED void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return do_malloc(bytes); /* never used before: empty */
}

EXPORTED void *realloc(void *memory, size_t size)
{
    void *to = do_malloc(size);
    size_t had = malloc_usable_size(memory);
    if (to && memory)
        memcpy(to, memory, had < size ? had : size);
    return to;
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
