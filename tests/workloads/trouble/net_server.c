/* The other side of the clients with planted trouble: answers after as long as it was told to.
 *
 *     net_server ADDRESS [dns]
 *
 * Prints its port once it listens, and ends when its stdin does. Every connection has a thread.
 * Speaks the simple part of PostgreSQL's protocol and HTTP/1.1, or DNS on UDP at port 53: only
 * there it is looked for. How long an answer takes stands in the question: "wait_us=2000" in a
 * comment of a statement, a header or a login's user; in a name that is looked up the first label,
 * "w2000". */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_MAX = 1 << 16 };

static void wait_us(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    if (us > 0)
        nanosleep(&time, NULL);
}

static long told_us(const char *text)
{
    const char *at = strstr(text, "wait_us=");
    return at ? atol(at + strlen("wait_us=")) : 0;
}

static int read_all(int fd, void *to, size_t len)
{
    for (size_t have = 0; have < len;) {
        ssize_t n = read(fd, (char *)to + have, len - have);
        if (n <= 0)
            return -1;
        have += (size_t)n;
    }
    return 0;
}

static void send_all(int fd, const void *from, size_t len)
{
    if (send(fd, from, len, MSG_NOSIGNAL) != (ssize_t)len)
        pthread_exit(NULL);
}

/* One row with one column for every "," and the first. */
static void pg_answer(int fd, const char *statement)
{
    static const char columns[] =
        "T\0\0\0\x1d\0\x01name\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff"
        "\0";
    static const char row[] = "D\0\0\0\x0e\0\x01\0\0\0\x04"
                              "ding";
    static const char end[] = "C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
    char *out = malloc(MESSAGE_MAX);
    size_t len = 0;
    memcpy(out + len, columns, 30);
    len += 30;
    for (const char *at = statement; at && len < MESSAGE_MAX - 64; at = strchr(at + 1, ',')) {
        memcpy(out + len, row, sizeof(row) - 1);
        len += sizeof(row) - 1;
    }
    memcpy(out + len, end, sizeof(end) - 1);
    len += sizeof(end) - 1;
    send_all(fd, out, len);
    free(out);
}

static void pg_talk(int fd, char *text)
{
    uint32_t len;
    if (read_all(fd, &len, 4) < 0 || ntohl(len) - 4 >= MESSAGE_MAX ||
        read_all(fd, text, ntohl(len) - 4) < 0)
        return;
    text[ntohl(len) - 4] = 0;
    wait_us(told_us(text + 4 + strlen("user") + 1));
    send_all(fd, "R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", 15);
    char kind;
    while (read_all(fd, &kind, 1) == 0 && read_all(fd, &len, 4) == 0) {
        if (kind != 'Q' || ntohl(len) - 4 >= MESSAGE_MAX || read_all(fd, text, ntohl(len) - 4) < 0)
            return;
        text[ntohl(len) - 4] = 0;
        wait_us(told_us(text));
        pg_answer(fd, text);
    }
}

static void http_talk(int fd, char *text)
{
    for (size_t have = 0;;) {
        ssize_t n = read(fd, text + have, MESSAGE_MAX - have - 1);
        if (n <= 0)
            return;
        have += (size_t)n;
        text[have] = 0;
        for (;;) {
            const char *end = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
            if (!end)
                break;
            size_t size = (size_t)(end + 4 - text) +
                          (length && length < end ? (size_t)atol(length + 16) : 0);
            if (have < size)
                break;
            wait_us(told_us(text));
            send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nding\n", 43);
            memmove(text, text + size, have - size + 1);
            have -= size;
        }
    }
}

static void *talk(void *context)
{
    int fd = (int)(intptr_t)context;
    char *text = malloc(MESSAGE_MAX), first = 0;
    if (recv(fd, &first, 1, MSG_PEEK) == 1) {
        if (first == 0)
            pg_talk(fd, text);
        else
            http_talk(fd, text);
    }
    free(text);
    close(fd);
    return NULL;
}

/* The answer is the question with one address behind it. */
static void *dns_serve(void *context)
{
    int fd = (int)(intptr_t)context;
    unsigned char message[600];
    for (;;) {
        struct sockaddr_in from;
        socklen_t from_len = sizeof(from);
        ssize_t n = recvfrom(fd, message, 512, 0, (struct sockaddr *)&from, &from_len);
        if (n < 18)
            continue;
        if (message[13] == 'w')
            wait_us(atol((const char *)message + 14));
        message[2] = 0x85;
        message[3] = 0x80;
        message[7] = 1;
        message[11] = 0; /* without what else was said */
        size_t end = 12;
        while (end < (size_t)n && message[end])
            end += 1u + message[end];
        end += 5;
        memcpy(message + end, "\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01", 16);
        sendto(fd, message, end + 16, 0, (struct sockaddr *)&from, from_len);
    }
    return NULL;
}

static void *ended(void *context)
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    exit(0);
    return context;
}

static int listening(int kind, struct sockaddr_in *at)
{
    int fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (fd < 0 || bind(fd, (struct sockaddr *)at, sizeof(*at)) < 0 ||
        (kind == SOCK_STREAM && listen(fd, 512) < 0)) {
        perror("net_server: bind");
        exit(1);
    }
    socklen_t len = sizeof(*at);
    getsockname(fd, (struct sockaddr *)at, &len);
    return fd;
}

static void thread_start(void *(*run)(void *), int fd)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, (void *)(intptr_t)fd) != 0)
        close(fd);
    else
        pthread_detach(thread);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    bool dns = argc > 2;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(dns ? 53 : 0)};
    inet_pton(AF_INET, argv[1], &at.sin_addr);
    prctl(PR_SET_TIMERSLACK, 1);
    int fd = listening(dns ? SOCK_DGRAM : SOCK_STREAM, &at);
    thread_start(ended, -1);
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    if (dns)
        dns_serve((void *)(intptr_t)fd);
    for (;;) {
        int connection = accept(fd, NULL, NULL);
        if (connection >= 0)
            thread_start(talk, connection);
    }
}
