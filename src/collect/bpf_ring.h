/* A BPF ring buffer, read in place: what a program in the kernel tells us.
 *
 *     bpf_ring_map()       the ring of a map
 *     bpf_ring_begin()     how far it is filled now; clears the wake-up
 *     bpf_ring_next()      record after record, up to there
 *     bpf_ring_release()   gives back the space of all that lies before a place
 *
 * Records are handed out without giving their space back: a reader may keep them, by their
 * place, until it knows what belongs to them. A record that a program has reserved and not
 * submitted yet holds back those behind it until the next round. The program counts what it
 * found no room for, in a map of its own. One thread reads.
 *
 * A program wakes us only when it asks to (BPF_RB_FORCE_WAKEUP): poll() of `wake_fd` tells. */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collector; /* of one of the collectors with a ring */

struct bpf_ring {
    uint64_t *consumer;       /* how far we have given back; written by us */
    const uint64_t *producer; /* how far programs have reserved */
    const uint8_t *data;      /* mapped twice in a row: no record is split */
    size_t data_bytes;        /* a power of two */
    uint64_t head;            /* as of begin */
    uint64_t at;              /* how far we have looked */
    uint64_t damaged;         /* times it was emptied because a record made no sense */
    int wake_fd;
    bool mapped; /* by us: to be unmapped */
};

/* `data_bytes`: max_entries of the map. */
MUST_USE int bpf_ring_map(int map_fd, size_t data_bytes, struct bpf_ring *ret, struct why *why);
/* A ring made of plain memory, for tests: `data` has twice `data_bytes`, both halves alike. */
void bpf_ring_adopt(uint64_t *consumer, const uint64_t *producer, const uint8_t *data,
                    size_t data_bytes, struct bpf_ring *ret);
void bpf_ring_deinit(struct bpf_ring *ring);
/* How much is to be asked for: `large` only where the machine, and what our cgroup lets us have,
 * is 3 GiB or more. */
uint32_t bpf_ring_bytes_here(uint32_t large, uint32_t small);
/* Loads what has the ring, and maps it. There may be more memory than is left of it, or than a
 * limit of ours lets us have: when `large` cannot be had it is `small`, and *ret_large says why. */
typedef int bpf_ring_try(struct collector *c, const char *cache_dir, uint32_t ring_bytes,
                         struct why *why);
MUST_USE int bpf_ring_fit(struct collector *c, bpf_ring_try *attempt, const char *cache_dir,
                          uint32_t large, uint32_t small, struct why *ret_large, struct why *why);

void bpf_ring_begin(struct bpf_ring *ring);
/* NULL when there is nothing more for now. `ret_place` is where it begins. */
const void *bpf_ring_next(struct bpf_ring *ring, size_t *ret_bytes, uint64_t *ret_place);
/* A record that was handed out and not given back. */
const void *bpf_ring_at(const struct bpf_ring *ring, uint64_t place);
/* `place` of a record that is still needed; UINT64_MAX: none is. */
void bpf_ring_release(struct bpf_ring *ring, uint64_t place);
