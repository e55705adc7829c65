/* Promises of bpf/io_heads.h and collect/io_heads.c, with real sockets of this process: what is
 * said is told once, in order, from the right place; and no more than is wanted. */
#include "unit.h"

#include "base/clock.h"
#include "base/map.h"
#include "collect/bpf_ring.h"
#include "collect/bpf_unit.h"
#include "collect/io_heads.h"
#include "collect/objects.h"
#include "host/probe.h"
#include "model/sink_memory.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern const unsigned char heads_bpf[];
extern const size_t heads_bpf_bytes;

enum { RING_BYTES = 1 << 20, PIECES_MAX = 4096, KEPT_BYTES = 63 };

/* A protocol that takes everything and writes down what it gets. */
struct heard {
    enum protocol_direction direction;
    size_t len;
    uint64_t bytes;
    uint64_t cookie;
    char head[KEPT_BYTES + 1];
};

static struct {
    struct heard *pieces;
    size_t count;
    size_t closed;
} heard;

static int any_piece(void *state, const struct protocol_opts *opts,
                     const struct protocol_piece *piece, const struct protocol_teller *teller)
{
    (void)state, (void)opts, (void)teller;
    assert_true(heard.count < PIECES_MAX);
    struct heard *now = &heard.pieces[heard.count++];
    *now = (struct heard){piece->direction, piece->len, piece->bytes, piece->cookie, ""};
    memcpy(now->head, piece->head, MIN(piece->len, (size_t)KEPT_BYTES));
    return PROTOCOL_GOES_ON;
}

static int any_close(void *state, const struct protocol_opts *opts, uint64_t time_ns,
                     const struct protocol_teller *teller)
{
    (void)state, (void)opts, (void)time_ns, (void)teller;
    heard.closed++;
    return 0;
}

static const struct protocol_ops any = {
    .protocol = REQUEST_HTTP1,
    .name = "any",
    .state_bytes = 8,
    .piece = any_piece,
    .close = any_close,
};

/* Only what begins with "say". */
static const struct protocol_ops *any_guess(const struct protocol_piece *first, uint16_t port,
                                            enum request_role *ret_role)
{
    (void)port;
    *ret_role = first->direction == PROTOCOL_OUT ? REQUEST_CLIENT : REQUEST_SERVER;
    return first->len >= 3 && memcmp(first->head, "say", 3) == 0 ? &any : NULL;
}

struct fixture {
    struct sink_memory memory;
    struct bpf_unit *unit;
    struct bpf_ring ring;
    struct io_requests *requests;
    struct io_heads *heads;
    struct objects *objects;
};

static int thread_id(void *context, uint32_t tid, uint32_t tgid, uint32_t exec, uint64_t time_ns,
                     uint32_t *ret_process, uint32_t *ret_thread)
{
    (void)context, (void)tgid, (void)exec, (void)time_ns;
    *ret_process = 1;
    *ret_thread = tid;
    return 0;
}

static int stack_id(void *context, uint64_t ref, uint64_t time_ns, uint32_t *ret)
{
    (void)context, (void)time_ns;
    *ret = (uint32_t)ref;
    return 0;
}

static int object_id(void *context, const struct object_record *record, uint32_t *ret)
{
    struct fixture *f = context;
    assert_int_equal(objects_take(f->objects, record, sizeof(*record)), 0);
    return objects_find(f->objects, &record->id, ret);
}

static void start(struct fixture *f)
{
    const struct bpf_blob blob = {"heads", heads_bpf, heads_bpf_bytes};
    const uint32_t config[2] = {(uint32_t)getpid(), SYS_close};
    struct probe bpf;
    struct why why = {0};
    probe_bpf_tracing(&bpf);
    if (heads_bpf_bytes == 0 || !bpf.ok)
        skip("no BPF here");
    *f = (struct fixture){.memory = SINK_MEMORY_INIT, .ring = {.wake_fd = -1}};
    const struct process_info process = {.pid = (uint32_t)getpid()};
    uint32_t id;
    assert_int_equal(sink_process(&f->memory.sink, &process, &id), 0);
    if (bpf_unit_open(&blob, NULL, &f->unit, &why) < 0 ||
        bpf_unit_config(f->unit, config, sizeof(config), &why) < 0 ||
        bpf_unit_load(f->unit, &why) < 0 || bpf_unit_attach(f->unit, &why) < 0)
        fail_msg("%s", why.what);
    assert_int_equal(bpf_ring_map(bpf_unit_map_fd(f->unit, "told"), RING_BYTES, &f->ring, &why), 0);
    assert_int_equal(objects_open(&f->memory.sink, &f->objects), 0);
    const struct io_requests_opts opts = {.guess = any_guess};
    assert_int_equal(io_requests_open(&opts, &f->memory.sink, &f->requests), 0);
    const struct io_heads_opts heads = {
        .requests = f->requests,
        .conns_fd = bpf_unit_map_fd(f->unit, "io_conns"),
        .counts_fd = bpf_unit_map_fd(f->unit, "io_heads_counts"),
        .context = f,
        .thread = thread_id,
        .stack = stack_id,
        .object = object_id,
    };
    assert_int_equal(io_heads_open(&heads, &f->heads), 0);
    heard.pieces = calloc(PIECES_MAX, sizeof(*heard.pieces));
    assert_non_null(heard.pieces);
    heard.count = heard.closed = 0;
}

static void end(struct fixture *f)
{
    io_heads_close(f->heads);
    io_requests_close(f->requests);
    objects_close(f->objects);
    bpf_ring_deinit(&f->ring);
    bpf_unit_close(f->unit);
    sink_memory_deinit(&f->memory);
    free(heard.pieces);
}

/* Everything that was told up to now; how many records of a type were among it. */
static size_t take(struct fixture *f, uint32_t type)
{
    const struct offcpu_head *head;
    size_t bytes, found = 0;
    uint64_t place;
    bpf_ring_begin(&f->ring);
    while ((head = bpf_ring_next(&f->ring, &bytes, &place))) {
        found += head->record == type;
        assert_int_equal(io_heads_take(f->heads, head, bytes), 1);
    }
    bpf_ring_release(&f->ring, UINT64_MAX);
    return found;
}

static uint64_t count(const struct fixture *f, enum io_heads_count which)
{
    uint64_t counts[IO_HEADS_COUNTS];
    assert_int_equal(
        bpf_counts_read(bpf_unit_map_fd(f->unit, "io_heads_counts"), counts, IO_HEADS_COUNTS), 0);
    return counts[which];
}

/* Both sides of a connection over loopback, made while the program looks. */
static void connect_both(int *ret_client, int *ret_server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (void *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (void *)&address, &len), 0);
    *ret_client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(*ret_client, (void *)&address, sizeof(address)), 0);
    *ret_server = accept(listener, NULL, NULL);
    assert_true(*ret_server >= 0);
    close(listener);
}

static void pieces_are(size_t at, const char *const texts[], size_t many)
{
    assert_int_equal(heard.count, at + many);
    for (size_t i = 0; i < many; i++)
        assert_string_equal(heard.pieces[at + i].head, texts[i]);
}

static void every_way_of_sending_and_receiving_is_heard_on_both_sides(void **state)
{
    (void)state;
    struct fixture f;
    int client, server;
    char buffer[256];
    start(&f);
    connect_both(&client, &server);
    struct iovec parts[] = {{(void *)(uintptr_t) "say ", 4}, {(void *)(uintptr_t) "two", 3}};
    struct iovec into[] = {{buffer, 4}, {buffer + 4, 100}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    struct mmsghdr many[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
    struct msghdr receive = {.msg_iov = into, .msg_iovlen = 2};
    assert_int_equal(write(client, "say one", 7), 7);
    assert_int_equal(read(server, buffer, sizeof(buffer)), 7);
    assert_int_equal(writev(client, parts, 2), 7);
    assert_int_equal(readv(server, into, 2), 7);
    assert_int_equal(send(client, "say three", 9, 0), 9);
    assert_int_equal(recv(server, buffer, sizeof(buffer), MSG_PEEK), 9); /* is no piece */
    assert_int_equal(recv(server, buffer, sizeof(buffer), 0), 9);
    assert_int_equal(sendmsg(client, &message, 0), 7);
    assert_int_equal(recvmsg(server, &receive, 0), 7);
    assert_int_equal(sendmmsg(client, many, 2, 0), 2);
    assert_int_equal(recv(server, buffer, sizeof(buffer), 0), 14);
    close(client);
    close(server);
    (void)take(&f, 0);
    static const char *const texts[] = {"say one",   "say one",   "say two",       "say two",
                                        "say three", "say three", "say two",       "say two",
                                        "say two",   "say two",   "say twosay two"};
    pieces_are(0, texts, ARRAY_SIZE(texts));
    assert_int_equal(heard.pieces[0].direction, PROTOCOL_OUT);
    assert_int_equal(heard.pieces[1].direction, PROTOCOL_IN);
    assert_int_equal(heard.pieces[0].cookie >> 32, (uint32_t)gettid());
    assert_int_equal(heard.closed, 2);
    assert_int_equal(count(&f, IO_HEADS_LOST) + count(&f, IO_HEADS_BEYOND), 0);
    end(&f);
}

static void of_a_long_piece_only_its_head_is_there_but_its_length_is_known(void **state)
{
    (void)state;
    struct fixture f;
    enum { LONG = 2 * PROTOCOL_HEAD_BYTES };
    int pair[2], room = 4 * LONG;
    char *buffer = calloc(1, LONG);
    start(&f);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), 0);
    memset(buffer, 'x', LONG);
    buffer[0] = 's', buffer[1] = 'a', buffer[2] = 'y';
    assert_int_equal(write(pair[0], buffer, LONG), LONG);
    (void)take(&f, 0);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.pieces[0].len, PROTOCOL_HEAD_BYTES);
    assert_int_equal(heard.pieces[0].bytes, LONG);
    close(pair[0]);
    close(pair[1]);
    end(&f);
    free(buffer);
}

static void a_connection_is_known_from_its_start_with_peer_port_and_role(void **state)
{
    (void)state;
    struct fixture f;
    int client, server;
    char buffer[64];
    start(&f);
    connect_both(&client, &server);
    assert_int_equal(write(client, "say one", 7), 7);
    assert_int_equal(read(server, buffer, sizeof(buffer)), 7);
    const struct io_heads_met *met[2] = {0};
    size_t bytes, mets = 0;
    uint64_t place;
    const struct offcpu_head *head;
    bpf_ring_begin(&f.ring);
    while ((head = bpf_ring_next(&f.ring, &bytes, &place)))
        if (head->record == IO_HEADS_MET && mets < 2)
            met[mets++] = (const void *)head;
    assert_int_equal(mets, 2);
    assert_non_null(met[0]);
    assert_non_null(met[1]);
    if (!met[0] || !met[1]) /* for the analyser, which does not know that assertions end a test */
        return;
    assert_true(met[0]->object.id.flags & OBJECT_ID_CLIENT);
    assert_true(met[1]->object.id.flags & OBJECT_ID_SERVER);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(io_heads_take(f.heads, met[i], sizeof(*met[i])), 1);
        const struct io_socket *socket = io_requests_socket(f.requests, met[i]->conn);
        assert_non_null(socket);
        assert_true(socket->opened_ns != 0);
        assert_int_equal(socket->port, met[0]->object.remote_port); /* the listening side's */
    }
    char peer[64];
    snprintf(peer, sizeof(peer), "127.0.0.1:%u", met[0]->object.remote_port);
    assert_true(str_is(io_requests_socket(f.requests, met[0]->conn)->peer, peer));
    assert_true(str_is(io_requests_socket(f.requests, met[1]->conn)->peer, "127.0.0.1"));
    bpf_ring_release(&f.ring, UINT64_MAX);
    close(client);
    close(server);
    end(&f);
}

static void what_nobody_wants_to_hear_is_told_no_more(void **state)
{
    (void)state;
    struct fixture f;
    int client, server;
    start(&f);
    connect_both(&client, &server);
    for (int i = 0; i < 4; i++)
        assert_int_equal(write(client, "220 mail ready", 14), 14);
    assert_int_equal(take(&f, IO_HEADS_PIECE), 4);
    for (int i = 0; i < 100; i++)
        assert_int_equal(write(client, "220 mail ready", 14), 14);
    assert_int_equal(take(&f, IO_HEADS_PIECE), 0);
    close(client); /* it is still known to be gone */
    assert_int_equal(take(&f, IO_HEADS_CLOSED), 1);
    close(server);
    end(&f);
}

static void a_connection_tells_no_more_than_its_share_and_the_loss_is_known(void **state)
{
    (void)state;
    struct fixture f;
    int client, server;
    enum { BYTES = 4096, MANY = 3000 };
    char *buffer = calloc(1, BYTES);
    start(&f);
    connect_both(&client, &server);
    buffer[0] = 's', buffer[1] = 'a', buffer[2] = 'y';
    /* The ring has room for fewer than a connection may tell, so that both bounds are met. */
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(write(client, buffer, BYTES), BYTES);
        assert_int_equal(recv(server, buffer, BYTES, MSG_WAITALL), BYTES);
    }
    (void)take(&f, 0);
    uint64_t lost = count(&f, IO_HEADS_LOST) + count(&f, IO_HEADS_BEYOND);
    assert_true(lost > 0);
    /* recv with MSG_WAITALL is one call: a piece each way. */
    assert_int_equal(count(&f, IO_HEADS_TOLD) + lost, 2 * MANY);
    assert_true(heard.count < 2 * MANY);
    heard.count = 0;
    assert_int_equal(write(client, "say again", 9), 9);
    (void)take(&f, 0);
    assert_int_equal(heard.count, 1); /* found anew after the loss */
    assert_true(heard.closed > 0);
    close(client);
    close(server);
    end(&f);
    free(buffer);
}

static void unix_sockets_speak_as_well_and_other_families_are_left_alone(void **state)
{
    (void)state;
    struct fixture f;
    int pair[2], datagrams[2];
    char buffer[64];
    start(&f);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams), 0);
    assert_int_equal(write(pair[0], "say unix", 8), 8);
    assert_int_equal(read(pair[1], buffer, sizeof(buffer)), 8);
    assert_int_equal(write(datagrams[0], "say no", 6), 6);
    assert_int_equal(read(datagrams[1], buffer, sizeof(buffer)), 6);
    (void)take(&f, 0);
    assert_int_equal(heard.count, 2);
    assert_int_equal(count(&f, IO_HEADS_IGNORED), 2);
    for (int i = 0; i < 2; i++)
        close(pair[i]), close(datagrams[i]);
    end(&f);
}

/* A resolver sends to port 53 from a socket without a peer. */
static void datagrams_are_heard_where_they_go_to_the_port_of_dns(void **state)
{
    (void)state;
    struct fixture f;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(0x7f000035)};
    start(&f);
    int asks = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(sendto(asks, "say who", 7, 0, (void *)&address, sizeof(address)), 7);
    address.sin_port = htons(5353);
    assert_int_equal(sendto(other, "say who", 7, 0, (void *)&address, sizeof(address)), 7);
    (void)take(&f, 0);
    assert_int_equal(heard.count, 1);
    assert_int_equal(count(&f, IO_HEADS_IGNORED), 1);
    assert_int_equal(io_requests_finish(f.requests, clock_mono_ns()), 0);
    close(asks);
    close(other);
    end(&f);
}

/* Servers accept in one process and answer in another. */
static void a_socket_that_a_parent_closes_unused_is_not_over(void **state)
{
    (void)state;
    struct fixture f;
    int client, server;
    start(&f);
    connect_both(&client, &server);
    int kept = dup(server);
    close(server); /* as the parent does; nobody has spoken on it */
    assert_int_equal(write(kept, "say hello", 9), 9);
    (void)take(&f, 0);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.closed, 0);
    close(kept);
    close(client);
    end(&f);
}

static void the_end_of_what_a_peer_says_ends_a_client_but_not_a_server(void **state)
{
    (void)state;
    struct fixture f;
    int client, server;
    char buffer[64];
    start(&f);
    connect_both(&client, &server);
    assert_int_equal(write(client, "say one", 7), 7);
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    assert_int_equal(read(server, buffer, sizeof(buffer)), 7);
    assert_int_equal(read(server, buffer, sizeof(buffer)), 0);
    assert_int_equal(take(&f, IO_HEADS_CLOSED), 0);
    assert_int_equal(write(server, "answer", 6), 6);
    close(server);
    assert_int_equal(read(client, buffer, sizeof(buffer)), 6);
    assert_int_equal(read(client, buffer, sizeof(buffer)), 0);
    assert_int_equal(take(&f, IO_HEADS_CLOSED), 2);
    assert_int_equal(heard.count, 4);
    assert_int_equal(heard.closed, 2);
    close(client);
    end(&f);
}

/* ---- records without a kernel ---- */

static void records_that_make_no_sense_are_counted_and_others_left_alone(void **state)
{
    (void)state;
    struct sink_memory memory = SINK_MEMORY_INIT;
    struct io_requests *requests;
    struct io_heads *heads;
    const struct io_requests_opts opts = {.guess = any_guess};
    assert_int_equal(io_requests_open(&opts, &memory.sink, &requests), 0);
    const struct io_heads_opts heads_opts = {.requests = requests,
                                             .conns_fd = -1,
                                             .counts_fd = -1,
                                             .thread = thread_id,
                                             .stack = stack_id};
    assert_int_equal(io_heads_open(&heads_opts, &heads), 0);
    struct io_heads_piece piece = {.head.record = IO_HEADS_PIECE, .len = IO_HEAD_BYTES + 1};
    assert_int_equal(io_heads_take(heads, &piece, sizeof(piece)), 1);
    piece.len = 10;
    assert_int_equal(io_heads_take(heads, &piece, offsetof(struct io_heads_piece, bytes) + 9), 1);
    assert_int_equal(io_heads_take(heads, &piece, 8), 1);
    piece.head.record = IO_HEADS_MET;
    assert_int_equal(io_heads_take(heads, &piece, 100), 1);
    piece.head.record = OFFCPU_COPY;
    assert_int_equal(io_heads_take(heads, &piece, sizeof(piece)), 0);
    assert_int_equal(io_heads_take(heads, &piece, 0), 0);
    io_heads_close(heads);
    io_requests_close(requests);
    sink_memory_deinit(&memory);
}

/* What a socket says inside of a function of TLS is the outside of what that function says. */
static void tls_is_told_by_its_inside_with_the_peer_of_its_outside(void **state)
{
    (void)state;
    struct sink_memory memory = SINK_MEMORY_INIT;
    struct io_requests *requests;
    struct io_heads *heads;
    const struct io_requests_opts opts = {.guess = any_guess};
    heard.pieces = calloc(PIECES_MAX, sizeof(*heard.pieces));
    heard.count = heard.closed = 0;
    assert_int_equal(io_requests_open(&opts, &memory.sink, &requests), 0);
    const struct io_heads_opts heads_opts = {.requests = requests,
                                             .conns_fd = -1,
                                             .counts_fd = -1,
                                             .thread = thread_id,
                                             .stack = stack_id};
    assert_int_equal(io_heads_open(&heads_opts, &heads), 0);
    const struct io_socket outside = {
        .key = 5, .process = 1, .object = 3, .peer = STR("10.0.0.1:443"), .opened_ns = 1};
    assert_int_equal(io_requests_met(requests, &outside), 0);
    struct io_heads_piece piece = {.head = {.record = IO_HEADS_PIECE, .tid = 1, .tgid = 1},
                                   .conn = 5,
                                   .ssl = 0xabc0,
                                   .moved = 5,
                                   .len = 5,
                                   .bytes = "\x16\x03\x01\x02"};
    assert_int_equal(io_heads_take(heads, &piece, sizeof(piece)), 1);
    memcpy(piece.bytes, "\x7f\x7f", 2); /* the body of that record */
    assert_int_equal(io_heads_take(heads, &piece, sizeof(piece)), 1);
    piece = (struct io_heads_piece){.head = {.record = IO_HEADS_TLS_PIECE, .tid = 1, .tgid = 1},
                                    .conn = 0xabc0,
                                    .moved = 6,
                                    .len = 6,
                                    .bytes = "say hi"};
    assert_int_equal(io_heads_take(heads, &piece, sizeof(piece)), 1);
    assert_int_equal(heard.count, 1);
    assert_string_equal(heard.pieces[0].head, "say hi");
    const struct io_heads_closed closed = {
        .head = {.record = IO_HEADS_TLS_CLOSED, .tid = 1, .tgid = 1}, .conn = 0xabc0};
    assert_int_equal(io_heads_take(heads, &closed, sizeof(closed)), 1);
    assert_int_equal(heard.closed, 1);
    assert_int_equal(io_requests_finish(requests, 10), 0);
    assert_int_equal(sink_memory_counter(&memory, "io.connections.encrypted")->value, 0);
    assert_int_equal(sink_memory_counter(&memory, "io.connections.unknown")->value, 0);
    io_heads_close(heads);
    io_requests_close(requests);
    sink_memory_deinit(&memory);
    free(heard.pieces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_of_sending_and_receiving_is_heard_on_both_sides),
        cmocka_unit_test(of_a_long_piece_only_its_head_is_there_but_its_length_is_known),
        cmocka_unit_test(a_connection_is_known_from_its_start_with_peer_port_and_role),
        cmocka_unit_test(what_nobody_wants_to_hear_is_told_no_more),
        cmocka_unit_test(a_connection_tells_no_more_than_its_share_and_the_loss_is_known),
        cmocka_unit_test(unix_sockets_speak_as_well_and_other_families_are_left_alone),
        cmocka_unit_test(datagrams_are_heard_where_they_go_to_the_port_of_dns),
        cmocka_unit_test(a_socket_that_a_parent_closes_unused_is_not_over),
        cmocka_unit_test(the_end_of_what_a_peer_says_ends_a_client_but_not_a_server),
        cmocka_unit_test(records_that_make_no_sense_are_counted_and_others_left_alone),
        cmocka_unit_test(tls_is_told_by_its_inside_with_the_peer_of_its_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
