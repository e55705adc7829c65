/* The kernel's layout: a page with the consumer's position, one with the producer's, the data. */
#include "collect/bpf_ring.h"

#include "base/arena.h"
#include "base/fd.h"
#include "host/memory_limit.h"

#include <errno.h>
#include <linux/bpf.h>
#include <math.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY_BYTES_LARGE (3.0 * (1 << 30))
enum { HEADER_BYTES = BPF_RINGBUF_HDR_SZ };

/* Level-triggered, a ring would be ready as long as a record is kept in it. */
static int wake_open(int map_fd)
{
    AUTO(fd_close) int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    if (epoll_ctl(fd, EPOLL_CTL_ADD, map_fd, &event) < 0)
        return -errno;
    return fd_take(&fd);
}

int bpf_ring_map(int map_fd, size_t data_bytes, struct bpf_ring *ret, struct why *why)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *consumer = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
    if (consumer == MAP_FAILED)
        return why_errno(why, errno, NULL, "cannot map the ring of a BPF program");
    void *producer = mmap(NULL, page_bytes + 2 * data_bytes, PROT_READ, MAP_SHARED, map_fd,
                          (off_t)page_bytes);
    int wake_fd = producer == MAP_FAILED ? -errno : wake_open(map_fd);
    if (wake_fd < 0) {
        munmap(consumer, page_bytes);
        if (producer != MAP_FAILED)
            munmap(producer, page_bytes + 2 * data_bytes);
        return why_errno(why, -wake_fd, NULL, "cannot map the ring of a BPF program");
    }
    bpf_ring_adopt(consumer, producer, (const uint8_t *)producer + page_bytes, data_bytes, ret);
    ret->wake_fd = wake_fd;
    ret->mapped = true;
    return 0;
}

void bpf_ring_adopt(uint64_t *consumer, const uint64_t *producer, const uint8_t *data,
                    size_t data_bytes, struct bpf_ring *ret)
{
    *ret = (struct bpf_ring){
        .consumer = consumer,
        .producer = producer,
        .data = data,
        .data_bytes = data_bytes,
        .at = __atomic_load_n(consumer, __ATOMIC_ACQUIRE),
        .wake_fd = -1,
    };
    ret->head = ret->at;
}

void bpf_ring_deinit(struct bpf_ring *ring)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (ring->mapped) {
        fd_close(&ring->wake_fd);
        munmap(ring->consumer, page_bytes);
        munmap((void *)(uintptr_t)ring->producer, page_bytes + 2 * ring->data_bytes);
    }
    *ring = (struct bpf_ring){.wake_fd = -1};
}

void bpf_ring_begin(struct bpf_ring *ring)
{
    struct epoll_event event;
    if (ring->wake_fd >= 0)
        (void)epoll_wait(ring->wake_fd, &event, 1, 0);
    ring->head = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
}

static const uint8_t *place_of(const struct bpf_ring *ring, uint64_t place)
{
    return ring->data + (place & (ring->data_bytes - 1));
}

const void *bpf_ring_next(struct bpf_ring *ring, size_t *ret_bytes, uint64_t *ret_place)
{
    while (ring->head > ring->at) {
        uint64_t place = ring->at, waiting = ring->head - place;
        uint32_t word = __atomic_load_n((const uint32_t *)(const void *)place_of(ring, place),
                                        __ATOMIC_ACQUIRE);
        if (word & BPF_RINGBUF_BUSY_BIT)
            return NULL;
        size_t bytes = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
        size_t whole = (bytes + HEADER_BYTES + 7) & ~(size_t)7;
        if (whole > waiting || waiting > ring->data_bytes) {
            ring->damaged++;
            ring->at = ring->head;
            return NULL;
        }
        ring->at += whole;
        if (word & BPF_RINGBUF_DISCARD_BIT)
            continue;
        *ret_bytes = bytes;
        *ret_place = place;
        return bpf_ring_at(ring, place);
    }
    return NULL;
}

const void *bpf_ring_at(const struct bpf_ring *ring, uint64_t place)
{
    return place_of(ring, place) + HEADER_BYTES;
}

void bpf_ring_release(struct bpf_ring *ring, uint64_t place)
{
    uint64_t until = place < ring->at ? place : ring->at;
    if (until > *ring->consumer)
        __atomic_store_n(ring->consumer, until, __ATOMIC_RELEASE);
}

uint32_t bpf_ring_bytes_here(uint32_t large, uint32_t small)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct host host = {.root = "", .arena = &arena};
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    return fmin(bytes, memory_limit_bytes(&host)) >= MEMORY_BYTES_LARGE ? large : small;
}

int bpf_ring_fit(struct collector *c, bpf_ring_try *attempt, const char *cache_dir, uint32_t large,
                 uint32_t small, struct why *ret_large, struct why *why)
{
    struct why first = {0};
    int r = attempt(c, cache_dir, large, &first);
    if (r != -ENOMEM || large <= small) {
        *why = r < 0 ? first : *why;
        return r;
    }
    *ret_large = first;
    return attempt(c, cache_dir, small, why);
}
