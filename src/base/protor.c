/* Protobuf's wire format, read with bounds. Used by the importer of pprof files. */
#include "base/protor.h"

#include <errno.h>

static bool bad(struct protor *in)
{
    in->bad = true;
    in->rest.len = 0;
    return false;
}

static void skip(struct protor *in, size_t len)
{
    in->rest.data += len;
    in->rest.len -= len;
}

bool protor_varint(struct protor *in, uint64_t *ret)
{
    if (in->rest.len == 0)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < in->rest.len && i < 10; i++) {
        uint8_t byte = (uint8_t)in->rest.data[i];
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            skip(in, i + 1);
            *ret = value;
            return true;
        }
    }
    return bad(in);
}

static bool fixed(struct protor *in, size_t len, uint64_t *ret)
{
    if (in->rest.len < len)
        return bad(in);
    uint64_t value = 0;
    for (size_t i = len; i > 0; i--)
        value = value << 8 | (uint8_t)in->rest.data[i - 1];
    skip(in, len);
    *ret = value;
    return true;
}

bool protor_next(struct protor *in, struct protor_field *ret)
{
    uint64_t tag, len;
    if (!protor_varint(in, &tag))
        return false;
    *ret = (struct protor_field){
        .number = (uint32_t)(tag >> 3), .wire = (enum protor_wire)(tag & 7), .bytes = {"", 0}};
    if (tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
        return bad(in);
    switch (ret->wire) {
    case PROTOR_VARINT:
        return protor_varint(in, &ret->value) || bad(in);
    case PROTOR_FIXED64:
        return fixed(in, 8, &ret->value);
    case PROTOR_FIXED32:
        return fixed(in, 4, &ret->value);
    case PROTOR_BYTES:
        if (!protor_varint(in, &len) || len > in->rest.len)
            return bad(in);
        ret->bytes = (struct str){in->rest.data, len};
        skip(in, len);
        return true;
    }
    return bad(in);
}

int protor_each(const struct protor_field *field, int (*fn)(void *context, uint64_t value),
                void *context)
{
    if (field->wire != PROTOR_BYTES)
        return fn(context, field->value);
    struct protor list = protor_from(field->bytes);
    uint64_t value;
    while (protor_varint(&list, &value)) {
        int r = fn(context, value);
        if (r < 0)
            return r;
    }
    return list.bad ? -EBADMSG : 0;
}
