/* Finds the functions behind the hooks for I/O, once. */
#include "find.h"
#include "io.h"

struct next_io next_io;

void io_resolve(void)
{
    /* NOLINTBEGIN(bugprone-macro-parentheses) */
#define IO_FIND(type, name, arguments)                                                             \
    if (!next_io.name) {                                                                           \
        union {                                                                                    \
            void *object;                                                                          \
            type(*function) arguments;                                                             \
        } found_ = {.object = find_next(#name).address};                                           \
        next_io.name = found_.function;                                                            \
    }
    IO_FUNCTIONS(IO_FIND)
#undef IO_FIND
    /* NOLINTEND(bugprone-macro-parentheses) */
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
