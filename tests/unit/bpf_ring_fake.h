/* A BPF ring of plain memory that a test fills as the kernel would. */
#pragma once

#include "unit.h"

#include "collect/bpf_ring.h"

#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake_ring {
    uint64_t consumer, producer;
    uint8_t *data; /* mapped twice in a row */
    size_t bytes;
    struct bpf_ring ring;
};

static void fake_ring_init(struct fake_ring *fake, size_t bytes)
{
    *fake = (struct fake_ring){.bytes = bytes};
    int fd = memfd_create("ring", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    fake->data = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(fake->data != MAP_FAILED);
    for (int half = 0; half < 2; half++)
        assert_true(mmap(fake->data + (size_t)half * bytes, bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    close(fd);
    bpf_ring_adopt(&fake->consumer, &fake->producer, fake->data, bytes, &fake->ring);
}

static void fake_ring_deinit(struct fake_ring *fake)
{
    bpf_ring_deinit(&fake->ring);
    munmap(fake->data, 2 * fake->bytes);
}

/* Reserved, with its bytes in place; `bits` are BPF_RINGBUF_BUSY_BIT and the like. False when
 * there is no room. */
static bool fake_ring_put(struct fake_ring *fake, const void *record, size_t len, uint32_t bits)
{
    size_t whole = (len + BPF_RINGBUF_HDR_SZ + 7) & ~(size_t)7;
    if (fake->producer - fake->consumer + whole > fake->bytes)
        return false;
    uint8_t *at = fake->data + fake->producer % fake->bytes;
    uint32_t word = (uint32_t)len | bits;
    memcpy(at + BPF_RINGBUF_HDR_SZ, record, len);
    memcpy(at, &word, sizeof(word));
    fake->producer += whole;
    return true;
}
