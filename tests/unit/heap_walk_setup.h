/* What the library around the walk would give it, in plain memory; and a look at what it finds. */
#pragma once

#include "heap_walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

__thread struct heap_self heap_self __attribute__((tls_model("initial-exec")));
bool heap_on = true;
struct heap_process *heap_process;
struct heap_node *heap_nodes;
uint32_t *heap_hash;
uint32_t heap_hash_mask = (1 << 20) - 1;

long heap_raw6(long number, long a, long b, long c, long d, long e, long f)
{
    long r = syscall(number, a, b, c, d, e, f);
    return r == -1 ? -errno : r;
}

void *heap_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* An empty window, as a process has it that begins. */
static inline void window_begin(void)
{
    enum { IMAGES_AT = 1 << 20 };
    heap_process = heap_map(IMAGES_AT + HEAP_IMAGES_MAX * sizeof(struct heap_image));
    heap_nodes = heap_map(HEAP_NODES_MAX * sizeof(*heap_nodes));
    heap_hash = heap_map(((size_t)heap_hash_mask + 1) * sizeof(*heap_hash));
    if (!heap_process || !heap_nodes || !heap_hash)
        abort();
    heap_process->images_at = IMAGES_AT;
    heap_process->images_max = HEAP_IMAGES_MAX;
    heap_process->nodes_max = HEAP_NODES_MAX;
}

static inline struct heap_thread *thread_make(void)
{
    struct heap_thread *thread = heap_map(sizeof(*thread));
    thread->place = heap_map(sizeof(*thread->place));
    thread->walker = heap_walker_make();
    return thread;
}

/* The pcs of a node's stack, the innermost first, without the call on top. */
static inline size_t pcs_of(uint32_t node, uint64_t *ret, size_t max)
{
    size_t count = 0;
    for (node = heap_nodes[node].parent; node != 0 && count < max; node = heap_nodes[node].parent)
        ret[count++] = heap_nodes[node].pc;
    return count;
}

static inline enum heap_end end_of(uint32_t node)
{
    while (heap_nodes[node].parent != 0)
        node = heap_nodes[node].parent;
    return (enum heap_end)heap_nodes[node].end;
}
