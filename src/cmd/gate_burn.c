/* See gate_burn.h. */
#include "cmd/gate_burn.h"

#include "base/clock.h"
#include "target/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t cpu_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

static void spin_loops(uint64_t loops)
{
    if (loops == 0)
        return;
        /* Exactly two instructions a turn, where the machine is known. */
#if defined(__x86_64__)
    __asm__ volatile("1: sub $1, %0\n jnz 1b" : "+r"(loops)::"cc");
#elif defined(__aarch64__)
    __asm__ volatile("1: subs %0, %0, #1\n b.ne 1b" : "+r"(loops)::"cc");
#else
    for (uint64_t i = 0; i < loops; i++)
        __asm__ volatile("" ::"r"(i));
#endif
}

static void spin_time(uint64_t duration_ns)
{
    uint64_t start_ns = cpu_ns();
    while (duration_ns > 0 && cpu_ns() - start_ns < duration_ns)
        spin_loops(100000); /* asking for the time is a system call: rarely, some 50 us */
}

static uint64_t peak_kib(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss;
}

/* Touches memory until the peak of this process is what was asked for. */
static int memory_take(uint64_t kib, struct why *why)
{
    enum { STEP_KIB = 64 };
    size_t len = kib * 1024;
    char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return why_errno(why, errno, NULL, "cannot take %llu KiB", (unsigned long long)kib);
    for (uint64_t at = 0; at + STEP_KIB <= kib && peak_kib() < kib; at += STEP_KIB)
        memset(memory + at * 1024, 1, STEP_KIB * (size_t)1024);
    return 0;
}

static int run_beside(const struct burn *burn, const char *path, char **argv, struct why *why)
{
    pid_t pid = fork();
    if (pid < 0)
        return why_errno(why, errno, NULL, "cannot fork");
    if (pid == 0) {
        execv(path, argv);
        _exit(127);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return why_errno(why, errno, NULL, "cannot wait");
    /* After it, not during: beside it on a second CPU it would cost no wall time. */
    spin_loops(burn->loops);
    spin_time(burn->cpu_ns);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int burn_and_run(const struct burn *burn, char **argv, struct why *why)
{
    char path[PATH_MAX];
    if (!argv[0])
        return why_set(why, WHY_USAGE, EINVAL, NULL, "there is no command to run");
    int r = program_find(argv[0], path, why);
    if (r < 0)
        return r;
    if (burn->kib == 0)
        return run_beside(burn, path, argv, why);
    r = memory_take(burn->kib, why);
    if (r < 0)
        return r;
    execv(path, argv);
    return why_errno(why, errno, NULL, "cannot run '%s'", argv[0]);
}
