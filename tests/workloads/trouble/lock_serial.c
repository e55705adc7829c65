/* One thread computes while the others have nothing to do: lock-serial CASE.
 *
 *     serial   a long preparation by one thread, then two workers share the rest
 *     shared   the preparation is shared as well (mended)
 *     busy     one thread computes all the time, and so do the workers
 *     single   there is one thread */
#include "lock_tools.h"

enum { ITEMS = 400, WORKERS = 2 };

static uint64_t items[ITEMS];

static uint64_t APART prepare(int from, int step)
{
    uint64_t sum = 0;
    for (int i = from; i < ITEMS; i += step)
        sum += items[i] = burn((uint64_t)i, 2000);
    return sum;
}

static uint64_t APART finish(int from, int step, int times)
{
    uint64_t sum = 0;
    for (int k = 0; k < times; k++)
        for (int i = from; i < ITEMS; i += step)
            sum += burn(items[i], 200);
    return sum;
}

static int shared, times = 1;
static uint64_t sums[THREADS_MAX];

static void *work(void *arg)
{
    int self = (int)(intptr_t)arg;
    if (shared)
        prepare(self, WORKERS);
    sums[self] = finish(self, WORKERS, times);
    return NULL;
}

static void *prepare_all(void *arg)
{
    prepare(0, 1);
    return arg;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "serial") == 0) {
        prepare(0, 1);
        threads_run(work, WORKERS);
    } else if (strcmp(name, "shared") == 0) {
        shared = 1;
        threads_run(work, WORKERS);
    } else if (strcmp(name, "busy") == 0) {
        pthread_t first;
        times = 10;
        if (pthread_create(&first, NULL, prepare_all, NULL) != 0)
            abort();
        threads_run(work, WORKERS);
        pthread_join(first, NULL);
    } else if (strcmp(name, "single") == 0) {
        prepare(0, 1);
        sums[0] = finish(0, 1, 1);
    } else {
        return 2;
    }
    printf("%llu\n", (unsigned long long)(items[0] ^ sums[0]));
    return 0;
}
