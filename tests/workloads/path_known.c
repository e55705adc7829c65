/* Known parts of a critical path:
 *
 *     path_known split F_MS G_MS SLEEP_MS   CPU time in burn_f and burn_g, then a sleep
 *     path_known threads LONG_MS SHORT_MS   two threads burn at once; main waits for both
 *     path_known lock MS                    main waits while another burns under a lock
 *     path_known sync COUNT                 as many writes with fsync, in commit()
 *     path_known children F_MS G_MS         a child burns in burn_f, then another in burn_g
 *     path_known brief MS COUNT             as many children, one after another, burn MS in burn_f
 *     path_known feed F_MS                  burns in burn_f and then writes a line, once another
 *                                           child of its parent waits for it
 *     path_known take G_MS                  reads to the end, then burns in burn_g
 *     path_known starve MS                  two processes burn on one CPU
 *
 * CPU time is counted by the thread's own clock: what another program takes is not in it. Prints
 * what it took by its own clocks, as JSON, to stderr. */
#include "asleep.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long work;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static double clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Looks at the clock every 50 µs or so: it is not what takes the time. */
__attribute__((noinline)) static void burn_f(double ms)
{
    double end = clock_ms(CLOCK_THREAD_CPUTIME_ID) + ms;
    while (clock_ms(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 50000; i++)
            work += (unsigned long)i;
}

__attribute__((noinline)) static void burn_g(double ms)
{
    double end = clock_ms(CLOCK_THREAD_CPUTIME_ID) + ms;
    while (clock_ms(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 50000; i++)
            work += (unsigned long)i * 3;
}

__attribute__((noinline)) static void doze(double ms)
{
    struct timespec left = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        continue;
}

static void *thread_f(void *ms)
{
    burn_f(*(double *)ms);
    return NULL;
}

static void *thread_g(void *ms)
{
    burn_g(*(double *)ms);
    return NULL;
}

static void *thread_holds(void *ms)
{
    burn_g(*(double *)ms);
    asleep_wait_main(&mutex);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void threads(double *long_ms, double *short_ms)
{
    pthread_t one, two;
    pthread_create(&one, NULL, thread_f, long_ms);
    pthread_create(&two, NULL, thread_g, short_ms);
    pthread_join(two, NULL);
    pthread_join(one, NULL);
}

/* A mutex may be released by whoever has it, and for a default one glibc does not ask who. */
static void lock(double *ms)
{
    pthread_t one;
    pthread_mutex_lock(&mutex);
    pthread_create(&one, NULL, thread_holds, ms);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_join(one, NULL);
}

__attribute__((noinline)) static double commit(int fd)
{
    double start = clock_ms(CLOCK_MONOTONIC);
    if (write(fd, "one record\n", 11) != 11 || fsync(fd) < 0)
        exit(3);
    return clock_ms(CLOCK_MONOTONIC) - start;
}

static double commits(unsigned long count)
{
    char name[] = "path_known.XXXXXX";
    int fd = mkstemp(name);
    double sum = 0;
    if (fd < 0)
        exit(3);
    for (unsigned long i = 0; i < count; i++)
        sum += commit(fd);
    unlink(name);
    close(fd);
    return sum;
}

static void child(void (*burn)(double), double ms)
{
    pid_t pid = fork();
    if (pid == 0) {
        burn(ms);
        asleep_wait(getppid(), getppid(), SYS_wait4, ASLEEP_ANY);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void starve(double ms)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    pid_t pid = fork();
    burn_f(ms);
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
}

/* Whether one of our parent's children reads its standard input, and sleeps. */
static int is_awaited(void)
{
    char path[64];
    long pid;
    int found = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", getppid(), getppid());
    FILE *file = fopen(path, "re");
    while (file && !found && fscanf(file, "%ld", &pid) == 1)
        found = pid != getpid() && asleep_in(pid, pid, SYS_read, STDIN_FILENO);
    if (!file)
        return 1;
    fclose(file);
    return found;
}

static void feed(double ms)
{
    burn_f(ms);
    while (!is_awaited())
        usleep(1000);
    puts("done");
}

static void take(double ms)
{
    char room[4096];
    while (read(STDIN_FILENO, room, sizeof(room)) > 0)
        continue;
    burn_g(ms);
}

static double number(int argc, char **argv, int at)
{
    return at < argc ? strtod(argv[at], NULL) : 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    double a = number(argc, argv, 2), b = number(argc, argv, 3), sum = 0;
    double start = clock_ms(CLOCK_MONOTONIC);
    if (strcmp(what, "split") == 0) {
        burn_f(a);
        burn_g(b);
        doze(number(argc, argv, 4));
    } else if (strcmp(what, "threads") == 0)
        threads(&a, &b);
    else if (strcmp(what, "lock") == 0)
        lock(&a);
    else if (strcmp(what, "sync") == 0)
        sum = commits((unsigned long)a);
    else if (strcmp(what, "children") == 0) {
        child(burn_f, a);
        child(burn_g, b);
    } else if (strcmp(what, "brief") == 0) {
        for (int i = 0; i < (int)b; i++)
            child(burn_f, a);
    } else if (strcmp(what, "feed") == 0)
        feed(a);
    else if (strcmp(what, "take") == 0)
        take(a);
    else if (strcmp(what, "starve") == 0)
        starve(a);
    else
        return 2;
    fprintf(stderr, "{\"wall_ms\": %.3f, \"sum_ms\": %.3f}\n", clock_ms(CLOCK_MONOTONIC) - start,
            sum);
    return 0;
}
