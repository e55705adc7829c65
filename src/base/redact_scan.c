/* Secrets within one word: user info of URIs, "name=value", keys, and what looks like one. */
#include "base/redact_parts.h"

#include <ctype.h>

enum {
    URI_BYTES_MAX = 1024, /* an '@' that comes later is none of the user info */
    NAME_BYTES_MAX = 64,
    LOOKS_LEN_MIN = 24,
    LOOKS_CHANGES_PERCENT = 30,
    PATH_LOOK_BYTES_MAX = 256,
};

struct span {
    size_t start, end;
};

void redact_put(struct redact_out *out, struct str text)
{
    if (out->len < out->size)
        memcpy(out->to + out->len, text.data, MIN(text.len, out->size - out->len));
    out->len += text.len;
}

void redact_hide(struct redact_out *out)
{
    if (out->hidden_to > 0 && out->hidden_to == out->len)
        return; /* two that touch are one: redacting twice changes nothing */
    redact_put(out, STR(REDACTED));
    out->hidden_to = out->len;
    *out->count += 1;
}

static bool is_alnum(char c)
{
    return isalnum((unsigned char)c);
}

/* Where the user info ends that begins at `start`, at its '@'; `start`: there is none. */
static size_t user_end(struct str w, size_t start)
{
    size_t stop = MIN(w.len, start + URI_BYTES_MAX), end = start;
    bool colon = false, authority = true;
    for (size_t i = start; i < stop && !strchr(" \t\n\"'<>", w.data[i]); i++) {
        char c = w.data[i];
        if (c == '@' && (authority || colon))
            end = i;
        if (c == ':' && authority) /* a port has digits, a password need not */
            colon = i + 1 < stop && !isdigit((unsigned char)w.data[i + 1]);
        if (strchr("/?#", c)) {
            if (!colon || end > start)
                break;
            authority = false; /* unless it belongs to a password that was not escaped */
        }
    }
    return end;
}

/* All of it, with the name: a key may stand for the name, too ("https://TOKEN:x@host"). */
static bool uri_find(struct str w, size_t at, struct span *ret)
{
    if (w.len - at < 3 || memcmp(w.data + at, "://", 3) != 0)
        return false;
    size_t start = at + 3, end = user_end(w, start);
    if (end == start)
        return false;
    struct str info = {w.data + start, end - start};
    bool named = memchr(info.data, ':', info.len) != NULL;
    bool http = at >= 4 && memcmp(w.data + at - 4, "http", 4) == 0;
    http = http || (at >= 5 && memcmp(w.data + at - 5, "https", 5) == 0);
    if (!named && !http)
        return false; /* ssh://git@host */
    *ret = (struct span){start, end};
    return true;
}

/* "user:word@tcp(host)/db", as Go's drivers have it, and "user/word@//host" of Oracle. */
static bool driver_find(struct str w, size_t at, struct span *ret)
{
    static const char *const marks[] = {"@tcp(", "@unix(", "@//"};
    struct str rest = {w.data + at, w.len - at};
    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        if (w.data[at] != '@' || !str_starts(rest, marks[i]))
            continue;
        size_t start = at;
        while (start > 0 && at - start < NAME_BYTES_MAX && !strchr(":/ ", w.data[start - 1]))
            start--;
        if (start == at || start == 0)
            return false;
        *ret = (struct span){start, at};
        return true;
    }
    return false;
}

/* "jdbc:oracle:thin:user/word@host:1521:name". */
static bool oracle_find(struct str w, size_t at, struct span *ret)
{
    static const char begin[] = "jdbc:oracle:";
    struct str rest = {w.data + at, w.len - at};
    if (!str_starts(rest, begin))
        return false;
    size_t stop = at + strlen(begin);
    while (stop < w.len && !strchr(" \t\n\"'<>", w.data[stop]))
        stop++;
    const char *slash = memchr(rest.data, '/', stop - at);
    size_t start = slash ? (size_t)(slash + 1 - w.data) : stop;
    const char *end = start < stop ? memrchr(w.data + start, '@', stop - start) : NULL;
    if (!end || end == w.data + start)
        return false; /* "jdbc:oracle:thin:@//host/name" */
    *ret = (struct span){start, (size_t)(end - w.data)};
    return !memchr(w.data + at, '@', start - at);
}

/* "hooks.slack.com/services/…": the path behind. */
static bool place_find(struct str w, size_t at, struct span *ret)
{
    if (at > 0 && is_alnum(w.data[at - 1]))
        return false;
    size_t len = redact_place_len((struct str){w.data + at, w.len - at}), end = at + len;
    while (len > 0 && end < w.len &&
           (is_alnum(w.data[end]) || (w.data[end] && strchr("_-:@/", w.data[end]))))
        end++;
    *ret = (struct span){at + len, end};
    return end > at + len;
}

/* The name before the '=' or ':' at `at`; empty when what stands there is none. */
static struct str name_before(struct str w, size_t at)
{
    size_t end = at;
    end -= end > 0 && w.data[at] == '=' && w.data[end - 1] == ']'; /* ENV["name"]= */
    while (end > 0 && w.data[end - 1] == '\\')                     /* \"name\": */
        end--;
    if (end > 0 && strchr("\"'", w.data[end - 1]))
        end--;
    while (end > 0 && w.data[end - 1] == '\\')
        end--;
    size_t start = end;
    while (start > 0 && end - start < NAME_BYTES_MAX &&
           (is_alnum(w.data[start - 1]) || strchr("_-.", w.data[start - 1])))
        start--;
    if (w.data[at] == ':' && start > 0 && strchr("/:", w.data[start - 1]))
        start = end; /* a folder, a namespace */
    return (struct str){w.data + start, end - start};
}

/* Where the value ends that begins at `start`. */
static struct span value_span(struct str w, size_t at, struct str name)
{
    size_t start = at + 1;
    while (start < w.len && strchr(" \t", w.data[start]))
        start++;
    bool escaped = start + 1 < w.len && w.data[start] == '\\' && strchr("\"'", w.data[start + 1]);
    char quote = start + escaped < w.len ? w.data[start + escaped] : '\0';
    if (quote == '"' || quote == '\'') {
        size_t end = start += 1U + escaped;
        while (end < w.len && !(w.data[end] == quote && (w.data[end - 1] == '\\') == escaped))
            end++;
        return (struct span){start, end - (escaped && end < w.len && end > start)};
    }
    /* "NAME=…" and "--name=…" from the begin of a word: all of it; in a text up to what
     * separates fields in queries and lists. */
    const char *from = name.data;
    while (from > w.data && from[-1] == '-')
        from--;
    bool whole = from == w.data;
    size_t end = start;
    while (end < w.len && (whole || !strchr("&;#\"'` \t\n\\|<>", w.data[end])))
        end++;
    return (struct span){start, end};
}

static bool named_find(struct str w, size_t at, struct span *ret, bool *open)
{
    char c = w.data[at];
    if (c != '=' && c != ':')
        return false;
    if (c == ':' && at + 1 < w.len && (w.data[at + 1] == ':' || w.data[at + 1] == '='))
        return false; /* "a::b"; "name:=value" is found at the '=' */
    size_t before = c == '=' && at > 0 && w.data[at - 1] == ':' ? at - 1 : at;
    struct str name = name_before(w, before);
    enum redact_name kind = name.len > 0 ? redact_name_kind(name) : REDACT_NAME_PLAIN;
    if (kind == REDACT_NAME_PLAIN && c == '=' && name.len > 0 &&
        redact_is_secret_pair(name, (struct str){w.data + at + 1, w.len - at - 1}))
        kind = REDACT_NAME_WEAK;
    if (kind == REDACT_NAME_PLAIN || (c == ':' && kind != REDACT_NAME_STRONG && at + 1 < w.len &&
                                      strchr("/0123456789", w.data[at + 1])))
        return false; /* "session:8080", "auth:/path" */
    struct str rest = {w.data + at + 1, w.len - at - 1};
    if (c == ':' && str_starts(rest, "//"))
        return false;
    *ret = value_span(w, at, name);
    *open = ret->start >= w.len && c == ':' && kind == REDACT_NAME_STRONG;
    return ret->end > ret->start;
}

/* A word that is a path, or the part of it behind '=' or ':', has names, not keys. */
static bool is_in_path(struct str w, size_t at)
{
    size_t start = at;
    while (start > 0 && at - start < PATH_LOOK_BYTES_MAX && !strchr("=:,\"' ", w.data[start - 1]))
        start--;
    struct str rest = {w.data + start, w.len - start};
    return str_starts(rest, "./") || str_starts(rest, "../") || str_starts(rest, "~/") ||
           (str_starts(rest, "/") && !str_starts(rest, "//"));
}

static int class_of(char c)
{
    unsigned char u = (unsigned char)c;
    return isupper(u) ? 1 : islower(u) ? 2 : isdigit(u) ? 3 : 0;
}

static bool looks_secret(struct str run)
{
    size_t seen[4] = {0}, pairs = 0, changes = 0;
    for (size_t i = 0; i < run.len; i++) {
        int class = class_of(run.data[i]), before = i ? class_of(run.data[i - 1]) : 0;
        seen[class]++;
        if (class == 0 || before == 0)
            continue;
        pairs++;
        changes += class != before && !(before == 1 && class == 2); /* "Word" */
    }
    return run.len >= LOOKS_LEN_MIN && seen[1] > 0 && seen[2] > 0 && seen[3] > 0 &&
           changes * 100 >= pairs * LOOKS_CHANGES_PERCENT;
}

static size_t run_end(struct str w, size_t at, const char *others)
{
    while (at < w.len && (is_alnum(w.data[at]) || (w.data[at] && strchr(others, w.data[at]))))
        at++;
    return at;
}

/* A hash that says so ("sha256-…" of a lock file), or a symbol of C++ or Rust. */
static bool is_public(struct str w, size_t at, const char *chars)
{
    size_t start = at;
    while (start > 0 && at - start < PATH_LOOK_BYTES_MAX &&
           (is_alnum(w.data[start - 1]) || strchr(chars, w.data[start - 1])))
        start--;
    static const char *const begins[] = {"sha1-", "sha256-", "sha384-", "sha512-", "_Z", "_R"};
    struct str run = {w.data + start, w.len - start};
    for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
        if (str_starts(run, begins[i]))
            return true;
    return false;
}

static bool looks_find(struct str w, size_t at, struct span *ret)
{
    static const char narrow[] = "+_-", wide[] = "+_-/";
    size_t end = run_end(w, at, narrow);
    if (end == at || (at > 0 && run_end(w, at - 1, narrow) > at - 1))
        return false; /* not where a run begins */
    size_t key_len = redact_key_len((struct str){w.data + at, w.len - at});
    if (key_len > 0) {
        *ret = (struct span){at, at + key_len};
        return true;
    }
    size_t whole = at == 0 || w.data[at - 1] != '/' ? run_end(w, at, wide) : end;
    if (looks_secret((struct str){w.data + at, whole - at}))
        end = whole;
    if (!looks_secret((struct str){w.data + at, end - at}) || is_public(w, at, wide) ||
        is_in_path(w, at))
        return false;
    while (end < w.len && w.data[end] == '=')
        end++;
    *ret = (struct span){at, end};
    return true;
}

bool redact_scan(struct redact_out *out, struct str w)
{
    size_t from = 0;
    bool open = false;
    for (size_t i = 0; i < w.len;) {
        struct span secret = {0};
        bool found = place_find(w, i, &secret) || oracle_find(w, i, &secret) ||
                     uri_find(w, i, &secret) || driver_find(w, i, &secret) ||
                     named_find(w, i, &secret, &open) || looks_find(w, i, &secret);
        if (!found || secret.start < from) {
            i++;
            continue;
        }
        redact_put(out, (struct str){w.data + from, secret.start - from});
        redact_hide(out);
        from = i = secret.end;
    }
    redact_put(out, (struct str){w.data + from, w.len - from});
    return open;
}

bool redact_user(struct redact_out *out, struct str word)
{
    size_t end = user_end(word, 0);
    if (end == 0 || !memchr(word.data, ':', end) || memmem(word.data, word.len, "://", 3))
        return false;
    redact_hide(out);
    redact_scan(out, (struct str){word.data + end, word.len - end});
    return true;
}

bool redact_login(struct redact_out *out, struct str word)
{
    static const char option[] = "userid=";
    size_t start = str_starts(word, option) ? strlen(option) : 0;
    size_t slash = start;
    while (slash < word.len && !strchr("/@=", word.data[slash]))
        slash++;
    if (slash == start || slash + 1 >= word.len || word.data[slash] != '/')
        return false; /* "/ as sysdba", "@script.sql", "me@service" */
    struct str rest = {word.data + slash + 1, word.len - slash - 1};
    const char *at = memrchr(rest.data, '@', rest.len);
    size_t len = at ? (size_t)(at - rest.data) : rest.len;
    redact_put(out, (struct str){word.data, slash + 1});
    redact_hide(out);
    redact_put(out, (struct str){rest.data + len, rest.len - len});
    return true;
}

/* The end of the literal that begins with the quote at `at`: behind its closing quote. */
static size_t literal_end(struct str text, size_t at, bool escapes)
{
    char quote = text.data[at];
    for (size_t i = at + 1; i < text.len; i++) {
        if (escapes && text.data[i] == '\\' && i + 1 < text.len)
            i++;
        else if (text.data[i] == quote)
            return i + 1;
    }
    return text.len;
}

/* $tag$…$tag$ of PostgreSQL; 0: none begins here. */
static size_t dollar_end(struct str text, size_t at)
{
    size_t tag = at + 1;
    while (tag < text.len && (is_alnum(text.data[tag]) || text.data[tag] == '_'))
        tag++;
    if (tag >= text.len || text.data[tag] != '$' ||
        (tag > at + 1 && isdigit((unsigned char)text.data[at + 1])))
        return 0;
    size_t len = tag - at + 1;
    for (size_t i = tag + 1; i + len <= text.len; i++)
        if (text.data[i] == '$' && memcmp(text.data + i, text.data + at, len) == 0)
            return i + len;
    return text.len;
}

static size_t number_end(struct str text, size_t at)
{
    bool begins = isdigit((unsigned char)text.data[at]) &&
                  (at == 0 || (!is_alnum(text.data[at - 1]) && !strchr("_$.", text.data[at - 1])));
    size_t end = at;
    while (begins && end < text.len && (is_alnum(text.data[end]) || text.data[end] == '.'))
        end++;
    return end;
}

/* A backslash is an escape in literals of MySQL and none in those of PostgreSQL. */
enum sql_reading { SQL_ESCAPES, SQL_PLAIN, SQL_URI, SQL_READINGS };

/* Where a secret ends that begins at `at` for one who reads it so; 0 or `at`: none does. */
static size_t sql_secret_end(struct str text, size_t at, enum sql_reading reading)
{
    char c = text.data[at];
    struct span user;
    if (reading == SQL_URI) /* of "\c postgresql://…" */
        return at >= 3 && uri_find(text, at - 3, &user) ? user.end : 0;
    return c == '\'' || c == '"' ? literal_end(text, at, reading == SQL_ESCAPES)
           : c == '$'            ? dollar_end(text, at)
                                 : number_end(text, at);
}

/* What is a secret for any of the readings is hidden. */
void redact_sql(struct redact_out *out, struct str text)
{
    size_t from = 0, ends[SQL_READINGS] = {0};
    bool before = false;
    for (size_t i = 0; i <= text.len; i++) {
        bool inside = false;
        for (int reading = 0; reading < SQL_READINGS && i < text.len; reading++) {
            if (i >= ends[reading])
                ends[reading] = sql_secret_end(text, i, reading);
            inside |= i < ends[reading];
        }
        if (!before && (inside || i == text.len))
            redact_scan(out, (struct str){text.data + from, i - from});
        if (!before && inside)
            redact_hide(out);
        if (before && !inside)
            from = i;
        before = inside;
    }
}
