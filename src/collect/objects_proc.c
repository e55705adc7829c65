/* What an fd of another process is, from /proc: the way of those who have no kernel programs. */
#include "base/clock.h"
#include "base/fd.h"
#include "collect/objects.h"
#include "collect/objects_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FDINFO_BYTES_MAX = 1 << 16,
    /* A socket without a role may get one: it is about to connect. */
    ASK_AGAIN_NS = 200000000,
};

struct fd_link {
    int pid, fd;
    char path[64];       /* "/proc/7/fd/3" */
    char text[PATH_MAX]; /* what it points to */
    size_t len;
};

static int link_read(int pid, int fd, struct fd_link *ret)
{
    ret->pid = pid;
    ret->fd = fd;
    snprintf(ret->path, sizeof(ret->path), "/proc/%d/fd/%d", pid, fd);
    ssize_t n = readlink(ret->path, ret->text, sizeof(ret->text) - 1);
    if (n < 0)
        return -errno;
    ret->len = (size_t)n;
    ret->text[n] = '\0';
    return 0;
}

/* "pipe:[1234]" */
static bool number_in(struct str text, const char *prefix, uint64_t *ret)
{
    size_t len = strlen(prefix);
    if (!str_starts(text, prefix) || !str_ends(text, "]"))
        return false;
    return str_to_u64((struct str){text.data + len, text.len - len - 1}, 10, ret) == 0;
}

/* The process behind a pidfd; 0 if it is gone. */
static uint64_t pidfd_pid(const struct fd_link *link)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    char path[64];
    struct str text;
    uint64_t pid = 0;
    snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", link->pid, link->fd);
    if (file_read(&arena, path, FDINFO_BYTES_MAX, &text, NULL) < 0 ||
        str_to_u64(str_field(text, "Pid"), 10, &pid) < 0)
        return 0;
    return pid;
}

/* Which file it is cannot be told from here, only whose fd. */
static void anon_facts(const struct fd_link *link, struct str name, struct object_record *ret)
{
    static const struct {
        const char *name;
        enum object_id_kind kind;
    } kinds[] = {
        {"[eventfd]", OBJECT_ID_EVENT},
        {"[timerfd]", OBJECT_ID_TIMER},
        {"[eventpoll]", OBJECT_ID_POLL_SET},
        {"[pidfd]", OBJECT_ID_PROCESS},
    };
    ret->id.kind = OBJECT_ID_OTHER;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (str_is(name, kinds[i].name))
            ret->id.kind = kinds[i].kind;
    ret->id.ino = (uint64_t)link->pid << 32 | (uint32_t)link->fd;
    if (ret->id.kind == OBJECT_ID_PROCESS)
        ret->id.ino = pidfd_pid(link);
    ret->text_kind = OBJECT_TEXT_NAME;
    ret->text_bytes = (uint16_t)MIN(name.len, (size_t)OBJECT_TEXT_USED_MAX);
    memcpy(ret->text, name.data, ret->text_bytes);
}

static uint16_t kind_of_mode(uint16_t mode)
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

uint64_t objects_file_number(uint64_t ino, uint64_t birth_ns)
{
    return birth_ns == 0 ? ino : (uint32_t)ino | hash_u64(birth_ns ^ ino >> 32) << 32;
}

/* The kernel writes " (deleted)" behind the path of a file that has none any more; one that is
 * called so has a link left. */
static void inode_facts(struct fd_link *link, struct object_record *ret)
{
    struct statx found;
    struct str text = {link->text, link->len};
    if (statx(AT_FDCWD, link->path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
              STATX_TYPE | STATX_INO | STATX_NLINK | STATX_BTIME, &found) < 0) {
        ret->id = (struct object_id){
            .ino = hash_bytes(text.data, text.len),
            .kind = OBJECT_ID_OTHER,
        };
        return;
    }
    ret->id.kind = kind_of_mode(found.stx_mode);
    ret->id.ino = ret->ino = found.stx_ino;
    ret->id.dev = found.stx_dev_major << 20 | found.stx_dev_minor;
    if (ret->id.kind == OBJECT_ID_FILE && (found.stx_mask & STATX_BTIME))
        ret->id.ino = objects_file_number(
            found.stx_ino, (uint64_t)found.stx_btime.tv_sec * NS_PER_SEC + found.stx_btime.tv_nsec);
    if (found.stx_nlink == 0 && str_ends(text, " (deleted)"))
        link->len -= strlen(" (deleted)");
}

static void link_facts(struct fd_link *link, struct object_record *ret)
{
    struct str text = {link->text, link->len};
    uint64_t number;
    if (number_in(text, "socket:[", &number)) {
        ret->id.kind = OBJECT_ID_SOCKET;
        ret->id.ino = ret->ino = number;
    } else if (number_in(text, "pidfd:[", &number)) {
        anon_facts(link, STR("[pidfd]"), ret);
    } else if (str_starts(text, "anon_inode:")) {
        size_t prefix = strlen("anon_inode:");
        anon_facts(link, (struct str){text.data + prefix, text.len - prefix}, ret);
    } else {
        inode_facts(link, ret);
    }
}

static int entry_learn(struct objects *objects, uint32_t index, const struct fd_link *link,
                       struct object_record *facts)
{
    struct object_entry *entry = &objects->entries.data[index];
    char buffer[OBJECT_NAME_BYTES];
    bool path = link->text[0] == '/' && facts->text_kind == OBJECT_TEXT_NONE;
    struct str name = {link->text, link->len};
    uint32_t same;
    entry->asked_ns = clock_mono_ns();
    if (facts->id.kind == OBJECT_ID_SOCKET) {
        int r = net_socket_find(&objects->net, link->pid, facts);
        if (r < 0)
            return r == -ENOENT ? 0 : r;
        r = objects_find(objects, &facts->id, &same); /* flags */
        if (r < 0)
            return r;
    }
    if (!path)
        name = object_entry_words(objects, facts, buffer, sizeof(buffer));
    return object_entry_name(objects, index, facts->id.flags, name);
}

int objects_of_fd(struct objects *objects, int pid, int fd, uint32_t *ret)
{
    struct fd_link link;
    struct object_record facts = {0};
    uint32_t index;
    int r = link_read(pid, fd, &link);
    if (r < 0)
        return r;
    link_facts(&link, &facts);
    r = object_entry_need(objects, &facts.id, &index);
    if (r == -E2BIG)
        return object_shared(objects, facts.id.kind, ret);
    if (r < 0)
        return r;
    const struct object_entry *entry = &objects->entries.data[index];
    uint16_t roles = OBJECT_ID_CLIENT | OBJECT_ID_SERVER | OBJECT_ID_LISTENING;
    bool settled = entry->named && (facts.id.kind != OBJECT_ID_SOCKET || entry->flags & roles);
    if (!settled && (entry->asked_ns == 0 || clock_mono_ns() - entry->asked_ns >= ASK_AGAIN_NS))
        r = entry_learn(objects, index, &link, &facts);
    if (r == 0)
        *ret = objects->entries.data[index].id;
    return r;
}
