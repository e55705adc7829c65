/* Promises of protocol/postgres.c. */
#include "proto_talk.h"

static struct talk talk;

static void begin(void)
{
    talk = (struct talk){.ops = &protocol_postgres};
}

static void be32(uint8_t *to, size_t number)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(number >> (24 - 8 * i));
}

/* A message with a type; type 0: without. */
static void say(char who, char type, const void *body, size_t len)
{
    uint8_t header[5] = {(uint8_t)type};
    be32(header + 1, len + 4);
    talk_say(&talk, who, type ? header : header + 1, type ? 5 : 4);
    talk_say(&talk, who, body, len);
}

#define SAY(who, type, literal) say(who, type, literal, sizeof(literal) - 1)

static void startup(void)
{
    SAY('c', 0, "\0\3\0\0user\0bob\0database\0shop\0\0");
    SAY('s', 'R', "\0\0\0\5salt");
    SAY('c', 'p', "md5secret\0");
    SAY('s', 'R', "\0\0\0\0");
    SAY('s', 'S', "client_encoding\0UTF8\0");
    SAY('s', 'K', "\0\0\0\1\0\0\0\2");
    SAY('s', 'Z', "I");
}

static void a_simple_query_ends_when_the_server_is_ready(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'Q', "SELECT * FROM t WHERE id = 5\0");
    SAY('s', 'T', "\0\1id\0\0\0\0\0\0\0\0\0\0\x17\0\4\xff\xff\xff\xff\0\0");
    talk_next(&talk, 's');
    SAY('s', 'D',
        "\0\1\0\0\0\1"
        "5");
    SAY('s', 'C', "SELECT 1\0");
    talk_next(&talk, 's');
    SAY('s', 'Z', "I");
    SAY('c', 'X', "");
    talk_expect(&talk, "service shop\n"
                       "SELECT * FROM t WHERE id = ? | SELECT | 50-60-80 | A\n");
}

static void several_statements_in_one_query_are_one_request(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'Q', "BEGIN; INSERT INTO t VALUES (1); COMMIT\0");
    SAY('s', 'C', "BEGIN\0");
    SAY('s', 'C', "INSERT 0 1\0");
    SAY('s', 'C', "COMMIT\0");
    SAY('s', 'Z', "I");
    SAY('c', 'Q', "\0");
    SAY('s', 'I', "");
    SAY('s', 'Z', "I");
    SAY('c', 'Q', "CREATE TABLE x (a int)\0");
    SAY('s', 'N', "SNOTICE\0C00000\0Mx\0\0");
    SAY('s', 'C', "CREATE TABLE\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\n"
                       "BEGIN; INSERT INTO t VALUES (?); COMMIT | COMMIT | 50-60-60 | A\n"
                       " | EMPTY | 70-80-80 | -\n"
                       "CREATE TABLE x (a int) | CREATE TABLE | 90-100-100 | -\n");
}

static void an_error_is_told_by_its_code(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'Q', "INSERT INTO t VALUES (1)\0");
    SAY('s', 'E', "SERROR\0VERROR\0C23505\0Mduplicate key\0\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\n"
                       "INSERT INTO t VALUES (?) | ERROR 23505 | 50-60-60 | A failed\n");
}

/* Parse, Bind, Describe, Execute, Sync as libpq's PQexecParams sends them. */
static void prepared_statements_are_known_by_name(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'P', "s1\0SELECT a FROM t WHERE id = $1\0\0\0");
    SAY('c', 'D', "Ss1\0");
    SAY('c', 'S', "");
    SAY('s', '1', "");
    SAY('s', 't', "\0\1\0\0\0\x17");
    SAY('s', 'T', "\0\0");
    SAY('s', 'Z', "I");
    for (int i = 0; i < 3; i++) {
        /* The value is 5, 6 and 5 again. */
        say('c', 'B', i == 1 ? "\0s1\0\0\0\0\1\0\0\0\1\x36\0" : "\0s1\0\0\0\0\1\0\0\0\1\x35\0", 15);
        SAY('c', 'E', "\0\0\0\0\0");
        SAY('c', 'S', "");
        SAY('s', '2', "");
        talk_next(&talk, 's');
        SAY('s', 'D', "\0\0");
        SAY('s', 'C', "SELECT 1\0");
        SAY('s', 'Z', "I");
    }
    SAY('c', 'C', "Ss1\0");
    SAY('c', 'S', "");
    SAY('s', '3', "");
    SAY('s', 'Z', "I");
    SAY('c', 'B', "\0s1\0\0\0\0\0\0\0");
    SAY('c', 'E', "\0\0\0\0\0");
    SAY('c', 'S', "");
    SAY('s', 'E', "SERROR\0C26000\0\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\n"
                       "PREPARE SELECT a FROM t WHERE id = ? |  | 50-60-60 | -\n"
                       "SELECT a FROM t WHERE id = ? | SELECT | 70-80-90 | A\n"
                       "SELECT a FROM t WHERE id = ? | SELECT | 100-110-120 | B\n"
                       "SELECT a FROM t WHERE id = ? | SELECT | 130-140-150 | A\n"
                       "EXECUTE <unseen statement> | ERROR 26000 | 180-190-190 | - failed\n");
}

static void of_a_pipeline_every_execution_is_a_request(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'P', "\0INSERT INTO t VALUES ($1, 'x')\0\0\0");
    SAY('c', 'B', "\0\0\0\0\0\0\0\0");
    SAY('c', 'E', "\0\0\0\0\0");
    SAY('c', 'B', "p\0\0\0\0\0\0\0\0");
    SAY('c', 'E', "p\0\0\0\0\0");
    talk_next(&talk, 'c');
    SAY('c', 'B', "\0\0\0\0\0\0\0\0");
    SAY('c', 'E', "\0\0\0\0\0");
    SAY('c', 'S', "");
    SAY('c', 'P', "\0SELECT 1\0\0\0");
    SAY('c', 'B', "\0\0\0\0\0\0\0\0");
    SAY('c', 'E', "\0\0\0\0\x64");
    SAY('c', 'S', "");
    SAY('s', '1', "");
    SAY('s', '2', "");
    SAY('s', 'C', "INSERT 0 1\0");
    talk_next(&talk, 's');
    SAY('s', 'A', "\0\0\0\1ch\0x\0");
    SAY('s', '2', "");
    SAY('s', 'E', "SERROR\0C22P02\0\0");
    talk_next(&talk, 's');
    SAY('s', 'Z', "I");
    talk_next(&talk, 's');
    SAY('s', '1', "");
    SAY('s', '2', "");
    SAY('s', 'D', "\0\0");
    SAY('s', 's', "");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\n"
                       "INSERT INTO t VALUES (?) | INSERT | 50-70-70 | A\n"
                       "INSERT INTO t VALUES (?) | ERROR 22P02 | 50-80-80 | A failed\n"
                       "INSERT INTO t VALUES (?) | aborted | 60-90-90 | A failed\n"
                       "SELECT ? | SUSPENDED | 60-100-100 | B\n");
}

static void copies_are_one_request_each(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'Q', "COPY t FROM STDIN\0");
    SAY('s', 'G', "\0\0\0");
    SAY('c', 'd', "1\t2\n");
    SAY('c', 'd', "3\t4\n");
    talk_next(&talk, 'c');
    SAY('c', 'c', "");
    SAY('s', 'C', "COPY 2\0");
    SAY('s', 'Z', "I");
    SAY('c', 'Q', "COPY t TO STDOUT\0");
    SAY('s', 'H', "\0\0\0");
    SAY('s', 'd', "1\t2\n");
    talk_next(&talk, 's');
    SAY('s', 'c', "");
    SAY('s', 'C', "COPY 2\0");
    SAY('s', 'Z', "I");
    /* With extended queries the first Sync is passed over by the server. */
    SAY('c', 'P', "\0COPY t FROM STDIN\0\0\0");
    SAY('c', 'B', "\0\0\0\0\0\0\0\0");
    SAY('c', 'E', "\0\0\0\0\0");
    SAY('c', 'S', "");
    SAY('s', '1', "");
    SAY('s', '2', "");
    SAY('s', 'G', "\0\0\0");
    SAY('c', 'd', "1\t2\n");
    SAY('c', 'c', "");
    SAY('c', 'S', "");
    SAY('s', 'C', "COPY 1\0");
    SAY('s', 'Z', "I");
    SAY('c', 'Q', "SELECT\0");
    SAY('s', 'C', "SELECT 1\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\n"
                       "COPY t FROM STDIN | COPY | 50-60-90 | -\n"
                       "COPY t TO STDOUT | COPY | 100-110-120 | -\n"
                       "COPY t FROM STDIN | COPY | 130-140-160 | -\n"
                       "SELECT | SELECT | 170-180-180 | -\n");
}

static void preparing_with_a_flush_is_a_round_trip_of_its_own(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'P', "q\0SELECT $1\0\0\0");
    SAY('c', 'D', "Sq\0");
    SAY('c', 'H', "");
    SAY('s', '1', "");
    SAY('s', 't', "\0\1\0\0\0\x17");
    SAY('s', 'T', "\0\0");
    SAY('c', 'B', "\0q\0\0\0\0\0\0\0");
    SAY('c', 'E', "\0\0\0\0\0");
    SAY('c', 'S', "");
    SAY('s', '2', "");
    SAY('s', 'C', "SELECT 1\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\n"
                       "PREPARE SELECT ? |  | 50-60-60 | -\n"
                       "SELECT ? | SELECT | 70-80-80 | -\n");
}

static void encryption_and_replication_end_what_can_be_read(void **state)
{
    (void)state;
    begin();
    SAY('c', 0, "\x04\xd2\x16\x2f");
    talk_text(&talk, 's', "S");
    talk_text(&talk, 'c', "\x16\x03\x01");
    talk_expect(&talk, "switched\n");
    begin();
    SAY('c', 0, "\x04\xd2\x16\x30");
    talk_text(&talk, 's', "N");
    SAY('c', 0, "\x04\xd2\x16\x2f");
    talk_text(&talk, 's', "N");
    SAY('c', 0, "\0\3\0\0user\0bob\0\0");
    SAY('s', 'R', "\0\0\0\0");
    SAY('s', 'Z', "I");
    SAY('c', 'Q', "SELECT 1\0");
    SAY('s', 'C', "SELECT 1\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service bob\nSELECT ? | SELECT | 70-80-80 | A\n");
    begin();
    SAY('c', 0, "\0\3\0\0user\0bob\0replication\0true\0\0");
    talk_expect(&talk, "switched\n");
    begin();
    SAY('c', 0, "\x04\xd2\x16\x2e\0\0\0\1\0\0\0\2");
    talk_expect(&talk, "CANCEL |  | 10-20-20 | -\n");
}

static void function_calls_are_requests(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'F', "\0\0\x03\xe8\0\0\0\0\0\0");
    SAY('s', 'V', "\0\0\0\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\nFUNCTION 1000 | FUNCTION | 50-60-60 | -\n");
}

static void what_was_not_answered_is_told_as_such(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'Q', "SELECT pg_sleep(1000)\0");
    talk_expect(&talk, "service shop\nSELECT pg_sleep(?) |  | 50-0-0 | A unanswered\n");
    SAY('s', 'T', "\0\0");
    talk_expect(&talk, "service shop\nSELECT pg_sleep(?) |  | 50-0-0 | A unanswered\n");
    begin();
    startup();
    SAY('c', 'Q', "SELECT 1\0");
    talk.used -= 3;
    talk.steps[talk.count - 1].len -= 3;
    talk_expect(&talk, "service shop\n");
}

static void what_is_not_there_is_passed_over_by_its_length(void **state)
{
    (void)state;
    uint8_t header[5] = {'Q'};
    begin();
    startup();
    be32(header + 1, 4 + 6 + 100000000);
    talk_say(&talk, 'c', header, 5);
    talk_text(&talk, 'c', "SELECT");
    talk_missing(&talk, 100000000);
    header[0] = 'D';
    be32(header + 1, 4 + 6 + 500);
    talk_say(&talk, 's', header, 5);
    talk_say(&talk, 's', "\0\1\0\0\0\0", 6);
    talk_missing(&talk, 500);
    SAY('s', 'C', "SELECT 1\0");
    SAY('s', 'Z', "I");
    SAY('c', 'Q', "SELECT 1\0");
    SAY('s', 'C', "SELECT 1\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\n"
                       "SELECT | SELECT | 50-60-70 | - cut\n"
                       "SELECT ? | SELECT | 80-90-90 | A\n");
}

static void rows_out_of_sight_end_when_the_client_goes_on(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'Q', "SELECT * FROM big\0");
    SAY('s', 'T', "\0\0");
    SAY('s', 'D', "\0\1\0\0\0\1x");
    talk_missing(&talk, 8000);
    talk_next(&talk, 's');
    talk_text(&talk, 's', "the middle of a row");
    talk_next(&talk, 's');
    talk_text(&talk, 's', "and of another");
    SAY('c', 'Q', "SELECT 2\0");
    SAY('s', 'C', "SELECT 1\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\n"
                       "SELECT * FROM big |  | 50-60-80 | -\n"
                       "SELECT ? | SELECT | 90-100-100 | A\n");
    /* Of several rounds nobody can tell where one ends. */
    begin();
    startup();
    SAY('c', 'Q', "SELECT 1\0");
    SAY('c', 'Q', "SELECT 2\0");
    SAY('s', 'T', "\0\0");
    talk_missing(&talk, 8000);
    talk_expect(&talk, "service shop\n"
                       "SELECT ? |  | 50-60-60 | A\n"
                       "SELECT ? |  | 50-0-0 | B unanswered\n"
                       "broken\n");
}

static void copied_data_out_of_sight_ends_with_the_copy(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'Q', "COPY t FROM STDIN\0");
    SAY('s', 'G', "\0\0\0");
    SAY('c', 'd', "1\t2\n");
    talk_missing(&talk, 8000);
    talk_next(&talk, 'c');
    talk_text(&talk, 'c', "rest of a line");
    SAY('s', 'C', "COPY 200\0");
    SAY('s', 'Z', "I");
    SAY('c', 'Q', "SELECT 1\0");
    SAY('s', 'C', "SELECT 1\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\n"
                       "COPY t FROM STDIN | COPY | 50-60-90 | -\n"
                       "SELECT ? | SELECT | 100-110-110 | A\n");
}

/* A batch of which only the first execution is seen. */
static void batch(void)
{
    begin();
    startup();
    SAY('c', 'P', "\0INSERT INTO t VALUES ($1)\0\0\0");
    SAY('c', 'B', "\0\0\0\0\0\0\0\0");
    SAY('c', 'E', "\0\0\0\0\0");
    SAY('c', 'B', "\0\0\0\0\0\0\0\0");
    talk_missing(&talk, 5000);
}

static void executions_out_of_sight_are_counted_by_their_answers(void **state)
{
    (void)state;
    batch();
    SAY('s', '1', "");
    SAY('s', '2', "");
    SAY('s', 'C', "INSERT 0 1\0");
    SAY('s', '2', "");
    SAY('s', 'C', "INSERT 0 1\0");
    talk_next(&talk, 's');
    SAY('s', '2', "");
    SAY('s', 'E', "SERROR\0C23505\0\0");
    SAY('s', 'Z', "I");
    SAY('c', 'Q', "SELECT 1\0");
    SAY('s', 'C', "SELECT 1\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\n"
                       "INSERT INTO t VALUES (?) | INSERT | 50-60-60 | -\n"
                       "EXECUTE <unseen statement> | INSERT | 50-60-60 | - cut\n"
                       "EXECUTE <unseen statement> | ERROR 23505 | 50-70-70 | - failed cut\n"
                       "SELECT ? | SELECT | 80-90-90 | A\n");
    /* Where the answers are out of sight, too, what is left of the batch is told as one. */
    batch();
    talk_next(&talk, 'c');
    talk_text(&talk, 'c', "the middle of a message");
    SAY('s', '1', "");
    SAY('s', '2', "");
    SAY('s', 'C', "INSERT 0 1\0");
    talk_missing(&talk, 2000);
    talk_next(&talk, 'c');
    talk_text(&talk, 'c', "its end");
    talk_next(&talk, 's');
    talk_text(&talk, 's', "the last answer");
    SAY('c', 'Q', "SELECT 1\0");
    SAY('s', 'C', "SELECT 1\0");
    SAY('s', 'Z', "I");
    talk_expect_whole(&talk, "service shop\n"
                             "INSERT INTO t VALUES (?) | INSERT | 50-70-70 | -\n"
                             "EXECUTE <unseen statements> |  | 50-70-90 | - cut\n"
                             "SELECT ? | SELECT | 100-110-110 | A\n");
}

static void a_connection_is_followed_from_its_middle(void **state)
{
    (void)state;
    begin();
    talk.middle = true;
    talk_text(&talk, 's', "the rest of something");
    SAY('c', 'Q', "SELECT 1\0");
    SAY('s', 'C', "SELECT 1\0");
    SAY('s', 'Z', "I");
    SAY('c', 'B', "\0S_1\0\0\0\0\0\0\0");
    SAY('c', 'E', "\0\0\0\0\0");
    SAY('c', 'S', "");
    SAY('s', '2', "");
    SAY('s', 'C', "UPDATE 1\0");
    SAY('s', 'Z', "T");
    talk_expect(&talk, "SELECT ? | SELECT | 20-30-30 | A\n"
                       "EXECUTE <unseen statement> | UPDATE | 40-50-50 | -\n");
}

static void a_payload_is_what_was_said_but_no_password(void **state)
{
    (void)state;
    begin();
    talk.payloads = true;
    startup();
    SAY('c', 'Q', "SELECT 42\0");
    SAY('s', 'Z', "I");
    SAY('c', 'Q', "ALTER ROLE bob PASSWORD 'hunter2'\0");
    SAY('s', 'Z', "I");
    talk_expect(&talk, "service shop\n"
                       "SELECT ? |  | 50-60-60 | A {SELECT 42}\n"
                       "ALTER ROLE bob PASSWORD ? |  | 70-80-80 | B {ALTER ROLE bob PASSWORD ?}\n");
}

static void what_is_no_message_breaks_the_connection_only(void **state)
{
    (void)state;
    begin();
    startup();
    SAY('c', 'Q', "SELECT 1\0");
    talk_next(&talk, 'c');
    talk_text(&talk, 'c', "\x01\x02\x03\x04\x05\x06");
    talk_expect(&talk, "service shop\nSELECT ? |  | 50-0-0 | A unanswered\nbroken\n");
    begin();
    startup();
    SAY('c', 'Q', "SELECT 1\0");
    talk_text(&talk, 's', "HTTP/1.1 200 OK\r\n\r\n");
    talk_expect(&talk, "service shop\nSELECT ? |  | 50-0-0 | A unanswered\nbroken\n");
    begin();
    talk_text(&talk, 'c', "GET / HTTP/1.1\r\n\r\n");
    talk_expect(&talk, "broken\n");
}

static void more_requests_than_can_be_kept_break_it(void **state)
{
    (void)state;
    static struct talk_told told;
    begin();
    startup();
    for (int i = 0; i < PROTOCOL_PENDING_MAX + 1; i++)
        SAY('c', 'Q', "SELECT a, b, c, d, e, f, g, h FROM a_table_with_a_name_of_some_length\0");
    told = (struct talk_told){0};
    talk_run(&talk, REQUEST_CLIENT, SIZE_MAX, 0, &told);
    assert_int_equal(told.requests, PROTOCOL_PENDING_MAX);
    assert_non_null(strstr(told.text, "broken"));
}

static void many_statements_are_kept_and_then_the_oldest_goes(void **state)
{
    (void)state;
    static struct talk_told told;
    char text[64];
    begin();
    startup();
    for (int i = 0; i < 200; i++) {
        int len = snprintf(text, sizeof(text), "s%d%cSELECT c%d%c%c%c", i, 0, i, 0, 0, 0);
        say('c', 'P', text, (size_t)len);
    }
    SAY('c', 'B', "\0s199\0\0\0\0\0\0\0");
    SAY('c', 'E', "\0\0\0\0\0");
    SAY('c', 'B', "\0s0\0\0\0\0\0\0\0");
    SAY('c', 'E', "\0\0\0\0\0");
    SAY('c', 'S', "");
    told = (struct talk_told){0};
    talk_run(&talk, REQUEST_CLIENT, SIZE_MAX, 0, &told);
    assert_non_null(strstr(told.text, "SELECT c199 |"));
    assert_non_null(strstr(told.text, "EXECUTE <unseen statement> |"));
}

static void damaged_conversations_do_no_harm(void **state)
{
    of_a_pipeline_every_execution_is_a_request(state);
    talk_garbage(&talk, 3000);
    copies_are_one_request_each(state);
    talk_garbage(&talk, 3000);
    executions_out_of_sight_are_counted_by_their_answers(state);
    talk_garbage(&talk, 3000);
}

static void a_first_piece_is_recognised(void **state)
{
    (void)state;
    const struct protocol_ops *ops = &protocol_postgres;
#define GUESS(direction, literal, port)                                                            \
    talk_guess(ops, direction, literal, sizeof(literal) - 1, 0, port)
    assert_int_equal(GUESS(PROTOCOL_OUT, "\0\0\0\x8\x04\xd2\x16\x2f", 0), REQUEST_CLIENT);
    assert_int_equal(GUESS(PROTOCOL_IN, "\0\0\0\x12\0\3\0\0user\0bob\0\0", 0), REQUEST_SERVER);
    assert_int_equal(GUESS(PROTOCOL_OUT, "Q\0\0\0\xdSELECT 1\0", 0), REQUEST_CLIENT);
    assert_int_equal(
        GUESS(PROTOCOL_IN, "B\0\0\0\xc\0\0\0\0\0\0\0\0E\0\0\0\x9\0\0\0\0\0S\0\0\0\4", 0),
        REQUEST_SERVER);
    assert_int_equal(GUESS(PROTOCOL_OUT, "Q\0\0\0\xdSELE\1\2 1\0", 5432), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "QUIT\r\n", 5432), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "PUT / HTTP/1.1\r\n\r\n", 5432), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 5432), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "\0\0\0", 5432), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "", 5432), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_simple_query_ends_when_the_server_is_ready),
        cmocka_unit_test(several_statements_in_one_query_are_one_request),
        cmocka_unit_test(an_error_is_told_by_its_code),
        cmocka_unit_test(prepared_statements_are_known_by_name),
        cmocka_unit_test(of_a_pipeline_every_execution_is_a_request),
        cmocka_unit_test(copies_are_one_request_each),
        cmocka_unit_test(preparing_with_a_flush_is_a_round_trip_of_its_own),
        cmocka_unit_test(encryption_and_replication_end_what_can_be_read),
        cmocka_unit_test(function_calls_are_requests),
        cmocka_unit_test(what_was_not_answered_is_told_as_such),
        cmocka_unit_test(what_is_not_there_is_passed_over_by_its_length),
        cmocka_unit_test(rows_out_of_sight_end_when_the_client_goes_on),
        cmocka_unit_test(copied_data_out_of_sight_ends_with_the_copy),
        cmocka_unit_test(executions_out_of_sight_are_counted_by_their_answers),
        cmocka_unit_test(a_connection_is_followed_from_its_middle),
        cmocka_unit_test(a_payload_is_what_was_said_but_no_password),
        cmocka_unit_test(what_is_no_message_breaks_the_connection_only),
        cmocka_unit_test(more_requests_than_can_be_kept_break_it),
        cmocka_unit_test(many_statements_are_kept_and_then_the_oldest_goes),
        cmocka_unit_test(damaged_conversations_do_no_harm),
        cmocka_unit_test(a_first_piece_is_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
