/* A machine, a program and its stacks, made by hand for recordings whose every figure is known.
 * Aborts on any failure: it is test code. */
#pragma once

#include "../unit/made_profile.h"

#include "base/syscalls.h"

#include <string.h>

enum { MS = 1000000, ZERO_MS = 1000 };

struct world {
    struct made made;
    uint32_t app, libc, kernel; /* images */
    char names[128][128];       /* of functions: the same name is the same function */
    size_t name_count;
};

/* The number of a call on x86_64; -1: none of that name. */
static inline int32_t world_call(const char *name)
{
    for (int32_t i = 0; name && i < SYSCALLS_MAX; i++) {
        const char *known = syscall_name_on(SYSCALLS_X86_64, i);
        if (known && strcmp(known, name) == 0)
            return i;
    }
    return -1;
}

static inline uint64_t world_ns(double ms)
{
    return (uint64_t)((ZERO_MS + ms) * MS);
}

static inline uint64_t world_name(struct world *world, const char *name)
{
    size_t i = 0;
    while (i < world->name_count && strcmp(world->names[i], name) != 0)
        i++;
    if (i == ARRAY_SIZE(world->names))
        abort();
    if (i == world->name_count)
        snprintf(world->names[world->name_count++], sizeof(world->names[0]), "%s", name);
    return i;
}

/* Functions from the root to the leaf, separated by blanks: "libc:" and "kernel:" say where. */
static inline uint32_t world_stack(struct world *world, const char *names)
{
    struct made *made = &world->made;
    struct str rest = str_from(names);
    uint32_t id = 0;
    while (rest.len > 0) {
        struct str name = str_cut(&rest, ' ');
        bool libc = str_starts(name, "libc:"), kernel = str_starts(name, "kernel:");
        size_t skip = libc ? 5 : kernel ? 7 : 0;
        char text[128], file[160] = "";
        snprintf(text, sizeof(text), "%.*s", (int)(name.len - skip), name.data + skip);
        if (!libc && !kernel)
            snprintf(file, sizeof(file), "/src/%s.c", text);
        uint32_t image = libc ? world->libc : kernel ? world->kernel : world->app;
        uint64_t address = 0x1000 + world_name(world, text) * 0x100;
        uint32_t function = made_function(made, text, image, file, 1, address);
        uint32_t frame = made_frame(made, kernel ? FRAME_KERNEL : FRAME_USER, image, address + 4,
                                    NULL, 0);
        made_place(made, frame, 0, function, file, 7);
        made_check(sink_stack(made->sink, id, frame, &id), "stack");
    }
    return id;
}

/* `end_ms` 0: it does not end. Times in ms since the start of the recording. */
static inline uint32_t world_thread(struct world *world, uint32_t process, uint32_t tid,
                                    const char *name, double start_ms, double end_ms)
{
    uint32_t id;
    struct thread_info info = {process, tid, world_ns(start_ms), str_from(name)};
    made_check(sink_thread(world->made.sink, &info, &id), "thread");
    if (end_ms > 0)
        made_check(sink_thread_end(world->made.sink, id, world_ns(end_ms)), "end");
    return id;
}

static inline void world_document(struct world *world, const char *name, const char *json)
{
    made_check(sink_document(world->made.sink, name, str_from(json)), name);
}

static inline void world_images(struct world *world, const char *app, const char *build_id)
{
    world->app = made_image(&world->made, IMAGE_FILE, app, build_id);
    world->libc = made_image(&world->made, IMAGE_FILE, "/usr/lib/libc.so.6", "fedcba98");
    world->kernel = made_image(&world->made, IMAGE_KERNEL, "[kernel]", "");
}
