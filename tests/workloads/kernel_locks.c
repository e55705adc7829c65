/* Contends for locks of the kernel's, in ways whose answer is known, and says what it measured.
 *
 *     kernel-locks file     two processes write to one file: the lock of its inode
 *     kernel-locks pipe     two processes write to one pipe: its mutex
 *     kernel-locks mapping  two threads map and unmap: the lock of their address space
 *
 * For file and pipe one process writes from memory that is not there yet: inside the call, with the
 * lock held, it waits for a page that another thread of it provides (userfaultfd) only when the
 * other process sleeps in its own write, and a while later: that has to wait for the lock, in each
 * round, for nearly all of its call. They talk by eventfd, which has no lock of such a kind. With
 * mappings it goes on until one of the threads was seen asleep in its call. Prints
 * "calls_ns=… calls=…": how long the calls that had to wait took. */
#include "asleep.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 10, HOLD_NS = 20000000, MAP_BYTES = 32 << 20, NOT_HERE = 77 };

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

static void tell(int event_fd)
{
    if (eventfd_write(event_fd, 1) < 0)
        fail("eventfd_write");
}

static void listen_to(int event_fd)
{
    eventfd_t count;
    if (eventfd_read(event_fd, &count) < 0)
        fail("eventfd_read");
}

/* ---- a page that comes late ---- */

struct holder {
    int fault_fd; /* userfaultfd */
    int go_fd;    /* tells the other process that the lock is held */
    int fd;       /* what it writes to */
    pid_t other;
    char *page; /* not there, until it is provided */
    size_t page_bytes;
};

static void holder_init(struct holder *holder)
{
    struct uffdio_api api = {.api = UFFD_API};
    holder->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    holder->fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (holder->fault_fd < 0 && (errno == ENOSYS || errno == EPERM))
        exit(NOT_HERE);
    if (holder->fault_fd < 0 || ioctl(holder->fault_fd, UFFDIO_API, &api) < 0)
        fail("userfaultfd");
    holder->page = mmap(NULL, holder->page_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {
        .range = {(uintptr_t)holder->page, holder->page_bytes},
        .mode = UFFDIO_REGISTER_MODE_MISSING,
    };
    if (holder->page == MAP_FAILED || ioctl(holder->fault_fd, UFFDIO_REGISTER, &range) < 0)
        fail("UFFDIO_REGISTER");
}

/* Provides the page each time it is missed, but not before somebody waits for the lock. */
static void *provide(void *context)
{
    struct holder *holder = context;
    char *zeroes = calloc(1, holder->page_bytes);
    for (int i = 0; i < ROUNDS; i++) {
        struct uffd_msg message;
        struct timespec hold = {.tv_nsec = HOLD_NS};
        if (read(holder->fault_fd, &message, sizeof(message)) != sizeof(message))
            fail("a fault");
        tell(holder->go_fd);
        asleep_wait(holder->other, holder->other, SYS_write, (unsigned long)holder->fd);
        nanosleep(&hold, NULL);
        struct uffdio_copy copy = {
            .dst = (uintptr_t)holder->page,
            .src = (uintptr_t)zeroes,
            .len = holder->page_bytes,
        };
        if (ioctl(holder->fault_fd, UFFDIO_COPY, &copy) < 0)
            fail("UFFDIO_COPY");
    }
    free(zeroes);
    return NULL;
}

static void hold(int fd, int go_fd, int done_fd, pid_t other)
{
    struct holder holder = {.go_fd = go_fd, .fd = fd, .other = other};
    pthread_t provider;
    holder_init(&holder);
    if (pthread_create(&provider, NULL, provide, &holder) != 0)
        fail("pthread_create");
    for (int i = 0; i < ROUNDS; i++) {
        if (write(fd, holder.page, 1) != 1)
            fail("a write");
        listen_to(done_fd);
        if (madvise(holder.page, holder.page_bytes, MADV_DONTNEED) < 0)
            fail("madvise");
    }
    pthread_join(provider, NULL);
}

/* The other process. */
static void want(int fd, int go_fd, int done_fd)
{
    uint64_t calls_ns = 0;
    for (int i = 0; i < ROUNDS; i++) {
        listen_to(go_fd);
        uint64_t start_ns = now_ns();
        if (write(fd, "x", 1) != 1)
            _exit(1);
        calls_ns += now_ns() - start_ns;
        tell(done_fd);
    }
    printf("calls_ns=%llu calls=%d\n", (unsigned long long)calls_ns, ROUNDS);
    fflush(stdout);
    _exit(0);
}

static int contend(int fd)
{
    int go = eventfd(0, 0), done = eventfd(0, 0), status;
    if (go < 0 || done < 0)
        fail("eventfd");
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0)
        want(fd, go, done);
    hold(fd, go, done, pid);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        fail("the other side");
    return 0;
}

/* ---- mappings ---- */

static atomic_int contended;
static atomic_ulong mapped;

static void *map_all(void *context)
{
    uint64_t *calls_ns = context;
    for (int i = 0; i < ROUNDS || !contended; i++, mapped++) {
        uint64_t start_ns = now_ns();
        void *pages = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (pages == MAP_FAILED || munmap(pages, MAP_BYTES) < 0)
            fail("mmap");
        *calls_ns += now_ns() - start_ns;
    }
    return NULL;
}

/* One on the machine alone would never meet the other. */
static void *watch(void *unused)
{
    while (!asleep_in(getpid(), getpid(), SYS_mmap, ASLEEP_ANY) &&
           !asleep_in(getpid(), getpid(), SYS_munmap, ASLEEP_ANY))
        sched_yield();
    contended = 1;
    return unused;
}

static int mappings(void)
{
    uint64_t calls_ns[2] = {0};
    pthread_t thread = 0, watcher = 0;
    if (pthread_create(&watcher, NULL, watch, NULL) != 0 ||
        pthread_create(&thread, NULL, map_all, &calls_ns[1]) != 0)
        fail("pthread_create");
    map_all(&calls_ns[0]);
    pthread_join(thread, NULL);
    pthread_join(watcher, NULL);
    calls_ns[0] += calls_ns[1];
    printf("calls_ns=%llu calls=%lu\n", (unsigned long long)calls_ns[0], 2 * mapped);
    return 0;
}

int main(int argc, char **argv)
{
    int ends[2];
    if (argc != 2)
        return 2;
    if (strcmp(argv[1], "file") == 0) {
        int fd = memfd_create("contended", 0);
        return fd < 0 ? 1 : contend(fd);
    }
    if (strcmp(argv[1], "pipe") == 0)
        return pipe(ends) < 0 ? 1 : contend(ends[1]);
    return mappings();
}
