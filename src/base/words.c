/* One pass over the text; see words.h for the rules. */
#include "base/words.h"

#include "base/str.h"

#include <ctype.h>
#include <errno.h>

struct splitter {
    const char *text;
    size_t at;
    char *word; /* of the word being read; as long as the text, so it always fits */
    size_t len;
    bool in_word;
    size_t bracket_at;  /* position of the word's first plain '[', from 1; 0: none yet */
    size_t bracket_len; /* of the word with it */
    struct words *words;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void syntax_note(struct splitter *s, const char *what)
{
    if (s->words->syntax)
        return;
    s->words->syntax = what;
    s->words->syntax_at = s->at + 1;
}

static void pattern_note(struct splitter *s, const char *what)
{
    if (!s->words->pattern)
        s->words->pattern = what;
}

static void put(struct splitter *s, char c)
{
    s->word[s->len++] = c;
    s->in_word = true;
}

/* "$x", "${x}" and "$(x)" mean something to a shell; a lone '$' does not. */
static void dollar_note(struct splitter *s)
{
    char next = s->text[s->at + 1];
    if (next == '(')
        syntax_note(s, "$(…)");
    else if (next == '{')
        syntax_note(s, "${…}");
    else if (isalnum((unsigned char)next) || (next && strchr("_@*#?$!-", next)))
        syntax_note(s, "$…");
}

/* A '[' is a pattern only with a ']' behind it in the same word, and something between. */
static void bracket_note(struct splitter *s, char c)
{
    if (c == '[' && s->bracket_at == 0) {
        s->bracket_at = s->at + 1;
        s->bracket_len = s->len + 1;
    } else if (c == ']' && s->bracket_at > 0 && s->len > s->bracket_len) {
        pattern_note(s, "[…]");
    }
}

/* "~", "~/x", "~user": a home folder. */
static bool is_home(char next)
{
    return next == '/' || next == '\0' || next == '_' || is_blank(next) ||
           isalpha((unsigned char)next);
}

/* What an unquoted character would have been to a shell. `{` is left alone: alone it is an
 * ordinary word too. */
static void plain_note(struct splitter *s)
{
    static const struct {
        char c;
        const char *name;
    } marks[] = {
        {'|', "|"}, {'&', "&"}, {';', ";"}, {'<', "<"}, {'>', ">"},
        {'(', "("}, {')', ")"}, {'`', "`"}, {'*', "*"}, {'\n', "a line end"},
    };
    char c = s->text[s->at], next = s->text[s->at + 1];
    if (c == '$') {
        dollar_note(s);
    } else if (c == '~' && !s->in_word && is_home(next)) {
        syntax_note(s, "~");
    } else if (c == '[' || c == ']') {
        bracket_note(s, c);
    } else if (c == '?') {
        pattern_note(s, "?");
    } else if (c == '&' && next == '&') {
        syntax_note(s, "&&");
    } else if (c == '|' && next == '|') {
        syntax_note(s, "||");
    } else {
        for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
            if (c == marks[i].c)
                syntax_note(s, marks[i].name);
    }
}

static int unclosed(const struct splitter *s, size_t opened, const char *what, struct why *why)
{
    return why_set(why, WHY_USAGE, EINVAL, "close it, or put a backslash before it",
                   "%s at position %zu is never closed in: %s", what, opened + 1, s->text);
}

static int take_single(struct splitter *s, struct why *why)
{
    size_t opened = s->at++;
    s->in_word = true;
    while (s->text[s->at] && s->text[s->at] != '\'')
        put(s, s->text[s->at++]);
    if (!s->text[s->at])
        return unclosed(s, opened, "the single quote", why);
    s->at++;
    return 0;
}

static int take_double(struct splitter *s, struct why *why)
{
    size_t opened = s->at++;
    s->in_word = true;
    while (s->text[s->at] && s->text[s->at] != '"') {
        char c = s->text[s->at], next = s->text[s->at + 1];
        if (c == '\\' && next && strchr("\"\\$`\n", next)) {
            if (next != '\n')
                put(s, next);
            s->at += 2;
            continue;
        }
        if (c == '$')
            dollar_note(s);
        else if (c == '`')
            syntax_note(s, "`");
        put(s, c);
        s->at++;
    }
    if (!s->text[s->at])
        return unclosed(s, opened, "the double quote", why);
    s->at++;
    return 0;
}

static int take_backslash(struct splitter *s, struct why *why)
{
    char next = s->text[s->at + 1];
    if (!next)
        return why_set(why, WHY_USAGE, EINVAL, "write \\\\ for a backslash",
                       "the backslash at position %zu has nothing after it in: %s", s->at + 1,
                       s->text);
    if (next != '\n')
        put(s, next);
    s->at += 2;
    return 0;
}

static int word_end(struct splitter *s, struct arena *arena, struct why *why)
{
    if (!s->in_word)
        return 0;
    if (s->words->count >= WORDS_MAX)
        return why_set(why, WHY_USAGE, E2BIG, "put the command into a script",
                       "the command has more than %d words", WORDS_MAX);
    char *copy = arena_alloc(arena, s->len + 1);
    if (!copy)
        return why_nomem(why);
    memcpy(copy, s->word, s->len);
    s->words->argv[s->words->count++] = copy;
    s->len = s->bracket_at = 0;
    s->in_word = false;
    return 0;
}

static int take(struct splitter *s, struct arena *arena, struct why *why)
{
    char c = s->text[s->at];
    switch (c) {
    case '\'':
        return take_single(s, why);
    case '"':
        return take_double(s, why);
    case '\\':
        return take_backslash(s, why);
    default:
        break;
    }
    plain_note(s);
    if (is_blank(c)) {
        s->at++;
        return word_end(s, arena, why);
    }
    put(s, c);
    s->at++;
    return 0;
}

/* "NAME=value" before the program sets its environment, in a shell. */
static void assignment_note(struct words *words)
{
    const char *first = words->count > 0 ? words->argv[0] : "";
    size_t len = 0;
    while (isalnum((unsigned char)first[len]) || first[len] == '_')
        len++;
    if (len > 0 && !isdigit((unsigned char)first[0]) && first[len] == '=' && !words->syntax) {
        words->syntax = "NAME=…";
        words->syntax_at = 1;
    }
}

int words_split(struct arena *arena, const char *text, struct words *ret, struct why *why)
{
    size_t len = strlen(text);
    struct words words = {0};
    /* At most one word every two characters. */
    words.argv = arena_alloc(arena, (MIN(len / 2, (size_t)WORDS_MAX) + 2) * sizeof(*words.argv));
    struct splitter s = {.text = text, .word = arena_alloc(arena, len + 1), .words = &words};
    if (!words.argv || !s.word)
        return why_nomem(why);
    int r = 0;
    while (r == 0 && text[s.at])
        r = take(&s, arena, why);
    if (r == 0)
        r = word_end(&s, arena, why);
    if (r < 0)
        return r;
    words.argv[words.count] = NULL;
    assignment_note(&words);
    *ret = words;
    return 0;
}
