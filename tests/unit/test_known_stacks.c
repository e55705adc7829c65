/* Promises of collect/known_stacks.c, of the slots of kernel stacks and of the buckets that BPF
 * counts in: what the program in the kernel is told is the whole of what a walk hung on. */
#include "unit.h"

#include "collect/offcpu_kernel_parts.h"

#include <string.h>

static uint64_t code_one(void *context, uint64_t address)
{
    const uint64_t *moved = context; /* code at this address is another one now */
    return address == *moved ? 99 : address / 4096 + 1;
}

static uint64_t gone[64];
static size_t gone_count;

static void code_gone(void *context, uint64_t ref)
{
    (void)context;
    gone[gone_count++] = ref;
}

static uint64_t code_moved;
static const struct known_code code = {code_one, code_gone, &code_moved};

static struct known_stacks *open_known(void)
{
    struct known_stacks *known = NULL;
    assert_int_equal(known_stacks_open(-1, -1, &known), 0);
    gone_count = 0;
    code_moved = 0;
    return known;
}

enum { SP = 0x7ff0000 };

static void slot_add(struct unwind_trace *trace, uint64_t offset, uint64_t value)
{
    trace->slots[trace->count++] = (struct unwind_trace_slot){SP + offset, value};
}

static struct unwind_trace trace_of(uint64_t first, uint32_t count)
{
    struct unwind_trace trace = {.usable = true};
    for (uint32_t i = 0; i < count; i++)
        slot_add(&trace, 8 + 48 * i, first + i);
    return trace;
}

static uint64_t learn_at(struct known_stacks *known, uint32_t tgid, uint64_t ref,
                         const struct unwind_trace *trace)
{
    struct offcpu_known_key place = {.pc = 0x401000, .sp = SP, .kernel_tgid = tgid, .exec = 3};
    struct unwind_registers registers = {.pc = 0x401000, .known = 0xffff};
    for (unsigned i = 0; i < UNWIND_REGISTERS; i++)
        registers.reg[i] = 1000 + i;
    struct known_walk walk = {&place, &registers, trace, &code, ref, UNWIND_X86_64};
    uint64_t learnt = UINT64_MAX;
    assert_int_equal(known_stacks_learn(known, &walk, &learnt), 0);
    return learnt;
}

static uint64_t learn(struct known_stacks *known, uint64_t ref, const struct unwind_trace *trace)
{
    return learn_at(known, 7, ref, trace);
}

static const struct offcpu_known *get(const struct known_stacks *known, uint32_t alike)
{
    struct offcpu_known_key key = {
        .pc = 0x401000, .sp = SP, .kernel_tgid = 7, .exec = 3, .alike = alike};
    return known_stacks_get(known, &key);
}

static void all_that_a_walk_hung_on_is_told(void **state)
{
    (void)state;
    struct known_stacks *known = open_known();
    struct unwind_trace trace = {.usable = true, .registers_used = 1u << 6};
    slot_add(&trace, 5000, 33); /* in the order of need, not of address */
    slot_add(&trace, 8, 11);
    slot_add(&trace, 16, 22);
    slot_add(&trace, 8, 11); /* needed twice */
    assert_int_equal(learn(known, 1, &trace), 1);
    const struct offcpu_known *stack = get(known, 0);
    assert_non_null(stack);
    assert_int_equal(stack->count, 3);
    assert_int_equal(stack->offsets[0], 8);
    assert_int_equal(stack->values[0], 11);
    assert_int_equal(stack->offsets[1], 16);
    assert_int_equal(stack->values[1], 22);
    assert_int_equal(stack->offsets[2], 5000);
    assert_int_equal(stack->values[2], 33);
    assert_int_equal(stack->flags, OFFCPU_KNOWN_FP);
    assert_int_equal(stack->fp, 1006);
    /* Slots that count as head lie in what is read at once, all others behind. */
    assert_true(stack->head_count <= stack->count);
    for (uint32_t i = 0; i < stack->count; i++)
        assert_int_equal(i < stack->head_count, stack->offsets[i] + 8 <= stack->head_bytes);
    assert_true(stack->head_bytes <= OFFCPU_HEAD_BYTES_MAX);
    known_stacks_close(known);
}

static void stacks_that_cannot_be_compared_are_refused(void **state)
{
    (void)state;
    struct known_stacks *known = open_known();
    struct unwind_trace trace = trace_of(100, 3);
    trace.usable = false;
    assert_int_equal(learn(known, 1, &trace), 0);
    trace.usable = true;
    trace.registers_used = 1u << 3; /* hangs on rbx, which the program does not look at */
    assert_int_equal(learn(known, 2, &trace), 0);
    trace.registers_used = 0;
    trace.slots[0].address = SP - 8; /* below the stack pointer: anybody's */
    assert_int_equal(learn(known, 3, &trace), 0);
    trace.slots[0].address = SP + 3; /* no whole word */
    assert_int_equal(learn(known, 4, &trace), 0);
    trace.count = 0; /* nothing to tell it by */
    assert_int_equal(learn(known, 5, &trace), 0);
    assert_null(get(known, 0));
    assert_int_equal(known_stacks_counts(known).unlearnable, 5);
    known_stacks_close(known);
}

static void stacks_of_one_place_stand_without_a_gap(void **state)
{
    (void)state;
    struct known_stacks *known = open_known();
    for (uint64_t i = 0; i < OFFCPU_KNOWN_ALIKE; i++) {
        struct unwind_trace trace = trace_of(1000 * (i + 1), 3);
        assert_int_equal(learn(known, i + 1, &trace), i + 1);
    }
    struct unwind_trace beyond = trace_of(999999, 3), again = trace_of(3000, 3);
    assert_int_equal(learn(known, 77, &beyond), 0);
    assert_int_equal(known_stacks_counts(known).full, 1);
    assert_int_equal(learn(known, 78, &again), 3); /* it is known as 3 */
    assert_int_equal(known_stacks_counts(known).twice, 1);
    /* The code of the third changes: it goes, the last takes its place. */
    code_moved = 3001 - 1;
    known_stacks_check(known, 7, 3, &code);
    assert_int_equal(gone_count, 1);
    assert_int_equal(gone[0], 3);
    assert_int_equal(get(known, 2)->ref, OFFCPU_KNOWN_ALIKE);
    assert_null(get(known, OFFCPU_KNOWN_ALIKE - 1));
    for (uint32_t i = 0; i < OFFCPU_KNOWN_ALIKE - 1; i++)
        assert_non_null(get(known, i));
    known_stacks_forget(known, 7, 4); /* another program's: nothing is */
    assert_non_null(get(known, 0));
    known_stacks_forget(known, 7, 3);
    for (uint32_t i = 0; i < OFFCPU_KNOWN_ALIKE; i++)
        assert_null(get(known, i));
    known_stacks_close(known);
}

static void code_that_is_what_it_was_stays_known(void **state)
{
    (void)state;
    struct known_stacks *known = open_known();
    struct unwind_trace trace = trace_of(5000, 4);
    assert_int_equal(learn(known, 1, &trace), 1);
    code_moved = 123456789; /* something else was mapped */
    known_stacks_check(known, 7, 3, &code);
    assert_int_equal(gone_count, 0);
    code_moved = 0x401000; /* the innermost function itself */
    known_stacks_check(known, 7, 3, &code);
    assert_int_equal(gone_count, 1);
    assert_null(get(known, 0));
    known_stacks_close(known);
}

static void copies_are_recognised_by_every_slot(void **state)
{
    (void)state;
    struct known_stacks *known = open_known();
    enum { SLOTS = 100 }; /* more than the short form has */
    struct unwind_trace trace = trace_of(1 << 20, SLOTS);
    assert_int_equal(learn(known, 5, &trace), 5);
    assert_int_equal(get(known, 0)->flags, OFFCPU_KNOWN_LONG);
    static uint64_t words[8 + 6 * SLOTS];
    memset(words, 0, sizeof(words));
    for (uint32_t i = 0; i < SLOTS; i++)
        words[1 + 6 * i] = (1 << 20) + i;
    struct offcpu_known_key place = {.pc = 0x401000, .sp = SP, .kernel_tgid = 7, .exec = 3};
    struct unwind_registers registers = {.pc = 0x401000};
    struct unwind_slice slice = {.address = SP, .bytes = (void *)words, .len = sizeof(words)};
    assert_int_equal(known_stacks_find(known, &place, &registers, &slice, UNWIND_X86_64), 5);
    for (uint32_t i = 0; i < SLOTS; i++) { /* each of them counts */
        words[1 + 6 * i]++;
        assert_int_equal(known_stacks_find(known, &place, &registers, &slice, UNWIND_X86_64), 0);
        words[1 + 6 * i]--;
    }
    slice.len = 8 * (1 + 6 * (SLOTS - 1)); /* the last one was not copied */
    assert_int_equal(known_stacks_find(known, &place, &registers, &slice, UNWIND_X86_64), 0);
    place.exec = 4;
    slice.len = sizeof(words);
    assert_int_equal(known_stacks_find(known, &place, &registers, &slice, UNWIND_X86_64), 0);
    known_stacks_close(known);
}

static void the_oldest_make_room(void **state)
{
    (void)state;
    struct known_stacks *known = open_known();
    struct unwind_trace trace = trace_of(100, 2);
    for (uint32_t i = 0; i < OFFCPU_KNOWN_MAX + 10; i++)
        assert_int_equal(learn_at(known, 7 + i, i + 1, &trace), i + 1);
    struct known_counts counts = known_stacks_counts(known);
    assert_int_equal(counts.pushed_out, 10);
    assert_int_equal(counts.full, 0);
    assert_null(get(known, 0)); /* of process 7, the first */
    known_stacks_close(known);
}

static void return_addresses_of_a_kernel_stack_are_found(void **state)
{
    (void)state;
    static struct offcpu_kernel kernel;
    static struct offcpu_kernel_learnt learnt;
    memset(&kernel, 0, sizeof(kernel));
    memset(&learnt, 0, sizeof(learnt));
    learnt.id = 9;
    /* The first two are the program's own and lie elsewhere; the last is the way in. */
    const uint64_t frames[] = {0xa1, 0xa2, 0xb1, 0xb2, 0xb3, 0xc1};
    kernel.depth = 8 * 100;
    kernel.words[4] = 0xb1;
    kernel.words[9] = 0xb2;
    kernel.words[11] = 0xb2; /* left over from an earlier call: it may be the real one */
    kernel.words[20] = 0xb3;
    kernel.words[50] = 0xb3; /* in the room that the kernel leaves by chance */
    kernel.words[78] = 0xc1;
    struct offcpu_kernel_known known;
    assert_true(offcpu_kernel_narrow(&learnt, &kernel, frames, 6));
    assert_true(offcpu_kernel_slots(&learnt, frames, 6, &known));
    assert_int_equal(known.id, 9);
    assert_int_equal(known.count, 5); /* all that could be one */
    assert_int_equal(known.below_top, 8 * 22);
    assert_int_equal(known.top_value, 0xc1);
    /* The next sample: other room, other remains. */
    kernel.depth = 8 * 110;
    kernel.words[11] = kernel.words[50] = kernel.words[78] = 0;
    kernel.words[60] = 0xb3;
    kernel.words[88] = 0xc1;
    assert_true(offcpu_kernel_narrow(&learnt, &kernel, frames, 6));
    assert_true(offcpu_kernel_slots(&learnt, frames, 6, &known));
    assert_int_equal(known.count, 3);
    assert_int_equal(known.indexes[0], 4);
    assert_int_equal(known.indexes[1], 9);
    assert_int_equal(known.indexes[2], 20);
    assert_int_equal(known.values[2], 0xb3);
    assert_int_equal(known.head_bytes, 8 * 21);
    assert_int_equal(known.below_top, 8 * 22);
    /* A return address that is seen nowhere: not to be told by the others. */
    kernel.words[20] = kernel.words[60] = 0;
    assert_true(offcpu_kernel_narrow(&learnt, &kernel, frames, 6));
    assert_false(offcpu_kernel_slots(&learnt, frames, 6, &known));
    kernel.words[88] = 0;
    assert_false(offcpu_kernel_narrow(&learnt, &kernel, frames, 6));
    kernel.depth = sizeof(kernel.words) + 8;
    assert_false(offcpu_kernel_narrow(&learnt, &kernel, frames, 6));
}

static void buckets_are_those_of_the_model(void **state)
{
    (void)state;
    assert_int_equal((int)OFFCPU_BUCKETS, (int)WAIT_BUCKETS);
    for (uint64_t ns = 0; ns < 100000; ns++)
        assert_int_equal(offcpu_bucket(ns), wait_bucket(ns));
    for (unsigned bit = 0; bit < 64; bit++)
        for (int around = -2; around <= 2; around++) {
            uint64_t ns = (UINT64_C(1) << bit) + (uint64_t)around;
            assert_int_equal(offcpu_bucket(ns), wait_bucket(ns));
        }
}

static void schedule_is_found_among_symbols(void **state)
{
    (void)state;
    uint64_t start, end;
    offcpu_schedule_find(STR("ffffffff81000000 T _stext\n"
                             "ffffffff81000100 t __schedule_bug\n"
                             "ffffffff81000200 t __schedule\n"
                             "ffffffff81000200 t alias\n"
                             "ffffffff81000900 T schedule\n"),
                         &start, &end);
    assert_int_equal(start, 0xffffffff81000200);
    assert_int_equal(end, 0xffffffff81000900);
    offcpu_schedule_find(STR("0000000000000000 t __schedule\n0000000000000000 T schedule\n"),
                         &start, &end); /* hidden addresses */
    assert_int_equal(start, 0);
    offcpu_schedule_find(STR("nonsense\n"), &start, &end);
    assert_int_equal(end, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_a_walk_hung_on_is_told),
        cmocka_unit_test(stacks_that_cannot_be_compared_are_refused),
        cmocka_unit_test(stacks_of_one_place_stand_without_a_gap),
        cmocka_unit_test(code_that_is_what_it_was_stays_known),
        cmocka_unit_test(copies_are_recognised_by_every_slot),
        cmocka_unit_test(the_oldest_make_room),
        cmocka_unit_test(return_addresses_of_a_kernel_stack_are_found),
        cmocka_unit_test(buckets_are_those_of_the_model),
        cmocka_unit_test(schedule_is_found_among_symbols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
