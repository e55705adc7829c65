/* A heap made by hand, as heap_load() would hand it out, in the words of a test. Stacks are
 * written "malloc;parse;main": what was called first. Aborts beyond its bounds: it is test
 * code. */
#pragma once

#include "analyze/heap_load.h"

#include <stdlib.h>
#include <string.h>

enum { MADE_SITES = 64, MADE_NAMES = 128 };

struct made_heap {
    struct heap heap;
    struct profile_process processes[4];
    struct profile_thread threads[8];
    struct image_info images[3]; /* none, the program, libc */
    struct profile_function functions[MADE_NAMES];
    struct profile_place places[MADE_NAMES];
    struct profile_frame frames[MADE_NAMES];
    struct profile_stack stacks[MADE_NAMES];
    struct heap_site sites[MADE_SITES];
    struct heap_process_row process_rows[4];
    struct heap_snapshot_rows snapshots[16];
    struct heap_snapshot_row rows[MADE_SITES];
    struct heap_moment moments[MADE_SITES];
    size_t row_count;
};

static inline size_t made_heap_bound(size_t index, size_t bound)
{
    if (index >= bound)
        abort();
    return index;
}

/* Threads 1 to 3 of process 1, thread 4 of process 2. */
static inline struct made_heap *made_heap_new(void)
{
    struct made_heap *made = calloc(1, sizeof(*made));
    if (!made)
        abort();
    made->heap = (struct heap){
        .profile = {.processes = made->processes,
                    .process_count = 3,
                    .threads = made->threads,
                    .thread_count = 5,
                    .images = made->images,
                    .image_count = 3,
                    .functions = made->functions,
                    .function_count = 1,
                    .places = made->places,
                    .place_count = 1,
                    .frames = made->frames,
                    .frame_count = 1,
                    .stacks = made->stacks,
                    .stack_count = 1},
        .sites = made->sites,
        .site_count = 1,
        .processes = made->process_rows,
        .process_count = 3,
        .snapshots = made->snapshots,
        .snapshot_count = 1,
        .moments = made->moments,
    };
    for (uint32_t i = 1; i < 5; i++)
        made->threads[i] = (struct profile_thread){.process = i == 4 ? 2 : 1, .tid = 100 + i};
    for (uint32_t i = 0; i < 3; i++)
        made->processes[i].pid = 10 * i;
    made->images[1].path = STR("/opt/bin/app");
    made->images[2].path = STR("/lib/libc.so.6");
    return made;
}

/* "libc:strdup" is of the C library, a first name without a callee is what was called. */
static inline uint32_t made_heap_function(struct made_heap *made, struct str name, bool called)
{
    struct profile *profile = &made->heap.profile;
    bool libc = str_starts(name, "libc:");
    if (libc)
        name = (struct str){name.data + 5, name.len - 5};
    for (uint32_t i = 1; i < profile->function_count; i++)
        if (str_eq(made->functions[i].name, name))
            return i;
    uint32_t id = (uint32_t)made_heap_bound(profile->function_count++, MADE_NAMES);
    made->functions[id] = (struct profile_function){.name = name,
                                                    .image = called ? 0
                                                             : libc ? 2
                                                                    : 1};
    made->places[id] = (struct profile_place){
        .function = id, .file = STR("/src/app.c"), .line = id};
    made->frames[id] = (struct profile_frame){.kind = called ? FRAME_NAMED : FRAME_USER,
                                              .image = made->functions[id].image,
                                              .places = id,
                                              .place_count = 1};
    profile->place_count = profile->frame_count = profile->function_count;
    return id;
}

static inline uint32_t made_heap_stack_at(struct made_heap *made, uint32_t parent, uint32_t frame)
{
    struct profile *profile = &made->heap.profile;
    for (uint32_t i = 1; i < profile->stack_count; i++)
        if (made->stacks[i].parent == parent && made->stacks[i].frame == frame)
            return i;
    uint32_t id = (uint32_t)made_heap_bound(profile->stack_count++, MADE_NAMES);
    made->stacks[id] = (struct profile_stack){parent, frame};
    return id;
}

static inline uint32_t made_heap_stack(struct made_heap *made, const char *text)
{
    struct str names[16], rest = str_from(text);
    size_t count = 0;
    while (rest.len > 0)
        names[made_heap_bound(count++, 16)] = str_cut(&rest, ';');
    uint32_t stack = 0;
    for (size_t i = count; i-- > 0;)
        stack = made_heap_stack_at(made, stack, made_heap_function(made, names[i], i == 0));
    return stack;
}

/* The row's tally, to be filled. */
static inline struct heap_tally *made_heap_site(struct made_heap *made, uint32_t thread,
                                                const char *stack)
{
    size_t id = made_heap_bound(made->heap.site_count++, MADE_SITES);
    made->sites[id] = (struct heap_site){
        .info = {.thread = thread, .stack = made_heap_stack(made, stack)},
        .process = made->threads[thread].process};
    return &made->sites[id].tally;
}

static inline void made_heap_snapshot(struct made_heap *made, uint32_t process, uint64_t ms)
{
    size_t id = made_heap_bound(made->heap.snapshot_count++, 16);
    made->snapshots[id] = (struct heap_snapshot_rows){
        .info = {.process = process, .time_ns = ms * 1000000},
        .rows = &made->rows[made->row_count]};
}

static inline void made_heap_lives(struct made_heap *made, const char *stack, int64_t bytes)
{
    size_t snapshot = made->heap.snapshot_count - 1;
    made->rows[made_heap_bound(made->row_count++, MADE_SITES)] = (struct heap_snapshot_row){
        .snapshot = (uint32_t)snapshot,
        .stack = made_heap_stack(made, stack),
        .count = 1,
        .bytes = bytes};
    made->snapshots[snapshot].count++;
}
