/* Promises of collect/files_look*.c: what is said of a file is so; a look leaves no trace, waits
 * for nobody, and says why it does not know. */
#include "unit.h"

#include "base/clock.h"
#include "collect/files_look_parts.h"
#include "model/sink_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/fiemap.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

struct look_test {
    struct sink_memory memory;
    struct files_look *look;
    char folder[64];
    json_t *document;
};

static int look_start(void **state)
{
    struct look_test *test = calloc(1, sizeof(*test));
    *state = test;
    test->memory = SINK_MEMORY_INIT;
    strcpy(test->folder, "/tmp/whyslow-look-XXXXXX");
    assert_non_null(mkdtemp(test->folder));
    return files_look_open(&test->look);
}

static int look_end(void **state)
{
    struct look_test *test = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", test->folder);
    assert_int_equal(system(command), 0);
    json_decref(test->document);
    files_look_close(test->look);
    sink_memory_deinit(&test->memory);
    free(test);
    return 0;
}

static const char *path_of(const struct look_test *test, const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", test->folder, name);
    return path;
}

static void file_make(const struct look_test *test, const char *name, size_t bytes)
{
    int fd = open(path_of(test, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    char *text = malloc(bytes + 1);
    memset(text, 'x', bytes);
    assert_int_equal(write(fd, text, bytes), bytes);
    assert_int_equal(fsync(fd), 0);
    free(text);
    close(fd);
}

static void named(struct look_test *test, uint32_t object, const char *path)
{
    assert_int_equal(files_look_named(test->look, object, getpid(), 0, str_from(path)), 0);
}

/* Looks for so long, and keeps the document, which must be JSON. */
static void finish_within(struct look_test *test, uint64_t ns_max)
{
    assert_int_equal(files_look_finish(test->look, ns_max, &test->memory.sink), 0);
    assert_int_equal(test->memory.documents.len, 1);
    assert_string_equal(test->memory.documents.data[0].name, "files");
    struct str text = test->memory.documents.data[0].json;
    json_error_t error;
    test->document = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &error);
    if (!test->document)
        fail_msg("%s in %.*s", error.text, (int)text.len, text.data);
    assert_int_equal(json_integer_value(json_object_get(test->document, "schema")), 1);
}

/* As long as it takes: this is no test of the machine's speed. */
static void finish(struct look_test *test)
{
    finish_within(test, 1000 * NS_PER_SEC);
}

static json_t *file_at(struct look_test *test, uint32_t object)
{
    json_t *files = json_object_get(test->document, "files"), *file;
    size_t i;
    json_array_foreach(files, i, file)
    {
        if (json_integer_value(json_object_get(file, "object")) == object)
            return file;
    }
    fail_msg("no file %u", object);
    return NULL;
}

static uint64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        fail_msg("'%s' is no number in %s", key, json_dumps(object, 0));
    return (uint64_t)json_integer_value(value);
}

/* "" when it is known. */
static const char *na(const json_t *object, const char *key)
{
    const json_t *reason = json_object_get(json_object_get(object, "na"), key);
    bool there = json_object_get(object, key) != NULL;
    if (there == (reason != NULL))
        fail_msg("'%s' must be known, or have a reason: %s", key, json_dumps(object, 0));
    return reason ? json_string_value(reason) : "";
}

static void a_file_is_told_with_all_it_stands_on(void **state)
{
    struct look_test *test = *state;
    struct statvfs space;
    file_make(test, "a", 64 << 10);
    file_make(test, "b", 1);
    file_make(test, "c", 0);
    named(test, 7, path_of(test, "a"));
    named(test, 8, path_of(test, "c"));
    finish(test);
    const json_t *file = file_at(test, 7);
    assert_string_equal(json_string_value(json_object_get(file, "path")), path_of(test, "a"));
    assert_int_equal(number(file, "size_bytes"), 64 << 10);
    assert_true(number(file, "allocated_bytes") >= 4096);
    assert_int_equal(number(file, "folder_entries"), 3);
    assert_false(json_is_true(json_object_get(file, "folder_entries_more")));
    assert_true(json_string_length(json_object_get(file, "filesystem")) > 0);
    assert_true(str_starts(str_from(path_of(test, "a")),
                           json_string_value(json_object_get(file, "mount"))));
    assert_false(json_is_true(json_object_get(file, "network")));
    assert_int_equal(statvfs(test->folder, &space), 0);
    double free_pct = (double)space.f_bavail * 100 / (double)space.f_blocks;
    double told_pct = json_number_value(json_object_get(file, "free_pct"));
    /* Others write meanwhile. */
    assert_true(told_pct > free_pct - 5 && told_pct < free_pct + 5);
    assert_int_equal(number(file_at(test, 8), "size_bytes"), 0);
    if (na(file, "extents")[0])
        print_message("extents are n/a here: %s\n", na(file, "extents"));
    else
        assert_true(number(file, "extents") >= 1 && number(file, "fragments") >= 1);
}

static void pieces_of_a_file_are_counted(void **state)
{
    struct look_test *test = *state;
    enum { PIECES = 50, BYTES = 64 << 10 };
    char text[4096];
    memset(text, 'x', sizeof(text));
    int fd = open(path_of(test, "holes"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    for (int i = 0; i < PIECES; i++)
        assert_int_equal(pwrite(fd, text, sizeof(text), (off_t)i * BYTES), sizeof(text));
    assert_int_equal(fsync(fd), 0);
    close(fd);
    named(test, 1, path_of(test, "holes"));
    finish(test);
    const json_t *file = file_at(test, 1);
    if (na(file, "extents")[0]) {
        print_message("# extents are n/a here: %s\n", na(file, "extents"));
        skip("this file system tells no extents");
    }
    /* A hole between two pieces: they are extents of their own, wherever they lie. */
    assert_int_equal(number(file, "extents"), PIECES);
    assert_true(number(file, "fragments") >= 1 && number(file, "fragments") <= PIECES);
    assert_false(json_is_true(json_object_get(file, "extents_more")));
}

static void extent_put(struct fiemap *fiemap, uint64_t physical, uint64_t bytes, uint32_t flags)
{
    struct fiemap_extent *extent = &fiemap->fm_extents[fiemap->fm_mapped_extents++];
    *extent = (struct fiemap_extent){
        .fe_physical = physical,
        .fe_length = bytes,
        .fe_flags = flags,
    };
}

static void extents_that_touch_are_one_fragment(void **state)
{
    (void)state;
    struct fiemap *fiemap = calloc(1, fiemap_bytes());
    struct file_facts facts = {0};
    extent_put(fiemap, 1 << 20, 4096, 0);
    extent_put(fiemap, (1 << 20) + 4096, 8192, FIEMAP_EXTENT_SHARED);
    extent_put(fiemap, 1 << 30, 4096, FIEMAP_EXTENT_SHARED);
    extent_put(fiemap, 0, 4096, FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNKNOWN);
    extent_put(fiemap, 1 << 10, 4096, FIEMAP_EXTENT_LAST);
    extents_count(fiemap, &facts);
    assert_int_equal(facts.extents, 4);
    assert_int_equal(facts.fragments, 3);
    assert_int_equal(facts.shared_extents, 2);
    assert_false(facts.extents_more);
    assert_string_equal(facts.na[FACT_EXTENTS], "");

    fiemap->fm_mapped_extents = 0;
    extent_put(fiemap, 0, 4096, FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNKNOWN);
    extents_count(fiemap, &facts);
    assert_string_equal(facts.na[FACT_EXTENTS], "it is not on the device yet");

    facts = (struct file_facts){0};
    fiemap->fm_mapped_extents = 0;
    for (uint64_t i = 0; i < FILES_LOOK_EXTENTS_MAX; i++)
        extent_put(fiemap, i * 8192, 4096, 0);
    extents_count(fiemap, &facts);
    assert_int_equal(facts.extents, FILES_LOOK_EXTENTS_MAX);
    assert_int_equal(facts.fragments, FILES_LOOK_EXTENTS_MAX);
    assert_true(facts.extents_more);
    free(fiemap);
}

static void a_look_leaves_no_trace(void **state)
{
    struct look_test *test = *state;
    /* Older than a day: at the next read even "relatime" would move it. */
    struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    struct stat file, folder;
    char path[256];
    file_make(test, "a", 100);
    snprintf(path, sizeof(path), "%s", path_of(test, "a"));
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, test->folder, old, 0), 0);
    named(test, 1, path);
    finish(test);
    assert_int_equal(number(file_at(test, 1), "folder_entries"), 1);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(stat(test->folder, &folder), 0);
    assert_int_equal(file.st_atim.tv_sec, 1000000000);
    assert_int_equal(folder.st_atim.tv_sec, 1000000000);
}

static void what_is_no_file_is_not_opened(void **state)
{
    struct look_test *test = *state;
    char target[256];
    file_make(test, "a", 100);
    snprintf(target, sizeof(target), "%s", path_of(test, "a"));
    assert_int_equal(mkfifo(path_of(test, "fifo"), 0644), 0);
    assert_int_equal(mkdir(path_of(test, "folder"), 0755), 0);
    assert_int_equal(symlink(target, path_of(test, "link")), 0);
    assert_int_equal(symlink(test->folder, path_of(test, "way")), 0);
    named(test, 1, path_of(test, "fifo"));
    named(test, 2, path_of(test, "folder"));
    named(test, 3, path_of(test, "link"));
    named(test, 4, path_of(test, "way/a"));
    named(test, 5, "/dev/null");
    named(test, 6, path_of(test, "nowhere"));
    named(test, 7, "/proc/self/stat");
    alarm(300); /* whoever opens a FIFO waits for ever */
    finish(test);
    alarm(0);
    static const char *const reasons[] = {
        "no regular file stands there now", "no regular file stands there now",
        "no regular file stands there now", "a link stands in its way now",
        "no regular file stands there now", "it is not there any more",
        "the kernel makes this file up",
    };
    for (uint32_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        assert_string_equal(na(file_at(test, i + 1), "size_bytes"), reasons[i]);
        assert_string_equal(na(file_at(test, i + 1), "extents"), reasons[i]);
        assert_string_equal(na(file_at(test, i + 1), "folder_entries"), reasons[i]);
    }
}

static void another_file_in_its_place_is_noticed(void **state)
{
    struct look_test *test = *state;
    struct stat status;
    file_make(test, "a", 100);
    assert_int_equal(stat(path_of(test, "a"), &status), 0);
    struct str path = str_from(path_of(test, "a"));
    /* Above the number stands the inode's generation. */
    uint64_t same = (uint32_t)status.st_ino | 0x1234ull << 32;
    assert_int_equal(files_look_named(test->look, 1, 0, same, path), 0);
    assert_int_equal(files_look_named(test->look, 2, 0, status.st_ino + 1, path), 0);
    finish(test);
    assert_int_equal(number(file_at(test, 1), "size_bytes"), 100);
    assert_string_equal(na(file_at(test, 2), "size_bytes"), "another file stands there now");
}

static void names_are_hostile_text(void **state)
{
    struct look_test *test = *state;
    static const char name[] = "a\n\"\\\xff\x1b[31m<script>";
    file_make(test, name, 5);
    named(test, 1, path_of(test, name));
    finish(test);
    assert_int_equal(number(file_at(test, 1), "size_bytes"), 5);
    assert_true(json_string_length(json_object_get(file_at(test, 1), "path")) > 0);
}

static void a_file_in_memory_says_so(void **state)
{
    struct look_test *test = *state;
    char path[64];
    snprintf(path, sizeof(path), "/dev/shm/whyslow-look-%d", getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        skip("no tmpfs is mounted at /dev/shm");
    named(test, 1, path);
    finish(test);
    close(fd);
    unlink(path);
    const json_t *file = file_at(test, 1);
    if (strcmp(json_string_value(json_object_get(file, "filesystem")), "tmpfs") != 0)
        skip("no tmpfs is mounted at /dev/shm");
    assert_true(json_is_true(json_object_get(file, "memory")));
    assert_string_equal(na(file, "extents"), "tmpfs does not tell where a file lies");
    assert_int_equal(number(file, "size_bytes"), 0);
}

static void the_files_that_matter_most_come_first(void **state)
{
    struct look_test *test = *state;
    enum { FILES = FILES_LOOK_FILES_MAX + 10 };
    for (uint32_t i = 1; i <= FILES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "f%u", i);
        named(test, i, path_of(test, name));
        files_look_used(test->look, i, i * 500ull, 0);
        files_look_used(test->look, i, 0, i * 500ull);
    }
    files_look_used(test->look, FILES + 1, 1ull << 60, 0); /* no name, no file */
    finish(test);
    const json_t *files = json_object_get(test->document, "files");
    assert_int_equal(json_array_size(files), FILES_LOOK_FILES_MAX);
    for (uint32_t i = 0; i < FILES_LOOK_FILES_MAX; i++)
        assert_int_equal(number(json_array_get(files, i), "object"), FILES - i);
}

static void many_tiny_files_of_a_folder_are_told(void **state)
{
    struct look_test *test = *state;
    enum { TINY = 60, LARGE = 5, GONE = 3, ENTRIES = FILES_LOOK_ENTRIES_MAX + 50 };
    uint32_t object = 0;
    char name[32];
    assert_int_equal(mkdir(path_of(test, "many"), 0755), 0);
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(name, sizeof(name), "many/e%d", i);
        int fd = open(path_of(test, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        size_t bytes = i < TINY ? 10 : FILES_LOOK_TINY_BYTES;
        if (i < TINY + LARGE)
            assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
        close(fd);
        if (i < TINY + LARGE)
            named(test, ++object, path_of(test, name));
    }
    for (int i = 0; i < GONE; i++) {
        snprintf(name, sizeof(name), "many/gone%d", i);
        named(test, ++object, path_of(test, name));
    }
    file_make(test, "alone", 1);
    named(test, ++object, path_of(test, "alone"));
    finish(test);
    const json_t *folders = json_object_get(test->document, "folders");
    assert_int_equal(json_array_size(folders), 1);
    const json_t *folder = json_array_get(folders, 0);
    assert_string_equal(json_string_value(json_object_get(folder, "path")), path_of(test, "many"));
    assert_int_equal(number(folder, "used"), TINY + LARGE + GONE);
    assert_string_equal(na(folder, "tiny"), "");
    assert_int_equal(number(folder, "tiny"), TINY);
    assert_int_equal(number(folder, "gone"), GONE);
    assert_int_equal(number(folder, "entries"), FILES_LOOK_ENTRIES_MAX);
    assert_true(json_is_true(json_object_get(folder, "entries_more")));
    assert_int_equal(number(file_at(test, 1), "folder_entries"), FILES_LOOK_ENTRIES_MAX);
    assert_true(json_is_true(json_object_get(file_at(test, 1), "folder_entries_more")));
}

static void what_there_is_no_time_for_says_so(void **state)
{
    struct look_test *test = *state;
    for (uint32_t i = 1; i <= FILES_LOOK_FOLDER_MIN; i++) {
        char name[32];
        snprintf(name, sizeof(name), "f%u", i);
        file_make(test, name, 1);
        named(test, i, path_of(test, name));
    }
    finish_within(test, 0);
    const json_t *folder = json_array_get(json_object_get(test->document, "folders"), 0);
    assert_string_equal(na(file_at(test, 1), "size_bytes"), "there was no time left to look");
    assert_string_equal(na(folder, "tiny"), "there was no time left to look at all of them");
    assert_string_equal(na(folder, "entries"), "there was no time left to look");
}

static void there_is_a_bound_and_what_is_beyond_is_counted(void **state)
{
    struct look_test *test = *state;
    for (uint32_t i = 1; i <= FILES_LOOK_SEEN_MAX + 5; i++)
        assert_int_equal(files_look_named(test->look, i, 0, 0, STR("/nowhere/x")), 0);
    finish(test);
    assert_int_equal(number(test->document, "left_out"), 5);
}

static void what_is_no_path_is_passed_over(void **state)
{
    struct look_test *test = *state;
    named(test, 1, "inode 5 of device 8:1");
    named(test, 2, "\xe2\x80\xa6/cut/off");
    named(test, 0, "/etc/passwd");
    assert_int_equal(files_look_named(test->look, 3, 0, 0, (struct str){"/a\0b", 4}), 0);
    assert_int_equal(files_look_finish(test->look, NS_PER_SEC, &test->memory.sink), 0);
    assert_int_equal(test->memory.documents.len, 0);
}

/* In a mount namespace of its own, with a file that only it can see. */
static int other_eyes(const char *folder, int ready)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/m/inside", folder);
    char *slash = strrchr(path, '/');
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 77;
    *slash = '\0';
    if (mount("whyslow", path, "tmpfs", 0, NULL) < 0)
        return 77;
    *slash = '/';
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, "12345", 5) != 5 || write(ready, "x", 1) != 1)
        return 1;
    pause();
    return 0;
}

static void a_process_s_own_mounts_are_looked_at(void **state)
{
    struct look_test *test = *state;
    int pipes[2];
    char byte;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(mkdir(path_of(test, "m"), 0755), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(other_eyes(test->folder, pipes[1]));
    close(pipes[1]);
    bool ready = read(pipes[0], &byte, 1) == 1;
    close(pipes[0]);
    if (ready) {
        struct str path = str_from(path_of(test, "m/inside"));
        assert_int_equal(files_look_named(test->look, 1, child, 0, path), 0);
        assert_int_equal(files_look_named(test->look, 2, getpid(), 0, path), 0);
        finish(test);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (!ready)
        skip("no mount namespace to be had here");
    const json_t *inside = file_at(test, 1);
    assert_string_equal(json_string_value(json_object_get(inside, "filesystem")), "tmpfs");
    assert_string_equal(json_string_value(json_object_get(inside, "mount")), path_of(test, "m"));
    assert_int_equal(number(inside, "size_bytes"), 5);
    assert_string_equal(na(file_at(test, 2), "size_bytes"), "it is not there any more");
}

static void a_dead_process_s_files_are_looked_at_from_here(void **state)
{
    struct look_test *test = *state;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    file_make(test, "a", 3);
    assert_int_equal(files_look_named(test->look, 1, child, 0, str_from(path_of(test, "a"))), 0);
    finish(test);
    assert_int_equal(number(file_at(test, 1), "size_bytes"), 3);
}

static void mounts_that_may_not_answer_are_not_asked(void **state)
{
    (void)state;
    static const char text[] = "21 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
                               "22 21 0:30 / /net/home\\040x rw - nfs4 server:/home rw\n"
                               "23 21 0:31 / /data rw - btrfs /dev/vdb rw\n"
                               "24 23 0:32 / /data/big rw - xfs /dev/vdc rw\n"
                               "25 23 0:33 / /data/big rw shared:5 - fuse.sshfs me@there rw\n"
                               "26 21 0:34 / /odd rw - fuse.something odd rw\n"
                               "garbage\n"
                               "27 21 0:35 / /auto rw - autofs systemd rw\n";
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct view view = {.root_fd = -1};
    assert_int_equal(view_mounts_read(&arena, &view, STR(text)), 0);
    static const struct {
        const char *path, *type;
        uint32_t flags;
    } rows[] = {
        {"/net/home x/a", "nfs4", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"/net/home xy/a", "ext4", 0},
        {"/data/a", "btrfs", FILESYSTEM_COW},
        {"/data/bigger", "btrfs", FILESYSTEM_COW},
        {"/data/big/a", "fuse.sshfs", FILESYSTEM_NETWORK | FILESYSTEM_SILENT},
        {"/odd/a", "fuse.something", FILESYSTEM_SILENT},
        {"/auto/a", "autofs", FILESYSTEM_SILENT},
        {"/a", "ext4", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct view_mount *mount = view_mount_of(&view, rows[i].path);
        assert_non_null(mount);
        assert_true(str_is(mount->type, rows[i].type));
        assert_int_equal(mount->flags, rows[i].flags);
        assert_int_equal(look_forbidden(mount) != NULL, (rows[i].flags & FILESYSTEM_SILENT) != 0);
    }
    struct looked_file file = {.path = "/net/home x/a"};
    struct file_facts facts;
    file_look(&view, &file, NULL, NULL, &facts); /* no root to look in: it must not even try */
    assert_string_equal(facts.na[FACT_FILESYSTEM], "");
    assert_string_equal(facts.na[FACT_SIZE],
                        "a network file system: it is not asked, since it may not answer");
    VEC_FREE(&view.mounts);
}

static void a_sink_that_fails_is_heard(void **state)
{
    struct look_test *test = *state;
    named(test, 1, "/etc/passwd");
    test->memory.error = -ENOSPC;
    assert_int_equal(files_look_finish(test->look, NS_PER_SEC, &test->memory.sink), -ENOSPC);
}

#define LOOK(test) cmocka_unit_test_setup_teardown(test, look_start, look_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOK(a_file_is_told_with_all_it_stands_on),
        LOOK(pieces_of_a_file_are_counted),
        cmocka_unit_test(extents_that_touch_are_one_fragment),
        LOOK(a_look_leaves_no_trace),
        LOOK(what_is_no_file_is_not_opened),
        LOOK(another_file_in_its_place_is_noticed),
        LOOK(names_are_hostile_text),
        LOOK(a_file_in_memory_says_so),
        LOOK(the_files_that_matter_most_come_first),
        LOOK(many_tiny_files_of_a_folder_are_told),
        LOOK(what_there_is_no_time_for_says_so),
        LOOK(there_is_a_bound_and_what_is_beyond_is_counted),
        LOOK(what_is_no_path_is_passed_over),
        LOOK(a_process_s_own_mounts_are_looked_at),
        LOOK(a_dead_process_s_files_are_looked_at_from_here),
        cmocka_unit_test(mounts_that_may_not_answer_are_not_asked),
        LOOK(a_sink_that_fails_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
