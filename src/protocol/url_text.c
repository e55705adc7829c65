/* Paths and queries in which values became "?". */
#include "protocol/url_text.h"

#include "base/map.h"

#include <ctype.h>

enum {
    NUMBER_MIN = 4,    /* digits of a part of a segment that is a number: "v2" and "404" stay */
    HEX_MIN = 8,       /* digits that are no word any more */
    TOKEN_MIN = 16,    /* mixed case with digits */
    TOKEN_LOWER = 20,  /* one case, with many digits */
    TOKEN_SOLID = 40,  /* nothing between words for so long */
    SEGMENT_MAX = 128, /* nobody gives such a name to a thing */
    NAME_MAX_BYTES = 64,
    FLAG_MAX_BYTES = 24, /* a parameter without a value that is kept: "uploads", "list-type" */
    UUID_BYTES = 36,
};

struct out {
    char *to;
    size_t room, len;
    uint64_t hash;
    uint32_t taken;
};

static void put(struct out *out, struct str text)
{
    size_t len = MIN(text.len, out->room - out->len);
    memcpy(out->to + out->len, text.data, len);
    out->len += len;
}

/* Order counts: /a/1/b/2 is not /a/2/b/1. */
static void take(struct out *out, struct str value)
{
    out->taken++;
    out->hash = hash_u64(out->hash + hash_bytes(value.data, value.len) + out->taken);
}

static void put_value(struct out *out, struct str value)
{
    take(out, value);
    put(out, STR("?"));
}

static struct str head_of(struct str s, size_t len)
{
    return (struct str){s.data, len};
}

static void skip(struct str *s, size_t len)
{
    s->data += len;
    s->len -= len;
}

/* Before the first of `delims`; all of it where there is none. */
static size_t span_until(struct str s, const char *delims)
{
    const char *first = s.data + s.len;
    for (; *delims; delims++) {
        const char *at = s.len > 0 ? memchr(s.data, *delims, (size_t)(first - s.data)) : NULL;
        first = at ? at : first;
    }
    return (size_t)(first - s.data);
}

static bool is_uuid(struct str s)
{
    if (s.len != UUID_BYTES)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s.data[i] != '-' : !isxdigit((unsigned char)s.data[i]))
            return false;
    }
    return true;
}

struct letters {
    size_t digits, hex, upper, lower, marks, other;
};

/* Without what the locale has to say about letters: this is done for every request. */
static struct letters letters_of(struct str s)
{
    struct letters n = {0};
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];
        unsigned char small = c | 0x20;
        if (c >= '0' && c <= '9') {
            n.digits++;
            n.hex++;
        } else if (small >= 'a' && small <= 'z') {
            n.lower += c == small;
            n.upper += c != small;
            n.hex += small <= 'f';
        } else if (c < 0x80) {
            bool mark = c != '\0' && strchr("-.,:_+~=%", c) != NULL;
            n.marks += mark;
            n.other += !mark;
        }
    }
    return n;
}

static bool is_token(struct str s, const struct letters *n)
{
    if (n->other > 0 || n->digits + n->upper + n->lower + n->marks != s.len)
        return false;
    if (s.len >= TOKEN_MIN && n->upper > 1 && n->lower > 1 && n->digits > 1 &&
        n->marks * 8 <= s.len)
        return true;
    if (s.len >= TOKEN_LOWER && n->digits * 5 >= s.len && n->marks * 8 <= s.len)
        return true;
    return s.len >= TOKEN_SOLID && n->marks * 16 <= s.len;
}

static bool is_value(struct str s)
{
    struct letters n = letters_of(s);
    if (s.len > SEGMENT_MAX || is_uuid(s))
        return true;
    if (n.digits > 0 && n.digits + n.marks == s.len)
        return true; /* a number, a date, a place on earth */
    if (s.len >= HEX_MIN && n.hex == s.len)
        return true;
    if (s.len > 2 && s.data[0] == '0' && s.data[1] == 'x' && n.hex == s.len - 1)
        return true;
    return is_token(s, &n);
}

/* Parts of a name that differ from one thing to the next: "photo-12345.jpg" is "photo-?.jpg". */
static void put_name(struct out *out, struct str name)
{
    while (name.len > 0) {
        if (name.len >= UUID_BYTES && is_uuid(head_of(name, UUID_BYTES))) {
            put_value(out, head_of(name, UUID_BYTES));
            skip(&name, UUID_BYTES);
            continue;
        }
        size_t len = 0;
        while (len < name.len && isalnum((unsigned char)name.data[len]))
            len++;
        struct str part = head_of(name, len);
        struct letters n = letters_of(part);
        bool number = n.digits == len && len >= NUMBER_MIN;
        bool value = number || (len >= HEX_MIN && n.hex == len && n.digits > 0) ||
                     (len >= TOKEN_MIN && is_token(part, &n));
        if (value)
            put_value(out, part);
        else
            put(out, part);
        skip(&name, len);
        if (name.len > 0) {
            put(out, head_of(name, 1));
            skip(&name, 1);
        }
    }
}

/* "name=value" of a query or after a ";". */
static void put_parameter(struct out *out, struct str item)
{
    size_t len = span_until(item, "=");
    struct str name = head_of(item, len);
    if (len > NAME_MAX_BYTES) {
        put_value(out, item);
        return;
    }
    if (len == item.len) {
        bool flag = len <= FLAG_MAX_BYTES;
        for (size_t i = 0; i < len && flag; i++)
            flag = islower((unsigned char)item.data[i]) || item.data[i] == '-';
        if (flag)
            put(out, item);
        else
            put_value(out, item);
        return;
    }
    put_name(out, name);
    put(out, STR("="));
    skip(&item, len + 1);
    put_value(out, item);
}

static void put_segment(struct out *out, struct str segment)
{
    size_t len = span_until(segment, ";");
    struct str name = head_of(segment, len);
    if (len > 0 && is_value(name))
        put_value(out, name);
    else
        put_name(out, name);
    skip(&segment, len);
    while (segment.len > 0) {
        skip(&segment, 1);
        put(out, STR(";"));
        len = span_until(segment, ";");
        put_parameter(out, head_of(segment, len));
        skip(&segment, len);
    }
}

/* The same name again and again, as in id=1&id=2, is one. */
static void put_query(struct out *out, struct str query)
{
    struct str before = {0};
    char mark = '?';
    while (query.len > 0) {
        size_t len = span_until(query, "&");
        struct str item = head_of(query, len);
        struct str name = head_of(item, span_until(item, "="));
        if (mark == '&' && name.len < item.len && str_eq(name, before)) {
            take(out, (struct str){name.data + name.len, item.len - name.len});
        } else {
            put(out, (struct str){&mark, 1});
            put_parameter(out, item);
            mark = '&';
        }
        before = name;
        skip(&query, MIN(len + 1, query.len));
    }
}

/* Scheme, user and host, where they are there: takes them off *target. User and password are
 * not even part of a hash. */
static void put_authority(struct out *out, struct str *target)
{
    struct str rest = *target;
    size_t scheme = span_until(rest, ":/?#");
    if (rest.len > 0 && (rest.data[0] == '/' || rest.data[0] == '*'))
        return;
    if (scheme + 3 <= rest.len && memcmp(rest.data + scheme, "://", 3) == 0) {
        put(out, head_of(rest, scheme + 3));
        skip(&rest, scheme + 3);
    }
    size_t len = span_until(rest, "/?#");
    struct str host = head_of(rest, len);
    for (size_t i = host.len; i > 0; i--) {
        if (host.data[i - 1] == '@') {
            skip(&host, i);
            break;
        }
    }
    put(out, host);
    skip(&rest, len);
    *target = rest;
}

size_t url_normalise(struct str target, char *to, size_t room, uint64_t *ret_hash)
{
    struct out out = {.to = to, .room = room};
    put_authority(&out, &target);
    struct str path = head_of(target, span_until(target, "?#"));
    skip(&target, path.len);
    while (path.len > 0) {
        size_t len = span_until(path, "/");
        put_segment(&out, head_of(path, len));
        skip(&path, len);
        if (path.len > 0) {
            put(&out, STR("/"));
            skip(&path, 1);
        }
    }
    if (target.len > 0 && target.data[0] == '?') {
        skip(&target, 1);
        put_query(&out, head_of(target, span_until(target, "#")));
    }
    *ret_hash = out.taken == 0 ? 0 : out.hash ? out.hash : 1;
    return out.len;
}

/* ---- secrets ---- */

static bool contains_word(struct str s, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= s.len; i++)
        if (strncasecmp(s.data + i, word, len) == 0)
            return true;
    return false;
}

bool url_name_is_secret(struct str name)
{
    static const char *const words[] = {"auth",    "cookie", "passw", "pwd",  "token",  "secret",
                                        "session", "key",    "sig",   "cred", "bearer", "csrf",
                                        "xsrf",    "code",   "otp",   "sid",  "jwt",    "ticket"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (contains_word(name, words[i]))
            return true;
    return false;
}

size_t url_without_secrets(struct str target, char *to, size_t room)
{
    struct out out = {.to = to, .room = room};
    put_authority(&out, &target);
    while (target.len > 0) {
        size_t len = span_until(target, "?&;#");
        struct str item = head_of(target, len);
        size_t name = span_until(item, "=");
        if (name < len && url_name_is_secret(head_of(item, name))) {
            put(&out, head_of(item, name + 1));
            put(&out, STR("…"));
        } else {
            put(&out, item);
        }
        skip(&target, len);
        if (target.len > 0) {
            put(&out, head_of(target, 1));
            skip(&target, 1);
        }
    }
    return out.len;
}
