/* On real programs and libraries, x86_64 and aarch64, our rules agree with elfutils',
 * which reads the same tables in its own way.
 *
 * Rules are compared by what they give for made-up registers and memory, so that two
 * spellings of one rule are equal. */
#include "unit.h"

#include "unwind_helpers.h"

#include "unwind/expression.h"
#include "unwind/image.h"
#include "unwind/machine.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <glob.h>

/* Every this many rows one is compared, so that a large program takes no minute. */
enum { COMPARED_MAX = 20000 };

static uint64_t memory_at(uint64_t address)
{
    return (address * UINT64_C(0x9e3779b97f4a7c15)) >> 16;
}

static uint64_t register_at(unsigned number)
{
    return 0x7000000000 + number * UINT64_C(0x1000100);
}

enum meaning { LOST, KEPT, VALUE, NOT_COMPARED };

/* A decoded expression of libdw's; the few operations that unwind tables use. */
static enum meaning evaluate(const Dwarf_Op *ops, size_t count, uint64_t cfa, uint64_t pc,
                             unsigned pc_column, uint64_t *ret)
{
    uint64_t stack[32];
    size_t depth = 0;
    bool is_value = false;
    for (size_t i = 0; i < count; i++) {
        const Dwarf_Op *op = &ops[i];
        if (depth >= 30)
            return NOT_COMPARED;
        if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
            unsigned number = op->atom - DW_OP_breg0;
            stack[depth++] = (number == pc_column ? pc : register_at(number)) + op->number;
        } else if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
            stack[depth++] = op->atom - DW_OP_lit0;
        } else if (op->atom == DW_OP_bregx) {
            stack[depth++] = (op->number == pc_column ? pc : register_at((unsigned)op->number)) +
                             op->number2;
        } else if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
            stack[depth++] = register_at(op->atom - DW_OP_reg0);
            is_value = true;
        } else if (op->atom == DW_OP_regx) {
            stack[depth++] = register_at((unsigned)op->number);
            is_value = true;
        } else if (op->atom == DW_OP_call_frame_cfa) {
            stack[depth++] = cfa;
        } else if (op->atom == DW_OP_stack_value) {
            is_value = true;
        } else if (depth >= 1 && op->atom == DW_OP_deref) {
            stack[depth - 1] = memory_at(stack[depth - 1]);
        } else if (depth >= 1 && op->atom == DW_OP_plus_uconst) {
            stack[depth - 1] += op->number;
        } else if (depth >= 2) {
            uint64_t b = stack[--depth], *a = &stack[depth - 1];
            switch (op->atom) {
            case DW_OP_plus:
                *a += b;
                break;
            case DW_OP_and:
                *a &= b;
                break;
            case DW_OP_shl:
                *a <<= b & 63;
                break;
            case DW_OP_ge:
                *a = (int64_t)*a >= (int64_t)b;
                break;
            default:
                return NOT_COMPARED;
            }
        } else {
            return NOT_COMPARED;
        }
    }
    if (depth == 0)
        return NOT_COMPARED;
    *ret = is_value ? stack[depth - 1] : memory_at(stack[depth - 1]);
    return VALUE;
}

static enum meaning our_cfa(const struct unwind_rules *rules, uint64_t pc, uint64_t *ret)
{
    uint64_t base = register_at(rules->cfa_base) + (uint64_t)(int64_t)rules->cfa_offset;
    switch (rules->cfa) {
    case UNWIND_CFA_REGISTER:
        *ret = base;
        return VALUE;
    case UNWIND_CFA_DEREF:
        *ret = memory_at(base) + (uint64_t)(int64_t)rules->cfa_offset2;
        return VALUE;
    case UNWIND_CFA_PLT:
        *ret = base + ((int32_t)(pc & 15) >= rules->cfa_offset2 ? 8 : 0);
        return VALUE;
    default:
        return NOT_COMPARED;
    }
}

static enum meaning our_place(unsigned place, unsigned base, int32_t offset, uint64_t cfa,
                              uint64_t *ret)
{
    uint64_t wide = (uint64_t)(int64_t)offset;
    switch (place) {
    case UNWIND_UNDEFINED:
        return LOST;
    case UNWIND_SAME:
        return KEPT;
    case UNWIND_AT_CFA:
        *ret = memory_at(cfa + wide);
        return VALUE;
    case UNWIND_CFA_PLUS:
        *ret = cfa + wide;
        return VALUE;
    case UNWIND_IN_REGISTER:
        *ret = register_at(base);
        return VALUE;
    case UNWIND_AT_REGISTER:
        *ret = memory_at(register_at(base) + wide);
        return VALUE;
    default:
        return NOT_COMPARED;
    }
}

struct comparison {
    const struct unwind_image *image;
    const struct unwind_machine_info *info;
    unsigned ra_column;
    size_t compared;
    size_t wrong;
};

static void disagree(struct comparison *comparison, uint64_t vaddr, const char *what)
{
    if (comparison->wrong++ < 10)
        print_message("# at %#llx: %s\n", (unsigned long long)vaddr, what);
}

static enum meaning their_register(Dwarf_Frame *frame, unsigned number, uint64_t cfa, uint64_t pc,
                                   unsigned pc_column, uint64_t *ret)
{
    Dwarf_Op memory[3], *ops = NULL;
    size_t count = 0;
    if (dwarf_frame_register(frame, (int)number, memory, &ops, &count) < 0)
        return NOT_COMPARED;
    if (count == 0)
        return ops == NULL ? KEPT : LOST;
    return evaluate(ops, count, cfa, pc, pc_column, ret);
}

static void compare_registers(struct comparison *comparison, Dwarf_Frame *frame, uint64_t vaddr,
                              const struct unwind_rules *rules, uint64_t cfa)
{
    const struct unwind_machine_info *info = comparison->info;
    uint64_t ours = 0, theirs = 0;
    enum meaning we = our_place(rules->ra, rules->ra_base, rules->ra_offset, cfa, &ours);
    enum meaning they = their_register(frame, comparison->ra_column, cfa, vaddr,
                                       comparison->ra_column, &theirs);
    if (we != NOT_COMPARED && they != NOT_COMPARED &&
        (we != they || (we == VALUE && ours != theirs)))
        disagree(comparison, vaddr, "return address");
    for (unsigned number = 0; number < info->registers; number++) {
        if (!(info->callee_saved >> number & 1))
            continue;
        we = KEPT;
        for (unsigned i = 0; i < rules->saves_count; i++) {
            const struct unwind_save *save = &comparison->image->rows.saves[rules->saves_first + i];
            if (save->target == number)
                we = our_place(save->place, save->base, save->offset, cfa, &ours);
        }
        they = their_register(frame, number, cfa, vaddr, comparison->ra_column, &theirs);
        /* elfutils forgets rbx among what x86_64's calls keep. */
        if (info->elf_machine == EM_X86_64 && number == 3 && we == KEPT && they == LOST)
            continue;
        if (we != NOT_COMPARED && they != NOT_COMPARED &&
            (we != they || (we == VALUE && ours != theirs)))
            disagree(comparison, vaddr, number == info->fp ? "frame pointer" : "saved register");
    }
}

static void compare_row(struct comparison *comparison, Dwarf_CFI *cfi, uint64_t vaddr,
                        uint32_t number)
{
    Dwarf_Frame *frame = NULL;
    if (dwarf_cfi_addrframe(cfi, vaddr, &frame) != 0)
        return; /* .debug_frame's or a stub's: not in this table */
    const struct unwind_rules *rules = &comparison->image->rows.rules[number];
    bool signal = false;
    Dwarf_Op *ops = NULL;
    size_t count = 0;
    uint64_t ours = 0, theirs = 0;
    int column = dwarf_frame_info(frame, NULL, NULL, &signal);
    comparison->ra_column = (unsigned)column;
    if (signal != !!(rules->flags & UNWIND_RULES_SIGNAL))
        disagree(comparison, vaddr, "signal frame");
    if (dwarf_frame_cfa(frame, &ops, &count) == 0) {
        enum meaning they = evaluate(ops, count, 0, vaddr, (unsigned)column, &theirs);
        enum meaning we = our_cfa(rules, vaddr, &ours);
        /* libdw gives the address of the frame, not what lies there. */
        if (they == VALUE && we == VALUE && theirs != memory_at(ours) && theirs != ours)
            disagree(comparison, vaddr, "CFA");
        if (we == VALUE && they == VALUE) {
            compare_registers(comparison, frame, vaddr, rules, ours);
            comparison->compared++;
        }
    }
    free(frame);
}

/* How many rows were compared. */
static size_t compare_image(const char *path)
{
    struct unwind_image *image = NULL;
    struct why why = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (unwind_image_load(fd, NULL, &image, &why) < 0)
        fail_msg("%s: %s", path, why.what);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
    assert_non_null(cfi);
    struct comparison comparison = {.image = image, .info = unwind_machine_info(image->machine)};
    const struct unwind_rows *rows = &image->rows;
    size_t step = 1 + rows->count / COMPARED_MAX;
    for (size_t i = 0; i < rows->count; i += step)
        if (rows->rule_of[i] != UNWIND_RULES_NONE)
            compare_row(&comparison, cfi, rows->base + rows->starts[i], rows->rule_of[i]);
    /* And nothing that they know is a gap to us: every 61st byte of code. */
    for (uint64_t offset = 0; offset < rows->starts[rows->count - 1]; offset += 61 * step) {
        Dwarf_Frame *frame = NULL;
        if (unwind_rows_find(rows, rows->base + offset) == UNWIND_RULES_NONE &&
            dwarf_cfi_addrframe(cfi, rows->base + offset, &frame) == 0)
            disagree(&comparison, rows->base + offset, "a gap to us only");
        free(frame);
    }
    print_message("# %s: %zu rows, %zu rule sets, %zu compared, %zu differ\n", path, rows->count,
                  rows->rules_count, comparison.compared, comparison.wrong);
    dwarf_cfi_end(cfi);
    elf_end(elf);
    close(fd);
    unwind_image_free(image);
    assert_int_equal(comparison.wrong, 0);
    return comparison.compared;
}

static void compare_all(const char *const *patterns, size_t count)
{
    size_t compared = 0;
    for (size_t i = 0; i < count; i++) {
        glob_t found;
        if (glob(patterns[i], 0, NULL, &found) == 0) {
            for (size_t j = 0; j < found.gl_pathc; j++)
                compared += compare_image(found.gl_pathv[j]);
            globfree(&found);
        }
    }
    if (compared == 0) {
        skip("none of these libraries is here");
    }
    assert_true(compared > 1000);
}

static void rules_of_x86_64_libraries_agree_with_elfutils(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib64/ld-linux-x86-64.so.2",
        "/usr/lib/x86_64-linux-gnu/libm.so.6",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/bin/python3",
        "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
        "/usr/lib/gcc/x86_64-linux-gnu/*/cc1",
        "/proc/self/exe",
    };
    compare_all(patterns, ARRAY_SIZE(patterns));
}

static void rules_of_aarch64_libraries_agree_with_elfutils(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "/usr/aarch64-linux-gnu/lib/libc.so.6", "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1",
        "/usr/aarch64-linux-gnu/lib/libm.so.6", "/usr/aarch64-linux-gnu/lib/libgcc_s.so.1",
        "/lib/aarch64-linux-gnu/libc.so.6",
    };
    compare_all(patterns, ARRAY_SIZE(patterns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_x86_64_libraries_agree_with_elfutils),
        cmocka_unit_test(rules_of_aarch64_libraries_agree_with_elfutils),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
