/* Part of io.bpf.c: calls that are over, added up in cells.
 *
 * A cell is found without the help of the kernel: an array is looked up in a few instructions.
 * Each CPU has cells of its own, in which nobody else writes: programs of tracepoints are not
 * interrupted by one another. Who needs the place of another row hands that one to user space. */
#pragma once

/* One call, or several of a kind. */
struct io_sum {
    __u64 start_ns, end_ns;
    __u64 bytes, asked_bytes, missed_bytes;
    __s64 result;
    __u32 flags; /* enum io_sum_flag */
    __u32 unused;
};
enum io_sum_flag {
    SUM_MOVES = 1 << 0, /* `bytes` means something */
    SUM_PARTIAL = 1 << 1,
    SUM_PLACED = 1 << 2,
    SUM_SEQUENTIAL = 1 << 3,
    SUM_MISSED = 1 << 4,
    SUM_NO_TIME = 1 << 5, /* how long it took is not known */
};

static __always_inline bool key_is(const struct io_key *a, const struct io_key *b)
{
    const __u64 *left = (const void *)a, *right = (const void *)b;
    return left[0] == right[0] && left[1] == right[1] && left[2] == right[2] &&
           left[3] == right[3] && left[4] == right[4];
}

static __always_inline __u64 key_hash(const struct io_key *key)
{
    const __u64 *words = (const void *)key;
    __u64 hash = words[0] * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ hash >> 32 ^ words[1]) * 0xbf58476d1ce4e5b9ull;
    hash = (hash ^ hash >> 29 ^ words[2] ^ words[3]) * 0x94d049bb133111ebull;
    hash = (hash ^ hash >> 32 ^ words[4]) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

static __always_inline void tally_add(struct io_tally *tally, const struct io_sum *sum)
{
    __u64 ns = sum->end_ns - sum->start_ns;
    __u32 flags = sum->flags;
    if (tally->count == 0)
        tally->first_ns = sum->start_ns;
    tally->count++;
    tally->last_ns = sum->end_ns;
    if (!(flags & SUM_NO_TIME)) {
        tally->total_ns += ns;
        if (ns > tally->max_ns)
            tally->max_ns = ns;
        tally->buckets[offcpu_bucket(ns) & (IO_BUCKETS - 1)]++;
    }
    if (flags & SUM_MOVES) {
        tally->bytes += sum->bytes;
        tally->asked_bytes += sum->asked_bytes;
        tally->partial += (flags & SUM_PARTIAL) != 0;
        tally->sizes[io_size(sum->bytes) & (IO_SIZES - 1)]++;
        if (flags & SUM_PLACED) {
            tally->placed++;
            tally->sequential += (flags & SUM_SEQUENTIAL) != 0;
        }
    }
    if (flags & SUM_MISSED) {
        tally->missed++;
        tally->missed_bytes += sum->missed_bytes;
    }
}

/* Without thread, object and stack, and by all CPUs at once: better than not at all. */
static __noinline int fold(const struct io_key *key, const struct io_sum *sum)
{
    __u32 call = (__u32)(__s32)key->call;
    if (call >= IO_CALLS_MAX)
        call = IO_CALLS_MAX;
    struct io_folded *folded = bpf_map_lookup_elem(&folded_calls, &call);
    count_add(IO_FOLDED, 1);
    if (!folded)
        return 0;
    struct io_tally *tally = &folded->tally;
    __u64 ns = sum->flags & SUM_NO_TIME ? 0 : sum->end_ns - sum->start_ns;
    folded->tid = key->tid;
    folded->tgid = key->tgid;
    folded->exec = key->exec;
    if (__sync_fetch_and_add(&tally->count, 1) == 0)
        tally->first_ns = sum->start_ns;
    tally->last_ns = sum->end_ns;
    __sync_fetch_and_add(&tally->total_ns, ns);
    if (ns > tally->max_ns)
        tally->max_ns = ns;
    __sync_fetch_and_add(&tally->buckets[offcpu_bucket(ns) & (IO_BUCKETS - 1)], 1);
    if (!(sum->flags & SUM_MOVES))
        return 0;
    __sync_fetch_and_add(&tally->bytes, sum->bytes);
    __sync_fetch_and_add(&tally->asked_bytes, sum->asked_bytes);
    __sync_fetch_and_add(&tally->sizes[io_size(sum->bytes) & (IO_SIZES - 1)], 1);
    return 0;
}

/* The row that has been in this cell goes to user space. Many are of one call only, and then the
 * longest part of it says nothing. */
static __noinline int cell_free(struct io_cell *cell, __u64 now_ns)
{
    __u64 flags = wake_flags(false, now_ns);
    long failed;
    cell->head.time_ns = now_ns;
    if (cell->tally.count == 1) {
        cell->head.record = IO_ROW_ONE;
        cell->head.tid = cell->tally.sizes[0];
        cell->head.tgid = cell->tally.buckets[0];
        failed = bpf_ringbuf_output(&told, cell, __builtin_offsetof(struct io_cell, tally.buckets),
                                    flags);
    } else {
        cell->head.record = IO_ROW;
        failed = bpf_ringbuf_output(&told, cell, sizeof(*cell), flags);
    }
    if (failed != 0)
        return 0;
    count_add(IO_TAKEN_OVER, 1);
    __builtin_memset(&cell->tally, 0, sizeof(cell->tally));
    return 1;
}

static __always_inline struct io_cell *cell_at(__u64 hash, __u32 way, __u32 first)
{
    __u32 at = first + (((__u32)hash + way) & (config.cells - 1));
    return bpf_map_lookup_elem(&cells, &at);
}

static __always_inline struct io_cell *cell_of(const struct io_key *key, __u64 round, __u32 cpu,
                                               __u64 now_ns)
{
    __u64 hash = key_hash(key);
    __u32 first = ((round & 1 ? config.cpus : 0) + cpu) * config.cells;
    struct io_cell *cell;
    for (__u32 way = 0; way < IO_WAYS; way++) {
        cell = cell_at(hash, way, first);
        if (!cell)
            return 0;
        if (key_is(&cell->key, key) && cell->tally.count != 0)
            return cell;
        if (cell->tally.count == 0) {
            __u32 at = first + (((__u32)hash + way) & (config.cells - 1)), word = at / 64;
            __u64 *bits = bpf_map_lookup_elem(&used, &word);
            if (!bits)
                return 0;
            *bits |= 1ull << (at & 63);
            cell->key = *key;
            return cell;
        }
    }
    cell = cell_at(hash, (__u32)(hash >> 40) & (IO_WAYS - 1), first);
    if (!cell || !cell_free(cell, now_ns))
        return 0;
    cell->key = *key;
    return cell;
}

/* Not static: looked at once by the verifier, however many call it. */
__attribute__((noinline)) int io_add(const struct io_key *key, const struct io_sum *sum)
{
    struct io_cpu *own = cpu_get();
    struct offcpu_control *now = control_get();
    if (!key || !sum || !own || !now)
        return 0;
    /* User space must not empty a table that somebody with an old number still adds to. */
    *(volatile __u64 *)&own->busy = 1;
    __u64 round = *(volatile __u64 *)&now->round;
    *(volatile __u64 *)&own->busy = round + 2;
    struct io_cell *cell = cell_of(key, round, bpf_get_smp_processor_id(), sum->end_ns);
    own->counts[IO_SEEN]++;
    if (cell)
        tally_add(&cell->tally, sum);
    else
        fold(key, sum);
    *(volatile __u64 *)&own->busy = 0;
    return 1;
}
