/* Checks of how the program was built: a profile of the wrong build answers a
 * question nobody asked. */
#include "host/check_internal.h"

/* What a rebuild must change. */
struct rebuild {
    bool frame_pointers;
    bool no_assertions;
};

static bool language_is(const struct build_info *binary, const char *name)
{
    return binary->language && str_contains(str_from(binary->language), name);
}

/* The distribution's binaries are not rebuilt; their debug packages are installed. */
static bool is_packaged(const struct build_info *binary)
{
    static const char *const folders[] = {"/usr/bin/", "/usr/sbin/", "/usr/lib",
                                          "/bin/",     "/sbin/",     "/lib"};
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        if (strncmp(binary->path, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

static const char *rebuild_command(const struct check_input *input, struct rebuild want)
{
    const struct build_info *binary = input->binary;
    struct arena *arena = input->host->arena;
    if (language_is(binary, "Go"))
        return "go build -gcflags= -ldflags= .";
    if (language_is(binary, "Rust"))
        return arena_printf(arena,
                            "%sCARGO_PROFILE_RELEASE_DEBUG=true CARGO_PROFILE_RELEASE_STRIP=none "
                            "cargo build --release",
                            want.frame_pointers ? "RUSTFLAGS='-C force-frame-pointers=yes' " : "");
    const char *flags = arena_printf(arena, "-O2 -g%s%s",
                                     want.frame_pointers ? " -fno-omit-frame-pointer" : "",
                                     want.no_assertions ? " -DNDEBUG" : "");
    return arena_printf(arena, "make clean all CFLAGS='%s' CXXFLAGS='%s' LDFLAGS=", flags, flags);
}

static const char *debug_command(const struct check_input *input)
{
    if (!is_packaged(input->binary))
        return rebuild_command(input, (struct rebuild){0});
    const char *path = check_quoted(input, input->binary->path);
    if (host_exists(input->host, "/usr/bin/dpkg"))
        return check_as_root(
            input,
            arena_printf(input->host->arena, "apt-get install $(find-dbgsym-packages %s)", path));
    return arena_printf(input->host->arena, "debuginfod-find debuginfo %s", path);
}

static bool no_binary(const struct check_input *input, struct check_result *ret)
{
    if (!input->binary)
        check_na(ret, input->binary_na ? input->binary_na : "no program was named");
    return !input->binary;
}

void check_symbols(const struct check_input *input, struct check_result *ret)
{
    if (no_binary(input, ret))
        return;
    const struct build_fact *fact = &input->binary->symbols;
    if (fact->answer == BUILD_YES)
        return check_ok(ret, fact->because);
    if (fact->answer == BUILD_UNKNOWN)
        return check_na(ret, fact->because);
    /* Of an interpreter one wants the script's names, which come another way. */
    check_set(ret, input->binary->script ? CHECK_WARN : CHECK_FAIL,
              arena_printf(input->host->arena, "stripped: %s", fact->because),
              "functions show as addresses, and hot ones cannot be named", debug_command(input));
}

void check_unwind(const struct check_input *input, struct check_result *ret)
{
    if (no_binary(input, ret))
        return;
    const struct build_fact *pointers = &input->binary->frame_pointers;
    const struct build_fact *tables = &input->binary->unwind_tables;
    if (pointers->answer == BUILD_YES)
        return check_ok(ret,
                        arena_printf(input->host->arena, "frame pointers: %s", pointers->because));
    if (tables->answer == BUILD_YES)
        return check_ok(ret,
                        arena_printf(input->host->arena, "unwind tables: %s", tables->because));
    if (tables->answer == BUILD_UNKNOWN)
        return check_na(ret, tables->because);
    check_set(ret, CHECK_FAIL,
              arena_printf(input->host->arena, "no frame pointers, and no unwind tables: %s",
                           tables->because),
              "stacks end after one frame, so callers get no blame",
              rebuild_command(input, (struct rebuild){.frame_pointers = true}));
}

void check_optimized(const struct check_input *input, struct check_result *ret)
{
    if (no_binary(input, ret))
        return;
    const struct build_info *binary = input->binary;
    struct arena *arena = input->host->arena;
    if (binary->optimized.answer == BUILD_UNKNOWN)
        return check_na(ret, binary->optimized.because);
    const char *detail = arena_printf(arena, "%s: %s",
                                      binary->optimization ? binary->optimization : "level unknown",
                                      binary->optimized.because);
    const char *mend = rebuild_command(input, (struct rebuild){0});
    struct str level = str_from(binary->optimization);
    if (binary->optimized.answer == BUILD_NO)
        check_set(ret, CHECK_FAIL, detail,
                  "hot spots of a debug build are not those of the build users run", mend);
    else if (str_starts(level, "-Os") || str_starts(level, "-Oz"))
        check_set(ret, CHECK_WARN, arena_printf(arena, "optimized for size, %s", detail),
                  "calls that -O2 would inline and loops it would unroll show as hot", mend);
    else if (str_contains(level, "(mixed: "))
        check_set(ret, CHECK_WARN, detail, "parts built at another level look hotter than they are",
                  mend);
    else
        check_ok(ret, detail);
}

void check_debug_info(const struct check_input *input, struct check_result *ret)
{
    if (no_binary(input, ret))
        return;
    const struct build_fact *fact = &input->binary->debug_info;
    if (fact->answer == BUILD_YES)
        return check_ok(ret, fact->because);
    if (fact->answer == BUILD_UNKNOWN)
        return check_na(ret, fact->because);
    check_set(ret, CHECK_WARN, fact->because,
              "no source lines and no inlined functions in the report", debug_command(input));
}

void check_assertions(const struct check_input *input, struct check_result *ret)
{
    if (no_binary(input, ret))
        return;
    const struct build_fact *fact = &input->binary->assertions;
    if (fact->answer == BUILD_UNKNOWN)
        return check_na(ret, fact->because);
    if (fact->answer == BUILD_NO)
        return check_ok(ret, fact->because);
    check_set(ret, CHECK_WARN, fact->because,
              "if users run a build with NDEBUG, assertions are measured that they do not pay for",
              is_packaged(input->binary)
                  ? NULL
                  : rebuild_command(input, (struct rebuild){.no_assertions = true}));
}

void check_sanitizer(const struct check_input *input, struct check_result *ret)
{
    if (no_binary(input, ret))
        return;
    const char *found = input->binary->sanitizers;
    if (!*found)
        return check_ok(ret, "no sanitizer run-time in the binary");
    check_set(ret, CHECK_FAIL, arena_printf(input->host->arena, "built with -fsanitize=%s", found),
              "its checks cost 2 to 20 times, and hot spots and memory use are theirs",
              rebuild_command(input, (struct rebuild){0}));
}

void check_instrumented(const struct check_input *input, struct check_result *ret)
{
    if (no_binary(input, ret))
        return;
    const char *found = input->binary->instrumented;
    if (!*found)
        return check_ok(ret, "no instrumentation in the binary");
    check_set(ret, CHECK_FAIL, arena_printf(input->host->arena, "instrumented: %s", found),
              "every call or branch pays for counting, short functions most",
              rebuild_command(input, (struct rebuild){0}));
}
