/* The hotspot table: all axes side by side, idle nowhere, each row with its evidence. */
#include "unit.h"

#include "made_evidence.h"

#include "analyze/run_hotspots.h"

#include <asm/unistd.h>

#define assert_near(a, b) assert_float_equal(a, b, 1e-3 * ((b) > 1 ? (b) : 1))

static const struct run_hotspot *row_of(const struct run_hotspots *hotspots, const char *metric,
                                        const char *function)
{
    for (size_t i = 0; i < hotspots->count; i++)
        if (strcmp(hotspots->rows[i].metric, metric) == 0 &&
            (!function || str_is(hotspots->rows[i].place.function, function)))
            return &hotspots->rows[i];
    fail_msg("no row: %s %s", metric, function ? function : "");
    return NULL;
}

static void functions_waits_locks_and_spans_stand_side_by_side_but_no_queue(void **state)
{
    (void)state;
    struct span spans[] = {{STR("load"), 350000, NAN, NAN, 3, STR("I/O"), STR("")},
                           {STR("never"), NAN, NAN, NAN, 0, STR(""), STR("")}};
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0), other = run_thread(run, 1);
    run_runs(run, main, 300, "main f");
    run_runs(run, main, 100, "main g c:malloc");
    run_runs(run, other, 100, "worker f"); /* the same function in another thread */
    run_waits(run, main, 250, WAIT_CLASS_DISK, __NR_fsync, "main save c:fsync");
    uint32_t lock = run_waits(run, main, 80, WAIT_CLASS_LOCK, __NR_futex, "main take");
    run_queues(run, main, 70);
    run_waits(run, main, 100, WAIT_CLASS_IDLE, __NR_epoll_wait, "main loop");
    struct evidence *evidence = run_end(run, 1000, 500);
    struct lock_row locks[] = {{.object = 7, .name = "table_lock"}};
    uint32_t of_wait[8] = {[0] = 0};
    of_wait[lock] = 1;
    evidence->locks = (struct lock_table){.rows = locks, .count = 1, .of_wait = of_wait};
    run->spans = (struct spans){.items = spans, .count = 2, .artifact = "spans.jsonl"};
    struct run_hotspots hotspots;
    assert_int_equal(run_hotspots_build(&run->arena, evidence, 30, &hotspots), 0);
    assert_int_equal(hotspots.count, 5);
    for (size_t i = 0; i < hotspots.count; i++) {
        const struct run_hotspot *row = &hotspots.rows[i];
        assert_int_equal(row->rank, i + 1);
        assert_true(i == 0 || row->value.ns <= hotspots.rows[i - 1].value.ns);
        assert_true(row->artifact && row->id && row->location && row->command);
        assert_null(strstr(row->location, "loop"));
        assert_string_not_equal(row->metric, "wait for a CPU");
    }
    const struct run_hotspot *f = row_of(&hotspots, "self CPU", "f");
    assert_near(f->share, 0.4);
    assert_true(f->share_low < f->share && f->share < f->share_high);
    assert_string_equal(f->category, "CPU");
    assert_int_equal(f->id[0], 'f');
    assert_string_equal(row_of(&hotspots, "self CPU", "malloc")->category, "CPU/alloc");
    const struct run_hotspot *disk = row_of(&hotspots, "wait on disk", "save");
    assert_near(disk->share, 0.25);
    assert_string_equal(disk->category, "I/O");
    assert_int_equal(disk->id[0], 'w');
    assert_non_null(strstr(disk->command, "whyslow waits --stack w"));
    const struct run_hotspot *held = row_of(&hotspots, "wait for a lock", "take");
    assert_string_equal(held->id, "l7");
    assert_non_null(strstr(held->location, "table_lock"));
    assert_string_equal(held->command, "whyslow locks --lock l7 out/recording.whyslow");
    const struct run_hotspot *span = row_of(&hotspots, "span, as the program says", NULL);
    assert_near(span->share, 0.35);
    assert_string_equal(span->artifact, "spans.jsonl");
    assert_int_equal(span->rank, 2);
    run_free(run);
}

static void what_does_not_fit_is_counted(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 50, "main f");
    run_runs(run, main, 30, "main g");
    run_runs(run, main, 20, "main h");
    struct run_hotspots hotspots;
    assert_int_equal(run_hotspots_build(&run->arena, run_end(run, 100, 100), 2, &hotspots), 0);
    assert_int_equal(hotspots.count, 2);
    assert_int_equal(hotspots.left_out, 1);
    run_free(run);
}

static void without_a_path_calls_stand_in(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 100, "main f");
    struct evidence *evidence = run_end(run, 100, 100);
    struct io_site site = {.syscall = __NR_read, .stack = run_stack(run, "main load c:read")};
    site.tally.total_ns = 500ull * RUN_MS;
    evidence->io.profile = evidence->cpu;
    evidence->io_sums.sites = &site;
    evidence->io_sums.site_count = 1;
    evidence->axes[AXIS_IO].na = NULL;
    struct run_hotspots hotspots;
    assert_int_equal(run_hotspots_build(&run->arena, evidence, 30, &hotspots), 0);
    assert_int_equal(hotspots.count, 1); /* the path has it already */
    evidence->costs_on_path.na = "waits were not recorded";
    assert_int_equal(run_hotspots_build(&run->arena, evidence, 30, &hotspots), 0);
    assert_int_equal(hotspots.count, 2);
    assert_string_equal(hotspots.rows[0].category, "I/O");
    assert_true(str_is(hotspots.rows[0].place.function, "load"));
    evidence->axes[AXIS_IO].disturbed = true;
    assert_int_equal(run_hotspots_build(&run->arena, evidence, 30, &hotspots), 0);
    assert_int_equal(hotspots.count, 1);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_waits_locks_and_spans_stand_side_by_side_but_no_queue),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(without_a_path_calls_stand_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
