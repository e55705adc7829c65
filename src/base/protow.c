/* Protobuf's wire format, the two kinds of field that profiles need: varints and
 * length-delimited bytes. Used by exporters. */
#include "base/protow.h"

#include "base/vec.h"

#include <assert.h>

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, VARINT_BYTES_MAX = 10 };

static bool reserve(struct protow *out, size_t more)
{
    if (!out->failed && vec_reserve((void **)&out->data, &out->cap, out->len + more, 1) < 0)
        out->failed = true;
    return !out->failed;
}

static size_t varint_put(uint8_t *at, uint64_t value)
{
    size_t len = 0;
    for (; value >= 0x80; value >>= 7)
        at[len++] = (uint8_t)(value | 0x80);
    at[len++] = (uint8_t)value;
    return len;
}

static void varint(struct protow *out, uint64_t value)
{
    if (reserve(out, VARINT_BYTES_MAX))
        out->len += varint_put(out->data + out->len, value);
}

static void bytes(struct protow *out, const void *data, size_t len)
{
    if (len == 0 || !reserve(out, len))
        return;
    memcpy(out->data + out->len, data, len);
    out->len += len;
}

void protow_uint(struct protow *out, uint32_t field, uint64_t value)
{
    if (value == 0)
        return;
    varint(out, (uint64_t)field << 3 | WIRE_VARINT);
    varint(out, value);
}

void protow_text(struct protow *out, uint32_t field, struct str text, bool keep_empty)
{
    if (text.len == 0 && !keep_empty)
        return;
    varint(out, (uint64_t)field << 3 | WIRE_BYTES);
    varint(out, text.len);
    bytes(out, text.data, text.len);
}

void protow_packed(struct protow *out, uint32_t field, const uint64_t *values, size_t count)
{
    if (count == 0)
        return;
    protow_begin(out, field);
    for (size_t i = 0; i < count; i++)
        varint(out, values[i]);
    protow_end(out);
}

void protow_begin(struct protow *out, uint32_t field)
{
    assert(out->depth < PROTOW_DEPTH_MAX);
    out->begins[out->depth] = out->len;
    out->fields[out->depth++] = field;
}

/* The length is known only now: the message is moved up by its own head. Messages here are
 * small, and only the outermost are many, so that moving costs less than a second buffer. */
void protow_end(struct protow *out)
{
    assert(out->depth > 0);
    out->depth--;
    if (!reserve(out, 2 * VARINT_BYTES_MAX))
        return;
    size_t begin = out->begins[out->depth], len = out->len - begin;
    uint8_t head[2 * VARINT_BYTES_MAX];
    size_t head_len = varint_put(head, (uint64_t)out->fields[out->depth] << 3 | WIRE_BYTES);
    head_len += varint_put(head + head_len, len);
    memmove(out->data + begin + head_len, out->data + begin, len);
    memcpy(out->data + begin, head, head_len);
    out->len += head_len;
}

void protow_clear(struct protow *out)
{
    out->len = 0;
    out->depth = 0;
}

void protow_deinit(struct protow *out)
{
    free(out->data);
    *out = (struct protow){0};
}
