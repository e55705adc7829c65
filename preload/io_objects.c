/* What fds and paths stand for: told once, and a number from then on.
 *
 * The table of objects is shared with whyslow and all processes of the target; which number an
 * fd has is the process's own knowledge, and dies with exec. A number of a closed fd is taken
 * away by the hooks of whatever closes; an fd that was made behind our back is looked at when it
 * is first used. */
#include "io.h"

#include <sys/sysmacros.h>

enum { PATHS_KNOWN = 1024, NUMBER_TRIES = 8 };

struct io_fd io_fds[IO_FDS];

/* Both words are written without a lock: they belong together if their sum in this algebra is
 * the hash. */
static struct {
    uint64_t number, check;
} paths_known[PATHS_KNOWN];

/* Not with memcpy(): a sanitizer's would look at it. */
static void bytes_copy(void *to, const void *from, size_t len)
{
    volatile uint8_t *t = to;
    const volatile uint8_t *f = from;
    for (size_t i = 0; i < len; i++)
        t[i] = f[i];
}

static struct preload_object *object_at(uint64_t number)
{
    return &core_io.objects->at[number % PRELOAD_OBJECTS];
}

/* The next number, if whyslow has read what had the same place before; NULL: it has not. */
static struct preload_object *object_take(uint64_t *ret_number)
{
    struct preload_io_objects *objects = core_io.objects;
    for (int i = 0; i < NUMBER_TRIES; i++) {
        uint64_t head = __atomic_load_n(&objects->head, __ATOMIC_RELAXED);
        uint64_t tail = __atomic_load_n(&objects->tail, __ATOMIC_ACQUIRE);
        if (head - tail >= PRELOAD_OBJECTS)
            break;
        if (!__atomic_compare_exchange_n(&objects->head, &head, head + 1, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            continue;
        struct preload_object *object = object_at(head + 1);
        __atomic_store_n(&object->number, 0, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        *ret_number = head + 1;
        object->time_ns = core_now_ns();
        object->pid = core_io.process;
        object->dev = object->ino = object->hash = object->birth = 0;
        object->mode = object->flags = 0;
        object->origin = object->family = object->type = object->enough = 0;
        object->own_bytes = object->peer_bytes = object->text_bytes = object->cut = 0;
        object->folder = AT_FDCWD;
        return object;
    }
    __atomic_fetch_add(&objects->nameless, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void object_put(struct preload_object *object, uint64_t number)
{
    __atomic_store_n(&object->number, number, __ATOMIC_RELEASE);
}

static uint16_t text_len(const char *path)
{
    uint16_t len = 0;
    while (len < PRELOAD_TEXT_BYTES && *(const volatile char *)(path + len))
        len++;
    return len;
}

/* Where relative paths begin, with room for `more` bytes and what is between; 0: not known, or
 * there is no room. Asked now: a program that is over soon cannot be asked from outside. */
static uint16_t here_put(struct preload_object *object, uint16_t more)
{
    if (core_sandboxed)
        return 0;
    long len = core_raw(SYS_getcwd, (long)object->text, PRELOAD_TEXT_BYTES, 0, 0) - 1;
    if (len < 1 || object->text[0] != '/' || len + 1 + more >= PRELOAD_TEXT_BYTES)
        return 0;
    if (more > 0 && len > 1)
        object->text[len++] = '/';
    return (uint16_t)len;
}

static void text_put(struct preload_object *object, int folder, const char *path)
{
    while (((const volatile char *)path)[0] == '.' && ((const volatile char *)path)[1] == '/' &&
           ((const volatile char *)path)[2])
        path += 2;
    uint16_t len = text_len(path), begin = 0;
    bool here = len == 1 && *(const volatile char *)path == '.';
    if (folder == AT_FDCWD && len > 0 && len < PRELOAD_TEXT_BYTES &&
        *(const volatile char *)path != '/')
        begin = here_put(object, here ? 0 : len);
    if (begin > 0 && here)
        len = 0;
    bytes_copy(object->text + begin, path, len);
    object->text_bytes = begin + len;
    object->cut = object->text_bytes == PRELOAD_TEXT_BYTES;
}

/* What somebody else has opened: a program that is over soon cannot be asked from outside. */
static void text_ask(struct preload_object *object, int fd)
{
    char path[32] = "/proc/self/fd/";
    char digits[12];
    unsigned count = 0, at = sizeof("/proc/self/fd/") - 1;
    do
        digits[count++] = (char)('0' + fd % 10);
    while ((fd /= 10) > 0 && count < sizeof(digits));
    while (count > 0)
        path[at++] = digits[--count];
    path[at] = '\0';
    long len = core_raw(SYS_readlinkat, AT_FDCWD, (long)path, (long)object->text,
                        PRELOAD_TEXT_BYTES);
    if (len <= 0)
        return;
    object->text_bytes = (uint16_t)len;
    object->cut = len == PRELOAD_TEXT_BYTES;
}

static void address_put(const struct io_address *address, uint8_t *to, uint16_t *ret_len)
{
    uint32_t len = address->len < PRELOAD_ADDRESS_BYTES ? address->len : PRELOAD_ADDRESS_BYTES;
    bytes_copy(to, address->bytes, len);
    *ret_len = (uint16_t)len;
}

/* getsockname() or getpeername(). */
static void address_ask(int fd, long call, uint8_t *to, uint16_t *ret_len)
{
    struct sockaddr_storage storage;
    socklen_t len = sizeof(storage);
    if (core_raw(call, fd, (long)&storage, (long)&len, 0) != 0 || len > sizeof(storage))
        return;
    address_put(&(struct io_address){&storage, len}, to, ret_len);
}

static void socket_put(struct preload_object *object, int fd, const struct io_address *peer)
{
    int type = 0;
    socklen_t len = sizeof(type);
    core_raw6(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, (long)&type, (long)&len, 0);
    object->type = (uint16_t)type;
    address_ask(fd, SYS_getsockname, object->own, &object->own_bytes);
    if (peer)
        address_put(peer, object->peer, &object->peer_bytes);
    else
        address_ask(fd, SYS_getpeername, object->peer, &object->peer_bytes);
}

static uint32_t flags_of(int open_flags)
{
    uint32_t flags = 0;
    if (open_flags & (O_SYNC | O_DSYNC))
        flags |= PRELOAD_CALL_SYNC;
    if (open_flags & O_DIRECT)
        flags |= PRELOAD_CALL_DIRECT;
    if (open_flags & O_NONBLOCK)
        flags |= PRELOAD_CALL_NONBLOCK;
    return flags;
}

static uint32_t kind_of(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
    case S_IFBLK:
        return IO_FILE;
    case S_IFSOCK:
        return IO_SOCKET;
    default:
        return IO_OTHER;
    }
}

/* Where reading goes on. */
static uint64_t position_of(int fd, enum preload_origin origin, uint32_t kind)
{
    if (kind != IO_FILE)
        return IO_NOWHERE;
    if (origin == PRELOAD_OPENED)
        return 0;
    long at = core_raw(SYS_lseek, fd, 0, SEEK_CUR, 0);
    return at < 0 ? IO_NOWHERE : (uint64_t)at;
}

struct file_facts {
    uint64_t dev, ino, birth;
    uint32_t mode;
};

static bool facts_of(int fd, struct file_facts *ret)
{
    struct statx found;
    struct stat plain;
    /* Old kernels lack it, old sandboxes refuse it. */
    if (core_raw6(SYS_statx, fd, (long)"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                  STATX_TYPE | STATX_MODE | STATX_INO | STATX_BTIME, (long)&found, 0) == 0) {
        *ret = (struct file_facts){
            .dev = (uint64_t)found.stx_dev_major << 20 | found.stx_dev_minor,
            .ino = found.stx_ino,
            .mode = found.stx_mode,
        };
        if (found.stx_mask & STATX_BTIME)
            ret->birth = (uint64_t)found.stx_btime.tv_sec * 1000000000u + found.stx_btime.tv_nsec;
        return true;
    }
    if (core_raw(SYS_fstat, fd, (long)&plain, 0, 0) != 0)
        return false;
    *ret = (struct file_facts){
        .dev = (uint64_t)major(plain.st_dev) << 20 | minor(plain.st_dev),
        .ino = plain.st_ino,
        .mode = plain.st_mode,
    };
    return true;
}

uint64_t io_fd_tell(int fd, const struct io_origin *how)
{
    enum preload_origin origin = how->origin;
    int open_flags = how->flags;
    struct io_fd *known = io_fd_at(fd);
    struct file_facts found;
    uint64_t number;
    if (core_sandboxed || !facts_of(fd, &found))
        return 0;
    struct preload_object *object = object_take(&number);
    if (!object)
        return 0;
    if (origin != PRELOAD_OPENED) {
        long flags = core_raw(SYS_fcntl, fd, F_GETFL, 0, 0);
        open_flags = flags < 0 ? 0 : (int)flags;
    }
    uint32_t kind = kind_of(found.mode);
    object->fd = fd;
    object->origin = (uint16_t)origin;
    object->mode = found.mode;
    object->dev = found.dev;
    object->ino = found.ino;
    object->birth = found.birth;
    object->flags = (uint32_t)open_flags;
    object->folder = how->folder;
    if (how->path)
        text_put(object, how->folder, how->path);
    else if (origin == PRELOAD_SEEN && kind != IO_SOCKET)
        text_ask(object, fd);
    if (kind == IO_SOCKET)
        socket_put(object, fd, how->peer.bytes ? &how->peer : NULL);
    object_put(object, number);
    /* A child of vfork() has the memory of its parent, but fds of its own. */
    if (!known || (uint32_t)core_raw(SYS_getpid, 0, 0, 0, 0) != core_io.process)
        return number;
    known->at = known->end = position_of(fd, origin, kind);
    known->flags = flags_of(open_flags);
    known->kind = kind;
    __atomic_store_n(&known->number, number, __ATOMIC_RELEASE);
    return number;
}

static uint64_t text_hash(const char *text, uint16_t len)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint16_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

static uint32_t moves; /* of where relative paths begin */

void io_path_moved(void)
{
    __atomic_fetch_add(&moves, 1, __ATOMIC_RELAXED);
}

/* What a relative path means hangs on where it begins. */
static uint64_t place_hash(int folder, const char *path)
{
    if (*(const volatile char *)path == '/')
        return 0;
    const struct io_fd *known = io_fd_at(folder);
    uint64_t from = known ? known->number << 32 | (uint32_t)folder
                          : __atomic_load_n(&moves, __ATOMIC_RELAXED);
    return (from + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t io_path_tell(int folder, const char *path)
{
    uint64_t number;
    uint64_t hash = text_hash(path, text_len(path)) ^ place_hash(folder, path);
    unsigned at = (unsigned)(hash >> 32) % PATHS_KNOWN;
    number = __atomic_load_n(&paths_known[at].number, __ATOMIC_RELAXED);
    if (number != 0 && (__atomic_load_n(&paths_known[at].check, __ATOMIC_RELAXED) ^ number) == hash)
        return number;
    struct preload_object *object = object_take(&number);
    if (!object)
        return 0;
    object->fd = -1;
    object->folder = folder;
    object->origin = PRELOAD_PATH;
    object->hash = hash;
    text_put(object, folder, path);
    object_put(object, number);
    __atomic_store_n(&paths_known[at].number, number, __ATOMIC_RELAXED);
    __atomic_store_n(&paths_known[at].check, hash ^ number, __ATOMIC_RELAXED);
    return number;
}
