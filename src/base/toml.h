/* A small, strict reader of TOML, for files that people keep beside their code.
 *
 * Flat files only: "key = value" lines and comments. Values are basic and
 * literal strings on one line, whole numbers, decimal numbers, booleans, and
 * lists of strings (over several lines if need be). Tables, dates and everything
 * else are refused with the line: better no than half. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/str.h"
#include "base/why.h"

#include <stdio.h>

enum { TOML_BYTES_MAX = 1024 * 1024, TOML_ENTRIES_MAX = 256, TOML_LIST_MAX = 65536 };

enum toml_kind { TOML_TEXT, TOML_INT, TOML_REAL, TOML_BOOL, TOML_LIST };

struct toml_value {
    enum toml_kind kind;
    size_t line; /* from 1 */
    union {
        const char *text; /* NUL-terminated, without others */
        int64_t integer;
        double real;
        bool truth;
        struct {
            char **items; /* ends with NULL */
            size_t len;
        } list;
    };
};

struct toml_entry {
    const char *key;
    struct toml_value value;
};

struct toml {
    const char *name; /* of the file, for messages */
    struct toml_entry *entries;
    size_t len;
};

/* All memory is the arena's. A refusal is WHY_USAGE with file and line. */
MUST_USE int toml_parse(struct arena *arena, const char *name, struct str text, struct toml *ret,
                        struct why *why);
/* NULL when there is no such key. */
const struct toml_value *toml_get(const struct toml *toml, const char *key);

/* A basic string of TOML. What is no UTF-8 cannot stand in one: U+FFFD marks the place. */
void toml_text_print(FILE *out, struct str s);
