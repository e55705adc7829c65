/* The walk: registers and a slice of stack in, frames out.
 *
 * This is the core that must run anywhere: nothing here allocates, locks, keeps
 * state outside of what it was given, or calls more of libc than memcpy. */
#include "unwind/walk.h"
#include "unwind/expression.h"
#include "unwind/machine.h"
#include "unwind/space.h"
#include "unwind/trace.h"

#include <string.h>

/* What one step decided. */
enum {
    STEP_ON = UNWIND_ENDS, /* go on; else an enum unwind_end */
    STEP_NO_REGISTER,      /* the frame hangs on a register whose value we do not have */
};

/* Where the value of a register comes from. */
enum {
    ORIGIN_COMPUTED = 0,  /* from what is noted already */
    ORIGIN_BEGINNING = 1, /* and up: register 0 at the beginning of the walk, register 1, … */
    ORIGIN_READ = ORIGIN_BEGINNING + UNWIND_REGISTERS, /* and up: a read */
    TRACE_READS = 2048,
};

struct tracer {
    bool usable;
    uint32_t registers_used;
    uint32_t count;
    uint16_t origins[UNWIND_REGISTERS];
    struct unwind_trace_slot reads[TRACE_READS];
    bool needed[TRACE_READS];
};

struct walk {
    const struct unwind_space *space;
    const struct unwind_machine_info *info;
    const struct unwind_slice *slice;
    struct unwind_cache *cache;
    struct unwind_memos memos;
    struct tracer *tracer;             /* NULL: nobody wants to know */
    struct unwind_registers registers; /* of the frame we stand in */
    uint64_t floor;                    /* the caller's frame must end above this */
    bool exact;          /* the pc is that of an instruction about to run, no return address */
    uint8_t pc_column;   /* for expressions */
    uint32_t mapping;    /* of the frame we stand in; UNWIND_MAPPING_NONE */
    uint32_t rules;      /* its rule set there */
    bool elsewhere;      /* a signal came from a stack that no larger slice would reach */
    uint64_t needed_end; /* end of the last slot that lay beyond the slice */
    struct unwind_result result;
};

static inline size_t cache_slot(uint64_t pc)
{
    return (size_t)((pc * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - UNWIND_CACHE_BITS));
}

/* Finds mapping and rule set for the pc to look up; false when it is in no mapping. */
static bool resolve(struct walk *walk, uint64_t pc)
{
    const struct unwind_space *space = walk->space;
    struct unwind_cache_slot *slot = NULL;
    if (walk->cache) {
        slot = &walk->cache->slots[cache_slot(pc)];
        if (slot->pc == pc && slot->generation == space->generation) {
            walk->mapping = slot->mapping;
            walk->rules = slot->rules;
            return true;
        }
    }
    uint32_t index = unwind_space_index(space, pc, walk->mapping);
    if (index == UNWIND_MAPPING_NONE)
        return false;
    const struct unwind_mapping *mapping = &space->mappings[index];
    walk->mapping = index;
    walk->rules = mapping->rows
                      ? unwind_rows_find(mapping->rows, pc - mapping->start + mapping->vaddr)
                      : UNWIND_RULES_NONE;
    if (slot)
        *slot = (struct unwind_cache_slot){pc, space->generation, index, walk->rules};
    return true;
}

static void emit(struct walk *walk, struct unwind_frame *frames, uint64_t pc, enum unwind_how how)
{
    struct unwind_frame *frame = &frames[walk->result.count++];
    *frame = (struct unwind_frame){.pc = pc, .vaddr = pc, .how = (uint8_t)how};
    if (walk->mapping == UNWIND_MAPPING_NONE)
        return;
    const struct unwind_mapping *mapping = &walk->space->mappings[walk->mapping];
    frame->vaddr = pc - mapping->start + mapping->vaddr;
    frame->tag = mapping->tag;
}

/* No register has been restored yet. */
static void trace_begin(struct tracer *tracer)
{
    for (unsigned i = 0; i < UNWIND_REGISTERS; i++)
        tracer->origins[i] = (uint16_t)(ORIGIN_BEGINNING + i);
}

/* A read matters unless somebody says otherwise: then it does only if the register that it went
 * to is made use of. */
static void trace_read(struct tracer *tracer, uint64_t address, uint64_t value)
{
    if (tracer->count == TRACE_READS) {
        tracer->usable = false;
        return;
    }
    tracer->reads[tracer->count] = (struct unwind_trace_slot){address, value};
    tracer->needed[tracer->count++] = true;
}

/* The stack pointer is computed anew for every frame: what it hangs on is noted there. */
static inline void trace_use(struct walk *walk, unsigned number)
{
    struct tracer *tracer = walk->tracer;
    if (!tracer || number == walk->info->sp || number >= UNWIND_REGISTERS)
        return;
    uint16_t origin = tracer->origins[number];
    if (origin >= ORIGIN_READ)
        tracer->needed[origin - ORIGIN_READ] = true;
    else if (origin >= ORIGIN_BEGINNING)
        tracer->registers_used |= 1u << (origin - ORIGIN_BEGINNING);
}

/* Register `save->target` got its value by this rule, as of the next frame. */
static void trace_restored(struct walk *walk, const struct unwind_save *save, uint16_t *next)
{
    struct tracer *tracer = walk->tracer;
    uint16_t origin = ORIGIN_COMPUTED;
    if ((save->place == UNWIND_AT_CFA || save->place == UNWIND_AT_REGISTER) && tracer->count > 0) {
        tracer->needed[tracer->count - 1] = false;
        origin = (uint16_t)(tracer->count - 1 + ORIGIN_READ);
    } else if (save->place == UNWIND_SAME) {
        origin = tracer->origins[save->target];
    } else if (save->place == UNWIND_IN_REGISTER && save->base < UNWIND_REGISTERS) {
        origin = tracer->origins[save->base];
    }
    next[save->target] = origin;
}

/* The stack pointer is in another register: all further frames hang on that. */
static void trace_moved(struct walk *walk, const struct unwind_save *save)
{
    if (save->place == UNWIND_IN_REGISTER)
        trace_use(walk, save->base);
}

static inline unsigned read_slot(struct walk *walk, uint64_t address, uint64_t *ret)
{
    enum unwind_end end = unwind_slice_read(walk->slice, address, ret);
    if (__builtin_expect(end == UNWIND_ROOT, 1)) {
        unwind_memo_read(&walk->memos, address, *ret);
        if (__builtin_expect(walk->tracer != NULL, 0))
            trace_read(walk->tracer, address, *ret);
        return STEP_ON;
    }
    unwind_memo_restart(&walk->memos); /* another slice might hold it */
    if (end == UNWIND_TRUNCATED)
        walk->needed_end = address + 8;
    return end == UNWIND_TRUNCATED && walk->elsewhere ? UNWIND_UNREADABLE : end;
}

static inline bool known(const struct unwind_registers *registers, unsigned number)
{
    return registers->known >> number & 1;
}

static unsigned evaluate(struct walk *walk, const struct unwind_registers *registers,
                         const struct unwind_rows *rows, int32_t place, const uint64_t *initial,
                         uint64_t *ret)
{
    unwind_memo_restart(&walk->memos); /* what it reads is not noted */
    if (walk->tracer)
        walk->tracer->usable = false;
    struct unwind_reader reader = {registers, walk->slice, walk->pc_column};
    const uint8_t *at = rows->pool + (uint32_t)place;
    uint16_t len;
    memcpy(&len, at, sizeof(len));
    enum unwind_end end = unwind_expression(at + sizeof(len), len, &reader, initial, ret);
    return end == UNWIND_ROOT ? STEP_ON : end;
}

static unsigned find_cfa(struct walk *walk, const struct unwind_rows *rows,
                         const struct unwind_rules *rules, uint64_t *ret)
{
    const struct unwind_registers *registers = &walk->registers;
    if (rules->cfa == UNWIND_CFA_EXPRESSION)
        return evaluate(walk, registers, rows, rules->cfa_offset, NULL, ret);
    if (!known(registers, rules->cfa_base))
        return STEP_NO_REGISTER;
    trace_use(walk, rules->cfa_base);
    uint64_t cfa = registers->reg[rules->cfa_base] + (uint64_t)(int64_t)rules->cfa_offset;
    if (rules->cfa == UNWIND_CFA_DEREF) {
        unsigned r = read_slot(walk, cfa, &cfa);
        if (r != STEP_ON)
            return r;
        cfa += (uint64_t)(int64_t)rules->cfa_offset2;
    } else if (rules->cfa == UNWIND_CFA_PLT) {
        cfa += (int32_t)(registers->pc & 15) >= rules->cfa_offset2 ? 8 : 0;
    }
    *ret = cfa;
    return STEP_ON;
}

/* The caller's value of a register; `before` are the registers of the frame itself. */
static unsigned find_saved(struct walk *walk, const struct unwind_rows *rows,
                           const struct unwind_save *save, const struct unwind_registers *before,
                           uint64_t cfa, uint64_t *ret)
{
    uint64_t address = cfa + (uint64_t)(int64_t)save->offset;
    unsigned r;
    switch (save->place) {
    case UNWIND_AT_CFA:
        return read_slot(walk, address, ret);
    case UNWIND_CFA_PLUS:
        *ret = address;
        return STEP_ON;
    case UNWIND_SAME:
    case UNWIND_IN_REGISTER:
    case UNWIND_AT_REGISTER: {
        unsigned base = save->place == UNWIND_SAME ? save->target : save->base;
        if (base >= UNWIND_REGISTERS || !known(before, base))
            return UNWIND_UNREADABLE;
        *ret = before->reg[base];
        if (save->place != UNWIND_AT_REGISTER)
            return STEP_ON;
        trace_use(walk, base);
        return read_slot(walk, *ret + (uint64_t)(int64_t)save->offset, ret);
    }
    case UNWIND_AT_EXPRESSION:
        r = evaluate(walk, before, rows, save->offset, &cfa, &address);
        return r == STEP_ON ? read_slot(walk, address, ret) : r;
    case UNWIND_VAL_EXPRESSION:
        return evaluate(walk, before, rows, save->offset, &cfa, ret);
    default:
        return UNWIND_UNREADABLE;
    }
}

/* In an epilogue compilers tell of the CFA only, and let rules stand for registers that
 * were popped already: then the register itself has the caller's value. A slot below the
 * sample's stack pointer tells that, and a frame pointer that is outside of its frame. */
static bool popped(struct walk *walk, const struct unwind_save *save,
                   const struct unwind_registers *before, uint64_t cfa)
{
    uint64_t sp = before->reg[walk->info->sp];
    if (!known(before, save->target))
        return false;
    if (save->place == UNWIND_AT_CFA)
        return cfa + (uint64_t)(int64_t)save->offset < walk->slice->address;
    if (save->place != UNWIND_AT_REGISTER || save->base != walk->info->fp)
        return false;
    uint64_t fp = before->reg[save->base];
    trace_use(walk, save->base);
    return fp < sp || fp >= cfa || fp + (uint64_t)(int64_t)save->offset < walk->slice->address;
}

/* Registers become the caller's. One that cannot be read becomes unknown: that ends the
 * walk only if a frame further out needs it. */
static void restore_registers(struct walk *walk, const struct unwind_rows *rows,
                              const struct unwind_rules *rules, uint64_t cfa)
{
    struct unwind_registers *registers = &walk->registers;
    struct unwind_registers copy;
    const struct unwind_registers *before = registers;
    if (!(rules->flags & UNWIND_RULES_SIMPLE)) {
        copy = *registers;
        before = &copy;
    }
    unsigned sp = walk->info->sp;
    uint32_t knows = registers->known & walk->info->callee_saved;
    uint64_t new_sp = cfa;
    bool may_have_popped = walk->exact && !(rules->flags & UNWIND_RULES_SIGNAL);
    uint16_t next[UNWIND_REGISTERS]; /* rules speak of registers as they were before all of them */
    if (walk->tracer)
        memcpy(next, walk->tracer->origins, sizeof(next));
    const struct unwind_save *save = rows->saves + rules->saves_first;
    for (const struct unwind_save *end = save + rules->saves_count; save < end; save++) {
        uint64_t value;
        if (may_have_popped && popped(walk, save, before, cfa)) {
            knows |= 1u << save->target; /* the register has it already */
        } else if (find_saved(walk, rows, save, before, cfa, &value) != STEP_ON) {
            knows &= ~(1u << save->target);
        } else if (save->target == sp) {
            new_sp = value;
            if (walk->tracer)
                trace_moved(walk, save);
        } else {
            registers->reg[save->target] = value;
            knows |= 1u << save->target;
            if (walk->tracer)
                trace_restored(walk, save, next);
        }
    }
    if (walk->tracer)
        memcpy(walk->tracer->origins, next, sizeof(next));
    registers->reg[sp] = new_sp;
    registers->known = knows | 1u << sp;
}

/* The signature above a user address is none of the address. */
static uint64_t strip(const struct walk *walk, uint64_t address)
{
    return address >> 55 & 1 ? address : address & walk->info->address_mask;
}

/* Moves to the caller at `ra`; the registers are the caller's already. */
static unsigned arrive(struct walk *walk, uint64_t ra, bool signal)
{
    ra = strip(walk, ra);
    if (ra == 0)
        return UNWIND_ROOT;
    if (!resolve(walk, signal ? ra : ra - 1))
        return UNWIND_NOT_EXECUTABLE;
    walk->registers.pc = ra;
    walk->exact = signal;
    return STEP_ON;
}

static unsigned step_by_row(struct walk *walk, const struct unwind_rows *rows,
                            const struct unwind_rules *rules)
{
    bool signal = rules->flags & UNWIND_RULES_SIGNAL;
    uint64_t cfa = 0, ra = 0;
    unsigned r = find_cfa(walk, rows, rules, &cfa);
    if (r != STEP_ON)
        return r;
    if (rules->ra == UNWIND_UNDEFINED)
        return UNWIND_ROOT;
    struct unwind_save at = {rules->ra_offset, walk->info->lr, rules->ra, rules->ra_base, 0};
    r = find_saved(walk, rows, &at, &walk->registers, cfa, &ra);
    if (r != STEP_ON)
        return r;
    if (rules->ra == UNWIND_SAME || rules->ra == UNWIND_IN_REGISTER)
        trace_use(walk, rules->ra == UNWIND_SAME ? walk->info->lr : rules->ra_base);
    restore_registers(walk, rows, rules, cfa);
    /* A leaf that pushes nothing (aarch64) has its caller's stack pointer. */
    uint64_t sp = walk->registers.reg[walk->info->sp];
    if (!signal && (sp < walk->floor || (sp == walk->floor && !walk->exact) || sp & 7))
        return UNWIND_BAD_CFA;
    enum { NEAR_BYTES = 1 << 16 }; /* the most that the kernel copies */
    walk->elsewhere |= signal && sp - walk->slice->address > walk->slice->len + NEAR_BYTES;
    walk->floor = sp;
    return arrive(walk, ra, signal);
}

/* Two words at the frame pointer: the caller's frame pointer and the return address.
 * Both machines have it so. Nothing vouches for it: the place must be plausible and
 * the return address executable. */
static unsigned step_by_frame_pointer(struct walk *walk, enum unwind_end else_end)
{
    struct unwind_registers *registers = &walk->registers;
    unsigned fp = walk->info->fp, sp = walk->info->sp;
    if (!known(registers, fp))
        return else_end;
    uint64_t at = registers->reg[fp], caller_fp = 0, ra = 0;
    trace_use(walk, fp);
    /* The outermost frame is marked so by the ABI; but the sampled function itself may just
     * hold a zero there, and one that has a row says how it ends. */
    if (at == 0)
        return walk->result.count > 1 && else_end == UNWIND_NO_ROW ? UNWIND_ROOT : else_end;
    if (at < walk->floor || at & 7)
        return else_end;
    unsigned r = read_slot(walk, at, &caller_fp);
    if (r == STEP_ON)
        r = read_slot(walk, at + 8, &ra);
    if (r != STEP_ON)
        return r == UNWIND_TRUNCATED ? r : else_end;
    registers->reg[fp] = caller_fp;
    registers->known = 1u << fp;
    if (walk->tracer)
        walk->tracer->origins[fp] = ORIGIN_COMPUTED; /* its read is noted as needed */
    walk->floor = at + 16;
    if (walk->info->lr == UNWIND_REGISTERS) {
        /* x86_64's call leaves the stack pointer right there; elsewhere it is unknown. */
        registers->reg[sp] = at + 16;
        registers->known |= 1u << sp;
    }
    r = arrive(walk, ra, false);
    return r == UNWIND_NOT_EXECUTABLE ? else_end : r;
}

static unsigned step(struct walk *walk, enum unwind_how *ret_how)
{
    enum unwind_end else_end = UNWIND_NO_MAPPING;
    if (walk->mapping != UNWIND_MAPPING_NONE) {
        else_end = UNWIND_NO_ROW;
        const struct unwind_rows *rows = walk->space->mappings[walk->mapping].rows;
        if (walk->rules != UNWIND_RULES_NONE) {
            const struct unwind_rules *rules = &rows->rules[walk->rules];
            *ret_how = rules->flags & UNWIND_RULES_SIGNAL ? UNWIND_BY_SIGNAL : UNWIND_BY_ROW;
            unsigned r = step_by_row(walk, rows, rules);
            /* A rule that we cannot follow says nothing against the frame pointer; one that
             * leads out of the slice does. */
            if ((r != STEP_NO_REGISTER && r != UNWIND_EXPRESSION) || *ret_how == UNWIND_BY_SIGNAL)
                return r == STEP_NO_REGISTER ? UNWIND_UNREADABLE : r;
            else_end = r == UNWIND_EXPRESSION ? UNWIND_EXPRESSION : UNWIND_UNREADABLE;
        }
    }
    *ret_how = UNWIND_BY_FRAME_POINTER;
    return step_by_frame_pointer(walk, else_end);
}

/* A handler "returns" to the restorer's first byte: one before it is another function. */
static bool at_restorer(const struct walk *walk)
{
    return walk->rules != UNWIND_RULES_NONE &&
           (walk->space->mappings[walk->mapping].rows->rules[walk->rules].flags &
            UNWIND_RULES_SIGNAL);
}

/* The rest of the stack as the last walk found it; false when it is not the same. */
static bool walk_by_memo(struct walk *walk, struct unwind_frame *frames, size_t max,
                         enum unwind_how how)
{
    uint32_t from = unwind_memo_find(&walk->memos, &walk->registers, walk->info->sp, walk->slice);
    if (from == UNWIND_MEMO_FRAMES)
        return false;
    const struct unwind_memo *last = walk->memos.last;
    if (last->count - from > max - walk->result.count || last->frames[from].frame.how != how)
        return false;
    for (uint32_t i = from; i < last->count; i++) {
        frames[walk->result.count++] = last->frames[i].frame;
        walk->result.by_frame_pointer += last->frames[i].frame.how == UNWIND_BY_FRAME_POINTER;
    }
    unwind_memo_keep(&walk->memos, from);
    walk->floor = last->floor;
    walk->result.end = UNWIND_ROOT;
    return true;
}

static void walk_callers(struct walk *walk, struct unwind_frame *frames, size_t max)
{
    for (;;) {
        enum unwind_how how;
        unsigned r = step(walk, &how);
        if (r == STEP_ON && walk->result.count == max)
            r = UNWIND_TOO_DEEP;
        if (r != STEP_ON) {
            walk->result.end = (enum unwind_end)r;
            return;
        }
        /* Behind a signal the state is more than registers. */
        bool plain = !walk->exact && !walk->elsewhere &&
                     walk->floor == walk->registers.reg[walk->info->sp];
        if (plain && walk_by_memo(walk, frames, max, how))
            return;
        walk->result.by_frame_pointer += how == UNWIND_BY_FRAME_POINTER;
        emit(walk, frames, walk->registers.pc - !(walk->exact || at_restorer(walk)), how);
        if (plain)
            unwind_memo_note(&walk->memos, &walk->registers, walk->info->sp,
                             &frames[walk->result.count - 1]);
        else
            unwind_memo_restart(&walk->memos);
    }
}

/* A sampled function of a file whose table leaves it out is mostly hand-written and
 * without a frame (memcpy of a small libc): then its return address is where the call put
 * it. That is a guess. It counts only if rows lead on from it, to the root or over several
 * frames to code that has none: with a wrong stack pointer the rows would miss every return
 * address from there on. */
static bool walk_frameless_leaf(struct walk *walk, struct unwind_frame *frames, size_t max)
{
    struct unwind_registers *registers = &walk->registers;
    unsigned sp = walk->info->sp, lr = walk->info->lr;
    struct walk before = *walk;
    uint64_t ra = 0;
    if (lr == UNWIND_REGISTERS) {
        if (read_slot(walk, registers->reg[sp], &ra) != STEP_ON)
            return false;
        registers->reg[sp] += 8;
    } else if (known(registers, lr)) {
        ra = registers->reg[lr];
        trace_use(walk, lr);
    }
    registers->known &= walk->info->callee_saved | 1u << sp;
    walk->floor = registers->reg[sp];
    if (arrive(walk, ra, false) == STEP_ON && walk->rules != UNWIND_RULES_NONE && max > 1 &&
        !at_restorer(walk)) {
        walk->result.by_frame_pointer = 1;
        emit(walk, frames, walk->registers.pc - 1, UNWIND_BY_FRAME_POINTER);
        walk_callers(walk, frames, max);
        enum { SURE_FRAMES = 4 }; /* itself, the guess, and two that the guess led to */
        if (walk->result.by_frame_pointer == 1 &&
            (walk->result.end == UNWIND_ROOT ||
             (walk->result.end == UNWIND_NO_ROW && walk->result.count >= SURE_FRAMES)))
            return true;
    }
    *walk = before;
    unwind_memo_restart(&walk->memos);
    /* What the attempt hung on stays noted; registers are again what they were. */
    if (walk->tracer)
        trace_begin(walk->tracer);
    return false;
}

static void walk_frames(struct walk *walk, struct unwind_frame *frames, size_t max)
{
    uint64_t pc = walk->registers.pc;
    if (!resolve(walk, pc))
        walk->mapping = UNWIND_MAPPING_NONE;
    emit(walk, frames, pc, UNWIND_LEAF);
    bool undescribed = walk->mapping != UNWIND_MAPPING_NONE && walk->rules == UNWIND_RULES_NONE &&
                       walk->space->mappings[walk->mapping].rows;
    if (!undescribed || !walk_frameless_leaf(walk, frames, max))
        walk_callers(walk, frames, max);
}

static size_t memo_of(uint64_t sp)
{
    return (size_t)(((sp >> 20) * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % UNWIND_CACHE_MEMOS;
}

static void memos_begin(struct walk *walk, size_t which)
{
    walk->memos = (struct unwind_memos){0};
    if (!walk->cache)
        return;
    unsigned current = walk->cache->current[which];
    const struct unwind_memo *last = &walk->cache->memos[which][current];
    if (last->generation == walk->space->generation)
        walk->memos.last = last;
    walk->memos.next = &walk->cache->memos[which][!current];
    unwind_memo_restart(&walk->memos);
}

/* Only a walk to the root is worth going by: its end is no matter of the slice. */
static void memos_end(const struct walk *walk, size_t which)
{
    struct unwind_memo *next = walk->memos.next;
    if (!next || walk->memos.full || walk->result.end != UNWIND_ROOT)
        return;
    next->generation = walk->space->generation;
    next->floor = walk->floor;
    walk->cache->current[which] = !walk->cache->current[which];
}

static void walk_begin(const struct unwind_space *space, const struct unwind_registers *registers,
                       const struct unwind_slice *slice, struct unwind_cache *cache,
                       struct tracer *tracer, struct unwind_frame *frames, size_t max,
                       struct unwind_result *ret)
{
    *ret = (struct unwind_result){.end = UNWIND_NO_STACK};
    if (!registers || max == 0)
        return;
    struct walk walk;
    walk.space = space;
    walk.info = unwind_machine_info(space->machine);
    walk.slice = slice;
    walk.cache = cache;
    walk.tracer = tracer;
    walk.registers = *registers;
    walk.floor = registers->reg[walk.info->sp];
    walk.exact = true;
    walk.pc_column = walk.info->lr == UNWIND_REGISTERS ? walk.info->registers : UINT8_MAX;
    walk.mapping = UNWIND_MAPPING_NONE;
    walk.rules = UNWIND_RULES_NONE;
    walk.elsewhere = false;
    walk.needed_end = 0;
    walk.result = *ret;
    if (!known(registers, walk.info->sp) || !slice || slice->len == 0) {
        /* The sampled function is still worth its name. */
        if (registers->pc != 0) {
            (void)resolve(&walk, registers->pc);
            emit(&walk, frames, registers->pc, UNWIND_LEAF);
        }
    } else {
        size_t which = memo_of(walk.floor);
        memos_begin(&walk, which);
        walk_frames(&walk, frames, max < UNWIND_FRAMES_MAX ? max : UNWIND_FRAMES_MAX);
        memos_end(&walk, which);
    }
    *ret = walk.result;
    ret->last_sp = ret->end == UNWIND_TRUNCATED ? walk.needed_end : walk.floor;
}

void unwind_walk(const struct unwind_space *space, const struct unwind_registers *registers,
                 const struct unwind_slice *slice, struct unwind_cache *cache,
                 struct unwind_frame *frames, size_t max, struct unwind_result *ret)
{
    walk_begin(space, registers, slice, cache, NULL, frames, max, ret);
}

void unwind_walk_traced(const struct unwind_space *space, const struct unwind_registers *registers,
                        const struct unwind_slice *slice, struct unwind_frame *frames, size_t max,
                        struct unwind_result *ret, struct unwind_trace *ret_trace)
{
    struct tracer tracer;
    tracer.usable = true;
    tracer.registers_used = tracer.count = 0;
    trace_begin(&tracer);
    walk_begin(space, registers, slice, NULL, &tracer, frames, max, ret);
    ret_trace->usable = tracer.usable && ret->end == UNWIND_ROOT;
    ret_trace->registers_used = tracer.registers_used;
    ret_trace->count = 0;
    for (uint32_t i = 0; i < tracer.count && ret_trace->usable; i++) {
        if (!tracer.needed[i])
            continue;
        if (ret_trace->count == UNWIND_TRACE_SLOTS)
            ret_trace->usable = false;
        else
            ret_trace->slots[ret_trace->count++] = tracer.reads[i];
    }
}

bool unwind_space_find(const struct unwind_space *space, uint64_t pc, uint32_t *ret_tag,
                       uint64_t *ret_vaddr)
{
    uint32_t index = unwind_space_index(space, pc, UNWIND_MAPPING_NONE);
    if (index == UNWIND_MAPPING_NONE)
        return false;
    const struct unwind_mapping *mapping = &space->mappings[index];
    *ret_tag = mapping->tag;
    *ret_vaddr = pc - mapping->start + mapping->vaddr;
    return true;
}

const char *unwind_end_text(unsigned end)
{
    static const char *const texts[UNWIND_ENDS] = {
        [UNWIND_ROOT] = "complete",
        [UNWIND_TRUNCATED] = "stack slice ended",
        [UNWIND_NO_MAPPING] = "code in no known mapping",
        [UNWIND_NO_ROW] = "no unwind table, no frame pointer",
        [UNWIND_BAD_CFA] = "stack would not grow",
        [UNWIND_UNREADABLE] = "stack slot or register not sampled",
        [UNWIND_EXPRESSION] = "unwind expression not understood",
        [UNWIND_TOO_DEEP] = "too many frames",
        [UNWIND_NO_STACK] = "no user stack in the sample",
        [UNWIND_NOT_EXECUTABLE] = "return address not in code",
    };
    return end < UNWIND_ENDS ? texts[end] : "unknown reason";
}
