/* Whose code a frame is, by its image and its name; and the places that rankings speak of. */
#include "analyze/places.h"

#include "base/syscalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WALKED_MAX = 512 };

static struct str base_name(struct str path)
{
    struct str name = path;
    while (path.len > 0)
        name = str_cut(&path, '/');
    return name;
}

/* Serves every program: nobody's slowness is its fault alone. */
bool place_is_c_library(struct str path)
{
    static const char *const libraries[] = {"libc.so", "libc-", "libpthread", "ld-linux", "libm.so",
                                            "ld-musl", "libstdc++", "libc++", "[vdso]", "libgcc_s",
                                            /* ours, in a target that is watched without root */
                                            "whyslow-before-", "whyslow-heap-before-"};
    struct str name = base_name(path);
    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
        if (str_starts(name, libraries[i]))
            return true;
    return false;
}

static bool is_system(struct str path)
{
    static const char *const folders[] = {"/usr/lib",      "/usr/bin/", "/usr/sbin/", "/lib",
                                          "/bin/",         "/sbin/",    "/nix/",      "/snap/",
                                          "/usr/libexec/", "/opt/"};
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        if (str_starts(path, folders[i]))
            return true;
    return false;
}

/* Begins every stack, and is in the program's own image: says nothing. */
static bool is_root(struct str name)
{
    static const char *const roots[] = {"_start",
                                        "start_thread",
                                        "clone",
                                        "clone3",
                                        "__clone3",
                                        "__libc_start_main",
                                        "__libc_start_call_main"};
    for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
        if (str_is(name, roots[i]))
            return true;
    return false;
}

enum finding_owner place_owner(const struct profile *profile,
                               const struct profile_function *function)
{
    if (function->kernel)
        return FINDING_OWNER_KERNEL;
    struct str path = profile->images[function->image].path;
    if (path.len == 0)
        return FINDING_OWNER_UNKNOWN;
    return is_system(path) || place_is_c_library(path) ? FINDING_OWNER_LIBRARY : FINDING_OWNER_USER;
}

static struct place place_make(const struct profile *profile, const struct profile_place *at)
{
    const struct profile_function *function = &profile->functions[at->function];
    return (struct place){
        .function = function->name,
        .image = profile->images[function->image].path,
        .file = at->file.len > 0 ? at->file : function->file,
        .line = at->line ? at->line : function->line,
        .owner = place_owner(profile, function),
    };
}

struct place place_of_function(const struct profile *profile, uint32_t function)
{
    if (function == 0 || function >= profile->function_count)
        return (struct place){0};
    struct profile_place at = {.function = function};
    return place_make(profile, &at);
}

/* How well a function answers "who?": the lowest wins, the innermost of equals. */
enum { ANSWER_BEST = 0, ANSWER_NONE = 6 };
static int answers(const struct profile *profile, const struct profile_function *function)
{
    struct str path = profile->images[function->image].path;
    if (function->kernel || path.len == 0)
        return 4;
    if (is_root(function->name))
        return 5;
    switch (place_owner(profile, function)) {
    case FINDING_OWNER_USER:
        return ANSWER_BEST;
    case FINDING_OWNER_LIBRARY:
        return place_is_c_library(path) ? 3 : function->unnamed ? 2 : 1;
    default:
        return 4;
    }
}

struct place place_of_stack(const struct profile *profile, uint32_t stack)
{
    const struct profile_place *best = NULL;
    int best_answer = ANSWER_NONE;
    unsigned walked = 0;
    for (uint32_t at = stack; at != 0 && walked < WALKED_MAX && best_answer > ANSWER_BEST;
         walked++) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[at].frame];
        for (uint32_t i = 0; i < frame->place_count; i++) {
            const struct profile_place *place = &profile->places[frame->places + i];
            int answer = answers(profile, &profile->functions[place->function]);
            if (answer < best_answer) {
                best = place;
                best_answer = answer;
            }
        }
        at = profile->stacks[at].parent;
    }
    return best ? place_make(profile, best) : (struct place){0};
}

bool place_same(const struct place *a, const struct place *b, bool line)
{
    return str_eq(a->function, b->function) && str_eq(a->image, b->image) &&
           (!line || (a->line == b->line && str_eq(a->file, b->file)));
}

bool place_on_stack(const struct profile *profile, uint32_t stack, const struct place *place,
                    bool line)
{
    unsigned walked = 0;
    for (uint32_t at = stack; at != 0 && walked < WALKED_MAX; walked++) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[at].frame];
        for (uint32_t i = 0; i < frame->place_count; i++) {
            const struct profile_place *here = &profile->places[frame->places + i];
            const struct profile_function *function = &profile->functions[here->function];
            if (str_eq(function->name, place->function) &&
                str_eq(profile->images[function->image].path, place->image) &&
                (!line || here->line == place->line))
                return true;
        }
        at = profile->stacks[at].parent;
    }
    return false;
}

bool *place_stacks(struct arena *arena, const struct profile *profile, const struct place *place,
                   bool line)
{
    bool *through = arena_alloc(arena, (profile->stack_count + 1) * sizeof(*through));
    bool *meant = calloc(profile->function_count + 1, sizeof(*meant));
    for (size_t i = 0; through && meant && i < profile->function_count; i++) {
        const struct profile_function *function = &profile->functions[i];
        meant[i] = str_eq(function->name, place->function) &&
                   str_eq(profile->images[function->image].path, place->image);
    }
    /* A caller's id is smaller than those of its callees. */
    for (size_t i = 1; through && meant && i < profile->stack_count; i++) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[i].frame];
        through[i] = through[profile->stacks[i].parent];
        for (uint32_t k = 0; k < frame->place_count && !through[i]; k++) {
            const struct profile_place *here = &profile->places[frame->places + k];
            through[i] = meant[here->function] && (!line || here->line == place->line);
        }
    }
    bool *ret = meant ? through : NULL;
    free(meant);
    return ret;
}

static struct str without(struct str name, const char *prefix)
{
    size_t len = strlen(prefix);
    return str_starts(name, prefix) ? (struct str){name.data + len, name.len - len}
                                    : (struct str){0};
}

/* "read" of "__x64_sys_read" and "ksys_read". */
static struct str kernel_entry(struct str name)
{
    static const char *const prefixes[] = {"__x64_sys_", "__arm64_sys_", "__se_sys_",
                                           "ksys_",      "__do_sys_",    "__ia32_sys_"};
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        struct str rest = without(name, prefixes[i]);
        if (rest.len > 0)
            return rest;
    }
    return (struct str){0};
}

/* The wrapper of a call in the C library: "read", "__libc_read", "__GI___fdatasync". Linked
 * statically only the names that nobody else has are sure. */
static struct str wrapper_entry(struct str name, struct str path)
{
    static const char *const prefixes[] = {"__GI_", "__libc_", "__"};
    bool sure = place_is_c_library(path) || str_starts(name, "__libc_") ||
                str_starts(name, "__GI_");
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        struct str rest = without(name, prefixes[i]);
        if (rest.len > 0)
            name = rest;
    }
    for (int32_t i = 0; i < SYSCALLS_MAX && sure; i++) {
        const char *call = syscall_name_on(SYSCALLS_X86_64, i);
        if (call && str_is(name, call))
            return str_from(call);
    }
    return (struct str){0};
}

/* Of a function of the kernel, or of the C library. */
static struct str entry_of(const struct profile *profile, uint32_t id)
{
    const struct profile_function *function = &profile->functions[id];
    return function->kernel ? kernel_entry(function->name)
                            : wrapper_entry(function->name, profile->images[function->image].path);
}

/* `calls` by function, or NULL: they are worked out. */
static struct str syscall_of(const struct profile *profile, uint32_t stack, const struct str *calls)
{
    unsigned walked = 0;
    for (uint32_t at = stack; at != 0 && walked < WALKED_MAX; walked++) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[at].frame];
        for (uint32_t i = 0; i < frame->place_count; i++) {
            uint32_t id = profile->places[frame->places + i].function;
            struct str entry = calls ? calls[id] : entry_of(profile, id);
            /* The first frame of the program decides: further out nobody is in a call. */
            if (entry.len > 0 || !profile->functions[id].kernel)
                return entry;
        }
        at = profile->stacks[at].parent;
    }
    return (struct str){0};
}

struct str place_syscall(const struct profile *profile, uint32_t stack)
{
    return syscall_of(profile, stack, NULL);
}

int places_init(const struct profile *profile, struct places *ret)
{
    *ret = (struct places){
        .profile = profile,
        .best = calloc(profile->stack_count + 1, sizeof(*ret->best)),
        .answers = calloc(profile->stack_count + 1, sizeof(*ret->answers)),
        .calls = calloc(profile->function_count + 1, sizeof(*ret->calls)),
    };
    uint8_t *functions = calloc(profile->function_count + 1, sizeof(*functions));
    if (!ret->best || !ret->answers || !ret->calls || !functions) {
        free(functions);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < profile->function_count; i++) {
        functions[i] = (uint8_t)answers(profile, &profile->functions[i]);
        ret->calls[i] = entry_of(profile, i);
    }
    ret->answers[0] = ANSWER_NONE;
    for (uint32_t i = 1; i < profile->stack_count; i++) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[i].frame];
        uint32_t caller = profile->stacks[i].parent;
        ret->answers[i] = ANSWER_NONE;
        for (uint32_t k = 0; k < frame->place_count; k++) {
            uint32_t place = frame->places + k;
            uint8_t answer = functions[profile->places[place].function];
            if (answer < ret->answers[i]) {
                ret->answers[i] = answer;
                ret->best[i] = place + 1;
            }
        }
        if (ret->answers[caller] < ret->answers[i]) {
            ret->answers[i] = ret->answers[caller];
            ret->best[i] = ret->best[caller];
        }
    }
    free(functions);
    return 0;
}

struct place places_of_stack(const struct places *places, uint32_t stack)
{
    uint32_t best = stack < places->profile->stack_count ? places->best[stack] : 0;
    return best ? place_make(places->profile, &places->profile->places[best - 1])
                : (struct place){0};
}

struct str places_syscall(const struct places *places, uint32_t stack)
{
    return syscall_of(places->profile, stack, places->calls);
}

void places_deinit(struct places *places)
{
    free(places->best);
    free(places->answers);
    free(places->calls);
    *places = (struct places){0};
}
