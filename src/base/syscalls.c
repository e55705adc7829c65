/* A number and a machine become a name; the tables are made by tools/syscall_table. */
#include "base/syscalls.h"

enum syscall_machine syscall_machine_here(void)
{
#if defined(__aarch64__)
    return SYSCALLS_AARCH64;
#else
    return SYSCALLS_X86_64;
#endif
}

enum syscall_machine syscall_machine_named(struct str name)
{
    if (str_is(name, "x86_64"))
        return SYSCALLS_X86_64;
    if (str_is(name, "aarch64"))
        return SYSCALLS_AARCH64;
    return syscall_machine_here();
}

const char *syscall_name_on(enum syscall_machine machine, int32_t number)
{
    if (number < 0 || number >= SYSCALLS_MAX)
        return NULL;
    return machine == SYSCALLS_AARCH64 ? syscall_names_aarch64[number]
                                       : syscall_names_x86_64[number];
}

const char *syscall_name(int32_t number)
{
    return syscall_name_on(syscall_machine_here(), number);
}
