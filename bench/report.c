/* From a recording on disk to the ranked table: 10 million samples in at most 2 seconds.
 *
 *     bench-report [SAMPLES [FOLDER]]
 *
 * Two mixes. A busy server: 16 threads, 5,000 distinct stacks of 20 to 60 frames, few of them
 * most of the time. A compiler-like one: 200,000 distinct stacks, two million calls in the
 * tree, all of them seen, as in imports of other tools' files. 4,000 named functions, a third
 * of the frames with an inlined one. */
#include "analyze/call_tree.h"
#include "analyze/hotspots.h"
#include "analyze/profile_load.h"
#include "base/clock.h"
#include "present/profile_tables.h"
#include "present/renderers.h"
#include "store/reader.h"
#include "store/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 16, FUNCTIONS = 4000, FRAMES = 20000, DEPTH_MAX = 64 };

static uint64_t random_state = 0x853c49e6748fea9bu;

static uint64_t random_below(uint64_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state * 0x2545f4914f6cdd1du >> 11) % bound;
}

static void check(int r, const char *what, const struct why *why)
{
    if (r >= 0)
        return;
    fprintf(stderr, "bench-report: %s failed: %s\n", what, why ? why->what : "");
    exit(5);
}

struct mix {
    struct sink *sink;
    uint32_t image, process, series;
    uint32_t threads[THREADS];
    uint32_t frames[FRAMES];
    uint32_t *stacks;
    size_t stack_count;
};

static void make_functions(struct mix *mix)
{
    uint32_t file, functions[FUNCTIONS];
    check(sink_text(mix->sink, STR("/src/server/work.c"), &file), "text", NULL);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        char name[64];
        int len = snprintf(name, sizeof(name), "server::module_%u::function_%u(int)", i % 40, i);
        struct function_info info = {.file = file, .line = i + 1, .image = mix->image};
        check(sink_text(mix->sink, (struct str){name, (size_t)len}, &info.name), "text", NULL);
        info.address = 0x1000 + (uint64_t)i * 1000;
        info.size_bytes = 1000;
        check(sink_function(mix->sink, &info, &functions[i]), "function", NULL);
    }
    for (uint32_t i = 0; i < FRAMES; i++) {
        struct frame_info frame = {.image = mix->image, .address = 0x1000 + (uint64_t)i * 137};
        check(sink_frame(mix->sink, &frame, &mix->frames[i]), "frame", NULL);
        uint32_t levels = i % 3 == 0 ? 2 : 1;
        for (uint32_t level = 0; level < levels; level++) {
            struct location_info location = {mix->frames[i], level,
                                             functions[random_below(FUNCTIONS)], file,
                                             1 + (uint32_t)random_below(5000)};
            check(sink_location(mix->sink, &location), "location", NULL);
        }
    }
}

/* Walks share their root with an earlier stack up to a random depth. */
static void make_stacks(struct mix *mix)
{
    uint32_t(*paths)[DEPTH_MAX] = calloc(mix->stack_count, sizeof(*paths));
    mix->stacks = calloc(mix->stack_count, sizeof(*mix->stacks));
    if (!paths || !mix->stacks)
        exit(5);
    for (size_t i = 0; i < mix->stack_count; i++) {
        uint32_t depth = 20 + (uint32_t)random_below(41), stack = 0;
        const uint32_t *other = i ? paths[random_below(i)] : NULL;
        /* Most of a new stack is an old one: programs branch near the leaf. */
        uint32_t shared = other ? depth - 1 - (uint32_t)random_below(depth / 4) : 0;
        for (uint32_t d = 0; d < depth; d++) {
            if (d < shared && other[d] != 0)
                stack = other[d];
            else
                check(sink_stack(mix->sink, stack, mix->frames[random_below(FRAMES)], &stack),
                      "stack", NULL);
            paths[i][d] = stack;
        }
        mix->stacks[i] = stack;
    }
    free(paths);
}

static void make_recording(const char *path, size_t samples, size_t stacks)
{
    struct why why = {0};
    struct recording_writer *writer;
    check(recording_create(path, &(struct recording_opts){.version = "bench"}, &writer, &why),
          "create", &why);
    struct mix *mix = calloc(1, sizeof(*mix));
    if (!mix)
        exit(5);
    mix->sink = recording_writer_sink(writer);
    mix->stack_count = stacks;
    struct process_info server = {.pid = 1000, .exe = STR("/usr/bin/server")};
    check(sink_process(mix->sink, &server, &mix->process), "process", NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        struct thread_info thread = {.process = mix->process, .tid = 1000 + i};
        thread.name = STR("worker");
        check(sink_thread(mix->sink, &thread, &mix->threads[i]), "thread", NULL);
    }
    struct image_info image = {.path = STR("/usr/bin/server"), .size_bytes = 40 << 20};
    check(sink_image(mix->sink, &image, &mix->image), "image", NULL);
    struct series_info cpu = {"cpu", SERIES_SUM, UNIT_NS, "time on a CPU"};
    check(sink_series(mix->sink, &cpu, &mix->series), "series", NULL);
    make_functions(mix);
    make_stacks(mix);
    for (size_t i = 0; i < samples; i++) {
        /* Squared: low numbers are drawn far more often. A stack belongs to one thread mostly. */
        double draw = (double)random_below(1 << 20) / (1 << 20);
        size_t at = i % 20 == 0 ? i / 20 % stacks : (size_t)(draw * draw * draw * (double)stacks);
        struct sample sample = {mix->series, mix->threads[at % THREADS], mix->stacks[at],
                                1000000 + i * 62500, 990000 + random_below(20000)};
        check(sink_sample(mix->sink, &sample), "sample", recording_writer_why(writer));
    }
    check(recording_writer_finish(writer, &why), "finish", &why);
    recording_writer_close(writer);
    free(mix->stacks);
    free(mix);
}

static bool report(const char *mix, const char *what, double seconds, double target)
{
    bool good = seconds <= target;
    printf("report  %-9s %-38s %8.2f s  target <= %.0f s  %s\n", mix, what, seconds, target,
           good ? "pass" : "MISS");
    return good;
}

/* Open, load, rank, draw the table: what `whyslow report` does. */
static double rank(const char *path, const struct profile_opts *opts, uint64_t expected, bool tree)
{
    struct why why = {0};
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct recording *recording;
    struct profile profile;
    struct hotspots hotspots;
    uint64_t start_ns = clock_mono_ns();
    check(recording_open(path, &recording, &why), "open", &why);
    check(profile_load(&arena, recording, opts, &profile, &why), "load", &why);
    check(hotspots_build(&arena, &profile, &hotspots), "rank", NULL);
    struct call_tree calls;
    if (tree)
        check(call_tree_build(&arena, &profile, NULL, &calls), "tree", NULL);
    struct tables tables = {&arena, &profile, &hotspots, path, 20};
    struct value root = value_map(&arena);
    value_put(&root, "hotspots", NULL, tables_hotspots(&tables));
    FILE *out = fopen("/dev/null", "w");
    if (!out)
        exit(5);
    struct report drawn = {.schema = "whyslow.report/1", .root = &root};
    check(render(renderer_find("text"), &drawn, &(struct render_opts){0}, out, &why), "draw", &why);
    fclose(out);
    recording_close(recording);
    double seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
    if (expected && profile.count != expected) {
        fprintf(stderr, "bench-report: %" PRIu64 " samples ranked, %" PRIu64 " recorded\n",
                profile.count, expected);
        exit(5);
    }
    return seconds;
}

int main(int argc, char **argv)
{
    size_t samples = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    const char *folder = argc > 2 ? argv[2] : "/tmp";
    static const struct {
        const char *name;
        size_t stacks;
    } mixes[] = {{"server", 5000}, {"compiler", 200000}};
    bool good = samples > 0;
    for (size_t i = 0; good && i < ARRAY_SIZE(mixes); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/bench-report-%d.whyslow", folder, (int)getpid());
        make_recording(path, samples, mixes[i].stacks);
        const char *name = mixes[i].name;
        uint64_t whole_ns = (uint64_t)samples * 62500;
        struct profile_opts all = {0}, range = {.to_ns = whole_ns}, single = {.samples = true};
        good = report(name, "10 M samples ranked", rank(path, &all, samples, false), 2) && good;
        good = report(name, "ranked out of a time range", rank(path, &range, samples, false), 4) &&
               good;
        good = report(name, "ranked, single samples loaded", rank(path, &single, samples, false),
                      4) &&
               good;
        good = report(name, "ranked, with the tree of a flame graph",
                      rank(path, &all, samples, true), 8) &&
               good;
        unlink(path);
    }
    return good ? 0 : 1;
}
