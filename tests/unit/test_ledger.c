/* Explanations of runs whose cause is known: what the three angles say, and together. */
#include "unit.h"

#include "made_evidence.h"

#include "analyze/ledger.h"

#include <asm/unistd.h>
#include <stdio.h>

static const struct hypothesis *row_of(const struct ledger *ledger, const char *id)
{
    for (size_t i = 0; i < ledger->count; i++)
        if (strcmp(ledger->rows[i].id, id) == 0)
            return &ledger->rows[i];
    fail_msg("no row %s", id);
    return NULL;
}

static struct ledger ledger_of(struct made_run *run)
{
    struct findings findings = {.arena = &run->arena};
    struct ledger ledger;
    assert_int_equal(ledger_build(&run->arena, &run->evidence, &findings, &ledger), 0);
    assert_true(ledger.count >= 13);
    for (size_t i = 0; i < ledger.count; i++) {
        const struct hypothesis *row = &ledger.rows[i];
        for (int k = 0; k < ANGLES && strncmp(row->id, "target:", 7) != 0; k++)
            assert_true(row->angles[k].text && row->angles[k].text[0]);
        if (i > 0 && !isnan(row->share))
            assert_true(row->share <= ledger.rows[i - 1].share);
    }
    return ledger;
}

static void assert_verdict(const struct ledger *ledger, const char *id, enum ledger_verdict verdict)
{
    const struct hypothesis *row = row_of(ledger, id);
    if (row->verdict != verdict)
        fail_msg("%s is %s, not %s: %s; %s; %s", id, ledger_verdict_name(row->verdict),
                 ledger_verdict_name(verdict), row->angles[0].text, row->angles[1].text,
                 row->angles[2].text);
}

static void a_hot_loop_is_confirmed_and_nothing_else(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    run_runs(run, run_process(run, 0), 1000, "main f");
    run_end(run, 1000, 990);
    struct ledger ledger = ledger_of(run);
    assert_string_equal(ledger.rows[0].id, "cpu_bound");
    assert_verdict(&ledger, "cpu_bound", LEDGER_CONFIRMED);
    static const char *const others[] = {"lock",         "io_wait",     "fsync",
                                         "network_wait", "starvation",  "serial_section",
                                         "sleep",        "page_faults", "child_processes"};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_verdict(&ledger, others[i], LEDGER_REJECTED);
    run_free(run);
}

static void each_class_of_waits_is_confirmed_by_room_in_samples_and_counts(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        enum wait_class class;
        int32_t syscall;
        const char *stack;
    } rows[] = {
        {"lock", WAIT_CLASS_LOCK, __NR_futex, "main c:pthread_mutex_lock"},
        {"io_wait", WAIT_CLASS_DISK, __NR_read, "main c:read"},
        {"fsync", WAIT_CLASS_DISK, __NR_fsync, "main c:fsync"},
        {"network_wait", WAIT_CLASS_NET, __NR_recvfrom, "main c:recv"},
        {"sleep", WAIT_CLASS_TIMER, __NR_nanosleep, "main c:sleep"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct made_run *run = run_new();
        uint32_t main = run_process(run, 0);
        run_runs(run, main, 200, "main f");
        run_waits(run, main, 800, rows[i].class, rows[i].syscall, rows[i].stack);
        run_end(run, 1000, 200);
        struct ledger ledger = ledger_of(run);
        assert_verdict(&ledger, rows[i].id, LEDGER_CONFIRMED);
        assert_float_equal(row_of(&ledger, rows[i].id)->share, 0.8, 0.001);
        assert_verdict(&ledger, "cpu_bound", LEDGER_REJECTED);
        for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
            if (rows[k].class != rows[i].class)
                assert_verdict(&ledger, rows[k].id, LEDGER_REJECTED);
        run_free(run);
    }
}

static void plain_runs_that_did_not_wait_dispute_a_recording_that_did(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 200, "main f");
    run_waits(run, main, 800, WAIT_CLASS_NET, __NR_recvfrom, "main c:recv");
    run_end(run, 1000, 980);
    struct ledger ledger = ledger_of(run);
    assert_verdict(&ledger, "network_wait", LEDGER_DISPUTED);
    assert_verdict(&ledger, "cpu_bound", LEDGER_DISPUTED);
    run_free(run);
}

static void allocation_is_seen_in_samples_and_calls_and_never_by_the_kernel_alone(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 700, "main f");
    run_runs(run, main, 300, "main f c:malloc c:_int_malloc");
    struct evidence *evidence = run_end(run, 1000, 1000);
    evidence->axes[AXIS_HEAP].na = NULL;
    evidence->heap_sums.all.allocations = evidence->heap_sums.all.frees = 5000000;
    struct ledger ledger = ledger_of(run);
    assert_verdict(&ledger, "allocation", LEDGER_SUPPORTED);
    evidence->costs.faults_minor = 100000;
    ledger = ledger_of(run);
    assert_verdict(&ledger, "allocation", LEDGER_CONFIRMED);
    evidence->heap_sums.all.allocations = evidence->heap_sums.all.frees = 50;
    ledger = ledger_of(run);
    assert_verdict(&ledger, "allocation", LEDGER_DISPUTED);
    run_free(run);
}

static void page_faults_need_a_believable_price(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 500, "main f");
    run_runs(run, main, 500, "main f k:asm_exc_page_fault k:clear_page");
    struct evidence *evidence = run_end(run, 1000, 1000);
    evidence->costs.faults_minor = 500000; /* 1 µs each */
    struct ledger ledger = ledger_of(run);
    assert_verdict(&ledger, "page_faults", LEDGER_SUPPORTED);
    evidence->costs.faults_minor = 5; /* 100 ms each */
    ledger = ledger_of(run);
    assert_verdict(&ledger, "page_faults", LEDGER_DISPUTED);
    run_free(run);
}

static void one_thread_of_several_that_does_the_work_is_a_serial_section(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0), other = run_thread(run, 1);
    run_runs(run, main, 900, "main f");
    run_runs(run, other, 100, "worker g");
    run_end(run, 1000, 1000);
    struct ledger ledger = ledger_of(run);
    assert_verdict(&ledger, "serial_section", LEDGER_CONFIRMED);
    run_free(run);
    /* Threads that wait for a disk are no serial section, though hardly a CPU is in use. */
    run = run_new();
    main = run_process(run, 0), other = run_thread(run, 1);
    run_runs(run, main, 50, "main f");
    run_runs(run, other, 50, "worker g");
    run_waits(run, main, 900, WAIT_CLASS_DISK, __NR_read, "main c:read");
    run_end(run, 1000, 100);
    ledger = ledger_of(run);
    assert_verdict(&ledger, "serial_section", LEDGER_REJECTED);
    run_free(run);
}

static void time_in_children_start_up_and_queues_is_told_apart(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0), child = run_process(run, 1);
    run_runs(run, main, 300, "d:_dl_start d:_dl_relocate_object");
    run_runs(run, child, 300, "main f");
    run_queues(run, main, 400);
    struct evidence *evidence = run_end(run, 1000, 600);
    evidence->costs.faults_minor = 500;
    evidence->costs.switches_involuntary = 100;
    struct ledger ledger = ledger_of(run);
    assert_verdict(&ledger, "starvation", LEDGER_CONFIRMED);
    assert_verdict(&ledger, "child_processes", LEDGER_SUPPORTED); /* counts cannot tell */
    assert_verdict(&ledger, "startup", LEDGER_SUPPORTED);
    assert_float_equal(row_of(&ledger, "startup")->share, 0.3, 0.001);
    assert_float_equal(row_of(&ledger, "child_processes")->share, 0.3, 0.001);
    evidence->costs.switches_involuntary = 0;
    ledger = ledger_of(run);
    assert_verdict(&ledger, "starvation", LEDGER_DISPUTED);
    run_free(run);
}

static void where_nothing_was_recorded_all_is_open_or_by_counts(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    struct evidence *evidence = &run->evidence;
    for (int i = 0; i < AXES; i++)
        evidence->axes[i].na = "no permission";
    evidence->costs.wall_ns = evidence->costs.cpu_ns = evidence->costs.system_ns = NAN;
    evidence->costs.faults_minor = evidence->costs.switches_involuntary = NAN;
    struct ledger ledger = ledger_of(run);
    for (size_t i = 0; i < ledger.count; i++) {
        assert_int_equal(ledger.rows[i].verdict, LEDGER_OPEN);
        assert_non_null(ledger.rows[i].angles[ANGLE_SAMPLING].text);
    }
    assert_non_null(strstr(row_of(&ledger, "lock")->angles[ANGLE_TRACING].text, "no permission"));
    run_free(run);
}

static void what_the_program_says_stands_beside_it(void **state)
{
    (void)state;
    struct span_hypothesis told[] = {
        {STR("CPU-bound"), STR("p95 3 ms"), true},
        {STR("contention"), STR(""), false},
        {STR("moon phase"), STR("full"), true},
    };
    struct made_run *run = run_new();
    run_runs(run, run_process(run, 0), 1000, "main f");
    run_end(run, 1000, 990);
    run->spans = (struct spans){.hypotheses = told, .hypothesis_count = ARRAY_SIZE(told)};
    struct ledger ledger = ledger_of(run);
    assert_string_equal(row_of(&ledger, "cpu_bound")->from_target,
                        "the program supports it: p95 3 ms");
    assert_string_equal(row_of(&ledger, "lock")->from_target, "the program rejects it");
    const struct hypothesis *own = row_of(&ledger, "target:moon phase");
    assert_int_equal(own->verdict, LEDGER_OPEN);
    assert_string_equal(own->from_target, "the program supports it: full");
    run_free(run);
}

static void the_bounds_of_the_document_are_those_of_the_program(void **state)
{
    (void)state;
    FILE *file = fopen(DOCS "/run-ranking.md", "re");
    assert_non_null(file);
    char text[1 << 16];
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    fclose(file);
    const char *id;
    double supports, rejects;
    size_t count = 0;
    for (; ledger_bounds(count, &id, &supports, &rejects); count++) {
        char row[128];
        snprintf(row, sizeof(row), "| %s | %.0f%% | %.0f%% |\n", id, supports * 100, rejects * 100);
        if (!strstr(text, row))
            fail_msg("not in the document: %s", row);
    }
    assert_true(count >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hot_loop_is_confirmed_and_nothing_else),
        cmocka_unit_test(each_class_of_waits_is_confirmed_by_room_in_samples_and_counts),
        cmocka_unit_test(plain_runs_that_did_not_wait_dispute_a_recording_that_did),
        cmocka_unit_test(allocation_is_seen_in_samples_and_calls_and_never_by_the_kernel_alone),
        cmocka_unit_test(page_faults_need_a_believable_price),
        cmocka_unit_test(one_thread_of_several_that_does_the_work_is_a_serial_section),
        cmocka_unit_test(time_in_children_start_up_and_queues_is_told_apart),
        cmocka_unit_test(where_nothing_was_recorded_all_is_open_or_by_counts),
        cmocka_unit_test(what_the_program_says_stands_beside_it),
        cmocka_unit_test(the_bounds_of_the_document_are_those_of_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
