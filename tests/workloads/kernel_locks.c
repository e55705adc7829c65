/* Contends for locks of the kernel's, in ways whose answer is known, and says what it measured.
 *
 *     kernel-locks file     two processes write to one file: the lock of its inode
 *     kernel-locks mapping  two threads map and unmap: the lock of their address space
 *
 * Both on one CPU: whoever holds the lock is not running while the other one is, so the other one
 * cannot try for a while (which the kernel does not tell of) but has to sleep. Prints
 * "wall_ns=… calls_ns=…": all of its time, and what its two sides spent in system calls that need
 * the lock, together. The lock is held by one at a time, so they have waited for it for
 * calls_ns - wall_ns at least. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIDES = 2, ROUNDS = 12, WRITE_BYTES = 32 << 20, MAP_BYTES = 32 << 20 };

/* Shared by both sides, whatever they are. */
struct shared {
    pthread_barrier_t start;
    uint64_t calls_ns[SIDES];
    int fd;
    const char *bytes;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void write_all(struct shared *shared, int side)
{
    pthread_barrier_wait(&shared->start);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start_ns = now_ns();
        if (pwrite(shared->fd, shared->bytes, WRITE_BYTES, 0) != WRITE_BYTES)
            fail("pwrite");
        shared->calls_ns[side] += now_ns() - start_ns;
    }
}

static void map_all(struct shared *shared, int side)
{
    pthread_barrier_wait(&shared->start);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start_ns = now_ns();
        void *pages = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (pages == MAP_FAILED || munmap(pages, MAP_BYTES) < 0)
            fail("mmap");
        shared->calls_ns[side] += now_ns() - start_ns;
    }
}

static void *map_thread(void *context)
{
    map_all(context, 1);
    return NULL;
}

static void files(struct shared *shared)
{
    int status;
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    write_all(shared, pid == 0);
    if (pid == 0)
        _exit(0);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        fail("the other side");
}

static void mappings(struct shared *shared)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, map_thread, shared) != 0)
        fail("pthread_create");
    map_all(shared, 0);
    pthread_join(thread, NULL);
}

static void one_cpu(void)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(all), &all) < 0)
        fail("sched_getaffinity");
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &all))
            continue;
        CPU_SET(i, &one);
        break;
    }
    if (sched_setaffinity(0, sizeof(one), &one) < 0)
        fail("sched_setaffinity");
}

int main(int argc, char **argv)
{
    pthread_barrierattr_t attr;
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc != 2 || shared == MAP_FAILED)
        return 2;
    one_cpu();
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->start, &attr, SIDES);
    shared->fd = memfd_create("contended", 0);
    shared->bytes = mmap(NULL, WRITE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (shared->fd < 0 || shared->bytes == MAP_FAILED)
        fail("memory");
    uint64_t start_ns = now_ns();
    if (strcmp(argv[1], "file") == 0)
        files(shared);
    else
        mappings(shared);
    printf("wall_ns=%llu calls_ns=%llu\n", (unsigned long long)(now_ns() - start_ns),
           (unsigned long long)(shared->calls_ns[0] + shared->calls_ns[1]));
    return 0;
}
