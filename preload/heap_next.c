/* Finds the functions behind the hooks, once. Whoever allocates before they are found is served
 * from a buffer here. */
#include "heap_next.h"

#include "find.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* What an older libc does not have, or another one. */
#pragma weak _dl_find_object

bool heap_nests, heap_cxx_plain;
uint64_t heap_allocator_start, heap_allocator_end;
struct heap_cxx heap_cxx;

/* ---- memory before there is any ---- */

char heap_boot[HEAP_BOOT_BYTES] __attribute__((aligned(4096)));
static size_t boot_used = 16;

/* The word before it says what glibc's malloc_usable_size() reads there: a piece of its own. */
static void *boot_memory(size_t alignment, size_t size)
{
    if (alignment < 16)
        alignment = 16;
    size_t bytes = (size + 15) / 16 * 16;
    size_t used = __atomic_load_n(&boot_used, __ATOMIC_RELAXED), at;
    do {
        at = (used + sizeof(uint64_t) + alignment - 1) / alignment * alignment;
        if (size > HEAP_BOOT_BYTES || at + bytes > HEAP_BOOT_BYTES) {
            errno = ENOMEM;
            return NULL;
        }
    } while (!__atomic_compare_exchange_n(&boot_used, &used, at + bytes, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    ((uint64_t *)(void *)(heap_boot + at))[-1] = (bytes + 16) | 2;
    return heap_boot + at;
}

void *heap_boot_realloc(void *memory, size_t size)
{
    size_t before = (((const uint64_t *)memory)[-1] & ~UINT64_C(7)) - 16;
    char *to = heap_next.malloc(size);
    const char *from = memory;
    for (size_t i = 0; to && i < before && i < size; i++)
        ((volatile char *)to)[i] = from[i];
    return to;
}

/* ---- as long as a function is not known ---- */

/* False: they are being looked for right now, by this very call. */
static bool find(void)
{
    return !heap_self.looking && heap_hooks_resolve();
}

static long kernel(long number, long a, long b, long c, long d, long e, long f)
{
    long r = heap_raw6(number, a, b, c, d, e, f);
    if (r >= 0 || r < -4095)
        return r;
    errno = (int)-r;
    return -1;
}

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static void *first_malloc(size_t size)
{
    return find() && heap_next.malloc != first_malloc ? heap_next.malloc(size)
                                                      : boot_memory(16, size);
}
static void *first_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (find() && heap_next.calloc != first_calloc)
        return heap_next.calloc(count, size);
    return __builtin_mul_overflow(count, size, &bytes) ? out_of_memory() : boot_memory(16, bytes);
}
static void *first_realloc(void *memory, size_t size)
{
    if (find() && heap_next.realloc != first_realloc)
        return heap_next.realloc(memory, size);
    return memory ? out_of_memory() : boot_memory(16, size);
}
static void *first_reallocarray(void *memory, size_t count, size_t size)
{
    size_t bytes;
    if (find() && heap_next.reallocarray != first_reallocarray)
        return heap_next.reallocarray(memory, count, size);
    /* A libc that has none, and a program that calls it nevertheless: by ours. */
    return __builtin_mul_overflow(count, size, &bytes) ? out_of_memory()
                                                       : heap_next.realloc(memory, bytes);
}
static void first_free(void *memory)
{
    if (find() && heap_next.free != first_free)
        heap_next.free(memory);
}
static void first_cfree(void *memory)
{
    if (find())
        heap_next.free(memory);
}
static int first_posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (find() && heap_next.posix_memalign != first_posix_memalign)
        return heap_next.posix_memalign(ret, alignment, size);
    void *memory = boot_memory(alignment, size);
    if (memory)
        *ret = memory;
    return memory ? 0 : ENOMEM;
}
static void *first_aligned_alloc(size_t alignment, size_t size)
{
    return find() && heap_next.aligned_alloc != first_aligned_alloc
               ? heap_next.aligned_alloc(alignment, size)
               : boot_memory(alignment, size);
}
static void *first_memalign(size_t alignment, size_t size)
{
    return find() && heap_next.memalign != first_memalign ? heap_next.memalign(alignment, size)
                                                          : boot_memory(alignment, size);
}
static void *first_valloc(size_t size)
{
    return find() && heap_next.valloc != first_valloc ? heap_next.valloc(size) : out_of_memory();
}
static void *first_pvalloc(size_t size)
{
    return find() && heap_next.pvalloc != first_pvalloc ? heap_next.pvalloc(size) : out_of_memory();
}
static size_t first_malloc_usable_size(void *memory)
{
    return find() && heap_next.malloc_usable_size != first_malloc_usable_size
               ? heap_next.malloc_usable_size(memory)
               : 0;
}
/* NOLINTNEXTLINE(bugprone-easily-swappable-parameters) */
static void *first_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (find() && heap_next.mmap != first_mmap)
        return heap_next.mmap(at, bytes, protection, flags, fd, offset);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return (void *)kernel(SYS_mmap, (long)at, (long)bytes, protection, flags, fd, offset);
}
static int first_munmap(void *at, size_t bytes)
{
    return find() && heap_next.munmap != first_munmap
               ? heap_next.munmap(at, bytes)
               : (int)kernel(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0);
}
/* NOLINTNEXTLINE(bugprone-easily-swappable-parameters) */
static void *first_mremap(void *at, size_t bytes, size_t wanted, int flags, void *to)
{
    if (find() && heap_next.mremap != first_mremap)
        return heap_next.mremap(at, bytes, wanted, flags, to);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return (void *)kernel(SYS_mremap, (long)at, (long)bytes, (long)wanted, flags, (long)to, 0);
}
static int first_brk(void *end)
{
    if (find() && heap_next.brk != first_brk)
        return heap_next.brk(end);
    errno = ENOMEM;
    return -1;
}
static void *first_sbrk(intptr_t bytes)
{
    return find() && heap_next.sbrk != first_sbrk ? heap_next.sbrk(bytes)
                                                  : (out_of_memory(), MAP_FAILED);
}
static int first_mlockall(int flags)
{
    return find() && heap_next.mlockall != first_mlockall
               ? heap_next.mlockall(flags)
               : (int)kernel(SYS_mlockall, flags, 0, 0, 0, 0, 0);
}
static int first_dlclose(void *handle)
{
    return find() && heap_next.dlclose != first_dlclose ? heap_next.dlclose(handle) : -1;
}

struct heap_next heap_next = {
    first_malloc,   first_calloc, first_realloc,        first_reallocarray,
    first_free,     first_cfree,  first_posix_memalign, first_aligned_alloc,
    first_memalign, first_valloc, first_pvalloc,        first_malloc_usable_size,
    first_mmap,     first_mmap,   first_munmap,         first_mremap,
    first_brk,      first_sbrk,   first_mlockall,       first_dlclose,
};

/* ---- looking ---- */

static bool is_of(const struct found *found, const char *const *names)
{
    for (; found->address && *names; names++)
        if (find_is_called(found->image, *names))
            return true;
    return false;
}

static void allocator_place(const void *code)
{
    struct dl_find_object found;
    if (!_dl_find_object || _dl_find_object((void *)(uintptr_t)code, &found) != 0)
        return;
    heap_allocator_start = (uint64_t)found.dlfo_map_start;
    heap_allocator_end = (uint64_t)found.dlfo_map_end;
}

static void look_cxx(void)
{
    heap_cxx_plain = true;
    struct found operator_new = find_next("_Znwm");
    if (!operator_new.address)
        return;
        /* NOLINTBEGIN(bugprone-macro-parentheses) */
#define HEAP_FIND(name, ...)                                                                       \
    heap_cxx.name = (__typeof__(heap_cxx.name))(uintptr_t)find_next(#name).address;
    HEAP_CXX_NEW(HEAP_FIND)
    HEAP_CXX_DELETE(HEAP_FIND)
#undef HEAP_FIND
    /* NOLINTEND(bugprone-macro-parentheses) */
    static const char *const system[] = {"libstdc++.so", "libc++.so", "libc++abi.so", NULL};
    heap_cxx_plain = is_of(&operator_new, system);
}

bool heap_hooks_resolve(void)
{
    static bool done;
    if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        return true;
    int saved = errno;
    heap_self.looking = true;
    struct heap_next found = heap_next;
    /* NOLINTBEGIN(bugprone-macro-parentheses) */
#define HEAP_FIND(type, name, arguments)                                                           \
    {                                                                                              \
        void *object_ = find_next(#name).address;                                                  \
        if (object_)                                                                               \
            found.name = (__typeof__(found.name))(uintptr_t)object_;                               \
    }
    HEAP_FUNCTIONS(HEAP_FIND)
#undef HEAP_FIND
    /* NOLINTEND(bugprone-macro-parentheses) */
    look_cxx();
    static const char *const system[] = {"libc.so", "libc-", "libc.musl", "ld-musl", NULL};
    struct found behind = find_next("malloc");
    bool libc = is_of(&behind, system);
    if (!libc && behind.address)
        allocator_place(behind.address);
    heap_nests = !libc || !heap_cxx_plain;
    heap_next = found;
    heap_self.looking = false;
    __atomic_store_n(&done, true, __ATOMIC_RELEASE);
    errno = saved;
    return true;
}

heap_new_fn *heap_cxx_find(const char *name)
{
    static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1"};
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        void *found = find_in(libraries[i], name).address;
        if (found)
            return (heap_new_fn *)(uintptr_t)found;
    }
    return NULL;
}
