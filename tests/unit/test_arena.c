/* Promises of base/arena.h. */
#include "unit.h"

#include "base/arena.h"

static void memory_is_zeroed_and_aligned(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    for (size_t size = 1; size < 5000; size += 7) {
        unsigned char *memory = arena_alloc(&arena, size);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xff, size);
    }
    arena_deinit(&arena);
    assert_null(arena.head);
}

static void a_large_request_gets_its_own_block(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    char *small = arena_alloc(&arena, 16);
    char *large = arena_alloc(&arena, 8 * 1024 * 1024);
    assert_non_null(small);
    assert_non_null(large);
    large[8 * 1024 * 1024 - 1] = 1;
    arena_deinit(&arena);
}

static void text_is_copied_and_formatted(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    char source[] = "abc";
    const char *copy = arena_dup(&arena, source);
    source[0] = 'x';
    assert_string_equal(copy, "abc");
    assert_string_equal(arena_dup_len(&arena, "abcdef", 3), "abc");
    assert_string_equal(arena_printf(&arena, "%s-%d", "n", 7), "n-7");
    assert_false(arena_failed(&arena));
}

static void running_out_of_memory_is_remembered(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_true(arena_failed(&arena));
    assert_string_equal(arena_dup_len(&arena, "", SIZE_MAX), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(a_large_request_gets_its_own_block),
        cmocka_unit_test(text_is_copied_and_formatted),
        cmocka_unit_test(running_out_of_memory_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
