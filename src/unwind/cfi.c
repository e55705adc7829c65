/* The entries of .eh_frame and .debug_frame: CIEs first, then the functions that
 * refer to them, in two passes, since .debug_frame may name a CIE that comes later. */
#include "unwind/cfi.h"

#include "unwind/leb.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    CIES_MAX = 1 << 20,
    FUNCTIONS_MAX = 1 << 22,
    POINTER_OMITTED = 0xff,
};

uint64_t cfi_fixed(struct cfi_bytes *bytes, unsigned size)
{
    uint64_t value = 0;
    if ((size_t)(bytes->end - bytes->at) < size) {
        bytes->bad = true;
        bytes->at = bytes->end;
        return 0;
    }
    memcpy(&value, bytes->at, size);
    bytes->at += size;
    return value;
}

static uint64_t leb(struct cfi_bytes *bytes, bool is_signed)
{
    uint64_t value;
    if (unwind_leb(&bytes->at, bytes->end, is_signed, &value))
        return value;
    bytes->bad = true;
    return 0;
}

uint64_t cfi_uleb(struct cfi_bytes *bytes)
{
    return leb(bytes, false);
}

int64_t cfi_sleb(struct cfi_bytes *bytes)
{
    return (int64_t)leb(bytes, true);
}

/* The number itself, without what it counts from. */
static uint64_t pointer_value(struct cfi_bytes *bytes, uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case 0x00: /* absptr */
    case 0x04: /* udata8 */
    case 0x0c: /* sdata8 */
        return cfi_fixed(bytes, 8);
    case 0x01:
        return cfi_uleb(bytes);
    case 0x02:
        return cfi_fixed(bytes, 2);
    case 0x03:
        return cfi_fixed(bytes, 4);
    case 0x09:
        return (uint64_t)cfi_sleb(bytes);
    case 0x0a:
        return (uint64_t)(int64_t)(int16_t)cfi_fixed(bytes, 2);
    case 0x0b:
        return (uint64_t)(int64_t)(int32_t)cfi_fixed(bytes, 4);
    default:
        bytes->bad = true;
        return 0;
    }
}

uint64_t cfi_pointer(struct cfi_bytes *bytes, uint8_t encoding, uint64_t vaddr, uint64_t got)
{
    uint64_t value = pointer_value(bytes, encoding);
    switch (encoding & 0xf0) {
    case 0x00:
        return value;
    case 0x10: /* pcrel */
        return value + vaddr;
    case 0x30: /* datarel */
        bytes->bad |= got == 0;
        return value + got;
    default: /* textrel, funcrel, aligned, indirect: no linker makes these for code */
        bytes->bad = true;
        return 0;
    }
}

void cfi_deinit(struct cfi *cfi)
{
    VEC_FREE(&cfi->cies);
}

/* One entry of a section. */
struct entry {
    uint64_t offset;
    uint64_t id;        /* a CIE's is made 0 */
    uint64_t id_offset; /* what .eh_frame's distances count from */
    struct cfi_bytes body;
    unsigned offset_size;
};

static int bad_entry(const struct cfi_section *section, uint64_t offset, struct why *why,
                     const char *what)
{
    return why_set(why, WHY_FAILED, EBADMSG,
                   "its functions are walked by frame pointer; reinstall the file if it is damaged",
                   "damaged unwind table: %s+0x%" PRIx64 ": %s", section->name, offset, what);
}

/* 1: *ret is the next entry; 0: the end; negative: damaged. */
static int entry_next(const struct cfi_section *section, size_t *offset, struct entry *ret,
                      struct why *why)
{
    while (section->len - *offset >= 4) {
        struct cfi_bytes bytes = {section->data + *offset, section->data + section->len, false};
        *ret = (struct entry){.offset = *offset, .offset_size = 4};
        uint64_t len = cfi_fixed(&bytes, 4);
        if (len == 0) {
            if (section->open_ended)
                return 0;
            *offset += 4; /* a terminator that a linker put in the middle */
            continue;
        }
        if (len == UINT32_MAX) {
            len = cfi_fixed(&bytes, 8);
            ret->offset_size = 8;
        }
        if (bytes.bad || len > (uint64_t)(bytes.end - bytes.at) || len < ret->offset_size) {
            if (section->open_ended)
                return 0;
            return bad_entry(section, *offset, why, "an entry reaches over the end");
        }
        bytes.end = bytes.at + len;
        *offset = (size_t)(bytes.end - section->data);
        ret->id_offset = (uint64_t)(bytes.at - section->data);
        ret->id = cfi_fixed(&bytes, ret->offset_size);
        if (!section->eh) {
            bool cie = ret->id == (ret->offset_size == 4 ? UINT32_MAX : UINT64_MAX);
            ret->id = cie ? 0 : ret->id + 1; /* an FDE may point at offset 0 */
        }
        ret->body = bytes;
        return 1;
    }
    return 0;
}

/* What follows the augmentation's letters. Without a size, an unknown letter hides the rest. */
static bool read_augmentation(struct cfi_cie *cie, struct cfi_bytes *bytes, const char *letters)
{
    struct cfi_bytes data = *bytes;
    cie->augmented = letters[0] == 'z';
    if (cie->augmented) {
        uint64_t len = cfi_uleb(bytes);
        if (bytes->bad || len > (uint64_t)(bytes->end - bytes->at))
            return false;
        data = (struct cfi_bytes){bytes->at, bytes->at + len, false};
        bytes->at += len;
        letters++;
    }
    for (; *letters; letters++) {
        switch (*letters) {
        case 'R':
            cie->encoding = (uint8_t)cfi_fixed(&data, 1);
            break;
        case 'L':
            cfi_fixed(&data, 1);
            break;
        case 'P': { /* only its size matters */
            uint8_t encoding = (uint8_t)cfi_fixed(&data, 1);
            if (encoding != POINTER_OMITTED)
                pointer_value(&data, encoding);
            break;
        }
        case 'S':
            cie->flags |= UNWIND_RULES_SIGNAL;
            break;
        case 'B': /* signed with the other key */
        case 'G': /* tagged stack memory */
            break;
        default:
            return cie->augmented && !data.bad;
        }
    }
    if (!cie->augmented)
        *bytes = data;
    return !data.bad;
}

static int read_cie(struct cfi *cfi, uint8_t section, const struct entry *entry)
{
    struct cfi_bytes bytes = entry->body;
    struct cfi_cie cie = {.offset = entry->offset, .section = section};
    uint64_t version = cfi_fixed(&bytes, 1);
    const char *letters = (const char *)bytes.at;
    size_t left = (size_t)(bytes.end - bytes.at);
    const uint8_t *zero = left > 0 ? memchr(bytes.at, 0, left) : NULL;
    bool ok = zero && (version == 1 || version == 3 || version == 4);
    if (ok) {
        bytes.at = zero + 1;
        if (strcmp(letters, "eh") == 0) { /* gcc 2's, with a pointer */
            cfi_fixed(&bytes, 8);
            letters = "";
        }
        if (version == 4) {
            ok = cfi_fixed(&bytes, 1) == 8;
            ok = cfi_fixed(&bytes, 1) == 0 && ok; /* no segments */
        }
        cie.code_align = cfi_uleb(&bytes);
        cie.data_align = cfi_sleb(&bytes);
        uint64_t column = version == 1 ? cfi_fixed(&bytes, 1) : cfi_uleb(&bytes);
        cie.ra_column = (uint32_t)column;
        ok = ok && !bytes.bad && column < CFI_COLUMNS && read_augmentation(&cie, &bytes, letters);
    }
    if (ok) {
        struct cfi_state state = {.list = LIST_NONE};
        int r = cfi_run(cfi, &cie, bytes, NULL, NULL, &state);
        if (r == 0)
            r = rows_builder_rules(cfi->builder, &state, cie.ra_column, cie.flags, &cie.rules);
        if (r < 0 && r != -EBADMSG)
            return r;
        cie.usable = r == 0;
    }
    if (cfi->cies.len >= CIES_MAX)
        return -EFBIG;
    return VEC_PUSH(&cfi->cies, cie);
}

/* -1 if no CIE stands there. */
static int64_t find_cie(const struct cfi *cfi, size_t first, uint64_t offset, int64_t hint)
{
    if (hint >= 0 && cfi->cies.data[hint].offset == offset)
        return hint;
    size_t low = first, high = cfi->cies.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cfi->cies.data[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < cfi->cies.len && cfi->cies.data[low].offset == offset ? (int64_t)low : -1;
}

static bool in_code(const struct cfi *cfi, uint64_t start, uint64_t end)
{
    for (size_t i = 0; i < cfi->code_count; i++)
        if (start >= cfi->code[i].start && end <= cfi->code[i].end)
            return true;
    return false;
}

/* 1: *ret is a function in the image's code; 0: it is not; negative: damaged. */
static int read_function(struct cfi *cfi, uint8_t number, const struct entry *entry, int64_t cie_at,
                         struct cfi_function *ret, struct why *why)
{
    const struct cfi_section *section = &cfi->sections[number];
    const struct cfi_cie *cie = &cfi->cies.data[cie_at];
    struct cfi_bytes bytes = entry->body;
    uint64_t vaddr = section->vaddr + (uint64_t)(bytes.at - section->data);
    if (!cie->usable) {
        cfi->skipped++;
        return 0;
    }
    uint64_t start = cfi_pointer(&bytes, cie->encoding, vaddr, section->got);
    uint64_t size = pointer_value(&bytes, cie->encoding & 0x0f);
    if (cie->augmented) {
        uint64_t len = cfi_uleb(&bytes);
        if (len > (uint64_t)(bytes.end - bytes.at))
            bytes.bad = true;
        else
            bytes.at += len;
    }
    if (bytes.bad) {
        if (section->open_ended) {
            cfi->skipped++;
            return 0;
        }
        return bad_entry(section, entry->offset, why, "a function's range cannot be read");
    }
    /* Start 0: the linker threw the function away and left its entry. */
    if (start == 0 || size == 0)
        return 0;
    if (size > UINT32_MAX || start + size < start || !in_code(cfi, start, start + size)) {
        cfi->skipped++;
        return 0;
    }
    uint32_t offset = (uint32_t)(start - cfi->builder->base);
    *ret = (struct cfi_function){.start = offset,
                                 .end = offset + (uint32_t)size,
                                 .origin = offset,
                                 .cie = (uint32_t)cie_at,
                                 .program = (uint32_t)(bytes.at - section->data),
                                 .program_len = (uint32_t)(bytes.end - bytes.at),
                                 .kind = CFI_FUNCTION};
    return 1;
}

static int out_of_bounds(int r, const struct cfi_section *section, struct why *why)
{
    if (r == -EFBIG)
        return bad_entry(section, 0, why, "more entries than any program has");
    return r == -ENOMEM ? why_nomem(why) : r;
}

int cfi_read(struct cfi *cfi, uint8_t number, cfi_functions *functions, struct why *why)
{
    const struct cfi_section *section = &cfi->sections[number];
    size_t first_cie = cfi->cies.len, offset = 0;
    struct entry entry;
    int r;
    while ((r = entry_next(section, &offset, &entry, why)) > 0) {
        if (entry.id != 0)
            continue;
        r = read_cie(cfi, number, &entry);
        if (r < 0)
            return out_of_bounds(r, section, why);
    }
    if (r < 0)
        return r;
    int64_t cie = -1;
    for (offset = 0; (r = entry_next(section, &offset, &entry, why)) > 0;) {
        if (entry.id == 0)
            continue;
        uint64_t at = section->eh ? entry.id_offset - entry.id : entry.id - 1;
        cie = find_cie(cfi, first_cie, at, cie);
        if (cie < 0) {
            if (section->open_ended)
                break;
            return bad_entry(section, entry.offset, why, "an entry refers to no CIE");
        }
        struct cfi_function function;
        r = read_function(cfi, number, &entry, cie, &function, why);
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        if (functions->len >= FUNCTIONS_MAX)
            return out_of_bounds(-EFBIG, section, why);
        if (VEC_PUSH(functions, function) < 0)
            return why_nomem(why);
    }
    return r < 0 ? r : 0;
}

static int by_start(const void *left, const void *right)
{
    const struct cfi_function *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    /* Two that start together: the order must not depend on the sort. */
    return (a->program > b->program) - (a->program < b->program);
}

void cfi_sort(cfi_functions *functions)
{
    bool sorted = true;
    for (size_t i = 1; i < functions->len && sorted; i++)
        sorted = functions->data[i - 1].start < functions->data[i].start;
    if (!sorted)
        qsort(functions->data, functions->len, sizeof(functions->data[0]), by_start);
    size_t kept = 0;
    uint32_t end = 0;
    for (size_t i = 0; i < functions->len; i++) {
        struct cfi_function function = functions->data[i];
        function.start = MAX(function.start, end);
        if (function.start >= function.end)
            continue;
        end = function.end;
        functions->data[kept++] = function;
    }
    functions->len = kept;
}

int cfi_fill(cfi_functions *functions, const cfi_functions *more)
{
    cfi_functions merged = {0};
    if (more->len == 0)
        return 0;
    if (VEC_RESERVE(&merged, functions->len + more->len) < 0)
        return -ENOMEM;
    size_t at = 0;
    for (size_t i = 0; i < more->len; i++) {
        struct cfi_function filler = more->data[i];
        /* Everything that starts before it goes first, and cuts its front. */
        while (at < functions->len && functions->data[at].start <= filler.start) {
            filler.start = MAX(filler.start, functions->data[at].end);
            merged.data[merged.len++] = functions->data[at++];
        }
        if (at > 0)
            filler.start = MAX(filler.start, functions->data[at - 1].end);
        if (at < functions->len)
            filler.end = MIN(filler.end, functions->data[at].start);
        if (filler.start < filler.end)
            merged.data[merged.len++] = filler;
    }
    while (at < functions->len)
        merged.data[merged.len++] = functions->data[at++];
    VEC_FREE(functions);
    *functions = merged;
    return 0;
}

static int emit_function(struct cfi *cfi, const struct cfi_function *function)
{
    const struct cfi_cie *cie = &cfi->cies.data[function->cie];
    const uint8_t *program = cfi->sections[cie->section].data + function->program;
    struct cfi_bytes bytes = {program, program + function->program_len, false};
    struct cfi_state initial, state;
    rows_builder_state(cfi->builder, cie->rules, cie->ra_column, &initial);
    state = initial;
    int r = cfi_run(cfi, cie, bytes, function, &initial, &state);
    if (r != -EBADMSG)
        return r;
    cfi->skipped++;
    return 0;
}

/* The kernel's frame for a signal, by the machine's layout. */
static int emit_restorer(struct cfi *cfi, const struct cfi_function *function)
{
    struct rows_builder *builder = cfi->builder;
    const struct unwind_machine_info *info = builder->info;
    struct cfi_state state = {.cfa = UNWIND_CFA_DEREF,
                              .cfa_base = info->sp,
                              .cfa_offset = info->signal_registers[info->sp],
                              .list = LIST_NONE};
    enum { PC_COLUMN = CFI_COLUMNS - 1 };
    for (unsigned i = 0; i <= info->registers; i++) {
        unsigned column = i < info->registers ? i : PC_COLUMN;
        uint16_t offset = i < info->registers ? info->signal_registers[i] : info->signal_pc;
        state.columns[column] = (struct unwind_save){offset, (uint8_t)column, UNWIND_AT_REGISTER,
                                                     info->sp, 0};
        state.set |= UINT64_C(1) << column;
    }
    uint32_t rules;
    int r = rows_builder_rules(builder, &state, PC_COLUMN, UNWIND_RULES_SIGNAL, &rules);
    return r < 0 ? r : rows_builder_add(builder, function->start, rules);
}

/* The linker's call stubs where it wrote no table for them: 16 bytes each, which jump and,
 * when the function is not bound yet, push its number first. */
static int emit_stubs(struct cfi *cfi, const struct cfi_function *function)
{
    struct rows_builder *builder = cfi->builder;
    const struct unwind_machine_info *info = builder->info;
    bool pushes = info->lr == UNWIND_REGISTERS;
    uint32_t ra_column = pushes ? info->registers : info->lr;
    struct cfi_state state = {.cfa = pushes ? UNWIND_CFA_PLT : UNWIND_CFA_REGISTER,
                              .cfa_base = info->sp,
                              .cfa_offset = pushes ? 8 : 0,
                              .cfa_offset2 = pushes ? 11 : 0,
                              .list = LIST_NONE};
    if (pushes) {
        state.columns[ra_column] = (struct unwind_save){-8, (uint8_t)ra_column, UNWIND_AT_CFA, 0,
                                                        0};
        state.set |= UINT64_C(1) << ra_column;
    }
    uint32_t rules;
    int r = rows_builder_rules(builder, &state, ra_column, 0, &rules);
    return r < 0 ? r : rows_builder_add(builder, function->start, rules);
}

int cfi_emit(struct cfi *cfi, const cfi_functions *functions)
{
    int r = 0;
    for (size_t i = 0; i < functions->len && r == 0; i++) {
        const struct cfi_function *function = &functions->data[i];
        r = function->kind == CFI_RESTORER ? emit_restorer(cfi, function)
            : function->kind == CFI_STUBS  ? emit_stubs(cfi, function)
                                           : emit_function(cfi, function);
        /* The next one starts later or takes this row's place. */
        if (r == 0)
            r = rows_builder_add(cfi->builder, function->end, UNWIND_RULES_NONE);
    }
    return r;
}
