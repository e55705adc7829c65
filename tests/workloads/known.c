/* A program whose costs are known, because it is told them:
 *
 *     known [burn-ms=N] [burn-square=N] [open=PATH] [sleep-ms=N] [alloc-mib=N]
 *           [write-mib=N file=PATH] [hwm=1] [exit=N] [log=PATH]
 *
 * It burns until its own CPU clock says N (or N² microseconds), sleeps, touches N MiB of memory,
 * writes N MiB, and can print its own peak memory as the kernel tells it. A FIFO that it opens
 * makes it wait for somebody who writes there. With a log it appends its own wall and CPU time in
 * nanoseconds, taken in main(). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static long argument(int argc, char **argv, const char *name)
{
    size_t len = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, len) == 0 && argv[i][len] == '=')
            return strtol(argv[i] + len + 1, NULL, 10);
    return 0;
}

/* Written and never read, by design. */
volatile unsigned long burn_sum;

static void burn(long us)
{
    /* Asking for CPU time is work of the kernel, and some microseconds of it: seldom while there is
     * long to go, so that what is burnt is this loop. */
    struct timespec ts = {0};
    long left = us;
    do {
        for (int i = 0; i < (left > 2000 ? 100000 : 10000); i++)
            burn_sum += (unsigned long)i;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        left = us - (ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
    } while (left > 0);
}

static void touch(long mib)
{
    size_t len = (size_t)mib << 20;
    char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        _exit(9);
    for (size_t i = 0; i < len; i += 4096)
        memory[i] = 1;
    munmap(memory, len);
}

static void write_out(const char *path, long mib)
{
    static char block[65536];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (long i = 0; fd >= 0 && i < mib * 16; i++)
        if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
            _exit(8);
    close(fd);
    unlink(path);
}

static void print_peak(int to)
{
    static char text[8192];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    const char *at = n > 0 ? strstr(text, "VmHWM:") : NULL;
    char line[64];
    int len = snprintf(line, sizeof(line), "%ld\n", at ? strtol(at + 6, NULL, 10) : -1);
    if (write(to, line, (size_t)len) != len)
        _exit(7);
}

static long long clock_ns(clockid_t id)
{
    struct timespec ts = {0};
    clock_gettime(id, &ts);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void log_append(const char *path, long long start_ns)
{
    char line[64];
    int len = snprintf(line, sizeof(line), "%lld %lld\n", clock_ns(CLOCK_MONOTONIC) - start_ns,
                       clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (write(fd, line, (size_t)len) != len)
        _exit(6);
}

int main(int argc, char **argv)
{
    long long start_ns = clock_ns(CLOCK_MONOTONIC);
    long side = argument(argc, argv, "burn-square");
    burn(argument(argc, argv, "burn-ms") * 1000 + side * side);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "open=", 5) == 0 && open(argv[i] + 5, O_RDONLY | O_CLOEXEC) < 0)
            _exit(5);
    usleep((useconds_t)argument(argc, argv, "sleep-ms") * 1000);
    if (argument(argc, argv, "alloc-mib") > 0)
        touch(argument(argc, argv, "alloc-mib"));
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "file=", 5) == 0)
            write_out(argv[i] + 5, argument(argc, argv, "write-mib"));
    if (argument(argc, argv, "hwm")) {
        /* Once in vain: printing maps pages of libc, which would come after the figure. */
        print_peak(open("/dev/null", O_WRONLY | O_CLOEXEC));
        print_peak(1);
    }
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "log=", 4) == 0)
            log_append(argv[i] + 4, start_ns);
    _exit((int)argument(argc, argv, "exit"));
}
