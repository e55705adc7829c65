/* Whose a stack is, and in which system call: the same answer for one stack and for all at once. */
#include "unit.h"

#include "made_evidence.h"

#include "analyze/places.h"

struct expected {
    const char *stack;
    const char *place;
    enum finding_owner owner;
    const char *call;
};

static const struct expected table[] = {
    {"main parse", "parse", FINDING_OWNER_USER, ""},
    {"main parse c:memcpy", "parse", FINDING_OWNER_USER, ""},
    {"main l:inflate c:memcpy", "main", FINDING_OWNER_USER, ""},
    {"c:__libc_start_main l:inflate c:memcpy", "inflate", FINDING_OWNER_LIBRARY, ""},
    {"c:qsort c:memcpy", "memcpy", FINDING_OWNER_LIBRARY, ""},
    {"_start c:puts", "puts", FINDING_OWNER_LIBRARY, ""},
    /* Written elsewhere, compiled into the program. */
    {"main parse t:insert t:rebalance c:memcpy", "parse", FINDING_OWNER_USER, ""},
    {"main e:multiply parse e:assign", "parse", FINDING_OWNER_USER, ""},
    {"c:__libc_start_main e:multiply t:insert", "multiply", FINDING_OWNER_LIBRARY, ""},
    {"c:__libc_start_main t:insert", "insert", FINDING_OWNER_LIBRARY, ""},
    {"k:ret_from_fork k:kthread", "kthread", FINDING_OWNER_KERNEL, ""},
    {"main save c:fsync k:entry_SYSCALL_64 k:__x64_sys_fsync k:ext4_sync_file", "save",
     FINDING_OWNER_USER, "fsync"},
    {"main save c:write k:ksys_write k:vfs_write", "save", FINDING_OWNER_USER, "write"},
    /* Without the kernel's frames: by the wrapper of the C library, and by nothing else. */
    {"main save c:fsync", "save", FINDING_OWNER_USER, "fsync"},
    {"main save c:__libc_read", "save", FINDING_OWNER_USER, "read"},
    {"main save c:__GI___fdatasync", "save", FINDING_OWNER_USER, "fdatasync"},
    {"main read", "read", FINDING_OWNER_USER, ""},
    {"main save c:strlen", "save", FINDING_OWNER_USER, ""},
    {"main poll k:asm_exc_page_fault k:handle_mm_fault", "poll", FINDING_OWNER_USER, ""},
    {"c:read main save", "save", FINDING_OWNER_USER, ""}, /* further out nobody is in a call */
};

static void every_stack_has_its_place_and_its_call(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t stacks[ARRAY_SIZE(table)];
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        stacks[i] = run_stack(run, table[i].stack);
    const struct profile *profile = &run->evidence.cpu;
    struct places places;
    assert_int_equal(places_init(profile, &places), 0);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct place one = place_of_stack(profile, stacks[i]);
        struct place all = places_of_stack(&places, stacks[i]);
        if (!str_is(one.function, table[i].place) || !str_is(all.function, table[i].place))
            fail_msg("%s: %.*s and %.*s", table[i].stack, STR_FMT(one.function),
                     STR_FMT(all.function));
        assert_int_equal(one.owner, table[i].owner);
        assert_true(place_same(&one, &all, true));
        struct str call = place_syscall(profile, stacks[i]);
        if (!str_is(call, table[i].call) ||
            !str_is(places_syscall(&places, stacks[i]), table[i].call))
            fail_msg("%s: call '%.*s'", table[i].stack, STR_FMT(call));
    }
    struct place none = places_of_stack(&places, 0);
    assert_int_equal(none.function.len, 0);
    places_deinit(&places);
    run_free(run);
}

/* Wherever an interpreter was installed, and whatever debug information it has. */
static void an_image_says_whose_code_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *image, *file;
        enum finding_owner owner;
        const char *language;
    } rows[] = {
        {"/root/.pyenv/versions/3.11.9/bin/python3.11", "/src/Objects/descrobject.c",
         FINDING_OWNER_INTERPRETER, "Python"},
        {"/usr/bin/python3.11", "", FINDING_OWNER_INTERPRETER, "Python"},
        {"/usr/bin/python3.11-dbg", "./Python/ceval.c", FINDING_OWNER_INTERPRETER, "Python"},
        {"/usr/bin/python3.13-nogil", "", FINDING_OWNER_INTERPRETER, "Python"},
        {"/usr/lib/x86_64-linux-gnu/libpython3.11d.so.1.0", "", FINDING_OWNER_INTERPRETER,
         "Python"},
        {"/home/me/venv/bin/python", "", FINDING_OWNER_INTERPRETER, "Python"},
        {"/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", "", FINDING_OWNER_INTERPRETER, "Python"},
        {"/root/.pyenv/versions/3.11.9/lib/python3.11/lib-dynload/_socket.cpython-311.so",
         "/src/Modules/socketmodule.c", FINDING_OWNER_INTERPRETER, "Python"},
        {"/root/.pyenv/versions/3.11.9/lib/libcrypto.so.3", "c.c", FINDING_OWNER_LIBRARY, NULL},
        {"/usr/local/bin/node", "/node/src/node.cc", FINDING_OWNER_INTERPRETER, "JavaScript"},
        {"/usr/lib/x86_64-linux-gnu/libnode.so.108", "", FINDING_OWNER_INTERPRETER, "JavaScript"},
        {"/usr/bin/ruby3.1", "", FINDING_OWNER_INTERPRETER, "Ruby"},
        {"/usr/lib/libruby-3.1.so.3.1", "", FINDING_OWNER_INTERPRETER, "Ruby"},
        {"/usr/bin/perl5.36-x86_64-linux-gnu", "", FINDING_OWNER_INTERPRETER, "Perl"},
        {"/usr/bin/perl", "", FINDING_OWNER_INTERPRETER, "Perl"},
        {"/usr/sbin/php-fpm8.2", "", FINDING_OWNER_INTERPRETER, "PHP"},
        {"/opt/jdk/lib/server/libjvm.so", "", FINDING_OWNER_INTERPRETER, "Java"},
        {"/usr/bin/bash", "", FINDING_OWNER_INTERPRETER, "the script"},
        {"/bin/sh", "", FINDING_OWNER_INTERPRETER, "the script"},
        {"/usr/lib/R/lib/libR.so", "", FINDING_OWNER_INTERPRETER, "R"},
        {"/usr/bin/lua5.4", "", FINDING_OWNER_INTERPRETER, "Lua"},
        {"/usr/lib/liblua5.4.so.0", "", FINDING_OWNER_INTERPRETER, "Lua"},
        /* What only begins like one is somebody's program. */
        {"/home/me/build/python-import-bench", "a.c", FINDING_OWNER_USER, NULL},
        {"/home/me/build/nodes", "a.c", FINDING_OWNER_USER, NULL},
        {"/home/me/build/Rank", "a.c", FINDING_OWNER_USER, NULL},
        {"/home/me/build/shell", "a.c", FINDING_OWNER_USER, NULL},
        {"/home/me/app", "", FINDING_OWNER_USER, NULL},
        {"/home/me/build/libmine.so", "a.c", FINDING_OWNER_USER, NULL},
        {"/home/me/venv/lib/python3.11/site-packages/numpy/core/_umath.so", "u.c",
         FINDING_OWNER_LIBRARY, NULL},
        {"/home/me/app/node_modules/sharp/build/sharp.node", "", FINDING_OWNER_LIBRARY, NULL},
        {"/home/me/miniforge3/lib/libopenblas.so", "", FINDING_OWNER_LIBRARY, NULL},
        {"/home/me/mambaforge/envs/x/lib/libmkl.so", "m.c", FINDING_OWNER_LIBRARY, NULL},
        {"/usr/local/lib/libfoo.so.1", "foo.c", FINDING_OWNER_LIBRARY, NULL},
        {"/usr/libexec/gcc/x86_64-linux-gnu/12/cc1", "", FINDING_OWNER_LIBRARY, NULL},
        {"/usr/bin/gcc-12", "/build/gcc.c", FINDING_OWNER_LIBRARY, NULL},
        /* Put there by hand: it is ours where its source says so. */
        {"/usr/local/bin/app", "/src/app.c", FINDING_OWNER_USER, NULL},
        {"/usr/local/bin/app", "", FINDING_OWNER_UNKNOWN, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct image_info images[2] = {{.path = STR("")}, {.path = str_from(rows[i].image)}};
        struct profile_function function = {
            .name = STR("f"), .image = 1, .file = str_from(rows[i].file), .line = 330};
        struct profile profile = {.images = images, .image_count = 2};
        enum finding_owner owner = place_owner(&profile, &function);
        const char *language = place_interpreted(str_from(rows[i].image));
        if (owner != rows[i].owner)
            fail_msg("%s is of %s", rows[i].image, finding_owner_name(owner));
        if (!language != !rows[i].language || (language && strcmp(language, rows[i].language) != 0))
            fail_msg("%s runs %s", rows[i].image, language ? language : "nothing");
    }
}

/* Templates, runtimes and a static C library are in the program's own image. */
static void a_source_says_who_wrote_what_was_compiled_into_a_program(void **state)
{
    (void)state;
    static const struct {
        const char *name, *linkage, *file;
        bool library, standard;
    } rows[] = {
        {"std::_Rb_tree<int>::find(int const&)", "", "/usr/include/c++/12/bits/stl_tree.h", true,
         true},
        {"std::sort", "", "/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/a.h",
         true, true},
        {"std::move", "", "/usr/lib/llvm-14/bin/../include/c++/v1/utility", true, true},
        {"__gthread_active_p", "", "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h", true,
         true},
        {"memcpy", "", "/usr/include/x86_64-linux-gnu/bits/string_fortified.h", true, true},
        {"_mm256_add_pd", "", "/usr/lib/gcc/x86_64-linux-gnu/12/include/avxintrin.h", true, true},
        {"Eigen::run", "", "/usr/include/eigen3/Eigen/src/Core/Product.h", true, false},
        {"fmt::format", "", "/usr/local/include/fmt/core.h", true, false},
        {"fmt::format", "", "/home/me/app/build/_deps/fmt-src/include/fmt/core.h", true, false},
        {"core::iter::next", "", "/rustc/9fc6b43126469e/library/core/src/iter/range.rs", true,
         true},
        {"serde::de", "", "/root/.cargo/registry/src/index.crates.io-6f/serde-1.0/de.rs", true,
         false},
        {"runtime.scanobject", "", "/usr/local/go/src/runtime/mgcmark.go", true, true},
        {"runtime.mallocgc", "", "/root/sdk/go/src/runtime/malloc.go", true, true},
        {"runtime.mallocgc", "", "runtime/malloc.go", true, true}, /* -trimpath */
        {"runtime.memmove", "", "runtime/memmove_amd64.s", true, true},
        {"encoding/json.Marshal", "", "/usr/local/go/src/encoding/json/encode.go", true, false},
        {"rsc.io/quote.Hello", "", "/root/go/pkg/mod/rsc.io/quote@v1.5.2/quote.go", true, false},
        {"__memmove_avx_unaligned", "", "../sysdeps/x86_64/multiarch/memmove.S", true, true},
        {"__vfprintf_internal", "", "/b/glibc-2.36/stdio-common/vfprintf-internal.c", true, true},
        /* No source is known. */
        {"std::_Rb_tree<int>::find(int const&)", "_ZNSt8_Rb_treeIiE4findERKi", "", true, true},
        {"void std::__introsort_loop<int*>(int*)", "_ZSt16__introsort_loopIPiEvT_", "", true, true},
        {"void std::__introsort_loop<int*, main::{lambda(int, int)#1}>(int*)",
         "_ZSt16__introsort_loopIPiZ4mainEUliiE_EvT_", "", true, true},
        {"core::fmt::write", "_ZN4core3fmt5write17h0123456789abcdefE", "", true, true},
        {"<alloc::string::String as core::fmt::Write>::write_str", "_RNvXs_NtCs1_5alloc", "", true,
         true},
        {"__libc_start_call_main", "__libc_start_call_main", "", true, true},
        {"_int_malloc", "_int_malloc", "", true, false},
        /* The user's all the same. */
        {"mine::sort", "_ZN4mine4sortEv", "/home/me/app/include/mine.h", false, false},
        {"main::main", "", "/home/me/app/src/main.rs", false, false},
        {"main.main", "", "/root/go/src/github.com/me/app/main.go", false, false},
        {"main.main", "", "example.com/app/main.go", false, false},
        {"memcpy", "memcpy", "/home/me/app/memcpy.c", false, false},
        {"std::vector<int> mine::make<int>(int)", "_ZN4mine4makeIiEESt6vectorIT_E", "", false,
         false},
        {"std::thread::_State_impl<std::tuple<main::{lambda()#1}> >::_M_run()",
         "_ZNSt6thread11_State_implISt5tupleIJZ4mainEUlvE_EEE6_M_runEv", "", false, false},
        {"core::Engine::run()", "_ZN4core6Engine3runEv", "", false, false},
        {"scan", "scan", "", false, false},
    };
    struct image_info images[2] = {{.path = STR("")}, {.path = STR("/home/me/app/build/app")}};
    struct profile profile = {.images = images, .image_count = 2};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct profile_function function = {.name = str_from(rows[i].name),
                                            .linkage = str_from(rows[i].linkage),
                                            .file = str_from(rows[i].file),
                                            .image = 1};
        enum finding_owner owner = place_owner(&profile, &function);
        if (owner != (rows[i].library ? FINDING_OWNER_LIBRARY : FINDING_OWNER_USER))
            fail_msg("%s in '%s' is of %s", rows[i].name, rows[i].file, finding_owner_name(owner));
        if (place_is_standard(&profile, &function) != rows[i].standard)
            fail_msg("%s in '%s' is not what it is", rows[i].name, rows[i].file);
    }
}

/* Not descrobject.c:330: that is nobody's line. */
/* What a runtime compiled is the program's own only where it says so. */
static void made_code_without_a_name_is_nobodys_own(void **state)
{
    (void)state;
    struct image_info images[2] = {{.path = STR("")}, {.path = STR("/tmp/perf-6772.map")}};
    struct profile profile = {.images = images, .image_count = 2};
    struct profile_function made = {.name = STR("[perf-6772.map]"), .image = 1, .unnamed = true};
    struct profile_function named = {.name = STR("LazyCompile:*slugifyTitle app.js:3"), .image = 1};
    assert_int_equal(place_owner(&profile, &made), FINDING_OWNER_INTERPRETER);
    assert_int_equal(place_owner(&profile, &named), FINDING_OWNER_USER);
}

static void a_place_in_an_interpreter_has_no_line(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct place place = {.function = STR("method_call"),
                          .image = STR("/root/.pyenv/versions/3.11.9/bin/python3.11"),
                          .file = STR("Objects/descrobject.c"),
                          .line = 330,
                          .owner = FINDING_OWNER_INTERPRETER};
    assert_string_equal(place_text(&arena, &place), "method_call (python3.11)");
    place.owner = FINDING_OWNER_USER;
    assert_string_equal(place_text(&arena, &place), "method_call (descrobject.c:330)");
}

static void stacks_through_a_place_are_those_that_walking_finds(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        run_stack(run, table[i].stack);
    const struct profile *profile = &run->evidence.cpu;
    size_t found = 0;
    for (uint32_t f = 1; f < profile->function_count; f++) {
        for (int line = 0; line < 2; line++) {
            struct place place = place_of_function(profile, f);
            place.line = line ? 11 : place.line;
            bool *through = place_stacks(&run->arena, profile, &place, line);
            assert_non_null(through);
            assert_false(through[0]);
            for (uint32_t i = 1; i < profile->stack_count; i++) {
                assert_int_equal(through[i], place_on_stack(profile, i, &place, line));
                found += through[i];
            }
        }
    }
    assert_true(found > profile->stack_count);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stack_has_its_place_and_its_call),
        cmocka_unit_test(an_image_says_whose_code_it_is),
        cmocka_unit_test(a_source_says_who_wrote_what_was_compiled_into_a_program),
        cmocka_unit_test(made_code_without_a_name_is_nobodys_own),
        cmocka_unit_test(a_place_in_an_interpreter_has_no_line),
        cmocka_unit_test(stacks_through_a_place_are_those_that_walking_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
