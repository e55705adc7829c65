/* Threads that wait for each other in known ways; each tells what it measured (waits_truth.h):
 *
 *     waits-threads lock MS              waits_for_lock() while holds_the_lock() sleeps MS
 *     waits-threads lock-busy MS         the same; the holder computes instead
 *     waits-threads lock-heap MS         the same as lock; the mutex is in allocated memory
 *     waits-threads convoy N ROUNDS      N threads; each ROUNDS times takes_the_lock() for 2 ms
 *     waits-threads fight N TOTAL        N threads take one mutex TOTAL times in all
 *     waits-threads rwlock MS            writer_starves() while readers hold it by turns for MS
 *     waits-threads condition MS         waits_for_condition() that b_sleeps() MS before
 *     waits-threads semaphore MS         waits_for_semaphore()
 *     waits-threads barrier MS           waits_at_barrier()
 *     waits-threads idle-workers MS      two of three workers have nothing to do
 *     waits-threads many N               N threads at once wait behind one lock
 *     waits-threads short N              N threads, 50 at a time, sleep 1 ms each */
#include "apart.h"
#include "asleep.h"
#include "waits_truth.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#define STAY __asm__ volatile("" ::: "memory")
enum { THREADS_MAX = 20000, STACK_BYTES = 64 << 10 };

/* Names that a lock can be known by. */
pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t convoy_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t the_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t condition_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t the_condition = PTHREAD_COND_INITIALIZER;
static sem_t the_semaphore;
static pthread_barrier_t the_barrier;

static atomic_int held, got, stop;
static int condition_met;

static pthread_t start(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int r = pthread_create(&thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    truth_need(r == 0, "pthread_create");
    return thread;
}

/* Seldom: of one thread only so many stacks are copied before whyslow has come by (asleep.h). */
static void wait_until(atomic_int *what, int value)
{
    for (long ns = NS_PER_MS / 10; atomic_load(what) < value; ns *= ns < 20 * NS_PER_MS ? 2 : 1)
        truth_sleep(ns);
}

/* ---- one lock, one holder, one waiter ---- */

struct holding {
    pthread_mutex_t *lock;
    long ns;
    int busy;
};

static APART void holds_the_lock(const struct holding *holding)
{
    struct truth truth = {0};
    struct truth_span span = truth_begin();
    pthread_mutex_lock(holding->lock);
    atomic_store(&held, 1);
    if (holding->busy)
        truth_burn(holding->ns);
    else
        truth_sleep(holding->ns);
    asleep_wait_main(holding->lock); /* who comes late would find it free */
    pthread_mutex_unlock(holding->lock);
    truth_end(&truth, &span);
    truth_tell("holds_the_lock", &truth);
}

static void *holder(void *argument)
{
    long start_ns = truth_clock(CLOCK_MONOTONIC);
    holds_the_lock(argument);
    wait_until(&got, 1); /* a holder that is gone can tell nobody what it did */
    truth_tell_life(start_ns);
    return NULL;
}

static APART void waits_for_lock(pthread_mutex_t *lock, struct truth *truth)
{
    struct truth_span span = truth_begin();
    pthread_mutex_lock(lock);
    truth_end(truth, &span);
    pthread_mutex_unlock(lock);
}

static int run_lock(pthread_mutex_t *lock, long ms, int busy)
{
    struct truth truth = {0};
    struct holding holding = {lock, ms * NS_PER_MS, busy};
    pthread_t thread = start(holder, &holding);
    wait_until(&held, 1);
    waits_for_lock(lock, &truth);
    atomic_store(&got, 1);
    truth_tell("waits_for_lock", &truth);
    pthread_join(thread, NULL);
    return 0;
}

static int run_lock_heap(long ms)
{
    pthread_mutex_t *lock = malloc(sizeof(*lock));
    truth_need(lock != NULL, "malloc");
    pthread_mutex_init(lock, NULL);
    int r = run_lock(lock, ms, 0);
    free(lock);
    return r;
}

/* ---- convoy ---- */

static long convoy_rounds;
static atomic_int convoy_ready;
static int convoy_count;

static APART void takes_the_lock(struct truth *truth)
{
    struct truth_span span = truth_begin();
    pthread_mutex_lock(&convoy_lock);
    truth_end(truth, &span);
}

static APART void holds_in_convoy(struct truth *truth)
{
    struct truth_span span = truth_begin();
    truth_sleep(2 * NS_PER_MS);
    truth_end(truth, &span);
}

static void *convoy_thread(void *unused)
{
    long start_ns = truth_clock(CLOCK_MONOTONIC);
    struct truth waits = {0}, holds = {0};
    atomic_fetch_add(&convoy_ready, 1);
    wait_until(&convoy_ready, convoy_count);
    for (long i = 0; i < convoy_rounds; i++) {
        takes_the_lock(&waits);
        holds_in_convoy(&holds);
        pthread_mutex_unlock(&convoy_lock);
        /* Others come first: glibc's mutex is not fair, and the same thread would take it again. */
        truth_sleep(NS_PER_MS / 2);
    }
    truth_tell("takes_the_lock", &waits);
    truth_tell("holds_in_convoy", &holds);
    truth_tell_life(start_ns);
    return unused;
}

static int run_convoy(int count, long rounds)
{
    pthread_t threads[64];
    convoy_rounds = rounds;
    convoy_count = count = count > 64 ? 64 : count;
    for (int i = 0; i < count; i++)
        threads[i] = start(convoy_thread, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static long fight_each;
static volatile unsigned long fight_sum;

static void *fighter(void *unused)
{
    pthread_barrier_wait(&the_barrier);
    for (long i = 0; i < fight_each; i++) {
        pthread_mutex_lock(&the_lock);
        fight_sum += (unsigned long)i;
        pthread_mutex_unlock(&the_lock);
    }
    return unused;
}

static int run_fight(int count, long total)
{
    pthread_t threads[64];
    count = count > 64 ? 64 : count;
    fight_each = total / count;
    pthread_barrier_init(&the_barrier, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++)
        threads[i] = start(fighter, NULL);
    long start_ns = truth_clock(CLOCK_MONOTONIC);
    pthread_barrier_wait(&the_barrier);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    truth_tell_number("wall_ms", (double)(truth_clock(CLOCK_MONOTONIC) - start_ns) / 1e6);
    return 0;
}

/* ---- a writer that readers keep out ---- */

static APART void holds_for_reading(void)
{
    pthread_rwlock_rdlock(&the_rwlock);
    atomic_fetch_add(&held, 1);
    truth_sleep(10 * NS_PER_MS);
    pthread_rwlock_unlock(&the_rwlock);
}

/* Three of them, out of step, each with a hold around its rounds, so that the lock never comes
 * free by chance on a busy machine: glibc prefers readers, and the writer waits for all. */
static void *reader(void *unused)
{
    pthread_rwlock_rdlock(&the_rwlock);
    while (!atomic_load(&stop)) {
        holds_for_reading();
        STAY;
    }
    pthread_rwlock_unlock(&the_rwlock);
    return unused;
}

static APART void writer_starves(struct truth *truth)
{
    struct truth_span span = truth_begin();
    pthread_rwlock_wrlock(&the_rwlock);
    truth_end(truth, &span);
    pthread_rwlock_unlock(&the_rwlock);
}

static atomic_int writer_tid;

static void *writer(void *unused)
{
    atomic_store(&writer_tid, (int)syscall(SYS_gettid));
    long start_ns = truth_clock(CLOCK_MONOTONIC);
    struct truth truth = {0};
    writer_starves(&truth);
    truth_tell("writer_starves", &truth);
    truth_tell_life(start_ns);
    return unused;
}

static int run_rwlock(long ms)
{
    pthread_t readers[3];
    for (int i = 0; i < 3; i++) {
        readers[i] = start(reader, NULL);
        truth_sleep(3 * NS_PER_MS);
    }
    wait_until(&held, 3);
    pthread_t thread = start(writer, NULL);
    truth_sleep(ms * NS_PER_MS);
    wait_until(&writer_tid, 1);
    asleep_wait(getpid(), atomic_load(&writer_tid), SYS_futex, ASLEEP_ANY);
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    pthread_join(thread, NULL);
    return 0;
}

/* ---- two hops, and the other kinds ---- */

static APART void b_sleeps(long ns, struct truth *truth)
{
    struct truth_span span = truth_begin();
    truth_sleep(ns);
    asleep_wait_main(NULL);
    truth_end(truth, &span);
}

static void *thread_b(void *ms)
{
    long start_ns = truth_clock(CLOCK_MONOTONIC);
    struct truth truth = {0};
    b_sleeps(*(long *)ms * NS_PER_MS, &truth);
    truth_tell("b_sleeps", &truth);
    pthread_mutex_lock(&condition_mutex);
    condition_met = 1;
    pthread_cond_signal(&the_condition);
    pthread_mutex_unlock(&condition_mutex);
    sem_post(&the_semaphore);
    pthread_barrier_wait(&the_barrier);
    truth_tell_life(start_ns);
    return NULL;
}

static APART void waits_for_condition(struct truth *truth)
{
    pthread_mutex_lock(&condition_mutex);
    struct truth_span span = truth_begin();
    while (!condition_met)
        pthread_cond_wait(&the_condition, &condition_mutex);
    truth_end(truth, &span);
    pthread_mutex_unlock(&condition_mutex);
}

static APART void waits_for_semaphore(struct truth *truth)
{
    struct truth_span span = truth_begin();
    sem_wait(&the_semaphore);
    truth_end(truth, &span);
}

static APART void waits_at_barrier(struct truth *truth)
{
    struct truth_span span = truth_begin();
    pthread_barrier_wait(&the_barrier);
    truth_end(truth, &span);
}

static int run_for_b(long ms, const char *function)
{
    struct truth truth = {0};
    sem_init(&the_semaphore, 0, 0);
    int at_barrier = strcmp(function, "waits_at_barrier") == 0;
    pthread_barrier_init(&the_barrier, NULL, at_barrier ? 2 : 1);
    pthread_t thread = start(thread_b, &ms);
    if (at_barrier)
        waits_at_barrier(&truth);
    else if (strcmp(function, "waits_for_semaphore") == 0)
        waits_for_semaphore(&truth);
    else
        waits_for_condition(&truth);
    truth_tell(function, &truth);
    pthread_join(thread, NULL);
    return 0;
}

/* ---- workers, of which most have nothing to do ---- */

static pthread_cond_t work_condition = PTHREAD_COND_INITIALIZER;

static APART void idles_for_work(struct truth *truth)
{
    pthread_mutex_lock(&condition_mutex);
    struct truth_span span = truth_begin();
    while (!condition_met)
        pthread_cond_wait(&work_condition, &condition_mutex);
    truth_end(truth, &span);
    pthread_mutex_unlock(&condition_mutex);
}

static void *idle_worker(void *unused)
{
    long start_ns = truth_clock(CLOCK_MONOTONIC);
    struct truth truth = {0};
    idles_for_work(&truth);
    truth_tell("idles_for_work", &truth);
    truth_tell_life(start_ns);
    return unused;
}

static APART void main_works(long ns, struct truth *truth)
{
    struct truth_span span = truth_begin();
    truth_burn(ns);
    truth_end(truth, &span);
}

static int run_idle_workers(long ms)
{
    struct truth truth = {0};
    pthread_t threads[2] = {start(idle_worker, NULL), start(idle_worker, NULL)};
    main_works(ms * NS_PER_MS, &truth);
    truth_tell("main_works", &truth);
    pthread_mutex_lock(&condition_mutex);
    condition_met = 1;
    pthread_cond_broadcast(&work_condition);
    pthread_mutex_unlock(&condition_mutex);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* ---- very many ---- */

static atomic_int many_begun;
static atomic_long many_wall_ns, many_cpu_ns, many_switches;

static APART void waits_among_many(void)
{
    struct truth truth = {0};
    struct truth_span span = truth_begin();
    pthread_mutex_lock(&the_lock);
    truth_end(&truth, &span);
    pthread_mutex_unlock(&the_lock);
    atomic_fetch_add(&many_wall_ns, truth.wall_ns);
    atomic_fetch_add(&many_cpu_ns, truth.cpu_ns);
    atomic_fetch_add(&many_switches, truth.switches);
}

static void *one_of_many(void *unused)
{
    atomic_fetch_add(&many_begun, 1);
    waits_among_many();
    return unused;
}

static int run_many(int count)
{
    static pthread_t threads[THREADS_MAX];
    count = count > THREADS_MAX ? THREADS_MAX : count;
    pthread_mutex_lock(&the_lock);
    for (int i = 0; i < count; i++)
        threads[i] = start(one_of_many, NULL);
    wait_until(&many_begun, count);
    truth_sleep(300 * NS_PER_MS);
    pthread_mutex_unlock(&the_lock);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    struct truth sum = {
        .wall_ns = many_wall_ns, .cpu_ns = many_cpu_ns, .calls = count, .switches = many_switches};
    truth_tell_of("waits_among_many", &sum, 0);
    return 0;
}

static APART void sleeps_shortly(struct truth *truth)
{
    struct truth_span span = truth_begin();
    truth_sleep(NS_PER_MS);
    truth_end(truth, &span);
}

static void *short_thread(void *truth)
{
    sleeps_shortly(truth);
    return NULL;
}

static int run_short(int count)
{
    struct truth sum = {0};
    for (int done = 0; done < count;) {
        struct truth truths[50] = {0};
        pthread_t threads[50];
        int now = count - done < 50 ? count - done : 50;
        for (int i = 0; i < now; i++)
            threads[i] = start(short_thread, &truths[i]);
        for (int i = 0; i < now; i++) {
            pthread_join(threads[i], NULL);
            sum.wall_ns += truths[i].wall_ns;
            sum.cpu_ns += truths[i].cpu_ns;
            sum.calls += truths[i].calls;
            sum.switches += truths[i].switches;
        }
        done += now;
    }
    truth_tell_of("sleeps_shortly", &sum, 0);
    return 0;
}

static int run(const char *what, long first, long second)
{
    static const struct {
        const char *name, *function;
    } for_b[] = {{"condition", "waits_for_condition"},
                 {"semaphore", "waits_for_semaphore"},
                 {"barrier", "waits_at_barrier"}};
    for (size_t i = 0; i < sizeof(for_b) / sizeof(for_b[0]); i++)
        if (strcmp(what, for_b[i].name) == 0)
            return run_for_b(first, for_b[i].function);
    if (strcmp(what, "lock") == 0 || strcmp(what, "lock-busy") == 0)
        return run_lock(&the_lock, first, what[4] != 0);
    if (strcmp(what, "lock-heap") == 0)
        return run_lock_heap(first);
    if (strcmp(what, "convoy") == 0)
        return run_convoy((int)first, second);
    if (strcmp(what, "fight") == 0)
        return run_fight((int)first, second);
    if (strcmp(what, "rwlock") == 0)
        return run_rwlock(first);
    if (strcmp(what, "idle-workers") == 0)
        return run_idle_workers(first);
    if (strcmp(what, "many") == 0)
        return run_many((int)first);
    if (strcmp(what, "short") == 0)
        return run_short((int)first);
    return 2;
}

int main(int argc, char **argv)
{
    long start_ns = truth_clock(CLOCK_MONOTONIC);
    long first = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    long second = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    int r = first > 0 ? run(argv[1], first, second) : 2;
    if (r == 2)
        fprintf(stderr, "waits-threads WHAT NUMBER…: see the top of waits_threads.c\n");
    else
        truth_tell_life(start_ns);
    return r;
}
