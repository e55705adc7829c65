/* What a walk of the heap library costs (preload/heap_walk.c), 20 calls deep: from the same place
 * again, from two places in turn, and up and down in a recursion that builds a tree.
 *
 *     bench-heap_walk
 *
 * The fastest of many short rounds: what else the machine does is no matter of the walk. */
#include "heap_walk_setup.h"

#include <stdio.h>
#include <time.h>

#ifdef __clang__
#define NOIPA __attribute__((noinline, optnone))
#else
#define NOIPA __attribute__((noipa))
#endif

enum { ROUNDS = 300, CALLS = 2000, BASE = 8, DEPTH = 12 };

static struct heap_thread *self;
static volatile uint64_t sink;

static NOIPA uint32_t hook(size_t size)
{
    struct heap_at at = HEAP_HERE(HEAP_MALLOC);
    sink = size;
    return heap_walk(self, &at);
}

static NOIPA uint64_t tree(int depth)
{
    uint64_t sum = hook(24);
    if (depth == 0)
        return sum;
    sum += tree(depth - 1);
    sum ^= tree(depth - 1);
    return sum;
}

static uint64_t same_place(void)
{
    for (int i = 0; i < CALLS; i++)
        sink += hook(1);
    return CALLS;
}

static uint64_t two_places(void)
{
    for (int i = 0; i < CALLS; i++) {
        sink += hook(1);
        sink += hook(2);
    }
    return 2 * CALLS;
}

static uint64_t up_and_down(void)
{
    sink += tree(DEPTH);
    return (2 << DEPTH) - 1;
}

static const struct part {
    const char *name;
    uint64_t (*run)(void); /* how many walks it made */
    double target_ns;
} parts[] = {
    {"same place", same_place, 15},
    {"two places in turn", two_places, 25},
    {"up and down a tree", up_and_down, 40},
};

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static bool measure(const struct part *part)
{
    double best = 1e18;
    for (int i = 0; i < ROUNDS; i++) {
        double start = now_ns();
        uint64_t walks = part->run();
        double took = (now_ns() - start) / (double)walks;
        best = took < best ? took : best;
    }
    bool pass = best <= part->target_ns;
    printf("heap walk, %-20s %6.1f ns   target %3.0f   %s\n", part->name, best, part->target_ns,
           pass ? "pass" : "MISS");
    return pass;
}

static NOIPA int deeper(int depth)
{
    int misses = 0;
    if (depth > 0) {
        misses = deeper(depth - 1);
        sink++;
        return misses;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        misses += !measure(&parts[i]);
    return misses;
}

int main(void)
{
    window_begin();
    self = thread_make();
    return deeper(BASE) > 0;
}
