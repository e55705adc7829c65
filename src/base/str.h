/* Borrowed text: a pointer and a length, never owned, not NUL-terminated.
 * For reading /proc, /sys and other people's files without copying. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *data;
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_FMT(s)   (int)MIN((s).len, (size_t)INT32_MAX), (s).data /* for "%.*s" */

static inline struct str str_from(const char *text)
{
    return (struct str){text ? text : "", text ? strlen(text) : 0};
}

bool str_eq(struct str a, struct str b);
bool str_is(struct str s, const char *text);
bool str_starts(struct str s, const char *prefix);
bool str_ends(struct str s, const char *suffix);
bool str_contains(struct str s, const char *needle);
struct str str_trim(struct str s);

/* Takes the part before the first `delim` off *s and returns it; without one,
 * the rest. A loop `while (s.len > 0) { line = str_cut(&s, '\n'); … }` ends. */
struct str str_cut(struct str *s, char delim);

/* The next run of non-blank characters; empty at the end. */
struct str str_word(struct str *s);

/* 0, or -EINVAL when the whole text is no number of this kind, -ERANGE when too large. */
MUST_USE int str_to_u64(struct str s, unsigned base, uint64_t *ret);
MUST_USE int str_to_i64(struct str s, int64_t *ret);
MUST_USE int str_to_f64(struct str s, double *ret);

/* The value of "key: value" or "key value" in a /proc-style text; empty if absent. */
struct str str_field(struct str text, const char *key);
