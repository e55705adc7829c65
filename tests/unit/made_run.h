/* A run made by hand: a profile of functions by name, rows of the critical path, and findings, so
 * that a test reads as what is said of it. Times are milliseconds. Aborts beyond its bounds: it is
 * test code. */
#pragma once

#include "analyze/interpretation.h"
#include "made_io.h"

#include <math.h>
#include <stdlib.h>

enum { MADE_RUN_MAX = 64 };

struct made_run {
    struct arena arena;
    struct evidence evidence;
    struct interpretation run;
    struct profile profile;
    struct profile_process processes[4];
    struct profile_thread threads[4];
    struct image_info images[4];
    struct profile_function functions[MADE_RUN_MAX];
    struct profile_place places[MADE_RUN_MAX];
    struct profile_frame frames[MADE_RUN_MAX];
    struct profile_stack stacks[MADE_RUN_MAX];
    struct path_cost rows[MADE_RUN_MAX];
    struct run_hotspot hotspots[8];
    struct hypothesis hypotheses[8];
    struct wrong_tool tools[2];
};

/* Thread 1 is of "/home/me/app", thread 2 of "/usr/bin/helper". Nothing was recorded but the
 * critical path. */
static inline struct made_run *made_run_new(double wall_ms)
{
    struct made_run *made = calloc(1, sizeof(*made));
    if (!made)
        abort();
    made->processes[1].exe = STR("/home/me/app");
    made->processes[2].exe = STR("/usr/bin/helper");
    made->threads[1].process = 1;
    made->threads[2].process = 2;
    made->images[1] = (struct image_info){.kind = IMAGE_FILE, .path = STR("/home/me/app")};
    made->images[2] = (struct image_info){.kind = IMAGE_KERNEL, .path = STR("[kernel]")};
    made->profile = (struct profile){.processes = made->processes,
                                     .process_count = 3,
                                     .threads = made->threads,
                                     .thread_count = 3,
                                     .images = made->images,
                                     .image_count = 3,
                                     .functions = made->functions,
                                     .function_count = 1,
                                     .places = made->places,
                                     .place_count = 1,
                                     .frames = made->frames,
                                     .frame_count = 1,
                                     .stacks = made->stacks,
                                     .stack_count = 1};
    struct evidence *evidence = &made->evidence;
    evidence->arena = &made->arena;
    for (int i = 0; i < AXES; i++)
        evidence->axes[i] = (struct axis_state){.na = "not asked for", .overhead = NAN};
    evidence->costs = (struct run_costs){.runs = 20,
                                         .wall_ns = wall_ms * 1e6,
                                         .wall_low_ns = wall_ms * 0.98e6,
                                         .wall_high_ns = wall_ms * 1.03e6,
                                         .cpu_ns = wall_ms * 0.5e6,
                                         .peak_rss_bytes = 3 << 20,
                                         .read_bytes = 10,
                                         .written_bytes = NAN};
    evidence->costs_on_path = (struct path_costs){.profile = &made->profile,
                                                  .rows = made->rows,
                                                  .ns = wall_ms * 1e6,
                                                  .wall_low = 1,
                                                  .wall_high = 1};
    made->run = (struct interpretation){
        .about = {.command = "./app x",
                  .run_id = "RUN",
                  .folder = "out/RUN",
                  .scenario = "command line",
                  .stability = "stable: it is",
                  .runs = "20 runs after 1 warm-up, in 2 s",
                  .golden = "the same in all"},
        .evidence = evidence,
        .findings = {.arena = &made->arena},
        .hotspots = {.rows = made->hotspots},
        .ledger = {.rows = made->hypotheses},
        .wrong_tools = {.rows = made->tools},
    };
    return made;
}

static inline void made_run_end(struct made_run *made)
{
    arena_deinit(&made->arena);
    free(made);
}

/* A function of the program; of the kernel if the name begins with '['. */
static inline uint32_t made_run_function(struct made_run *made, const char *name)
{
    uint32_t id = (uint32_t)made_io_bound(made->profile.function_count++, MADE_RUN_MAX);
    bool kernel = name[0] == '[';
    made->functions[id] = (struct profile_function){.name = str_from(name),
                                                    .file = STR("/src/app.c"),
                                                    .line = 10 * id,
                                                    .image = kernel ? 2 : 1,
                                                    .kernel = kernel};
    made->places[id] = (struct profile_place){.function = id};
    made->profile.place_count = id + 1;
    made->frames[id] = (struct profile_frame){
        .image = kernel ? 2 : 1, .places = id, .place_count = 1};
    made->profile.frame_count = id + 1;
    return id;
}

/* The stack of a function below another stack. */
static inline uint32_t made_run_stack(struct made_run *made, uint32_t parent, uint32_t function)
{
    uint32_t id = (uint32_t)made_io_bound(made->profile.stack_count++, MADE_RUN_MAX);
    made->stacks[id] = (struct profile_stack){.parent = parent, .frame = function};
    return id;
}

static inline void made_run_cost(struct made_run *made, uint32_t thread, uint32_t stack,
                                 enum wait_class class, const char *syscall, double ms)
{
    struct path_costs *costs = &made->evidence.costs_on_path;
    size_t row = made_io_bound(costs->count++, MADE_RUN_MAX);
    made->rows[row] = (struct path_cost){.class = class,
                                         .thread = thread,
                                         .stack = stack,
                                         .syscall = str_from(syscall),
                                         .ns = ms * 1e6,
                                         .count = 1};
    costs->classes[class] += ms * 1e6;
}

/* A finding that is confirmed and ranked: `ms` can be recovered. */
static inline struct finding *made_run_finding(struct made_run *made, const char *detector,
                                               double ms)
{
    struct finding *finding = finding_add(&made->run.findings, detector);
    if (!finding)
        abort();
    finding->title = "it takes long";
    finding->place = (struct place){.function = STR("slow"),
                                    .image = STR("/home/me/app"),
                                    .file = STR("/src/app.c"),
                                    .line = 41,
                                    .owner = FINDING_OWNER_USER};
    finding->recoverable = (struct estimate){ms * 1e6, ms * 0.9e6, ms * 1.1e6};
    finding->cost_ns = ms * 1e6;
    finding->advice = "keep it in app.c:41";
    finding->rank = (uint32_t)made->run.findings.count;
    finding->impact = 4;
    finding->confidence = 0.5;
    finding->effort = 1;
    finding->score = 2;
    finding->ceiling = 1.25;
    finding->axes = AXIS_BIT_CPU;
    return finding;
}
