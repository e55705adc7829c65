/* Promises of target/spawn.h and target/program.h. */
#include "unit.h"

#include "base/clock.h"
#include "base/str.h"
#include "target/interrupt.h"
#include "target/program.h"
#include "target/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(struct spawn_opts opts, char *const *argv, struct spawn_result *ret, struct why *why)
{
    char path[PATH_MAX];
    int r = program_find(argv[0], path, why);
    if (r < 0)
        return r;
    opts.argv = argv;
    opts.path = path;
    return spawn_run(&opts, ret, why);
}

/* A link that is judged may be another one when it is followed again. */
static void a_program_of_ours_is_named_without_links(void **state)
{
    (void)state;
    char folder[] = "/tmp/whyslow-own-XXXXXX", link[64], path[PATH_MAX], real[PATH_MAX];
    char *before = strdup(getenv("PATH"));
    assert_non_null(mkdtemp(folder));
    snprintf(link, sizeof(link), "%s/tool", folder);
    assert_int_equal(symlink("/bin/sh", link), 0);
    setenv("PATH", folder, 1);
    assert_int_equal(program_find_own("tool", path, NULL), 0);
    assert_string_equal(path, realpath("/bin/sh", real));
    assert_int_equal(program_find("tool", path, NULL), 0);
    assert_string_equal(path, link);
    assert_int_equal(unlink(link) | symlink("nowhere", link), 0);
    assert_int_equal(program_find_own("tool", path, NULL), -ENOENT);
    setenv("PATH", before, 1);
    free(before);
    assert_int_equal(unlink(link) | rmdir(folder), 0);
}

enum { PATIENCE_ROUNDS = 60000 }; /* of 10 ms: for what hangs */

/* Literals are const under -Wwrite-strings; an argv is not, for no good reason. */
#define ARGV(...) ((char *const *)(const char *const[]){__VA_ARGS__, NULL})
#define CAPTURED                                                                                   \
    ((struct spawn_opts){                                                                          \
        .output = SPAWN_CAPTURE, .error = SPAWN_CAPTURE, .timeout_ns = 600 * NS_PER_SEC})

static void tail_is(const struct spawn_captured *got, const char *expected)
{
    assert_int_equal(got->tail_len, strlen(expected));
    assert_memory_equal(got->tail, expected, got->tail_len);
}

static void exit_status_and_death_by_signal_are_told_apart(void **state)
{
    (void)state;
    struct spawn_result result = {0};
    assert_int_equal(run(CAPTURED, ARGV("sh", "-c", "exit 3"), &result, NULL), 0);
    assert_true(WIFEXITED(result.status) && WEXITSTATUS(result.status) == 3);
    assert_int_equal(run(CAPTURED, ARGV("sh", "-c", "kill -SEGV $$"), &result, NULL), 0);
    assert_true(WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGSEGV);
    assert_false(result.timed_out);
}

static void both_streams_are_counted_hashed_and_kept_apart(void **state)
{
    (void)state;
    struct spawn_result result = {0};
    assert_int_equal(run(CAPTURED, ARGV("sh", "-c", "printf abc; printf error >&2"), &result, NULL),
                     0);
    tail_is(&result.output, "abc");
    tail_is(&result.error, "error");
    assert_string_equal(result.output.sha256,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_false(result.output.still_open);
}

static void large_output_is_counted_but_not_kept(void **state)
{
    (void)state;
    struct spawn_result result = {0};
    assert_int_equal(
        run(CAPTURED, ARGV("sh", "-c", "head -c 20000000 /dev/zero; printf end"), &result, NULL),
        0);
    assert_int_equal(result.output.bytes, 20000003);
    assert_int_equal(result.output.tail_len, SPAWN_TAIL_BYTES);
    assert_memory_equal(result.output.tail + SPAWN_TAIL_BYTES - 3, "end", 3);
}

static void a_timeout_ends_the_target_and_its_children(void **state)
{
    (void)state;
    struct spawn_opts opts = CAPTURED;
    opts.timeout_ns = 2 * NS_PER_SEC; /* until then it mostly has said its child */
    struct spawn_result result = {0};
    uint64_t start_ns = clock_mono_ns();
    assert_int_equal(run(opts, ARGV("sh", "-c", "sleep 7777 & echo $!; wait"), &result, NULL), 0);
    assert_true(result.timed_out);
    assert_time(clock_mono_ns() - start_ns < 6800 * NS_PER_MS);
    char text[16] = "";
    memcpy(text, result.output.tail, result.output.tail_len < 15 ? result.output.tail_len : 15);
    pid_t child = (pid_t)strtol(text, NULL, 10);
    /* One that had not come so far has nothing to leave behind: it is gone itself. */
    assert_true(child > 1 || result.output.bytes == 0);
    assert_time(child > 1);
    if (child <= 1)
        return;
    /* Init has to reap it first. */
    char path[64], stat[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", child);
    for (int i = 0; i < PATIENCE_ROUNDS && kill(child, 0) == 0 && !strstr(stat, ") Z "); i++) {
        clock_sleep_ns(10 * NS_PER_MS);
        FILE *file = fopen(path, "r");
        if (file && !fgets(stat, sizeof(stat), file))
            stat[0] = '\0';
        if (file)
            fclose(file);
    }
    assert_true(kill(child, 0) < 0 || strstr(stat, ") Z "));
}

static void a_target_that_ignores_sigterm_is_killed(void **state)
{
    (void)state;
    struct spawn_opts opts = CAPTURED;
    opts.timeout_ns = 100 * NS_PER_MS;
    struct spawn_result result = {0};
    signal(SIGTERM, SIG_IGN); /* from its first moment, which may be after the timeout */
    int r = run(opts, ARGV("sh", "-c", "while :; do sleep 1; done"), &result, NULL);
    signal(SIGTERM, SIG_DFL);
    assert_int_equal(r, 0);
    assert_true(result.timed_out);
    assert_true(WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGKILL);
}

/* What a child started in the plainest way prints: the target must print the same. */
static void same_as_plain_child(const char *script, bool plain)
{
    FILE *pipe = popen(script, "r");
    assert_non_null(pipe);
    char expected[1024];
    size_t len = fread(expected, 1, sizeof(expected) - 1, pipe);
    expected[len] = '\0';
    pclose(pipe);
    assert_true(len > 0);
    struct spawn_opts opts = CAPTURED;
    opts.plain = plain;
    opts.input = SPAWN_INHERIT;
    struct spawn_result result = {0};
    assert_int_equal(run(opts, ARGV("sh", "-c", script), &result, NULL), 0);
    tail_is(&result.output, expected);
}

/* What a target with such streams writes to our fd 2, which may be closed. */
static size_t stderr_of(bool closed, char *text, size_t size)
{
    int saved = fcntl(2, F_DUPFD_CLOEXEC, 10), file = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(saved >= 0 && file >= 0);
    if (closed)
        close(2);
    else
        dup2(file, 2);
    struct spawn_result result = {0};
    int r = run((struct spawn_opts){.output = SPAWN_STDERR, .error = SPAWN_INHERIT},
                ARGV("sh", "-c", "echo out; echo error >&2; true"), &result, NULL);
    dup2(saved, 2);
    close(saved);
    ssize_t len = pread(file, text, size, 0);
    close(file);
    assert_int_equal(r, 0);
    assert_int_equal(result.status, 0);
    return len > 0 ? (size_t)len : 0;
}

static void stdout_can_go_where_messages_go(void **state)
{
    (void)state;
    char text[64];
    assert_int_equal(stderr_of(false, text, sizeof(text)), 10);
    assert_memory_equal(text, "out\nerror\n", 10);
    assert_int_equal(stderr_of(true, text, sizeof(text)), 0);
}

static void the_target_gets_none_of_our_fds_and_all_it_inherits(void **state)
{
    (void)state;
    int ours = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int given = fcntl(ours, F_DUPFD, 60); /* as if a shell had said 60</dev/null */
    for (int plain = 0; plain < 2; plain++)
        same_as_plain_child("for f in /proc/self/fd/*; do [ -e $f ] && echo $f; done", plain);
    close(given);
    close(ours);
}

static void environment_mask_and_dispositions_are_the_callers(void **state)
{
    (void)state;
    sigset_t mask, old;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_BLOCK, &mask, &old);
    signal(SIGUSR2, SIG_IGN);
    interrupt_watch(NULL);
    for (int plain = 0; plain < 2; plain++)
        /* Signals 32 and 33 are libc's own; its posix_spawn ignores them in a child. */
        same_as_plain_child("grep ^Sig[BIC] /proc/self/status | sed 's/:.0000000[01][08]/:/'",
                            plain);
    interrupt_unwatch();
    signal(SIGUSR2, SIG_DFL);
    sigprocmask(SIG_SETMASK, &old, NULL);

    struct spawn_result result = {0};
    struct sha256 hash;
    char expected[SHA256_TEXT_BYTES];
    sha256_init(&hash);
    for (char **entry = environ; *entry; entry++)
        sha256_add(&hash, *entry, strlen(*entry) + 1);
    sha256_finish(&hash, expected);
    assert_int_equal(run(CAPTURED, ARGV("cat", "/proc/self/environ"), &result, NULL), 0);
    assert_string_equal(result.output.sha256, expected);
}

static const char *known_path(void)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/tests/workloads/known", getenv("BUILD_ROOT"));
    return path;
}

static void peak_is_near_hwm(const struct spawn_result *result)
{
    char text[32] = "";
    memcpy(text, result->output.tail, result->output.tail_len < 31 ? result->output.tail_len : 31);
    double hwm = (double)strtol(text, NULL, 10) * 1024;
    assert_true(hwm > 0);
    assert_true(result->peak_rss_known);
    /* Since 6.2 the kernel counts RSS per CPU, 32 pages or more at a time, and takes the peak
     * at exit from the rough sum, VmHWM from the exact one: 2 CPUs may differ by 256 KiB. */
    double slack = hwm * 0.01 + 256 * 1024;
    if ((double)result->peak_rss_bytes > hwm + slack ||
        (double)result->peak_rss_bytes < hwm - slack)
        print_message("peak %llu, VmHWM %.0f\n", (unsigned long long)result->peak_rss_bytes, hwm);
    assert_true((double)result->peak_rss_bytes <= hwm + slack);
    assert_true((double)result->peak_rss_bytes >= hwm - slack);
}

static void peak_memory_is_the_targets_own(void **state)
{
    (void)state;
    size_t len = 300u << 20;
    char *ours = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(ours != MAP_FAILED);
    memset(ours, 1, len);
    struct spawn_result large = {0}, small = {0};
    const char *known = known_path();
    assert_int_equal(run(CAPTURED, ARGV(known, "alloc-mib=500", "hwm=1"), &large, NULL), 0);
    assert_int_equal(run(CAPTURED, ARGV(known, "hwm=1"), &small, NULL), 0);
    munmap(ours, len);
    peak_is_near_hwm(&large);
    assert_true(large.peak_rss_bytes > 500u << 20);
    peak_is_near_hwm(&small);
    assert_true(small.peak_rss_bytes < 8u << 20);
    assert_true(small.peak_rss_floor_bytes < 1u << 20);
}

static void without_the_helper_a_hidden_peak_is_said_to_be_unknown(void **state)
{
    (void)state;
    size_t len = 100u << 20;
    char *ours = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(ours != MAP_FAILED);
    memset(ours, 1, len);
    struct spawn_opts opts = CAPTURED;
    opts.plain = true;
    struct spawn_result small = {0};
    assert_int_equal(run(opts, ARGV("true"), &small, NULL), 0);
    munmap(ours, len);
    assert_false(small.peak_rss_known);
    assert_true(small.peak_rss_floor_bytes >= len);
}

static void a_held_target_waits_and_a_zombie_can_be_read(void **state)
{
    (void)state;
    struct spawn_opts opts = CAPTURED;
    opts.hold = true;
    opts.argv = ARGV("true");
    opts.path = "/bin/true";
    struct spawn *spawn = NULL;
    assert_int_equal(spawn_start(&opts, &spawn, NULL), 0);
    assert_int_equal(spawn_wait(spawn, clock_mono_ns() + 100 * NS_PER_MS, NULL), 0);
    uint64_t released_ns = clock_mono_ns();
    assert_int_equal(spawn_release(spawn, NULL), 0);
    int r = 0;
    for (int i = 0; i < PATIENCE_ROUNDS && r == 0; i++)
        r = spawn_wait(spawn, clock_mono_ns() + 10 * NS_PER_MS, NULL);
    assert_int_equal(r, 1);
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", spawn_pid(spawn));
    assert_int_equal(access(path, R_OK), 0);
    struct spawn_result result = {0};
    assert_int_equal(spawn_finish(spawn, &result, NULL), 0);
    assert_true(result.wall_ns <= clock_mono_ns() - released_ns); /* the hold does not count */
    assert_int_equal(access(path, R_OK), -1);
    spawn_close(spawn);
}

static void what_cannot_be_started_says_why(void **state)
{
    (void)state;
    struct why why = {0};
    struct spawn_result result = {.status = 77};
    assert_int_equal(run(CAPTURED, ARGV("no-such-command-here"), &result, &why), -ENOENT);
    assert_int_equal(why.kind, WHY_USAGE);
    assert_non_null(strstr(why.what, "not found"));
    assert_true(why.remedy[0] != '\0');
    assert_int_equal(run(CAPTURED, ARGV("/etc/passwd"), &result, &why), -EACCES);
    assert_int_equal(why.kind, WHY_USAGE);
    assert_int_equal(run(CAPTURED, ARGV("/etc"), &result, &why), -EISDIR);

    char path[] = "/tmp/whyslow-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "exit 0\n", 7), 7);
    assert_int_equal(fchmod(fd, 0755), 0);
    close(fd);
    assert_int_equal(run(CAPTURED, ARGV(path), &result, &why), -ENOEXEC);
    assert_non_null(strstr(why.remedy, "#!"));
    unlink(path);
    assert_int_equal(result.status, 77);
}

static void output_of_what_is_left_behind_is_flagged_and_not_waited_for(void **state)
{
    (void)state;
    struct spawn_result result = {0};
    uint64_t start_ns = clock_mono_ns();
    assert_int_equal(run(CAPTURED, ARGV("sh", "-c", "sleep 777 & printf $!"), &result, NULL), 0);
    assert_time(clock_mono_ns() - start_ns < 2 * NS_PER_SEC);
    assert_true(result.output.still_open); /* so it was not waited for */
    char text[16] = "";
    memcpy(text, result.output.tail, result.output.tail_len < 15 ? result.output.tail_len : 15);
    pid_t left = (pid_t)strtol(text, NULL, 10);
    assert_true(left > 1);
    assert_int_equal(kill(left, SIGKILL), 0);
}

/* Whoever sends the signal waits for the target's first word. */
struct word_listener {
    struct spawn_listener listener;
    int fd;
};

static void word_begin(struct spawn_listener *listener)
{
    (void)listener;
}

static void word_take(struct spawn_listener *listener, bool error, const char *data, size_t len)
{
    (void)error;
    assert_true(len > 0);
    assert_int_equal(write(((struct word_listener *)listener)->fd, data, 1), 1);
}

static void an_interrupt_reaches_the_target(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    interrupt_watch(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        char word;
        if (read(fds[0], &word, 1) == 1)
            kill(getppid(), SIGINT);
        _exit(0);
    }
    struct word_listener word = {{.begin = word_begin, .take = word_take}, fds[1]};
    struct spawn_opts opts = CAPTURED;
    opts.listener = &word.listener;
    struct spawn_result result = {0};
    int r = run(opts,
                ARGV("sh", "-c", "trap 'exit 42' INT; echo trapped; while :; do sleep 0.05; done"),
                &result, NULL);
    interrupt_unwatch();
    close(fds[0]);
    close(fds[1]);
    waitpid(pid, NULL, 0);
    assert_int_equal(r, 0);
    assert_int_equal(result.interrupted, SIGINT);
    assert_true(WIFEXITED(result.status) && WEXITSTATUS(result.status) == 42);
}

static void figures_of_a_run_are_those_it_was_told_to_cost(void **state)
{
    (void)state;
    struct spawn_result result = {0};
    char file[64];
    snprintf(file, sizeof(file), "file=/tmp/whyslow-known-%d", (int)getpid());
    assert_int_equal(run(CAPTURED,
                         ARGV(known_path(), "burn-ms=100", "sleep-ms=50", "write-mib=2", file),
                         &result, NULL),
                     0);
    uint64_t cpu_ns = result.user_ns + result.system_ns;
    assert_true(cpu_ns >= 95 * NS_PER_MS);
    assert_time(cpu_ns <= 200 * NS_PER_MS);
    assert_true(result.wall_ns >= 145 * NS_PER_MS);
    assert_int_equal(result.io_error, 0);
    assert_int_equal(result.write_bytes, 2 << 20);
    assert_true(result.switches_voluntary >= 1);
    assert_true(result.faults_minor > 10);
}

static void stdin_is_empty_by_default(void **state)
{
    (void)state;
    struct spawn_result result = {0};
    assert_int_equal(run(CAPTURED, ARGV("wc", "-c"), &result, NULL), 0);
    tail_is(&result.output, "0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_of_ours_is_named_without_links),
        cmocka_unit_test(exit_status_and_death_by_signal_are_told_apart),
        cmocka_unit_test(both_streams_are_counted_hashed_and_kept_apart),
        cmocka_unit_test(large_output_is_counted_but_not_kept),
        cmocka_unit_test(stdout_can_go_where_messages_go),
        cmocka_unit_test(a_timeout_ends_the_target_and_its_children),
        cmocka_unit_test(a_target_that_ignores_sigterm_is_killed),
        cmocka_unit_test(the_target_gets_none_of_our_fds_and_all_it_inherits),
        cmocka_unit_test(environment_mask_and_dispositions_are_the_callers),
        cmocka_unit_test(peak_memory_is_the_targets_own),
        cmocka_unit_test(without_the_helper_a_hidden_peak_is_said_to_be_unknown),
        cmocka_unit_test(a_held_target_waits_and_a_zombie_can_be_read),
        cmocka_unit_test(what_cannot_be_started_says_why),
        cmocka_unit_test(output_of_what_is_left_behind_is_flagged_and_not_waited_for),
        cmocka_unit_test(an_interrupt_reaches_the_target),
        cmocka_unit_test(figures_of_a_run_are_those_it_was_told_to_cost),
        cmocka_unit_test(stdin_is_empty_by_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
