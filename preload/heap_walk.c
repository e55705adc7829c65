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
    MAIN_BEGINS = 64,                /* bytes of the main stack that no call has used yet */
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
    /* Where the kernel began the stack, nothing lies above: the loader, before it starts the
     * program. */
    if (&main_stack_end && (uint64_t)main_stack_end - state->sp <= MAIN_BEGINS)
        return HEAP_END_ROOT;
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

/* By CFA and rule to the caller. */
static inline void step_to(struct state *state, heap_rule rule, uint64_t cfa)
{
    int64_t ra = heap_rule_ra(rule), fp = heap_rule_fp(rule);
#if defined(__aarch64__)
    state->pc = without_signature(ra == 0 ? state->lr : word_at(cfa + (uint64_t)ra));
    state->lr = 0;
#else
    state->pc = word_at(cfa + (uint64_t)ra);
#endif
    if (fp != 0)
        state->fp = word_at(cfa + (uint64_t)fp);
    state->sp = cfa;
}

/* A frame lies above the one it calls, whole words above, and on the same stack. */
static inline bool is_frame(const struct state *state, uint64_t cfa)
{
    return cfa - state->sp - FRAME_MIN <= REACH && cfa <= state->limit && (cfa & 7) == 0;
}

static int step_dereferenced(struct state *state, heap_rule rule, uint64_t *ret_cfa)
{
    uint64_t slot, fp = state->fp;
    int end = dereferenced(state, rule, &slot);
    if (end >= 0)
        return end;
    *ret_cfa = word_at(slot) + dereference_more(rule);
    if (!is_frame(state, *ret_cfa))
        return HEAP_END_BAD_STACK;
    step_to(state, rule, *ret_cfa);
    if (rule & HEAP_RULE_FP_BY_FP)
        state->fp = word_at(fp + (uint64_t)heap_rule_fp(rule));
    return -1;
}

/* -1, or why the stack ends. */
static NOINLINE int step_rare(struct heap_walker *walker, struct state *state, heap_rule rule,
                              uint64_t *ret_cfa)
{
    if (heap_rule_kind(rule) == HEAP_RULE_NONE && rule >> 4 != heap_rules_opens)
        rule = heap_rule_make(&walker->program, state->pc);
    switch (heap_rule_kind(rule)) {
    case HEAP_RULE_ROOT:
        return HEAP_END_ROOT;
    case HEAP_RULE_SIGNAL:
        return step_signal(state, ret_cfa);
    case HEAP_RULE_DEREF_SP:
    case HEAP_RULE_DEREF_FP:
        return step_dereferenced(state, rule, ret_cfa);
    case HEAP_RULE_NONE:
        return step_by_fp(walker, state, ret_cfa);
    case HEAP_RULE_FP:
        return HEAP_END_BAD_STACK;
    default:
        return HEAP_END_NO_RULE;
    }
}

/* `state` is the caller's alone, and in registers: others work on a copy. */
static inline int step(struct heap_walker *walker, struct state *state, struct heap_fresh *fresh)
{
    heap_rule rule = heap_rule_of(&walker->program, state->pc);
    unsigned kind = heap_rule_kind(rule);
    fresh->pc = state->pc;
    fresh->sp = state->sp;
    fresh->fp = state->fp;
    fresh->rule = rule;
    uint64_t cfa = (uint64_t)heap_rule_cfa(rule);
    if (LIKELY(kind == HEAP_RULE_SP) && LIKELY((cfa += state->sp) <= state->limit)) {
        fresh->cfa = cfa;
        step_to(state, rule, cfa);
        return -1;
    }
    if (LIKELY(kind == HEAP_RULE_FP) && LIKELY(is_frame(state, cfa += state->fp))) {
        fresh->cfa = cfa;
        step_to(state, rule, cfa);
        return -1;
    }
    struct state copy = *state;
    int end = step_rare(walker, &copy, rule, &fresh->cfa);
    *state = copy;
    return end;
}

/* ---- the frames that are kept ----
 *
 * A signal handler may interrupt this anywhere and never return (longjmp). So a frame is written
 * before it is counted, and none that is counted is ever half written. */

static inline void set_top(struct heap_walker *walker, struct heap_frame *top)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    walker->top = top;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void check(struct heap_frame *frame, uint64_t slot)
{
    const uint64_t *at = (const uint64_t *)slot; // NOLINT(performance-no-int-to-ptr)
    frame->checks->slot = at;
    frame->checks->value = *at;
    frame->checks++;
}

static NOINLINE void check_rare(struct heap_frame *frame, const struct heap_fresh *fresh,
                                uint64_t outer_needs_fp)
{
    struct state state = {.sp = fresh->sp, .fp = fresh->fp, .limit = UINT64_MAX};
    unsigned kind = heap_rule_kind(fresh->rule);
    int64_t fp = heap_rule_fp(fresh->rule);
    uint64_t slot;
    if (kind == HEAP_RULE_SIGNAL) {
        frame->needs_fp = 0;
        check(frame, fresh->sp + SAVED_SP);
        check(frame, fresh->sp + SAVED_PC);
        check(frame, fresh->sp + SAVED_FP);
#if defined(__aarch64__)
        check(frame, fresh->sp + SAVED_LR);
#endif
    } else if (kind == HEAP_RULE_NONE) {
        frame->needs_fp = ~UINT64_C(0);
        check(frame, fresh->fp + 8);
        check(frame, fresh->fp);
    } else { /* dereferenced */
        frame->needs_fp = kind == HEAP_RULE_DEREF_FP ? ~UINT64_C(0) : outer_needs_fp;
        check(frame, fresh->cfa + (uint64_t)heap_rule_ra(fresh->rule));
        if (outer_needs_fp && fresh->rule & HEAP_RULE_FP_BY_FP)
            check(frame, fresh->fp + (uint64_t)fp);
        else if (outer_needs_fp && fp != 0)
            check(frame, fresh->cfa + (uint64_t)fp);
        if (dereferenced(&state, fresh->rule, &slot) < 0)
            check(frame, slot);
    }
}

/* What has to be looked at again to know that the caller of this frame is what it was. The last
 * one is looked at first. */
static inline void add_checks(struct heap_frame *frame, const struct heap_fresh *fresh,
                              uint64_t outer_needs_fp)
{
    unsigned kind = heap_rule_kind(fresh->rule);
    if (UNLIKELY(kind != HEAP_RULE_SP && kind != HEAP_RULE_FP)) {
        check_rare(frame, fresh, outer_needs_fp);
        return;
    }
    int64_t ra = heap_rule_ra(fresh->rule), fp = heap_rule_fp(fresh->rule);
    if (UNLIKELY(ra == 0)) { /* interrupted, its caller in a register: never the same again */
        frame->needs_fp = ~UINT64_C(0);
        frame->fp = UINT64_MAX;
        return;
    }
    check(frame, fresh->cfa + (uint64_t)ra);
    if (outer_needs_fp && fp != 0) {
        check(frame, fresh->cfa + (uint64_t)fp);
        outer_needs_fp = 0;
    }
    frame->needs_fp = kind == HEAP_RULE_FP ? ~UINT64_C(0) : outer_needs_fp;
}

static inline void append(struct heap_frame *frame, const struct heap_fresh *fresh)
{
    const struct heap_frame *outer = frame - 1;
    frame->sp = fresh->sp;
    frame->pc = fresh->pc;
    frame->fp = fresh->fp;
    frame->node = heap_tree_child(outer->node, fresh->pc);
    frame->leaf = 0;
    frame->checks = outer->checks;
    add_checks(frame, fresh, outer->needs_fp);
}

static void append_root(struct heap_walker *walker, const struct heap_fresh *fresh,
                        enum heap_end end)
{
    struct heap_frame *frame = &walker->frames[1];
    *frame = (struct heap_frame){
        .sp = fresh->sp,
        .pc = fresh->pc,
        .fp = fresh->fp,
        .checks = walker->frames[0].checks,
        .node = heap_tree_root(fresh->pc, end),
        /* A frame that ends it for want of a better one may be told from others by its fp. */
        .needs_fp = end == HEAP_END_ROOT ? 0 : ~UINT64_C(0),
    };
    set_top(walker, frame);
}

/* There are too many: the outer ones are left out, and nodes of the others begin anew. */
static NOINLINE void leave_out(struct heap_walker *walker)
{
    const struct heap_frame *from = walker->top - KEPT_DEEP + 1;
    struct heap_check *begin = walker->frames[0].checks;
    ptrdiff_t out = from->checks - begin, kept = walker->top->checks - from->checks;
    set_top(walker, walker->frames);
    for (ptrdiff_t i = 0; i < kept; i++)
        begin[i] = begin[i + out];
    for (uint32_t i = 0; i < KEPT_DEEP; i++) {
        struct heap_frame *frame = &walker->frames[1 + i];
        *frame = from[i];
        frame->checks -= out;
        frame->leaf = 0;
        frame->node = i == 0 ? heap_tree_root(frame->pc, HEAP_END_TOO_DEEP)
                             : heap_tree_child(frame[-1].node, frame->pc);
    }
    set_top(walker, &walker->frames[KEPT_DEEP]);
}

/* `count` fresh ones, the last is the outermost. */
static inline void take_over(struct heap_walker *walker, uint32_t count)
{
    const struct heap_fresh *fresh = walker->fresh + count;
    while (fresh > walker->fresh) {
        struct heap_frame *top = walker->top;
        if (UNLIKELY(top == &walker->frames[HEAP_FRAMES_MAX])) {
            leave_out(walker);
            continue;
        }
        const struct heap_frame *last = &walker->frames[HEAP_FRAMES_MAX];
        do
            append(++top, --fresh);
        while (fresh > walker->fresh && top < last);
        set_top(walker, top);
    }
}

/* ---- the walk ---- */

static NOINLINE struct heap_frame *outside_of(struct heap_frame *frame,
                                              const struct heap_check *changed)
{
    while (frame->checks > changed)
        frame--;
    return frame;
}

/* `frame`, if all that its way outwards was read from is what it was; else the innermost of those
 * outside of where it is not: that one may still be met. */
static inline struct heap_frame *unchanged(const struct heap_walker *walker,
                                           struct heap_frame *frame)
{
    const struct heap_check *begin = walker->checks + HEAP_CHECKS_AHEAD;
    const struct heap_check *check = frame->checks;
    /* In fours, so that the loop ends where it did last time more often than not. What lies
     * ahead of the first is always as it was. */
    while (check > begin) {
#pragma GCC unroll 8
        for (int i = 1; i <= HEAP_CHECKS_AHEAD; i++)
            if (UNLIKELY(*check[-i].slot != check[-i].value))
                return outside_of(frame, check - i);
        check -= HEAP_CHECKS_AHEAD;
    }
    return frame;
}

static inline bool meets(const struct heap_frame *frame, const struct state *state)
{
    return ((frame->sp ^ state->sp) | (frame->pc ^ state->pc) |
            ((frame->fp ^ state->fp) & frame->needs_fp)) == 0;
}

/* The stack has ended with the frame after `count` fresh ones. How many are inside of its root. */
static NOINLINE uint32_t begin_anew(struct heap_thread *thread, uint32_t count, int end)
{
    struct heap_walker *walker = thread->walker;
    const struct heap_fresh *root = &walker->fresh[count];
    thread->place->frames++;
    thread->place->recognised--;
    set_top(walker, walker->frames);
    if (count > 0 && root->pc == 0) { /* not called by anything: made so by who made the stack */
        end = HEAP_END_ROOT;
        root--;
        count--;
    }
    append_root(walker, root, (enum heap_end)end);
    return count;
}

/* Walks outwards to where the last stack is met. How many frames are fresh inside of walker->top,
 * which is then the innermost of those that are not. */
static inline uint32_t walk_out(struct heap_thread *thread, const struct heap_at *at)
{
    struct heap_walker *walker = thread->walker;
    struct state state = {
        .pc = without_signature(at->pc), .sp = at->sp, .fp = at->fp, .limit = stack_limit(at->sp)};
    struct heap_frame *frame = walker->top;
    for (uint32_t count = 0;; count++) {
        while (frame->sp < state.sp)
            frame--;
        if (meets(frame, &state)) {
            struct heap_frame *good = unchanged(walker, frame);
            if (LIKELY(good == frame)) {
                set_top(walker, frame);
                return count;
            }
            frame = good;
        }
        int end = step(walker, &state, &walker->fresh[count]);
        if (UNLIKELY(end >= 0))
            return begin_anew(thread, count, end);
        if (UNLIKELY(count == HEAP_FRAMES_MAX - 1))
            return begin_anew(thread, count, HEAP_END_TOO_DEEP);
    }
}

static NOINLINE uint32_t other_leaf(struct heap_frame *frame, enum heap_entry entry)
{
    frame->leaf = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    frame->leaf_entry = entry;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    frame->leaf = heap_tree_leaf(frame->node, entry);
    return frame->leaf;
}

static NOINLINE void reset(struct heap_walker *walker)
{
    heap_tree_begin();
    uint32_t stamp = __atomic_load_n(&heap_walk_stamp, __ATOMIC_ACQUIRE);
    set_top(walker, walker->frames);
    walker->stamp = stamp;
}

uint32_t heap_walk(struct heap_thread *thread, const struct heap_at *at)
{
    struct heap_walker *walker = thread->walker;
    struct heap_thread_place *place = thread->place;
    if (UNLIKELY(walker->stamp != __atomic_load_n(&heap_walk_stamp, __ATOMIC_ACQUIRE)))
        reset(walker);
    uint32_t fresh = walk_out(thread, at);
    place->walks++;
    place->frames += fresh;
    place->recognised += (uint64_t)(walker->top - walker->frames);
    if (fresh > 0)
        take_over(walker, fresh);
    struct heap_frame *frame = walker->top;
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
    walker->frames[0].checks = walker->checks + HEAP_CHECKS_AHEAD;
    walker->top = walker->frames;
    for (int i = 0; i < HEAP_CHECKS_AHEAD; i++)
        walker->checks[i].slot = &walker->zero;
    return walker;
}

void heap_walker_forget(struct heap_walker *walker)
{
    set_top(walker, walker->frames);
    walker->home_low = UINT64_MAX;
}

void heap_walk_forked(void)
{
    __atomic_fetch_add(&heap_walk_stamp, 1, __ATOMIC_RELEASE);
    heap_tree_begin();
    heap_images_publish();
}
