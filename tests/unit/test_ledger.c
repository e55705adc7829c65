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

static struct ledger ledger_costing(struct made_run *run, const char *detector,
                                    enum finding_verdict verdict, double cost_ms)
{
    struct findings findings = {.arena = &run->arena};
    struct ledger ledger;
    struct finding *finding = detector ? finding_add(&findings, detector) : NULL;
    if (finding) {
        finding->verdict = verdict;
        finding->reason = verdict == FINDING_CONFIRMED ? NULL : "by its numbers";
        finding->cost_ns = cost_ms * RUN_MS;
        finding->recoverable.ns = cost_ms * RUN_MS;
        if (strcmp(detector, "cpu_starvation") == 0)
            finding->class = FINDING_ENVIRONMENT;
    }
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

static struct ledger ledger_with(struct made_run *run, const char *detector,
                                 enum finding_verdict verdict)
{
    return ledger_costing(run, detector, verdict, NAN);
}

static struct ledger ledger_of(struct made_run *run)
{
    return ledger_with(run, NULL, FINDING_CONFIRMED);
}

static void assert_verdict(const struct ledger *ledger, const char *id, enum ledger_verdict verdict)
{
    const struct hypothesis *row = row_of(ledger, id);
    if (row->verdict != verdict)
        fail_msg("%s is %s, not %s: %s; %s; %s", id, ledger_verdict_name(row->verdict),
                 ledger_verdict_name(verdict), row->angles[0].text, row->angles[1].text,
                 row->angles[2].text);
}

static void assert_said(const struct ledger *ledger, const char *id, enum angle angle,
                        const char *begin)
{
    const char *text = row_of(ledger, id)->angles[angle].text;
    if (!str_starts(str_from(text), begin))
        fail_msg("%s: \"%s\", not \"%s…\"", id, text, begin);
}

static void a_hot_loop_is_confirmed_and_nothing_else(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    run_runs(run, run_process(run, 0), 1000, "main f");
    run_end(run, 1000, 990);
    struct ledger ledger = ledger_with(run, "one_function", FINDING_CONFIRMED);
    assert_string_equal(ledger.rows[0].id, "hot_loop");
    assert_verdict(&ledger, "hot_loop", LEDGER_CONFIRMED);
    static const char *const others[] = {"lock",         "io_wait",     "fsync",
                                         "network_wait", "starvation",  "serial_section",
                                         "sleep",        "page_faults", "child_processes"};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_verdict(&ledger, others[i], LEDGER_REJECTED);
    run_free(run);
}

/* It computes all the time, like any compiler: that explains nothing. */
static void a_flat_profile_on_the_cpu_is_no_hot_loop(void **state)
{
    (void)state;
    static const char *const stacks[] = {"main a", "main b", "main c", "main d",
                                         "main e", "main f", "main g", "main h",
                                         "main i", "main j", "main k", "main l"};
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    for (size_t i = 0; i < ARRAY_SIZE(stacks); i++)
        run_runs(run, main, 80, stacks[i]);
    run_end(run, 960, 960);
    struct ledger ledger = ledger_with(run, "one_function", FINDING_DISMISSED);
    assert_verdict(&ledger, "hot_loop", LEDGER_REJECTED);
    assert_float_equal(row_of(&ledger, "hot_loop")->share, 1.0 / 12, 0.001);
    assert_int_equal(row_of(&ledger, "hot_loop")->angles[ANGLE_SAMPLING].verdict, ANGLE_REJECTS);
    for (size_t i = 0; i < ledger.count; i++)
        if (ledger.rows[i].verdict != LEDGER_REJECTED && ledger.rows[i].verdict != LEDGER_OPEN)
            fail_msg("%s is %s", ledger.rows[i].id, ledger_verdict_name(ledger.rows[i].verdict));
    run_free(run);
}

/* One verdict a thing: whatever the sources say, it agrees with the finding about the same. */
static void a_hypothesis_agrees_with_its_finding(void **state)
{
    (void)state;
    static const struct {
        const char *detector, *id;
        enum finding_verdict verdict;
        enum ledger_verdict expected;
    } rows[] = {
        /* All three sources support it. */
        {"hot_lock", "lock", FINDING_CONFIRMED, LEDGER_CONFIRMED},
        {"hot_lock", "lock", FINDING_DISMISSED, LEDGER_SUPPORTED}, /* it waits, for no hot one */
        {"hot_lock", "lock", FINDING_NOT_JUDGED, LEDGER_SUPPORTED},
        {NULL, "lock", FINDING_CONFIRMED, LEDGER_SUPPORTED},
        /* All three reject it. */
        {"one_function", "hot_loop", FINDING_CONFIRMED, LEDGER_SUPPORTED},
        {"cpu_starvation", "starvation", FINDING_CONFIRMED, LEDGER_SUPPORTED},
        {"poll_loop", "sleep", FINDING_CONFIRMED, LEDGER_DISPUTED}, /* a part of all sleeping */
        {"cpu_starvation", "starvation", FINDING_DISMISSED, LEDGER_REJECTED},
        {"kernel_dominated", "kernel_time", FINDING_DISMISSED, LEDGER_REJECTED},
    };
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 50, "main f");
    run_waits(run, main, 950, WAIT_CLASS_LOCK, __NR_futex, "main c:pthread_mutex_lock");
    run_end(run, 1000, 50);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ledger ledger = ledger_with(run, rows[i].detector, rows[i].verdict);
        assert_verdict(&ledger, rows[i].id, rows[i].expected);
        const char *finding = row_of(&ledger, rows[i].id)->finding;
        assert_true(rows[i].detector ? str_starts(str_from(finding), rows[i].detector) : !finding);
    }
    run_free(run);
}

/* Of the same thing a hypothesis says what its finding says: an interpreter's loop with what it
 * calls, the environment less what recording added. */
static void a_hypothesis_has_the_size_of_its_finding(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 100, "main loop");
    run_runs(run, main, 500, "main loop call");
    run_queues(run, main, 400);
    run_end(run, 1000, 600);
    struct ledger ledger = ledger_costing(run, "one_function", FINDING_CONFIRMED, 600);
    assert_float_equal(row_of(&ledger, "hot_loop")->share, 0.6, 0.001);
    assert_verdict(&ledger, "hot_loop", LEDGER_CONFIRMED);
    assert_said(&ledger, "hot_loop", ANGLE_SAMPLING,
                "60.0% of the path in the hottest function and what it calls");
    assert_float_equal(row_of(&ledger, "starvation")->share, 0.4, 0.001);
    ledger = ledger_costing(run, "cpu_starvation", FINDING_CONFIRMED, 250);
    assert_float_equal(row_of(&ledger, "starvation")->share, 0.25, 0.001);
    /* What a source says it measured is what it measured. */
    assert_said(&ledger, "starvation", ANGLE_TRACING, "waits for a CPU: 40.0% of the path");
    ledger = ledger_costing(run, "hot_lock", FINDING_CONFIRMED, 250); /* a part of all locks */
    assert_float_equal(row_of(&ledger, "lock")->share, 0, 0.001);
    run_free(run);
}

/* The hypervisor took 540 ms of 1,000; the path shows 80 of them. */
static void what_is_stolen_is_not_said_to_be_traced(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 900, "main f");
    run_queues(run, main, 80);
    run_waits(run, main, 20, WAIT_CLASS_DISK, __NR_read, "main c:read");
    struct evidence *evidence = run_end(run, 1000, 440);
    evidence->costs.steal_ns = 540e6;
    evidence->costs.others_ns = 0;
    struct ledger ledger = ledger_costing(run, "cpu_starvation", FINDING_CONFIRMED, 540);
    assert_float_equal(row_of(&ledger, "starvation")->share, 0.54, 0.001);
    const struct angle_word *traced = &row_of(&ledger, "starvation")->angles[ANGLE_TRACING];
    assert_int_equal(traced->verdict, ANGLE_SILENT);
    assert_string_equal(
        traced->text, "waits for a CPU: 8.0% of the path; what the hypervisor takes is not traced");
    run_free(run);
}

/* That too little was recorded, or that another finding speaks of the same, is no denial. */
static void a_finding_that_could_not_be_judged_well_denies_nothing(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 600, "main f");
    run_queues(run, main, 400);
    struct evidence *evidence = run_end(run, 1000, 600);
    evidence->costs.switches_involuntary = 100;
    struct finding item = {.detector = "cpu_starvation", .verdict = FINDING_DISMISSED};
    struct findings findings = {.arena = &run->arena, .items = &item, .count = 1};
    struct ledger ledger = {0};
    for (int i = 0; i < 3; i++) {
        item.unsure = i == 1;
        item.explained = i == 2;
        assert_int_equal(ledger_build(&run->arena, evidence, &findings, &ledger), 0);
        assert_verdict(&ledger, "starvation", i == 0 ? LEDGER_REJECTED : LEDGER_SUPPORTED);
    }
    run_free(run);
}

/* Two of three support it, but its finding is dismissed: "dismissed" there is "rejected" here. */
static void what_is_dismissed_as_a_finding_is_not_supported_as_a_hypothesis(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 600, "main f");
    run_queues(run, main, 400);
    struct evidence *evidence = run_end(run, 1000, 600);
    evidence->costs.switches_involuntary = 100;
    struct ledger ledger = ledger_of(run);
    assert_verdict(&ledger, "starvation", LEDGER_SUPPORTED);
    ledger = ledger_with(run, "cpu_starvation", FINDING_DISMISSED);
    assert_verdict(&ledger, "starvation", LEDGER_REJECTED);
    assert_string_equal(row_of(&ledger, "starvation")->finding,
                        "cpu_starvation: dismissed: by its numbers");
    ledger = ledger_with(run, "cgroup_throttling", FINDING_CONFIRMED);
    assert_verdict(&ledger, "starvation", LEDGER_CONFIRMED);
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
        const char *finding;
    } rows[] = {
        {"lock", WAIT_CLASS_LOCK, __NR_futex, "main c:pthread_mutex_lock", "hot_lock"},
        {"io_wait", WAIT_CLASS_DISK, __NR_read, "main c:read", "file_reread"},
        {"fsync", WAIT_CLASS_DISK, __NR_fsync, "main c:fsync", "fsync_per_message"},
        {"network_wait", WAIT_CLASS_NET, __NR_recvfrom, "main c:recv", "n_plus_one"},
        {"sleep", WAIT_CLASS_TIMER, __NR_nanosleep, "main c:sleep", "poll_loop"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct made_run *run = run_new();
        uint32_t main = run_process(run, 0);
        run_runs(run, main, 200, "main f");
        run_waits(run, main, 800, rows[i].class, rows[i].syscall, rows[i].stack);
        run_end(run, 1000, 200);
        struct ledger ledger = ledger_of(run);
        assert_verdict(&ledger, rows[i].id, LEDGER_SUPPORTED); /* no finding is about it */
        ledger = ledger_with(run, rows[i].finding, FINDING_CONFIRMED);
        assert_verdict(&ledger, rows[i].id, LEDGER_CONFIRMED);
        assert_float_equal(row_of(&ledger, rows[i].id)->share, 0.8, 0.001);
        assert_verdict(&ledger, "hot_loop", LEDGER_OPEN); /* a fifth: too little to say */
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
    ledger = ledger_with(run, "n_plus_one", FINDING_CONFIRMED);
    assert_verdict(&ledger, "network_wait", LEDGER_DISPUTED);
    run_free(run);
}

static const char *traced(const struct ledger *ledger, const char *id)
{
    for (size_t i = 0; i < ledger->count; i++)
        if (strcmp(ledger->rows[i].id, id) == 0)
            return ledger->rows[i].angles[ANGLE_TRACING].text;
    return "";
}

static void an_idle_wait_that_may_be_a_sleep_rejects_no_sleep(void **state)
{
    (void)state;
    static const struct {
        double ms;
        uint32_t flags;
        enum ledger_verdict verdict;
    } waits[] = {
        {900, WAIT_LIMITED | WAIT_SAMPLED, LEDGER_OPEN},
        {900, WAIT_SAMPLED, LEDGER_REJECTED}, /* it had no limit */
        {900, WAIT_LIMITED, LEDGER_REJECTED}, /* something else was seen to end it */
        {40, WAIT_LIMITED | WAIT_SAMPLED, LEDGER_REJECTED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
        struct made_run *run = run_new();
        uint32_t main = run_process(run, 0);
        run_runs(run, main, 1000 - waits[i].ms, "main f");
        uint32_t row = run_waits(run, main, waits[i].ms, WAIT_CLASS_IDLE, __NR_ppoll,
                                 "main c:ppoll");
        run->rows[row].info.flags = waits[i].flags;
        run_end(run, 1000, 1000 - waits[i].ms);
        struct ledger ledger = ledger_of(run);
        assert_verdict(&ledger, "sleep", waits[i].verdict);
        run_free(run);
    }
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
    ledger = ledger_with(run, "allocation_churn", FINDING_CONFIRMED);
    assert_verdict(&ledger, "allocation", LEDGER_CONFIRMED);
    assert_string_equal(traced(&ledger, "allocation"),
                        "10000000 calls of the allocator, 10000000 a second");
    evidence->axes[AXIS_HEAP].sampled = true; /* an estimate is said as one */
    ledger = ledger_of(run);
    assert_string_equal(traced(&ledger, "allocation"),
                        "~10000000 calls of the allocator, ~10000000 a second");
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
    struct ledger ledger = ledger_with(run, "serial_section", FINDING_CONFIRMED);
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
    struct ledger ledger = ledger_with(run, "cpu_starvation", FINDING_CONFIRMED);
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
    assert_string_equal(row_of(&ledger, "hot_loop")->from_target,
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
        cmocka_unit_test(a_flat_profile_on_the_cpu_is_no_hot_loop),
        cmocka_unit_test(a_hypothesis_agrees_with_its_finding),
        cmocka_unit_test(a_hypothesis_has_the_size_of_its_finding),
        cmocka_unit_test(what_is_stolen_is_not_said_to_be_traced),
        cmocka_unit_test(a_finding_that_could_not_be_judged_well_denies_nothing),
        cmocka_unit_test(what_is_dismissed_as_a_finding_is_not_supported_as_a_hypothesis),
        cmocka_unit_test(each_class_of_waits_is_confirmed_by_room_in_samples_and_counts),
        cmocka_unit_test(plain_runs_that_did_not_wait_dispute_a_recording_that_did),
        cmocka_unit_test(an_idle_wait_that_may_be_a_sleep_rejects_no_sleep),
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
