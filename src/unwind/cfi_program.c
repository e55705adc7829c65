/* The call frame instructions of one function, run once to rows. */
#include "unwind/cfi.h"

#include <errno.h>
#include <string.h>

enum { REMEMBERED_MAX = 16 };

struct run {
    struct cfi *cfi;
    const struct cfi_cie *cie;
    struct cfi_bytes bytes;
    const struct cfi_function *function; /* NULL: a CIE */
    const struct cfi_state *initial;     /* NULL: a CIE */
    struct cfi_state *state;
    uint64_t at; /* the current place, as an offset from the image's base */
    struct cfi_state *remembered;
    unsigned depth;
    int error;
};

static void refuse(struct run *run)
{
    if (run->error == 0)
        run->error = -EBADMSG;
}

/* The rules so far hold from `run->at` up to `next`; only what lies in the function's
 * (possibly cut) range becomes a row. */
static void advance(struct run *run, uint64_t next)
{
    const struct cfi_function *function = run->function;
    if (!function || next < run->at) {
        refuse(run);
        return;
    }
    uint64_t from = MAX(run->at, function->start), to = MIN(next, function->end);
    run->at = next;
    if (from >= to)
        return;
    uint32_t rules = UNWIND_RULES_NONE;
    int r = 0;
    if (run->state->cfa != UNWIND_CFA_NONE)
        r = rows_builder_rules(run->cfi->builder, run->state, run->cie->ra_column, run->cie->flags,
                               &rules);
    if (r == 0)
        r = rows_builder_add(run->cfi->builder, (uint32_t)from, rules);
    if (r < 0)
        run->error = r;
}

static void advance_by(struct run *run, uint64_t delta)
{
    uint64_t distance;
    if (__builtin_mul_overflow(delta, run->cie->code_align, &distance) || distance > UINT32_MAX)
        refuse(run);
    else
        advance(run, run->at + distance);
}

static int32_t factored(struct run *run, int64_t value)
{
    int64_t offset;
    if (__builtin_mul_overflow(value, run->cie->data_align, &offset) ||
        offset != (int64_t)(int32_t)offset) {
        refuse(run);
        return 0;
    }
    return (int32_t)offset;
}

static int32_t plain(struct run *run, uint64_t value)
{
    if (value > INT32_MAX)
        refuse(run);
    return (int32_t)value;
}

static void set_column(struct run *run, uint64_t column, enum unwind_place place, int32_t offset,
                       uint64_t base)
{
    if (column >= CFI_COLUMNS) /* vector registers and the like: never needed for a walk */
        return;
    struct cfi_state *state = run->state;
    state->columns[column] = (struct unwind_save){offset, (uint8_t)column, (uint8_t)place,
                                                  (uint8_t)base, 0};
    state->set |= UINT64_C(1) << column;
    state->list = LIST_NONE;
}

static void restore_column(struct run *run, uint64_t column)
{
    if (!run->initial) {
        refuse(run);
        return;
    }
    if (column >= CFI_COLUMNS)
        return;
    uint64_t bit = UINT64_C(1) << column;
    run->state->columns[column] = run->initial->columns[column];
    run->state->set = (run->state->set & ~bit) | (run->initial->set & bit);
    run->state->list = LIST_NONE;
}

static void set_cfa(struct run *run, uint64_t base, int32_t offset)
{
    if (base >= run->cfi->builder->info->registers) {
        refuse(run);
        return;
    }
    run->state->cfa = UNWIND_CFA_REGISTER;
    run->state->cfa_base = (uint8_t)base;
    run->state->cfa_offset = offset;
    run->state->cfa_offset2 = 0;
}

static void change_cfa(struct run *run, uint64_t base, int32_t offset)
{
    if (run->state->cfa != UNWIND_CFA_REGISTER)
        refuse(run);
    else
        set_cfa(run, base, offset);
}

static struct cfi_bytes block(struct run *run)
{
    uint64_t len = cfi_uleb(&run->bytes);
    struct cfi_bytes inside = {run->bytes.at, run->bytes.at, false};
    if (len > (uint64_t)(run->bytes.end - run->bytes.at)) {
        refuse(run);
        return inside;
    }
    inside.end += len;
    run->bytes.at += len;
    return inside;
}

/* "register + offset" at the front of an expression; false if it is something else. */
static bool based(struct run *run, struct cfi_bytes *bytes, uint8_t *ret_base, int32_t *ret_offset)
{
    if (bytes->at == bytes->end || *bytes->at < 0x70 || *bytes->at > 0x8f)
        return false;
    uint8_t base = (uint8_t)(*bytes->at++ - 0x70);
    int64_t offset = cfi_sleb(bytes);
    if (bytes->bad || base >= run->cfi->builder->info->registers || offset < INT32_MIN / 2 ||
        offset > INT32_MAX / 2)
        return false;
    *ret_base = base;
    *ret_offset = (int32_t)offset;
    return true;
}

/* gcc's realigned stacks and the linker's call stubs are rules; the rest is kept as it is. */
static void set_cfa_expression(struct run *run)
{
    /* sp + 8, and 8 more once the stub has pushed: breg7 8, breg16 0, lit15, and, lit N, ge,
     * lit3, shl, plus. */
    static const uint8_t plt[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
    enum { PLT_LIT = 6 };
    struct cfi_bytes whole = block(run), bytes = whole;
    struct cfi_state *state = run->state;
    uint8_t base;
    int32_t offset;
    if (run->error < 0)
        return;
    if (run->cfi->builder->info->sp == 7 && whole.end - whole.at == sizeof(plt) &&
        memcmp(whole.at, plt, PLT_LIT) == 0 && whole.at[PLT_LIT] >= 0x30 &&
        whole.at[PLT_LIT] <= 0x3f &&
        memcmp(whole.at + PLT_LIT + 1, plt + PLT_LIT + 1, sizeof(plt) - PLT_LIT - 1) == 0) {
        state->cfa = UNWIND_CFA_PLT;
        state->cfa_base = 7;
        state->cfa_offset = 8;
        state->cfa_offset2 = whole.at[PLT_LIT] - 0x30;
        return;
    }
    if (based(run, &bytes, &base, &offset)) {
        bool deref = bytes.at < bytes.end && *bytes.at == 0x06;
        bytes.at += deref;
        uint64_t more = 0;
        if (bytes.at < bytes.end && *bytes.at == 0x23) {
            bytes.at++;
            more = cfi_uleb(&bytes);
        }
        if (!bytes.bad && bytes.at == bytes.end && more <= INT32_MAX / 2) {
            state->cfa = deref ? UNWIND_CFA_DEREF : UNWIND_CFA_REGISTER;
            state->cfa_base = base;
            state->cfa_offset = deref ? offset : offset + (int32_t)more;
            state->cfa_offset2 = deref ? (int32_t)more : 0;
            return;
        }
    }
    int r = rows_builder_expression(run->cfi->builder, whole.at, (size_t)(whole.end - whole.at),
                                    &offset);
    if (r < 0) {
        run->error = r == -EFBIG ? -EBADMSG : r;
        return;
    }
    state->cfa = UNWIND_CFA_EXPRESSION;
    state->cfa_base = 0;
    state->cfa_offset = offset;
    state->cfa_offset2 = 0;
}

static void set_expression(struct run *run, bool value)
{
    uint64_t column = cfi_uleb(&run->bytes);
    struct cfi_bytes whole = block(run), bytes = whole;
    uint8_t base;
    int32_t offset;
    if (run->error < 0 || column >= CFI_COLUMNS)
        return;
    if (!value && based(run, &bytes, &base, &offset) && bytes.at == bytes.end) {
        set_column(run, column, UNWIND_AT_REGISTER, offset, base);
        return;
    }
    int r = rows_builder_expression(run->cfi->builder, whole.at, (size_t)(whole.end - whole.at),
                                    &offset);
    if (r < 0)
        run->error = r == -EFBIG ? -EBADMSG : r;
    else
        set_column(run, column, value ? UNWIND_VAL_EXPRESSION : UNWIND_AT_EXPRESSION, offset, 0);
}

static void remember(struct run *run)
{
    if (run->depth < REMEMBERED_MAX && run->remembered)
        run->remembered[run->depth++] = *run->state;
    else
        refuse(run);
}

static void recall(struct run *run)
{
    if (run->depth > 0)
        *run->state = run->remembered[--run->depth];
    else
        refuse(run);
}

static void in_register(struct run *run, uint64_t column)
{
    uint64_t base = cfi_uleb(&run->bytes);
    if (base >= run->cfi->builder->info->registers) /* a vector register: lost to us */
        set_column(run, column, UNWIND_UNDEFINED, 0, 0);
    else
        set_column(run, column, UNWIND_IN_REGISTER, 0, base);
}

static void jump_to(struct run *run)
{
    const struct cfi_section *section = &run->cfi->sections[run->cie->section];
    uint64_t vaddr = section->vaddr + (uint64_t)(run->bytes.at - section->data);
    uint64_t to = cfi_pointer(&run->bytes, run->cie->encoding, vaddr, section->got);
    uint64_t offset = to - run->cfi->builder->base;
    if (run->bytes.bad || offset > UINT32_MAX)
        refuse(run);
    else
        advance(run, offset);
}

/* Places and registers; false if `op` is none of these. */
static bool register_instruction(struct run *run, uint8_t op)
{
    struct cfi_bytes *bytes = &run->bytes;
    uint64_t column;
    switch (op) {
    case 0x05: /* offset_extended */
        column = cfi_uleb(bytes);
        set_column(run, column, UNWIND_AT_CFA, factored(run, (int64_t)cfi_uleb(bytes)), 0);
        return true;
    case 0x06: /* restore_extended */
        restore_column(run, cfi_uleb(bytes));
        return true;
    case 0x07: /* undefined */
        set_column(run, cfi_uleb(bytes), UNWIND_UNDEFINED, 0, 0);
        return true;
    case 0x08: /* same_value */
        set_column(run, cfi_uleb(bytes), UNWIND_SAME, 0, 0);
        return true;
    case 0x09: /* register */
        in_register(run, cfi_uleb(bytes));
        return true;
    case 0x10: /* expression */
        set_expression(run, false);
        return true;
    case 0x11: /* offset_extended_sf */
        column = cfi_uleb(bytes);
        set_column(run, column, UNWIND_AT_CFA, factored(run, cfi_sleb(bytes)), 0);
        return true;
    case 0x14: /* val_offset */
        column = cfi_uleb(bytes);
        set_column(run, column, UNWIND_CFA_PLUS, factored(run, (int64_t)cfi_uleb(bytes)), 0);
        return true;
    case 0x15: /* val_offset_sf */
        column = cfi_uleb(bytes);
        set_column(run, column, UNWIND_CFA_PLUS, factored(run, cfi_sleb(bytes)), 0);
        return true;
    case 0x16: /* val_expression */
        set_expression(run, true);
        return true;
    case 0x2f: /* GNU_negative_offset_extended */
        column = cfi_uleb(bytes);
        set_column(run, column, UNWIND_AT_CFA, factored(run, -(int64_t)cfi_uleb(bytes)), 0);
        return true;
    default:
        return false;
    }
}

static void instruction(struct run *run, uint8_t op)
{
    struct cfi_bytes *bytes = &run->bytes;
    uint64_t base;
    switch (op) {
    case 0x00: /* nop */
        break;
    case 0x01: /* set_loc */
        jump_to(run);
        break;
    case 0x02: /* advance_loc1 */
        advance_by(run, cfi_fixed(bytes, 1));
        break;
    case 0x03: /* advance_loc2 */
        advance_by(run, cfi_fixed(bytes, 2));
        break;
    case 0x04: /* advance_loc4 */
        advance_by(run, cfi_fixed(bytes, 4));
        break;
    case 0x1d: /* MIPS_advance_loc8 */
        advance_by(run, cfi_fixed(bytes, 8));
        break;
    case 0x0a:
        remember(run);
        break;
    case 0x0b:
        recall(run);
        break;
    case 0x0c: /* def_cfa */
        base = cfi_uleb(bytes);
        set_cfa(run, base, plain(run, cfi_uleb(bytes)));
        break;
    case 0x0d: /* def_cfa_register */
        change_cfa(run, cfi_uleb(bytes), run->state->cfa_offset);
        break;
    case 0x0e: /* def_cfa_offset */
        change_cfa(run, run->state->cfa_base, plain(run, cfi_uleb(bytes)));
        break;
    case 0x0f: /* def_cfa_expression */
        set_cfa_expression(run);
        break;
    case 0x12: /* def_cfa_sf */
        base = cfi_uleb(bytes);
        set_cfa(run, base, factored(run, cfi_sleb(bytes)));
        break;
    case 0x13: /* def_cfa_offset_sf */
        change_cfa(run, run->state->cfa_base, factored(run, cfi_sleb(bytes)));
        break;
    case 0x2d: /* AARCH64_negate_ra_state: signatures are stripped anyway */
        break;
    case 0x2e: /* GNU_args_size */
        cfi_uleb(bytes);
        break;
    default:
        if (!register_instruction(run, op))
            refuse(run);
    }
}

int cfi_run(struct cfi *cfi, const struct cfi_cie *cie, struct cfi_bytes program,
            const struct cfi_function *function, const struct cfi_state *initial,
            struct cfi_state *state)
{
    struct cfi_state remembered[REMEMBERED_MAX];
    struct run run = {.cfi = cfi,
                      .cie = cie,
                      .bytes = program,
                      .function = function,
                      .initial = initial,
                      .state = state,
                      .at = function ? function->origin : 0,
                      .remembered = function ? remembered : NULL};
    while (run.bytes.at < run.bytes.end && run.error == 0 && !run.bytes.bad) {
        uint8_t op = *run.bytes.at++;
        uint8_t low = op & 0x3f;
        switch (op >> 6) {
        case 1:
            advance_by(&run, low);
            break;
        case 2: /* offset */
            set_column(&run, low, UNWIND_AT_CFA, factored(&run, (int64_t)cfi_uleb(&run.bytes)), 0);
            break;
        case 3:
            restore_column(&run, low);
            break;
        default:
            instruction(&run, low);
        }
    }
    if (run.bytes.bad)
        refuse(&run);
    if (!function)
        return run.error;
    if (run.error == 0 && run.at < function->end)
        advance(&run, function->end);
    /* What the rest of the function does, nobody knows. */
    uint64_t from = MAX(run.at, function->start);
    if (run.error == -EBADMSG && from < function->end) {
        int r = rows_builder_add(cfi->builder, (uint32_t)from, UNWIND_RULES_NONE);
        run.error = r < 0 ? r : run.error;
    }
    return run.error;
}
