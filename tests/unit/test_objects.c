/* Promises of collect/objects*.c and bpf/objects.h: an fd has one kind, one set of flags and one
 * name, whether a program in the kernel tells or /proc; and whatever targets call their things,
 * we stay within our bounds. */
#include "unit.h"

#include "base/macros.h"
#include "collect/bpf_ring.h"
#include "collect/bpf_unit.h"
#include "collect/objects.h"
#include "collect/objects_parts.h"
#include "host/probe.h"
#include "model/sink_memory.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

extern const unsigned char fds_bpf[];
extern const size_t fds_bpf_bytes;

enum { RING = 1 << 20, RING_SMALL = 4096 };

/* Both ways beside each other; `unit` is NULL where there is no BPF. */
struct ways {
    struct sink_memory kernel_sink, proc_sink;
    struct objects *kernel, *proc;
    struct bpf_unit *unit;
    struct bpf_ring ring;
    char folder[64];
};

static void unit_start(struct ways *ways, uint32_t ring_bytes, const char *cache_dir)
{
    struct why why = {0};
    struct bpf_blob blob = {"fds", fds_bpf, fds_bpf_bytes};
    uint32_t config[2] = {(uint32_t)getpid(), SYS_getppid};
    assert_int_equal(bpf_unit_open(&blob, cache_dir, &ways->unit, &why), 0);
    assert_int_equal(bpf_unit_config(ways->unit, config, sizeof(config), &why), 0);
    assert_int_equal(bpf_unit_map_size(ways->unit, "told", ring_bytes, &why), 0);
    if (bpf_unit_load(ways->unit, &why) < 0)
        fail_msg("%s", why.what);
    assert_int_equal(
        bpf_ring_map(bpf_unit_map_fd(ways->unit, "told"), ring_bytes, &ways->ring, &why), 0);
    assert_int_equal(bpf_unit_attach(ways->unit, &why), 0);
}

static void unit_end(struct ways *ways)
{
    if (!ways->unit)
        return;
    bpf_ring_deinit(&ways->ring);
    bpf_unit_close(ways->unit);
    ways->unit = NULL;
}

static int setup(void **state)
{
    struct ways *ways = calloc(1, sizeof(*ways));
    ways->kernel_sink = ways->proc_sink = SINK_MEMORY_INIT;
    assert_int_equal(objects_open(&ways->kernel_sink.sink, &ways->kernel), 0);
    assert_int_equal(objects_open(&ways->proc_sink.sink, &ways->proc), 0);
    snprintf(ways->folder, sizeof(ways->folder), "/tmp/whyslow-objects-XXXXXX");
    assert_non_null(mkdtemp(ways->folder));
    struct probe probe;
    probe_bpf_tracing(&probe);
    if (!probe.ok || fds_bpf_bytes == 0)
        print_message("no BPF here: %s\n", probe.ok ? "built without clang" : probe.detail);
    else
        unit_start(ways, RING, NULL);
    *state = ways;
    return 0;
}

static int teardown(void **state)
{
    struct ways *ways = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", ways->folder);
    assert_int_equal(system(command), 0);
    unit_end(ways);
    objects_close(ways->kernel);
    objects_close(ways->proc);
    sink_memory_deinit(&ways->kernel_sink);
    sink_memory_deinit(&ways->proc_sink);
    free(ways);
    return 0;
}

static size_t ring_take(struct ways *ways)
{
    const void *record;
    size_t bytes, count = 0;
    uint64_t place;
    bpf_ring_begin(&ways->ring);
    for (; (record = bpf_ring_next(&ways->ring, &bytes, &place)); count++)
        assert_int_equal(objects_take(ways->kernel, record, bytes), 0);
    bpf_ring_release(&ways->ring, UINT64_MAX);
    return count;
}

/* What the program in the kernel says about an fd; false: nothing. */
static bool kernel_ask(struct ways *ways, int fd, struct object_id *ret)
{
    uint32_t zero = 0;
    assert_int_equal(bpf_map_update_elem(bpf_unit_map_fd(ways->unit, "asked"), &zero, &fd, BPF_ANY),
                     0);
    syscall(SYS_getppid);
    return bpf_map_lookup_elem(bpf_unit_map_fd(ways->unit, "answers"), &zero, ret) == 0;
}

static const struct object_info *info_of(const struct sink_memory *memory, uint32_t object)
{
    assert_in_range(object, 1, memory->book.objects.len);
    return &memory->book.objects.data[object - 1].info;
}

static void info_is(const char *way, const struct object_info *info, enum object_kind kind,
                    uint32_t flags, const char *name)
{
    if (info->kind != kind || info->flags != flags || !str_is(info->name, name))
        fail_msg("by %s: kind %d flags %x '%.*s' instead of kind %d flags %x '%s'", way,
                 (int)info->kind, info->flags, STR_FMT(info->name), (int)kind, flags, name);
}

/* Both ways must say the same about an fd of ours. */
static void fd_is(struct ways *ways, int fd, enum object_kind kind, uint32_t flags,
                  const char *name)
{
    uint32_t object = 0;
    assert_true(fd >= 0);
    /* The tables of sockets are read only now and then: the name may come later. */
    for (int i = 0; i < 1000; i++) {
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

static void a_deleted_file_keeps_its_path_and_its_successor_is_another(void **state)
{
    struct ways *ways = *state;
    char path[PATH_MAX];
    int fd = file_in(ways, "gone", path);
    assert_int_equal(unlink(path), 0);
    fd_is(ways, fd, OBJECT_FILE, 0, path);
    close(fd);
    fd = file_in(ways, "next", path); /* often the same inode number */
    if (ways->unit) {
        struct object_id id;
        uint32_t object;
        assert_true(kernel_ask(ways, fd, &id));
        ring_take(ways);
        assert_int_equal(objects_find(ways->kernel, &id, &object), 0);
        info_is("kernel", info_of(&ways->kernel_sink, object), OBJECT_FILE, 0, path);
    }
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
        "new\nline",
        "\x1b[31mred\x1b[0m",
        "\xff\xfe not UTF-8",
        "quote\"'`$(true)",
        " ",
        "...",
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
        "8901234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
        "678901234567890123456789012345678901234567890123456789012345678901234567890123",
    };
    struct ways *ways = *state;
    char path[PATH_MAX];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        int fd = file_in(ways, names[i], path);
        fd_is(ways, fd, OBJECT_FILE, 0, path);
        close(fd);
    }
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
        skip();
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
        skip();
    fd_is(ways, inner, OBJECT_CHAR_DEVICE, 0, path);
    close(outer);
    close(inner);
}

/* *ret_listener listens, the two others are connected through it. */
static void tcp_open(int family, int *ret_listener, int *ret_client, int *ret_server,
                     uint16_t *ret_port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } address = {0};
    socklen_t len = family == AF_INET ? sizeof(address.four) : sizeof(address.six);
    address.any.sa_family = (sa_family_t)family;
    if (family == AF_INET)
        address.four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        address.six.sin6_addr = in6addr_loopback;
    *ret_listener = socket(family, SOCK_STREAM, 0);
    assert_int_equal(bind(*ret_listener, &address.any, len), 0);
    assert_int_equal(listen(*ret_listener, 4), 0);
    assert_int_equal(getsockname(*ret_listener, &address.any, &len), 0);
    *ret_port = ntohs(family == AF_INET ? address.four.sin_port : address.six.sin6_port);
    *ret_client = socket(family, SOCK_STREAM, 0);
    assert_int_equal(connect(*ret_client, &address.any, len), 0);
    *ret_server = accept(*ret_listener, NULL, NULL);
    assert_true(*ret_server >= 0);
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

static void one_is_told_once_and_a_full_ring_only_delays(void **state)
{
    struct ways *ways = *state;
    if (!ways->unit)
        skip();
    unit_end(ways);
    unit_start(ways, RING_SMALL, NULL);
    struct object_id id;
    int fds[8];
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = eventfd(0, 0);
        assert_true(kernel_ask(ways, fds[i], &id));
        assert_true(kernel_ask(ways, fds[i], &id)); /* again */
    }
    size_t told = ring_take(ways);
    assert_in_range(told, 1, 3); /* no more fit */
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

/* The kernel's types from the cache say the same. */
static void with_types_from_the_cache_it_is_the_same(void **state)
{
    struct ways *ways = *state;
    if (!ways->unit)
        skip();
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
        BOTH(one_is_told_once_and_a_full_ring_only_delays),
        BOTH(with_types_from_the_cache_it_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
