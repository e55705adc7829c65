/* Promises of collect/objects*.c and bpf/objects.h: an fd has one kind, one set of flags and one
 * name, whether a program in the kernel tells or /proc. */
#include "objects_ways.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>

/* Both ways must say the same about an fd of ours. */
static void fd_is(struct ways *ways, int fd, enum object_kind kind, uint32_t flags,
                  const char *name)
{
    uint32_t object = 0;
    assert_true(fd >= 0);
    /* The tables of sockets are read only now and then: the name may come later. */
    for (int i = 0; i < 60000; i++) {
        assert_int_equal(objects_of_fd(ways->proc, getpid(), fd, &object), 0);
        if (str_is(info_of(&ways->proc_sink, object)->name, name))
            break;
        usleep(10000);
    }
    info_is("/proc", info_of(&ways->proc_sink, object), kind, flags, name);
    if (!ways->unit)
        return;
    struct object_id id = {0};
    assert_true(kernel_ask(ways, fd, &id));
    ring_take(ways);
    assert_int_equal(objects_find(ways->kernel, &id, &object), 0);
    info_is("kernel", info_of(&ways->kernel_sink, object), kind, flags, name);
}

static uint64_t inode_of(int fd)
{
    struct stat found;
    assert_int_equal(fstat(fd, &found), 0);
    return found.st_ino;
}

static void numbered(struct ways *ways, int fd, enum object_kind kind, uint32_t flags,
                     const char *format)
{
    char name[64];
    snprintf(name, sizeof(name), format, (unsigned long long)inode_of(fd));
    fd_is(ways, fd, kind, flags, name);
}

static int file_in(const struct ways *ways, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", ways->folder, name);
    return open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
}

static void files_have_their_path(void **state)
{
    struct ways *ways = *state;
    char path[PATH_MAX];
    int fd = file_in(ways, "data", path), folder = open(ways->folder, O_RDONLY | O_DIRECTORY);
    fd_is(ways, fd, OBJECT_FILE, 0, path);
    fd_is(ways, folder, OBJECT_DIRECTORY, 0, ways->folder);
    close(folder);
    close(fd);
    folder = open("/", O_RDONLY | O_DIRECTORY);
    fd_is(ways, folder, OBJECT_DIRECTORY, 0, "/");
    close(folder);
    /* Through a mount. */
    fd = open("/proc/self/status", O_RDONLY);
    snprintf(path, sizeof(path), "/proc/%d/status", getpid());
    fd_is(ways, fd, OBJECT_FILE, 0, path);
    close(fd);
    fd = open("/dev/null", O_RDWR);
    fd_is(ways, fd, OBJECT_CHAR_DEVICE, 0, "/dev/null");
    close(fd);
}

static uint64_t birth_of(int fd)
{
    struct statx found;
    assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &found), 0);
    return found.stx_mask & STATX_BTIME
               ? (uint64_t)found.stx_btime.tv_sec * 1000000000u + found.stx_btime.tv_nsec
               : 0;
}

static void a_deleted_file_keeps_its_path_and_its_successor_is_another(void **state)
{
    struct ways *ways = *state;
    char path[PATH_MAX];
    int fd = file_in(ways, "gone", path);
    uint64_t birth_ns = birth_of(fd), inode = inode_of(fd);
    assert_int_equal(unlink(path), 0);
    fd_is(ways, fd, OBJECT_FILE, 0, path);
    close(fd);
    /* Often the same inode number, but born later: the clock of file systems goes by ticks. */
    while ((fd = file_in(ways, "next", path)) >= 0 && birth_of(fd) == birth_ns && birth_ns != 0) {
        assert_int_equal(unlink(path), 0);
        close(fd);
        usleep(1000);
    }
    if (birth_ns != 0 || inode_of(fd) != inode)
        fd_is(ways, fd, OBJECT_FILE, 0, path);
    close(fd);
    /* A file that is called so. */
    fd = file_in(ways, "kept (deleted)", path);
    fd_is(ways, fd, OBJECT_FILE, 0, path);
    close(fd);
    fd = memfd_create("pages", MFD_CLOEXEC);
    fd_is(ways, fd, OBJECT_FILE, 0, "/memfd:pages");
    close(fd);
}

static void hostile_names_arrive_as_they_are(void **state)
{
    static const char *const names[] = {
        "new\nline", "\x1b[31mred\x1b[0m", "\xff\xfe not UTF-8", "quote\"'`$(true)", " ", "...",
    };
    struct ways *ways = *state;
    char path[PATH_MAX], longest[NAME_MAX + 1] = "";
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        int fd = file_in(ways, names[i], path);
        fd_is(ways, fd, OBJECT_FILE, 0, path);
        close(fd);
    }
    memset(longest, 'x', NAME_MAX);
    int fd = file_in(ways, longest, path);
    fd_is(ways, fd, OBJECT_FILE, 0, path);
    close(fd);
}

/* Deeper than what a record holds: the inner end, marked. */
static void a_path_that_is_too_long_keeps_its_inner_end(void **state)
{
    enum { DEPTH = 60, STEP = 40 };
    struct ways *ways = *state;
    char name[STEP + 1], path[PATH_MAX];
    memset(name, 'd', STEP);
    name[STEP] = '\0';
    int folder = open(ways->folder, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(folder, name, 0700), 0);
        int next = openat(folder, name, O_RDONLY | O_DIRECTORY);
        close(folder);
        folder = next;
    }
    int fd = openat(folder, "leaf", O_CREAT | O_RDWR, 0600);
    uint32_t object;
    snprintf(path, sizeof(path), "/%s/leaf", name);
    assert_int_equal(objects_of_fd(ways->proc, getpid(), fd, &object), 0);
    struct str whole = info_of(&ways->proc_sink, object)->name;
    assert_true(str_ends(whole, path) && str_starts(whole, ways->folder));
    if (ways->unit) {
        struct object_id id;
        assert_true(kernel_ask(ways, fd, &id));
        ring_take(ways);
        assert_int_equal(objects_find(ways->kernel, &id, &object), 0);
        struct str cut = info_of(&ways->kernel_sink, object)->name;
        assert_true(str_starts(cut, "…/d") && str_ends(cut, path));
        assert_in_range(cut.len, 900, OBJECT_TEXT_BYTES + 8);
    }
    close(fd);
    close(folder);
}

static void pipes_have_their_number_or_their_path(void **state)
{
    struct ways *ways = *state;
    int ends[2];
    char path[PATH_MAX];
    size_t before = ways->proc_sink.book.objects.len;
    assert_int_equal(pipe(ends), 0);
    numbered(ways, ends[0], OBJECT_PIPE, 0, "pipe:[%llu]");
    numbered(ways, ends[1], OBJECT_PIPE, 0, "pipe:[%llu]"); /* the same object */
    assert_int_equal(ways->proc_sink.book.objects.len, before + 1);
    close(ends[0]);
    close(ends[1]);
    snprintf(path, sizeof(path), "%s/fifo", ways->folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR | O_NONBLOCK);
    fd_is(ways, fd, OBJECT_PIPE, 0, path);
    close(fd);
    unlink(path);
}

static void files_without_an_inode_of_their_own_are_told_apart(void **state)
{
    struct ways *ways = *state;
    size_t before = ways->proc_sink.book.objects.len;
    size_t kernel_before = ways->kernel_sink.book.objects.len;
    sigset_t none;
    sigemptyset(&none);
    int fds[] = {
        eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC), timerfd_create(CLOCK_MONOTONIC, 0),
        epoll_create1(0),        signalfd(-1, &none, 0),  inotify_init()};
    fd_is(ways, fds[0], OBJECT_EVENT, 0, "[eventfd]");
    fd_is(ways, fds[1], OBJECT_EVENT, 0, "[eventfd]");
    fd_is(ways, fds[2], OBJECT_TIMER, 0, "[timerfd]");
    fd_is(ways, fds[3], OBJECT_POLL_SET, 0, "[eventpoll]");
    fd_is(ways, fds[4], OBJECT_OTHER, 0, "[signalfd]");
    fd_is(ways, fds[5], OBJECT_OTHER, 0, "[inotify]");
    assert_int_equal(ways->proc_sink.book.objects.len - before, ARRAY_SIZE(fds));
    if (ways->unit)
        assert_int_equal(ways->kernel_sink.book.objects.len - kernel_before, ARRAY_SIZE(fds));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
}

static void a_pidfd_is_the_process_it_stands_for(void **state)
{
    struct ways *ways = *state;
    char name[32];
    int fd = (int)syscall(SYS_pidfd_open, getppid(), 0);
    if (fd < 0)
        skip("this kernel has no such object");
    snprintf(name, sizeof(name), "pid %d", getppid());
    fd_is(ways, fd, OBJECT_PROCESS, 0, name);
    close(fd);
}

static void a_terminal_has_its_device(void **state)
{
    struct ways *ways = *state;
    int outer, inner;
    char path[PATH_MAX];
    if (openpty(&outer, &inner, path, NULL, NULL) < 0)
        skip("no terminal to be had: is devpts mounted?");
    fd_is(ways, inner, OBJECT_CHAR_DEVICE, 0, path);
    close(outer);
    close(inner);
}

/* The port is one that the kernel picked: which side asks cannot be told from the numbers. */
static void tcp_sockets_know_who_asks(void **state)
{
    static const struct {
        int family;
        const char *format;
    } rows[] = {{AF_INET, "127.0.0.1:%u"}, {AF_INET6, "[::1]:%u"}};
    struct ways *ways = *state;
    for (size_t i = 0; i < 4 * ARRAY_SIZE(rows); i++) {
        int listener, client, server;
        uint16_t port;
        char name[64], of[96];
        tcp_open(rows[i / 4].family, &listener, &client, &server, &port);
        snprintf(name, sizeof(name), rows[i / 4].format, port);
        snprintf(of, sizeof(of), "client of %s", name);
        fd_is(ways, listener, OBJECT_SOCKET, OBJECT_LISTENING | OBJECT_LOCAL, name);
        fd_is(ways, client, OBJECT_SOCKET, OBJECT_CLIENT | OBJECT_LOCAL, name);
        fd_is(ways, server, OBJECT_SOCKET, OBJECT_SERVER | OBJECT_LOCAL, of);
        close(listener);
        close(client);
        close(server);
    }
}

static void a_socket_gets_its_name_when_it_has_one(void **state)
{
    struct ways *ways = *state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    char name[64];
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    numbered(ways, client, OBJECT_SOCKET, 0, "socket:[%llu]");
    assert_int_equal(bind(listener, (void *)&address, len), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (void *)&address, &len), 0);
    assert_int_equal(connect(client, (void *)&address, len), 0);
    snprintf(name, sizeof(name), "127.0.0.1:%u", ntohs(address.sin_port));
    fd_is(ways, client, OBJECT_SOCKET, OBJECT_CLIENT | OBJECT_LOCAL, name);
    close(listener);
    close(client);
}

static void datagram_sockets_say_udp(void **state)
{
    struct ways *ways = *state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int server = socket(AF_INET, SOCK_DGRAM, 0), client = socket(AF_INET, SOCK_DGRAM, 0), r = -1;
    char name[64];
    for (int port = 20053; port < 20153 && r < 0; port++) {
        address.sin_port = htons((uint16_t)port);
        r = bind(server, (void *)&address, len);
    }
    assert_int_equal(r, 0);
    assert_int_equal(connect(client, (void *)&address, len), 0);
    snprintf(name, sizeof(name), "udp 127.0.0.1:%u", ntohs(address.sin_port));
    fd_is(ways, server, OBJECT_SOCKET, OBJECT_LISTENING | OBJECT_LOCAL, name);
    fd_is(ways, client, OBJECT_SOCKET, OBJECT_CLIENT | OBJECT_LOCAL, name);
    close(server);
    close(client);
}

static void unix_case(struct ways *ways, const struct sockaddr_un *address, socklen_t len,
                      const char *name)
{
    char of[256];
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (const void *)address, len), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(connect(client, (const void *)address, len), 0);
    int server = accept(listener, NULL, NULL);
    snprintf(of, sizeof(of), "client of %s", name);
    fd_is(ways, listener, OBJECT_SOCKET, OBJECT_LISTENING | OBJECT_LOCAL, name);
    fd_is(ways, client, OBJECT_SOCKET, OBJECT_CLIENT | OBJECT_LOCAL, name);
    fd_is(ways, server, OBJECT_SOCKET, OBJECT_SERVER | OBJECT_LOCAL, of);
    close(listener);
    close(client);
    close(server);
    unlink(address->sun_path);
}

static void unix_sockets_are_known_by_the_servers_address(void **state)
{
    struct ways *ways = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[256];
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/x\n.sock", ways->folder);
    snprintf(name, sizeof(name), "unix:%s", address.sun_path);
    unix_case(ways, &address, sizeof(address), name);
    /* Abstract, with a NUL inside. */
    memset(address.sun_path, 0, sizeof(address.sun_path));
    int n = snprintf(address.sun_path + 1, 64, "whyslow-%d", getpid());
    snprintf(name, sizeof(name), "unix:@whyslow-%d@x", getpid());
    address.sun_path[1 + n + 1] = 'x';
    unix_case(ways, &address, (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)n + 2), name);
}

static void a_socketpair_has_no_sides(void **state)
{
    struct ways *ways = *state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    numbered(ways, ends[0], OBJECT_SOCKET, OBJECT_LOCAL, "socket:[%llu]");
    numbered(ways, ends[1], OBJECT_SOCKET, OBJECT_LOCAL, "socket:[%llu]");
    close(ends[0]);
    close(ends[1]);
}

static void what_is_no_fd_is_refused(void **state)
{
    struct ways *ways = *state;
    static const int fds[] = {-1, 1023, 1 << 30, INT32_MAX, INT32_MIN};
    struct object_id id = {0};
    uint32_t object = 77;
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        assert_true(objects_of_fd(ways->proc, getpid(), fds[i], &object) < 0);
        if (ways->unit)
            assert_false(kernel_ask(ways, fds[i], &id));
    }
    assert_true(objects_of_fd(ways->proc, INT32_MAX, 0, &object) < 0);
    assert_int_equal(object, 77);
    assert_int_equal(objects_find(ways->kernel, &id, &object), 0);
    assert_int_equal(object, 0); /* the id of nothing */
    id.kind = 999;
    assert_int_equal(objects_find(ways->kernel, &id, &object), 0);
    assert_int_equal(object, 0);
    assert_int_equal(ways->kernel_sink.book.objects.len, 0);
}

/* The kernel's types from the cache say the same. */
static void with_types_from_the_cache_it_is_the_same(void **state)
{
    struct ways *ways = *state;
    if (!ways->unit)
        skip("no BPF here");
    for (int i = 0; i < 2; i++) { /* made, then read */
        unit_end(ways);
        unit_start(ways, RING, ways->folder);
        unix_sockets_are_known_by_the_servers_address(state);
        files_have_their_path(state);
        tcp_sockets_know_who_asks(state);
        pipes_have_their_number_or_their_path(state);
        a_pidfd_is_the_process_it_stands_for(state);
        int fd = eventfd(0, EFD_CLOEXEC);
        fd_is(ways, fd, OBJECT_EVENT, 0, "[eventfd]");
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define BOTH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        BOTH(files_have_their_path),
        BOTH(a_deleted_file_keeps_its_path_and_its_successor_is_another),
        BOTH(hostile_names_arrive_as_they_are),
        BOTH(a_path_that_is_too_long_keeps_its_inner_end),
        BOTH(pipes_have_their_number_or_their_path),
        BOTH(files_without_an_inode_of_their_own_are_told_apart),
        BOTH(a_pidfd_is_the_process_it_stands_for),
        BOTH(a_terminal_has_its_device),
        BOTH(tcp_sockets_know_who_asks),
        BOTH(a_socket_gets_its_name_when_it_has_one),
        BOTH(datagram_sockets_say_udp),
        BOTH(unix_sockets_are_known_by_the_servers_address),
        BOTH(a_socketpair_has_no_sides),
        BOTH(what_is_no_fd_is_refused),
        BOTH(with_types_from_the_cache_it_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
