/* As much of cmocka as test_heap_walk.c asks for: there is none for aarch64 here. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

struct CMUnitTest {
    const char *name;
    void (*test)(void **state);
    int (*setup)(void **state);
};
#define cmocka_unit_test_setup(test, setup)                                                        \
    {                                                                                              \
#test, test, setup                                                                         \
    }

#define print_message printf
#define fail_msg(...)                                                                              \
    do {                                                                                           \
        printf(__VA_ARGS__);                                                                       \
        printf(" (line %d)\n", __LINE__);                                                          \
        exit(1);                                                                                   \
    } while (0)
#define assert_true(what)                                                                          \
    do {                                                                                           \
        if (!(what))                                                                               \
            fail_msg("%s", #what);                                                                 \
    } while (0)
#define assert_int_equal(a, b)       assert_true((uint64_t)(a) == (uint64_t)(b))
#define assert_ptr_equal(a, b)       assert_true((uint64_t)(a) == (uint64_t)(b))
#define assert_null(a)               assert_true(!(a))
#define assert_non_null(a)           assert_true(a)
#define assert_string_equal(a, b)    assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)
#define assert_in_range(a, low, high)                                                              \
    do {                                                                                           \
        uint64_t value_ = (uint64_t)(a);                                                           \
        assert_true(value_ >= (uint64_t)(low) && value_ <= (uint64_t)(high));                      \
    } while (0)

#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    run_tests(tests, sizeof(tests) / sizeof(*(tests)))
static inline int run_tests(const struct CMUnitTest *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tests[i].setup(NULL);
        tests[i].test(NULL);
        printf("ok %s\n", tests[i].name);
    }
    return 0;
}
