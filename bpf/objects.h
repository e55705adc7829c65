/* What an fd stands for: file, pipe, socket with its role, eventfd …
 *
 *     object_of_fd()   the id of what a task's fd is; a few reads
 *     object_tell()    the first time an id is seen, a record with all that its name is made of
 *
 * For tracing programs. From the table of fds on all are plain addresses, read by probing. A file
 * may be closed while we look: then what we read is old, or makes no sense and is refused, but
 * never does harm.
 *
 * Whoever includes this may define OBJECTS_PID_NS, the inode of the PID namespace that numbers of
 * processes are to be of (0: the first one). */
#pragma once

#include "kernel.h"

#include "format/objects.h"

#ifndef OBJECTS_PID_NS
#define OBJECTS_PID_NS 0
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
};

struct files_struct {
    struct fdtable *fdt;
};

struct qstr {
    const unsigned char *name;
};

struct dentry {
    struct dentry *d_parent;
    struct qstr d_name;
};

struct vfsmount {
    struct dentry *mnt_root;
};

struct mount {
    struct mount *mnt_parent;
    struct dentry *mnt_mountpoint;
    struct vfsmount mnt;
};

struct path {
    struct vfsmount *mnt;
    struct dentry *dentry;
};

struct super_block {
    __u32 s_dev;
    unsigned long s_magic;
};

struct inode {
    __u16 i_mode;
    unsigned long i_ino;
    __u32 i_generation;
    struct super_block *i_sb;
    void *i_private;
};

struct file {
    struct inode *f_inode;
    struct path f_path;
    void *private_data;
};

struct in6_addr {
    union {
        __u8 u6_addr8[16];
    } in6_u;
};

struct sock_common {
    __u32 skc_daddr;
    __u32 skc_rcv_saddr;
    __be16 skc_dport;
    __u16 skc_num;
    unsigned short skc_family;
    unsigned char skc_state;
    struct in6_addr skc_v6_daddr; /* without IPv6 in the kernel: not there */
    struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
    struct sock_common __sk_common;
    __u16 sk_type;
    __u16 sk_protocol;
};

struct socket {
    struct sock *sk;
};

struct inet_bind_bucket {
    signed char fastreuse;
};

struct inet_connection_sock {
    struct inet_bind_bucket *icsk_bind_hash;
};

struct sockaddr_un {
    __u16 sun_family;
    char sun_path[108];
};

struct unix_address {
    int len;
    struct sockaddr_un name[0];
};

struct unix_sock {
    struct unix_address *addr;
    struct sock *peer;
};

#pragma clang attribute pop

/* From the kernel's interface, whose numbers never change. */
enum {
    OBJECT_MODE_TYPE = 0170000,
    OBJECT_MODE_FIFO = 0010000,
    OBJECT_MODE_CHAR = 0020000,
    OBJECT_MODE_DIRECTORY = 0040000,
    OBJECT_MODE_BLOCK = 0060000,
    OBJECT_MODE_FILE = 0100000,
    OBJECT_MODE_SOCKET = 0140000,
    OBJECT_ANON_MAGIC = 0x09041934,
    OBJECT_PIDFS_MAGIC = 0x50494446,
    OBJECT_PIPEFS_MAGIC = 0x50495045,
    OBJECT_AF_UNIX = 1,
    OBJECT_AF_INET = 2,
    OBJECT_AF_INET6 = 10,
    OBJECT_TCP_ESTABLISHED = 1,
    OBJECT_TCP_CLOSE = 7,
    OBJECT_TCP_LISTEN = 10,
    OBJECT_SOCK_STREAM = 1,
    OBJECT_SOCK_DGRAM = 2,
    OBJECT_IPPROTO_TCP = 6,
    OBJECT_PORT_BORDER = 32768, /* ports that Linux picks by itself begin here */
    OBJECT_NAMESPACES_MAX = 8,
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, OBJECTS_SEEN_MAX);
    __type(key, struct object_id);
    __type(value, __u8);
} objects_seen SEC(".maps");

/* A process's number where we are. */
static __always_inline __u64 object_pid_number(struct pid *pid)
{
    unsigned int level = BPF_CORE_READ(pid, level);
    const char *numbers = (const char *)pid + bpf_core_field_offset(struct pid, numbers);
    for (unsigned int i = 0; i < OBJECT_NAMESPACES_MAX && i <= level; i++) {
        const struct upid *upid = (const void *)(numbers + i * bpf_core_type_size(struct upid));
        if (OBJECTS_PID_NS == 0 || BPF_CORE_READ(upid, ns, ns.inum) == OBJECTS_PID_NS)
            return (__u64)(__u32)BPF_CORE_READ(upid, nr);
    }
    return 0;
}

static __always_inline bool object_ip4_loopback(__u32 address)
{
    return *(const __u8 *)&address == 127;
}

/* ::1, or an IPv4 address in IPv6's clothes that is one. */
static __always_inline bool object_ip6_loopback(const __u32 address[4])
{
    const __u8 *bytes = (const __u8 *)address;
    if (address[0] != 0 || address[1] != 0)
        return false;
    if (address[2] == 0)
        return bytes[12] == 0 && bytes[13] == 0 && bytes[14] == 0 && bytes[15] == 1;
    return bytes[8] == 0 && bytes[9] == 0 && bytes[10] == 0xff && bytes[11] == 0xff &&
           bytes[12] == 127;
}

/* The other side is this machine, or, of a socket without one, can be nothing else. */
static __always_inline bool object_inet_local(struct sock *sk, __u16 family, bool connected)
{
    struct sock_common *common = (void *)sk;
    if (family == OBJECT_AF_INET) {
        __u32 own = BPF_CORE_READ(common, skc_rcv_saddr);
        __u32 peer = connected ? BPF_CORE_READ(common, skc_daddr) : own;
        return object_ip4_loopback(peer) || (connected && own == peer);
    }
    if (!bpf_core_field_exists(common->skc_v6_daddr))
        return false;
    __u32 own[4], peer[4];
    bpf_probe_read_kernel(own, sizeof(own), &common->skc_v6_rcv_saddr);
    if (!connected)
        return object_ip6_loopback(own);
    bpf_probe_read_kernel(peer, sizeof(peer), &common->skc_v6_daddr);
    return object_ip6_loopback(peer) ||
           (own[0] == peer[0] && own[1] == peer[1] && own[2] == peer[2] && own[3] == peer[3]);
}

/* The kernel marks the bucket of a port with -1 when it was picked in connect(); a connection
 * that was accepted shares the bucket of the socket that listens, which was bound. */
static __always_inline __u16 object_tcp_role(struct sock *sk)
{
    struct inet_bind_bucket *bucket = BPF_CORE_READ((struct inet_connection_sock *)sk,
                                                    icsk_bind_hash);
    if (!bucket)
        return 0;
    return BPF_CORE_READ(bucket, fastreuse) < 0 ? OBJECT_ID_CLIENT : OBJECT_ID_SERVER;
}

/* Nobody remembers who began: the side with the lower port is the one that is known by it. */
static __always_inline __u16 object_port_role(__u16 own, __u16 peer)
{
    if (own == 0)
        return 0;
    if (peer == 0) /* datagrams of anybody, if the port was chosen by people */
        return own < OBJECT_PORT_BORDER ? OBJECT_ID_LISTENING : OBJECT_ID_CLIENT;
    return own < peer ? OBJECT_ID_SERVER : OBJECT_ID_CLIENT;
}

static __always_inline __u16 object_inet_flags(struct sock *sk, __u16 family)
{
    struct sock_common *common = (void *)sk;
    __u16 flags, peer_port = __builtin_bswap16(BPF_CORE_READ(common, skc_dport));
    if (BPF_CORE_READ(sk, sk_type) == OBJECT_SOCK_STREAM) {
        __u8 tcp_state = BPF_CORE_READ(common, skc_state);
        if (tcp_state == OBJECT_TCP_LISTEN)
            flags = OBJECT_ID_LISTENING;
        else if (tcp_state == OBJECT_TCP_CLOSE || peer_port == 0)
            return 0;
        else
            flags = object_tcp_role(sk);
    } else {
        flags = object_port_role(BPF_CORE_READ(common, skc_num), peer_port);
    }
    if (flags && object_inet_local(sk, family, peer_port != 0))
        flags |= OBJECT_ID_LOCAL;
    return flags;
}

/* Whoever was accepted has the address of the socket that listens; whoever connected has none,
 * as a rule, and a peer with one. Both sides of a socketpair() have none. */
static __always_inline __u16 object_unix_flags(struct sock *sk)
{
    struct unix_sock *own = (void *)sk;
    if (!bpf_core_field_exists(own->addr))
        return OBJECT_ID_LOCAL;
    bool named = BPF_CORE_READ(own, addr) != 0;
    if (BPF_CORE_READ((struct sock_common *)sk, skc_state) == OBJECT_TCP_LISTEN)
        return OBJECT_ID_LOCAL | OBJECT_ID_LISTENING;
    struct unix_sock *peer = (void *)BPF_CORE_READ(own, peer);
    if (!peer) {
        bool datagrams = BPF_CORE_READ(sk, sk_type) == OBJECT_SOCK_DGRAM;
        return OBJECT_ID_LOCAL | (datagrams && named ? OBJECT_ID_LISTENING : 0);
    }
    if (named)
        return OBJECT_ID_LOCAL | OBJECT_ID_SERVER;
    return OBJECT_ID_LOCAL | (BPF_CORE_READ(peer, addr) ? OBJECT_ID_CLIENT : 0);
}

static __always_inline struct sock *object_sock_of(struct file *file)
{
    struct socket *socket = BPF_CORE_READ(file, private_data);
    return BPF_CORE_READ(socket, sk);
}

static __always_inline __u16 object_socket_flags(struct file *file)
{
    struct sock *sk = object_sock_of(file);
    if (!sk)
        return 0;
    __u16 family = BPF_CORE_READ((struct sock_common *)sk, skc_family);
    if (family == OBJECT_AF_UNIX)
        return object_unix_flags(sk);
    return family == OBJECT_AF_INET || family == OBJECT_AF_INET6 ? object_inet_flags(sk, family)
                                                                 : 0;
}

/* The first eight letters of what such a file is called tell them apart. */
#define OBJECT_WORD(a, b, c, d, e, f, g, h)                                                        \
    ((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 |       \
     (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

static __always_inline void object_of_anon(struct file *file, struct object_id *ret)
{
    const unsigned char *name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
    __u64 word = 0;
    bpf_probe_read_kernel(&word, sizeof(word), name);
    ret->ino = (__u64)file;
    ret->dev = 0;
    ret->kind = OBJECT_ID_OTHER;
    if (word == OBJECT_WORD('[', 'e', 'v', 'e', 'n', 't', 'f', 'd')) {
        ret->kind = OBJECT_ID_EVENT;
    } else if (word == OBJECT_WORD('[', 'e', 'v', 'e', 'n', 't', 'p', 'o')) {
        ret->kind = OBJECT_ID_POLL_SET;
    } else if (word == OBJECT_WORD('[', 't', 'i', 'm', 'e', 'r', 'f', 'd')) {
        ret->kind = OBJECT_ID_TIMER;
    } else if (word == OBJECT_WORD('[', 'p', 'i', 'd', 'f', 'd', ']', 0)) { /* before Linux 6.9 */
        ret->kind = OBJECT_ID_PROCESS;
        ret->ino = object_pid_number(BPF_CORE_READ(file, private_data));
    }
}

static __always_inline void object_of_inode(struct file *file, struct inode *inode, __u16 type,
                                            struct object_id *ret)
{
    struct super_block *sb = BPF_CORE_READ(inode, i_sb);
    ret->dev = BPF_CORE_READ(sb, s_dev);
    if (type == OBJECT_MODE_FIFO) {
        ret->kind = OBJECT_ID_PIPE;
        return;
    }
    if (type == OBJECT_MODE_CHAR) {
        ret->kind = OBJECT_ID_CHAR_DEVICE;
        return;
    }
    /* Since Linux 6.16 these look like files. */
    __u64 magic = BPF_CORE_READ(sb, s_magic);
    if (magic == OBJECT_ANON_MAGIC) {
        object_of_anon(file, ret);
        return;
    }
    if (magic == OBJECT_PIDFS_MAGIC) {
        ret->kind = OBJECT_ID_PROCESS;
        ret->ino = object_pid_number(BPF_CORE_READ(inode, i_private));
        ret->dev = 0;
        return;
    }
    ret->kind = type == OBJECT_MODE_FILE        ? OBJECT_ID_FILE
                : type == OBJECT_MODE_DIRECTORY ? OBJECT_ID_DIRECTORY
                : type == OBJECT_MODE_BLOCK     ? OBJECT_ID_BLOCK_DEVICE
                                                : OBJECT_ID_OTHER;
    if (type == OBJECT_MODE_FILE)
        ret->ino ^= (__u64)BPF_CORE_READ(inode, i_generation) << 32;
}

/* 1, or 0 where there is none. Not static and not inlined, so that the verifier looks at it once
 * however many ask. `address` is that of a struct file. */
__attribute__((noinline)) int object_of_file(__u64 address, struct object_id *ret)
{
    struct file *file = (void *)address;
    if (!ret)
        return 0;
    struct inode *inode = BPF_CORE_READ(file, f_inode);
    __u16 type = BPF_CORE_READ(inode, i_mode) & OBJECT_MODE_TYPE;
    if (!inode)
        return 0;
    ret->ino = BPF_CORE_READ(inode, i_ino);
    ret->dev = 0;
    ret->flags = 0;
    if (type == OBJECT_MODE_SOCKET) {
        ret->kind = OBJECT_ID_SOCKET;
        ret->flags = object_socket_flags(file);
    } else {
        object_of_inode(file, inode, type, ret);
    }
    return 1;
}

/* The open file behind an fd of the task that runs, 0 if there is none. Members of a task that the
 * verifier trusts are read directly; but to see that it may, the verifier looks through all types
 * of the kernel, each time. So this is a function of its own, which it looks at once. */
__attribute__((noinline)) __u64 object_file_of(int pid, int fd)
{
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    if (task->pid != pid)
        return 0;
    struct files_struct *files = task->files;
    if (!files || fd < 0)
        return 0;
    struct fdtable *table = files->fdt;
    if (!table || (__u32)fd >= table->max_fds)
        return 0;
    struct file **slots = table->fd;
    __u64 file = 0;
    bpf_probe_read_kernel(&file, sizeof(file), &slots[(__u32)fd]);
    return file;
}

static __always_inline __u64 object_file_of_fd(struct task_struct *task, int fd)
{
    return object_file_of(task->pid, fd);
}

/* False: there is none. `task` must be the one that runs: where it leaves the CPU, it still does.
 */
static __always_inline bool object_of_fd(struct task_struct *task, int fd, struct object_id *ret)
{
    __u64 file = object_file_of_fd(task, fd);
    return file && object_of_file(file, ret);
}

/* From the file up: its own name and those of the folders around it, through mounts. Not 0: one of
 * them could not be read. */
__attribute__((noinline)) int object_path(struct object_record *record, __u64 address)
{
    struct file *file = (void *)address;
    if (!record)
        return 0;
    struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
    struct vfsmount *inner = BPF_CORE_READ(file, f_path.mnt);
    struct dentry *top = BPF_CORE_READ(inner, mnt_root);
    struct mount *mount = (void *)((char *)inner - bpf_core_field_offset(struct mount, mnt));
    __u32 used = 0;
    bool done = false;
    int r = 0;
    for (__u32 i = 0; i < OBJECT_STEPS_MAX && used < OBJECT_TEXT_USED_MAX; i++) {
        struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
        if (dentry == top) {
            struct mount *outer = BPF_CORE_READ(mount, mnt_parent);
            if (outer == mount || !outer) {
                done = true;
                break;
            }
            dentry = BPF_CORE_READ(mount, mnt_mountpoint);
            mount = outer;
            top = BPF_CORE_READ(mount, mnt.mnt_root);
            continue;
        }
        /* The mask is for the verifier, which forgets what the loop has asked. */
        long bytes = bpf_probe_read_kernel_str(record->text + (used & (OBJECT_TEXT_USED_MAX - 1)),
                                               OBJECT_COMPONENT_BYTES,
                                               BPF_CORE_READ(dentry, d_name.name));
        if (bytes <= 0) {
            r = -1;
            break;
        }
        used += (__u32)bytes;
        if (parent == dentry) { /* a file without a folder, such as memfd's */
            done = true;
            break;
        }
        dentry = parent;
    }
    record->text_kind = OBJECT_TEXT_PATH;
    record->text_bytes = (__u16)used;
    if (!done)
        record->marks |= OBJECT_CUT;
    return r;
}

/* Bytes of the address without its family. */
static __always_inline __u8 object_unix_address(struct sock *sk, char *ret)
{
    struct unix_sock *own = (void *)sk;
    if (!sk || !bpf_core_field_exists(own->addr))
        return 0;
    struct unix_address *address = BPF_CORE_READ(own, addr);
    if (!address)
        return 0;
    int len = BPF_CORE_READ(address, len) - (int)sizeof(__u16);
    if (len <= 0 || len > OBJECT_UNIX_BYTES)
        return 0;
    if (bpf_probe_read_kernel(ret, OBJECT_UNIX_BYTES, address->name[0].sun_path) != 0)
        return 0;
    return (__u8)len;
}

__attribute__((noinline)) int object_socket(struct object_record *record, __u64 address)
{
    struct file *file = (void *)address;
    if (!record)
        return 0;
    struct sock *sk = object_sock_of(file);
    struct sock_common *common = (void *)sk;
    if (!sk)
        return 0;
    record->family = BPF_CORE_READ(common, skc_family);
    record->socket_type = BPF_CORE_READ(sk, sk_type);
    record->protocol = BPF_CORE_READ(sk, sk_protocol);
    record->state = BPF_CORE_READ(common, skc_state);
    if (record->family == OBJECT_AF_UNIX) {
        record->text_kind = OBJECT_TEXT_UNIX;
        record->text_bytes = 2 * OBJECT_UNIX_BYTES;
        record->own_bytes = object_unix_address(sk, record->text);
        if (bpf_core_field_exists(((struct unix_sock *)sk)->peer))
            record->peer_bytes = object_unix_address(BPF_CORE_READ((struct unix_sock *)sk, peer),
                                                     record->text + OBJECT_UNIX_BYTES);
        return 0;
    }
    if (record->family != OBJECT_AF_INET && record->family != OBJECT_AF_INET6)
        return 0;
    record->local_port = BPF_CORE_READ(common, skc_num);
    record->remote_port = __builtin_bswap16(BPF_CORE_READ(common, skc_dport));
    if (record->family == OBJECT_AF_INET) {
        bpf_probe_read_kernel(record->local, 4, &common->skc_rcv_saddr);
        bpf_probe_read_kernel(record->remote, 4, &common->skc_daddr);
    } else if (bpf_core_field_exists(common->skc_v6_daddr)) {
        bpf_probe_read_kernel(record->local, 16, &common->skc_v6_rcv_saddr);
        bpf_probe_read_kernel(record->remote, 16, &common->skc_v6_daddr);
    }
    return 0;
}

__attribute__((noinline)) int object_describe(struct object_record *record, __u64 address)
{
    struct file *file = (void *)address;
    if (!record)
        return 0;
    struct inode *inode = BPF_CORE_READ(file, f_inode);
    record->ino = BPF_CORE_READ(inode, i_ino);
    record->text_kind = OBJECT_TEXT_NONE;
    record->text_bytes = 0;
    record->marks = 0;
    record->family = record->socket_type = record->protocol = record->state = 0;
    record->local_port = record->remote_port = 0;
    record->own_bytes = record->peer_bytes = 0;
    __builtin_memset(record->local, 0, sizeof(record->local));
    __builtin_memset(record->remote, 0, sizeof(record->remote));
    __u64 magic = BPF_CORE_READ(inode, i_sb, s_magic);
    if (record->id.kind == OBJECT_ID_SOCKET)
        return object_socket(record, address);
    if (magic == OBJECT_ANON_MAGIC) {
        long bytes = bpf_probe_read_kernel_str(record->text, OBJECT_COMPONENT_BYTES,
                                               BPF_CORE_READ(file, f_path.dentry, d_name.name));
        record->text_kind = OBJECT_TEXT_NAME;
        record->text_bytes = bytes > 0 ? (__u16)bytes : 0;
        return 0;
    }
    if (magic != OBJECT_PIPEFS_MAGIC && record->id.kind != OBJECT_ID_PROCESS)
        return object_path(record, address);
    return 0;
}

/* Where a record is put together: what is reserved in a ring must be a constant, and most names
 * are short. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct object_record);
} object_rooms SEC(".maps");

#define OBJECT_HEAD_BYTES __builtin_offsetof(struct object_record, text)

/* Tells of an id that was not seen before; `id` as object_of_fd() gave it. False: there was no
 * room in the ring, it will be told at the next sight. `wake` are flags of bpf_ringbuf_output(). */
static __always_inline bool object_tell(void *ring, struct task_struct *task, int fd,
                                        const struct object_id *id, __u64 wake)
{
    __u32 zero = 0;
    if (bpf_map_lookup_elem(&objects_seen, id))
        return true;
    __u64 file = object_file_of_fd(task, fd);
    struct object_record *record = bpf_map_lookup_elem(&object_rooms, &zero);
    if (!file || !record)
        return true;
    __u8 seen = 1;
    record->type = OBJECT_RECORD_TYPE;
    record->tgid = (__u32)task->tgid;
    record->fd = fd;
    record->id = *id;
    object_describe(record, file);
    __u64 bytes = OBJECT_HEAD_BYTES + record->text_bytes;
    if (bytes > sizeof(*record))
        bytes = sizeof(*record);
    if (bpf_ringbuf_output(ring, record, bytes, wake) != 0)
        return false;
    bpf_map_update_elem(&objects_seen, id, &seen, BPF_ANY);
    return true;
}
