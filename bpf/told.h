/* The ring "told" to user space, and when to wake it. Whoever includes this has `told`, `config`
 * with ring_bytes, and control_get() before it. */
#pragma once

enum { WAKE_PAUSE_NS = 1000000 }; /* between two wake-ups of user space */

static __always_inline __u64 wake_flags(bool soon, __u64 now_ns)
{
    struct offcpu_control *now = control_get();
    if (now && (soon || bpf_ringbuf_query(&told, BPF_RB_AVAIL_DATA) > config.ring_bytes / 2) &&
        now_ns - now->woken_ns > WAKE_PAUSE_NS) {
        now->woken_ns = now_ns;
        return BPF_RB_FORCE_WAKEUP;
    }
    return BPF_RB_NO_WAKEUP;
}

/* Up to here nobody has to give way to others. */
static __always_inline bool ring_is_roomy(void)
{
    return bpf_ringbuf_query(&told, BPF_RB_AVAIL_DATA) < config.ring_bytes / 2;
}

/* The last quarter is for what is small: waits, names, ends of threads. */
static __always_inline bool ring_is_full(void)
{
    return bpf_ringbuf_query(&told, BPF_RB_AVAIL_DATA) > config.ring_bytes / 4 * 3;
}
