/* Waits whose every count is known, for tests of the off-CPU collector. Prints what it did: how
 * often it called what may block, and how often it did block by the kernel's own count of its
 * switches.
 *
 *     offcpu-paths paths COUNT      one read() of a pipe, reached by 16 ways of equal depth and
 *                                   equal frames, in random order
 *     offcpu-paths deep COUNT       the same read under recursions of varying depth
 *     offcpu-paths pingpong COUNT   two processes and two pipes
 *     offcpu-paths exec COUNT       waits, then becomes itself again and waits elsewhere
 *     offcpu-paths plugin COUNT A B waits in code of two libraries that take turns at one address
 *     offcpu-paths mutex COUNT      two threads, one holds a lock asleep, the other waits for it;
 *                                   then the same with a lock held at work; then with one that
 *                                   inherits priorities
 *     offcpu-paths timer COUNT      sleeps, while a thread on every CPU computes
 *     offcpu-paths threads COUNT    as many threads, each waits once */
#include "apart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEPT APART

static int in_fd, back_fd; /* read here, asked for there */
static volatile int sink;

/* How often this thread has left the CPU because it had to wait. */
static long switches(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) < 0)
        exit(2);
    return usage.ru_nvcsw;
}

static long blocked; /* switches in block() so far */

/* The peer answers only when we are asked for: a read of ours blocks nearly always. */
static void peer_start(void)
{
    int there[2], back[2];
    if (pipe(there) < 0 || pipe(back) < 0)
        exit(2);
    if (fork() == 0) {
        char byte;
        close(there[0]);
        close(back[1]);
        while (read(back[0], &byte, 1) == 1) {
            /* Late enough that the other side sleeps. */
            nanosleep(&(struct timespec){0, 30000}, NULL);
            if (write(there[1], &byte, 1) != 1)
                break;
        }
        _exit(0);
    }
    close(there[1]);
    close(back[0]);
    in_fd = there[0];
    back_fd = back[1];
}

KEPT static void block(void)
{
    char byte = 0;
    if (write(back_fd, &byte, 1) != 1)
        exit(2);
    long before = switches();
    if (read(in_fd, &byte, 1) != 1)
        exit(2);
    blocked += switches() - before;
    sink++;
}

/* Frames of one size, code of one length: only return addresses tell them apart. */
#define WAY(n)                                                                                     \
    KEPT static void way_##n(void)                                                                 \
    {                                                                                              \
        volatile char room[64];                                                                    \
        room[0] = n;                                                                               \
        block();                                                                                   \
        sink += room[0];                                                                           \
    }
WAY(0)
WAY(1)
WAY(2)
WAY(3)
WAY(4)
WAY(5)
WAY(6)
WAY(7)
WAY(8)
WAY(9)
WAY(10)
WAY(11)
WAY(12)
WAY(13)
WAY(14)
WAY(15)

static void (*const ways[])(void) = {way_0, way_1, way_2,  way_3,  way_4,  way_5,  way_6,  way_7,
                                     way_8, way_9, way_10, way_11, way_12, way_13, way_14, way_15};

static unsigned random_next(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33);
}

static int paths(int count)
{
    int done[16] = {0};
    long waited[16] = {0};
    peer_start();
    for (int i = 0; i < count; i++) {
        unsigned way = random_next() % 16;
        long before = blocked;
        ways[way]();
        done[way]++;
        waited[way] += blocked - before;
    }
    for (int i = 0; i < 16; i++)
        printf("way_%d %d %ld\n", i, done[i], waited[i]);
    return 0;
}

KEPT static int dive(int depth)
{
    volatile char room[40];
    room[0] = (char)depth;
    if (depth == 0)
        block();
    else
        sink += dive(depth - 1);
    return room[0];
}

static int deep(int count)
{
    long waited[41] = {0};
    peer_start();
    for (int i = 0; i < count; i++) {
        int depth = 1 + i % 40;
        long before = blocked;
        sink += dive(depth);
        waited[depth] += blocked - before;
    }
    for (int depth = 1; depth <= 40; depth++)
        printf("%d %ld\n", depth, waited[depth]);
    return 0;
}

/* One byte; adds up how often this side had to wait for it. */
static void take(int fd)
{
    char byte = 0;
    long before = switches();
    if (read(fd, &byte, 1) != 1)
        exit(2);
    blocked += switches() - before;
}

static void give(int fd)
{
    if (write(fd, "x", 1) != 1)
        exit(2);
}

static int pingpong(int count)
{
    int there[2], back[2];
    if (pipe(there) < 0 || pipe(back) < 0)
        return 2;
    pid_t child = fork();
    for (int i = 0; i < count && child == 0; i++) {
        take(there[0]);
        give(back[1]);
    }
    for (int i = 0; i < count && child > 0; i++) {
        give(there[1]);
        take(back[0]);
    }
    printf("%d %ld\n", getpid(), blocked);
    if (child > 0)
        wait(NULL);
    return child < 0 ? 2 : 0;
}

KEPT static void before_exec(void)
{
    block();
    sink++;
}

KEPT static void after_exec(void)
{
    block();
    sink += 2; /* or it would be the same function */
}

static int exec_again(int count, char **argv)
{
    char second[] = "exec-again", *again[] = {argv[0], second, argv[2], NULL};
    peer_start();
    for (int i = 0; i < count; i++)
        before_exec();
    execv(argv[0], again);
    return 2;
}

static int exec_second(int count)
{
    peer_start();
    for (int i = 0; i < count; i++)
        after_exec();
    return 0;
}

static int plugin(int count, char **argv)
{
    peer_start();
    for (int i = 0; i < count; i++) {
        void *library = dlopen(argv[3 + i % 2], RTLD_NOW);
        void (*entry)(void (*)(void)) = NULL;
        void *found = library ? dlsym(library, "plugin_entry") : NULL;
        memcpy(&entry, &found, sizeof(entry));
        if (!entry)
            return 2;
        for (int k = 0; k < 10; k++)
            entry(block);
        printf("%p\n", found);
        dlclose(library);
    }
    printf("%ld\n", blocked);
    return 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

KEPT static void hold_asleep(void)
{
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&both);
    nanosleep(&(struct timespec){0, 5000000}, NULL);
    pthread_mutex_unlock(&lock);
}

KEPT static void wait_for_it(void)
{
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER, heir_lock;

/* 5 ms of CPU time, however long that takes. */
KEPT static void hold_at_work(void)
{
    struct timespec start, now;
    pthread_mutex_lock(&busy_lock);
    pthread_barrier_wait(&both);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < 5000000);
    pthread_mutex_unlock(&busy_lock);
}

KEPT static void wait_for_work(void)
{
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&busy_lock);
    pthread_mutex_unlock(&busy_lock);
}

KEPT static void hold_as_heir(void)
{
    pthread_mutex_lock(&heir_lock);
    pthread_barrier_wait(&both);
    nanosleep(&(struct timespec){0, 2000000}, NULL);
    pthread_mutex_unlock(&heir_lock);
}

KEPT static void wait_for_heir(void)
{
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&heir_lock);
    pthread_mutex_unlock(&heir_lock);
}

/* By turns, so that nothing is learnt of one kind alone. */
static void *holder(void *count)
{
    for (int i = 0; i < *(int *)count; i++) {
        hold_asleep();
        pthread_barrier_wait(&both);
        hold_at_work();
        pthread_barrier_wait(&both);
        hold_as_heir();
        pthread_barrier_wait(&both);
    }
    return NULL;
}

static int mutex(int count)
{
    pthread_t thread;
    pthread_mutexattr_t heir;
    pthread_mutexattr_init(&heir);
    pthread_mutexattr_setprotocol(&heir, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&heir_lock, &heir);
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, holder, &count);
    for (int i = 0; i < count; i++) {
        wait_for_it();
        pthread_barrier_wait(&both);
        wait_for_work();
        pthread_barrier_wait(&both);
        wait_for_heir();
        pthread_barrier_wait(&both);
    }
    pthread_join(thread, NULL);
    return 0;
}

static volatile int burning = 1;

static void *burner(void *unused)
{
    (void)unused;
    while (burning)
        sink++;
    return NULL;
}

static int timer(int count)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads_of[64];
    int started = 0;
    for (; started < cpus && started < 64; started++)
        if (pthread_create(&threads_of[started], NULL, burner, NULL) != 0)
            return 2;
    for (int i = 0; i < count; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    burning = 0;
    while (started-- > 0)
        pthread_join(threads_of[started], NULL);
    return 0;
}

static atomic_long slept;

static void *sleeper(void *unused)
{
    (void)unused;
    long before = switches();
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    atomic_fetch_add(&slept, switches() - before);
    return NULL;
}

static int threads(int count)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 16);
    pthread_t *all = count > 0 ? calloc((size_t)count, sizeof(*all)) : NULL;
    for (int i = 0; i < count; i++)
        if (!all || pthread_create(&all[i], &attr, sleeper, NULL) != 0)
            return 2;
    for (int i = 0; i < count; i++)
        pthread_join(all[i], NULL);
    free(all);
    printf("%ld\n", atomic_load(&slept));
    return 0;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[2]) : 0;
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "paths") == 0)
        return paths(count);
    if (strcmp(what, "deep") == 0)
        return deep(count);
    if (strcmp(what, "pingpong") == 0)
        return pingpong(count);
    if (strcmp(what, "exec") == 0)
        return exec_again(count, argv);
    if (strcmp(what, "exec-again") == 0)
        return exec_second(count);
    if (strcmp(what, "plugin") == 0 && argc > 4)
        return plugin(count, argv);
    if (strcmp(what, "mutex") == 0)
        return mutex(count);
    if (strcmp(what, "timer") == 0)
        return timer(count);
    if (strcmp(what, "threads") == 0)
        return threads(count);
    return 2;
}
