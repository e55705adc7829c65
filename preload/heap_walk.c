/* From the place of a call to the node of its stack.
 *
 * The last stack of the thread is kept frame by frame. A new one is walked outwards until it
 * meets a frame of the last: the same pc, at the same place. From there on each word that the way
 * outwards was read from is read again; as long as they are what they were, so is the rest of the
 * stack, by induction: each is read where the ones before say that it must lie, so that no more
 * memory is touched than by a walk. Then only the frames inside of that one are new. */
#include "heap_walk.h"

#include <sys/syscall.h>

uint32_t heap_walk_stamp = 1;

/* Another libc has none, and must not fail to load us for it. */
extern void *main_stack_end __asm__("__libc_stack_end") __attribute__((weak));

enum {
    PAGE = 4096,
    HOME_PAGES_MAX = 1024,           /* looked at to see that a stack is readable */
    KEPT_DEEP = HEAP_FRAMES_MAX / 2, /* when there are too many frames */
};
#define FRAME_MIN  (HEAP_REG_RA == 16 ? 8 : 0) /* the return address, where a call pushes it */
#define REACH      (UINT64_C(64) << 20)        /* of a frame */
#define MAIN_STACK (UINT64_C(64) << 20)

struct state {
    uint64_t pc, sp, fp;
#if defined(__aarch64__)
    uint64_t lr; /* of a frame that was interrupted: it may be nowhere else */
#endif
    uint64_t limit; /* the stack ends before */
    bool doubtful;  /* by frame pointer: nothing proves what is read from here on */
};

static uint64_t word_at(uint64_t address)
{
    return *(const uint64_t *)address; // NOLINT(performance-no-int-to-ptr)
}

#if defined(__aarch64__)
static uint64_t without_signature(uint64_t pc)
{
    register uint64_t x30 __asm__("x30") = pc;
    __asm__("hint 7" : "+r"(x30)); /* xpaclri */
    return x30;
}
#else
static uint64_t without_signature(uint64_t pc)
{
    return pc;
}
#endif

/* A thread's own variables lie above its stack, those of the main thread below. Whatever stack
 * `sp` is on, it does not reach over them. */
static uint64_t stack_limit(uint64_t sp)
{
    uint64_t own = (uint64_t)&heap_self, main = &main_stack_end ? (uint64_t)main_stack_end : 0;
    if (sp < own)
        return own;
    return sp < main ? main : UINT64_MAX;
}

/* ---- one step outwards ---- */

/* Whether all from `sp` to the limit can be read, whatever a frame pointer says. */
static bool home_is_readable(struct heap_walker *walker, const struct state *state)
{
    if (state->limit == UINT64_MAX)
        return false;
    /* The kernel keeps everything else further away from the main stack than this. */
    if (&main_stack_end && state->limit == (uint64_t)main_stack_end)
        return state->limit - state->sp < MAIN_STACK;
    if (state->sp >= walker->home_low)
        return true;
    uint64_t low = state->sp & -(uint64_t)PAGE;
    uint64_t high = walker->home_low != UINT64_MAX ? walker->home_low : state->limit;
    if (high - low > (uint64_t)HOME_PAGES_MAX * PAGE)
        return false;
    for (uint64_t page = low; page < high; page += PAGE)
        if (!heap_readable(page))
            return false;
    walker->home_low = low;
    return true;
}

/* No rule: code that keeps a frame pointer, or the end. */
static int step_by_fp(struct heap_walker *walker, struct state *state, uint64_t *ret_cfa)
{
    if (state->fp < state->sp || state->fp & 7 || state->fp > state->limit - 16 ||
        state->fp - state->sp > REACH || !home_is_readable(walker, state))
        return HEAP_END_NO_RULE;
    uint64_t pc = without_signature(word_at(state->fp + 8)), fp = word_at(state->fp);
    if (pc < PAGE)
        return HEAP_END_NO_RULE;
    *ret_cfa = state->fp + 16;
    state->doubtful = true;
    state->pc = pc;
    state->sp = *ret_cfa;
    state->fp = fp;
    return -1;
}

#if defined(__x86_64__)
enum { SAVED_FP = 120, SAVED_SP = 160, SAVED_PC = 168 };
#else
enum { SAVED_FP = 544, SAVED_LR = 552, SAVED_SP = 560, SAVED_PC = 568 };
#endif

/* Over a signal's frame to the code that was interrupted, on whatever stack. */
static int step_signal(struct state *state, uint64_t *ret_cfa)
{
    uint64_t saved = state->sp;
    if (state->doubtful)
        return HEAP_END_BAD_STACK;
    *ret_cfa = saved;
    state->pc = word_at(saved + SAVED_PC) + 1; /* as a return address: the call lies before it */
    state->sp = word_at(saved + SAVED_SP);
    state->fp = word_at(saved + SAVED_FP);
#if defined(__aarch64__)
    state->lr = word_at(saved + SAVED_LR);
#endif
    state->limit = stack_limit(state->sp);
    return -1;
}

/* -1: where the CFA is read from is in *ret. */
static int dereferenced(const struct state *state, heap_rule rule, uint64_t *ret)
{
    int64_t words = heap_rule_cfa(rule) >> 3;
    int64_t offset = (int64_t)((uint64_t)words << 50) >> 50 << 3;
    bool by_fp = heap_rule_kind(rule) == HEAP_RULE_DEREF_FP;
    uint64_t slot = (by_fp ? state->fp : state->sp) + (uint64_t)offset;
    if (slot < state->sp || slot - state->sp > REACH || slot > state->limit - 8 || slot & 7)
        return HEAP_END_BAD_STACK;
    *ret = slot;
    return -1;
}

static uint64_t dereference_more(heap_rule rule)
{
    return (uint64_t)((int64_t)rule >> 54 << 3);
}

/* By CFA and rule to the caller. -1, or why the stack ends. */
static inline int step_to(struct state *state, heap_rule rule, uint64_t cfa)
{
    /* A frame lies above the one it calls, whole words above, and on the same stack. */
    if (UNLIKELY(cfa - state->sp - FRAME_MIN > REACH || cfa > state->limit || cfa & 7))
        return HEAP_END_BAD_STACK;
    int64_t ra = heap_rule_ra(rule), fp = heap_rule_fp(rule);
#if defined(__aarch64__)
    state->pc = without_signature(ra == 0 ? state->lr : word_at(cfa + (uint64_t)ra));
    state->lr = 0;
#else
    state->pc = word_at(cfa + (uint64_t)ra);
#endif
    if (UNLIKELY(rule & HEAP_RULE_FP_BY_FP))
        state->fp = word_at(state->fp + (uint64_t)fp);
    else if (fp != 0)
        state->fp = word_at(cfa + (uint64_t)fp);
    state->sp = cfa;
    return LIKELY(state->pc != 0) ? -1 : HEAP_END_ROOT;
}

static NOINLINE int step_rare(struct heap_walker *walker, struct state *state, heap_rule rule,
                              uint64_t *ret_cfa)
{
    uint64_t slot;
    int end;
    switch (heap_rule_kind(rule)) {
    case HEAP_RULE_ROOT:
        return HEAP_END_ROOT;
    case HEAP_RULE_SIGNAL:
        return step_signal(state, ret_cfa);
    case HEAP_RULE_DEREF_SP:
    case HEAP_RULE_DEREF_FP:
        end = dereferenced(state, rule, &slot);
        if (end >= 0)
            return end;
        *ret_cfa = word_at(slot) + dereference_more(rule);
        return step_to(state, rule, *ret_cfa);
    case HEAP_RULE_NONE:
        return step_by_fp(walker, state, ret_cfa);
    default:
        return HEAP_END_NO_RULE;
    }
}

/* `state` is the caller's alone, and in registers: others work on a copy. */
static inline int step(struct heap_walker *walker, struct state *state, struct heap_fresh *fresh)
{
    heap_rule rule = heap_rule_of(&walker->program, state->pc);
    fresh->pc = state->pc;
    fresh->sp = state->sp;
    fresh->fp = state->fp;
    fresh->rule = rule;
    unsigned kind = heap_rule_kind(rule);
    if (UNLIKELY(kind - HEAP_RULE_SP > HEAP_RULE_FP - HEAP_RULE_SP)) {
        struct state copy = *state;
        int end = step_rare(walker, &copy, rule, &fresh->cfa);
        *state = copy;
        return end;
    }
    uint64_t base = kind == HEAP_RULE_SP ? state->sp : state->fp;
    uint64_t cfa = base + (uint64_t)heap_rule_cfa(rule);
    fresh->cfa = cfa;
    return step_to(state, rule, cfa);
}

/* ---- the frames that are kept ----
 *
 * A signal handler may interrupt this anywhere and never return (longjmp). So a frame is written
 * before it is counted, and none that is counted is ever half written. */

static inline void set_count(struct heap_walker *walker, uint32_t count)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    walker->count = count;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void check(struct heap_walker *walker, struct heap_frame *frame, uint64_t slot)
{
    const uint64_t *at = (const uint64_t *)slot; // NOLINT(performance-no-int-to-ptr)
    walker->checks[HEAP_CHECKS_AHEAD + frame->checks++] = (struct heap_check){at, *at};
}

static NOINLINE void check_rare(struct heap_walker *walker, struct heap_frame *frame,
                                const struct heap_fresh *fresh, uint64_t outer_needs_fp)
{
    struct state state = {.sp = fresh->sp, .fp = fresh->fp, .limit = UINT64_MAX};
    uint64_t slot;
    switch (heap_rule_kind(fresh->rule)) {
    case HEAP_RULE_SIGNAL:
        frame->needs_fp = 0;
        check(walker, frame, fresh->sp + SAVED_SP);
        check(walker, frame, fresh->sp + SAVED_PC);
        check(walker, frame, fresh->sp + SAVED_FP);
#if defined(__aarch64__)
        check(walker, frame, fresh->sp + SAVED_LR);
#endif
        return;
    case HEAP_RULE_NONE:
        frame->needs_fp = ~UINT64_C(0);
        check(walker, frame, fresh->fp + 8);
        check(walker, frame, fresh->fp);
        return;
    default:
        frame->needs_fp = outer_needs_fp;
        if (heap_rule_kind(fresh->rule) == HEAP_RULE_DEREF_FP ||
            heap_rule_kind(fresh->rule) == HEAP_RULE_FP)
            frame->needs_fp = ~UINT64_C(0);
        check(walker, frame, fresh->cfa + (uint64_t)heap_rule_ra(fresh->rule));
        if (outer_needs_fp && fresh->rule & HEAP_RULE_FP_BY_FP)
            check(walker, frame, fresh->fp + (uint64_t)heap_rule_fp(fresh->rule));
        else if (outer_needs_fp && heap_rule_fp(fresh->rule) != 0)
            check(walker, frame, fresh->cfa + (uint64_t)heap_rule_fp(fresh->rule));
        if (dereferenced(&state, fresh->rule, &slot) < 0)
            check(walker, frame, slot);
    }
}

/* What has to be looked at again to know that the caller of this frame is what it was. The last
 * one is looked at first. */
static inline void add_checks(struct heap_walker *walker, struct heap_frame *frame,
                              const struct heap_fresh *fresh, uint64_t outer_needs_fp)
{
    unsigned kind = heap_rule_kind(fresh->rule);
    if (UNLIKELY((kind != HEAP_RULE_SP && kind != HEAP_RULE_FP) ||
                 fresh->rule & HEAP_RULE_FP_BY_FP)) {
        check_rare(walker, frame, fresh, outer_needs_fp);
        return;
    }
    int64_t ra = heap_rule_ra(fresh->rule), fp = heap_rule_fp(fresh->rule);
    if (LIKELY(ra != 0))
        check(walker, frame, fresh->cfa + (uint64_t)ra);
    if (outer_needs_fp && fp != 0)
        check(walker, frame, fresh->cfa + (uint64_t)fp);
    frame->needs_fp = kind == HEAP_RULE_FP ? ~UINT64_C(0) : fp == 0 ? outer_needs_fp : 0;
    if (UNLIKELY(ra == 0)) { /* interrupted, its caller in a register: never the same again */
        frame->needs_fp = ~UINT64_C(0);
        frame->fp = UINT64_MAX;
    }
}

static inline void append(struct heap_walker *walker, const struct heap_fresh *fresh)
{
    uint32_t count = walker->count;
    struct heap_frame *outer = &walker->frames[count], *frame = outer + 1;
    frame->sp = fresh->sp;
    frame->pc = fresh->pc;
    frame->fp = fresh->fp;
    frame->node = heap_tree_child(outer->node, fresh->pc, false);
    frame->leaf = 0;
    frame->checks = outer->checks;
    add_checks(walker, frame, fresh, outer->needs_fp);
    set_count(walker, count + 1);
}

static void append_root(struct heap_walker *walker, const struct heap_fresh *fresh,
                        enum heap_end end)
{
    walker->frames[1] = (struct heap_frame){
        .sp = fresh->sp,
        .pc = fresh->pc,
        .fp = fresh->fp,
        .node = heap_tree_root(fresh->pc, end),
        /* A frame that ends it for want of a better one may be told from others by its fp. */
        .needs_fp = end == HEAP_END_ROOT ? 0 : ~UINT64_C(0),
    };
    set_count(walker, 1);
}

/* There are too many: the outer ones are left out, and nodes of the others begin anew. */
static NOINLINE void leave_out(struct heap_walker *walker)
{
    uint32_t out = walker->count - KEPT_DEEP;
    struct heap_check *checks = walker->checks + HEAP_CHECKS_AHEAD;
    uint32_t checks_out = walker->frames[out + 1].checks;
    uint32_t checks_kept = walker->frames[walker->count].checks - checks_out;
    set_count(walker, 0);
    for (uint32_t i = 0; i < checks_kept; i++)
        checks[i] = checks[i + checks_out];
    for (uint32_t i = 1; i <= KEPT_DEEP; i++) {
        struct heap_frame *frame = &walker->frames[i];
        *frame = walker->frames[out + i];
        frame->checks -= checks_out;
        frame->leaf = 0;
        frame->node = i == 1 ? heap_tree_root(frame->pc, HEAP_END_TOO_DEEP)
                             : heap_tree_child(frame[-1].node, frame->pc, false);
    }
    set_count(walker, KEPT_DEEP);
}

/* ---- the walk ---- */

static NOINLINE const struct heap_frame *outside_of(const struct heap_walker *walker,
                                                    const struct heap_frame *frame,
                                                    const struct heap_check *changed)
{
    uint32_t place = (uint32_t)(changed - walker->checks) - HEAP_CHECKS_AHEAD;
    while (frame > walker->frames && frame->checks > place)
        frame--;
    return frame;
}

/* The innermost frame, from `frame` on outwards, that is known to be as it was, with all outer
 * ones, if the innermost is. One whose way outwards has changed is not; those outside of it may
 * be, but they are not known to be those that are called from. */
static inline const struct heap_frame *unchanged(const struct heap_walker *walker,
                                                 const struct heap_frame *frame)
{
    const struct heap_check *begin = walker->checks + HEAP_CHECKS_AHEAD;
    const struct heap_check *check = begin + frame->checks;
    /* In eights, so that the loop ends where it did last time more often than not. What lies
     * ahead of the first is always as it was. */
    while (check > begin) {
#pragma GCC unroll 8
        for (int i = 1; i <= HEAP_CHECKS_AHEAD; i++)
            if (UNLIKELY(*check[-i].slot != check[-i].value))
                return outside_of(walker, frame, check - i);
        check -= HEAP_CHECKS_AHEAD;
    }
    return frame;
}

static inline bool meets(const struct heap_frame *frame, const struct state *state)
{
    return ((frame->sp ^ state->sp) | (frame->pc ^ state->pc) |
            ((frame->fp ^ state->fp) & frame->needs_fp)) == 0;
}

/* Walks outwards to where the last stack is met. How many frames are fresh; walker->count is how
 * many of the last are kept. *ret_end -1: they were met; else the fresh ones end with a root, and
 * it is not counted. */
static inline uint32_t walk_out(struct heap_walker *walker, const struct heap_at *at, int *ret_end)
{
    struct state state = {.pc = at->pc, .sp = at->sp, .fp = at->fp, .limit = stack_limit(at->sp)};
    const struct heap_frame *frame = &walker->frames[walker->count];
    uint32_t count = 0;
    int end = -1;
    for (;;) {
        while (frame->sp < state.sp)
            frame--;
        if (meets(frame, &state)) {
            const struct heap_frame *good = unchanged(walker, frame);
            if (LIKELY(good == frame))
                break;
            frame = good;
        }
        if (UNLIKELY(count == HEAP_FRAMES_MAX)) {
            end = HEAP_END_TOO_DEEP;
            count--;
        } else {
            end = step(walker, &state, &walker->fresh[count]);
        }
        if (UNLIKELY(end >= 0)) {
            frame = walker->frames;
            break;
        }
        count++;
    }
    set_count(walker, (uint32_t)(frame - walker->frames));
    *ret_end = end;
    return count;
}

static NOINLINE void take_over_root(struct heap_walker *walker, uint32_t count, int end)
{
    append_root(walker, &walker->fresh[count], (enum heap_end)end);
}

static inline void take_over(struct heap_walker *walker, uint32_t count)
{
    while (count-- > 0) {
        if (UNLIKELY(walker->count == HEAP_FRAMES_MAX))
            leave_out(walker);
        append(walker, &walker->fresh[count]);
    }
}

static NOINLINE uint32_t other_leaf(struct heap_frame *frame, enum heap_entry entry)
{
    frame->leaf = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    frame->leaf_entry = entry;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    frame->leaf = heap_tree_child(frame->node, entry, true);
    return frame->leaf;
}

static NOINLINE void reset(struct heap_walker *walker)
{
    heap_tree_begin();
    uint32_t stamp = __atomic_load_n(&heap_walk_stamp, __ATOMIC_ACQUIRE);
    set_count(walker, 0);
    walker->stamp = stamp;
}

uint32_t heap_walk(struct heap_thread *thread, const struct heap_at *at)
{
    struct heap_walker *walker = thread->walker;
    struct heap_thread_place *place = thread->place;
    if (UNLIKELY(walker->stamp != __atomic_load_n(&heap_walk_stamp, __ATOMIC_ACQUIRE)))
        reset(walker);
    int end;
    uint32_t fresh = walk_out(walker, at, &end);
    place->walks++;
    place->frames += fresh;
    place->recognised += walker->count;
    if (UNLIKELY(end >= 0)) {
        place->frames++;
        take_over_root(walker, fresh, end);
    }
    take_over(walker, fresh);
    struct heap_frame *frame = &walker->frames[walker->count];
    if (LIKELY(frame->leaf != 0 && frame->leaf_entry == (uint32_t)at->entry))
        return frame->leaf;
    return other_leaf(frame, at->entry);
}

struct heap_walker *heap_walker_make(void)
{
    struct heap_walker *walker = heap_map(sizeof(*walker));
    if (!walker)
        return NULL;
    walker->home_low = UINT64_MAX;
    walker->frames[0].sp = UINT64_MAX; /* no frame lies above it */
    for (int i = 0; i < HEAP_CHECKS_AHEAD; i++)
        walker->checks[i].slot = &walker->zero;
    return walker;
}

void heap_walker_forget(struct heap_walker *walker)
{
    set_count(walker, 0);
    walker->home_low = UINT64_MAX;
}

void heap_walk_forked(void)
{
    __atomic_fetch_add(&heap_walk_stamp, 1, __ATOMIC_RELEASE);
    heap_tree_begin();
    heap_images_publish();
}
