/* Promises of the walk: every way it can end, frame pointers where there is no row, real
 * threads down to their root. What it does at each instruction of real code is in
 * test_unwind_steps.c. */
#include "unit.h"

#include "unwind_build.h"

#include "unwind/expression.h"
#include "unwind/image.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

enum { STACK = 0x7f0000, JIT = 0x900000, IMAGE = 0x400000, RBP = 6, RSP = 7, R10 = 10 };

/* Rows for frames of every kind, 16 bytes of code each. */
#define PLAIN      (IMAGE + 0x00) /* cfa = rsp + 16 */
#define BY_RBP     (IMAGE + 0x10) /* cfa = rbp + 16, rbp saved */
#define ROOT       (IMAGE + 0x20) /* return address undefined */
#define BY_R10     (IMAGE + 0x30) /* cfa = r10 */
#define STUCK      (IMAGE + 0x40) /* cfa = rsp + 0 */
#define UNKNOWN_OP (IMAGE + 0x50) /* an expression that nobody knows */
#define GENERAL    (IMAGE + 0x60) /* cfa = (rsp + 8) | 8, by expression */
#define LOOP       (IMAGE + 0x70) /* an expression that jumps for ever */
#define RESTORER   (IMAGE + 0x80) /* what a signal handler returns to */
static const char rows[] =
    ".text\n"
    ".macro frame rule, more=\n .cfi_startproc\n \\rule\n \\more\n .skip 16, 0x90\n"
    ".cfi_endproc\n .endm\n"
    "frame \".cfi_def_cfa rsp, 16\"\n"
    "frame \".cfi_def_cfa rbp, 16\", \".cfi_offset rbp, -16\"\n"
    "frame \".cfi_undefined rip\"\n"
    "frame \".cfi_def_cfa r10, 0\"\n"
    "frame \".cfi_def_cfa rsp, 0\"\n"
    "frame \".cfi_escape 0x0f, 2, 0x30, 0xe0\"\n"
    "frame \".cfi_escape 0x0f, 5, 0x77, 8, 0x38, 0x21, 0x96\"\n"
    "frame \".cfi_escape 0x0f, 5, 0x77, 8, 0x2f, 0xfd, 0xff\"\n"
    "mov $15, %rax\n syscall\n .skip 64, 0xcc\n";

struct fake {
    struct unwind_image *image;
    struct unwind_space *space;
    struct unwind_registers registers;
    uint64_t stack[4096];
    struct unwind_slice slice;
    struct unwind_frame frames[UNWIND_FRAMES_MAX];
    struct unwind_result result;
};

static struct fake fake;

static int fake_setup(void **state)
{
    if (build_group_setup(state) < 0 || !build_image("rows", rows) ||
        build_load("rows.so", NULL, &fake.image, NULL) < 0 ||
        unwind_space_new(UNWIND_X86_64, &fake.space) < 0)
        return -1;
    uint64_t offset = 0, vaddr = 0;
    while (offset < 1 << 20 && (!unwind_image_vaddr(fake.image, offset, &vaddr) || vaddr != CODE))
        offset += 4096;
    if (unwind_space_map(fake.space, IMAGE, 0x1000, offset, fake.image, 1) < 0 ||
        unwind_space_map(fake.space, JIT, 0x1000, 0, NULL, 2) < 0)
        return -1;
    return 0;
}

static int fake_teardown(void **state)
{
    unwind_space_free(fake.space);
    unwind_image_free(fake.image);
    return build_group_teardown(state);
}

/* Fresh registers and an empty stack of so many words. */
static void fake_start(uint64_t pc, size_t words)
{
    memset(fake.stack, 0, sizeof(fake.stack));
    fake.registers = (struct unwind_registers){.pc = pc, .known = 0xffff};
    fake.registers.reg[RSP] = STACK;
    fake.slice = (struct unwind_slice){STACK, (const uint8_t *)fake.stack, words * 8};
}

static void fake_walk(void)
{
    unwind_walk(fake.space, &fake.registers, &fake.slice, NULL, fake.frames, UNWIND_FRAMES_MAX,
                &fake.result);
}

#define assert_walk(frames_, end_)                                                                 \
    do {                                                                                           \
        fake_walk();                                                                               \
        assert_string_equal(unwind_end_text(fake.result.end), unwind_end_text(end_));              \
        assert_int_equal(fake.result.count, frames_);                                              \
    } while (0)

static void rows_lead_to_the_root(void **state)
{
    (void)state;
    fake_start(PLAIN, 16);
    fake.stack[1] = BY_RBP + 4; /* cfa = STACK + 16 */
    fake.registers.reg[RBP] = STACK + 5 * 8;
    fake.stack[6] = ROOT + 3;
    assert_walk(3, UNWIND_ROOT);
    assert_int_equal(fake.frames[0].pc, PLAIN);
    assert_int_equal(fake.frames[0].how, UNWIND_LEAF);
    assert_int_equal(fake.frames[1].pc, BY_RBP + 3); /* a return address: minus one */
    assert_int_equal(fake.frames[1].vaddr, CODE + 0x10 + 3);
    assert_int_equal(fake.frames[1].tag, 1);
    assert_int_equal(fake.frames[1].how, UNWIND_BY_ROW);
    assert_int_equal(fake.frames[2].pc, ROOT + 2);
    assert_int_equal(fake.result.by_frame_pointer, 0);
    /* A return address of zero is a root as well (Go, a thread started by hand). */
    fake.stack[6] = 0;
    assert_walk(2, UNWIND_ROOT);
}

static uint32_t draw(uint32_t below)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

/* Frames of two words from word `from` on, of every kind that can lead on, to some root. */
static void stack_draw(size_t from, size_t words)
{
    for (size_t i = from; i + 1 < words; i += 2) {
        static const uint64_t kinds[] = {BY_RBP, JIT, BY_R10, GENERAL, ROOT};
        uint64_t kind = draw(4) ? PLAIN : kinds[draw(ARRAY_SIZE(kinds))];
        fake.stack[i] = STACK + (i + 2 + 2 * draw(8)) * 8; /* for a frame pointer to go on */
        fake.stack[i + 1] = kind + 1 + draw(14);
    }
}

static void what_the_last_walk_found_is_taken_over_only_as_it_still_stands(void **state)
{
    (void)state;
    enum { WORDS = 64, ROUNDS = 50000 };
    static struct unwind_frame frames[UNWIND_FRAMES_MAX];
    struct unwind_cache *cache = NULL;
    assert_int_equal(unwind_cache_new(&cache), 0);
    fake_start(PLAIN, WORDS);
    size_t roots = 0, deep = 0;
    for (int i = 0; i < ROUNDS; i++) {
        size_t top = 2 * draw(WORDS / 2 - 4);
        switch (draw(4)) {
        case 0: /* another stack from here on */
            stack_draw(top, WORDS);
            break;
        case 1: /* one slot */
            fake.stack[top + 1] = (draw(2) ? PLAIN : BY_RBP) + 1 + draw(14);
            break;
        case 2: /* a slot that a frame pointer was saved in */
            fake.stack[top] = STACK + 8ull * draw(WORDS);
            break;
        default: /* the same */
            break;
        }
        fake.registers.pc = (draw(3) ? PLAIN : BY_RBP) + draw(15);
        fake.registers.reg[RBP] = STACK + 16ull * draw(WORDS / 4);
        fake.registers.known = draw(8) ? 0xffff : 0xffff & ~(1u << R10);
        fake.slice.len = 8 * (draw(4) ? WORDS : WORDS - draw(20));
        fake_walk();
        struct unwind_result result;
        unwind_walk(fake.space, &fake.registers, &fake.slice, cache, frames, UNWIND_FRAMES_MAX,
                    &result);
        assert_int_equal(result.end, fake.result.end);
        assert_int_equal(result.count, fake.result.count);
        assert_int_equal(result.by_frame_pointer, fake.result.by_frame_pointer);
        assert_int_equal(result.last_sp, fake.result.last_sp);
        assert_memory_equal(frames, fake.frames, result.count * sizeof(*frames));
        roots += result.end == UNWIND_ROOT;
        deep += result.end == UNWIND_ROOT && result.count > 8;
    }
    /* Enough of them got to the root to be taken over, and far enough. */
    print_message("# %zu to the root, %zu of them deep\n", roots, deep);
    assert_true(roots > ROUNDS / 4);
    assert_true(deep > ROUNDS / 20);
    unwind_cache_free(cache);
}

static void a_call_at_a_functions_end_belongs_to_that_function(void **state)
{
    (void)state;
    fake_start(PLAIN, 16);
    fake.stack[1] = ROOT + 16; /* the next function's first byte */
    assert_walk(2, UNWIND_ROOT);
    assert_int_equal(fake.frames[1].pc, ROOT + 15);
}

static void a_walk_goes_on_in_the_parts_above_the_slice(void **state)
{
    (void)state;
    fake_start(PLAIN, 2);
    fake.stack[1] = PLAIN + 3;
    fake.stack[3] = PLAIN + 3; /* beyond the slice, in the first part */
    fake.stack[5] = PLAIN + 3; /* in the second */
    fake.stack[7] = ROOT + 3;
    const uint8_t *bytes = (const uint8_t *)fake.stack;
    struct unwind_slice parts[] = {{STACK + 16, bytes + 16, 16}, {STACK + 40, bytes + 40, 24}};
    assert_walk(2, UNWIND_TRUNCATED);
    fake.slice.more = parts;
    fake.slice.more_count = 1;
    assert_walk(3, UNWIND_TRUNCATED);
    fake.slice.more_count = 2;
    assert_walk(5, UNWIND_ROOT);
    assert_int_equal(fake.frames[4].pc, ROOT + 2);
    assert_int_equal(fake.result.last_sp, STACK + 64);
    /* A slot that is in none of them is missing, whatever lies above. */
    parts[0].len = 8;
    assert_walk(2, UNWIND_TRUNCATED);
    parts[0] = (struct unwind_slice){STACK + 16, bytes + 16, 12}; /* nor half of one */
    assert_walk(2, UNWIND_TRUNCATED);
}

static void a_slice_that_is_too_short_says_how_long_it_should_be(void **state)
{
    (void)state;
    fake_start(PLAIN, 4);
    fake.stack[1] = BY_RBP + 1;
    fake.registers.reg[RBP] = STACK + 3 * 8; /* return address in word 4 */
    assert_walk(2, UNWIND_TRUNCATED);
    assert_int_equal(fake.result.last_sp, STACK + 5 * 8);
    /* Half a word is no word. */
    fake.slice.len = 15;
    assert_walk(1, UNWIND_TRUNCATED);
    assert_int_equal(fake.result.last_sp, STACK + 16);
    /* What is gigabytes away is not a matter of the slice. */
    fake.slice.len = 32;
    fake.registers.reg[RBP] = STACK + (UINT64_C(1) << 40);
    assert_walk(2, UNWIND_UNREADABLE);
}

static void nonsense_ends_the_walk_with_its_reason(void **state)
{
    (void)state;
    fake_start(PLAIN, 64);
    fake.stack[1] = 0x1234567; /* in no mapping */
    assert_walk(1, UNWIND_NOT_EXECUTABLE);
    fake.stack[1] = BY_RBP + 1; /* its frame would lie below */
    fake.registers.reg[RBP] = STACK - 64;
    assert_walk(2, UNWIND_UNREADABLE);
    fake.registers.reg[RBP] = STACK - 8;
    fake.stack[0] = PLAIN;
    assert_walk(2, UNWIND_BAD_CFA);
    fake.registers.reg[RBP] = STACK + 8 * 8 + 1; /* not aligned */
    memset(fake.stack + 8, 0x11, 64);
    assert_walk(2, UNWIND_BAD_CFA);
    fake_start(PLAIN, 64);
    fake.stack[1] = STUCK + 1;
    assert_walk(2, UNWIND_BAD_CFA);
    fake_start(0x1234567, 64);
    assert_walk(1, UNWIND_NO_MAPPING);
    assert_int_equal(fake.frames[0].tag, 0);
    fake_start(IMAGE + 0x800, 64); /* a gap, no frame pointer */
    assert_walk(1, UNWIND_NO_ROW);
    fake.registers.reg[RBP] = 0x1111;
    assert_walk(1, UNWIND_NO_ROW);
}

static void a_register_that_was_lost_ends_the_walk_only_when_needed(void **state)
{
    (void)state;
    fake_start(BY_R10, 64);
    fake.registers.reg[R10] = STACK + 16;
    fake.stack[1] = PLAIN + 1;
    fake.stack[3] = BY_R10 + 1; /* r10 is not kept over calls */
    assert_walk(3, UNWIND_UNREADABLE);
    fake.stack[3] = ROOT + 1;
    assert_walk(3, UNWIND_ROOT);
    fake.registers.known &= ~(1u << R10);
    assert_walk(1, UNWIND_UNREADABLE);
    /* Then the frame pointer may help. */
    fake.registers.reg[RBP] = STACK + 8 * 8;
    fake.stack[9] = ROOT + 1;
    assert_walk(2, UNWIND_ROOT);
    assert_int_equal(fake.frames[1].how, UNWIND_BY_FRAME_POINTER);
    assert_int_equal(fake.result.by_frame_pointer, 1);
}

static void expressions_are_followed_within_bounds(void **state)
{
    (void)state;
    fake_start(GENERAL, 64);
    fake.stack[0] = ROOT + 1; /* cfa = STACK + 8 */
    assert_walk(2, UNWIND_ROOT);
    fake_start(UNKNOWN_OP, 64);
    assert_walk(1, UNWIND_EXPRESSION);
    fake_start(LOOP, 64);
    assert_walk(1, UNWIND_EXPRESSION);
}

static void code_without_a_file_goes_by_frame_pointer_and_back_into_rows(void **state)
{
    (void)state;
    fake_start(JIT + 8, 64);
    fake.registers.reg[RBP] = STACK + 4 * 8;
    fake.stack[4] = STACK + 10 * 8;
    fake.stack[5] = JIT + 0x20;
    fake.stack[10] = 0x77; /* the C caller uses rbp for something else */
    fake.stack[11] = PLAIN + 5;
    fake.stack[13] = ROOT + 1; /* cfa = behind the frame record + 16 */
    assert_walk(4, UNWIND_ROOT);
    assert_int_equal(fake.frames[1].tag, 2);
    assert_int_equal(fake.frames[1].vaddr, JIT + 0x1f);
    assert_int_equal(fake.frames[2].pc, PLAIN + 4);
    assert_int_equal(fake.frames[2].how, UNWIND_BY_FRAME_POINTER);
    assert_int_equal(fake.frames[3].how, UNWIND_BY_ROW);
    assert_int_equal(fake.result.by_frame_pointer, 2);
    /* A chain that ends in zero is complete; one that goes back or leaves code is not. */
    fake.stack[11] = JIT + 1;
    fake.stack[10] = 0;
    assert_walk(3, UNWIND_ROOT);
    fake.stack[10] = STACK + 4 * 8;
    assert_walk(3, UNWIND_NO_ROW);
    fake.stack[10] = STACK + 20 * 8;
    fake.stack[21] = STACK;
    assert_walk(3, UNWIND_NO_ROW);
    fake.stack[10] = STACK + 200 * 8;
    assert_walk(3, UNWIND_TRUNCATED);
    assert_int_equal(fake.result.last_sp, STACK + 201 * 8);
}

static void a_signal_frame_leads_to_the_interrupted_stack_if_it_is_in_the_slice(void **state)
{
    (void)state;
    fake_start(PLAIN, 64);
    fake.stack[1] = RESTORER;            /* the frame lies behind it: ucontext at word 2 */
    fake.stack[2 + 15] = STACK + 30 * 8; /* rbp at 120 */
    fake.stack[2 + 20] = STACK + 28 * 8; /* rsp at 160 */
    fake.stack[2 + 21] = BY_RBP;         /* rip: its first instruction, looked up as it is */
    fake.stack[31] = ROOT + 1;
    assert_walk(4, UNWIND_ROOT);
    assert_int_equal(fake.frames[1].pc, RESTORER);
    assert_int_equal(fake.frames[2].pc, BY_RBP);
    assert_int_equal(fake.frames[2].how, UNWIND_BY_SIGNAL);
    assert_int_equal(fake.frames[3].pc, ROOT);
    /* The signal came from another stack: what is known is kept, and no slice would help. */
    const uint64_t elsewhere[] = {STACK - (1 << 20), STACK + (1 << 20), UINT64_C(1) << 46};
    for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++) {
        fake.stack[2 + 15] = elsewhere[i] + 64;
        fake.stack[2 + 20] = elsewhere[i];
        assert_walk(3, UNWIND_UNREADABLE);
        assert_int_equal(fake.frames[2].pc, BY_RBP);
    }
    /* The same stack, but the slice ends inside of the signal's frame. */
    fake.slice.len = 22 * 8;
    assert_walk(2, UNWIND_TRUNCATED);
}

static void a_leaf_without_row_or_frame_is_walked_if_it_all_fits(void **state)
{
    (void)state;
    fake_start(IMAGE + 0x800, 64);
    fake.registers.reg[RBP] = STACK + 30 * 8; /* the caller's frame */
    fake.stack[0] = BY_RBP + 1;
    fake.stack[31] = ROOT + 1;
    assert_walk(3, UNWIND_ROOT);
    assert_int_equal(fake.frames[1].pc, BY_RBP);
    assert_int_equal(fake.frames[1].how, UNWIND_BY_FRAME_POINTER);
    assert_int_equal(fake.result.by_frame_pointer, 1);
    /* Several frames that fit are enough where the root has no row either. */
    fake.stack[0] = PLAIN + 1;
    fake.stack[2] = PLAIN + 1;
    fake.stack[4] = IMAGE + 0x900;
    fake.registers.reg[RBP] = 0x77;
    assert_walk(4, UNWIND_NO_ROW);
    assert_int_equal(fake.frames[3].pc, IMAGE + 0x8ff);
    fake.registers.reg[RBP] = STACK + 30 * 8;
    /* The same word as a left-over: what is above does not fit, so the frame pointer is taken. */
    fake.stack[0] = PLAIN + 1;
    fake.stack[2] = 0x77;
    assert_walk(2, UNWIND_ROOT);
    assert_int_equal(fake.frames[1].pc, ROOT);
    fake.registers.reg[RBP] = 0x77;
    assert_walk(1, UNWIND_NO_ROW);
    /* Code without a file has frame pointers or nothing. */
    fake_start(JIT, 64);
    fake.stack[0] = ROOT + 1;
    assert_walk(1, UNWIND_NO_ROW);
}

static void a_stack_without_end_is_cut(void **state)
{
    (void)state;
    fake_start(PLAIN, ARRAY_SIZE(fake.stack));
    for (size_t i = 1; i < ARRAY_SIZE(fake.stack); i += 2)
        fake.stack[i] = PLAIN + 7;
    assert_walk(UNWIND_FRAMES_MAX, UNWIND_TOO_DEEP);
    unwind_walk(fake.space, &fake.registers, &fake.slice, NULL, fake.frames, 5, &fake.result);
    assert_int_equal(fake.result.count, 5);
    assert_int_equal(fake.result.end, UNWIND_TOO_DEEP);
    fake.stack[9] = ROOT + 1; /* exactly as many as there is room for */
    unwind_walk(fake.space, &fake.registers, &fake.slice, NULL, fake.frames, 6, &fake.result);
    assert_int_equal(fake.result.count, 6);
    assert_int_equal(fake.result.end, UNWIND_ROOT);
}

static void a_sample_without_a_stack_keeps_its_leaf(void **state)
{
    (void)state;
    fake_start(PLAIN, 0);
    assert_walk(1, UNWIND_NO_STACK);
    assert_int_equal(fake.frames[0].tag, 1);
    fake_start(PLAIN, 8);
    fake.registers.known = 0;
    assert_walk(1, UNWIND_NO_STACK);
    unwind_walk(fake.space, NULL, &fake.slice, NULL, fake.frames, 4, &fake.result);
    assert_int_equal(fake.result.count, 0);
    assert_int_equal(fake.result.end, UNWIND_NO_STACK);
    unwind_walk(fake.space, &fake.registers, NULL, NULL, fake.frames, 4, &fake.result);
    assert_int_equal(fake.result.count, 1);
    for (unsigned end = 0; end <= UNWIND_ENDS; end++)
        assert_true(strlen(unwind_end_text(end)) > 3);
}

/* Any registers and any bytes: it ends, and every frame it gives is in a mapping. */
static void random_stacks_are_survived(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (unsigned round = 0; round < 20000; round++) {
        fake_start(IMAGE, 64);
        uint64_t *words = (uint64_t *)&fake.registers;
        for (size_t i = 0; i < 17 + 64; i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            const uint64_t kinds[] = {seed, IMAGE + seed % 0x90, STACK + seed % 512, seed % 4096};
            *(i < 17 ? &words[i] : &fake.stack[i - 17]) = kinds[seed >> 32 & 3];
        }
        fake.registers.reg[RSP] = STACK + (seed % 64) * 8;
        fake_walk();
        assert_true(fake.result.count >= 1);
        for (unsigned i = 1; i < fake.result.count; i++)
            assert_int_not_equal(fake.frames[i].tag, 0);
    }
}

#if defined(__x86_64__)
/* What a sampler would see of the thread that calls this. */
struct capture {
    struct process_space *process;
    struct unwind_frame frames[64];
    struct unwind_result result;
};

static void capture_walk(struct capture *capture, const ucontext_t *context)
{
    static const uint8_t order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                    REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                    REG_R12, REG_R13, REG_R14, REG_R15};
    struct unwind_registers registers = {.known = 0xffff};
    registers.pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    for (size_t i = 0; i < ARRAY_SIZE(order); i++)
        registers.reg[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
    /* As much as there is: the sampler would get no more either. */
    static uint8_t bytes[256 << 10];
    AUTO(fd_close) int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ssize_t len = pread(fd, bytes, sizeof(bytes), (off_t)registers.reg[RSP]);
    struct unwind_slice slice = {registers.reg[RSP], bytes, len < 0 ? 0 : (size_t)len};
    unwind_walk(capture->process->space, &registers, &slice, capture->process->cache,
                capture->frames, ARRAY_SIZE(capture->frames), &capture->result);
}

__attribute__((noinline)) static void *thread_main(void *data)
{
    ucontext_t context;
    getcontext(&context);
    capture_walk(data, &context);
    return NULL;
}

static void a_thread_is_walked_to_its_root(void **state)
{
    (void)state;
    struct process_space process;
    pthread_t thread;
    assert_int_equal(process_space_init(getpid(), &process), 0);
    struct capture capture = {.process = &process};
    assert_int_equal(pthread_create(&thread, NULL, thread_main, &capture), 0);
    pthread_join(thread, NULL);
    assert_string_equal(unwind_end_text(capture.result.end), unwind_end_text(UNWIND_ROOT));
    assert_in_range(capture.result.count, 3, 8); /* thread_main, start_thread, clone3 */
    assert_int_equal(capture.result.by_frame_pointer, 0);
    process_space_deinit(&process);
}

static struct capture *handler_capture;

static void on_signal(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    capture_walk(handler_capture, context);
}

static void the_vdso_is_walked_from_memory(void **state)
{
    (void)state;
    struct process_space process;
    assert_int_equal(process_space_init(getpid(), &process), 0);
    bool found = false;
    for (size_t i = 0; i < process.images_count; i++)
        if (strcmp(process.paths[i], "[vdso]") == 0) {
            found = true;
            assert_true(unwind_image_rows(process.images[i]) > 2);
        }
    if (!found) {
        process_space_deinit(&process);
        skip("this kernel maps no vDSO");
    }
    process_space_deinit(&process);
}

static void a_context_given_to_a_handler_is_walked_to_the_root(void **state)
{
    (void)state;
    struct process_space process;
    assert_int_equal(process_space_init(getpid(), &process), 0);
    struct capture capture = {.process = &process};
    handler_capture = &capture;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, old;
    assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
    raise(SIGUSR1);
    sigaction(SIGUSR1, &old, NULL);
    assert_string_equal(unwind_end_text(capture.result.end), unwind_end_text(UNWIND_ROOT));
    assert_true(capture.result.count > 4); /* raise, this, cmocka, main, libc's start, _start */
    process_space_deinit(&process);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_lead_to_the_root),
        cmocka_unit_test(what_the_last_walk_found_is_taken_over_only_as_it_still_stands),
        cmocka_unit_test(a_call_at_a_functions_end_belongs_to_that_function),
        cmocka_unit_test(a_walk_goes_on_in_the_parts_above_the_slice),
        cmocka_unit_test(a_slice_that_is_too_short_says_how_long_it_should_be),
        cmocka_unit_test(nonsense_ends_the_walk_with_its_reason),
        cmocka_unit_test(a_register_that_was_lost_ends_the_walk_only_when_needed),
        cmocka_unit_test(expressions_are_followed_within_bounds),
        cmocka_unit_test(code_without_a_file_goes_by_frame_pointer_and_back_into_rows),
        cmocka_unit_test(a_signal_frame_leads_to_the_interrupted_stack_if_it_is_in_the_slice),
        cmocka_unit_test(a_leaf_without_row_or_frame_is_walked_if_it_all_fits),
        cmocka_unit_test(a_stack_without_end_is_cut),
        cmocka_unit_test(a_sample_without_a_stack_keeps_its_leaf),
        cmocka_unit_test(random_stacks_are_survived),
#if defined(__x86_64__)
        cmocka_unit_test(a_thread_is_walked_to_its_root),
        cmocka_unit_test(a_context_given_to_a_handler_is_walked_to_the_root),
        cmocka_unit_test(the_vdso_is_walked_from_memory),
#endif
    };
    return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
