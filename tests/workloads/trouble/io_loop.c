/* A loop over events: each is handled (about a millisecond of work) and noted in a log of 256 KiB
 * blocks that is made durable.
 *
 *     io-loop planted N   the loop itself waits for the disk
 *     io-loop mended N    another thread does that; what it has not finished is waited for
 *     io-loop sleeps N    no log: the loop itself sleeps a millisecond, "to be nice"
 *     io-loop awake N     another thread does that
 *     io-loop near N      the loop writes, and the system puts it on the disk when it likes
 *     io-loop clean N     no log */
#include "io_world.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <time.h>

enum { BLOCK_BYTES = 256 << 10 };

static char block[BLOCK_BYTES];
static int log_fd, handed[2]; /* a pipe to the other thread: bytes are blocks to write */

static NOINLINE void log_write(int durable)
{
    must(write(log_fd, block, sizeof(block)) == sizeof(block), "write");
    if (durable)
        must(fdatasync(log_fd) == 0, "fdatasync");
}

static NOINLINE void log_rest(void)
{
    struct timespec rest = {.tv_nsec = 1000000};
    nanosleep(&rest, NULL);
}

static void *log_thread(void *unused)
{
    char byte;
    while (read(handed[0], &byte, 1) == 1)
        byte == 's' ? log_rest() : log_write(1);
    return unused;
}

static uint64_t event_handle(int fd, const char *mode)
{
    char byte;
    must(read(fd, &byte, 1) == 1, "read");
    if (strcmp(mode, "planted") == 0)
        log_write(1);
    else if (strcmp(mode, "sleeps") == 0)
        log_rest();
    else if (strcmp(mode, "mended") == 0 || strcmp(mode, "awake") == 0)
        must(write(handed[1], mode[0] == 'a' ? "s" : "w", 1) == 1, "write");
    else if (strcmp(mode, "near") == 0)
        log_write(0);
    return work(1);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "clean";
    long count = argc > 2 ? atol(argv[2]) : 200;
    int events[2], set = epoll_create1(EPOLL_CLOEXEC);
    must(set >= 0 && pipe(events) == 0 && pipe(handed) == 0, "pipe");
    log_fd = open("log", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(log_fd >= 0, "log");
    memset(block, 'b', sizeof(block));
    pthread_t thread;
    must(pthread_create(&thread, NULL, log_thread, NULL) == 0, "pthread_create");
    struct epoll_event event = {.events = EPOLLIN};
    must(epoll_ctl(set, EPOLL_CTL_ADD, events[0], &event) == 0, "epoll_ctl");
    for (long i = 0; i < count; i++)
        must(write(events[1], "e", 1) == 1, "write");
    uint64_t sum = 0;
    for (long i = 0; i < count; i++) {
        must(epoll_wait(set, &event, 1, -1) == 1, "epoll_wait");
        sum += event_handle(events[0], mode);
    }
    close(handed[1]);
    pthread_join(thread, NULL);
    return answer(sum + work(50));
}
