/* Promises of base/vec.h, base/map.h and base/intern.h. */
#include "unit.h"

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>

static void a_vector_keeps_its_elements_while_it_grows(void **state)
{
    (void)state;
    VEC(uint32_t) vec = {0};
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(VEC_PUSH(&vec, i * 3), 0);
    assert_int_equal(vec.len, 10000);
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(vec.data[i], i * 3);
    VEC_FREE(&vec);
    assert_null(vec.data);
}

static void an_impossible_size_is_refused_and_nothing_lost(void **state)
{
    (void)state;
    VEC(uint64_t) vec = {0};
    assert_int_equal(VEC_PUSH(&vec, 42u), 0);
    assert_int_equal(VEC_RESERVE(&vec, SIZE_MAX / 4), -ENOMEM);
    assert_int_equal(vec.data[0], 42);
    VEC_FREE(&vec);
}

static void a_map_finds_what_was_put_and_nothing_else(void **state)
{
    (void)state;
    struct map_u64 map = {0};
    assert_null(map_u64_find(&map, 0));
    for (uint64_t key = 0; key < 5000; key++) {
        bool fresh = false;
        uint64_t *value = map_u64_at(&map, key << 32, &fresh);
        assert_non_null(value);
        assert_true(fresh);
        *value = key + 1;
    }
    assert_int_equal(map.len, 5000);
    for (uint64_t key = 0; key < 5000; key++)
        assert_int_equal(*map_u64_find(&map, key << 32), key + 1);
    assert_null(map_u64_find(&map, 1));
    bool fresh = true;
    assert_int_equal(*map_u64_at(&map, 7ull << 32, &fresh), 8);
    assert_false(fresh);
    /* Every key is one, also those at both ends. */
    *map_u64_at(&map, UINT64_MAX, &fresh) = 77;
    assert_true(fresh);
    assert_int_equal(*map_u64_at(&map, UINT64_MAX, &fresh), 77);
    assert_false(fresh);
    size_t at = 0, seen = 0, len = map.len;
    uint64_t each, value, sum = 0;
    while (map_u64_next(&map, &at, &each, &value)) {
        assert_int_equal(*map_u64_find(&map, each), value);
        sum += each == UINT64_MAX || each == 0;
        seen++;
    }
    assert_int_equal(seen, len);
    assert_int_equal(sum, 2);
    map_u64_clear(&map);
    assert_int_equal(map.len, 0);
    assert_null(map_u64_find(&map, 7ull << 32));
    map_u64_deinit(&map);
}

static void hashes_depend_on_every_byte(void **state)
{
    (void)state;
    char text[] = "abcdefghijklmnopq";
    uint64_t hash = hash_bytes(text, sizeof(text) - 1);
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        text[i] ^= 1;
        assert_true(hash_bytes(text, sizeof(text) - 1) != hash);
        text[i] ^= 1;
    }
    assert_true(hash_bytes(text, 3) != hash_bytes(text, 4));
    assert_true(hash_bytes("\0", 1) != hash_bytes("\0\0", 2));
}

static void the_same_text_has_one_id(void **state)
{
    (void)state;
    struct intern intern = {0};
    char text[32];
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 3000; i++) {
            uint32_t id = 0;
            bool fresh = round == 1;
            snprintf(text, sizeof(text), "name-%u", i);
            assert_int_equal(intern_add(&intern, str_from(text), &id, &fresh), 0);
            assert_int_equal(id, i + 1);
            assert_true(fresh == (round == 0));
        }
    }
    assert_true(str_is(intern_get(&intern, 1), "name-0"));
    assert_true(str_is(intern_get(&intern, 3000), "name-2999"));
    assert_int_equal(intern_get(&intern, 0).len, 0);
    assert_int_equal(intern_get(&intern, 3001).len, 0);
    intern_deinit(&intern);
}

static void texts_with_nul_bytes_and_empty_ones_are_texts(void **state)
{
    (void)state;
    struct intern intern = {0};
    uint32_t a = 0, b = 0, c = 0;
    assert_int_equal(intern_add(&intern, (struct str){"x\0y", 3}, &a, NULL), 0);
    assert_int_equal(intern_add(&intern, (struct str){"x\0z", 3}, &b, NULL), 0);
    assert_int_equal(intern_add(&intern, STR(""), &c, NULL), 0);
    assert_true(a != b && b != c && a != c);
    assert_int_equal(intern_get(&intern, a).len, 3);
    intern_deinit(&intern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vector_keeps_its_elements_while_it_grows),
        cmocka_unit_test(an_impossible_size_is_refused_and_nothing_lost),
        cmocka_unit_test(a_map_finds_what_was_put_and_nothing_else),
        cmocka_unit_test(hashes_depend_on_every_byte),
        cmocka_unit_test(the_same_text_has_one_id),
        cmocka_unit_test(texts_with_nul_bytes_and_empty_ones_are_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
