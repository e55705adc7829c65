/* Promises of protocol/sql_text.h. */
#include "unit.h"

#include "protocol/protocol.h"
#include "protocol/sql_text.h"

#include <stdio.h>
#include <stdlib.h>

static char text[PROTOCOL_TEXT_BYTES + 1];

static const char *normal_len(enum sql_dialect dialect, const char *sql, size_t len, uint64_t *hash)
{
    uint64_t ignored;
    /* Of exactly this size, so that a sanitizer sees a read beyond it. */
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, sql, len);
    size_t told = sql_normalise(dialect, (struct str){copy, len}, text, PROTOCOL_TEXT_BYTES,
                                hash ? hash : &ignored);
    free(copy);
    assert_in_range(told, 0, PROTOCOL_TEXT_BYTES);
    text[told] = '\0';
    return text;
}

static const char *pg(const char *sql)
{
    return normal_len(SQL_POSTGRESQL, sql, strlen(sql), NULL);
}

static const char *my(const char *sql)
{
    return normal_len(SQL_MYSQL, sql, strlen(sql), NULL);
}

static const char *lite(const char *sql)
{
    return normal_len(SQL_SQLITE, sql, strlen(sql), NULL);
}

static uint64_t hash_of(const char *sql)
{
    uint64_t hash = 1;
    normal_len(SQL_POSTGRESQL, sql, strlen(sql), &hash);
    return hash;
}

static void values_become_question_marks(void **state)
{
    (void)state;
    assert_string_equal(pg("SELECT * FROM t WHERE id = 12 AND name = 'x'"),
                        "SELECT * FROM t WHERE id = ? AND name = ?");
    assert_string_equal(pg("SELECT 1, 1.5, .5, 1e5, 1.5E-3, 0x1F, 1_000"),
                        "SELECT ?, ?, ?, ?, ?, ?, ?");
    assert_string_equal(pg("a=1 or b<>'c'or d='e'"), "a=? or b<>?or d=?");
    assert_string_equal(pg("SELECT t1.c2, a3 FROM x4"), "SELECT t1.c2, a3 FROM x4");
}

static void strings_of_every_dialect_are_values(void **state)
{
    (void)state;
    assert_string_equal(pg("SELECT 'it''s', E'a\\'b', e'\\\\', x'1F', B'01', N'n', U&'\\0041'"),
                        "SELECT ?, ?, ?, ?, ?, ?, ?");
    /* A backslash is nothing in a standard string, and something in MySQL's. */
    assert_string_equal(pg("SELECT 'a\\', b"), "SELECT ?, b");
    assert_string_equal(my("SELECT 'a\\', b' , c"), "SELECT ? , c");
    assert_string_equal(pg("SELECT $$a 'b' $x$ c$$, $tag$ x $$ y $tag$, z"), "SELECT ?, ?, z");
    assert_string_equal(my("SELECT \"a\\\"b\", `col 1`, _utf8'x', X'00'"),
                        "SELECT ?, `col 1`, ?, ?");
    assert_string_equal(pg("SELECT \"Col\" FROM \"T 1\""), "SELECT \"Col\" FROM \"T 1\"");
    assert_string_equal(lite("SELECT \"c\", [d e] FROM t WHERE \"c\" = \"secret\""),
                        "SELECT \"c\", [d e] FROM t WHERE \"c\" = ?");
    assert_string_equal(lite("INSERT INTO \"t\" (\"a\", \"b\") VALUES (\"x\", \"y\")"),
                        "INSERT INTO \"t\" (\"a\", \"b\") VALUES (?)");
    assert_string_equal(lite("ON \"a\".\"id\" = \"b\".\"id\""), "ON \"a\".\"id\" = \"b\".\"id\"");
}

static void a_minus_belongs_to_the_number_where_no_difference_is_meant(void **state)
{
    (void)state;
    assert_string_equal(pg("SELECT -5, a - 5, a -5, (-5), a = -5, 3 - -2"),
                        "SELECT ?, a - ?, a -?, (?), a = ?, ? - ?");
    assert_string_equal(pg("WHERE a IN (-1, +2) LIMIT -1"), "WHERE a IN (?) LIMIT ?");
}

static void constants_stay(void **state)
{
    (void)state;
    assert_string_equal(pg("WHERE a IS NULL AND b = TRUE OR c=false"),
                        "WHERE a IS NULL AND b = TRUE OR c=false");
}

static void lists_of_values_are_one(void **state)
{
    (void)state;
    assert_string_equal(pg("WHERE id IN (1,2,3)"), "WHERE id IN (?)");
    assert_string_equal(pg("WHERE id in ( 'a' , 'b' ) AND x"), "WHERE id in (?) AND x");
    assert_string_equal(pg("WHERE id IN ($1,$2)"), "WHERE id IN (?)");
    assert_string_equal(pg("INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL) , (3, DEFAULT)"),
                        "INSERT INTO t (a, b) VALUES (?)");
    assert_string_equal(pg("VALUES (1, now()), (2, now()),(3, now()) RETURNING id"),
                        "VALUES (?, now()) RETURNING id");
    assert_string_equal(pg("WHERE (a,b) IN ((1,2),(3,4),(5,6))"), "WHERE (a,b) IN ((?))");
    assert_string_equal(pg("= ANY (ARRAY[1,2,3])"), "= ANY (ARRAY[?])");
    assert_string_equal(my("INSERT INTO t VALUES (1,2) ON DUPLICATE KEY UPDATE a = VALUES(a) + 1"),
                        "INSERT INTO t VALUES (?) ON DUPLICATE KEY UPDATE a = VALUES(a) + ?");
    /* A call's arguments are no list: how many there are matters. */
    assert_string_equal(pg("SELECT f(1, 2), coalesce(a, 1)"), "SELECT f(?, ?), coalesce(a, ?)");
    assert_string_equal(pg("WHERE id IN (SELECT 1 FROM t)"), "WHERE id IN (SELECT ? FROM t)");
}

static void placeholders_are_one_kind(void **state)
{
    (void)state;
    assert_string_equal(pg("WHERE a = $1 AND b = $12::int"), "WHERE a = ? AND b = ?::int");
    assert_string_equal(my("WHERE a = ? AND b = @v"), "WHERE a = ? AND b = @v");
    assert_string_equal(lite("a = ?1 AND b = :name AND c = @p AND d = $x"),
                        "a = ? AND b = ? AND c = ? AND d = ?");
    assert_string_equal(pg("SELECT a[1:2], b::text, j ? 'k'"), "SELECT a[?:?], b::text, j ? ?");
}

static void comments_and_blanks_go(void **state)
{
    (void)state;
    assert_string_equal(pg("  SELECT\n\t1 -- one\n , /* a /* b */ c */ 2 ;\n "), "SELECT ? , ?");
    assert_string_equal(my("SELECT 1 # one\n+ 5--3 -- x"), "SELECT ? + ?-?");
    assert_string_equal(my("/*!40101 SET NAMES utf8 */"), "SET NAMES utf8");
    assert_string_equal(lite("SELECT/**/a/* x"), "SELECT a");
    assert_string_equal(pg("SELECT 1; SELECT 2;"), "SELECT ?; SELECT ?");
    assert_string_equal(pg(""), "");
    assert_string_equal(pg(" ; "), "");
}

static void passwords_are_values(void **state)
{
    (void)state;
    assert_string_equal(pg("ALTER ROLE bob PASSWORD 'hunter2'"), "ALTER ROLE bob PASSWORD ?");
    assert_string_equal(my("CREATE USER 'bob'@'%' IDENTIFIED BY \"hunter2\""),
                        "CREATE USER ?@? IDENTIFIED BY ?");
}

static void the_hash_changes_with_the_values_only(void **state)
{
    (void)state;
    assert_int_equal(hash_of("SELECT a FROM t WHERE b = $1"), 0);
    assert_true(hash_of("SELECT 1") != 0);
    assert_true(hash_of("SELECT 1") != hash_of("SELECT 2"));
    assert_true(hash_of("SELECT 1") == hash_of("select /* x */  1"));
    assert_true(hash_of("IN (1,2)") != hash_of("IN (1,3)"));
    assert_true(hash_of("SELECT 1, 2") != hash_of("SELECT 2, 1"));
}

static void a_text_that_is_cut_off_is_still_one(void **state)
{
    (void)state;
    assert_string_equal(pg("SELECT 'abc"), "SELECT ?");
    assert_string_equal(pg("SELECT $x$abc"), "SELECT ?");
    assert_string_equal(pg("SELECT \"abc"), "SELECT \"abc");
    assert_string_equal(pg("WHERE a IN (1,2,3"), "WHERE a IN (?");
    assert_string_equal(pg("WHERE a IN (1,2,3,"), "WHERE a IN (?");
    assert_string_equal(pg("VALUES (1,2),(1,2),(3"), "VALUES (?)");
    assert_string_equal(pg("VALUES (1,2),(1,2),"), "VALUES (?)");
    assert_string_equal(pg("VALUES (1,now()),(1,no"), "VALUES (?,now())");
    assert_string_equal(pg("SELECT $"), "SELECT $");
    assert_string_equal(my("SELECT '\\"), "SELECT ?");
}

static void what_comes_out_is_text(void **state)
{
    (void)state;
    assert_string_equal(normal_len(SQL_MYSQL, "SELECT \xff\xfe, 'a\xff', \0 x", 21, NULL),
                        "SELECT \xef\xbf\xbd\xef\xbf\xbd, ?, x");
    assert_string_equal(pg("SELECT \xc3\xa4 FROM \"\xe2\x82\xac\""),
                        "SELECT \xc3\xa4 FROM \"\xe2\x82\xac\"");
    assert_string_equal(pg("SELECT \x1b[31m"), "SELECT [?");
}

static void a_long_text_ends_where_the_room_does(void **state)
{
    (void)state;
    static char sql[100000];
    for (size_t room = 0; room < 16; room++) {
        uint64_t hash;
        size_t len = sql_normalise(SQL_POSTGRESQL, STR("SELECT \xe2\x82\xac\xe2\x82\xac"), text,
                                   room, &hash);
        assert_in_range(len, 0, room);
        /* Never within a character. */
        assert_true(len < 8 || (len - 7) % 3 == 0);
    }
    for (size_t i = 0; i < sizeof(sql) - 1; i++)
        sql[i] = "a,("[i % 3];
    assert_in_range(strlen(pg(sql)), PROTOCOL_TEXT_BYTES - 8, PROTOCOL_TEXT_BYTES);
    memset(sql, '(', sizeof(sql) - 1);
    pg(sql);
    memset(sql, ')', sizeof(sql) - 1);
    pg(sql);
    /* Ten thousand values take no room. */
    size_t len = (size_t)snprintf(sql, sizeof(sql), "SELECT * FROM t WHERE a IN (0");
    while (len < 400)
        len += (size_t)snprintf(sql + len, sizeof(sql) - len, ", %zu", len);
    snprintf(sql + len, sizeof(sql) - len, ")");
    assert_string_equal(pg(sql), "SELECT * FROM t WHERE a IN (?)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_become_question_marks),
        cmocka_unit_test(strings_of_every_dialect_are_values),
        cmocka_unit_test(a_minus_belongs_to_the_number_where_no_difference_is_meant),
        cmocka_unit_test(constants_stay),
        cmocka_unit_test(lists_of_values_are_one),
        cmocka_unit_test(placeholders_are_one_kind),
        cmocka_unit_test(comments_and_blanks_go),
        cmocka_unit_test(passwords_are_values),
        cmocka_unit_test(the_hash_changes_with_the_values_only),
        cmocka_unit_test(a_text_that_is_cut_off_is_still_one),
        cmocka_unit_test(what_comes_out_is_text),
        cmocka_unit_test(a_long_text_ends_where_the_room_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
