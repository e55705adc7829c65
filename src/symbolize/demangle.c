/* Names for people: demangled, and without the suffixes that compilers put on parts and
 * clones of a function. */
#include "symbolize/internal.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>

/* libiberty's recursion is limited by itself, but its work is not: a short hostile name can
 * unfold to very much. Real names are far shorter. */
enum { DEMANGLE_BYTES_MAX = 1 << 14, DEMANGLED_BYTES_MAX = 1 << 16 };

static bool digits(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    return text.len > 0;
}

/* The part behind the last dot, if it is one of the compiler's: how long with its dot. */
static size_t suffix_len(struct str name)
{
    static const char *const words[] = {"cold",     "part",       "constprop", "isra",
                                        "lto_priv", "localalias", "llvm",      "clone",
                                        "resolver", "warm",       "hot",       "eh"};
    const char *dot = name.len > 1 ? memrchr(name.data + 1, '.', name.len - 1) : NULL;
    if (!dot)
        return 0;
    struct str last = {dot + 1, (size_t)(name.data + name.len - dot - 1)};
    if (digits(last)) { /* ".part.0": the number belongs to the word before it */
        size_t before = (size_t)(dot - name.data);
        const char *word = before > 1 ? memrchr(name.data + 1, '.', before - 1) : NULL;
        if (!word)
            return 0;
        last = (struct str){word + 1, (size_t)(dot - word - 1)};
        dot = word;
    }
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_is(last, words[i]))
            return (size_t)(name.data + name.len - dot);
    return 0;
}

struct str symbol_base_name(struct str linkage)
{
    size_t len;
    while ((len = suffix_len(linkage)) > 0)
        linkage.len -= len;
    return linkage;
}

/* Where the demangled text goes; a name that unfolds beyond the bound is given up in the
 * middle, since the library's callbacks cannot say "enough". */
struct unfolding {
    jmp_buf enough;
    size_t len;
    char text[DEMANGLED_BYTES_MAX];
};

static void unfold(const char *text, size_t len, void *opaque)
{
    struct unfolding *unfolding = opaque;
    if (len > sizeof(unfolding->text) - unfolding->len)
        longjmp(unfolding->enough, 1);
    if (len > 0) /* an empty text may have no address */
        memcpy(unfolding->text + unfolding->len, text, len);
    unfolding->len += len;
}

static bool name_unfold(const char *name, struct unfolding *unfolding)
{
    if (setjmp(unfolding->enough) != 0)
        return false;
    unfolding->len = 0;
    /* Rust's older scheme looks like C++, with a hash at the end: it is asked first. */
    if (rust_demangle_callback(name, DMGL_PARAMS | DMGL_ANSI, unfold, unfolding))
        return true;
    unfolding->len = 0;
    return name[1] == 'Z' &&
           cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI, unfold, unfolding);
}

/* As symbol_demangle(), but a name that is not mangled stays where it is. */
static struct str demangle(struct arena *arena, struct str linkage)
{
    if ((!str_starts(linkage, "_Z") && !str_starts(linkage, "_R")) ||
        linkage.len > DEMANGLE_BYTES_MAX || memchr(linkage.data, 0, linkage.len))
        return linkage;
    char name[DEMANGLE_BYTES_MAX + 1];
    memcpy(name, linkage.data, linkage.len);
    name[linkage.len] = '\0';
    struct unfolding *unfolding = malloc(sizeof(*unfolding));
    struct str ret = linkage;
    if (unfolding && name_unfold(name, unfolding) && unfolding->len > 0) {
        ret = (struct str){arena_dup_len(arena, unfolding->text, unfolding->len), unfolding->len};
        if (arena_failed(arena))
            ret = linkage;
    }
    free(unfolding);
    return ret;
}

struct str symbol_demangle(struct arena *arena, struct str linkage)
{
    struct str name = demangle(arena, linkage);
    if (name.data == linkage.data)
        name.data = arena_dup_len(arena, linkage.data, linkage.len);
    return arena_failed(arena) ? (struct str){"", 0} : name;
}

struct str symbol_pretty(struct arena *arena, struct str linkage)
{
    struct str base = linkage;
    struct str stub = {NULL, 0};
    if (str_ends(base, "@plt")) {
        stub = STR("@plt");
        base.len -= stub.len;
    }
    base = symbol_base_name(base);
    struct str name = demangle(arena, base);
    if (name.data == base.data) {
        if (stub.len > 0 || base.len == linkage.len)
            return linkage;
        /* A copy: whoever remembers texts by where they lie must not mix up the two. */
        return (struct str){arena_dup_len(arena, base.data, base.len),
                            arena_failed(arena) ? 0 : base.len};
    }
    if (stub.len == 0)
        return name;
    return str_from(arena_printf(arena, "%.*s@plt", STR_FMT(name)));
}
