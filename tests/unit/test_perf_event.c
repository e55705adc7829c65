/* Promises of collect/perf_event.c and perf_sample.c: what is asked of the kernel, and what
 * its samples mean. */
#include "unit.h"

#include "base/fd.h"
#include "collect/perf_event.h"
#include "collect/perf_ring.h"
#include "collect/perf_sample.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

static void test_every_event_has_its_time_at_a_known_place(void **state)
{
    (void)state;
    struct perf_plan plan = {.kernel = true, .rate_hz = 999};
    const struct perf_event_attr attrs[] = {
        perf_attr_ring(0),
        perf_attr_sideband(&plan, false),
        perf_attr_sampling(&plan, 1000000, 16384),
    };
    uint64_t common = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    /* These would stand between, and move it. */
    uint64_t forbidden = PERF_SAMPLE_CPU | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_ID |
                         PERF_SAMPLE_ADDR;
    for (size_t i = 0; i < ARRAY_SIZE(attrs); i++) {
        assert_true((attrs[i].sample_type & common) == common);
        assert_true((attrs[i].sample_type & forbidden) == 0);
        assert_true(attrs[i].sample_id_all && attrs[i].use_clockid);
        assert_int_equal(attrs[i].clockid, CLOCK_MONOTONIC);
        assert_true(attrs[i].disabled && attrs[i].exclude_hv && attrs[i].exclude_guest);
    }
    assert_true(attrs[2].sample_type & PERF_SAMPLE_IP);
}

static void test_a_plan_without_the_kernel_asks_for_nothing_of_it(void **state)
{
    (void)state;
    struct perf_plan plan = {.kernel = false, .rate_hz = 999};
    struct perf_event_attr attr = perf_attr_sampling(&plan, 1000000, 16384);
    assert_true(attr.exclude_kernel && attr.exclude_callchain_kernel);
    assert_false(attr.sample_type & PERF_SAMPLE_CALLCHAIN);
    char event[32];
    assert_string_equal(perf_plan_event(&plan, event, sizeof(event)), "cpu-clock:u");
    plan = (struct perf_plan){.kernel = true, .clock = PERF_CYCLES, .precise = 2};
    assert_string_equal(perf_plan_event(&plan, event, sizeof(event)), "cycles:pp");
    plan.kernel = false;
    assert_string_equal(perf_plan_event(&plan, event, sizeof(event)), "cycles:ppu");
    plan = (struct perf_plan){.kernel = true};
    assert_string_equal(perf_plan_event(&plan, event, sizeof(event)), "cpu-clock");
}

static void test_tasks_inherit_and_the_machine_does_not(void **state)
{
    (void)state;
    struct perf_plan plan = {.rate_hz = 999};
    assert_true(perf_attr_sampling(&plan, 1, 8).inherit &&
                perf_attr_sideband(&plan, false).inherit);
    plan.system = true;
    assert_false(perf_attr_sampling(&plan, 1, 8).inherit ||
                 perf_attr_sideband(&plan, false).inherit);
    assert_true(perf_attr_sampling(&plan, 1, 8).exclude_idle);
}

static void test_stack_modes(void **state)
{
    (void)state;
    struct perf_plan plan = {.kernel = true, .rate_hz = 999, .stacks = PERF_STACKS_FP};
    struct perf_event_attr attr = perf_attr_sampling(&plan, 1, PERF_SLICE_BYTES_MAX);
    assert_false(attr.exclude_callchain_user);
    assert_false(attr.sample_type & PERF_SAMPLE_STACK_USER);
    plan.stacks = PERF_STACKS_SLICE;
    attr = perf_attr_sampling(&plan, 1, PERF_SLICE_BYTES_MAX);
    assert_true(attr.exclude_callchain_user);
    assert_true(attr.sample_stack_user % 8 == 0 && attr.sample_stack_user < UINT16_MAX);
    plan.stacks = PERF_STACKS_NONE;
    attr = perf_attr_sampling(&plan, 1, 16384);
    assert_false(attr.sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER));
}

static void test_refusals_become_words_with_a_remedy(void **state)
{
    (void)state;
    static const int errors[] = {EACCES, EPERM, EMFILE, ESRCH, ENOSYS, ENODEV};
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        struct why why = {0};
        assert_int_equal(perf_event_why(errors[i], "cannot sample", &why), -errors[i]);
        assert_non_null(strstr(why.what, "cannot sample"));
        assert_true(why.remedy[0] != '\0');
    }
}

static void test_the_cpus_of_this_machine_are_found(void **state)
{
    (void)state;
    int *cpus = NULL;
    size_t count = 0;
    assert_int_equal(perf_cpus_read(&cpus, &count, NULL), 0);
    assert_true(count >= 1);
    for (size_t i = 1; i < count; i++)
        assert_true(cpus[i] > cpus[i - 1]);
    free(cpus);
}

/* A record tells of a loss when the next one finds room: nothing is read here, so that none does.
 */
static void test_what_a_ring_lost_last_is_counted(void **state)
{
    (void)state;
    enum { NAMES = 1000, RING_PAGES = 2 };
    struct perf_plan plan = {.losses = true};
    struct perf_event_attr attr = perf_attr_sideband(&plan, false);
    attr.inherit = 0; /* such a ring is of one CPU or of one task */
    AUTO(fd_close) int fd = perf_event_open(&attr, 0, -1, 0);
    if (fd < 0) /* not allowed, or Linux before 6.0 */
        skip("perf_event_paranoid, or this kernel: events do not count what they lose");
    size_t bytes = RING_PAGES * (size_t)sysconf(_SC_PAGESIZE);
    void *ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(ring != MAP_FAILED);
    assert_int_equal(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(prctl(PR_SET_NAME, i % 2 ? "one" : "another"), 0);
    assert_int_equal(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
    uint64_t lost = perf_event_lost(&plan, fd);
    /* Each of its records has 48 bytes or more. */
    assert_true(lost >= NAMES - bytes / 2 / 48 && lost < NAMES);
    plan.losses = false;
    assert_int_equal(perf_event_lost(&plan, fd), 0);
    munmap(ring, bytes);
}

/* A sample as the kernel writes it, for the fields that perf_attr_sampling() asks for. */
struct built {
    uint64_t words[4096];
    size_t len;
};

static void add(struct built *b, uint64_t word)
{
    b->words[b->len++] = word;
}

static const struct perf_event_header *finish(struct built *b)
{
    struct perf_event_header header = {.type = PERF_RECORD_SAMPLE,
                                       .misc = PERF_RECORD_MISC_KERNEL,
                                       .size = (uint16_t)(b->len * 8)};
    memcpy(b->words, &header, sizeof(header));
    return (const struct perf_event_header *)b->words;
}

static void build(struct built *b, size_t stack_words, uint64_t used)
{
    *b = (struct built){.len = 1};
    add(b, 42);                          /* identifier */
    add(b, 0xffffffff81000000);          /* ip */
    add(b, (uint64_t)1001 << 32 | 1000); /* pid, tid */
    add(b, 5000);                        /* time */
    add(b, 1001001);                     /* period */
    add(b, 6);                           /* chain */
    add(b, (uint64_t)PERF_CONTEXT_KERNEL);
    add(b, 0xffffffff81000000);
    add(b, 0xffffffff81000100);
    add(b, (uint64_t)PERF_CONTEXT_USER);
    add(b, 0x401000);
    add(b, 0x401100);
    add(b, PERF_SAMPLE_REGS_ABI_64);
    uint64_t mask = perf_registers_mask();
    for (unsigned bit = 0; bit < 64; bit++)
        if (mask >> bit & 1)
            add(b, 0x1000 + bit);
    add(b, stack_words * 8);
    for (size_t i = 0; i < stack_words; i++)
        add(b, i);
    if (stack_words > 0)
        add(b, used);
}

static uint64_t full_type(void)
{
    struct perf_plan plan = {.kernel = true, .rate_hz = 999};
    return perf_attr_sampling(&plan, 1, 64).sample_type;
}

static void test_a_sample_is_taken_apart(void **state)
{
    (void)state;
    struct built b;
    struct perf_sample s;
    build(&b, 16, 72);
    assert_int_equal(perf_sample_parse(finish(&b), full_type(), perf_registers_mask(), &s), 0);
    assert_true(s.id == 42 && s.pid == 1000 && s.tid == 1001 && s.time_ns == 5000);
    assert_true(s.period == 1001001 && s.in_kernel);
    assert_true(s.kernel_count == 2 && s.kernel[1] == 0xffffffff81000100);
    assert_true(s.user_count == 2 && s.user[0] == 0x401000);
    assert_int_equal(s.stack_bytes, 72);
    struct unwind_registers registers;
    assert_true(perf_sample_registers(&s, perf_registers_mask(), &registers));
#if defined(__x86_64__)
    assert_true(registers.pc == 0x1000 + 8);     /* PERF_REG_X86_IP */
    assert_true(registers.reg[7] == 0x1000 + 7); /* sp */
    assert_true(registers.reg[6] == 0x1000 + 6); /* bp */
    assert_true(registers.reg[3] == 0x1000 + 1); /* bx */
    assert_true(registers.reg[15] == 0x1000 + 23);
    assert_true(registers.known == 0xffff);
#endif
}

static void test_a_thread_of_the_kernel_has_no_registers(void **state)
{
    (void)state;
    struct built b = {.len = 1};
    struct perf_sample s;
    for (int i = 0; i < 5; i++)
        add(&b, 1);
    add(&b, 0); /* no chain */
    add(&b, PERF_SAMPLE_REGS_ABI_NONE);
    add(&b, 0); /* no stack */
    assert_int_equal(perf_sample_parse(finish(&b), full_type(), perf_registers_mask(), &s), 0);
    struct unwind_registers registers;
    assert_false(perf_sample_registers(&s, perf_registers_mask(), &registers));
    s.abi = PERF_SAMPLE_REGS_ABI_32;
    assert_false(perf_sample_registers(&s, perf_registers_mask(), &registers));
}

static void test_a_short_or_lying_sample_is_refused(void **state)
{
    (void)state;
    struct built b;
    struct perf_sample s = {.pid = 77};
    build(&b, 16, 72);
    size_t whole = b.len;
    for (size_t len = 1; len < whole; len++) {
        b.len = len;
        assert_int_equal(perf_sample_parse(finish(&b), full_type(), perf_registers_mask(), &s),
                         -EBADMSG);
    }
    assert_int_equal(s.pid, 77);
    build(&b, 16, 16 * 8 + 8); /* more used than there is */
    assert_int_equal(perf_sample_parse(finish(&b), full_type(), perf_registers_mask(), &s),
                     -EBADMSG);
    build(&b, 16, 72);
    b.words[6] = UINT64_MAX; /* a chain without end */
    assert_int_equal(perf_sample_parse(finish(&b), full_type(), perf_registers_mask(), &s),
                     -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_event_has_its_time_at_a_known_place),
        cmocka_unit_test(test_a_plan_without_the_kernel_asks_for_nothing_of_it),
        cmocka_unit_test(test_tasks_inherit_and_the_machine_does_not),
        cmocka_unit_test(test_stack_modes),
        cmocka_unit_test(test_refusals_become_words_with_a_remedy),
        cmocka_unit_test(test_the_cpus_of_this_machine_are_found),
        cmocka_unit_test(test_what_a_ring_lost_last_is_counted),
        cmocka_unit_test(test_a_sample_is_taken_apart),
        cmocka_unit_test(test_a_thread_of_the_kernel_has_no_registers),
        cmocka_unit_test(test_a_short_or_lying_sample_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
