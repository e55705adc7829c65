/* Memory for one phase of a command: many small allocations, freed together.
 *
 * Out of memory is sticky: the arena remembers that an allocation failed, text
 * helpers then return "", and a command that builds a large result checks
 * arena_failed() once at its end instead of after every string. arena_alloc()
 * itself returns NULL and must be checked before it is written to.
 * One arena belongs to one thread. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *head;
    size_t used_bytes; /* handed out so far, for tests and limits */
    bool failed;
};

#define ARENA_INIT ((struct arena){0})

/* Zeroed, aligned for any type; valid until arena_deinit(). NULL when out of memory. */
MUST_USE void *arena_alloc(struct arena *arena, size_t size);
#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))

/* Text helpers never return NULL; they return "" when out of memory. */
const char *arena_dup(struct arena *arena, const char *text);
const char *arena_dup_len(struct arena *arena, const char *text, size_t len);
const char *arena_printf(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);

bool arena_failed(const struct arena *arena);
void arena_deinit(struct arena *arena);
