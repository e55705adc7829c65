/* Detectors of locks, threads and CPUs, on runs whose every wait is known. */
#include "unit.h"

#include "made_evidence.h"

#include "detect/each.h"
#include "detect/lock_common.h"

#include <asm/unistd.h>

#define FUTEX  " c:futex_wait k:do_syscall_64 k:__x64_sys_futex"
#define UPDATE "main work update"

/* A main thread that waits for its workers from beginning to end, each of which lives as long. */
struct team {
    struct made_run *run;
    double ms;
    uint32_t main, workers[12];
    uint32_t count;
};

static void life(struct made_run *run, uint32_t thread, double ms, double running_ms)
{
    run->lives[thread] = (struct waits_thread){.end_ns = (uint64_t)(ms * RUN_MS),
                                               .running_ns = (uint64_t)(running_ms * RUN_MS),
                                               .ended = true};
}

static uint32_t row_add(struct made_run *run, const struct wait_info *info, enum wait_class class,
                        uint64_t count, double total_ms)
{
    uint32_t id = (uint32_t)run->evidence.waits.row_count++;
    run->rows[id].info = *info;
    run->rows[id].tally = (struct wait_tally){
        .count = count,
        .total_ns = (uint64_t)(total_ms * RUN_MS),
        .max_ns = (uint64_t)(total_ms * RUN_MS / (double)count),
        .last_ns = run->now_ns,
    };
    run->rows[id].tally.buckets[wait_bucket(run->rows[id].tally.max_ns)] = (uint32_t)count;
    run->classes[id] = class;
    return id;
}

static uint32_t futex(struct made_run *run, const char *name, uint64_t address)
{
    struct waits *waits = &run->evidence.waits;
    for (uint32_t i = 1; i < waits->object_count; i++)
        if (run->objects[i].key == address)
            return i;
    run->objects[waits->object_count] = (struct object_info){
        .kind = OBJECT_FUTEX, .process = 1, .key = address, .name = str_from(name)};
    return (uint32_t)waits->object_count++;
}

static struct team team_new(double ms, uint32_t count)
{
    struct team team = {.run = run_new(), .ms = ms, .count = count};
    team.main = run_process(team.run, 0);
    life(team.run, team.main, ms, 1);
    team.run->now_ns = (uint64_t)(ms * RUN_MS);
    for (uint32_t i = 0; i < count; i++) {
        team.workers[i] = run_thread(team.run, 1);
        team.run->threads[team.workers[i]].tid = 101 + i;
    }
    return team;
}

/* All of it evenly over the life of the team. */
static void worker_runs(struct team *team, uint32_t worker, double ms, const char *names)
{
    life(team->run, team->workers[worker], team->ms, ms);
    for (int i = 0; i < (int)ms; i++)
        run_sample(team->run, team->workers[worker], names,
                   (uint64_t)((i + 0.5) / ms * team->ms * RUN_MS));
}

static uint32_t waits_for_lock(struct team *team, uint32_t worker, uint64_t count, double total_ms)
{
    struct wait_info info = {
        .kind = WAIT_BLOCKED,
        .thread = team->workers[worker],
        .waker_thread = team->workers[(worker + 1) % team->count],
        .stack = run_stack(team->run, UPDATE " c:pthread_mutex_lock" FUTEX),
        .object = futex(team->run, "table_mutex", 0x1000),
        .syscall = __NR_futex,
    };
    return row_add(team->run, &info, WAIT_CLASS_LOCK, count, total_ms);
}

static int by_time(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Samples in the order of time, the path walked, locks put together. */
static struct evidence *team_end(struct team *team, double cpu_ms)
{
    struct made_run *run = team->run;
    struct evidence *e = &run->evidence;
    static struct wait_event join;
    struct wait_info info = {
        .kind = WAIT_BLOCKED, .thread = team->main, .waker_thread = team->workers[0]};
    uint32_t row = row_add(run, &info, WAIT_CLASS_CHILD, 1, team->ms - 1);
    join = (struct wait_event){row, 0, (uint64_t)((team->ms - 1) * RUN_MS),
                               (uint64_t)((team->ms - 1) * RUN_MS)};
    if (team->count > 0) {
        e->waits.events = &join;
        e->waits.event_count = 1;
    }
    e->waits.end_ns = run->now_ns;
    /* Threads are few and samples alike: their order among each other does not matter. */
    struct {
        uint64_t time, thread, stack;
    } sorted[RUN_MAX];
    for (size_t i = 0; i < e->cpu.sample_count; i++) {
        sorted[i].time = run->sample_time[i];
        sorted[i].thread = run->sample_thread[i];
        sorted[i].stack = run->sample_stack[i];
    }
    qsort(sorted, e->cpu.sample_count, sizeof(sorted[0]), by_time);
    for (size_t i = 0; i < e->cpu.sample_count; i++) {
        run->sample_time[i] = sorted[i].time;
        run->sample_thread[i] = (uint32_t)sorted[i].thread;
        run->sample_stack[i] = (uint32_t)sorted[i].stack;
    }
    assert_int_equal(critical_path_build(&run->arena, &e->waits, &e->path), 0);
    assert_int_equal(lock_table_build(&run->arena, &e->waits, &e->classes, &e->locks), 0);
    return run_end(run, team->ms, cpu_ms);
}

static struct finding *judged(struct team *team, const struct detector *detector,
                              struct findings *findings)
{
    *findings = (struct findings){.arena = &team->run->arena};
    assert_int_equal(detector->judge(&team->run->evidence, detector, findings), 0);
    assert_true(findings->count > 0);
    return &findings->items[0];
}

static void expect_dismissed(struct team *team, const struct detector *detector, const char *words)
{
    struct findings findings;
    struct finding *finding = judged(team, detector, &findings);
    assert_int_equal(finding->verdict, FINDING_DISMISSED);
    assert_non_null(finding->reason);
    if (!strstr(finding->reason, words))
        fail_msg("'%s' is not in '%s'", words, finding->reason);
}

static double expect_confirmed(struct team *team, const struct detector *detector)
{
    struct findings findings;
    struct finding *finding = judged(team, detector, &findings);
    if (finding->verdict != FINDING_CONFIRMED)
        fail_msg("dismissed: %s", finding->reason);
    assert_non_null(finding->title);
    assert_non_null(finding->advice);
    assert_true(finding->why_count >= 3);
    assert_true(finding->recoverable.low_ns <= finding->recoverable.ns);
    assert_true(finding->recoverable.high_ns >= finding->recoverable.ns);
    return run_ms(finding->recoverable);
}

/* Two that take turns: 200 ms of computing and 180 ms of waiting each, in 400 ms. */
static struct team turns(void)
{
    struct team team = team_new(400, 2);
    for (uint32_t i = 0; i < 2; i++) {
        worker_runs(&team, i, 200, UPDATE " burn");
        waits_for_lock(&team, i, 1000, 180);
    }
    return team;
}

static void what_is_saved_is_the_waiting(void **state)
{
    (void)state;
    struct team team = turns();
    struct evidence *e = team_end(&team, 400);
    e->costs.switches_voluntary = 2000;
    struct findings findings;
    assert_float_equal(expect_confirmed(&team, &detect_hot_lock), 180, 2);
    struct finding *finding = judged(&team, &detect_hot_lock, &findings);
    assert_true(str_is(finding->place.function, "update"));
    for (int i = 0; i < ANGLES; i++)
        assert_int_equal(finding->angles[i].verdict, ANGLE_SUPPORTS);
    expect_dismissed(&team, &detect_lock_convoy, "hot lock");
    expect_dismissed(&team, &detect_io_under_lock, "hot lock");
    run_free(team.run);
}

/* The same on one CPU: it is busy all the time, with the lock or without. */
static void no_more_is_saved_than_the_cpus_allow(void **state)
{
    (void)state;
    struct team team = turns();
    struct findings findings;
    team_end(&team, 400)->costs.cpus = 1;
    assert_float_equal(run_ms(judged(&team, &detect_hot_lock, &findings)->recoverable), 0, 1);
    run_free(team.run);
}

static void a_lock_that_is_hardly_waited_for_is_fine(void **state)
{
    (void)state;
    struct team team = team_new(400, 2);
    for (uint32_t i = 0; i < 2; i++) {
        worker_runs(&team, i, 395, UPDATE " burn");
        waits_for_lock(&team, i, 5000, 4);
    }
    team_end(&team, 790);
    expect_dismissed(&team, &detect_hot_lock, "from 2% or 10% on");
    expect_dismissed(&team, &detect_lock_convoy, "from 2% or 10% on");
    run_free(team.run);
}

static void few_waits_count_if_they_are_long(void **state)
{
    (void)state;
    struct team team = team_new(400, 2);
    for (uint32_t i = 0; i < 2; i++) {
        worker_runs(&team, i, 380, UPDATE " burn");
        waits_for_lock(&team, i, 4, 12);
    }
    team_end(&team, 760);
    expect_dismissed(&team, &detect_hot_lock, "from 100 waits");
    run_free(team.run);
    team = team_new(400, 2);
    for (uint32_t i = 0; i < 2; i++) {
        worker_runs(&team, i, 200, UPDATE " burn");
        waits_for_lock(&team, i, 4, 180);
    }
    team_end(&team, 400);
    expect_confirmed(&team, &detect_hot_lock);
    run_free(team.run);
}

static void idle_workers_wait_for_no_lock(void **state)
{
    (void)state;
    struct team team = team_new(400, 2);
    worker_runs(&team, 0, 390, UPDATE " burn");
    life(team.run, team.workers[1], 400, 1);
    struct wait_info info = {
        .kind = WAIT_BLOCKED,
        .thread = team.workers[1],
        .waker_thread = team.workers[0],
        .stack = run_stack(team.run, "main work c:pthread_cond_wait" FUTEX),
        .object = futex(team.run, "news", 0x2000),
        .syscall = __NR_futex,
    };
    row_add(team.run, &info, WAIT_CLASS_IDLE, 500, 398);
    team_end(&team, 391);
    expect_dismissed(&team, &detect_hot_lock, "no thread waited for a lock");
    expect_dismissed(&team, &detect_io_under_lock, "no thread waited for a lock");
    expect_dismissed(&team, &detect_thundering_herd, "threads wait for a condition");
    run_free(team.run);
}

/* Eight in line, and four CPUs: 8 × 50 ms of work need 100 ms. */
static void a_line_is_a_convoy(void **state)
{
    (void)state;
    struct team team = team_new(400, 8);
    for (uint32_t i = 0; i < 8; i++) {
        worker_runs(&team, i, 50, UPDATE " burn");
        waits_for_lock(&team, i, 500, 350);
    }
    team_end(&team, 400);
    assert_float_equal(expect_confirmed(&team, &detect_lock_convoy), 300, 3);
    expect_dismissed(&team, &detect_hot_lock, "convoy");
    run_free(team.run);
}

/* Four that sleep under a lock, 100 ms each. */
static struct team sleepers(bool sleeps)
{
    struct team team = team_new(400, 4);
    for (uint32_t i = 0; i < 4; i++) {
        worker_runs(&team, i, 10, UPDATE " burn");
        waits_for_lock(&team, i, 50, 280);
        struct wait_info sleep = {.kind = WAIT_BLOCKED,
                                  .thread = team.workers[i],
                                  .stack = run_stack(team.run, UPDATE " ask c:clock_nanosleep"),
                                  .syscall = __NR_clock_nanosleep};
        if (sleeps)
            row_add(team.run, &sleep, WAIT_CLASS_TIMER, 50, 100);
        struct wait_info hold = {.kind = WAIT_HOLD,
                                 .thread = team.workers[i],
                                 .stack = run_stack(team.run, UPDATE " c:pthread_mutex_unlock"),
                                 .object = futex(team.run, "table_mutex", 0x1000)};
        uint32_t row = row_add(team.run, &hold, WAIT_CLASS_LOCK, 50, 100);
        team.run->rows[row].tally.owned_ns = 100 * RUN_MS;
        team.run->rows[row].tally.owner_off_ns = 95 * RUN_MS;
    }
    return team;
}

static void sleeping_with_a_lock_in_hand_is_told_apart(void **state)
{
    (void)state;
    struct team team = sleepers(true);
    team_end(&team, 40);
    struct findings findings;
    assert_float_equal(expect_confirmed(&team, &detect_io_under_lock), 280, 3);
    struct finding *finding = judged(&team, &detect_io_under_lock, &findings);
    assert_true(str_is(finding->place.function, "update"));
    assert_non_null(strstr(finding->whys[2].text, "ask"));
    assert_int_equal(finding->angles[ANGLE_SAMPLING].verdict, ANGLE_SUPPORTS);
    expect_dismissed(&team, &detect_hot_lock, "io_under_lock");
    expect_dismissed(&team, &detect_lock_convoy, "io_under_lock");
    run_free(team.run);
}

/* Off the CPU, but for nothing that was waited for. */
static void a_holder_that_was_preempted_does_no_io(void **state)
{
    (void)state;
    struct team team = sleepers(false);
    team_end(&team, 40);
    expect_dismissed(&team, &detect_io_under_lock, "convoy");
    run_free(team.run);
}

/* Eight are told each time; what they compute then is shared by all wake-ups. */
static struct team herd(const char *teller, double work_ms)
{
    struct team team = team_new(400, 8);
    for (uint32_t i = 0; i < 8; i++) {
        struct wait_info info = {
            .kind = WAIT_BLOCKED,
            .thread = team.workers[i],
            .waker_thread = team.main,
            .stack = run_stack(team.run, "main work job_wait c:pthread_cond_wait" FUTEX),
            .waker_stack = run_stack(team.run, teller),
            .object = futex(team.run, "filled", 0x3000),
            .syscall = __NR_futex,
        };
        row_add(team.run, &info, WAIT_CLASS_IDLE, 1000, 350);
        worker_runs(&team, i, work_ms, "main work burn");
        worker_runs(&team, i, 20, "main work job_wait c:pthread_cond_wait" FUTEX);
    }
    return team;
}

static void who_is_told_for_nothing_is_a_herd(void **state)
{
    (void)state;
    struct team team = herd("main give c:pthread_cond_broadcast", 10);
    struct evidence *e = team_end(&team, 240);
    e->costs.system_ns = 160 * RUN_MS;
    e->costs.switches_voluntary = 8000;
    /* 160 of 240 ms are calls; 80 to 87.5% of them in vain. */
    assert_float_equal(expect_confirmed(&team, &detect_thundering_herd), 223, 4);
    run_free(team.run);
}

static void who_is_told_alone_is_none(void **state)
{
    (void)state;
    struct team team = herd("main give c:pthread_cond_signal", 10);
    team_end(&team, 240);
    expect_dismissed(&team, &detect_thundering_herd, "0% come from a call that tells all");
    run_free(team.run);
}

static void who_is_woken_by_nobody_knows_whom_is_not_judged(void **state)
{
    (void)state;
    struct team team = herd("", 10);
    struct findings findings;
    team_end(&team, 240);
    assert_int_equal(judged(&team, &detect_thundering_herd, &findings)->verdict,
                     FINDING_NOT_JUDGED);
    run_free(team.run);
}

static void who_has_work_each_time_is_none(void **state)
{
    (void)state;
    struct team team = herd("main give c:pthread_cond_broadcast", 100);
    team_end(&team, 960);
    expect_dismissed(&team, &detect_thundering_herd, "for good reason");
    run_free(team.run);
}

/* The main thread computes for 320 of 400 ms; the workers have 30 ms each, then or meanwhile. */
static struct team serial(double meanwhile_ms)
{
    struct team team = team_new(400, 0);
    team.workers[0] = run_thread(team.run, 1);
    team.workers[1] = run_thread(team.run, 1);
    team.run->now_ns = 0;
    for (uint32_t i = 0; i < 2; i++)
        life(team.run, team.workers[i], 400, 30 + meanwhile_ms);
    for (int i = 0; i < 320; i++) {
        run_sample(team.run, team.main, "main prepare burn", (uint64_t)i * RUN_MS);
        for (uint32_t k = 0; k < 2 && i < meanwhile_ms; k++)
            run_sample(team.run, team.workers[k], "main work burn", (uint64_t)i * RUN_MS);
    }
    run_step(team.run, PATH_RUNNING, team.main, 0, 350);
    run_step(team.run, PATH_RUNNING, team.workers[0], 0, 50);
    run_end(team.run, 400, 380 + 2 * meanwhile_ms);
    team.run->evidence.waits.end_ns = 400 * RUN_MS;
    return team;
}

static void one_that_computes_alone_is_a_serial_section(void **state)
{
    (void)state;
    struct team team = serial(0);
    /* Three threads, four CPUs: a third of it stays. */
    assert_float_equal(expect_confirmed(&team, &detect_serial_section), 350 * 2 / 3.0, 1);
    struct findings findings;
    const struct finding *finding = judged(&team, &detect_serial_section, &findings);
    assert_non_null(strstr(finding->whys[0].text, "of what it computes the most, 100%, is in"));
    run_free(team.run);
}

static void where_others_have_the_cpus_nobody_knows(void **state)
{
    (void)state;
    struct team team = serial(0);
    team.run->evidence.costs_on_path.environment_ns = 200 * RUN_MS; /* half of a run */
    struct findings found = {.arena = &team.run->arena};
    assert_int_equal(
        detect_serial_section.judge(&team.run->evidence, &detect_serial_section, &found), 0);
    assert_int_equal(found.items[0].verdict, FINDING_DISMISSED);
    assert_true(found.items[0].unsure);
    assert_non_null(strstr(found.items[0].reason, "others had the CPUs for 200 ms"));
    run_free(team.run);
}

static void where_all_are_busy_there_is_none(void **state)
{
    (void)state;
    struct team team = serial(320);
    expect_dismissed(&team, &detect_serial_section, "none is free");
    run_free(team.run);
}

static void a_program_of_one_thread_shares_nothing(void **state)
{
    (void)state;
    struct team team = serial(0);
    team.run->lives[team.workers[1]].running_ns = 0;
    expect_dismissed(&team, &detect_serial_section, "1 other threads");
    run_free(team.run);
}

/* One thread: runs for 200 ms and is ready for another 200, so many milliseconds at a time. */
static struct team queued(double delay_ms)
{
    struct team team = team_new(400, 0);
    struct wait_info info = {.kind = WAIT_RUNQ, .thread = team.main};
    uint32_t row = row_add(team.run, &info, WAIT_CLASS_RUNQ, (uint64_t)(200 / delay_ms), 200);
    team.run->now_ns = 0;
    life(team.run, team.main, 400, 200);
    run_runs(team.run, team.main, 200, "main burn");
    run_step(team.run, PATH_RUNQ, team.main, 0, 200);
    team.run->row_ns[row] = 200 * RUN_MS;
    run_end(team.run, 400, 200);
    return team;
}

static void who_lacks_a_cpu_starves(void **state)
{
    (void)state;
    struct team team = queued(4);
    assert_float_equal(expect_confirmed(&team, &detect_cpu_starvation), 200, 2);
    run_free(team.run);
}

/* Plain runs take 360 to 480 ms, and the recorded one differs by a tenth. */
static void what_was_taken_is_unsure_at_both_ends(void **state)
{
    (void)state;
    struct team team = queued(4);
    struct findings findings;
    struct path_costs *costs = &team.run->evidence.costs_on_path;
    costs->stretch = 0.1;
    costs->wall_low = 0.9;
    costs->wall_high = 1.2;
    const struct finding *finding = judged(&team, &detect_cpu_starvation, &findings);
    assert_float_equal(finding->recoverable.ns / RUN_MS, 200, 0.1);
    assert_float_equal(finding->recoverable.low_ns / RUN_MS, 200 - 200 * hypot(0.1, 0.1), 0.1);
    assert_float_equal(finding->recoverable.high_ns / RUN_MS, 200 + 200 * hypot(0.2, 0.1), 0.1);
    run_free(team.run);
}

static void who_is_on_the_way_to_a_free_cpu_does_not(void **state)
{
    (void)state;
    struct team team = queued(0.04);
    expect_dismissed(&team, &detect_cpu_starvation, "from 10% on");
    run_free(team.run);
}

static void who_has_all_cpus_waits_for_itself(void **state)
{
    (void)state;
    struct team team = queued(4);
    team.run->evidence.costs.cpu_ns = 4 * 390.0 * RUN_MS;
    expect_dismissed(&team, &detect_cpu_starvation, "they wait for each other");
    run_free(team.run);
}

/* Of 4 CPUs its siblings had one for all of the time: so much of the wait may be for them. */
static void who_waits_for_its_siblings_does_not_wait_for_others(void **state)
{
    (void)state;
    struct team team = queued(4);
    life(team.run, run_thread(team.run, 1), 400, 400);
    team.run->evidence.costs.cpu_ns = 600.0 * RUN_MS;
    assert_float_equal(expect_confirmed(&team, &detect_cpu_starvation), 100, 2);
    run_free(team.run);
}

/* Who waits for a CPU waits for somebody that computes. */
static void others_that_do_nothing_take_nothing(void **state)
{
    (void)state;
    struct team team = queued(4);
    team.run->evidence.costs.others_ns = 90.0 * RUN_MS;
    expect_dismissed(&team, &detect_cpu_starvation, "its own threads wait for each other");
    team.run->evidence.costs.others_ns = 110.0 * RUN_MS;
    assert_float_equal(expect_confirmed(&team, &detect_cpu_starvation), 200, 2);
    run_free(team.run);
}

/* Its threads seem to run meanwhile: only the kernel's account of the machine tells. */
static void what_other_guests_have_is_the_hosts(void **state)
{
    (void)state;
    struct team team = queued(0.04);
    struct run_costs *costs = &team.run->evidence.costs;
    struct findings findings;
    costs->runs = 10;
    costs->steal_ns = 10.0 * RUN_MS;
    expect_dismissed(&team, &detect_cpu_starvation, "from 10% on");
    /* A tick or two say nothing. */
    costs->steal_ns = 60.0 * RUN_MS;
    costs->runs = 1;
    expect_dismissed(&team, &detect_cpu_starvation, "from 10% on");
    costs->runs = 10;
    /* No more than what the hypervisor says, though more of the run is neither computed nor waited
     * for. */
    assert_float_equal(expect_confirmed(&team, &detect_cpu_starvation), 60, 2);
    const struct finding *finding = judged(&team, &detect_cpu_starvation, &findings);
    assert_non_null(strstr(finding->title, "other guests of the host"));
    assert_float_equal(finding->recoverable.high_ns / RUN_MS, 60, 2);
    assert_int_equal(finding->class, FINDING_ENVIRONMENT);
    /* As much was taken from others as from it. */
    costs->others_ns = 200.0 * RUN_MS;
    assert_float_equal(expect_confirmed(&team, &detect_cpu_starvation), 30, 2);
    run_free(team.run);
}

/* Steal of all CPUs, of which the run had one: it cannot have lost more than it did not compute. */
static void what_all_cpus_lost_is_not_charged_to_one_program(void **state)
{
    (void)state;
    struct team team = queued(0.04);
    struct run_costs *costs = &team.run->evidence.costs;
    costs->runs = 10;
    costs->steal_ns = 900.0 * RUN_MS;
    assert_float_equal(expect_confirmed(&team, &detect_cpu_starvation), 200, 2);
    costs->cpu_ns = 379.0 * RUN_MS;
    assert_float_equal(evidence_stolen_ns(&team.run->evidence) / RUN_MS, 21, 0.1);
    assert_float_equal(expect_confirmed(&team, &detect_cpu_starvation), 21, 0.1);
    run_free(team.run);
}

/* The screen says what the path shows: no finding says more. */
static void what_the_path_does_not_show_was_not_taken(void **state)
{
    (void)state;
    struct team team = queued(4);
    struct findings findings;
    team.run->evidence.costs_on_path.classes[WAIT_CLASS_RUNQ] = 32.0 * RUN_MS;
    const struct finding *finding = judged(&team, &detect_cpu_starvation, &findings);
    assert_float_equal(run_ms(finding->recoverable), 32, 0.1);
    run_free(team.run);
}

/* The path of the recording waited for 200 ms; plain runs computed for all but 40. */
static void plain_runs_that_were_not_kept_waiting_bound_a_recording_that_was(void **state)
{
    (void)state;
    struct team team = queued(4);
    team.run->evidence.costs.cpu_ns = 360.0 * RUN_MS;
    struct findings findings;
    const struct finding *finding = judged(&team, &detect_cpu_starvation, &findings);
    assert_float_equal(run_ms(finding->recoverable), 40, 0.1);
    assert_float_equal(finding->recoverable.high_ns / RUN_MS, 40, 0.1);
    run_free(team.run);
}

static void stolen_time_is_told_without_a_recording(void **state)
{
    (void)state;
    struct team team = queued(4);
    struct evidence *evidence = &team.run->evidence;
    struct findings findings;
    evidence->axes[AXIS_WAITS].na = "no permission";
    assert_int_equal(judged(&team, &detect_cpu_starvation, &findings)->verdict, FINDING_NOT_JUDGED);
    evidence->costs.runs = 10;
    evidence->costs.steal_ns = 80.0 * RUN_MS;
    const struct finding *finding = judged(&team, &detect_cpu_starvation, &findings);
    assert_int_equal(finding->verdict, FINDING_CONFIRMED);
    assert_float_equal(run_ms(finding->recoverable), 80, 0.1);
    run_free(team.run);
}

/* Recording spends of the same quota: the run took twice as long, and that is cut from the queue.
 */
static void a_limit_counts_as_it_was_recorded(void **state)
{
    (void)state;
    struct team team = queued(4);
    struct run_costs *costs = &team.run->evidence.costs;
    costs->runs = 10;
    costs->throttled_ns = 150.0 * RUN_MS;
    team.run->evidence.costs_on_path.classes[WAIT_CLASS_RUNQ] = 2.0 * RUN_MS;
    assert_float_equal(expect_confirmed(&team, &detect_cgroup_throttling), 150, 0.1);
    run_free(team.run);
}

/* Plain runs take 200 ms less: there the CPUs were free. */
static void what_recording_takes_is_not_the_load_of_others(void **state)
{
    (void)state;
    struct team team = queued(4);
    team.run->evidence.axes[AXIS_WAITS].added = (struct estimate){200 * RUN_MS, NAN, NAN};
    team.run->evidence.costs.wall_ns = 200 * RUN_MS;
    expect_dismissed(&team, &detect_cpu_starvation, "it is recording that had them");
    /* Here they were not: plain runs, too, got the CPU for half of their time. */
    team.run->evidence.costs.wall_ns = 400 * RUN_MS;
    assert_float_equal(expect_confirmed(&team, &detect_cpu_starvation), 200, 2);
    run_free(team.run);
}

static void a_limit_is_not_taken_for_the_load_of_others(void **state)
{
    (void)state;
    struct team team = queued(4);
    struct run_costs *costs = &team.run->evidence.costs;
    struct findings findings;
    costs->runs = 10;
    assert_int_equal(judged(&team, &detect_cgroup_throttling, &findings)->verdict,
                     FINDING_NOT_JUDGED);
    costs->throttled_ns = 2.0 * RUN_MS;
    expect_dismissed(&team, &detect_cgroup_throttling, "from 2% on");
    costs->throttled_ns = 190.0 * RUN_MS;
    assert_float_equal(expect_confirmed(&team, &detect_cgroup_throttling), 190, 0.1);
    expect_dismissed(&team, &detect_cpu_starvation, "cgroup_throttling");
    run_free(team.run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_the_waiting),
        cmocka_unit_test(no_more_is_saved_than_the_cpus_allow),
        cmocka_unit_test(a_lock_that_is_hardly_waited_for_is_fine),
        cmocka_unit_test(few_waits_count_if_they_are_long),
        cmocka_unit_test(idle_workers_wait_for_no_lock),
        cmocka_unit_test(a_line_is_a_convoy),
        cmocka_unit_test(sleeping_with_a_lock_in_hand_is_told_apart),
        cmocka_unit_test(a_holder_that_was_preempted_does_no_io),
        cmocka_unit_test(who_is_told_for_nothing_is_a_herd),
        cmocka_unit_test(who_is_told_alone_is_none),
        cmocka_unit_test(who_is_woken_by_nobody_knows_whom_is_not_judged),
        cmocka_unit_test(who_has_work_each_time_is_none),
        cmocka_unit_test(one_that_computes_alone_is_a_serial_section),
        cmocka_unit_test(where_others_have_the_cpus_nobody_knows),
        cmocka_unit_test(where_all_are_busy_there_is_none),
        cmocka_unit_test(a_program_of_one_thread_shares_nothing),
        cmocka_unit_test(who_lacks_a_cpu_starves),
        cmocka_unit_test(what_was_taken_is_unsure_at_both_ends),
        cmocka_unit_test(who_waits_for_its_siblings_does_not_wait_for_others),
        cmocka_unit_test(others_that_do_nothing_take_nothing),
        cmocka_unit_test(what_other_guests_have_is_the_hosts),
        cmocka_unit_test(what_all_cpus_lost_is_not_charged_to_one_program),
        cmocka_unit_test(what_the_path_does_not_show_was_not_taken),
        cmocka_unit_test(plain_runs_that_were_not_kept_waiting_bound_a_recording_that_was),
        cmocka_unit_test(stolen_time_is_told_without_a_recording),
        cmocka_unit_test(a_limit_counts_as_it_was_recorded),
        cmocka_unit_test(who_is_on_the_way_to_a_free_cpu_does_not),
        cmocka_unit_test(who_has_all_cpus_waits_for_itself),
        cmocka_unit_test(what_recording_takes_is_not_the_load_of_others),
        cmocka_unit_test(a_limit_is_not_taken_for_the_load_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
