/* Promises of model/value.h. */
#include "unit.h"

#include "model/value.h"

#include <math.h>

static const struct column columns[] = {
    {"name", "name", SHOW_ALWAYS, false, false},
    {"size", "size", SHOW_ALWAYS, true, false},
};

static void a_tree_is_read_by_key_and_by_path(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value root = value_map(&arena);
    struct value *cpu = value_put(&root, "cpu", "CPU", value_map(&arena));
    value_put(cpu, "cores", NULL, value_uint(2, UNIT_COUNT));
    value_put(cpu, "model", "model", value_text("some"));
    assert_true(value_number(value_find(&root, "cpu.cores")) == 2);
    assert_true(str_is(value_find(&root, "cpu.model")->text, "some"));
    assert_null(value_find(&root, "cpu.cores.deeper"));
    assert_null(value_find(&root, "gpu"));
    assert_ptr_equal(value_get(&root, "cpu"), cpu);
    assert_true(isnan(value_number(value_get(cpu, "model"))));
}

static void a_new_row_says_that_it_was_not_set(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value table = value_table(&arena, columns, ARRAY_SIZE(columns));
    struct table_row *row = table_add(&table);
    assert_int_equal(row->cells[1].kind, VALUE_NA);
    assert_true(str_is(row->cells[1].text, "not set"));
    assert_int_equal(table.table->row_count, 1);
    assert_null(table_add(NULL));
}

static void a_tree_without_memory_is_built_without_harm(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value root = {.kind = VALUE_MAP, .items = NULL}; /* what value_map() gives then */
    struct value *child = value_put(&root, "a", NULL, value_map(&arena));
    assert_null(child);
    assert_null(value_put(child, "b", NULL, value_bool(true)));
    struct value table = {.kind = VALUE_TABLE, .table = NULL};
    assert_null(table_add(&table));
    assert_null(value_get(&root, "a"));
}

static void a_formatted_reason_is_kept_in_the_arena(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value na = value_na_printf(&arena, "needs Linux %d", 6);
    assert_int_equal(na.kind, VALUE_NA);
    assert_true(str_is(na.text, "needs Linux 6"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_read_by_key_and_by_path),
        cmocka_unit_test(a_new_row_says_that_it_was_not_set),
        cmocka_unit_test(a_tree_without_memory_is_built_without_harm),
        cmocka_unit_test(a_formatted_reason_is_kept_in_the_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
