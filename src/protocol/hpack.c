/* Integers, strings, the Huffman code and the two tables of HPACK. */
#include "protocol/hpack.h"

#include "protocol/hpack_tables.h"

#include <errno.h>
#include <stdlib.h>

enum { ENTRY_OVERHEAD = 32, BITS_MIN = 5, BITS_MAX = 30 };

struct hpack_entry {
    uint32_t name_len, value_len;
    char text[]; /* the name, then the value */
};

struct reader {
    const uint8_t *at, *end;
};

/* Where unpacked strings of one field are put. */
struct strings {
    char name[HPACK_STRING_MAX];
    char value[HPACK_STRING_MAX];
};

/* ---- the Huffman code ---- */

/* By the length of a code: the first of that length, where its symbols begin, and which it has
 * none of from there on. */
struct codes {
    uint32_t first[BITS_MAX + 1];
    uint16_t count[BITS_MAX + 1];
    uint16_t begin[BITS_MAX + 1];
    uint16_t symbols[HPACK_SYMBOLS];
};

/* Canonical: by length, then by symbol; each code is one more than the one before. */
static void codes_make(struct codes *codes)
{
    uint32_t code = 0;
    uint16_t at = 0;
    for (unsigned bits = 1; bits <= BITS_MAX; bits++) {
        code <<= 1;
        codes->first[bits] = code;
        codes->begin[bits] = at;
        for (unsigned symbol = 0; symbol < HPACK_SYMBOLS; symbol++)
            if (hpack_bits[symbol] == bits)
                codes->symbols[at++] = (uint16_t)symbol;
        codes->count[bits] = (uint16_t)(at - codes->begin[bits]);
        code += codes->count[bits];
    }
}

static const struct codes *codes_get(void)
{
    static _Thread_local struct codes codes;
    if (codes.count[BITS_MIN] == 0)
        codes_make(&codes);
    return &codes;
}

/* The symbol that `window` (its top bits) begins with; -1: more than `have` bits are needed. */
static int symbol_at(const struct codes *codes, uint64_t window, unsigned have, unsigned *ret_bits)
{
    for (unsigned bits = BITS_MIN; bits <= MIN(have, (unsigned)BITS_MAX); bits++) {
        uint32_t code = (uint32_t)(window >> (64 - bits));
        if (code - codes->first[bits] < codes->count[bits]) {
            *ret_bits = bits;
            return codes->symbols[codes->begin[bits] + code - codes->first[bits]];
        }
    }
    return -1;
}

static int huffman_decode(const uint8_t *data, size_t len, char *to, size_t *ret_len)
{
    const struct codes *codes = codes_get();
    uint64_t window = 0;
    unsigned have = 0, bits;
    size_t out = 0;
    for (size_t at = 0; at < len || have > 0;) {
        while (at < len && have <= 56) {
            window |= (uint64_t)data[at++] << (56 - have);
            have += 8;
        }
        int symbol = symbol_at(codes, window, have, &bits);
        if (symbol < 0)
            break;
        if (symbol == HPACK_END_OF_STRING)
            return -EBADMSG;
        if (out == HPACK_STRING_MAX)
            return -E2BIG;
        to[out++] = (char)symbol;
        window <<= bits;
        have -= bits;
    }
    /* What is left is padding: fewer than eight bits, all ones. */
    if (have >= 8 || (have > 0 && window >> (64 - have) != (1u << have) - 1))
        return -EBADMSG;
    *ret_len = out;
    return 0;
}

/* ---- integers and strings ---- */

static int integer_read(struct reader *reader, unsigned prefix, uint32_t *ret)
{
    enum { INTEGER_MAX = 1 << 24 };
    uint32_t mask = (1u << prefix) - 1;
    if (reader->at == reader->end)
        return -EBADMSG;
    uint32_t value = *reader->at++ & mask;
    if (value < mask) {
        *ret = value;
        return 0;
    }
    for (unsigned shift = 0; shift <= 21; shift += 7) {
        if (reader->at == reader->end)
            return -EBADMSG;
        uint8_t byte = *reader->at++;
        value += (uint32_t)(byte & 0x7f) << shift;
        if (value > INTEGER_MAX)
            return -EBADMSG;
        if (!(byte & 0x80)) {
            *ret = value;
            return 0;
        }
    }
    return -EBADMSG;
}

/* Packed ones are unpacked into `room`. */
static int string_read(struct reader *reader, char *room, struct str *ret)
{
    uint32_t len;
    if (reader->at == reader->end)
        return -EBADMSG;
    bool packed = *reader->at & 0x80;
    int r = integer_read(reader, 7, &len);
    if (r < 0)
        return r;
    if (len > (size_t)(reader->end - reader->at))
        return -EBADMSG;
    const uint8_t *data = reader->at;
    reader->at += len;
    if (!packed) {
        *ret = (struct str){(const char *)data, len};
        return len > HPACK_STRING_MAX ? -E2BIG : 0;
    }
    size_t unpacked;
    r = huffman_decode(data, len, room, &unpacked);
    if (r == 0)
        *ret = (struct str){room, unpacked};
    return r;
}

/* ---- the table ---- */

static void table_shrink(struct hpack *hpack, size_t limit)
{
    while (hpack->count > 0 && hpack->size > limit) {
        uint32_t last = (hpack->first + --hpack->count) % hpack->room;
        struct hpack_entry *entry = hpack->entries[last];
        hpack->size -= entry->name_len + entry->value_len + ENTRY_OVERHEAD;
        free(entry);
        hpack->entries[last] = NULL;
    }
}

static int table_grow(struct hpack *hpack)
{
    uint32_t room = hpack->room ? hpack->room * 2 : 16;
    struct hpack_entry **entries = (struct hpack_entry **)calloc(room, sizeof(void *));
    if (!entries)
        return -ENOMEM;
    for (uint32_t i = 0; i < hpack->count; i++)
        entries[i] = hpack->entries[(hpack->first + i) % hpack->room];
    free((void *)hpack->entries);
    hpack->entries = entries;
    hpack->room = room;
    hpack->first = 0;
    return 0;
}

/* Copied before anything is thrown out: the name may be that of an entry that goes. */
static int table_add(struct hpack *hpack, struct str name, struct str value)
{
    size_t size = name.len + value.len + ENTRY_OVERHEAD;
    if (size > hpack->limit) {
        table_shrink(hpack, 0);
        return 0;
    }
    struct hpack_entry *entry = malloc(sizeof(*entry) + name.len + value.len);
    if (!entry)
        return -ENOMEM;
    entry->name_len = (uint32_t)name.len;
    entry->value_len = (uint32_t)value.len;
    memcpy(entry->text, name.data, name.len);
    memcpy(entry->text + name.len, value.data, value.len);
    table_shrink(hpack, hpack->limit - size);
    if (hpack->count == hpack->room && table_grow(hpack) < 0) {
        free(entry);
        return -ENOMEM;
    }
    hpack->first = (hpack->first + hpack->room - 1) % hpack->room;
    hpack->entries[hpack->first] = entry;
    hpack->count++;
    hpack->size += size;
    return 0;
}

static int table_get(const struct hpack *hpack, uint32_t index, struct str *ret_name,
                     struct str *ret_value)
{
    if (index == 0 || index > HPACK_STATIC + hpack->count)
        return -EBADMSG;
    if (index <= HPACK_STATIC) {
        *ret_name = hpack_static[index - 1].name;
        *ret_value = hpack_static[index - 1].value;
        return 0;
    }
    uint32_t at = (hpack->first + index - HPACK_STATIC - 1) % hpack->room;
    const struct hpack_entry *entry = hpack->entries[at];
    *ret_name = (struct str){entry->text, entry->name_len};
    *ret_value = (struct str){entry->text + entry->name_len, entry->value_len};
    return 0;
}

void hpack_init(struct hpack *hpack)
{
    *hpack = (struct hpack){.limit = HPACK_TABLE_DEFAULT};
}

void hpack_deinit(struct hpack *hpack)
{
    table_shrink(hpack, 0);
    free((void *)hpack->entries);
    *hpack = (struct hpack){0};
}

/* ---- blocks ---- */

static int literal_read(struct hpack *hpack, struct reader *reader, unsigned prefix,
                        struct strings *strings, struct str *ret_name, struct str *ret_value)
{
    uint32_t index;
    struct str unused;
    int r = integer_read(reader, prefix, &index);
    if (r == 0)
        r = index == 0 ? string_read(reader, strings->name, ret_name)
                       : table_get(hpack, index, ret_name, &unused);
    return r < 0 ? r : string_read(reader, strings->value, ret_value);
}

static int limit_read(struct hpack *hpack, struct reader *reader)
{
    uint32_t limit;
    int r = integer_read(reader, 5, &limit);
    if (r < 0)
        return r;
    if (limit > HPACK_TABLE_MAX)
        return -E2BIG;
    hpack->limit = limit;
    table_shrink(hpack, limit);
    return 0;
}

static int field_read(struct hpack *hpack, struct reader *reader, struct strings *strings,
                      hpack_field_fn *fn, void *context)
{
    struct str name = STR(""), value = STR("");
    uint8_t kind = *reader->at;
    uint32_t index;
    if ((kind & 0xe0) == 0x20)
        return limit_read(hpack, reader);
    if (kind & 0x80) {
        int r = integer_read(reader, 7, &index);
        if (r == 0)
            r = table_get(hpack, index, &name, &value);
        return r < 0 ? r : fn(context, name, value);
    }
    bool kept = kind & 0x40;
    int r = literal_read(hpack, reader, kept ? 6 : 4, strings, &name, &value);
    if (r == 0)
        r = fn(context, name, value);
    return r == 0 && kept ? table_add(hpack, name, value) : r;
}

int hpack_decode(struct hpack *hpack, const uint8_t *block, size_t len, hpack_field_fn *fn,
                 void *context)
{
    struct strings strings;
    struct reader reader = {block, block + len};
    for (unsigned fields = 0; reader.at < reader.end; fields++) {
        if (fields == HPACK_FIELDS_MAX)
            return -E2BIG;
        int r = field_read(hpack, &reader, &strings, fn, context);
        if (r != 0)
            return r;
    }
    return 0;
}
