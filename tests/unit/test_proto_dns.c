/* Promises of protocol/dns.c. */
#include "conversation.h"

#define HEADER(id, flags, questions, answers) id flags "\0" questions "\0" answers "\0\0\0\0"
#define ASKS(id)                              HEADER(id, "\1\0", "\1", "\0")
#define ANSWERS(id, code)                     HEADER(id, "\x81" code, "\1", "\1")
#define NAME                                  "\3www\7example\3org\0"
#define A                                     "\0\1\0\1"
#define RECORD                                "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1"
/* 12 + 17 + 4, and 16 more. */
#define STREAM_ASK    "\0\x21"
#define STREAM_ANSWER "\0\x31"

static const struct protocol_opts client = {.role = REQUEST_CLIENT, .from_start = true};

static const char *talk(const struct said *said)
{
    return conversation(&protocol_dns, said, &client);
}

static void a_question_and_its_answer(void **state)
{
    (void)state;
    const struct said said[] = {SAID('c', ASKS("\x12\x34") NAME A),
                                SAID('s', ANSWERS("\x12\x34", "\0") NAME A RECORD),
                                {0}};
    for (int role = REQUEST_CLIENT; role <= REQUEST_SERVER; role++) {
        const struct protocol_opts opts = {.role = (enum request_role)role, .from_start = true};
        assert_string_equal(conversation(&protocol_dns, said, &opts),
                            "A www.example.org = NOERROR 1-2-2 #1 33/49\n");
    }
}

static void on_a_stream_lengths_part_messages(void **state)
{
    (void)state;
    conversation_check(
        &protocol_dns,
        (struct said[]){
            SAID('c', STREAM_ASK ASKS("\0\1") NAME A STREAM_ASK ASKS("\0\2") NAME "\0\x1c\0\1"),
            SAID('s', STREAM_ANSWER ANSWERS("\0\1", "\0") NAME A RECORD),
            SAID('s', STREAM_ASK ANSWERS("\0\2", "\3") NAME "\0\x1c\0\1"),
            {0}},
        "A www.example.org = NOERROR 1-2-2 #1 35/51\n"
        "AAAA www.example.org = NXDOMAIN fr 1-3-3 #1 35/35\n");
}

static void answers_belong_to_id_and_question(void **state)
{
    (void)state;
    assert_string_equal(
        talk((struct said[]){SAID('c', ASKS("\0\1") NAME A),
                             SAID('c', ASKS("\0\1") "\2ex\0" A),
                             SAID('s', ANSWERS("\0\2", "\0") NAME A),         /* no such id */
                             SAID('s', ANSWERS("\0\1", "\0") "\3not\0" A),    /* nor name */
                             SAID('s', ANSWERS("\0\1", "\2") "\2eX\0" A),     /* any case */
                             SAID('s', HEADER("\0\1", "\x80\5", "\0", "\0")), /* id only */
                             {0}}),
        "A ex = SERVFAIL f 2-5-5 #2 20/20\nA www.example.org = REFUSED fr 1-6-6 #1 33/12\n");
}

static void asking_again_is_the_same_request(void **state)
{
    (void)state;
    assert_string_equal(talk((struct said[]){SAID('c', ASKS("\0\1") NAME A),
                                             SAID('c', ASKS("\0\1") NAME A),
                                             SAID('s', ANSWERS("\0\1", "\0") NAME A),
                                             SAID('s', ANSWERS("\0\1", "\0") NAME A),
                                             {0}}),
                        "A www.example.org = NOERROR 1-3-3 #1 66/33\n");
}

static void an_address_that_is_looked_up_is_a_value(void **state)
{
    (void)state;
    assert_string_equal(
        talk((struct said[]){SAID('c', ASKS("\0\1") "\1"
                                                    "7\1"
                                                    "2\1"
                                                    "0\3"
                                                    "192\7in-addr\4ARPA\0"
                                                    "\0\x0c\0\1"),
                             SAID('c', ASKS("\0\2") "\1"
                                                    "b\1"
                                                    "a\3ip6\4arpa\0"
                                                    "\0\x0c\0\1"),
                             {0}}),
        "PTR ?.in-addr.arpa =  u 1-0-0 #1 40/0\nPTR ?.ip6.arpa =  u 2-0-0 #2 30/0\n");
}

static void kinds_have_names_or_numbers(void **state)
{
    (void)state;
    assert_string_equal(
        talk((struct said[]){SAID('c', ASKS("\0\1") "\0"
                                                    "\xff\x01\0\1"),
                             SAID('c', HEADER("\0\2", "\x28\0", "\1", "\0") "\2ex\0"
                                                                            "\0\6\0\1"),
                             SAID('c', ASKS("\0\3") "\4\1.\xff\x1b\0" A),
                             {0}}),
        "TYPE65281 . =  u 1-0-0 #1 17/0\nUPDATE ex =  u 2-0-0 #2 20/0\nA ____ =  u 3-0-0 #3 "
        "22/0\n");
}

static void multicast_answers_by_what_they_are_about(void **state)
{
    (void)state;
    /* A bit of the class says "forget others" in an answer. */
    assert_string_equal(
        talk((struct said[]){SAID('c', HEADER("\0\0", "\0\0", "\1", "\0") NAME A),
                             SAID('s', HEADER("\0\0", "\0\0", "\1", "\0") NAME A), /* of others */
                             SAID('s', HEADER("\0\0", "\x84\0", "\0", "\1") NAME
                                  "\0\1\x80\1"
                                  "\0\0\0\x3c\0\4\xc0\0\2\1"),
                             {0}}),
        "A www.example.org = NOERROR 1-3-3 #1 33/43\n");
}

static void names_that_go_round_in_circles_are_refused(void **state)
{
    (void)state;
    static const struct said bad[] = {
        SAID('c', ASKS("\0\1") "\xc0\x0c" A),    /* itself */
        SAID('c', ASKS("\0\1") "\1a\xc0\x0c" A), /* back to its beginning */
        SAID('c', ASKS("\0\1") "\xc0\x20" A),    /* forward */
        SAID('c', ASKS("\0\1") "\xc0\0" A),      /* into the header */
        SAID('c', ASKS("\0\1") "\xc0"),          /* half of it */
        SAID('c', ASKS("\0\1") "\x40"
                               "aaaaaaaa\0" A), /* no label */
        SAID('c', ASKS("\0\1") "\x3f"
                               "aa\0" A),     /* beyond the end */
        SAID('c', ASKS("\0\1") "\2aa"),       /* without end */
        SAID('c', ASKS("\0\1") "\2aa\0\0\1"), /* no class */
        SAID('c', ASKS("\0\1")),
        SAID('c', HEADER("\0\1", "\x38\0", "\1", "\0") NAME A), /* no such operation */
        SAID('c', HEADER("\0\1", "\1\0", "\0", "\0") NAME A),   /* asks nothing */
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        /* As the second datagram: a stream would be given up. */
        const char *told = talk((struct said[]){SAID('c', ASKS("\0\7") NAME A), bad[i], {0}});
        if (strcmp(told, "A www.example.org =  u 1-0-0 #1 33/0\n") != 0)
            fail_msg("message %zu: %s", i, told);
    }
}

static void a_name_longer_than_names_are_is_refused(void **state)
{
    (void)state;
    static char message[12 + 5 * 64 + 5] = "\0\1\1\0\0\1";
    for (size_t i = 0; i < 5; i++) {
        message[12 + i * 64] = 63;
        memset(message + 13 + i * 64, 'a', 63);
    }
    message[sizeof(message) - 3] = message[sizeof(message) - 1] = 1;
    assert_string_equal(talk((struct said[]){SAID('c', ASKS("\0\7") NAME A),
                                             {'c', message, sizeof(message), 0},
                                             {0}}),
                        "A www.example.org =  u 1-0-0 #1 33/0\n");
}

static void garbage_is_passed_over_for_a_while(void **state)
{
    (void)state;
    struct said said[32] = {SAID('c', ASKS("\0\1") NAME A)};
    for (size_t i = 1; i <= 16; i++)
        said[i] = (struct said)SAID('c', "garbage of any kind");
    assert_string_equal(talk(said), "A www.example.org =  u 1-0-0 #1 33/0\n");
    said[17] = said[16];
    assert_string_equal(talk(said), "broken\n");
    /* On a stream nothing after it can be found. */
    assert_string_equal(talk((struct said[]){SAID('c', STREAM_ASK ASKS("\0\1") NAME A),
                                             SAID('c', "\0\x0cgarbage of a"),
                                             {0}}),
                        "broken\n");
    assert_string_equal(
        talk((struct said[]){SAID('c', STREAM_ASK ASKS("\0\1") NAME A), SAID('c', "\0\3abc"), {0}}),
        "broken\n");
}

static void a_cut_message_has_its_question(void **state)
{
    (void)state;
    assert_string_equal(
        talk((struct said[]){SAID('c', ASKS("\0\1") NAME A),
                             SAID_CUT('s', ANSWERS("\0\1", "\0") NAME A RECORD, 4000),
                             {0}}),
        "A www.example.org = NOERROR 1-2-2 #1 33/4049\n");
    static char answer[2 + 1022] = "\x0f\xa2" ANSWERS("\0\1", "\0") NAME A;
    assert_string_equal(talk((struct said[]){SAID('c', STREAM_ASK ASKS("\0\1") NAME A),
                                             {'s', answer, sizeof(answer), 2000},
                                             SAID_CUT('s', "x", 979),
                                             {0}}),
                        "A www.example.org = NOERROR 1-2-3 #1 35/4004\n");
    assert_string_equal(talk((struct said[]){SAID('c', STREAM_ASK ASKS("\0\1") NAME A),
                                             {'s', answer, sizeof(answer), 20000},
                                             {0}}),
                        "broken\n");
}

static void the_oldest_of_too_many_is_told_as_unanswered(void **state)
{
    (void)state;
    static struct said said[PROTOCOL_PENDING_MAX + 3];
    static char asks[PROTOCOL_PENDING_MAX + 1][21];
    struct told told = {0};
    for (unsigned i = 0; i < ARRAY_SIZE(asks); i++) {
        memcpy(asks[i], ASKS("\0\0") "\2ex\0" A, 20);
        asks[i][0] = (char)(i >> 8);
        asks[i][1] = (char)i;
        said[i] = (struct said){'c', asks[i], 20, 0};
    }
    said[PROTOCOL_PENDING_MAX + 1] = (struct said)SAID('s', ANSWERS("\0\0", "\0") "\2ex\0" A);
    conversation_run(&protocol_dns, said, &client, 0, &told);
    assert_int_equal(told.requests, PROTOCOL_PENDING_MAX + 1);
    assert_int_equal(strncmp(told.text, "A ex =  u 1-0-0 #1", 18), 0);
    assert_null(strstr(told.text, "NOERROR"));
}

static void nobody_waits_for_ever(void **state)
{
    (void)state;
    struct told told = {0};
    struct protocol *protocol;
    const struct protocol_teller teller = {&told, told_request, told_service};
    static const char message[] = ASKS("\0\1") NAME A, other[] = ASKS("\0\2") NAME A;
    assert_int_equal(protocol_open(&protocol_dns, &client, &protocol), 0);
    struct protocol_piece piece = {.direction = PROTOCOL_OUT,
                                   .time_ns = 1,
                                   .head = (const uint8_t *)message,
                                   .len = sizeof(message) - 1,
                                   .bytes = sizeof(message) - 1};
    assert_int_equal(protocol_piece(protocol, &piece, &teller), 0);
    piece.time_ns = UINT64_C(60000000000);
    piece.head = (const uint8_t *)other;
    assert_int_equal(protocol_piece(protocol, &piece, &teller), 0);
    assert_int_equal(told.requests, 1);
    assert_int_equal(protocol_close(protocol, piece.time_ns, &teller), 0);
    assert_int_equal(told.requests, 2);
}

static int guess(const char *text, size_t len, enum protocol_direction direction, uint16_t port)
{
    const struct protocol_piece piece = {
        .direction = direction, .head = (const uint8_t *)text, .len = len, .bytes = len};
    return protocol_dns.guess(&piece, port);
}
#define GUESS(literal, direction, port) guess(literal, sizeof(literal) - 1, direction, port)

static void only_messages_to_its_ports_are_taken_for_it(void **state)
{
    (void)state;
    assert_int_equal(GUESS(ASKS("\0\1") NAME A, PROTOCOL_OUT, 53), REQUEST_CLIENT);
    assert_int_equal(GUESS(ASKS("\0\1") NAME A, PROTOCOL_IN, 5353), REQUEST_SERVER);
    assert_int_equal(GUESS(ANSWERS("\0\1", "\0") NAME A, PROTOCOL_IN, 53), REQUEST_CLIENT);
    assert_int_equal(GUESS(STREAM_ASK ASKS("\0\1") NAME A, PROTOCOL_OUT, 53), REQUEST_CLIENT);
    assert_int_equal(GUESS(ASKS("\0\1") NAME A, PROTOCOL_OUT, 80), 0);
    assert_int_equal(GUESS(ASKS("\0\1") NAME A, PROTOCOL_OUT, 0), 0);
    assert_int_equal(GUESS("GET / HTTP/1.1\r\nHost: h\r\n\r\n", PROTOCOL_OUT, 53), 0);
    assert_int_equal(GUESS("\x16\x03\x01\x02\0\1\0\1\xfc\3\3aaaaaaaa", PROTOCOL_OUT, 53), 0);
    assert_int_equal(GUESS("", PROTOCOL_OUT, 53), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_and_its_answer),
        cmocka_unit_test(on_a_stream_lengths_part_messages),
        cmocka_unit_test(answers_belong_to_id_and_question),
        cmocka_unit_test(asking_again_is_the_same_request),
        cmocka_unit_test(an_address_that_is_looked_up_is_a_value),
        cmocka_unit_test(kinds_have_names_or_numbers),
        cmocka_unit_test(multicast_answers_by_what_they_are_about),
        cmocka_unit_test(names_that_go_round_in_circles_are_refused),
        cmocka_unit_test(a_name_longer_than_names_are_is_refused),
        cmocka_unit_test(garbage_is_passed_over_for_a_while),
        cmocka_unit_test(a_cut_message_has_its_question),
        cmocka_unit_test(the_oldest_of_too_many_is_told_as_unanswered),
        cmocka_unit_test(nobody_waits_for_ever),
        cmocka_unit_test(only_messages_to_its_ports_are_taken_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
