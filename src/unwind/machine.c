/* The two machines that we unwind, as data. Part of the core: no libc, no state. */
#include "unwind/machine.h"

#include <elf.h>

/* ucontext starts where the stack pointer is (the return address was popped): five words,
 * then r8–r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip; here in DWARF's order. */
static const uint16_t x86_64_signal[] = {
    144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80, 88, 96,
};

/* siginfo (128 bytes), ucontext up to its aligned mcontext (176), the fault address (8),
 * then x0–x30, sp, pc. */
#define A64(n) (128 + 176 + 8 + 8 * (n))
static const uint16_t aarch64_signal[] = {
    A64(0),  A64(1),  A64(2),  A64(3),  A64(4),  A64(5),  A64(6),  A64(7),
    A64(8),  A64(9),  A64(10), A64(11), A64(12), A64(13), A64(14), A64(15),
    A64(16), A64(17), A64(18), A64(19), A64(20), A64(21), A64(22), A64(23),
    A64(24), A64(25), A64(26), A64(27), A64(28), A64(29), A64(30), A64(31),
};

static const struct unwind_machine_info machines[] = {
    [UNWIND_X86_64] =
        {
            .elf_machine = EM_X86_64,
            .sp = 7,
            .fp = 6,
            .registers = 16,
            .lr = UNWIND_REGISTERS,
            .callee_saved = 1u << 3 | 1u << 6 | 0xfu << 12, /* rbx, rbp, r12–r15 */
            .address_mask = UINT64_MAX,
            .signal_registers = x86_64_signal,
            .signal_pc = 168,
            .restorers = {{{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}, 9},
                          {{0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05}, 7}},
        },
    [UNWIND_AARCH64] =
        {
            .elf_machine = EM_AARCH64,
            .sp = 31,
            .fp = 29,
            .registers = 32,
            .lr = 30,
            .callee_saved = 0x7ffu << 19, /* x19–x29 */
            /* User addresses have 48 bits unless a program asks for more by hand; above
             * them stands the pointer's signature. */
            .address_mask = (UINT64_C(1) << 48) - 1,
            .signal_registers = aarch64_signal,
            .signal_pc = A64(32),
            .restorers = {{{0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4}, 8},
                          {{0x68, 0x11, 0x80, 0x52, 0x01, 0x00, 0x00, 0xd4}, 8}},
        },
};

const struct unwind_machine_info *unwind_machine_info(enum unwind_machine machine)
{
    return &machines[machine];
}

bool unwind_machine_of_elf(uint16_t elf_machine, enum unwind_machine *ret)
{
    for (unsigned i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
        if (machines[i].elf_machine == elf_machine) {
            *ret = (enum unwind_machine)i;
            return true;
        }
    return false;
}

enum unwind_machine unwind_machine_here(void)
{
#if defined(__aarch64__)
    return UNWIND_AARCH64;
#else
    return UNWIND_X86_64;
#endif
}
