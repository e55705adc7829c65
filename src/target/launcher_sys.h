/* One system call, with or without libc; the result is -errno on failure. */
#pragma once

#include <sys/syscall.h>

#ifdef LAUNCHER_FREESTANDING

#if defined(__x86_64__)
static inline long sys_call(long number, long a, long b, long c, long d, long e)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long ret;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return ret;
}
#elif defined(__aarch64__)
static inline long sys_call(long number, long a, long b, long c, long d, long e)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
                     : "memory", "cc");
    return x0;
}
#else
#error "no system call for this machine: the build must not make the helper here"
#endif

#else

#include <errno.h>
#include <unistd.h>

static inline long sys_call(long number, long a, long b, long c, long d, long e)
{
    long ret = syscall(number, a, b, c, d, e);
    return ret < 0 ? -errno : ret;
}

#endif
