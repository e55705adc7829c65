/* The frame pointer of a thread of which only pc and sp are known.
 *
 * The kernel shows no more of a blocked thread to those without privileges. Code without frame
 * pointers is walked by the stack pointer alone; but a function that has one hangs on it, and if
 * nothing further in has saved it, it is still in its register, where we cannot look.
 *
 * It points into the stack we have, though, at a place whose return address belongs to whoever
 * called this very function. That is looked for, from the stack pointer up: a return address
 * behind a call of the function that the frame is in. What earlier calls left behind in unused
 * parts of a frame are calls of other functions, as a rule; that the frame is as large as the
 * function's first instructions make it decides where more than one is found. A call through
 * a pointer names no function: it counts only if it alone leads to the root. */
#include "collect/stacks_parts.h"
#include "unwind/machine.h"
#include "unwind/space.h"

#include <errno.h>
#include <string.h>

enum {
    FUNCTION_BYTES_MAX = 1 << 20,
    PROLOGUE_BYTES = 48,
    CODE_READS_MAX = 256, /* of the target's memory, for one search */
    WALKS_MAX = 8,        /* of candidates whose call names no function */
};

struct search {
    struct stacks *st;
    const struct stacks_sample *sample;
    const struct stacks_memory *memory;
    const struct unwind_space *space;
    const struct unwind_mapping *mapping; /* of the frame that hangs on the frame pointer */
    const struct unwind_rules *rules;
    uint64_t vaddr; /* its pc, in the image */
    uint64_t sp;    /* of that frame */
    unsigned reads;
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

/* Row by row from the function's first instruction to the frame's place: no gap in between. */
static bool is_this_function(const struct search *s, uint64_t address)
{
    const struct unwind_mapping *mapping = s->mapping;
    const struct unwind_rows *rows = mapping->rows;
    if (address < mapping->start || address >= mapping->end)
        return false;
    uint64_t first = address - mapping->start + mapping->vaddr;
    if (first > s->vaddr || s->vaddr - first > FUNCTION_BYTES_MAX)
        return false;
    const struct unwind_rules *entry = &rows->rules[unwind_rows_find(rows, first)];
    if (entry->cfa != UNWIND_CFA_REGISTER || entry->cfa_base == s->rules->cfa_base ||
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
    for (; low < rows->count && rows->starts[low] <= s->vaddr - rows->base; low++)
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

static bool calls_this(struct search *s, uint64_t address, uint64_t *ret_entry)
{
    bool found = is_this_function(s, address) ||
                 (stub_follow(s, &address) && is_this_function(s, address));
    if (found)
        *ret_entry = address;
    return found;
}

/* What the instruction before a return address calls. */
static enum call call_before(struct search *s, uint64_t ra, uint64_t *ret_entry)
{
    uint8_t code[8];
    uint64_t address;
    if (!code_read(s, ra - sizeof(code), code, sizeof(code)))
        return CALL_NONE;
    if (code[3] == 0xe8)
        return calls_this(s, ahead(ra, code + 4), ret_entry) ? CALL_THIS : CALL_ELSEWHERE;
    if (code[2] == 0xff && code[3] == 0x15)
        return code_read(s, ahead(ra, code + 4), &address, sizeof(address)) &&
                       calls_this(s, address, ret_entry)
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

static bool leads_to_root(struct search *s, uint64_t fp)
{
    unsigned number = unwind_machine_info(s->space->machine)->fp;
    struct unwind_registers registers = *s->sample->registers;
    struct unwind_result result;
    registers.reg[number] = fp;
    registers.known |= 1u << number;
    unwind_walk(s->space, &registers, &s->sample->slice, NULL, s->st->frames, UNWIND_FRAMES_MAX,
                &result);
    return result.end == UNWIND_ROOT;
}

static bool pointer_find(struct search *s, uint64_t *ret)
{
    const struct unwind_slice *slice = &s->sample->slice;
    uint64_t first = 0, lonely = 0;
    unsigned alone = 0, walks = 0;
    for (uint64_t fp = (s->sp + 7) & ~7ull; fp < slice->address + slice->len; fp += 8) {
        uint64_t ra, entry, bytes;
        if (!return_of(s, fp, &ra))
            continue;
        enum call call = call_before(s, ra, &entry);
        if (call == CALL_THIS) {
            first = first ? first : fp;
            if (!frame_bytes(s, entry, &bytes) || fp - s->sp == bytes) {
                *ret = fp;
                return true;
            }
        } else if (call == CALL_POINTER && walks < WALKS_MAX && ++walks && leads_to_root(s, fp)) {
            lonely = fp;
            alone++;
        }
    }
    *ret = first ? first : lonely;
    return first || alone == 1;
}

/* The frame that the walk ended in must be one that hangs on the frame pointer. */
static bool search_begin(struct search *s, const struct unwind_result *result)
{
    const struct unwind_machine_info *info = unwind_machine_info(s->space->machine);
    const struct unwind_frame *last = &s->st->frames[result->count - 1];
    uint32_t index = unwind_space_index(s->space, last->pc, UNWIND_MAPPING_NONE);
    if (index == UNWIND_MAPPING_NONE || !s->space->mappings[index].rows)
        return false;
    s->mapping = &s->space->mappings[index];
    s->vaddr = last->vaddr;
    s->sp = result->last_sp;
    s->rules = &s->mapping->rows->rules[unwind_rows_find(s->mapping->rows, last->vaddr)];
    return (s->rules->cfa == UNWIND_CFA_REGISTER || s->rules->cfa == UNWIND_CFA_DEREF) &&
           s->rules->cfa_base == info->fp && s->rules->ra == UNWIND_AT_CFA &&
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
    struct search search = {.st = st, .sample = sample, .memory = memory, .space = space};
    if (result.end != UNWIND_UNREADABLE || result.count == 0 || !search_begin(&search, &result))
        return -ENOENT;
    return pointer_find(&search, ret) ? 0 : -ENOENT;
}
