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
#define REACH      (UINT64_C(64) << 20) /* of a frame */
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
static int step_to(struct state *state, heap_rule rule, uint64_t cfa)
{
    if (UNLIKELY(cfa <= state->sp - (HEAP_REG_RA == 30) || cfa - state->sp > REACH ||
                 cfa > state->limit || cfa & 7))
        return HEAP_END_BAD_STACK;
    int64_t ra = heap_rule_ra(rule), fp = heap_rule_fp(rule);
#if defined(__aarch64__)
    state->pc = ra == 0 ? state->lr : word_at(cfa + (uint64_t)ra);
    state->pc = without_signature(state->pc);
    state->lr = 0;
#else
    state->pc = word_at(cfa + (uint64_t)ra);
#endif
    if (UNLIKELY(rule & HEAP_RULE_FP_BY_FP))
        state->fp = word_at(state->fp + (uint64_t)fp);
    else if (fp != 0)
        state->fp = word_at(cfa + (uint64_t)fp);
    state->sp = cfa;
    return state->pc != 0 ? -1 : HEAP_END_ROOT;
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

static inline int step(struct heap_walker *walker, struct state *state, struct heap_fresh *fresh)
{
    heap_rule rule = heap_rule_of(&walker->program, state->pc);
    *fresh = (struct heap_fresh){.pc = state->pc, .sp = state->sp, .fp = state->fp, .rule = rule};
    unsigned kind = heap_rule_kind(rule);
    if (UNLIKELY(kind != HEAP_RULE_SP && kind != HEAP_RULE_FP))
        return step_rare(walker, state, rule, &fresh->cfa);
    uint64_t base = kind == HEAP_RULE_SP ? state->sp : state->fp;
    fresh->cfa = base + (uint64_t)heap_rule_cfa(rule);
    return step_to(state, rule, fresh->cfa);
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
    walker->checks[frame->checks++] = (struct heap_check){at, *at};
}

static NOINLINE void check_rare(struct heap_walker *walker, struct heap_frame *frame,
                                const struct heap_fresh *fresh, bool outer_needs_fp)
{
    struct state state = {.sp = fresh->sp, .fp = fresh->fp, .limit = UINT64_MAX};
    uint64_t slot;
    switch (heap_rule_kind(fresh->rule)) {
    case HEAP_RULE_SIGNAL:
        frame->needs_fp = false;
        check(walker, frame, fresh->sp + SAVED_SP);
        check(walker, frame, fresh->sp + SAVED_PC);
        check(walker, frame, fresh->sp + SAVED_FP);
#if defined(__aarch64__)
        check(walker, frame, fresh->sp + SAVED_LR);
#endif
        return;
    case HEAP_RULE_NONE:
        frame->needs_fp = true;
        check(walker, frame, fresh->fp + 8);
        check(walker, frame, fresh->fp);
        return;
    default:
        frame->needs_fp = heap_rule_kind(fresh->rule) == HEAP_RULE_DEREF_FP || outer_needs_fp;
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
                              const struct heap_fresh *fresh, bool outer_needs_fp)
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
    frame->needs_fp = kind == HEAP_RULE_FP || (outer_needs_fp && fp == 0);
    if (UNLIKELY(ra == 0)) { /* interrupted, its caller in a register: never the same again */
        frame->needs_fp = true;
        frame->fp = UINT64_MAX;
    }
}

static inline void append(struct heap_walker *walker, const struct heap_fresh *fresh)
{
    struct heap_frame *frame = &walker->frames[walker->count], *outer = frame - 1;
    frame->sp = fresh->sp;
    frame->pc = fresh->pc;
    frame->fp = fresh->fp;
    frame->node = heap_step_known(walker, outer->node, fresh->pc, false);
    frame->leaf = 0;
    frame->checks = outer->checks;
    add_checks(walker, frame, fresh, outer->needs_fp);
    set_count(walker, walker->count + 1);
}

static void append_root(struct heap_walker *walker, const struct heap_fresh *fresh,
                        enum heap_end end)
{
    walker->frames[0] = (struct heap_frame){
        .sp = fresh->sp,
        .pc = fresh->pc,
        .fp = fresh->fp,
        .node = heap_tree_root(fresh->pc, end),
        /* A frame that ends it for want of a better one may be told from others by its fp. */
        .needs_fp = end != HEAP_END_ROOT,
    };
    set_count(walker, 1);
}

/* There are too many: the outer ones are left out, and nodes of the others begin anew. */
static NOINLINE void leave_out(struct heap_walker *walker)
{
    uint32_t out = walker->count - KEPT_DEEP;
    uint32_t checks = walker->frames[out].checks;
    uint32_t last = walker->frames[walker->count - 1].checks;
    set_count(walker, 0);
    for (uint32_t i = checks; i < last; i++)
        walker->checks[i - checks] = walker->checks[i];
    for (uint32_t i = 0; i < KEPT_DEEP; i++) {
        struct heap_frame *frame = &walker->frames[i];
        *frame = walker->frames[out + i];
        frame->checks = (uint16_t)(frame->checks - checks);
        frame->leaf = 0;
        frame->node = i == 0 ? heap_tree_root(frame->pc, HEAP_END_TOO_DEEP)
                             : heap_step_known(walker, frame[-1].node, frame->pc, false);
    }
    set_count(walker, KEPT_DEEP);
}

/* How many of the `count` outermost frames are as they were, if the innermost of these is. */
static inline uint32_t unchanged(const struct heap_walker *walker, uint32_t count)
{
    uint32_t left = walker->frames[count - 1].checks;
    const struct heap_check *check = walker->checks + left;
    while (check > walker->checks) {
        check--;
        if (UNLIKELY(*check->slot != check->value))
            break;
        left--;
    }
    if (LIKELY(left == 0))
        return count;
    /* The frame whose way outwards has changed may not be met; those outside of it may. */
    while (count > 0 && walker->frames[count - 1].checks >= left)
        count--;
    return count;
}

/* ---- the walk ---- */

static NOINLINE void reset(struct heap_walker *walker)
{
    heap_tree_begin();
    bool used = walker->stamp != 0;
    uint32_t stamp = __atomic_load_n(&heap_walk_stamp, __ATOMIC_ACQUIRE);
    set_count(walker, 0);
    for (unsigned i = 0; used && i < HEAP_STEPS; i++)
        walker->steps[i] = (struct heap_step){0};
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    walker->stamp = stamp;
}

static inline bool meets(const struct heap_frame *frame, const struct state *state)
{
    return frame->sp == state->sp && frame->pc == state->pc &&
           (!frame->needs_fp || frame->fp == state->fp);
}

/* Walks outwards to where the last stack is met. How many frames are fresh; walker->count is how
 * many of the last are kept. 0 fresh: it is the last stack. */
static uint32_t walk_out(struct heap_walker *walker, struct state *state, int *ret_end)
{
    uint32_t top = walker->count, count = 0;
    *ret_end = -1;
    for (;;) {
        while (top > 0 && walker->frames[top - 1].sp < state->sp)
            top--;
        if (top > 0 && meets(&walker->frames[top - 1], state)) {
            uint32_t good = unchanged(walker, top);
            if (LIKELY(good == top))
                break;
            top = good;
        }
        if (UNLIKELY(count == HEAP_FRAMES_MAX)) {
            *ret_end = HEAP_END_TOO_DEEP;
            count--;
            top = 0;
            break;
        }
        *ret_end = step(walker, state, &walker->fresh[count]);
        if (UNLIKELY(*ret_end >= 0)) {
            top = 0;
            break;
        }
        count++;
    }
    set_count(walker, top);
    return count;
}

static void take_over(struct heap_walker *walker, uint32_t count, int end)
{
    if (UNLIKELY(end >= 0))
        append_root(walker, &walker->fresh[count], (enum heap_end)end);
    while (count-- > 0) {
        if (UNLIKELY(walker->count == HEAP_FRAMES_MAX))
            leave_out(walker);
        append(walker, &walker->fresh[count]);
    }
}

uint32_t heap_walk(struct heap_thread *thread, const struct heap_at *at)
{
    struct heap_walker *walker = thread->walker;
    struct heap_thread_place *place = thread->place;
    if (UNLIKELY(walker->stamp != __atomic_load_n(&heap_walk_stamp, __ATOMIC_ACQUIRE)))
        reset(walker);
    struct state state = {.pc = at->pc, .sp = at->sp, .fp = at->fp, .limit = stack_limit(at->sp)};
    int end;
    uint32_t fresh = walk_out(walker, &state, &end);
    place->walks++;
    place->frames += fresh + (end >= 0);
    place->recognised += walker->count;
    if (fresh > 0 || end >= 0)
        take_over(walker, fresh, end);
    struct heap_frame *frame = &walker->frames[walker->count - 1];
    if (LIKELY(frame->leaf != 0 && frame->leaf_entry == at->entry))
        return frame->leaf;
    uint32_t leaf = heap_step_known(walker, frame->node, at->entry, true);
    frame->leaf = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    frame->leaf_entry = (uint8_t)at->entry;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    frame->leaf = leaf;
    return leaf;
}

struct heap_walker *heap_walker_make(void)
{
    struct heap_walker *walker = heap_map(sizeof(*walker));
    if (walker)
        walker->home_low = UINT64_MAX;
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
