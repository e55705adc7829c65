/* One series of a recording, whole in memory, as analysis and pictures need it.
 *
 * Made by analyze/profile_load.h. Arrays are indexed by the recording's ids: entry 0 exists
 * and stands for "none", so that an id that is 0 needs no branch. Texts and arrays live in
 * the arena it was loaded into. Every frame has at least one place, also one that nobody
 * could name: then the function is made up from the image ("[libfoo.so]") or the reason
 * ("[unknown: stack slice ended]") and marked. */
#pragma once

#include "base/str.h"
#include "model/sink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile_process {
    uint32_t pid;
    uint32_t parent;
    uint64_t start_ns;
    struct str exe;
    struct str command;
};

struct profile_thread {
    uint32_t process;
    uint32_t tid;
    uint64_t start_ns;
    uint64_t end_ns; /* UINT64_MAX: it went on, or nobody knows */
    struct str name;
    uint32_t group; /* index into thread_groups */
    uint32_t life;  /* a thread that gets another name, or becomes another program, goes on as
                     * another row: the newest one of this thread */
};

/* Ids up to the recording's own count are those of its `function` table; made-up functions
 * follow. Stable for one recording: the same file gives the same ids. */
struct profile_function {
    struct str name;
    struct str linkage; /* empty if unknown */
    struct str file;    /* where it is declared; empty if unknown */
    uint32_t line;
    uint32_t image;
    uint64_t address; /* ELF vaddr of its code; 0 if unknown */
    uint64_t size_bytes;
    bool kernel;
    bool unnamed; /* made up: the image has no symbol there, or the walk ended */
};

/* A function and a line in it: one level of inlining of a frame. */
struct profile_place {
    uint32_t function;
    struct str file;
    uint32_t line;
};

struct profile_frame {
    enum frame_kind kind;
    uint32_t reason;
    uint32_t image;
    uint64_t address;
    uint32_t places; /* index of the innermost; `place_count` follow, outermost last */
    uint32_t place_count;
};

struct profile_stack {
    uint32_t parent; /* the caller's, 0 at the root; always smaller than its own index */
    uint32_t frame;
};

struct profile_total {
    uint32_t thread;
    uint32_t stack;
    uint64_t count;
    uint64_t weight;
};

struct profile_mapping {
    uint32_t process, image;
    uint64_t start_ns, end_ns; /* end UINT64_MAX while open */
    uint64_t address, size_bytes, file_offset;
};

struct profile {
    const char *series; /* "cpu" */
    enum unit unit;     /* of weights; UNIT_NS for time */
    const char *about;
    const char *counted;       /* what `count` counts: "call"; NULL: "sample" */
    uint64_t start_ns, end_ns; /* first and last sample */
    struct profile_process *processes;
    size_t process_count; /* of each array: entries, the 0th included */
    struct profile_thread *threads;
    size_t thread_count;
    struct str *thread_groups; /* "worker-*": threads of one name with numbers folded */
    size_t thread_group_count;
    struct image_info *images;
    size_t image_count;
    struct profile_mapping *mappings;
    size_t mapping_count;
    struct profile_function *functions;
    size_t function_count;
    struct profile_place *places;
    size_t place_count;
    struct profile_frame *frames;
    size_t frame_count;
    struct profile_stack *stacks;
    size_t stack_count;
    struct profile_total *totals; /* no 0th entry: a plain list */
    size_t total_count;
    /* Single samples in the order of time; NULL unless asked for. */
    uint64_t *sample_time_ns;
    uint32_t *sample_thread;
    uint32_t *sample_stack;
    uint64_t *sample_weight;
    size_t sample_count;
    uint64_t weight; /* sum over totals */
    uint64_t count;
    struct str command;          /* what was recorded, for titles */
    struct str fingerprint_json; /* empty if none */
};

/* Whatever is counted or listed by thread goes by this. Profiles that were made by hand have no
 * more than one row of a thread. */
static inline uint32_t profile_life(const struct profile *profile, uint32_t thread)
{
    uint32_t life = thread < profile->thread_count ? profile->threads[thread].life : 0;
    return life > 0 ? life : thread;
}
