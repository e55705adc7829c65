/* DNS: questions and their answers, as datagrams or on a stream with lengths before them.
 *
 * Only the header and the first question are read, which stand in the first 300 bytes; they are
 * matched by id and question. A question that is asked again is the same request. What is no
 * message is passed over: a socket that is open to everybody gets anything, but not for ever. */
#include "protocol/protocol.h"

#include "base/map.h"
#include "protocol/waiting.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    HEADER_BYTES = 12,
    QUESTION_BYTES =
        288, /* header, a name of 255 bytes, type and class: what is kept of a message */
    NAME_BYTES = 256,
    JUMPS_MAX = 16,   /* from one part of a name to another */
    GARBAGE_MAX = 16, /* datagrams in a row that are no message */
    PORT_DNS = 53,
    PORT_MDNS = 5353,
    OPCODES = 6,
    REQUESTS_BYTES = PROTOCOL_MEMORY_BYTES / 2,
};
static const uint64_t PATIENCE_NS = UINT64_C(30000000000); /* no resolver waits longer */

struct dns_message {
    uint16_t id, type;
    unsigned opcode, rcode;
    bool answer, asks; /* `asks`: it has a question, or a record that says what it is about */
    uint64_t question; /* hash of name, type and class */
    uint64_t parameters;
    char text[NAME_BYTES + 32];
    size_t text_len;
};

struct dns_request {
    uint64_t start_ns, cookie, bytes_out, question, parameters;
    uint16_t id;
    size_t text_len;
    char text[];
};

enum dns_kind { DNS_UNKNOWN, DNS_DATAGRAMS, DNS_STREAM };

struct dns_side {
    uint8_t kept[QUESTION_BYTES]; /* of a message on a stream */
    size_t kept_len;
    unsigned prefix_len; /* of the two bytes before it */
    uint32_t len, left;  /* of the message */
    uint64_t begin_ns, cookie;
};

struct dns {
    enum dns_kind kind;
    unsigned garbage;
    struct waiting waiting;
    struct dns_side sides[2]; /* by direction; of streams */
};

static uint16_t be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* ---- names ---- */

struct name {
    char text[NAME_BYTES];
    size_t len;
};

static bool name_label(struct name *name, const uint8_t *label, size_t len)
{
    if (name->len + len + 1 >= sizeof(name->text))
        return false;
    if (name->len > 0)
        name->text[name->len++] = '.';
    for (size_t i = 0; i < len; i++) {
        unsigned char c = label[i];
        /* Resolvers mix upper and lower case so that answers are hard to forge. */
        name->text[name->len++] = isgraph(c) && c != '.' ? (char)tolower(c) : '_';
    }
    return true;
}

/* Parts of names may stand elsewhere; always before, so that nothing goes round in circles.
 * *at is moved behind the name. */
static bool name_read(const uint8_t *message, size_t len, size_t *at, struct name *ret)
{
    size_t from = *at, lowest = *at;
    bool jumped = false;
    ret->len = 0;
    for (unsigned jumps = 0; from < len;) {
        uint8_t size = message[from];
        if (size == 0) {
            *at = jumped ? *at : from + 1;
            return true;
        }
        if ((size & 0xc0) == 0xc0) {
            if (from + 2 > len || ++jumps > JUMPS_MAX)
                return false;
            size_t to = be16(message + from) & 0x3fff;
            if (to >= lowest || to < HEADER_BYTES)
                return false;
            *at = jumped ? *at : from + 2;
            jumped = true;
            from = lowest = to;
            continue;
        }
        if (size > 63 || from + 1 + size > len || !name_label(ret, message + from + 1, size))
            return false;
        from += 1 + (size_t)size;
    }
    return false;
}

/* Of a reverse lookup the address is a value: its labels become one "?". */
static struct str name_fold(struct name *name, uint64_t *ret_hash)
{
    static const char *const ends[] = {".in-addr.arpa", ".ip6.arpa"};
    struct str text = {name->text, name->len};
    *ret_hash = 0;
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        if (!str_ends(text, ends[i]))
            continue;
        size_t value = text.len - strlen(ends[i]);
        uint64_t hash = hash_bytes(text.data, value);
        *ret_hash = hash ? hash : 1;
        name->text[value - 1] = '?';
        return (struct str){text.data + value - 1, text.len - value + 1};
    }
    return text.len > 0 ? text : STR(".");
}

/* ---- messages ---- */

static const char *type_name(uint16_t type, char *room, size_t size)
{
    static const struct {
        uint16_t type;
        const char *name;
    } types[] = {
        {1, "A"},      {2, "NS"},    {5, "CNAME"},  {6, "SOA"},    {12, "PTR"},  {13, "HINFO"},
        {15, "MX"},    {16, "TXT"},  {28, "AAAA"},  {29, "LOC"},   {33, "SRV"},  {35, "NAPTR"},
        {39, "DNAME"}, {43, "DS"},   {44, "SSHFP"}, {46, "RRSIG"}, {47, "NSEC"}, {48, "DNSKEY"},
        {50, "NSEC3"}, {52, "TLSA"}, {64, "SVCB"},  {65, "HTTPS"}, {99, "SPF"},  {251, "IXFR"},
        {252, "AXFR"}, {255, "ANY"}, {256, "URI"},  {257, "CAA"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (types[i].type == type)
            return types[i].name;
    snprintf(room, size, "TYPE%u", type);
    return room;
}

static struct str rcode_name(unsigned rcode)
{
    static const char *const names[16] = {"NOERROR",  "FORMERR",  "SERVFAIL", "NXDOMAIN",
                                          "NOTIMP",   "REFUSED",  "YXDOMAIN", "YXRRSET",
                                          "NXRRSET",  "NOTAUTH",  "NOTZONE",  "DSOTYPENI",
                                          "RCODE 12", "RCODE 13", "RCODE 14", "RCODE 15"};
    return str_from(names[rcode & 15]);
}

/* Whether 12 bytes may be the header of a message: not proven by them, but seldom by chance. */
static bool header_valid(const uint8_t *at, size_t len)
{
    if (len < HEADER_BYTES)
        return false;
    unsigned opcode = at[2] >> 3 & 15, questions = be16(at + 4), answers = be16(at + 6);
    bool answer = at[2] & 0x80;
    if (opcode >= OPCODES || at[3] & 0x40)
        return false;
    /* Who asks asks one thing (multicast a few), and knows no answer yet or a few. */
    return answer ? questions <= 16 : questions >= 1 && questions <= 16 && answers <= 64;
}

static void message_text(struct dns_message *message, struct name *name)
{
    static const char *const opcodes[OPCODES] = {"", "IQUERY", "STATUS", "", "NOTIFY", "UPDATE"};
    char room[16];
    const char *kind = message->opcode ? opcodes[message->opcode]
                                       : type_name(message->type, room, sizeof(room));
    struct str text = name_fold(name, &message->parameters);
    int len = snprintf(message->text, sizeof(message->text), "%s %.*s", kind, STR_FMT(text));
    message->text_len = MIN((size_t)len, sizeof(message->text) - 1);
}

/* As much of a message as is kept. */
static bool message_read(const uint8_t *data, size_t len, struct dns_message *ret)
{
    struct name name;
    size_t at = HEADER_BYTES;
    if (!header_valid(data, len))
        return false;
    *ret = (struct dns_message){
        .id = be16(data),
        .answer = data[2] & 0x80,
        .opcode = data[2] >> 3 & 15,
        .rcode = data[3] & 15,
    };
    /* Answers of multicast repeat no question: their first record says what they are about. */
    ret->asks = be16(data + 4) > 0 || be16(data + 6) > 0;
    if (!ret->asks)
        return true;
    if (!name_read(data, len, &at, &name) || at + 4 > len)
        return false;
    ret->type = be16(data + at);
    /* Its highest bit is multicast's own: "answer to me", "forget others". */
    uint16_t class = be16(data + at + 2) & 0x7fff;
    ret->question = hash_u64(hash_bytes(name.text, name.len) + ((uint64_t)ret->type << 16 | class));
    message_text(ret, &name);
    return true;
}

/* ---- guesses ---- */

/* A datagram is a message as it is; before one on a stream stands its length. That fits to the
 * byte only by intention, so it is asked first. */
static enum dns_kind kind_of(const struct protocol_piece *piece, struct dns_message *ret)
{
    const uint8_t *head = piece->head;
    size_t len = piece->len;
    if (len > 2 && be16(head) + UINT64_C(2) == piece->bytes && message_read(head + 2, len - 2, ret))
        return DNS_STREAM;
    if (message_read(head, len, ret))
        return DNS_DATAGRAMS;
    return len > 2 && message_read(head + 2, len - 2, ret) ? DNS_STREAM : DNS_UNKNOWN;
}

/* The beginning of a stream, although there is no message in it yet. */
static bool begins_stream(const struct protocol_piece *piece)
{
    if (piece->len < HEADER_BYTES)
        return true;
    return be16(piece->head) >= HEADER_BYTES &&
           (piece->len < HEADER_BYTES + 2 || header_valid(piece->head + 2, piece->len - 2));
}

static int dns_guess(const struct protocol_piece *first, uint16_t port)
{
    struct dns_message message;
    if ((port != PORT_DNS && port != PORT_MDNS) || kind_of(first, &message) == DNS_UNKNOWN)
        return 0;
    bool out = first->direction == PROTOCOL_OUT;
    return out != message.answer ? REQUEST_CLIENT : REQUEST_SERVER;
}

/* ---- requests ---- */

static size_t request_memory(const struct dns_request *request)
{
    return sizeof(*request) + request->text_len;
}

/* `message` NULL: there is no answer, and there will be none. */
static int request_tell(struct dns *dns, uint32_t at, const struct dns_message *message,
                        uint64_t first_ns, uint64_t end_ns, uint64_t bytes_in,
                        const struct protocol_teller *teller)
{
    struct dns_request *request = dns->waiting.rows[at];
    const struct protocol_request told = {
        .start_ns = request->start_ns,
        .first_byte_ns = first_ns,
        .end_ns = end_ns,
        .bytes_out = request->bytes_out,
        .bytes_in = bytes_in,
        .text = {request->text, request->text_len},
        .parameters = request->parameters,
        .result = message ? rcode_name(message->rcode) : (struct str){0},
        .flags = !message         ? REQUEST_UNANSWERED
                 : message->rcode ? REQUEST_FAILED
                                  : 0,
        .cookie = request->cookie,
    };
    waiting_pull(&dns->waiting, at, request_memory(request));
    int r = teller->request(teller->context, &told);
    free(request);
    return r;
}

/* The newest is looked at first: ids come again. An answer without a question has its id only. */
static bool request_find(const struct dns *dns, const struct dns_message *message, uint32_t *ret)
{
    for (uint32_t i = dns->waiting.count; i > 0; i--) {
        const struct dns_request *request = dns->waiting.rows[i - 1];
        if (request->id != message->id || (message->asks && request->question != message->question))
            continue;
        *ret = i - 1;
        return true;
    }
    return false;
}

/* The oldest go where there are too many: datagrams get lost. */
static int request_room(struct dns *dns, size_t memory, const struct protocol_teller *teller)
{
    while (dns->waiting.count > 0 && (dns->waiting.count >= PROTOCOL_PENDING_MAX ||
                                      dns->waiting.memory + memory > REQUESTS_BYTES)) {
        int r = request_tell(dns, 0, NULL, 0, 0, 0, teller);
        if (r != 0)
            return r;
    }
    return 0;
}

static int ask(struct dns *dns, const struct dns_message *message, uint64_t begin_ns,
               uint64_t cookie, uint64_t bytes, const struct protocol_teller *teller)
{
    uint32_t at;
    size_t memory = sizeof(struct dns_request) + message->text_len;
    if (request_find(dns, message, &at)) {
        struct dns_request *again = dns->waiting.rows[at];
        again->bytes_out += bytes;
        return 0;
    }
    int r = request_room(dns, memory, teller);
    if (r != 0)
        return r;
    struct dns_request *request = malloc(memory);
    if (!request)
        return -ENOMEM;
    *request = (struct dns_request){
        .start_ns = begin_ns,
        .cookie = cookie,
        .bytes_out = bytes,
        .question = message->question,
        .parameters = message->parameters,
        .id = message->id,
        .text_len = message->text_len,
    };
    memcpy(request->text, message->text, message->text_len);
    r = waiting_push(&dns->waiting, request, memory, REQUESTS_BYTES);
    if (r != 0)
        free(request);
    return r;
}

/* Who has not been answered for so long will not be. */
static int expire(struct dns *dns, uint64_t now_ns, const struct protocol_teller *teller)
{
    while (dns->waiting.count > 0) {
        const struct dns_request *oldest = dns->waiting.rows[0];
        if (oldest->start_ns + PATIENCE_NS >= now_ns)
            break;
        int r = request_tell(dns, 0, NULL, 0, 0, 0, teller);
        if (r != 0)
            return r;
    }
    return 0;
}

/* ---- pieces ---- */

struct talk {
    struct dns *dns;
    const struct protocol_opts *opts;
    const struct protocol_piece *piece;
    const struct protocol_teller *teller;
};

static int message_meant(struct talk *talk, const uint8_t *data, size_t len, uint64_t bytes,
                         uint64_t begin_ns, uint64_t cookie)
{
    struct dns *dns = talk->dns;
    struct dns_message message;
    uint32_t at;
    bool asks = (talk->piece->direction == PROTOCOL_OUT) == (talk->opts->role == REQUEST_CLIENT);
    if (!message_read(data, len, &message))
        return dns->kind == DNS_STREAM || ++dns->garbage > GARBAGE_MAX ? PROTOCOL_BROKEN : 0;
    dns->garbage = 0;
    /* A socket of multicast hears what others ask, and what it said itself. */
    if (message.answer == asks)
        return 0;
    if (asks)
        return ask(dns, &message, begin_ns, cookie, bytes, talk->teller);
    if (!request_find(dns, &message, &at))
        return 0;
    return request_tell(dns, at, &message, begin_ns, talk->piece->time_ns, bytes, talk->teller);
}

/* One message on a stream, or as much of it as is here; takes it off *rest. */
static int stream_step(struct talk *talk, struct str *rest)
{
    struct dns_side *side = &talk->dns->sides[talk->piece->direction];
    if (side->prefix_len < 2) {
        if (side->prefix_len++ == 0) {
            side->begin_ns = talk->piece->time_ns;
            side->cookie = talk->piece->cookie;
            side->len = 0;
        }
        side->len = side->len << 8 | (uint8_t)rest->data[0];
        side->left = side->len;
        side->kept_len = 0;
        rest->data++;
        rest->len--;
        return side->prefix_len == 2 && side->len < HEADER_BYTES ? PROTOCOL_BROKEN : 0;
    }
    size_t len = MIN((size_t)side->left, rest->len);
    size_t kept = MIN(len, sizeof(side->kept) - side->kept_len);
    memcpy(side->kept + side->kept_len, rest->data, kept);
    side->kept_len += kept;
    side->left -= (uint32_t)len;
    rest->data += len;
    rest->len -= len;
    if (side->left > 0)
        return 0;
    side->prefix_len = 0;
    return message_meant(talk, side->kept, side->kept_len, side->len + UINT64_C(2), side->begin_ns,
                         side->cookie);
}

static int stream_gap(struct talk *talk, uint64_t bytes)
{
    struct dns_side *side = &talk->dns->sides[talk->piece->direction];
    bool enough = side->kept_len == sizeof(side->kept);
    if (side->prefix_len < 2 || bytes > side->left || !enough)
        return PROTOCOL_BROKEN;
    side->left -= (uint32_t)bytes;
    if (side->left > 0)
        return 0;
    side->prefix_len = 0;
    return message_meant(talk, side->kept, side->kept_len, side->len + UINT64_C(2), side->begin_ns,
                         side->cookie);
}

static int dns_piece(void *state, const struct protocol_opts *opts,
                     const struct protocol_piece *piece, const struct protocol_teller *teller)
{
    struct dns *dns = state;
    struct talk talk = {dns, opts, piece, teller};
    struct str rest = {(const char *)piece->head, piece->len};
    int r = expire(dns, piece->time_ns, teller);
    struct dns_message unused;
    if (dns->kind == DNS_UNKNOWN)
        dns->kind = kind_of(piece, &unused);
    if (dns->kind == DNS_UNKNOWN && begins_stream(piece))
        dns->kind = DNS_STREAM;
    if (r == 0 && dns->kind != DNS_STREAM)
        r = message_meant(&talk, piece->head, piece->len, piece->bytes, piece->time_ns,
                          piece->cookie);
    while (r == 0 && dns->kind == DNS_STREAM && rest.len > 0)
        r = stream_step(&talk, &rest);
    if (r == 0 && dns->kind == DNS_STREAM && piece->bytes > piece->len)
        r = stream_gap(&talk, piece->bytes - piece->len);
    return r;
}

static int dns_close(void *state, const struct protocol_opts *opts, uint64_t time_ns,
                     const struct protocol_teller *teller)
{
    struct dns *dns = state;
    int failed = 0;
    (void)opts;
    (void)time_ns;
    while (dns->waiting.count > 0) {
        int r = request_tell(dns, 0, NULL, 0, 0, 0, teller);
        failed = failed ? failed : r;
    }
    waiting_deinit(&dns->waiting);
    return failed;
}

const struct protocol_ops protocol_dns = {
    .protocol = REQUEST_DNS,
    .name = "dns",
    .guess = dns_guess,
    .state_bytes = sizeof(struct dns),
    .piece = dns_piece,
    .close = dns_close,
};
