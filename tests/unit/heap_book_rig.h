/* The book of the heap library with what the library around it would give it. Memory is addresses
 * only: the book never looks at what lies there. */
#pragma once

#include "unit.h"

/* NOLINTBEGIN(bugprone-suspicious-include): all of it is to be seen */
#include "../../preload/heap_book.c"
#include "../../preload/heap_book_peak.c"
#include "../../preload/heap_book_sample.c"
#include "../../preload/heap_regions.c"
/* NOLINTEND(bugprone-suspicious-include) */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    RIG_THREADS = 8,
    RIG_NODES = 64,
    RIG_CELLS = 1024,
    RIG_THREADS_AT = 4096,
    RIG_CELLS_AT = 1 << 16,
    RIG_WINDOW = RIG_CELLS_AT + RIG_CELLS * 128,
};

struct heap_header *heap_header;
struct heap_process *heap_process;
struct heap_cell *heap_cells;
uint64_t *heap_generation;

static struct heap_header rig_header;
static uint64_t rig_generation;
static struct heap_thread rig_threads[RIG_THREADS];
static bool rig_no_memory, rig_apart;
static unsigned rig_logged, rig_logged_frees;

__thread struct heap_self heap_self __attribute__((tls_model("initial-exec")));

long heap_raw6(long number, long a, long b, long c, long d, long e, long f)
{
    return syscall(number, a, b, c, d, e, f);
}

void heap_advise(const void *memory, size_t bytes, int advice)
{
    (void)memory, (void)bytes, (void)advice;
}

void *heap_map(size_t bytes)
{
    if (rig_no_memory)
        return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void heap_log_allocated(struct heap_thread *thread, const void *memory, uint64_t size,
                        uint32_t node)
{
    (void)thread, (void)memory, (void)size, (void)node;
    rig_logged++;
}

void heap_log_freed(struct heap_thread *thread, const void *memory)
{
    (void)thread, (void)memory;
    rig_logged++;
    rig_logged_frees++;
}

static void rig_forget_threads(void)
{
    for (unsigned i = 0; i < RIG_THREADS; i++)
        if (rig_threads[i].cell_of)
            munmap(rig_threads[i].cell_of, RIG_NODES * sizeof(uint32_t));
    memset(rig_threads, 0, sizeof(rig_threads));
}

/* A window, as a process gets it that begins, or forks. */
static void rig_window(bool alone)
{
    if (heap_process)
        munmap(heap_process, RIG_WINDOW);
    rig_forget_threads();
    heap_process = heap_map(RIG_WINDOW);
    assert_non_null(heap_process);
    heap_process->threads_at = RIG_THREADS_AT;
    heap_process->threads_max = heap_process->threads = RIG_THREADS;
    heap_process->cells_max = RIG_CELLS;
    heap_process->nodes_max = RIG_NODES;
    heap_cells = (void *)((char *)heap_process + RIG_CELLS_AT);
    rig_generation++;
    for (unsigned i = 0; i < RIG_THREADS; i++) {
        rig_threads[i] = (struct heap_thread){
            .generation = rig_generation,
            .place = &places()[i],
            .place_index = (uint16_t)i,
            .alone = alone,
        };
        places()[i].state = HEAP_THREAD_TAKEN;
    }
}

static void rig_plane_forget(struct heap_middle **middles)
{
    for (unsigned i = 0; i < HEAP_MIDDLES; i++) {
        struct heap_middle *middle = middles[i];
        for (unsigned r = 0; middle && r < HEAP_MIDDLE_REGIONS; r++)
            if (middle->regions[r])
                munmap(middle->regions[r], REGION_BYTES);
        if (middle)
            munmap(middle, sizeof(*middle));
    }
}

static void rig_entries_forget(void)
{
    for (unsigned plane = 0; plane < HEAP_PLANES; plane++)
        rig_plane_forget(heap_entries.middles[plane]);
    memset(&heap_entries, 0, sizeof(heap_entries));
}

static void rig_begin(bool alone)
{
    heap_header = &rig_header;
    heap_generation = &rig_generation;
    rig_header = (struct heap_header){.temporary_within = 1};
    rig_no_memory = false;
    rig_entries_forget();
    rig_window(alone);
    assert_true(heap_book_begin(rig_apart));
}

static const void *rig_memory(uint64_t number)
{
    return (const void *)(UINT64_C(0x7f1234000000) + number * 8);
}

/* As a reader does it. */
static int64_t rig_room(void)
{
    int64_t room = heap_process->spare;
    for (unsigned i = 0; i < RIG_THREADS; i++)
        room += places()[i].credit;
    return room;
}
static uint64_t rig_live(void)
{
    return heap_live_bytes(heap_process, rig_room());
}
static uint64_t rig_peak(void)
{
    return heap_peak_bytes(heap_process, rig_room());
}
static struct heap_cell *rig_cell(unsigned thread, uint32_t node)
{
    for (unsigned i = 0; i < heap_process->cells && i < RIG_CELLS; i++)
        if (heap_cells[i].node == node && heap_cells[i].thread == thread)
            return &heap_cells[i];
    return NULL;
}
static bool rig_is_kept(const struct heap_cell *cell)
{
    return rig_room() >= 0 && cell->epoch == heap_process->peak_epoch;
}
static int64_t rig_peak_count_of(const struct heap_cell *cell)
{
    return rig_is_kept(cell) ? cell->peak_count : (int64_t)(cell->allocations - cell->frees);
}
static int64_t rig_peak_bytes_of(const struct heap_cell *cell)
{
    return rig_is_kept(cell) ? cell->peak_bytes
                             : (int64_t)(cell->allocated_bytes - cell->freed_bytes);
}

static uint64_t rig_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}
