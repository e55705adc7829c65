// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is said inside of TLS: what OpenSSL is given to encrypt and gives out decrypted, in heads
 * of messages as io_heads.h has them of sockets. While a thread is inside one of these functions
 * io_heads.h sees which socket it uses, and from where. */
#include "kernel.h"

#include "format/io.h"
#include "format/io_heads.h"

char tls_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct io_heads_tls_config config;

#include "begun.h" /* shared with io.bpf.c */
#include "uprobe.h"

enum {
    SHORT_BYTES = 128,
    USUAL_BYTES = 2048,
    LONG_BYTES = 16 << 10
}; /* a record of TLS is no longer */

/* Shared with io.bpf.c. */
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
} tls_counts SEC(".maps");

/* Pieces that were lost since the last that was told, by SSL and process. */
struct tls_lost_key {
    __u64 ssl;
    __u32 tgid, unused;
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, IO_HEADS_THREADS_MAX);
    __type(key, struct tls_lost_key);
    __type(value, __u32);
} tls_lost SEC(".maps");

static __always_inline void tls_count(__u32 which)
{
    __u64 *count = bpf_map_lookup_elem(&tls_counts, &which);
    if (count)
        *count += 1;
}

static __noinline int lost_add(__u64 ssl, __u32 tgid)
{
    struct tls_lost_key key = {.ssl = ssl, .tgid = tgid};
    __u32 one = 1, *lost = bpf_map_lookup_elem(&tls_lost, &key);
    if (lost)
        *lost += 1;
    else
        bpf_map_update_elem(&tls_lost, &key, &one, BPF_ANY);
    tls_count(IO_HEADS_LOST);
    return 0;
}

static __noinline __u32 lost_take(__u64 ssl, __u32 tgid)
{
    struct tls_lost_key key = {.ssl = ssl, .tgid = tgid};
    const __u32 *found = bpf_map_lookup_elem(&tls_lost, &key);
    __u32 lost = found ? *found : 0;
    if (found)
        bpf_map_delete_elem(&tls_lost, &key);
    return lost;
}

static __always_inline int tls_enter(const struct pt_regs *regs, __u64 buffer, __u64 length)
{
    __u32 pid = (__u32)bpf_get_current_pid_tgid();
    if (!uprobe_thread() || begun_ns() == 0)
        return 0;
    struct io_heads_tls tls = {
        .ssl = uprobe_argument(regs, 1),
        .buffer = buffer,
        .length = length,
        .start_ns = bpf_ktime_get_ns(),
    };
    bpf_map_update_elem(&tls_now, &pid, &tls, BPF_ANY);
    return 0;
}

static __always_inline void piece_fill(struct io_heads_piece *piece, const struct io_thread *thread,
                                       const struct io_heads_tls *tls, __u64 moved, __u16 marks)
{
    uprobe_begin(&piece->head, thread, IO_HEADS_TLS_PIECE, bpf_ktime_get_ns());
    piece->conn = tls->ssl;
    piece->start_ns = tls->start_ns;
    piece->stack = tls->stack;
    piece->ino = 0;
    piece->ssl = tls->ssl;
    piece->moved = moved;
    piece->lost = lost_take(tls->ssl, thread->kernel_tgid);
    piece->len = 0;
    piece->marks = marks;
}

/* The same in three sizes: what is reserved must be a constant, and most is short. */
#define PIECE_TELL(name, room)                                                                     \
    static __noinline int name(const struct io_thread *thread, const struct io_heads_tls *tls,     \
                               __u64 moved, __u16 marks)                                           \
    {                                                                                              \
        struct io_heads_piece *piece = bpf_ringbuf_reserve(                                        \
            &told, sizeof(*piece) - IO_HEAD_BYTES + (room), 0);                                    \
        __u32 take = moved < (room) ? (__u32)moved : (room);                                       \
        if (!piece)                                                                                \
            return lost_add(tls->ssl, thread->kernel_tgid);                                        \
        piece_fill(piece, thread, tls, moved, marks);                                              \
        asm volatile("" : "+r"(take));                                                             \
        if (take > 0 && take <= (room) &&                                                          \
            bpf_probe_read_user(piece->bytes, take, (const void *)tls->buffer) == 0)               \
            piece->len = take;                                                                     \
        bpf_ringbuf_submit(piece, uprobe_wake());                                                  \
        tls_count(IO_HEADS_TOLD);                                                                  \
        return 0;                                                                                  \
    }
PIECE_TELL(piece_short, SHORT_BYTES)
PIECE_TELL(piece_usual, USUAL_BYTES)
PIECE_TELL(piece_long, LONG_BYTES)

/* `moved` is what the function says itself, unless it has put the length somewhere. */
static __always_inline int tls_leave(__s64 result, __u16 marks)
{
    __u32 pid = (__u32)bpf_get_current_pid_tgid();
    const struct io_heads_tls *found = bpf_map_lookup_elem(&tls_now, &pid);
    if (!found)
        return 0;
    struct io_heads_tls tls = *found;
    bpf_map_delete_elem(&tls_now, &pid);
    const struct io_thread *thread = uprobe_thread();
    if (!thread || result <= 0 || tls.buffer == 0)
        return 0;
    __u64 moved = (__u64)result;
    if (tls.length != 0 && bpf_probe_read_user(&moved, sizeof(moved), (const void *)tls.length))
        return 0;
    if (moved == 0)
        return 0;
    if (moved <= SHORT_BYTES)
        return piece_short(thread, &tls, moved, marks);
    if (moved <= USUAL_BYTES)
        return piece_usual(thread, &tls, moved, marks);
    return piece_long(thread, &tls, moved, marks);
}

/* int SSL_read(SSL *, void *, int), SSL_write(SSL *, const void *, int) */
SEC("uprobe")
int tls_data(struct pt_regs *regs)
{
    return tls_enter(regs, uprobe_argument(regs, 2), 0);
}

/* int SSL_read_ex(SSL *, void *, size_t, size_t *), SSL_write_ex(…) */
SEC("uprobe")
int tls_data_ex(struct pt_regs *regs)
{
    return tls_enter(regs, uprobe_argument(regs, 2), uprobe_argument(regs, 4));
}

/* int SSL_do_handshake(SSL *): nothing is said, but the socket is used. */
SEC("uprobe")
int tls_handshake(struct pt_regs *regs)
{
    return tls_enter(regs, 0, 0);
}

/* They return an int: what is above it is anything. */
SEC("uretprobe")
int tls_read_done(struct pt_regs *regs)
{
    return tls_leave((__s32)uprobe_result(regs), IO_HEADS_IN);
}

SEC("uretprobe")
int tls_write_done(struct pt_regs *regs)
{
    return tls_leave((__s32)uprobe_result(regs), 0);
}

SEC("uprobe")
int tls_free(struct pt_regs *regs)
{
    const struct io_thread *thread = uprobe_thread();
    struct io_heads_closed closed = {.conn = uprobe_argument(regs, 1)};
    if (!thread || closed.conn == 0)
        return 0;
    uprobe_begin(&closed.head, thread, IO_HEADS_TLS_CLOSED, bpf_ktime_get_ns());
    if (bpf_ringbuf_output(&told, &closed, sizeof(closed), uprobe_wake()) != 0)
        tls_count(IO_HEADS_LOST);
    return 0;
}
