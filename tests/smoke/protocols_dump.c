/* Feeds the pieces that protocol_proxy.py noted to src/protocol/ and prints what comes out, one
 * JSON object a line: requests and services as they are told, a connection when it ends.
 *
 *     protocols_dump [--role client|server] [--port N] [--protocol NAME] [--middle] [--payloads]
 *                    [--split N] FILE
 *
 * --role: seen from which side (the file is the client's view). --port: of the server, for
 * guesses. --protocol: no guess. --middle: not from the connection's start. --split: pieces of
 * at most N bytes, where the whole piece is there. */
#include "base/jsonw.h"
#include "protocol/protocol.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS_MAX = 1 << 16, GUESSES_MAX = 4, LINE_BYTES = 1 << 18 };

struct tool {
    enum request_role role;
    uint16_t port;
    const struct protocol_ops *asked;
    bool middle, payloads;
    size_t split;
};

struct connection {
    const struct tool *tool;
    uint32_t number;
    uint32_t pieces;
    uint32_t guesses;
    bool ended;
    int verdict;
    enum request_role role;
    struct protocol *protocol;
    const struct protocol_ops *ops;
};

static struct connection *connections[CONNECTIONS_MAX];

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "protocols_dump: %s%s\n", what, detail);
    exit(5);
}

static void put_text(struct jsonw *json, const char *key, struct str text)
{
    jsonw_key(json, key);
    jsonw_text(json, text);
}

static void put_u64(struct jsonw *json, const char *key, uint64_t number)
{
    jsonw_key(json, key);
    jsonw_u64(json, number);
}

static void line_begin(struct jsonw *json, const struct connection *connection, const char *kind)
{
    jsonw_init(json, stdout, 0);
    jsonw_object_begin(json);
    put_text(json, "kind", str_from(kind));
    put_u64(json, "conn", connection->number);
    put_text(json, "protocol", str_from(connection->ops ? connection->ops->name : ""));
}

static void line_end(struct jsonw *json)
{
    jsonw_object_end(json);
    putchar('\n');
}

static int tell_request(void *context, const struct protocol_request *request)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } flags[] = {{"failed", REQUEST_FAILED},
                 {"reused", REQUEST_REUSED},
                 {"unanswered", REQUEST_UNANSWERED},
                 {"cut", REQUEST_CUT}};
    const struct connection *connection = context;
    struct jsonw json;
    line_begin(&json, connection, "request");
    put_text(&json, "role", str_from(connection->role == REQUEST_SERVER ? "server" : "client"));
    put_text(&json, "text", request->text);
    put_text(&json, "result", request->result);
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        jsonw_key(&json, flags[i].name);
        jsonw_bool(&json, request->flags & flags[i].flag);
    }
    put_u64(&json, "start", request->start_ns);
    put_u64(&json, "first_byte", request->first_byte_ns);
    put_u64(&json, "end", request->end_ns);
    put_u64(&json, "bytes_out", request->bytes_out);
    put_u64(&json, "bytes_in", request->bytes_in);
    put_u64(&json, "parameters", request->parameters);
    put_u64(&json, "piece", request->cookie); /* counted within its connection, from 1 */
    put_text(&json, "payload", request->payload);
    line_end(&json);
    return 0;
}

static int tell_nothing(void *context, const struct protocol_request *request)
{
    (void)context;
    (void)request;
    return 0;
}

static int tell_service(void *context, struct str name)
{
    struct jsonw json;
    line_begin(&json, context, "service");
    put_text(&json, "service", name);
    line_end(&json);
    return 0;
}

static void connection_end(struct connection *connection, uint64_t time_ns)
{
    static const char *const verdicts[] = {"goes on", "broken", "switched", "middle"};
    /* What waits on a connection that broke will never be known. */
    const struct protocol_teller teller = {
        connection, connection->verdict > 0 ? tell_nothing : tell_request, tell_service};
    struct jsonw json;
    if (connection->ended)
        return;
    connection->ended = true;
    protocol_close(connection->protocol, time_ns, &teller);
    connection->protocol = NULL;
    line_begin(&json, connection, "connection");
    put_u64(&json, "pieces", connection->pieces);
    put_text(&json, "verdict", str_from(verdicts[connection->verdict]));
    line_end(&json);
}

static void connection_open(struct connection *connection, const struct protocol_piece *piece)
{
    const struct tool *tool = connection->tool;
    connection->ops = tool->asked;
    connection->role = tool->role;
    if (!connection->ops)
        connection->ops = protocol_guess(piece, tool->port, &connection->role);
    if (!connection->ops)
        return;
    if (connection->role != tool->role)
        fail("the wrong side was guessed of ", connection->ops->name);
    const struct protocol_opts opts = {
        .role = connection->role,
        .from_start = !tool->middle && connection->guesses == 1,
        .payloads = tool->payloads,
    };
    if (protocol_open(connection->ops, &opts, &connection->protocol) < 0)
        fail("no memory", "");
}

static void connection_piece(struct connection *connection, const struct protocol_piece *piece)
{
    const struct protocol_teller teller = {connection, tell_request, tell_service};
    struct protocol_piece part = *piece;
    part.cookie = ++connection->pieces;
    if (!connection->protocol)
        return;
    /* A copy of exactly this size, so that a sanitizer sees a read beyond it. */
    uint8_t *copy = malloc(part.len ? part.len : 1);
    if (!copy)
        fail("no memory", "");
    memcpy(copy, piece->head, part.len);
    part.head = copy;
    int r = protocol_piece(connection->protocol, &part, &teller);
    free(copy);
    if (r < 0)
        fail("a piece failed: ", strerror(-r));
    connection->verdict = r;
}

/* In parts where that was asked for; the last has what is not there. */
static void connection_pieces(struct connection *connection, const struct protocol_piece *piece)
{
    struct protocol_piece rest = *piece;
    size_t split = connection->tool->split;
    /* The guess is made by the piece as it was: some bytes of it may say too little. */
    if (!connection->ops && connection->guesses++ < GUESSES_MAX)
        connection_open(connection, piece);
    while (split > 0 && rest.len > split) {
        struct protocol_piece part = rest;
        part.len = split;
        part.bytes = split;
        connection_piece(connection, &part);
        rest.head += split;
        rest.len -= split;
        rest.bytes -= split;
    }
    connection_piece(connection, &rest);
}

static size_t unhex(const char *hex, uint8_t *to, size_t room)
{
    size_t len = 0;
    unsigned byte;
    for (; hex[0] && hex[1] && len < room; hex += 2) {
        if (sscanf(hex, "%2x", &byte) != 1)
            fail("no hex: ", hex);
        to[len++] = (uint8_t)byte;
    }
    return len;
}

static void line_read(const struct tool *tool, const char *line, uint64_t *last_ns)
{
    static uint8_t head[LINE_BYTES];
    json_error_t error;
    json_int_t number = 0, time_ns = 0, bytes = 0;
    const char *way = "", *hex = "";
    json_t *row = json_loads(line, 0, &error);
    if (!row || json_unpack(row, "{s:I, s:s, s:I, s:s, s:I}", "conn", &number, "dir", &way, "time",
                            &time_ns, "head", &hex, "bytes", &bytes) < 0)
        fail("no piece: ", line);
    if (number < 0 || number >= CONNECTIONS_MAX)
        fail("too many connections: ", line);
    struct connection *connection = connections[number];
    if (!connection) {
        connection = connections[number] = calloc(1, sizeof(*connection));
        if (!connection)
            fail("no memory", "");
        connection->tool = tool;
        connection->number = (uint32_t)number;
        connection->role = tool->role;
    }
    *last_ns = (uint64_t)time_ns;
    if (strcmp(way, "end") == 0) {
        connection_end(connection, (uint64_t)time_ns);
    } else if (!connection->ended) {
        bool out = (strcmp(way, "out") == 0) == (tool->role == REQUEST_CLIENT);
        const struct protocol_piece piece = {
            .direction = out ? PROTOCOL_OUT : PROTOCOL_IN,
            .time_ns = (uint64_t)time_ns,
            .head = head,
            .len = unhex(hex, head, sizeof(head)),
            .bytes = (uint64_t)bytes,
        };
        connection_pieces(connection, &piece);
    }
    json_decref(row);
}

static const struct protocol_ops *ops_named(const char *name)
{
    for (size_t i = 0; protocols[i]; i++)
        if (strcmp(protocols[i]->name, name) == 0)
            return protocols[i];
    fail("no such protocol: ", name);
    return NULL;
}

static void options_read(int argc, char **argv, struct tool *tool)
{
    static const struct option options[] = {{"role", required_argument, NULL, 'r'},
                                            {"port", required_argument, NULL, 'p'},
                                            {"protocol", required_argument, NULL, 'n'},
                                            {"middle", no_argument, NULL, 'm'},
                                            {"payloads", no_argument, NULL, 'k'},
                                            {"split", required_argument, NULL, 's'},
                                            {0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'r')
            tool->role = strcmp(optarg, "server") == 0 ? REQUEST_SERVER : REQUEST_CLIENT;
        else if (option == 'p')
            tool->port = (uint16_t)strtoul(optarg, NULL, 10);
        else if (option == 'n')
            tool->asked = ops_named(optarg);
        else if (option == 'm')
            tool->middle = true;
        else if (option == 'k')
            tool->payloads = true;
        else if (option == 's')
            tool->split = strtoul(optarg, NULL, 10);
        else
            exit(2);
    }
    if (optind + 1 != argc)
        fail("usage: protocols_dump [OPTION]… FILE", "");
}

int main(int argc, char **argv)
{
    static char line[LINE_BYTES];
    struct tool tool = {.role = REQUEST_CLIENT};
    uint64_t last_ns = 0;
    options_read(argc, argv, &tool);
    FILE *file = fopen(argv[optind], "re");
    if (!file)
        fail("cannot open ", argv[optind]);
    while (fgets(line, sizeof(line), file))
        line_read(&tool, line, &last_ns);
    fclose(file);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        if (connections[i])
            connection_end(connections[i], last_ns);
        free(connections[i]);
    }
    return 0;
}
