/* The end of a call: into a row, through the ring, or at least into what is left of it. */
#include "io.h"

enum { IOV_LOOKED_AT = 1024 };

uint64_t io_iov_bytes(const struct iovec *iov, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count && i < IOV_LOOKED_AT; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

static bool key_is(const struct preload_call_key *a, const struct preload_call_key *b)
{
    return a->object == b->object && a->stack == b->stack && a->call == b->call &&
           a->error == b->error && a->flags == b->flags;
}

static uint64_t key_tag(const struct preload_call_key *key)
{
    uint64_t hash = (key->object ^ (uint64_t)key->stack << 40 ^ (uint64_t)key->call << 20 ^
                     (uint64_t)key->error << 52 ^ key->flags) *
                    UINT64_C(0x9e3779b97f4a7c15);
    return hash | 1;
}

static void row_begin(struct preload_call_row *row)
{
    __atomic_store_n(&row->sequence, row->sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void row_end(struct preload_call_row *row)
{
    __atomic_store_n(&row->sequence, row->sequence + 1, __ATOMIC_RELEASE);
}

/* Compilers are not to make a memset() of it. */
static void row_make(struct preload_call_row *row, const struct preload_call *call)
{
    row->used = 1;
    row->key = call->key;
    row->count = row->total_ns = row->max_ns = 0;
    row->bytes = row->asked = row->partial = row->placed = row->sequential = 0;
    row->first_ns = call->start_ns;
    __atomic_store_n(&row->taken, 0, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < PRELOAD_BUCKETS; i++)
        *(volatile uint32_t *)&row->buckets[i] = 0;
    for (unsigned i = 0; i < PRELOAD_CALL_SIZES; i++)
        *(volatile uint32_t *)&row->sizes[i] = 0;
}

static void row_add(struct preload_call_row *row, const struct preload_call *call, uint32_t marks)
{
    uint64_t ns = call->end_ns - call->start_ns;
    row->count++;
    row->total_ns += ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    row->last_ns = call->end_ns;
    row->bytes += call->bytes;
    row->asked += call->asked;
    row->partial += call->bytes > 0 && call->bytes < call->asked;
    row->placed += marks & PRELOAD_CALL_PLACED ? 1 : 0;
    row->sequential += marks & PRELOAD_CALL_SEQUENTIAL ? 1 : 0;
    row->buckets[preload_bucket(ns)]++;
    row->sizes[preload_call_size(call->bytes)]++;
}

/* Among the rows from `first` on: the one of this kind, else one that whyslow has read to its
 * end; NULL: there is none. */
static struct preload_call_row *row_find(struct core_self *self, struct preload_io_thread *place,
                                         unsigned first, unsigned count,
                                         const struct preload_call *call, uint64_t tag)
{
    for (unsigned i = first; i < first + count; i++)
        if (place->row_tags[i] == tag && LIKELY(key_is(&place->rows[i].key, &call->key)))
            return &place->rows[i];
    for (unsigned n = 0; n < count; n++) {
        unsigned i = first + self->call_row_next++ % count;
        struct preload_call_row *row = &place->rows[i];
        if (row->count != __atomic_load_n(&row->taken, __ATOMIC_ACQUIRE))
            continue;
        row_begin(row);
        row_make(row, call);
        row_end(row);
        place->row_tags[i] = tag;
        return row;
    }
    return NULL;
}

static bool rows_add(struct core_self *self, struct preload_io_thread *place, unsigned first,
                     unsigned count, const struct preload_call *call, uint32_t marks)
{
    uint64_t tag = key_tag(&call->key);
    struct preload_call_row *row = row_find(self, place, first, count, call, tag);
    if (!row)
        return false;
    row_begin(row);
    row_add(row, call, marks);
    row_end(row);
    __atomic_store_n(&place->thread.added, place->thread.added + 1, __ATOMIC_RELEASE);
    return true;
}

static bool ring_add(struct preload_thread *place, const struct preload_call *call, uint32_t marks)
{
    struct preload_call *to = (void *)core_ring_room(place, sizeof(*call), 0);
    if (!to)
        return false;
    *to = *call;
    to->record = (struct preload_record){.kind = PRELOAD_CALL, .bytes = sizeof(*call)};
    to->key.flags |= marks;
    core_ring_put(place, sizeof(*call));
    return true;
}

/* A program that whyslow does not come to read goes on and on with one object and no known stack:
 * one row is enough for that, where the ring would be full in a moment. */
static bool object_add(struct core_self *self, struct preload_io_thread *place,
                       const struct preload_call *call, uint32_t marks)
{
    enum { FIRST = PRELOAD_CALL_ROWS - PRELOAD_CALL_ROWS_LAST - PRELOAD_CALL_ROWS_OBJECT };
    return rows_add(self, place, FIRST, PRELOAD_CALL_ROWS_OBJECT, call, marks);
}

/* With what it has in common with no other taken away there is mostly a row for it. */
static void fold(struct core_self *self, struct preload_io_thread *place, struct preload_call *call,
                 uint32_t marks)
{
    if (call->key.stack != 0) {
        place->thread.stacks_skipped++;
        call->key.stack = 0;
        if (object_add(self, place, call, marks))
            return;
    }
    place->folded++;
    call->key.object = 0;
    call->key.flags |= PRELOAD_CALL_FOLDED;
    if (rows_add(self, place, PRELOAD_CALL_ROWS - PRELOAD_CALL_ROWS_LAST, PRELOAD_CALL_ROWS_LAST,
                 call, 0))
        return;
    place->thread.dropped++;
    place->thread.dropped_ns += call->end_ns - call->start_ns;
}

static void call_put(struct core_self *self, struct preload_io_thread *place,
                     struct preload_call *call, uint32_t marks)
{
    enum {
        SHARED = PRELOAD_CALL_ROWS - PRELOAD_CALL_ROWS_LAST - PRELOAD_CALL_ROWS_OBJECT,
        SETS = SHARED / PRELOAD_CALL_WAYS
    };
    unsigned first = (unsigned)(key_tag(&call->key) >> 32) % SETS * PRELOAD_CALL_WAYS;
    if (!rows_add(self, place, first, PRELOAD_CALL_WAYS, call, marks) &&
        !(call->key.stack == 0 && object_add(self, place, call, marks)) &&
        !ring_add(&place->thread, call, marks))
        fold(self, place, call, marks);
}

/* Whether the path may be looked at: only if the kernel has. */
static bool path_was_read(int error)
{
    switch (error) {
    case 0:
    case ENOENT:
    case EACCES:
    case EEXIST:
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case ELOOP:
    case EROFS:
    case EXDEV:
    case ENXIO:
    case ETXTBSY:
    case ENAMETOOLONG:
        return true;
    default:
        return false;
    }
}

/* What the call was about. */
static uint64_t object_of(const struct io_call *call, int64_t result)
{
    if (call->how & IO_NEW_FD && result >= 0) {
        io_fd_forget((int)result);
        struct io_origin origin = {
            call->origin, call->folder, call->path, call->open_flags, {NULL, 0}};
        return io_object(io_fd_tell((int)result, &origin), (int)result);
    }
    if (call->how & IO_ACCEPTS && result >= 0) {
        io_fd_forget((int)result);
        (void)io_fd_tell((int)result, &(struct io_origin){.origin = PRELOAD_ACCEPTED});
    }
    if (call->how & (IO_BY_PATH | IO_NEW_FD) && call->path)
        return path_was_read(call->error) ? io_object(io_path_tell(call->folder, call->path), -1)
                                          : 0;
    if (call->fd < 0)
        return 0;
    uint64_t number = call->number;
    struct io_origin origin = {.origin = call->origin ? call->origin : PRELOAD_SEEN,
                               .peer = call->peer};
    if (UNLIKELY(number == 0) && call->error != EBADF && !(call->how & IO_ENDS_FD))
        number = io_fd_tell(call->fd, &origin);
    /* EBADF is also said of an fd that is open, but not for this. */
    return call->error == EBADF && number == 0 ? 0 : io_object(number, call->fd);
}

/* The table of objects was full. */
static bool is_nameless(const struct io_call *call, uint64_t object)
{
    return object == 0 && call->how & (IO_BY_PATH | IO_NEW_FD) && call->path &&
           path_was_read(call->error);
}

/* Where in the file it was, and whether that is where the one before ended. */
static uint32_t place_of(const struct io_call *call, uint64_t moved)
{
    struct io_fd *known = io_fd_at(call->fd);
    if (!(call->how & (IO_PLACED | IO_ALONG)) || !known || known->kind != IO_FILE)
        return 0;
    uint64_t at = call->how & IO_PLACED ? call->at : __atomic_load_n(&known->at, __ATOMIC_RELAXED);
    if (at == IO_NOWHERE)
        return 0;
    /* One that was learnt only now stands behind what has been moved already. */
    if (call->number == 0 && call->how & IO_ALONG)
        at -= moved;
    uint64_t before = __atomic_load_n(&known->end, __ATOMIC_RELAXED);
    bool follows = at == before || call->number == 0;
    __atomic_store_n(&known->end, at + moved, __ATOMIC_RELAXED);
    if (call->how & IO_ALONG)
        __atomic_store_n(&known->at, at + moved, __ATOMIC_RELAXED);
    return PRELOAD_CALL_PLACED | (follows ? PRELOAD_CALL_SEQUENTIAL : 0);
}

static uint8_t piece_flag(const struct io_call *call)
{
    return call->how & IO_ENDS_FD ? PRELOAD_PIECE_CLOSED
           : call->how & IO_SENDS ? PRELOAD_PIECE_SENT
                                  : 0;
}

/* The beginning of what went over a socket. */
static void piece_put(struct preload_thread *place, const struct io_call *call,
                      const struct preload_call *record)
{
    uint64_t left = record->bytes < PRELOAD_PIECE_BYTES ? record->bytes : PRELOAD_PIECE_BYTES;
    uint32_t bytes = (uint32_t)(sizeof(struct preload_piece) + ((left + 7) & ~UINT64_C(7)));
    struct preload_piece *piece = (void *)core_ring_room(place, bytes, 0);
    if (!piece) {
        place->dropped++;
        return;
    }
    *piece = (struct preload_piece){
        .record = {.kind = PRELOAD_PIECE, .flags = piece_flag(call), .bytes = bytes},
        .object = record->key.object,
        .start_ns = record->start_ns,
        .end_ns = record->end_ns,
        .bytes = record->bytes,
        .stack = record->key.stack,
    };
    volatile uint8_t *to = (void *)(piece + 1);
    for (size_t i = 0; i < call->piece_count && left > 0; i++) {
        const volatile uint8_t *from = call->pieces[i].iov_base;
        uint64_t len = call->pieces[i].iov_len < left ? call->pieces[i].iov_len : left;
        for (uint64_t at = 0; at < len; at++)
            to[piece->len++] = from[at];
        left -= len;
    }
    core_ring_put(place, bytes);
}

static bool is_wanted(const struct io_call *call, int64_t result)
{
    const struct io_fd *known = io_fd_at(call->fd);
    bool moved = call->how & (IO_SENDS | IO_RECEIVES) && result > 0 && call->pieces;
    if (LIKELY(!known || known->kind != IO_SOCKET) || !core_io.objects->pieces ||
        !(moved || call->how & IO_ENDS_FD))
        return false;
    uint64_t number = call->number ? call->number
                                   : __atomic_load_n(&known->number, __ATOMIC_RELAXED);
    const struct preload_object *object = &core_io.objects->at[number % PRELOAD_OBJECTS];
    if (number == 0)
        return false;
    if (__atomic_load_n(&object->number, __ATOMIC_RELAXED) == number)
        return !object->enough;
    /* Its entry is another's by now, and what whyslow said with it: it is told anew. */
    if (!(call->how & IO_ENDS_FD))
        io_fd_forget(call->fd);
    return call->how & IO_ENDS_FD;
}

static void call_end(struct core_self *self, struct preload_thread *place, struct io_call *call,
                     long number, int64_t result, const struct preload_registers *registers)
{
    uint64_t end_ns = core_now_ns();
    bool moved = call->how & IO_MOVES && result > 0;
    struct preload_call record = {
        .key =
            {
                .object = object_of(call, result),
                .call = (uint16_t)number,
                .error = (uint16_t)call->error,
                .flags = call->flags,
            },
        .start_ns = call->start_ns < end_ns ? call->start_ns : end_ns,
        .end_ns = end_ns,
        .bytes = moved ? (uint64_t)result : 0,
        .asked = call->asked,
    };
    if (UNLIKELY(is_nameless(call, record.key.object)))
        record.key.flags |= PRELOAD_CALL_NAMELESS;
    const struct io_fd *known = io_fd_at(call->how & IO_NEW_FD ? (int)result : call->fd);
    if (known && record.key.object & ((1u << PRELOAD_FD_BITS) - 1))
        record.key.flags |= known->flags & PRELOAD_CALL_ROW_FLAGS;
    record.key.stack = core_stack(self, PRELOAD_IO_HOOKS, place, registers, end_ns);
    uint32_t marks = place_of(call, record.bytes);
    if (UNLIKELY(is_wanted(call, result)))
        piece_put(place, call, &record);
    call_put(self, (struct preload_io_thread *)place, &record, marks);
    core_place_mark(place, PRELOAD_IO_HOOKS);
}

void io_end(struct io_call *call, long number, int64_t result,
            const struct preload_registers *registers)
{
    struct core_self *self = &core_self;
    if (!core_enter(self, &core_io_on)) {
        struct preload_thread *place = core_place_still(self, PRELOAD_IO_HOOKS);
        if (self->busy && place)
            ((struct preload_io_thread *)place)->unseen++;
        if (call->how & (IO_NEW_FD | IO_ACCEPTS) && result >= 0)
            io_fd_forget((int)result);
        return;
    }
    struct preload_thread *place = core_place(self, PRELOAD_IO_HOOKS);
    if (place)
        call_end(self, place, call, number, result, registers);
    else if (call->how & (IO_NEW_FD | IO_ACCEPTS) && result >= 0)
        io_fd_forget((int)result);
    core_leave(self);
}

struct io_call io_begin_last(int fd)
{
    struct io_call call = io_begin(fd);
    struct core_self *self = &core_self;
    call.how = IO_ENDS_FD;
    if (call.number == 0 && fd >= 0 && core_enter(self, &core_io_on)) {
        if (core_place(self, PRELOAD_IO_HOOKS))
            call.number = io_fd_tell(fd, &(struct io_origin){.origin = PRELOAD_SEEN});
        core_leave(self);
        call.start_ns = core_now_ns();
    }
    /* Before, not after: another thread may be given the same number meanwhile. */
    io_fd_forget(fd);
    return call;
}
