/* The embedded helper: a program of a few pages without libc that is the
 * launcher and nothing else. Its arguments are the launcher's options as
 * hexadecimal numbers, the path of the target, and the target's argv. */
#include "target/launcher.h"
#include "target/launcher_sys.h"

#include <stddef.h>
#include <sys/prctl.h>

void *memcpy(void *to, const void *from, size_t len);
void *memset(void *to, int byte, size_t len);
void start(long *stack) __attribute__((noreturn, used));

/* The compiler may call these two for its own purposes. */
void *memcpy(void *to, const void *from, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int byte, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((volatile char *)to)[i] = (char)byte;
    return to;
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n"
        "  call start\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n  mov x29, #0\n  mov x30, #0\n  mov x0, sp\n  b start\n");
#endif

static uint64_t number(const char **text)
{
    uint64_t value = 0;
    for (; **text && **text != ','; (*text)++)
        value = value * 16 + (uint64_t)(**text <= '9' ? **text - '0' : **text - 'a' + 10);
    if (**text == ',')
        (*text)++;
    return value;
}

/* The stack as the kernel makes it: argc, argv, NULL, environment, NULL. */
void start(long *stack)
{
    long argc = stack[0];
    char **argv = (char **)(stack + 1);
    if (argc >= 4) {
        const char *text = argv[1];
        struct launcher_opts opts = {.path = argv[2], .argv = argv + 3, .env = argv + argc + 1};
        opts.event_fd = (int)number(&text);
        opts.control_fd = (int)number(&text);
        opts.drain_fd[0] = (int)number(&text);
        opts.drain_fd[1] = (int)number(&text);
        opts.flags = (uint32_t)number(&text);
        opts.signal_mask = number(&text);
        sys_call(SYS_prctl, PR_SET_NAME, (long)"whyslow-launch", 0, 0, 0);
        launcher_run(&opts);
    }
    for (;;)
        sys_call(SYS_exit_group, 0, 0, 0, 0, 0);
}
