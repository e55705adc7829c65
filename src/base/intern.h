/* Text to small ids: the same bytes always get the same id, from 1 upwards.
 * Id 0 means "no text". Interned text lives as long as the table. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

#include <stdint.h>

struct intern {
    struct arena arena;
    struct str *texts; /* texts[id - 1] */
    size_t len;
    size_t cap;
    uint32_t *slots; /* ids, hashed by text */
    size_t slot_cap;
};

/* 0 or -ENOMEM. *ret_new may be NULL. */
MUST_USE int intern_add(struct intern *intern, struct str text, uint32_t *ret_id, bool *ret_new);
/* 0 when it was never added. */
uint32_t intern_find(const struct intern *intern, struct str text);
/* Empty for id 0 or an id that was never given out. */
struct str intern_get(const struct intern *intern, uint32_t id);
void intern_deinit(struct intern *intern);
