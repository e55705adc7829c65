/* Burns CPU in functions whose names a profiler must find: one that is inlined, one that calls
 * itself, one that is light. -DALONE builds it without a C library, so that a recording of it
 * depends on nothing else (tests/captures/perf). */
void heavy(void);
void light(void);
void deeper(int levels);

static volatile unsigned long sum;

static inline __attribute__((always_inline)) void inlined(unsigned long rounds)
{
    for (unsigned long i = 0; i < rounds; i++)
        sum += i * i;
}

__attribute__((noinline)) void heavy(void)
{
    inlined(3000000);
    sum++;
}

__attribute__((noinline)) void light(void)
{
    for (unsigned long i = 0; i < 1000000; i++)
        sum ^= i;
    sum++;
}

__attribute__((noinline)) void deeper(int levels)
{
    if (levels > 0)
        deeper(levels - 1);
    else
        heavy();
    sum++;
}

int main(void)
{
    for (int i = 0; i < 40; i++) {
        heavy();
        light();
        deeper(5);
    }
    return 0;
}

#ifdef ALONE
__asm__(".globl _start\n.type _start, @function\n_start:\n.cfi_startproc\n.cfi_undefined %rip\n"
        "xor %ebp, %ebp\nand $-16, %rsp\ncall main\nmov %eax, %edi\nmov $60, %eax\nsyscall\n"
        ".cfi_endproc\n.size _start, . - _start\n");
#endif
