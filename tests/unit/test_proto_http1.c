/* Promises of protocol/http1.c and protocol/url_text.h. */
#include "conversation.h"

#include "protocol/url_text.h"

static const struct protocol_opts client = {.role = REQUEST_CLIENT, .from_start = true};

static const char *talk(const struct said *said)
{
    return conversation(&protocol_http1, said, &client);
}

/* ---- texts ---- */

static const char *url(const char *target)
{
    static char text[256];
    uint64_t hash;
    size_t len = url_normalise(str_from(target), text, sizeof(text) - 1, &hash);
    text[len] = '\0';
    return text;
}

static uint64_t url_hash(const char *target)
{
    char text[256];
    uint64_t hash;
    url_normalise(str_from(target), text, sizeof(text), &hash);
    return hash;
}

static void values_in_a_path_are_taken_out(void **state)
{
    (void)state;
    assert_string_equal(url("/users/4711/items"), "/users/?/items");
    assert_string_equal(url("/u/550e8400-e29b-41d4-a716-446655440000"), "/u/?");
    assert_string_equal(url("/blob/3f2a9c81"), "/blob/?");
    assert_string_equal(url("/on/2024-05-01"), "/on/?");
    assert_string_equal(url("/t/dGhpcyBpcyBhIHRva2Vu42x"), "/t/?");
    assert_string_equal(url("/photo-12345.jpg"), "/photo-?.jpg");
    assert_string_equal(url("/main.3f2a9c81.js"), "/main.?.js");
    assert_string_equal(url("/u-550e8400-e29b-41d4-a716-446655440000.png"), "/u-?.png");
    assert_string_equal(url("/a;jsessionid=ABC;v=1/b"), "/a;jsessionid=?;v=?/b");
}

static void words_in_a_path_stay(void **state)
{
    (void)state;
    assert_string_equal(url("/"), "/");
    assert_string_equal(url(""), "");
    assert_string_equal(url("*"), "*");
    assert_string_equal(url("//"), "//");
    assert_string_equal(url("/api/v2/users"), "/api/v2/users");
    assert_string_equal(url("/error-404.html"), "/error-404.html");
    assert_string_equal(url("/a-long-title-of-an-article-in-words"),
                        "/a-long-title-of-an-article-in-words");
    assert_string_equal(url("/facade"), "/facade");
    assert_string_equal(url("/GetUserInformationService"), "/GetUserInformationService");
    assert_int_equal(url_hash("/api/v2/users"), 0);
}

static void a_query_keeps_names_and_loses_values(void **state)
{
    (void)state;
    assert_string_equal(url("/search?q=secret&page=2"), "/search?q=?&page=?");
    assert_string_equal(url("/s?id=1&id=2&id=3&x="), "/s?id=?&x=?");
    assert_string_equal(url("/bucket?uploads"), "/bucket?uploads");
    assert_string_equal(url("/bucket?S3cr3t"), "/bucket??");
    assert_string_equal(url("/x?a=1#frag"), "/x?a=?");
    assert_string_equal(url("/x?"), "/x");
    assert_string_equal(url("/x?&&a=1"), "/x?&&a=?");
    assert_string_equal(url("/x?=1"), "/x?=?");
}

static void a_user_before_a_host_goes(void **state)
{
    (void)state;
    assert_string_equal(url("http://joe:pw@h.example/a/12"), "http://h.example/a/?");
    assert_string_equal(url("http://joe:p@w@h.example:80?x=1"), "http://h.example:80?x=?");
    assert_string_equal(url("joe@h.example:443"), "h.example:443");
    assert_int_equal(url_hash("http://joe:a@h/"), url_hash("http://joe:b@h/"));
}

static void the_hash_changes_with_the_values(void **state)
{
    (void)state;
    assert_int_not_equal(url_hash("/a/1"), url_hash("/a/2"));
    assert_int_not_equal(url_hash("/a/1/2"), url_hash("/a/2/1"));
    assert_int_not_equal(url_hash("/a?b=1&b=2"), url_hash("/a?b=2&b=1"));
    assert_int_equal(url_hash("/a/1?q=z"), url_hash("/a/1?q=z"));
    assert_int_not_equal(url_hash("/a/1"), 0);
}

static void a_text_never_leaves_its_room(void **state)
{
    (void)state;
    for (size_t room = 0; room < 40; room++) {
        char *text = malloc(room + 1);
        uint64_t hash;
        struct str target = STR("http://h/users/4711/x;y=1?q=&b&c=2&long-name=3");
        assert_non_null(text);
        assert_in_range(url_normalise(target, text, room, &hash), 0, room);
        assert_in_range(url_without_secrets(target, text, room), 0, room);
        free(text);
    }
}

static void what_was_said_is_kept_without_secrets(void **state)
{
    (void)state;
    char text[256];
    struct str target = STR("http://joe:pw@h/a/12?q=x&access_token=abc&Password=1;sid=2");
    size_t len = url_without_secrets(target, text, sizeof(text));
    text[len] = '\0';
    assert_string_equal(text, "http://h/a/12?q=x&access_token=…&Password=…;sid=…");
}

/* ---- conversations ---- */

#define GET_A   "GET /a/17?x=1 HTTP/1.1\r\nHost: h.example:81\r\n\r\n"
#define OK_BODY "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static void a_request_and_its_answer(void **state)
{
    (void)state;
    conversation_check(&protocol_http1, (struct said[]){{'c', GET_A}, {'s', OK_BODY}, {0}},
                       "service h.example:81\nGET /a/??x=? = 200 1-2-2 #1 46/43\n");
}

static void a_kept_connection_is_reused(void **state)
{
    (void)state;
    conversation_check(&protocol_http1,
                       (struct said[]){{'c', "GET /a HTTP/1.1\r\n\r\n"},
                                       {'s', OK_BODY},
                                       {'c', "DELETE /b HTTP/1.1\r\n\r\n"},
                                       {'s', "HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n"},
                                       {0}},
                       "GET /a = 200 1-2-2 #1 19/43\nDELETE /b = 404 fr 3-4-4 #3 22/44\n");
}

static void requests_may_be_said_before_answers(void **state)
{
    (void)state;
    conversation_check(
        &protocol_http1,
        (struct said[]){
            {'c', "GET /a HTTP/1.1\r\n\r\nHEAD /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n"},
            {'s', OK_BODY "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nHTTP/1.1 304 Not "
                          "Modified\r\nContent-Length: 99\r\n\r\n"},
            {0}},
        "GET /a = 200 1-2-2 #1 19/43\nHEAD /b = 200 r 1-2-2 #1 20/39\nGET /c = 304 r 1-2-2 #1 "
        "19/49\n");
}

static void bodies_are_passed_over_by_length_and_by_chunks(void **state)
{
    (void)state;
    conversation_check(
        &protocol_http1,
        (struct said[]){
            {'c', "POST /p HTTP/1.1\r\nContent-Length: 24\r\n\r\nGET /trap HTTP/1.1\r\n\r\nxx"},
            {'s', "HTTP/1.1 201 Created\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n4;ext=\"a\"\r\n"
                  "HTTP\r\n10\r\n0123456789abcdef\r\n0\r\nX-Sum: 1\r\n\r\n"},
            {'c', "PUT /q HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
            {'s', "HTTP/1.1 204 No Content\r\n\r\n"},
            {0}},
        "POST /p = 201 1-2-2 #1 64/112\nPUT /q = 204 r 3-4-4 #3 58/27\n");
}

static void an_interim_answer_is_not_the_answer(void **state)
{
    (void)state;
    conversation_check(
        &protocol_http1,
        (struct said[]){
            {'c', "PUT /p HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"},
            {'s', "HTTP/1.1 100 Continue\r\n\r\n"},
            {'c', "abc"},
            {'s', "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"},
            {'s', OK_BODY},
            {0}},
        "PUT /p = 200 1-5-5 #1 63/105\n");
}

static void a_body_that_was_refused_need_not_come(void **state)
{
    (void)state;
    assert_string_equal(
        talk((struct said[]){
            {'c', "PUT /p HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 300\r\n\r\n"},
            {'s', "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"},
            {'c', "GET /a HTTP/1.1\r\n\r\n"},
            {'s', OK_BODY},
            {0}}),
        "PUT /p = 417 f 1-2-2 #1 62/38\nGET /a = 200 r 3-4-4 #3 19/43\n");
}

static void a_body_without_length_ends_with_the_connection(void **state)
{
    (void)state;
    conversation_check(&protocol_http1,
                       (struct said[]){{'c', "GET /a HTTP/1.0\r\n\r\n"},
                                       {'s', "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nabc"},
                                       {'s', "HTTP/1.1 500 is only data"},
                                       {0}},
                       "GET /a = 200 1-2-3 #1 19/66\n");
}

static void another_protocol_is_not_looked_into(void **state)
{
    (void)state;
    conversation_check(
        &protocol_http1,
        (struct said[]){{'c', "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"},
                        {'s', "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"},
                        SAID('s', "\x81\x05hello"),
                        {0}},
        "GET /ws = 101 1-2-2 #1 40/56\nswitched\n");
    conversation_check(&protocol_http1,
                       (struct said[]){{'c', "CONNECT joe:pw@h.example:443 HTTP/1.1\r\n\r\n"},
                                       {'s', "HTTP/1.1 200 Connection established\r\n\r\n"},
                                       SAID('c', "\x16\x03\x01"),
                                       {0}},
                       "CONNECT h.example:443 = 200 1-2-2 #1 41/39\nswitched\n");
}

static void who_gets_no_answer_is_told_so(void **state)
{
    (void)state;
    conversation_check(
        &protocol_http1,
        (struct said[]){{'c', "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n"}, {0}},
        "GET /a =  u 1-0-0 #1 19/0\nGET /b =  u 1-0-0 #1 19/0\n");
    /* Half an answer is none; its status is known. */
    conversation_check(&protocol_http1,
                       (struct said[]){{'c', "GET /a HTTP/1.1\r\n\r\n"},
                                       {'s', "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"},
                                       {0}},
                       "GET /a = 200 u 1-2-0 #1 19/42\n");
    /* Half a request line asks for nothing. */
    conversation_check(&protocol_http1, (struct said[]){{'c', "GET /a HT"}, {0}}, "");
}

static void garbage_is_given_up(void **state)
{
    (void)state;
    static const struct said conversations[][4] = {
        {SAID('c', "GET \0\1\2\3\4")},
        {SAID('c', "GET /\0 HTTP/1.1\r\n")},
        {SAID('c', "GET /a HTTP/2.7\r\n\r\n")},
        {SAID('c', "get /a HTTP/1.1\r\n\r\n")},
        {SAID('c', "GET /a HTTP/1.1\r\nno colon\r\n")},
        {SAID('c', "GET /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n")},
        {SAID('c', "GET /a HTTP/1.1\r\nContent-Length: -1\r\n")},
        {SAID('c', "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")},
        {SAID('c', "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc")},
        {SAID('c', "GET /a HTTP/1.1\r\n\r\n"), SAID('s', "HTTP/1.1 abc\r\n\r\n")},
        {SAID('c', "GET /a HTTP/1.1\r\n\r\n"), SAID('s', "\x16\x03\x01 TLS\r\n")},
        {SAID('c', "GET /a HTTP/1.1\r\n\r\n"), SAID('s', OK_BODY "more\r\n")},
    };
    for (size_t i = 0; i < ARRAY_SIZE(conversations); i++) {
        const char *told = talk(conversations[i]);
        size_t len = strlen(told);
        if (len < 7 || strcmp(told + len - 7, "broken\n") != 0)
            fail_msg("conversation %zu: %s", i, told);
    }
}

static void put(char *to, const char *text)
{
    while (*text)
        *to++ = *text++;
}

static void a_first_line_without_end_is_given_up(void **state)
{
    (void)state;
    static char flood[1 << 19];
    memset(flood, 'a', sizeof(flood) - 1);
    put(flood, "GET /");
    assert_string_equal(talk((struct said[]){{'c', flood}, {0}}), "broken\n");
    put(flood, "GET / HTTP/1.1\r\nX:");
    assert_string_equal(talk((struct said[]){{'c', flood}, {0}}), "broken\n");
    for (size_t i = 16; i + 6 < sizeof(flood); i += 6)
        put(flood + i, "a: b\r\n");
    assert_string_equal(talk((struct said[]){{'c', flood}, {0}}), "broken\n");
}

static void a_line_longer_than_is_looked_at_is_cut(void **state)
{
    (void)state;
    static char line[8192];
    static struct told told;
    snprintf(line, sizeof(line), "GET /%06000d/x HTTP/1.1\r\n\r\n", 1);
    told = (struct told){0};
    conversation_run(&protocol_http1, (struct said[]){{'c', line}, {'s', OK_BODY}, {0}}, &client,
                     1000, &told);
    assert_string_equal(told.text, "GET /? = 200 c 1-2-2 #1 6020/43\n");
}

static void more_requests_than_anybody_sends_at_once_are_given_up(void **state)
{
    (void)state;
    struct said said[PROTOCOL_PENDING_MAX + 3] = {{0}};
    for (int i = 0; i < PROTOCOL_PENDING_MAX; i++)
        said[i] = (struct said){'c', "GET /a HTTP/1.1\r\n\r\n"};
    const char *told = talk(said);
    assert_non_null(strstr(told, "GET /a =  u 256-0-0"));
    said[PROTOCOL_PENDING_MAX] = said[0];
    assert_string_equal(talk(said), "broken\n");
}

/* ---- pieces that are not there as a whole ---- */

static void a_large_body_is_passed_over_by_its_length(void **state)
{
    (void)state;
    conversation_check(
        &protocol_http1,
        (struct said[]){
            SAID_CUT('c', "POST /p HTTP/1.1\r\nContent-Length: 104857600\r\n\r\nab", 50000000),
            SAID_CUT('c', "c", 54857597),
            SAID_CUT('s', "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\nab", 104857598),
            {'c', "GET /b HTTP/1.1\r\n\r\n"},
            {'s', OK_BODY},
            {0}},
        "POST /p = 200 1-3-3 #1 104857647/104857646\nGET /b = 200 r 4-5-5 #4 19/43\n");
}

static void a_body_longer_than_its_length_is_given_up(void **state)
{
    (void)state;
    assert_string_equal(
        talk((struct said[]){{'c', "GET /b HTTP/1.1\r\n\r\n"},
                             SAID_CUT('s', "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab", 9),
                             {0}}),
        "broken\n");
}

static void a_chunk_may_be_cut_but_only_inside(void **state)
{
    (void)state;
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    conversation_check(&protocol_http1,
                       (struct said[]){{'c', "GET /b HTTP/1.1\r\n\r\n"},
                                       SAID_CUT('s', CHUNKED "1000\r\nab", 4094),
                                       {'s', "\r\n0\r\n\r\n"},
                                       {0}},
                       "GET /b = 200 1-2-3 #1 19/4156\n");
    /* Beyond: the end is seen where a piece ends with it … */
    assert_string_equal(talk((struct said[]){{'c', "GET /b HTTP/1.1\r\n\r\n"},
                                             SAID_CUT('s', CHUNKED "1000\r\nab", 5000),
                                             {'s', "xyz"},
                                             {'s', "xyz\r\n0\r\n\r\n"},
                                             {'c', "GET /c HTTP/1.1\r\n\r\n"},
                                             {'s', OK_BODY},
                                             {0}}),
                        "GET /b = 200 1-2-4 #1 19/5068\nGET /c = 200 r 5-6-6 #5 19/43\n");
    /* … or by the next answer to the next request … */
    assert_string_equal(talk((struct said[]){{'c', "GET /b HTTP/1.1\r\n\r\n"},
                                             SAID_CUT('s', CHUNKED "1000\r\nab", 5000),
                                             SAID_CUT('s', "HTTP/1.1 200 in a body", 9),
                                             {'c', "GET /c HTTP/1.1\r\n\r\n"},
                                             {'s', OK_BODY},
                                             {0}}),
                        "GET /b = 200 1-2-3 #1 19/5086\nGET /c = 200 r 4-5-5 #4 19/43\n");
    /* … but not where the next answer may be in what is missing. */
    assert_string_equal(
        talk((struct said[]){{'c', "GET /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n"},
                             SAID_CUT('s', CHUNKED "1000\r\nab", 5000),
                             {0}}),
        "broken\n");
}

static void a_cut_head_is_found_again_at_the_next_message(void **state)
{
    (void)state;
    assert_string_equal(
        talk((struct said[]){SAID_CUT('c', "GET /a HTTP/1.1\r\nCookie: ab", 3000),
                             SAID_CUT('s', "HTTP/1.1 200 OK\r\nSet-Cookie: ab", 3000),
                             SAID_CUT('s', "body", 3000),
                             SAID_CUT('c', "GET /b HTTP/1.1\r\nCookie: ab", 3000),
                             SAID_CUT('s', "HTTP/1.1 302 OK\r\nSet-Cookie: ab", 3000),
                             {0}}),
        "GET /a = 200 1-2-3 #1 3027/6035\nGET /b = 302 r 4-5-5 #4 3027/3031\n");
    /* A body behind a cut head is passed over. */
    assert_string_equal(talk((struct said[]){SAID_CUT('c', "POST /a HTTP/1.1\r\nCookie: ab", 3000),
                                             SAID_CUT('c', "body", 70000),
                                             {'s', OK_BODY},
                                             {'c', "GET /b HTTP/1.1\r\n\r\n"},
                                             {'s', OK_BODY},
                                             {0}}),
                        "POST /a = 200 1-3-3 #1 73032/43\nGET /b = 200 r 4-5-5 #4 19/43\n");
    /* A body that looks like a request, or a request: nobody knows. */
    assert_string_equal(talk((struct said[]){SAID_CUT('c', "POST /a HTTP/1.1\r\nCookie: ab", 3000),
                                             {'c', "GET /b HTTP/1.1\r\n\r\n"},
                                             {0}}),
                        "broken\n");
}

static void a_cut_first_line_gives_what_is_there(void **state)
{
    (void)state;
    assert_string_equal(
        talk((struct said[]){SAID_CUT('c', "GET /a/12?token=abcd", 3000), {'s', OK_BODY}, {0}}),
        "GET /a/??token=? = 200 c 1-2-2 #1 3020/43\n");
    assert_string_equal(talk((struct said[]){SAID_CUT('c', "", 3000), {0}}), "broken\n");
}

static void a_connection_met_in_the_middle_is_found(void **state)
{
    (void)state;
    const struct protocol_opts middle = {.role = REQUEST_CLIENT};
    assert_string_equal(conversation(&protocol_http1,
                                     (struct said[]){{'s', "rest of a body"},
                                                     {'s', "HTTP/1.1 200 OK\r\n\r\n"},
                                                     {'c', "more of a body"},
                                                     {'c', "GET /b HTTP/1.1\r\n\r\n"},
                                                     {'s', "tail"},
                                                     {'s', OK_BODY},
                                                     {0}},
                                     &middle),
                        "GET /b = 200 4-6-6 #4 19/43\n");
}

static void an_answer_nobody_asked_for_is_passed_over(void **state)
{
    (void)state;
    conversation_check(
        &protocol_http1,
        (struct said[]){{'c', "GET /a HTTP/1.1\r\n\r\n"},
                        {'s', OK_BODY},
                        {'s', "HTTP/1.1 408 Request Timeout\r\nContent-Length: 2\r\n\r\nab"},
                        {0}},
        "GET /a = 200 1-2-2 #1 19/43\n");
}

/* ---- secrets ---- */

static void secrets_are_in_no_payload(void **state)
{
    (void)state;
    const struct protocol_opts opts = {
        .role = REQUEST_CLIENT, .from_start = true, .payloads = true};
    const char *told = conversation(
        &protocol_http1,
        (struct said[]){
            {'c', "POST http://joe:pw@h/x?q=1&api_key=s3cret HTTP/1.1\r\nHost: h\r\n"
                  "Authorization: Basic s3cret\r\nCookie: s3cret\r\n"
                  "proxy-authorization: s3cret\r\nX-Api-Key: s3cret\r\n"
                  "Referer: http://a:s3cret@b/c?session=s3cret&d=e\r\nAccept: */*\r\n"
                  "Content-Length: 6\r\n\r\ns3cret"},
            {'s', "HTTP/1.1 200 OK\r\nSet-Cookie: s3cret\r\nContent-Length: 6\r\n\r\ns3cret"},
            {0}},
        &opts);
    assert_null(strstr(told, "s3cret"));
    assert_null(strstr(told, "pw"));
    assert_non_null(
        strstr(told, "(POST http://h/x?q=1&api_key=…\nHost: h\nAuthorization: …\nCookie: …\n"));
    assert_non_null(strstr(told, "Referer: http://b/c?session=…&d=e\nAccept: */*\n"));
}

/* ---- guesses ---- */

static int guess(const char *text, size_t len, enum protocol_direction direction)
{
    const struct protocol_piece piece = {
        .direction = direction, .head = (const uint8_t *)text, .len = len, .bytes = len};
    return protocol_http1.guess(&piece, 0);
}
#define GUESS(literal, direction) guess(literal, sizeof(literal) - 1, direction)

static void only_http_is_taken_for_http(void **state)
{
    (void)state;
    assert_int_equal(GUESS("GET / HTTP/1.1\r\n", PROTOCOL_OUT), REQUEST_CLIENT);
    assert_int_equal(GUESS("GET / HTTP/1.1\r\n", PROTOCOL_IN), REQUEST_SERVER);
    assert_int_equal(GUESS("POST /a", PROTOCOL_OUT), REQUEST_CLIENT);
    assert_int_equal(GUESS("OPTIONS * HTTP/1.0\r\n", PROTOCOL_OUT), REQUEST_CLIENT);
    assert_int_equal(GUESS("HTTP/1.1 200 OK\r\n", PROTOCOL_IN), REQUEST_CLIENT);
    assert_int_equal(GUESS("HTTP/1.1 200 OK\r\n", PROTOCOL_OUT), REQUEST_SERVER);
    assert_int_equal(GUESS("GET key\r\n", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("GET \0\1", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("GET /\0\1", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("OPTIONS * RTSP/1.0\r\n", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("\x16\x03\x01\x02\x00\x01\x00", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("*1\r\n$4\r\nPING\r\n", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("", PROTOCOL_OUT), 0);
    assert_int_equal(GUESS("GE", PROTOCOL_OUT), 0);
}

static void an_error_of_the_teller_comes_back(void **state)
{
    (void)state;
    struct told told = {.fail_at = 1};
    struct protocol *protocol;
    const struct protocol_teller teller = {&told, told_request, told_service};
    assert_int_equal(protocol_open(&protocol_http1, &client, &protocol), 0);
    const struct said said[] = {{'c', "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n"},
                                {'s', OK_BODY}};
    for (unsigned i = 0; i < 2; i++)
        conversation_piece(protocol, &said[i], 0, strlen(said[i].text), strlen(said[i].text), i + 1,
                           REQUEST_CLIENT, &told);
    assert_int_equal(told.verdict, -77);
    told.fail_at = 2;
    assert_int_equal(protocol_close(protocol, 3, &teller), -77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_in_a_path_are_taken_out),
        cmocka_unit_test(words_in_a_path_stay),
        cmocka_unit_test(a_query_keeps_names_and_loses_values),
        cmocka_unit_test(a_user_before_a_host_goes),
        cmocka_unit_test(the_hash_changes_with_the_values),
        cmocka_unit_test(a_text_never_leaves_its_room),
        cmocka_unit_test(what_was_said_is_kept_without_secrets),
        cmocka_unit_test(a_request_and_its_answer),
        cmocka_unit_test(a_kept_connection_is_reused),
        cmocka_unit_test(requests_may_be_said_before_answers),
        cmocka_unit_test(bodies_are_passed_over_by_length_and_by_chunks),
        cmocka_unit_test(an_interim_answer_is_not_the_answer),
        cmocka_unit_test(a_body_that_was_refused_need_not_come),
        cmocka_unit_test(a_body_without_length_ends_with_the_connection),
        cmocka_unit_test(another_protocol_is_not_looked_into),
        cmocka_unit_test(who_gets_no_answer_is_told_so),
        cmocka_unit_test(garbage_is_given_up),
        cmocka_unit_test(a_first_line_without_end_is_given_up),
        cmocka_unit_test(a_line_longer_than_is_looked_at_is_cut),
        cmocka_unit_test(more_requests_than_anybody_sends_at_once_are_given_up),
        cmocka_unit_test(a_large_body_is_passed_over_by_its_length),
        cmocka_unit_test(a_body_longer_than_its_length_is_given_up),
        cmocka_unit_test(a_chunk_may_be_cut_but_only_inside),
        cmocka_unit_test(a_cut_head_is_found_again_at_the_next_message),
        cmocka_unit_test(a_cut_first_line_gives_what_is_there),
        cmocka_unit_test(a_connection_met_in_the_middle_is_found),
        cmocka_unit_test(an_answer_nobody_asked_for_is_passed_over),
        cmocka_unit_test(secrets_are_in_no_payload),
        cmocka_unit_test(only_http_is_taken_for_http),
        cmocka_unit_test(an_error_of_the_teller_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
