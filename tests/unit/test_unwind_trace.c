/* Promises of unwind/trace.h: a traced walk finds what any walk finds, and whatever it did not
 * note may change without the stack being another one.
 *
 * First with rules and stacks drawn at random, so that rules meet which no compiler brings
 * together; then at the instructions of a real program (alloca, realigned stacks, PLT stubs,
 * libc, signals), which is run by PTRACE_SINGLESTEP. */
#include "unit.h"

#include "unwind_build.h"

#include "unwind/trace.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#if !defined(__x86_64__)
int main(void)
{
    puts("1..0 # SKIP: steps through x86_64 instructions");
    return 0;
}
#else

enum {
    RBX = 3,
    RBP = 6,
    RSP = 7,
    R12 = 12,
    REGISTERS = 16,
    SLICE_MAX = 32 << 10,
    STEPS_MAX = 3000000,
    LOOK_EVERY = 53,   /* prime, so that loops are met at all their instructions */
    INJECT_EVERY = 41, /* likewise */
};

static uint64_t draw64(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static uint32_t draw(uint32_t below)
{
    return below > 0 ? (uint32_t)(draw64() >> 33) % below : 0;
}

struct look {
    const struct unwind_space *space;
    struct unwind_registers registers;
    struct unwind_slice slice;
    struct unwind_frame frames[UNWIND_FRAMES_MAX];
    struct unwind_result result;
    struct unwind_trace trace;
};

/* What was found over all looks, so that the tests can tell that they have seen something. */
struct tally {
    uint64_t walks, usable, changed, same, slots, registers, noticed, unnoticed;
};

static bool is_same(const struct look *a, const struct unwind_frame *frames,
                    const struct unwind_result *result)
{
    return a->result.end == result->end && a->result.count == result->count &&
           a->result.last_sp == result->last_sp &&
           a->result.by_frame_pointer == result->by_frame_pointer &&
           memcmp(a->frames, frames, result->count * sizeof(*frames)) == 0;
}

static bool is_noted(const struct look *look, uint64_t address)
{
    for (uint32_t i = 0; i < look->trace.count; i++)
        if (look->trace.slots[i].address == address)
            return true;
    return false;
}

/* Values that lead a walk astray: a place on the stack, one in code, what stands elsewhere on
 * the stack, nothing, anything. */
static uint64_t draw_value(const struct look *look, const uint8_t *bytes)
{
    uint64_t value = 0;
    switch (draw(6)) {
    case 5: /* in the innermost frame */
        return look->slice.address + 8 * (uint64_t)draw(6);
    case 0:
        return look->slice.address + 8 * (uint64_t)draw((uint32_t)(look->slice.len / 8));
    case 1:
        return look->frames[draw(look->result.count)].pc + 1;
    case 2:
        memcpy(&value, bytes + 8 * draw((uint32_t)(look->slice.len / 8)), 8);
        return value;
    case 3:
        return 0;
    default:
        return draw64();
    }
}

static void registers_change(const struct look *look, struct unwind_registers *registers)
{
    for (unsigned i = 0; i < REGISTERS; i++)
        if (i != RSP && !(look->trace.registers_used >> i & 1))
            registers->reg[i] = draw_value(look, look->slice.bytes);
}

/* The promise: all that was not noted, changed at once and one by one. */
static bool holds(const struct look *look, unsigned rounds, struct tally *tally)
{
    static struct unwind_frame frames[UNWIND_FRAMES_MAX];
    static uint8_t bytes[SLICE_MAX];
    for (unsigned round = 0; round < rounds; round++) {
        struct unwind_registers registers = look->registers;
        struct unwind_slice slice = look->slice;
        struct unwind_result result;
        memcpy(bytes, slice.bytes, slice.len);
        slice.bytes = bytes;
        if (round % 2 == 0)
            registers_change(look, &registers);
        size_t words = slice.len / 8, only = round % 3 == 2 ? draw((uint32_t)words) : words;
        for (size_t i = 0; i < words; i++) {
            uint64_t value = draw_value(look, look->slice.bytes);
            if ((only == words || only == i) && !is_noted(look, slice.address + 8 * i))
                memcpy(bytes + 8 * i, &value, 8);
        }
        unwind_walk(look->space, &registers, &slice, NULL, frames, UNWIND_FRAMES_MAX, &result);
        tally->changed++;
        if (!is_same(look, frames, &result))
            return false;
    }
    return true;
}

/* The other way round: most of what was noted makes a difference, or recognising stacks by it
 * would be in vain. */
static void notice(const struct look *look, struct tally *tally)
{
    static struct unwind_frame frames[UNWIND_FRAMES_MAX];
    static uint8_t bytes[SLICE_MAX];
    struct unwind_slice slice = look->slice;
    struct unwind_result result;
    if (look->trace.count == 0)
        return;
    const struct unwind_trace_slot *slot = &look->trace.slots[draw(look->trace.count)];
    memcpy(bytes, slice.bytes, slice.len);
    slice.bytes = bytes;
    uint64_t value = draw64();
    memcpy(bytes + (slot->address - slice.address), &value, 8);
    unwind_walk(look->space, &look->registers, &slice, NULL, frames, UNWIND_FRAMES_MAX, &result);
    if (is_same(look, frames, &result))
        tally->unnoticed++;
    else
        tally->noticed++;
}

/* False when a promise does not hold. */
static bool look_closely(struct look *look, unsigned rounds, struct tally *tally)
{
    static struct unwind_frame frames[UNWIND_FRAMES_MAX];
    struct unwind_result result;
    unwind_walk(look->space, &look->registers, &look->slice, NULL, frames, UNWIND_FRAMES_MAX,
                &result);
    unwind_walk_traced(look->space, &look->registers, &look->slice, look->frames, UNWIND_FRAMES_MAX,
                       &look->result, &look->trace);
    tally->walks++;
    if (!is_same(look, frames, &result) || (look->trace.usable && result.end != UNWIND_ROOT))
        return false;
    if (!look->trace.usable)
        return true;
    tally->usable++;
    tally->slots += look->trace.count;
    tally->registers += (uint64_t)__builtin_popcount(look->trace.registers_used);
    for (uint32_t i = 0; i < look->trace.count; i++) {
        const struct unwind_trace_slot *slot = &look->trace.slots[i];
        uint64_t offset = slot->address - look->slice.address, value;
        if (offset > look->slice.len - 8)
            return false;
        memcpy(&value, look->slice.bytes + offset, 8);
        if (value != slot->value)
            return false;
    }
    notice(look, tally);
    return holds(look, rounds, tally);
}

static void tally_print(const char *name, const struct tally *tally)
{
    print_message("# %s: %llu walks, %llu usable, %.1f slots and %.2f registers each; %llu changes "
                  "made no difference; of slots noted %llu make one, %llu do not\n",
                  name, (unsigned long long)tally->walks, (unsigned long long)tally->usable,
                  (double)tally->slots / (double)MAX(tally->usable, 1u),
                  (double)tally->registers / (double)MAX(tally->usable, 1u),
                  (unsigned long long)tally->changed, (unsigned long long)tally->noticed,
                  (unsigned long long)tally->unnoticed);
}

/* Made-up code: 16 bytes of it for each kind of frame. */
enum { STACK = 0x7f0000, JIT = 0x900000, IMAGE = 0x400000, WORDS = 96, KIND_BYTES = 16 };

/* As a realigned function has it: all where rbp says, rbp itself as well. */
#define BY_RBP     ".cfi_escape 0x10, 3, 2, 0x76, 0x70\n .cfi_escape 0x10, 12, 2, 0x76, 0x60"
#define BY_RBP_ALL (".cfi_def_cfa rsp, 32\n .cfi_escape 0x10, 6, 2, 0x76, 0\n" BY_RBP)

static const char *const kinds[] = {
    ".cfi_def_cfa rsp, 16",
    ".cfi_def_cfa rbp, 16\n .cfi_offset rbp, -16",
    ".cfi_undefined rip",
    /* Frames that begin where a register says. */
    ".cfi_def_cfa r12, 16",
    ".cfi_def_cfa rbx, 32\n .cfi_offset rbx, -24",
    /* Registers saved, and one kept in another. */
    ".cfi_def_cfa rsp, 32\n .cfi_offset rbp, -16\n .cfi_offset r12, -24\n .cfi_offset rbx, -32",
    ".cfi_def_cfa rsp, 16\n .cfi_register r12, rbp\n .cfi_register rbp, r12",
    ".cfi_def_cfa rsp, 16\n .cfi_register rbx, r12",
    /* Saved where another register says, which is saved itself: r12 at rbp - 16. */
    ".cfi_def_cfa rsp, 32\n .cfi_offset rbp, -16\n .cfi_escape 0x10, 12, 2, 0x76, 0x70",
    BY_RBP_ALL,
    /* Realigned: the frame begins where the slot at rbp - 16 says. */
    ".cfi_escape 0x0f, 3, 0x76, 0x70, 0x06\n .cfi_escape 0x10, 6, 2, 0x76, 0",
    /* The caller's stack pointer is in a register. */
    ".cfi_def_cfa rsp, 16\n .cfi_register rsp, r12",
    /* Computed: nothing is learnt from these. */
    ".cfi_escape 0x0f, 5, 0x77, 8, 0x38, 0x21, 0x96",
};
enum { KINDS = ARRAY_SIZE(kinds), UNDESCRIBED = IMAGE + 0x400 };

static struct fake {
    struct unwind_image *image;
    struct unwind_space *space;
    uint64_t stack[WORDS];
} fake;

static int fake_setup(void **state)
{
    char text[8192];
    size_t len = (size_t)snprintf(text, sizeof(text), ".text\n");
    for (size_t i = 0; i < KINDS; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                ".cfi_startproc\n %s\n .skip %d, 0x90\n .cfi_endproc\n", kinds[i],
                                KIND_BYTES);
    snprintf(text + len, sizeof(text) - len, ".org 0x500, 0x90\n");
    if (build_group_setup(state) < 0 || !build_image("kinds", text) ||
        build_load("kinds.so", NULL, &fake.image, NULL) < 0 ||
        unwind_space_new(UNWIND_X86_64, &fake.space) < 0)
        return -1;
    uint64_t offset = 0, vaddr = 0;
    while (offset < 1 << 20 && (!unwind_image_vaddr(fake.image, offset, &vaddr) || vaddr != CODE))
        offset += 4096;
    return unwind_space_map(fake.space, IMAGE, 0x1000, offset, fake.image, 1) < 0 ||
                   unwind_space_map(fake.space, JIT, 0x1000, 0, NULL, 2) < 0
               ? -1
               : 0;
}

static int fake_teardown(void **state)
{
    unwind_space_free(fake.space);
    unwind_image_free(fake.image);
    return build_group_teardown(state);
}

static uint64_t draw_code(void)
{
    uint32_t kind = draw(KINDS + 6);
    if (kind == KINDS)
        return JIT + 1 + draw(100);
    /* Most lead on, and some to the root. */
    return IMAGE + KIND_BYTES * (uint64_t)(kind < KINDS ? kind : kind % 2) + 1 + draw(14);
}

static uint64_t draw_stack(uint32_t from)
{
    return STACK + 16 * (uint64_t)MIN(from / 2 + draw(8), WORDS / 2 - 1u);
}

static void whatever_rules_meet_what_is_not_noted_makes_no_difference(void **state)
{
    (void)state;
    enum { ROUNDS = 60000 };
    static struct look look;
    struct tally tally = {0};
    uint64_t deep = 0;
    look.space = fake.space;
    for (int i = 0; i < ROUNDS; i++) {
        /* Every other word is a return address: so frames of an even number of words lead on. */
        for (uint32_t word = 0; word < WORDS; word++)
            fake.stack[word] = draw(40) == 0 ? 0 : word % 2 ? draw_code() : draw_stack(word);
        look.registers = (struct unwind_registers){.known = 0xffff};
        look.registers.pc = draw(10) ? draw_code() : UNDESCRIBED + draw(16);
        if (look.registers.pc >= UNDESCRIBED) /* its return address may be right there */
            fake.stack[0] = draw_code();
        for (unsigned number = 0; number < REGISTERS; number++)
            look.registers.reg[number] = draw_stack(0);
        look.registers.reg[RSP] = STACK;
        look.slice = (struct unwind_slice){STACK, (const uint8_t *)fake.stack, sizeof(fake.stack)};
        if (!look_closely(&look, 8, &tally))
            fail_msg("round %d: %u frames, end %s, %u slots, registers %#x", i, look.result.count,
                     unwind_end_text(look.result.end), look.trace.count, look.trace.registers_used);
        deep += look.trace.usable && look.result.count > 4;
    }
    tally_print("drawn at random", &tally);
    assert_true(tally.usable > ROUNDS / 10);
    assert_true(deep > ROUNDS / 100);
    assert_true(tally.noticed > 50 * tally.unnoticed / 10);
}

static void a_walk_that_does_not_end_at_the_root_is_of_no_use(void **state)
{
    (void)state;
    static struct look look;
    struct tally tally = {0};
    memset(fake.stack, 0, sizeof(fake.stack));
    fake.stack[1] = IMAGE + 1;
    fake.stack[3] = 0x1234; /* no code */
    look.space = fake.space;
    look.registers = (struct unwind_registers){.pc = IMAGE, .known = 0xffff};
    look.registers.reg[RSP] = STACK;
    look.slice = (struct unwind_slice){STACK, (const uint8_t *)fake.stack, sizeof(fake.stack)};
    assert_true(look_closely(&look, 1, &tally));
    assert_false(look.trace.usable);
    fake.stack[3] = 0;
    assert_true(look_closely(&look, 1, &tally));
    assert_true(look.trace.usable);
    assert_int_equal(look.trace.count, 2);
    assert_int_equal(look.trace.registers_used, 0);
    assert_int_equal(look.trace.slots[0].address, STACK + 8);
    assert_int_equal(look.trace.slots[0].value, IMAGE + 1);
    /* Too deep to be noted. */
    static uint64_t tall[2 * UNWIND_TRACE_SLOTS + 8];
    for (size_t i = 1; i < 2 * UNWIND_TRACE_SLOTS + 2; i += 2)
        tall[i] = IMAGE + 1;
    look.slice = (struct unwind_slice){STACK, (const uint8_t *)tall, sizeof(tall)};
    unwind_walk_traced(look.space, &look.registers, &look.slice, look.frames, UNWIND_FRAMES_MAX,
                       &look.result, &look.trace);
    assert_int_equal(look.result.end, UNWIND_ROOT);
    assert_false(look.trace.usable);
}

/* A real program. */
struct target {
    pid_t pid;
    struct process_space process;
    uint64_t steps;
    bool inject;
    int pending; /* to deliver with the next step */
    struct look look;
    struct tally tally;
    uint8_t bytes[SLICE_MAX];
};

static size_t read_target(pid_t pid, uint64_t address, void *data, size_t len)
{
    struct iovec local = {data, len}, remote = {(void *)(uintptr_t)address, len};
    ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    return n < 0 ? 0 : (size_t)n;
}

static void target_look(struct target *target, const struct user_regs_struct *user)
{
    const uint64_t values[] = {user->rax, user->rdx, user->rcx, user->rbx, user->rsi, user->rdi,
                               user->rbp, user->rsp, user->r8,  user->r9,  user->r10, user->r11,
                               user->r12, user->r13, user->r14, user->r15};
    struct look *look = &target->look;
    look->space = target->process.space;
    look->registers = (struct unwind_registers){.pc = user->rip, .known = 0xffff};
    memcpy(look->registers.reg, values, sizeof(values));
    size_t len = 0, part;
    do {
        part = MIN(4096 - ((user->rsp + len) & 4095), SLICE_MAX - len);
        part = read_target(target->pid, user->rsp + len, target->bytes + len, part);
        len += part;
    } while (part > 0 && len < SLICE_MAX);
    look->slice = (struct unwind_slice){user->rsp, target->bytes, len & ~(size_t)7};
    if (!look_closely(look, 6, &target->tally))
        fail_msg("step %llu, pc %#llx: %u frames, end %s, %u slots, registers %#x",
                 (unsigned long long)target->steps, (unsigned long long)user->rip,
                 look->result.count, unwind_end_text(look->result.end), look->trace.count,
                 look->trace.registers_used);
}

/* One instruction; false when the program is done. */
static bool target_step(struct target *target)
{
    struct user_regs_struct before, after;
    uint8_t code[2] = {0};
    int status = 0, signal = target->pending;
    assert_int_equal(ptrace(PTRACE_GETREGS, target->pid, NULL, &before), 0);
    read_target(target->pid, before.rip, code, sizeof(code));
    assert_int_equal(ptrace(PTRACE_SINGLESTEP, target->pid, NULL, (void *)(intptr_t)signal), 0);
    assert_int_equal(waitpid(target->pid, &status, 0), target->pid);
    target->pending = 0;
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return false;
    }
    target->steps++;
    if (WSTOPSIG(status) != SIGTRAP) {
        target->pending = WSTOPSIG(status);
        target->inject = true;
    } else if (target->inject && target->steps % INJECT_EVERY == 0) {
        target->pending = SIGUSR1;
    }
    enum { MMAP = 9, MPROTECT = 10, MUNMAP = 11 };
    bool maps = code[0] == 0x0f && code[1] == 0x05 &&
                (before.rax == MMAP || before.rax == MPROTECT || before.rax == MUNMAP);
    if (maps)
        assert_int_equal(process_space_refresh(target->pid, &target->process), 0);
    if (target->steps % LOOK_EVERY == 0) {
        assert_int_equal(ptrace(PTRACE_GETREGS, target->pid, NULL, &after), 0);
        target_look(target, &after);
    }
    return true;
}

static void run(const char *variant)
{
    static struct target target;
    char path[512];
    const char *root = getenv("BUILD_ROOT");
    snprintf(path, sizeof(path), "%s/tests/workloads/unwind-steps-%s", root ? root : "build",
             variant);
    process_space_deinit(&target.process);
    memset(&target, 0, sizeof(target));
    target.pid = fork();
    assert_true(target.pid >= 0);
    if (target.pid == 0) {
        char *const arguments[] = {path, NULL}, *const environment[] = {NULL};
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execve(path, arguments, environment);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(target.pid, &status, 0), target.pid);
    if (WIFEXITED(status))
        fail_msg("%s did not start", path);
    ptrace(PTRACE_SETOPTIONS, target.pid, NULL, (void *)(intptr_t)PTRACE_O_EXITKILL);
    assert_int_equal(process_space_init(target.pid, &target.process), 0);
    while (target.steps < STEPS_MAX && target_step(&target))
        ;
    tally_print(variant, &target.tally);
    assert_true(target.steps < STEPS_MAX);
    process_space_deinit(&target.process);
    assert_true(target.tally.walks > 200);
    /* Behind signals and start-up code nothing is learnt; elsewhere nearly always. */
    assert_true(target.tally.usable * 10 > target.tally.walks * 5);
    assert_true(target.tally.noticed > 9 * target.tally.unnoticed);
}

static void in_a_dynamic_program_what_is_not_noted_makes_no_difference(void **state)
{
    (void)state;
    run("O2");
}

static void at_o3_what_is_not_noted_makes_no_difference(void **state)
{
    (void)state;
    run("O3");
}

static void in_a_static_program_what_is_not_noted_makes_no_difference(void **state)
{
    (void)state;
    run("static");
}

static void with_frame_pointers_what_is_not_noted_makes_no_difference(void **state)
{
    (void)state;
    run("fp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_rules_meet_what_is_not_noted_makes_no_difference),
        cmocka_unit_test(a_walk_that_does_not_end_at_the_root_is_of_no_use),
        cmocka_unit_test(in_a_dynamic_program_what_is_not_noted_makes_no_difference),
        cmocka_unit_test(at_o3_what_is_not_noted_makes_no_difference),
        cmocka_unit_test(in_a_static_program_what_is_not_noted_makes_no_difference),
        cmocka_unit_test(with_frame_pointers_what_is_not_noted_makes_no_difference),
    };
    return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
#endif
