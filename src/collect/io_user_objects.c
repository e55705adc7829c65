/* What the target tells of its fds and paths becomes objects of the sink.
 *
 * The hooks say what a file is (device, number, birth) and how the program called it; its name is
 * asked of /proc while the fd is open, else it is what the program said, seen from where it stands.
 * All of it is the target's word: bounded, and believed only as a name. */
#include "base/clock.h"
#include "collect/io_user_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { STATE_ESTABLISHED = 1, STATE_LISTEN = 10, OBJECTS_A_ROUND = 256 };
#define STUCK_NS NS_PER_SEC /* whoever has not written its entry by then is dead */

/* ---- numbers ---- */

/* Those used of late are kept: an fd may be open for ever, and millions may come and go. */
static uint64_t *number_find(struct collector *c, uint64_t number)
{
    uint64_t *found = map_u64_find(&c->numbers, number);
    if (found)
        return found;
    const uint64_t *old = map_u64_find(&c->numbers_old, number);
    if (!old)
        return NULL;
    uint64_t *again = map_u64_at(&c->numbers, number, NULL);
    if (again)
        *again = *old;
    return again;
}

static int number_put(struct collector *c, uint64_t number, uint32_t object)
{
    if (c->numbers.len >= IO_USER_NUMBERS_MAX) {
        struct map_u64 old = c->numbers_old;
        c->numbers_old = c->numbers;
        c->numbers = old;
        map_u64_clear(&c->numbers);
    }
    uint64_t *at = map_u64_at(&c->numbers, number, NULL);
    if (!at)
        return -ENOMEM;
    *at = object;
    return 0;
}

/* ---- files ---- */

static bool is_ours(const struct collector *c, const struct preload_object *told)
{
    return told->pid <= INT32_MAX && stacks_generation(c->stacks, (int)told->pid) != 0;
}

static uint16_t kind_of(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return OBJECT_ID_FILE;
    case S_IFDIR:
        return OBJECT_ID_DIRECTORY;
    case S_IFBLK:
        return OBJECT_ID_BLOCK_DEVICE;
    case S_IFCHR:
        return OBJECT_ID_CHAR_DEVICE;
    case S_IFIFO:
        return OBJECT_ID_PIPE;
    case S_IFSOCK:
        return OBJECT_ID_SOCKET;
    default:
        return OBJECT_ID_OTHER;
    }
}

static struct object_id id_of(const struct preload_object *told)
{
    struct object_id id = {
        .ino = told->ino, .dev = (uint32_t)told->dev, .kind = kind_of(told->mode)};
    if (id.kind == OBJECT_ID_SOCKET)
        id.dev = 0;
    if (id.kind == OBJECT_ID_FILE)
        id.ino = objects_file_number(told->ino, told->birth);
    return id;
}

/* Paths are the target's: looking must not mount, nor wait for another machine. */
static bool is_same_file(const struct preload_object *told, const char *path, bool *ret_deleted)
{
    struct statx found;
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO | STATX_NLINK,
              &found) < 0)
        return false;
    *ret_deleted = found.stx_nlink == 0;
    return found.stx_ino == told->ino &&
           ((uint64_t)found.stx_dev_major << 20 | found.stx_dev_minor) == told->dev;
}

/* What /proc says of the fd; false: it is another's by now, or closed. */
static bool name_of_fd(const struct preload_object *told, char name[PATH_MAX])
{
    static const char words[] = " (deleted)";
    char path[64];
    bool deleted;
    snprintf(path, sizeof(path), "/proc/%u/fd/%d", told->pid, told->fd);
    ssize_t n = readlink(path, name, PATH_MAX - 1);
    if (n <= 0 || !is_same_file(told, path, &deleted))
        return false;
    size_t len = (size_t)n, tail = sizeof(words) - 1;
    if (deleted && len > tail && memcmp(name + len - tail, words, tail) == 0)
        len -= tail;
    name[len] = '\0';
    return true;
}

/* Where its relative paths begin, as of a moment ago: asked for once a round. */
static struct str folder_of(struct collector *c, const struct preload_object *told)
{
    char path[64];
    uint32_t pid = told->pid;
    int32_t fd = told->folder;
    bool same = c->folder_pid == pid && c->folder_fd == fd;
    if (!same || c->folder_round != c->round) {
        if (fd < 0)
            snprintf(path, sizeof(path), "/proc/%u/cwd", pid);
        else
            snprintf(path, sizeof(path), "/proc/%u/fd/%d", pid, fd);
        ssize_t n = is_ours(c, told) ? readlink(path, c->folder, sizeof(c->folder)) : -1;
        c->folder_len = n > 0 ? (size_t)n : same ? c->folder_len : 0;
        c->folder_pid = pid;
        c->folder_fd = fd;
        c->folder_round = c->round;
    }
    return (struct str){c->folder, c->folder_len};
}

/* As the program said it, in full. */
static void name_as_said(struct collector *c, const struct preload_object *told,
                         char name[PATH_MAX])
{
    struct str text = {told->text, MIN((size_t)told->text_bytes, sizeof(told->text))};
    struct str folder = {"", 0};
    while (text.len > 2 && text.data[0] == '.' && text.data[1] == '/')
        text = (struct str){text.data + 2, text.len - 2};
    if (text.len > 0 && text.data[0] != '/' && told->origin != PRELOAD_SEEN)
        folder = folder_of(c, told);
    if (folder.len + text.len + 8 > PATH_MAX)
        folder.len = 0;
    bool here = text.len == 1 && text.data[0] == '.' && folder.len > 0;
    snprintf(name, PATH_MAX, "%.*s%s%.*s%s", (int)folder.len, folder.data,
             folder.len && !here ? "/" : "", here ? 0 : (int)text.len, text.data,
             told->cut ? "…" : "");
}

static int file_learn(struct collector *c, const struct preload_object *told, uint32_t *ret)
{
    struct object_id id = id_of(told);
    char said[PATH_MAX], name[PATH_MAX];
    int r = objects_find(c->objects, &id, ret);
    if (r < 0 || map_u64_find(&c->named, *ret))
        return r;
    uint64_t *named = map_u64_at(&c->named, *ret, NULL);
    if (!named)
        return -ENOMEM;
    const char *best = NULL;
    bool deleted;
    if (told->text_bytes > 0) {
        name_as_said(c, told, said);
        best = said;
    }
    bool right = best && !told->cut && is_same_file(told, best, &deleted);
    if (!right && is_ours(c, told) && name_of_fd(told, name))
        best = name;
    if (!best)
        return 0;
    r = objects_name(c->objects, &id, str_from(best));
    if (r == 0 && id.kind == OBJECT_ID_FILE)
        r = files_look_named(c->look, *ret, is_ours(c, told) ? (int)told->pid : 0, told->ino,
                             str_from(best));
    return r;
}

/* An eventfd and its like have no name of their own but what /proc calls them. */
static int other_learn(struct collector *c, const struct preload_object *told, uint32_t *ret)
{
    struct object_id id = {.ino = (uint64_t)told->pid << 32 | (uint32_t)told->fd,
                           .kind = OBJECT_ID_OTHER};
    int r = is_ours(c, told) ? objects_of_fd(c->objects, (int)told->pid, told->fd, ret) : -ENOENT;
    if (r == 0 || r == -ENOMEM)
        return r;
    r = told->text_bytes > 0 ? objects_name(c->objects, &id,
                                            (struct str){told->text, MIN((size_t)told->text_bytes,
                                                                         sizeof(told->text))})
                             : 0;
    return r < 0 ? r : objects_find(c->objects, &id, ret);
}

static int path_learn(struct collector *c, const struct preload_object *told, uint32_t *ret)
{
    char name[PATH_MAX];
    name_as_said(c, told, name);
    struct object_id id = {.ino = hash_bytes(name, strlen(name)), .kind = OBJECT_ID_PATH};
    int r = objects_name(c->objects, &id, str_from(name));
    return r < 0 ? r : objects_find(c->objects, &id, ret);
}

/* ---- sockets ---- */

struct address {
    uint16_t family, port;
    uint8_t bytes[16];
    uint8_t unix_bytes;
    char unix_name[OBJECT_UNIX_BYTES];
};

static void address_read(const uint8_t *bytes, uint16_t len, struct address *ret)
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;
    len = MIN(len, (uint16_t)PRELOAD_ADDRESS_BYTES);
    *ret = (struct address){0};
    if (len < sizeof(sa_family_t))
        return;
    memcpy(&ret->family, bytes, sizeof(ret->family));
    if (ret->family == AF_INET && len >= sizeof(four)) {
        memcpy(&four, bytes, sizeof(four));
        ret->port = ntohs(four.sin_port);
        memcpy(ret->bytes, &four.sin_addr, sizeof(four.sin_addr));
    } else if (ret->family == AF_INET6 && len >= sizeof(six)) {
        memcpy(&six, bytes, sizeof(six));
        ret->port = ntohs(six.sin6_port);
        memcpy(ret->bytes, &six.sin6_addr, sizeof(six.sin6_addr));
    } else if (ret->family == AF_UNIX && len > sizeof(sa_family_t)) {
        ret->unix_bytes = (uint8_t)MIN(len - sizeof(sa_family_t), sizeof(ret->unix_name));
        memcpy(ret->unix_name, bytes + sizeof(sa_family_t), ret->unix_bytes);
    }
}

static bool is_loopback(const struct address *address)
{
    static const uint8_t six[16] = {[15] = 1}, mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    if (address->family == AF_INET)
        return address->bytes[0] == 127;
    return memcmp(address->bytes, six, sizeof(six)) == 0 ||
           memcmp(address->bytes, mapped, sizeof(mapped)) == 0;
}

static uint16_t socket_flags(const struct preload_object *told, const struct address *own,
                             const struct address *peer)
{
    bool connected = peer->family == AF_UNIX ? told->peer_bytes > 0 : peer->port != 0;
    uint16_t flags;
    if (told->origin == PRELOAD_CONNECTED)
        flags = OBJECT_ID_CLIENT;
    else if (told->origin == PRELOAD_ACCEPTED)
        flags = OBJECT_ID_SERVER;
    else if (!connected)
        flags = told->type == SOCK_STREAM && (own->port || own->unix_bytes) ? OBJECT_ID_LISTENING
                                                                            : 0;
    else
        flags = own->family == AF_UNIX ? 0 : (uint16_t)object_port_role(own->port, peer->port);
    bool local = own->family == AF_UNIX || peer->family == AF_UNIX || is_loopback(peer) ||
                 (connected && memcmp(own->bytes, peer->bytes, sizeof(own->bytes)) == 0);
    return (uint16_t)(flags && local ? flags | OBJECT_ID_LOCAL : flags);
}

static void socket_facts(const struct preload_object *told, const struct address *own,
                         const struct address *peer, struct object_record *ret)
{
    *ret = (struct object_record){
        .type = OBJECT_RECORD_TYPE,
        .tgid = told->pid,
        .id = id_of(told),
        .ino = told->ino,
        .fd = told->fd,
        .family = peer->family ? peer->family : own->family,
        .socket_type = told->type,
        .protocol = told->type == SOCK_DGRAM ? IPPROTO_UDP : IPPROTO_TCP,
        .local_port = own->port,
        .remote_port = peer->port,
    };
    ret->id.flags = socket_flags(told, own, peer);
    ret->state = ret->id.flags & OBJECT_ID_LISTENING ? STATE_LISTEN : STATE_ESTABLISHED;
    memcpy(ret->local, own->bytes, sizeof(ret->local));
    memcpy(ret->remote, peer->bytes, sizeof(ret->remote));
    if (ret->family != AF_UNIX)
        return;
    ret->own_bytes = own->unix_bytes;
    ret->peer_bytes = peer->unix_bytes;
    ret->text_kind = OBJECT_TEXT_UNIX;
    ret->text_bytes = 2 * OBJECT_UNIX_BYTES;
    memcpy(ret->text, own->unix_name, sizeof(own->unix_name));
    memcpy(ret->text + OBJECT_UNIX_BYTES, peer->unix_name, sizeof(peer->unix_name));
}

/* Of a server without the other side's port: each client would be a peer of its own. */
static void peer_name(const struct object_record *record, char *to, size_t size)
{
    char address[INET6_ADDRSTRLEN] = "?";
    bool server = record->id.flags & OBJECT_ID_SERVER;
    if (record->family == AF_UNIX) {
        const char *name = server ? record->text : record->text + OBJECT_UNIX_BYTES;
        uint8_t len = server ? record->own_bytes : record->peer_bytes;
        bool hidden = len > 0 && name[0] == '\0';
        snprintf(to, size, "unix:%s%.*s", hidden ? "@" : "", len - hidden, name + hidden);
        return;
    }
    inet_ntop(record->family, record->remote, address, sizeof(address));
    bool six = record->family == AF_INET6;
    if (server)
        snprintf(to, size, "%s", address);
    else
        snprintf(to, size, "%s%s%s:%u", six ? "[" : "", address, six ? "]" : "",
                 record->remote_port);
}

static int socket_listen(struct collector *c, const struct preload_object *told,
                         const struct object_record *record, uint32_t object)
{
    struct io_user_socket new = {
        .number = told->number,
        .key = hash_u64(told->ino ^ (uint64_t)told->pid << 40),
        .object = object,
        .flags = record->id.flags,
        .port = record->id.flags & OBJECT_ID_CLIENT ? record->remote_port : record->local_port,
        .datagrams = told->type == SOCK_DGRAM,
        .opened_ns = told->origin == PRELOAD_CONNECTED || told->origin == PRELOAD_ACCEPTED
                         ? told->time_ns
                         : 0,
    };
    if (c->sockets.len >= IO_USER_SOCKETS_MAX) {
        /* Long recordings: the older ones are mostly closed, and the others told again. */
        c->sockets_beyond += c->sockets.len;
        c->sockets.len = 0;
        map_u64_clear(&c->socket_numbers);
    }
    peer_name(record, new.peer, sizeof(new.peer));
    uint64_t *at = map_u64_at(&c->socket_numbers, told->number, NULL);
    if (!at || VEC_PUSH(&c->sockets, new) < 0)
        return -ENOMEM;
    *at = c->sockets.len;
    return 0;
}

static int socket_learn(struct collector *c, const struct preload_object *told, uint32_t *ret)
{
    struct address own, peer;
    struct object_record record;
    address_read(told->own, told->own_bytes, &own);
    address_read(told->peer, told->peer_bytes, &peer);
    socket_facts(told, &own, &peer, &record);
    int r = objects_take(c->objects, &record, sizeof(record));
    if (r == 0)
        r = objects_find(c->objects, &record.id, ret);
    if (r < 0 || !c->requests || record.id.flags & OBJECT_ID_LISTENING)
        return r;
    return socket_listen(c, told, &record, *ret);
}

/* ---- the table ---- */

/* Neither a path nor a type: "anon_inode:[eventfd]". */
static bool is_nameless(const struct preload_object *told)
{
    return kind_of(told->mode) == OBJECT_ID_OTHER ||
           (told->text_bytes >= 5 && memcmp(told->text, "anon_", 5) == 0);
}

static int object_learn(struct collector *c, const struct preload_object *told)
{
    uint32_t object = 0;
    int r;
    if (told->origin == PRELOAD_PATH)
        r = path_learn(c, told, &object);
    else if (kind_of(told->mode) == OBJECT_ID_SOCKET)
        r = socket_learn(c, told, &object);
    else if (is_nameless(told))
        r = other_learn(c, told, &object);
    else
        r = file_learn(c, told, &object);
    return r < 0 ? r : number_put(c, told->number, object);
}

/* A copy that is whole; false: it is not written yet, or another's. */
static bool object_read(const struct collector *c, uint64_t number, struct preload_object *ret)
{
    const struct preload_object *at = &preload_io_objects(c->preload)->at[number % PRELOAD_OBJECTS];
    if (__atomic_load_n(&at->number, __ATOMIC_ACQUIRE) != number)
        return false;
    memcpy(ret, at, sizeof(*ret));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&at->number, __ATOMIC_RELAXED) == number;
}

/* Somebody may have been killed while writing: the others are not to wait for ever. */
static bool is_stuck(struct collector *c)
{
    uint64_t now_ns = clock_mono_ns();
    if (c->stuck_ns == 0)
        c->stuck_ns = now_ns;
    return c->stopped || now_ns - c->stuck_ns >= STUCK_NS;
}

int io_user_objects_take(struct collector *c)
{
    struct preload_io_objects *objects = preload_io_objects(c->preload);
    struct preload_object told;
    int r = 0, learnt = 0;
    c->round++;
    /* Whoever is asked about comes first: rings must not run over meanwhile. Those that were asked
     * about cost nothing any more, and make room. */
    for (int i = 0; i < PRELOAD_OBJECTS && learnt < OBJECTS_A_ROUND && r == 0; i++) {
        uint64_t tail = __atomic_load_n(&objects->tail, __ATOMIC_RELAXED);
        if (tail == __atomic_load_n(&objects->head, __ATOMIC_ACQUIRE))
            break;
        if (object_read(c, tail + 1, &told)) {
            c->places.hurry = true;
            if (!number_find(c, tail + 1)) {
                r = object_learn(c, &told);
                learnt++;
            }
        } else if (is_stuck(c)) {
            c->objects_skipped++;
        } else {
            break;
        }
        c->stuck_ns = 0;
        __atomic_store_n(&objects->tail, tail + 1, __ATOMIC_RELEASE);
    }
    return r;
}

int io_user_object(struct collector *c, const struct preload_place *place, uint64_t object,
                   uint32_t *ret)
{
    uint64_t number = object >> PRELOAD_FD_BITS;
    uint64_t fd = object & ((UINT64_C(1) << PRELOAD_FD_BITS) - 1);
    struct preload_object told;
    const uint64_t *found = number ? number_find(c, number) : NULL;
    *ret = 0;
    if (!found && number && object_read(c, number, &told)) {
        int r = object_learn(c, &told);
        if (r < 0)
            return r;
        found = number_find(c, number);
    }
    if (found) {
        *ret = (uint32_t)*found;
        return 0;
    }
    /* One for which there was no room in the table: what it is by now. */
    int r = fd > 0 ? objects_of_fd(c->objects, (int)place->pid, (int)fd - 1, ret) : 0;
    return r == -ENOMEM ? r : 0;
}

uint32_t io_user_object_known(struct collector *c, uint64_t object)
{
    const uint64_t *found = number_find(c, object >> PRELOAD_FD_BITS);
    return found ? (uint32_t)*found : 0;
}

struct io_user_socket *io_user_socket(struct collector *c, uint64_t object)
{
    const uint64_t *at = map_u64_find(&c->socket_numbers, object >> PRELOAD_FD_BITS);
    return at ? &c->sockets.data[*at - 1] : NULL;
}

void io_user_socket_enough(struct collector *c, const struct io_user_socket *socket)
{
    struct preload_object *at = &preload_io_objects(c->preload)
                                     ->at[socket->number % PRELOAD_OBJECTS];
    if (__atomic_load_n(&at->number, __ATOMIC_ACQUIRE) == socket->number)
        __atomic_store_n(&at->enough, 1, __ATOMIC_RELAXED);
}

void io_user_objects_deinit(struct collector *c)
{
    map_u64_deinit(&c->numbers);
    map_u64_deinit(&c->numbers_old);
    map_u64_deinit(&c->named);
    map_u64_deinit(&c->socket_numbers);
    VEC_FREE(&c->sockets);
    VEC_FREE(&c->pieces);
    VEC_FREE(&c->said);
}
