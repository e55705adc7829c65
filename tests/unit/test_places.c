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
        cmocka_unit_test(stacks_through_a_place_are_those_that_walking_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
