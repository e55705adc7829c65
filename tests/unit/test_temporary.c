/* What killed makers leave is swept, and nothing else; fault/signals-leftovers has the folders. */
#include "unit.h"

#include "base/fd.h"
#include "base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/whyslow-test-XXXXXX";
static int to_take; /* of the next folders that are made: a sweeper is quicker */

/* In the place of libc's. */
char *mkdtemp(char *template)
{
    int fd = mkstemp(template);
    if (fd < 0)
        return NULL;
    close(fd);
    unlink(template);
    if (mkdir(template, 0700) < 0)
        return NULL;
    if (to_take > 0 && to_take--)
        rmdir(template);
    return template;
}

static int group_setup(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int group_teardown(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *in_folder(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static const char *of_pid(const char *base, int pid, const char *suffix)
{
    static char name[128];
    snprintf(name, sizeof(name), "%s.%d%s", base, pid, suffix);
    return in_folder(name);
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static bool there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int dead_pid(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    return pid;
}

static void a_folder_that_is_swept_before_it_is_locked_is_made_anew(void **state)
{
    (void)state;
    char path[PATH_MAX];
    to_take = 2;
    assert_int_equal(temporary_folder_in(folder, path), 0);
    assert_int_equal(to_take, 0);
    assert_true(there(path));
    temporary_remove(path);
    assert_false(there(path));
}

static void files_of_the_dead_are_swept_beside_theirs_and_no_others(void **state)
{
    (void)state;
    int dead = dead_pid();
    char target[PATH_MAX];
    snprintf(target, sizeof(target), "%s", in_folder("it"));
    touch(of_pid("it", dead, ".new"));
    touch(of_pid("it", getpid(), ".new")); /* who asks has not made one yet */
    assert_int_equal(symlink("nowhere", of_pid("it", dead, ".link")), 0);
    touch(of_pid("it", getppid(), ".new"));
    touch(of_pid("it", dead, ".old"));
    touch(of_pid("other", dead, ".new"));
    touch(in_folder("it.new"));
    touch(in_folder("it.0x1.new"));
    temporary_sweep_beside(target, ".new");
    temporary_sweep_beside(target, ".link");
    assert_false(there(of_pid("it", dead, ".new")));
    assert_false(there(of_pid("it", getpid(), ".new")));
    assert_false(there(of_pid("it", dead, ".link")));
    const char *kept[] = {"it.new", "it.0x1.new"};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(unlink(in_folder(kept[i])), 0);
    assert_int_equal(unlink(of_pid("it", getppid(), ".new")), 0);
    assert_int_equal(unlink(of_pid("it", dead, ".old")), 0);
    assert_int_equal(unlink(of_pid("other", dead, ".new")), 0);
}

static void a_file_whose_maker_holds_it_stays_although_its_number_is_nobodys(void **state)
{
    (void)state;
    const char *path = of_pid("it", dead_pid(), ".new");
    touch(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    char target[PATH_MAX], held[PATH_MAX];
    snprintf(held, sizeof(held), "%s", path);
    snprintf(target, sizeof(target), "%s", in_folder("it"));
    temporary_sweep_beside(target, ".new");
    assert_true(there(held));
    close(fd);
    temporary_sweep_beside(target, ".new");
    assert_false(there(held));
}

static void what_was_left_of_a_write_goes_with_the_next_one(void **state)
{
    (void)state;
    char target[PATH_MAX], left[PATH_MAX];
    snprintf(left, sizeof(left), "%s", of_pid("it", dead_pid(), ".tmp"));
    snprintf(target, sizeof(target), "%s", in_folder("it"));
    touch(left);
    assert_int_equal(file_write_atomic(target, "x", 1, NULL), 0);
    assert_false(there(left));
    assert_int_equal(unlink(target), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_that_is_swept_before_it_is_locked_is_made_anew),
        cmocka_unit_test(files_of_the_dead_are_swept_beside_theirs_and_no_others),
        cmocka_unit_test(a_file_whose_maker_holds_it_stays_although_its_number_is_nobodys),
        cmocka_unit_test(what_was_left_of_a_write_goes_with_the_next_one),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
