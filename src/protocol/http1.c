/* HTTP/1: lines and bodies of both sides become requests.
 *
 * Each side is a small machine over bytes (enum http1_at). Bodies are passed over by their length.
 * Where a piece was cut in a head, or in a body in chunks beyond its chunk, the side is lost: it
 * is found again only where a piece begins with a request line or a status line and the other
 * side agrees that one is due. While it is lost the request's answer goes on. */
#include "protocol/http_text.h"
#include "protocol/protocol.h"
#include "protocol/waiting.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum {
    LINE_BYTES = 4096,                                   /* of a line that came in pieces */
    HEAD_BYTES_MAX = 256 << 10,                          /* no server takes so much */
    REQUESTS_BYTES = PROTOCOL_MEMORY_BYTES - (12 << 10), /* the rest: two lines and the state */
    PAYLOADS_BYTES = REQUESTS_BYTES / 2,                 /* beyond, requests go without */
    STATUS_LINE_MIN = 12,                                /* "HTTP/1.1 200" */
};

enum http1_at {
    AT_LINE, /* at the first line of a message, or before it */
    AT_HEADERS,
    AT_BODY, /* `left` bytes of it */
    AT_CHUNK_SIZE,
    AT_CHUNK, /* `left` bytes of it */
    AT_CHUNK_END,
    AT_TRAILERS,
    AT_UNTIL_CLOSE,
    AT_LOST,
};

enum http1_which { ASK, ANSWER };

struct http1_request {
    uint64_t start_ns, first_byte_ns;
    uint64_t bytes_out, bytes_in;
    uint64_t parameters, cookie;
    uint32_t flags;
    bool is_head, is_connect;
    bool keeps; /* a payload */
    struct http_payload payload;
    size_t text_len;
    char text[];
};

struct http1_side {
    enum http1_at at;
    bool begun;    /* the message's first byte was there */
    bool line_cut; /* the line is longer than its buffer */
    bool chunked, other_coding, has_length;
    uint64_t begin_ns, last_ns, cookie;
    uint64_t bytes;      /* of the message so far */
    uint64_t head_bytes; /* of its head or of what follows its chunks */
    uint64_t left;
    size_t line_len;
    char *line; /* a line that came in pieces; allocated when there is one */
};

struct http1 {
    struct http1_side sides[2];
    struct waiting waiting;
    struct http1_request *asking; /* that is still being said; one of those waiting */
    unsigned status;              /* of the answer being said */
    bool started, service_told;
    bool answering; /* the oldest has a status */
    bool orphan;    /* an answer that nobody asked for, as far as we saw */
    bool expects;   /* the body that is due comes only if the server says so */
};

/* One piece being looked at. */
struct talk {
    struct http1 *http;
    struct http1_side *side;
    enum http1_which which;
    const struct protocol_opts *opts;
    const struct protocol_piece *piece;
    const struct protocol_teller *teller;
};

/* ---- lines ---- */

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static bool is_method(struct str s)
{
    enum { METHOD_MIN = 3, METHOD_MAX = 24 };
    if (s.len < METHOD_MIN || s.len > METHOD_MAX)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!isupper((unsigned char)s.data[i]) && s.data[i] != '-' && s.data[i] != '_')
            return false;
    return true;
}

static bool is_version(struct str s)
{
    return s.len == 8 && memcmp(s.data, "HTTP/1.", 7) == 0 && isdigit((unsigned char)s.data[7]);
}

/* Targets begin with what Redis and others never write there. */
static bool is_target(struct str method, struct str target)
{
    if (target.len == 0)
        return false;
    for (size_t i = 0; i < target.len; i++)
        if (is_control(target.data[i]))
            return false;
    return target.data[0] == '/' || str_is(target, "*") || str_contains(target, "://") ||
           (str_is(method, "CONNECT") && isalnum((unsigned char)target.data[0])) ||
           (str_is(method, "CONNECT") && target.data[0] == '[');
}

/* Without its version where the line is cut. */
static bool request_line_parse(struct str line, bool cut, struct str *ret_method,
                               struct str *ret_target)
{
    struct str method = str_cut(&line, ' ');
    if (!is_method(method))
        return false;
    struct str target = line;
    if (!cut) {
        size_t at = line.len;
        while (at > 0 && line.data[at - 1] != ' ')
            at--;
        if (at == 0 || !is_version((struct str){line.data + at, line.len - at}))
            return false;
        target.len = at - 1;
    }
    if (!is_target(method, target))
        return false;
    *ret_method = method;
    *ret_target = target;
    return true;
}

static bool status_line_parse(struct str line, unsigned *ret_status)
{
    uint64_t status;
    if (line.len < STATUS_LINE_MIN || !is_version((struct str){line.data, 8}) ||
        line.data[8] != ' ' || str_to_u64((struct str){line.data + 9, 3}, 10, &status) < 0 ||
        (line.len > STATUS_LINE_MIN && line.data[STATUS_LINE_MIN] != ' ') || status < 100)
        return false;
    *ret_status = (unsigned)status;
    return true;
}

static struct str line_trim(struct str line)
{
    if (line.len > 0 && line.data[line.len - 1] == '\r')
        line.len--;
    return line;
}

/* Its first line, as far as it is there. */
static struct str first_line(const struct protocol_piece *piece, bool *ret_whole)
{
    struct str line = {(const char *)piece->head, piece->len};
    const char *end = memchr(piece->head, '\n', piece->len);
    *ret_whole = end != NULL;
    if (end)
        line.len = (size_t)(end - line.data);
    return line_trim(line);
}

static bool begins_request(const struct protocol_piece *piece)
{
    bool whole;
    struct str method, target, line = first_line(piece, &whole);
    return piece->len > 0 && request_line_parse(line, !whole, &method, &target);
}

static bool begins_answer(const struct protocol_piece *piece)
{
    bool whole;
    unsigned status;
    return piece->len > 0 && status_line_parse(first_line(piece, &whole), &status);
}

static int http1_guess(const struct protocol_piece *first, uint16_t port)
{
    (void)port;
    bool out = first->direction == PROTOCOL_OUT;
    if (begins_request(first))
        return out ? REQUEST_CLIENT : REQUEST_SERVER;
    if (begins_answer(first))
        return out ? REQUEST_SERVER : REQUEST_CLIENT;
    return 0;
}

/* Takes a line off *rest; false where it goes on in the next piece. Negative: no memory. */
static int line_take(struct http1_side *side, struct str *rest, struct str *ret_line)
{
    const char *end = memchr(rest->data, '\n', rest->len);
    struct str part = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
    size_t used = part.len + (end != NULL);
    side->bytes += used;
    side->head_bytes += used;
    rest->data += used;
    rest->len -= used;
    if (end && side->line_len == 0) {
        *ret_line = line_trim(part);
        return true;
    }
    if (!side->line)
        side->line = malloc(LINE_BYTES);
    if (!side->line)
        return -ENOMEM;
    size_t len = MIN(part.len, LINE_BYTES - side->line_len);
    side->line_cut |= len < part.len;
    memcpy(side->line + side->line_len, part.data, len);
    side->line_len += len;
    if (!end)
        return false;
    *ret_line = line_trim((struct str){side->line, side->line_len});
    side->line_len = 0;
    return true;
}

/* ---- requests ---- */

static void request_free(struct http1_request *request)
{
    if (!request)
        return;
    http_payload_deinit(&request->payload);
    free(request);
}

static size_t request_memory(const struct http1_request *request)
{
    return sizeof(*request) + request->text_len + (request->keeps ? HTTP_PAYLOAD_BYTES : 0);
}

static struct http1_request *oldest(const struct http1 *http)
{
    return http->waiting.rows[0];
}

static int request_begin(struct talk *talk, struct str line, bool cut)
{
    struct str method, target;
    char text[PROTOCOL_TEXT_BYTES];
    uint64_t hash;
    if (!request_line_parse(line, cut, &method, &target))
        return PROTOCOL_BROKEN;
    size_t len = http_text(method, target, text, sizeof(text), &hash);
    struct http1_request *request = calloc(1, sizeof(*request) + len);
    if (!request)
        return -ENOMEM;
    request->start_ns = talk->side->begin_ns;
    request->cookie = talk->side->cookie;
    request->parameters = hash;
    request->flags = cut ? REQUEST_CUT : 0;
    request->is_head = str_is(method, "HEAD");
    request->is_connect = str_is(method, "CONNECT");
    request->text_len = len;
    memcpy(request->text, text, len);
    request->keeps = talk->opts->payloads && talk->http->waiting.memory < PAYLOADS_BYTES;
    if (request->keeps)
        http_payload_request(&request->payload, method, target);
    int r = waiting_push(&talk->http->waiting, request, request_memory(request), REQUESTS_BYTES);
    if (r != 0)
        request_free(request);
    else
        talk->http->asking = request;
    return r;
}

/* Tells the oldest, which is gone then also where telling fails. */
static int request_tell(struct talk *talk, uint64_t end_ns)
{
    struct http1 *http = talk->http;
    struct http1_request *request = oldest(http);
    unsigned code = http->status % 1000;
    const char status[3] = {(char)('0' + code / 100), (char)('0' + code / 10 % 10),
                            (char)('0' + code % 10)};
    if (http->asking == request) {
        request->bytes_out = http->sides[ASK].bytes;
        http->asking = NULL;
    }
    const struct protocol_request told = {
        .start_ns = request->start_ns,
        .first_byte_ns = request->first_byte_ns,
        .end_ns = end_ns,
        .bytes_out = request->bytes_out,
        .bytes_in = request->bytes_in + (http->answering ? http->sides[ANSWER].bytes : 0),
        .text = {request->text, request->text_len},
        .parameters = request->parameters,
        .result = {status, http->answering ? sizeof(status) : 0},
        .flags = request->flags | (end_ns ? 0 : REQUEST_UNANSWERED) |
                 (http->answering && http->status >= 400 ? REQUEST_FAILED : 0),
        .cookie = request->cookie,
        .payload = {request->payload.data, request->payload.len},
    };
    waiting_pull(&http->waiting, 0, request_memory(request));
    http->answering = false;
    int r = talk->teller->request(talk->teller->context, &told);
    request_free(request);
    return r;
}

/* ---- messages ---- */

static void side_reset(struct http1_side *side)
{
    side->at = AT_LINE;
    side->begun = false;
    side->line_cut = false;
    side->chunked = side->other_coding = side->has_length = false;
    side->bytes = side->head_bytes = side->left = 0;
    side->line_len = 0;
}

static void ask_end(struct http1 *http)
{
    if (http->asking)
        http->asking->bytes_out = http->sides[ASK].bytes;
    http->asking = NULL;
    http->expects = false;
    side_reset(&http->sides[ASK]);
}

static int answer_end(struct talk *talk, uint64_t end_ns)
{
    struct http1 *http = talk->http;
    int r = 0;
    if (!http->orphan) {
        bool unsaid = http->asking == oldest(http) && http->expects;
        r = request_tell(talk, end_ns);
        /* Refused before its body was sent: that may come or not. */
        if (unsaid)
            http->sides[ASK].at = AT_LOST;
    }
    http->orphan = false;
    side_reset(&http->sides[ANSWER]);
    return r;
}

static int message_end(struct talk *talk)
{
    if (talk->which == ANSWER)
        return answer_end(talk, talk->piece->time_ns);
    ask_end(talk->http);
    return 0;
}

/* An answer that is not the last one: 100, 103. */
static void answer_interim(struct http1 *http)
{
    if (http->waiting.count > 0)
        oldest(http)->bytes_in += http->sides[ANSWER].bytes;
    if (http->status == 100)
        http->expects = false;
    http->orphan = false;
    side_reset(&http->sides[ANSWER]);
}

static int answer_begin(struct talk *talk, struct str line)
{
    struct http1 *http = talk->http;
    if (!status_line_parse(line, &http->status))
        return PROTOCOL_BROKEN;
    bool interim = http->status < 200 && http->status != 101;
    http->orphan = http->waiting.count == 0;
    if (!http->orphan && !interim) {
        http->answering = true;
        oldest(http)->first_byte_ns = talk->side->begin_ns;
    }
    return 0;
}

static int body_begin(struct talk *talk)
{
    struct http1_side *side = talk->side;
    side->head_bytes = 0;
    if (side->chunked) {
        side->at = AT_CHUNK_SIZE;
        return 0;
    }
    if (side->other_coding || (talk->which == ANSWER && !side->has_length)) {
        side->at = AT_UNTIL_CLOSE;
        return 0;
    }
    if (side->left == 0)
        return message_end(talk);
    side->at = AT_BODY;
    return 0;
}

static int head_end(struct talk *talk)
{
    struct http1 *http = talk->http;
    if (talk->which == ASK)
        return body_begin(talk);
    const struct http1_request *request = http->orphan ? NULL : oldest(http);
    unsigned status = http->status;
    if (status == 101 || (request && request->is_connect && status / 100 == 2)) {
        int r = message_end(talk);
        return r < 0 ? r : PROTOCOL_SWITCHED;
    }
    if (status < 200) {
        answer_interim(http);
        return 0;
    }
    if ((request && request->is_head) || status == 204 || status == 304)
        return message_end(talk);
    return body_begin(talk);
}

static bool name_is(struct str name, const char *text)
{
    return name.len == strlen(text) && strncasecmp(name.data, text, name.len) == 0;
}

static bool ends_word(struct str s, const char *word)
{
    size_t len = strlen(word);
    return s.len >= len && strncasecmp(s.data + s.len - len, word, len) == 0;
}

static int header_length(struct http1_side *side, struct str value)
{
    uint64_t length;
    if (str_to_u64(value, 10, &length) < 0 || (side->has_length && side->left != length))
        return PROTOCOL_BROKEN;
    side->has_length = true;
    side->left = length;
    return 0;
}

static int header(struct talk *talk, struct str line)
{
    struct http1 *http = talk->http;
    if (line.data[0] == ' ' || line.data[0] == '\t')
        return 0; /* goes on from the line before, as was allowed once */
    struct str value = line;
    struct str name = str_cut(&value, ':');
    if (name.len == 0 || name.len == line.len)
        return PROTOCOL_BROKEN;
    bool odd = false;
    for (size_t i = 0; i < name.len; i++) /* to the end: the compiler then takes many at once */
        odd |= (unsigned char)name.data[i] <= ' ' || name.data[i] == 0x7f;
    if (odd)
        return PROTOCOL_BROKEN;
    bool keeps = talk->which == ASK && http->asking && http->asking->keeps;
    /* Most lines say nothing to us, and there are many: the names below begin with these. */
    if (!keeps && !strchr("CcTtEeHh", name.data[0]))
        return 0;
    value = str_trim(value);
    if (keeps)
        http_payload_header(&http->asking->payload, name, value);
    if (name_is(name, "content-length"))
        return header_length(talk->side, value);
    if (name_is(name, "transfer-encoding")) {
        talk->side->chunked = ends_word(value, "chunked");
        talk->side->other_coding = !talk->side->chunked;
    }
    if (talk->which == ASK && name_is(name, "expect"))
        http->expects = name_is(value, "100-continue");
    if (talk->which == ASK && name_is(name, "host") && !http->service_told &&
        http_host_valid(value)) {
        http->service_told = true;
        return talk->teller->service(talk->teller->context, value);
    }
    return 0;
}

static int chunk_size(struct talk *talk, struct str line)
{
    struct http1_side *side = talk->side;
    if (str_to_u64(str_trim(str_cut(&line, ';')), 16, &side->left) < 0)
        return PROTOCOL_BROKEN;
    side->head_bytes = 0;
    side->at = side->left > 0 ? AT_CHUNK : AT_TRAILERS;
    return 0;
}

static int line_meant(struct talk *talk, struct str line)
{
    struct http1_side *side = talk->side;
    int r = 0;
    switch (side->at) {
    case AT_LINE:
        if (line.len == 0 && talk->which == ASK) {
            side_reset(side); /* blank lines before a request are allowed */
            return 0;
        }
        r = talk->which == ASK ? request_begin(talk, line, side->line_cut)
                               : answer_begin(talk, line);
        if (r == 0)
            side->at = AT_HEADERS;
        break;
    case AT_HEADERS:
        r = line.len == 0 ? head_end(talk) : header(talk, line);
        break;
    case AT_CHUNK_SIZE:
        return chunk_size(talk, line);
    case AT_CHUNK_END:
        side->at = AT_CHUNK_SIZE;
        return line.len == 0 ? 0 : PROTOCOL_BROKEN;
    default:
        return line.len == 0 ? message_end(talk) : 0;
    }
    side->line_cut = false;
    return r;
}

/* ---- pieces ---- */

/* Binary garbage is told from a long first line before its end, and what follows a chunk too. */
static bool garbage(const struct http1_side *side)
{
    if (side->at == AT_CHUNK_END)
        return side->line_len > 1 || (side->line_len == 1 && side->line[0] != '\r');
    if (side->at != AT_LINE)
        return false;
    for (size_t i = 0; i < side->line_len; i++)
        if (is_control(side->line[i]) && side->line[i] != '\r')
            return true;
    return false;
}

static int step_line(struct talk *talk, struct str *rest)
{
    struct http1_side *side = talk->side;
    struct str line;
    if (side->at == AT_LINE && !side->begun) {
        side->begun = true;
        side->begin_ns = talk->piece->time_ns;
        side->cookie = talk->piece->cookie;
    }
    int r = line_take(side, rest, &line);
    if (r < 0)
        return r;
    if (side->head_bytes > HEAD_BYTES_MAX)
        return PROTOCOL_BROKEN;
    if (r == 0)
        return garbage(side) ? PROTOCOL_BROKEN : 0;
    return line_meant(talk, line);
}

static int step_body(struct talk *talk, struct str *rest)
{
    struct http1_side *side = talk->side;
    bool counted = side->at == AT_BODY || side->at == AT_CHUNK;
    size_t len = counted ? (size_t)MIN(side->left, (uint64_t)rest->len) : rest->len;
    side->bytes += len;
    rest->data += len;
    rest->len -= len;
    if (!counted)
        return 0;
    side->left -= len;
    if (side->left > 0)
        return 0;
    if (side->at == AT_BODY)
        return message_end(talk);
    side->at = AT_CHUNK_END;
    return 0;
}

static bool at_line(const struct http1_side *side)
{
    return side->at == AT_LINE || side->at == AT_HEADERS || side->at == AT_CHUNK_SIZE ||
           side->at == AT_CHUNK_END || side->at == AT_TRAILERS;
}

/* From here on only a piece that begins a message says where we are. With a second request
 * waiting, its answer may be in what is missing. */
static int lose(struct talk *talk)
{
    talk->side->at = AT_LOST;
    talk->side->line_len = 0;
    return talk->which == ANSWER && talk->http->waiting.count > 1 ? PROTOCOL_BROKEN : 0;
}

/* The rest of a piece, of which only the length is known. */
static int gap(struct talk *talk, uint64_t bytes)
{
    struct http1_side *side = talk->side;
    int r = 0;
    side->bytes += bytes;
    if (side->at == AT_UNTIL_CLOSE)
        return 0;
    if (side->at == AT_BODY || side->at == AT_CHUNK) {
        if (bytes <= side->left) {
            side->left -= bytes;
            if (side->left > 0)
                return 0;
            if (side->at == AT_BODY)
                return message_end(talk);
            side->at = AT_CHUNK_END;
            return 0;
        }
        return side->at == AT_BODY ? PROTOCOL_BROKEN : lose(talk);
    }
    if (side->at == AT_LINE) {
        if (side->line_len == 0)
            return PROTOCOL_BROKEN; /* a message of which nothing is there */
        struct str line = {side->line, side->line_len};
        r = talk->which == ASK ? request_begin(talk, line, true) : answer_begin(talk, line);
    }
    return r != 0 ? r : lose(talk);
}

/* A body in chunks whose end is seen although its chunks were not. */
static bool ends_chunks(const struct protocol_piece *piece)
{
    struct str s = {(const char *)piece->head, piece->len};
    return piece->bytes <= piece->len && (str_is(s, "0\r\n\r\n") || str_ends(s, "\r\n0\r\n\r\n"));
}

/* At the beginning of a piece on a side that is lost: whether it is found. */
static int find(struct talk *talk)
{
    struct http1 *http = talk->http;
    if (talk->which == ASK) {
        if (!begins_request(talk->piece))
            return 0;
        if (http->waiting.count > 1 || (http->waiting.count == 1 && !http->answering))
            return PROTOCOL_BROKEN; /* a second request, or a body that looks like one */
        ask_end(http);
        return 0;
    }
    if (!begins_answer(talk->piece) || http->waiting.count == 0 ||
        (http->answering && http->waiting.count == 1))
        return 0;
    if (!http->answering && http->waiting.count > 1)
        return PROTOCOL_BROKEN;
    if (http->answering)
        return answer_end(talk, talk->side->last_ns);
    side_reset(talk->side);
    return 0;
}

static int piece_meant(struct talk *talk)
{
    struct http1_side *side = talk->side;
    const struct protocol_piece *piece = talk->piece;
    struct str rest = {(const char *)piece->head, piece->len};
    int r = side->at == AT_LOST ? find(talk) : 0;
    while (r == 0 && rest.len > 0)
        r = at_line(side) ? step_line(talk, &rest) : step_body(talk, &rest);
    if (r == 0 && piece->bytes > piece->len)
        r = gap(talk, piece->bytes - piece->len);
    if (r == 0 && side->at == AT_LOST && side->chunked && ends_chunks(piece) &&
        (talk->which == ASK || talk->http->answering))
        r = message_end(talk);
    side->last_ns = piece->time_ns;
    return r;
}

static int http1_piece(void *state, const struct protocol_opts *opts,
                       const struct protocol_piece *piece, const struct protocol_teller *teller)
{
    struct http1 *http = state;
    bool ask = (piece->direction == PROTOCOL_OUT) == (opts->role == REQUEST_CLIENT);
    enum http1_which which = ask ? ASK : ANSWER;
    struct talk talk = {http, &http->sides[which], which, opts, piece, teller};
    if (!http->started && !opts->from_start)
        http->sides[ASK].at = http->sides[ANSWER].at = AT_LOST;
    http->started = true;
    return piece_meant(&talk);
}

static int http1_close(void *state, const struct protocol_opts *opts, uint64_t time_ns,
                       const struct protocol_teller *teller)
{
    struct http1 *http = state;
    struct http1_side *answer = &http->sides[ANSWER];
    struct talk talk = {http, answer, ANSWER, opts, NULL, teller};
    int failed = 0;
    (void)time_ns;
    bool ends = answer->at == AT_UNTIL_CLOSE || answer->at == AT_LOST;
    if (ends && http->answering && http->waiting.count > 0)
        failed = request_tell(&talk, answer->last_ns);
    while (http->waiting.count > 0) {
        int r = request_tell(&talk, 0);
        failed = failed ? failed : r;
    }
    waiting_deinit(&http->waiting);
    free(http->sides[ASK].line);
    free(http->sides[ANSWER].line);
    return failed;
}

const struct protocol_ops protocol_http1 = {
    .protocol = REQUEST_HTTP1,
    .name = "http",
    .guess = http1_guess,
    .state_bytes = sizeof(struct http1),
    .piece = http1_piece,
    .close = http1_close,
};
