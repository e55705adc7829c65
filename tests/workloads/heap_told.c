/* Allocations whose numbers are known, for the kernel tier of the heap: heap_told CASE [N].
 * Built in several ways by heap_kernel.py: static, with an allocator of its own, with jemalloc. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define KNOWN        __attribute__((noinline, noclone, used))
#define HELD(memory) __asm__ volatile("" : "+r"(memory) : : "memory")

#define KNOWN_OF(name, call)                                                                       \
    KNOWN static void *known_##name(size_t size)                                                   \
    {                                                                                              \
        void *memory = call;                                                                       \
        HELD(memory);                                                                              \
        return memory;                                                                             \
    }
KNOWN_OF(malloc, malloc(size))
KNOWN_OF(other, malloc(size))
KNOWN_OF(calloc, calloc(size / 8, 8))
KNOWN_OF(aligned_alloc, aligned_alloc(64, size))
KNOWN_OF(memalign, memalign(128, size))
KNOWN_OF(valloc, valloc(size))
KNOWN_OF(pvalloc, pvalloc(size))

KNOWN static void *known_realloc(void *old, size_t size)
{
    void *memory = realloc(old, size);
    HELD(memory);
    return memory;
}

KNOWN static void *known_reallocarray(void *old, size_t size)
{
    void *memory = reallocarray(old, size / 4, 4);
    HELD(memory);
    return memory;
}

KNOWN static void *known_posix_memalign(size_t size)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 64, size) != 0)
        return NULL;
    HELD(memory);
    return memory;
}

/* Ten of each in three sizes, of which seven are freed: 3 stay. */
static void entries(size_t makers_used)
{
    void *(*const makers[])(size_t) = {
        known_malloc,   known_calloc, known_posix_memalign, known_aligned_alloc,
        known_memalign, known_valloc, known_pvalloc,
    };
    for (size_t i = 0; i < makers_used; i++) {
        void *made[10];
        for (int j = 0; j < 10; j++)
            made[j] = makers[i](64u << j % 3);
        for (int j = 0; j < 7; j++)
            free(made[j]);
    }
    char *grown = NULL;
    for (size_t i = 1; i <= 50; i++)
        grown = known_realloc(grown, 1000 * i);
    grown = known_reallocarray(grown, 100000); /* here is the peak */
    grown = known_reallocarray(grown, 40);
    grown = known_realloc(grown, 80);
    free(grown);
    free(NULL);
    for (int i = 0; i < 500; i++)
        free(known_other(24));
}

static int passes;

static void *thread_run(void *context)
{
    void *kept[4];
    for (int i = 0; i < passes; i++) {
        free(known_malloc(100)); /* temporary */
        void *a = known_other(40), *b = known_other(48);
        free(a);
        free(b);
        kept[i % 4] = i % (passes / 4) == 0 ? known_calloc(800) : NULL; /* four stay */
        HELD(kept[i % 4]);
    }
    return context;
}

static void threads(int count)
{
    pthread_t ids[64];
    for (int i = 0; i < count; i++)
        if (pthread_create(&ids[i], NULL, thread_run, NULL) != 0)
            abort();
    for (int i = 0; i < count; i++)
        pthread_join(ids[i], NULL);
}

static void *handed;
static pthread_barrier_t turn;

static void *free_run(void *context)
{
    pthread_barrier_wait(&turn);
    free(handed);
    return context;
}

/* What one thread allocates another frees: no temporary. */
static void hand_over(void)
{
    pthread_t id;
    pthread_barrier_init(&turn, NULL, 2);
    if (pthread_create(&id, NULL, free_run, NULL) != 0)
        abort();
    handed = known_malloc(4000);
    pthread_barrier_wait(&turn);
    pthread_join(id, NULL);
}

static void forked(void)
{
    void *made[100];
    for (int i = 0; i < 100; i++)
        made[i] = known_malloc(50);
    pid_t child = fork();
    if (child == 0) {
        void *own[10];
        for (int i = 0; i < 40; i++)
            free(made[i]);
        for (int i = 0; i < 10; i++)
            own[i] = known_other(70);
        for (int i = 0; i < 4; i++)
            free(own[i]);
        made[50] = known_realloc(made[50], 60); /* inherited, then its own */
        _exit(0);
    }
    for (int i = 40; i < 100; i++)
        free(made[i]);
    waitpid(child, NULL, 0);
}

/* No memory for large ones: they fail, and what was there stays. */
static void failing(void)
{
    char *kept = known_malloc(1000);
    void *none = known_other(SIZE_MAX / 4);
    if (none)
        abort();
    char *same = known_realloc(kept, SIZE_MAX / 4);
    if (same)
        abort();
    kept[999] = 1;
    kept = known_realloc(kept, 2000);
    free(kept);
}

static volatile sig_atomic_t over;

static void stop(int number)
{
    (void)number;
    over = 1;
}

/* Until it is told to end; says what it has done. */
static void loop(void)
{
    struct sigaction action = {.sa_handler = stop};
    void *before[20];
    unsigned long rounds = 0;
    sigaction(SIGTERM, &action, NULL);
    for (int i = 0; i < 20; i++)
        before[i] = known_malloc(500);
    printf("ready\n");
    fflush(stdout);
    getchar(); /* somebody looks now */
    for (int i = 0; i < 20; i++)
        free(before[i]);
    for (; rounds < 2000; rounds++) {
        free(known_other(48));
        void *kept = rounds % 100 == 0 ? known_calloc(80) : NULL;
        HELD(kept);
    }
    printf("done\n");
    fflush(stdout);
    while (!over) {
        free(known_malloc(100));
        usleep(1000);
        rounds++;
    }
    printf("%lu\n", rounds);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    passes = argc > 2 ? atoi(argv[2]) : 1000;
    if (strcmp(name, "entries") == 0)
        entries(7);
    else if (strcmp(name, "entries-without-pvalloc") == 0)
        entries(6);
    else if (strcmp(name, "threads") == 0)
        threads(8);
    else if (strcmp(name, "hand-over") == 0)
        hand_over();
    else if (strcmp(name, "fork") == 0)
        forked();
    else if (strcmp(name, "failing") == 0)
        failing();
    else if (strcmp(name, "loop") == 0)
        loop();
    else if (strcmp(name, "none") == 0)
        return 0;
    else if (strcmp(name, "exec") == 0) {
        void *memory = known_malloc(12345);
        HELD(memory);
        execl("/proc/self/exe", argv[0], "entries", (char *)NULL);
        return 1;
    } else
        return 2;
    return 0;
}
