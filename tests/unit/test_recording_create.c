/* Promises of store/writer.h about the file itself: its name, what lies beside it, and whoever else
 * wants either. */
#include "recording_helpers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static void a_finished_recording_is_alone(void)
{
    char command[300];
    snprintf(command, sizeof(command), "test \"$(ls -A '%s')\" = a.whyslow", folder);
    assert_int_equal(system(command), 0);
}

static void a_finished_recording_is_one_file(void **state)
{
    (void)state;
    write_fixture(100);
    a_finished_recording_is_alone();
}

static void an_existing_file_is_never_overwritten(void **state)
{
    (void)state;
    static const char *const names[] = {"", "-wal", "-journal", "-shm"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char name[160];
        snprintf(name, sizeof(name), "%s%s", path, names[i]);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
        assert_int_equal(write(fd, "precious", 8), 8);
        close(fd);
        struct recording_writer *writer = NULL;
        struct why why = {0};
        assert_int_equal(recording_create(path, &(struct recording_opts){0}, &writer, &why),
                         -EEXIST);
        assert_int_equal(why.kind, WHY_USAGE);
        assert_non_null(strstr(why.what, name));
        assert_true(why.remedy[0] != '\0');
        assert_null(writer);
        struct stat st;
        assert_int_equal(stat(name, &st), 0);
        assert_int_equal(st.st_size, 8);
        unlink(name);
    }
}

static void beside_touch(size_t count)
{
    static const char *const names[] = {"-wal", "-journal", "-shm"};
    for (size_t i = 0; i < count; i++) {
        char name[160];
        snprintf(name, sizeof(name), "%s%s", path, names[i]);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
        assert_true(fd >= 0);
        close(fd);
    }
}

static void beside_unlink(void)
{
    char command[300];
    snprintf(command, sizeof(command), "rm '%s'/a.whyslow-*", folder);
    assert_int_equal(system(command), 0);
}

/* Killed before its log began: nothing was in it yet, and nothing is refused for it. */
static void empty_files_of_a_killed_one_are_no_obstacle(void **state)
{
    (void)state;
    for (size_t count = 1; count <= 3; count++) {
        beside_touch(count);
        struct fixture fixture = write_fixture(10);
        beside_touch(3);
        assert_int_equal(recording_fold(path), 0);
        struct recording *recording = open_good();
        assert_samples(recording, &fixture, 10);
        recording_close(recording);
        a_finished_recording_is_alone();
        assert_int_equal(unlink(path), 0);
    }
}

static void empty_files_of_a_living_one_stay(void **state)
{
    (void)state;
    char name[160];
    struct recording_writer *writer = NULL;
    struct why why = {0};
    snprintf(name, sizeof(name), "%s-wal", path);
    for (int has_its_name = 0; has_its_name < 2; has_its_name++) {
        if (has_its_name)
            write_fixture(10);
        beside_touch(3);
        int fd = open(name, O_RDWR);
        assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
        assert_int_equal(recording_create(path, &(struct recording_opts){0}, &writer, &why),
                         -EEXIST);
        assert_int_equal(recording_fold(path), has_its_name ? -EBUSY : -EPERM);
        assert_int_equal(access(name, F_OK), 0);
        close(fd);
        if (!has_its_name)
            beside_unlink();
    }
}

/* And not that the disk is for reading only. */
static void a_recording_that_was_removed_meanwhile_says_so(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct fixture fixture;
    struct why why = {0};
    assert_int_equal(fixture_begin(recording_writer_sink(writer), &fixture), 0);
    assert_int_equal(unlink(path), 0);
    assert_true(recording_writer_finish(writer, &why) < 0);
    assert_non_null(strstr(why.what, "it was moved or removed meanwhile"));
    recording_writer_close(writer);
}

static void odd_names_are_only_names(void **state)
{
    (void)state;
    char old[4096];
    assert_non_null(getcwd(old, sizeof(old)));
    assert_int_equal(chdir(folder), 0);
    static const char *const names[] = {":memory:", "file:a.db?mode=memory", "a%20b#c?d", "-x"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof(path), "%s", names[i]);
        struct fixture fixture = write_fixture(10);
        assert_int_equal(access(names[i], F_OK), 0);
        struct recording *recording = open_good();
        assert_samples(recording, &fixture, 10);
        recording_close(recording);
    }
    assert_int_equal(chdir(old), 0);
}

/* As NFS and SMB have flock(): a lock of the whole file, of the kind that SQLite takes. */
static bool flock_is_of_ranges, swept_before_flock;
int flock(int fd, int operation)
{
    struct flock whole = {.l_type = operation & LOCK_UN ? F_UNLCK : F_WRLCK, .l_whence = SEEK_SET};
    char name[160];
    snprintf(name, sizeof(name), "%s.%d.new", path, getpid());
    if (swept_before_flock)
        assert_int_equal(unlink(name), 0);
    swept_before_flock = false;
    if (!flock_is_of_ranges)
        return (int)syscall(SYS_flock, fd, operation);
    return fcntl(fd, operation & LOCK_NB ? F_OFD_SETLK : F_OFD_SETLKW, &whole);
}

static void locks_of_one_kind_do_not_exclude_each_other(void **state)
{
    (void)state;
    flock_is_of_ranges = true;
    struct fixture fixture = write_fixture(10);
    flock_is_of_ranges = false;
    struct recording *recording = open_good();
    assert_samples(recording, &fixture, 10);
    recording_close(recording);
}

static void a_new_file_that_was_swept_away_is_made_again(void **state)
{
    (void)state;
    swept_before_flock = true;
    struct fixture fixture = write_fixture(10);
    assert_false(swept_before_flock);
    struct recording *recording = open_good();
    assert_samples(recording, &fixture, 10);
    recording_close(recording);
}

static void slashes_before_a_name_name_no_host(void **state)
{
    (void)state;
    char once[sizeof(path)];
    memcpy(once, path, sizeof(once));
    snprintf(path, sizeof(path), "//%.100s", once + 1);
    struct fixture fixture = write_fixture(10);
    struct recording *recording = open_good();
    assert_samples(recording, &fixture, 10);
    recording_close(recording);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_finished_recording_is_one_file),
        TEST(an_existing_file_is_never_overwritten),
        TEST(a_recording_that_was_removed_meanwhile_says_so),
        TEST(empty_files_of_a_killed_one_are_no_obstacle),
        TEST(empty_files_of_a_living_one_stay),
        TEST(locks_of_one_kind_do_not_exclude_each_other),
        TEST(a_new_file_that_was_swept_away_is_made_again),
        TEST(slashes_before_a_name_name_no_host),
        TEST(odd_names_are_only_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
