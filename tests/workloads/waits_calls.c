/* Processes that wait in known ways; each tells what it measured (waits_truth.h):
 *
 *     waits-calls sleep MS             sleeps_here()
 *     waits-calls pipe MS              reads_the_pipe() of a child that writes five times in MS
 *     waits-calls child MS             waits_for_child() that sleeps MS
 *     waits-calls cold-read FILE MIB   reads_cold() a file that is on disk only
 *     waits-calls starve MS            starves() beside a competitor on the same CPU, MS of CPU
 * each waits-calls hops MS              waits_for_b() by pipe; b_sleeps() MS waits-calls hops-disk
 * FILE MIB   the same; b_reads_cold() the file waits-calls epoll MS             serves() requests
 * of a client for MS, a tenth of it busy waits-calls paths ROUNDS         16 paths of equal depth
 * to one blocking read waits-calls forks N              N children that sleep 1 ms each, at most 50
 * at a time waits-calls exec MS PROGRAM…     a thread is in mid-wait when PROGRAM takes its place
 *     waits-calls crash MS             sleeps, then dies by SIGSEGV
 *     waits-calls ping ROUNDS          round trips between two processes through pipes */
#include "apart.h"
#include "asleep.h"
#include "waits_truth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* What stands after the call keeps it from being a jump: the function stays on the stack. */
#define STAY __asm__ volatile("" ::: "memory")

static long main_start_ns;

static APART void sleeps_here(long ns, struct truth *truth)
{
    struct truth_span span = truth_begin();
    truth_sleep(ns);
    truth_end(truth, &span);
}

static int run_sleep(long ms)
{
    struct truth truth = {0};
    sleeps_here(ms * NS_PER_MS, &truth);
    truth_tell("sleeps_here", &truth);
    return 0;
}

static APART ssize_t reads_the_pipe(int fd, char *data, struct truth *truth)
{
    struct truth_span span = truth_begin();
    ssize_t n = read(fd, data, 1);
    truth_end(truth, &span);
    return n;
}

static APART void feeds_the_pipe(int fd, long ns, struct truth *truth)
{
    for (int i = 0; i < 5; i++) {
        struct truth_span span = truth_begin();
        truth_sleep(ns / 5);
        asleep_wait(getppid(), getppid(), SYS_read, ASLEEP_ANY);
        truth_end(truth, &span);
        truth_need(write(fd, "x", 1) == 1, "write");
    }
}

static int run_pipe(long ms)
{
    int fds[2];
    truth_need(pipe(fds) == 0, "pipe");
    pid_t child = fork();
    truth_need(child >= 0, "fork");
    struct truth truth = {0};
    if (child == 0) {
        feeds_the_pipe(fds[1], ms * NS_PER_MS, &truth);
        truth_tell("feeds_the_pipe", &truth);
        _exit(0);
    }
    close(fds[1]);
    char data;
    while (reads_the_pipe(fds[0], &data, &truth) == 1)
        STAY;
    truth_tell("reads_the_pipe", &truth);
    waitpid(child, NULL, 0);
    return 0;
}

static APART int waits_for_child(pid_t child, struct truth *truth)
{
    int status = -1;
    struct truth_span span = truth_begin();
    truth_need(waitpid(child, &status, 0) > 0, "waitpid");
    truth_end(truth, &span);
    return status;
}

static int run_child(long ms)
{
    struct truth truth = {0};
    pid_t child = fork();
    truth_need(child >= 0, "fork");
    if (child == 0) {
        sleeps_here(ms * NS_PER_MS, &truth);
        truth_tell("sleeps_here", &truth);
        asleep_wait(getppid(), getppid(), SYS_wait4, ASLEEP_ANY);
        _exit(3);
    }
    int status = waits_for_child(child, &truth);
    truth_tell("waits_for_child", &truth);
    return WEXITSTATUS(status) == 3 ? 0 : 1;
}

/* On disk, and not in memory. */
static void make_cold(const char *path, long mib)
{
    static char block[1 << 20];
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    truth_need(fd >= 0, path);
    for (long i = 0; i < mib; i++) {
        memset(block, (int)i, sizeof(block));
        truth_need(write(fd, block, sizeof(block)) == (ssize_t)sizeof(block), "write");
    }
    truth_need(fsync(fd) == 0, "fsync");
    truth_need(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "posix_fadvise");
    close(fd);
}

static APART long reads_cold(const char *path, struct truth *truth)
{
    static char block[128 << 10];
    long sum = 0;
    int fd = open(path, O_RDONLY);
    truth_need(fd >= 0, path);
    struct truth_span span = truth_begin();
    for (ssize_t n; (n = read(fd, block, sizeof(block))) > 0;)
        sum += n;
    truth_end(truth, &span);
    close(fd);
    return sum;
}

static int run_cold_read(const char *path, long mib)
{
    struct truth truth = {0};
    make_cold(path, mib);
    long sum = reads_cold(path, &truth);
    truth_tell("reads_cold", &truth);
    return sum == mib << 20 ? 0 : 1;
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    truth_need(sched_setaffinity(0, sizeof(set), &set) == 0, "sched_setaffinity");
}

/* Never asks to wait: what it is off the CPU, it is ready. */
static APART void starves(long ns, struct truth *truth)
{
    struct truth_span span = truth_begin();
    truth_burn(ns);
    truth_end(truth, &span);
}

static int run_starve(long ms)
{
    struct truth truth = {0};
    cpu_set_t set;
    truth_need(sched_getaffinity(0, sizeof(set), &set) == 0, "sched_getaffinity");
    int cpu = 0;
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    pin(cpu);
    pid_t child = fork();
    truth_need(child >= 0, "fork");
    starves(ms * NS_PER_MS, &truth);
    truth_tell("starves", &truth);
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}

static APART void waits_for_b(int fd, struct truth *truth)
{
    char data;
    struct truth_span span = truth_begin();
    truth_need(read(fd, &data, 1) == 1, "read");
    truth_end(truth, &span);
}

static APART void b_sleeps(long ns, struct truth *truth)
{
    struct truth_span span = truth_begin();
    truth_sleep(ns);
    truth_end(truth, &span);
}

static APART void b_reads_cold(const char *path, struct truth *truth)
{
    reads_cold(path, truth);
    STAY;
}

static int run_hops(const char *path, long amount)
{
    int fds[2];
    struct truth truth = {0};
    truth_need(pipe(fds) == 0, "pipe");
    if (path)
        make_cold(path, amount);
    pid_t b = fork();
    truth_need(b >= 0, "fork");
    if (b == 0) {
        if (path)
            b_reads_cold(path, &truth);
        else
            b_sleeps(amount * NS_PER_MS, &truth);
        truth_tell(path ? "b_reads_cold" : "b_sleeps", &truth);
        asleep_wait(getppid(), getppid(), SYS_read, (unsigned long)fds[0]);
        truth_need(write(fds[1], "x", 1) == 1, "write");
        _exit(0);
    }
    waits_for_b(fds[0], &truth);
    truth_tell("waits_for_b", &truth);
    waitpid(b, NULL, 0);
    return 0;
}

enum { REQUEST_EVERY_MS = 20, REQUEST_BUSY_MS = 2 };

static APART void asks_the_server(int fd, struct truth *truth)
{
    char data;
    struct truth_span span = truth_begin();
    truth_need(write(fd, "?", 1) == 1 && read(fd, &data, 1) == 1, "request");
    truth_end(truth, &span);
}

static void client(const struct sockaddr_in *address, long ms)
{
    struct truth asks = {0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    truth_need(connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0, "connect");
    for (long i = 0; i < ms / REQUEST_EVERY_MS; i++) {
        truth_sleep((REQUEST_EVERY_MS - REQUEST_BUSY_MS) * NS_PER_MS);
        asks_the_server(fd, &asks);
    }
    truth_tell("asks_the_server", &asks);
    _exit(0);
}

static APART int serves(int epoll, struct epoll_event *event, struct truth *truth)
{
    struct truth_span span = truth_begin();
    int n = epoll_wait(epoll, event, 1, -1);
    truth_end(truth, &span);
    return n;
}

static int run_epoll(long ms)
{
    struct truth truth = {0};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    truth_need(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 8) == 0 &&
                   getsockname(listener, (struct sockaddr *)&address, &size) == 0,
               "listen");
    pid_t child = fork();
    truth_need(child >= 0, "fork");
    if (child == 0)
        client(&address, ms);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    truth_need(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == 0, "epoll_ctl");
    for (;;) {
        char data;
        truth_need(serves(epoll, &event, &truth) == 1, "epoll_wait");
        if (event.data.fd == listener) {
            int fd = accept(listener, NULL, NULL);
            event = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
            truth_need(fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "accept");
            continue;
        }
        ssize_t n = read(event.data.fd, &data, 1);
        if (n <= 0)
            break;
        truth_burn(REQUEST_BUSY_MS * NS_PER_MS);
        truth_need(write(event.data.fd, "!", 1) == 1, "write");
    }
    truth_tell("serves", &truth);
    waitpid(child, NULL, 0);
    return 0;
}

/* One call that blocks, reached by ways that differ in nothing but the functions passed. */
static APART ssize_t blocks_in_read(int fd)
{
    char data;
    ssize_t n = read(fd, &data, 1);
    STAY;
    return n;
}

#define PATH(name)                                                                                 \
    static APART ssize_t name(int fd)                                                              \
    {                                                                                              \
        ssize_t n = blocks_in_read(fd);                                                            \
        STAY;                                                                                      \
        return n;                                                                                  \
    }
PATH(path_a)
PATH(path_b)
PATH(path_c)
PATH(path_d)

#define FORK(name, by)                                                                             \
    static APART ssize_t name(int fd)                                                              \
    {                                                                                              \
        ssize_t n = by(fd);                                                                        \
        STAY;                                                                                      \
        return n;                                                                                  \
    }
FORK(through_a_1, path_a)
FORK(through_a_2, path_a)
FORK(through_a_3, path_a)
FORK(through_a_4, path_a)
FORK(through_b_1, path_b)
FORK(through_b_2, path_b)
FORK(through_b_3, path_b)
FORK(through_b_4, path_b)
FORK(through_c_1, path_c)
FORK(through_c_2, path_c)
FORK(through_c_3, path_c)
FORK(through_c_4, path_c)
FORK(through_d_1, path_d)
FORK(through_d_2, path_d)
FORK(through_d_3, path_d)
FORK(through_d_4, path_d)

struct way {
    ssize_t (*call)(int fd);
    const char *name;
    struct truth truth;
};

static struct way paths[] = {
    {through_a_1, "through_a_1", {0}}, {through_a_2, "through_a_2", {0}},
    {through_a_3, "through_a_3", {0}}, {through_a_4, "through_a_4", {0}},
    {through_b_1, "through_b_1", {0}}, {through_b_2, "through_b_2", {0}},
    {through_b_3, "through_b_3", {0}}, {through_b_4, "through_b_4", {0}},
    {through_c_1, "through_c_1", {0}}, {through_c_2, "through_c_2", {0}},
    {through_c_3, "through_c_3", {0}}, {through_c_4, "through_c_4", {0}},
    {through_d_1, "through_d_1", {0}}, {through_d_2, "through_d_2", {0}},
    {through_d_3, "through_d_3", {0}}, {through_d_4, "through_d_4", {0}},
};

static int run_paths(long rounds)
{
    enum { PATHS = sizeof(paths) / sizeof(paths[0]) };
    int asked[2], answered[2];
    truth_need(pipe(asked) == 0 && pipe(answered) == 0, "pipe");
    pid_t child = fork();
    truth_need(child >= 0, "fork");
    if (child == 0) {
        char data;
        close(asked[1]);
        close(answered[0]);
        while (read(asked[0], &data, 1) == 1) {
            truth_sleep(NS_PER_MS / 5); /* so that the reader is sure to wait */
            truth_need(write(answered[1], "x", 1) == 1, "write");
        }
        _exit(0);
    }
    unsigned random = 1;
    for (long i = 0; i < rounds; i++) {
        random = random * 1103515245u + 12345;
        unsigned pick = random >> 16 & (PATHS - 1);
        truth_need(write(asked[1], "x", 1) == 1, "write");
        struct truth_span span = truth_begin();
        truth_need(paths[pick].call(answered[0]) == 1, "read");
        truth_end(&paths[pick].truth, &span);
    }
    close(asked[1]);
    for (int i = 0; i < PATHS; i++)
        truth_tell(paths[i].name, &paths[i].truth);
    waitpid(child, NULL, 0);
    return 0;
}

static int run_forks(long count)
{
    struct truth waits = {0};
    for (long started = 0, ended = 0; ended < count;) {
        if (started < count && started - ended < 50) {
            pid_t child = fork();
            truth_need(child >= 0, "fork");
            if (child == 0) {
                truth_sleep(NS_PER_MS);
                _exit(0);
            }
            started++;
            continue;
        }
        waits_for_child(-1, &waits);
        ended++;
    }
    truth_tell("waits_for_child", &waits);
    return 0;
}

static APART void *waits_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static int run_exec(long ms, char **argv)
{
    struct truth truth = {0};
    pthread_t thread;
    truth_need(pthread_create(&thread, NULL, waits_for_ever, NULL) == 0, "pthread_create");
    sleeps_here(ms * NS_PER_MS, &truth);
    truth_tell("sleeps_here", &truth);
    execv(argv[0], argv);
    perror(argv[0]);
    return 127;
}

static int run_crash(long ms)
{
    struct truth truth = {0};
    sleeps_here(ms * NS_PER_MS, &truth);
    truth_tell("sleeps_here", &truth);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return 1;
}

static int run_ping(long rounds)
{
    int there[2], back[2];
    char data = 0;
    truth_need(pipe(there) == 0 && pipe(back) == 0, "pipe");
    pid_t child = fork();
    truth_need(child >= 0, "fork");
    if (child == 0) {
        close(there[1]);
        while (read(there[0], &data, 1) == 1)
            truth_need(write(back[1], &data, 1) == 1, "write");
        _exit(0);
    }
    long start = truth_clock(CLOCK_MONOTONIC);
    for (long i = 0; i < rounds; i++)
        truth_need(write(there[1], &data, 1) == 1 && read(back[0], &data, 1) == 1, "round trip");
    truth_tell_number("wall_ms", (double)(truth_clock(CLOCK_MONOTONIC) - start) / 1e6);
    close(there[1]);
    waitpid(child, NULL, 0);
    return 0;
}

static int run(const char *what, char **args)
{
    long first = args[0] ? strtol(args[0], NULL, 10) : 0;
    static const struct {
        const char *name;
        int (*run)(long);
    } plain[] = {{"sleep", run_sleep},   {"pipe", run_pipe},   {"child", run_child},
                 {"starve", run_starve}, {"epoll", run_epoll}, {"paths", run_paths},
                 {"forks", run_forks},   {"crash", run_crash}, {"ping", run_ping}};
    if (!args[0])
        return 2;
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (strcmp(what, plain[i].name) == 0)
            return plain[i].run(first);
    if (strcmp(what, "hops") == 0)
        return run_hops(NULL, first);
    if (!args[1])
        return 2;
    if (strcmp(what, "cold-read") == 0)
        return run_cold_read(args[0], strtol(args[1], NULL, 10));
    if (strcmp(what, "hops-disk") == 0)
        return run_hops(args[0], strtol(args[1], NULL, 10));
    if (strcmp(what, "exec") == 0)
        return run_exec(first, args + 1);
    return 2;
}

int main(int argc, char **argv)
{
    main_start_ns = truth_clock(CLOCK_MONOTONIC);
    int r = argc > 2 ? run(argv[1], argv + 2) : 2;
    if (r == 2)
        fprintf(stderr, "waits-calls WHAT ARGUMENT…: see the top of waits_calls.c\n");
    else
        truth_tell_life(main_start_ns);
    return r;
}
