/* A sink that keeps everything in memory, for tests of collectors and for
 * small one-off profiles. What it caught lies open in the vectors; an entry's
 * id is its index plus one. Texts are copies and live as long as the sink.
 *
 *     struct sink_memory memory = SINK_MEMORY_INIT;
 *     collector_start(target, &memory.sink, …);
 *     assert(memory.samples.len > 0);
 *     sink_memory_deinit(&memory);
 */
#pragma once

#include "base/arena.h"
#include "model/call_book.h"
#include "model/heap_book.h"
#include "model/interned.h"
#include "model/sink.h"
#include "model/wait_book.h"

enum { SINK_MEMORY_SAMPLES_MAX = 1 << 26 };

struct memory_process {
    struct process_info info;
    uint64_t end_ns; /* 0 while it runs */
    int wait_status;
};
struct memory_thread {
    struct thread_info info;
    uint64_t end_ns;
};
struct memory_mapping {
    struct mapping_info info;
    uint64_t end_ns;
};
struct memory_source_line {
    uint32_t file;
    uint32_t line;
    struct str text;
};
struct memory_instruction {
    uint32_t image;
    uint64_t address;
    uint32_t size;
    struct str text;
};
struct memory_counter {
    const char *name;
    enum unit unit;
    uint64_t value;
};
struct memory_document {
    const char *name;
    struct str json;
};

struct sink_memory {
    struct sink sink; /* first: the ops get this address */
    struct arena arena;
    struct interned interned; /* texts, frames and stacks */
    VEC(struct memory_process) processes;
    VEC(struct memory_thread) threads;
    VEC(struct image_info) images;
    VEC(struct memory_mapping) mappings;
    VEC(struct function_info) functions;
    VEC(struct location_info) locations;
    struct map_u64 location_at; /* frame and depth to index + 1 */
    VEC(struct memory_source_line) source_lines;
    VEC(struct memory_instruction) instructions;
    VEC(struct series_info) series;
    VEC(struct sample) samples;
    VEC(struct memory_counter) counters;
    VEC(struct memory_document) documents;
    struct wait_book book; /* objects and rows of waits */
    VEC(struct wait_event) wait_events;
    struct call_book calls; /* rows of calls, devices, connections, requests */
    VEC(struct request_event) request_events;
    struct heap_book heap; /* sites, processes and their moments */
    VEC(struct heap_snapshot_info) heap_snapshots;
    VEC(struct heap_snapshot_row) heap_snapshot_rows;
    VEC(struct heap_event) heap_events;
    size_t samples_max; /* 0: SINK_MEMORY_SAMPLES_MAX; lower it to play a full disk */
    int error;          /* the first failure, negative; every later call returns it */
    uint64_t dropped;   /* samples after it */
};

extern const struct sink_ops sink_memory_ops;
#define SINK_MEMORY_INIT ((struct sink_memory){.sink = {.ops = &sink_memory_ops}})

/* NULL when there is none of that name. */
const struct memory_counter *sink_memory_counter(const struct sink_memory *memory,
                                                 const char *name);
/* The id, or 0. */
uint32_t sink_memory_series(const struct sink_memory *memory, const char *name);
void sink_memory_deinit(struct sink_memory *memory);
