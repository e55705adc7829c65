/* Promises of protocol/mysql.c. */
#include "proto_talk.h"

static struct talk talk;

static void begin(void)
{
    talk = (struct talk){.ops = &protocol_mysql};
}

static void say(char who, uint8_t number, const void *body, size_t len)
{
    const uint8_t header[4] = {(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16), number};
    talk_say(&talk, who, header, sizeof(header));
    talk_say(&talk, who, body, len);
}

#define SAY(who, number, literal) say(who, number, literal, sizeof(literal) - 1)

#define GREETING                                                                                   \
    "\x0a"                                                                                         \
    "5.5.5-10.11.6-MariaDB\0\1\0\0\0saltsalt\0"

/* 0xff 0xf7 …: all of the lower capabilities but encryption and compression. */
static void login(uint8_t upper)
{
    uint8_t greeting[] = GREETING "\xdf\xf7\x2d\2\0??\x15\0\0\0\0\0\0\x1d\0\0\0restofsalt12\0mysql_"
                                  "native_password";
    uint8_t answer[] = "\x8d\xa2??\0\0\0\1\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                       "bob\0\4hashshop\0mysql_native_password";
    /* The upper half of the capabilities. */
    uint8_t *at = greeting + 1 + 22 + 4 + 8 + 1 + 5;
    at[0] = 0xff;
    at[1] = upper;
    answer[2] = 0x3a;
    answer[3] = upper;
    say('s', 0, greeting, sizeof(greeting));
    say('c', 1, answer, sizeof(answer));
    SAY('s', 2, "\xfemysql_native_password\0salt");
    SAY('c', 3, "hash");
    SAY('s', 4, "\0\0\0\2\0\0\0");
}

#define COLUMN    "\3def\4shop\1t\1t\1a\1a\x0c\x3f\0\x0b\0\0\0\3\0\0\0\0\0"
#define EOF_PLAIN "\xfe\0\0\2\0"
#define EOF_MORE  "\xfe\0\0\x0a\0"
#define OK_END    "\xfe\0\0\2\0\0\0"

static void results_end_with_an_end_of_either_kind(void **state)
{
    (void)state;
    for (int deprecated = 0; deprecated <= 1; deprecated++) {
        begin();
        login(deprecated ? 1 : 0);
        SAY('c', 0, "\3SELECT a FROM t WHERE a = 'x'");
        SAY('s', 1, "\1");
        SAY('s', 2, COLUMN);
        if (!deprecated)
            SAY('s', 3, EOF_PLAIN);
        talk_next(&talk, 's');
        SAY('s', deprecated ? 3 : 4, "\1x");
        SAY('s', deprecated ? 4 : 5, "\xfb");
        if (deprecated)
            SAY('s', 5, OK_END);
        else
            SAY('s', 6, EOF_PLAIN);
        /* And one without rows. */
        SAY('c', 0, "\3SELECT 1 FROM t");
        SAY('s', 1, "\1");
        SAY('s', 2, COLUMN);
        if (deprecated) {
            SAY('s', 3, OK_END);
        } else {
            SAY('s', 3, EOF_PLAIN);
            SAY('s', 4, EOF_PLAIN);
        }
        SAY('c', 0, "\3INSERT INTO t VALUES (1)");
        SAY('s', 1, "\0\1\0\2\0\0\0");
        SAY('c', 0, "\x0e");
        SAY('s', 1, "\0\0\0\2\0\0\0");
        SAY('c', 0, "\1");
        talk_expect(&talk, "service shop\n"
                           "SELECT a FROM t WHERE a = ? | OK | 60-70-80 | A\n"
                           "SELECT ? FROM t | OK | 90-100-100 | B\n"
                           "INSERT INTO t VALUES (?) | OK | 110-120-120 | B\n"
                           "PING | OK | 130-140-140 | -\n");
    }
}

static void an_error_is_told_by_its_number(void **state)
{
    (void)state;
    begin();
    login(1);
    SAY('c', 0, "\3INSERT INTO t VALUES (1)");
    /* How far MariaDB is, which looks like an error and is none. */
    SAY('s', 1, "\xff\xff\xff\1\1\2\0\0\0\1x");
    SAY('s', 2, "\xff\x26\4#23000Duplicate entry");
    SAY('c', 0, "\2other");
    SAY('s', 1, "\xff\x19\4#42000Unknown database");
    SAY('c', 0, "\2other");
    SAY('s', 1, "\0\0\0\2\0\0\0");
    talk_expect(&talk, "service shop\n"
                       "INSERT INTO t VALUES (?) | ERROR 1062 | 60-70-70 | A failed\n"
                       "USE other | ERROR 1049 | 80-90-90 | - failed\n"
                       "service other\n"
                       "USE other | OK | 100-110-110 | -\n");
}

static void prepared_statements_are_known_by_their_number(void **state)
{
    (void)state;
    begin();
    login(1);
    SAY('c', 0, "\x16SELECT a FROM t WHERE b = ? AND c = 5");
    SAY('s', 1, "\0\7\0\0\0\1\0\1\0\0\0\0");
    SAY('s', 2, COLUMN);
    SAY('s', 3, COLUMN);
    for (int i = 0; i < 3; i++) {
        /* With types the first time; the value is 1, 2 and 1 again. */
        if (i == 0)
            SAY('c', 0, "\x17\7\0\0\0\0\1\0\0\0\0\1\3\0\1\0\0\0");
        else if (i == 1)
            SAY('c', 0, "\x17\7\0\0\0\0\1\0\0\0\0\0\2\0\0\0");
        else
            SAY('c', 0, "\x17\7\0\0\0\0\1\0\0\0\0\0\1\0\0\0");
        SAY('s', 1, "\1\1"); /* columns follow, says MariaDB */
        SAY('s', 2, COLUMN);
        SAY('s', 3, "\0\0\1\0\0\0");
        SAY('s', 4, OK_END);
    }
    SAY('c', 0, "\x17\7\0\0\0\0\1\0\0\0\0\0\1\0\0\0");
    SAY('s', 1, "\1\0"); /* the client knows them already */
    SAY('s', 2, "\0\0\1\0\0\0");
    SAY('s', 3, OK_END);
    SAY('c', 0, "\x1a\7\0\0\0");
    SAY('s', 1, "\0\0\0\2\0\0\0");
    SAY('c', 0, "\x19\7\0\0\0");
    talk_next(&talk, 'c');
    SAY('c', 0, "\x17\7\0\0\0\0\1\0\0\0");
    SAY('s', 1, "\xff\xdb\4#HY000Unknown prepared statement");
    talk_expect(&talk, "service shop\n"
                       "PREPARE SELECT a FROM t WHERE b = ? AND c = ? | OK | 60-70-70 | -\n"
                       "SELECT a FROM t WHERE b = ? AND c = ? | OK | 80-90-90 | A\n"
                       "SELECT a FROM t WHERE b = ? AND c = ? | OK | 100-110-110 | B\n"
                       "SELECT a FROM t WHERE b = ? AND c = ? | OK | 120-130-130 | A\n"
                       "SELECT a FROM t WHERE b = ? AND c = ? | OK | 140-150-150 | A\n"
                       "RESET SELECT a FROM t WHERE b = ? AND c = ? | OK | 160-170-170 | -\n"
                       "EXECUTE <unseen statement> | ERROR 1243 | 190-200-200 | - failed\n");
}

static void a_cursor_is_read_by_fetches(void **state)
{
    (void)state;
    begin();
    login(0);
    SAY('c', 0, "\x16SELECT a FROM t");
    SAY('s', 1, "\0\1\0\0\0\1\0\0\0\0\0\0");
    SAY('s', 2, COLUMN);
    SAY('s', 3, EOF_PLAIN);
    SAY('c', 0, "\x17\1\0\0\0\1\1\0\0\0");
    SAY('s', 1, "\1");
    SAY('s', 2, COLUMN);
    SAY('s', 3, "\xfe\0\0\x42\0");
    SAY('c', 0, "\x1c\1\0\0\0\5\0\0\0");
    SAY('s', 1, "\0\0\1\0\0\0");
    SAY('s', 2, "\xfe\0\0\xc2\0");
    talk_expect(&talk, "service shop\n"
                       "PREPARE SELECT a FROM t | OK | 60-70-70 | -\n"
                       "SELECT a FROM t | OK | 80-90-90 | -\n"
                       "FETCH SELECT a FROM t | OK | 100-110-110 | -\n");
}

static void several_results_are_one_answer(void **state)
{
    (void)state;
    begin();
    login(0);
    SAY('c', 0, "\3SELECT 1; UPDATE t SET a=2; SELECT 3");
    SAY('s', 1, "\1");
    SAY('s', 2, COLUMN);
    SAY('s', 3, EOF_PLAIN);
    SAY('s', 4, "\1x");
    SAY('s', 5, EOF_MORE);
    talk_next(&talk, 's');
    SAY('s', 6, "\0\1\0\x0a\0\0\0");
    SAY('s', 7, "\1");
    SAY('s', 8, COLUMN);
    SAY('s', 9, EOF_PLAIN);
    SAY('s', 10, EOF_PLAIN);
    talk_expect(&talk, "service shop\n"
                       "SELECT ?; UPDATE t SET a=?; SELECT ? | OK | 60-70-80 | A\n");
}

static void a_file_is_sent_within_its_command(void **state)
{
    (void)state;
    begin();
    login(1);
    SAY('c', 0, "\3LOAD DATA LOCAL INFILE 'x' INTO TABLE t");
    SAY('s', 1, "\xfbx");
    SAY('c', 2, "1\n2\n");
    SAY('c', 3, "3\n");
    talk_next(&talk, 'c');
    SAY('c', 4, "");
    SAY('s', 5, "\0\3\0\2\0\0\0");
    SAY('c', 0, "\x0e");
    SAY('s', 1, "\0\0\0\2\0\0\0");
    talk_expect(&talk, "service shop\n"
                       "LOAD DATA LOCAL INFILE ? INTO TABLE t | OK | 60-70-100 | A\n"
                       "PING | OK | 110-120-120 | -\n");
    /* Packets of the file out of sight: the server's answer ends them. */
    begin();
    login(1);
    SAY('c', 0, "\3LOAD DATA LOCAL INFILE 'x' INTO TABLE t");
    SAY('s', 1, "\xfbx");
    SAY('c', 2, "1\n2\n");
    talk_missing(&talk, 9000);
    SAY('s', 5, "\0\3\0\2\0\0\0");
    SAY('c', 0, "\x0e");
    SAY('s', 1, "\0\0\0\2\0\0\0");
    talk_expect(&talk, "service shop\n"
                       "LOAD DATA LOCAL INFILE ? INTO TABLE t | OK | 60-70-90 | A\n"
                       "PING | OK | 100-110-110 | -\n");
}

static void encryption_and_compression_end_what_can_be_read(void **state)
{
    (void)state;
    begin();
    login(1);
    /* Both sides can encrypt, and the client asks for it with a short login. */
    talk.count = 2;
    talk.steps[1].len = 4 + 32;
    talk.bytes[talk.steps[1].at] = 32;
    talk.bytes[talk.steps[1].at + 5] |= 0x08;
    talk.bytes[4 + 1 + 22 + 4 + 8 + 1 + 1] |= 0x08;
    talk_expect(&talk, "switched\n");
    begin();
    login(1);
    talk.bytes[talk.steps[1].at + 4] |= 0x20;
    talk.bytes[4 + 1 + 22 + 4 + 8 + 1] |= 0x20;
    talk_expect(&talk, "switched\n");
    begin();
    login(1);
    SAY('c', 0, "\x12\4\0\0\0");
    talk_expect(&talk, "service shop\nswitched\n");
}

static void packets_of_sixteen_megabytes_go_on_in_the_next(void **state)
{
    (void)state;
    begin();
    login(1);
    talk_say(&talk, 'c', "\xff\xff\xff\0\3INSERT INTO t VALUES ('", 28);
    talk_missing(&talk, 0xffffff - 24);
    talk_say(&talk, 'c', "\3\0\0\1x')", 7);
    SAY('s', 2, "\0\1\0\2\0\0\0");
    SAY('c', 0, "\3SELECT a FROM t");
    SAY('s', 1, "\1");
    SAY('s', 2, COLUMN);
    talk_next(&talk, 's');
    talk_say(&talk, 's', "\xff\xff\xff\3\xfe\0\0\0\2\0\0\0\0", 13);
    talk_missing(&talk, 0xffffff - 9);
    /* The rest of the row begins like an end. */
    SAY('s', 4, "\xfe\0\0\2\0\0\0");
    SAY('s', 5, OK_END);
    talk_expect(&talk, "service shop\n"
                       "INSERT INTO t VALUES (? | OK | 60-80-80 | A cut\n"
                       "SELECT a FROM t | OK | 90-100-120 | -\n");
}

static void a_long_command_out_of_sight_ends_with_its_answer(void **state)
{
    (void)state;
    begin();
    login(1);
    talk_say(&talk, 'c', "\xff\xff\xff\0\3INSERT INTO t VALUES ('", 28);
    talk_missing(&talk, 0xffffff - 1000);
    talk_next(&talk, 'c');
    talk_text(&talk, 'c', "xxx");
    talk_missing(&talk, 5000);
    SAY('s', 2, "\0\1\0\2\0\0\0");
    SAY('c', 0, "\x0e");
    SAY('s', 1, "\0\0\0\2\0\0\0");
    talk_expect(&talk, "service shop\n"
                       "INSERT INTO t VALUES (? | OK | 60-80-80 | A cut\n"
                       "PING | OK | 90-100-100 | -\n");
    /* But commands that follow one another out of sight cannot be made up. */
    begin();
    login(1);
    SAY('c', 0, "\x0e");
    talk_missing(&talk, 100);
    talk_expect(&talk, "service shop\nPING |  | 60-0-0 | - unanswered\nbroken\n");
}

static void rows_out_of_sight_end_when_the_client_goes_on(void **state)
{
    (void)state;
    begin();
    login(1);
    SAY('c', 0, "\3SELECT * FROM big");
    SAY('s', 1, "\1");
    SAY('s', 2, COLUMN);
    SAY('s', 3, "\1x");
    talk_missing(&talk, 16000);
    talk_next(&talk, 's');
    talk_text(&talk, 's', "rest of a row");
    SAY('c', 0, "\x0e");
    SAY('s', 1, "\0\0\0\2\0\0\0");
    talk_expect(&talk, "service shop\n"
                       "SELECT * FROM big |  | 60-70-80 | -\n"
                       "PING | OK | 90-100-100 | -\n");
}

static void a_connection_is_followed_from_its_middle(void **state)
{
    (void)state;
    for (int deprecated = 0; deprecated <= 1; deprecated++) {
        begin();
        talk.middle = true;
        talk_text(&talk, 's', "rest of a row");
        SAY('c', 0, "\x17\7\0\0\0\0\1\0\0\0");
        SAY('s', 1, "\1");
        SAY('s', 2, COLUMN);
        if (!deprecated)
            SAY('s', 3, EOF_PLAIN);
        SAY('s', deprecated ? 3 : 4, "\0\0\1\0\0\0");
        if (deprecated)
            SAY('s', 4, OK_END);
        else
            SAY('s', 5, EOF_PLAIN);
        SAY('c', 0, "\x16SELECT ?");
        SAY('s', 1, "\0\x08\0\0\0\1\0\1\0\0\0\0");
        SAY('s', 2, COLUMN);
        if (!deprecated)
            SAY('s', 3, EOF_PLAIN);
        SAY('s', deprecated ? 3 : 4, COLUMN);
        if (!deprecated)
            SAY('s', 5, EOF_PLAIN);
        SAY('c', 0, "\3\0\1SELECT 1"); /* with attributes, of which there are none */
        SAY('s', 1, "\0\0\0\2\0\0\0");
        talk_expect(&talk, "EXECUTE <unseen statement> | OK | 20-30-30 | -\n"
                           "PREPARE SELECT ? | OK | 40-50-50 | -\n"
                           "SELECT ? | OK | 60-70-70 | A\n");
    }
}

static void the_user_can_be_changed(void **state)
{
    (void)state;
    begin();
    login(1);
    SAY('c', 0,
        "\x11"
        "eve\0\4pass\0");
    SAY('s', 1,
        "\xfe"
        "plugin\0salt");
    SAY('c', 2, "secret");
    SAY('s', 3, "\0\0\0\2\0\0\0");
    SAY('c', 0, "\x1f");
    SAY('s', 1, "\0\0\0\2\0\0\0");
    talk_expect(&talk, "service shop\n"
                       "CHANGE USER | OK | 60-70-90 | -\n"
                       "RESET CONNECTION | OK | 100-110-110 | -\n");
}

static void what_is_no_packet_breaks_the_connection_only(void **state)
{
    (void)state;
    begin();
    login(1);
    SAY('c', 0, "\x0e");
    SAY('s', 7, "\0\0\0\2\0\0\0"); /* not its number */
    talk_expect(&talk, "service shop\nPING |  | 60-0-0 | - unanswered\nbroken\n");
    begin();
    login(1);
    SAY('c', 0, "\x7f");
    talk_expect(&talk, "service shop\nbroken\n");
    begin();
    login(1);
    SAY('c', 3, "\x0e");
    talk_expect(&talk, "service shop\nbroken\n");
    begin();
    talk_text(&talk, 's', "HTTP/1.1 200 OK\r\n\r\n");
    talk_expect(&talk, "broken\n");
    begin();
    SAY('s', 0, "\xff\x10\4Too many connections");
    talk_expect(&talk, "");
}

static void damaged_conversations_do_no_harm(void **state)
{
    several_results_are_one_answer(state);
    talk_garbage(&talk, 3000);
    prepared_statements_are_known_by_their_number(state);
    talk_garbage(&talk, 3000);
    a_file_is_sent_within_its_command(state);
    talk_garbage(&talk, 3000);
}

static void a_first_piece_is_recognised(void **state)
{
    (void)state;
    const struct protocol_ops *ops = &protocol_mysql;
#define GUESS(direction, literal, port)                                                            \
    talk_guess(ops, direction, literal, sizeof(literal) - 1, 0, port)
    assert_int_equal(GUESS(PROTOCOL_IN, "\x26\0\0\0" GREETING "\xff\xf7", 0), REQUEST_CLIENT);
    assert_int_equal(GUESS(PROTOCOL_OUT, "\x26\0\0\0" GREETING "\xff\xf7", 0), REQUEST_SERVER);
    assert_int_equal(GUESS(PROTOCOL_OUT, "\x9\0\0\0\3SELECT 1", 0), REQUEST_CLIENT);
    assert_int_equal(GUESS(PROTOCOL_IN, "\xb\0\0\0\3\0\1SELECT 1", 0), REQUEST_SERVER);
    assert_int_equal(GUESS(PROTOCOL_OUT, "\xa\0\0\0\x17\1\0\0\0\0\1\0\0\0", 3306), REQUEST_CLIENT);
    assert_int_equal(GUESS(PROTOCOL_OUT, "\xa\0\0\0\x17\1\0\0\0\0\1\0\0\0", 80), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "\x9\0\0\0\3SELECTED", 3306), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "\x8\0\0\0\3SELECT 1", 3306), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "GET / HTTP/1.1\r\n\r\n", 3306), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "", 3306), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_end_with_an_end_of_either_kind),
        cmocka_unit_test(an_error_is_told_by_its_number),
        cmocka_unit_test(prepared_statements_are_known_by_their_number),
        cmocka_unit_test(a_cursor_is_read_by_fetches),
        cmocka_unit_test(several_results_are_one_answer),
        cmocka_unit_test(a_file_is_sent_within_its_command),
        cmocka_unit_test(encryption_and_compression_end_what_can_be_read),
        cmocka_unit_test(packets_of_sixteen_megabytes_go_on_in_the_next),
        cmocka_unit_test(a_long_command_out_of_sight_ends_with_its_answer),
        cmocka_unit_test(rows_out_of_sight_end_when_the_client_goes_on),
        cmocka_unit_test(a_connection_is_followed_from_its_middle),
        cmocka_unit_test(the_user_can_be_changed),
        cmocka_unit_test(what_is_no_packet_breaks_the_connection_only),
        cmocka_unit_test(damaged_conversations_do_no_harm),
        cmocka_unit_test(a_first_piece_is_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
