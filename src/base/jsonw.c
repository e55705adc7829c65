/* JSON output. `<`, `>` and `&` are escaped too, so that the same text can be
 * put inside a script element of an HTML report. */
#include "base/jsonw.h"

#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

void jsonw_init(struct jsonw *json, FILE *out, unsigned indent)
{
    *json = (struct jsonw){.out = out, .indent = indent};
}

static void newline(struct jsonw *json)
{
    if (json->indent > 0)
        fprintf(json->out, "\n%*s", (int)(json->indent * json->depth), "");
}

/* Everything that starts a value or a key passes here once. */
static void item(struct jsonw *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->depth == 0)
        return;
    if (json->has_items[json->depth - 1])
        fputc(',', json->out);
    json->has_items[json->depth - 1] = true;
    newline(json);
}

static void value(struct jsonw *json)
{
    assert(json->depth == 0 || !json->in_object[json->depth - 1] || json->after_key);
    item(json);
}

static void open(struct jsonw *json, bool object)
{
    value(json);
    assert(json->depth < JSON_DEPTH_MAX);
    fputc(object ? '{' : '[', json->out);
    json->in_object[json->depth] = object;
    json->has_items[json->depth] = false;
    json->depth++;
}

static void close(struct jsonw *json, bool object)
{
    assert(json->depth > 0 && json->in_object[json->depth - 1] == object && !json->after_key);
    json->depth--;
    if (json->has_items[json->depth])
        newline(json);
    fputc(object ? '}' : ']', json->out);
}

void jsonw_object_begin(struct jsonw *json)
{
    open(json, true);
}

void jsonw_object_end(struct jsonw *json)
{
    close(json, true);
}

void jsonw_array_begin(struct jsonw *json)
{
    open(json, false);
}

void jsonw_array_end(struct jsonw *json)
{
    close(json, false);
}

static void string(FILE *out, struct str s)
{
    fputc('"', out);
    while (s.len > 0) {
        int32_t code;
        size_t len = utf8_decode(s, &code);
        if (code < 0)
            fputs("\\ufffd", out);
        else if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (char)code);
        else if (code == '\n')
            fputs("\\n", out);
        else if (code < 0x20 || code == 0x7f || code == '<' || code == '>' || code == '&' ||
                 code == 0x2028 || code == 0x2029)
            fprintf(out, "\\u%04x", (unsigned)code);
        else
            fwrite(s.data, 1, len, out);
        s.data += len;
        s.len -= len;
    }
    fputc('"', out);
}

void jsonw_key(struct jsonw *json, const char *key)
{
    assert(json->depth > 0 && json->in_object[json->depth - 1] && !json->after_key);
    item(json);
    string(json->out, str_from(key));
    fputs(json->indent > 0 ? ": " : ":", json->out);
    json->after_key = true;
}

void jsonw_null(struct jsonw *json)
{
    value(json);
    fputs("null", json->out);
}

void jsonw_bool(struct jsonw *json, bool truth)
{
    value(json);
    fputs(truth ? "true" : "false", json->out);
}

void jsonw_u64(struct jsonw *json, uint64_t number)
{
    value(json);
    fprintf(json->out, "%" PRIu64, number);
}

void jsonw_i64(struct jsonw *json, int64_t number)
{
    value(json);
    fprintf(json->out, "%" PRId64, number);
}

void jsonw_f64(struct jsonw *json, double number)
{
    if (!isfinite(number)) {
        jsonw_null(json);
        return;
    }
    value(json);
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    fputs(text, json->out);
}

void jsonw_decimal(struct jsonw *json, uint64_t number, unsigned digits)
{
    assert(digits < 20);
    value(json);
    uint64_t power = 1;
    for (unsigned i = 0; i < digits; i++)
        power *= 10;
    fprintf(json->out, "%" PRIu64, number / power);
    uint64_t rest = number % power;
    if (rest == 0)
        return;
    for (; rest % 10 == 0; rest /= 10)
        digits--;
    fprintf(json->out, ".%0*" PRIu64, (int)digits, rest);
}

void jsonw_text(struct jsonw *json, struct str text)
{
    value(json);
    string(json->out, text);
}
