/* Waits made by hand, in memory: threads, stacks by the names of their functions, objects, rows.
 * Aborts when out of memory: it is test code. */
#pragma once

#include "analyze/waits_load.h"

#include <asm/unistd.h>
#include <stdlib.h>
#include <string.h>

enum { MADE_WAITS_MAX = 512 };

/* Fixed arrays, so that ids are indexes and nothing moves. */
struct made_waits {
    struct waits waits;
    struct profile_process processes[16];
    struct profile_thread threads[64];
    struct waits_thread lives[64];
    struct str groups[1];
    struct image_info images[4];
    struct profile_function functions[MADE_WAITS_MAX];
    struct profile_place places[MADE_WAITS_MAX];
    struct profile_frame frames[MADE_WAITS_MAX];
    struct profile_stack stacks[MADE_WAITS_MAX];
    struct object_info objects[MADE_WAITS_MAX];
    struct wait_row rows[MADE_WAITS_MAX];
    struct wait_event events[MADE_WAITS_MAX];
};

static inline struct made_waits *made_waits_new(void)
{
    struct made_waits *made = calloc(1, sizeof(*made));
    if (!made)
        abort();
    struct profile *profile = &made->waits.profile;
    *profile = (struct profile){
        .series = "offcpu",
        .unit = UNIT_NS,
        .about = "made by hand",
        .processes = made->processes,
        .process_count = 1,
        .threads = made->threads,
        .thread_count = 1,
        .thread_groups = made->groups,
        .thread_group_count = 1,
        .images = made->images,
        .image_count = 1,
        .functions = made->functions,
        .function_count = 1,
        .places = made->places,
        .place_count = 1,
        .frames = made->frames,
        .frame_count = 1,
        .stacks = made->stacks,
        .stack_count = 1,
        .command = STR("made"),
        .fingerprint_json = STR(""),
    };
    made->frames[0].place_count = 1;
    made->waits.threads = made->lives;
    made->waits.objects = made->objects;
    made->waits.object_count = 1;
    made->waits.rows = made->rows;
    made->waits.row_count = 1;
    made->waits.events = made->events;
    return made;
}

static inline uint32_t made_waits_process(struct made_waits *made, uint32_t pid, uint32_t parent)
{
    uint32_t id = (uint32_t)made->waits.profile.process_count++;
    made->processes[id] = (struct profile_process){.pid = pid, .parent = parent};
    return id;
}

/* Lives from 0 to `life_ns`. */
static inline uint32_t made_waits_thread(struct made_waits *made, uint32_t process, uint32_t tid,
                                         const char *name, uint64_t life_ns)
{
    uint32_t id = (uint32_t)made->waits.profile.thread_count++;
    made->threads[id] = (struct profile_thread){
        .process = process, .tid = tid, .name = str_from(name)};
    made->lives[id] = (struct waits_thread){.end_ns = life_ns};
    return id;
}

/* Functions from the root to the leaf, separated by blanks; the kernel's begin with "k:". */
static inline uint32_t made_waits_stack(struct made_waits *made, const char *names)
{
    struct profile *profile = &made->waits.profile;
    struct str rest = str_from(names);
    uint32_t stack = 0;
    while (rest.len > 0) {
        struct str name = str_cut(&rest, ' ');
        bool kernel = str_starts(name, "k:");
        if (kernel)
            name = (struct str){name.data + 2, name.len - 2};
        uint32_t function = (uint32_t)profile->function_count++;
        made->functions[function] = (struct profile_function){
            .name = name, .linkage = name, .kernel = kernel};
        uint32_t place = (uint32_t)profile->place_count++;
        made->places[place] = (struct profile_place){.function = function};
        uint32_t frame = (uint32_t)profile->frame_count++;
        made->frames[frame] = (struct profile_frame){
            .kind = kernel ? FRAME_KERNEL : FRAME_USER, .places = place, .place_count = 1};
        uint32_t id = (uint32_t)profile->stack_count++;
        if (id >= MADE_WAITS_MAX)
            abort();
        made->stacks[id] = (struct profile_stack){.parent = stack, .frame = frame};
        stack = id;
    }
    return stack;
}

static inline uint32_t made_waits_object(struct made_waits *made, enum object_kind kind,
                                         uint32_t flags, const char *name)
{
    uint32_t id = (uint32_t)made->waits.object_count++;
    made->objects[id] = (struct object_info){
        .kind = kind, .flags = flags, .key = 0x1000 + id, .name = str_from(name)};
    return id;
}

/* `count` waits of `ns` together. */
static inline uint32_t made_waits_row(struct made_waits *made, const struct wait_info *info,
                                      uint64_t count, uint64_t ns)
{
    uint32_t id = (uint32_t)made->waits.row_count++;
    if (id >= MADE_WAITS_MAX)
        abort();
    made->rows[id] = (struct wait_row){.info = *info};
    for (uint64_t i = 0; i < count; i++)
        wait_tally_one(&made->rows[id].tally, 1 + i, ns / count);
    return id;
}
