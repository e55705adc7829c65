/* What pthread calls promise, one line a promise: with our library loaded and without it, the
 * output must be the same. Nothing here depends on how fast the machine is. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const char *text(int error)
{
    return error == 0 ? "0" : strerrorname_np(error);
}

static void say(const char *what, int r)
{
    printf("%s: %s\n", what, text(r));
}

static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    long ns = ts.tv_nsec + ms % 1000 * 1000000 + 1000000000;
    ts.tv_sec += ms / 1000 + ns / 1000000000 - 1;
    ts.tv_nsec = ns % 1000000000;
    return ts;
}

static void sleep_ms(long ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&ts, NULL);
}

static pthread_t start(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, arg) != 0)
        abort();
    return thread;
}

static pthread_mutex_t mutex_of(int type, int protocol, int robust)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, type);
    pthread_mutexattr_setprotocol(&attr, protocol);
    pthread_mutexattr_setrobust(&attr, robust);
    if (pthread_mutex_init(&mutex, &attr) != 0)
        printf("mutex of type %d, protocol %d cannot be had\n", type, protocol);
    pthread_mutexattr_destroy(&attr);
    return mutex;
}

static void *lock_and_leave(void *mutex)
{
    return (void *)(long)pthread_mutex_lock(mutex);
}

static void *try_other(void *mutex)
{
    return (void *)(long)pthread_mutex_trylock(mutex);
}

static void *unlock_other(void *mutex)
{
    return (void *)(long)pthread_mutex_unlock(mutex);
}

static int in_thread(void *(*run)(void *), void *arg)
{
    void *result = NULL;
    pthread_join(start(run, arg), &result);
    return (int)(long)result;
}

static void recursive(void)
{
    pthread_mutex_t mutex = mutex_of(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, 0);
    for (int i = 0; i < 200; i++)
        if (pthread_mutex_lock(&mutex) != 0)
            say("recursive lock failed", EINVAL);
    say("recursive trylock by the owner", pthread_mutex_trylock(&mutex));
    say("recursive trylock by another", in_thread(try_other, &mutex));
    for (int i = 0; i < 201; i++)
        if (pthread_mutex_unlock(&mutex) != 0)
            say("recursive unlock failed", EINVAL);
    say("recursive unlock once too often", pthread_mutex_unlock(&mutex));
    say("recursive trylock by another, free", in_thread(try_other, &mutex));
}

static void errorcheck(void)
{
    pthread_mutex_t mutex = mutex_of(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, 0);
    struct timespec until = in_ms(CLOCK_REALTIME, 10000);
    struct timespec mono = in_ms(CLOCK_MONOTONIC, 10000);
    say("errorcheck lock", pthread_mutex_lock(&mutex));
    say("errorcheck lock by the owner", pthread_mutex_lock(&mutex));
    say("errorcheck timedlock by the owner", pthread_mutex_timedlock(&mutex, &until));
    say("errorcheck clocklock by the owner",
        pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &mono));
    say("errorcheck trylock by the owner", pthread_mutex_trylock(&mutex));
    say("errorcheck unlock by another", in_thread(unlock_other, &mutex));
    say("errorcheck unlock", pthread_mutex_unlock(&mutex));
    say("errorcheck unlock, free", pthread_mutex_unlock(&mutex));
}

static void robust(int protocol)
{
    pthread_mutex_t mutex = mutex_of(PTHREAD_MUTEX_NORMAL, protocol, PTHREAD_MUTEX_ROBUST);
    say("robust lock, left behind", in_thread(lock_and_leave, &mutex));
    say("robust lock after", pthread_mutex_lock(&mutex));
    say("robust consistent", pthread_mutex_consistent(&mutex));
    say("robust unlock", pthread_mutex_unlock(&mutex));
    say("robust lock again", pthread_mutex_lock(&mutex));
    say("robust unlock again", pthread_mutex_unlock(&mutex));
    say("robust lock, left behind again", in_thread(lock_and_leave, &mutex));
    say("robust lock after that", pthread_mutex_lock(&mutex));
    say("robust unlock without consistent", pthread_mutex_unlock(&mutex));
    say("robust lock of what is lost", pthread_mutex_lock(&mutex));
    say("robust lock of what is lost by another", in_thread(lock_and_leave, &mutex));
    say("robust trylock of what is lost", pthread_mutex_trylock(&mutex));
}

struct robust_wait {
    pthread_mutex_t mutex;
    atomic_int locked, waiting;
};

static void *robust_dies(void *arg)
{
    struct robust_wait *wait = arg;
    pthread_mutex_lock(&wait->mutex);
    wait->locked = 1;
    while (!wait->waiting)
        sleep_ms(1);
    sleep_ms(30); /* long enough for the other to be in the call */
    return NULL;
}

/* The owner dies while somebody waits. */
static void robust_contended(void)
{
    struct robust_wait wait = {
        .mutex = mutex_of(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST)};
    pthread_t thread = start(robust_dies, &wait);
    while (!wait.locked)
        sleep_ms(1);
    wait.waiting = 1;
    say("robust lock while the owner dies", pthread_mutex_lock(&wait.mutex));
    pthread_mutex_consistent(&wait.mutex);
    say("robust unlock then", pthread_mutex_unlock(&wait.mutex));
    pthread_join(thread, NULL);
}

static void inherit(void)
{
    pthread_mutex_t mutex = mutex_of(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_INHERIT, 0);
    say("inherit lock", pthread_mutex_lock(&mutex));
    say("inherit lock by the owner", pthread_mutex_lock(&mutex));
    say("inherit trylock by another", in_thread(try_other, &mutex));
    say("inherit unlock", pthread_mutex_unlock(&mutex));
}

static void timed(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct timespec past = in_ms(CLOCK_REALTIME, -1000), bad = {.tv_nsec = 1000000000};
    struct timespec soon = in_ms(CLOCK_REALTIME, 20), mono = in_ms(CLOCK_MONOTONIC, 20);
    say("timedlock of a free one in the past", pthread_mutex_timedlock(&mutex, &past));
    say("timedlock of a taken one in the past", pthread_mutex_timedlock(&mutex, &past));
    say("timedlock of a taken one", pthread_mutex_timedlock(&mutex, &soon));
    say("clocklock of a taken one", pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &mono));
    say("clocklock by a clock that is none", pthread_mutex_clocklock(&mutex, 77, &mono));
    say("timedlock of a taken one with a bad time", pthread_mutex_timedlock(&mutex, &bad));
    pthread_mutex_unlock(&mutex);
    say("timedlock of a free one with a bad time", pthread_mutex_timedlock(&mutex, &bad));
}

static void *read_other(void *lock)
{
    return (void *)(long)pthread_rwlock_tryrdlock(lock);
}

static void *write_other(void *lock)
{
    return (void *)(long)pthread_rwlock_trywrlock(lock);
}

static void readers_writers(void)
{
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    struct timespec soon = in_ms(CLOCK_REALTIME, 20), bad = {.tv_nsec = -1};
    struct timespec mono = in_ms(CLOCK_MONOTONIC, 20);
    say("wrlock", pthread_rwlock_wrlock(&lock));
    say("rdlock by the writer", pthread_rwlock_rdlock(&lock));
    say("wrlock by the writer", pthread_rwlock_wrlock(&lock));
    say("tryrdlock by another", in_thread(read_other, &lock));
    say("unlock", pthread_rwlock_unlock(&lock));
    say("rdlock", pthread_rwlock_rdlock(&lock));
    say("rdlock twice", pthread_rwlock_rdlock(&lock));
    say("trywrlock by another", in_thread(write_other, &lock));
    say("timedwrlock by a reader", pthread_rwlock_timedwrlock(&lock, &soon));
    say("clockwrlock by a reader", pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &mono));
    say("timedrdlock with a bad time", pthread_rwlock_timedrdlock(&lock, &bad));
    say("clockrdlock", pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &mono));
    for (int i = 0; i < 3; i++)
        pthread_rwlock_unlock(&lock);
    say("timedwrlock of a free one with a bad time", pthread_rwlock_timedwrlock(&lock, &bad));
    say("trywrlock of a free one", pthread_rwlock_trywrlock(&lock));
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static int rung;

static void cleanup(void *arg)
{
    /* A cancelled wait owns the mutex again. */
    say("cancelled wait has its mutex", pthread_mutex_trylock(&gate) == EBUSY ? 0 : EINVAL);
    pthread_mutex_unlock(&gate);
    *(atomic_int *)arg += 1;
}

static void *cancelled_in_wait(void *arg)
{
    pthread_mutex_lock(&gate);
    pthread_cleanup_push(cleanup, arg);
    for (;;)
        pthread_cond_wait(&bell, &gate);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *cancelled_in_semaphore(void *arg)
{
    for (;;)
        sem_wait(arg);
    return NULL;
}

/* Cancellation is pending and the semaphore is free: the wait is a point of it even so. */
static void *cancelled_before(void *arg)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    sem_wait(arg);
    return NULL;
}

static void *rings(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&gate);
    rung = 1;
    pthread_cond_signal(&bell);
    pthread_mutex_unlock(&gate);
    return NULL;
}

static void conditions(void)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 20), bad = {.tv_nsec = 2000000000};
    struct timespec mono = in_ms(CLOCK_MONOTONIC, 20);
    pthread_mutex_t strict = mutex_of(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, 0);
    atomic_int cleaned = 0;
    void *result;
    pthread_mutex_lock(&gate);
    pthread_t thread = start(rings, NULL);
    while (!rung)
        pthread_cond_wait(&bell, &gate);
    say("cond_timedwait that nobody ends", pthread_cond_timedwait(&bell, &gate, &soon));
    say("cond_clockwait that nobody ends",
        pthread_cond_clockwait(&bell, &gate, CLOCK_MONOTONIC, &mono));
    say("cond_timedwait with a bad time", pthread_cond_timedwait(&bell, &gate, &bad));
    pthread_mutex_unlock(&gate);
    pthread_join(thread, NULL);
    say("cond_wait without its mutex", pthread_cond_wait(&bell, &strict));
    thread = start(cancelled_in_wait, &cleaned);
    sleep_ms(20);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cond_wait was %s, cleaned up %d times\n",
           result == PTHREAD_CANCELED ? "cancelled" : "not cancelled", cleaned);
    say("mutex after a cancelled wait", pthread_mutex_trylock(&gate));
    pthread_mutex_unlock(&gate);
}

static void semaphores(void)
{
    sem_t semaphore;
    struct timespec soon = in_ms(CLOCK_REALTIME, 20), bad = {.tv_nsec = -5};
    struct timespec mono = in_ms(CLOCK_MONOTONIC, 20);
    void *result;
    sem_init(&semaphore, 0, 1);
    errno = EDOM;
    say("sem_wait", sem_wait(&semaphore) == 0 ? 0 : errno);
    say("errno after it", errno);
    say("sem_trywait", sem_trywait(&semaphore) == 0 ? 0 : errno);
    say("sem_timedwait", sem_timedwait(&semaphore, &soon) == 0 ? 0 : errno);
    say("sem_clockwait", sem_clockwait(&semaphore, CLOCK_MONOTONIC, &mono) == 0 ? 0 : errno);
    say("sem_clockwait by no clock", sem_clockwait(&semaphore, 77, &mono) == 0 ? 0 : errno);
    sem_post(&semaphore);
    say("sem_timedwait with a bad time", sem_timedwait(&semaphore, &bad) == 0 ? 0 : errno);
    pthread_t thread = start(cancelled_before, &semaphore);
    pthread_join(thread, &result);
    printf("sem_wait with a cancellation pending: %s\n",
           result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
    while (sem_trywait(&semaphore) == 0)
        ;
    thread = start(cancelled_in_semaphore, &semaphore);
    sleep_ms(20);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("sem_wait: %s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
}

static sem_t from_handler;
static atomic_int handled;

static void handler(int signal)
{
    (void)signal;
    handled++;
    sem_post(&from_handler);
}

/* A handler interrupts waits and everything around them; sem_post() is allowed there. */
static void *interrupted(void *arg)
{
    atomic_int *stop = arg;
    while (!*stop) {
        pthread_mutex_lock(&gate);
        sched_yield();
        pthread_mutex_unlock(&gate);
    }
    return NULL;
}

static void signals(void)
{
    atomic_int stop = 0;
    struct sigaction action = {.sa_handler = handler}; /* no SA_RESTART: sem_wait ends by EINTR */
    pthread_t threads[3];
    sem_init(&from_handler, 0, 0);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 3; i++)
        threads[i] = start(interrupted, &stop);
    for (int i = 0; i < 2000; i++) {
        pthread_kill(threads[i % 3], SIGUSR1);
        while (sem_wait(&from_handler) != 0)
            if (errno != EINTR)
                say("sem_wait", errno);
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("handlers: %d\n", handled);
}

static atomic_int may_end;

static void *lives_on(void *arg)
{
    while (!may_end)
        sleep_ms(1);
    return arg;
}

static void joins(void)
{
    struct timespec past = in_ms(CLOCK_REALTIME, -1);
    void *result = NULL;
    pthread_t thread = start(lives_on, (void *)40L);
    say("timedjoin in the past", pthread_timedjoin_np(thread, &result, &past));
    say("tryjoin", pthread_tryjoin_np(thread, &result));
    may_end = 1;
    say("join", pthread_join(thread, &result));
    printf("joined: %ld\n", (long)result);
    say("join of oneself", pthread_join(pthread_self(), NULL));
}

static pthread_barrier_t barrier;
static atomic_int serial;

static void *meets(void *arg)
{
    for (int i = 0; i < 100; i++)
        serial += pthread_barrier_wait(&barrier) != 0; /* PTHREAD_BARRIER_SERIAL_THREAD */
    return arg;
}

static void barriers(void)
{
    pthread_t threads[4];
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        threads[i] = start(meets, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("barrier: %d of 400 were the last\n", serial);
}

static long counters[3]; /* each has a lock of its own */
static pthread_spinlock_t spin;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
enum { THREADS = 1000, ROUNDS = 50 };

static void *counts(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&gate);
        counters[0]++;
        pthread_mutex_unlock(&gate);
        pthread_spin_lock(&spin);
        counters[1]++;
        pthread_spin_unlock(&spin);
        pthread_rwlock_wrlock(&shared);
        counters[2]++;
        pthread_rwlock_unlock(&shared);
    }
    return arg;
}

static void many(void)
{
    static pthread_t threads[THREADS];
    pthread_spin_init(&spin, 0);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &attr, counts, NULL) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("many: %ld %ld %ld\n", counters[0], counters[1], counters[2]);
}

/* Fork while another thread holds a lock, and has been waited for: the child has locks of its
 * own, and its first thread is another one to us. */
static void *holds_and_waits(void *arg)
{
    atomic_int *stop = arg;
    while (!*stop) {
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
    }
    return NULL;
}

static void forks(void)
{
    atomic_int stop = 0;
    pthread_t threads[2] = {start(holds_and_waits, &stop), start(holds_and_waits, &stop)};
    int good = 0;
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&gate);
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            int r = pthread_mutex_unlock(&gate);
            r |= pthread_mutex_lock(&gate) | pthread_mutex_unlock(&gate);
            pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
            pthread_mutex_lock(&own);
            r |= in_thread(try_other, &own) == EBUSY ? 0 : 1;
            _exit(r != 0);
        }
        pthread_mutex_unlock(&gate);
        int status = 1;
        waitpid(pid, &status, 0);
        good += status == 0;
    }
    stop = 1;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    printf("forks: %d of 20\n", good);
}

/* Code that comes later binds to the same functions. */
static void loads(void)
{
    void *handle = dlopen("libm.so.6", RTLD_NOW);
    int (*lock)(pthread_mutex_t *) = (int (*)(pthread_mutex_t *))dlsym(RTLD_DEFAULT,
                                                                       "pthread_mutex_lock");
    int (*unlock)(pthread_mutex_t *) = (int (*)(pthread_mutex_t *))dlsym(RTLD_DEFAULT,
                                                                         "pthread_mutex_unlock");
    printf("dlopen: %s\n", handle ? "loaded" : "not loaded");
    say("lock by a looked up function", lock(&gate));
    say("unlock by a looked up function", unlock(&gate));
    mtx_t c11;
    mtx_init(&c11, mtx_plain);
    printf("mtx: %d %d\n", mtx_lock(&c11) == thrd_success, mtx_unlock(&c11) == thrd_success);
}

/* A mutex in shared memory, between processes. */
static void between_processes(void)
{
    pthread_mutex_t *mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                                  -1, 0);
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attr);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_mutex_lock(mutex);
        sleep_ms(30);
        _exit(0); /* with the lock */
    }
    sleep_ms(10);
    int r = pthread_mutex_lock(mutex);
    /* Either before the child, which must have it then, or after it has died. */
    if (r == 0)
        pthread_mutex_unlock(mutex);
    waitpid(pid, NULL, 0);
    say("lock of another process that died", r == EOWNERDEAD || r == 0 ? 0 : r);
}

static void descriptors(void)
{
    int fd = dup(0);
    printf("the next descriptor: %d\n", fd);
    close(fd);
    printf("errno at the beginning of main: kept\n");
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (errno != 0)
        say("errno at the beginning of main", errno);
    descriptors();
    recursive();
    errorcheck();
    robust(PTHREAD_PRIO_NONE);
    robust(PTHREAD_PRIO_INHERIT);
    robust_contended();
    inherit();
    timed();
    readers_writers();
    conditions();
    semaphores();
    signals();
    joins();
    barriers();
    many();
    forks();
    loads();
    between_processes();
    return 0;
}
