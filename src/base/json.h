/* A streaming JSON writer: commas, nesting and escapes are its job.
 *
 * Misuse (a value without a key inside an object, more than JSON_DEPTH_MAX
 * levels) is a bug and asserts. Write errors are the stream's: check ferror(). */
#pragma once

#include "base/str.h"

#include <stdio.h>

enum { JSON_DEPTH_MAX = 64 };

struct json {
    FILE *out;
    unsigned indent; /* spaces a level; 0 writes one line */
    unsigned depth;
    bool in_object[JSON_DEPTH_MAX];
    bool has_items[JSON_DEPTH_MAX];
    bool after_key;
};

void json_init(struct json *json, FILE *out, unsigned indent);
void json_object_begin(struct json *json);
void json_object_end(struct json *json);
void json_array_begin(struct json *json);
void json_array_end(struct json *json);
void json_key(struct json *json, const char *key);

void json_null(struct json *json);
void json_bool(struct json *json, bool truth);
void json_u64(struct json *json, uint64_t number);
void json_i64(struct json *json, int64_t number);
/* The shortest text that reads back as the same double; NaN and infinities, which JSON
 * lacks, become null. */
void json_f64(struct json *json, double number);
/* Invalid UTF-8 becomes U+FFFD; control characters are escaped. */
void json_text(struct json *json, struct str text);
