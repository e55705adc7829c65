/* A stack in a few words: its innermost functions that say who waits. */
#include "analyze/wait_classes.h"

#include "analyze/wait_parts.h"

enum { SHOWN_MAX = 3, WALKED_MAX = 128, NAME_BYTES_MAX = 120 };

static bool is_library(struct str path)
{
    static const char *const libraries[] = {"libc.so", "libc-",     "libpthread", "ld-linux",
                                            "ld-musl", "libstdc++", "[vdso]"};
    struct str name = path;
    while (path.len > 0)
        name = str_cut(&path, '/');
    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
        if (str_starts(name, libraries[i]))
            return true;
    return false;
}

/* Begins every stack: says nothing once something is known. */
static bool is_root(struct str name)
{
    static const char *const roots[] = {
        "_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone",
        "clone3", "__clone3"};
    for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
        if (str_is(name, roots[i]))
            return true;
    return false;
}

/* The wrapper of a system call, in a program that brings its own C library. */
static bool is_call(struct str name)
{
    for (int32_t i = 0; i < SYSCALLS_MAX; i++) {
        const char *call = syscall_name_on(SYSCALLS_X86_64, i);
        if (call && str_is(name, call))
            return true;
    }
    return false;
}

struct where {
    struct arena *arena;
    const struct profile *profile;
    const char *text;
    unsigned shown;
    bool all; /* libraries and locks too: there is nothing else */
};

static void function_add(struct where *where, uint32_t id)
{
    const struct profile_function *function = &where->profile->functions[id];
    struct str name = function->name;
    bool helper = function->kernel || wait_is_plumbing(name) ||
                  is_library(where->profile->images[function->image].path) ||
                  (where->shown == 0 && is_call(name));
    if (where->shown >= SHOWN_MAX || (helper && !where->all) || (is_root(name) && where->shown > 0))
        return;
    name.len = MIN(name.len, (size_t)NAME_BYTES_MAX);
    where->text = arena_printf(where->arena, "%s%s%.*s", where->text, where->shown > 0 ? " ← " : "",
                               STR_FMT(name));
    where->shown++;
}

static void stack_walk(struct where *where, uint32_t stack)
{
    const struct profile *profile = where->profile;
    unsigned walked = 0;
    for (uint32_t at = stack; at != 0 && walked < WALKED_MAX && where->shown < SHOWN_MAX;
         walked++) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[at].frame];
        for (uint32_t i = 0; i < frame->place_count; i++)
            function_add(where, profile->places[frame->places + i].function);
        at = profile->stacks[at].parent;
    }
}

const char *wait_where(struct arena *arena, const struct profile *profile, uint32_t stack)
{
    struct where where = {.arena = arena, .profile = profile, .text = ""};
    stack_walk(&where, stack);
    if (where.shown == 0) {
        where.all = true;
        stack_walk(&where, stack);
    }
    return where.shown > 0 ? where.text : "[no stack]";
}
