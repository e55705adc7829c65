/* Promises of collect/objects*.c: whatever targets call their things, and however many they have,
 * we stay within our bounds; and what cannot be known is said so. */
#include "objects_ways.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static void one_is_told_once_and_a_full_ring_only_delays(void **state)
{
    struct ways *ways = *state;
    if (!ways->unit)
        skip("no BPF here");
    unit_end(ways);
    unit_start(ways, RING_SMALL, NULL);
    struct object_id id;
    int fds[64];
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = eventfd(0, 0);
        assert_true(kernel_ask(ways, fds[i], &id));
        assert_true(kernel_ask(ways, fds[i], &id)); /* again */
    }
    size_t told = ring_take(ways);
    assert_in_range(told, 1, ARRAY_SIZE(fds) - 1); /* no more fit */
    uint64_t full;
    assert_int_equal(bpf_counts_read(bpf_unit_map_fd(ways->unit, "full"), &full, 1), 0);
    assert_int_equal(full, 2 * (ARRAY_SIZE(fds) - told));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        assert_true(kernel_ask(ways, fds[i], &id));
        told += ring_take(ways);
        close(fds[i]);
    }
    assert_int_equal(told, ARRAY_SIZE(fds));
}

static void a_child_is_called_by_its_pid(void **state)
{
    struct ways *ways = *state;
    uint32_t any, one, again;
    assert_int_equal(objects_of_child(ways->proc, 0, 0, &any), 0);
    assert_int_equal(objects_of_child(ways->proc, 0, 1234, &one), 0);
    assert_int_equal(objects_of_child(ways->proc, 0, 1234, &again), 0);
    assert_int_equal(one, again);
    info_is("pid", info_of(&ways->proc_sink, any), OBJECT_PROCESS, 0, "any child");
    info_is("pid", info_of(&ways->proc_sink, one), OBJECT_PROCESS, 0, "pid 1234");
    assert_int_equal(info_of(&ways->proc_sink, one)->key, 1234);
}

static void one_that_nobody_told_of_is_called_by_kind_and_number(void **state)
{
    static const struct {
        struct object_id id;
        const char *name;
    } rows[] = {
        {{.ino = 7, .dev = 8 << 20 | 1, .kind = OBJECT_ID_FILE}, "inode 7 of device 8:1"},
        {{.ino = 7 | 3ull << 32, .dev = 8 << 20 | 1, .kind = OBJECT_ID_FILE},
         "inode 7 of device 8:1"},
        {{.ino = 7, .dev = 8 << 20 | 2, .kind = OBJECT_ID_DIRECTORY}, "inode 7 of device 8:2"},
        {{.ino = 7, .dev = 14, .kind = OBJECT_ID_PIPE}, "pipe:[7]"},
        {{.ino = 7, .kind = OBJECT_ID_SOCKET}, "socket:[7]"},
        {{.ino = 7, .kind = OBJECT_ID_EVENT}, "[eventfd]"},
        {{.ino = 7, .kind = OBJECT_ID_TIMER}, "[timerfd]"},
        {{.ino = 7, .kind = OBJECT_ID_POLL_SET}, "[eventpoll]"},
        {{.ino = 7, .kind = OBJECT_ID_PROCESS}, "pid 7"},
        {{.ino = 7, .kind = OBJECT_ID_OTHER}, "[unknown]"},
        {{.ino = 7, .kind = OBJECT_ID_KERNEL_LOCK}, "kernel lock at 0x7"},
    };
    struct ways *ways = *state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint32_t object;
        assert_int_equal(objects_find(ways->kernel, &rows[i].id, &object), 0);
        assert_int_equal(object, i + 1); /* each is another one */
        info_is("id", info_of(&ways->kernel_sink, object), (enum object_kind)rows[i].id.kind, 0,
                rows[i].name);
    }
}

static void a_pipe_that_whyslow_reads_says_so(void **state)
{
    static const char *const expected[] = {"pipe:[%llu] to whyslow", "pipe:[%llu]"};
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) { /* then only the end that writes is left */
        struct sink_memory sink = SINK_MEMORY_INIT;
        struct objects *objects;
        struct stat info;
        char name[64];
        uint32_t told, asked;
        assert_int_equal(fstat(ends[1], &info), 0);
        snprintf(name, sizeof(name), expected[i], (unsigned long long)info.st_ino);
        struct object_id id = {.ino = info.st_ino, .dev = 14, .kind = OBJECT_ID_PIPE};
        assert_int_equal(objects_open(&sink.sink, &objects), 0);
        assert_int_equal(objects_find(objects, &id, &told), 0);
        info_is("by its id", info_of(&sink, told), OBJECT_PIPE, 0, name);
        assert_int_equal(objects_of_fd(objects, getpid(), ends[1], &asked), 0);
        info_is("from /proc", info_of(&sink, asked), OBJECT_PIPE, 0, name);
        objects_close(objects);
        sink_memory_deinit(&sink);
        if (i == 0)
            close(ends[0]);
    }
    close(ends[1]);
}

static void roles_are_joined_and_the_socket_stays_one(void **state)
{
    struct ways *ways = *state;
    struct object_id id = {.ino = 7, .kind = OBJECT_ID_SOCKET};
    uint32_t first, second;
    assert_int_equal(objects_find(ways->kernel, &id, &first), 0);
    id.flags = OBJECT_ID_CLIENT;
    assert_int_equal(objects_find(ways->kernel, &id, &second), 0);
    assert_int_equal(first, second);
    assert_int_equal(info_of(&ways->kernel_sink, first)->flags, OBJECT_CLIENT);
}

static void beyond_the_bound_they_share_one(void **state)
{
    struct ways *ways = *state;
    uint32_t object = 0;
    for (uint64_t i = 0; i < OBJECTS_MAX + 1000; i++) {
        struct object_id id = {.ino = i, .kind = i % 2 ? OBJECT_ID_PIPE : OBJECT_ID_SOCKET};
        assert_int_equal(objects_find(ways->kernel, &id, &object), 0);
    }
    assert_int_equal(ways->kernel_sink.book.objects.len, OBJECTS_MAX + 2);
    assert_int_equal(objects_counts(ways->kernel).beyond, 1000);
    assert_true(str_contains(info_of(&ways->kernel_sink, object)->name, "more than"));
    struct object_id known = {.ino = 5, .kind = OBJECT_ID_PIPE};
    assert_int_equal(objects_find(ways->kernel, &known, &object), 0);
    info_is("id", info_of(&ways->kernel_sink, object), OBJECT_PIPE, 0, "pipe:[5]");
}

/* Whatever the bytes are: no crash, no endless name, and what is no record is counted. */
static void records_of_any_bytes_are_survived(void **state)
{
    struct ways *ways = *state;
    uint64_t seed = 88172645463325252ull;
    for (int i = 0; i < 20000; i++) {
        struct object_record record;
        uint8_t *bytes = (uint8_t *)&record;
        for (size_t k = 0; k < sizeof(record); k += 8) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            memcpy(bytes + k, &seed, 8);
        }
        record.type = OBJECT_RECORD_TYPE;
        record.id.kind %= OBJECT_ID_OTHER + 2;
        record.id.ino %= 64;
        record.text_kind %= 5;
        record.family %= 12;
        char name[OBJECT_NAME_BYTES];
        assert_in_range(object_name(&record, name, sizeof(name)).len, 1, sizeof(name));
        assert_in_range(object_name(&record, name, 3).len, 1, 3);
        assert_int_equal(objects_take(ways->kernel, &record, sizeof(record)), 0);
    }
    uint64_t refused = objects_counts(ways->kernel).refused;
    struct object_record record = {.type = 1, .id = {.kind = OBJECT_ID_FILE}};
    assert_int_equal(objects_take(ways->kernel, &record, sizeof(record)), 0);
    record.type = OBJECT_RECORD_TYPE;
    assert_int_equal(objects_take(ways->kernel, &record, sizeof(record) + 1), 0);
    assert_int_equal(objects_take(ways->kernel, &record, offsetof(struct object_record, text) - 1),
                     0);
    record.text_bytes = 10; /* of which nine are there */
    assert_int_equal(objects_take(ways->kernel, &record, offsetof(struct object_record, text) + 9),
                     0);
    assert_int_equal(objects_take(ways->kernel, &record, 0), 0);
    assert_int_equal(objects_counts(ways->kernel).refused, refused + 5);
}

/* More than the kernel remembers having told: forgotten ones are told again, nothing grows. */
static void a_hundred_thousand_opens_stay_within_bounds(void **state)
{
    enum { OPENS = 100000, ROUND = 256 };
    struct ways *ways = *state;
    if (!ways->unit)
        skip("no BPF here");
    struct object_id id;
    size_t told = 0;
    int first = memfd_create("first", MFD_CLOEXEC);
    assert_true(kernel_ask(ways, first, &id));
    assert_int_equal(ring_take(ways), 1);
    for (int i = 0; i < OPENS; i++) {
        int fd = memfd_create("many", MFD_CLOEXEC);
        assert_true(kernel_ask(ways, fd, &id));
        close(fd);
        if (i % ROUND == ROUND - 1)
            told += ring_take(ways);
    }
    told += ring_take(ways);
    assert_int_equal(told, OPENS);
    assert_int_equal(ways->kernel_sink.book.objects.len, OPENS + 1);
    assert_int_equal(objects_counts(ways->kernel).beyond, 0);
    assert_true(kernel_ask(ways, first, &id));
    assert_int_equal(ring_take(ways), 1);
    assert_int_equal(ways->kernel_sink.book.objects.len, OPENS + 1);
    close(first);
}

struct other_space { /* what a child has opened in a network of its own */
    int listener, client, server, unix_listener, unix_client, unix_server;
    uint16_t port;
};

/* Answers on the pipe, then waits for it to be closed. */
static void other_space_child(int out, int in, const char *path)
{
    struct other_space open = {0};
    struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char byte;
    if (unshare(CLONE_NEWNET) < 0)
        _exit(77);
    int control = socket(AF_INET, SOCK_DGRAM, 0);
    if (ioctl(control, SIOCSIFFLAGS, &up) < 0)
        _exit(77);
    tcp_open(AF_INET, &open.listener, &open.client, &open.server, &open.port);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    open.unix_listener = socket(AF_UNIX, SOCK_STREAM, 0);
    open.unix_client = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(open.unix_listener, (void *)&address, sizeof(address)) < 0 ||
        listen(open.unix_listener, 1) < 0 ||
        connect(open.unix_client, (void *)&address, sizeof(address)) < 0)
        _exit(1);
    open.unix_server = accept(open.unix_listener, NULL, NULL);
    bool told = write(out, &open, sizeof(open)) == sizeof(open);
    _exit(told && read(in, &byte, 1) == 0 ? 0 : 1);
}

static void child_fd_is(struct ways *ways, int pid, int fd, uint32_t flags, const char *name)
{
    uint32_t object = 0;
    for (int i = 0; i < 60000; i++) { /* as in fd_is() */
        assert_int_equal(objects_of_fd(ways->proc, pid, fd, &object), 0);
        if (!name || str_is(info_of(&ways->proc_sink, object)->name, name))
            break;
        usleep(10000);
    }
    if (name)
        info_is("/proc", info_of(&ways->proc_sink, object), OBJECT_SOCKET, flags, name);
    else
        assert_true(str_starts(info_of(&ways->proc_sink, object)->name, "socket:["));
}

static void sockets_of_another_network_are_found_there(void **state)
{
    struct ways *ways = *state;
    struct other_space open;
    int out[2], in[2], status = -1;
    char path[100], tcp[64], name[256];
    snprintf(path, sizeof(path), "%s/other.sock", ways->folder);
    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(in), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(in[1]);
        other_space_child(out[1], in[0], path);
    }
    close(out[1]);
    close(in[0]);
    ssize_t n = read(out[0], &open, sizeof(open));
    if (n == sizeof(open)) {
        snprintf(tcp, sizeof(tcp), "127.0.0.1:%u", open.port);
        child_fd_is(ways, pid, open.listener, OBJECT_LISTENING | OBJECT_LOCAL, tcp);
        child_fd_is(ways, pid, open.client, OBJECT_CLIENT | OBJECT_LOCAL, tcp);
        snprintf(name, sizeof(name), "client of %s", tcp);
        child_fd_is(ways, pid, open.server, OBJECT_SERVER | OBJECT_LOCAL, name);
        snprintf(name, sizeof(name), "unix:%s", path);
        child_fd_is(ways, pid, open.unix_listener, OBJECT_LISTENING | OBJECT_LOCAL, name);
        snprintf(name, sizeof(name), "client of unix:%s", path);
        child_fd_is(ways, pid, open.unix_server, OBJECT_SERVER | OBJECT_LOCAL, name);
        child_fd_is(ways, pid, open.unix_client, OBJECT_LOCAL, NULL); /* its peer is not known */
    }
    close(out[0]);
    close(in[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (n != sizeof(open) && WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip("no mount namespace to be had here");
    assert_int_equal(status, 0);
}

/* In a child that has given up its privileges. */
static void anothers_fds_are_refused_with_a_reason(void **state)
{
    struct ways *ways = *state;
    int status = -1;
    if (geteuid() != 0)
        skip("needs root");
    pid_t pid = fork();
    if (pid == 0) {
        uint32_t object = 77;
        if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
            _exit(2);
        int r = objects_of_fd(ways->proc, getppid(), 0, &object);
        _exit((r == -EACCES || r == -EPERM) && object == 77 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define BOTH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        BOTH(one_is_told_once_and_a_full_ring_only_delays),
        BOTH(a_child_is_called_by_its_pid),
        BOTH(one_that_nobody_told_of_is_called_by_kind_and_number),
        BOTH(a_pipe_that_whyslow_reads_says_so),
        BOTH(roles_are_joined_and_the_socket_stays_one),
        BOTH(beyond_the_bound_they_share_one),
        BOTH(records_of_any_bytes_are_survived),
        BOTH(a_hundred_thousand_opens_stay_within_bounds),
        BOTH(sockets_of_another_network_are_found_there),
        BOTH(anothers_fds_are_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
