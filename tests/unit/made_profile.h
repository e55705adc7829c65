/* A profile made by hand through a sink: functions, frames and stacks by name, so that a test
 * reads as the profile it is about. Aborts on any failure: it is test code. */
#pragma once

#include "model/sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct made {
    struct sink *sink;
    uint32_t series;
    uint64_t now_ns;
};

static inline void made_check(int r, const char *what)
{
    if (r >= 0)
        return;
    fprintf(stderr, "made_profile: %s failed: %d\n", what, r);
    abort();
}

static inline uint32_t made_text(struct made *made, const char *text)
{
    uint32_t id = 0;
    if (text && *text)
        made_check(sink_text(made->sink, str_from(text), &id), "text");
    return id;
}

static inline uint32_t made_process(struct made *made, uint32_t pid, const char *exe,
                                    const char *command)
{
    uint32_t id;
    struct process_info info = {.pid = pid, .start_ns = 1, .exe = str_from(exe)};
    info.command = str_from(command);
    made_check(sink_process(made->sink, &info, &id), "process");
    return id;
}

static inline uint32_t made_thread(struct made *made, uint32_t process, uint32_t tid,
                                   const char *name)
{
    uint32_t id;
    struct thread_info info = {process, tid, 1, str_from(name)};
    made_check(sink_thread(made->sink, &info, &id), "thread");
    return id;
}

static inline uint32_t made_image(struct made *made, enum image_kind kind, const char *file_path,
                                  const char *build_id)
{
    uint32_t id;
    struct image_info info = {kind, str_from(file_path), str_from(build_id), 4096};
    made_check(sink_image(made->sink, &info, &id), "image");
    return id;
}

static inline uint32_t made_function(struct made *made, const char *name, uint32_t image,
                                     const char *file, uint32_t line, uint64_t address)
{
    uint32_t id;
    struct function_info info = {
        .name = made_text(made, name),
        .linkage = made_text(made, name),
        .file = made_text(made, file),
        .line = line,
        .image = image,
        .address = address,
        .size_bytes = address ? 0x100 : 0,
    };
    made_check(sink_function(made->sink, &info, &id), "function");
    return id;
}

static inline uint32_t made_frame(struct made *made, enum frame_kind kind, uint32_t image,
                                  uint64_t address, const char *name, uint32_t reason)
{
    uint32_t id;
    struct frame_info info = {kind, reason, image, address, made_text(made, name)};
    made_check(sink_frame(made->sink, &info, &id), "frame");
    return id;
}

/* The next level of a frame: call it innermost first, with depth 0, 1, … */
static inline void made_place(struct made *made, uint32_t frame, uint32_t depth, uint32_t function,
                              const char *file, uint32_t line)
{
    struct location_info info = {frame, depth, function, made_text(made, file), line};
    made_check(sink_location(made->sink, &info), "location");
}

/* A frame with one place: the usual one. */
static inline uint32_t made_code(struct made *made, uint32_t image, uint64_t address,
                                 uint32_t function, const char *file, uint32_t line)
{
    uint32_t frame = made_frame(made, FRAME_USER, image, address, NULL, 0);
    made_place(made, frame, 0, function, file, line);
    return frame;
}

/* Frames from the root to the leaf, ended by 0. */
static inline uint32_t made_stack(struct made *made, ...)
{
    uint32_t stack = 0;
    va_list frames;
    va_start(frames, made);
    for (uint32_t frame; (frame = va_arg(frames, uint32_t)) != 0;)
        made_check(sink_stack(made->sink, stack, frame, &stack), "stack");
    va_end(frames);
    return stack;
}

static inline uint32_t made_series(struct made *made, const char *name, enum series_kind kind,
                                   enum unit unit)
{
    struct series_info info = {name, kind, unit, "made by hand"};
    made_check(sink_series(made->sink, &info, &made->series), "series");
    return made->series;
}

/* `count` samples a millisecond apart. */
static inline void made_samples(struct made *made, uint32_t thread, uint32_t stack, uint64_t count,
                                uint64_t weight)
{
    for (uint64_t i = 0; i < count; i++) {
        made->now_ns += 1000000;
        struct sample sample = {made->series, thread, stack, made->now_ns, weight};
        made_check(sink_sample(made->sink, &sample), "sample");
    }
}
