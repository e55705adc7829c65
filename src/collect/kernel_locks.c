/* From tallies in the kernel to rows of waits: the kernel's only grow, so what is new is what they
 * have more than when they were last read. Nothing is deleted, nothing can be lost in between. */
#include "collect/kernel_locks.h"

#include "base/fd.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/bpf_unit.h"
#include "format/contention.h"
#include "symbolize/symbols.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

_Static_assert((int)CONTENTION_BUCKETS == (int)WAIT_BUCKETS, "format and model");
_Static_assert((int)CONTENTION_SPIN == (int)WAIT_LOCK_SPIN &&
                   (int)CONTENTION_READ == (int)WAIT_LOCK_READ &&
                   (int)CONTENTION_WRITE == (int)WAIT_LOCK_WRITE &&
                   (int)CONTENTION_RT == (int)WAIT_LOCK_RT &&
                   (int)CONTENTION_PERCPU == (int)WAIT_LOCK_PERCPU &&
                   (int)CONTENTION_MUTEX == (int)WAIT_LOCK_MUTEX,
               "format and model");

extern const unsigned char contention_bpf[];
extern const size_t contention_bpf_bytes;

enum { DETAILS = 0x3f, BATCH = 256, KALLSYMS_BYTES_MAX = 256 << 20 };

/* A tally as it was last read. */
struct lock_tally {
    uint32_t row; /* the sink's id of the wait; 0: left out */
    struct contention_tally last;
};

/* A place in the kernel, and what the sink calls it. */
struct lock_place {
    uint32_t stack; /* the sink's */
    uint32_t count;
    uint64_t frames[CONTENTION_FRAMES];
};

/* One lock: where it was waited for longest. */
struct lock_seen {
    uint64_t address, best_ns;
    uint32_t flags;
    int32_t place; /* the kernel's id of the stack */
};

struct kernel_locks {
    struct kernel_locks_opts opts;
    struct bpf_unit *unit;
    int tallies_fd, stacks_fd, counts_fd;
    struct intern keys; /* id n is tallies.data[n - 1] */
    VEC(struct lock_tally) tallies;
    struct map_u64 place_ids; /* the kernel's id of a stack to index + 1 */
    VEC(struct lock_place) places;
    struct map_u64 lock_ids; /* address to index + 1 */
    VEC(struct lock_seen) locks;
    struct contention_key *batch_keys;
    struct contention_tally *batch_values;
};

void kernel_locks_close(struct kernel_locks *locks)
{
    if (!locks)
        return;
    bpf_unit_close(locks->unit);
    intern_deinit(&locks->keys);
    VEC_FREE(&locks->tallies);
    map_u64_deinit(&locks->place_ids);
    VEC_FREE(&locks->places);
    map_u64_deinit(&locks->lock_ids);
    VEC_FREE(&locks->locks);
    free(locks->batch_keys);
    free(locks->batch_values);
    free(locks);
}

static int unit_load(struct kernel_locks *locks, const char *cache_dir, struct why *why)
{
    struct bpf_blob blob = {"contention", contention_bpf, contention_bpf_bytes};
    struct contention_config config = {.pid_ns = locks->opts.pid_ns};
    int r = bpf_unit_open(&blob, cache_dir, &locks->unit, why);
    if (r == 0)
        r = bpf_unit_config(locks->unit, &config, sizeof(config), why);
    if (r == 0)
        r = bpf_unit_map_share(locks->unit, "threads", locks->opts.threads_fd, why);
    return r < 0 ? r : bpf_unit_load(locks->unit, why);
}

static int thread_default(void *context, uint64_t time_ns, int pid, int tid, uint32_t *ret_thread)
{
    return stacks_thread(context, time_ns, pid, tid, ret_thread);
}

int kernel_locks_open(const struct kernel_locks_opts *opts, struct kernel_locks **ret,
                      struct why *why)
{
    struct kernel_locks *locks = calloc(1, sizeof(*locks));
    if (!locks)
        return why_nomem(why);
    locks->opts = *opts;
    if (!opts->thread) {
        locks->opts.thread = thread_default;
        locks->opts.context = opts->stacks;
    }
    locks->batch_keys = calloc(BATCH, sizeof(*locks->batch_keys));
    locks->batch_values = calloc(BATCH, sizeof(*locks->batch_values));
    int r = locks->batch_keys && locks->batch_values ? 0 : why_nomem(why);
    if (r == 0)
        r = unit_load(locks, opts->cache_dir, why);
    if (r < 0 && r != -EPERM && r != -EACCES && r != -ENOMEM && opts->cache_dir) {
        bpf_unit_close(locks->unit);
        locks->unit = NULL;
        r = unit_load(locks, NULL, why);
    }
    if (r == 0) {
        r = bpf_unit_attach(locks->unit, why);
        if (r == -ENOENT)
            why_set(why, WHY_DENIED, ENOENT, "use Linux 5.19 or newer",
                    "this kernel does not tell who waits for its own locks");
    }
    if (r < 0) {
        kernel_locks_close(locks);
        return r;
    }
    locks->tallies_fd = bpf_unit_map_fd(locks->unit, "tallies");
    locks->stacks_fd = bpf_unit_map_fd(locks->unit, "stacks");
    locks->counts_fd = bpf_unit_map_fd(locks->unit, "counts");
    *ret = locks;
    return 0;
}

uint64_t kernel_locks_map_bytes(void)
{
    enum { ELEMENT = 48 }; /* the kernel's own part of an element of a hash */
    return (uint64_t)CONTENTION_SLEEPS_MAX * (sizeof(struct contention_wait) + 8 + ELEMENT) +
           (uint64_t)CONTENTION_TALLIES_MAX *
               (sizeof(struct contention_key) + sizeof(struct contention_tally) + ELEMENT) +
           (uint64_t)CONTENTION_STACKS_MAX * (8 * CONTENTION_FRAMES + 24);
}

/* Frames of a stack that the kernel knows by a number; made once. */
static int place_need(struct kernel_locks *locks, int32_t id, const struct lock_place **ret)
{
    static const struct lock_place nowhere;
    bool fresh;
    *ret = &nowhere;
    if (id < 0)
        return 0;
    uint64_t *at = map_u64_at(&locks->place_ids, (uint32_t)id, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        struct lock_place place = {0};
        uint32_t key = (uint32_t)id;
        *at = locks->places.len + 1;
        if (bpf_map_lookup_elem(locks->stacks_fd, &key, place.frames) == 0)
            while (place.count < CONTENTION_FRAMES && place.frames[place.count])
                place.count++;
        int r = stacks_on_top(locks->opts.stacks, 0, place.frames, place.count, &place.stack);
        if (r < 0)
            return r;
        if (VEC_PUSH(&locks->places, place) < 0)
            return -ENOMEM;
    }
    *ret = &locks->places.data[*at - 1];
    return 0;
}

static struct object_id object_of(uint64_t lock)
{
    return (struct object_id){.ino = lock, .kind = OBJECT_ID_KERNEL_LOCK};
}

static int row_make(struct kernel_locks *locks, const struct contention_key *key,
                    const struct contention_tally *tally, uint32_t *ret_row)
{
    const struct lock_place *place;
    struct object_id object = object_of(key->lock);
    struct wait_info info = {
        .kind = WAIT_BLOCKED,
        .syscall = key->syscall < 0 ? WAIT_SYSCALL_NONE : key->syscall,
        .detail = key->flags & DETAILS,
    };
    int r = place_need(locks, key->stack, &place);
    if (r == 0)
        r = locks->opts.thread(locks->opts.context, tally->first_ns, (int)tally->tgid,
                               (int)tally->tid, &info.thread);
    if (r == 0 && info.thread == 0) {
        *ret_row = 0;
        return 0;
    }
    if (r == 0)
        r = objects_find(locks->opts.objects, &object, &info.object);
    info.stack = place->stack;
    return r < 0 ? r : sink_wait(locks->opts.sink, &info, ret_row);
}

static int lock_note(struct kernel_locks *locks, const struct contention_key *key, uint64_t ns)
{
    bool fresh;
    uint64_t *at = map_u64_at(&locks->lock_ids, key->lock, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        struct lock_seen lock = {.address = key->lock, .flags = key->flags, .place = key->stack};
        *at = locks->locks.len + 1;
        if (VEC_PUSH(&locks->locks, lock) < 0)
            return -ENOMEM;
    }
    struct lock_seen *lock = &locks->locks.data[*at - 1];
    if (ns > lock->best_ns) {
        lock->best_ns = ns;
        lock->flags = key->flags;
        lock->place = key->stack;
    }
    return 0;
}

/* What a tally has more than before. Read while it grows: a sum may lack what its count has, and
 * has it the next time. */
static void tally_less(const struct contention_tally *now, const struct contention_tally *before,
                       struct wait_tally *ret)
{
    *ret = (struct wait_tally){
        .count = now->count - before->count,
        .total_ns = now->total_ns - before->total_ns,
        .max_ns = now->max_ns,
        .first_ns = now->first_ns,
        .last_ns = now->last_ns,
    };
    for (unsigned i = 0; i < WAIT_BUCKETS; i++)
        ret->buckets[i] = now->buckets[i] - before->buckets[i];
}

static int tally_take(struct kernel_locks *locks, const struct contention_key *key,
                      const struct contention_tally *now)
{
    uint32_t id;
    bool fresh;
    struct str bytes = {(const char *)key, sizeof(*key)};
    struct lock_tally none = {0};
    if (now->count == 0 || now->tid == 0 || now->tgid == 0)
        return 0; /* just being made, or of a thread that is not to be seen from here */
    if (VEC_RESERVE(&locks->tallies, locks->tallies.len + 1) < 0 ||
        intern_add(&locks->keys, bytes, &id, &fresh) < 0)
        return -ENOMEM;
    int r = 0;
    if (fresh) {
        locks->tallies.data[locks->tallies.len++] = none;
        r = row_make(locks, key, now, &locks->tallies.data[id - 1].row);
    }
    struct lock_tally *tally = &locks->tallies.data[id - 1];
    if (r < 0 || tally->row == 0 || now->count <= tally->last.count)
        return r;
    struct wait_tally more;
    tally_less(now, &tally->last, &more);
    tally->last = *now;
    r = lock_note(locks, key, now->total_ns);
    return r < 0 ? r : sink_wait_add(locks->opts.sink, tally->row, &more);
}

int kernel_locks_drain(struct kernel_locks *locks)
{
    uint32_t in = 0, out = 0;
    bool more = true;
    /* The map has no more than so many, and a batch makes progress. */
    for (int i = 0; more && i < CONTENTION_TALLIES_MAX; i++) {
        uint32_t count = BATCH;
        int r = bpf_map_lookup_batch(locks->tallies_fd, i > 0 ? &in : NULL, &out, locks->batch_keys,
                                     locks->batch_values, &count, NULL);
        if (r < 0 && errno != ENOENT)
            return errno == ENOSPC ? 0 : -errno;
        more = r == 0;
        in = out;
        for (uint32_t k = 0; k < count; k++) {
            r = tally_take(locks, &locks->batch_keys[k], &locks->batch_values[k]);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* The innermost function that wants the lock for itself. */
static struct str function_of(struct symbols *symbols, const struct kernel_lock *lock)
{
    for (size_t i = 0; i < lock->frame_count; i++) {
        struct symbol found;
        if (symbols_at(symbols, lock->frames[i] - (i > 0), &found, 1) == 0)
            continue;
        if (!kernel_lock_is_locking(found.name))
            return found.name;
    }
    return (struct str){"", 0};
}

/* Reading all symbols takes a while: not for locks that lie in memory that was allocated. */
static bool any_static(const struct kernel_locks *locks)
{
#if defined(__x86_64__)
    const uint64_t image = 0xffffffff80000000; /* the kernel and its modules lie above */
#else
    const uint64_t image = 0; /* it may be anywhere */
#endif
    for (size_t i = 0; i < locks->locks.len; i++)
        if (locks->locks.data[i].address >= image)
            return true;
    return false;
}

static int names_put(struct kernel_locks *locks, struct arena *arena, struct kernel_lock *list)
{
    struct image_info info = {.kind = IMAGE_KERNEL, .path = STR("[kernel]")};
    struct symbols_opts opts = {.cache_dir = locks->opts.cache_dir};
    struct symbols *symbols = NULL;
    struct why why = {0};
    struct str text;
    int r = symbols_open(-1, &info, &opts, &symbols, &why);
    if (r == -ENOMEM)
        return r;
    if (any_static(locks) &&
        file_read(arena, "/proc/kallsyms", KALLSYMS_BYTES_MAX, &text, NULL) == 0)
        kernel_lock_symbols(arena, text, list, locks->locks.len);
    r = 0;
    for (size_t i = 0; i < locks->locks.len && r == 0; i++) {
        struct object_id id = object_of(list[i].address);
        struct str function = symbols ? function_of(symbols, &list[i]) : (struct str){"", 0};
        r = objects_name(locks->opts.objects, &id, kernel_lock_name(arena, &list[i], function));
    }
    symbols_close(symbols);
    return r < 0 ? r : arena_failed(arena) ? -ENOMEM : 0;
}

static int counters_put(struct kernel_locks *locks)
{
    uint64_t counts[CONTENTION_COUNTS];
    struct sink *sink = locks->opts.sink;
    int r = bpf_counts_read(locks->counts_fd, counts, CONTENTION_COUNTS);
    if (r == 0)
        r = sink_counter(sink, "locks.kernel_waits", UNIT_COUNT, counts[CONTENTION_WAITS]);
    if (r == 0)
        r = sink_counter(sink, "waits.lost.kernel_locks", UNIT_COUNT, counts[CONTENTION_LOST]);
    if (r == 0)
        r = sink_counter(sink, "locks.kernel_lost_ns", UNIT_NS, counts[CONTENTION_LOST_NS]);
    if (r == 0)
        r = sink_counter(sink, "locks.kernel_no_stack", UNIT_COUNT, counts[CONTENTION_STACKS_FULL]);
    return r;
}

int kernel_locks_begin(struct kernel_locks *locks, uint64_t start_ns, struct why *why)
{
    return bpf_unit_begin(locks->unit, start_ns, why);
}

int kernel_locks_finish(struct kernel_locks *locks)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    int r = kernel_locks_drain(locks);
    if (r == 0)
        r = counters_put(locks);
    if (r < 0 || locks->locks.len == 0)
        return r;
    struct kernel_lock *list = arena_alloc(&arena, locks->locks.len * sizeof(*list));
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < locks->locks.len; i++) {
        const struct lock_seen *lock = &locks->locks.data[i];
        const struct lock_place *place;
        r = place_need(locks, lock->place, &place);
        if (r < 0)
            return r;
        list[i] = (struct kernel_lock){
            .address = lock->address,
            .flags = lock->flags,
            .total_ns = lock->best_ns,
            .frames = place->frames,
            .frame_count = place->count,
        };
    }
    return names_put(locks, &arena, list);
}
