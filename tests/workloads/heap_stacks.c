/* Memory asked for on stacks of all kinds: fibers, threads with the smallest stack there is, and
 * processes that are started in other ways than by fork(). And mappings, which are apart.
 *
 *     heap-stacks CASE        the account goes to the file in KNOWN_TRUTH (heap_account.h) */
#include "heap_account.h"

#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#define KNOWN __attribute__((noinline))

KNOWN static void known_malloc(struct piece *piece, size_t size)
{
    piece_took(piece, SITE_malloc, malloc(size), size);
}

KNOWN static void known_other(struct piece *piece, size_t size)
{
    piece_took(piece, SITE_other, malloc(size), size);
}

static void give_back(struct piece *piece)
{
    void *memory = piece->memory;
    piece_gone(piece);
    free(memory);
}

/* ---- fibers: the same thread, now on one stack, now on another ---- */

enum { FIBERS = 8, FIBER_BYTES = 1 << 16 };
static ucontext_t main_context, fibers[FIBERS];
static int fiber_now;

KNOWN static void fiber_step(struct piece *piece, int depth)
{
    if (depth > 0) {
        fiber_step(piece, depth - 1);
        return;
    }
    if (fiber_now % 2)
        known_malloc(piece, 30);
    else
        known_other(piece, 31);
    swapcontext(&fibers[fiber_now], &main_context); /* it goes on here, later */
}

static void fiber(void)
{
    struct piece piece;
    for (int i = 0;; i++) {
        fiber_step(&piece, i % 20);
        if (i % 3 != 0)
            give_back(&piece);
    }
}

static void case_fibers(void)
{
    static char stacks[FIBERS][FIBER_BYTES];
    for (int i = 0; i < FIBERS; i++) {
        getcontext(&fibers[i]);
        fibers[i].uc_stack = (stack_t){.ss_sp = stacks[i], .ss_size = FIBER_BYTES};
        makecontext(&fibers[i], fiber, 0);
    }
    for (int i = 0; i < 2000; i++) {
        fiber_now = i * 7 % FIBERS;
        swapcontext(&main_context, &fibers[fiber_now]);
        struct piece piece;
        known_malloc(&piece, 12);
        give_back(&piece);
    }
}

/* ---- the smallest stacks ---- */

static void *small(void *unused)
{
    struct piece pieces[20];
    for (size_t i = 0; i < 20; i++)
        known_malloc(&pieces[i], 100 + i);
    for (size_t i = 0; i < 20; i++)
        give_back(&pieces[i]);
    return unused;
}

static void case_small_stacks(void)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN)) != 0)
        abort();
    account_by_hand = 1;
    for (int i = 0; i < 100; i++) {
        pthread_t threads[8];
        for (int k = 0; k < 8; k++)
            if (pthread_create(&threads[k], &attr, small, NULL) != 0)
                abort();
        for (int k = 0; k < 8; k++)
            pthread_join(threads[k], NULL);
    }
}

/* ---- mountains that threads climb together, and on the way take and drop what they need ---- */

enum { CLIMBERS = 16, MOUNTAINS = 10, HIGHER = 60, KEPT_BYTES = 100, DROPPED_BYTES = 64 };
static pthread_barrier_t together;

static void *climb(void *unused)
{
    struct piece kept[MOUNTAINS * HIGHER];
    for (int mountain = 1; mountain <= MOUNTAINS; mountain++) {
        pthread_barrier_wait(&together);
        for (int i = 0; i < mountain * HIGHER; i++) {
            struct piece dropped;
            known_malloc(&kept[i], KEPT_BYTES);
            known_other(&dropped, DROPPED_BYTES);
            give_back(&dropped);
        }
        pthread_barrier_wait(&together);
        for (int i = 0; i < mountain * HIGHER; i++)
            give_back(&kept[i]);
    }
    return unused;
}

static void case_mountains(void)
{
    pthread_t threads[CLIMBERS];
    account_by_hand = 1;
    pthread_barrier_init(&together, NULL, CLIMBERS);
    for (int i = 0; i < CLIMBERS; i++)
        if (pthread_create(&threads[i], NULL, climb, NULL) != 0)
            abort();
    for (int i = 0; i < CLIMBERS; i++)
        pthread_join(threads[i], NULL);
    account_peak_from = (uint64_t)CLIMBERS * MOUNTAINS * HIGHER * KEPT_BYTES;
    account_peak_to = account_peak_from + CLIMBERS * DROPPED_BYTES;
}

/* ---- processes ---- */

static void case_one(void)
{
    struct piece piece;
    for (int i = 0; i < 50; i++) {
        known_other(&piece, 200);
        if (i % 2)
            give_back(&piece);
    }
}

static void case_spawn(void)
{
    char name[] = "heap-stacks", what[] = "one";
    char *words[] = {name, what, NULL};
    struct piece piece;
    account_by_hand = 1; /* posix_spawn() may allocate */
    for (int i = 0; i < 10; i++) {
        pid_t pid;
        known_malloc(&piece, 64);
        if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, words, environ) != 0)
            abort();
        waitpid(pid, NULL, 0);
        /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): that is the point */
        pid = vfork();
        if (pid == 0) {
            execv("/proc/self/exe", words);
            _exit(127);
        }
        waitpid(pid, NULL, 0);
        give_back(&piece);
    }
}

/* ---- mappings: calls and bytes of their own, nothing of the heap ---- */

KNOWN static void *known_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void case_mapped(void)
{
    void *mapped[10];
    struct piece piece;
    for (int i = 0; i < 10; i++) {
        mapped[i] = known_map(1 << 20);
        if (!mapped[i])
            abort();
        known_malloc(&piece, 10);
    }
    for (int i = 0; i < 5; i++)
        munmap(mapped[i], 1 << 20);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"fibers", case_fibers}, {"small-stacks", case_small_stacks},
    {"one", case_one},       {"spawn", case_spawn},
    {"mapped", case_mapped}, {"mountains", case_mountains},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            account_tell(cases[i].name);
            return 0;
        }
    return 2;
}
