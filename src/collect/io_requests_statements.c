/* Statements that a library answered inside the process. The same text comes again and again: what
 * it looks like without its values is worked out once. */
#include "collect/io_requests_parts.h"

#include "protocol/sql_text.h"

#include <errno.h>

static enum sql_dialect dialect_of(enum request_protocol protocol)
{
    return protocol == REQUEST_POSTGRESQL ? SQL_POSTGRESQL
           : protocol == REQUEST_MYSQL    ? SQL_MYSQL
                                          : SQL_SQLITE;
}

/* `room` is where a text lies that is not remembered. */
static int normalise(struct io_requests *requests, const struct io_statement *statement,
                     char room[PROTOCOL_TEXT_BYTES], struct io_normal *ret)
{
    uint32_t id = intern_find(&requests->statements, statement->sql);
    if (id > 0 && id <= requests->normals.len) {
        *ret = requests->normals.data[id - 1];
        return 0;
    }
    struct io_normal normal = {.text = {room, 0}};
    normal.text.len = sql_normalise(dialect_of(statement->protocol), statement->sql, room,
                                    PROTOCOL_TEXT_BYTES, &normal.hash);
    if (requests->normals.len < IO_STATEMENTS_KEPT &&
        requests->statements.arena.used_bytes + requests->normal_texts.used_bytes <
            IO_STATEMENTS_BYTES) {
        normal.text.data = arena_dup_len(&requests->normal_texts, room, normal.text.len);
        if (arena_failed(&requests->normal_texts) ||
            VEC_RESERVE(&requests->normals, requests->normals.len + 1) < 0 ||
            intern_add(&requests->statements, statement->sql, &id, NULL) < 0 ||
            VEC_PUSH(&requests->normals, normal) < 0)
            return -ENOMEM;
    }
    *ret = normal;
    return 0;
}

/* NULL in *ret: there are too many. */
static int database_find(struct io_requests *requests, const struct io_statement *statement,
                         struct io_database **ret)
{
    struct str kept;
    uint32_t peer;
    int r = io_requests_peer(requests, statement->database, &kept, &peer);
    if (r < 0)
        return r;
    uint64_t key = (uint64_t)statement->process << 32 | peer;
    const uint64_t *found = map_u64_find(&requests->database_at, key);
    if (found) {
        *ret = &requests->databases.data[*found - 1];
        return 0;
    }
    if (requests->databases.len >= IO_PEERS_MAX) {
        requests->beyond++;
        *ret = NULL;
        return 0;
    }
    const struct connection_info info = {
        .process = statement->process,
        .object = statement->object,
        .protocol = statement->protocol,
        .role = REQUEST_INSIDE,
        .peer = kept,
    };
    struct io_database database = {.peer = peer};
    r = sink_connection(requests->sink, &info, &database.id);
    if (r < 0)
        return r;
    uint64_t *slot = map_u64_at(&requests->database_at, key, NULL);
    if (!slot || VEC_PUSH(&requests->databases, database) < 0)
        return -ENOMEM;
    *slot = requests->databases.len;
    requests->seen++;
    *ret = &requests->databases.data[requests->databases.len - 1];
    return 0;
}

int io_requests_told(struct io_requests *requests, const struct io_statement *statement)
{
    char room[PROTOCOL_TEXT_BYTES];
    struct io_normal normal = {0};
    struct io_database *database = NULL;
    int r = normalise(requests, statement, room, &normal);
    if (r == 0)
        r = database_find(requests, statement, &database);
    if (r < 0 || !database)
        return r;
    struct protocol_request said = {
        .start_ns = statement->start_ns,
        .first_byte_ns = statement->end_ns,
        .end_ns = MAX(statement->end_ns, statement->start_ns),
        .text = normal.text,
        .parameters = normal.hash,
        .result = statement->result,
    };
    if (statement->parameters != 0)
        said.parameters = hash_u64(normal.hash ^ hash_u64(statement->parameters)) | 1;
    if (str_starts(statement->result, "ERROR"))
        said.flags |= REQUEST_FAILED;
    if (database->requests++ > 0)
        said.flags |= REQUEST_REUSED;
    const struct io_request request = {
        .said = &said,
        .protocol = statement->protocol,
        .role = REQUEST_INSIDE,
        .thread = statement->thread,
        .stack = statement->stack,
        .peer = database->peer,
        .connection = database->id,
    };
    r = io_rows_add(&requests->rows, &request);
    return r < 0 ? r : io_rows_flush(&requests->rows, statement->end_ns);
}

int io_statements_finish(struct io_requests *requests)
{
    int r = 0;
    for (size_t i = 0; i < requests->databases.len; i++) {
        const struct io_database *database = &requests->databases.data[i];
        const struct connection_end end = {.requests = database->requests};
        int failed = sink_connection_end(requests->sink, database->id, &end);
        r = r < 0 ? r : failed;
    }
    requests->databases.len = 0;
    map_u64_clear(&requests->database_at);
    return r;
}

void io_statements_deinit(struct io_requests *requests)
{
    map_u64_deinit(&requests->database_at);
    VEC_FREE(&requests->databases);
    intern_deinit(&requests->statements);
    VEC_FREE(&requests->normals);
    arena_deinit(&requests->normal_texts);
}
