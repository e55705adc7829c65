/* Promises of base/fd.h and base/why.h. */
#include "unit.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/whyslow-fd-XXXXXX";

static int folder_create(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
    (void)state;
    char command[200];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void a_file_is_written_whole_and_read_back(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct why why = {0};
    char data[20000];
    memset(data, 'x', sizeof(data));
    assert_int_equal(file_write_atomic(in_folder("f"), data, sizeof(data), &why), 0);
    assert_int_equal(file_write_atomic(in_folder("f"), data, 5000, &why), 0);
    struct str text;
    assert_int_equal(file_read(&arena, in_folder("f"), 1 << 20, &text, &why), 0);
    assert_int_equal(text.len, 5000);
    assert_memory_equal(text.data, data, 5000);
    assert_int_equal(text.data[text.len], '\0');
}

static void a_file_of_proc_without_a_size_is_read(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str text;
    assert_int_equal(file_read(&arena, "/proc/self/status", 1 << 20, &text, NULL), 0);
    assert_true(str_field(text, "Pid").len > 0);
}

static void too_large_and_missing_files_say_so(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct why why = {0};
    struct str text = STR("untouched");
    assert_int_equal(file_write_atomic(in_folder("big"), "12345", 5, &why), 0);
    assert_int_equal(file_read(&arena, in_folder("big"), 4, &text, &why), -EFBIG);
    assert_int_equal(file_read(&arena, in_folder("none"), 4, &text, &why), -ENOENT);
    assert_int_equal(why.kind, WHY_USAGE);
    assert_non_null(strstr(why.what, "none': No such file"));
    assert_true(str_is(text, "untouched"));
}

static void a_failed_replacement_leaves_the_old_file_and_no_litter(void **state)
{
    (void)state;
    struct why why = {0};
    assert_int_equal(folder_make(in_folder("target/inner"), &why), 0);
    /* A folder cannot be replaced by a file: rename fails after the write. */
    assert_true(file_write_atomic(in_folder("target"), "x", 1, &why) < 0);
    char command[300];
    snprintf(command, sizeof(command), "ls '%s' | grep -q tmp", folder);
    assert_int_not_equal(system(command), 0);
}

static void folders_are_made_with_their_parents(void **state)
{
    (void)state;
    struct why why = {0};
    struct stat st;
    assert_int_equal(folder_make(in_folder("a/b/c"), &why), 0);
    assert_int_equal(folder_make(in_folder("a/b/c"), &why), 0);
    assert_int_equal(stat(in_folder("a/b/c"), &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(file_write_atomic(in_folder("plain"), "", 0, &why), 0);
    assert_true(folder_make(in_folder("plain"), &why) < 0);
    assert_true(folder_make(in_folder("plain/below"), &why) < 0);
    assert_true(folder_make("", &why) < 0);
}

static void what_is_made_is_for_its_owner_alone_whatever_the_umask(void **state)
{
    (void)state;
    struct why why = {0};
    struct stat st;
    mode_t before = umask(0);
    assert_int_equal(folder_make(in_folder("own/inner"), &why), 0);
    assert_int_equal(file_write_atomic(in_folder("own/file"), "x", 1, &why), 0);
    FILE *out = file_open_private(in_folder("own/stream"), false);
    assert_non_null(out);
    fclose(out);
    assert_null(file_open_private(in_folder("own/stream"), false)); /* not somebody's */
    out = file_open_private(in_folder("own/stream"), true);
    assert_non_null(out);
    fclose(out);
    umask(before);
    static const char *const names[] = {"own", "own/inner", "own/file", "own/stream"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(stat(in_folder(names[i]), &st), 0);
        assert_int_equal(st.st_mode & 0777, S_ISDIR(st.st_mode) ? 0700 : 0600);
    }
    /* Also one that others could read before. */
    assert_int_equal(chmod(in_folder("own/file"), 0644), 0);
    assert_int_equal(file_write_atomic(in_folder("own/file"), "y", 1, &why), 0);
    assert_int_equal(stat(in_folder("own/file"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* Opening is an act of its own: of a pipe its writer is told, a watchdog is started. */
static void only_a_regular_file_is_opened(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str text;
    char path[256];
    struct why why = {0};
    assert_int_equal(file_write_atomic(in_folder("regular"), "text", 4, &why), 0);
    AUTO(fd_close) int fd = file_open_regular(in_folder("regular"));
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(read(fd, path, sizeof(path)), 4);
    assert_int_equal(file_open_regular(folder), -EISDIR);
    assert_int_equal(file_open_regular("/dev/null"), -EINVAL);
    assert_int_equal(file_open_regular(in_folder("not-there")), -ENOENT);
    snprintf(path, sizeof(path), "%s", in_folder("link"));
    assert_int_equal(symlink(in_folder("regular"), path), 0);
    AUTO(fd_close) int through = file_open_regular(path);
    assert_true(through >= 0);
    assert_int_equal(file_read_own(&arena, path, 100, &text, &why), -ELOOP);
    assert_int_equal(file_read_own(&arena, in_folder("regular"), 100, &text, &why), 0);
    assert_int_equal(text.len, 4);
    /* A child waits for somebody to open the pipe that it writes to. */
    snprintf(path, sizeof(path), "%s", in_folder("pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(open(path, O_WRONLY) < 0);
    usleep(50000); /* so that it does wait; without that the test would only see less */
    assert_int_equal(file_open_regular(path), -EINVAL);
    assert_int_equal(file_read_regular(&arena, path, 100, &text, &why), -EINVAL);
    usleep(50000);
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void descriptors_are_closed_once_or_handed_over(void **state)
{
    (void)state;
    int kept = -1, fd_number;
    {
        AUTO(fd_close) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        AUTO(fd_close) int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
        fd_number = fd;
        kept = fd_take(&other);
        assert_int_equal(other, -1);
    }
    assert_int_equal(fcntl(fd_number, F_GETFD), -1);
    assert_int_not_equal(fcntl(kept, F_GETFD), -1);
    fd_close(&kept);
    fd_close(&kept);
}

static void an_error_carries_its_kind_and_remedy(void **state)
{
    (void)state;
    struct why why = {0};
    assert_int_equal(why_errno(&why, EACCES, "become root", "cannot open '%s'", "x"), -EACCES);
    assert_int_equal(why.kind, WHY_DENIED);
    assert_string_equal(why.what, "cannot open 'x': Permission denied");
    assert_string_equal(why.remedy, "become root");
    assert_int_equal(why_errno(&why, ENOSPC, NULL, "full"), -ENOSPC);
    assert_int_equal(why.kind, WHY_FAILED);
    assert_string_equal(why.remedy, "");
    assert_int_equal(why_set(NULL, WHY_USAGE, EINVAL, NULL, "nobody listens"), -EINVAL);
    why_set_remedy(&why, "try %d", 2);
    assert_string_equal(why.remedy, "try 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_written_whole_and_read_back),
        cmocka_unit_test(a_file_of_proc_without_a_size_is_read),
        cmocka_unit_test(too_large_and_missing_files_say_so),
        cmocka_unit_test(a_failed_replacement_leaves_the_old_file_and_no_litter),
        cmocka_unit_test(folders_are_made_with_their_parents),
        cmocka_unit_test(what_is_made_is_for_its_owner_alone_whatever_the_umask),
        cmocka_unit_test(only_a_regular_file_is_opened),
        cmocka_unit_test(descriptors_are_closed_once_or_handed_over),
        cmocka_unit_test(an_error_carries_its_kind_and_remedy),
    };
    return cmocka_run_group_tests(tests, folder_create, folder_remove);
}
