/* What the last complete walk did, so that the next one need not do it again.
 *
 * Two samples of a thread mostly differ in their inner frames only. From some caller on the
 * walk stands at the same pc with the same registers as before, and all that it does from
 * there is to read stack slots: if each of those still holds what it held, every frame up to
 * the root is what it was. So nothing is guessed: a walk that goes on by memo has compared all
 * that a walk without it would have read.
 *
 * Frames are kept innermost first. The walk in progress writes the other one of two, so that
 * the last is whole until the next is. */
#pragma once

#include "unwind/expression.h"
#include "unwind/machine.h"

#include <string.h>

enum { UNWIND_MEMO_FRAMES = 192, UNWIND_MEMO_READS = 1344, UNWIND_MEMO_SAVED = 12 };

struct unwind_memo_read {
    uint64_t address;
    uint64_t value;
};

struct unwind_memo_frame {
    uint64_t pc; /* that the walk goes on from: a return address */
    uint64_t sp;
    uint64_t saved[UNWIND_MEMO_SAVED]; /* in the order of their numbers */
    uint32_t known;
    uint32_t reads_first; /* what was read to get from here to its caller, and on */
    struct unwind_frame frame;
};

struct unwind_memo {
    uint64_t generation; /* of the space; 0 is no space's */
    uint64_t floor;      /* at the root */
    uint32_t count;
    uint32_t reads_count;
    struct unwind_memo_frame frames[UNWIND_MEMO_FRAMES];
    struct unwind_memo_read reads[UNWIND_MEMO_READS];
};

/* A walk's view of both. */
struct unwind_memos {
    const struct unwind_memo *last; /* NULL: nothing to go by */
    struct unwind_memo *next;       /* NULL: no cache */
    uint32_t at;                    /* frames of the last one below this lie further in */
    bool full;                      /* it does not fit: the next is none */
};

static inline void unwind_memo_read(struct unwind_memos *memos, uint64_t address, uint64_t value)
{
    struct unwind_memo *next = memos->next;
    if (!next)
        return;
    if (next->reads_count == UNWIND_MEMO_READS) {
        memos->full = true;
        return;
    }
    next->reads[next->reads_count++] = (struct unwind_memo_read){address, value};
}

/* The walk read something that is not noted: what was noted before is worth nothing, since
 * frames are only of use with all that lies between them and the root. */
static inline void unwind_memo_restart(struct unwind_memos *memos)
{
    if (memos->next)
        memos->next->count = memos->next->reads_count = 0;
}

/* All registers with a value but the stack pointer, which stands apart. */
static inline uint32_t unwind_memo_known(const struct unwind_registers *registers, unsigned sp)
{
    return registers->known & ~(1u << sp);
}

static inline unsigned unwind_memo_pack(const struct unwind_registers *registers, uint32_t which,
                                        uint64_t saved[UNWIND_MEMO_SAVED])
{
    unsigned count = 0;
    for (; which && count < UNWIND_MEMO_SAVED; which &= which - 1)
        saved[count++] = registers->reg[__builtin_ctz(which)];
    return count;
}

/* The walk stands at a caller and has emitted `frame` for it. */
static inline void unwind_memo_note(struct unwind_memos *memos,
                                    const struct unwind_registers *registers, unsigned sp,
                                    const struct unwind_frame *frame)
{
    struct unwind_memo *next = memos->next;
    if (!next)
        return;
    uint32_t known = unwind_memo_known(registers, sp);
    if (__builtin_popcount(known) > UNWIND_MEMO_SAVED) {
        unwind_memo_restart(memos);
        return;
    }
    if (next->count == UNWIND_MEMO_FRAMES) {
        memos->full = true;
        return;
    }
    struct unwind_memo_frame *to = &next->frames[next->count++];
    to->pc = registers->pc;
    to->sp = registers->reg[sp];
    to->known = known;
    to->reads_first = next->reads_count;
    to->frame = *frame;
    unwind_memo_pack(registers, known, to->saved);
}

static inline bool unwind_memo_holds(const struct unwind_memo *memo, uint32_t reads_first,
                                     const struct unwind_slice *slice)
{
    for (uint32_t i = reads_first; i < memo->reads_count; i++) {
        uint64_t value;
        if (unwind_slice_read(slice, memo->reads[i].address, &value) != UNWIND_ROOT ||
            value != memo->reads[i].value)
            return false;
    }
    return true;
}

/* The index of the frame where the walk stands now, if all from there on is as it was; else
 * UNWIND_MEMO_FRAMES. */
static inline uint32_t unwind_memo_find(struct unwind_memos *memos,
                                        const struct unwind_registers *registers, unsigned sp,
                                        const struct unwind_slice *slice)
{
    const struct unwind_memo *last = memos->last;
    if (!last)
        return UNWIND_MEMO_FRAMES;
    while (memos->at < last->count && last->frames[memos->at].sp < registers->reg[sp])
        memos->at++;
    if (memos->at == last->count)
        return UNWIND_MEMO_FRAMES;
    const struct unwind_memo_frame *frame = &last->frames[memos->at];
    if (frame->sp != registers->reg[sp] || frame->pc != registers->pc ||
        frame->known != unwind_memo_known(registers, sp))
        return UNWIND_MEMO_FRAMES;
    uint64_t saved[UNWIND_MEMO_SAVED];
    unsigned count = unwind_memo_pack(registers, frame->known, saved);
    if (memcmp(saved, frame->saved, count * sizeof(*saved)) != 0 ||
        !unwind_memo_holds(last, frame->reads_first, slice))
        return UNWIND_MEMO_FRAMES;
    return memos->at;
}

/* All of the last walk from frame `from` on, to the end of the next. */
static inline void unwind_memo_keep(struct unwind_memos *memos, uint32_t from)
{
    const struct unwind_memo *last = memos->last;
    struct unwind_memo *next = memos->next;
    uint32_t frames = last->count - from, first = last->frames[from].reads_first;
    uint32_t reads = last->reads_count - first;
    if (next->count + frames > UNWIND_MEMO_FRAMES ||
        next->reads_count + reads > UNWIND_MEMO_READS) {
        memos->full = true;
        return;
    }
    memcpy(next->frames + next->count, last->frames + from, frames * sizeof(*next->frames));
    memcpy(next->reads + next->reads_count, last->reads + first, reads * sizeof(*next->reads));
    for (uint32_t i = 0; i < frames; i++)
        next->frames[next->count + i].reads_first += next->reads_count - first;
    next->count += frames;
    next->reads_count += reads;
}
