/* Things a profiler must follow, each with an answer that is known:
 *
 *     follow threads N          N short threads, at most 50 at a time
 *     follow processes N        N short children; every second one execs /bin/true
 *     follow exec PROGRAM…      burns 300 ms in burn_before_exec(), then becomes PROGRAM
 *     follow fork MS            parent and child burn in functions of their own
 *     follow reload A B MS      dlopens A, burns in it, closes it, the same with B, twice
 *     follow growing MS         starts threads all the time, each burns in burn_in_thread()
 *     follow step NS MS         a tenth of each NS of CPU time in burn_tenth(), in step
 *     follow deep BYTES MS      burns below BYTES of stack
 *     follow deep-thread B MS   the same in a thread, which forks: the child burns there, too
 *     follow hole BYTES MS      the same, with 160 KiB in between that are never touched
 *     follow alternate MS       by turns below 200 KiB of left() and 300 KiB of right() */
#include "apart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile unsigned long split_sum; /* for the libraries of split.c */
long split_part_ns;

static long clock_of(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static inline __attribute__((always_inline)) void burn_until(long end)
{
    /* Asking is work of the kernel: seldom while there is long to go. */
    for (long left; (left = end - clock_of(CLOCK_THREAD_CPUTIME_ID)) > 0;)
        for (int i = 0; i < (left > 2000000 ? 100000 : 1000); i++)
            split_sum += (unsigned long)i;
}

#define BURNER(name)                                                                               \
    static APART void name(long ns)                                                                \
    {                                                                                              \
        burn_until(clock_of(CLOCK_THREAD_CPUTIME_ID) + ns);                                        \
        __asm__ volatile("" ::: "memory");                                                         \
    }
BURNER(burn_before_exec)
BURNER(burn_in_parent)
BURNER(burn_in_child)
BURNER(burn_in_thread)
BURNER(burn_below)

static APART void burn_tenth(long end)
{
    burn_until(end);
    __asm__ volatile("" ::: "memory");
}

static APART void burn_rest(long end)
{
    burn_until(end);
    __asm__ volatile("" ::: "memory");
}

static void *short_thread(void *unused)
{
    for (int i = 0; i < 20000; i++)
        split_sum += (unsigned long)i;
    return unused;
}

static int run_threads(int count)
{
    pthread_t threads[50];
    for (int done = 0; done < count;) {
        int now = count - done < 50 ? count - done : 50;
        for (int i = 0; i < now; i++)
            if (pthread_create(&threads[i], NULL, short_thread, NULL) != 0)
                return 1;
        for (int i = 0; i < now; i++)
            pthread_join(threads[i], NULL);
        done += now;
    }
    return 0;
}

static int run_processes(int count)
{
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (i % 2)
                execl("/bin/true", "true", (char *)NULL);
            short_thread(NULL);
            _exit(0);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) < 0)
            return 1;
    }
    return 0;
}

static int run_fork(long ns)
{
    pid_t pid = fork();
    if (pid == 0) {
        burn_in_child(ns);
        _exit(0);
    }
    burn_in_parent(ns);
    return waitpid(pid, NULL, 0) == pid ? 0 : 1;
}

static int run_library(const char *path, const char *entry)
{
    void *library = dlopen(path, RTLD_NOW);
    void *symbol = library ? dlsym(library, entry) : NULL;
    void (*work)(void);
    if (!symbol)
        return 1;
    memcpy(&work, &symbol, sizeof(work));
    work();
    return dlclose(library);
}

static void *growing_thread(void *end)
{
    while (clock_of(CLOCK_MONOTONIC) < *(long *)end)
        burn_in_thread(1000000);
    return NULL;
}

static int run_growing(long ns)
{
    long end = clock_of(CLOCK_MONOTONIC) + ns;
    pthread_t threads[64];
    int count = 0;
    for (; count < 64 && clock_of(CLOCK_MONOTONIC) < end; count++) {
        if (pthread_create(&threads[count], NULL, growing_thread, &end) != 0)
            return 1;
        usleep(5000);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static int run_step(long period_ns, long ns)
{
    long start = clock_of(CLOCK_THREAD_CPUTIME_ID);
    for (long at = start; at < start + ns; at += period_ns) {
        burn_tenth(at + period_ns / 10);
        burn_rest(at + period_ns);
    }
    return 0;
}

static APART void go_deep(long bytes, long ns)
{
    volatile char room[1024];
    room[0] = 1;
    if (bytes <= 0)
        burn_below(ns);
    else
        go_deep(bytes - (long)sizeof(room), ns);
    room[1] = room[0];
}

struct deep {
    long bytes, ns;
    int status;
};

static void *deep_thread(void *argument)
{
    struct deep *deep = argument;
    pid_t pid = fork();
    go_deep(deep->bytes, deep->ns);
    if (pid == 0)
        _exit(0);
    deep->status = waitpid(pid, NULL, 0) == pid ? 0 : 1;
    return NULL;
}

static int run_deep_thread(long bytes, long ns)
{
    pthread_t thread;
    struct deep deep = {bytes, ns, 1};
    if (pthread_create(&thread, NULL, deep_thread, &deep) != 0)
        return 1;
    pthread_join(thread, NULL);
    return deep.status;
}

/* Its first and last pages are touched by calls around it, the rest is not there. */
static APART void go_over_hole(long bytes, long ns)
{
    volatile char hole[160 << 10];
    hole[0] = 1;
    go_deep(bytes, ns);
    hole[1] = hole[0];
}

/* The same frames are left behind on the stack by each for the other to find. */
#define RECURSION(name)                                                                            \
    static APART void name(long bytes, long ns)                                                    \
    {                                                                                              \
        volatile char room[1024];                                                                  \
        room[0] = 1;                                                                               \
        if (bytes <= 0)                                                                            \
            burn_below(ns);                                                                        \
        else                                                                                       \
            name(bytes - (long)sizeof(room), ns);                                                  \
        room[1] = room[0];                                                                         \
    }
RECURSION(left)
RECURSION(right)

static int run_alternate(long ns)
{
    long end = clock_of(CLOCK_THREAD_CPUTIME_ID) + ns;
    for (long i = 0; clock_of(CLOCK_THREAD_CPUTIME_ID) < end; i++) {
        /* Of changing length, so that it is not in step with the samples. */
        left(200 << 10, 1000000 + i % 7 * 300000);
        right(300 << 10, 1000000 + i % 5 * 300000);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    long number = strtol(argv[2], NULL, 10), last = strtol(argv[argc - 1], NULL, 10);
    if (strcmp(argv[1], "threads") == 0)
        return run_threads((int)number);
    if (strcmp(argv[1], "processes") == 0)
        return run_processes((int)number);
    if (strcmp(argv[1], "fork") == 0)
        return run_fork(number * 1000000);
    if (strcmp(argv[1], "growing") == 0)
        return run_growing(number * 1000000);
    if (strcmp(argv[1], "step") == 0)
        return run_step(number, last * 1000000);
    if (strcmp(argv[1], "deep") == 0) {
        go_deep(number, last * 1000000);
        return 0;
    }
    if (strcmp(argv[1], "deep-thread") == 0)
        return run_deep_thread(number, last * 1000000);
    if (strcmp(argv[1], "hole") == 0) {
        go_over_hole(number, last * 1000000);
        return 0;
    }
    if (strcmp(argv[1], "alternate") == 0)
        return run_alternate(number * 1000000);
    if (strcmp(argv[1], "exec") == 0) {
        burn_before_exec(300000000);
        execv(argv[2], argv + 2);
    }
    if (strcmp(argv[1], "reload") == 0 && argc == 5) {
        split_part_ns = last * 10000;
        for (int i = 0; i < 2; i++)
            if (run_library(argv[2], "split_plt") || run_library(argv[3], "split_dlopen"))
                return 1;
        return 0;
    }
    return 2;
}
