/* Promises of store/reader.h about files that are not what they should be:
 * another kind, another version, forged. The user's file is never changed. */
#include "recording_helpers.h"

#include "base/map.h"

#include <fcntl.h>
#include <sys/stat.h>

static void another_kind_of_file_is_called_by_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        const char *words;
    } kinds[] = {
        {"", 0, "it is empty"},
        {"\177ELF\2\1\1", 7, "an ELF program"},
        {"PERFILE2abc", 11, "a perf.data file"},
        {"hello\n\303\244\n", 9, "it is text"},
        {"{\"a\": 1}", 8, "JSON"},
        {"\1\2\3\4\0", 5, "binary data"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_int_equal(write(fd, kinds[i].bytes, kinds[i].len), kinds[i].len);
        close(fd);
        assert_refused(EINVAL, WHY_USAGE, kinds[i].words);
    }
    unlink(path);
    patch("CREATE TABLE a(x); PRAGMA user_version = 1");
    assert_refused(EINVAL, WHY_USAGE, "a SQLite database of another program");
    unlink(path);
    assert_refused(ENOENT, WHY_USAGE, "cannot open");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused(EISDIR, WHY_USAGE, "is a folder");
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(EINVAL, WHY_USAGE, "no ordinary file");
}

static void a_newer_schema_is_refused_by_name(void **state)
{
    (void)state;
    write_fixture(10);
    patch("PRAGMA user_version = 7; UPDATE meta SET value = '9.9.9' WHERE key = 'writer'");
    assert_refused(EOPNOTSUPP, WHY_DENIED,
                   "has schema 7, written by whyslow 9.9.9; this whyslow reads schemas up to 5");
    patch("PRAGMA user_version = 0");
    assert_refused(EBADMSG, WHY_FAILED, "schema 0");
}

static uint64_t file_hash(void)
{
    static char bytes[1 << 22];
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, bytes, sizeof(bytes));
    close(fd);
    assert_true(n > 0);
    return hash_bytes(bytes, (size_t)n);
}

static void an_older_schema_is_migrated_in_a_copy(void **state)
{
    (void)state;
    struct fixture fixture = write_fixture(3000);
    uint64_t before = file_hash();
    struct schema_step steps[] = {schema_steps[0],
                                  schema_steps[1],
                                  schema_steps[2],
                                  schema_steps[3],
                                  schema_steps[4],
                                  {"CREATE TABLE extra(x); INSERT INTO extra "
                                   "SELECT count(*) FROM thread"}};
    struct recording *recording;
    assert_int_equal(reader_open(path, steps, 6, &recording, NULL), 0);
    assert_int_equal(recording_schema(recording), 5);
    int64_t extra;
    assert_int_equal(db_int(recording_db(recording), "SELECT x FROM extra", &extra), SQLITE_OK);
    assert_int_equal(extra, 3);
    assert_samples(recording, &fixture, 3000);
    recording_close(recording);
    assert_true(file_hash() == before);

    steps[5].sql = "CREATE TABLE extra(x); SELECT no_such_function()";
    struct why why = {0};
    recording = NULL;
    assert_true(reader_open(path, steps, 6, &recording, &why) < 0);
    assert_non_null(strstr(why.what, "no_such_function"));
    assert_null(recording);
    assert_true(file_hash() == before);
}

static void assert_samples_fail(const char *words)
{
    struct recording *recording = open_good();
    struct sample_cursor *cursor;
    struct sample_block block;
    struct why why = {0};
    assert_int_equal(sample_cursor_open(recording, 1, SAMPLES_ALL, &cursor, &why), 0);
    int r;
    while ((r = sample_cursor_next(cursor, &block, &why)) > 0)
        ;
    if (r != -EBADMSG || !strstr(why.what, words))
        print_error("%d: %s\n", r, why.what);
    assert_int_equal(r, -EBADMSG);
    assert_non_null(strstr(why.what, words));
    sample_cursor_close(cursor);
    recording_close(recording);
}

static void forged_rows_are_refused_by_name(void **state)
{
    (void)state;
    write_fixture(30000);
    patch("CREATE TABLE saved AS SELECT * FROM chunk");
    static const struct {
        const char *sql;
        const char *words;
    } forgeries[] = {
        {"UPDATE chunk SET data = x'00' WHERE id = 1", "damaged chunk 1 of series cpu"},
        {"UPDATE chunk SET data = zeroblob(0) WHERE id = 1", "chunk 1 of series cpu"},
        {"UPDATE chunk SET samples = 4000000000 WHERE id = 1", "number of samples"},
        {"UPDATE chunk SET samples = samples - 1 WHERE id = 1", "chunk 1 of series cpu"},
        {"UPDATE chunk SET codec = 2 WHERE id = 1", "codec"},
        {"UPDATE chunk SET start_ns = start_ns - 1 WHERE id = 1", "time"},
        {"UPDATE chunk SET end_ns = 9e15 WHERE id = 1", "time"},
        {"UPDATE chunk SET data = substr(data, 1, length(data) / 2) WHERE id = 1", "chunk 1"},
        {"DELETE FROM thread WHERE id >= 2", "thread that does not exist"},
        {"DELETE FROM stack WHERE id > 4", "stack that does not exist"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(forgeries); i++) {
        patch(forgeries[i].sql);
        assert_samples_fail(forgeries[i].words);
        patch("DELETE FROM chunk; INSERT INTO chunk SELECT * FROM saved");
        if (strncmp(forgeries[i].sql, "DELETE FROM thread", 18) == 0)
            patch("INSERT INTO thread VALUES(2, 1, 1, 1, NULL, ''), (3, 1, 1, 1, NULL, '')");
    }
}

static int ignore_frame(void *context, const struct recorded_frame *row)
{
    (void)context;
    (void)row;
    return 0;
}

static void forged_tables_are_refused_by_name(void **state)
{
    (void)state;
    write_fixture(100);
    struct why why = {0};
    uint32_t frames[8];
    patch("UPDATE stack SET parent = 9 WHERE id = 5");
    struct recording *recording = open_good();
    assert_int_equal(recording_stack(recording, 5, frames, 8, &why), -EBADMSG);
    assert_non_null(strstr(why.what, "damaged table 'stack', row 5"));
    recording_close(recording);
    patch("UPDATE stack SET parent = 1 WHERE id = 5; UPDATE stack SET id = 900000000 WHERE id = 7");
    recording = open_good();
    assert_int_equal(recording_stack(recording, 5, frames, 8, &why), -EBADMSG);
    recording_close(recording);
    patch("UPDATE frame SET kind = 'odd' WHERE id = 2");
    recording = open_good();
    assert_int_equal(recording_each_frame(recording, ignore_frame, NULL, &why), -EBADMSG);
    assert_non_null(strstr(why.what, "table 'frame', row 2: kind"));
    recording_close(recording);
    patch("UPDATE stack SET id = 9000000000 WHERE id = 900000000");
    assert_refused(EBADMSG, WHY_FAILED, "table 'stack': id 9000000000");
    /* A column that is computed while it is read could take for ever, too. */
    patch("CREATE TABLE kept AS SELECT * FROM frame; DROP TABLE frame; CREATE TABLE frame("
          "id INTEGER PRIMARY KEY, kind, reason, image, address, name AS"
          " (length(hex(zeroblob(100000000 + id)))))");
    assert_refused(EBADMSG, WHY_FAILED, "no table 'frame'");
    patch("DROP TABLE frame; CREATE VIRTUAL TABLE frame USING fts5(id, kind, reason, image)");
    assert_refused(EBADMSG, WHY_FAILED, "no table 'frame'");
    patch("DROP TABLE frame; CREATE TABLE frame(id INTEGER PRIMARY KEY, kind TEXT, reason,"
          " image, address, name); INSERT INTO frame SELECT * FROM kept");
    patch("DROP TABLE stack; CREATE VIEW stack AS WITH RECURSIVE n(id) AS"
          " (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n");
    assert_refused(EBADMSG, WHY_FAILED, "no table 'stack'");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(another_kind_of_file_is_called_by_its_name), TEST(a_newer_schema_is_refused_by_name),
        TEST(an_older_schema_is_migrated_in_a_copy),      TEST(forged_rows_are_refused_by_name),
        TEST(forged_tables_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
