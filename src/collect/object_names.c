/* From the facts about an object to the words people know it by. */
#include "collect/objects.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

enum { TCP_STATE_LISTEN = 10, TCP_STATE_CLOSE = 7, ADDRESS_BYTES = 64, PORT_BORDER = 32768 };

/* Text that grows in a buffer and is cut where the buffer ends. */
struct words {
    char *data;
    size_t size, len;
};

static void words_bytes(struct words *words, const char *data, size_t len)
{
    len = MIN(len, words->size - words->len);
    if (len > 0)
        memcpy(words->data + words->len, data, len);
    words->len += len;
}

static void words_text(struct words *words, const char *text)
{
    words_bytes(words, text, strlen(text));
}

static void words_number(struct words *words, const char *format, uint64_t number)
{
    char text[64];
    int n = snprintf(text, sizeof(text), format, (unsigned long long)number);
    words_bytes(words, text, MIN((size_t)n, sizeof(text) - 1));
}

/* The innermost comes first in the record. */
static void path_put(struct words *words, const struct object_record *record)
{
    size_t end = MIN((size_t)record->text_bytes, sizeof(record->text));
    if (record->marks & OBJECT_CUT)
        words_text(words, "…");
    else if (end == 0)
        words_text(words, "/");
    while (end > 0) {
        size_t last = record->text[end - 1] == '\0' ? end - 1 : end, start = last;
        while (start > 0 && record->text[start - 1] != '\0')
            start--;
        words_text(words, "/");
        words_bytes(words, record->text + start, last - start);
        end = start;
    }
}

/* "[eventfd]"; some have no brackets of their own. */
static void anon_put(struct words *words, const struct object_record *record)
{
    size_t len = strnlen(record->text, MIN((size_t)record->text_bytes, sizeof(record->text)));
    bool bare = len == 0 || record->text[0] != '[';
    words_text(words, bare ? "[" : "");
    words_bytes(words, record->text, len);
    words_text(words, bare ? "]" : "");
}

static void unix_put(struct words *words, const char *address, size_t len)
{
    len = MIN(len, (size_t)OBJECT_UNIX_BYTES);
    bool abstract = len > 0 && address[0] == '\0';
    words_text(words, "unix:");
    if (!abstract)
        len = strnlen(address, len);
    for (size_t i = 0; i < len; i++)
        words_bytes(words, abstract && address[i] == '\0' ? "@" : &address[i], 1);
}

static void ip_put(struct words *words, uint16_t family, const uint8_t *address, uint16_t port)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[ADDRESS_BYTES] = "";
    bool six = family == AF_INET6 && memcmp(address, mapped, sizeof(mapped)) != 0;
    if (family == AF_INET6 && !six)
        address += sizeof(mapped);
    (void)inet_ntop(six ? AF_INET6 : AF_INET, address, text, sizeof(text));
    words_text(words, six ? "[" : "");
    words_text(words, text);
    words_number(words, six ? "]:%llu" : ":%llu", port);
}

/* By the address that everybody knows it by: the server's. */
static bool inet_put(struct words *words, const struct object_record *record)
{
    bool listening = record->id.flags & OBJECT_ID_LISTENING;
    bool server = record->id.flags & OBJECT_ID_SERVER;
    bool own = listening || server;
    if (!own && record->remote_port == 0 &&
        (record->socket_type == SOCK_STREAM || record->local_port == 0))
        return false;
    if (record->socket_type == SOCK_STREAM && record->state == TCP_STATE_CLOSE)
        return false;
    if (server)
        words_text(words, "client of ");
    if (record->socket_type == SOCK_DGRAM)
        words_text(words, "udp ");
    own = own || record->remote_port == 0;
    ip_put(words, record->family, own ? record->local : record->remote,
           own ? record->local_port : record->remote_port);
    return true;
}

static bool socket_put(struct words *words, const struct object_record *record)
{
    if (record->family == AF_INET || record->family == AF_INET6)
        return inet_put(words, record);
    if (record->family != AF_UNIX)
        return false;
    if (record->id.flags & OBJECT_ID_CLIENT && record->peer_bytes > 0) {
        unix_put(words, record->text + OBJECT_UNIX_BYTES, record->peer_bytes);
        return true;
    }
    if (record->own_bytes == 0)
        return false;
    words_text(words, record->id.flags & OBJECT_ID_SERVER ? "client of " : "");
    unix_put(words, record->text, record->own_bytes);
    return true;
}

static void number_put(struct words *words, const struct object_record *record)
{
    switch (record->id.kind) {
    case OBJECT_ID_PIPE:
        words_number(words, "pipe:[%llu]", record->ino);
        break;
    case OBJECT_ID_SOCKET:
        words_number(words, "socket:[%llu]", record->ino);
        break;
    case OBJECT_ID_PROCESS:
        words_number(words, "pid %llu", record->id.ino);
        break;
    case OBJECT_ID_EVENT:
        words_text(words, "[eventfd]");
        break;
    case OBJECT_ID_TIMER:
        words_text(words, "[timerfd]");
        break;
    case OBJECT_ID_POLL_SET:
        words_text(words, "[eventpoll]");
        break;
    case OBJECT_ID_KERNEL_LOCK:
        words_number(words, "kernel lock at %#llx", record->id.ino);
        break;
    case OBJECT_ID_OTHER:
        words_text(words, "[unknown]");
        break;
    default:
        words_number(words, "inode %llu", record->ino);
        words_number(words, " of device %llu", record->id.dev >> 20);
        words_number(words, ":%llu", record->id.dev & 0xfffff);
        break;
    }
}

struct str object_name(const struct object_record *record, char *buffer, size_t size)
{
    struct words words = {.data = buffer, .size = size};
    if (record->id.kind == OBJECT_ID_SOCKET) {
        if (!socket_put(&words, record))
            number_put(&words, record);
    } else if (record->text_kind == OBJECT_TEXT_PATH) {
        path_put(&words, record);
    } else if (record->text_kind == OBJECT_TEXT_NAME && record->id.kind != OBJECT_ID_PROCESS) {
        anon_put(&words, record);
    } else {
        number_put(&words, record);
    }
    return (struct str){buffer, words.len};
}

uint32_t object_port_role(uint16_t own, uint16_t peer)
{
    if (own == 0)
        return 0;
    if (peer == 0)
        return own < PORT_BORDER ? OBJECT_ID_LISTENING : OBJECT_ID_CLIENT;
    return own < peer ? OBJECT_ID_SERVER : OBJECT_ID_CLIENT;
}
