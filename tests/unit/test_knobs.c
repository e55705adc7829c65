/* Promises of host/knobs.h, on a machine made of files: nothing is changed before it is
 * remembered, and everything can be put back. */
#include "unit.h"

#include "base/fd.h"
#include "host/knobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARANOID  "/proc/sys/kernel/perf_event_paranoid"
#define THP       "/sys/kernel/mm/transparent_hugepage/enabled"
#define GOVERNOR0 "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
#define GOVERNOR1 "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
#define STATE     "/var/lib/whyslow/tune.json"

struct world {
    struct arena arena;
    struct host host;
    char root[64];
    struct why why;
    struct knob_changes changes;
};

static const char *below(struct world *world, const char *path)
{
    return arena_printf(&world->arena, "%s%s", world->root, path);
}

static void put(struct world *world, const char *path, const char *text)
{
    char *folder = strdup(below(world, path));
    *strrchr(folder, '/') = '\0';
    assert_int_equal(folder_make(folder, NULL), 0);
    free(folder);
    assert_int_equal(file_write_atomic(below(world, path), text, strlen(text), NULL), 0);
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    snprintf(world->root, sizeof(world->root), "/tmp/whyslow-knobs-XXXXXX");
    if (!mkdtemp(world->root))
        return -1;
    world->host = (struct host){.root = world->root, .arena = &world->arena};
    put(world, PARANOID, "3\n");
    put(world, THP, "[always] madvise never\n");
    put(world, "/sys/devices/system/cpu/online", "0-1\n");
    put(world, GOVERNOR0, "powersave\n");
    put(world, GOVERNOR1, "schedutil\n");
    put(world, "/proc/sys/vm/drop_caches", "0\n");
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", world->root);
    int r = system(command);
    knob_changes_deinit(&world->changes);
    arena_deinit(&world->arena);
    free(world);
    return r;
}

static void assert_file(struct world *world, const char *path, const char *text)
{
    struct str found;
    assert_int_equal(host_read(&world->host, path, &found, NULL), 0);
    assert_string_equal(arena_dup_len(&world->arena, found.data, found.len), text);
}

static void plan(struct world *world)
{
    knob_changes_deinit(&world->changes);
    assert_int_equal(knobs_plan(&world->host, NULL, 0, &world->changes, &world->why), 0);
    int lock;
    assert_int_equal(knob_state_lock(&world->host, &lock, &world->why), 0);
    close(lock);
}

static void apply(struct world *world)
{
    plan(world);
    assert_int_equal(knobs_remember(&world->host, &world->changes, &world->why), 0);
    assert_int_equal(knobs_write(&world->host, &world->changes, &world->why), 0);
}

static void revert(struct world *world, bool force)
{
    knob_changes_deinit(&world->changes);
    assert_int_equal(knobs_revert(&world->host, NULL, 0, force, &world->changes, &world->why), 0);
}

static enum knob_result result_of(struct world *world, const char *path)
{
    for (size_t i = 0; i < world->changes.items.len; i++)
        if (strcmp(world->changes.items.data[i].path, path) == 0)
            return world->changes.items.data[i].result;
    fail_msg("no change of %s", path);
    return KNOB_FAILED;
}

static void assert_original(struct world *world)
{
    assert_file(world, PARANOID, "3");
    assert_file(world, GOVERNOR0, "powersave");
    assert_file(world, GOVERNOR1, "schedutil");
    assert_false(host_exists(&world->host, STATE));
}

static void applying_changes_every_setting_and_reverting_restores_each_cpu(void **state)
{
    struct world *world = *state;
    apply(world);
    assert_int_equal(world->changes.items.len, 4);
    assert_file(world, PARANOID, "0");
    assert_file(world, THP, "madvise");
    assert_file(world, GOVERNOR0, "performance");
    assert_file(world, GOVERNOR1, "performance");
    assert_file(world, "/proc/sys/vm/drop_caches", "0");
    revert(world, false);
    assert_int_equal(world->changes.items.len, 4);
    assert_file(world, THP, "always");
    assert_original(world);
}

static void a_crash_before_the_first_write_leaves_a_state_that_reverts(void **state)
{
    struct world *world = *state;
    plan(world);
    assert_int_equal(knobs_remember(&world->host, &world->changes, &world->why), 0);
    assert_true(host_exists(&world->host, STATE));
    assert_file(world, PARANOID, "3"); /* remembered first, written later */
    revert(world, false);
    assert_int_equal(result_of(world, PARANOID), KNOB_ALREADY);
    assert_original(world);
}

static void a_crash_between_two_writes_reverts_what_was_written(void **state)
{
    struct world *world = *state;
    plan(world);
    assert_int_equal(knobs_remember(&world->host, &world->changes, &world->why), 0);
    put(world, GOVERNOR0, "performance\n"); /* as far as it came */
    revert(world, false);
    assert_int_equal(result_of(world, GOVERNOR0), KNOB_RESTORED);
    assert_int_equal(result_of(world, GOVERNOR1), KNOB_ALREADY);
    assert_original(world);
}

static void applying_twice_keeps_the_original_value(void **state)
{
    struct world *world = *state;
    apply(world);
    put(world, PARANOID, "2\n"); /* somebody's hand in between */
    apply(world);
    assert_file(world, PARANOID, "0");
    revert(world, false);
    assert_file(world, PARANOID, "3");
    assert_original(world);
}

static void a_value_somebody_else_changed_is_left_alone_unless_forced(void **state)
{
    struct world *world = *state;
    apply(world);
    put(world, PARANOID, "1\n");
    revert(world, false);
    assert_int_equal(result_of(world, PARANOID), KNOB_LEFT_ALONE);
    assert_int_equal(result_of(world, GOVERNOR0), KNOB_RESTORED);
    assert_file(world, PARANOID, "1");
    assert_true(host_exists(&world->host, STATE));
    revert(world, true);
    assert_int_equal(world->changes.items.len, 1);
    assert_original(world);
}

/* The kernel refuses the text: EINVAL, for root as well. */
static void a_write_that_fails_is_said_and_the_rest_still_reverts(void **state)
{
    struct world *world = *state;
    assert_int_equal(unlink(below(world, GOVERNOR1)), 0);
    assert_int_equal(symlink("/proc/self/oom_score_adj", below(world, GOVERNOR1)), 0);
    apply(world);
    assert_int_equal(result_of(world, GOVERNOR1), KNOB_FAILED);
    assert_int_equal(result_of(world, GOVERNOR0), KNOB_CHANGED);
    revert(world, false);
    assert_file(world, GOVERNOR0, "powersave");
    assert_false(host_exists(&world->host, STATE));
}

/* The kernel takes another value than it was given: comm keeps 15 characters. */
static void a_value_that_did_not_take_is_a_failure_and_still_reverts(void **state)
{
    struct world *world = *state;
    char *names[] = {(char *)"thp"};
    assert_int_equal(unlink(below(world, THP)), 0);
    assert_int_equal(symlink("/proc/self/comm", below(world, THP)), 0);
    assert_int_equal(knobs_plan(&world->host, names, 1, &world->changes, &world->why), 0);
    world->changes.items.data[0].to = "longer-than-fifteen";
    int lock;
    assert_int_equal(knob_state_lock(&world->host, &lock, &world->why), 0);
    close(lock);
    assert_int_equal(knobs_remember(&world->host, &world->changes, &world->why), 0);
    assert_int_equal(knobs_write(&world->host, &world->changes, &world->why), 0);
    assert_int_equal(world->changes.items.data[0].result, KNOB_FAILED);
    assert_file(world, THP, "longer-than-fif");
    revert(world, false);
    assert_int_equal(result_of(world, THP), KNOB_RESTORED);
    assert_false(host_exists(&world->host, STATE));
}

static void a_knob_that_vanished_stays_remembered(void **state)
{
    struct world *world = *state;
    apply(world);
    assert_int_equal(unlink(below(world, GOVERNOR1)), 0);
    revert(world, false);
    assert_int_equal(result_of(world, GOVERNOR1), KNOB_FAILED);
    assert_true(host_exists(&world->host, STATE));
    put(world, GOVERNOR1, "performance\n");
    revert(world, false);
    assert_original(world);
}

static void only_the_named_knob_is_reverted(void **state)
{
    struct world *world = *state;
    char *names[] = {(char *)"governor"};
    apply(world);
    knob_changes_deinit(&world->changes);
    assert_int_equal(knobs_revert(&world->host, names, 1, false, &world->changes, &world->why), 0);
    assert_int_equal(world->changes.items.len, 2);
    assert_file(world, GOVERNOR0, "powersave");
    assert_file(world, PARANOID, "0");
    revert(world, false);
    assert_original(world);
}

static void without_a_place_for_the_state_nothing_is_changed(void **state)
{
    struct world *world = *state;
    put(world, "/var", "a file where the folder should be");
    int lock = -1;
    assert_true(knob_state_lock(&world->host, &lock, &world->why) < 0);
    assert_int_equal(lock, -1);
    assert_int_equal(knobs_plan(&world->host, NULL, 0, &world->changes, &world->why), 0);
    assert_true(knobs_remember(&world->host, &world->changes, &world->why) < 0);
    assert_file(world, PARANOID, "3");
}

static void a_damaged_state_file_is_refused_and_kept(void **state)
{
    struct world *world = *state;
    static const char *const bad[] = {
        "", "{", "[]", "{\"schema\": \"whyslow.tune-state/2\", \"entries\": []}",
        "{\"schema\": \"whyslow.tune-state/1\", \"entries\": [{\"knob\": \"thp\"}]}"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        put(world, STATE, bad[i]);
        plan(world);
        assert_true(knobs_remember(&world->host, &world->changes, &world->why) < 0);
        knob_changes_deinit(&world->changes);
        assert_true(knobs_revert(&world->host, NULL, 0, false, &world->changes, &world->why) < 0);
        assert_true(world->why.remedy[0] != '\0');
        assert_file(world, STATE, bad[i]);
        assert_file(world, PARANOID, "3");
    }
}

static void a_state_of_somebody_else_is_not_written_back(void **state)
{
    struct world *world = *state;
    apply(world);
    assert_int_equal(chmod(below(world, STATE), 0666), 0);
    knob_changes_deinit(&world->changes);
    assert_int_equal(knobs_revert(&world->host, NULL, 0, true, &world->changes, &world->why),
                     -EPERM);
    assert_non_null(strstr(world->why.what, "not written back"));
    assert_int_equal(chmod(below(world, STATE), 0644), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(below(world, STATE), 65534, 65534), 0);
        assert_int_equal(knobs_revert(&world->host, NULL, 0, true, &world->changes, &world->why),
                         -EPERM);
        assert_non_null(strstr(world->why.what, "user 65534"));
        assert_int_equal(chown(below(world, STATE), 0, 0), 0);
    }
    revert(world, false);
    assert_original(world);
}

static void a_state_file_cannot_name_files_that_are_no_knobs(void **state)
{
    struct world *world = *state;
    static const char *const paths[] = {
        "/etc/passwd", "/sys/devices/system/cpu/cpu../../../etc/cpufreq/scaling_governor",
        "/sys/devices/system/cpu/cpu/cpufreq/scaling_governor"};
    put(world, "/etc/passwd", "set\n");
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        put(world, STATE,
            arena_printf(&world->arena,
                         "{\"schema\": \"whyslow.tune-state/1\", \"entries\": [{\"knob\": "
                         "\"governor\", \"path\": \"%s\", \"old\": \"evil\", \"set\": \"set\"}]}",
                         paths[i]));
        revert(world, true);
        assert_int_equal(result_of(world, paths[i]), KNOB_FAILED);
        assert_file(world, "/etc/passwd", "set");
    }
}

static void two_at_a_time_are_refused(void **state)
{
    struct world *world = *state;
    int first = -1, second = -1;
    assert_int_equal(knob_state_lock(&world->host, &first, &world->why), 0);
    assert_int_equal(knob_state_lock(&world->host, &second, &world->why), -EBUSY);
    close(first);
    assert_int_equal(knob_state_lock(&world->host, &second, &world->why), 0);
    close(second);
}

static void unknown_advised_and_absent_knobs_are_refused(void **state)
{
    struct world *world = *state;
    static const char *const names[] = {"govenor", "affinity", "swappiness"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char *list[] = {(char *)names[i]};
        assert_true(knobs_plan(&world->host, list, 1, &world->changes, &world->why) < 0);
        assert_int_equal(world->changes.items.len, 0);
        assert_non_null(strstr(world->why.what, names[i]));
    }
    char *near[] = {(char *)"govenor"};
    assert_true(knobs_revert(&world->host, near, 1, false, &world->changes, &world->why) < 0);
    assert_string_equal(world->why.remedy, "did you mean 'governor'?");
}

static void drop_caches_is_done_when_named_and_not_remembered(void **state)
{
    struct world *world = *state;
    char *names[] = {(char *)"drop_caches"};
    assert_int_equal(knobs_plan(&world->host, names, 1, &world->changes, &world->why), 0);
    assert_int_equal(world->changes.items.len, 1);
    assert_int_equal(knobs_remember(&world->host, &world->changes, &world->why), 0);
    assert_false(host_exists(&world->host, STATE));
    assert_int_equal(knobs_write(&world->host, &world->changes, &world->why), 0);
    assert_file(world, "/proc/sys/vm/drop_caches", "3");
}

static void a_value_that_is_good_enough_is_not_touched(void **state)
{
    struct world *world = *state;
    put(world, PARANOID, "-1\n");
    put(world, THP, "always madvise [never]\n");
    put(world, GOVERNOR0, "performance\n");
    put(world, GOVERNOR1, "performance\n");
    plan(world);
    assert_int_equal(world->changes.items.len, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(applying_changes_every_setting_and_reverting_restores_each_cpu),
        TEST(a_crash_before_the_first_write_leaves_a_state_that_reverts),
        TEST(a_crash_between_two_writes_reverts_what_was_written),
        TEST(applying_twice_keeps_the_original_value),
        TEST(a_value_somebody_else_changed_is_left_alone_unless_forced),
        TEST(a_write_that_fails_is_said_and_the_rest_still_reverts),
        TEST(a_value_that_did_not_take_is_a_failure_and_still_reverts),
        TEST(a_knob_that_vanished_stays_remembered),
        TEST(only_the_named_knob_is_reverted),
        TEST(without_a_place_for_the_state_nothing_is_changed),
        TEST(a_damaged_state_file_is_refused_and_kept),
        TEST(a_state_of_somebody_else_is_not_written_back),
        TEST(a_state_file_cannot_name_files_that_are_no_knobs),
        TEST(two_at_a_time_are_refused),
        TEST(unknown_advised_and_absent_knobs_are_refused),
        TEST(drop_caches_is_done_when_named_and_not_remembered),
        TEST(a_value_that_is_good_enough_is_not_touched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
