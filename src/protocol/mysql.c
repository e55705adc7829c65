/* MySQL and MariaDB: commands, result sets, prepared statements.
 *
 * The server greets, the client logs in, then every command is answered by packets whose number
 * counts up from it. What ends a result is told by the packets themselves, so that a connection
 * can be followed without having seen what the two sides agreed on. Logins are looked at for the
 * database's name only. */
#include "base/map.h"
#include "protocol/frames.h"
#include "protocol/mysql_parts.h"
#include "protocol/pending.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    PACKET_BYTES_MAX = 0xffffff, /* a longer message goes on in the next packet */
    GREETING_KEEP_BYTES = 256,
    ANSWER_KEEP_BYTES = 32,
    STATEMENTS_MAX = 96,
    QUEUE_MAX = 64,
    ERROR_PROGRESS = 0xffff, /* of MariaDB: no error, but how far it is */
};

enum phase { PHASE_GREETING, PHASE_LOGIN, PHASE_VERIFY, PHASE_COMMANDS };

/* Where in the answer to the oldest command we are. */
enum stage {
    STAGE_NEW,
    STAGE_FIRST,       /* packet of a result */
    STAGE_COLUMNS,     /* as many as were announced */
    STAGE_ROWS,        /* up to what ends them */
    STAGE_DEFINITIONS, /* of a prepared statement's parameters and columns */
    STAGE_FILE,        /* the client sends a file */
};

struct statement {
    bool there;
    uint32_t id, parameters;
    uint64_t used;
    struct text *text;
};

struct mysql {
    struct frames ask, answer;
    struct pending_queue queue;
    struct texts texts;
    struct statement statements[STATEMENTS_MAX];
    struct text *prepared; /* the last one that was sent, answered or not */
    uint64_t capabilities; /* of both; 0: not seen */
    uint64_t tick, answer_ns;
    enum phase phase;
    enum stage stage;
    uint8_t number; /* of the packet that comes next in this exchange */
    uint64_t columns_left;
    bool columns_end;           /* an EOF between columns and rows may still come */
    bool ask_more, answer_more; /* the packet before this one goes on in it */
    bool late_end;              /* an EOF may follow an answer that was complete without it */
    bool begun, ask_lost, answer_lost;
};

struct look {
    struct mysql *my;
    const struct protocol_teller *teller;
};

/* --- prepared statements --- */

static struct statement *statement_find(struct mysql *my, uint32_t id)
{
    for (size_t i = 0; i < STATEMENTS_MAX; i++) {
        if (my->statements[i].there && my->statements[i].id == id) {
            my->statements[i].used = ++my->tick;
            return &my->statements[i];
        }
    }
    return NULL;
}

static void statement_drop(struct mysql *my, struct statement *statement)
{
    if (!statement)
        return;
    text_drop(&my->texts, statement->text);
    *statement = (struct statement){0};
}

/* The one that was used least recently has to go. */
static void statement_put(struct mysql *my, uint32_t id, uint32_t parameters, struct text *text)
{
    struct statement *place = statement_find(my, id);
    for (size_t i = 0; i < STATEMENTS_MAX && !place; i++)
        if (!my->statements[i].there)
            place = &my->statements[i];
    if (!place) {
        place = &my->statements[0];
        for (size_t i = 1; i < STATEMENTS_MAX; i++)
            if (my->statements[i].used < place->used)
                place = &my->statements[i];
    }
    statement_drop(my, place);
    *place = (struct statement){true, id, parameters, ++my->tick, text_take(text)};
}

/* --- what the client sends --- */

static int ask_login(struct look *look, const struct frame *frame)
{
    struct mysql *my = look->my;
    struct mysql_bytes packet = {frame->body, frame->kept};
    uint64_t capabilities;
    struct str database;
    my->phase = PHASE_VERIFY;
    if (!mysql_login(packet, &capabilities, &database))
        return PROTOCOL_BROKEN;
    my->capabilities &= capabilities;
    if (capabilities & (MYSQL_CAN_SSL | MYSQL_CAN_COMPRESS | MYSQL_CAN_ZSTD) & my->capabilities)
        return PROTOCOL_SWITCHED;
    return database.len > 0 ? look->teller->service(look->teller->context, database) : 0;
}

static struct text *text_unseen(struct mysql *my)
{
    return text_plain(&my->texts, STR("EXECUTE <unseen statement>"), STR(""));
}

static void ask_statement(struct mysql *my, struct mysql_bytes packet, struct pending *row)
{
    uint32_t id = packet.len >= 4 ? mysql_u32(packet.at) : 0;
    struct statement *statement = statement_find(my, id);
    uint32_t parameters = statement ? statement->parameters : 0;
    if (statement)
        row->text = text_take(statement->text);
    else if (id == UINT32_MAX && my->prepared)
        row->text = text_take(my->prepared); /* MariaDB: "the one just sent" */
    else
        row->text = text_unseen(my);
    uint64_t literals = row->text ? row->text->parameters : 0;
    bool bulk = row->kind == MYSQL_BULK_EXECUTE;
    if (row->kind != MYSQL_EXECUTE && !bulk)
        return;
    /* Id, flags and a count that is 1; of many at once id and flags. */
    uint64_t values = 0;
    if (bulk && mysql_skip(&packet, 6))
        values = hash_bytes(packet.at, packet.len);
    else if (!bulk && mysql_skip(&packet, 9))
        values = mysql_values_hash(packet, parameters);
    row->parameters = values ? hash_u64(values ^ literals) : literals;
}

static void ask_sql(struct mysql *my, const struct frame *frame, struct mysql_bytes packet,
                    struct pending *row)
{
    struct str sql;
    bool attributes = row->kind == MYSQL_QUERY && (my->capabilities & MYSQL_CAN_ATTRIBUTES);
    bool found = row->kind == MYSQL_PREPARE
                     ? (sql = (struct str){(const char *)packet.at, packet.len}, true)
                     : mysql_query_text(packet, attributes, &sql);
    if (!found)
        row->text = text_plain(&my->texts, STR("QUERY <with attributes>"), STR(""));
    else
        row->text = text_sql(&my->texts, SQL_MYSQL, sql, frame->kept < frame->bytes);
    if (row->kind == MYSQL_PREPARE) {
        text_drop(&my->texts, my->prepared);
        my->prepared = text_take(row->text);
    } else {
        row->parameters = row->text ? row->text->parameters : 0;
    }
}

/* A name of a database; the service once the server agrees. */
static struct text *ask_use(struct mysql *my, struct mysql_bytes packet)
{
    char plain[80];
    snprintf(plain, sizeof(plain), "USE %.*s", (int)MIN(packet.len, 64), (const char *)packet.at);
    return text_plain(&my->texts, str_from(plain), STR(""));
}

static int ask_command(struct mysql *my, const struct frame *frame)
{
    if (frame->kept == 0)
        return PROTOCOL_BROKEN; /* what it asks for is out of sight */
    const struct mysql_command *command = mysql_command(frame->body[0]);
    struct mysql_bytes packet = {frame->body + 1, frame->kept - 1};
    struct pending row = {
        .kind = frame->body[0],
        .start_ns = frame->start_ns,
        .cookie = frame->cookie,
        .bytes_out = frame->total,
        .answers = 1, /* the number of its first packet */
    };
    if (command->reply == MYSQL_REPLY_UNKNOWN)
        return PROTOCOL_BROKEN;
    if (command->reply == MYSQL_REPLY_STREAM)
        return PROTOCOL_SWITCHED;
    if (row.kind == MYSQL_CLOSE && packet.len >= 4)
        statement_drop(my, statement_find(my, mysql_u32(packet.at)));
    if (command->reply == MYSQL_REPLY_NONE)
        return 0;
    switch (row.kind) {
    case MYSQL_QUERY:
    case MYSQL_PREPARE:
        ask_sql(my, frame, packet, &row);
        break;
    case MYSQL_EXECUTE:
    case MYSQL_BULK_EXECUTE:
    case MYSQL_FETCH:
    case MYSQL_RESET:
        ask_statement(my, packet, &row);
        break;
    case MYSQL_INIT_DB:
        row.text = ask_use(my, packet);
        break;
    default:
        row.text = text_plain(&my->texts, str_from(command->text), STR(""));
    }
    if (my->queue.count >= QUEUE_MAX) {
        text_drop(&my->texts, row.text);
        return PROTOCOL_BROKEN;
    }
    return pending_push(&my->queue, &my->texts, &row);
}

/* Within an exchange the client goes on: a file, a login, the rest of a long command. */
static bool ask_within(struct mysql *my)
{
    struct pending *row = pending_at(&my->queue, 0);
    bool login = row && mysql_command(row->kind)->reply == MYSQL_REPLY_LOGIN;
    return my->stage == STAGE_FILE || (login && my->stage == STAGE_FIRST);
}

static int ask_frame(void *context, const struct frame *frame)
{
    struct look *look = context;
    struct mysql *my = look->my;
    bool more = my->ask_more;
    my->ask_more = frame->bytes == PACKET_BYTES_MAX;
    if (my->phase == PHASE_LOGIN)
        return ask_login(look, frame);
    if (my->phase != PHASE_COMMANDS)
        return 0;
    struct pending *row = more ? pending_last(&my->queue) : pending_at(&my->queue, 0);
    if (more || ask_within(my)) {
        if (row)
            row->bytes_out += frame->total;
        if (row && more && !ask_within(my))
            row->answers++;
        my->number = (uint8_t)(frame->header[3] + 1);
        if (my->stage == STAGE_FILE && frame->bytes == 0)
            my->stage = STAGE_FIRST;
        return 0;
    }
    return ask_command(my, frame);
}

static size_t header_bytes(void *context)
{
    (void)context;
    return 4;
}

static bool ask_header(void *context, const uint8_t *header, uint64_t *ret_bytes, size_t *ret_keep)
{
    struct mysql *my = ((struct look *)context)->my;
    *ret_bytes = mysql_u24(header);
    *ret_keep = 0;
    if (my->phase == PHASE_LOGIN)
        *ret_keep = FRAMES_KEEP_BYTES;
    if (my->phase != PHASE_COMMANDS || my->ask_more || ask_within(my))
        return my->phase != PHASE_GREETING;
    *ret_keep = FRAMES_KEEP_BYTES;
    return *ret_bytes > 0 && header[3] == 0;
}

static const struct frames_ops ask_ops = {header_bytes, ask_header, ask_frame};

/* --- what the server sends --- */

static int answer_tell(struct look *look, uint64_t end_ns)
{
    struct mysql *my = look->my;
    struct pending *row = pending_at(&my->queue, 0);
    const char *prefix = row->kind == MYSQL_PREPARE ? "PREPARE "
                         : row->kind == MYSQL_FETCH ? "FETCH "
                         : row->kind == MYSQL_RESET ? "RESET "
                                                    : NULL;
    my->stage = STAGE_NEW;
    return pending_tell(&my->queue, &my->texts, prefix, end_ns, look->teller);
}

static int answer_ok(struct look *look, const struct frame *frame)
{
    struct mysql *my = look->my;
    struct pending *row = pending_at(&my->queue, 0);
    pending_result(row, "OK");
    if (row->kind == MYSQL_INIT_DB && row->text && row->text->len > 4) {
        struct str name = {row->text->data + 4, row->text->len - 4U};
        int r = look->teller->service(look->teller->context, name);
        if (r != 0)
            return r;
    }
    return answer_tell(look, frame->end_ns);
}

static int answer_error(struct look *look, const struct frame *frame)
{
    struct pending *row = pending_at(&look->my->queue, 0);
    uint32_t code = frame->kept >= 3 ? mysql_u16(frame->body + 1) : 0;
    if (code == ERROR_PROGRESS)
        return 0;
    pending_result(row, "ERROR %u", code);
    row->flags |= REQUEST_FAILED;
    return answer_tell(look, frame->end_ns);
}

/* One result is over; there may be others. */
static int answer_result_end(struct look *look, const struct frame *frame, uint32_t status)
{
    struct mysql *my = look->my;
    if ((status & MYSQL_MORE_RESULTS) &&
        mysql_command(pending_at(&my->queue, 0)->kind)->reply == MYSQL_REPLY_RESULTS) {
        my->stage = STAGE_FIRST;
        return 0;
    }
    return answer_ok(look, frame);
}

static void rows_begin(struct mysql *my)
{
    my->stage = STAGE_ROWS;
    my->columns_end = !(my->capabilities & MYSQL_CAN_DEPRECATE_EOF);
}

static int answer_columns(struct mysql *my, struct mysql_bytes packet)
{
    bool optional = my->capabilities & MYSQL_CAN_OPTIONAL_METADATA;
    bool follow = true;
    uint64_t count;
    if (optional && packet.len > 1) { /* MySQL says it before the count, MariaDB behind it */
        follow = packet.at[0] != 0;
        mysql_skip(&packet, 1);
    }
    if (!mysql_take_number(&packet, &count) || count == 0 || count > 1 << 16 || packet.len > 1)
        return PROTOCOL_BROKEN;
    if (packet.len == 1)
        follow = packet.at[0] != 0;
    my->columns_left = count;
    my->stage = STAGE_COLUMNS;
    if (!follow)
        rows_begin(my);
    return 0;
}

static int answer_prepared(struct look *look, const struct frame *frame)
{
    struct mysql *my = look->my;
    struct pending *row = pending_at(&my->queue, 0);
    if (frame->kept < 12 || frame->body[0] != 0)
        return PROTOCOL_BROKEN;
    uint32_t columns = mysql_u16(frame->body + 5), parameters = mysql_u16(frame->body + 7);
    statement_put(my, mysql_u32(frame->body + 1), parameters, row->text);
    bool ends = !(my->capabilities & MYSQL_CAN_DEPRECATE_EOF) && my->capabilities;
    if ((my->capabilities & MYSQL_CAN_OPTIONAL_METADATA) && frame->kept > 12 && !frame->body[12])
        columns = parameters = 0;
    my->columns_left = (uint64_t)columns + parameters;
    /* Each of the two lists has an end where both sides know no better. */
    if (ends)
        my->columns_left += (columns > 0) + (parameters > 0);
    my->stage = STAGE_DEFINITIONS;
    return my->columns_left == 0 ? answer_ok(look, frame) : 0;
}

static int answer_first(struct look *look, const struct frame *frame)
{
    struct mysql *my = look->my;
    struct pending *row = pending_at(&my->queue, 0);
    struct mysql_bytes packet = {frame->body, frame->kept};
    uint8_t first = packet.len > 0 ? packet.at[0] : 0;
    if (first == 0xff)
        return answer_error(look, frame);
    switch (mysql_command(row->kind)->reply) {
    case MYSQL_REPLY_LOGIN:
        return first == 0 ? answer_ok(look, frame) : 0;
    case MYSQL_REPLY_PREPARED:
        return answer_prepared(look, frame);
    case MYSQL_REPLY_RESULTS:
        if (first == 0xfb) {
            my->stage = STAGE_FILE;
            return 0;
        }
        return first == 0 && packet.len > 0
                   ? answer_result_end(look, frame, mysql_ok_status(packet))
                   : answer_columns(my, packet);
    default:
        return answer_ok(look, frame);
    }
}

/* A row, or what ends them: EOF has five bytes, OK in its place at least seven. */
static int answer_row(struct look *look, const struct frame *frame)
{
    struct mysql *my = look->my;
    uint8_t first = frame->kept > 0 ? frame->body[0] : 0;
    bool ends = first == 0xfe && frame->bytes < PACKET_BYTES_MAX;
    if (first == 0xff)
        return answer_error(look, frame);
    if (!ends) {
        my->columns_end = false;
        return 0;
    }
    struct mysql_bytes packet = {frame->body, frame->kept};
    uint32_t status = frame->bytes == 5 && frame->kept >= 5 ? mysql_u16(frame->body + 3)
                                                            : mysql_ok_status(packet);
    if (frame->bytes == 5 && my->columns_end && !(status & MYSQL_CURSOR_EXISTS)) {
        my->columns_end = false;
        return 0;
    }
    return answer_result_end(look, frame, status);
}

static bool is_end(const struct frame *frame)
{
    return frame->bytes == 5 && frame->kept == 5 && frame->body[0] == 0xfe;
}

static int answer_definition(struct look *look, const struct frame *frame)
{
    struct mysql *my = look->my;
    /* Where it is not known whether lists have ends, those are not counted. */
    if (!my->capabilities && is_end(frame))
        return 0;
    if (--my->columns_left > 0)
        return 0;
    my->late_end = !my->capabilities;
    return answer_ok(look, frame);
}

static int answer_command(struct look *look, const struct frame *frame)
{
    struct mysql *my = look->my;
    struct pending *row = pending_at(&my->queue, 0);
    bool late = my->late_end && is_end(frame) && frame->header[3] == my->number;
    my->late_end = false;
    if (late)
        return 0;
    if (!row) /* it ends a connection that was idle, or nothing makes sense */
        return frame->kept > 0 && frame->body[0] == 0xff ? PROTOCOL_GOES_ON : PROTOCOL_BROKEN;
    if (my->stage == STAGE_NEW) {
        uint8_t reply = mysql_command(row->kind)->reply;
        my->number = my->ask_lost ? frame->header[3] : (uint8_t)row->answers;
        my->ask_lost = false;
        my->stage = STAGE_FIRST;
        if (reply == MYSQL_REPLY_ROWS || reply == MYSQL_REPLY_FIELDS)
            rows_begin(my);
        my->columns_end = false;
    }
    if (my->stage == STAGE_FILE) { /* it has had enough, or the end was not seen */
        my->number = frame->header[3];
        my->stage = STAGE_FIRST;
        my->ask_lost = false;
    }
    my->ask_more = false;
    if (frame->header[3] != my->number)
        return PROTOCOL_BROKEN;
    my->number++;
    row->bytes_in += frame->total;
    row->first_byte_ns = row->first_byte_ns ? row->first_byte_ns : frame->start_ns;
    bool more = my->answer_more;
    my->answer_more = frame->bytes == PACKET_BYTES_MAX;
    if (more)
        return 0;
    switch (my->stage) {
    case STAGE_COLUMNS:
        if (frame->kept > 0 && frame->body[0] == 0xff)
            return answer_error(look, frame);
        if (--my->columns_left == 0)
            rows_begin(my);
        return 0;
    case STAGE_ROWS:
        return answer_row(look, frame);
    case STAGE_DEFINITIONS:
        return answer_definition(look, frame);
    default:
        return answer_first(look, frame);
    }
}

static int answer_frame(void *context, const struct frame *frame)
{
    struct look *look = context;
    struct mysql *my = look->my;
    struct mysql_bytes packet = {frame->body, frame->kept};
    uint8_t first = packet.len > 0 ? packet.at[0] : 0;
    switch (my->phase) {
    case PHASE_GREETING:
        if (first == 0xff)
            return 0; /* it refuses the client */
        my->phase = PHASE_LOGIN;
        return mysql_greeting(packet, &my->capabilities) ? PROTOCOL_GOES_ON : PROTOCOL_BROKEN;
    case PHASE_LOGIN:
        return PROTOCOL_BROKEN;
    case PHASE_VERIFY:
        if (packet.len > 0 && first == 0)
            my->phase = PHASE_COMMANDS;
        return 0;
    default:
        return answer_command(look, frame);
    }
}

static bool answer_header(void *context, const uint8_t *header, uint64_t *ret_bytes,
                          size_t *ret_keep)
{
    struct mysql *my = ((struct look *)context)->my;
    *ret_bytes = mysql_u24(header);
    *ret_keep = my->phase == PHASE_GREETING ? GREETING_KEEP_BYTES : ANSWER_KEEP_BYTES;
    return my->phase != PHASE_GREETING || (*ret_bytes > 0 && *ret_bytes < 4096);
}

static const struct frames_ops answer_ops = {header_bytes, answer_header, answer_frame};

/* --- the connection --- */

static int lost_tell(struct look *look)
{
    struct mysql *my = look->my;
    int r = 0;
    my->answer_lost = my->answer_more = false;
    while (r == 0 && my->queue.count > 0)
        r = answer_tell(look, my->answer_ns);
    return r;
}

static int piece_answer(struct look *look, const struct protocol_piece *piece)
{
    struct mysql *my = look->my;
    my->answer_ns = piece->time_ns;
    if (my->answer_lost) {
        struct pending *waiting = pending_at(&my->queue, 0);
        if (waiting)
            waiting->bytes_in += piece->bytes;
        return 0;
    }
    int r = frames_feed(&my->answer, &answer_ops, look, piece);
    if (r != FRAMES_LOST)
        return r;
    /* The rest of a result is out of sight: it is over when the client goes on. Of several
     * commands nobody can tell where one ends. */
    struct pending *row = pending_at(&my->queue, 0);
    if (!row || my->queue.count > 1)
        return PROTOCOL_BROKEN;
    row->first_byte_ns = row->first_byte_ns ? row->first_byte_ns : piece->time_ns;
    row->bytes_in += my->answer.lost_bytes;
    my->answer_lost = true;
    return 0;
}

static int piece_ask(struct look *look, const struct protocol_piece *piece)
{
    struct mysql *my = look->my;
    int r = my->answer_lost ? lost_tell(look) : 0;
    if (r != 0)
        return r;
    struct pending *row = pending_at(&my->queue, 0);
    if (!my->ask_lost) {
        r = frames_feed(&my->ask, &ask_ops, look, piece);
        if (r != FRAMES_LOST)
            return r;
        /* Packets of a file, or of one long command, end where the server answers. */
        row = pending_at(&my->queue, 0);
        if ((my->stage != STAGE_FILE && !my->ask_more) || !row || my->queue.count > 1)
            return PROTOCOL_BROKEN;
        my->ask_lost = true;
        row->bytes_out += my->ask.lost_bytes;
    } else if (row) {
        row->bytes_out += piece->bytes;
    }
    return 0;
}

static int mysql_piece(void *state, const struct protocol_opts *opts,
                       const struct protocol_piece *piece, const struct protocol_teller *teller)
{
    struct mysql *my = state;
    struct look look = {my, teller};
    bool asks = (piece->direction == PROTOCOL_OUT) == (opts->role == REQUEST_CLIENT);
    if (piece->bytes == 0)
        return 0;
    if (!my->begun) {
        my->begun = true;
        my->texts.payloads = opts->payloads;
        my->phase = opts->from_start ? PHASE_GREETING : PHASE_COMMANDS;
        my->answer_lost = !opts->from_start;
    }
    return asks ? piece_ask(&look, piece) : piece_answer(&look, piece);
}

static int mysql_close(void *state, const struct protocol_opts *opts, uint64_t time_ns,
                       const struct protocol_teller *teller)
{
    (void)opts;
    (void)time_ns;
    struct mysql *my = state;
    struct look look = {my, teller};
    int r = 0;
    while (r == 0 && my->queue.count > 0) {
        bool over = my->answer_lost && pending_at(&my->queue, 0)->first_byte_ns;
        r = answer_tell(&look, over ? my->answer_ns : 0);
    }
    for (size_t i = 0; i < STATEMENTS_MAX; i++)
        statement_drop(my, &my->statements[i]);
    text_drop(&my->texts, my->prepared);
    pending_deinit(&my->queue, &my->texts);
    frames_deinit(&my->ask);
    frames_deinit(&my->answer);
    return r;
}

/* Words that a statement begins with. */
static bool looks_like_sql(struct str sql)
{
    static const char *const verbs[] = {
        "select",    "insert",  "update",   "delete",   "replace", "set",    "show",    "begin",
        "start",     "commit",  "rollback", "create",   "drop",    "alter",  "use",     "call",
        "with",      "explain", "truncate", "do",       "lock",    "unlock", "prepare", "execute",
        "savepoint", "analyze", "desc",     "describe", "load",    "grant",  "revoke",  "flush"};
    while (sql.len > 0 && (sql.data[0] == ' ' || sql.data[0] == '(' || sql.data[0] == '\n')) {
        sql.data++;
        sql.len--;
    }
    if (str_starts(sql, "/*"))
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        size_t len = strlen(verbs[i]);
        if (sql.len >= len && strncasecmp(sql.data, verbs[i], len) == 0 &&
            (sql.len == len || (uint8_t)(sql.data[len] | 32) < 'a' || (sql.data[len] | 32) > 'z'))
            return true;
    }
    return false;
}

static int mysql_guess(const struct protocol_piece *first, uint16_t port)
{
    bool out = first->direction == PROTOCOL_OUT;
    if (first->len < 5 || first->head[3] != 0 ||
        mysql_u24(first->head) + (uint64_t)4 != first->bytes)
        return 0;
    struct mysql_bytes packet = {first->head + 4, first->len - 4};
    uint64_t capabilities;
    if (mysql_greeting(packet, &capabilities))
        return out ? REQUEST_SERVER : REQUEST_CLIENT;
    uint8_t code = packet.at[0];
    struct str sql;
    mysql_skip(&packet, 1);
    bool asks = (code == MYSQL_QUERY || code == MYSQL_PREPARE) &&
                mysql_query_text(packet, false, &sql) && looks_like_sql(sql);
    /* Without any text in it the port has to help. */
    bool executes = port == 3306 && code == MYSQL_EXECUTE && packet.len >= 9 && packet.at[4] <= 7 &&
                    mysql_u32(packet.at + 5) == 1;
    return !asks && !executes ? 0 : out ? REQUEST_CLIENT : REQUEST_SERVER;
}

const struct protocol_ops protocol_mysql = {
    .protocol = REQUEST_MYSQL,
    .name = "mysql",
    .guess = mysql_guess,
    .state_bytes = sizeof(struct mysql),
    .piece = mysql_piece,
    .close = mysql_close,
};
