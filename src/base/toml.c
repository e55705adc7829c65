/* A reader by hand: one character ahead is all it ever needs. */
#include "base/toml.h"

#include "base/text.h"

#include <ctype.h>
#include <errno.h>

struct reader {
    struct arena *arena;
    const char *name;
    struct str rest;
    size_t line;
    struct why *why;
};

static int refuse(const struct reader *r, const char *what)
{
    return why_set(r->why, WHY_USAGE, EINVAL,
                   "see 'whyslow help bench' for what a scenario may hold", "'%s', line %zu: %s",
                   r->name, r->line, what);
}

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c);
}

static char peek(const struct reader *r)
{
    return r->rest.len > 0 ? r->rest.data[0] : '\0';
}

static void skip(struct reader *r, size_t count)
{
    for (size_t i = 0; i < count; i++)
        r->line += r->rest.data[i] == '\n';
    r->rest.data += count;
    r->rest.len -= count;
}

static void skip_blanks(struct reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t')
        skip(r, 1);
}

static void skip_comment(struct reader *r)
{
    skip_blanks(r);
    while (peek(r) == '#' || (r->rest.len > 1 && peek(r) == '\r' && r->rest.data[1] == '\n')) {
        while (r->rest.len > 0 && peek(r) != '\n')
            skip(r, 1);
    }
}

/* Blank lines and comments, too: between entries and inside lists. */
static void skip_lines(struct reader *r)
{
    skip_comment(r);
    while (peek(r) == '\n') {
        skip(r, 1);
        skip_comment(r);
    }
}

static size_t utf8_put(uint32_t code, char *to)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(heads[len] | code);
    return len;
}

/* After a backslash: writes what it stands for. 0 bytes: refused. */
static size_t escape_take(struct reader *r, char *to)
{
    static const char plain[][2] = {{'b', '\b'}, {'t', '\t'}, {'n', '\n'}, {'f', '\f'},
                                    {'r', '\r'}, {'"', '"'},  {'\\', '\\'}};
    char c = peek(r);
    for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
        if (c == plain[i][0]) {
            skip(r, 1);
            *to = plain[i][1];
            return 1;
        }
    size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint64_t code;
    if (digits == 0 || r->rest.len <= digits ||
        str_to_u64((struct str){r->rest.data + 1, digits}, 16, &code) < 0)
        return 0;
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0; /* no NUL in C strings, no halves of pairs */
    skip(r, digits + 1);
    return utf8_put((uint32_t)code, to);
}

static int text_take(struct reader *r, const char **ret)
{
    char quote = peek(r);
    skip(r, 1);
    /* An escape is never shorter than what it stands for. */
    size_t max = 0;
    while (max < r->rest.len && r->rest.data[max] != '\n')
        max++;
    char *text = arena_alloc(r->arena, max + 1);
    if (!text)
        return why_nomem(r->why);
    size_t len = 0;
    for (;;) {
        char c = peek(r);
        int32_t code;
        if (r->rest.len == 0 || c == '\n')
            return refuse(r, "a text is not closed on its line");
        if (c == quote)
            break;
        size_t bytes = utf8_decode(r->rest, &code);
        if (code < 0)
            return refuse(r, "not UTF-8");
        if ((code < 0x20 && code != '\t') || code == 0x7f)
            return refuse(r, "a control character in a text; write \\u00XX");
        if (c == '\\' && quote == '"') {
            skip(r, 1);
            bytes = escape_take(r, text + len);
            if (bytes == 0)
                return refuse(r, "an escape that TOML does not have, or a NUL");
        } else {
            memcpy(text + len, r->rest.data, bytes);
            skip(r, bytes);
        }
        len += bytes;
    }
    skip(r, 1);
    *ret = text;
    return 0;
}

static int list_take(struct reader *r, struct toml_value *value)
{
    skip(r, 1);
    size_t cap = 0, len = 0;
    char **items = NULL;
    for (;;) {
        skip_lines(r);
        if (peek(r) == ']')
            break;
        if (peek(r) != '"' && peek(r) != '\'')
            return refuse(r, "a list may hold texts only");
        if (len == TOML_LIST_MAX)
            return refuse(r, "the list is too long");
        if (len + 1 >= cap) {
            size_t grown = cap ? cap * 2 : 16;
            char **moved = arena_alloc(r->arena, grown * sizeof(*moved));
            if (!moved)
                return why_nomem(r->why);
            if (len > 0)
                memcpy(moved, items, len * sizeof(*moved));
            items = moved;
            cap = grown;
        }
        const char *text = "";
        int e = text_take(r, &text);
        if (e < 0)
            return e;
        items[len++] = (char *)text; /* the arena's, and ours to hand on */
        skip_lines(r);
        if (peek(r) == ',')
            skip(r, 1);
        else if (peek(r) != ']')
            return refuse(r, "a list wants ',' or ']' here");
    }
    skip(r, 1);
    if (!items)
        items = arena_alloc(r->arena, sizeof(*items));
    if (!items)
        return why_nomem(r->why);
    value->kind = TOML_LIST;
    value->list.items = items;
    value->list.len = len;
    return 0;
}

/* true, false, and numbers as TOML writes them: underscores only between digits. */
static int word_take(struct reader *r, struct toml_value *value)
{
    size_t len = 0;
    while (len < r->rest.len &&
           (isalnum((unsigned char)r->rest.data[len]) || is_one_of(r->rest.data[len], "+-._:")))
        len++;
    struct str word = {r->rest.data, len};
    if (len == 0 || len >= 64)
        return refuse(r, "a value is missing after '='");
    if (str_is(word, "true") || str_is(word, "false")) {
        value->kind = TOML_BOOL;
        value->truth = str_is(word, "true");
        skip(r, len);
        return 0;
    }
    char digits[64];
    size_t count = 0;
    bool whole = true;
    for (size_t i = 0; i < len; i++) {
        char c = word.data[i];
        if (c == '_' && i > 0 && i + 1 < len && isdigit((unsigned char)word.data[i - 1]) &&
            isdigit((unsigned char)word.data[i + 1]))
            continue;
        if (!isdigit((unsigned char)c) && !is_one_of(c, "+-.eE"))
            return refuse(r,
                          "a value that is neither text, number, true, false nor a list of texts");
        whole = whole && c != '.' && c != 'e' && c != 'E';
        digits[count++] = c;
    }
    struct str number = {digits, count};
    if (number.len > 1 && number.data[0] == '+') {
        number.data++;
        number.len--;
    }
    value->kind = whole ? TOML_INT : TOML_REAL;
    int e = whole ? str_to_i64(number, &value->integer) : str_to_f64(number, &value->real);
    if (e < 0)
        return refuse(r, "a number that cannot be read or is too large");
    skip(r, len);
    return 0;
}

static int value_take(struct reader *r, struct toml_value *value)
{
    value->line = r->line;
    char c = peek(r);
    if (c == '[')
        return list_take(r, value);
    if (c != '"' && c != '\'')
        return word_take(r, value);
    if (r->rest.len >= 3 && r->rest.data[1] == c && r->rest.data[2] == c)
        return refuse(r, "texts over several lines are not read here");
    value->kind = TOML_TEXT;
    return text_take(r, &value->text);
}

static int key_take(struct reader *r, const char **ret)
{
    size_t len = 0;
    while (len < r->rest.len &&
           (isalnum((unsigned char)r->rest.data[len]) || is_one_of(r->rest.data[len], "_-")))
        len++;
    if (len == 0)
        return refuse(r, peek(r) == '[' ? "tables are not read here: keep the file flat"
                                        : "a line must be 'key = value'");
    *ret = arena_dup_len(r->arena, r->rest.data, len);
    skip(r, len);
    skip_blanks(r);
    if (peek(r) != '=')
        return refuse(r, "a '=' is missing after the key");
    skip(r, 1);
    skip_blanks(r);
    return 0;
}

static int entry_take(struct reader *r, struct toml *toml)
{
    struct toml_entry entry = {.key = ""};
    int e = key_take(r, &entry.key);
    if (e < 0)
        return e;
    if (toml_get(toml, entry.key))
        return refuse(r, "the key was given before");
    if (toml->len == TOML_ENTRIES_MAX)
        return refuse(r, "too many keys");
    e = value_take(r, &entry.value);
    if (e < 0)
        return e;
    skip_comment(r);
    if (r->rest.len > 0 && peek(r) != '\n')
        return refuse(r, "something follows the value");
    toml->entries[toml->len++] = entry;
    return 0;
}

int toml_parse(struct arena *arena, const char *name, struct str text, struct toml *ret,
               struct why *why)
{
    struct reader r = {.arena = arena, .name = name, .rest = text, .line = 1, .why = why};
    if (text.len > TOML_BYTES_MAX)
        return refuse(&r, "the file is too large");
    struct toml toml = {.name = name};
    toml.entries = arena_alloc(arena, TOML_ENTRIES_MAX * sizeof(*toml.entries));
    if (!toml.entries)
        return why_nomem(why);
    skip_lines(&r);
    while (r.rest.len > 0) {
        int e = entry_take(&r, &toml);
        if (e < 0)
            return e;
        skip_lines(&r);
    }
    if (arena_failed(arena))
        return why_nomem(why);
    *ret = toml;
    return 0;
}

const struct toml_value *toml_get(const struct toml *toml, const char *key)
{
    for (size_t i = 0; i < toml->len; i++)
        if (strcmp(toml->entries[i].key, key) == 0)
            return &toml->entries[i].value;
    return NULL;
}

void toml_text_print(FILE *out, struct str s)
{
    fputc('"', out);
    while (s.len > 0) {
        int32_t code;
        size_t n = utf8_decode(s, &code);
        if (code < 0)
            fputs("\xef\xbf\xbd", out);
        else if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (char)code);
        else if (code < 0x20 || code == 0x7f)
            fprintf(out, "\\u%04x", (unsigned)code);
        else
            fwrite(s.data, 1, n, out);
        s.data += n;
        s.len -= n;
    }
    fputc('"', out);
}
