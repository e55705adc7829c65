/* Records out of a ring that somebody else may write to at any time. */
#include "collect/preload_ring.h"

#include <errno.h>
#include <string.h>

uint64_t preload_ring_used(const struct preload_ring *ring)
{
    return __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE) - ring->tail;
}

void preload_ring_release(const struct preload_ring *ring)
{
    __atomic_store_n(&ring->shared->tail, ring->tail, __ATOMIC_RELEASE);
}

static int broken(struct preload_ring *ring)
{
    ring->broken = true;
    return -EBADMSG;
}

static bool size_is_right(const struct preload_record *record, uint64_t room)
{
    if (record->bytes % 8 != 0 || record->bytes < sizeof(*record) || record->bytes > room)
        return false;
    switch (record->kind) {
    case PRELOAD_PAD:
        return true;
    case PRELOAD_STACK:
        return record->bytes >= sizeof(struct preload_stack) &&
               record->bytes <= sizeof(struct preload_stack) + PRELOAD_SLICE_BYTES;
    case PRELOAD_WAIT:
    case PRELOAD_HOLD:
        return record->bytes == sizeof(struct preload_wait) && record->lock < PRELOAD_LOCKS;
    case PRELOAD_CALL:
        return record->bytes == sizeof(struct preload_call);
    case PRELOAD_PIECE:
        return record->bytes >= sizeof(struct preload_piece) &&
               record->bytes <= sizeof(struct preload_piece) + PRELOAD_PIECE_BYTES;
    default:
        return false;
    }
}

/* Only what was copied is believed: the original may have changed since the look at its size. */
static bool copy(const uint8_t *from, struct preload_record record, struct preload_taken *ret)
{
    switch (record.kind) {
    case PRELOAD_CALL:
        memcpy(&ret->call, from, sizeof(ret->call));
        ret->record = record;
        return ret->call.start_ns <= ret->call.end_ns;
    case PRELOAD_PIECE:
        memcpy(&ret->piece, from, sizeof(ret->piece));
        ret->record = record;
        if (ret->piece.start_ns > ret->piece.end_ns ||
            ret->piece.len > record.bytes - sizeof(struct preload_piece))
            return false;
        memcpy(ret->slice, from + sizeof(struct preload_piece), ret->piece.len);
        return true;
    case PRELOAD_STACK:
        memcpy(&ret->stack, from, sizeof(ret->stack));
        ret->record = record;
        if (ret->stack.slice_bytes != record.bytes - sizeof(struct preload_stack))
            return false;
        memcpy(ret->slice, from + sizeof(struct preload_stack), ret->stack.slice_bytes);
        return true;
    default:
        memcpy(&ret->wait, from, sizeof(ret->wait));
        ret->record = record;
        return ret->wait.start_ns <= ret->wait.end_ns;
    }
}

static uint64_t time_of(const struct preload_taken *taken)
{
    switch (taken->record.kind) {
    case PRELOAD_STACK:
        return taken->stack.time_ns;
    case PRELOAD_CALL:
        return taken->call.end_ns;
    case PRELOAD_PIECE:
        return taken->piece.end_ns;
    default:
        return taken->wait.end_ns;
    }
}

int preload_ring_next(struct preload_ring *ring, uint64_t until_ns, struct preload_taken *ret,
                      uint64_t *ret_next_ns)
{
    *ret_next_ns = UINT64_MAX;
    for (int pads = 0; pads < 2 && !ring->broken; pads++) {
        uint64_t used = preload_ring_used(ring);
        if (used == 0)
            return 0;
        if (used > PRELOAD_RING_BYTES || used % 8 != 0 || ring->tail % 8 != 0)
            return broken(ring);
        uint64_t at = ring->tail % PRELOAD_RING_BYTES;
        uint64_t room = MIN(used, PRELOAD_RING_BYTES - at);
        const uint8_t *from = ring->shared->ring + at;
        struct preload_record record;
        memcpy(&record, from, sizeof(record));
        if (!size_is_right(&record, room))
            return broken(ring);
        if (record.kind == PRELOAD_PAD) {
            ring->tail += record.bytes;
            continue;
        }
        if (!copy(from, record, ret))
            return broken(ring);
        uint64_t time_ns = time_of(ret);
        if (time_ns >= until_ns) {
            *ret_next_ns = time_ns;
            return 0;
        }
        ring->tail += record.bytes;
        return 1;
    }
    return 0;
}

/* Each try takes longer than a write. */
enum { TRIES = 100 };

/* A copy that was not written to meanwhile; sequences stand first. */
static bool whole_copy(const void *row, void *ret, size_t bytes)
{
    const uint32_t *at = row;
    for (int i = 0; i < TRIES; i++) {
        uint32_t sequence = __atomic_load_n(at, __ATOMIC_ACQUIRE);
        if (sequence & 1)
            continue;
        memcpy(ret, row, bytes);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(at, __ATOMIC_RELAXED) == sequence)
            return true;
    }
    return false;
}

bool preload_row_read(const struct preload_row *row, struct preload_row *ret)
{
    return whole_copy(row, ret, sizeof(*ret)) && ret->count != ret->taken &&
           (ret->kind == PRELOAD_WAIT || ret->kind == PRELOAD_HOLD) && ret->lock < PRELOAD_LOCKS;
}

bool preload_call_row_read(const struct preload_call_row *row, struct preload_call_row *ret)
{
    return row->used && whole_copy(row, ret, sizeof(*ret)) && ret->count != ret->taken;
}
