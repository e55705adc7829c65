/* The table of pre-flight checks, and its run over one target and machine. */
#include "host/checks.h"

#include "host/check_internal.h"

#include <unistd.h>

const struct check checks[] = {
    {"symbols", "symbols present", check_symbols},
    {"unwind", "stacks can be unwound", check_unwind},
    {"optimized", "optimized build", check_optimized},
    {"debug_info", "source lines known", check_debug_info},
    {"assertions", "assertions compiled out", check_assertions},
    {"sanitizer", "no sanitizer", check_sanitizer},
    {"instrumented", "not instrumented", check_instrumented},
    {"perf_permission", "sampling permitted", check_perf_permission},
    {"perf_system", "system-wide sampling permitted", check_perf_system},
    {"kernel_stacks", "kernel stacks permitted", check_kernel_stacks},
    {"kptr_restrict", "kernel symbols readable", check_kptr_restrict},
    {"bpf_permission", "BPF permitted", check_bpf_permission},
    {"ptrace_scope", "other processes can be read", check_ptrace_scope},
    {"pmu", "hardware counters", check_pmu},
    {"nmi_watchdog", "all hardware counters free", check_nmi_watchdog},
    {"load", "machine idle", check_load},
    {"governor", "CPU frequency governor", check_governor},
    {"turbo", "turbo off", check_turbo},
    {"throttling", "no thermal throttling", check_throttling},
    {"cpu_limit", "no cgroup CPU limit", check_cpu_limit},
    {"steal", "no stolen CPU time", check_steal},
    {"memory", "memory free", check_memory},
    {"swap", "not swapping", check_swap},
    {"clocksource", "fast clock", check_clocksource},
    {"disk", "room for results", check_disk},
    {0},
};

void check_ok(struct check_result *ret, const char *detail)
{
    *ret = (struct check_result){.verdict = CHECK_OK, .detail = detail};
}

void check_na(struct check_result *ret, const char *reason)
{
    *ret = (struct check_result){.verdict = CHECK_NA, .detail = reason};
}

void check_set(struct check_result *ret, enum check_verdict verdict, const char *detail,
               const char *spoils, const char *mend)
{
    *ret = (struct check_result){verdict, detail, spoils, mend};
}

const char *check_as_root(const struct check_input *input, const char *command)
{
    bool sudo = host_is_live(input->host) && geteuid() != 0;
    return sudo ? arena_printf(input->host->arena, "sudo sh -c %s", check_quoted(input, command))
                : command;
}

const char *check_quoted(const struct check_input *input, const char *text)
{
    char *quoted = arena_alloc(input->host->arena, 4 * strlen(text) + 3);
    char *at = quoted;
    if (!quoted)
        return "";
    *at++ = '\'';
    for (; *text; text++) {
        if (*text == '\'') /* leave the quotes, write one escaped, and enter again */
            at = stpcpy(at, "'\\''");
        else
            *at++ = *text;
    }
    *at = '\'';
    return quoted;
}

static struct value verdict_value(enum check_verdict verdict)
{
    switch (verdict) {
    case CHECK_OK:
        return value_tone(value_text("ok"), TONE_GOOD);
    case CHECK_WARN:
        return value_tone(value_text("warn"), TONE_WARN);
    case CHECK_FAIL:
        return value_tone(value_text("fail"), TONE_BAD);
    case CHECK_NA:
        break;
    }
    return value_tone(value_text("n/a"), TONE_DIM);
}

static struct value text_or_empty(const char *text)
{
    return value_text(text ? text : "");
}

struct value checks_table(const struct check_input *input, unsigned *ret_failed)
{
    static const struct column columns[] = {
        {.key = "verdict", .title = "verdict"},
        {.key = "id", .title = "id", .show = SHOW_MACHINE},
        {.key = "check", .title = "check"},
        {.key = "detail", .title = "found", .wrap = true},
        {.key = "spoils", .title = "spoils", .wrap = true},
        {.key = "mend", .title = "mend with", .wrap = true},
    };
    struct value table = value_table(input->host->arena, columns, ARRAY_SIZE(columns));
    unsigned failed = 0;
    for (const struct check *check = checks; check->id; check++) {
        struct check_result result = {.verdict = CHECK_NA, .detail = "the check gave no answer"};
        check->run(input, &result);
        failed += result.verdict == CHECK_FAIL;
        struct table_row *row = table_add(&table);
        if (!row)
            break; /* out of memory, which the arena remembers */
        row->cells[0] = verdict_value(result.verdict);
        row->cells[1] = value_text(check->id);
        row->cells[2] = value_text(check->title);
        row->cells[3] = text_or_empty(result.detail);
        row->cells[4] = text_or_empty(result.spoils);
        row->cells[5] = text_or_empty(result.mend);
    }
    *ret_failed = failed;
    return table;
}
