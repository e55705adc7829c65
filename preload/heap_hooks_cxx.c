/* Hooks on operator new and delete, in all their forms.
 *
 * Those of the system are malloc() and free() but for what happens when memory is out: then they
 * are called themselves, and may call a handler, throw, or succeed after all. What they do then
 * is counted by the hooks that they call. Those of others are called as they are. */
#include "heap_hooks.h"

#include <stdlib.h>

/* Aligned as the system's operators do it. */
static ALWAYS_INLINE void *plain_new(size_t size, size_t alignment)
{
    if (size == 0)
        size = 1;
    if (alignment == 0)
        return heap_next.malloc(size);
    if ((alignment & (alignment - 1)) != 0)
        return NULL;
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    size_t bytes = (size + alignment - 1) & ~(alignment - 1);
    return bytes < size ? NULL : heap_next.aligned_alloc(alignment, bytes);
}

static heap_new_fn *operator_find(heap_new_fn **operator_new, const char *name)
{
    if (!*operator_new)
        *operator_new = heap_cxx_find(name);
    if (!*operator_new)
        abort(); /* out of memory, and nobody there who could throw */
    return *operator_new;
}

struct form {
    heap_new_fn **operator_new;
    const char *name;
    size_t alignment; /* 0: none */
    uintptr_t a, b;
};

static ALWAYS_INLINE void *hooked_new(size_t size, const struct heap_at *at,
                                      const struct form *form)
{
    hooks_before();
    void *memory;
    if (LIKELY(heap_cxx_plain)) {
        memory = plain_new(size, form->alignment);
        if (UNLIKELY(!memory))
            return operator_find(form->operator_new, form->name)(size, form->a, form->b);
    } else {
        memory = operator_find(form->operator_new, form->name)(size, form->a, form->b);
    }
    hooks_allocated(memory, size, at);
    return memory;
}

static ALWAYS_INLINE void hooked_delete(void *memory, heap_delete_fn *behind, uintptr_t a,
                                        uintptr_t b)
{
    if (UNLIKELY(!memory) || UNLIKELY(!hooks_freed(memory)))
        return;
    if (LIKELY(heap_cxx_plain || !behind)) {
        heap_next.free(memory);
        return;
    }
    const void *outer = heap_self.freeing;
    heap_self.freeing = memory;
    behind(memory, a, b);
    heap_self.freeing = outer;
}

/* NOLINTBEGIN(bugprone-macro-parentheses, bugprone-reserved-identifier): names and parameters */
#define NEW_BODY(name, entry, alignment, a, b)                                                     \
    {                                                                                              \
        struct heap_at at = HEAP_HERE(entry);                                                      \
        return hooked_new(size, &at,                                                               \
                          &(struct form){&heap_cxx.name, #name, (alignment), (a), (b)});           \
    }
#define NEW_NONE(name, entry)                                                                      \
    EXPORT void *name(size_t size);                                                                \
    EXPORT void *name(size_t size) NEW_BODY(name, entry, 0, 0, 0)
#define NEW_WORD(name, entry)                                                                      \
    EXPORT void *name(size_t size, uintptr_t a);                                                   \
    EXPORT void *name(size_t size, uintptr_t a) NEW_BODY(name, entry, 0, a, 0)
#define NEW_ALIGN(name, entry)                                                                     \
    EXPORT void *name(size_t size, uintptr_t a);                                                   \
    EXPORT void *name(size_t size, uintptr_t a) NEW_BODY(name, entry, a, a, 0)
#define NEW_ALIGN_WORD(name, entry)                                                                \
    EXPORT void *name(size_t size, uintptr_t a, uintptr_t b);                                      \
    EXPORT void *name(size_t size, uintptr_t a, uintptr_t b) NEW_BODY(name, entry, a, a, b)
#define NEW_HOOK(name, entry, form) NEW_##form(name, entry)
HEAP_CXX_NEW(NEW_HOOK)

#define DELETE_NONE(name)                                                                          \
    EXPORT void name(void *memory);                                                                \
    EXPORT void name(void *memory)                                                                 \
    {                                                                                              \
        hooked_delete(memory, heap_cxx.name, 0, 0);                                                \
    }
#define DELETE_WORD(name)                                                                          \
    EXPORT void name(void *memory, uintptr_t a);                                                   \
    EXPORT void name(void *memory, uintptr_t a)                                                    \
    {                                                                                              \
        hooked_delete(memory, heap_cxx.name, a, 0);                                                \
    }
#define DELETE_TWO(name)                                                                           \
    EXPORT void name(void *memory, uintptr_t a, uintptr_t b);                                      \
    EXPORT void name(void *memory, uintptr_t a, uintptr_t b)                                       \
    {                                                                                              \
        hooked_delete(memory, heap_cxx.name, a, b);                                                \
    }
#define DELETE_HOOK(name, form) DELETE_##form(name)
HEAP_CXX_DELETE(DELETE_HOOK)
/* NOLINTEND(bugprone-macro-parentheses, bugprone-reserved-identifier) */
