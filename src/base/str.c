/* Text parsing on borrowed slices. */
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool str_is(struct str s, const char *text)
{
    return str_eq(s, str_from(text));
}

bool str_starts(struct str s, const char *prefix)
{
    size_t len = strlen(prefix);
    return s.len >= len && memcmp(s.data, prefix, len) == 0;
}

bool str_ends(struct str s, const char *suffix)
{
    size_t len = strlen(suffix);
    return s.len >= len && memcmp(s.data + s.len - len, suffix, len) == 0;
}

bool str_contains(struct str s, const char *needle)
{
    return s.len > 0 && memmem(s.data, s.len, needle, strlen(needle)) != NULL;
}

struct str str_trim(struct str s)
{
    while (s.len > 0 && isspace((unsigned char)s.data[0])) {
        s.data++;
        s.len--;
    }
    while (s.len > 0 && isspace((unsigned char)s.data[s.len - 1]))
        s.len--;
    return s;
}

struct str str_cut(struct str *s, char delim)
{
    struct str head = *s;
    const char *at = s->len > 0 ? memchr(s->data, delim, s->len) : NULL;
    if (!at) {
        s->data += s->len;
        s->len = 0;
        return head;
    }
    head.len = (size_t)(at - s->data);
    s->data = at + 1;
    s->len -= head.len + 1;
    return head;
}

struct str str_word(struct str *s)
{
    while (s->len > 0 && isspace((unsigned char)s->data[0])) {
        s->data++;
        s->len--;
    }
    struct str word = {s->data, 0};
    while (s->len > 0 && !isspace((unsigned char)s->data[0])) {
        s->data++;
        s->len--;
        word.len++;
    }
    return word;
}

int str_to_u64(struct str s, unsigned base, uint64_t *ret)
{
    if (s.len == 0 || base < 2 || base > 16)
        return -EINVAL;
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];
        int digit = isdigit(c) ? c - '0' : isalpha(c) ? tolower(c) - 'a' + 10 : INT32_MAX;
        if (digit >= (int)base)
            return -EINVAL;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (unsigned)digit, &value))
            return -ERANGE;
    }
    *ret = value;
    return 0;
}

int str_to_i64(struct str s, int64_t *ret)
{
    bool negative = s.len > 0 && s.data[0] == '-';
    if (negative) {
        s.data++;
        s.len--;
    }
    uint64_t value;
    int r = str_to_u64(s, 10, &value);
    if (r < 0)
        return r;
    if (value > (uint64_t)INT64_MAX)
        return -ERANGE;
    *ret = negative ? -(int64_t)value : (int64_t)value;
    return 0;
}

int str_to_f64(struct str s, double *ret)
{
    char text[64];
    if (s.len == 0 || s.len >= sizeof(text) || isspace((unsigned char)s.data[0]))
        return -EINVAL;
    memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end != text + s.len)
        return -EINVAL;
    if (errno == ERANGE || value != value || value - value != 0)
        return -ERANGE;
    *ret = value;
    return 0;
}

struct str str_field(struct str text, const char *key)
{
    size_t key_len = strlen(key);
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n');
        if (!str_starts(line, key))
            continue;
        struct str rest = {line.data + key_len, line.len - key_len};
        while (rest.len > 0 && (rest.data[0] == ' ' || rest.data[0] == '\t')) {
            rest.data++;
            rest.len--;
        }
        if (rest.len > 0 && rest.data[0] == ':')
            return str_trim((struct str){rest.data + 1, rest.len - 1});
        if (rest.data != line.data + key_len)
            return str_trim(rest);
    }
    return (struct str){"", 0};
}
