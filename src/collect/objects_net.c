/* Sockets of other processes: /proc/PID/net shows those of their network namespace; for Unix
 * sockets of our own namespace the kernel's socket diagnosis also knows the other side. */
#include "base/clock.h"
#include "base/fd.h"
#include "collect/objects_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    TABLE_BYTES_MAX = 16 << 20,
    TABLE_SOCKETS_MAX = 1 << 16,
    PAUSES = 20, /* a machine with many sockets must not be read all the time */
    STATE_ESTABLISHED = 1,
    STATE_CLOSE = 7,
    STATE_LISTEN = 10,
    UNIX_ACCEPTS = 1 << 16, /* __SO_ACCEPTCON, in the column of flags */
    ANSWER_BYTES = 1024,
};

void net_tables_deinit(struct net_tables *net)
{
    arena_deinit(&net->arena);
    VEC_FREE(&net->sockets);
    map_u64_deinit(&net->inodes);
    fd_close(&net->diag_fd);
}

static bool port_listens(const struct net_tables *net, uint16_t port)
{
    return net->listening[port / 8] >> (port % 8) & 1;
}

static int socket_add(struct net_tables *net, const struct net_socket *found)
{
    if (found->ino == 0 || net->sockets.len >= TABLE_SOCKETS_MAX)
        return 0;
    bool fresh;
    uint64_t *at = map_u64_at(&net->inodes, found->ino, &fresh);
    if (!at || VEC_PUSH(&net->sockets, *found) < 0)
        return -ENOMEM;
    if (fresh) /* whoever claims the same number later in the file does not get it */
        *at = net->sockets.len;
    return 0;
}

/* "0100007F:1F90": words in the byte order of the machine. */
static bool address_parse(struct str text, uint8_t address[16], uint16_t *ret_port)
{
    struct str digits = str_cut(&text, ':');
    uint64_t number;
    if ((digits.len != 8 && digits.len != 32) || str_to_u64(text, 16, &number) < 0 ||
        number > UINT16_MAX)
        return false;
    *ret_port = (uint16_t)number;
    for (size_t i = 0; i < digits.len / 8; i++) {
        if (str_to_u64((struct str){digits.data + 8 * i, 8}, 16, &number) < 0)
            return false;
        uint32_t word = (uint32_t)number;
        memcpy(address + 4 * i, &word, sizeof(word));
    }
    return true;
}

/* "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 12345 …" */
static int inet_line(struct net_tables *net, struct str line, struct net_socket *found)
{
    uint64_t state, ino;
    str_word(&line);
    struct str local = str_word(&line), remote = str_word(&line), state_word = str_word(&line);
    for (int i = 0; i < 5; i++)
        str_word(&line);
    if (!address_parse(local, found->local, &found->local_port) ||
        !address_parse(remote, found->remote, &found->remote_port) ||
        str_to_u64(state_word, 16, &state) < 0 || str_to_u64(str_word(&line), 10, &ino) < 0)
        return 0;
    found->state = (uint16_t)state;
    found->ino = ino;
    if (found->socket_type == SOCK_STREAM && state == STATE_LISTEN)
        net->listening[found->local_port / 8] |= (uint8_t)(1 << found->local_port % 8);
    return socket_add(net, found);
}

/* "ffff…: 00000002 00000000 00010000 0001 01 1234 /run/x.sock" */
static int unix_line(struct net_tables *net, struct str line, struct net_socket *found)
{
    uint64_t flags, type, state, ino;
    for (int i = 0; i < 3; i++)
        str_word(&line);
    if (str_to_u64(str_word(&line), 16, &flags) < 0 || str_to_u64(str_word(&line), 16, &type) < 0 ||
        str_to_u64(str_word(&line), 16, &state) < 0 || str_to_u64(str_word(&line), 10, &ino) < 0)
        return 0;
    found->socket_type = (uint16_t)type;
    found->state = flags & UNIX_ACCEPTS ? STATE_LISTEN
                   : state == 3         ? STATE_ESTABLISHED
                                        : STATE_CLOSE;
    found->ino = ino;
    if (line.len > 1)
        found->path = (struct str){line.data + 1, line.len - 1};
    return socket_add(net, found);
}

static int table_read(struct net_tables *net, int pid, const char *name, uint16_t family,
                      uint16_t socket_type)
{
    char path[64];
    struct str text;
    snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, name);
    int r = file_read(&net->arena, path, TABLE_BYTES_MAX, &text, NULL);
    if (r < 0)
        return r == -ENOMEM ? r : 0; /* a kernel without it, or too many: then nothing is known */
    str_cut(&text, '\n');
    while (text.len > 0 && r == 0) {
        struct net_socket found = {.family = family, .socket_type = socket_type};
        struct str line = str_cut(&text, '\n');
        r = family == AF_UNIX ? unix_line(net, line, &found) : inet_line(net, line, &found);
    }
    return r;
}

/* Own time, not the clock's: on a busy machine we wait ourselves. */
static uint64_t cpu_ns(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) < 0
               ? 0
               : (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

static int tables_read(struct net_tables *net, int pid, uint64_t space)
{
    uint64_t start_ns = cpu_ns();
    arena_deinit(&net->arena);
    net->arena = ARENA_INIT;
    net->sockets.len = 0;
    map_u64_clear(&net->inodes);
    memset(net->listening, 0, sizeof(net->listening));
    int r = table_read(net, pid, "tcp", AF_INET, SOCK_STREAM);
    if (r == 0)
        r = table_read(net, pid, "tcp6", AF_INET6, SOCK_STREAM);
    if (r == 0)
        r = table_read(net, pid, "udp", AF_INET, SOCK_DGRAM);
    if (r == 0)
        r = table_read(net, pid, "udp6", AF_INET6, SOCK_DGRAM);
    if (r == 0)
        r = table_read(net, pid, "unix", AF_UNIX, 0);
    net->space = space;
    net->read_ns = clock_mono_ns();
    net->took_ns = cpu_ns() - start_ns;
    return r;
}

static uint64_t space_of(int pid)
{
    char path[64];
    struct stat found;
    if (pid > 0)
        snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
    else
        snprintf(path, sizeof(path), "/proc/self/ns/net");
    return stat(path, &found) < 0 ? 0 : found.st_ino;
}

static bool is_loopback(uint16_t family, const uint8_t *address)
{
    static const uint8_t six[16] = {[15] = 1}, mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    if (family == AF_INET)
        return address[0] == 127;
    return memcmp(address, six, sizeof(six)) == 0 || memcmp(address, mapped, sizeof(mapped)) == 0;
}

/* Where somebody listens tells who began; else the ports have to. */
static uint16_t inet_flags(const struct net_tables *net, const struct net_socket *found)
{
    bool connected = found->remote_port != 0;
    uint16_t flags;
    if (found->socket_type == SOCK_STREAM && found->state == STATE_LISTEN)
        flags = OBJECT_ID_LISTENING;
    else if (found->socket_type == SOCK_STREAM && (found->state == STATE_CLOSE || !connected))
        return 0;
    else if (found->socket_type == SOCK_STREAM && port_listens(net, found->local_port))
        flags = OBJECT_ID_SERVER;
    else if (found->socket_type == SOCK_STREAM && port_listens(net, found->remote_port) &&
             is_loopback(found->family, found->remote))
        flags = OBJECT_ID_CLIENT;
    else
        flags = (uint16_t)object_port_role(found->local_port, found->remote_port);
    bool local = connected ? is_loopback(found->family, found->remote) ||
                                 memcmp(found->local, found->remote, sizeof(found->local)) == 0
                           : is_loopback(found->family, found->local);
    return (uint16_t)(flags && local ? flags | OBJECT_ID_LOCAL : flags);
}

/* The names and the peer of a Unix socket. */
struct unix_answer {
    uint16_t type, state;
    uint32_t peer;
    uint8_t name_bytes;
    char name[OBJECT_UNIX_BYTES];
};

static int diag_ask(int fd, uint32_t ino)
{
    struct {
        struct nlmsghdr head;
        struct unix_diag_req request;
    } question = {
        .head = {.nlmsg_len = sizeof(question),
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .request = {.sdiag_family = AF_UNIX,
                    .udiag_states = UINT32_MAX,
                    .udiag_ino = ino,
                    .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER,
                    .udiag_cookie = {UINT32_MAX, UINT32_MAX}},
    };
    return send(fd, &question, sizeof(question), MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int diag_read(const struct nlmsghdr *head, struct unix_answer *ret)
{
    const struct unix_diag_msg *msg = NLMSG_DATA(head);
    if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY || head->nlmsg_len < NLMSG_LENGTH(sizeof(*msg)))
        return -ENOENT;
    *ret = (struct unix_answer){.type = msg->udiag_type, .state = msg->udiag_state};
    int left = (int)(head->nlmsg_len - NLMSG_LENGTH(sizeof(*msg)));
    const struct rtattr *attribute = (const void *)(msg + 1);
    for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
        size_t bytes = RTA_PAYLOAD(attribute);
        if (attribute->rta_type == UNIX_DIAG_NAME) {
            ret->name_bytes = (uint8_t)MIN(bytes, sizeof(ret->name));
            memcpy(ret->name, RTA_DATA(attribute), ret->name_bytes);
        } else if (attribute->rta_type == UNIX_DIAG_PEER && bytes == sizeof(ret->peer)) {
            memcpy(&ret->peer, RTA_DATA(attribute), sizeof(ret->peer));
        }
    }
    return 0;
}

/* One question, one answer, both at once: the kernel answers while we ask. */
static int diag_unix(struct net_tables *net, uint64_t ino, struct unix_answer *ret)
{
    char buffer[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
    if (!net->diag_tried) {
        net->diag_tried = true;
        net->diag_fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    }
    if (net->diag_fd < 0 || ino > UINT32_MAX)
        return -ENOENT;
    int r = diag_ask(net->diag_fd, (uint32_t)ino);
    if (r < 0)
        return -ENOENT;
    ssize_t n = recv(net->diag_fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    const struct nlmsghdr *head = (const void *)buffer;
    if (n < (ssize_t)sizeof(*head) || !NLMSG_OK(head, n))
        return -ENOENT;
    return diag_read(head, ret);
}

static int unix_by_diag(struct net_tables *net, struct object_record *record)
{
    struct unix_answer own, peer = {0};
    if (diag_unix(net, record->id.ino, &own) < 0)
        return -ENOENT;
    if (own.peer)
        (void)diag_unix(net, own.peer, &peer); /* may have gone meanwhile */
    record->family = AF_UNIX;
    record->socket_type = own.type;
    record->state = own.state;
    record->own_bytes = own.name_bytes;
    record->peer_bytes = peer.name_bytes;
    record->text_kind = OBJECT_TEXT_UNIX;
    record->text_bytes = 2 * OBJECT_UNIX_BYTES;
    memcpy(record->text, own.name, sizeof(own.name));
    memcpy(record->text + OBJECT_UNIX_BYTES, peer.name, sizeof(peer.name));
    uint16_t role = 0;
    if (own.state == STATE_LISTEN)
        role = OBJECT_ID_LISTENING;
    else if (!own.peer)
        role = own.type == SOCK_DGRAM && own.name_bytes ? OBJECT_ID_LISTENING : 0;
    else if (own.name_bytes)
        role = OBJECT_ID_SERVER;
    else if (peer.name_bytes)
        role = OBJECT_ID_CLIENT;
    record->id.flags = OBJECT_ID_LOCAL | role;
    return 0;
}

/* Without the other side: of one that has no address we do not know whether it asks. */
static void unix_by_table(const struct net_socket *found, struct object_record *record)
{
    record->own_bytes = (uint8_t)MIN(found->path.len, (size_t)OBJECT_UNIX_BYTES);
    record->text_kind = OBJECT_TEXT_UNIX;
    record->text_bytes = 2 * OBJECT_UNIX_BYTES;
    if (record->own_bytes > 0)
        memcpy(record->text, found->path.data, record->own_bytes);
    record->id.flags = OBJECT_ID_LOCAL;
    if (found->state == STATE_LISTEN)
        record->id.flags |= OBJECT_ID_LISTENING;
    else if (found->path.len > 0)
        record->id.flags |= found->state == STATE_ESTABLISHED  ? OBJECT_ID_SERVER
                            : found->socket_type == SOCK_DGRAM ? OBJECT_ID_LISTENING
                                                               : 0;
}

static void inet_facts(const struct net_tables *net, const struct net_socket *found,
                       struct object_record *record)
{
    record->local_port = found->local_port;
    record->remote_port = found->remote_port;
    memcpy(record->local, found->local, sizeof(record->local));
    memcpy(record->remote, found->remote, sizeof(record->remote));
    record->id.flags = inet_flags(net, found);
}

int net_socket_find(struct net_tables *net, int pid, struct object_record *record)
{
    uint64_t space = space_of(pid);
    if (net->own_space == 0)
        net->own_space = space_of(0);
    if (space != 0 && space == net->own_space && unix_by_diag(net, record) == 0)
        return 0;
    if (net->read_ns == 0 || clock_mono_ns() - net->read_ns >= PAUSES * net->took_ns) {
        int r = tables_read(net, pid, space);
        if (r < 0)
            return r;
    }
    uint64_t *at = net->space == space ? map_u64_find(&net->inodes, record->id.ino) : NULL;
    if (!at || *at == 0)
        return -ENOENT;
    const struct net_socket *found = &net->sockets.data[*at - 1];
    record->family = found->family;
    record->socket_type = found->socket_type;
    record->state = found->state;
    if (found->family == AF_UNIX)
        unix_by_table(found, record);
    else
        inet_facts(net, found, record);
    return 0;
}
