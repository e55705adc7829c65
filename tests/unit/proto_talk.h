/* Conversations for tests of protocols: what both sides said, fed whole, in single bytes and split
 * at every place, seen from either side. All must tell the same requests. */
#pragma once

#include "unit.h"

#include "protocol/protocol.h"

#include <stdio.h>
#include <stdlib.h>

enum { TALK_STEPS = 64, TALK_BYTES = 1 << 17, TALK_TOLD = 1 << 17, TALK_HASHES = 64 };

struct talk_step {
    char who; /* 'c' the client, 's' the server */
    size_t at, len;
    uint64_t missing; /* bytes behind it that are not there */
};

struct talk {
    const struct protocol_ops *ops;
    bool middle, payloads;
    struct talk_step steps[TALK_STEPS];
    size_t count, used;
    uint8_t bytes[TALK_BYTES];
};

/* What was told, in words; of hashes only which are the same. */
struct talk_told {
    char text[TALK_TOLD];
    size_t len;
    bool bytes, payloads;
    uint64_t hashes[TALK_HASHES];
    size_t hash_count;
    size_t requests;
};

/* More of the same step when `who` goes on; talk_next() begins another. */
static inline void talk_say(struct talk *talk, char who, const void *bytes, size_t len)
{
    struct talk_step *step = talk->count > 0 ? &talk->steps[talk->count - 1] : NULL;
    assert_true(talk->used + len <= TALK_BYTES);
    if (!step || step->who != who || step->missing) {
        assert_true(talk->count < TALK_STEPS);
        step = &talk->steps[talk->count++];
        *step = (struct talk_step){.who = who, .at = talk->used};
    }
    if (len > 0)
        memcpy(talk->bytes + talk->used, bytes, len);
    talk->used += len;
    step->len += len;
}

static inline void talk_text(struct talk *talk, char who, const char *text)
{
    talk_say(talk, who, text, strlen(text));
}

static inline void talk_next(struct talk *talk, char who)
{
    assert_true(talk->count < TALK_STEPS);
    talk->steps[talk->count++] = (struct talk_step){.who = who, .at = talk->used};
}

/* Bytes that were sent but are not seen. */
static inline void talk_missing(struct talk *talk, uint64_t bytes)
{
    talk->steps[talk->count - 1].missing += bytes;
}

static inline void talk_print(struct talk_told *told, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline void talk_print(struct talk_told *told, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(told->text + told->len, sizeof(told->text) - told->len, fmt, args);
    va_end(args);
    assert_true(len >= 0 && told->len + (size_t)len < sizeof(told->text));
    told->len += (size_t)len;
}

static inline char talk_hash(struct talk_told *told, uint64_t hash)
{
    if (hash == 0)
        return '-';
    for (size_t i = 0; i < told->hash_count; i++)
        if (told->hashes[i] == hash)
            return (char)('A' + i);
    if (told->hash_count >= TALK_HASHES)
        return '*';
    told->hashes[told->hash_count] = hash;
    return (char)('A' + told->hash_count++);
}

static inline int talk_request(void *context, const struct protocol_request *request)
{
    struct talk_told *told = context;
    told->requests++;
    talk_print(told, "%.*s | %.*s | %u-%u-%u | %c", STR_FMT(request->text),
               STR_FMT(request->result), (unsigned)request->start_ns,
               (unsigned)request->first_byte_ns, (unsigned)request->end_ns,
               talk_hash(told, request->parameters));
    if (request->flags & REQUEST_FAILED)
        talk_print(told, " failed");
    if (request->flags & REQUEST_UNANSWERED)
        talk_print(told, " unanswered");
    if (request->flags & REQUEST_CUT)
        talk_print(told, " cut");
    if (told->bytes)
        talk_print(told, " %u/%u #%u %u", (unsigned)request->bytes_out, (unsigned)request->bytes_in,
                   (unsigned)request->cookie, request->flags);
    if (told->payloads)
        talk_print(told, " {%.*s}", STR_FMT(request->payload));
    talk_print(told, "\n");
    return 0;
}

static inline int talk_service(void *context, struct str name)
{
    talk_print(context, "service %.*s\n", STR_FMT(name));
    return 0;
}

/* Pieces of at most `most` bytes, and one more cut behind byte `cut` of every step. */
static inline void talk_run(const struct talk *talk, enum request_role role, size_t most,
                            size_t cut, struct talk_told *told)
{
    static const char *const verdicts[] = {"", "broken\n", "switched\n", "middle\n"};
    const struct protocol_opts opts = {role, !talk->middle, talk->payloads};
    const struct protocol_teller teller = {told, talk_request, talk_service};
    struct protocol *protocol;
    int verdict = 0;
    told->payloads = talk->payloads;
    assert_int_equal(protocol_open(talk->ops, &opts, &protocol), 0);
    for (size_t i = 0; i < talk->count; i++) {
        const struct talk_step *step = &talk->steps[i];
        for (size_t at = 0; at < step->len || (at == 0 && step->missing);) {
            size_t len = step->len - at;
            len = MIN(len, most);
            if (at < cut && at + len > cut)
                len = cut - at;
            /* Of exactly this size, so that a sanitizer sees a read beyond it. */
            uint8_t *copy = malloc(len ? len : 1);
            assert_non_null(copy);
            memcpy(copy, talk->bytes + step->at + at, len);
            at += len;
            struct protocol_piece piece = {
                .direction = (step->who == 'c') == (role == REQUEST_CLIENT) ? PROTOCOL_OUT
                                                                            : PROTOCOL_IN,
                .time_ns = (i + 1) * 10,
                .head = copy,
                .len = len,
                .bytes = len + (at == step->len ? step->missing : 0),
                .cookie = i + 1,
            };
            int r = protocol_piece(protocol, &piece, &teller);
            free(copy);
            assert_true(r >= 0 && r <= 3);
            verdict = r;
            if (len == 0)
                break;
        }
    }
    assert_int_equal(protocol_close(protocol, (talk->count + 1) * 10, &teller), 0);
    talk_print(told, "%s", verdicts[verdict]);
}

/* However it is split and from whichever side, what is told is this. */
static inline void talk_expect(const struct talk *talk, const char *expected)
{
    static struct talk_told whole, other;
    size_t longest = 0;
    whole = (struct talk_told){0};
    talk_run(talk, REQUEST_CLIENT, SIZE_MAX, 0, &whole);
    assert_string_equal(whole.text, expected);
    whole = (struct talk_told){.bytes = true};
    talk_run(talk, REQUEST_CLIENT, SIZE_MAX, 0, &whole);
    for (size_t i = 0; i < talk->count; i++)
        longest = MAX(longest, talk->steps[i].len);
    for (int role = REQUEST_CLIENT; role <= REQUEST_SERVER; role++) {
        for (size_t cut = 0; cut < longest; cut++) {
            other = (struct talk_told){.bytes = true};
            talk_run(talk, (enum request_role)role, SIZE_MAX, cut, &other);
            assert_string_equal(other.text, whole.text);
        }
        other = (struct talk_told){.bytes = true};
        talk_run(talk, (enum request_role)role, 1, 0, &other);
        assert_string_equal(other.text, whole.text);
    }
}

/* The same for what can be told by whole pieces only. */
static inline void talk_expect_whole(const struct talk *talk, const char *expected)
{
    static struct talk_told told;
    for (int role = REQUEST_CLIENT; role <= REQUEST_SERVER; role++) {
        told = (struct talk_told){0};
        talk_run(talk, (enum request_role)role, SIZE_MAX, 0, &told);
        assert_string_equal(told.text, expected);
    }
}

/* Whether a first piece is taken for this protocol: the side that asks is the recorded one. */
static inline int talk_guess(const struct protocol_ops *ops, enum protocol_direction direction,
                             const void *bytes, size_t len, uint64_t missing, uint16_t port)
{
    uint8_t *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    const struct protocol_piece piece = {
        .direction = direction, .head = copy, .len = len, .bytes = len + missing};
    int role = ops->guess(&piece, port);
    free(copy);
    return role;
}

/* Bytes without sense, after something that has some: nothing may break but the connection. */
static inline void talk_garbage(const struct talk *talk, unsigned rounds)
{
    static struct talk damaged;
    static struct talk_told told;
    uint32_t seed = 7;
    for (unsigned i = 0; i < rounds && talk->used > 0; i++) {
        damaged = *talk;
        for (unsigned n = 0; n <= i % 4; n++) {
            seed = seed * 1664525 + 1013904223;
            damaged.bytes[(seed >> 8) % talk->used] = (uint8_t)(seed >> 24);
        }
        if (i % 5 == 0)
            damaged.steps[seed % damaged.count].missing = (seed >> 8) % 4096;
        told = (struct talk_told){0};
        talk_run(&damaged, i % 2 ? REQUEST_CLIENT : REQUEST_SERVER, 1 + seed % 97, 0, &told);
    }
}
