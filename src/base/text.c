/* Printing of text nobody here wrote. */
#include "base/text.h"

size_t utf8_decode(struct str s, int32_t *ret_code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    *ret_code = -1;
    if (s.len == 0)
        return 0;
    unsigned char first = (unsigned char)s.data[0];
    size_t len = first < 0x80             ? 1
                 : (first & 0xe0) == 0xc0 ? 2
                 : (first & 0xf0) == 0xe0 ? 3
                 : (first & 0xf8) == 0xf0 ? 4
                                          : 0;
    if (len == 0 || len > s.len)
        return 1;
    uint32_t code = len == 1 ? first : first & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        unsigned char next = (unsigned char)s.data[i];
        if ((next & 0xc0) != 0x80)
            return 1;
        code = code << 6 | (next & 0x3fu);
    }
    if (code < smallest[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 1;
    *ret_code = (int32_t)code;
    return len;
}

static bool is_wide(int32_t code)
{
    return (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
           (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
           (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
           (code >= 0x1f300 && code <= 0x1faff) || (code >= 0x20000 && code <= 0x3fffd);
}

static bool is_combining(int32_t code)
{
    return (code >= 0x300 && code <= 0x36f) || (code >= 0x200b && code <= 0x200d) ||
           (code >= 0x20d0 && code <= 0x20ff) || (code >= 0xfe00 && code <= 0xfe0f);
}

/* C0, DEL, C1, the characters that reorder what follows them, and those that Unicode never
 * assigns: XML refuses some of them. */
static bool is_unsafe(int32_t code)
{
    return code < 0x20 || (code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef) ||
           (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Columns of one code point of `len` bytes as text_print() writes it. */
static size_t code_width(int32_t code, size_t len)
{
    if (code == '\n' || code == '\t' || code == '\r')
        return 2;
    if (is_unsafe(code))
        return 4 * len;
    if (is_combining(code))
        return 0;
    return is_wide(code) ? 2 : 1;
}

size_t text_width(struct str s)
{
    size_t width = 0;
    while (s.len > 0) {
        int32_t code;
        size_t len = utf8_decode(s, &code);
        width += code_width(code, len);
        s.data += len;
        s.len -= len;
    }
    return width;
}

size_t text_fit(struct str s, size_t columns)
{
    size_t width = 0, used = 0;
    while (used < s.len) {
        int32_t code;
        size_t len = utf8_decode((struct str){s.data + used, s.len - used}, &code);
        width += code_width(code, len);
        if (width > columns)
            break;
        used += len;
    }
    return used;
}

void text_print(FILE *out, struct str s)
{
    while (s.len > 0) {
        int32_t code;
        size_t len = utf8_decode(s, &code);
        if (code == '\n')
            fputs("\\n", out);
        else if (code == '\t')
            fputs("\\t", out);
        else if (code == '\r')
            fputs("\\r", out);
        else if (is_unsafe(code))
            for (size_t i = 0; i < len; i++)
                fprintf(out, "\\x%02x", (unsigned char)s.data[i]);
        else
            fwrite(s.data, 1, len, out);
        s.data += len;
        s.len -= len;
    }
}

/* One code point of `len` bytes as text_print() writes it: at most 16 bytes. */
static size_t safe_one(const char *data, size_t len, int32_t code, char *to)
{
    const char *named = code == '\n' ? "\\n" : code == '\t' ? "\\t" : code == '\r' ? "\\r" : NULL;
    if (named) {
        memcpy(to, named, 2);
        return 2;
    }
    if (!is_unsafe(code)) {
        memcpy(to, data, len);
        return len;
    }
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)data[i];
        memcpy(to + 4 * i, (const char[]){'\\', 'x', digits[byte >> 4], digits[byte & 15]}, 4);
    }
    return 4 * len;
}

struct str text_safe(struct str s, char *buffer, size_t size)
{
    static const char more[] = "…";
    if (size == 0)
        return (struct str){"", 0};
    size_t used = 0, fits = 0; /* `fits`: as much as leaves room for the "…" */
    while (s.len > 0) {
        int32_t code;
        char one[16];
        size_t len = utf8_decode(s, &code);
        size_t add = safe_one(s.data, len, code, one);
        if (used + add + 1 > size)
            break;
        memcpy(buffer + used, one, add);
        used += add;
        if (used + sizeof(more) <= size)
            fits = used;
        s.data += len;
        s.len -= len;
    }
    if (s.len > 0 && size >= sizeof(more)) {
        memcpy(buffer + fits, more, sizeof(more) - 1);
        used = fits + sizeof(more) - 1;
    }
    buffer[used] = '\0';
    return (struct str){buffer, used};
}
