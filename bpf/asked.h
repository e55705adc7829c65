/* Whether a process waits for an answer: it sent something on a socket that it connected, and
 * nothing came back on it so far. So that an epoll_wait() for a reply can be told from one with
 * nothing to do. Part of offcpu.bpf.c; the two tracepoints are Linux 6.3's. */
#pragma once

#include "kernel.h"

#include "objects.h"

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, OFFCPU_ASKED_MAX);
    __type(key, __u64);   /* address of the socket */
    __type(value, __u32); /* whose, by kernel id */
} asked_sockets SEC(".maps");

struct asking {
    __s64 sockets; /* unanswered */
    __u64 last_ns; /* something was sent or came */
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, OFFCPU_ASKED_MAX);
    __type(key, __u32); /* kernel id of the process */
    __type(value, struct asking);
} askings SEC(".maps");

/* Sockets can be closed without an answer, and nobody tells: a process that has not heard
 * anything for so long does not wait for it any more. */
#define ASKED_NS_MAX 60000000000ull

static __always_inline bool is_asking(__u32 kernel_tgid, __u64 now_ns)
{
    const struct asking *asking = bpf_map_lookup_elem(&askings, &kernel_tgid);
    return asking && asking->sockets > 0 && now_ns - asking->last_ns < ASKED_NS_MAX;
}

static __always_inline bool is_client(struct sock *sk)
{
    __u16 family = BPF_CORE_READ((struct sock_common *)sk, skc_family);
    __u16 flags = family == OBJECT_AF_UNIX ? object_unix_flags(sk)
                  : family == OBJECT_AF_INET || family == OBJECT_AF_INET6
                      ? object_inet_flags(sk, family)
                      : 0;
    return flags & OBJECT_ID_CLIENT;
}

static __always_inline void asked_begin(struct sock *sk, __u32 kernel_tgid, __u64 now_ns)
{
    __u64 key = (__u64)sk;
    if (!is_client(sk))
        return;
    struct asking *asking = bpf_map_lookup_elem(&askings, &kernel_tgid);
    if (!asking) {
        struct asking fresh = {0};
        bpf_map_update_elem(&askings, &kernel_tgid, &fresh, BPF_NOEXIST);
        asking = bpf_map_lookup_elem(&askings, &kernel_tgid);
    }
    if (!asking)
        return;
    asking->last_ns = now_ns;
    if (bpf_map_update_elem(&asked_sockets, &key, &kernel_tgid, BPF_NOEXIST) == 0)
        __sync_fetch_and_add(&asking->sockets, 1);
}

static __always_inline void asked_end(struct sock *sk, __u64 now_ns)
{
    __u64 key = (__u64)sk;
    const __u32 *owner = bpf_map_lookup_elem(&asked_sockets, &key);
    if (!owner)
        return;
    __u32 kernel_tgid = *owner;
    struct asking *asking = bpf_map_lookup_elem(&askings, &kernel_tgid);
    if (bpf_map_delete_elem(&asked_sockets, &key) != 0 || !asking)
        return;
    asking->last_ns = now_ns;
    __sync_fetch_and_add(&asking->sockets, -1);
}
