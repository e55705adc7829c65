/* Hooks on memory that a program asks the kernel for by itself, apart from the heap; on dlclose(),
 * after which code may be another; and on prctl(), after which the kernel may kill whoever asks it
 * for more than was foreseen. dlopen() has none: it looks at who calls it. */
#include "heap_hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NOLINTNEXTLINE(bugprone-easily-swappable-parameters) */
static NOINLINE void mapped(uint64_t bytes, bool unmapped, const struct heap_at *at)
{
    uint64_t mark;
    if (at->pc - heap_allocator_start < heap_allocator_end - heap_allocator_start)
        return; /* the allocator's, for the heap */
    struct heap_thread *thread = heap_enter(&mark);
    if (!thread)
        return;
    heap_book_mapped(thread, bytes, unmapped, heap_walk(thread, at));
    heap_leave();
}

static void changed(int64_t bytes, const struct heap_at *at)
{
    mapped(bytes < 0 ? (uint64_t)-bytes : (uint64_t)bytes, bytes < 0, at);
}

EXPORT void *mmap(void *wanted, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    struct heap_at at = HEAP_HERE(HEAP_MMAP);
    void *memory = heap_next.mmap(wanted, bytes, protection, flags, fd, offset);
    if (memory != MAP_FAILED)
        mapped(bytes, false, &at);
    return memory;
}

EXPORT void *mmap64(void *wanted, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    struct heap_at at = HEAP_HERE(HEAP_MMAP);
    void *memory = heap_next.mmap64(wanted, bytes, protection, flags, fd, offset);
    if (memory != MAP_FAILED)
        mapped(bytes, false, &at);
    return memory;
}

EXPORT int munmap(void *memory, size_t bytes)
{
    struct heap_at at = HEAP_HERE(HEAP_MUNMAP);
    int r = heap_next.munmap(memory, bytes);
    if (r == 0)
        mapped(bytes, true, &at);
    return r;
}

EXPORT void *mremap(void *before, size_t had, size_t wanted, int flags, ...)
{
    struct heap_at at = HEAP_HERE(HEAP_MREMAP);
    va_list rest;
    va_start(rest, flags);
    void *to = va_arg(rest, void *);
    va_end(rest);
    void *memory = heap_next.mremap(before, had, wanted, flags, to);
    if (memory != MAP_FAILED)
        changed((int64_t)wanted - (int64_t)had, &at);
    return memory;
}

EXPORT int brk(void *end)
{
    struct heap_at at = HEAP_HERE(HEAP_BRK);
    char *before = heap_next.sbrk(0);
    int r = heap_next.brk(end);
    if (r == 0 && end != before)
        changed((char *)end - before, &at);
    return r;
}

EXPORT void *sbrk(intptr_t bytes)
{
    struct heap_at at = HEAP_HERE(HEAP_BRK);
    void *memory = heap_next.sbrk(bytes);
    if (memory != MAP_FAILED && bytes != 0)
        changed(bytes, &at);
    return memory;
}

/* The window is large, and mostly empty: it must not become memory for being mapped. */
EXPORT int mlockall(int flags)
{
    return heap_next.mlockall(heap_on ? flags | MCL_ONFAULT : flags);
}

EXPORT int dlclose(void *handle)
{
    int r = heap_next.dlclose(handle);
    if (heap_on)
        heap_walk_images_changed(true);
    return r;
}

/* Who puts up a filter says first that it wants no privileges, unless it has them. */
static bool filtered;

EXPORT int prctl(int option, ...)
{
    va_list rest;
    long words[4];
    va_start(rest, option);
    for (size_t i = 0; i < 4; i++)
        words[i] = va_arg(rest, long);
    va_end(rest);
    if (option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP)
        __atomic_store_n(&filtered, true, __ATOMIC_RELAXED);
    long r = heap_raw6(SYS_prctl, option, words[0], words[1], words[2], words[3], 0);
    if (r >= 0)
        return (int)r;
    errno = (int)-r;
    return -1;
}

void heap_advise(const void *memory, size_t bytes, int advice)
{
    if (!__atomic_load_n(&filtered, __ATOMIC_RELAXED))
        heap_raw6(SYS_madvise, (long)memory, (long)bytes, advice, 0, 0, 0);
}
