/* Two fingerprints from JSON files against each other, by the classes of the field table.
 *
 * What is unknown in one file cannot be called equal: it becomes a row of its own kind.
 * What is unknown in both (a virtual machine has no governor) is no difference. */
#include "host/fingerprint.h"

#include "base/fd.h"
#include "host/fp.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

enum { FINGERPRINT_FILE_MAX = 64 * 1024 * 1024 };

static void json_release(json_t **json)
{
    json_decref(*json);
}

static int load(struct arena *arena, const char *path, json_t **ret, struct why *why)
{
    struct str text;
    int r = file_read(arena, path, FINGERPRINT_FILE_MAX, &text, why);
    if (r < 0)
        return r;
    json_error_t error;
    json_t *json = json_loadb(text.data, text.len, 0, &error);
    if (!json)
        return why_set(why, WHY_USAGE, EINVAL, "make one with 'whyslow doctor --json'",
                       "'%s' is no JSON: line %d, column %d: %s", path, error.line, error.column,
                       error.text);
    *ret = json;
    return 0;
}

/* The fingerprint in a document, borrowed; NULL when it holds none. */
static const json_t *locate(const json_t *json)
{
    const json_t *inner = json_object_get(json, "fingerprint");
    const json_t *candidate = inner ? inner : json;
    return json_is_object(json_object_get(candidate, "cpu")) &&
                   json_is_object(json_object_get(candidate, "kernel"))
               ? candidate
               : NULL;
}

static int refuse(const json_t *json, const char *path, struct why *why)
{
    assert(json); /* it was loaded */
    static const char *const kinds[] = {"an object", "a list", "a text", "a number",
                                        "a number",  "true",   "false",  "null"};
    const char *schema = json_string_value(json_object_get(json, "schema"));
    return why_set(why, WHY_USAGE, EINVAL, "make one with 'whyslow doctor --json'",
                   "'%s' holds no fingerprint: it is %s%s%s", path, kinds[json_typeof(json)],
                   schema ? " of schema " : " without 'cpu' and 'kernel' or 'fingerprint'",
                   schema ? schema : "");
}

/* A build fact may be written with its evidence: {"answer": …, "because": …}. */
static const json_t *plain(const json_t *value)
{
    if (!json_is_object(value))
        return value;
    const json_t *answer = json_object_get(value, "answer");
    return answer ? answer : json_object_get(value, "value");
}

static bool is_unknown(const json_t *value)
{
    const char *text = json_string_value(value);
    return !value || json_is_null(value) || (text && strncmp(text, "n/a", 3) == 0);
}

static bool is_equal(const struct fp_field *field, const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);
        return fabs(x - y) <= field->tolerance * fmax(fabs(x), fabs(y));
    }
    return json_equal(a, b);
}

static enum unit unit_of(const struct fp_field *field)
{
    struct str key = str_from(field->key);
    return str_ends(key, "_bytes")     ? UNIT_BYTES
           : str_ends(key, "_hz")      ? UNIT_HZ
           : str_ends(key, "_percent") ? UNIT_PERCENT
                                       : UNIT_NONE;
}

/* Texts are copied: the JSON documents go away. */
static struct value cell(struct arena *arena, const struct fp_field *field, const json_t *value)
{
    if (!value)
        return value_na("not in this file");
    if (json_is_string(value)) {
        const char *text = arena_dup_len(arena, json_string_value(value),
                                         json_string_length(value));
        return strncmp(text, "n/a: ", 5) == 0 ? value_na(text + 5) : value_text(text);
    }
    if (json_is_integer(value))
        return value_int(json_integer_value(value), unit_of(field));
    if (json_is_real(value))
        return value_real(json_real_value(value), unit_of(field));
    if (json_is_boolean(value))
        return value_bool(json_is_true(value));
    return value_na("of a kind that is not compared");
}

static const struct column columns[] = {
    {"field", "field", SHOW_ALWAYS, false, false},
    {"verdict", "verdict", SHOW_ALWAYS, false, false},
    {"a", "a", SHOW_ALWAYS, false, true},
    {"b", "b", SHOW_ALWAYS, false, true},
    {"effect", "effect", SHOW_ALWAYS, false, true},
};

static void compare(struct arena *arena, const struct fp_field *field, const json_t *a,
                    const json_t *b, struct value *table, unsigned *incomparable)
{
    bool unknown = is_unknown(a) || is_unknown(b);
    if ((is_unknown(a) && is_unknown(b)) || (!unknown && is_equal(field, a, b)))
        return;
    bool forbids = !unknown && field->class == FP_MUST;
    *incomparable += forbids;
    struct table_row *row = table_add(table);
    if (!row)
        return;
    row->cells[0] = value_text(arena_printf(arena, "%s.%s", field->group, field->key));
    /* A field that must match and is known on one side only leaves the question open. */
    bool open = unknown && field->class == FP_MUST;
    row->cells[1] = forbids ? value_tone(value_text("incomparable"), TONE_BAD)
                    : open  ? value_tone(value_text("unknown"), TONE_WARN)
                            : value_tone(value_text("caution"), TONE_WARN);
    row->cells[2] = cell(arena, field, a);
    row->cells[3] = cell(arena, field, b);
    row->cells[4] = value_text(
        unknown ? arena_printf(arena, "known on one side only; if it differs: %s", field->effect)
                : field->effect);
}

int fingerprint_diff(struct arena *arena, const char *path_a, const char *path_b, struct value *ret,
                     unsigned *ret_incomparable, struct why *why)
{
    AUTO(json_release) json_t *json_a = NULL;
    AUTO(json_release) json_t *json_b = NULL;
    int r = load(arena, path_a, &json_a, why);
    if (r < 0)
        return r;
    r = load(arena, path_b, &json_b, why);
    if (r < 0)
        return r;
    const json_t *a = locate(json_a), *b = locate(json_b);
    if (!a || !b)
        return a ? refuse(json_b, path_b, why) : refuse(json_a, path_a, why);

    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    if (table.table)
        table.table->empty = "no field that matters differs";
    unsigned incomparable = 0;
    for (const struct fp_field *field = fp_fields; field->group; field++)
        if (field->class != FP_INFO)
            compare(arena, field,
                    plain(json_object_get(json_object_get(a, field->group), field->key)),
                    plain(json_object_get(json_object_get(b, field->group), field->key)), &table,
                    &incomparable);
    if (arena_failed(arena))
        return why_nomem(why);
    *ret = table;
    *ret_incomparable = incomparable;
    return 0;
}
