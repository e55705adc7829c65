/* A growing array of one type.
 *
 *     VEC(struct row) rows = {0};
 *     if (VEC_PUSH(&rows, row) < 0) return why_nomem(why);
 *     VEC_FREE(&rows);
 *
 * Elements move when it grows: keep indexes, not pointers. */
#pragma once

#include "base/macros.h"

#include <stdlib.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *data;                                                                                \
        size_t len;                                                                                \
        size_t cap;                                                                                \
    }

/* Makes room for `need` elements in all; 0 or -ENOMEM, and the old data stays. */
MUST_USE int vec_reserve(void **data, size_t *cap, size_t need, size_t element_size);

#define VEC_RESERVE(vec, need)                                                                     \
    vec_reserve((void **)&(vec)->data, &(vec)->cap, (need), sizeof((vec)->data[0]))

#define VEC_PUSH(vec, item)                                                                        \
    (VEC_RESERVE((vec), (vec)->len + 1) < 0 ? -ENOMEM : ((vec)->data[(vec)->len++] = (item), 0))

#define VEC_FREE(vec)                                                                              \
    do {                                                                                           \
        free((vec)->data);                                                                         \
        (vec)->data = NULL;                                                                        \
        (vec)->len = (vec)->cap = 0;                                                               \
    } while (0)
