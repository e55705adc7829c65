/* Redis: commands and their replies, RESP 2 and 3, pipelines, transactions, subscriptions.
 *
 * A command's text is its name and how many arguments it has; arguments are values, of which only
 * a hash is made. Replies answer commands in order; what a server sends unasked (messages of a
 * subscription, what MONITOR shows) is told apart and passed over. */
#include "base/map.h"
#include "protocol/pending.h"
#include "protocol/resp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    NAME_BYTES = 32,
    ARGUMENTS_SHOWN = 3,
    KNOWN_MAX = 16, /* a power of two */
    PAYLOAD_BYTES = 256,
    PLAIN_BYTES = 128,                        /* of a command's text */
    QUEUE_CROWDED = PROTOCOL_PENDING_MAX / 2, /* from here on commands alike share a place */
};

enum kind { KIND_COMMAND, KIND_SUBSCRIBE };

/* A command as far as it was seen. */
struct command {
    char name[NAME_BYTES + 1];
    char second[NAME_BYTES + 1], third[NAME_BYTES + 1]; /* arguments that may be part of its name */
    uint64_t hash;
    char payload[PAYLOAD_BYTES];
    size_t payload_len;
};

/* What is to be said of commands that are alike: the same name and as many arguments. */
struct known_command {
    char name[NAME_BYTES + 1], second[NAME_BYTES + 1];
    bool contains; /* `second` is part of its name */
    bool hidden, subscribes;
    uint32_t arguments;
    struct text *text;
};

struct redis {
    struct resp ask, answer;
    struct command command;
    char first[NAME_BYTES + 1]; /* scalar of a reply */
    struct pending_queue queue;
    struct texts texts;
    struct known_command known[KNOWN_MAX]; /* by name and arguments */
    uint64_t answer_ns, lost_ns, lost_cookie;
    bool begun;
    bool subscriber, monitor;
    bool replies_off;
    uint32_t replies_skip;
    bool ask_lost;    /* commands were not seen: replies tell how many */
    bool replied;     /* since then */
    bool answer_lost; /* within a reply; found again when the client goes on */
};

struct look {
    struct redis *redis;
    const struct protocol_teller *teller;
};

static void name_add(char *name, const uint8_t *bytes, size_t len)
{
    size_t at = strlen(name);
    for (size_t i = 0; i < len && at < NAME_BYTES; i++) {
        uint8_t c = bytes[i];
        if (c >= 'a' && c <= 'z')
            c = (uint8_t)(c - 32);
        bool plain = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
                     c == '-' || c == '|';
        name[at++] = plain ? (char)c : '?';
    }
    name[at] = '\0';
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        if (name[0] == names[i][0] && strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* --- what the client sends --- */

static void ask_text(void *context, const struct resp *resp, const uint8_t *bytes, size_t len)
{
    struct redis *redis = ((struct look *)context)->redis;
    struct command *command = &redis->command;
    char *names[] = {command->name, command->second, command->third};
    if (resp->index < ARRAY_SIZE(names))
        name_add(names[resp->index], bytes, len);
    /* Byte by byte, so that it does not matter where a piece ends. */
    if (resp->index > 0)
        for (size_t i = 0; i < len; i++)
            command->hash = (command->hash ^ bytes[i]) * 0x100000001b3;
    if (redis->texts.payloads) {
        len = MIN(len, sizeof(command->payload) - command->payload_len);
        memcpy(command->payload + command->payload_len, bytes, len);
        command->payload_len += len;
    }
}

static void ask_scalar(void *context, const struct resp *resp)
{
    struct redis *redis = ((struct look *)context)->redis;
    struct command *command = &redis->command;
    if (resp->index > 0)
        command->hash = hash_u64(command->hash ^ resp->index);
    if (redis->texts.payloads && command->payload_len < sizeof(command->payload))
        command->payload[command->payload_len++] = ' ';
}

/* Their first argument says what they do. */
static const char *const containers[] = {
    "ACL",    "CLIENT", "CLUSTER", "COMMAND", "CONFIG",  "DEBUG",  "FUNCTION", "LATENCY",  "MEMORY",
    "MODULE", "OBJECT", "PUBSUB",  "SCRIPT",  "SLOWLOG", "XGROUP", "XINFO",    "SENTINEL", NULL,
};
/* They take as many keys or values as one likes. */
static const char *const variadic[] = {
    "MGET",         "DEL",        "EXISTS",      "UNLINK",     "TOUCH",        "MSET",
    "MSETNX",       "SADD",       "SREM",        "LPUSH",      "RPUSH",        "LPUSHX",
    "RPUSHX",       "HMGET",      "HDEL",        "HMSET",      "ZADD",         "ZREM",
    "PFADD",        "PFCOUNT",    "PFMERGE",     "WATCH",      "SINTER",       "SUNION",
    "SDIFF",        "SMISMEMBER", "ZMSCORE",     "GEOADD",     "XADD",         "XDEL",
    "XACK",         "SUBSCRIBE",  "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE",
    "SUNSUBSCRIBE", "EVAL",       "EVALSHA",     "EVAL_RO",    "EVALSHA_RO",   "FCALL",
    "FCALL_RO",     NULL,
};
static const char *const subscribing[] = {
    "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE", NULL,
};
/* Passwords may be among their arguments: of these not even a hash is made. */
static const char *const secret[] = {"AUTH", "HELLO", "ACL", "CONFIG", "MIGRATE", "SENTINEL", NULL};

static size_t word_add(char *to, size_t room, size_t len, struct str word)
{
    size_t more = MIN(word.len, room - len);
    memcpy(to + len, word.data, more);
    return len + more;
}

static size_t command_text(const struct known_command *known, char *to, size_t room)
{
    uint32_t arguments = known->arguments;
    size_t len = word_add(to, room, 0, known->name[0] ? str_from(known->name) : STR("?"));
    if (known->contains) {
        len = word_add(to, room, len, STR(" "));
        len = word_add(to, room, len, str_from(known->second));
        arguments--;
    }
    bool many = is_one_of(known->name, variadic);
    uint32_t shown = many ? MIN(arguments, 1) : MIN(arguments, (uint32_t)ARGUMENTS_SHOWN);
    for (uint32_t i = 0; i < shown; i++)
        len = word_add(to, room, len, STR(" ?"));
    return shown > 0 && (many || arguments > shown) ? word_add(to, room, len, STR("…")) : len;
}

static struct known_command *known_at(struct redis *redis, const struct command *command,
                                      uint32_t arguments)
{
    uint32_t at = arguments * 5 + (uint32_t)(uint8_t)command->name[0] * 3 +
                  (uint32_t)(uint8_t)command->name[command->name[0] ? 1 : 0] * 7;
    return &redis->known[at & (KNOWN_MAX - 1)];
}

static bool known_is(const struct known_command *known, const struct command *command,
                     uint32_t arguments)
{
    return known->text && known->arguments == arguments &&
           strcmp(known->name, command->name) == 0 &&
           (!known->contains || strcmp(known->second, command->second) == 0);
}

/* The same command is the same text, as long as no other one took its place. */
static struct known_command *command_known(struct redis *redis, const struct command *command,
                                           uint32_t arguments)
{
    struct known_command *known = known_at(redis, command, arguments);
    if (known_is(known, command, arguments))
        return known;
    text_drop(&redis->texts, known->text);
    *known = (struct known_command){
        .arguments = arguments,
        .contains = arguments > 0 && is_one_of(command->name, containers),
        .hidden = is_one_of(command->name, secret),
        .subscribes = is_one_of(command->name, subscribing),
    };
    memcpy(known->name, command->name, sizeof(known->name));
    memcpy(known->second, command->second, sizeof(known->second));
    char plain[PLAIN_BYTES];
    struct str text = {plain, command_text(known, plain, sizeof(plain))};
    known->text = text_plain(&redis->texts, text, text);
    return known;
}

/* Of which nothing may be left from the one before. */
static void command_clear(struct command *command)
{
    command->name[0] = command->second[0] = command->third[0] = '\0';
    command->hash = 0;
    command->payload_len = 0;
}

/* CLIENT REPLY decides whether there are any. True: this command gets none. */
static bool command_unanswered(struct redis *redis, const struct command *command)
{
    bool reply = strcmp(command->name, "CLIENT") == 0 && strcmp(command->second, "REPLY") == 0;
    if (reply && strcmp(command->third, "ON") == 0) {
        redis->replies_off = false;
        return false;
    }
    if (reply && strcmp(command->third, "OFF") == 0)
        redis->replies_off = true;
    if (reply && strcmp(command->third, "SKIP") == 0)
        redis->replies_skip = 2;
    bool skipped = redis->replies_skip > 0;
    if (skipped)
        redis->replies_skip--;
    return redis->replies_off || skipped;
}

static int command_push(struct redis *redis, const struct pending *row)
{
    struct pending *last = pending_last(&redis->queue);
    /* A reply each comes for those alike, too; only their values are not told apart any more. */
    if (last && redis->queue.count >= QUEUE_CROWDED && last->text == row->text &&
        last->cookie == row->cookie && last->kind == KIND_COMMAND && row->kind == KIND_COMMAND &&
        last->alike < UINT16_MAX) {
        last->alike++;
        last->bytes_out += row->bytes_out;
        text_drop(&redis->texts, row->text);
        return 0;
    }
    int r = pending_push(&redis->queue, &redis->texts, row);
    return r == -ENOBUFS ? PROTOCOL_BROKEN : r;
}

/* Nobody will answer: it is told at once. */
static int command_tell(struct look *look, const struct pending *row)
{
    struct redis *redis = look->redis;
    struct pending_queue alone = {0};
    int r = pending_push(&alone, &redis->texts, row);
    if (r == 0)
        r = pending_tell(&alone, &redis->texts, NULL, 0, look->teller);
    pending_deinit(&alone, &redis->texts);
    return r;
}

/* With payloads, every command has a text of its own. */
static struct text *text_of(struct redis *redis, const struct known_command *known,
                            const struct command *command)
{
    if (!redis->texts.payloads || !known->text)
        return text_take(known->text);
    struct str text = {known->text->data, known->text->len};
    size_t payload = command->payload_len > 0 ? command->payload_len - 1 : 0;
    return text_plain(&redis->texts, text,
                      known->hidden ? text : (struct str){command->payload, payload});
}

/* A command has ended, or the rest of its arguments is out of sight (`cut`). */
static int command_end(struct look *look, const struct resp *resp, uint32_t arguments, bool cut)
{
    struct redis *redis = look->redis;
    struct command *command = &redis->command;
    if (strcmp(command->name, "SYNC") == 0 || strcmp(command->name, "PSYNC") == 0)
        return PROTOCOL_SWITCHED;
    const struct known_command *known = command_known(redis, command, arguments);
    redis->monitor = redis->monitor || strcmp(command->name, "MONITOR") == 0;
    redis->subscriber = redis->subscriber || known->subscribes;
    struct pending row = {
        .kind = known->subscribes ? KIND_SUBSCRIBE : KIND_COMMAND,
        .start_ns = resp->start_ns,
        .cookie = resp->cookie,
        .bytes_out = cut ? resp->lost_bytes : resp->bytes,
        .answers = known->subscribes ? (uint16_t)MIN(MAX(arguments, 1), UINT16_MAX) : 1,
        .flags = cut ? REQUEST_CUT : 0,
        .text = text_of(redis, known, command),
        .parameters = known->hidden || arguments == 0 ? 0
                      : command->hash                 ? command->hash
                                                      : 1,
    };
    bool unanswered = command_unanswered(redis, command);
    command_clear(command);
    return unanswered ? command_tell(look, &row) : command_push(redis, &row);
}

static int ask_whole(void *context, const struct resp *resp)
{
    /* "*0" is no command, and has no reply. */
    return resp->index == 0 ? 0 : command_end(context, resp, resp->index - 1, false);
}

static const struct resp_ops ask_ops = {ask_text, ask_scalar, ask_whole};

/* --- what the server sends --- */

static void answer_text(void *context, const struct resp *resp, const uint8_t *bytes, size_t len)
{
    struct redis *redis = ((struct look *)context)->redis;
    if (resp->index == 0)
        name_add(redis->first, bytes, len);
}

static void answer_scalar(void *context, const struct resp *resp)
{
    (void)context;
    (void)resp;
}

/* "ERR unknown command" is an ERR. */
static void answer_result(struct pending *row, char type, const char *first)
{
    if (type == '-' || type == '!') {
        pending_result(row, "%.*s", (int)MIN(strcspn(first, "?"), (size_t)RESULT_BYTES - 1), first);
        row->flags |= REQUEST_FAILED;
    } else if (type == '+' && (strcmp(first, "OK") == 0 || strcmp(first, "QUEUED") == 0 ||
                               strcmp(first, "PONG") == 0)) {
        memcpy(row->result, first, strlen(first) + 1); /* one of those three */
    }
}

/* What a server sends of its own accord, and confirmations of subscriptions, which look alike.
 * True: it was one, and is dealt with. */
static bool answer_pushed(struct look *look, const struct resp *resp, const char *first, int *ret)
{
    static const char *const messages[] = {"MESSAGE", "PMESSAGE", "SMESSAGE", NULL};
    struct redis *redis = look->redis;
    struct pending *row = pending_at(&redis->queue, 0);
    *ret = 0;
    if (redis->monitor && resp->top == '+' && first[0] >= '0' && first[0] <= '9')
        return true;
    if (resp->top != '>' && !(resp->top == '*' && redis->subscriber))
        return false;
    if (is_one_of(first, messages))
        return true;
    if (!is_one_of(first, subscribing))
        return resp->top == '>';
    size_t len = strlen(first);
    if (!row || row->kind != KIND_SUBSCRIBE || !row->text || row->text->len < len ||
        memcmp(row->text->data, first, len) != 0)
        return true;
    row->first_byte_ns = row->first_byte_ns ? row->first_byte_ns : resp->start_ns;
    row->bytes_in += resp->bytes;
    if (--row->answers == 0)
        *ret = pending_tell(&redis->queue, &redis->texts, NULL, resp->end_ns, look->teller);
    return true;
}

/* The command of this reply was beyond what is looked at of a piece. */
static int answer_unseen(struct redis *redis)
{
    struct pending row = {
        .kind = KIND_COMMAND,
        .start_ns = redis->lost_ns,
        .cookie = redis->lost_cookie,
        .answers = 1,
        .flags = REQUEST_CUT,
        .text = text_plain(&redis->texts, STR("<unseen command>"), STR("")),
    };
    return command_push(redis, &row);
}

static int answer_whole(void *context, const struct resp *resp)
{
    struct look *look = context;
    struct redis *redis = look->redis;
    char first[NAME_BYTES + 1];
    int r;
    memcpy(first, redis->first, sizeof(first));
    redis->first[0] = '\0';
    if (answer_pushed(look, resp, first, &r))
        return r;
    if (redis->queue.count == 0 && redis->ask_lost) {
        r = answer_unseen(redis);
        if (r != 0)
            return r;
    }
    redis->replied = true;
    struct pending *row = pending_at(&redis->queue, 0);
    if (!row) /* it refuses a client before the first command */
        return resp->top == '-' ? PROTOCOL_GOES_ON : PROTOCOL_BROKEN;
    row->first_byte_ns = row->first_byte_ns ? row->first_byte_ns : resp->start_ns;
    row->bytes_in += resp->bytes;
    answer_result(row, resp->top, first);
    return pending_tell(&redis->queue, &redis->texts, NULL, resp->end_ns, look->teller);
}

static const struct resp_ops answer_ops = {answer_text, answer_scalar, answer_whole};

/* --- the connection --- */

/* All that was asked is answered when the client goes on. */
static int lost_tell(struct look *look)
{
    struct redis *redis = look->redis;
    int r = 0;
    redis->answer_lost = false;
    while (r == 0 && redis->queue.count > 0)
        r = pending_tell(&redis->queue, &redis->texts, NULL, redis->answer_ns, look->teller);
    return r;
}

static int piece_answer(struct look *look, const struct protocol_piece *piece)
{
    struct redis *redis = look->redis;
    struct pending *row = pending_at(&redis->queue, 0);
    redis->answer_ns = piece->time_ns;
    if (redis->answer_lost) {
        if (row)
            row->bytes_in += piece->bytes;
        return 0;
    }
    int r = resp_feed(&redis->answer, &answer_ops, look, piece);
    if (r != RESP_LOST)
        return r;
    resp_forget(&redis->answer);
    row = pending_at(&redis->queue, 0);
    redis->first[0] = '\0';
    if (!row || redis->ask_lost)
        return PROTOCOL_BROKEN;
    row->first_byte_ns = row->first_byte_ns ? row->first_byte_ns : piece->time_ns;
    row->bytes_in += redis->answer.lost_bytes;
    redis->answer_lost = true;
    return 0;
}

static int piece_ask(struct look *look, const struct protocol_piece *piece)
{
    struct redis *redis = look->redis;
    int r = redis->answer_lost ? lost_tell(look) : 0;
    if (r != 0)
        return r;
    if (redis->ask_lost) {
        /* A new batch begins where a reply has ended, and with a command. */
        bool command = piece->len > 0 && piece->head[0] == '*' &&
                       (piece->len == 1 || (piece->head[1] >= '1' && piece->head[1] <= '9'));
        if (!redis->replied || !resp_between(&redis->answer) || !command)
            return 0;
        redis->ask_lost = false;
    }
    r = resp_feed(&redis->ask, &ask_ops, look, piece);
    if (r != RESP_LOST)
        return r;
    /* Its name is enough to tell a command; how many follow it out of sight, their replies tell. */
    bool named = redis->ask.index >= 2 && redis->ask.top == '*';
    r = named ? command_end(look, &redis->ask, (uint32_t)redis->ask.announced - 1, true) : 0;
    resp_forget(&redis->ask);
    command_clear(&redis->command);
    redis->ask_lost = true;
    redis->replied = false;
    redis->lost_ns = piece->time_ns;
    redis->lost_cookie = piece->cookie;
    return r;
}

static int redis_piece(void *state, const struct protocol_opts *opts,
                       const struct protocol_piece *piece, const struct protocol_teller *teller)
{
    struct redis *redis = state;
    struct look look = {redis, teller};
    bool asks = (piece->direction == PROTOCOL_OUT) == (opts->role == REQUEST_CLIENT);
    if (piece->bytes == 0)
        return 0;
    if (!redis->begun) {
        redis->begun = true;
        redis->ask.commands = true;
        redis->texts.payloads = opts->payloads;
        redis->answer_lost = !opts->from_start;
    }
    return asks ? piece_ask(&look, piece) : piece_answer(&look, piece);
}

static int redis_close(void *state, const struct protocol_opts *opts, uint64_t time_ns,
                       const struct protocol_teller *teller)
{
    (void)opts;
    (void)time_ns;
    struct redis *redis = state;
    int r = 0;
    while (r == 0 && redis->queue.count > 0) {
        bool over = redis->answer_lost && pending_at(&redis->queue, 0)->first_byte_ns;
        r = pending_tell(&redis->queue, &redis->texts, NULL, over ? redis->answer_ns : 0, teller);
    }
    for (size_t i = 0; i < KNOWN_MAX; i++)
        text_drop(&redis->texts, redis->known[i].text);
    pending_deinit(&redis->queue, &redis->texts);
    return r;
}

/* A reply may be a list of texts, too: these are what lists of texts rarely begin with. */
static const char *const common[] = {
    "GET",           "SET",      "SETEX",   "SETNX",      "GETSET",      "GETDEL",    "GETEX",
    "INCR",          "DECR",     "INCRBY",  "DECRBY",     "APPEND",      "STRLEN",    "EXPIRE",
    "TTL",           "PTTL",     "PEXPIRE", "PERSIST",    "TYPE",        "KEYS",      "SCAN",
    "HGET",          "HSET",     "HGETALL", "HKEYS",      "HVALS",       "HLEN",      "HEXISTS",
    "HINCRBY",       "HSCAN",    "LPOP",    "RPOP",       "LLEN",        "LRANGE",    "LINDEX",
    "LTRIM",         "BLPOP",    "BRPOP",   "LREM",       "SMEMBERS",    "SISMEMBER", "SCARD",
    "SPOP",          "SSCAN",    "ZRANGE",  "ZSCORE",     "ZCARD",       "ZRANK",     "ZINCRBY",
    "ZRANGEBYSCORE", "ZCOUNT",   "XREAD",   "XREADGROUP", "XRANGE",      "PUBLISH",   "MULTI",
    "EXEC",          "DISCARD",  "PING",    "ECHO",       "SELECT",      "INFO",      "AUTH",
    "HELLO",         "QUIT",     "DBSIZE",  "TIME",       "MONITOR",     "FLUSHDB",   "FLUSHALL",
    "ROLE",          "REPLCONF", "PSYNC",   "SYNC",       "READONLY",    "ASKING",    "GETRANGE",
    "SETRANGE",      "GETBIT",   "SETBIT",  "BITCOUNT",   "ZRANGESTORE", "ZPOPMIN",   "BZPOPMIN",
    "GEOSEARCH",     "LMOVE",    "BLMOVE",  "RENAME",     NULL,
};

static bool is_command(struct str name)
{
    char upper[NAME_BYTES + 1] = "";
    name_add(upper, (const uint8_t *)name.data, name.len);
    return is_one_of(upper, common) || is_one_of(upper, variadic) || is_one_of(upper, containers) ||
           str_contains(name, ".");
}

/* "*2\r\n$3\r\nGET…": counts, lengths and a name of letters. Of a plain line only on its port. */
static int redis_guess(const struct protocol_piece *first, uint16_t port)
{
    int role = first->direction == PROTOCOL_OUT ? REQUEST_CLIENT : REQUEST_SERVER;
    struct str rest = {(const char *)first->head, first->len};
    uint64_t number;
    if (port == 6379 && rest.len >= 6 && rest.len == first->bytes && rest.data[0] != '*') {
        size_t letters = 0;
        while (letters < rest.len && (rest.data[letters] | 32) >= 'a' &&
               (rest.data[letters] | 32) <= 'z')
            letters++;
        bool ends = rest.data[rest.len - 2] == '\r' && rest.data[rest.len - 1] == '\n';
        bool asks = letters >= 3 && letters < NAME_BYTES && ends &&
                    memchr(rest.data, '/', rest.len) == NULL;
        return asks ? role : 0;
    }
    struct str count = str_cut(&rest, '\n'), length = str_cut(&rest, '\n');
    if (count.len < 3 || count.data[0] != '*' || count.data[count.len - 1] != '\r' ||
        str_to_u64((struct str){count.data + 1, count.len - 2}, 10, &number) < 0 || number == 0)
        return 0;
    if (length.len < 3 || length.data[0] != '$' || length.data[length.len - 1] != '\r' ||
        str_to_u64((struct str){length.data + 1, length.len - 2}, 10, &number) < 0)
        return 0;
    rest.len = number < rest.len ? (size_t)number : rest.len;
    return number <= NAME_BYTES && rest.len == number && is_command(rest) ? role : 0;
}

const struct protocol_ops protocol_redis = {
    .protocol = REQUEST_REDIS,
    .name = "redis",
    .guess = redis_guess,
    .state_bytes = sizeof(struct redis),
    .piece = redis_piece,
    .close = redis_close,
};
