/* Promises of protocol/http2.c and protocol/hpack.h. */
#include "conversation.h"

#include "protocol/hpack.h"

#include <errno.h>

/* ---- packed headers ---- */

static char fields[1 << 16];

static int put_field(void *context, struct str name, struct str value)
{
    size_t *len = context;
    int n = snprintf(fields + *len, sizeof(fields) - *len, "%.*s=%.*s\n", STR_FMT(name),
                     STR_FMT(value));
    *len += (size_t)n;
    return *len < sizeof(fields) ? 0 : -ENOSPC;
}

/* From hex; what came out is in `fields`. */
static int unpack(struct hpack *hpack, const char *hex)
{
    size_t len = 0, out = 0;
    uint8_t *block = malloc(strlen(hex) / 2 + 1);
    assert_non_null(block);
    for (unsigned byte; *hex; hex += *hex == ' ' ? 1 : 2)
        if (*hex != ' ' && sscanf(hex, "%2x", &byte) == 1)
            block[len++] = (uint8_t)byte;
    uint8_t *exact = malloc(len ? len : 1);
    assert_non_null(exact);
    memcpy(exact, block, len);
    fields[0] = '\0';
    int r = hpack_decode(hpack, exact, len, put_field, &out);
    free(exact);
    free(block);
    return r;
}

static void the_examples_of_the_standard_are_unpacked(void **state)
{
    (void)state;
    struct hpack hpack;
    /* RFC 7541, C.4: requests with the Huffman code. */
    hpack_init(&hpack);
    assert_int_equal(unpack(&hpack, "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff"), 0);
    assert_string_equal(fields, ":method=GET\n:scheme=http\n:path=/\n:authority=www.example.com\n");
    assert_int_equal(unpack(&hpack, "8286 84be 5886 a8eb 1064 9cbf"), 0);
    assert_non_null(strstr(fields, ":authority=www.example.com\ncache-control=no-cache\n"));
    assert_int_equal(unpack(&hpack, "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"),
                     0);
    assert_non_null(strstr(fields, ":path=/index.html\n:authority=www.example.com\n"
                                   "custom-key=custom-value\n"));
    assert_int_equal(hpack.size, 164);
    hpack_deinit(&hpack);
    /* C.3.1: without it. */
    hpack_init(&hpack);
    assert_int_equal(unpack(&hpack, "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d"), 0);
    assert_non_null(strstr(fields, ":authority=www.example.com\n"));
    hpack_deinit(&hpack);
}

static void entries_that_have_no_room_go(void **state)
{
    (void)state;
    struct hpack hpack;
    /* C.6: answers, in a table of 256 bytes. */
    hpack_init(&hpack);
    hpack.limit = 256;
    assert_int_equal(unpack(&hpack, "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 "
                                    "9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 "
                                    "e9ae 82ae 43d3"),
                     0);
    assert_int_equal(unpack(&hpack, "4883 640e ffc1 c0bf"), 0);
    assert_string_equal(fields,
                        ":status=307\ncache-control=private\ndate=Mon, 21 Oct 2013 20:13:21 "
                        "GMT\nlocation=https://www.example.com\n");
    assert_int_equal(
        unpack(&hpack,
               "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab "
               "77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f "
               "9587 3160 65c0 03ed 4ee5 b106 3d50 07"),
        0);
    assert_non_null(strstr(fields, "set-cookie=foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; "
                                   "version=1\n"));
    assert_int_equal(hpack.size, 215);
    assert_int_equal(hpack.count, 3);
    /* An entry larger than the table empties it; an update shrinks it. */
    assert_int_equal(unpack(&hpack, "20"), 0);
    assert_int_equal(hpack.count, 0);
    assert_int_equal(unpack(&hpack, "4001 6101 62"), 0);
    assert_string_equal(fields, "a=b\n");
    assert_int_equal(hpack.count, 0);
    hpack_deinit(&hpack);
}

static void many_entries_keep_their_order(void **state)
{
    (void)state;
    struct hpack hpack;
    char hex[32], expected[32];
    hpack_init(&hpack);
    for (unsigned i = 0; i < 200; i++) {
        snprintf(hex, sizeof(hex), "4001 6102 %02x%02x", '0' + i / 10 % 10, '0' + i % 10);
        assert_int_equal(unpack(&hpack, hex), 0);
    }
    /* 35 bytes each: 117 of them. */
    assert_int_equal(hpack.count, 117);
    for (unsigned i = 0; i < hpack.count; i++) {
        unsigned index = 62 + i, number = (199 - i) % 100;
        if (index < 127)
            snprintf(hex, sizeof(hex), "%02x", 0x80 | index);
        else
            snprintf(hex, sizeof(hex), "ff%02x", index - 127);
        assert_int_equal(unpack(&hpack, hex), 0);
        snprintf(expected, sizeof(expected), "a=%02u\n", number);
        assert_string_equal(fields, expected);
    }
    hpack_deinit(&hpack);
}

static void bad_blocks_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *hex;
        int error;
    } bad[] = {
        {"80", -EBADMSG},                  /* index 0 */
        {"be", -EBADMSG},                  /* of an empty table */
        {"ff", -EBADMSG},                  /* an integer that ends too soon */
        {"ffffffffffff7f", -EBADMSG},      /* one without end */
        {"ff80808080808080", -EBADMSG},    /* one of zeros */
        {"40", -EBADMSG},                  /* no name */
        {"4005 6162", -EBADMSG},           /* half a name */
        {"4001 61", -EBADMSG},             /* no value */
        {"4001 6181 00", -EBADMSG},        /* padding of zeros */
        {"4001 6182 ffff", -EBADMSG},      /* padding of more than seven bits */
        {"4001 6184 ffff ffff", -EBADMSG}, /* the end of a string inside it */
        {"3fe1ff03", -E2BIG},              /* a table of 64 KiB */
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct hpack hpack;
        hpack_init(&hpack);
        if (unpack(&hpack, bad[i].hex) != bad[i].error)
            fail_msg("%s", bad[i].hex);
        hpack_deinit(&hpack);
    }
}

static void a_block_that_unpacks_without_end_is_refused(void **state)
{
    (void)state;
    struct hpack hpack;
    static char hex[4 * 600 + 1];
    for (size_t i = 0; i < 600; i++)
        memcpy(hex + 2 * i, "82", 3);
    hpack_init(&hpack);
    assert_int_equal(unpack(&hpack, hex), -E2BIG);
    hpack_deinit(&hpack);
}

/* ---- conversations ---- */

#define PREFACE  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define SETTINGS "\0\0\6\4\0\0\0\0\0\0\3\0\0\0\x64"
#define ACK      "\0\0\0\4\1\0\0\0\0"
/* :method GET, :scheme http, :path /a/17 (literal), :authority h (kept). */
#define ASK_A                           "\x82\x86\x04\x05/a/17\x41\x01h"
#define ASK_A_LEN                       "\x0c"
#define OK                              "\x88"
#define FRAME(len, type, flags, stream) "\0\0" len type flags "\0\0\0" stream

#define HELLO SAID('c', PREFACE SETTINGS), SAID('s', SETTINGS ACK), SAID('c', ACK)

static const struct protocol_opts client = {.role = REQUEST_CLIENT, .from_start = true};

static const char *talk(const struct said *said)
{
    return conversation(&protocol_http2, said, &client);
}

static void streams_become_requests(void **state)
{
    (void)state;
    /* A second request refers to the host of the first; answers come in the other order. */
    conversation_check(
        &protocol_http2,
        (struct said[]){
            HELLO,
            SAID('c', FRAME(ASK_A_LEN, "\1", "\5", "\1") ASK_A),
            SAID('c', FRAME("\7", "\1", "\4",
                            "\3") "\x83\x86\x04\x01/\xbe\x87" FRAME("\3", "\0", "\1", "\3") "a=b"),
            SAID('s', FRAME("\1", "\1", "\4", "\3") "\x8d"),
            SAID('s', FRAME("\0", "\0", "\1", "\3")),
            SAID('s', FRAME("\1", "\1", "\4", "\1") OK FRAME("\5", "\0", "\1", "\1") "hello"),
            {0}},
        "service h\nPOST / = 404 f 5-6-7 #5 28/19\nGET /a/? = 200 r 4-8-8 #4 21/24\n");
}

static void headers_may_be_padded_prioritised_and_continued(void **state)
{
    (void)state;
    conversation_check(
        &protocol_http2,
        (struct said[]){
            HELLO,
            SAID('c', FRAME("\x0a", "\1", "\x29", "\1") "\2\0\0\0\0\x10\x82\x86\0\0" FRAME(
                          "\7", "\x09", "\0", "\1") "\x04\x05/a/17" FRAME("\0", "\x09", "\0", "\1")
                          FRAME("\3", "\x09", "\4", "\1") "\x41\x01h"),
            SAID('s', FRAME("\1", "\1", "\5", "\1") OK),
            {0}},
        "service h\nGET /a/? = 200 4-5-5 #4 56/10\n");
}

static void trailers_say_what_became_of_a_call(void **state)
{
    (void)state;
#define GRPC(status) "\0\x0bgrpc-status\1" status
    conversation_check(
        &protocol_http2,
        (struct said[]){HELLO,
                        SAID('c', FRAME(ASK_A_LEN, "\1", "\5", "\1") ASK_A),
                        SAID('s', FRAME("\1", "\1", "\4", "\1") OK),
                        SAID('s', FRAME("\1", "\0", "\0", "\1") "x"),
                        SAID('s', FRAME("\x0f", "\1", "\5", "\1") GRPC("5")),
                        SAID('c', FRAME(ASK_A_LEN, "\1", "\5", "\3") ASK_A),
                        SAID('s', FRAME("\x10", "\1", "\5", "\3") OK GRPC("0")),
                        {0}},
        "service h\nGET /a/? = grpc 5 f 4-5-7 #4 21/44\nGET /a/? = grpc 0 r 8-9-9 #8 21/25\n");
}

static void an_interim_answer_is_not_the_answer(void **state)
{
    (void)state;
    conversation_check(&protocol_http2,
                       (struct said[]){HELLO,
                                       SAID('c', FRAME(ASK_A_LEN, "\1", "\5", "\1") ASK_A),
                                       SAID('s', FRAME("\5", "\1", "\4", "\1") "\x08\x03"
                                                                               "103"),
                                       SAID('s', FRAME("\1", "\1", "\5", "\1") "\x89"),
                                       {0}},
                       "service h\nGET /a/? = 204 4-6-6 #4 21/24\n");
    conversation_check(&protocol_http2,
                       (struct said[]){HELLO,
                                       SAID('c', FRAME(ASK_A_LEN, "\1", "\5", "\1") ASK_A),
                                       SAID('s', FRAME("\5", "\1", "\4", "\1") "\x08\x03"
                                                                               "103"),
                                       {0}},
                       "service h\nGET /a/? =  u 4-0-0 #4 21/14\n");
}

static void a_stream_may_be_reset_or_refused(void **state)
{
    (void)state;
    conversation_check(
        &protocol_http2,
        (struct said[]){HELLO,
                        SAID('c', FRAME(ASK_A_LEN, "\1", "\5", "\1")
                                      ASK_A FRAME(ASK_A_LEN, "\1", "\5", "\3")
                                          ASK_A FRAME(ASK_A_LEN, "\1", "\5", "\5") ASK_A),
                        SAID('c', FRAME("\4", "\3", "\0", "\1") "\0\0\0\x08"),
                        SAID('s', FRAME("\x0a", "\7", "\0", "\0") "\0\0\0\3\0\0\0\0hi"),
                        SAID('s', FRAME("\1", "\1", "\5", "\3") OK),
                        {0}},
        "service h\nGET /a/? = reset CANCEL f 4-0-5 #4 21/0\nGET /a/? =  ru 4-0-0 #4 21/0\n"
        "GET /a/? = 200 r 4-7-7 #4 21/10\n");
}

static void who_gets_no_answer_is_told_so(void **state)
{
    (void)state;
    conversation_check(&protocol_http2,
                       (struct said[]){HELLO,
                                       SAID('c', FRAME(ASK_A_LEN, "\1", "\5", "\1") ASK_A),
                                       SAID('s', FRAME("\1", "\1", "\4", "\1") OK),
                                       {0}},
                       "service h\nGET /a/? = 200 u 4-5-0 #4 21/10\n");
}

static void pushed_and_unknown_frames_are_passed_over(void **state)
{
    (void)state;
    conversation_check(
        &protocol_http2,
        (struct said[]){
            HELLO,
            SAID('c', FRAME(ASK_A_LEN, "\1", "\5", "\1")
                          ASK_A FRAME("\4", "\x08", "\0",
                                      "\0") "\0\0\1\0" FRAME("\2", "\x7f", "\xff", "\1") "??"),
            SAID('s', FRAME("\x10", "\5", "\4", "\1") "\0\0\0\2" ASK_A FRAME("\1", "\1", "\5", "\2")
                          OK FRAME("\1", "\1", "\5", "\1") "\xbe"),
            {0}},
        /* The push put the host into the table of who answers; there it is no status. */
        "service h\nGET /a/? =  4-0-5 #4 21/10\n");
}

static void data_may_be_cut_but_headers_may_not(void **state)
{
    (void)state;
    conversation_check(
        &protocol_http2,
        (struct said[]){
            HELLO,
            SAID('c', FRAME(ASK_A_LEN, "\1", "\5", "\1") ASK_A),
            SAID_CUT('s', FRAME("\1", "\1", "\4", "\1") OK "\0\x40\0\0\1\0\0\0\1ab", 16382),
            {0}},
        "service h\nGET /a/? = 200 4-5-5 #4 21/16403\n");
    assert_string_equal(talk((struct said[]){
                            HELLO, SAID_CUT('c', FRAME("\x7f", "\1", "\5", "\1") ASK_A, 115), {0}}),
                        "broken\n");
    /* Beyond the frame: there may be headers. */
    assert_string_equal(
        talk((struct said[]){
            HELLO,
            SAID('c', FRAME(ASK_A_LEN, "\1", "\5", "\1") ASK_A),
            SAID_CUT('s', FRAME("\1", "\1", "\4", "\1") OK "\0\x40\0\0\1\0\0\0\1ab", 16383),
            {0}}),
        "service h\nbroken\n");
    assert_string_equal(talk((struct said[]){HELLO, SAID_CUT('c', ACK, 1), {0}}), "broken\n");
}

static void garbage_is_given_up(void **state)
{
    (void)state;
    static const struct said conversations[][5] = {
        {SAID('c', "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX")},
        {SAID('c', "GET / HTTP/1.1\r\n\r\n")},
        {SAID('c', PREFACE ACK), SAID('c', FRAME("\5", "\4", "\0", "\0"))},
        {SAID('c', PREFACE FRAME("\1", "\1", "\5", "\1"))},             /* no settings first */
        {SAID('s', "HTTP/1.1 400 Bad Request\r\n\r\n")},                /* a server of HTTP/1 */
        {HELLO, SAID('c', FRAME("\1", "\1", "\5", "\0") "\x82")},       /* on stream 0 */
        {HELLO, SAID('c', FRAME("\1", "\1", "\5", "\2") "\x82")},       /* an even stream */
        {HELLO, SAID('c', FRAME("\1", "\1", "\5", "\1") "\x82")},       /* no path */
        {HELLO, SAID('c', FRAME("\1", "\1", "\5", "\1") "\xff")},       /* no block */
        {HELLO, SAID('c', FRAME("\0", "\x09", "\4", "\1"))},            /* goes on from nothing */
        {HELLO, SAID('c', FRAME("\1", "\1", "\1", "\1") "\x82" ACK)},   /* does not go on */
        {HELLO, SAID('c', FRAME("\2", "\1", "\x0d", "\1") "\x09\x82")}, /* all padding */
        {HELLO, SAID('c', FRAME("\0", "\1", "\x0d", "\1"))},
        {HELLO, SAID('c', FRAME("\5", "\6", "\0", "\0") "12345")},
    };
    for (size_t i = 0; i < ARRAY_SIZE(conversations); i++) {
        const char *told = talk(conversations[i]);
        if (strcmp(told, "broken\n") != 0)
            fail_msg("conversation %zu: %s", i, told);
    }
}

static void headers_without_end_are_given_up(void **state)
{
    (void)state;
    static struct said said[40] = {HELLO};
    static char fragment[9 + 1024] = "\0\4\0\x09\0\0\0\0\1";
    size_t at = 3;
    said[at++] = (struct said)SAID('c', FRAME("\1", "\1", "\1", "\1") "\x82");
    for (; at < 30; at++)
        said[at] = (struct said){'c', fragment, sizeof(fragment), 0};
    assert_string_equal(talk(said), "broken\n");
}

/* So many requests at once, for a path of so many bytes, from 127 to 250. */
static const char *talk_many(unsigned count, size_t path)
{
    static struct said said[300] = {HELLO};
    static char asks[300][14 + 250];
    for (unsigned i = 0; i < count; i++) {
        char *ask = asks[i];
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): bytes, not a text */
        memcpy(ask, FRAME("\0", "\1", "\5", "\0") "\x82\x86\x04", 12);
        ask[2] = (char)(5 + path);
        ask[7] = (char)((2 * i + 1) >> 8);
        ask[8] = (char)(2 * i + 1);
        ask[12] = 0x7f; /* and the rest */
        ask[13] = (char)(path - 0x7f);
        for (size_t at = 0; at < path; at++)
            ask[14 + at] = at % 2 ? 'a' : '/';
        said[3 + i] = (struct said){'c', ask, 14 + path, 0};
    }
    said[3 + count] = (struct said){0};
    return talk(said);
}

static void more_streams_than_anybody_opens_are_given_up(void **state)
{
    (void)state;
    assert_non_null(strstr(talk_many(PROTOCOL_PENDING_MAX, 127), "u 259-0-0"));
    assert_string_equal(talk_many(PROTOCOL_PENDING_MAX + 1, 127), "broken\n");
    assert_non_null(strstr(talk_many(150, 250), "u 153-0-0"));
    assert_string_equal(talk_many(PROTOCOL_PENDING_MAX, 250), "broken\n");
}

static void the_middle_cannot_be_read(void **state)
{
    (void)state;
    const struct protocol_opts middle = {.role = REQUEST_CLIENT};
    assert_string_equal(
        conversation(&protocol_http2,
                     (struct said[]){SAID('c', FRAME(ASK_A_LEN, "\1", "\5", "\1") ASK_A), {0}},
                     &middle),
        "middle\n");
}

static void secrets_are_in_no_payload(void **state)
{
    (void)state;
    const struct protocol_opts opts = {
        .role = REQUEST_CLIENT, .from_start = true, .payloads = true};
    const char *told = conversation(
        &protocol_http2,
        (struct said[]){HELLO,
                        SAID('c', FRAME("\x2d", "\1", "\5",
                                        "\1") "\x82\x86\x04\x0c/a?token=xyz"
                                              "\x0f\x08\x06s3cret\x0f\x11\x06s3cret\x0f\x04\x03*/*"
                                              "\0\1a\1b"),
                        {0}},
        &opts);
    assert_null(strstr(told, "s3cret"));
    assert_null(strstr(told, "xyz"));
    assert_non_null(
        strstr(told, "(GET /a?token=…\nauthorization: …\ncookie: …\naccept: */*\na: b\n"));
}

/* ---- guesses ---- */

static int guess(const char *text, size_t len, enum protocol_direction direction)
{
    const struct protocol_piece piece = {
        .direction = direction, .head = (const uint8_t *)text, .len = len, .bytes = len};
    return protocol_http2.guess(&piece, 0);
}
#define GUESS(literal, direction) guess(literal, sizeof(literal) - 1, direction)

static void only_http2_is_taken_for_http2(void **state)
{
    (void)state;
    assert_int_equal(GUESS(PREFACE SETTINGS, PROTOCOL_OUT), REQUEST_CLIENT);
    assert_int_equal(GUESS(PREFACE, PROTOCOL_IN), REQUEST_SERVER);
    assert_int_equal(GUESS("PRI * HTTP/2.0", PROTOCOL_OUT), REQUEST_CLIENT);
    assert_int_equal(GUESS(SETTINGS, PROTOCOL_OUT), REQUEST_SERVER);
    assert_int_equal(GUESS(FRAME(ASK_A_LEN, "\1", "\5", "\1") ASK_A, PROTOCOL_OUT), REQUEST_CLIENT);
    assert_int_equal(GUESS(FRAME("\1", "\1", "\5", "\1") OK, PROTOCOL_OUT), REQUEST_SERVER);
    assert_int_equal(GUESS("PRI", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("PRI * HTTP/3.0", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("\0\0\0\0\0\0\0\0\0", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS(SETTINGS "x", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("\x16\x03\x01\x02\0\1\0\1\xfc\3\3", PROTOCOL_OUT), 0);
    /* MySQL greets with a length, too. */
    assert_int_equal(GUESS("\x4a\0\0\0\x0a"
                           "8.0.35\0\1\2\3\4",
                           PROTOCOL_IN),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standard_are_unpacked),
        cmocka_unit_test(entries_that_have_no_room_go),
        cmocka_unit_test(many_entries_keep_their_order),
        cmocka_unit_test(bad_blocks_are_refused),
        cmocka_unit_test(a_block_that_unpacks_without_end_is_refused),
        cmocka_unit_test(streams_become_requests),
        cmocka_unit_test(headers_may_be_padded_prioritised_and_continued),
        cmocka_unit_test(trailers_say_what_became_of_a_call),
        cmocka_unit_test(an_interim_answer_is_not_the_answer),
        cmocka_unit_test(a_stream_may_be_reset_or_refused),
        cmocka_unit_test(who_gets_no_answer_is_told_so),
        cmocka_unit_test(pushed_and_unknown_frames_are_passed_over),
        cmocka_unit_test(data_may_be_cut_but_headers_may_not),
        cmocka_unit_test(garbage_is_given_up),
        cmocka_unit_test(headers_without_end_are_given_up),
        cmocka_unit_test(more_streams_than_anybody_opens_are_given_up),
        cmocka_unit_test(the_middle_cannot_be_read),
        cmocka_unit_test(secrets_are_in_no_payload),
        cmocka_unit_test(only_http2_is_taken_for_http2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
