/* PostgreSQL, version 3 of its protocol: simple and extended queries, pipelines, COPY.
 *
 * What the client sends becomes rows of a queue, in order: a query, an execution, what only
 * prepares, and the Sync that ends a round. What the server sends answers the oldest of them.
 * Passwords (message 'p') are passed over by their length and never looked at. */
#include "base/map.h"
#include "protocol/frames.h"
#include "protocol/pending.h"
#include "protocol/postgres_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    ANSWER_KEEP_BYTES = 512, /* of an error; its code stands near the beginning */
    STATEMENTS_MAX = 96,
    PORTALS_MAX = 24,
};

enum kind {
    KIND_QUERY,   /* ends with ReadyForQuery */
    KIND_EXECUTE, /* ends with its own completion */
    KIND_PREPARE, /* parsed or described, but not executed: ends with its last acknowledgement */
    KIND_SILENT,  /* the same for what is not worth telling */
    KIND_SYNC,    /* a mark: ends with ReadyForQuery */
    KIND_CANCEL,  /* never answered: the server hangs up */
};

/* A prepared statement or a portal. */
struct slot {
    uint64_t name; /* its hash; 0: the slot is free */
    uint64_t used; /* when, for which one has to go */
    struct text *text;
    uint64_t parameters;
};

/* What was sent since the last execution, Sync or Flush. */
struct round {
    bool open, prepares;
    uint64_t start_ns, cookie, bytes;
    uint16_t answers;
    struct text *text;
};

struct postgres {
    struct frames ask, answer;
    struct pending_queue queue;
    struct texts texts;
    struct slot statements[STATEMENTS_MAX], portals[PORTALS_MAX];
    struct round round;
    uint64_t tick;
    uint64_t answer_ns; /* of the last piece of the server */
    bool begun;
    bool startup;    /* the next message of the client has no type */
    bool encryption; /* the next byte of the server answers whether there will be any */
    bool aborting;   /* after an error, up to ReadyForQuery */
    bool copying;    /* the server waits for the client's data */
    bool ask_lost;   /* within such data, found again at its end, or */
    bool unseen;     /* among messages: how many were executed the answers tell */
    bool ready;      /* the server was, since then */
    uint64_t lost_ns, lost_cookie;
    bool answer_lost; /* within an answer; found again when the client goes on */
    bool give_up;     /* once the running query is told */
};

/* While a piece is looked at. */
struct look {
    struct postgres *pg;
    const struct protocol_teller *teller;
};

/* Text up to a zero byte, taken off the front; without one all that is there. */
static struct str take_text(struct str *rest)
{
    return str_cut(rest, '\0');
}

/* --- prepared statements and portals --- */

static uint64_t name_hash(struct str name)
{
    uint64_t hash = hash_bytes(name.data, name.len);
    return hash ? hash : 1;
}

static struct slot *slot_find(struct postgres *pg, struct slot *slots, size_t count,
                              struct str name)
{
    uint64_t hash = name_hash(name);
    for (size_t i = 0; i < count; i++) {
        if (slots[i].name == hash) {
            slots[i].used = ++pg->tick;
            return &slots[i];
        }
    }
    return NULL;
}

/* Takes over the reference to `text`. The one that was used least recently has to go. */
static void slot_put(struct postgres *pg, struct slot *slots, size_t count, struct str name,
                     struct text *text, uint64_t parameters)
{
    struct slot *slot = slot_find(pg, slots, count, name);
    for (size_t i = 0; i < count && !slot; i++)
        if (slots[i].name == 0)
            slot = &slots[i];
    if (!slot) {
        slot = &slots[0];
        for (size_t i = 1; i < count; i++)
            if (slots[i].used < slot->used)
                slot = &slots[i];
    }
    text_drop(&pg->texts, slot->text);
    *slot = (struct slot){name_hash(name), ++pg->tick, text, parameters};
}

static void slot_close(struct postgres *pg, struct slot *slots, size_t count, struct str name)
{
    struct slot *slot = slot_find(pg, slots, count, name);
    if (!slot)
        return;
    text_drop(&pg->texts, slot->text);
    *slot = (struct slot){0};
}

static struct text *text_unseen(struct postgres *pg)
{
    return text_plain(&pg->texts, STR("EXECUTE <unseen statement>"), STR(""));
}

/* --- what the client sends --- */

static void round_add(struct postgres *pg, const struct frame *frame, uint16_t answers)
{
    if (!pg->round.open)
        pg->round = (struct round){
            .open = true, .start_ns = frame->start_ns, .cookie = frame->cookie};
    pg->round.bytes += frame->total;
    pg->round.answers = (uint16_t)(pg->round.answers + answers);
}

static void round_close(struct postgres *pg)
{
    text_drop(&pg->texts, pg->round.text);
    pg->round = (struct round){0};
}

static int ask_push(struct postgres *pg, const struct pending *row)
{
    int r = pending_push(&pg->queue, &pg->texts, row);
    return r == -ENOBUFS ? PROTOCOL_BROKEN : r;
}

/* What was sent without an execution is a request of its own: there is an answer to wait for. */
static int round_end(struct postgres *pg)
{
    struct round *round = &pg->round;
    struct pending row = {
        .kind = round->prepares ? KIND_PREPARE : KIND_SILENT,
        .start_ns = round->start_ns,
        .cookie = round->cookie,
        .bytes_out = round->bytes,
        .answers = round->answers,
        .text = text_take(round->text),
    };
    bool open = round->open;
    round_close(pg);
    return open ? ask_push(pg, &row) : 0;
}

static int ask_query(struct postgres *pg, const struct frame *frame, struct text *text)
{
    struct pending row = {
        .kind = KIND_QUERY,
        .start_ns = frame->start_ns,
        .cookie = frame->cookie,
        .bytes_out = frame->total,
        .text = text,
        .parameters = text ? text->parameters : 0,
    };
    return ask_push(pg, &row);
}

static void ask_parse(struct postgres *pg, const struct frame *frame, struct str rest)
{
    struct str name = take_text(&rest);
    bool whole = memchr(rest.data, 0, rest.len) != NULL;
    struct text *text = text_sql(&pg->texts, SQL_POSTGRESQL, take_text(&rest), !whole);
    round_add(pg, frame, 1);
    text_drop(&pg->texts, pg->round.text);
    pg->round.text = text_take(text);
    pg->round.prepares = true;
    slot_put(pg, pg->statements, STATEMENTS_MAX, name, text, text ? text->parameters : 0);
}

/* Values as they are sent, after the formats they are sent in. */
static uint64_t bind_hash(struct str rest, uint64_t bytes)
{
    const uint8_t *at = (const uint8_t *)rest.data;
    size_t formats = rest.len >= 2 ? 2 + 2 * (size_t)pg_be16(at) : rest.len;
    if (formats + 2 > rest.len)
        return rest.len < 2 ? 0 : hash_u64(bytes);
    if (pg_be16(at + formats) == 0)
        return 0;
    return hash_bytes(at + formats, rest.len - formats);
}

static void ask_bind(struct postgres *pg, const struct frame *frame, struct str rest)
{
    struct str portal = take_text(&rest), name = take_text(&rest);
    struct slot *statement = slot_find(pg, pg->statements, STATEMENTS_MAX, name);
    struct text *text = statement ? text_take(statement->text) : text_unseen(pg);
    uint64_t bound = bind_hash(rest, frame->bytes);
    uint64_t parameters = statement ? statement->parameters : 0;
    if (bound)
        parameters = hash_u64(parameters ^ bound);
    round_add(pg, frame, 1);
    slot_put(pg, pg->portals, PORTALS_MAX, portal, text, parameters);
}

static void ask_describe(struct postgres *pg, const struct frame *frame, struct str rest)
{
    round_add(pg, frame, 1);
    if (rest.len < 1 || pg->round.text)
        return;
    bool portal = rest.data[0] == 'P';
    struct str name = {rest.data + 1, rest.len - 1};
    name = take_text(&name);
    struct slot *slot = portal ? slot_find(pg, pg->portals, PORTALS_MAX, name)
                               : slot_find(pg, pg->statements, STATEMENTS_MAX, name);
    pg->round.text = slot ? text_take(slot->text) : text_unseen(pg);
    pg->round.prepares = true;
}

static int ask_execute(struct postgres *pg, const struct frame *frame, struct str rest)
{
    struct slot *portal = slot_find(pg, pg->portals, PORTALS_MAX, take_text(&rest));
    round_add(pg, frame, 0);
    struct pending row = {
        .kind = KIND_EXECUTE,
        .start_ns = pg->round.start_ns,
        .cookie = pg->round.cookie,
        .bytes_out = pg->round.bytes,
        .text = portal ? text_take(portal->text) : text_unseen(pg),
        .parameters = portal ? portal->parameters : 0,
    };
    round_close(pg);
    return ask_push(pg, &row);
}

static void ask_close(struct postgres *pg, const struct frame *frame, struct str rest)
{
    round_add(pg, frame, 1);
    if (rest.len < 1)
        return;
    bool portal = rest.data[0] == 'P';
    struct str name = {rest.data + 1, rest.len - 1};
    name = take_text(&name);
    if (portal)
        slot_close(pg, pg->portals, PORTALS_MAX, name);
    else
        slot_close(pg, pg->statements, STATEMENTS_MAX, name);
}

/* While the server waits for data it passes over Sync and Flush. */
static int ask_sync(struct postgres *pg, const struct frame *frame, bool sync)
{
    if (pg->copying)
        return 0;
    int r = round_end(pg);
    if (r != 0 || !sync)
        return r;
    struct pending row = {.kind = KIND_SYNC, .start_ns = frame->start_ns};
    return ask_push(pg, &row);
}

static void ask_copy(struct postgres *pg, const struct frame *frame)
{
    struct pending *row = pending_at(&pg->queue, 0);
    if (row)
        row->bytes_out += frame->total;
    if (frame->header[0] != 'd')
        pg->copying = false;
}

static bool is_on(struct str value)
{
    static const char *const off[] = {"false", "off", "no", "0", "f", "n"};
    for (size_t i = 0; i < ARRAY_SIZE(off); i++)
        if (value.len == strlen(off[i]) && strncasecmp(value.data, off[i], value.len) == 0)
            return false;
    return value.len > 0;
}

static int ask_startup(struct look *look, const struct frame *frame, struct str rest)
{
    struct postgres *pg = look->pg;
    struct str user = STR(""), database = STR("");
    if (frame->kept < 4)
        return PROTOCOL_BROKEN; /* what it asks for is out of sight */
    uint32_t code = pg_be32(frame->body);
    if (code == PG_CODE_SSL || code == PG_CODE_GSS) {
        pg->encryption = true;
        return 0;
    }
    pg->startup = false;
    if (code == PG_CODE_CANCEL) {
        int r = ask_query(pg, frame, text_plain(&pg->texts, STR("CANCEL"), STR("")));
        if (r == 0)
            pending_last(&pg->queue)->kind = KIND_CANCEL;
        return r;
    }
    rest.data += 4;
    rest.len -= 4;
    while (rest.len > 0) {
        struct str name = take_text(&rest);
        if (name.len == 0)
            break;
        struct str value = take_text(&rest);
        if (str_is(name, "replication") && is_on(value))
            return PROTOCOL_SWITCHED;
        if (str_is(name, "user"))
            user = value;
        if (str_is(name, "database"))
            database = value;
    }
    struct str service = database.len > 0 ? database : user;
    return service.len > 0 ? look->teller->service(look->teller->context, service) : 0;
}

static int ask_frame(void *context, const struct frame *frame)
{
    struct look *look = context;
    struct postgres *pg = look->pg;
    struct str rest = {(const char *)frame->body, frame->kept};
    char plain[32];
    if (pg->startup)
        return ask_startup(look, frame, rest);
    switch (frame->header[0]) {
    case 'Q':;
        bool whole = memchr(rest.data, 0, rest.len) != NULL;
        return ask_query(pg, frame, text_sql(&pg->texts, SQL_POSTGRESQL, take_text(&rest), !whole));
    case 'F':
        snprintf(plain, sizeof(plain), "FUNCTION %u", rest.len >= 4 ? pg_be32(frame->body) : 0);
        return ask_query(pg, frame, text_plain(&pg->texts, str_from(plain), STR("")));
    case 'P':
        ask_parse(pg, frame, rest);
        return 0;
    case 'B':
        ask_bind(pg, frame, rest);
        return 0;
    case 'D':
        ask_describe(pg, frame, rest);
        return 0;
    case 'E':
        return ask_execute(pg, frame, rest);
    case 'C':
        ask_close(pg, frame, rest);
        return 0;
    case 'S':
    case 'H':
        return ask_sync(pg, frame, frame->header[0] == 'S');
    case 'd':
    case 'c':
    case 'f':
        ask_copy(pg, frame);
        return 0;
    default:
        return 0; /* 'p' and 'X' */
    }
}

static size_t ask_header_bytes(void *context)
{
    return ((struct look *)context)->pg->startup ? 4 : 5;
}

static bool ask_header(void *context, const uint8_t *header, uint64_t *ret_bytes, size_t *ret_keep)
{
    static const char kept[] = "QFPBDEC", known[] = PG_CLIENT_TYPES;
    bool startup = ((struct look *)context)->pg->startup;
    uint32_t bytes = pg_be32(startup ? header : header + 1);
    if (startup
            ? bytes < 8 || bytes > PG_STARTUP_BYTES_MAX
            : bytes < 4 || bytes > PG_MESSAGE_BYTES_MAX || !header[0] || !strchr(known, header[0]))
        return false;
    *ret_bytes = bytes - 4;
    *ret_keep = startup || strchr(kept, header[0]) ? FRAMES_KEEP_BYTES : 0;
    return true;
}

static const struct frames_ops ask_ops = {ask_header_bytes, ask_header, ask_frame};

/* --- what the server sends --- */

/* Executions that were sent out of sight: one, or nobody knows how many. */
static int unseen_push(struct postgres *pg, bool one)
{
    struct pending row = {
        .kind = KIND_EXECUTE,
        .start_ns = pg->lost_ns,
        .cookie = pg->lost_cookie,
        .flags = REQUEST_CUT,
        .text = one ? text_unseen(pg)
                    : text_plain(&pg->texts, STR("EXECUTE <unseen statements>"), STR("")),
    };
    return ask_push(pg, &row);
}

static int answer_tell(struct look *look, uint64_t end_ns)
{
    struct postgres *pg = look->pg;
    struct pending *row = pending_at(&pg->queue, 0);
    if (row->kind == KIND_SILENT || row->kind == KIND_SYNC) {
        pending_pop(&pg->queue, &pg->texts);
        return 0;
    }
    return pending_tell(&pg->queue, &pg->texts, row->kind == KIND_PREPARE ? "PREPARE " : NULL,
                        end_ns, look->teller);
}

/* "INSERT 0 1" is an INSERT, "CREATE TABLE" stays. */
static void answer_tag(struct pending *row, struct str tag)
{
    while (tag.len > 0 && (tag.data[tag.len - 1] == ' ' ||
                           (tag.data[tag.len - 1] >= '0' && tag.data[tag.len - 1] <= '9')))
        tag.len--;
    pending_result(row, "%.*s", STR_FMT(tag));
}

static int answer_complete(struct look *look, const struct frame *frame, struct str rest)
{
    struct pending *row = pending_at(&look->pg->queue, 0);
    look->pg->copying = false;
    if (!row || (row->kind != KIND_QUERY && row->kind != KIND_EXECUTE))
        return 0;
    if (frame->header[0] == 'C')
        answer_tag(row, take_text(&rest));
    else
        pending_result(row, "%s", frame->header[0] == 'I' ? "EMPTY" : "SUSPENDED");
    return row->kind == KIND_EXECUTE ? answer_tell(look, frame->end_ns) : 0;
}

static int answer_error(struct look *look, const struct frame *frame, struct str rest)
{
    struct postgres *pg = look->pg;
    struct pending *row = pending_at(&pg->queue, 0);
    pg->copying = false;
    pg->aborting = true;
    if (pg->ask_lost && !pg->unseen)
        pg->give_up = true; /* whether the client goes on sending data cannot be told */
    if (!row || row->kind == KIND_SYNC || row->kind == KIND_CANCEL)
        return 0;
    while (rest.len > 0 && rest.data[0] != 'C') {
        if (take_text(&rest).len == 0)
            break;
    }
    struct str code = take_text(&rest);
    if (code.len == 6)
        pending_result(row, "ERROR %.5s", code.data + 1);
    else
        pending_result(row, "ERROR");
    row->flags |= REQUEST_FAILED;
    return row->kind == KIND_QUERY ? 0 : answer_tell(look, frame->end_ns);
}

/* An acknowledgement of something that was prepared, bound, described or closed. */
static int answer_acknowledge(struct look *look, const struct frame *frame)
{
    struct pending *row = pending_at(&look->pg->queue, 0);
    if (!row || (row->kind != KIND_PREPARE && row->kind != KIND_SILENT) || row->answers == 0)
        return 0;
    return --row->answers == 0 ? answer_tell(look, frame->end_ns) : 0;
}

/* The end of a simple query, or of all up to the next Sync. */
static int answer_ready(struct look *look, const struct frame *frame)
{
    struct postgres *pg = look->pg;
    bool aborted = pg->aborting, last = false;
    int r = 0;
    pg->aborting = pg->copying = false;
    pg->ask_lost = pg->ask_lost && pg->unseen;
    pg->ready = true;
    for (struct pending *row; r == 0 && !last && (row = pending_at(&pg->queue, 0));) {
        last = row->kind == KIND_SYNC || row->kind == KIND_QUERY;
        if (row->kind == KIND_CANCEL)
            break;
        if (aborted && row->kind != KIND_QUERY) {
            row->flags |= REQUEST_FAILED;
            pending_result(row, "aborted");
        }
        r = answer_tell(look, frame->end_ns);
    }
    return r == 0 && pg->give_up ? PROTOCOL_BROKEN : r;
}

/* Data is asked for: what was sent after the execution up to now is passed over by the server. */
static void answer_copy_in(struct postgres *pg)
{
    struct pending *next = pending_at(&pg->queue, 1);
    pg->copying = true;
    if (next && next->kind == KIND_SYNC && pg->queue.count == 2)
        pg->queue.count--;
}

static int answer_frame(void *context, const struct frame *frame)
{
    struct look *look = context;
    struct postgres *pg = look->pg;
    struct str rest = {(const char *)frame->body, frame->kept};
    uint8_t type = frame->header[0];
    if (pg->encryption) {
        pg->encryption = false;
        return type == 'S' || type == 'G' ? PROTOCOL_SWITCHED
               : type == 'N'              ? PROTOCOL_GOES_ON
                                          : PROTOCOL_BROKEN;
    }
    if (pg->unseen && pg->queue.count == 0 && strchr("CIsE", type)) {
        int r = unseen_push(pg, true);
        if (r != 0)
            return r;
    }
    struct pending *row = pending_at(&pg->queue, 0);
    if (row && row->kind != KIND_SYNC && !strchr("NASKRv", type)) {
        row->bytes_in += frame->total;
        row->first_byte_ns = row->first_byte_ns ? row->first_byte_ns : frame->start_ns;
    }
    switch (type) {
    case '1':
    case '2':
    case '3':
    case 'T':
    case 'n':
        return answer_acknowledge(look, frame);
    case 'C':
    case 'I':
    case 's':
        return answer_complete(look, frame, rest);
    case 'E':
        return answer_error(look, frame, rest);
    case 'Z':
        return answer_ready(look, frame);
    case 'G':
        answer_copy_in(pg);
        return 0;
    case 'V':
        if (row)
            pending_result(row, "FUNCTION");
        return 0;
    case 'W':
        return PROTOCOL_SWITCHED; /* replication: both sides talk when they like */
    default:
        return 0;
    }
}

static size_t answer_header_bytes(void *context)
{
    return ((struct look *)context)->pg->encryption ? 1 : 5;
}

static bool answer_header(void *context, const uint8_t *header, uint64_t *ret_bytes,
                          size_t *ret_keep)
{
    static const char known[] = "123ACDEGHIKNRSTVWZcdnstv";
    *ret_bytes = 0;
    *ret_keep = 0;
    if (((struct look *)context)->pg->encryption)
        return true;
    uint32_t bytes = pg_be32(header + 1);
    if (bytes < 4 || bytes > PG_MESSAGE_BYTES_MAX || !header[0] || !strchr(known, header[0]))
        return false;
    if (header[0] == 'Z' && bytes != 5)
        return false;
    *ret_bytes = bytes - 4;
    *ret_keep = header[0] == 'C' || header[0] == 'E' ? ANSWER_KEEP_BYTES : 0;
    return true;
}

static const struct frames_ops answer_ops = {answer_header_bytes, answer_header, answer_frame};

/* --- the connection --- */

/* Where the rest of an answer cannot be seen, it is over when the client goes on. That holds for
 * one round only: nobody can tell where several of them end. */
static int answer_loses(struct postgres *pg)
{
    uint32_t rounds = 0;
    for (uint32_t i = 0; i < pg->queue.count; i++) {
        uint8_t kind = pending_at(&pg->queue, i)->kind;
        rounds += kind == KIND_QUERY || kind == KIND_SYNC;
    }
    if (pg->unseen && rounds <= 1) {
        int r = unseen_push(pg, false);
        if (r != 0)
            return r;
    }
    struct pending *row = pending_at(&pg->queue, 0);
    if (row && !row->first_byte_ns)
        row->first_byte_ns = pg->answer_ns;
    if (row)
        row->bytes_in += pg->answer.lost_bytes;
    pg->answer_lost = true;
    return rounds > 1 || !row ? PROTOCOL_BROKEN : PROTOCOL_GOES_ON;
}

static int lost_tell(struct look *look)
{
    struct postgres *pg = look->pg;
    int r = 0;
    pg->answer_lost = pg->aborting = pg->copying = false;
    while (r == 0 && pg->queue.count > 0)
        r = answer_tell(look, pg->answer_ns);
    return r;
}

static int piece_answer(struct look *look, const struct protocol_piece *piece)
{
    struct postgres *pg = look->pg;
    pg->answer_ns = piece->time_ns;
    if (pg->answer_lost) {
        struct pending *row = pending_at(&pg->queue, 0);
        if (row)
            row->bytes_in += piece->bytes;
        return 0;
    }
    int r = frames_feed(&pg->answer, &answer_ops, look, piece);
    return r == FRAMES_LOST ? answer_loses(pg) : r;
}

/* Messages out of sight: what is still to come of them cannot be told from a new round but by how
 * it begins, once the server is ready or its answers are out of sight, too. */
static bool unseen_over(struct postgres *pg, const struct protocol_piece *piece)
{
    /* A single byte is easily taken for a beginning where nothing else speaks for it. */
    bool speaks = pg->ready || (pg->answer_lost && piece->len >= 5);
    if (!speaks || !pg_begins(piece))
        return false;
    pg->unseen = pg->ask_lost = false;
    return true;
}

static int ask_loses(struct postgres *pg, const struct protocol_piece *piece)
{
    struct pending *row = pending_at(&pg->queue, 0);
    if (pg->startup)
        return PROTOCOL_BROKEN;
    pg->ask_lost = true;
    if (pg->copying && row) {
        row->bytes_out += pg->ask.lost_bytes;
        return 0;
    }
    round_close(pg);
    pg->unseen = true;
    pg->ready = false;
    pg->lost_ns = piece->time_ns;
    pg->lost_cookie = piece->cookie;
    return 0;
}

static int piece_ask(struct look *look, const struct protocol_piece *piece)
{
    struct postgres *pg = look->pg;
    if (pg->unseen && !unseen_over(pg, piece))
        return 0;
    int r = pg->answer_lost ? lost_tell(look) : 0;
    if (r != 0)
        return r;
    struct pending *row = pending_at(&pg->queue, 0);
    if (pg->ask_lost) {
        if (row)
            row->bytes_out += piece->bytes;
        return 0;
    }
    r = frames_feed(&pg->ask, &ask_ops, look, piece);
    return r == FRAMES_LOST ? ask_loses(pg, piece) : r;
}

static int postgres_piece(void *state, const struct protocol_opts *opts,
                          const struct protocol_piece *piece, const struct protocol_teller *teller)
{
    struct postgres *pg = state;
    struct look look = {pg, teller};
    bool asks = (piece->direction == PROTOCOL_OUT) == (opts->role == REQUEST_CLIENT);
    if (piece->bytes == 0)
        return 0;
    if (!pg->begun) {
        pg->begun = true;
        pg->texts.payloads = opts->payloads;
        pg->startup = opts->from_start || (asks && piece->len > 0 && piece->head[0] == 0);
        pg->answer_lost = !pg->startup;
    }
    return asks ? piece_ask(&look, piece) : piece_answer(&look, piece);
}

static int postgres_close(void *state, const struct protocol_opts *opts, uint64_t time_ns,
                          const struct protocol_teller *teller)
{
    (void)opts;
    struct postgres *pg = state;
    struct look look = {pg, teller};
    int r = 0;
    for (struct pending *row; r == 0 && (row = pending_at(&pg->queue, 0));) {
        bool over = pg->answer_lost && row->first_byte_ns;
        r = answer_tell(&look, row->kind == KIND_CANCEL ? time_ns : over ? pg->answer_ns : 0);
    }
    round_close(pg);
    for (size_t i = 0; i < STATEMENTS_MAX; i++)
        text_drop(&pg->texts, pg->statements[i].text);
    for (size_t i = 0; i < PORTALS_MAX; i++)
        text_drop(&pg->texts, pg->portals[i].text);
    pending_deinit(&pg->queue, &pg->texts);
    frames_deinit(&pg->ask);
    frames_deinit(&pg->answer);
    return r;
}

const struct protocol_ops protocol_postgres = {
    .protocol = REQUEST_POSTGRESQL,
    .name = "postgresql",
    .guess = pg_guess,
    .state_bytes = sizeof(struct postgres),
    .piece = postgres_piece,
    .close = postgres_close,
};
