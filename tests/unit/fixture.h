/* A small profile that uses every call of a sink, with texts that are hard to
 * keep: quotes, a NUL byte, bytes that are no UTF-8, all 64 bits of an address.
 * The same calls go to any sink, so that two sinks can be compared. */
#pragma once

#include "model/sink.h"

#include <stdio.h>

enum { FIXTURE_STACKS = 40, FIXTURE_THREADS = 3 };

struct fixture {
    uint32_t cpu, rss;
    uint32_t threads[FIXTURE_THREADS];
    uint32_t stacks[FIXTURE_STACKS];
    uint64_t samples; /* given so far */
};

#define FIXTURE_TRY(call)                                                                          \
    do {                                                                                           \
        int fixture_r = (call);                                                                    \
        if (fixture_r < 0)                                                                         \
            return fixture_r;                                                                      \
    } while (0)

static inline int fixture_processes(struct sink *sink, struct fixture *fixture)
{
    static const char odd_name[] = {'a', '\'', '"', '\0', (char)0xff, ';', '\n'};
    uint32_t parent, child;
    struct process_info shell = {.pid = 100, .start_ns = 1000, .exe = STR("/bin/sh")};
    shell.command = STR("sh -c 'make; test'");
    FIXTURE_TRY(sink_process(sink, &shell, &parent));
    struct process_info server = {.pid = UINT32_MAX, .parent = parent, .start_ns = 2000};
    server.exe = STR("/opt/a b/server");
    server.command = (struct str){odd_name, sizeof(odd_name)};
    FIXTURE_TRY(sink_process(sink, &server, &child));
    for (uint32_t i = 0; i < FIXTURE_THREADS; i++) {
        char name[16];
        int len = snprintf(name, sizeof(name), "worker-%u", i);
        struct thread_info thread = {child, 200 + i, 3000 + i, {name, (size_t)len}};
        FIXTURE_TRY(sink_thread(sink, &thread, &fixture->threads[i]));
    }
    FIXTURE_TRY(sink_thread_end(sink, fixture->threads[1], 9000000));
    return sink_process_end(sink, parent, 9999999, 0x8b00 | 6);
}

/* main calls decode, decode calls one of 40 leaves; kernel and unknown frames too. */
static inline int fixture_stacks(struct sink *sink, struct fixture *fixture)
{
    uint32_t exe, kernel, mapping, name, frame, root, decode, text;
    struct image_info info = {IMAGE_FILE, STR("/opt/a b/server"), STR("00ff17"), 1 << 20};
    FIXTURE_TRY(sink_image(sink, &info, &exe));
    struct image_info kernel_info = {.kind = IMAGE_KERNEL, .path = STR("[kernel]")};
    FIXTURE_TRY(sink_image(sink, &kernel_info, &kernel));
    struct mapping_info map = {2, exe, 2500, 0x7f0000000000, 0x5000, 0x1000};
    FIXTURE_TRY(sink_mapping(sink, &map, &mapping));
    FIXTURE_TRY(sink_mapping_end(sink, mapping, 8000000));
    map.address = 0xffffffffff600000;
    FIXTURE_TRY(sink_mapping(sink, &map, &mapping));

    FIXTURE_TRY(sink_text(sink, STR("main"), &name));
    struct frame_info main_frame = {.kind = FRAME_NAMED, .name = name};
    FIXTURE_TRY(sink_frame(sink, &main_frame, &frame));
    FIXTURE_TRY(sink_stack(sink, 0, frame, &root));
    struct frame_info decode_frame = {.kind = FRAME_USER, .image = exe, .address = 0x1234};
    FIXTURE_TRY(sink_frame(sink, &decode_frame, &frame));
    FIXTURE_TRY(sink_stack(sink, root, frame, &decode));
    uint32_t inlined, caller, file;
    FIXTURE_TRY(sink_text(sink, STR("step<int;2>"), &inlined));
    FIXTURE_TRY(sink_text(sink, STR("decode"), &caller));
    FIXTURE_TRY(sink_text(sink, STR("src/decode.c"), &file));
    uint32_t step, whole;
    struct function_info function = {.name = inlined, .file = file, .line = 12, .image = exe};
    FIXTURE_TRY(sink_function(sink, &function, &step));
    function = (struct function_info){caller, caller, file, 90, exe, 0x1200, 0x80};
    FIXTURE_TRY(sink_function(sink, &function, &whole));
    FIXTURE_TRY(sink_location(sink, &(struct location_info){frame, 0, step, file, 17}));
    FIXTURE_TRY(sink_location(sink, &(struct location_info){frame, 1, whole, file, 99}));
    FIXTURE_TRY(sink_source_line(sink, file, 17, STR("\treturn x << 1; /* \"twice\" */")));
    FIXTURE_TRY(sink_instruction(sink, exe, 0x1234, 4, STR("shl %eax")));
    for (uint32_t i = 0; i < FIXTURE_STACKS; i++) {
        struct frame_info leaf = {.kind = FRAME_USER, .image = exe, .address = 0x2000 + i * 16};
        if (i % 7 == 3)
            leaf = (struct frame_info){FRAME_KERNEL, 0, kernel, 0xffffffff81000000 + i, 0};
        if (i % 11 == 5)
            leaf = (struct frame_info){.kind = FRAME_UNKNOWN, .reason = i};
        FIXTURE_TRY(sink_frame(sink, &leaf, &frame));
        FIXTURE_TRY(sink_stack(sink, decode, frame, &fixture->stacks[i]));
    }
    return sink_text(sink, STR("an unused text"), &text);
}

static inline int fixture_begin(struct sink *sink, struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    FIXTURE_TRY(fixture_processes(sink, fixture));
    FIXTURE_TRY(fixture_stacks(sink, fixture));
    struct series_info cpu = {"cpu", SERIES_SUM, UNIT_NS, "time on a CPU"};
    struct series_info rss = {"rss", SERIES_LEVEL, UNIT_BYTES, "resident memory"};
    FIXTURE_TRY(sink_series(sink, &cpu, &fixture->cpu));
    FIXTURE_TRY(sink_series(sink, &rss, &fixture->rss));
    FIXTURE_TRY(sink_document(sink, "fingerprint", STR("{\"old\": true}")));
    return sink_document(sink, "fingerprint", STR("{\"cpu\": \"\u00b5\"}"));
}

/* The n-th sample is the same in every run: a reader can check what it finds. */
static inline struct sample fixture_sample(const struct fixture *fixture, uint64_t n)
{
    uint64_t mixed = n * 0x9e3779b97f4a7c15u;
    bool level = n % 10 == 9;
    return (struct sample){
        .series = level ? fixture->rss : fixture->cpu,
        .thread = n % 13 == 0 ? 0 : fixture->threads[mixed >> 40 & 1],
        .stack = level ? 0 : fixture->stacks[(mixed >> 32) % FIXTURE_STACKS],
        /* Some steps go back, as between the rings of two CPUs. */
        .time_ns = 10000 + n * 1000 + (n % 5 == 0 ? 7500 : 0),
        .weight = level ? (mixed >> 20) : 1000 + (mixed >> 60),
    };
}

static inline int fixture_samples(struct sink *sink, struct fixture *fixture, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct sample sample = fixture_sample(fixture, fixture->samples);
        FIXTURE_TRY(sink_sample(sink, &sample));
        fixture->samples++;
    }
    FIXTURE_TRY(sink_counter(sink, "loss.ring_full", UNIT_COUNT, 3));
    return sink_counter(sink, "own.cpu", UNIT_NS, 123456789);
}
