/* Conversations for tests of protocols: what two sides say, and what is made of it as text.
 *
 * The same conversation must give the same requests from either side, whole, split at any byte
 * and byte by byte: conversation_check() tries them all. */
#pragma once

#include "unit.h"

#include "protocol/protocol.h"

#include <stdio.h>
#include <stdlib.h>

enum { SAID_MAX = 64, SAID_BYTES = 1 << 16, TOLD_BYTES = 1 << 16 };

struct said {
    char who; /* 'c' or 's'; 0 ends a conversation */
    const char *text;
    size_t len;      /* 0: up to its NUL */
    uint64_t hidden; /* bytes behind it that are not there */
};
/* With bytes that may be NUL. */
#define SAID(who, literal)                                                                         \
    {                                                                                              \
        who, literal, sizeof(literal) - 1, 0                                                       \
    }
#define SAID_CUT(who, literal, hidden)                                                             \
    {                                                                                              \
        who, literal, sizeof(literal) - 1, hidden                                                  \
    }

struct told {
    char text[TOLD_BYTES];
    size_t len;
    int verdict;
    unsigned requests;
    int fail_at; /* the teller fails at this request; 0: never */
};

static void told_add(struct told *told, const char *format, ...) PRINTF_LIKE(2, 3);
static void told_add(struct told *told, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int len = vsnprintf(told->text + told->len, sizeof(told->text) - told->len, format, list);
    va_end(list);
    assert_in_range(len, 0, sizeof(told->text) - told->len - 1);
    told->len += (size_t)len;
}

/* "GET /a = 200 fru 1-2-3 #1 78/99 (payload)\n": failed, reused, unanswered and cut where they are;
 * times are the places of pieces, # is the one in which it began. */
static int told_request(void *context, const struct protocol_request *request)
{
    struct told *told = context;
    if (++told->requests == (unsigned)told->fail_at)
        return -77;
    told_add(told, "%.*s = %.*s ", STR_FMT(request->text), STR_FMT(request->result));
    told_add(told, "%s%s%s%s%s", request->flags & REQUEST_FAILED ? "f" : "",
             request->flags & REQUEST_REUSED ? "r" : "",
             request->flags & REQUEST_UNANSWERED ? "u" : "",
             request->flags & REQUEST_CUT ? "c" : "", request->flags ? " " : "");
    told_add(told, "%d-%d-%d #%d %d/%d", (int)request->start_ns, (int)request->first_byte_ns,
             (int)request->end_ns, (int)request->cookie, (int)request->bytes_out,
             (int)request->bytes_in);
    if (request->payload.len > 0)
        told_add(told, " (%.*s)", STR_FMT(request->payload));
    told_add(told, "\n");
    return 0;
}

static int told_nothing(void *context, const struct protocol_request *request)
{
    (void)context;
    (void)request;
    return 0;
}

static int told_service(void *context, struct str name)
{
    told_add(context, "service %.*s\n", STR_FMT(name));
    return 0;
}

/* A piece in a copy of exactly its size, so that the sanitizer sees a read beyond it. */
static void conversation_piece(struct protocol *protocol, const struct said *said, size_t from,
                               size_t to, size_t len, unsigned number, enum request_role role,
                               struct told *told)
{
    const struct protocol_teller teller = {told, told_request, told_service};
    uint8_t *copy = malloc(to - from + 1);
    assert_non_null(copy);
    memcpy(copy, said->text + from, to - from);
    const struct protocol_piece piece = {
        .direction = (said->who == 'c') == (role == REQUEST_CLIENT) ? PROTOCOL_OUT : PROTOCOL_IN,
        .time_ns = number,
        .head = copy,
        .len = to - from,
        .bytes = to - from + (to == len ? said->hidden : 0),
        .cookie = number,
    };
    told->verdict = protocol_piece(protocol, &piece, &teller);
    free(copy);
}

/* `split`: each piece is cut there in two; 0: not at all; -1: at every byte. */
static void conversation_run(const struct protocol_ops *ops, const struct said *said,
                             const struct protocol_opts *opts, long split, struct told *told)
{
    const struct protocol_teller teller = {told, told_request, told_service};
    struct protocol *protocol;
    assert_int_equal(protocol_open(ops, opts, &protocol), 0);
    unsigned number = 0;
    for (; said->who; said++) {
        size_t len = said->len ? said->len : strlen(said->text);
        size_t step = split < 0 ? 1 : split == 0 ? len : (size_t)split;
        number++;
        for (size_t at = 0; at == 0 || at < len;) {
            size_t to = at + step < len ? at + step : len;
            conversation_piece(protocol, said, at, to, len, number, opts->role, told);
            at = to > at ? to : len + 1;
            step = split < 0 ? 1 : len;
        }
    }
    /* What waits on a connection that broke will never be known: told, but not as unanswered. */
    const struct protocol_teller cut_off = {told, told_nothing, told_service};
    protocol_close(protocol, number + 1, told->verdict > 0 ? &cut_off : &teller);
    if (told->verdict > 0)
        told_add(told, "%s\n", (const char *[]){"", "broken", "switched", "middle"}[told->verdict]);
}

/* From one side, in whole pieces. */
static inline const char *conversation(const struct protocol_ops *ops, const struct said *said,
                                       const struct protocol_opts *opts)
{
    static struct told told;
    told = (struct told){0};
    conversation_run(ops, said, opts, 0, &told);
    return told.text;
}

static inline void conversation_check(const struct protocol_ops *ops, const struct said *said,
                                      const char *expected)
{
    static struct told told;
    size_t longest = 0;
    for (const struct said *each = said; each->who; each++)
        longest = MAX(longest, each->len ? each->len : strlen(each->text));
    for (int role = REQUEST_CLIENT; role <= REQUEST_SERVER; role++) {
        const struct protocol_opts opts = {.role = (enum request_role)role, .from_start = true};
        for (long split = -1; split < (long)longest; split++) {
            told = (struct told){0};
            conversation_run(ops, said, &opts, split, &told);
            if (strcmp(told.text, expected) != 0)
                print_message("role %d, split %ld\n", role, split);
            assert_string_equal(told.text, expected);
        }
    }
}
