/* Owners and modes decide what is believed. */
#include "unit.h"

#include "base/fd.h"
#include "base/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool believed(uid_t owner, mode_t mode)
{
    struct stat st = {.st_uid = owner, .st_gid = getegid() + 1, .st_mode = mode};
    return trust_stat(&st);
}

static void files_of_root_and_our_own_are_believed_unless_others_may_write(void **state)
{
    (void)state;
    uid_t me = geteuid(), other = me + 12345;
    assert_true(believed(0, S_IFREG | 0644));
    assert_true(believed(me, S_IFREG | 0600));
    assert_false(believed(other, S_IFREG | 0644));
    assert_false(believed(me, S_IFREG | 0664));
    assert_false(believed(me, S_IFREG | 0646));
    assert_false(believed(0, S_IFDIR | 0777));
    assert_true(believed(0, S_IFDIR | 01777));
    assert_false(believed(other, S_IFDIR | 01777));
}

static void a_group_of_ones_own_may_write_but_not_for_root(void **state)
{
    (void)state;
    struct stat st = {.st_uid = geteuid(), .st_gid = getegid(), .st_mode = S_IFDIR | 0775};
    assert_int_equal(trust_stat(&st), geteuid() != 0);
}

static void one_folder_that_others_may_write_spoils_all_below(void **state)
{
    (void)state;
    char folder[] = "/tmp/whyslow-trust-XXXXXX", path[PATH_MAX], inner[PATH_MAX];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/a", folder);
    snprintf(inner, sizeof(inner), "%s/a/b", folder);
    assert_int_equal(folder_make(inner, NULL), 0);
    assert_int_equal(chmod(path, 0755) | chmod(inner, 0755), 0);
    assert_true(trust_path(inner));
    setenv("TMPDIR", inner, 1);
    assert_string_equal(trust_temporary(), inner);
    assert_int_equal(chmod(path, 0777), 0);
    assert_false(trust_path(inner));
    assert_string_equal(trust_temporary(), "/tmp");
    setenv("TMPDIR", "/nowhere/at/all", 1);
    assert_string_equal(trust_temporary(), "/nowhere/at/all"); /* so that its error is told */
    unsetenv("TMPDIR");
    assert_string_equal(trust_temporary(), "/tmp");
    assert_false(trust_path("/nowhere/at/all"));
    assert_int_equal(rmdir(inner) | rmdir(path) | rmdir(folder), 0);
}

static void a_pipe_where_a_file_should_be_is_not_waited_for(void **state)
{
    (void)state;
    char folder[] = "/tmp/whyslow-trust-XXXXXX", path[PATH_MAX];
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str text;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(300); /* ends the test if it waits after all */
    assert_int_equal(file_read_regular(&arena, path, 100, &text, NULL), -EINVAL);
    alarm(0);
    assert_int_equal(file_read_regular(&arena, "/dev/null", 100, &text, NULL), -EINVAL);
    assert_int_equal(file_read_regular(&arena, folder, 100, &text, NULL), -EINVAL);
    assert_int_equal(unlink(path) | rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_root_and_our_own_are_believed_unless_others_may_write),
        cmocka_unit_test(a_group_of_ones_own_may_write_but_not_for_root),
        cmocka_unit_test(one_folder_that_others_may_write_spoils_all_below),
        cmocka_unit_test(a_pipe_where_a_file_should_be_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
