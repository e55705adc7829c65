/* Whose memory it is: the allocator, its wrappers and libraries ask for others. */
#include "analyze/heap_sums.h"

#include "analyze/categories.h"

#include <errno.h>
#include <string.h>

enum { SHOWN_MAX = 3, WALKED_MAX = 512 };

/* Functions whose only job is to get memory for their caller. A '*' at the end is any end. */
static const char *const wrappers[] = {
    "valloc",
    "pvalloc",
    "cfree",
    /* the same by other names, as symbols tell them */
    "__calloc",
    "__libc_reallocarray",
    "__libc_valloc",
    "__libc_pvalloc",
    "__posix_memalign",
    "mi_calloc*",
    "mi_new*",
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
    "__malloc*",
    "__calloc*",
    "__realloc*",
    "__memalign*",
    "_mid_memalign*",
    /* C++: right above operator new */
    "operator new*",
    "std::__new_allocator<*",
    "__gnu_cxx::new_allocator<*",
    "std::allocator<*",
    "std::allocator_traits<*",
    /* Rust: above __rust_alloc */
    "alloc::alloc::*",
    "alloc::raw_vec::*",
    "<alloc::alloc::*",
    "__rg_*",
    /* programs' own */
    "xmalloc*",
    "xcalloc*",
    "xrealloc*",
    "xstrdup*",
    "xmemdup*",
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
    "obstack_*",
    "_obstack_*",
    "ggc_internal_*",
};

/* Libraries that are compiled into programs: as the linker knows them, or as people do. */
static const char *const inside[] = {
    "_ZNSt*",         "_ZNKSt*",         "_ZSt*",    "_ZNSs*",       "_ZNKSs*",
    "_ZN9__gnu_cxx*", "_ZNK9__gnu_cxx*", "std::*",   "__gnu_cxx::*", "alloc::*",
    "<alloc::*",      "core::*",         "<core::*", "<std::*",
};

static bool matches(struct str name, const char *pattern)
{
    size_t len = strlen(pattern);
    if (pattern[len - 1] != '*')
        return str_is(name, pattern);
    return name.len >= len - 1 && memcmp(name.data, pattern, len - 1) == 0;
}

static bool matches_any(struct str name, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (matches(name, patterns[i]))
            return true;
    return false;
}

static bool is_allocator(const struct profile_function *function)
{
    const char *category = category_of(function);
    return (category && strcmp(category, "alloc") == 0) ||
           matches_any(function->name, wrappers, ARRAY_SIZE(wrappers));
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

/* Whose a function is. */
enum owner { OWNER_NOT_ASKED, OWNER_PROGRAM, OWNER_LIBRARY, OWNER_ALLOCATOR };

static enum owner owner_find(const struct profile *profile, const struct profile_function *function)
{
    if (is_allocator(function))
        return OWNER_ALLOCATOR;
    /* A walk that ended early says so in a frame without an image. */
    bool nowhere = function->unnamed && function->image == 0;
    bool library = nowhere || is_library(profile->images[function->image].path) ||
                   is_root(function->name) ||
                   matches_any(function->linkage, inside, ARRAY_SIZE(inside)) ||
                   matches_any(function->name, inside, ARRAY_SIZE(inside));
    return library ? OWNER_LIBRARY : OWNER_PROGRAM;
}

int heap_owners_init(struct arena *arena, const struct profile *profile, struct heap_owners *ret)
{
    uint8_t *known = arena_alloc(arena, profile->function_count + 1);
    if (!known)
        return -ENOMEM;
    *ret = (struct heap_owners){profile, known};
    return 0;
}

static enum owner owner_of(const struct heap_owners *owners, uint32_t function)
{
    if (owners->known[function] == OWNER_NOT_ASKED)
        owners->known[function] = (uint8_t)owner_find(owners->profile,
                                                      &owners->profile->functions[function]);
    return (enum owner)owners->known[function];
}

/* From the innermost place of a stack outwards. */
struct walk {
    const struct profile *profile;
    uint32_t stack, place;
    unsigned walked;
};

static bool walk_next(struct walk *walk, struct heap_place *ret)
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
        return true;
    }
    return false;
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

/* Without a symbol it is called by its image and its place there. */
static bool is_nameless(const struct profile_function *function)
{
    return function->unnamed || (function->linkage.len == 0 &&
                                 memmem(function->name.data, function->name.len, "+0x", 3));
}

/* A function without a name that an allocator calls is the allocator's. */
static enum owner owner_at(const struct heap_owners *owners, const struct walk *walk,
                           const struct heap_place *place)
{
    enum owner owner = owner_of(owners, place->function);
    struct walk outwards = *walk;
    struct heap_place caller;
    if (owner == OWNER_PROGRAM && is_nameless(&owners->profile->functions[place->function]) &&
        walk_next(&outwards, &caller) && owner_of(owners, caller.function) == OWNER_ALLOCATOR)
        return OWNER_ALLOCATOR;
    return owner;
}

/* Walks to the place that heap_place_of() tells of; false: the stack has none. */
static bool own_find(const struct heap_owners *owners, struct walk *walk, struct heap_place *ret)
{
    struct walk at = *walk, library = {0};
    struct heap_place place, outside = {0}, innermost = {0};
    bool any = false, any_outside = false;
    while (walk_next(&at, &place)) {
        enum owner owner = owner_at(owners, &at, &place);
        if (owner == OWNER_PROGRAM) {
            *walk = at;
            *ret = place;
            return true;
        }
        if (!any_outside && owner == OWNER_LIBRARY) {
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

struct heap_place heap_place_of(const struct heap_owners *owners, uint32_t stack)
{
    struct walk walk;
    struct heap_place place = {0};
    walk_begin(&walk, owners->profile, stack);
    own_find(owners, &walk, &place);
    return place;
}

/* ---- wrappers without a name ---- */

enum { LEARNT_LEVELS = 6, CALLERS_MIN = 8, CALLS_PART = 10 };

/* A function without a name that asks for memory. */
struct asker {
    uint64_t calls;
    uint32_t callers[CALLERS_MIN]; /* the first so many that differ */
    uint32_t caller_count;
};

static void asker_add(struct asker *asker, uint64_t calls, uint32_t caller)
{
    asker->calls += calls;
    for (uint32_t i = 0; i < asker->caller_count; i++)
        if (asker->callers[i] == caller)
            return;
    if (asker->caller_count < CALLERS_MIN)
        asker->callers[asker->caller_count++] = caller;
}

static void site_ask(const struct heap_owners *owners, const struct heap_site *site,
                     struct asker *askers)
{
    struct walk walk;
    struct heap_place place, caller = {0};
    walk_begin(&walk, owners->profile, site->info.stack);
    if (!own_find(owners, &walk, &place) ||
        !is_nameless(&owners->profile->functions[place.function]))
        return;
    walk_next(&walk, &caller);
    asker_add(&askers[place.function], site->tally.allocations, caller.function);
}

static bool wrappers_mark(const struct heap_owners *owners, const struct asker *askers,
                          uint64_t calls)
{
    bool any = false;
    for (size_t i = 0; i < owners->profile->function_count; i++) {
        if (askers[i].caller_count < CALLERS_MIN || askers[i].calls < calls / CALLS_PART)
            continue;
        owners->known[i] = OWNER_ALLOCATOR;
        any = true;
    }
    return any;
}

int heap_owners_learn(struct arena *arena, const struct heap *heap, struct heap_owners *owners)
{
    size_t bytes = (heap->profile.function_count + 1) * sizeof(struct asker);
    struct asker *askers = arena_alloc(arena, bytes);
    if (!askers)
        return -ENOMEM;
    bool any = true;
    for (unsigned level = 0; level < LEARNT_LEVELS && any; level++) {
        uint64_t calls = 0;
        memset(askers, 0, bytes);
        for (size_t i = 1; i < heap->site_count; i++) {
            if (heap->sites[i].info.kind != HEAP_KIND_HEAP)
                continue;
            calls += heap->sites[i].tally.allocations;
            site_ask(owners, &heap->sites[i], askers);
        }
        any = wrappers_mark(owners, askers, calls);
    }
    return 0;
}

static const char *name_add(struct arena *arena, const char *text, struct str name)
{
    return arena_printf(arena, "%s%s%s", text, *text ? " ← " : "", heap_name(arena, name));
}

const char *heap_where(struct arena *arena, const struct heap_owners *owners, uint32_t stack)
{
    const struct profile_function *functions = owners->profile->functions;
    struct walk walk;
    struct heap_place place;
    walk_begin(&walk, owners->profile, stack);
    if (!own_find(owners, &walk, &place))
        return "[no stack]";
    const char *text = name_add(arena, "", functions[place.function].name);
    unsigned shown = 1;
    while (shown < SHOWN_MAX && walk_next(&walk, &place)) {
        if (owner_of(owners, place.function) != OWNER_PROGRAM)
            continue;
        text = name_add(arena, text, functions[place.function].name);
        shown++;
    }
    return text;
}

struct str heap_entry_of(const struct heap_owners *owners, uint32_t stack)
{
    struct walk walk = {.profile = owners->profile, .stack = stack};
    struct heap_place place;
    if (!walk_next(&walk, &place))
        return STR("");
    bool called = is_called(owners->profile, stack) ||
                  owner_of(owners, place.function) == OWNER_ALLOCATOR;
    return called ? owners->profile->functions[place.function].name : STR("");
}
