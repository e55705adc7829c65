/* The pieces that the program has copied, kept in its ring until their sample comes. */
#include "collect/cpu_deep.h"

#include "base/vec.h"
#include "collect/bpf_unit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    RING_BYTES_MIN = 16 << 20,
    RING_BYTES_MAX = 32 << 20,
    RING_BYTES_A_CPU = 8 << 20,
    GROUP_BACK_MAX = 64, /* how far pieces of other CPUs may come between those of one sample */
};

#define PID_NS_FIRST 0xEFFFFFFCu /* inode of the first PID namespace */

extern const unsigned char cpu_deep_bpf[];
extern const size_t cpu_deep_bpf_bytes;

struct cpu_deep_entry {
    uint64_t time_ns, copied_ns, sp, pc;
    uint32_t tid;
    uint32_t flags;
    uint32_t count;
    bool used;
    uint64_t places[CPU_DEEP_PIECES_MAX];
};

int cpu_pieces_init(struct bpf_ring *ring, struct cpu_pieces *ret)
{
    /* There cannot be more entries than pieces in the ring. */
    size_t cap = ring->data_bytes / sizeof(struct cpu_deep_piece) + 1;
    *ret = (struct cpu_pieces){.ring = ring, .cap = cap};
    ret->entries = calloc(cap, sizeof(*ret->entries));
    return ret->entries ? 0 : -ENOMEM;
}

void cpu_pieces_deinit(struct cpu_pieces *pieces)
{
    free(pieces->entries);
    *pieces = (struct cpu_pieces){0};
}

static struct cpu_deep_entry *entry_at(const struct cpu_pieces *pieces, size_t index)
{
    return &pieces->entries[(pieces->head + index) % pieces->cap];
}

/* The sample's entry, if one of its pieces came before. */
static struct cpu_deep_entry *entry_of(const struct cpu_pieces *pieces,
                                       const struct cpu_deep_piece *piece)
{
    for (size_t i = 0; i < MIN(pieces->len, (size_t)GROUP_BACK_MAX); i++) {
        struct cpu_deep_entry *entry = entry_at(pieces, pieces->len - 1 - i);
        if (entry->tid == piece->tid && entry->time_ns == piece->time_ns &&
            entry->sp == piece->sp && entry->pc == piece->pc)
            return entry;
    }
    return NULL;
}

static void piece_take(struct cpu_pieces *pieces, const struct cpu_deep_piece *piece, size_t bytes,
                       uint64_t place)
{
    struct cpu_deep_entry *entry = bytes == sizeof(*piece) ? entry_of(pieces, piece) : NULL;
    if (bytes != sizeof(*piece) ||
        (entry ? entry->count == CPU_DEEP_PIECES_MAX : pieces->len == pieces->cap)) {
        pieces->refused++;
        return;
    }
    if (!entry) {
        entry = entry_at(pieces, pieces->len++);
        *entry = (struct cpu_deep_entry){
            .time_ns = piece->time_ns,
            .sp = piece->sp,
            .pc = piece->pc,
            .tid = piece->tid,
            .flags = piece->flags,
        };
    }
    entry->copied_ns = piece->copied_ns;
    entry->places[entry->count++] = place;
}

void cpu_pieces_look(struct cpu_pieces *pieces)
{
    const void *record;
    size_t bytes;
    uint64_t place;
    bpf_ring_begin(pieces->ring);
    while ((record = bpf_ring_next(pieces->ring, &bytes, &place)))
        piece_take(pieces, record, bytes, place);
}

static void release(struct cpu_pieces *pieces)
{
    bpf_ring_release(pieces->ring, pieces->len > 0 ? entry_at(pieces, 0)->places[0] : UINT64_MAX);
}

static uint64_t entry_time(const struct cpu_deep_entry *entry)
{
    return entry->flags & CPU_DEEP_EXACT ? entry->time_ns : entry->copied_ns;
}

static bool is_of(const struct cpu_deep_entry *entry, const struct cpu_moment *moment)
{
    if (entry->used || entry->tid != moment->tid || entry->sp != moment->sp ||
        entry->pc != moment->pc)
        return false;
    return entry->flags & CPU_DEEP_EXACT ? entry->time_ns == moment->time_ns
                                         : moment->time_ns - entry->copied_ns <= CPU_DEEP_NEAR_NS;
}

/* Runs of pages that could be read. */
static size_t piece_parts(const struct cpu_deep_piece *piece, struct unwind_slice *parts,
                          size_t count)
{
    for (size_t i = 0; i < CPU_DEEP_PIECE_PAGES && count < CPU_DEEP_PARTS_MAX;) {
        size_t end = i;
        while (end < CPU_DEEP_PIECE_PAGES && (piece->pages >> end & 1))
            end++;
        if (end > i)
            parts[count++] = (struct unwind_slice){
                .address = piece->address + i * CPU_DEEP_PAGE_BYTES,
                .bytes = piece->bytes + i * CPU_DEEP_PAGE_BYTES,
                .len = (end - i) * CPU_DEEP_PAGE_BYTES,
            };
        i = end + 1;
    }
    return count;
}

size_t cpu_pieces_find(struct cpu_pieces *pieces, const struct cpu_moment *moment,
                       struct unwind_slice parts[CPU_DEEP_PARTS_MAX])
{
    if (pieces->len == 0)
        return 0;
    cpu_pieces_settle(pieces, moment->time_ns);
    for (size_t i = 0; i < pieces->len; i++) {
        struct cpu_deep_entry *entry = entry_at(pieces, i);
        if (entry_time(entry) > moment->time_ns + CPU_DEEP_LATE_NS)
            break;
        if (!is_of(entry, moment))
            continue;
        entry->used = true;
        size_t count = 0;
        for (uint32_t k = 0; k < entry->count; k++)
            count = piece_parts(bpf_ring_at(pieces->ring, entry->places[k]), parts, count);
        return count;
    }
    return 0;
}

void cpu_pieces_settle(struct cpu_pieces *pieces, uint64_t time_ns)
{
    size_t before = pieces->len;
    while (pieces->len > 0) {
        const struct cpu_deep_entry *entry = entry_at(pieces, 0);
        uint64_t entry_ns = entry_time(entry);
        if (time_ns < CPU_DEEP_LATE_NS || entry_ns >= time_ns - CPU_DEEP_LATE_NS)
            break;
        pieces->unmatched += !entry->used;
        pieces->head = (pieces->head + 1) % pieces->cap;
        pieces->len--;
    }
    if (pieces->len != before || pieces->len == 0)
        release(pieces);
}

struct cpu_deep {
    struct bpf_unit *unit;
    struct bpf_ring ring;
    struct cpu_pieces pieces;
    struct cpu_tops tops;
    int program_fd, counts_fd;
};

void cpu_deep_close(struct cpu_deep *deep)
{
    if (!deep)
        return;
    cpu_pieces_deinit(&deep->pieces);
    bpf_ring_deinit(&deep->ring);
    map_u64_deinit(&deep->tops.threads);
    bpf_unit_close(deep->unit);
    free(deep);
}

static uint32_t pid_ns_here(void)
{
    struct stat stat_ns;
    if (stat("/proc/self/ns/pid", &stat_ns) < 0 || stat_ns.st_ino == PID_NS_FIRST)
        return 0;
    return (uint32_t)stat_ns.st_ino;
}

static int unit_load(struct cpu_deep *deep, uint32_t ring_bytes, const char *cache_dir,
                     struct why *why)
{
    struct bpf_blob blob = {"cpu_deep", cpu_deep_bpf, cpu_deep_bpf_bytes};
    int r = bpf_unit_open(&blob, cache_dir, &deep->unit, why);
    if (r < 0)
        return r;
    struct cpu_deep_config config = {.pid_ns = pid_ns_here(), .ring_bytes = ring_bytes};
    r = bpf_unit_config(deep->unit, &config, sizeof(config), why);
    if (r == 0)
        r = bpf_unit_map_size(deep->unit, "pieces", ring_bytes, why);
    return r < 0 ? r : bpf_unit_load(deep->unit, why);
}

int cpu_deep_open(size_t cpu_count, const char *cache_dir, struct cpu_deep **ret, struct why *why)
{
    struct cpu_deep *deep = calloc(1, sizeof(*deep));
    if (!deep)
        return why_nomem(why);
    uint32_t ring_bytes = RING_BYTES_MIN;
    while (ring_bytes < RING_BYTES_MAX && ring_bytes < cpu_count * RING_BYTES_A_CPU)
        ring_bytes *= 2;
    int r = unit_load(deep, ring_bytes, cache_dir, why);
    if (r < 0 && r != -EPERM && r != -EACCES && cache_dir) {
        bpf_unit_close(deep->unit);
        deep->unit = NULL;
        r = unit_load(deep, ring_bytes, NULL, why);
    }
    if (r == 0)
        r = bpf_ring_map(bpf_unit_map_fd(deep->unit, "pieces"), ring_bytes, &deep->ring, why);
    if (r == 0 && cpu_pieces_init(&deep->ring, &deep->pieces) < 0)
        r = why_nomem(why);
    if (r < 0) {
        cpu_deep_close(deep);
        return r;
    }
    deep->program_fd = bpf_unit_program_fd(deep->unit, "cpu_deep");
    deep->counts_fd = bpf_unit_map_fd(deep->unit, "counts");
    deep->tops.map_fd = bpf_unit_map_fd(deep->unit, "threads");
    *ret = deep;
    return 0;
}

int cpu_deep_program_fd(const struct cpu_deep *deep)
{
    return deep->program_fd;
}

int cpu_deep_wake_fd(const struct cpu_deep *deep)
{
    return deep->ring.wake_fd;
}

struct cpu_pieces *cpu_deep_pieces(struct cpu_deep *deep)
{
    return &deep->pieces;
}

struct cpu_tops *cpu_deep_tops(struct cpu_deep *deep)
{
    return &deep->tops;
}

int cpu_deep_counts(const struct cpu_deep *deep, uint64_t ret[CPU_DEEP_COUNTS])
{
    return bpf_counts_read(deep->counts_fd, ret, CPU_DEEP_COUNTS);
}
