/* Allocation at full speed, for bench/heap.py.
 *
 *     heap-work tree NODES             a search tree of small nodes, filled and torn down; depth
 * ~20 heap-work threads THREADS NODES  the same in threads at once, a tree each heap-work events
 * PAIRS           malloc() and free() from a hundred places
 *
 * Prints wall_ms: what it took itself, without the start of whoever looks on. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct node {
    struct node *children[2];
    uint64_t key;
};

enum { DEPTH = 20, SMALL_DEPTH = 12 };

/* Both children from one place: as many stacks as levels. */
__attribute__((noinline)) static struct node *build(int depth)
{
    struct node *node = malloc(sizeof *node);
    if (!node)
        abort();
    node->key = (uint64_t)depth;
    for (int i = 0; i < 2; i++)
        node->children[i] = depth > 1 ? build(depth - 1) : NULL;
    return node;
}

/* Each from a place of its own: every node has a stack that no other has. */
__attribute__((noinline)) static struct node *build_apart(int depth)
{
    struct node *node = malloc(sizeof *node);
    if (!node)
        abort();
    node->key = (uint64_t)depth;
    node->children[0] = depth > 1 ? build_apart(depth - 1) : NULL;
    node->children[1] = depth > 1 ? build_apart(depth - 1) : NULL;
    return node;
}

__attribute__((noinline)) static void tear_down(struct node *node)
{
    if (!node)
        return;
    tear_down(node->children[0]);
    tear_down(node->children[1]);
    free(node);
}

/* Down to where trees begin, so that they stand on a stack of DEPTH frames, as in real programs. */
__attribute__((noinline)) static long descend(int levels, long trees)
{
    if (levels > 0)
        return descend(levels - 1, trees) + 1;
    for (; trees > 0; trees--)
        tear_down(build(SMALL_DEPTH));
    return 0;
}

static void *small_trees(void *trees)
{
    descend(DEPTH - SMALL_DEPTH, (long)(intptr_t)trees);
    return NULL;
}

static void whole_trees(struct node *(*make)(int depth), long trees)
{
    for (; trees > 0; trees--)
        tear_down(make(DEPTH));
}

#define PLACE(n)                                                                                   \
    {                                                                                              \
        void *volatile memory = malloc((n) + 1);                                                   \
        free(memory);                                                                              \
    }
#define TEN(n)                                                                                     \
    PLACE(n)                                                                                       \
    PLACE((n) + 1)                                                                                 \
    PLACE((n) + 2)                                                                                 \
    PLACE((n) + 3)                                                                                 \
    PLACE((n) + 4) PLACE((n) + 5) PLACE((n) + 6) PLACE((n) + 7) PLACE((n) + 8) PLACE((n) + 9)

__attribute__((noinline)) static void hundred(void)
{
    TEN(0) TEN(10) TEN(20) TEN(30) TEN(40) TEN(50) TEN(60) TEN(70) TEN(80) TEN(90)
}

static void events(long pairs)
{
    for (; pairs > 0; pairs -= 100)
        hundred();
}

static void in_threads(long count, long trees)
{
    pthread_t threads[64];
    count = count > 64 ? 64 : count;
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, small_trees, (void *)(intptr_t)trees) != 0)
            abort();
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static double now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    double begin = now_ms();
    if (argc == 3 && strcmp(argv[1], "tree") == 0)
        whole_trees(build, strtol(argv[2], NULL, 10));
    else if (argc == 3 && strcmp(argv[1], "apart") == 0)
        whole_trees(build_apart, strtol(argv[2], NULL, 10));
    else if (argc == 4 && strcmp(argv[1], "threads") == 0)
        in_threads(strtol(argv[2], NULL, 10), strtol(argv[3], NULL, 10));
    else if (argc == 3 && strcmp(argv[1], "events") == 0)
        events(strtol(argv[2], NULL, 10));
    else
        return 2;
    printf("{\"name\":\"wall_ms\",\"value\":%.3f}\n", now_ms() - begin);
    return 0;
}
