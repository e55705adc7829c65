/* Waits whose answer is known, for the tier that has no privileges.
 *
 *     waits-user sleep|pipe|lock|child|poll|many N MS|brief N|deep N|ping N|pointer|stale
 *
 * Prints as JSON what it measured itself, by its own clock: on a machine that is busy with other
 * things that is what really happened. Functions are kept apart, so that stacks have names. */
#include "apart.h"
#include "told.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static volatile int keep; /* calls before it are no tail calls */

APART static void sleep_ms(unsigned ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
    if (told_waits(ms))
        told_sleep();
    else
        while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
            keep++;
    keep++;
}

static unsigned here_ms = 300;

APART static void sleeps_here(void)
{
    sleep_ms(here_ms);
    keep++;
}

static int mode_sleep(void)
{
    uint64_t start_ns = now_ns();
    sleeps_here();
    printf("{\"wait_ns\": %llu}\n", (unsigned long long)(now_ns() - start_ns));
    return 0;
}

APART static uint64_t reads_here(int fd, unsigned count)
{
    uint64_t waited_ns = 0;
    char byte;
    for (unsigned i = 0; i < count; i++) {
        uint64_t start_ns = now_ns();
        if (read(fd, &byte, 1) != 1)
            exit(1);
        waited_ns += now_ns() - start_ns;
    }
    return waited_ns;
}

/* A child writes a byte each 20 ms; the first may be late (told.h). */
static int mode_pipe(void)
{
    int fds[2], status;
    if (pipe(fds) < 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 20; i++) {
            sleep_ms(i == 0 && told_waits(TOLD_LONG_MS) ? TOLD_LONG_MS : 20);
            if (write(fds[1], "x", 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    uint64_t waited_ns = reads_here(fds[0], 20);
    if (waitpid(child, &status, 0) != child || status != 0)
        return 1;
    printf("{\"wait_ns\": %llu}\n", (unsigned long long)waited_ns);
    return 0;
}

static pthread_mutex_t global_mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int held;

APART static void holds_the_lock(void)
{
    pthread_mutex_lock(&global_mutex);
    __atomic_store_n(&held, 1, __ATOMIC_RELEASE);
    sleep_ms(200);
    pthread_mutex_unlock(&global_mutex);
    keep++;
}

static void *holder_run(void *context)
{
    holds_the_lock();
    return context;
}

APART static uint64_t waits_for_the_lock(void)
{
    uint64_t start_ns = now_ns();
    pthread_mutex_lock(&global_mutex);
    uint64_t waited_ns = now_ns() - start_ns;
    pthread_mutex_unlock(&global_mutex);
    return waited_ns;
}

static int mode_lock(void)
{
    pthread_t holder;
    if (pthread_create(&holder, NULL, holder_run, NULL) != 0)
        return 1;
    while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
        sched_yield();
    uint64_t waited_ns = waits_for_the_lock();
    pthread_join(holder, NULL);
    printf("{\"wait_ns\": %llu, \"mutex\": %llu}\n", (unsigned long long)waited_ns,
           (unsigned long long)(uintptr_t)&global_mutex);
    return 0;
}

APART static uint64_t waits_for_the_child(pid_t child)
{
    int status;
    uint64_t start_ns = now_ns();
    if (waitpid(child, &status, 0) != child)
        exit(1);
    return now_ns() - start_ns;
}

static int mode_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        sleep_ms(250);
        _exit(0);
    }
    uint64_t waited_ns = waits_for_the_child(child);
    printf("{\"wait_ns\": %llu, \"child\": %d}\n", (unsigned long long)waited_ns, (int)child);
    return 0;
}

APART static uint64_t polls_here(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    int ms = told_waits(250) ? TOLD_NEVER_S * 1000 : 250;
    uint64_t start_ns = now_ns();
    told_listen(SIG_UNBLOCK);
    if (poll(&one, 1, ms) > 0)
        exit(1);
    told_listen(SIG_BLOCK);
    return now_ns() - start_ns;
}

static int mode_poll(void)
{
    int fds[2];
    if (pipe(fds) < 0)
        return 1;
    printf("{\"wait_ns\": %llu}\n", (unsigned long long)polls_here(fds[0]));
    return 0;
}

/* A signal ends the sleep of one: that one ends the next one's. */
static void *many_run(void *context)
{
    sleeps_here();
    if (told_at_all)
        kill(getpid(), SIGUSR1);
    return context;
}

/* So many threads that each sleep. */
static int mode_many(unsigned count, unsigned ms)
{
    here_ms = ms;
    pthread_t *threads = calloc(count + 1, sizeof(*threads));
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attr, many_run, NULL) != 0)
            return 1;
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    printf("{\"threads\": %u}\n", count);
    return 0;
}

static void *brief_run(void *context)
{
    sleep_ms(3);
    return context;
}

/* So many threads one after the other, each gone before anybody can have looked twice. */
static int mode_brief(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, brief_run, NULL) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
    printf("{\"threads\": %u}\n", count);
    return 0;
}

/* Frames of 4 KiB: the stack is deeper than the first look reads. */
APART static int deep(unsigned depth)
{
    volatile char room[4096];
    room[0] = room[1] = (char)depth;
    if (depth == 0)
        sleeps_here();
    else
        room[1] = (char)deep(depth - 1);
    return room[0] + room[1];
}

static int mode_deep(unsigned depth)
{
    uint64_t start_ns = now_ns();
    keep += deep(depth);
    printf("{\"wait_ns\": %llu}\n", (unsigned long long)(now_ns() - start_ns));
    return 0;
}

/* How often this process, and children that have ended, had to wait. */
static long switches(void)
{
    struct rusage own, children;
    if (getrusage(RUSAGE_SELF, &own) < 0 || getrusage(RUSAGE_CHILDREN, &children) < 0)
        exit(1);
    return own.ru_nvcsw + children.ru_nvcsw;
}

/* Two processes that hand each other a byte. */
static int mode_ping(unsigned count)
{
    int there[2], back[2], status;
    long before = switches();
    char byte = 'x';
    if (pipe(there) < 0 || pipe(back) < 0)
        return 1;
    uint64_t start_ns = now_ns();
    pid_t child = fork();
    if (child == 0) {
        for (unsigned i = 0; i < count; i++)
            if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
                _exit(1);
        _exit(0);
    }
    for (unsigned i = 0; i < count; i++)
        if (write(there[1], &byte, 1) != 1 || reads_here(back[0], 1) == 0)
            return 1;
    if (waitpid(child, &status, 0) != child || status != 0)
        return 1;
    printf("{\"wall_ns\": %llu, \"switches\": %ld}\n", (unsigned long long)(now_ns() - start_ns),
           switches() - before);
    return 0;
}

/* A frame whose size is not known when it is compiled, and so has a frame pointer. */
APART static void variable_frame(unsigned bytes)
{
    volatile char *room = __builtin_alloca(bytes);
    room[0] = 1;
    sleeps_here();
    keep += room[0];
}

static int mode_pointer(void)
{
    uint64_t start_ns = now_ns();
    variable_frame(100 + (unsigned)getpid() % 100);
    printf("{\"wait_ns\": %llu}\n", (unsigned long long)(now_ns() - start_ns));
    return 0;
}

/* The same function, reached by two paths. What the first left behind lies in the room that the
 * second has not written to. */
APART static void sleeps_in_a_large_frame(unsigned bytes, int really)
{
    volatile char *room = __builtin_alloca(bytes);
    if (really)
        sleep_ms(300);
    keep += room == NULL;
}

APART static void wrong_path(int depth)
{
    volatile char room[64];
    room[0] = 1;
    if (depth > 0)
        wrong_path(depth - 1);
    else
        sleeps_in_a_large_frame(64, 0);
    keep += room[0];
}

APART static void right_path(void)
{
    sleeps_in_a_large_frame(8192, 1);
    keep++;
}

static int mode_stale(void)
{
    uint64_t start_ns = now_ns();
    for (int depth = 30; depth >= 0; depth--)
        wrong_path(depth);
    right_path();
    printf("{\"wait_ns\": %llu}\n", (unsigned long long)(now_ns() - start_ns));
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned ms = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : here_ms;
    if (strcmp(mode, "sleep") == 0)
        return mode_sleep();
    if (strcmp(mode, "pipe") == 0)
        return mode_pipe();
    if (strcmp(mode, "lock") == 0)
        return mode_lock();
    if (strcmp(mode, "child") == 0)
        return mode_child();
    if (strcmp(mode, "poll") == 0)
        return mode_poll();
    if (strcmp(mode, "many") == 0)
        return mode_many(count, ms);
    if (strcmp(mode, "brief") == 0)
        return mode_brief(count);
    if (strcmp(mode, "deep") == 0)
        return mode_deep(count);
    if (strcmp(mode, "ping") == 0)
        return mode_ping(count);
    if (strcmp(mode, "pointer") == 0)
        return mode_pointer();
    if (strcmp(mode, "stale") == 0)
        return mode_stale();
    fprintf(stderr, "waits-user: unknown mode '%s'\n", mode);
    return 2;
}
