/* Promises of protocol/redis.c and protocol/resp.c. */
#include "proto_talk.h"

static struct talk talk;

static void begin(void)
{
    talk = (struct talk){.ops = &protocol_redis};
}

static void c(const char *text)
{
    talk_text(&talk, 'c', text);
}

static void s(const char *text)
{
    talk_text(&talk, 's', text);
}

static void a_command_is_its_name_and_its_values_are_not_told(void **state)
{
    (void)state;
    begin();
    c("*2\r\n$3\r\nget\r\n$5\r\nuser1\r\n");
    s("$3\r\nbob\r\n");
    c("*3\r\n$3\r\nSET\r\n$5\r\nuser2\r\n$0\r\n\r\n");
    s("+OK\r\n");
    c("*2\r\n$3\r\nGET\r\n$5\r\nuser1\r\n");
    s("$-1\r\n");
    c("*4\r\n$4\r\nHSET\r\n$1\r\nh\r\n$1\r\na\r\n$1\r\n1\r\n");
    s(":1\r\n");
    c("*6\r\n$4\r\nHSET\r\n$1\r\nh\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n");
    s(":1\r\n");
    c("*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n");
    s("*2\r\n$-1\r\n$1\r\nx\r\n");
    c("*3\r\n$6\r\nconfig\r\n$3\r\nget\r\n$4\r\nsave\r\n");
    s("*-1\r\n");
    talk_expect(&talk, "GET ? |  | 10-20-20 | A\n"
                       "SET ? ? | OK | 30-40-40 | B\n"
                       "GET ? |  | 50-60-60 | A\n"
                       "HSET ? ? ? |  | 70-80-80 | C\n"
                       "HSET ? ? ?… |  | 90-100-100 | D\n"
                       "MGET ?… |  | 110-120-120 | E\n"
                       "CONFIG GET ? |  | 130-140-140 | -\n");
}

static void errors_are_told_by_their_first_word(void **state)
{
    (void)state;
    begin();
    c("*1\r\n$3\r\nFOO\r\n");
    s("-ERR unknown command 'FOO'\r\n");
    c("*2\r\n$4\r\nINCR\r\n$1\r\na\r\n");
    s("-WRONGTYPE Operation against a key\r\n");
    c("*1\r\n$4\r\nEXEC\r\n");
    s("!21\r\nSYNTAX invalid syntax\r\n");
    talk_expect(&talk, "FOO | ERR | 10-20-20 | - failed\n"
                       "INCR ? | WRONGTYPE | 30-40-40 | A failed\n"
                       "EXEC | SYNTAX | 50-60-60 | - failed\n");
}

static void a_pipeline_is_answered_in_order(void **state)
{
    (void)state;
    begin();
    c("*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*1\r\n$4\r\nEXEC\r\n");
    talk_next(&talk, 'c');
    c("*1\r\n$4\r\nPING\r\n");
    s("+OK\r\n+QUEUED\r\n");
    talk_next(&talk, 's');
    s("*1\r\n:1\r\n+PONG\r\n");
    talk_expect(&talk, "MULTI | OK | 10-30-30 | -\n"
                       "INCR ? | QUEUED | 10-30-30 | A\n"
                       "EXEC |  | 10-40-40 | -\n"
                       "PING | PONG | 20-40-40 | -\n");
}

static void a_reply_ends_with_all_that_is_in_it(void **state)
{
    (void)state;
    begin();
    c("*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n");
    s("%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nmodules\r\n*2\r\n*0\r\n~1\r\n#t\r\n");
    c("*1\r\n$4\r\nINFO\r\n");
    s("|1\r\n+ttl\r\n:3600\r\n=7\r\ntxt:abc\r\n");
    c("*1\r\n$4\r\nTIME\r\n");
    s("*3\r\n,1.5\r\n(123456789012345678901234567890\r\n_\r\n");
    c("*1\r\n$7\r\nCOMMAND\r\n");
    s("*0\r\n");
    talk_expect(&talk, "HELLO ? |  | 10-20-20 | -\n"
                       "INFO |  | 30-40-40 | -\n"
                       "TIME |  | 50-60-60 | -\n"
                       "COMMAND |  | 70-80-80 | -\n");
}

static void commands_in_plain_lines_are_commands(void **state)
{
    (void)state;
    begin();
    c("PING\r\n");
    s("+PONG\r\n");
    c("\r\nset a  5\r\n");
    s("+OK\r\n");
    talk_expect(&talk, "PING | PONG | 10-20-20 | -\n"
                       "SET ? ? | OK | 30-40-40 | A\n");
}

static void messages_of_a_subscription_answer_nothing(void **state)
{
    (void)state;
    begin();
    c("*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n");
    s("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    talk_next(&talk, 's');
    s("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n");
    s("*3\r\n$7\r\nmessage\r\n$1\r\nb\r\n$2\r\nhi\r\n");
    c("*1\r\n$4\r\nPING\r\n");
    s("*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    c("*1\r\n$11\r\nUNSUBSCRIBE\r\n");
    s("*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n");
    talk_expect(&talk, "SUBSCRIBE ?… |  | 10-20-30 | A\n"
                       "PING |  | 40-50-50 | -\n"
                       "UNSUBSCRIBE |  | 60-70-70 | -\n");
    begin();
    c("*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
    s(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n$1\r\n1\r\n");
    c("*1\r\n$7\r\nMONITOR\r\n");
    s("+OK\r\n");
    talk_next(&talk, 's');
    s("+1339518083.107412 [0 127.0.0.1:60866] \"keys\" \"*\"\r\n");
    talk_expect(&talk, "GET ? |  | 10-20-20 | A\n"
                       "MONITOR | OK | 30-40-40 | -\n");
}

static void long_texts_are_passed_over_by_their_length(void **state)
{
    (void)state;
    begin();
    c("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000000\r\nxxx");
    talk_missing(&talk, 99999999); /* with the line's end */
    s("+OK\r\n");
    c("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    s("$5000\r\nxxx");
    talk_missing(&talk, 4000);
    talk_next(&talk, 's');
    talk_missing(&talk, 997);
    talk_next(&talk, 's');
    s("\r\n");
    talk_expect(&talk, "SET ? ? | OK | 10-20-20 | A\n"
                       "GET ? |  | 30-40-60 | B\n");
}

static void commands_out_of_sight_are_counted_by_their_replies(void **state)
{
    (void)state;
    begin();
    c("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*2\r\n$3\r\nG");
    talk_missing(&talk, 35);
    s("$1\r\nx\r\n$1\r\ny\r\n-ERR x\r\n");
    c("*1\r\n$4\r\nPING\r\n");
    s("+PONG\r\n");
    talk_expect(&talk, "GET ? |  | 10-20-20 | A\n"
                       "<unseen command> |  | 10-20-20 | - cut\n"
                       "<unseen command> | ERR | 10-20-20 | - failed cut\n"
                       "PING | PONG | 30-40-40 | -\n");
}

static void a_command_is_told_by_its_name_when_the_rest_is_out_of_sight(void **state)
{
    (void)state;
    begin();
    c("*500\r\n$5\r\nLPUSH\r\n$4\r\nlist\r\n$1\r\na\r\n");
    talk_missing(&talk, 5000);
    s(":498\r\n");
    c("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000\r\nxx");
    talk_missing(&talk, 2000 + 30); /* its end, and another command */
    s("+OK\r\n$1\r\nx\r\n");
    c("*1\r\n$4\r\nPING\r\n");
    s("+PONG\r\n");
    talk_expect(&talk, "LPUSH ?… |  | 10-20-20 | A cut\n"
                       "SET ? ? | OK | 30-40-40 | B\n"
                       "<unseen command> |  | 30-40-40 | - cut\n"
                       "PING | PONG | 50-60-60 | -\n");
}

static void replies_out_of_sight_are_over_when_the_client_goes_on(void **state)
{
    (void)state;
    begin();
    c("*4\r\n$6\r\nLRANGE\r\n$1\r\nl\r\n$1\r\n0\r\n$2\r\n-1\r\n");
    s("*1000\r\n$1\r\na\r\n");
    talk_missing(&talk, 5000);
    talk_next(&talk, 's');
    s("whatever");
    c("*1\r\n$4\r\nPING\r\n");
    s("+PONG\r\n");
    talk_expect(&talk, "LRANGE ? ? ? |  | 10-20-30 | A\n"
                       "PING | PONG | 40-50-50 | -\n");
}

static void a_connection_is_followed_from_its_middle(void **state)
{
    (void)state;
    begin();
    talk.middle = true;
    s("rest of a value\r\n");
    c("*1\r\n$4\r\nPING\r\n");
    s("+PONG\r\n");
    talk_expect(&talk, "PING | PONG | 20-30-30 | -\n");
}

static void a_crowd_of_commands_is_counted_to_the_last(void **state)
{
    (void)state;
    static struct talk_told told;
    begin();
    for (int i = 0; i < 2000; i++)
        c("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    for (int i = 0; i < 2000; i++)
        s("$1\r\nx\r\n");
    c("*1\r\n$4\r\nPING\r\n");
    s("+PONG\r\n");
    told = (struct talk_told){0};
    talk_run(&talk, REQUEST_CLIENT, SIZE_MAX, 0, &told);
    /* Too much for one text: of the first and the last it is enough. */
    assert_int_equal(told.requests, 2001);
    assert_null(strstr(told.text, "unanswered"));
    assert_non_null(strstr(told.text, "PING | PONG | 30-40-40 | -\n"));
}

static void without_replies_nothing_is_waited_for(void **state)
{
    (void)state;
    begin();
    c("*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n");
    c("*1\r\n$4\r\nPING\r\n");
    s("+PONG\r\n");
    c("*1\r\n$4\r\nECHO\r\n");
    talk_expect(&talk, "CLIENT REPLY ? |  | 10-0-0 | A unanswered\n"
                       "INCR ? |  | 10-0-0 | B unanswered\n"
                       "PING | PONG | 10-20-20 | -\n"
                       "ECHO |  | 30-0-0 | - unanswered\n");
}

static void passwords_are_never_told(void **state)
{
    (void)state;
    begin();
    talk.payloads = true;
    c("*2\r\n$4\r\nAUTH\r\n$7\r\nhunter2\r\n");
    s("+OK\r\n");
    c("*5\r\n$5\r\nhello\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$7\r\nhunter2\r\n");
    s("%0\r\n");
    c("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvv\r\n");
    s("+OK\r\n");
    talk_expect(&talk, "AUTH ? | OK | 10-20-20 | - {AUTH ?}\n"
                       "HELLO ? ? ?… |  | 30-40-40 | - {HELLO ? ? ?…}\n"
                       "SET ? ? | OK | 50-60-60 | A {SET k vv}\n");
}

static void what_is_no_value_breaks_the_connection_only(void **state)
{
    (void)state;
    static const char *const bad[] = {"*x\r\n",
                                      "*-5\r\n",
                                      "*1\r\n:5\r\n",
                                      "*1\r\n$-5\r\n",
                                      "*99999999999\r\n",
                                      "*1\r\n$99999999999999\r\n",
                                      "*1\r\n$3\r\nGETxx",
                                      "\x01\x02",
                                      "GET \x01\r\n"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        begin();
        c(bad[i]);
        talk_expect(&talk, "broken\n");
    }
    begin();
    c("*1\r\n$4\r\nPING\r\n");
    s("HTTP/1.1 400 Bad Request\r\n");
    talk_expect(&talk, "PING |  | 10-0-0 | - unanswered\nbroken\n");
    /* A reply to nothing. */
    begin();
    s("+OK\r\n");
    talk_expect(&talk, "broken\n");
    begin();
    s("-DENIED Redis is running in protected mode\r\n");
    talk_expect(&talk, "");
    begin();
    c("*1\r\n$4\r\nSYNC\r\n");
    talk_expect(&talk, "switched\n");
}

static void damaged_conversations_do_no_harm(void **state)
{
    a_reply_ends_with_all_that_is_in_it(state);
    talk_garbage(&talk, 3000);
    a_command_is_its_name_and_its_values_are_not_told(state);
    talk_garbage(&talk, 3000);
    commands_out_of_sight_are_counted_by_their_replies(state);
    talk_garbage(&talk, 3000);
}

static void a_first_piece_is_recognised(void **state)
{
    (void)state;
    const struct protocol_ops *ops = &protocol_redis;
#define GUESS(direction, literal, port)                                                            \
    talk_guess(ops, direction, literal, sizeof(literal) - 1, 0, port)
    assert_int_equal(GUESS(PROTOCOL_OUT, "*2\r\n$3\r\nget\r\n$1\r\na\r\n", 0), REQUEST_CLIENT);
    assert_int_equal(GUESS(PROTOCOL_IN, "*1\r\n$8\r\nJSON.GET\r\n", 0), REQUEST_SERVER);
    assert_int_equal(GUESS(PROTOCOL_OUT, "PING\r\n", 6379), REQUEST_CLIENT);
    assert_int_equal(GUESS(PROTOCOL_OUT, "PING\r\n", 80), 0);
    /* A reply with two texts. */
    assert_int_equal(GUESS(PROTOCOL_IN, "*2\r\n$3\r\nbob\r\n$5\r\nalice\r\n", 6379), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "GET / HTTP/1.1\r\n\r\n", 6379), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "*2\r\n", 0), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "", 6379), 0);
    assert_int_equal(GUESS(PROTOCOL_OUT, "*", 6379), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_is_its_name_and_its_values_are_not_told),
        cmocka_unit_test(errors_are_told_by_their_first_word),
        cmocka_unit_test(a_pipeline_is_answered_in_order),
        cmocka_unit_test(a_reply_ends_with_all_that_is_in_it),
        cmocka_unit_test(commands_in_plain_lines_are_commands),
        cmocka_unit_test(messages_of_a_subscription_answer_nothing),
        cmocka_unit_test(long_texts_are_passed_over_by_their_length),
        cmocka_unit_test(commands_out_of_sight_are_counted_by_their_replies),
        cmocka_unit_test(a_command_is_told_by_its_name_when_the_rest_is_out_of_sight),
        cmocka_unit_test(replies_out_of_sight_are_over_when_the_client_goes_on),
        cmocka_unit_test(a_connection_is_followed_from_its_middle),
        cmocka_unit_test(a_crowd_of_commands_is_counted_to_the_last),
        cmocka_unit_test(without_replies_nothing_is_waited_for),
        cmocka_unit_test(passwords_are_never_told),
        cmocka_unit_test(what_is_no_value_breaks_the_connection_only),
        cmocka_unit_test(damaged_conversations_do_no_harm),
        cmocka_unit_test(a_first_piece_is_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
