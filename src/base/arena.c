/* Bump allocation in growing blocks; see arena.h for the out-of-memory rule. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES_MIN = 16 * 1024, BLOCK_BYTES_MAX = 1024 * 1024 };

struct arena_block {
    struct arena_block *next;
    size_t size;
    size_t used;
    alignas(max_align_t) unsigned char data[];
};

static struct arena_block *block_add(struct arena *arena, size_t need)
{
    size_t size = arena->head ? MIN(arena->head->size * 2, (size_t)BLOCK_BYTES_MAX)
                              : (size_t)BLOCK_BYTES_MIN;
    size = MAX(size, need);
    if (size > SIZE_MAX - sizeof(struct arena_block))
        return NULL;
    struct arena_block *block = malloc(sizeof(*block) + size);
    if (!block)
        return NULL;
    block->next = arena->head;
    block->size = size;
    block->used = 0;
    arena->head = block;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX - align) {
        arena->failed = true;
        return NULL;
    }
    size = (size + align - 1) & ~(align - 1);
    struct arena_block *block = arena->head;
    if (!block || block->size - block->used < size)
        block = block_add(arena, size);
    if (!block) {
        arena->failed = true;
        return NULL;
    }
    void *result = block->data + block->used;
    block->used += size;
    arena->used_bytes += size;
    memset(result, 0, size);
    return result;
}

const char *arena_dup_len(struct arena *arena, const char *text, size_t len)
{
    char *copy = len < SIZE_MAX ? arena_alloc(arena, len + 1) : NULL;
    if (!copy)
        return "";
    if (len > 0)
        memcpy(copy, text, len);
    return copy;
}

const char *arena_dup(struct arena *arena, const char *text)
{
    return arena_dup_len(arena, text, strlen(text));
}

const char *arena_printf(struct arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = len >= 0 ? arena_alloc(arena, (size_t)len + 1) : NULL;
    if (!text) {
        arena->failed = true;
        return "";
    }
    va_start(args, fmt);
    vsnprintf(text, (size_t)len + 1, fmt, args);
    va_end(args);
    return text;
}

bool arena_failed(const struct arena *arena)
{
    return arena->failed;
}

void arena_deinit(struct arena *arena)
{
    struct arena_block *block = arena->head;
    while (block) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
    *arena = ARENA_INIT;
}
