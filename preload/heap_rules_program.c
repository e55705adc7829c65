/* Programs of .eh_frame, run up to one pc, in the process that they describe: their bytes are
 * trusted to be mapped, not to make sense. */
#include "heap_walk.h"

#include "unwind/leb.h"

uint64_t heap_read_fixed(struct heap_program *program, unsigned size)
{
    if ((size_t)(program->end - program->at) < size) {
        program->bad = true;
        program->at = program->end;
        return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)program->at[i] << 8 * i;
    program->at += size;
    return value;
}

static uint64_t read_leb(struct heap_program *program, bool is_signed)
{
    uint64_t value = 0;
    if (!unwind_leb(&program->at, program->end, is_signed, &value))
        program->bad = true;
    return value;
}

uint64_t heap_read_uleb(struct heap_program *program)
{
    return read_leb(program, false);
}

int64_t heap_read_sleb(struct heap_program *program)
{
    return (int64_t)read_leb(program, true);
}

static void set(struct heap_program *program, uint64_t number, enum heap_column_how how,
                int64_t value)
{
    if (number < HEAP_REGS)
        program->now.column[number] = (struct heap_column){.how = how, .value = value};
}

static void set_factored(struct heap_program *program, uint64_t number, int64_t value)
{
    set(program, number, HEAP_AT_CFA, value * program->data_align);
}

static void restore(struct heap_program *program, uint64_t number)
{
    if (number < HEAP_REGS)
        program->now.column[number] = program->initial.column[number];
}

/* The address of an expression's length; goes on behind it. */
static int64_t skip_expression(struct heap_program *program)
{
    int64_t at = (int64_t)program->at;
    uint64_t len = heap_read_uleb(program);
    if (len > (uint64_t)(program->end - program->at))
        program->bad = true;
    else
        program->at += len;
    return at;
}

static void define_cfa(struct heap_program *program, uint64_t number, int64_t offset)
{
    program->now.cfa_register = number < HEAP_REGS ? (uint32_t)number : HEAP_REGS;
    program->now.cfa_offset = offset;
    program->now.cfa_is_expression = false;
}

static void remember(struct heap_program *program)
{
    if (program->remembered_count == HEAP_REMEMBERED_MAX)
        program->bad = true;
    else
        program->remembered[program->remembered_count++] = program->now;
}

static void recall(struct heap_program *program)
{
    if (program->remembered_count == 0)
        program->bad = true;
    else
        program->now = program->remembered[--program->remembered_count];
}

static void advance(struct heap_program *program, uint64_t distance)
{
    program->pc += distance * program->code_align;
}

/* Those that define where a register is. */
static void column_instruction(struct heap_program *program, uint8_t op)
{
    uint64_t number = heap_read_uleb(program);
    switch (op) {
    case 0x05: /* offset_extended */
        set_factored(program, number, (int64_t)heap_read_uleb(program));
        break;
    case 0x06: /* restore_extended */
        restore(program, number);
        break;
    case 0x07: /* undefined */
        set(program, number, HEAP_UNDEFINED, 0);
        break;
    case 0x08: /* same_value */
        set(program, number, HEAP_SAME, 0);
        break;
    case 0x09: /* register: another one has it */
        heap_read_uleb(program);
        set(program, number, HEAP_LOST, 0);
        break;
    case 0x10: /* expression */
        set(program, number, HEAP_AT_EXPRESSION, skip_expression(program));
        break;
    case 0x11: /* offset_extended_sf */
        set_factored(program, number, heap_read_sleb(program));
        break;
    case 0x14: /* val_offset */
        heap_read_uleb(program);
        set(program, number, HEAP_LOST, 0);
        break;
    case 0x15: /* val_offset_sf */
        heap_read_sleb(program);
        set(program, number, HEAP_LOST, 0);
        break;
    case 0x16: /* val_expression */
        skip_expression(program);
        set(program, number, HEAP_LOST, 0);
        break;
    case 0x2f: /* GNU_negative_offset_extended */
        set_factored(program, number, -(int64_t)heap_read_uleb(program));
        break;
    default:
        program->bad = true;
    }
}

static void cfa_instruction(struct heap_program *program, uint8_t op)
{
    uint64_t number;
    switch (op) {
    case 0x0c: /* def_cfa */
        number = heap_read_uleb(program);
        define_cfa(program, number, (int64_t)heap_read_uleb(program));
        break;
    case 0x0d: /* def_cfa_register */
        define_cfa(program, heap_read_uleb(program), program->now.cfa_offset);
        break;
    case 0x0e: /* def_cfa_offset */
        program->now.cfa_offset = (int64_t)heap_read_uleb(program);
        break;
    case 0x0f: /* def_cfa_expression */
        program->now.cfa_offset = skip_expression(program);
        program->now.cfa_is_expression = true;
        break;
    case 0x12: /* def_cfa_sf */
        number = heap_read_uleb(program);
        define_cfa(program, number, heap_read_sleb(program) * program->data_align);
        break;
    default: /* 0x13: def_cfa_offset_sf */
        program->now.cfa_offset = heap_read_sleb(program) * program->data_align;
    }
}

static void instruction(struct heap_program *program, uint8_t op)
{
    switch (op) {
    case 0x00: /* nop */
    case 0x2d: /* AArch64's negate_ra_state: signatures are taken off anyway */
        break;
    case 0x01: /* set_loc: no compiler makes it */
        program->bad = true;
        break;
    case 0x02 ... 0x04: /* advance_loc1, 2, 4 */
        advance(program, heap_read_fixed(program, 1u << (op - 2)));
        break;
    case 0x0a:
        remember(program);
        break;
    case 0x0b:
        recall(program);
        break;
    case 0x0c ... 0x0f:
    case 0x12:
    case 0x13:
        cfa_instruction(program, op);
        break;
    case 0x2e: /* GNU_args_size */
        heap_read_uleb(program);
        break;
    default:
        column_instruction(program, op);
    }
}

void heap_program_run(struct heap_program *program)
{
    while (program->at < program->end && !program->bad && program->pc <= program->stop) {
        uint8_t op = *program->at++;
        uint8_t low = op & 0x3f;
        if (op >> 6 == 1)
            advance(program, low);
        else if (op >> 6 == 2)
            set_factored(program, low, (int64_t)heap_read_uleb(program));
        else if (op >> 6 == 3)
            restore(program, low);
        else
            instruction(program, low);
    }
}

/* ---- what fits a word ---- */

/* -1: it does not fit. */
static int64_t field(int64_t value, unsigned bits)
{
    int64_t half = INT64_C(1) << (bits - 1), words = value >> 3;
    if (value & 7 || words < -half || words >= half)
        return -1;
    return words & ((half << 1) - 1);
}

/* An expression's bytes behind its length. */
static const uint8_t *expression(int64_t at, const uint8_t **ret_end)
{
    const uint8_t *bytes = (const uint8_t *)at; // NOLINT(performance-no-int-to-ptr)
    uint64_t len = 0;
    if (!unwind_leb(&bytes, bytes + 10, false, &len) || len > 64)
        len = 0;
    *ret_end = bytes + len;
    return bytes;
}

/* What the linker writes for its stubs: sp + 8, and 8 more from a stub's 11th byte on. */
static bool is_stub(const uint8_t *at, const uint8_t *end)
{
    static const uint8_t stub[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
    for (size_t i = 0; i < sizeof(stub); i++)
        if (at + i >= end || at[i] != stub[i])
            return false;
    return at + sizeof(stub) == end;
}

/* breg(sp or fp) offset, deref, and perhaps plus_uconst. False: something else. */
static bool dereference(const uint8_t *at, const uint8_t *end, unsigned *ret_register,
                        int64_t *ret_offset, int64_t *ret_more)
{
    uint64_t offset = 0, more = 0;
    if (at >= end || (*at != 0x70 + HEAP_REG_FP && *at != 0x70 + HEAP_REG_SP))
        return false;
    *ret_register = *at++ - 0x70u;
    if (!unwind_leb(&at, end, true, &offset) || at >= end || *at++ != 0x06)
        return false;
    if (at < end && (*at++ != 0x23 || !unwind_leb(&at, end, false, &more)))
        return false;
    *ret_offset = (int64_t)offset;
    *ret_more = (int64_t)more;
    return at == end;
}

/* Kind and CFA; 0: it does not fit. */
static heap_rule cfa_expression_rule(const struct heap_program *program)
{
    const uint8_t *end, *at = expression(program->now.cfa_offset, &end);
    if (is_stub(at, end))
        return HEAP_RULE_SP | (program->stop % 16 >= 11 ? UINT64_C(2) : 1) << 40;
    unsigned base;
    int64_t offset, more;
    if (!dereference(at, end, &base, &offset, &more))
        return 0;
    int64_t low = field(offset, 14), high = field(more, 10);
    if (low < 0 || high < 0)
        return 0;
    return (uint64_t)(high << 14 | low) << 40 |
           (base == HEAP_REG_SP ? HEAP_RULE_DEREF_SP : HEAP_RULE_DEREF_FP);
}

static heap_rule cfa_rule(const struct heap_program *program)
{
    if (program->now.cfa_is_expression)
        return cfa_expression_rule(program);
    int64_t cfa = field(program->now.cfa_offset, 24);
    unsigned base = program->now.cfa_register;
    if (cfa < 0 || (base != HEAP_REG_SP && base != HEAP_REG_FP))
        return 0;
    /* By sp a frame cannot end below where it stands. */
    if (base == HEAP_REG_SP && program->now.cfa_offset < 0)
        return 0;
    return (uint64_t)cfa << 40 | (base == HEAP_REG_SP ? HEAP_RULE_SP : HEAP_RULE_FP);
}

/* The saved frame pointer's place; false: it does not fit. */
static bool fp_rule(const struct heap_program *program, heap_rule *rule)
{
    const struct heap_column *column = &program->now.column[HEAP_REG_FP];
    int64_t offset = 0, base = 0;
    if (column->how == HEAP_AT_CFA && column->value < 0) {
        offset = field(column->value, 18);
    } else if (column->how == HEAP_AT_EXPRESSION) {
        const uint8_t *end, *at = expression(column->value, &end);
        uint64_t value = 0;
        if (at >= end || *at++ != 0x70 + HEAP_REG_FP || !unwind_leb(&at, end, true, &value) ||
            at != end)
            return false;
        /* Realigned: it is saved where fp points. Steps by sp or fp know nothing of that. */
        offset = field((int64_t)value, 18);
        base = HEAP_RULE_FP_BY_FP;
        if (heap_rule_kind(*rule) <= HEAP_RULE_FP)
            return false;
    } else if (column->how != HEAP_SAME && column->how != HEAP_UNDEFINED) {
        return false;
    }
    *rule |= (uint64_t)offset << 4 | (uint64_t)base;
    return offset >= 0;
}

heap_rule heap_program_rule(const struct heap_program *program)
{
    const struct heap_column *ra = &program->now.column[HEAP_REG_RA];
    if (program->now.is_signal)
        return HEAP_RULE_SIGNAL;
    if (ra->how == HEAP_UNDEFINED)
        return HEAP_RULE_ROOT;
    heap_rule rule = cfa_rule(program);
    if (rule == 0 || !fp_rule(program, &rule))
        return HEAP_RULE_OTHER;
#if defined(__x86_64__)
    bool fits = ra->how == HEAP_AT_CFA && ra->value == -8;
#else
    int64_t offset = ra->how == HEAP_SAME ? 0 : field(ra->value, 18);
    bool fits = offset >= 0 && (ra->how == HEAP_SAME || (ra->how == HEAP_AT_CFA && ra->value < 0));
    rule |= fits ? (uint64_t)offset << 22 : 0;
#endif
    return fits ? rule : HEAP_RULE_OTHER;
}
