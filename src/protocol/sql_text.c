/* One pass over the bytes of a statement: tokens go to the output as they are, values as ?.
 *
 * Lists are folded where they close: what stands in the parentheses after IN or VALUES is replaced
 * when it was nothing but values, and a row that reads as the one before it is taken back. The
 * output is valid UTF-8 without control characters, whatever came in. */
#include "protocol/sql_text.h"

#include "base/macros.h"
#include "base/map.h"
#include "base/text.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { LEVELS_MAX = 64 };

/* What the token before was, as far as it decides what the next one means. */
enum before {
    BEFORE_NOTHING,
    BEFORE_OPERATOR, /* also an opening parenthesis, a comma, a keyword: a value may follow */
    BEFORE_COMPARES, /* of these one after which a value is likely */
    BEFORE_VALUE,    /* a value, a name, a closing parenthesis: an operator follows */
};

enum list {
    LIST_NONE,
    LIST_ITEMS, /* after IN, VALUES, ARRAY: folded when it holds values only */
};

/* Parentheses that are open; level 0 is outside of all. */
struct level {
    size_t at; /* of the parenthesis in the output */
    enum list list;
    bool pure;              /* nothing but values and commas so far */
    bool row_over, comma;   /* a row was just closed in here, and a comma came after it */
    size_t row_at, row_len; /* that row in the output */
};

struct sql {
    enum sql_dialect dialect;
    const uint8_t *at, *end;
    char *to;
    size_t len, room;
    bool full;
    bool blank;  /* one is to be written before the next token */
    bool inside; /* of a comment that MySQL executes */
    enum before before;
    enum list next_list; /* what the last word makes of a parenthesis that follows it */
    size_t depth;
    struct level levels[LEVELS_MAX];
    uint64_t hash;
};

static void hash_add(struct sql *sql, const uint8_t *from, const uint8_t *to)
{
    sql->hash = hash_u64(sql->hash ^ hash_bytes(from, (size_t)(to - from)));
    if (sql->hash == 0)
        sql->hash = 1;
}

static void put(struct sql *sql, const void *bytes, size_t len)
{
    if (sql->full)
        return;
    size_t blank = sql->blank && sql->len > 0 ? 1 : 0;
    if (sql->room - sql->len < len + blank) {
        sql->full = true;
        return;
    }
    if (blank)
        sql->to[sql->len++] = ' ';
    sql->blank = false;
    memcpy(sql->to + sql->len, bytes, len);
    sql->len += len;
}

static struct level *level(struct sql *sql)
{
    return &sql->levels[MIN(sql->depth, (size_t)LEVELS_MAX - 1)];
}

/* A token that is neither a value nor part of a list's frame. */
static void other(struct sql *sql, enum before before)
{
    level(sql)->pure = false;
    level(sql)->row_over = level(sql)->comma = false;
    sql->before = before;
    sql->next_list = LIST_NONE;
}

static void value(struct sql *sql, const uint8_t *from, bool known)
{
    if (known)
        hash_add(sql, from, sql->at);
    bool pure = level(sql)->pure;
    other(sql, BEFORE_VALUE);
    level(sql)->pure = pure;
    put(sql, "?", 1);
}

static bool starts(const struct sql *sql, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(sql->end - sql->at) >= len && memcmp(sql->at, text, len) == 0;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static bool is_blank(uint8_t c)
{
    return c <= ' ' || c == 0x7f;
}

static uint8_t peek(const struct sql *sql, size_t ahead)
{
    return (size_t)(sql->end - sql->at) > ahead ? sql->at[ahead] : 0;
}

/* Up to and over the quote that closes it, or to the end of a text that was cut off. */
static void quoted(struct sql *sql, uint8_t quote, bool backslashes)
{
    sql->at++;
    while (sql->at < sql->end) {
        uint8_t c = *sql->at++;
        if (c == '\\' && backslashes && sql->at < sql->end)
            sql->at++;
        else if (c == quote && sql->at < sql->end && *sql->at == quote)
            sql->at++;
        else if (c == quote)
            return;
    }
}

/* A name in quotes stays as it is, but for bytes that are no text. */
static void put_name(struct sql *sql, const uint8_t *from, const uint8_t *to)
{
    struct str rest = {(const char *)from, (size_t)(to - from)};
    while (rest.len > 0) {
        int32_t code;
        size_t len = utf8_decode(rest, &code);
        if (code < 0)
            put(sql, "\xef\xbf\xbd", 3);
        else if (is_blank((uint8_t)rest.data[0]) && code < 0x80)
            sql->blank = true;
        else
            put(sql, rest.data, len);
        rest.data += len;
        rest.len -= len;
    }
}

static bool comment(struct sql *sql)
{
    bool mysql = sql->dialect == SQL_MYSQL;
    /* MySQL asks for a blank after two dashes: "5--3" is a difference there. */
    bool line = (starts(sql, "--") && (!mysql || is_blank(peek(sql, 2)))) ||
                (mysql && *sql->at == '#');
    if (line) {
        while (sql->at < sql->end && *sql->at != '\n')
            sql->at++;
        return true;
    }
    if (sql->inside && starts(sql, "*/")) {
        sql->at += 2;
        sql->inside = false;
        return true;
    }
    if (!starts(sql, "/*"))
        return false;
    if (mysql && (peek(sql, 2) == '!' || (peek(sql, 2) == 'M' && peek(sql, 3) == '!'))) {
        sql->at += peek(sql, 2) == '!' ? 3 : 4;
        while (sql->at < sql->end && is_digit(*sql->at))
            sql->at++;
        sql->inside = true;
        return true;
    }
    size_t depth = 0;
    while (sql->at < sql->end) {
        if (starts(sql, "/*") && (depth == 0 || sql->dialect == SQL_POSTGRESQL)) {
            depth++;
            sql->at += 2;
        } else if (starts(sql, "*/")) {
            sql->at += 2;
            if (--depth == 0)
                break;
        } else {
            sql->at++;
        }
    }
    return true;
}

/* 12, 1.5e-3, 0xff, 1_000, and what hangs on it. */
static void number(struct sql *sql)
{
    const uint8_t *from = sql->at;
    bool hex = *sql->at == '0' && (peek(sql, 1) | 32) == 'x';
    if (*sql->at == '-' || *sql->at == '+')
        sql->at++;
    while (sql->at < sql->end) {
        uint8_t c = *sql->at;
        bool exponent = !hex && (c == '-' || c == '+') && (sql->at[-1] | 32) == 'e' &&
                        is_digit(peek(sql, 1));
        /* Two points are a range, and not part of a number. */
        bool point = c == '.' && peek(sql, 1) != '.';
        if (!is_digit(c) && !is_word(c) && !point && !exponent)
            break;
        sql->at++;
    }
    value(sql, from, true);
}

/* $tag$ … $tag$; false when it does not begin like that. */
static bool dollar_quoted(struct sql *sql)
{
    const uint8_t *from = sql->at, *tag = sql->at + 1;
    while (tag < sql->end && (is_word(*tag) || (is_digit(*tag) && tag > from + 1)))
        tag++;
    if (tag >= sql->end || *tag != '$')
        return false;
    size_t len = (size_t)(tag + 1 - from);
    const uint8_t *close = memmem(tag + 1, (size_t)(sql->end - tag - 1), from, len);
    sql->at = close ? close + len : sql->end;
    value(sql, from, true);
    return true;
}

static bool word_is(const uint8_t *from, size_t len, const char *word)
{
    return strlen(word) == len && strncasecmp((const char *)from, word, len) == 0;
}

static bool word_in(const uint8_t *from, size_t len, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (word_is(from, len, words[i]))
            return true;
    return false;
}

/* Words after which a minus belongs to the number. */
static const char *const before_values[] = {
    "select", "where",   "and",    "or",        "not",      "in",   "like",  "between",
    "limit",  "offset",  "values", "set",       "then",     "else", "when",  "case",
    "by",     "having",  "on",     "returning", "interval", "is",   "union", "distinct",
    "all",    "default", "as",     "return",    NULL,
};
static const char *const compares[] = {"like", "ilike", "glob", "regexp", "match", NULL};
/* They are written out in lists that are values otherwise. */
static const char *const constants[] = {"null", "true", "false", "default", NULL};
static const char *const lists[] = {"in", "values", "value", "array", NULL};
static const char *const prefixes[] = {"e", "b", "x", "n", "r", NULL};

static void word(struct sql *sql)
{
    const uint8_t *from = sql->at;
    while (sql->at < sql->end && (is_word(*sql->at) || is_digit(*sql->at) || *sql->at == '$'))
        sql->at++;
    size_t len = (size_t)(sql->at - from);
    bool unicode = word_is(from, len, "u") && starts(sql, "&'");
    if (unicode)
        sql->at++;
    if (sql->at < sql->end && *sql->at == '\'' &&
        (unicode || word_in(from, len, prefixes) ||
         (from[0] == '_' && sql->dialect == SQL_MYSQL))) {
        bool escapes = sql->dialect == SQL_MYSQL || (from[0] | 32) == 'e';
        quoted(sql, '\'', escapes);
        value(sql, from, true);
        return;
    }
    if (unicode)
        sql->at--;
    bool pure = level(sql)->pure && word_in(from, len, constants);
    other(sql, word_in(from, len, compares)        ? BEFORE_COMPARES
               : word_in(from, len, before_values) ? BEFORE_OPERATOR
                                                   : BEFORE_VALUE);
    level(sql)->pure = pure;
    if (word_in(from, len, lists))
        sql->next_list = LIST_ITEMS;
    put_name(sql, from, sql->at);
}

static void open_list(struct sql *sql)
{
    struct level *outer = level(sql);
    enum list list = sql->next_list;
    /* Rows of rows: in IN ((1,2),(3,4)) and behind the comma of VALUES (1,2),(3,4). */
    bool row = outer->comma || (outer->list == LIST_ITEMS && outer->pure && *sql->at == '(');
    if (row)
        list = LIST_ITEMS;
    if (!outer->comma) {
        outer->row_over = false;
        outer->row_len = 0;
    }
    if (sql->depth + 1 >= LEVELS_MAX)
        list = LIST_NONE;
    put(sql, sql->at++, 1);
    sql->depth++;
    *level(sql) = (struct level){.at = sql->len - (sql->len > 0), .list = list, .pure = true};
    sql->before = BEFORE_OPERATOR;
    sql->next_list = LIST_NONE;
}

/* Nothing but values becomes one of them. */
static void fold(struct sql *sql, const struct level *list)
{
    if (list->list == LIST_ITEMS && list->pure && !sql->full && sql->len > list->at + 1) {
        sql->len = list->at + 1;
        sql->to[sql->len++] = '?';
        sql->blank = false;
    }
}

static void close_list(struct sql *sql)
{
    struct level done = *level(sql);
    if (sql->depth == 0) {
        other(sql, BEFORE_VALUE);
        put(sql, sql->at++, 1);
        return;
    }
    if (sql->depth < LEVELS_MAX)
        fold(sql, &done);
    put(sql, sql->at++, 1);
    sql->depth--;
    struct level *outer = level(sql);
    sql->before = BEFORE_VALUE;
    sql->next_list = LIST_NONE;
    if (done.list != LIST_ITEMS || sql->full) {
        other(sql, BEFORE_VALUE);
        return;
    }
    size_t len = sql->len - done.at;
    if (outer->comma && outer->row_len == len &&
        memcmp(sql->to + outer->row_at, sql->to + done.at, len) == 0) {
        sql->len = outer->row_at + len;
    } else {
        outer->row_at = done.at;
        outer->row_len = len;
    }
    outer->row_over = true;
    outer->comma = false;
    /* A list of rows is no list of values: what is left of it is its first row. */
    outer->pure = false;
}

static void punctuation(struct sql *sql)
{
    uint8_t c = *sql->at;
    struct level *here = level(sql);
    if (c == ',') {
        bool pure = here->pure, row = here->row_over;
        other(sql, BEFORE_OPERATOR);
        here->pure = pure;
        here->row_over = here->comma = row;
    } else {
        other(sql, c == '.'                       ? BEFORE_VALUE
                   : c && strchr("=<>!|+-*/%", c) ? BEFORE_COMPARES
                                                  : BEFORE_OPERATOR);
    }
    put(sql, sql->at++, 1);
}

/* A place for a value whose value is not in the text. False: no such thing here. */
static bool placeholder(struct sql *sql)
{
    uint8_t c = *sql->at, next = peek(sql, 1);
    bool sqlite = sql->dialect == SQL_SQLITE;
    bool named = sqlite && (c == '$' || c == ':' || c == '@') && is_word(next);
    bool numbered = (c == '$' || c == '?') && is_digit(next);
    if (!named && !numbered && !(c == '?' && sql->dialect != SQL_POSTGRESQL))
        return false;
    const uint8_t *from = sql->at++;
    while (sql->at < sql->end && (is_digit(*sql->at) || (named && is_word(*sql->at))))
        sql->at++;
    value(sql, from, false);
    return true;
}

/* Quotes of both kinds, backquotes, and brackets where they are quotes. */
static bool quotes(struct sql *sql)
{
    uint8_t c = *sql->at;
    const uint8_t *from = sql->at;
    bool mysql = sql->dialect == SQL_MYSQL, sqlite = sql->dialect == SQL_SQLITE;
    if (c == '\'') {
        quoted(sql, c, mysql);
        value(sql, from, true);
        return true;
    }
    if (c != '"' && c != '`' && !(c == '[' && sqlite))
        return false;
    quoted(sql, c == '[' ? ']' : c, c == '"' && mysql);
    /* SQLite takes "x" for a string where there is no such name; where a value is likely it is
     * taken for one here, too: better a name lost than a value kept. */
    bool likely = (sql->before == BEFORE_COMPARES || level(sql)->list == LIST_ITEMS) &&
                  peek(sql, 0) != '.';
    bool text = c == '"' && (mysql || (sqlite && likely));
    if (text) {
        value(sql, from, true);
    } else {
        other(sql, BEFORE_VALUE);
        put_name(sql, from, sql->at);
    }
    return true;
}

static void token(struct sql *sql)
{
    uint8_t c = *sql->at;
    if (is_blank(c) || comment(sql)) {
        sql->at += is_blank(c) ? 1 : 0;
        sql->blank = true;
        return;
    }
    bool sign = (c == '-' || c == '+') && sql->before != BEFORE_VALUE;
    uint8_t first = sign ? peek(sql, 1) : c, second = peek(sql, sign ? 2 : 1);
    bool numeric = is_digit(first) ||
                   (first == '.' && is_digit(second) && (sign || sql->before != BEFORE_VALUE));
    if (quotes(sql))
        return;
    if (numeric)
        number(sql);
    else if (is_word(c))
        word(sql);
    else if (c == '$' && sql->dialect == SQL_POSTGRESQL && dollar_quoted(sql))
        return;
    else if (starts(sql, "::") || starts(sql, ":=")) {
        other(sql, c == ':' && peek(sql, 1) == ':' ? BEFORE_VALUE : BEFORE_OPERATOR);
        put(sql, sql->at, 2);
        sql->at += 2;
    } else if (placeholder(sql))
        return;
    else if (c == '(' || c == '[')
        open_list(sql);
    else if (c == ')' || c == ']')
        close_list(sql);
    else
        punctuation(sql);
}

/* What a cut left open: a row after others goes, a list of values is one. */
static void cut_close(struct sql *sql)
{
    for (size_t i = 0; i <= sql->depth && i < LEVELS_MAX && !sql->full; i++) {
        const struct level *here = &sql->levels[i];
        if (here->comma) {
            sql->len = here->row_at + here->row_len;
            return;
        }
        if (i > 0 && here->list == LIST_ITEMS && here->pure) {
            fold(sql, here);
            return;
        }
    }
}

size_t sql_normalise(enum sql_dialect dialect, struct str text, char *to, size_t room,
                     uint64_t *ret_hash)
{
    struct sql sql = {.dialect = dialect,
                      .at = (const uint8_t *)text.data,
                      .end = (const uint8_t *)text.data + text.len,
                      .to = to,
                      .room = room};
    while (sql.at < sql.end)
        token(&sql);
    cut_close(&sql);
    while (sql.len > 0 && (to[sql.len - 1] == ';' || to[sql.len - 1] == ' '))
        sql.len--;
    *ret_hash = sql.hash;
    return sql.len;
}
