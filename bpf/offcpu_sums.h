/* Part of offcpu.bpf.c: waits that are over, added up in one of two maps or told one by one. */
#pragma once

struct wait {
    struct offcpu_key key;
    __u64 start_ns, end_ns, ns; /* ns: what is added up, not always all of it */
    __u64 owned_ns, owner_off_ns;
};

static __always_inline struct offcpu_tally *tally_at(void *map, const struct offcpu_key *key)
{
    __u32 zero = 0;
    struct offcpu_tally *tally = bpf_map_lookup_elem(map, key);
    if (tally)
        return tally;
    struct spare *spare = bpf_map_lookup_elem(&spares, &zero);
    if (!spare || bpf_map_update_elem(map, key, &spare->none, BPF_NOEXIST) != 0)
        return 0;
    return bpf_map_lookup_elem(map, key);
}

static __always_inline struct offcpu_tally *tally_now(const struct offcpu_key *key)
{
    struct offcpu_control *now = control_get();
    if (!now)
        return 0;
    return now->round & 1 ? tally_at(&tallies_1, key) : tally_at(&tallies_0, key);
}

/* No two CPUs add to one key at a time: all that is in it is of one thread. */
__attribute__((noinline)) int wait_add(struct wait *wait)
{
    if (!wait)
        return 0;
    struct offcpu_tally *tally = tally_now(&wait->key);
    if (!tally) {
        wait->key.waker_stack = 0;
        wait->key.waker_tid = 0;
        wait->key.waker_tgid = 0;
        tally = tally_now(&wait->key);
        count_add(tally ? OFFCPU_TALLIES_MERGED : OFFCPU_TALLIES_FULL, 1);
    }
    if (!tally)
        return 0;
    __u64 ns = wait->ns;
    if (tally->count == 0)
        tally->first_ns = wait->start_ns;
    tally->count++;
    tally->total_ns += ns;
    if (ns > tally->max_ns)
        tally->max_ns = ns;
    tally->last_ns = wait->end_ns;
    tally->owned_ns += wait->owned_ns;
    tally->owner_off_ns += wait->owner_off_ns;
    tally->buckets[offcpu_bucket(ns) & (OFFCPU_BUCKETS - 1)]++;
    return 1;
}

/* ---- the ring ---- */

__attribute__((noinline)) int event_tell(const struct wait *wait, __u64 wake_ns)
{
    if (!wait)
        return 0;
    struct offcpu_event *event = bpf_ringbuf_reserve(&told, sizeof(*event), 0);
    if (!event)
        return 0;
    event->head.record = OFFCPU_EVENT;
    event->head.tid = wait->key.tid;
    event->head.tgid = wait->key.tgid;
    event->head.exec = wait->key.exec;
    event->head.time_ns = wait->end_ns;
    event->key = wait->key;
    event->start_ns = wait->start_ns;
    event->wake_ns = wake_ns;
    event->owned_ns = wait->owned_ns;
    event->owner_off_ns = wait->owner_off_ns;
    bpf_ringbuf_submit(event, wake_flags(false, wait->end_ns));
    return 1;
}
