/* Waiting with a lock in hand, and the same mended: lock-io CASE.
 *
 *     held    four threads sleep under one lock, as one does who asks a device for an answer
 *     file    four threads write a file through to the disk under one lock
 *     … out   the same, the lock let go of first
 *     alone   one thread sleeps under a lock that nobody else wants, others compute */
#include "lock_tools.h"

#include <fcntl.h>
#include <unistd.h>

static pthread_mutex_t cache_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t cache[THREADS_MAX];
static int rounds, out, to_file;

static void APART device_ask(int self)
{
    if (!to_file) {
        sleep_us(2000);
        return;
    }
    char name[32];
    snprintf(name, sizeof(name), "journal-%d", self);
    int fd = open(name, O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (fd < 0 || write(fd, name, sizeof(name)) != (ssize_t)sizeof(name) || fdatasync(fd) != 0)
        abort();
    close(fd);
}

static void APART cache_fill(int self)
{
    if (out)
        device_ask(self);
    pthread_mutex_lock(&cache_mutex);
    if (!out)
        device_ask(self);
    cache[self] = burn(cache[self], 20);
    pthread_mutex_unlock(&cache_mutex);
}

static void *fill(void *arg)
{
    int self = (int)(intptr_t)arg;
    for (int i = 0; i < rounds; i++)
        cache_fill(self);
    return NULL;
}

static void *fill_alone(void *arg)
{
    int self = (int)(intptr_t)arg;
    for (int i = 0; i < rounds; i++)
        if (self == 0)
            cache_fill(self);
        else
            cache[self] = burn(cache[self], 4000);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    out = argc > 2 && strcmp(argv[2], "out") == 0;
    rounds = 50;
    if (strcmp(name, "held") == 0) {
        threads_run(fill, 4);
    } else if (strcmp(name, "file") == 0) {
        to_file = 1;
        threads_run(fill, 4);
    } else if (strcmp(name, "alone") == 0) {
        rounds = 100;
        threads_run(fill_alone, 2);
    } else {
        return 2;
    }
    uint64_t sum = 0;
    for (int i = 0; i < THREADS_MAX; i++)
        sum ^= cache[i];
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
