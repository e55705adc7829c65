/* A stack machine for the few expressions that compilers put into unwind tables
 * and that rows do not cover as plain rules. */
#include "unwind/expression.h"
#include "unwind/leb.h"

#include <string.h>

enum { STACK_MAX = 32, STEPS_MAX = 512 };

/* A slot this far above the sample's stack pointer is no matter of a larger slice. */
#define REACH_MAX (UINT64_C(256) << 20)

enum unwind_end unwind_slice_read(const struct unwind_slice *slice, uint64_t address, uint64_t *ret)
{
    uint64_t offset = address - slice->address;
    if (__builtin_expect(slice->len >= 8 && offset <= slice->len - 8, 1)) {
        memcpy(ret, slice->bytes + offset, 8);
        return UNWIND_ROOT;
    }
    for (size_t i = 0; i < slice->more_count; i++) {
        const struct unwind_slice *part = &slice->more[i];
        if (part->len >= 8 && address - part->address <= part->len - 8) {
            memcpy(ret, part->bytes + (address - part->address), 8);
            return UNWIND_ROOT;
        }
    }
    return address < slice->address || offset > REACH_MAX ? UNWIND_UNREADABLE : UNWIND_TRUNCATED;
}

struct machine {
    const uint8_t *at;
    const uint8_t *begin;
    const uint8_t *end;
    const struct unwind_reader *reader;
    uint64_t stack[STACK_MAX];
    unsigned depth;
    enum unwind_end fault; /* the first thing that went wrong; UNWIND_ROOT: nothing */
};

static void fault(struct machine *m, enum unwind_end end)
{
    if (m->fault == UNWIND_ROOT)
        m->fault = end;
}

static void push(struct machine *m, uint64_t value)
{
    if (m->depth < STACK_MAX)
        m->stack[m->depth++] = value;
    else
        fault(m, UNWIND_EXPRESSION);
}

static uint64_t pop(struct machine *m)
{
    if (m->depth > 0)
        return m->stack[--m->depth];
    fault(m, UNWIND_EXPRESSION);
    return 0;
}

/* A value `index` below the top. */
static uint64_t peek(struct machine *m, unsigned index)
{
    if (index < m->depth)
        return m->stack[m->depth - 1 - index];
    fault(m, UNWIND_EXPRESSION);
    return 0;
}

static uint64_t fixed(struct machine *m, unsigned size, bool is_signed)
{
    if ((size_t)(m->end - m->at) < size) {
        fault(m, UNWIND_EXPRESSION);
        return 0;
    }
    uint64_t value = 0;
    memcpy(&value, m->at, size);
    m->at += size;
    if (is_signed && size < 8 && (value >> (8 * size - 1) & 1))
        value |= ~UINT64_C(0) << (8 * size);
    return value;
}

static uint64_t leb(struct machine *m, bool is_signed)
{
    uint64_t value;
    if (unwind_leb(&m->at, m->end, is_signed, &value))
        return value;
    fault(m, UNWIND_EXPRESSION);
    return 0;
}

static uint64_t register_value(struct machine *m, uint64_t number)
{
    const struct unwind_registers *registers = m->reader->registers;
    if (number == m->reader->pc_column)
        return registers->pc;
    if (number < UNWIND_REGISTERS && (registers->known >> number & 1))
        return registers->reg[number];
    fault(m, UNWIND_UNREADABLE);
    return 0;
}

static uint64_t load(struct machine *m, uint64_t address, unsigned size)
{
    uint64_t value = 0;
    const struct unwind_slice *slice = m->reader->slice;
    uint64_t offset = address - slice->address;
    if (size < 8 && slice->len >= size && offset <= slice->len - size)
        memcpy(&value, slice->bytes + offset, size);
    else
        fault(m, unwind_slice_read(slice, address, &value));
    return size < 8 ? value & ((UINT64_C(1) << 8 * size) - 1) : value;
}

/* Targets may lie anywhere inside, also before: the step count ends loops. */
static void jump(struct machine *m, bool taken)
{
    int64_t distance = (int64_t)fixed(m, 2, true);
    if (!taken)
        return;
    if (distance < m->begin - m->at || distance > m->end - m->at)
        fault(m, UNWIND_EXPRESSION);
    else
        m->at += distance;
}

static uint64_t divide(struct machine *m, uint64_t a, uint64_t b)
{
    if (b == 0 || ((int64_t)a == INT64_MIN && (int64_t)b == -1)) {
        fault(m, UNWIND_EXPRESSION);
        return 0;
    }
    return (uint64_t)((int64_t)a / (int64_t)b);
}

/* Two operands off the stack, one result; false if `op` is none of these. */
static bool binary(struct machine *m, uint8_t op)
{
    if ((op < 0x1a || op > 0x2e) || op == 0x1f || op == 0x20 || op == 0x23 || op == 0x28)
        return false;
    uint64_t b = pop(m), a = pop(m), shift = b < 64 ? b : 63;
    int64_t sa = (int64_t)a, sb = (int64_t)b;
    switch (op) {
    case 0x1a: /* and */
        push(m, a & b);
        break;
    case 0x1b: /* div */
        push(m, divide(m, a, b));
        break;
    case 0x1c: /* minus */
        push(m, a - b);
        break;
    case 0x1d: /* mod */
        push(m, b ? a % b : (fault(m, UNWIND_EXPRESSION), 0));
        break;
    case 0x1e: /* mul */
        push(m, a * b);
        break;
    case 0x21: /* or */
        push(m, a | b);
        break;
    case 0x22: /* plus */
        push(m, a + b);
        break;
    case 0x24: /* shl */
        push(m, b < 64 ? a << b : 0);
        break;
    case 0x25: /* shr */
        push(m, b < 64 ? a >> b : 0);
        break;
    case 0x26: /* shra */
        push(m, (uint64_t)(sa >> shift));
        break;
    case 0x27: /* xor */
        push(m, a ^ b);
        break;
    case 0x29: /* eq */
        push(m, a == b);
        break;
    case 0x2a: /* ge */
        push(m, sa >= sb);
        break;
    case 0x2b: /* gt */
        push(m, sa > sb);
        break;
    case 0x2c: /* le */
        push(m, sa <= sb);
        break;
    case 0x2d: /* lt */
        push(m, sa < sb);
        break;
    default: /* ne */
        push(m, a != b);
        break;
    }
    return true;
}

/* Constants and the stack's own operations; false if `op` is none of these. */
static bool constant_or_stack(struct machine *m, uint8_t op)
{
    uint64_t a, b, c;
    switch (op) {
    case 0x08 ... 0x0f: /* const1u, 1s, 2u, 2s, 4u, 4s, 8u, 8s */
        push(m, fixed(m, 1u << ((op - 0x08) / 2), op & 1));
        return true;
    case 0x10: /* constu */
        push(m, leb(m, false));
        return true;
    case 0x11: /* consts */
        push(m, leb(m, true));
        return true;
    case 0x12: /* dup */
        push(m, peek(m, 0));
        return true;
    case 0x13: /* drop */
        pop(m);
        return true;
    case 0x14: /* over */
        push(m, peek(m, 1));
        return true;
    case 0x15: /* pick */
        push(m, peek(m, (unsigned)fixed(m, 1, false)));
        return true;
    case 0x16: /* swap */
        a = pop(m), b = pop(m);
        push(m, a), push(m, b);
        return true;
    case 0x17: /* rot */
        a = pop(m), b = pop(m), c = pop(m);
        push(m, a), push(m, c), push(m, b);
        return true;
    case 0x30 ... 0x4f: /* lit0–lit31 */
        push(m, op - 0x30);
        return true;
    default:
        return false;
    }
}

static void step(struct machine *m)
{
    uint8_t op = *m->at++;
    if (constant_or_stack(m, op) || binary(m, op))
        return;
    uint64_t a;
    switch (op) {
    case 0x06: /* deref */
        push(m, load(m, pop(m), 8));
        break;
    case 0x94: /* deref_size */
        a = fixed(m, 1, false);
        push(m, a >= 1 && a <= 8 ? load(m, pop(m), (unsigned)a) : (fault(m, UNWIND_EXPRESSION), 0));
        break;
    case 0x19: /* abs */
        a = pop(m);
        push(m, (int64_t)a < 0 ? 0 - a : a);
        break;
    case 0x1f: /* neg */
        push(m, 0 - pop(m));
        break;
    case 0x20: /* not */
        push(m, ~pop(m));
        break;
    case 0x23: /* plus_uconst */
        a = pop(m);
        push(m, a + leb(m, false));
        break;
    case 0x28: /* bra */
        jump(m, pop(m) != 0);
        break;
    case 0x2f: /* skip */
        jump(m, true);
        break;
    case 0x70 ... 0x8f: /* breg0–breg31 */
        a = register_value(m, op - 0x70);
        push(m, a + leb(m, true));
        break;
    case 0x92: /* bregx */
        a = register_value(m, leb(m, false));
        push(m, a + leb(m, true));
        break;
    case 0x96: /* nop */
        break;
    default:
        fault(m, UNWIND_EXPRESSION);
    }
}

enum unwind_end unwind_expression(const uint8_t *bytes, size_t len,
                                  const struct unwind_reader *reader, const uint64_t *initial,
                                  uint64_t *ret)
{
    struct machine m;
    m.at = m.begin = bytes;
    m.end = bytes + len;
    m.reader = reader;
    m.depth = 0;
    m.fault = UNWIND_ROOT;
    if (initial)
        push(&m, *initial);
    for (unsigned steps = 0; m.at < m.end && m.fault == UNWIND_ROOT; steps++) {
        if (steps == STEPS_MAX)
            return UNWIND_EXPRESSION;
        step(&m);
    }
    uint64_t value = pop(&m);
    if (m.fault == UNWIND_ROOT)
        *ret = value;
    return m.fault;
}
