/* Call chains that are hard to unwind, each run once. tests/unit/test_unwind_steps.c
 * runs this one instruction at a time and knows the true chain at each of them; it
 * sends SIGUSR1 and SIGUSR2 at any instruction after the first SIGUSR1 was raised.
 *
 * Built with full optimization and without frame pointers. */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__clang__)
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noinline, noclone, noipa))
#endif

static volatile long sum;
static volatile sig_atomic_t handled;

KEEP static long leaf(long a)
{
    return a * 3 + sum;
}

KEEP static long recursion(long depth)
{
    if (depth == 0)
        return leaf(depth);
    long below = recursion(depth - 1);
    return below + leaf(below);
}

/* Many values live over calls: every callee-saved register is pushed. */
KEEP static long registers(long a, long b, long c, long d, long e, long f)
{
    long g = leaf(a), h = leaf(b + g), i = leaf(c + h), j = leaf(d + i), k = leaf(e + j);
    for (int n = 0; n < 3; n++) {
        g += leaf(h + f);
        h += leaf(i), i += leaf(j), j += leaf(k), k += leaf(g);
    }
    return a + b + c + d + e + f + g + h + i + j + k;
}

static int compare(const void *left, const void *right)
{
    int a, b;
    memcpy(&a, left, sizeof(a));
    memcpy(&b, right, sizeof(b));
    return (int)leaf(0) * 0 + (a > b) - (a < b);
}

KEEP static long through_libc(void)
{
    int numbers[] = {5, 2, 9, 1, 7};
    qsort(numbers, sizeof(numbers) / sizeof(numbers[0]), sizeof(numbers[0]), compare);
    return numbers[0];
}

KEEP static long grows(long n)
{
    char *room = alloca((size_t)n * 16 + 1);
    memset(room, 1, (size_t)n * 16);
    return room[0] + leaf(n);
}

/* More alignment than the ABI gives, and a size known only now: gcc keeps the caller's
 * frame in another register (DRAP). */
KEEP static long realigned(long n)
{
    _Alignas(64) volatile char room[128];
    char *more = alloca((size_t)n * 8 + 1);
    room[n] = 1;
    more[0] = room[n];
    return leaf(more[0]) + registers(n, more[0], 3, 4, 5, 6);
}

__attribute__((force_align_arg_pointer)) KEEP static long realigned_entry(long n)
{
    return leaf(n) + realigned(n);
}

static jmp_buf back;

/* Ends in a call that does not return: its return address is already another function. */
__attribute__((noreturn)) KEEP static void gives_up(long n)
{
    sum = sum + n;
    longjmp(back, 1);
}

KEEP static long noreturn_call(long n)
{
    if (setjmp(back) == 0)
        gives_up(n);
    return sum;
}

KEEP static long text(void)
{
    char line[128];
    int len = snprintf(line, sizeof(line), "%d %s %ld %.3f", 42, "words", sum, 2.5);
    return len + (long)strlen(line) + (strchr(line, 'w') - line);
}

KEEP static long clock_read(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec != 0;
}

static void on_signal(int signal)
{
    handled = handled + (signal == SIGUSR1) + leaf(0) * 0;
}

KEEP static void on_other_stack(void)
{
    sum = sum + recursion(2);
    raise(SIGUSR2); /* its stack lies right below this one */
    sum = sum + recursion(2);
}

/* As runtimes do that have stacks of their own: the frame pointer leads back. */
void call_on_stack(void (*function)(void), void *top);
__asm__(".text\n"
        ".type call_on_stack, @function\n"
        "call_on_stack:\n"
        ".cfi_startproc\n"
        "  push %rbp\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  .cfi_rel_offset %rbp, 0\n"
        "  mov %rsp, %rbp\n"
        "  .cfi_def_cfa_register %rbp\n"
        "  mov %rsi, %rsp\n"
        "  call *%rdi\n"
        "  leave\n"
        "  .cfi_def_cfa %rsp, 8\n"
        "  ret\n"
        ".cfi_endproc\n"
        ".size call_on_stack, . - call_on_stack\n");

static void handle(int signal, int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(signal, &action, NULL);
}

/* The signal stack below, the stack of a coroutine above it, in one block. */
enum { SIGNAL_STACK = 16 << 10, OTHER_STACK = 8 << 10 };
static _Alignas(4096) char stacks[SIGNAL_STACK + OTHER_STACK];

int main(void)
{
    handle(SIGUSR1, 0);
    handle(SIGUSR2, SA_ONSTACK);
    sigaltstack(&(stack_t){.ss_sp = stacks, .ss_size = SIGNAL_STACK}, NULL);
    raise(SIGUSR1);

    sum = sum + recursion(4);
    sum = sum + registers(1, 2, 3, 4, 5, 6);
    sum = sum + through_libc();
    sum = sum + grows(3);
    sum = sum + realigned_entry(2);
    sum = sum + noreturn_call(5);
    sum = sum + text();
    sum = sum + clock_read();

    call_on_stack(on_other_stack, stacks + SIGNAL_STACK + OTHER_STACK);
    return handled > 0 && sum != 0 ? 0 : 1;
}
