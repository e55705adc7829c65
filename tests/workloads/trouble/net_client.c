/* Clients with planted trouble, each beside itself mended: `whyslow run` must tell them apart.
 *
 *     net_client TROUBLE COUNT ADDRESS PORT
 *
 * The server is net_server.c; how long an answer takes is told to it with the question. All print
 * the same, so that a mended one can be compared with its trouble. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <resolv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 16, TOGETHER_MAX = 64 };
#define NOT_INLINED __attribute__((noinline))

static struct sockaddr_in server;
static int count;

static void must(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

static void send_all(int fd, const char *text, size_t len)
{
    must(send(fd, text, len, MSG_NOSIGNAL) == (ssize_t)len, "send");
}

static NOT_INLINED int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(fd >= 0 && connect(fd, (struct sockaddr *)&server, sizeof(server)) == 0, "connect");
    return fd;
}

/* One long request that nobody could spare: what the rest is measured against. */
enum { REPORT_US = 300000 };

/* ---- SQL ---- */

static void pg_read_ready(int fd)
{
    static char text[ANSWER_MAX];
    for (ssize_t n;;) {
        n = recv(fd, text, sizeof(text), 0);
        must(n > 0, "recv");
        if (n >= 6 && memcmp(text + n - 6, "Z\0\0\0\5I", 6) == 0)
            return;
    }
}

static NOT_INLINED int pg_connect(int login_us)
{
    char user[64], message[128];
    int fd = dial();
    int user_len = snprintf(user, sizeof(user), "wait_us=%d", login_us);
    uint32_t len = htonl((uint32_t)(4 + 4 + 5 + user_len + 1 + 1));
    uint32_t version = htonl(3 << 16);
    memcpy(message, &len, 4);
    memcpy(message + 4, &version, 4);
    memcpy(message + 8, "user", 5);
    memcpy(message + 13, user, (size_t)user_len + 2);
    message[13 + user_len + 1] = 0;
    send_all(fd, message, ntohl(len));
    pg_read_ready(fd);
    return fd;
}

static void pg_send(int fd, const char *statement)
{
    static char message[ANSWER_MAX];
    size_t text = strlen(statement) + 1;
    uint32_t len = htonl((uint32_t)text + 4);
    message[0] = 'Q';
    memcpy(message + 1, &len, 4);
    memcpy(message + 5, statement, text);
    send_all(fd, message, text + 5);
}

static NOT_INLINED void pg_ask(int fd, const char *statement)
{
    pg_send(fd, statement);
    pg_read_ready(fd);
}

static NOT_INLINED void item_load(int fd, int id, int us)
{
    char text[128];
    snprintf(text, sizeof(text), "SELECT name FROM item WHERE id = %d /* wait_us=%d */", id, us);
    pg_ask(fd, text);
}

static void report_load(int fd)
{
    char text[128];
    snprintf(text, sizeof(text), "SELECT sum(price) FROM item GROUP BY kind /* wait_us=%d */",
             REPORT_US);
    pg_ask(fd, text);
}

static void n_plus_one(void)
{
    int fd = pg_connect(0);
    for (int i = 0; i < count; i++)
        item_load(fd, i, 2000);
}

/* The same rows with one question. */
static void n_plus_one_mended(void)
{
    static char text[ANSWER_MAX];
    int fd = pg_connect(0);
    size_t len = (size_t)snprintf(text, sizeof(text),
                                  "SELECT name FROM item /* wait_us=2000 */ "
                                  "WHERE id IN (0");
    for (int i = 1; i < count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, ",%d", i);
    snprintf(text + len, sizeof(text) - len, ")");
    pg_ask(fd, text);
}

/* What is clean takes a while: a program of a few milliseconds is all start-up. */
static void n_plus_one_clean(void)
{
    n_plus_one_mended();
    report_load(pg_connect(0));
}

/* As many questions, but what they take is nothing beside the report. */
static void n_plus_one_near(void)
{
    int fd = pg_connect(0);
    for (int i = 0; i < count; i++)
        item_load(fd, i, 0);
    report_load(fd);
}

/* Each round asks three different things, with the owner's name between. */
static void n_plus_one_pattern(void)
{
    static const char *const tables[] = {"price", "stock", "picture"};
    char text[128];
    int fd = pg_connect(0);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 3; k++) {
            snprintf(text, sizeof(text), "SELECT * FROM %s WHERE id = %d /* wait_us=1000 */",
                     tables[k], i);
            pg_ask(fd, text);
        }
}

static NOT_INLINED void rate_load(int fd, int us)
{
    char text[128];
    snprintf(text, sizeof(text), "SELECT rate FROM currency WHERE code = 'EUR' /* wait_us=%d */",
             us);
    pg_ask(fd, text);
}

static void duplicate_query(void)
{
    int fd = pg_connect(0);
    for (int i = 0; i < count; i++)
        rate_load(fd, 2000);
}

static void duplicate_query_mended(void)
{
    int fd = pg_connect(0);
    rate_load(fd, 2000);
}

static void duplicate_query_clean(void)
{
    int fd = pg_connect(0);
    rate_load(fd, 2000);
    report_load(fd);
}

static void duplicate_query_near(void)
{
    int fd = pg_connect(0);
    for (int i = 0; i < count; i++)
        rate_load(fd, 0);
    report_load(fd);
}

static void connection_per_request(void)
{
    for (int i = 0; i < count; i++) {
        int fd = pg_connect(3000);
        item_load(fd, i, 0);
        close(fd);
    }
}

static void connection_per_request_mended(void)
{
    int fd = pg_connect(3000);
    for (int i = 0; i < count; i++)
        item_load(fd, i, 0);
    close(fd);
}

/* As many connections, but each is used for a while. */
static void connection_per_request_near(void)
{
    for (int i = 0; i < count; i++) {
        int fd = pg_connect(0);
        for (int k = 0; k < 3; k++)
            item_load(fd, i * 3 + k, 0);
        close(fd);
    }
    report_load(pg_connect(0));
}

/* All on one, the report among it. */
static void connection_per_request_clean(void)
{
    int fd = pg_connect(3000);
    for (int i = 0; i < count; i++)
        item_load(fd, i, 0);
    report_load(fd);
    close(fd);
}

/* ---- HTTP ---- */

static size_t http_head(char *to, size_t size, const char *path, int us)
{
    return (size_t)snprintf(to, size, "GET %s HTTP/1.1\r\nHost: api.test\r\nX: wait_us=%d\r\n\r\n",
                            path, us);
}

static void http_read(int fd)
{
    char text[4096];
    ssize_t n = recv(fd, text, sizeof(text), 0);
    must(n > 5 && memcmp(text + n - 5, "ding\n", 5) == 0, "recv");
}

static NOT_INLINED void page_load(int fd, int id, int us)
{
    char head[256], path[32];
    snprintf(path, sizeof(path), "/page/%d", id);
    send_all(fd, head, http_head(head, sizeof(head), path, us));
    http_read(fd);
}

static void sequential_http(void)
{
    int fd = dial();
    for (int i = 0; i < count; i++)
        page_load(fd, i, 30000);
}

/* All at once, each on a connection of its own. */
static void at_once(int us)
{
    struct pollfd fds[TOGETHER_MAX];
    char head[256], path[32];
    int open = count < TOGETHER_MAX ? count : TOGETHER_MAX, left = open;
    for (int i = 0; i < open; i++) {
        fds[i] = (struct pollfd){.fd = dial(), .events = POLLIN};
        snprintf(path, sizeof(path), "/page/%d", i);
        send_all(fds[i].fd, head, http_head(head, sizeof(head), path, us));
    }
    while (left > 0) {
        must(poll(fds, (nfds_t)open, -1) > 0, "poll");
        for (int i = 0; i < open; i++)
            if (fds[i].revents) {
                http_read(fds[i].fd);
                fds[i].fd = -1;
                left--;
            }
    }
}

static void sequential_http_mended(void)
{
    at_once(30000);
}

static void sequential_http_clean(void)
{
    at_once(REPORT_US);
}

/* One after another, but one of them takes nearly all the time. */
static void sequential_http_near(void)
{
    int fd = dial();
    for (int i = 0; i < count; i++)
        page_load(fd, i, i == 0 ? REPORT_US : 2000);
}

/* ---- delayed ACK ---- */

static NOT_INLINED void order_send(int fd, int pieces, int us)
{
    char text[512];
    int len = snprintf(text, sizeof(text),
                       "POST /order HTTP/1.1\r\nHost: api.test\r\nX: wait_us=%d\r\n"
                       "Content-Length: 4\r\n\r\n",
                       us);
    snprintf(text + len, sizeof(text) - (size_t)len, "ding");
    if (pieces == 2) {
        send_all(fd, text, (size_t)len);
        send_all(fd, text + len, 4);
    } else {
        send_all(fd, text, (size_t)len + 4);
    }
    http_read(fd);
}

static void delayed_ack(void)
{
    int fd = dial();
    for (int i = 0; i < count; i++)
        order_send(fd, 2, 0);
}

static void delayed_ack_mended(void)
{
    int fd = dial();
    for (int i = 0; i < count; i++)
        order_send(fd, 1, 0);
}

/* In one piece; that the server takes long is no matter of acknowledgements. */
static void delayed_ack_clean(void)
{
    order_send(dial(), 1, REPORT_US);
}

/* One piece, and a server that takes as long as a delayed ACK. */
static void delayed_ack_near(void)
{
    int fd = dial();
    for (int i = 0; i < count; i++)
        order_send(fd, 1, 40000);
}

/* Two pieces that go out at once, and the same server. */
static void delayed_ack_nodelay(void)
{
    int fd = dial(), one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    for (int i = 0; i < count; i++)
        order_send(fd, 2, 40000);
}

/* ---- DNS ---- */

static NOT_INLINED void name_find(const char *name)
{
    static struct __res_state state;
    unsigned char answer[600];
    if (!(state.options & RES_INIT)) {
        res_ninit(&state);
        state.nscount = 1;
        state.nsaddr_list[0] = server;
    }
    must(res_nquery(&state, name, 1, 1, answer, sizeof(answer)) > 0, "res_nquery");
}

static void repeated_dns(void)
{
    for (int i = 0; i < count; i++)
        name_find("w3000.api.test");
}

static void repeated_dns_mended(void)
{
    name_find("w3000.api.test");
}

static void repeated_dns_clean(void)
{
    name_find("w300000.api.test");
}

/* As many lookups, each of another name. */
static void repeated_dns_near(void)
{
    char name[64];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "w3000.host%c%c.test", 'a' + i / 26 % 26, 'a' + i % 26);
        name_find(name);
    }
}

/* ---- */

static const struct {
    const char *name;
    void (*run)(void);
} troubles[] = {
#define ROW(trouble)                                                                               \
    {                                                                                              \
#trouble, trouble                                                                          \
    }
    ROW(n_plus_one),
    ROW(n_plus_one_mended),
    ROW(n_plus_one_clean),
    ROW(n_plus_one_near),
    ROW(n_plus_one_pattern),
    ROW(duplicate_query),
    ROW(duplicate_query_mended),
    ROW(duplicate_query_clean),
    ROW(duplicate_query_near),
    ROW(connection_per_request),
    ROW(connection_per_request_mended),
    ROW(connection_per_request_near),
    ROW(connection_per_request_clean),
    ROW(sequential_http),
    ROW(sequential_http_mended),
    ROW(sequential_http_clean),
    ROW(sequential_http_near),
    ROW(delayed_ack),
    ROW(delayed_ack_mended),
    ROW(delayed_ack_clean),
    ROW(delayed_ack_near),
    ROW(delayed_ack_nodelay),
    ROW(repeated_dns),
    ROW(repeated_dns_mended),
    ROW(repeated_dns_clean),
    ROW(repeated_dns_near),
};

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    count = atoi(argv[2]);
    server = (struct sockaddr_in){.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(argv[4]))};
    inet_pton(AF_INET, argv[3], &server.sin_addr);
    for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++)
        if (strcmp(argv[1], troubles[i].name) == 0) {
            troubles[i].run();
            puts("done");
            return 0;
        }
    return 2;
}
