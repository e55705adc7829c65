/* Finds the functions behind the hooks for I/O, once. */
#include "io.h"

#include <dlfcn.h>

struct next_io next_io;

void io_resolve(void)
{
    /* Looking for them may bring an allocator into being, which may well ask the kernel for
     * something through a hook: that one is let through to the kernel. */
    static __thread bool looking __attribute__((tls_model("initial-exec")));
    if (looking)
        return;
    looking = true;
    /* NOLINTBEGIN(bugprone-macro-parentheses) */
#define IO_FIND(type, name, arguments)                                                             \
    if (!next_io.name) {                                                                           \
        union {                                                                                    \
            void *object;                                                                          \
            type(*function) arguments;                                                             \
        } found_ = {.object = dlsym(RTLD_NEXT, #name)};                                            \
        next_io.name = found_.function;                                                            \
    }
    IO_FUNCTIONS(IO_FIND)
#undef IO_FIND
    /* NOLINTEND(bugprone-macro-parentheses) */
    looking = false;
}

long io_kernel(long number, long a, long b, long c, long d)
{
    long r = core_raw(number, a, b, c, d);
    if (r >= 0 || r < -4095)
        return r;
    errno = (int)-r;
    return -1;
}

long io_missing(void)
{
    errno = ENOSYS;
    return -1;
}
