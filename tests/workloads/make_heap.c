/* Writes a recording of a heap whose every figure is known, the same on every machine.
 *
 *     make-heap KIND FILE
 *
 * plain    ten seconds of a shop and of a report that it forks: three threads, a dozen stacks;
 *          leaks, temporaries, buffers grown step by step, orders that another thread frees, three
 *          snapshots of which one site grows in each, memory over time, mappings
 * more     the same, a later version: it leaks more, holds less and has a new site
 * sampled  the same by samples, one in 512 KiB
 * log      the same, and four events of it one by one
 * kernel   of a running program, as the kernel tier sees it: earlier allocations unseen
 * machine  the same as seen from the whole machine: no root
 * large    100 million allocations at 10,000 stacks of four threads, told twenty times
 * empty    recorded with --heap, but nothing was allocated
 * bare     one allocation without stack or name; no moment, no process figures
 * hostile  names with markup, escapes and newlines */
#include "world.h"

#include "format/heap.h"
#include "store/writer.h"

#include <inttypes.h>

enum { SPAN_MS = 10000, SAMPLED_BYTES = 512 << 10 };

static uint64_t clock_zero(void)
{
    return 1;
}

struct scene {
    struct world world;
    uint32_t shop, report;                /* processes */
    uint32_t main_thread, worker, writer; /* the last is the report's only one */
    struct heap_process_tally tallies[2]; /* of the two */
    bool sampled, more, kernel;
    struct recording_writer *file;
};

/* What one thread did at one stack: pieces of one size. */
struct put {
    uint32_t thread, stack;
    uint64_t count, size;
    uint64_t freed, temporary;
    int64_t peak; /* pieces that lived then */
    double lived_ms;
    uint64_t grown, moved, chain;
    enum heap_kind kind;
};

static void tally_add(struct scene *scene, const struct put *put)
{
    struct heap_process_tally *tally = &scene->tallies[put->thread == scene->writer];
    uint64_t ticks = (uint64_t)(put->lived_ms * MS / HEAP_TICK_NS);
    if (put->kind != HEAP_KIND_HEAP)
        return;
    tally->peak_bytes += (uint64_t)put->peak * put->size; /* wraps, and is right in the end */
    tally->peak_count += (uint64_t)put->peak;
    tally->sizes[heap_bucket(put->size, HEAP_SIZE_BUCKETS)] += put->count;
    tally->lives[heap_bucket(ticks, HEAP_LIFE_BUCKETS)] += put->freed;
}

static void put(struct scene *scene, const struct put *put)
{
    struct sink *sink = scene->world.made.sink;
    struct heap_site_info info = {put->thread, put->stack, put->kind};
    uint64_t grown = put->grown ? put->grown : 0;
    struct heap_tally tally = {
        .allocations = put->count,
        .allocated_bytes = put->count * put->size,
        .frees = put->freed,
        .freed_bytes = put->freed * put->size,
        .temporary = put->temporary,
        .temporary_bytes = put->temporary * put->size,
        .peak_count = put->peak,
        .peak_bytes = put->peak * (int64_t)put->size,
        .grown = grown,
        .grown_bytes = grown * put->size,
        .moved = put->moved,
        .chain_max = put->chain,
        .size_max = put->count > 0 ? put->size : 0,
        .lived_ns = (uint64_t)((double)put->freed * put->lived_ms * MS),
        .samples = put->count,
    };
    if (scene->sampled) {
        uint64_t bytes = tally.allocated_bytes;
        tally.samples = MAX(bytes / SAMPLED_BYTES, put->count > 0 ? 1u : 0u);
        tally.variance = (double)bytes * SAMPLED_BYTES;
    }
    uint32_t site;
    made_check(sink_heap_site(sink, &info, &site), "site");
    made_check(sink_heap_site_set(sink, site, &tally), "tally");
    tally_add(scene, put);
}

/* The caller's stack, and on it the function that was called. */
static uint32_t stack(struct scene *scene, const char *names, const char *called)
{
    struct made *made = &scene->world.made;
    uint32_t id = world_stack(&scene->world, names);
    uint32_t frame = made_frame(made, FRAME_NAMED, 0, 0, called, 0);
    made_check(sink_stack(made->sink, id, frame, &id), "stack");
    return id;
}

/* ---- what the programs do ---- */

static void put_all(struct scene *scene, const struct put *sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(scene, &sites[i]);
}

static void shop_main(struct scene *scene)
{
    uint32_t thread = scene->main_thread;
    uint64_t leaked = scene->more ? 4000 : 3000;
    struct put sites[] = {
        /* The catalog: most of the peak, all of it freed. */
        {thread, stack(scene, "_start main load_catalog parse_item", "malloc"), 50000, 64, 50000, 0,
         scene->more ? 40000 : 50000, 6000},
        {thread, stack(scene, "_start main load_catalog", "calloc"), 1, 8 << 20, 0, 0, 1},
        /* Freed before the next allocation, every time. */
        {thread, stack(scene, "_start main handle format_price", "malloc"), 200000, 32, 200000,
         200000, 0, 0.001},
        {thread, stack(scene, "_start main handle format_price to_text", "operator new"), 1200, 40,
         1200, 900, 2, 1},
        /* A buffer that grows step by step, twenty-four steps the longest. */
        {thread, stack(scene, "_start main handle grow_buffer", "realloc"), 1200, 4096, 1200, 0, 1,
         40, 1150, 300, 24},
        /* A cache from which little is ever removed. */
        {thread, stack(scene, "_start main handle cache_put make_entry", "operator new"), 5000, 120,
         5000 - leaked, 0, 3500, 2000},
        {thread, stack(scene, "_start main read_config libc:__GI___strdup", "malloc"), 40, 24, 0, 0,
         40},
        /* Orders, of which the worker frees all but a hundred. */
        {thread, stack(scene, "_start main accept_order", "malloc"), 10000, 256, 0, 0, 9000},
        {thread, 0, 5, 16, 5, 0, 0, 8},
    };
    put_all(scene, sites, ARRAY_SIZE(sites));
    if (scene->more) {
        struct put fresh = {
            thread, stack(scene, "_start main audit_log", "malloc"), 700, 512, 100, 0, 500, 100};
        put(scene, &fresh);
    }
}

static void shop_worker(struct scene *scene)
{
    uint32_t thread = scene->worker;
    struct put sites[] = {
        {thread, stack(scene, "_start main accept_order", "malloc"), 0, 256, 9900, 0, -8800, 35},
        {thread, stack(scene, "libc:start_thread serve handle_request", "malloc"), 30000, 1000,
         30000, 10000, 25, 4},
        {thread, stack(scene, "libc:start_thread serve render", "operator new[]"), 4000, 2048, 4000,
         0, 12, 50},
        /* Nothing at all, but five times. */
        {thread, stack(scene, "libc:start_thread serve", "malloc"), 5, 0, 5, 5, 0, 0.001},
    };
    put_all(scene, sites, ARRAY_SIZE(sites));
}

static void shop_maps(struct scene *scene)
{
    struct put maps[] = {
        {.thread = scene->main_thread,
         .stack = stack(scene, "_start main map_index", "mmap"),
         .count = 2,
         .size = 64 << 20,
         .kind = HEAP_KIND_MAP},
        {.thread = scene->main_thread,
         .stack = stack(scene, "_start main drop_index", "munmap"),
         .count = 1,
         .size = 64 << 20,
         .kind = HEAP_KIND_UNMAP},
    };
    put_all(scene, maps, ARRAY_SIZE(maps));
}

static void report_main(struct scene *scene)
{
    uint32_t thread = scene->writer;
    struct put sites[] = {
        {thread, stack(scene, "_start main write_report build_rows", "malloc"), 20000, 48, 0, 0,
         20000},
        {thread, stack(scene, "_start main write_report print_row", "malloc"), 20000, 200, 20000,
         19000, 1, 0.002},
    };
    put_all(scene, sites, ARRAY_SIZE(sites));
}

static void processes(struct scene *scene)
{
    struct heap_process_tally *shop = &scene->tallies[0], *report = &scene->tallies[1];
    shop->peak_ns = world_ns(6200);
    shop->life_unit_ns = report->life_unit_ns = HEAP_TICK_NS;
    shop->failed = 2;
    shop->unseen_frees = scene->kernel ? 1234 : 3;
    report->peak_ns = world_ns(4900);
    report->inherited_frees = 12;
    report->inherited_bytes = 768;
    made_check(sink_heap_process_set(scene->world.made.sink, scene->shop, shop), "process");
    made_check(sink_heap_process_set(scene->world.made.sink, scene->report, report), "process");
}

/* ---- over time ---- */

/* Up to the peak at 6.2 s, then down to what is never freed. */
static void moments(struct scene *scene)
{
    uint64_t peak = scene->tallies[0].peak_bytes, end = peak / 2;
    for (uint64_t ms = 100; ms < SPAN_MS; ms += 100) {
        uint64_t live = ms <= 6200 ? peak * ms / 6200 : peak - (peak - end) * (ms - 6200) / 3800;
        struct heap_moment moment = {scene->shop, world_ns((double)ms), live,
                                     (6 << 20) + MAX(live, ms > 6200 ? peak * 9 / 10 : 0)};
        made_check(sink_heap_moment(scene->world.made.sink, &moment), "moment");
    }
    for (uint64_t ms = 3000; ms <= 5000; ms += 100) {
        struct heap_moment moment = {scene->report, world_ns((double)ms),
                                     scene->tallies[1].peak_bytes * (ms - 3000) / 2000, 0};
        made_check(sink_heap_moment(scene->world.made.sink, &moment), "moment");
    }
}

/* The cache grows from each to the next, the catalog does not. */
static void snapshots(struct scene *scene)
{
    static const struct {
        double ms;
        enum heap_snapshot_why why;
        int64_t cache, orders;
    } looks[] = {{2500, HEAP_SNAPSHOT_TIMER, 1000, 180},
                 {5000, HEAP_SNAPSHOT_TIMER, 2200, 150},
                 {7000, HEAP_SNAPSHOT_SIGNAL, 2900, 210}};
    struct sink *sink = scene->world.made.sink;
    for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
        struct heap_snapshot_info info = {scene->shop, world_ns(looks[i].ms), looks[i].why};
        uint32_t id;
        made_check(sink_heap_snapshot(sink, &info, &id), "snapshot");
        struct heap_snapshot_row rows[] = {
            {id, stack(scene, "_start main handle cache_put make_entry", "operator new"),
             looks[i].cache, looks[i].cache * 120},
            {id, stack(scene, "_start main accept_order", "malloc"), looks[i].orders,
             looks[i].orders * 256},
            {id, stack(scene, "_start main load_catalog parse_item", "malloc"), 50000, 50000 * 64},
            {id, stack(scene, "_start main load_catalog", "calloc"), 1, 8 << 20},
        };
        for (size_t at = 0; at < ARRAY_SIZE(rows); at++)
            made_check(sink_heap_snapshot_row(sink, &rows[at]), "row");
    }
}

/* A price and an order; the worker frees the order. */
static void events(struct scene *scene)
{
    uint32_t price = stack(scene, "_start main handle format_price", "malloc");
    uint32_t order = stack(scene, "_start main accept_order", "malloc");
    struct heap_event list[] = {
        {scene->main_thread, price, HEAP_EVENT_ALLOCATED, 0x5000, 32, world_ns(100)},
        {scene->main_thread, price, HEAP_EVENT_FREED, 0x5000, 32, world_ns(100)},
        {scene->main_thread, order, HEAP_EVENT_ALLOCATED, 0x5100, 256, world_ns(104)},
        {scene->worker, order, HEAP_EVENT_FREED, 0x5100, 256, world_ns(140)},
    };
    for (size_t i = 0; i < ARRAY_SIZE(list); i++)
        made_check(sink_heap_event(scene->world.made.sink, &list[i]), "event");
}

/* ---- the recording ---- */

static void documents(struct scene *scene, const char *scope)
{
    char text[512];
    snprintf(text, sizeof(text),
             "{\"scope\": \"%s\", \"pid\": 4711, \"start_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64
             "}",
             scope, world_ns(0), world_ns(SPAN_MS));
    world_document(&scene->world, "target", text);
    world_document(&scene->world, "fingerprint", "{\"kernel\": {\"arch\": \"x86_64\"}}");
    snprintf(text, sizeof(text),
             "{\"tier\": \"%s\", \"mode\": \"%s\", \"sample_bytes\": %d, \"temporary_within\": 1,"
             " \"na\": [%s]}",
             scene->kernel ? "kernel" : "user", scene->sampled ? "sampled" : "exact",
             scene->sampled ? SAMPLED_BYTES : 0,
             scene->kernel ? "{\"what\": \"earlier allocations\", \"reason\": \"the program ran"
                             " already\"}"
                           : "");
    world_document(&scene->world, "heap", text);
}

static void counters(struct scene *scene)
{
    static const struct {
        const char *name;
        enum unit unit;
        uint64_t value;
    } rows[] = {
        {"heap.processes", UNIT_COUNT, 2},
        {"heap.threads", UNIT_COUNT, 3},
        {"heap.stacks", UNIT_COUNT, 14},
        {"heap.incomplete", UNIT_COUNT, 1},
        {"heap.walks", UNIT_COUNT, 341451},
        {"heap.frames", UNIT_COUNT, 512000},
        {"heap.recognised", UNIT_COUNT, 1480000},
        {"heap.lost", UNIT_COUNT, 0},
        {"heap.no_cell", UNIT_COUNT, 0},
        {"heap.nested", UNIT_COUNT, 4},
        {"heap.refused", UNIT_COUNT, 0},
        {"heap.unseen_frees", UNIT_COUNT, 3},
        {"heap.inherited_frees", UNIT_COUNT, 12},
        {"heap.failed", UNIT_COUNT, 2},
        {"heap.own_ns", UNIT_NS, 24 * (uint64_t)MS},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        made_check(sink_counter(scene->world.made.sink, rows[i].name, rows[i].unit, rows[i].value),
                   "counter");
}

static void programs(struct scene *scene)
{
    struct made *made = &scene->world.made;
    scene->shop = made_process(made, 4711, "/opt/shop/bin/shop", "shop --port 8080");
    struct process_info forked = {.pid = 4720,
                                  .parent = scene->shop,
                                  .start_ns = world_ns(3000),
                                  .exe = STR("/opt/shop/bin/shop"),
                                  .command = STR("shop --report")};
    made_check(sink_process(made->sink, &forked, &scene->report), "process");
    scene->main_thread = world_thread(&scene->world, scene->shop, 4711, "shop", 0, 0);
    scene->worker = world_thread(&scene->world, scene->shop, 4712, "worker", 0, 0);
    scene->writer = world_thread(&scene->world, scene->report, 4720, "shop", 3000, 5000);
    world_images(&scene->world, "/opt/shop/bin/shop", "0123456789abcdef");
}

static void plain_make(struct scene *scene, const char *scope)
{
    programs(scene);
    shop_main(scene);
    shop_worker(scene);
    shop_maps(scene);
    report_main(scene);
    processes(scene);
    moments(scene);
    snapshots(scene);
    documents(scene, scope);
    counters(scene);
}

static void empty_make(struct scene *scene)
{
    programs(scene);
    documents(scene, "command");
}

static void bare_make(struct scene *scene)
{
    struct thread_info nameless = {.tid = 1, .start_ns = world_ns(0)};
    struct put one = {.count = 1, .size = 10, .peak = 1};
    made_check(
        sink_process(scene->world.made.sink, &(struct process_info){.pid = 1}, &nameless.process),
        "process");
    made_check(sink_thread(scene->world.made.sink, &nameless, &one.thread), "thread");
    put(scene, &one);
}

static void hostile_make(struct scene *scene)
{
    static const char *const names[] = {
        "</script><script>alert(1)</script>", "\x1b[31mred\x1b[0m\x1b]0;title\x07",
        "two\nlines\r|_cell_|_`code`_]]>",    "\xff\xfe_not_UTF-8_\xc3",
        "--stack=w1;_rm_-rf_$HOME",
    };
    programs(scene);
    for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint32_t owner = world_thread(&scene->world, scene->shop, 5000 + i, names[i], 0, 0);
        struct put site = {owner,   stack(scene, names[i], i % 2 ? names[i] : "malloc"),
                           100 - i, 100,
                           10,      5,
                           50,      1,
                           20,      10,
                           3};
        put(scene, &site);
    }
    processes(scene);
    moments(scene);
    documents(scene, "command");
}

/* Functions call each other as in a tree; 20 frames deep at least, at most three ways to go. */
enum { LARGE_STACKS = 10000, LARGE_FUNCTIONS = 2000, LARGE_THREADS = 4, LARGE_ROUNDS = 20 };

static void large_stacks(struct scene *scene, uint32_t *stacks)
{
    struct made *made = &scene->world.made;
    static uint32_t frames[LARGE_FUNCTIONS];
    for (uint32_t i = 0; i < LARGE_FUNCTIONS; i++) {
        char name[64], file[64];
        snprintf(name, sizeof(name), "shop::module_%u::function_%u", i / 50, i);
        snprintf(file, sizeof(file), "/src/module_%u.cc", i / 50);
        uint64_t address = 0x100000 + i * 0x200;
        uint32_t function = made_function(made, name, scene->world.app, file, i, address);
        frames[i] = made_code(made, scene->world.app, address + 0x40, function, file, i + 3);
    }
    uint32_t called = made_frame(made, FRAME_NAMED, 0, 0, "malloc", 0);
    for (uint32_t i = 0; i < LARGE_STACKS; i++) {
        uint32_t id = 0, seed = i;
        for (uint32_t depth = 0; depth < 20; depth++) {
            uint32_t turn = depth < 11 ? 0 : seed % 3;
            seed = depth < 11 ? seed : seed / 3;
            uint32_t at = (depth * 97 + turn * 31 + (depth < 19 ? 0 : i)) % LARGE_FUNCTIONS;
            made_check(sink_stack(made->sink, id, frames[at], &id), "stack");
        }
        made_check(sink_stack(made->sink, id, called, &stacks[i]), "stack");
    }
}

static void large_round(struct scene *scene, const uint32_t *stacks, uint64_t round)
{
    struct sink *sink = scene->world.made.sink;
    for (uint32_t i = 0; i < LARGE_STACKS * LARGE_THREADS; i++) {
        struct heap_site_info info = {1 + i % LARGE_THREADS, stacks[i / LARGE_THREADS], 0};
        uint64_t count = 31 * round * (1 + i % 7 * (i % 3)), size = 16 + i % 977;
        struct heap_tally tally = {.allocations = count,
                                   .allocated_bytes = count * size,
                                   .frees = count - i % 11,
                                   .freed_bytes = (count - i % 11) * size,
                                   .temporary = count / 5,
                                   .temporary_bytes = count / 5 * size,
                                   .peak_count = i % 11,
                                   .peak_bytes = (int64_t)(i % 11 * size),
                                   .size_max = size,
                                   .lived_ns = count * 12345678,
                                   .samples = count};
        uint32_t id;
        made_check(sink_heap_site(sink, &info, &id), "site");
        made_check(sink_heap_site_set(sink, id, &tally), "tally");
    }
    made_check(recording_writer_commit(scene->file), "commit");
}

static void large_make(struct scene *scene)
{
    static uint32_t stacks[LARGE_STACKS];
    programs(scene);
    (void)world_thread(&scene->world, scene->shop, 4713, "worker", 0, 0);
    large_stacks(scene, stacks);
    for (uint64_t round = 1; round <= LARGE_ROUNDS; round++)
        large_round(scene, stacks, round);
    processes(scene);
    moments(scene);
    documents(scene, "command");
}

static void make(struct scene *scene, const char *kind)
{
    scene->more = strcmp(kind, "more") == 0;
    scene->sampled = strcmp(kind, "sampled") == 0;
    scene->kernel = strcmp(kind, "kernel") == 0;
    if (strcmp(kind, "empty") == 0)
        empty_make(scene);
    else if (strcmp(kind, "large") == 0)
        large_make(scene);
    else if (strcmp(kind, "bare") == 0)
        bare_make(scene);
    else if (strcmp(kind, "hostile") == 0)
        hostile_make(scene);
    else if (strcmp(kind, "machine") == 0)
        plain_make(scene, "system");
    else
        plain_make(scene, scene->kernel ? "process" : "command");
    if (strcmp(kind, "log") == 0)
        events(scene);
}

int main(int argc, char **argv)
{
    struct why why = {0};
    struct recording_writer *writer = NULL;
    struct recording_opts opts = {.version = "test", .clock_ns = clock_zero};
    if (argc != 3 || recording_create(argv[2], &opts, &writer, &why) < 0) {
        fprintf(stderr, "make-heap KIND FILE: %s\n", why.what);
        return 2;
    }
    struct scene scene = {.world.made = {.sink = recording_writer_sink(writer)}, .file = writer};
    make(&scene, argv[1]);
    int r = recording_writer_finish(writer, &why);
    recording_writer_close(writer);
    if (r < 0)
        fprintf(stderr, "make-heap: %s\n", why.what);
    return r < 0;
}
