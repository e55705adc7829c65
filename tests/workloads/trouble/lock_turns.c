/* Threads that take turns at one lock, and the same work mended: lock-turns CASE.
 *
 *     hot      two threads compute under one lock
 *     convoy   eight threads compute under one lock for a moment each
 *     … apart  the same threads, rounds and work, but each has a lock of its own
 *     alone    one thread takes a lock millions of times, nobody else wants it
 *     once     eight threads queue at one lock once, at the beginning
 *     idle     workers wait for a condition that hardly ever comes, while one computes */
#include "lock_tools.h"

static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t own_mutex[THREADS_MAX];
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static int has_news;
static uint64_t table[THREADS_MAX];
static int rounds, apart;
static long inside_units, outside_units;

static void APART table_update(int self)
{
    pthread_mutex_t *mutex = apart ? &own_mutex[self] : &table_mutex;
    pthread_mutex_lock(mutex);
    table[self] = burn(table[self], inside_units);
    pthread_mutex_unlock(mutex);
}

static void *turns(void *arg)
{
    int self = (int)(intptr_t)arg;
    uint64_t x = (uint64_t)self;
    for (int i = 0; i < rounds; i++) {
        x = burn(x, outside_units);
        table_update(self);
    }
    table[self] ^= x;
    return NULL;
}

static void *once(void *arg)
{
    int self = (int)(intptr_t)arg;
    table_update(self);
    table[self] ^= burn(1, outside_units);
    return NULL;
}

static void *reader(void *arg)
{
    int self = (int)(intptr_t)arg;
    pthread_mutex_lock(&table_mutex);
    while (!has_news)
        pthread_cond_wait(&news, &table_mutex);
    pthread_mutex_unlock(&table_mutex);
    table[self] = burn(table[self], 1000);
    return NULL;
}

static void idle(void)
{
    pthread_t threads[4];
    for (intptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, reader, (void *)i);
    for (int i = 0; i < 20; i++)
        table[8] = burn(table[8], 20000);
    pthread_mutex_lock(&table_mutex);
    has_news = 1;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&table_mutex);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    apart = argc > 2 && strcmp(argv[2], "apart") == 0;
    for (int i = 0; i < THREADS_MAX; i++)
        pthread_mutex_init(&own_mutex[i], NULL);
    inside_units = 400;
    outside_units = 40;
    if (strcmp(name, "hot") == 0) {
        rounds = 1000;
        threads_run(turns, 2);
    } else if (strcmp(name, "convoy") == 0) {
        rounds = 250;
        threads_run(turns, 8);
    } else if (strcmp(name, "alone") == 0) {
        rounds = 20000000;
        inside_units = outside_units = 0;
        threads_run(turns, 1);
    } else if (strcmp(name, "once") == 0) {
        inside_units = 300;
        outside_units = 100000;
        threads_run(once, 8);
    } else if (strcmp(name, "idle") == 0) {
        idle();
    } else {
        return 2;
    }
    uint64_t sum = 0;
    for (int i = 0; i < THREADS_MAX; i++)
        sum ^= table[i];
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
