/* Four troubles of known cost in one program; each can be mended by naming it:
 *
 *     mixed [SCALE [cpu] [lock] [writes] [heap]]
 *
 *     cpu      a table is worked out again for every order, though it never changes
 *     lock     a helper sleeps while it holds the lock that the work needs
 *     writes   every record is a system call of its own
 *     heap     every order allocates and frees its parts
 *
 * They are clearly apart, in this order. SCALE is in percent. Writes mixed.out into its folder. */
#include "flat.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ORDERS = 40, NAP_MS = 6 };

static bool mended_cpu, mended_lock, mended_writes, mended_heap;
static unsigned scale = 100;
static uint64_t answer;

/* cpu: several lines, so that none of them has it all */
static NOINLINE uint64_t prices_work_out(uint64_t x, unsigned rounds)
{
    uint64_t sum = 0, low = x | 1;
    for (unsigned i = 0; i < rounds; i++) {
        x ^= x << 13;
        sum += x & 0xff;
        x ^= x >> 7;
        low = low * 5 + x;
        x ^= x << 17;
        sum ^= low >> 3;
    }
    return x + sum + low;
}

static void prices_get(void)
{
    static uint64_t known;
    if (!mended_cpu || known == 0)
        known = prices_work_out(88172645463325252, 55000 * scale) | 1;
    answer ^= known;
}

/* lock */
static pthread_mutex_t stock = PTHREAD_MUTEX_INITIALIZER;
static sem_t asked, held;

static void nap(void)
{
    struct timespec time = {.tv_nsec = NAP_MS * 1000000L};
    nanosleep(&time, NULL);
}

static void *stock_keeper(void *argument)
{
    for (;;) {
        sem_wait(&asked);
        pthread_mutex_lock(&stock);
        sem_post(&held);
        if (!mended_lock)
            nap();
        pthread_mutex_unlock(&stock);
    }
    return argument;
}

static NOINLINE void stock_take(void)
{
    sem_post(&asked);
    sem_wait(&held);
    pthread_mutex_lock(&stock);
    answer++;
    pthread_mutex_unlock(&stock);
}

/* writes */
static int file = -1;
static char buffer[1 << 16];
static size_t buffered;

static void buffer_flush(void)
{
    if (buffered > 0 && write(file, buffer, buffered) < 0)
        abort();
    buffered = 0;
}

static NOINLINE void record_write(const char *record, size_t size)
{
    if (!mended_writes) {
        if (write(file, record, size) < 0)
            abort();
        return;
    }
    if (buffered + size > sizeof(buffer))
        buffer_flush();
    memcpy(buffer + buffered, record, size);
    buffered += size;
}

static void records_write(void)
{
    char record[16];
    for (unsigned i = 0; i < 100 * scale; i++) {
        memset(record, (int)('a' + i % 26), sizeof(record));
        record_write(record, sizeof(record));
    }
}

/* heap */
static NOINLINE void part_touch(char *part, size_t size)
{
    part[0] = (char)answer;
    part[size - 1] = (char)(answer >> 8);
    answer = answer * 6364136223846793005 + 1442695040888963407;
}

static NOINLINE void order_parts(size_t size)
{
    static char kept[4096];
    char *part = mended_heap ? kept : malloc(size);
    if (!part)
        abort();
    part_touch(part, size);
    if (!mended_heap)
        free(part);
}

static void parts_make(void)
{
    for (unsigned i = 0; i < 350 * scale; i++)
        order_parts(1100 + (i * 37) % 1000);
}

static void options_read(int argc, char **argv)
{
    if (argc > 1)
        scale = (unsigned)atoi(argv[1]);
    for (int i = 2; i < argc; i++) {
        mended_cpu |= strcmp(argv[i], "cpu") == 0;
        mended_lock |= strcmp(argv[i], "lock") == 0;
        mended_writes |= strcmp(argv[i], "writes") == 0;
        mended_heap |= strcmp(argv[i], "heap") == 0;
    }
}

int main(int argc, char **argv)
{
    options_read(argc, argv);
    file = open("mixed.out", O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    sem_init(&asked, 0, 0);
    sem_init(&held, 0, 0);
    pthread_t keeper;
    if (file < 0 || pthread_create(&keeper, NULL, stock_keeper, NULL) != 0)
        return 1;
    for (unsigned i = 0; i < ORDERS; i++) {
        prices_get();
        stock_take();
        records_write();
        parts_make();
        for (unsigned k = 0; k < 100; k++) /* what it is there for */
            answer = flat_round(answer);
    }
    buffer_flush();
    printf("%s\n", answer == 42 ? "42" : "done");
    return 0;
}
