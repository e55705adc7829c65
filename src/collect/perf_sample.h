/* The bytes of a PERF_RECORD_SAMPLE as fields. They point into the record. */
#pragma once

#include "base/macros.h"
#include "unwind/unwind.h"

#include <linux/perf_event.h>

enum { PERF_CHAIN_MAX = 512 };

struct perf_sample {
    uint64_t id;
    uint64_t ip;
    int pid, tid;
    uint64_t time_ns;
    uint64_t period;
    const uint64_t *kernel; /* innermost first */
    size_t kernel_count;
    const uint64_t *user;
    size_t user_count;
    uint64_t abi; /* PERF_SAMPLE_REGS_ABI_*; NONE: a thread of the kernel */
    const uint64_t *registers;
    size_t register_count;
    const uint8_t *stack;
    size_t stack_bytes; /* what could be copied, at most the slice asked for */
    bool in_kernel;     /* where the sample hit */
};

/* `sample_type` of the event, whose fields must be those that perf_attr_sampling() asks for.
 * -EBADMSG when the record is too short for what it says. */
MUST_USE int perf_sample_parse(const struct perf_event_header *header, uint64_t sample_type,
                               uint64_t registers_mask, struct perf_sample *ret);

/* False when the registers are not those of a 64-bit program of this machine. */
bool perf_sample_registers(const struct perf_sample *sample, uint64_t registers_mask,
                           struct unwind_registers *ret);
