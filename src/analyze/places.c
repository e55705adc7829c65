/* Whose code a frame is, by its image and its name; and the places that rankings speak of. */
#include "analyze/places.h"

#include "analyze/categories.h"
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

static bool is_packaged(struct str path)
{
    static const char *const packages[] = {
        "/site-packages/", "/dist-packages/", "/node_modules/", "/gems/",   "/perl5/",
        "/.cargo/",        "/.rustup/",       "conda3/",        "/.conda/", "miniforge3/",
        "mambaforge/",     "micromamba/",     "/share/mamba/",  "/.pyenv/", "/.rbenv/",
        "/.nvm/",          "/.sdkman/",       "/go/pkg/mod/",   "/_deps/" /* CMake's */};
    for (size_t i = 0; i < ARRAY_SIZE(packages); i++)
        if (str_contains(path, packages[i]))
            return true;
    return false;
}

/* Where packages put what nobody wrote here. */
static bool is_system(struct str path)
{
    static const char *const folders[] = {"/usr/lib",      "/usr/bin/",      "/usr/sbin/", "/lib",
                                          "/bin/",         "/sbin/",         "/nix/",      "/snap/",
                                          "/usr/libexec/", "/usr/local/lib", "/opt/"};
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        if (str_starts(path, folders[i]))
            return true;
    return is_packaged(path);
}

/* Programs and libraries in which somebody else's program runs, wherever they were installed: the
 * name without its version. */
static const struct interpreter {
    const char *name, *language;
} interpreters[] = {{"python", "Python"},
                    {"libpython", "Python"},
                    {"pypy", "Python"},
                    {"libpypy", "Python"},
                    {"node", "JavaScript"},
                    {"nodejs", "JavaScript"},
                    {"libnode", "JavaScript"},
                    {"deno", "JavaScript"},
                    {"bun", "JavaScript"},
                    {"ruby", "Ruby"},
                    {"libruby", "Ruby"},
                    {"perl", "Perl"},
                    {"libperl", "Perl"},
                    {"php", "PHP"},
                    {"php-fpm", "PHP"},
                    {"php-cgi", "PHP"},
                    {"libphp", "PHP"},
                    {"java", "Java"},
                    {"libjvm", "Java"},
                    {"bash", "the script"},
                    {"sh", "the script"},
                    {"dash", "the script"},
                    {"zsh", "the script"},
                    {"ksh", "the script"},
                    {"R", "R"},
                    {"libR", "R"},
                    {"lua", "Lua"},
                    {"liblua", "Lua"},
                    {"luajit", "Lua"},
                    {"libluajit", "Lua"},
                    {"guile", "Scheme"},
                    {"libguile", "Scheme"},
                    {"tclsh", "Tcl"},
                    {"libtcl", "Tcl"},
                    {"gawk", "the script"},
                    {"mawk", "the script"},
                    {"beam.smp", "Erlang"},
                    {"libcoreclr", ".NET"},
                    {"mono", ".NET"},
                    {"mono-sgen", ".NET"},
                    {"libmonosgen", ".NET"},
                    {"julia", "Julia"},
                    {"libjulia", "Julia"},
                    {"octave-cli", "Octave"},
                    {"octave-gui", "Octave"},
                    {"liboctave", "Octave"},
                    {"liboctinterp", "Octave"}};

/* "3.11", "-5.1.so.5.1", ".so", "3.11m", "3.11-dbg", "5.36", "-internal.so": what may follow the
 * name. */
static bool is_version(struct str rest)
{
    size_t at = 0;
    if (str_starts(rest, "-internal")) /* julia's */
        at = strlen("-internal");
    while (at < rest.len && strchr("0123456789.-_", rest.data[at]))
        at++;
    struct str tail = {rest.data + at, rest.len - at};
    if (at > 0 && str_contains(tail, "-linux-")) /* Debian's perl5.36-x86_64-linux-gnu */
        return true;
    static const char *const builds[] = {"dbg", "debug", "nogil", "d", "m", "t"}; /* Python's */
    for (size_t i = 0; i < ARRAY_SIZE(builds) && at > 0; i++)
        if (str_starts(tail, builds[i])) {
            tail = (struct str){tail.data + strlen(builds[i]), tail.len - strlen(builds[i])};
            break;
        }
    if (str_starts(tail, ".so"))
        tail = (struct str){tail.data + 3, tail.len - 3};
    else if (at > 0 && str_starts(tail, "so") && rest.data[at - 1] == '.')
        tail = (struct str){tail.data + 2, tail.len - 2};
    for (size_t i = 0; i < tail.len; i++)
        if (!strchr("0123456789.", tail.data[i]))
            return false;
    return true;
}

const char *place_interpreted(struct str path)
{
    struct str name = base_name(path);
    if (str_contains(path, "/lib-dynload/")) /* the part of Python that is loaded when it is used */
        return "Python";
    for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++) {
        size_t len = strlen(interpreters[i].name);
        if (str_starts(name, interpreters[i].name) &&
            is_version((struct str){name.data + len, name.len - len}))
            return interpreters[i].language;
    }
    return NULL;
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

/* ---- code of others in the program's own image ---- */

/* Templates, inline functions, runtimes, what was linked statically: whose it is. `STANDARD` is of
 * the language itself, and serves every program as the C library does. */
enum origin { ORIGIN_PROGRAM, ORIGIN_LIBRARY, ORIGIN_STANDARD };

/* By the path of the source: how it begins, or what is somewhere in it. The first row counts. */
static const struct source {
    const char *part;
    bool begins;
    enum origin origin;
} sources[] = {{"/include/c++/", false, ORIGIN_STANDARD},
               {"-linux-gnu/c++/", false, ORIGIN_STANDARD},
               {"-linux-gnu/bits/", false, ORIGIN_STANDARD},
               {"/usr/include/bits/", true, ORIGIN_STANDARD},
               {"/usr/lib/gcc", true, ORIGIN_STANDARD}, /* intrinsics */
               {"/lib/clang/", false, ORIGIN_STANDARD},
               {"/sysdeps/", false, ORIGIN_STANDARD}, /* of a static libc */
               {"/glibc-2.", false, ORIGIN_STANDARD},
               {"/musl-1.", false, ORIGIN_STANDARD},
               {"/rustc/", true, ORIGIN_STANDARD},
               {"/rustlib/src/rust/", false, ORIGIN_STANDARD},
               {"/go/src/runtime/", false, ORIGIN_STANDARD},
               {"/go/src/internal/runtime/", false, ORIGIN_STANDARD},
               {"/usr/local/go/src/", true, ORIGIN_LIBRARY},
               {"/usr/share/go-", true, ORIGIN_LIBRARY},
               {"/sdk/go1.", false, ORIGIN_LIBRARY},
               {"/usr/include/", true, ORIGIN_LIBRARY},
               {"/usr/local/include/", true, ORIGIN_LIBRARY},
               {"/usr/lib/", true, ORIGIN_LIBRARY},
               {"/usr/share/", true, ORIGIN_LIBRARY},
               {"/nix/store/", true, ORIGIN_LIBRARY}};

static enum origin origin_by_source(struct str file)
{
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
        if (sources[i].begins ? str_starts(file, sources[i].part)
                              : str_contains(file, sources[i].part))
            return sources[i].origin;
    return is_packaged(file) ? ORIGIN_LIBRARY : ORIGIN_PROGRAM;
}

static bool begins_with_any(struct str name, const char *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_starts(name, parts[i]))
            return true;
    return false;
}

/* Where no source is known: names that nobody else gives. Of C++ the linker's, since what people
 * read may begin with the type that is returned. */
static enum origin origin_by_name(const struct profile_function *function)
{
    static const char *const cpp[] = {"_ZNSt",  "_ZNKSt",        "_ZSt",          "_ZNSs",
                                      "_ZNKSs", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx"};
    static const char *const names[] = {
        "runtime.", "runtime/",   "internal/",                                       /* Go */
        "std::",    "core::",     "alloc::",     "<std::", "<core::",  "<alloc::",   /* Rust */
        "__libc_",  "__GI_",      "_IO_",        "_dl_",   "_nl_",     "__new_sem_", /* glibc */
        "__nptl_",  "__pthread_", "___pthread_", "__lll_", "__printf", "__vfprintf",
        "__mpn_",   "__str",      "__mem",       "__wcs",  "__wmem"};
    struct str linkage = function->linkage;
    /* Rust's older scheme looks like C++, with a hash at the end. */
    if (str_starts(linkage, "_Z") && !str_contains(linkage, "17h")) {
        /* What std::thread and std::function make of a lambda is the lambda, inlined. */
        bool lambda = str_contains(function->name, "{lambda") &&
                      (str_contains(linkage, "6_M_runE") || str_contains(linkage, "9_M_invokeE"));
        return !lambda && begins_with_any(linkage, cpp, ARRAY_SIZE(cpp)) ? ORIGIN_STANDARD
                                                                         : ORIGIN_PROGRAM;
    }
    if (begins_with_any(function->name, names, ARRAY_SIZE(names)))
        return ORIGIN_STANDARD;
    return category_of(function) && function->file.len == 0 ? ORIGIN_LIBRARY : ORIGIN_PROGRAM;
}

static enum origin origin_of(const struct profile_function *function)
{
    struct str file = function->file;
    enum origin origin = origin_by_source(file);
    /* Go's paths may be cut (-trimpath): then they say as little as none. */
    bool silent = file.len == 0 || str_ends(file, ".go") || str_ends(file, ".s");
    return origin == ORIGIN_PROGRAM && silent ? origin_by_name(function) : origin;
}

bool place_is_standard(const struct profile *profile, const struct profile_function *function)
{
    return place_is_c_library(profile->images[function->image].path) ||
           (!function->kernel && origin_of(function) == ORIGIN_STANDARD);
}

/* What a runtime compiled, and gave no name: of the program in it no line is known. */
static bool is_made_code(struct str path, const struct profile_function *function)
{
    return function->unnamed && str_starts(path, "/tmp/perf-") && str_ends(path, ".map");
}

enum finding_owner place_owner(const struct profile *profile,
                               const struct profile_function *function)
{
    if (function->kernel)
        return FINDING_OWNER_KERNEL;
    struct str path = profile->images[function->image].path;
    if (path.len == 0)
        return FINDING_OWNER_UNKNOWN;
    if (place_interpreted(path) || is_made_code(path, function))
        return FINDING_OWNER_INTERPRETER;
    if (is_system(path) || place_is_c_library(path) || origin_of(function) != ORIGIN_PROGRAM)
        return FINDING_OWNER_LIBRARY;
    /* Installed here by hand, by a package or by an image: whose it is its source may tell. */
    if (str_starts(path, "/usr/") && function->file.len == 0)
        return FINDING_OWNER_UNKNOWN;
    return FINDING_OWNER_USER;
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
    case FINDING_OWNER_UNKNOWN:
    case FINDING_OWNER_INTERPRETER:
        return function->unnamed ? 2 : 1;
    case FINDING_OWNER_LIBRARY:
        return place_is_standard(profile, function) ? 3 : function->unnamed ? 2 : 1;
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
