/* All are woken, one has work: lock-herd CASE.
 *
 *     all    thirty-two workers; for each job all of them are told
 *     one    the same, one of them is told (mended)
 *     share  for each job all of them are told, and each has its part of it to do
 *     tiny   four workers; jobs of some tens of microseconds, one is told */
#include "lock_tools.h"

static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static pthread_cond_t job_done = PTHREAD_COND_INITIALIZER;
static int queued, done, workers, round_number, tell_all, for_each, stopping;
static long units;
static uint64_t results[THREADS_MAX];

static void APART job_wait(int *seen)
{
    while (!stopping && (for_each ? *seen == round_number : queued == 0))
        pthread_cond_wait(&queue_filled, &queue_mutex);
    *seen = round_number;
    queued -= !for_each;
}

static void *work(void *arg)
{
    int self = (int)(intptr_t)arg, seen = 0;
    pthread_mutex_lock(&queue_mutex);
    for (;;) {
        job_wait(&seen);
        if (stopping)
            break;
        pthread_mutex_unlock(&queue_mutex);
        results[self] = burn(results[self], units);
        pthread_mutex_lock(&queue_mutex);
        done++;
        if (done == (for_each ? workers : 1))
            pthread_cond_signal(&job_done);
    }
    pthread_mutex_unlock(&queue_mutex);
    return NULL;
}

static void APART job_give(void)
{
    pthread_mutex_lock(&queue_mutex);
    done = 0;
    queued = 1;
    round_number++;
    if (tell_all)
        pthread_cond_broadcast(&queue_filled);
    else
        pthread_cond_signal(&queue_filled);
    while (done < (for_each ? workers : 1))
        pthread_cond_wait(&job_done, &queue_mutex);
    pthread_mutex_unlock(&queue_mutex);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int rounds = 1500;
    workers = 32;
    units = 400;
    if (strcmp(name, "all") == 0) {
        tell_all = 1;
    } else if (strcmp(name, "share") == 0) {
        tell_all = for_each = 1;
        workers = 4;
        units = 1000;
        rounds = 400;
    } else if (strcmp(name, "tiny") == 0) {
        workers = 4;
        units = 100;
        rounds = 4000;
    } else if (strcmp(name, "one") != 0) {
        return 2;
    }
    pthread_t threads[THREADS_MAX];
    for (intptr_t i = 0; i < workers; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            abort();
    for (int i = 0; i < rounds; i++)
        job_give();
    pthread_mutex_lock(&queue_mutex);
    stopping = 1;
    pthread_cond_broadcast(&queue_filled);
    pthread_mutex_unlock(&queue_mutex);
    for (int i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    printf("%d\n", round_number);
    return 0;
}
