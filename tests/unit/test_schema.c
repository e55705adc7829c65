/* Promises of store/schema.h: migrations happen whole or not at all. */
#include "unit.h"

#include "store/db.h"
#include "store/schema.h"

#include <errno.h>
#include <stdio.h>

static sqlite3 *open_memory(void)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    return db;
}

static int64_t get(sqlite3 *db, const char *sql)
{
    int64_t value = -1;
    assert_int_equal(db_int(db, sql, &value), SQLITE_OK);
    return value;
}

static void a_new_file_gets_every_table_that_is_described(void **state)
{
    (void)state;
    AUTO(db_close) sqlite3 *db = open_memory();
    assert_int_equal(schema_migrate(db, schema_steps, schema_version, NULL), 0);
    assert_int_equal(get(db, "PRAGMA user_version"), schema_version);
    int described = 0;
    for (const struct schema_table *table = schema_tables; table->name; table++) {
        if (table->made)
            continue;
        char sql[120];
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM sqlite_schema WHERE name = '%s'",
                 table->name);
        assert_int_equal(get(db, sql), 1);
        described++;
    }
    assert_int_equal(get(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"), described);
}

static void names_of_schema_1_become_functions(void **state)
{
    (void)state;
    AUTO(db_close) sqlite3 *db = open_memory();
    assert_int_equal(schema_migrate(db, schema_steps, 1, NULL), 0);
    assert_int_equal(db_exec(db, "INSERT INTO location VALUES(1, 0, 7, 0, 3), (1, 1, 5, 0, 4),"
                                 " (2, 0, 7, 0, 9), (3, 0, 0, 0, 1)"),
                     SQLITE_OK);
    assert_int_equal(schema_migrate(db, schema_steps, 2, NULL), 0);
    assert_int_equal(get(db, "SELECT count(*) FROM function"), 2);
    assert_int_equal(get(db, "SELECT count(*) FROM location JOIN function"
                             " ON function.id = location.function AND name = 7"),
                     2);
    assert_int_equal(get(db, "SELECT function FROM location WHERE frame = 3"), 0);
}

static void a_file_of_schema_2_gets_tables_for_waits_and_keeps_the_rest(void **state)
{
    (void)state;
    AUTO(db_close) sqlite3 *db = open_memory();
    assert_int_equal(schema_migrate(db, schema_steps, 2, NULL), 0);
    assert_int_equal(get(db, "SELECT count(*) FROM sqlite_schema WHERE name IN"
                             " ('object', 'wait', 'wait_event')"),
                     0);
    assert_int_equal(db_exec(db, "INSERT INTO function VALUES(1, 5, 0, 0, 0, 0, 0, 0)"), SQLITE_OK);
    assert_int_equal(schema_migrate(db, schema_steps, 3, NULL), 0);
    assert_int_equal(get(db, "PRAGMA user_version"), 3);
    assert_int_equal(get(db, "SELECT name FROM function"), 5);
    assert_int_equal(get(db, "SELECT (SELECT count(*) FROM object) + (SELECT count(*) FROM wait) +"
                             " (SELECT count(*) FROM wait_event)"),
                     0);
}

static void a_file_of_schema_3_gets_tables_for_calls_and_keeps_its_waits(void **state)
{
    (void)state;
    AUTO(db_close) sqlite3 *db = open_memory();
    assert_int_equal(schema_migrate(db, schema_steps, 3, NULL), 0);
    assert_int_equal(db_exec(db, "INSERT INTO wait_event VALUES(1, 2, 3, 4, 5)"), SQLITE_OK);
    assert_int_equal(schema_migrate(db, schema_steps, 4, NULL), 0);
    assert_int_equal(get(db, "PRAGMA user_version"), 4);
    assert_int_equal(get(db, "SELECT runq_ns FROM wait_event"), 5);
    assert_int_equal(get(db, "SELECT count(*) FROM sqlite_schema WHERE name IN"
                             " ('call', 'device', 'connection', 'request', 'request_event')"),
                     5);
}

static void a_file_of_schema_4_gets_tables_for_the_heap_and_keeps_its_calls(void **state)
{
    (void)state;
    AUTO(db_close) sqlite3 *db = open_memory();
    assert_int_equal(schema_migrate(db, schema_steps, 4, NULL), 0);
    assert_int_equal(db_exec(db, "INSERT INTO request_event VALUES(1,2,3,4,5,6,7,8,9,10,11)"),
                     SQLITE_OK);
    assert_int_equal(schema_migrate(db, schema_steps, 5, NULL), 0);
    assert_int_equal(get(db, "PRAGMA user_version"), 5);
    assert_int_equal(get(db, "SELECT payload FROM request_event"), 11);
    assert_int_equal(get(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'heap_%'"), 5);
}

static void an_old_file_gets_only_the_steps_it_lacks(void **state)
{
    (void)state;
    AUTO(db_close) sqlite3 *db = open_memory();
    const struct schema_step steps[] = {
        {"CREATE TABLE a(x); INSERT INTO a VALUES(1)"},
        {"ALTER TABLE a ADD COLUMN y DEFAULT 5"},
        {"UPDATE a SET x = x + 1"},
    };
    assert_int_equal(schema_migrate(db, steps, 1, NULL), 0);
    assert_int_equal(get(db, "PRAGMA user_version"), 1);
    assert_int_equal(schema_migrate(db, steps, 3, NULL), 0);
    assert_int_equal(get(db, "PRAGMA user_version"), 3);
    assert_int_equal(get(db, "SELECT x * 10 + y FROM a"), 25);
    assert_int_equal(schema_migrate(db, steps, 3, NULL), 0);
    assert_int_equal(get(db, "SELECT x * 10 + y FROM a"), 25);
}

static void a_failing_step_leaves_the_version_before_it(void **state)
{
    (void)state;
    AUTO(db_close) sqlite3 *db = open_memory();
    const struct schema_step steps[] = {
        {"CREATE TABLE a(x)"},
        {"CREATE TABLE b(x); INSERT INTO a VALUES(1); INSERT INTO no_such_table VALUES(1)"},
        {"CREATE TABLE c(x)"},
    };
    struct why why = {0};
    assert_true(schema_migrate(db, steps, 3, &why) < 0);
    assert_non_null(strstr(why.what, "from schema 1 to 2"));
    assert_non_null(strstr(why.what, "no_such_table"));
    assert_int_equal(get(db, "PRAGMA user_version"), 1);
    assert_int_equal(get(db, "SELECT count(*) FROM a"), 0);
    assert_int_equal(get(db, "SELECT count(*) FROM sqlite_schema WHERE name IN ('b', 'c')"), 0);
    assert_true(sqlite3_get_autocommit(db));
}

static void a_newer_file_is_not_migrated_back(void **state)
{
    (void)state;
    AUTO(db_close) sqlite3 *db = open_memory();
    assert_int_equal(db_exec(db, "PRAGMA user_version = 99"), SQLITE_OK);
    struct why why = {0};
    assert_int_equal(schema_migrate(db, schema_steps, schema_version, &why), -EBADMSG);
    assert_int_equal(get(db, "PRAGMA user_version"), 99);
}

static void kinds_and_units_have_names_both_ways(void **state)
{
    (void)state;
    for (int unit = UNIT_NONE; unit <= UNIT_HZ; unit++)
        assert_int_equal(schema_unit_find(schema_unit_name((enum unit)unit)), unit);
    for (int kind = FRAME_USER; kind <= FRAME_UNKNOWN; kind++)
        assert_int_equal(schema_frame_kind_find(schema_frame_kind_name((enum frame_kind)kind)),
                         kind);
    for (int kind = IMAGE_FILE; kind <= IMAGE_JIT; kind++)
        assert_int_equal(schema_image_kind_find(schema_image_kind_name((enum image_kind)kind)),
                         kind);
    for (int kind = OBJECT_NONE; kind <= OBJECT_PATH; kind++)
        assert_int_equal(schema_object_kind_find(schema_object_kind_name((enum object_kind)kind)),
                         kind);
    for (int kind = WAIT_BLOCKED; kind <= WAIT_HOLD; kind++)
        assert_int_equal(schema_wait_kind_find(schema_wait_kind_name((enum wait_kind)kind)), kind);
    assert_null(schema_object_kind_name((enum object_kind)15));
    assert_null(schema_wait_kind_name((enum wait_kind)3));
    for (int op = DEVICE_READ; op < DEVICE_OPS; op++)
        assert_int_equal(schema_device_op_find(schema_device_op_name((enum device_op)op)), op);
    for (int protocol = REQUEST_HTTP1; protocol < REQUEST_PROTOCOLS; protocol++)
        assert_int_equal(schema_request_protocol_find(
                             schema_request_protocol_name((enum request_protocol)protocol)),
                         protocol);
    for (int role = REQUEST_CLIENT; role <= REQUEST_INSIDE; role++)
        assert_int_equal(
            schema_request_role_find(schema_request_role_name((enum request_role)role)), role);
    for (int kind = HEAP_KIND_HEAP; kind < HEAP_KINDS; kind++)
        assert_int_equal(schema_heap_kind_find(schema_heap_kind_name((enum heap_kind)kind)), kind);
    for (int why = HEAP_SNAPSHOT_TIMER; why < HEAP_SNAPSHOT_WHYS; why++)
        assert_int_equal(schema_heap_why_find(schema_heap_why_name((enum heap_snapshot_why)why)),
                         why);
    assert_null(schema_heap_kind_name(HEAP_KINDS));
    assert_null(schema_heap_why_name(HEAP_SNAPSHOT_WHYS));
    assert_null(schema_device_op_name(DEVICE_OPS));
    assert_null(schema_request_protocol_name((enum request_protocol)0));
    assert_null(schema_request_protocol_name(REQUEST_PROTOCOLS));
    assert_null(schema_request_role_name((enum request_role)0));
    assert_null(schema_unit_name((enum unit)99));
    assert_int_equal(schema_unit_find("parsecs"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_file_gets_every_table_that_is_described),
        cmocka_unit_test(names_of_schema_1_become_functions),
        cmocka_unit_test(a_file_of_schema_2_gets_tables_for_waits_and_keeps_the_rest),
        cmocka_unit_test(a_file_of_schema_3_gets_tables_for_calls_and_keeps_its_waits),
        cmocka_unit_test(a_file_of_schema_4_gets_tables_for_the_heap_and_keeps_its_calls),
        cmocka_unit_test(an_old_file_gets_only_the_steps_it_lacks),
        cmocka_unit_test(a_failing_step_leaves_the_version_before_it),
        cmocka_unit_test(a_newer_file_is_not_migrated_back),
        cmocka_unit_test(kinds_and_units_have_names_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
