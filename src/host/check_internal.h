/* The checks by what they look at; the table that lists them is in checks.c. */
#pragma once

#include "host/checks.h"

typedef void check_run(const struct check_input *input, struct check_result *ret);

/* Results. Texts must live as long as the host's arena; `mend` may be NULL. */
void check_ok(struct check_result *ret, const char *detail);
void check_na(struct check_result *ret, const char *reason);
void check_set(struct check_result *ret, enum check_verdict verdict, const char *detail,
               const char *spoils, const char *mend);
/* A command that needs root, with sudo before it where we are not root. */
const char *check_as_root(const struct check_input *input, const char *command);
/* In single quotes, safe to paste into a shell. */
const char *check_quoted(const struct check_input *input, const char *text);

/* check_binary.c: how the program was built. */
check_run check_symbols, check_unwind, check_optimized, check_debug_info, check_assertions,
    check_sanitizer, check_instrumented;

/* check_kernel.c: what the kernel lets us see. */
check_run check_perf_permission, check_perf_system, check_kernel_stacks, check_bpf_permission,
    check_kptr_restrict, check_pmu, check_nmi_watchdog, check_ptrace_scope;

/* check_machine.c: what else moves the numbers. */
check_run check_load, check_governor, check_turbo, check_throttling, check_cpu_limit, check_steal,
    check_memory, check_swap, check_clocksource, check_disk;
