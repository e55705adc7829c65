/* What the recording costs: samples written a second, bytes a sample on disk,
 * time to open a recording and total its samples from the chunks.
 *
 *     bench-store [SAMPLES [FOLDER]]
 *
 * The mix is that of a busy server: 16 threads sampled at 1 kHz with jitter,
 * 5,000 distinct stacks of 20 to 60 frames that share their roots, drawn by
 * Zipf's law, weights near the sampling period. Everything is made beforehand,
 * so that only the sink is timed. */
#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "store/reader.h"
#include "store/writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 16, STACKS = 5000, FRAMES = 20000, DRAWS = 1 << 20, PERIOD_NS = 1000000 };

static uint64_t random_state = 0x853c49e6748fea9bu;

static uint64_t random_u64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545f4914f6cdd1du;
}

static uint64_t random_below(uint64_t bound)
{
    return random_u64() % bound;
}

static double random_unit(void)
{
    return (double)(random_u64() >> 11) * 0x1p-53;
}

static void check(int r, const char *what, const struct why *why)
{
    if (r >= 0)
        return;
    fprintf(stderr, "bench-store: %s failed: %s\n", what, why->what);
    exit(5);
}

struct mix {
    uint32_t series;
    uint32_t threads[THREADS];
    uint32_t stacks[STACKS];
    uint32_t *draws; /* indexes of stacks, by Zipf's law */
};

/* Walks share their root with an earlier stack up to a random depth, as the
 * stacks of one program do. */
static void make_stacks(struct sink *sink, struct mix *mix, const struct why *why)
{
    uint32_t image, *frames = malloc(FRAMES * sizeof(*frames));
    uint32_t(*paths)[64] = calloc(STACKS, sizeof(*paths));
    if (!frames || !paths)
        exit(5);
    struct image_info info = {.path = STR("/usr/bin/server"), .size_bytes = 40 << 20};
    check(sink_image(sink, &info, &image), "image", why);
    for (uint32_t i = 0; i < FRAMES; i++) {
        struct frame_info frame = {.image = image, .address = 0x1000 + (uint64_t)i * 137};
        check(sink_frame(sink, &frame, &frames[i]), "frame", why);
    }
    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t depth = 20 + (uint32_t)random_below(41), stack = 0, shared = 0;
        const uint32_t *other = i ? paths[random_below(i)] : NULL;
        if (other)
            shared = (uint32_t)random_below(depth);
        for (uint32_t d = 0; d < depth; d++) {
            if (d < shared && other[d] != 0)
                stack = other[d];
            else
                check(sink_stack(sink, stack, frames[random_below(FRAMES)], &stack), "stack", why);
            paths[i][d] = stack;
        }
        mix->stacks[i] = stack;
    }
    free(frames);
    free(paths);
}

static void make_draws(struct mix *mix)
{
    double *sums = malloc(STACKS * sizeof(*sums)), sum = 0;
    mix->draws = malloc(DRAWS * sizeof(*mix->draws));
    if (!sums || !mix->draws)
        exit(5);
    for (uint32_t i = 0; i < STACKS; i++)
        sums[i] = sum += 1.0 / (i + 1);
    for (uint32_t i = 0; i < DRAWS; i++) {
        double wanted = random_unit() * sum;
        uint32_t low = 0, high = STACKS - 1;
        while (low < high) {
            uint32_t middle = (low + high) / 2;
            if (sums[middle] < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        mix->draws[i] = low;
    }
    free(sums);
}

static void make_mix(struct sink *sink, struct mix *mix, const struct why *why)
{
    uint32_t process;
    struct process_info server = {.pid = 1000, .exe = STR("/usr/bin/server")};
    check(sink_process(sink, &server, &process), "process", why);
    for (uint32_t i = 0; i < THREADS; i++) {
        struct thread_info thread = {.process = process, .tid = 1000 + i, .name = STR("worker")};
        check(sink_thread(sink, &thread, &mix->threads[i]), "thread", why);
    }
    struct series_info cpu = {"cpu", SERIES_SUM, UNIT_NS, "time on a CPU"};
    check(sink_series(sink, &cpu, &mix->series), "series", why);
    make_stacks(sink, mix, why);
    make_draws(mix);
}

static struct sample *make_samples(const struct mix *mix, size_t count)
{
    struct sample *samples = malloc(count * sizeof(*samples));
    if (!samples)
        exit(5);
    uint64_t start_ns = clock_mono_ns() / 2; /* old: the clock decides when to commit */
    for (size_t i = 0; i < count; i++) {
        uint64_t jitter = random_below(40000);
        samples[i] = (struct sample){
            .series = mix->series,
            .thread = mix->threads[i % THREADS],
            .stack = mix->stacks[mix->draws[(i * 7 + i / DRAWS) % DRAWS]],
            .time_ns = start_ns + i / THREADS * PERIOD_NS + i % THREADS * (PERIOD_NS / THREADS) +
                       jitter,
            .weight = PERIOD_NS - 3000 + random_below(6000),
        };
    }
    return samples;
}

static bool report(const char *what, double value, const char *unit, double target, bool at_least)
{
    bool good = at_least ? value >= target : value <= target;
    printf("store  %-34s %14.2f %-12s target %s %-10.0f %s\n", what, value, unit,
           at_least ? ">=" : "<=", target, good ? "pass" : "MISS");
    return good;
}

static bool bench_write(const char *path, size_t count, uint64_t *ret_weight)
{
    struct why why = {0};
    struct recording_writer *writer;
    check(recording_create(path, &(struct recording_opts){.version = "bench"}, &writer, &why),
          "create", &why);
    struct sink *sink = recording_writer_sink(writer);
    struct mix mix;
    make_mix(sink, &mix, recording_writer_why(writer));
    struct sample *samples = make_samples(&mix, count);
    *ret_weight = 0;
    for (size_t i = 0; i < count; i++)
        *ret_weight += samples[i].weight;

    uint64_t start_ns = clock_mono_ns();
    for (size_t i = 0; i < count; i++)
        check(sink_sample(sink, &samples[i]), "sample", recording_writer_why(writer));
    check(recording_writer_finish(writer, &why), "finish", &why);
    double seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
    recording_writer_close(writer);
    free(samples);
    free(mix.draws);
    struct stat st;
    if (stat(path, &st) < 0)
        exit(5);
    bool good = report("samples written", (double)count / seconds, "samples/s", 1e6, true);
    return report("size on disk", (double)st.st_size / (double)count, "B/sample", 24, false) &&
           good;
}

/* What a report does first: every sample out of its chunk, totalled per thread
 * and stack. The sum must be what went in. */
static bool bench_read(const char *path, size_t count, uint64_t weight)
{
    struct why why = {0};
    struct recording *recording;
    struct sample_cursor *cursor;
    struct sample_block block;
    struct map_u64 totals = {0};
    uint64_t start_ns = clock_mono_ns(), samples = 0, sum = 0;
    check(recording_open(path, &recording, &why), "open", &why);
    check(sample_cursor_open(recording, 1, SAMPLES_ALL, &cursor, &why), "cursor", &why);
    int r;
    while ((r = sample_cursor_next(cursor, &block, &why)) > 0) {
        for (size_t i = 0; i < block.count; i++) {
            uint64_t *total = map_u64_at(&totals, (uint64_t)block.thread[i] << 32 | block.stack[i],
                                         NULL);
            if (!total)
                exit(5);
            *total += block.weight[i];
        }
        samples += block.count;
    }
    check(r, "read", &why);
    double seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
    for (size_t i = 0; i < totals.cap; i++)
        sum += totals.slots[i].value;
    sample_cursor_close(cursor);
    recording_close(recording);
    map_u64_deinit(&totals);
    if (samples != count || sum != weight) {
        fprintf(stderr,
                "bench-store: read %" PRIu64 " samples with weight %" PRIu64
                ", wrote %zu with %" PRIu64 "\n",
                samples, sum, count, weight);
        exit(5);
    }
    return report("10 M samples opened and totalled", seconds * 1e7 / (double)count, "s", 2, false);
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    char path[4096];
    snprintf(path, sizeof(path), "%s/bench-store-%d.whyslow", argc > 2 ? argv[2] : "/tmp",
             (int)getpid());
    uint64_t weight;
    bool good = count > 0 && bench_write(path, count, &weight);
    good = count > 0 && bench_read(path, count, weight) && good;
    unlink(path);
    return good ? 0 : 1;
}
