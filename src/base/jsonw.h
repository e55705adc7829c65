/* A streaming JSON writer: commas, nesting and escapes are its job.
 *
 * Misuse (a value without a key inside an object, more than JSON_DEPTH_MAX
 * levels) is a bug and asserts. Write errors are the stream's: check ferror().
 * The names avoid jansson's json_*, which reads JSON for us. */
#pragma once

#include "base/str.h"

#include <stdio.h>

enum { JSON_DEPTH_MAX = 64 };

struct jsonw {
    FILE *out;
    unsigned indent; /* spaces a level; 0 writes one line */
    unsigned depth;
    bool in_object[JSON_DEPTH_MAX];
    bool has_items[JSON_DEPTH_MAX];
    bool after_key;
};

void jsonw_init(struct jsonw *json, FILE *out, unsigned indent);
void jsonw_object_begin(struct jsonw *json);
void jsonw_object_end(struct jsonw *json);
void jsonw_array_begin(struct jsonw *json);
void jsonw_array_end(struct jsonw *json);
void jsonw_key(struct jsonw *json, const char *key);

void jsonw_null(struct jsonw *json);
void jsonw_bool(struct jsonw *json, bool truth);
void jsonw_u64(struct jsonw *json, uint64_t number);
void jsonw_i64(struct jsonw *json, int64_t number);
/* The shortest text that reads back as the same double; NaN and infinities, which JSON
 * lacks, become null. */
void jsonw_f64(struct jsonw *json, double number);
/* `number` divided by 10 to the `digits`, exactly: 1500 and 3 give 1.5. */
void jsonw_decimal(struct jsonw *json, uint64_t number, unsigned digits);
/* Invalid UTF-8 becomes U+FFFD; control characters are escaped. */
void jsonw_text(struct jsonw *json, struct str text);
