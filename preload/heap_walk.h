/* Inside of the walk: images give rules, rules give frames, frames give nodes of the tree.
 *
 *     heap_walk.c → heap_rules.c → heap_rules_program.c, heap_images.c
 *                 → heap_tree.c
 *
 * All of it works in a hook: no lock is taken, nothing is allocated, and little of the caller's
 * stack is used; what is large lies in the thread's walker. */
#pragma once

#include "heap.h"

#if defined(__x86_64__)
enum { HEAP_REG_FP = 6, HEAP_REG_SP = 7, HEAP_REG_RA = 16, HEAP_REGS = 17 };
#else
enum { HEAP_REG_FP = 29, HEAP_REG_RA = 30, HEAP_REG_SP = 31, HEAP_REGS = 32 };
#endif

/* ---- a rule: how to get from a frame to its caller's, packed into a word ---- */

enum heap_rule_kind {
    HEAP_RULE_NONE,     /* nothing is known; the rest is heap_rules_opens, by then */
    HEAP_RULE_SP,       /* CFA = sp + cfa */
    HEAP_RULE_FP,       /* CFA = fp + cfa */
    HEAP_RULE_DEREF_SP, /* CFA = *(sp + low half of cfa) + its high half */
    HEAP_RULE_DEREF_FP, /* the same by fp: a realigned stack */
    HEAP_RULE_SIGNAL,   /* sp points at what the kernel saved */
    HEAP_RULE_ROOT,     /* nobody called it */
    HEAP_RULE_OTHER,    /* needs registers that are not kept: heap_registers.c */
    HEAP_RULE_KINDS = 8,
    HEAP_RULE_FP_BY_FP = 8, /* a bit: the saved fp lies at fp + `fp`, not at CFA + `fp` */
};
/* Bits: kind 4, fp 18, ra 18, cfa 24. The last three are signed and count words of 8 bytes; fp
 * and ra 0: still in its register. On x86_64 the return address is always at CFA - 8. */
typedef uint64_t heap_rule;

static inline int64_t heap_rule_fp(heap_rule rule)
{
    return (int64_t)(rule << 42) >> 46 << 3;
}
static inline int64_t heap_rule_ra(heap_rule rule)
{
#if defined(__x86_64__)
    (void)rule;
    return -8;
#else
    return (int64_t)(rule << 24) >> 46 << 3;
#endif
}
static inline int64_t heap_rule_cfa(heap_rule rule)
{
    return (int64_t)rule >> 40 << 3;
}
static inline unsigned heap_rule_kind(heap_rule rule)
{
    return (unsigned)rule & (HEAP_RULE_KINDS - 1);
}

/* ---- what a program of .eh_frame leaves at a pc (heap_rules_program.c) ---- */

enum heap_column_how { HEAP_SAME, HEAP_AT_CFA, HEAP_UNDEFINED, HEAP_AT_EXPRESSION, HEAP_LOST };
struct heap_column {
    int64_t value; /* an offset; or the address of an expression's length */
    uint32_t how;
    uint32_t unused;
};
struct heap_columns {
    struct heap_column column[HEAP_REGS];
    int64_t cfa_offset; /* with cfa_register; or the address of an expression's length */
    uint32_t cfa_register;
    bool cfa_is_expression;
    bool is_signal;
};
enum { HEAP_REMEMBERED_MAX = 6 };
struct heap_program {
    const uint8_t *at, *end;
    uint64_t pc;   /* where the program has got to */
    uint64_t stop; /* the pc that is asked for */
    uint64_t code_align;
    int64_t data_align;
    uint32_t remembered_count;
    bool bad;
    struct heap_columns now, initial, remembered[HEAP_REMEMBERED_MAX];
};

uint64_t heap_read_fixed(struct heap_program *program, unsigned size);
uint64_t heap_read_uleb(struct heap_program *program);
int64_t heap_read_sleb(struct heap_program *program);
/* Runs at … end until pc passes stop. */
void heap_program_run(struct heap_program *program);
/* `now` as a word; HEAP_RULE_OTHER when it does not fit one. */
heap_rule heap_program_rule(const struct heap_program *program);

/* ---- images (heap_images.c) ---- */

struct heap_found {
    uint64_t start, end;
    uint64_t load;
    const uint8_t *header; /* .eh_frame_hdr; NULL: it has none */
    const char *name;      /* the loader's */
};
/* The image at an address; false: none. It is published for the recording. */
bool heap_image_find(uint64_t pc, struct heap_found *ret);
/* In a child of fork(): its window knows of none yet. */
void heap_images_publish(void);
/* Whether 8 bytes can be read there. A system call that looks and does nothing. */
bool heap_readable(uint64_t address);

/* ---- rules (heap_rules.c) ---- */

enum { HEAP_RULES = 1 << 15 };
struct heap_rule_row {
    uint64_t key; /* pc, mixed with the rule and the epoch: halves of two rows do not match */
    heap_rule rule;
};
extern struct heap_rule_row heap_rule_rows[HEAP_RULES];
extern uint64_t heap_rules_epoch; /* mixed into keys: images that are gone take theirs along */
extern uint32_t heap_rules_opens; /* what was not known before a dlopen() may be known now */

NOINLINE heap_rule heap_rule_make(struct heap_program *scratch, uint64_t pc);
/* The same for all pcs of a function, and for no others; 0: not known. */
uint64_t heap_function_of(uint64_t pc);

static inline uint64_t heap_mix(uint64_t value)
{
    return value * UINT64_C(0x9e3779b97f4a7c15);
}
static inline struct heap_rule_row *heap_rule_row(uint64_t pc)
{
    return &heap_rule_rows[heap_mix(pc) >> (64 - 15)];
}
static inline uint64_t heap_rule_key(uint64_t pc, heap_rule rule)
{
    return pc ^ heap_mix(rule) ^ __atomic_load_n(&heap_rules_epoch, __ATOMIC_RELAXED);
}
/* `pc` is a return address. */
static inline heap_rule heap_rule_of(struct heap_program *scratch, uint64_t pc)
{
    const struct heap_rule_row *row = heap_rule_row(pc);
    uint64_t key = __atomic_load_n(&row->key, __ATOMIC_RELAXED);
    heap_rule rule = __atomic_load_n(&row->rule, __ATOMIC_RELAXED);
    if (LIKELY(key == heap_rule_key(pc, rule)))
        return rule;
    return heap_rule_make(scratch, pc);
}

/* ---- a thread's last stack ---- */

/* A word of the stack that the way outwards was read from. */
struct heap_check {
    const uint64_t *slot;
    uint64_t value;
};

struct heap_frame {
    uint64_t sp; /* when what it calls returns */
    uint64_t pc; /* where that returns to */
    uint64_t fp;
    uint64_t needs_fp;         /* all bits: `fp` tells where this or an outer one lies; or none */
    struct heap_check *checks; /* where those of this frame and all outer ones end */
    uint32_t node;
    uint32_t leaf;       /* node of the call that was made last from here; 0: none */
    uint32_t leaf_entry; /* which call */
};

struct heap_fresh {
    uint64_t pc, sp, fp;
    uint64_t cfa;
    heap_rule rule;
};

enum { HEAP_CHECKS_OF_FRAME = 4, HEAP_CHECKS_AHEAD = 4 };
struct heap_walker {
    uint32_t stamp;         /* of heap_walk_stamp */
    struct heap_frame *top; /* the innermost */
    uint64_t home_low;      /* from here to the top the stack was seen to be readable */
    uint64_t zero;          /* what the checks ahead of the first look at */
    /* The outermost first, at 1: 0 ends all searches. */
    struct heap_frame frames[1 + HEAP_FRAMES_MAX];
    struct heap_check checks[HEAP_CHECKS_AHEAD + HEAP_FRAMES_MAX * HEAP_CHECKS_OF_FRAME];
    struct heap_fresh fresh[HEAP_FRAMES_MAX]; /* the innermost first */
    struct heap_program program;
};
/* Changes when nodes or images are others than they were. */
extern uint32_t heap_walk_stamp;

/* ---- the tree (heap_tree.c) ---- */

enum { HEAP_SOMEWHERE = 1 };

void heap_tree_begin(void);
/* The node of an outermost frame. */
uint32_t heap_tree_root(uint64_t pc, enum heap_end end);
/* One step inwards; `parent` when there is no room. */
NOINLINE uint32_t heap_tree_step(uint32_t parent, uint64_t pc, bool leaf);

/* Neighbours in the tree lie close together: a walk goes up and down among few of them. */
static inline uint32_t *heap_tree_bucket(uint32_t parent, uint64_t pc)
{
    return &heap_hash[(parent * 2 + (heap_mix(pc) >> 61)) & heap_hash_mask];
}
/* Most were added right after their parent, by the same walk: those are not searched for. There
 * is room for one behind the last. */
static inline bool heap_tree_is_next(uint32_t parent, uint64_t pc)
{
    const struct heap_node *next = &heap_nodes[parent + 1];
    return __atomic_load_n(&next->pc, __ATOMIC_ACQUIRE) == pc && next->parent == parent &&
           next->folded == 0;
}
static inline uint32_t heap_tree_child(uint32_t parent, uint64_t pc)
{
    if (heap_tree_is_next(parent, pc))
        return parent + 1;
    uint32_t first = __atomic_load_n(heap_tree_bucket(parent, pc), __ATOMIC_ACQUIRE);
    const struct heap_node *node = &heap_nodes[first];
    if (LIKELY(node->pc == pc && node->parent == parent))
        return node->folded != 0 ? node->folded : first;
    return heap_tree_step(parent, pc, false);
}
static inline uint32_t heap_tree_leaf(uint32_t parent, enum heap_entry entry)
{
    if (LIKELY(heap_tree_is_next(parent, entry)))
        return parent + 1;
    return heap_tree_step(parent, entry, true);
}
