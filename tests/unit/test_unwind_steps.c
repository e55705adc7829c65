/* The strongest promise: at every single instruction of a program, from the loader's
 * first to the last, the walk equals the true chain.
 *
 * The truth is a shadow stack: this test runs tests/workloads/unwind_steps.c by
 * PTRACE_SINGLESTEP, notes each call's return address and drops it when the stack
 * pointer has passed it. Signals are delivered in the middle of everything. */
#include "unit.h"

#include "unwind_helpers.h"

#include "unwind/image.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#if !defined(__x86_64__)
int main(void)
{
    puts("1..0 # SKIP: decodes x86_64 instructions");
    return 0;
}
#else

enum {
    SHADOW_MAX = 512,
    SLICE_MAX = 64 << 10,
    STEPS_MAX = 3000000,
    INJECT_EVERY = 41, /* prime, so that loops are hit at all their instructions */
    REPORTS_MAX = 8,
};

struct shadow {
    uint64_t slot;    /* where the return address lies */
    uint64_t returns; /* it */
    bool signal;      /* the restorer's: the interrupted pc follows */
    bool restoring;   /* the handler has returned: the restorer runs */
    uint64_t interrupted;
};

struct tracer {
    pid_t pid;
    struct process_space process;
    struct shadow shadow[SHADOW_MAX];
    size_t depth;
    uint64_t steps;
    uint64_t walks;
    uint64_t signals_seen;
    uint64_t by_frame_pointer;
    unsigned wrong;
    unsigned unjudged;
    bool inject;
    int pending; /* to deliver with the next step */
    uint64_t ends[UNWIND_ENDS];
    uint8_t slice[SLICE_MAX];
};

static size_t read_target(pid_t pid, uint64_t address, void *data, size_t len)
{
    struct iovec local = {data, len}, remote = {(void *)(uintptr_t)address, len};
    ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    return n < 0 ? 0 : (size_t)n;
}

/* As much as there is, page by page, since the top of the stack is not known. */
static size_t read_slice(struct tracer *tracer, uint64_t sp)
{
    size_t want = 32 << 10;
    size_t n = read_target(tracer->pid, sp, tracer->slice, want);
    if (n == want)
        return n;
    n = 0;
    while (n < want) {
        size_t part = 4096 - ((sp + n) & 4095);
        size_t got = read_target(tracer->pid, sp + n, tracer->slice + n, MIN(part, want - n));
        if (got == 0)
            break;
        n += got;
    }
    return n;
}

enum opcode { OP_OTHER, OP_CALL, OP_SYSCALL };

static enum opcode decode(const uint8_t *code, size_t len)
{
    size_t i = 0;
    while (i < len && (code[i] == 0xf2 || code[i] == 0xf3 || code[i] == 0x66 || code[i] == 0x67 ||
                       code[i] == 0x3e || (code[i] & 0xf0) == 0x40))
        i++;
    if (i + 1 >= len)
        return OP_OTHER;
    if (code[i] == 0xe8 || (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2))
        return OP_CALL;
    return code[i] == 0x0f && code[i + 1] == 0x05 ? OP_SYSCALL : OP_OTHER;
}

static void to_registers(const struct user_regs_struct *user, struct unwind_registers *ret)
{
    const uint64_t values[] = {user->rax, user->rdx, user->rcx, user->rbx, user->rsi, user->rdi,
                               user->rbp, user->rsp, user->r8,  user->r9,  user->r10, user->r11,
                               user->r12, user->r13, user->r14, user->r15};
    *ret = (struct unwind_registers){.pc = user->rip, .known = 0xffff};
    memcpy(ret->reg, values, sizeof(values));
}

struct truth {
    uint64_t pc;
    uint64_t slot; /* where it is found; 0: in a signal frame */
};

/* Frame by frame what the chain is; returns how many. */
static size_t true_chain(const struct tracer *tracer, uint64_t pc, struct truth *ret, size_t max)
{
    size_t n = 0;
    ret[n++] = (struct truth){pc, 0};
    for (size_t i = tracer->depth; i > 0 && n + 2 < max; i--) {
        const struct shadow *entry = &tracer->shadow[i - 1];
        if (!entry->restoring)
            ret[n++] = (struct truth){entry->returns - !entry->signal, entry->slot};
        if (entry->signal)
            ret[n++] = (struct truth){entry->interrupted, 0};
    }
    return n;
}

static void report(struct tracer *tracer, const struct truth *truth, size_t truth_count,
                   const struct unwind_frame *frames, const struct unwind_result *result)
{
    if (tracer->wrong++ >= REPORTS_MAX)
        return;
    print_message("# step %llu: %u frames, true %zu, end: %s\n", (unsigned long long)tracer->steps,
                  result->count, truth_count, unwind_end_text(result->end));
    for (size_t i = 0; i < MAX(truth_count, result->count) && i < 12; i++) {
        uint32_t tag = 0;
        uint64_t vaddr = 0, true_pc = i < truth_count ? truth[i].pc : 0;
        unwind_space_find(tracer->process.space, true_pc, &tag, &vaddr);
        print_message("#   %2zu  true %#llx (%s+%#llx)  walked %#llx how %u\n", i,
                      (unsigned long long)true_pc, tag ? tracer->process.paths[tag - 1] : "?",
                      (unsigned long long)vaddr,
                      (unsigned long long)(i < result->count ? frames[i].pc : 0),
                      i < result->count ? frames[i].how : 0);
    }
}

/* A chain that goes on where the slice does not reach (another stack) may end there: what
 * was found must be right, and the end must say so. */
static bool ended_rightly(const struct truth *truth, size_t truth_count,
                          const struct unwind_slice *slice, const struct unwind_result *result)
{
    if (result->end == UNWIND_ROOT || result->count >= truth_count)
        return result->end == UNWIND_ROOT && result->count == truth_count;
    uint64_t slot = truth[result->count].slot;
    return (result->end == UNWIND_UNREADABLE || result->end == UNWIND_TRUNCATED) && slot != 0 &&
           slot - slice->address > slice->len - 8;
}

/* Start-up code of the compiler (_init, frame_dummy …) has no table and no frame pointer:
 * through it nobody can see. As the root of all (the loader's _start) it does not matter.
 * The last instructions of longjmp() say of themselves that they have jumped already. */
static bool through_undescribed(const struct tracer *tracer, const struct truth *truth,
                                size_t truth_count)
{
    for (size_t i = 0; i < truth_count; i++) {
        uint32_t tag = 0;
        uint64_t vaddr = 0;
        if (i > 0 && i == truth_count - 1)
            return false;
        if (!unwind_space_find(tracer->process.space, truth[i].pc, &tag, &vaddr) || tag == 0)
            return true;
        const struct unwind_rows *rows = &tracer->process.images[tag - 1]->rows;
        uint32_t rules = unwind_rows_find(rows, vaddr);
        if (rules == UNWIND_RULES_NONE || rows->rules[rules].ra == UNWIND_IN_REGISTER)
            return true;
    }
    return false;
}

static void check_walk(struct tracer *tracer, const struct user_regs_struct *user)
{
    static struct unwind_frame frames[UNWIND_FRAMES_MAX];
    static struct truth truth[2 * SHADOW_MAX];
    struct unwind_registers registers;
    struct unwind_result result;
    to_registers(user, &registers);
    size_t len = read_slice(tracer, user->rsp);
    struct unwind_slice slice = {user->rsp, tracer->slice, len};
    unwind_walk(tracer->process.space, &registers, &slice, tracer->process.cache, frames,
                UNWIND_FRAMES_MAX, &result);
    size_t truth_count = true_chain(tracer, user->rip, truth, 2 * SHADOW_MAX);
    tracer->walks++;
    tracer->ends[result.end]++;
    if (through_undescribed(tracer, truth, truth_count)) {
        tracer->unjudged++;
        return;
    }
    bool right = ended_rightly(truth, truth_count, &slice, &result);
    for (size_t i = 0; i < result.count && right; i++)
        right = i < truth_count && frames[i].pc == truth[i].pc;
    if (!right)
        report(tracer, truth, truth_count, frames, &result);
    tracer->by_frame_pointer += result.by_frame_pointer;
}

static void drop_returned(struct tracer *tracer, uint64_t sp)
{
    while (tracer->depth > 0 && !tracer->shadow[tracer->depth - 1].signal &&
           tracer->shadow[tracer->depth - 1].slot < sp)
        tracer->depth--;
    if (tracer->depth > 0 && tracer->shadow[tracer->depth - 1].slot < sp)
        tracer->shadow[tracer->depth - 1].restoring = true;
}

static void push_shadow(struct tracer *tracer, struct shadow entry)
{
    assert_true(tracer->depth < SHADOW_MAX);
    tracer->shadow[tracer->depth++] = entry;
}

/* The kernel entered a handler: its return address is the restorer, and the context above
 * it holds what was interrupted. */
static bool entered_handler(struct tracer *tracer, const struct user_regs_struct *before,
                            const struct user_regs_struct *after)
{
    uint64_t words[23] = {0}; /* the return address, and ucontext up to the pc */
    read_target(tracer->pid, after->rsp, words, sizeof(words));
    if (words[21] != before->rsp || words[22] != before->rip)
        return false;
    push_shadow(tracer, (struct shadow){.slot = after->rsp,
                                        .returns = words[0],
                                        .signal = true,
                                        .interrupted = before->rip});
    tracer->signals_seen++;
    return true;
}

static void follow_syscall(struct tracer *tracer, uint64_t number)
{
    enum { MMAP = 9, MPROTECT = 10, MUNMAP = 11, RT_SIGRETURN = 15 };
    if (number == MMAP || number == MPROTECT || number == MUNMAP)
        assert_int_equal(process_space_refresh(tracer->pid, &tracer->process), 0);
    if (number != RT_SIGRETURN)
        return;
    while (tracer->depth > 0 && !tracer->shadow[--tracer->depth].signal)
        ;
}

/* What the instruction at `before` did to the chain. */
static void follow(struct tracer *tracer, const struct user_regs_struct *before,
                   const struct user_regs_struct *after, const uint8_t *code, size_t code_len)
{
    enum opcode op = decode(code, code_len);
    if (op == OP_SYSCALL)
        follow_syscall(tracer, before->rax);
    /* The handler's return address is popped by its return. */
    drop_returned(tracer, after->rsp);
    if (op == OP_CALL) {
        uint64_t returns = 0;
        read_target(tracer->pid, after->rsp, &returns, sizeof(returns));
        push_shadow(tracer, (struct shadow){.slot = after->rsp, .returns = returns});
    }
}

static bool in_handler(const struct tracer *tracer)
{
    for (size_t i = 0; i < tracer->depth; i++)
        if (tracer->shadow[i].signal)
            return true;
    return false;
}

/* One step; false when the program is done. */
static bool step(struct tracer *tracer)
{
    struct user_regs_struct before, after;
    uint8_t code[16];
    int status = 0, signal = tracer->pending;
    assert_int_equal(ptrace(PTRACE_GETREGS, tracer->pid, NULL, &before), 0);
    size_t code_len = read_target(tracer->pid, before.rip, code, sizeof(code));
    assert_int_equal(ptrace(PTRACE_SINGLESTEP, tracer->pid, NULL, (void *)(intptr_t)signal), 0);
    assert_int_equal(waitpid(tracer->pid, &status, 0), tracer->pid);
    tracer->pending = 0;
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return false;
    }
    assert_true(WIFSTOPPED(status));
    assert_int_equal(ptrace(PTRACE_GETREGS, tracer->pid, NULL, &after), 0);
    tracer->steps++;
    if (signal == 0 || !entered_handler(tracer, &before, &after))
        follow(tracer, &before, &after, code, code_len);
    if (WSTOPSIG(status) != SIGTRAP) {
        assert_true(WSTOPSIG(status) == SIGUSR1 || WSTOPSIG(status) == SIGUSR2);
        tracer->pending = WSTOPSIG(status);
        tracer->inject = true;
    } else if (tracer->inject && tracer->steps % INJECT_EVERY == 0 && !in_handler(tracer)) {
        tracer->pending = tracer->steps % 2 ? SIGUSR1 : SIGUSR2;
    }
    check_walk(tracer, &after);
    return true;
}

static void run(const char *variant)
{
    static struct tracer tracer;
    char path[512];
    const char *root = getenv("BUILD_ROOT");
    snprintf(path, sizeof(path), "%s/tests/workloads/unwind-steps-%s", root ? root : "build",
             variant);
    process_space_deinit(&tracer.process);
    tracer = (struct tracer){.pid = fork()};
    assert_true(tracer.pid >= 0);
    if (tracer.pid == 0) {
        char *const arguments[] = {path, NULL}, *const environment[] = {NULL};
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execve(path, arguments, environment);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(tracer.pid, &status, 0), tracer.pid);
    if (WIFEXITED(status))
        fail_msg("%s did not start", path);
    ptrace(PTRACE_SETOPTIONS, tracer.pid, NULL, (void *)(intptr_t)PTRACE_O_EXITKILL);
    assert_int_equal(process_space_init(tracer.pid, &tracer.process), 0);
    while (tracer.steps < STEPS_MAX && step(&tracer))
        ;
    print_message(
        "# %s: %llu walks, %llu signals, %llu frames by frame pointer, %u unjudged, %u wrong\n",
        variant, (unsigned long long)tracer.walks, (unsigned long long)tracer.signals_seen,
        (unsigned long long)tracer.by_frame_pointer, tracer.unjudged, tracer.wrong);
    assert_true(tracer.steps < STEPS_MAX);
    process_space_deinit(&tracer.process);
    assert_int_equal(tracer.wrong, 0);
    /* The test is only worth its name if it has been everywhere. */
    assert_true(tracer.walks > 10000);
    assert_true(tracer.unjudged < 300);
    assert_true(tracer.signals_seen > 50);
    assert_true(tracer.ends[UNWIND_UNREADABLE] + tracer.ends[UNWIND_TRUNCATED] > 0);
}

static void every_instruction_of_a_dynamic_program_has_the_true_chain(void **state)
{
    (void)state;
    run("O2");
}

static void every_instruction_at_o3_has_the_true_chain(void **state)
{
    (void)state;
    run("O3");
}

static void every_instruction_of_a_static_program_has_the_true_chain(void **state)
{
    (void)state;
    run("static");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_of_a_dynamic_program_has_the_true_chain),
        cmocka_unit_test(every_instruction_at_o3_has_the_true_chain),
        cmocka_unit_test(every_instruction_of_a_static_program_has_the_true_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
