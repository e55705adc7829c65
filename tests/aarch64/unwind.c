/* The unwinder on aarch64, run under qemu-user by tests/aarch64/run.sh: this program
 * walks its own stack and compares with the return addresses its functions noted.
 *
 * Built with pointer authentication, so that saved return addresses carry signatures. */
#include "../unit/unwind_helpers.h"

#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

#define KEEP __attribute__((noinline, noclone, noipa))

enum { SP = 31, FP = 29, LR = 30, SHADOW_MAX = 64, FRAMES_MAX = 128 };

static struct process_space process;
static uint64_t shadow[SHADOW_MAX]; /* return addresses, outermost first */
static size_t depth;
static unsigned failures;
static uint64_t signed_slots;

#define CALLED()  (shadow[depth++] = (uint64_t)__builtin_return_address(0))
#define RETURNS() (depth--)

static void check(bool ok, const char *what)
{
    printf("%s %s\n", ok ? "ok" : "NOT OK", what);
    failures += !ok;
}

struct walked {
    struct unwind_frame frames[FRAMES_MAX];
    struct unwind_result result;
};

static void walk(const struct unwind_space *space, const struct unwind_registers *registers,
                 struct walked *ret)
{
    uint64_t sp = registers->reg[SP];
    size_t len = 16 << 10;
    /* Not over the top of the stack. */
    static uint8_t bytes[16 << 10];
    AUTO(fd_close) int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ssize_t got = pread(fd, bytes, len, (off_t)sp);
    if (got <= 0) { /* qemu may have no such file: the main stack is deep enough here */
        memcpy(bytes, (const void *)sp, len);
        got = (ssize_t)len;
    }
    for (size_t i = 0; i + 8 <= (size_t)got; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        uint32_t tag;
        uint64_t vaddr, plain = word & ((UINT64_C(1) << 48) - 1);
        signed_slots += plain != word && unwind_space_find(space, plain, &tag, &vaddr);
    }
    struct unwind_slice slice = {sp, bytes, (size_t)got};
    unwind_walk(space, registers, &slice, process.cache, ret->frames, FRAMES_MAX, &ret->result);
}

/* Frames from `first` on are the callers that were noted, and the end is the root. */
static bool right(const struct walked *walked, size_t first, const char *what)
{
    bool ok = walked->result.end == UNWIND_ROOT && walked->result.count >= first + depth;
    for (size_t i = 0; i < depth && ok; i++)
        ok = walked->frames[first + i].pc == shadow[depth - 1 - i] - 1;
    if (!ok) {
        printf("# %s: %u frames, end: %s\n", what, walked->result.count,
               unwind_end_text(walked->result.end));
        for (size_t i = 0; i < walked->result.count || i < first + depth; i++)
            printf("#   %zu walked %#llx how %u, true %#llx\n", i,
                   (unsigned long long)(i < walked->result.count ? walked->frames[i].pc : 0),
                   i < walked->result.count ? walked->frames[i].how : 0,
                   (unsigned long long)(i >= first && i < first + depth
                                            ? shadow[depth - 1 - (i - first)] - 1
                                            : 0));
    }
    return ok;
}

static void from_context(const ucontext_t *context, bool all, struct unwind_registers *ret)
{
    *ret = (struct unwind_registers){.pc = context->uc_mcontext.pc};
    for (unsigned i = 0; i < 31; i++)
        ret->reg[i] = context->uc_mcontext.regs[i];
    ret->reg[SP] = context->uc_mcontext.sp;
    ret->known = all ? UINT32_MAX : 0xfff80000u; /* getcontext() keeps x19 and up */
}

static const struct unwind_space *space_now;
static struct walked last;

KEEP static void here(void)
{
    CALLED();
    ucontext_t context;
    struct unwind_registers registers;
    getcontext(&context);
    from_context(&context, false, &registers);
    walk(space_now, &registers, &last);
    check(right(&last, 1, "here"), "the chain is the one that was noted");
    RETURNS();
}

KEEP static long recursion(long n)
{
    CALLED();
    if (n == 0)
        here();
    long r = n == 0 ? 1 : recursion(n - 1) + 1;
    RETURNS();
    return r;
}

KEEP static long grows(long n)
{
    CALLED();
    volatile char *room = alloca((size_t)n * 100);
    room[n] = 1;
    long r = recursion(3) + room[n];
    RETURNS();
    return r;
}

KEEP static long big_frame(long n)
{
    CALLED();
    volatile char room[5000];
    room[n] = 1;
    long r = grows(n) + room[n];
    RETURNS();
    return r;
}

/* A leaf that saves nothing: its return address is in the link register only. */
static volatile long ticks;
KEEP static long spin(void)
{
    long n = 0;
    while (ticks == 0)
        n++;
    return n;
}

KEEP static long calls_spin(void)
{
    CALLED();
    long r = spin();
    RETURNS();
    return r + ticks;
}

void restorer(void);
__asm__(".text\n .p2align 4\n .skip 64, 0\n .global restorer\n"
        "restorer: mov x8, #139\n svc #0\n .skip 64, 0\n");

static struct walked from_handler, from_interrupted;

static void on_signal(int number, siginfo_t *info, void *data)
{
    (void)number, (void)info;
    ucontext_t context;
    struct unwind_registers registers;
    if (ticks != 0)
        return;
    getcontext(&context);
    from_context(&context, false, &registers);
    walk(process.space, &registers, &from_handler);
    from_context(data, true, &registers);
    walk(process.space, &registers, &from_interrupted);
    ticks = 1;
}

/* libc would let qemu's own page be the restorer; this is as musl does it. */
static void handle(int number)
{
    struct {
        void (*handler)(int, siginfo_t *, void *);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action = {on_signal, SA_SIGINFO | 0x04000000, restorer, 0};
    if (syscall(SYS_rt_sigaction, number, &action, NULL, 8) != 0)
        perror("rt_sigaction");
}

KEEP static void signals(void)
{
    CALLED();
    handle(SIGALRM);
    ticks = 0;
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 20000}}, NULL);
    calls_spin();
    /* By now the frames of calls_spin are gone; its caller is this function. */
    const struct walked *walked = &from_interrupted;
    bool leaf = walked->result.count > 3 && walked->frames[0].pc >= (uint64_t)spin &&
                walked->frames[0].pc < (uint64_t)spin + 64;
    check(leaf && walked->result.end == UNWIND_ROOT &&
              walked->frames[1].pc - (uint64_t)calls_spin < 128 &&
              walked->frames[3].pc == shadow[depth - 1] - 1,
          "an interrupted leaf returns by its link register");
    walked = &from_handler;
    size_t at = 0;
    while (at < walked->result.count && walked->frames[at].pc != (uint64_t)restorer)
        at++;
    check(at > 0 && at + 4 < walked->result.count, "a handler returns to the restorer");
    check(walked->result.end == UNWIND_ROOT && at + 4 < walked->result.count &&
              walked->frames[at + 1].how == UNWIND_BY_SIGNAL &&
              walked->frames[at + 1].pc == from_interrupted.frames[0].pc &&
              walked->frames[at + 4].pc == shadow[depth - 1] - 1,
          "the chain goes on through a signal frame, at the exact address");
    RETURNS();
}

static int compare(const void *a, const void *b)
{
    CALLED();
    static bool once;
    if (!once) {
        once = true;
        ucontext_t context;
        struct unwind_registers registers;
        getcontext(&context);
        from_context(&context, false, &registers);
        walk(process.space, &registers, &last);
    }
    RETURNS();
    return *(const int *)a - *(const int *)b;
}

KEEP static void through_libc(void)
{
    CALLED();
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof(numbers[0]), compare);
    bool found = false;
    for (size_t i = 2; i < last.result.count; i++)
        found |= last.frames[i].pc == shadow[depth - 1] - 1;
    check(found && last.result.end == UNWIND_ROOT, "the chain goes through libc's qsort");
    RETURNS();
}

/* The program's own code as if it were a JIT's: frame records only. */
KEEP static void without_rows(void)
{
    CALLED();
    struct unwind_space *space = NULL;
    if (unwind_space_clone(process.space, &space) < 0)
        abort();
    uint64_t page = (uint64_t)recursion & ~UINT64_C(0xfff);
    if (unwind_space_map(space, page - 0x8000, 0x10000, 0, NULL, 99) < 0)
        abort();
    space_now = space;
    recursion(2);
    check(last.result.by_frame_pointer >= 4, "frame records lead through code without rows");
    space_now = process.space;
    unwind_space_free(space);
    RETURNS();
}

static void *thread_main(void *data)
{
    (void)data;
    size_t kept = depth;
    depth = 0;
    recursion(2);
    depth = kept;
    return NULL;
}

int main(void)
{
    if (process_space_init(getpid(), &process) < 0)
        return 1;
    space_now = process.space;
    check(unwind_machine_here() == UNWIND_AARCH64, "this is aarch64");
    big_frame(7);
    through_libc();
    signals();
    without_rows();
    pthread_t thread;
    pthread_create(&thread, NULL, thread_main, NULL);
    pthread_join(thread, NULL);
    check(signed_slots > 0, "some return addresses were signed");
    process_space_deinit(&process);
    printf("%u failures\n", failures);
    return failures != 0;
}
