/* A program whose functions burn a known split of CPU time, 50/30/15/5, in every way that
 * stacks get difficult:
 *
 *     split MS-PER-ROUND ROUNDS LIBRARY-TO-DLOPEN [KIND…]
 *
 * Kinds: plain inlined recursive plt dlopen signal threads; all by default. */
#include "split.h"
#include "apart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile unsigned long split_sum;
long split_part_ns;
static int rounds;
static void (*dlopened)(void);

void split_plt(void); /* of the library */

SPLIT(plain, static APART)
SPLIT(inlined, static inline __attribute__((always_inline)))
SPLIT(leaf, static APART)
SPLIT(handled, static APART)
SPLIT(threaded, static APART)

static APART void recursive(int depth, void (*leaf)(void))
{
    if (depth == 0)
        leaf();
    else
        recursive(depth - 1, leaf);
    __asm__ volatile("" ::: "memory");
}

#define RECURSIVE(share)                                                                           \
    static APART void recursive_##share(void)                                                      \
    {                                                                                              \
        recursive(40, leaf_##share);                                                               \
        __asm__ volatile("" ::: "memory");                                                         \
    }
RECURSIVE(50)
RECURSIVE(30)
RECURSIVE(15)
RECURSIVE(5)

static void (*volatile handler_work)(void);

static void on_signal(int number)
{
    (void)number;
    handler_work();
    __asm__ volatile("" ::: "memory");
}

static APART void raise_with(void (*work)(void))
{
    handler_work = work;
    raise(SIGUSR1);
    __asm__ volatile("" ::: "memory");
}

static void run_plain(void)
{
    SPLIT_CALL(plain);
}

static void run_inlined(void)
{
    SPLIT_CALL(inlined);
}

static void run_recursive(void)
{
    SPLIT_CALL(recursive);
}

static void run_plt(void)
{
    split_plt();
}

static void run_dlopen(void)
{
    dlopened();
}

static void run_signal(void)
{
    raise_with(handled_50);
    raise_with(handled_30);
    raise_with(handled_15);
    raise_with(handled_5);
}

static void *thread_main(void *unused)
{
    for (int i = 0; i < rounds / 4; i++)
        SPLIT_CALL(threaded);
    return unused;
}

static void run_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, thread_main, NULL) != 0)
            abort();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static const struct {
    const char *name;
    void (*run)(void);
} kinds[] = {
    {"plain", run_plain},     {"inlined", run_inlined}, {"recursive", run_recursive},
    {"plt", run_plt},         {"dlopen", run_dlopen},   {"signal", run_signal},
    {"threads", run_threads},
};

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    split_part_ns = strtol(argv[1], NULL, 10) * 10000;
    rounds = (int)strtol(argv[2], NULL, 10);
    void *library = dlopen(argv[3], RTLD_NOW);
    void *entry = library ? dlsym(library, "split_dlopen") : NULL;
    if (!entry) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    memcpy(&dlopened, &entry, sizeof(entry));
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        int wanted = argc == 4;
        for (int j = 4; j < argc; j++)
            wanted |= strcmp(argv[j], kinds[i].name) == 0;
        /* The threads share the rounds among themselves. */
        int times = strcmp(kinds[i].name, "threads") == 0 ? 1 : rounds;
        for (int j = 0; wanted && j < times; j++)
            kinds[i].run();
    }
    return 0;
}
