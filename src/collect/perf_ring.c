/* Reading the kernel's rings in place and in the order of time. */
#include "collect/perf_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NO_RING = UINT32_MAX };

static int rings_init(size_t count, struct perf_rings *ret)
{
    *ret = (struct perf_rings){.count = count, .current = NO_RING};
    ret->rings = calloc(count, sizeof(*ret->rings));
    ret->heap = calloc(count, sizeof(*ret->heap));
    ret->scratch = malloc(PERF_RECORD_BYTES_MAX);
    if (!ret->rings || !ret->heap || !ret->scratch) {
        perf_rings_deinit(ret);
        return -ENOMEM;
    }
    return 0;
}

static void rings_unmap(struct perf_rings *rings)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; rings->rings && i < rings->count; i++) {
        struct perf_ring *ring = &rings->rings[i];
        if (ring->mapped)
            munmap(ring->page, page_bytes + ring->data_bytes);
        *ring = (struct perf_ring){0};
    }
}

void perf_rings_deinit(struct perf_rings *rings)
{
    rings_unmap(rings);
    free(rings->rings);
    free(rings->heap);
    free(rings->scratch);
    *rings = (struct perf_rings){0};
}

static int map_all(const int *fds, size_t data_bytes, struct perf_rings *rings)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < rings->count; i++) {
        void *page = mmap(NULL, page_bytes + data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i],
                          0);
        if (page == MAP_FAILED) {
            int r = -errno;
            rings_unmap(rings);
            return r;
        }
        rings->rings[i] = (struct perf_ring){
            .page = page,
            .data = (uint8_t *)page + page_bytes,
            .data_bytes = data_bytes,
            .fd = fds[i],
            .mapped = true,
        };
    }
    rings->data_bytes = data_bytes;
    return 0;
}

int perf_rings_map(const int *fds, size_t count, size_t data_bytes, struct perf_rings *ret,
                   struct why *why)
{
    struct perf_rings rings;
    int r = rings_init(count, &rings);
    if (r < 0)
        return why_nomem(why);
    do {
        r = map_all(fds, data_bytes, &rings);
        data_bytes /= 2;
    } while ((r == -EPERM || r == -ENOMEM) && data_bytes >= PERF_RING_BYTES_MIN);
    if (r < 0) {
        perf_rings_deinit(&rings);
        return why_errno(why, -r,
                         "raise kernel.perf_event_mlock_kb or 'ulimit -l', or end other profilers",
                         "the kernel gives no memory for sample rings of %d KiB a CPU",
                         PERF_RING_BYTES_MIN >> 10);
    }
    *ret = rings;
    return 0;
}

int perf_rings_adopt(struct perf_event_mmap_page *const *pages, size_t count, size_t page_bytes,
                     size_t data_bytes, struct perf_rings *ret)
{
    int r = rings_init(count, ret);
    for (size_t i = 0; i < count && r == 0; i++)
        ret->rings[i] = (struct perf_ring){
            .page = pages[i],
            .data = (uint8_t *)pages[i] + page_bytes,
            .data_bytes = data_bytes,
            .fd = -1,
        };
    if (r == 0)
        ret->data_bytes = data_bytes;
    return r;
}

static uint64_t read_u64(const struct perf_ring *ring, uint64_t at)
{
    /* Records and their fields are multiples of 8 from the start: none is split. */
    uint64_t value;
    memcpy(&value, ring->data + (at & (ring->data_bytes - 1)), sizeof(value));
    return value;
}

static struct perf_event_header header_at(const struct perf_ring *ring)
{
    uint64_t word = read_u64(ring, ring->tail);
    struct perf_event_header header;
    memcpy(&header, &word, sizeof(header));
    return header;
}

/* Looks at the record at the tail: false when there is none, or none that makes sense. */
static bool ring_look(struct perf_rings *rings, struct perf_ring *ring)
{
    uint64_t waiting = ring->head - ring->tail;
    if (waiting == 0)
        return false;
    struct perf_event_header header = header_at(ring);
    bool sane = waiting <= ring->data_bytes && header.size % 8 == 0 && header.size <= waiting &&
                header.size >= (header.type == PERF_RECORD_SAMPLE
                                    ? PERF_SAMPLE_TIME_AT + 8
                                    : sizeof(header) + PERF_TRAILER_BYTES);
    if (!sane) {
        rings->damaged++;
        ring->tail = ring->head;
        return false;
    }
    ring->time_ns = header.type == PERF_RECORD_SAMPLE
                        ? read_u64(ring, ring->tail + PERF_SAMPLE_TIME_AT)
                        : read_u64(ring, ring->tail + header.size - 16);
    return true;
}

static void heap_down(struct perf_rings *rings)
{
    uint32_t *heap = rings->heap;
    size_t at = 0;
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < rings->heap_len; child++)
            if (rings->rings[heap[child]].time_ns < rings->rings[heap[least]].time_ns)
                least = child;
        if (least == at)
            return;
        uint32_t moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

static void heap_add(struct perf_rings *rings, uint32_t index)
{
    uint32_t *heap = rings->heap;
    size_t at = rings->heap_len++;
    heap[at] = index;
    while (at > 0) {
        size_t up = (at - 1) / 2;
        if (rings->rings[heap[up]].time_ns <= rings->rings[heap[at]].time_ns)
            return;
        uint32_t moved = heap[at];
        heap[at] = heap[up];
        heap[up] = moved;
        at = up;
    }
}

void perf_rings_begin(struct perf_rings *rings, uint64_t now_ns, bool all)
{
    rings->horizon_ns = all                            ? UINT64_MAX
                        : now_ns > PERF_RING_SETTLE_NS ? now_ns - PERF_RING_SETTLE_NS
                                                       : 0;
    rings->heap_len = 0;
    rings->current = NO_RING;
    for (size_t i = 0; i < rings->count; i++) {
        struct perf_ring *ring = &rings->rings[i];
        ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
        if (ring_look(rings, ring))
            heap_add(rings, (uint32_t)i);
    }
}

static void ring_release(struct perf_ring *ring)
{
    __atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}

/* The record handed out before is done with: its ring moves on. */
static void current_done(struct perf_rings *rings)
{
    if (rings->current == NO_RING)
        return;
    struct perf_ring *ring = &rings->rings[rings->current];
    rings->current = NO_RING;
    ring->tail += header_at(ring).size;
    /* A full ring loses samples: what was read is given back while the round goes on. */
    if (ring->tail - ring->page->data_tail >= ring->data_bytes / 8)
        ring_release(ring);
    if (!ring_look(rings, ring))
        rings->heap[0] = rings->heap[--rings->heap_len];
    heap_down(rings);
}

static const struct perf_event_header *linear(struct perf_rings *rings,
                                              const struct perf_ring *ring)
{
    size_t at = ring->tail & (ring->data_bytes - 1);
    size_t size = header_at(ring).size;
    if (at + size <= ring->data_bytes)
        return (const struct perf_event_header *)(ring->data + at);
    size_t first = ring->data_bytes - at;
    memcpy(rings->scratch, ring->data + at, first);
    memcpy(rings->scratch + first, ring->data, size - first);
    return (const struct perf_event_header *)rings->scratch;
}

const struct perf_event_header *perf_rings_next(struct perf_rings *rings, uint64_t *ret_time_ns)
{
    current_done(rings);
    if (rings->heap_len == 0)
        return NULL;
    const struct perf_ring *ring = &rings->rings[rings->heap[0]];
    if (ring->time_ns > rings->horizon_ns)
        return NULL;
    if (ring->time_ns < rings->last_ns)
        rings->late++;
    else
        rings->last_ns = ring->time_ns;
    rings->current = rings->heap[0];
    *ret_time_ns = ring->time_ns;
    return linear(rings, ring);
}

void perf_rings_end(struct perf_rings *rings)
{
    current_done(rings);
    for (size_t i = 0; i < rings->count; i++)
        if (rings->rings[i].tail != rings->rings[i].page->data_tail)
            ring_release(&rings->rings[i]);
}
