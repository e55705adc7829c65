/* Long names as people read them: C++ writes templates out. */
#include "analyze/heap_sums.h"

#include <stdio.h>
#include <string.h>

enum { NAME_LONG_BYTES = 60, NAME_BYTES_MAX = 120 };

static bool starts_at(struct str name, size_t at, const char *text)
{
    return str_starts((struct str){name.data + at, name.len - at}, text);
}

/* Just behind the bracket that closes the one at `at`; the name's end if there is none. */
static size_t closed(struct str name, size_t at)
{
    char open = name.data[at], close = open == '<' ? '>' : ')';
    size_t depth = 0;
    for (; at < name.len; at++) {
        bool arrow = name.data[at] == '>' && name.data[at - 1] == '-';
        if (name.data[at] == open)
            depth++;
        else if (name.data[at] == close && !arrow && --depth == 0)
            return at + 1;
    }
    return name.len;
}

/* "operator<<", "operator()" and "(anonymous namespace)" are no lists. */
static size_t literal(struct str name, size_t at)
{
    static const char *const texts[] = {"operator<=>", "operator<<=", "operator->*",
                                        "operator<<",  "operator>>",  "operator()",
                                        "operator->",  "operator<=",  "operator>=",
                                        "operator<",   "operator>",   "(anonymous namespace)"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (starts_at(name, at, texts[i]))
            return strlen(texts[i]);
    return 0;
}

/* What stands in brackets becomes "…"; of a template its result is left out. */
static struct str folded(struct arena *arena, struct str name)
{
    char *text = arena_alloc(arena, name.len * 3 + 1);
    size_t len = 0, begin = 0;
    bool lists = false, named = false;
    for (size_t at = 0; text && at < name.len;) {
        size_t keep = literal(name, at);
        named |= starts_at(name, at, "operator");
        if (keep == 0 && (name.data[at] == '<' || name.data[at] == '(')) {
            size_t end = closed(name, at);
            bool empty = end - at <= 2;
            lists |= name.data[at] == '(';
            text[len++] = name.data[at];
            if (!empty)
                len += (size_t)sprintf(text + len, "…");
            text[len++] = name.data[at] == '<' ? '>' : ')';
            at = end;
            continue;
        }
        keep = keep > 0 ? keep : 1;
        memcpy(text + len, name.data + at, keep);
        len += keep;
        at += keep;
        if (text[len - 1] == ' ' && !lists && !named)
            begin = len;
    }
    return text ? (struct str){text + begin, len - begin} : STR("");
}

const char *heap_name(struct arena *arena, struct str name)
{
    if (name.len > NAME_LONG_BYTES)
        name = folded(arena, name);
    if (name.len <= NAME_BYTES_MAX)
        return arena_dup_len(arena, name.data, name.len);
    size_t len = NAME_BYTES_MAX;
    while (len > 0 && ((unsigned char)name.data[len] & 0xc0) == 0x80)
        len--;
    return arena_printf(arena, "%.*s…", (int)len, name.data);
}
