/* Fields of a sample in the order of the kernel's perf_event.h. */
#include "collect/perf_sample.h"

#include <errno.h>
#include <string.h>

#if defined(__x86_64__) || defined(__aarch64__)
#include <asm/perf_regs.h>
#endif

/* Takes whole words off the record; a bad one stays bad. */
struct reader {
    const uint64_t *at;
    size_t left; /* words */
    bool bad;
};

static const uint64_t *take(struct reader *reader, uint64_t words)
{
    if (words > reader->left)
        reader->bad = true;
    if (reader->bad)
        return NULL;
    const uint64_t *taken = reader->at;
    reader->at += words;
    reader->left -= words;
    return taken;
}

static uint64_t take_u64(struct reader *reader)
{
    const uint64_t *word = take(reader, 1);
    return word ? *word : 0;
}

/* Markers between the parts say which part follows. */
static void chain_split(const uint64_t *chain, size_t count, struct perf_sample *ret)
{
    bool kernel = false;
    for (size_t i = 0; i < count; i++) {
        if (chain[i] >= (uint64_t)PERF_CONTEXT_MAX) {
            kernel = chain[i] == (uint64_t)PERF_CONTEXT_KERNEL;
            continue;
        }
        const uint64_t **part = kernel ? &ret->kernel : &ret->user;
        size_t *len = kernel ? &ret->kernel_count : &ret->user_count;
        if (*len == 0)
            *part = &chain[i];
        /* A part that is interrupted by another marker ends there. */
        if (*part + *len == &chain[i])
            (*len)++;
    }
}

static void stack_take(struct reader *reader, struct perf_sample *ret)
{
    uint64_t size = take_u64(reader);
    const uint64_t *bytes = size % 8 == 0 ? take(reader, size / 8) : NULL;
    if (size == 0)
        return;
    uint64_t used = take_u64(reader);
    if (!bytes || reader->bad || used > size) {
        reader->bad = true;
        return;
    }
    ret->stack = (const uint8_t *)bytes;
    ret->stack_bytes = used;
}

int perf_sample_parse(const struct perf_event_header *header, uint64_t sample_type,
                      uint64_t registers_mask, struct perf_sample *ret)
{
    struct perf_sample sample = {0};
    struct reader reader = {(const uint64_t *)(header + 1), (header->size - sizeof(*header)) / 8,
                            header->size < sizeof(*header)};
    sample.id = take_u64(&reader);
    sample.ip = take_u64(&reader);
    uint64_t task = take_u64(&reader);
    uint32_t ids[2];
    memcpy(ids, &task, sizeof(ids));
    sample.pid = (int)ids[0];
    sample.tid = (int)ids[1];
    sample.time_ns = take_u64(&reader);
    sample.period = take_u64(&reader);
    sample.in_kernel = (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    if (sample_type & PERF_SAMPLE_CALLCHAIN) {
        uint64_t count = take_u64(&reader);
        const uint64_t *chain = take(&reader, count);
        if (chain)
            chain_split(chain, count, &sample);
    }
    if (sample_type & PERF_SAMPLE_REGS_USER) {
        sample.abi = take_u64(&reader);
        if (sample.abi != PERF_SAMPLE_REGS_ABI_NONE) {
            sample.register_count = (size_t)__builtin_popcountll(registers_mask);
            sample.registers = take(&reader, sample.register_count);
        }
    }
    if (sample_type & PERF_SAMPLE_STACK_USER)
        stack_take(&reader, &sample);
    if (reader.bad)
        return -EBADMSG;
    *ret = sample;
    return 0;
}

#if defined(__x86_64__)
/* The kernel's order to DWARF's; -1 is the pc. */
static int dwarf_number(unsigned perf)
{
    static const signed char numbers[] = {
        [PERF_REG_X86_AX] = 0,   [PERF_REG_X86_BX] = 3,   [PERF_REG_X86_CX] = 2,
        [PERF_REG_X86_DX] = 1,   [PERF_REG_X86_SI] = 4,   [PERF_REG_X86_DI] = 5,
        [PERF_REG_X86_BP] = 6,   [PERF_REG_X86_SP] = 7,   [PERF_REG_X86_IP] = -1,
        [PERF_REG_X86_R8] = 8,   [PERF_REG_X86_R9] = 9,   [PERF_REG_X86_R10] = 10,
        [PERF_REG_X86_R11] = 11, [PERF_REG_X86_R12] = 12, [PERF_REG_X86_R13] = 13,
        [PERF_REG_X86_R14] = 14, [PERF_REG_X86_R15] = 15,
    };
    return perf < ARRAY_SIZE(numbers) ? numbers[perf] : -1;
}
#elif defined(__aarch64__)
static int dwarf_number(unsigned perf)
{
    return perf == PERF_REG_ARM64_PC ? -1 : (int)perf;
}
#else
static int dwarf_number(unsigned perf)
{
    (void)perf;
    return -1;
}
#endif

bool perf_sample_registers(const struct perf_sample *sample, uint64_t registers_mask,
                           struct unwind_registers *ret)
{
    if (sample->abi != PERF_SAMPLE_REGS_ABI_64 || !sample->registers)
        return false;
    struct unwind_registers registers = {0};
    size_t at = 0;
    for (uint64_t rest = registers_mask; rest != 0 && at < sample->register_count;
         rest &= rest - 1) {
        int number = dwarf_number((unsigned)__builtin_ctzll(rest));
        uint64_t value = sample->registers[at++];
        if (number < 0) {
            registers.pc = value;
        } else if (number < UNWIND_REGISTERS) {
            registers.reg[number] = value;
            registers.known |= 1u << number;
        }
    }
    *ret = registers;
    return true;
}
