/* Interning: an open-addressing table of ids over texts kept in an arena. */
#include "base/intern.h"

#include "base/map.h"
#include "base/vec.h"

#include <errno.h>

enum { SLOT_CAP_MIN = 256 };

static uint32_t *slot_of(const struct intern *intern, uint32_t *slots, size_t cap, struct str text)
{
    size_t at = hash_bytes(text.data, text.len) & (cap - 1);
    while (slots[at] != 0 && !str_eq(intern->texts[slots[at] - 1], text))
        at = (at + 1) & (cap - 1);
    return &slots[at];
}

static int grow(struct intern *intern)
{
    size_t cap = intern->slot_cap ? intern->slot_cap * 2 : SLOT_CAP_MIN;
    uint32_t *slots = calloc(cap, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < intern->len; i++)
        *slot_of(intern, slots, cap, intern->texts[i]) = (uint32_t)i + 1;
    free(intern->slots);
    intern->slots = slots;
    intern->slot_cap = cap;
    return 0;
}

int intern_add(struct intern *intern, struct str text, uint32_t *ret_id, bool *ret_new)
{
    if ((intern->len + 1) * 2 > intern->slot_cap && grow(intern) < 0)
        return -ENOMEM;
    uint32_t *slot = slot_of(intern, intern->slots, intern->slot_cap, text);
    bool fresh = *slot == 0;
    if (fresh) {
        if (intern->len >= UINT32_MAX - 1 ||
            vec_reserve((void **)&intern->texts, &intern->cap, intern->len + 1,
                        sizeof(*intern->texts)) < 0)
            return -ENOMEM;
        const char *copy = arena_dup_len(&intern->arena, text.data, text.len);
        if (arena_failed(&intern->arena))
            return -ENOMEM;
        intern->texts[intern->len++] = (struct str){copy, text.len};
        *slot = (uint32_t)intern->len;
    }
    *ret_id = *slot;
    if (ret_new)
        *ret_new = fresh;
    return 0;
}

uint32_t intern_find(const struct intern *intern, struct str text)
{
    return intern->slot_cap ? *slot_of(intern, intern->slots, intern->slot_cap, text) : 0;
}

struct str intern_get(const struct intern *intern, uint32_t id)
{
    if (id == 0 || id > intern->len)
        return (struct str){"", 0};
    return intern->texts[id - 1];
}

void intern_deinit(struct intern *intern)
{
    arena_deinit(&intern->arena);
    free(intern->texts);
    free(intern->slots);
    *intern = (struct intern){0};
}
