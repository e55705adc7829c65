/* Whose memory it is: the allocator, its wrappers and libraries ask for others. */
#include "analyze/heap_sums.h"

#include "analyze/categories.h"

#include <string.h>

enum { SHOWN_MAX = 3, WALKED_MAX = 512, NAME_BYTES_MAX = 120 };

/* Functions whose only job is to get memory for their caller. A '*' at the end is any end. */
static const char *const wrappers[] = {
    "valloc",
    "pvalloc",
    "cfree",
    "strdup",
    "strndup",
    "__strdup",
    "__strndup",
    "wcsdup",
    "asprintf",
    "vasprintf",
    "__vasprintf*",
    "getline",
    "getdelim",
    "mmap",
    "mmap64",
    "mremap",
    "sbrk",
    "brk",
    "munmap",
    /* C++: what stands between `new` and whoever wrote a container */
    "operator new*",
    "std::__new_allocator<*",
    "__gnu_cxx::new_allocator<*",
    "std::allocator<*",
    "std::allocator_traits<*",
    "std::__allocate_guarded*",
    "std::_Vector_base<*",
    "std::vector<*",
    "std::__cxx11::basic_string<*",
    "std::basic_string<*",
    "std::_Rb_tree<*",
    "std::_Hashtable<*",
    "std::__detail::*",
    "std::map<*",
    "std::unordered_map<*",
    "std::__cxx11::list<*",
    "std::__cxx11::_List_base<*",
    "std::_Deque_base<*",
    "std::deque<*",
    "std::make_unique<*",
    "std::make_shared<*",
    "std::allocate_shared<*",
    "std::__shared_ptr<*",
    "std::__shared_count<*",
    "std::shared_ptr<*",
    "std::function<*",
    "std::_Function_base::*",
    "std::pmr::*",
    /* programs' own */
    "xmalloc*",
    "xcalloc*",
    "xrealloc*",
    "xstrdup*",
    "zmalloc*",
    "zcalloc*",
    "zrealloc*",
    "ztrymalloc*",
    "ztryrealloc*",
    "ztrycalloc*",
    "g_malloc*",
    "g_realloc*",
    "g_try_malloc*",
    "g_slice_alloc*",
    "g_strdup*",
    "PyMem_*",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "_PyMem_*",
    "_PyObject_Malloc*",
    "pymalloc_*",
    "_PyObject_GC_*",
    "_PyObject_New*",
    "sqlite3Malloc*",
    "sqlite3MemMalloc",
    "sqlite3MemRealloc",
    "sqlite3Realloc*",
    "sqlite3DbMalloc*",
    "sqlite3DbRealloc*",
    "sqlite3_malloc*",
    "sqlite3_realloc*",
    "dbMallocRawFinish",
    "CRYPTO_malloc*",
    "CRYPTO_zalloc*",
    "CRYPTO_realloc*",
    "CRYPTO_strdup*",
    "av_malloc*",
    "alloc::alloc::*",
    "alloc::raw_vec::*",
    "<alloc::*",
    "__rg_*",
    "obstack_*",
    "_obstack_*",
};

static bool matches(struct str name, const char *pattern)
{
    size_t len = strlen(pattern);
    if (pattern[len - 1] != '*')
        return str_is(name, pattern);
    return name.len >= len - 1 && memcmp(name.data, pattern, len - 1) == 0;
}

static bool is_allocator(const struct profile_function *function)
{
    const char *category = category_of(function);
    if (category && strcmp(category, "alloc") == 0)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(wrappers); i++)
        if (matches(function->name, wrappers[i]))
            return true;
    return false;
}

static bool is_library(struct str path)
{
    static const char *const libraries[] = {"libc.so", "libc-",     "libpthread", "ld-linux",
                                            "ld-musl", "libstdc++", "libc++",     "[vdso]"};
    struct str name = path;
    while (path.len > 0)
        name = str_cut(&path, '/');
    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
        if (str_starts(name, libraries[i]))
            return true;
    return false;
}

/* Begins every stack, and is in the program's own image: no one's memory. */
static bool is_root(struct str name)
{
    return str_is(name, "_start") || str_is(name, "start_thread") || str_is(name, "clone") ||
           str_is(name, "clone3") || str_is(name, "__clone3");
}

/* From the innermost place of a stack outwards. */
struct walk {
    const struct profile *profile;
    uint32_t stack, place;
    unsigned walked;
};

static const struct profile_place *walk_next(struct walk *walk, struct heap_place *ret)
{
    const struct profile *profile = walk->profile;
    while (walk->stack != 0 && walk->walked < WALKED_MAX) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[walk->stack].frame];
        if (walk->place >= frame->place_count) {
            walk->stack = profile->stacks[walk->stack].parent;
            walk->place = 0;
            walk->walked++;
            continue;
        }
        const struct profile_place *place = &profile->places[frame->places + walk->place++];
        *ret = (struct heap_place){.function = place->function,
                                   .image = frame->image,
                                   .file = place->file,
                                   .line = place->line,
                                   .inlined = walk->place < frame->place_count};
        return place;
    }
    return NULL;
}

/* The innermost frame is what was called, whatever its name: the recorder put it there. */
static bool is_called(const struct profile *profile, uint32_t stack)
{
    return profile->frames[profile->stacks[stack].frame].kind == FRAME_NAMED;
}

static void walk_begin(struct walk *walk, const struct profile *profile, uint32_t stack)
{
    bool called = stack != 0 && is_called(profile, stack);
    *walk = (struct walk){.profile = profile,
                          .stack = called ? profile->stacks[stack].parent : stack};
}

static bool is_own(const struct profile *profile, const struct heap_place *place)
{
    const struct profile_function *function = &profile->functions[place->function];
    return !is_allocator(function) && !is_library(profile->images[place->image].path) &&
           !is_root(function->name);
}

/* Walks to the place that heap_place_of() tells of; false: the stack has none. */
static bool own_find(struct walk *walk, struct heap_place *ret)
{
    struct walk at = *walk, library = {0};
    struct heap_place place, outside = {0}, innermost = {0};
    bool any = false, any_outside = false;
    while (walk_next(&at, &place)) {
        if (is_own(at.profile, &place)) {
            *walk = at;
            *ret = place;
            return true;
        }
        if (!any_outside && !is_allocator(&at.profile->functions[place.function])) {
            any_outside = true;
            outside = place;
            library = at;
        }
        if (!any) {
            any = true;
            innermost = place;
        }
    }
    if (any_outside)
        *walk = library;
    *ret = any_outside ? outside : innermost;
    return any;
}

struct heap_place heap_place_of(const struct profile *profile, uint32_t stack)
{
    struct walk walk;
    struct heap_place place = {0};
    walk_begin(&walk, profile, stack);
    own_find(&walk, &place);
    return place;
}

static const char *name_add(struct arena *arena, const char *text, struct str name)
{
    name.len = MIN(name.len, (size_t)NAME_BYTES_MAX);
    return arena_printf(arena, "%s%s%.*s", text, *text ? " ← " : "", STR_FMT(name));
}

const char *heap_where(struct arena *arena, const struct profile *profile, uint32_t stack)
{
    struct walk walk;
    struct heap_place place;
    walk_begin(&walk, profile, stack);
    if (!own_find(&walk, &place))
        return "[no stack]";
    const char *text = name_add(arena, "", profile->functions[place.function].name);
    unsigned shown = 1;
    while (shown < SHOWN_MAX && walk_next(&walk, &place)) {
        if (!is_own(profile, &place))
            continue;
        text = name_add(arena, text, profile->functions[place.function].name);
        shown++;
    }
    return text;
}

struct str heap_entry_of(const struct profile *profile, uint32_t stack)
{
    struct walk walk = {.profile = profile, .stack = stack};
    struct heap_place place;
    if (!walk_next(&walk, &place))
        return STR("");
    const struct profile_function *function = &profile->functions[place.function];
    return is_called(profile, stack) || is_allocator(function) ? function->name : STR("");
}
