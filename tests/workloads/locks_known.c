/* Locks whose waits and holds are known: locks_known CASE. What was asked for is measured here,
 * too, and printed: a machine that is busy makes sleeps longer. */
#include "apart.h"
#include "asleep.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { CONVOY_THREADS = 8, CONVOY_ROUNDS = 25, HOT_THREADS = 8, PATHS = 16 };

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void sleep_ms(long ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        ;
}

static int tid(void)
{
    return (int)syscall(SYS_gettid);
}

static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *lock = &queue_mutex;
static atomic_ullong waited_ns, held_ns;
static pthread_barrier_t together;

static long hold_us = 2000;
static int rounds = CONVOY_ROUNDS;

static void APART work_under_lock(void)
{
    uint64_t start = now_ns();
    pthread_mutex_lock(lock);
    uint64_t got = now_ns();
    usleep((useconds_t)hold_us);
    uint64_t end = now_ns();
    pthread_mutex_unlock(lock);
    waited_ns += got - start;
    held_ns += end - got;
}

static void *convoy_thread(void *arg)
{
    pthread_barrier_wait(&together);
    for (int i = 0; i < rounds; i++)
        work_under_lock();
    return arg;
}

static void threads_run(void *(*run)(void *), int count)
{
    pthread_t threads[64];
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i) != 0)
            abort();
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void convoy(void)
{
    pthread_barrier_init(&together, NULL, CONVOY_THREADS);
    threads_run(convoy_thread, CONVOY_THREADS);
    printf("waited %llu held %llu\n", waited_ns, held_ns);
}

/* Two threads in turn: waits that are too short to be told one by one. */
static void short_holds(void)
{
    hold_us = 50;
    rounds = 1000;
    pthread_barrier_init(&together, NULL, 2);
    threads_run(convoy_thread, 2);
    printf("waited %llu held %llu\n", waited_ns, held_ns);
}

/* One blocking call reached by many ways of equal depth: the stack pointer is the same in all of
 * them, so that only the return addresses tell. */
static long APART blocks(long path)
{
    uint64_t start = now_ns();
    pthread_mutex_lock(lock);
    uint64_t got = now_ns();
    pthread_mutex_unlock(lock);
    waited_ns += got - start;
    return path;
}

#define PATH(n)                                                                                    \
    static long APART path_##n(long x)                                                             \
    {                                                                                              \
        return blocks(x) + (n) + 1;                                                                \
    }
PATH(0)
PATH(1)
PATH(2)
PATH(3)
PATH(4)
PATH(5)
PATH(6)
PATH(7)
PATH(8)
PATH(9)
PATH(10)
PATH(11)
PATH(12)
PATH(13)
PATH(14)
PATH(15)

static atomic_int round_number, rounds_done, paths_tid;
static long path_sum;

static void *paths_thread(void *arg)
{
    static long (*const paths[PATHS])(long) = {path_0,  path_1,  path_2,  path_3, path_4,  path_5,
                                               path_6,  path_7,  path_8,  path_9, path_10, path_11,
                                               path_12, path_13, path_14, path_15};
    (void)arg;
    paths_tid = tid();
    for (int i = 0; i < 20 * PATHS; i++) {
        while (round_number <= i)
            sched_yield();
        path_sum += paths[i * 7 % PATHS](i);
        rounds_done = i + 1;
    }
    return NULL;
}

/* Each way waits 20 times, while the main thread has the lock. */
static void paths(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, paths_thread, NULL);
    for (int i = 0; i < 20 * PATHS; i++) {
        pthread_mutex_lock(lock);
        round_number = i + 1;
        sleep_ms(1);
        while (!paths_tid)
            sched_yield();
        asleep_wait(getpid(), paths_tid, SYS_futex, (unsigned long)lock);
        pthread_mutex_unlock(lock);
        while (rounds_done <= i)
            sched_yield();
    }
    pthread_join(thread, NULL);
    printf("waited %llu paths %d\n", waited_ns, PATHS);
}

static atomic_int has_lock;

static void *holder(void *arg)
{
    pthread_mutex_lock(lock);
    has_lock = tid();
    sleep_ms(200);
    asleep_wait_main(lock);
    pthread_mutex_unlock(lock);
    return arg;
}

static void owner(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, holder, NULL);
    while (!has_lock)
        sched_yield();
    work_under_lock();
    pthread_join(thread, NULL);
    printf("waited %llu owner %d waiter %d lock %llx\n", waited_ns, has_lock, tid(),
           (unsigned long long)(uintptr_t)lock);
    waited_ns = 0;
    has_lock = 0;
}

static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static int rung;
static sem_t semaphore;
static atomic_int ringer_tid;

static void *ringer(void *arg)
{
    ringer_tid = tid();
    sleep_ms(100);
    asleep_wait_main(NULL); /* for the bell: it has the lock until then */
    pthread_mutex_lock(lock);
    rung = 1;
    pthread_cond_signal(&bell);
    pthread_mutex_unlock(lock);
    sleep_ms(100);
    asleep_wait_main(NULL); /* nothing else is left to wait for */
    sem_post(&semaphore);
    sleep_ms(50);
    return arg;
}

static void rings(void)
{
    pthread_t thread;
    sem_init(&semaphore, 0, 0);
    pthread_mutex_lock(lock);
    uint64_t start = now_ns();
    pthread_create(&thread, NULL, ringer, NULL);
    while (!rung)
        pthread_cond_wait(&bell, lock);
    uint64_t after = now_ns();
    pthread_mutex_unlock(lock);
    sem_wait(&semaphore);
    uint64_t end = now_ns();
    pthread_join(thread, NULL);
    printf("condition %llu semaphore %llu ringer %d\n", (unsigned long long)(after - start),
           (unsigned long long)(end - after), ringer_tid);
}

static void *stuck(void *arg)
{
    pthread_mutex_lock(lock);
    return arg;
}

/* Never ends: both wait for a lock that nobody gives back. */
static void hang(void)
{
    pthread_t thread;
    pthread_mutex_lock(lock);
    pthread_create(&thread, NULL, stuck, NULL);
    printf("hangs\n");
    fflush(stdout);
    pthread_join(thread, NULL);
}

/* On a stack that is not a thread's, with nothing behind it. */
static ucontext_t outside, inside;

static void fiber_runs(void)
{
    owner();
    swapcontext(&inside, &outside);
}

static void fiber(void)
{
    enum { STACK_BYTES = 64 << 10, HOLE_BYTES = 64 << 10 };
    char *memory = mmap(NULL, STACK_BYTES + HOLE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + STACK_BYTES, HOLE_BYTES, PROT_NONE) != 0)
        abort();
    getcontext(&inside);
    inside.uc_stack.ss_sp = memory;
    inside.uc_stack.ss_size = STACK_BYTES;
    makecontext(&inside, fiber_runs, 0);
    swapcontext(&outside, &inside);
}

static long hot_count;
static long hot_rounds = 250000;

static void *hot_thread(void *arg)
{
    for (long i = 0; i < hot_rounds; i++) {
        pthread_mutex_lock(lock);
        hot_count++;
        pthread_mutex_unlock(lock);
    }
    return arg;
}

static void hot(void)
{
    uint64_t start = now_ns();
    threads_run(hot_thread, HOT_THREADS);
    printf("count %ld ns %llu\n", hot_count, (unsigned long long)(now_ns() - start));
}

/* A child by fork, a grandchild by exec: each has a lock that is waited for, as had the parent
 * before. */
static void tree(const char *self)
{
    owner();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        owner();
        fflush(stdout);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            execl(self, self, "owner", NULL);
            _exit(127);
        }
        waitpid(grandchild, NULL, 0);
        exit(0);
    }
    waitpid(pid, NULL, 0);
    owner();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 2)
        hot_rounds = atol(argv[2]);
    if (strcmp(what, "convoy") == 0)
        convoy();
    else if (strcmp(what, "short") == 0)
        short_holds();
    else if (strcmp(what, "paths") == 0)
        paths();
    else if (strcmp(what, "owner") == 0)
        owner();
    else if (strcmp(what, "rings") == 0)
        rings();
    else if (strcmp(what, "hang") == 0)
        hang();
    else if (strcmp(what, "fiber") == 0)
        fiber();
    else if (strcmp(what, "hot") == 0)
        hot();
    else if (strcmp(what, "tree") == 0)
        tree(argv[0]);
    else
        return 2;
    return 0;
}
