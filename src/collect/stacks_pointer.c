/* The frame pointer of a thread of which only pc and sp are known.
 *
 * The kernel shows no more of a blocked thread to those without privileges. Code without frame
 * pointers is walked by the stack pointer alone; but a function that has one hangs on it, and if
 * nothing further in has saved it, it is still in its register, where we cannot look.
 *
 * It points into the stack we have, though, at a place whose return address belongs to whoever
 * called this very function. That is looked for, from the stack pointer up: a return address
 * behind a call of the function that the frame is in. Earlier calls may have left such a place
 * behind, in parts of the frame that are not used yet. So the frame must be as large as the
 * function's first instructions make it; or the callers must be called by each other, too, which
 * those of a stale place are not: their frames were taken by others since. A call through
 * a pointer names no function: it counts only if it alone leads to the root. */
#include "collect/stacks_parts.h"
#include "unwind/machine.h"
#include "unwind/space.h"

#include <errno.h>
#include <string.h>

enum {
    FUNCTION_BYTES_MAX = 1 << 20,
    PROLOGUE_BYTES = 48,
    CODE_READS_MAX = 1024, /* of the target's memory, for one search */
    WALKS_MAX = 64,        /* with candidates */
    CALLERS_CHECKED = 6,
};

struct search {
    struct stacks *st;
    const struct stacks_sample *sample;
    const struct stacks_memory *memory;
    const struct unwind_space *space;
    const struct unwind_machine_info *info;
    uint64_t pc; /* of the frame that hangs on the frame pointer */
    uint64_t sp;
    const struct unwind_rules *rules;
    size_t frame; /* its number */
    unsigned reads, walks;
};

enum call { CALL_NONE, CALL_ELSEWHERE, CALL_POINTER, CALL_THIS };

static bool slot_read(const struct search *s, uint64_t address, uint64_t *ret)
{
    const struct unwind_slice *slice = &s->sample->slice;
    uint64_t at = address - slice->address;
    if (address < slice->address || slice->len < 8 || at > slice->len - 8)
        return false;
    memcpy(ret, slice->bytes + at, sizeof(*ret));
    return true;
}

static bool code_read(struct search *s, uint64_t address, void *to, size_t len)
{
    return s->reads++ < CODE_READS_MAX &&
           s->memory->read(s->memory->context, s->sample->pid, address, to, len) == len;
}

/* Row by row from an address that is called to a place in code: no gap in between. */
static bool is_function_of(const struct search *s, uint64_t address, uint64_t pc)
{
    uint32_t index = unwind_space_index(s->space, pc, UNWIND_MAPPING_NONE);
    if (index == UNWIND_MAPPING_NONE || address > pc || pc - address > FUNCTION_BYTES_MAX)
        return false;
    const struct unwind_mapping *mapping = &s->space->mappings[index];
    const struct unwind_rows *rows = mapping->rows;
    if (!rows || address < mapping->start)
        return false;
    uint64_t first = address - mapping->start + mapping->vaddr;
    uint64_t last = pc - mapping->start + mapping->vaddr;
    const struct unwind_rules *entry = &rows->rules[unwind_rows_find(rows, first)];
    if (entry->cfa != UNWIND_CFA_REGISTER || entry->cfa_base != s->info->sp ||
        entry->cfa_offset != 8)
        return false;
    size_t low = 0, high = rows->count;
    while (low < high) { /* the first that starts above */
        size_t middle = low + (high - low) / 2;
        if (rows->starts[middle] <= first - rows->base)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < rows->count && rows->starts[low] <= last - rows->base; low++)
        if (rows->rule_of[low] == UNWIND_RULES_NONE)
            return false;
    return true;
}

static uint64_t ahead(uint64_t address, const uint8_t *offset)
{
    int32_t distance;
    memcpy(&distance, offset, sizeof(distance));
    return address + (uint64_t)(int64_t)distance;
}

/* Where a stub of the PLT jumps to: [endbr64] [bnd] jmp *slot(%rip). */
static bool stub_follow(struct search *s, uint64_t *address)
{
    uint8_t code[16];
    size_t at = 0;
    if (!code_read(s, *address, code, sizeof(code)))
        return false;
    if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
        at = 4;
    at += code[at] == 0xf2;
    if (code[at] != 0xff || code[at + 1] != 0x25)
        return false;
    return code_read(s, ahead(*address + at + 6, code + at + 2), address, sizeof(*address));
}

static bool calls_it(struct search *s, uint64_t address, uint64_t pc, uint64_t *ret_entry)
{
    bool found = is_function_of(s, address, pc) ||
                 (stub_follow(s, &address) && is_function_of(s, address, pc));
    if (found)
        *ret_entry = address;
    return found;
}

/* Whether the instruction before a return address calls the function that `pc` is in. */
static enum call call_before(struct search *s, uint64_t ra, uint64_t pc, uint64_t *ret_entry)
{
    uint8_t code[8];
    uint64_t address;
    if (!code_read(s, ra - sizeof(code), code, sizeof(code)))
        return CALL_NONE;
    if (code[3] == 0xe8)
        return calls_it(s, ahead(ra, code + 4), pc, ret_entry) ? CALL_THIS : CALL_ELSEWHERE;
    if (code[2] == 0xff && code[3] == 0x15)
        return code_read(s, ahead(ra, code + 4), &address, sizeof(address)) &&
                       calls_it(s, address, pc, ret_entry)
                   ? CALL_THIS
                   : CALL_ELSEWHERE;
    /* ff /2 of two to seven bytes: through a register or memory. */
    for (size_t at = 1; at <= 6; at++) {
        unsigned mode = code[at + 1] >> 6, base = code[at + 1] & 7;
        if (code[at] != 0xff || (code[at + 1] & 0x38) != 0x10)
            continue;
        size_t len = 2 + (mode != 3 && base == 4) + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
        if (mode == 0 && base == 4 && at + 2 < sizeof(code) && (code[at + 2] & 7) == 5)
            len += 4;
        if (at + len == sizeof(code))
            return CALL_POINTER;
    }
    return CALL_NONE;
}

/* push %rbp; mov %rsp,%rbp; push …; sub $N,%rsp: how far below the frame pointer the stack
 * pointer stands then. False: it does not begin like that. */
static bool frame_bytes(struct search *s, uint64_t entry, uint64_t *ret)
{
    uint8_t code[PROLOGUE_BYTES];
    size_t at = 0;
    uint64_t bytes = 0;
    if (!code_read(s, entry, code, sizeof(code)))
        return false;
    if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
        at = 4;
    if (code[at] != 0x55 || memcmp(code + at + 1, "\x48\x89\xe5", 3) != 0)
        return false;
    for (at += 4; at < 24; at++) {
        at += code[at] == 0x41;
        if (code[at] < 0x50 || code[at] > 0x57)
            break;
        bytes += 8;
    }
    uint32_t more = 0;
    if (memcmp(code + at, "\x48\x83\xec", 3) == 0)
        more = code[at + 3];
    else if (memcmp(code + at, "\x48\x81\xec", 3) == 0)
        memcpy(&more, code + at + 3, sizeof(more));
    *ret = bytes + more;
    return true;
}

/* The return address of the frame if the frame pointer were that; false: it cannot be. */
static bool return_of(const struct search *s, uint64_t fp, uint64_t *ret)
{
    const struct unwind_rules *rules = s->rules;
    uint64_t cfa = fp + (uint64_t)(int64_t)rules->cfa_offset;
    if (rules->cfa == UNWIND_CFA_DEREF) {
        if (!slot_read(s, cfa, &cfa))
            return false;
        cfa += (uint64_t)(int64_t)rules->cfa_offset2;
    }
    if (cfa <= s->sp || cfa % 16 != 0 ||
        !slot_read(s, cfa + (uint64_t)(int64_t)rules->ra_offset, ret))
        return false;
    return unwind_space_index(s->space, *ret - 1, UNWIND_MAPPING_NONE) != UNWIND_MAPPING_NONE;
}

enum chain { CHAIN_BROKEN, CHAIN_WHOLE, CHAIN_TO_ROOT };

/* Whether the callers that a frame pointer leads to are called by each other. */
static enum chain chain_check(struct search *s, uint64_t fp)
{
    struct unwind_registers registers = *s->sample->registers;
    struct unwind_result result;
    const struct unwind_frame *frames = s->st->frames;
    if (s->walks++ >= WALKS_MAX)
        return CHAIN_BROKEN;
    registers.reg[s->info->fp] = fp;
    registers.known |= 1u << s->info->fp;
    unwind_walk(s->space, &registers, &s->sample->slice, NULL, s->st->frames, UNWIND_FRAMES_MAX,
                &result);
    for (size_t i = s->frame + 1; i + 1 < result.count && i <= s->frame + CALLERS_CHECKED; i++) {
        uint64_t entry;
        enum call call = frames[i + 1].how == UNWIND_BY_ROW
                             ? call_before(s, frames[i + 1].pc + 1, frames[i].pc, &entry)
                             : CALL_POINTER;
        if (call == CALL_NONE || call == CALL_ELSEWHERE)
            return CHAIN_BROKEN;
    }
    return result.end == UNWIND_ROOT ? CHAIN_TO_ROOT : CHAIN_WHOLE;
}

static bool pointer_find(struct search *s, uint64_t *ret)
{
    const struct unwind_slice *slice = &s->sample->slice;
    uint64_t lonely = 0;
    unsigned alone = 0;
    for (uint64_t fp = (s->sp + 7) & ~7ull; fp < slice->address + slice->len; fp += 8) {
        uint64_t ra, entry, bytes;
        if (!return_of(s, fp, &ra))
            continue;
        enum call call = call_before(s, ra, s->pc, &entry);
        if (call == CALL_THIS && ((frame_bytes(s, entry, &bytes) && fp - s->sp == bytes) ||
                                  chain_check(s, fp) != CHAIN_BROKEN)) {
            *ret = fp;
            return true;
        }
        if (call == CALL_POINTER && chain_check(s, fp) == CHAIN_TO_ROOT) {
            lonely = fp;
            alone++;
        }
    }
    *ret = lonely;
    return alone == 1;
}

/* The frame that the walk ended in must be one that hangs on the frame pointer. */
static bool search_begin(struct search *s, const struct unwind_result *result)
{
    const struct unwind_frame *last = &s->st->frames[result->count - 1];
    uint32_t index = unwind_space_index(s->space, last->pc, UNWIND_MAPPING_NONE);
    const struct unwind_rows *rows = index == UNWIND_MAPPING_NONE ? NULL
                                                                  : s->space->mappings[index].rows;
    if (!rows)
        return false;
    s->frame = result->count - 1;
    s->pc = last->pc;
    s->sp = result->last_sp;
    s->rules = &rows->rules[unwind_rows_find(rows, last->vaddr)];
    return (s->rules->cfa == UNWIND_CFA_REGISTER || s->rules->cfa == UNWIND_CFA_DEREF) &&
           s->rules->cfa_base == s->info->fp && s->rules->ra == UNWIND_AT_CFA &&
           !(s->rules->flags & UNWIND_RULES_SIGNAL);
}

int stacks_frame_pointer(struct stacks *st, const struct stacks_sample *sample,
                         const struct stacks_memory *memory, uint64_t *ret)
{
    uint32_t process = process_find(st, sample->pid);
    struct unwind_result result;
    /* Other machines keep the return address in a register, which is as unknown. */
    if (st->opts.machine != UNWIND_X86_64 || process == STACKS_NONE || !sample->registers)
        return -ENOENT;
    const struct unwind_space *space = st->processes.data[process].space;
    if (!space)
        return -ENOENT;
    int r = stacks_walk(st, process, sample, &result);
    if (r < 0)
        return r;
    struct search search = {
        .st = st,
        .sample = sample,
        .memory = memory,
        .space = space,
        .info = unwind_machine_info(space->machine),
    };
    if (result.end != UNWIND_UNREADABLE || result.count == 0 || !search_begin(&search, &result))
        return -ENOENT;
    return pointer_find(&search, ret) ? 0 : -ENODATA;
}
