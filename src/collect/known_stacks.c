/* Entries in a table of their own, hashed by place; the kernel's maps follow every change. */
#include "collect/known_stacks.h"

#include "base/map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 2 * OFFCPU_KNOWN_MAX,
    NONE = UINT32_MAX,
    /* One read of the head costs some 60 ns and 1 ns for 32 bytes, a slot by itself 40. */
    HEAD_COST = 60,
    HEAD_BYTES_A_NS = 32,
    SLOT_COST = 40,
};

struct entry {
    struct offcpu_known_key key;
    struct offcpu_known stack;
    struct offcpu_known_long *more; /* OFFCPU_KNOWN_LONG: the slots */
    uint64_t code;                  /* what all of its addresses meant when it was learnt */
    uint32_t next;                  /* in its bucket, or of the free ones */
    bool used;
};

struct known_stacks {
    int known_fd, long_fd;
    struct entry *entries;
    uint32_t *buckets;
    uint32_t free;
    uint32_t long_count;
    uint32_t hand; /* who is pushed out next */
    struct known_counts counts;
};

int known_stacks_open(int known_fd, int long_fd, struct known_stacks **ret)
{
    struct known_stacks *known = calloc(1, sizeof(*known));
    if (!known)
        return -ENOMEM;
    known->known_fd = known_fd;
    known->long_fd = long_fd;
    known->entries = calloc(OFFCPU_KNOWN_MAX, sizeof(*known->entries));
    known->buckets = calloc(BUCKETS, sizeof(*known->buckets));
    if (!known->entries || !known->buckets) {
        known_stacks_close(known);
        return -ENOMEM;
    }
    memset(known->buckets, 0xff, BUCKETS * sizeof(*known->buckets));
    for (uint32_t i = 0; i < OFFCPU_KNOWN_MAX; i++)
        known->entries[i].next = i + 1 < OFFCPU_KNOWN_MAX ? i + 1 : (uint32_t)NONE;
    *ret = known;
    return 0;
}

void known_stacks_close(struct known_stacks *known)
{
    if (!known)
        return;
    for (uint32_t i = 0; known->entries && i < OFFCPU_KNOWN_MAX; i++)
        free(known->entries[i].more);
    free(known->entries);
    free(known->buckets);
    free(known);
}

static bool same_place(const struct offcpu_known_key *a, const struct offcpu_known_key *b)
{
    return a->pc == b->pc && a->sp == b->sp && a->kernel_tgid == b->kernel_tgid &&
           a->exec == b->exec;
}

/* All stacks of a place are in one bucket. */
static uint32_t *bucket_of(const struct known_stacks *known, const struct offcpu_known_key *key)
{
    uint64_t hash = hash_u64(key->pc ^ hash_u64(key->sp ^ hash_u64(key->kernel_tgid)) ^ key->exec);
    return &known->buckets[hash & (BUCKETS - 1)];
}

static uint32_t entry_find(const struct known_stacks *known, const struct offcpu_known_key *place,
                           uint32_t alike)
{
    uint32_t at = *bucket_of(known, place);
    while (at != NONE &&
           !(same_place(&known->entries[at].key, place) && known->entries[at].key.alike == alike))
        at = known->entries[at].next;
    return at;
}

const struct offcpu_known *known_stacks_get(const struct known_stacks *known,
                                            const struct offcpu_known_key *key)
{
    uint32_t at = entry_find(known, key, key->alike);
    return at == NONE ? NULL : &known->entries[at].stack;
}

/* ---- from a walk to what is compared ---- */

static bool registers_fit(const struct known_walk *walk, struct offcpu_known *stack)
{
    const unsigned fp = walk->machine == UNWIND_X86_64 ? 6 : 29, lr = 30;
    uint32_t used = walk->trace->registers_used;
    if (used & 1u << fp) {
        stack->flags |= OFFCPU_KNOWN_FP;
        stack->fp = walk->registers->reg[fp];
    }
    used &= ~(1u << fp);
    if (walk->machine == UNWIND_AARCH64 && (used & 1u << lr)) {
        stack->flags |= OFFCPU_KNOWN_LR;
        stack->lr = walk->registers->reg[lr];
        used &= ~(1u << lr);
    }
    return used == 0;
}

static int slot_compare(const void *a, const void *b)
{
    const struct unwind_trace_slot *left = a, *right = b;
    return left->address < right->address ? -1 : left->address > right->address;
}

/* Sorted, each address once: a slot can be needed for two reasons. */
static uint32_t slots_sort(const struct unwind_trace *trace, uint64_t sp,
                           struct unwind_trace_slot *slots)
{
    uint32_t count = 0;
    memcpy(slots, trace->slots, trace->count * sizeof(*slots));
    qsort(slots, trace->count, sizeof(*slots), slot_compare);
    for (uint32_t i = 0; i < trace->count; i++) {
        if (slots[i].address < sp || slots[i].address - sp > UINT32_MAX - 8 ||
            (slots[i].address - sp) % 8 != 0)
            return UINT32_MAX;
        if (count == 0 || slots[count - 1].address != slots[i].address)
            slots[count++] = slots[i];
    }
    return count;
}

/* How far up the stack it pays to read all at once. */
static void head_choose(const struct unwind_trace_slot *slots, uint32_t count, uint64_t sp,
                        struct offcpu_known *stack)
{
    uint64_t best = (uint64_t)count * SLOT_COST;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = slots[i].address - sp + 8;
        uint64_t cost = HEAD_COST + bytes / HEAD_BYTES_A_NS + (uint64_t)(count - 1 - i) * SLOT_COST;
        if (bytes > OFFCPU_HEAD_BYTES_MAX)
            break;
        if (cost < best) {
            best = cost;
            stack->head_bytes = (uint32_t)bytes;
            stack->head_count = i + 1;
        }
    }
}

/* False: cannot be compared by the program. */
static bool stack_make(const struct known_walk *walk, struct offcpu_known *stack,
                       struct offcpu_known_long *more)
{
    struct unwind_trace_slot slots[UNWIND_TRACE_SLOTS];
    *stack = (struct offcpu_known){.ref = walk->ref};
    if (!walk->trace->usable || walk->trace->count == 0 || !registers_fit(walk, stack))
        return false;
    uint32_t count = slots_sort(walk->trace, walk->place->sp, slots);
    if (count > OFFCPU_KNOWN_SLOTS_LONG)
        return false;
    bool is_long = count > OFFCPU_KNOWN_SLOTS;
    stack->count = count;
    stack->flags |= is_long ? OFFCPU_KNOWN_LONG : 0;
    memset(more, 0, sizeof(*more));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t offset = (uint32_t)(slots[i].address - walk->place->sp);
        (is_long ? more->offsets : stack->offsets)[i] = offset;
        (is_long ? more->values : stack->values)[i] = slots[i].value;
    }
    if (!is_long)
        head_choose(slots, count, walk->place->sp, stack);
    return true;
}

static bool same_stack(const struct entry *entry, const struct offcpu_known *stack,
                       const struct offcpu_known_long *more)
{
    const struct offcpu_known *old = &entry->stack;
    if (old->flags != stack->flags || old->count != stack->count || old->fp != stack->fp ||
        old->lr != stack->lr)
        return false;
    if (stack->flags & OFFCPU_KNOWN_LONG)
        return memcmp(entry->more, more, sizeof(*more)) == 0;
    return memcmp(old->values, stack->values, sizeof(old->values)) == 0 &&
           memcmp(old->offsets, stack->offsets, sizeof(old->offsets)) == 0;
}

/* ---- the kernel's side ---- */

/* The slots first: the program must not find an entry whose slots are not there. */
static int entry_tell(struct known_stacks *known, const struct entry *entry)
{
    if (known->known_fd < 0)
        return 0;
    if (entry->more &&
        bpf_map_update_elem(known->long_fd, &entry->stack.ref, entry->more, BPF_ANY) < 0)
        return -errno;
    if (bpf_map_update_elem(known->known_fd, &entry->key, &entry->stack, BPF_ANY) < 0)
        return -errno;
    return 0;
}

static void entry_untell(struct known_stacks *known, const struct offcpu_known_key *key)
{
    if (known->known_fd >= 0)
        (void)bpf_map_delete_elem(known->known_fd, key);
}

static void slots_drop(struct known_stacks *known, struct entry *entry)
{
    if (!entry->more)
        return;
    if (known->known_fd >= 0)
        (void)bpf_map_delete_elem(known->long_fd, &entry->stack.ref);
    free(entry->more);
    entry->more = NULL;
    known->long_count--;
}

static uint64_t code_of(const struct entry *entry, const struct known_code *code)
{
    const struct offcpu_known *stack = &entry->stack;
    const uint64_t *values = entry->more ? entry->more->values : stack->values;
    uint64_t hash = hash_u64(code->at(code->context, entry->key.pc));
    /* A return address is that of the instruction behind the call, which may be another's. */
    for (uint32_t i = 0; i < stack->count; i++)
        hash = hash_u64(hash ^ code->at(code->context, values[i] - 1));
    return hash;
}

static void bucket_leave(struct known_stacks *known, uint32_t at)
{
    uint32_t *link = bucket_of(known, &known->entries[at].key);
    while (*link != at)
        link = &known->entries[*link].next;
    *link = known->entries[at].next;
}

/* The last one of its place moves into the gap. */
static void entry_remove(struct known_stacks *known, uint32_t at)
{
    struct entry *entry = &known->entries[at];
    struct offcpu_known_key last = entry->key;
    while (last.alike + 1 < OFFCPU_KNOWN_ALIKE && entry_find(known, &last, last.alike + 1) != NONE)
        last.alike++;
    uint32_t moved = entry_find(known, &last, last.alike);
    bucket_leave(known, at);
    if (moved != at) {
        known->entries[moved].key.alike = entry->key.alike;
        if (entry_tell(known, &known->entries[moved]) < 0)
            entry_untell(known, &entry->key);
    }
    entry_untell(known, &last);
    slots_drop(known, entry);
    *entry = (struct entry){.next = known->free};
    known->free = at;
    known->counts.taken_back++;
}

/* Where there is no room the oldest makes some: threads end, and nobody tells us which stacks were
 * theirs. */
static void room_make(struct known_stacks *known, bool is_long)
{
    if (known->free != NONE && !(is_long && known->long_count == OFFCPU_KNOWN_LONG_MAX))
        return;
    for (uint32_t i = 0; i < OFFCPU_KNOWN_MAX; i++) {
        uint32_t at = known->hand++ % OFFCPU_KNOWN_MAX;
        if (!known->entries[at].used || (is_long && !known->entries[at].more))
            continue;
        entry_remove(known, at);
        known->counts.pushed_out++;
        return;
    }
}

static int entry_add(struct known_stacks *known, const struct offcpu_known_key *key,
                     const struct offcpu_known *stack, const struct offcpu_known_long *more,
                     const struct known_code *code)
{
    bool is_long = stack->flags & OFFCPU_KNOWN_LONG;
    uint32_t at = known->free; /* there is room */
    struct entry *entry = &known->entries[at];
    uint32_t next_free = entry->next;
    *entry = (struct entry){.key = *key, .stack = *stack, .used = true};
    if (is_long) {
        entry->more = malloc(sizeof(*more));
        if (!entry->more) {
            *entry = (struct entry){.next = next_free};
            return -ENOMEM;
        }
        *entry->more = *more;
        known->long_count++;
    }
    entry->code = code_of(entry, code);
    int r = entry_tell(known, entry);
    if (r < 0) {
        slots_drop(known, entry);
        *entry = (struct entry){.next = next_free};
        return r;
    }
    uint32_t *bucket = bucket_of(known, key);
    known->free = next_free;
    entry->next = *bucket;
    *bucket = at;
    known->counts.learnt++;
    return 0;
}

int known_stacks_learn(struct known_stacks *known, const struct known_walk *walk, uint64_t *ret_ref)
{
    struct offcpu_known stack;
    struct offcpu_known_long more;
    struct offcpu_known_key key = *walk->place;
    if (!stack_make(walk, &stack, &more)) {
        known->counts.unlearnable++;
        *ret_ref = 0;
        return 0;
    }
    key.unused = 0;
    room_make(known, stack.flags & OFFCPU_KNOWN_LONG); /* it may change who is which */
    for (key.alike = 0; key.alike < OFFCPU_KNOWN_ALIKE; key.alike++) {
        uint32_t at = entry_find(known, &key, key.alike);
        if (at == NONE)
            break;
        if (same_stack(&known->entries[at], &stack, &more)) {
            known->counts.twice++;
            *ret_ref = known->entries[at].stack.ref;
            return 0;
        }
    }
    int r = key.alike == OFFCPU_KNOWN_ALIKE ? -E2BIG
                                            : entry_add(known, &key, &stack, &more, walk->code);
    if (r == -E2BIG)
        known->counts.full++;
    if (r < 0 && r != -E2BIG)
        return r;
    *ret_ref = r == 0 ? walk->ref : 0;
    return 0;
}

static bool slots_are(const struct entry *entry, uint64_t sp, const struct unwind_slice *slice)
{
    const uint64_t *values = entry->more ? entry->more->values : entry->stack.values;
    const uint32_t *offsets = entry->more ? entry->more->offsets : entry->stack.offsets;
    for (uint32_t i = 0; i < entry->stack.count; i++) {
        uint64_t at = sp + offsets[i] - slice->address, word;
        if (sp + offsets[i] < slice->address || at + sizeof(word) > slice->len)
            return false;
        memcpy(&word, slice->bytes + at, sizeof(word));
        if (word != values[i])
            return false;
    }
    return true;
}

uint64_t known_stacks_find(const struct known_stacks *known, const struct offcpu_known_key *place,
                           const struct unwind_registers *registers,
                           const struct unwind_slice *slice, enum unwind_machine machine)
{
    uint64_t fp = registers->reg[machine == UNWIND_X86_64 ? 6 : 29], lr = registers->reg[30];
    for (uint32_t alike = 0; alike < OFFCPU_KNOWN_ALIKE; alike++) {
        uint32_t at = entry_find(known, place, alike);
        if (at == NONE)
            break;
        const struct entry *entry = &known->entries[at];
        if ((!(entry->stack.flags & OFFCPU_KNOWN_FP) || entry->stack.fp == fp) &&
            (!(entry->stack.flags & OFFCPU_KNOWN_LR) || entry->stack.lr == lr) &&
            slots_are(entry, place->sp, slice))
            return entry->stack.ref;
    }
    return 0;
}

/* ---- taking back ---- */

void known_stacks_check(struct known_stacks *known, uint32_t kernel_tgid, uint32_t exec,
                        const struct known_code *code)
{
    for (uint32_t i = 0; i < OFFCPU_KNOWN_MAX; i++) {
        struct entry *entry = &known->entries[i];
        if (!entry->used || entry->key.kernel_tgid != kernel_tgid || entry->key.exec != exec)
            continue;
        if (entry->code == code_of(entry, code))
            continue;
        if (code->gone)
            code->gone(code->context, entry->stack.ref);
        entry_remove(known, i);
    }
}

void known_stacks_forget(struct known_stacks *known, uint32_t kernel_tgid, uint32_t exec)
{
    for (uint32_t i = 0; i < OFFCPU_KNOWN_MAX; i++) {
        const struct entry *entry = &known->entries[i];
        if (entry->used && entry->key.kernel_tgid == kernel_tgid && entry->key.exec == exec)
            entry_remove(known, i);
    }
}

struct known_counts known_stacks_counts(const struct known_stacks *known)
{
    return known->counts;
}
