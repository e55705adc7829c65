/* The functions behind the hooks, and memory for who asks before they are known.
 *
 * `heap_next.name` can always be called: until it is known it is a function that looks for it.
 * Those of C++ are NULL while there is none (HEAP_CXX). */
#pragma once

#include "heap.h"

#include <sys/types.h>

/* NOLINTBEGIN(bugprone-macro-parentheses): how a function is declared cannot stand in them */
#define HEAP_FUNCTIONS(ROW)                                                                        \
    ROW(void *, malloc, (size_t))                                                                  \
    ROW(void *, calloc, (size_t, size_t))                                                          \
    ROW(void *, realloc, (void *, size_t))                                                         \
    ROW(void *, reallocarray, (void *, size_t, size_t))                                            \
    ROW(void, free, (void *))                                                                      \
    ROW(void, cfree, (void *))                                                                     \
    ROW(int, posix_memalign, (void **, size_t, size_t))                                            \
    ROW(void *, aligned_alloc, (size_t, size_t))                                                   \
    ROW(void *, memalign, (size_t, size_t))                                                        \
    ROW(void *, valloc, (size_t))                                                                  \
    ROW(void *, pvalloc, (size_t))                                                                 \
    ROW(size_t, malloc_usable_size, (void *))                                                      \
    ROW(void *, mmap, (void *, size_t, int, int, int, off_t))                                      \
    ROW(void *, mmap64, (void *, size_t, int, int, int, off_t))                                    \
    ROW(int, munmap, (void *, size_t))                                                             \
    ROW(void *, mremap, (void *, size_t, size_t, int, void *))                                     \
    ROW(int, brk, (void *))                                                                        \
    ROW(void *, sbrk, (intptr_t))                                                                  \
    ROW(int, mlockall, (int))                                                                      \
    ROW(int, dlclose, (void *))

/* Name, and the rest of its arguments: for new after the size, for delete after the memory. */
#define HEAP_CXX_NEW(ROW)                                                                          \
    ROW(_Znwm, HEAP_NEW, NONE)                                                                     \
    ROW(_Znam, HEAP_NEW_ARRAY, NONE)                                                               \
    ROW(_ZnwmRKSt9nothrow_t, HEAP_NEW, WORD)                                                       \
    ROW(_ZnamRKSt9nothrow_t, HEAP_NEW_ARRAY, WORD)                                                 \
    ROW(_ZnwmSt11align_val_t, HEAP_NEW, ALIGN)                                                     \
    ROW(_ZnamSt11align_val_t, HEAP_NEW_ARRAY, ALIGN)                                               \
    ROW(_ZnwmSt11align_val_tRKSt9nothrow_t, HEAP_NEW, ALIGN_WORD)                                  \
    ROW(_ZnamSt11align_val_tRKSt9nothrow_t, HEAP_NEW_ARRAY, ALIGN_WORD)
#define HEAP_CXX_DELETE(ROW)                                                                       \
    ROW(_ZdlPv, NONE)                                                                              \
    ROW(_ZdaPv, NONE)                                                                              \
    ROW(_ZdlPvRKSt9nothrow_t, WORD)                                                                \
    ROW(_ZdaPvRKSt9nothrow_t, WORD)                                                                \
    ROW(_ZdlPvm, WORD)                                                                             \
    ROW(_ZdaPvm, WORD)                                                                             \
    ROW(_ZdlPvSt11align_val_t, WORD)                                                               \
    ROW(_ZdaPvSt11align_val_t, WORD)                                                               \
    ROW(_ZdlPvmSt11align_val_t, TWO)                                                               \
    ROW(_ZdaPvmSt11align_val_t, TWO)                                                               \
    ROW(_ZdlPvSt11align_val_tRKSt9nothrow_t, TWO)                                                  \
    ROW(_ZdaPvSt11align_val_tRKSt9nothrow_t, TWO)

struct heap_next {
#define HEAP_MEMBER(type, name, arguments) type(*name) arguments;
    HEAP_FUNCTIONS(HEAP_MEMBER)
#undef HEAP_MEMBER
};
/* All are called with as many words as the longest form has: the rest is not looked at. */
typedef void *heap_new_fn(size_t size, uintptr_t a, uintptr_t b);
typedef void heap_delete_fn(void *memory, uintptr_t a, uintptr_t b);
struct heap_cxx {
#define HEAP_MEMBER(name, ...) heap_new_fn *name;
    HEAP_CXX_NEW(HEAP_MEMBER)
#undef HEAP_MEMBER
#define HEAP_MEMBER(name, ...) heap_delete_fn *name;
    HEAP_CXX_DELETE(HEAP_MEMBER)
#undef HEAP_MEMBER
};
/* NOLINTEND(bugprone-macro-parentheses) */
extern struct heap_next heap_next;
extern struct heap_cxx heap_cxx;

/* What is behind may call hooks in turn: an allocator, or operators, that are not the system's. */
extern bool heap_nests;
/* Operators are those of the system, or there are none: malloc() and free() with a handler. */
extern bool heap_cxx_plain;
/* Where the allocator's code lies: what it maps is not the program's doing. */
extern uint64_t heap_allocator_start, heap_allocator_end;

/* operator new for whoever asks while none is known; NULL: there still is none. */
heap_new_fn *heap_cxx_find(const char *name);

/* Memory from before the functions were known: it stays what it is for ever. */
enum { HEAP_BOOT_BYTES = 32 << 10 };
extern char heap_boot[HEAP_BOOT_BYTES];
static inline bool heap_is_boot(const void *memory)
{
    return UNLIKELY((uintptr_t)memory - (uintptr_t)heap_boot < HEAP_BOOT_BYTES);
}
void *heap_boot_realloc(void *memory, size_t size);
