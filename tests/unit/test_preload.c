/* Promises of target/preload.h. */
#include "unit.h"

#include "base/clock.h"
#include "base/macros.h"
#include "target/preload.h"
#include "target/program.h"
#include "target/spawn.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct preload *opened(void)
{
    struct preload *preload = NULL;
    struct why why = {0};
    assert_int_equal(preload_open(&preload, &why), 0);
    return preload;
}

static void the_library_is_a_file_that_is_gone_afterwards(void **state)
{
    (void)state;
    struct preload *preload = opened();
    struct stat file;
    char path[PATH_MAX], folder[PATH_MAX];
    snprintf(path, sizeof(path), "%s", preload_path(preload));
    snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(stat(path, &file), 0);
    assert_true(file.st_size > 4096);
    assert_int_equal(stat(folder, &file), 0);
    /* Others may not list it, nor write to it; only root's lets them read what they know of. */
    assert_int_equal(file.st_mode & 0777, geteuid() == 0 ? 0711 : 0700);
    preload_close(preload);
    assert_int_equal(stat(folder, &file), -1);
}

static void what_was_preloaded_before_comes_behind(void **state)
{
    (void)state;
    setenv("LD_PRELOAD", "/lib/one.so:/lib/two.so", 1);
    struct preload *preload = opened();
    unsetenv("LD_PRELOAD");
    const char *const *variables = preload_environment(preload);
    char expected[2 * PATH_MAX];
    snprintf(expected, sizeof(expected), "LD_PRELOAD=%s:/lib/one.so:/lib/two.so",
             preload_path(preload));
    assert_string_equal(variables[0], expected);
    assert_memory_equal(variables[1], PRELOAD_VARIABLE "=/proc/", sizeof(PRELOAD_VARIABLE) + 6);
    assert_null(variables[2]);
    preload_close(preload);
}

static void a_folder_that_the_loader_would_split_is_passed_over(void **state)
{
    (void)state;
    const char *const folders[] = {"/tmp/a:b", "/tmp/a b", "relative", "/nowhere/at/all", ""};
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        setenv("TMPDIR", folders[i], 1);
        setenv("XDG_RUNTIME_DIR", folders[i], 1);
        struct preload *preload = opened();
        assert_null(strpbrk(preload_path(preload), ": "));
        assert_int_equal(preload_path(preload)[0], '/');
        preload_close(preload);
    }
    unsetenv("TMPDIR");
    unsetenv("XDG_RUNTIME_DIR");
}

static void a_folder_in_which_others_may_rename_is_passed_over(void **state)
{
    (void)state;
    char folder[] = "/tmp/preload-open-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0777), 0);
    setenv("TMPDIR", folder, 1);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    struct preload *preload = opened();
    assert_null(strstr(preload_path(preload), folder));
    assert_int_equal(chmod(folder, 01777), 0); /* sticky: only owners rename */
    struct preload *other = opened();
    assert_non_null(strstr(preload_path(other), folder));
    preload_close(preload);
    preload_close(other);
    unsetenv("TMPDIR");
    unsetenv("XDG_RUNTIME_DIR");
    assert_int_equal(rmdir(folder), 0);
}

static void variables_reach_the_target_in_the_place_of_ours(void **state)
{
    (void)state;
    const char *const variables[] = {"WHYSLOW_TEST_A=new", "WHYSLOW_TEST_B=more", NULL};
    char shell[] = "sh", dash[] = "-c",
         script[] = "echo $WHYSLOW_TEST_A $WHYSLOW_TEST_B $WHYSLOW_TEST_AB; "
                    "env | grep -c ^WHYSLOW_TEST_A=";
    char *argv[] = {shell, dash, script, NULL}, path[PATH_MAX];
    setenv("WHYSLOW_TEST_A", "old", 1);
    setenv("WHYSLOW_TEST_AB", "kept", 1);
    assert_int_equal(program_find("sh", path, NULL), 0);
    for (int plain = 0; plain < 2; plain++) {
        struct spawn_result result = {0};
        struct spawn_opts opts = {
            .argv = argv,
            .path = path,
            .output = SPAWN_CAPTURE,
            .timeout_ns = 600 * NS_PER_SEC,
            .environment = variables,
            .environment_bytes = plain ? 100 : 0,
            .plain = plain,
        };
        assert_int_equal(spawn_run(&opts, &result, NULL), 0);
        assert_memory_equal(result.output.tail, "new more kept\n1\n", 16);
    }
    assert_string_equal(getenv("WHYSLOW_TEST_A"), "old");
    unsetenv("WHYSLOW_TEST_A");
    unsetenv("WHYSLOW_TEST_AB");
}

static void the_memory_is_marked_and_says_when_we_are_gone(void **state)
{
    (void)state;
    struct preload *preload = opened();
    const struct preload_header *header = preload_header(preload);
    assert_int_equal(header->magic, PRELOAD_MAGIC);
    assert_int_equal(header->bytes, PRELOAD_BYTES);
    assert_int_equal(header->over, 0);
    const struct preload_thread *last = preload_place(preload, PRELOAD_LOCK_HOOKS,
                                                      PRELOAD_THREADS_MAX - 1);
    assert_int_equal(last->state, PRELOAD_FREE);
    assert_int_equal((const char *)(last + 1) - (const char *)header, PRELOAD_IO_OFFSET);
    const struct preload_io_thread *last_io = preload_io_place(preload, PRELOAD_THREADS_MAX - 1);
    assert_int_equal(last_io->thread.state, PRELOAD_FREE);
    assert_int_equal((const char *)(last_io + 1) - (const char *)header, PRELOAD_BYTES);
    /* Nobody has asked for any family yet. */
    for (int i = 0; i < PRELOAD_FAMILIES; i++)
        assert_int_equal(header->families[i].on, 0);
    preload_close(preload);
    preload_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_is_a_file_that_is_gone_afterwards),
        cmocka_unit_test(what_was_preloaded_before_comes_behind),
        cmocka_unit_test(a_folder_that_the_loader_would_split_is_passed_over),
        cmocka_unit_test(a_folder_in_which_others_may_rename_is_passed_over),
        cmocka_unit_test(variables_reach_the_target_in_the_place_of_ours),
        cmocka_unit_test(the_memory_is_marked_and_says_when_we_are_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
