/* What is said on sockets: the head of every message goes to user space, which takes it apart, for
 * as long as user space wants to know.
 *
 *     heads_look()   a call on a socket has returned
 *
 * Whoever includes this has before it the ring `told` and wake_flags() as in told.h. It calls for
 * every call that has returned and whose moment.object is a socket: of close() the socket that is
 * gone now, of sendfile() the one that is sent to.
 *
 * A connection nobody wants to know about costs one lookup a call. Heads are long, since many
 * messages may be in one piece; a download must not fill the ring, so that one connection tells
 * IO_HEADS_BUDGET_BYTES in IO_HEADS_WINDOW_NS like that, and from then on short heads. */
#pragma once

#include "kernel.h"

#include "format/io.h"
#include "format/io_heads.h"
#include "objects.h"

enum heads_kind {
    HEADS_NONE,
    HEADS_BUFFER,   /* one: address and length are arguments 1 and 2 */
    HEADS_VECTOR,   /* argument 1 points to so many buffers as argument 2 says */
    HEADS_MESSAGE,  /* argument 1 points to a struct msghdr */
    HEADS_MESSAGES, /* argument 1 points to many of them, each with its length */
    HEADS_FILE,     /* bytes nobody sees: sendfile, splice */
    HEADS_CONNECT,
    HEADS_ACCEPT,
    HEADS_CLOSE,
    HEADS_KINDS = 0xff,
    HEADS_RECEIVES = 0x100,
    HEADS_FLAGS_3 = 0x200, /* argument 3 are the flags of recv() */
    HEADS_FLAGS_2 = 0x400,
};

enum {
    HEADS_MSG_OOB = 1,
    HEADS_MSG_PEEK = 2,
    HEADS_ERROR_PIPE = 32,
    HEADS_ERROR_RESET = 104,
    HEADS_ERROR_IN_PROGRESS = 115,
    HEADS_PORT_DNS = 53,
    HEADS_CPU_BITS = 10,
};

static __always_inline __u32 heads_kind_of(__s32 call)
{
    switch (call) {
#if defined(TARGET_x86_64)
    case 0: /* read */
        return HEADS_BUFFER | HEADS_RECEIVES;
    case 1:  /* write */
    case 44: /* sendto */
        return HEADS_BUFFER;
    case 45: /* recvfrom */
        return HEADS_BUFFER | HEADS_RECEIVES | HEADS_FLAGS_3;
    case 19: /* readv */
        return HEADS_VECTOR | HEADS_RECEIVES;
    case 20: /* writev */
        return HEADS_VECTOR;
    case 46: /* sendmsg */
        return HEADS_MESSAGE;
    case 47: /* recvmsg */
        return HEADS_MESSAGE | HEADS_RECEIVES | HEADS_FLAGS_2;
    case 307: /* sendmmsg */
        return HEADS_MESSAGES;
    case 299: /* recvmmsg */
        return HEADS_MESSAGES | HEADS_RECEIVES | HEADS_FLAGS_3;
    case 40:  /* sendfile */
    case 275: /* splice */
        return HEADS_FILE;
    case 42: /* connect */
        return HEADS_CONNECT;
    case 43:  /* accept */
    case 288: /* accept4 */
        return HEADS_ACCEPT;
    case 3: /* close */
        return HEADS_CLOSE;
#elif defined(TARGET_aarch64)
    case 63: /* read */
        return HEADS_BUFFER | HEADS_RECEIVES;
    case 64:  /* write */
    case 206: /* sendto */
        return HEADS_BUFFER;
    case 207: /* recvfrom */
        return HEADS_BUFFER | HEADS_RECEIVES | HEADS_FLAGS_3;
    case 65: /* readv */
        return HEADS_VECTOR | HEADS_RECEIVES;
    case 66: /* writev */
        return HEADS_VECTOR;
    case 211: /* sendmsg */
        return HEADS_MESSAGE;
    case 212: /* recvmsg */
        return HEADS_MESSAGE | HEADS_RECEIVES | HEADS_FLAGS_2;
    case 269: /* sendmmsg */
        return HEADS_MESSAGES;
    case 243: /* recvmmsg */
        return HEADS_MESSAGES | HEADS_RECEIVES | HEADS_FLAGS_3;
    case 71: /* sendfile */
    case 76: /* splice */
        return HEADS_FILE;
    case 203: /* connect */
        return HEADS_CONNECT;
    case 202: /* accept */
    case 242: /* accept4 */
        return HEADS_ACCEPT;
    case 57: /* close */
        return HEADS_CLOSE;
#endif
    default:
        return HEADS_NONE;
    }
}

/* As programs lay them out, on machines of 64 bits. */
struct heads_buffer {
    __u64 address, bytes;
};
struct heads_message {
    __u64 name;
    __u32 name_bytes, unused;
    __u64 buffers, buffer_count;
    __u64 control, control_bytes;
    __u32 flags, unused_too;
};
struct heads_message_of_many {
    struct heads_message message;
    __u32 bytes, unused;
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, IO_HEADS_CONNS_MAX);
    __type(key, __u64);
    __type(value, struct io_heads_conn);
} io_conns SEC(".maps");

/* Shared with tls.bpf.c. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, IO_HEADS_THREADS_MAX);
    __type(key, __u32);
    __type(value, struct io_heads_tls);
} tls_now SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, IO_HEADS_COUNTS);
    __type(key, __u32);
    __type(value, __u64);
} io_heads_counts SEC(".maps");

/* Where a piece is put together: what is reserved in a ring must be a constant, and most pieces
 * are short. One for each CPU, too large for a map that the kernel divides so. Nobody else runs on
 * this CPU meanwhile: tracepoints do not let go of it. */
struct heads_room {
    struct io_heads_piece piece;
    /* For the verifier, which thinks of the longest at the last place. */
    __u8 beyond[IO_HEAD_BYTES];
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, IO_HEADS_CPUS);
    __type(key, __u32);
    __type(value, struct heads_room);
} io_heads_room SEC(".maps");

static __always_inline struct heads_room *heads_room_get(void)
{
    __u32 cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&io_heads_room, &cpu);
}

static __always_inline void heads_count(__u32 which)
{
    __u64 *count = bpf_map_lookup_elem(&io_heads_counts, &which);
    if (count)
        *count += 1;
}

static __always_inline __u64 heads_new_id(__u64 now_ns)
{
    /* The highest bit is for numbers of others. */
    return (now_ns << HEADS_CPU_BITS & ~(1ULL << 63)) |
           (bpf_get_smp_processor_id() & ((1 << HEADS_CPU_BITS) - 1));
}

static __always_inline void heads_begin(struct offcpu_head *head, const struct io_moment *moment,
                                        __u32 record)
{
    head->record = record;
    head->tid = moment->tid;
    head->tgid = moment->tgid;
    head->exec = moment->exec;
    head->time_ns = moment->end_ns;
}

/* ---- connections ---- */

static __always_inline void heads_opened(const struct io_moment *moment, __u64 ino, __u64 opened_ns)
{
    struct io_heads_conn conn = {
        .id = heads_new_id(moment->end_ns),
        .opened_ns = opened_ns,
        .tgid = moment->kernel_tgid,
    };
    bpf_map_update_elem(&io_conns, &ino, &conn, BPF_ANY);
}

static __always_inline void heads_accepted(const struct io_moment *moment)
{
    if (moment->result < 0)
        return;
    __u64 file = object_file_of((int)(__u32)bpf_get_current_pid_tgid(), (int)moment->result);
    if (file)
        heads_opened(moment, BPF_CORE_READ((struct file *)file, f_inode, i_ino), moment->end_ns);
}

/* `gone`: the process has closed it. One that never spoke may have left it to a child. */
static __always_inline void heads_ended(const struct io_moment *moment, bool gone)
{
    __u64 ino = moment->object.ino;
    struct io_heads_conn *conn = bpf_map_lookup_elem(&io_conns, &ino);
    if (!conn || conn->tgid != moment->kernel_tgid || !conn->met)
        return;
    struct io_heads_closed closed = {.conn = conn->id};
    heads_begin(&closed.head, moment, IO_HEADS_CLOSED);
    if (gone)
        closed.head.time_ns = moment->start_ns;
    if (bpf_ringbuf_output(&told, &closed, sizeof(closed), wake_flags(false, moment->end_ns)) == 0)
        bpf_map_delete_elem(&io_conns, &ino);
}

/* A name that goes with a datagram, where the socket itself has no peer. */
static __always_inline void heads_name(struct object_record *object, __u64 name)
{
    __u16 family = 0;
    __be16 port = 0;
    if (name == 0 || object->remote_port != 0 || object->socket_type != OBJECT_SOCK_DGRAM)
        return;
    bpf_probe_read_user(&family, sizeof(family), (const void *)name);
    bpf_probe_read_user(&port, sizeof(port), (const void *)(name + 2));
    if (family == OBJECT_AF_INET)
        bpf_probe_read_user(object->remote, 4, (const void *)(name + 4));
    else if (family == OBJECT_AF_INET6)
        bpf_probe_read_user(object->remote, 16, (const void *)(name + 8));
    else
        return;
    object->remote_port = __builtin_bswap16(port);
}

/* May a known protocol be spoken on it? */
static __always_inline bool heads_may_speak(const struct object_record *object)
{
    bool internet = object->family == OBJECT_AF_INET || object->family == OBJECT_AF_INET6;
    if (object->socket_type == OBJECT_SOCK_STREAM)
        return internet || object->family == OBJECT_AF_UNIX;
    return internet && object->socket_type == OBJECT_SOCK_DGRAM &&
           (object->remote_port == HEADS_PORT_DNS || object->local_port == HEADS_PORT_DNS);
}

/* The first time that something is said: false where nobody would understand, or the ring is full.
 */
__attribute__((noinline)) int heads_meet(const struct io_moment *moment, __u64 name, __u64 conn_id,
                                         __u64 opened_ns)
{
    if (!moment)
        return 0;
    struct io_heads_met *met = bpf_ringbuf_reserve(&told, sizeof(*met), 0);
    if (!met)
        return -1;
    heads_begin(&met->head, moment, IO_HEADS_MET);
    met->conn = conn_id;
    met->opened_ns = opened_ns;
    met->object.type = OBJECT_RECORD_TYPE;
    met->object.tgid = moment->kernel_tgid;
    met->object.id = moment->object;
    met->object.fd = moment->fd;
    object_describe(&met->object, moment->file);
    heads_name(&met->object, name);
    if (!heads_may_speak(&met->object)) {
        bpf_ringbuf_discard(met, BPF_RB_NO_WAKEUP);
        heads_count(IO_HEADS_IGNORED);
        return 0;
    }
    bpf_ringbuf_submit(met, wake_flags(false, moment->end_ns));
    return 1;
}

/* ---- pieces ---- */

/* More of a piece; how much of it is there then. */
static __always_inline __u32 heads_append(struct heads_room *room, __u32 len, __u64 address,
                                          __u64 bytes)
{
    if (len >= IO_HEAD_BYTES)
        return len;
    __u32 take = IO_HEAD_BYTES - len;
    if (bytes < take)
        take = (__u32)bytes;
    /* For the verifier, which does not see what the compiler does; so is the mask. */
    asm volatile("" : "+r"(take));
    if (take == 0 || take > IO_HEAD_BYTES)
        return len;
    if (bpf_probe_read_user(room->piece.bytes + (len & (IO_HEAD_BYTES - 1)), take,
                            (const void *)address) != 0)
        return len;
    return len + take;
}

/* From many buffers the first bytes that were moved, in one. */
__attribute__((noinline)) __u32 heads_gather(__u64 buffers, __u64 count, __u64 bytes)
{
    __u32 len = 0;
    struct heads_room *room = heads_room_get();
    if (!room)
        return 0;
    for (__u32 i = 0; i < IO_HEADS_BUFFERS_MAX; i++) {
        struct heads_buffer buffer = {0};
        if (i >= count || len >= IO_HEAD_BYTES || len >= bytes)
            break;
        bpf_probe_read_user(&buffer, sizeof(buffer), (const void *)(buffers + i * sizeof(buffer)));
        __u64 rest = bytes - len;
        __u32 before = len;
        __u64 here = buffer.bytes < rest ? buffer.bytes : rest;
        len = heads_append(room, len, buffer.address, here);
        if (len - before < here)
            break; /* full, or not readable: what follows would not join on */
    }
    return len;
}

/* The piece whose head is in the room, `len` bytes of it. */
static __always_inline void heads_tell(const struct io_moment *moment, struct io_heads_conn *conn,
                                       struct heads_room *room, __u32 len, __u64 bytes,
                                       bool receives)
{
    struct io_heads_piece *piece = &room->piece;
    __u32 thread = (__u32)bpf_get_current_pid_tgid();
    struct io_heads_tls *tls = bpf_map_lookup_elem(&tls_now, &thread);
    heads_begin(&piece->head, moment, IO_HEADS_PIECE);
    piece->conn = conn->id;
    piece->start_ns = moment->start_ns;
    piece->stack = moment->stack;
    piece->ino = moment->object.ino;
    piece->ssl = tls ? tls->ssl : 0;
    piece->moved = bytes;
    piece->lost = conn->lost;
    piece->marks = receives ? IO_HEADS_IN : 0;
    if (tls)
        tls->stack = moment->stack;
    if (moment->end_ns - conn->window_ns > IO_HEADS_WINDOW_NS) {
        conn->window_ns = moment->end_ns;
        conn->bytes = 0;
    }
    if (conn->bytes > IO_HEADS_BUDGET_BYTES && len > IO_HEAD_SHORT_BYTES) {
        heads_count(IO_HEADS_SHORT);
        len = IO_HEAD_SHORT_BYTES;
    }
    piece->len = len;
    __u64 size = (sizeof(*piece) - IO_HEAD_BYTES) + (len & (2 * IO_HEAD_BYTES - 1));
    if (conn->bytes > 2 * IO_HEADS_BUDGET_BYTES) {
        heads_count(IO_HEADS_BEYOND);
        conn->lost++;
        return;
    }
    if (bpf_ringbuf_output(&told, piece, size, wake_flags(false, moment->end_ns)) != 0) {
        heads_count(IO_HEADS_LOST);
        conn->lost++;
        return;
    }
    conn->bytes += (__u32)size;
    conn->lost = 0;
    conn->tgid = moment->kernel_tgid;
    heads_count(IO_HEADS_TOLD);
}

/* What a call says: one piece, or of many messages several. */
static __always_inline void heads_said(const struct io_moment *moment, struct io_heads_conn *conn,
                                       __u32 kind, const struct heads_message *message)
{
    __u32 len = 0;
    bool receives = kind & HEADS_RECEIVES;
    struct heads_room *room = heads_room_get();
    if (!room) {
        heads_count(IO_HEADS_LOST);
        conn->lost++;
        return;
    }
    switch (kind & HEADS_KINDS) {
    case HEADS_BUFFER:
        len = heads_append(room, 0, moment->args[1], (__u64)moment->result);
        break;
    case HEADS_VECTOR:
        len = heads_gather(moment->args[1], moment->args[2], (__u64)moment->result);
        break;
    case HEADS_MESSAGE:
        len = heads_gather(message->buffers, message->buffer_count, (__u64)moment->result);
        break;
    case HEADS_MESSAGES:
        for (__u32 i = 0; i < IO_HEADS_MESSAGES_MAX; i++) {
            struct heads_message_of_many one = {0};
            if (i >= (__u64)moment->result)
                return;
            bpf_probe_read_user(&one, sizeof(one),
                                (const void *)(moment->args[1] + i * sizeof(one)));
            len = heads_gather(one.message.buffers, one.message.buffer_count, one.bytes);
            heads_tell(moment, conn, room, len, one.bytes, receives);
        }
        if (moment->result > IO_HEADS_MESSAGES_MAX)
            heads_count(IO_HEADS_CUT);
        return;
    default:
        break;
    }
    heads_tell(moment, conn, room, len, (__u64)moment->result, receives);
}

/* Where a datagram goes to or comes from, if the call says so; and its message. */
static __always_inline __u64 heads_name_of(const struct io_moment *moment, __u32 kind,
                                           struct heads_message *ret)
{
    if ((kind & HEADS_KINDS) == HEADS_BUFFER)
        return kind == HEADS_BUFFER || kind & HEADS_FLAGS_3 ? moment->args[4] : 0;
    if ((kind & HEADS_KINDS) != HEADS_MESSAGE && (kind & HEADS_KINDS) != HEADS_MESSAGES)
        return 0;
    bpf_probe_read_user(ret, sizeof(*ret), (const void *)moment->args[1]);
    return ret->name;
}

/* A connection that says something for the first time; NULL: nobody wants to hear it. */
static __always_inline struct io_heads_conn *heads_first(const struct io_moment *moment,
                                                         struct io_heads_conn *conn, __u64 name)
{
    __u64 ino = moment->object.ino;
    if (!conn) {
        heads_opened(moment, ino, 0);
        conn = bpf_map_lookup_elem(&io_conns, &ino);
    }
    if (!conn)
        return 0;
    int met = heads_meet(moment, name, conn->id, conn->opened_ns);
    if (met > 0)
        conn->met = 1;
    else if (met == 0)
        conn->verdict = IO_HEADS_IGNORE;
    else
        conn->opened_ns = 0, heads_count(IO_HEADS_LOST);
    return met > 0 ? conn : 0;
}

static __always_inline void heads_piece(const struct io_moment *moment, __u32 kind)
{
    __u64 ino = moment->object.ino;
    struct heads_message message = {0};
    struct io_heads_conn *conn = bpf_map_lookup_elem(&io_conns, &ino);
    if (conn && conn->verdict == IO_HEADS_IGNORE)
        return;
    if (conn && conn->verdict == IO_HEADS_INSIDE) {
        __u32 thread = (__u32)bpf_get_current_pid_tgid();
        struct io_heads_tls *tls = bpf_map_lookup_elem(&tls_now, &thread);
        if (tls)
            tls->stack = moment->stack;
        return;
    }
    __u64 flags = kind & HEADS_FLAGS_3   ? moment->args[3]
                  : kind & HEADS_FLAGS_2 ? moment->args[2]
                                         : 0;
    if (flags & (HEADS_MSG_PEEK | HEADS_MSG_OOB))
        return; /* will be read again, or is none of what is said in order */
    __u64 name = heads_name_of(moment, kind, &message);
    if (!conn || !conn->met)
        conn = heads_first(moment, conn, name);
    if (conn)
        heads_said(moment, conn, kind, &message);
}

/* The other side will say nothing more. */
static __always_inline bool heads_is_end(const struct io_moment *moment, __u32 kind)
{
    if (moment->result < 0)
        return moment->result == -HEADS_ERROR_RESET || moment->result == -HEADS_ERROR_PIPE;
    /* Of a server it is not the end: it may still have to answer. */
    return kind & HEADS_RECEIVES && !(moment->object.flags & OBJECT_ID_SERVER) &&
           ((kind & HEADS_KINDS) != HEADS_BUFFER || moment->args[2] != 0);
}

__attribute__((noinline)) int heads_look(const struct io_moment *moment)
{
    if (!moment)
        return 0;
    __u32 kind = heads_kind_of(moment->call);
    switch (kind & HEADS_KINDS) {
    case HEADS_NONE:
        break;
    case HEADS_CONNECT:
        if (moment->result == 0 || moment->result == -HEADS_ERROR_IN_PROGRESS)
            heads_opened(moment, moment->object.ino, moment->start_ns);
        break;
    case HEADS_ACCEPT:
        heads_accepted(moment);
        break;
    case HEADS_CLOSE:
        heads_ended(moment, true);
        break;
    default:
        if (moment->result > 0)
            heads_piece(moment, kind);
        else if (heads_is_end(moment, kind))
            heads_ended(moment, false);
        break;
    }
    return 0;
}
