/* A run made by hand: what ran and what waited, one step after the other, as evidence_load() would
 * hand it out. Stacks are names from the root to the leaf; "k:" is the kernel's, "c:" the C
 * library's, "d:" the loader's, "l:" of another library, all else the program's. Times are
 * milliseconds. Aborts beyond its bounds: it is test code. */
#pragma once

#include "analyze/evidence.h"

#include <math.h>
#include <stdlib.h>

enum { RUN_MAX = 2048, RUN_MS = 1000000 };
enum { RUN_APP = 1, RUN_LIBC, RUN_LOADER, RUN_LIBRARY, RUN_KERNEL, RUN_IMAGES };

struct made_run {
    struct arena arena;
    struct evidence evidence;
    struct profile_process processes[8];
    struct profile_thread threads[16];
    struct waits_thread lives[16];
    struct str groups[1];
    struct image_info images[RUN_IMAGES];
    struct profile_function functions[RUN_MAX];
    struct profile_place places[RUN_MAX];
    struct profile_frame frames[RUN_MAX];
    struct profile_stack stacks[RUN_MAX];
    struct object_info objects[64];
    struct wait_row rows[RUN_MAX];
    enum wait_class classes[RUN_MAX];
    struct path_step steps[RUN_MAX];
    struct path_share shares[RUN_MAX];
    uint64_t row_ns[RUN_MAX];
    struct wait_group wait_groups[RUN_MAX];
    uint32_t group_of[RUN_MAX];
    uint64_t sample_time[RUN_MAX];
    uint32_t sample_thread[RUN_MAX], sample_stack[RUN_MAX];
    uint64_t sample_weight[RUN_MAX];
    struct profile_total totals[RUN_MAX];
    uint64_t now_ns;
    struct spans spans;
};

static inline void *run_checked(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static inline struct made_run *run_new(void)
{
    struct made_run *run = run_checked(calloc(1, sizeof(*run)));
    static const char *const paths[RUN_IMAGES] = {"",
                                                  "/home/me/app",
                                                  "/usr/lib/x86_64-linux-gnu/libc.so.6",
                                                  "/lib64/ld-linux-x86-64.so.2",
                                                  "/usr/lib/x86_64-linux-gnu/libz.so.1",
                                                  "[kernel]"};
    for (int i = 0; i < RUN_IMAGES; i++)
        run->images[i].path = str_from(paths[i]);
    run->frames[0].place_count = 1;
    struct profile profile = {
        .series = "cpu",
        .unit = UNIT_NS,
        .about = "made by hand",
        .processes = run->processes,
        .process_count = 1,
        .threads = run->threads,
        .thread_count = 1,
        .thread_groups = run->groups,
        .thread_group_count = 1,
        .images = run->images,
        .image_count = RUN_IMAGES,
        .functions = run->functions,
        .function_count = 1,
        .places = run->places,
        .place_count = 1,
        .frames = run->frames,
        .frame_count = 1,
        .stacks = run->stacks,
        .stack_count = 1,
    };
    struct evidence *e = &run->evidence;
    e->arena = &run->arena;
    e->spans = &run->spans;
    e->cpu = e->waits.profile = profile;
    e->cpu.sample_time_ns = run->sample_time;
    e->cpu.sample_thread = run->sample_thread;
    e->cpu.sample_stack = run->sample_stack;
    e->cpu.sample_weight = run->sample_weight;
    e->cpu.totals = run->totals;
    e->waits.threads = run->lives;
    e->waits.objects = run->objects;
    e->waits.object_count = 1;
    e->waits.rows = run->rows;
    e->waits.row_count = 1;
    e->waits.root_process = e->waits.root_thread = 1;
    e->classes.rows = run->classes;
    e->path = (struct critical_path){
        .steps = run->steps, .shares = run->shares, .waits = run->row_ns};
    e->groups = (struct wait_groups){.groups = run->wait_groups, .of_row = run->group_of};
    for (int i = 0; i < AXES; i++)
        e->axes[i] = (struct axis_state){.artifact = "recording.whyslow",
                                         .path = "out/recording.whyslow",
                                         .overhead = 0,
                                         .lost = 0,
                                         .scale = 1};
    e->axes[AXIS_IO].na = e->axes[AXIS_HEAP].na = "not asked for";
    e->costs = (struct run_costs){.throttled_ns = NAN,
                                  .steal_ns = NAN,
                                  .others_ns = NAN,
                                  .switches_voluntary = 10,
                                  .cpus = 4};
    return run;
}

static inline void run_free(struct made_run *run)
{
    arena_deinit(&run->arena);
    free(run);
}

/* A process with its main thread; returns the thread. */
static inline uint32_t run_process(struct made_run *run, uint32_t parent)
{
    uint32_t id = (uint32_t)run->evidence.cpu.process_count++;
    uint32_t thread = (uint32_t)run->evidence.cpu.thread_count++;
    run->processes[id] = (struct profile_process){.pid = 100 * id, .parent = parent};
    run->threads[thread] = (struct profile_thread){.process = id, .tid = 100 * id};
    run->evidence.waits.profile.process_count = run->evidence.cpu.process_count;
    run->evidence.waits.profile.thread_count = run->evidence.cpu.thread_count;
    return thread;
}

static inline uint32_t run_thread(struct made_run *run, uint32_t process)
{
    uint32_t thread = (uint32_t)run->evidence.cpu.thread_count++;
    run->threads[thread] = (struct profile_thread){.process = process, .tid = 100 * process + 1};
    run->evidence.waits.profile.thread_count = run->evidence.cpu.thread_count;
    return thread;
}

static inline uint32_t run_function(struct made_run *run, struct str name)
{
    static const struct {
        const char *prefix;
        uint32_t image;
        const char *file; /* in the program's image: where a template is written */
    } kinds[] = {{"k:", RUN_KERNEL, ""},
                 {"c:", RUN_LIBC, ""},
                 {"d:", RUN_LOADER, ""},
                 {"l:", RUN_LIBRARY, ""},
                 {"t:", RUN_APP, "/usr/include/c++/12/bits/stl_tree.h"},
                 {"e:", RUN_APP, "/usr/include/eigen3/Eigen/src/Core/Product.h"}};
    uint32_t image = RUN_APP;
    const char *file = "app.c";
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (str_starts(name, kinds[i].prefix)) {
            image = kinds[i].image;
            file = kinds[i].file;
            name = (struct str){name.data + 2, name.len - 2};
        }
    struct profile *profile = &run->evidence.cpu;
    for (uint32_t i = 1; i < profile->function_count; i++)
        if (str_eq(run->functions[i].name, name) && run->functions[i].image == image)
            return i;
    uint32_t id = (uint32_t)profile->function_count++;
    run->functions[id] = (struct profile_function){
        .name = name, .linkage = name, .image = image, .kernel = image == RUN_KERNEL};
    run->functions[id].file = str_from(file);
    run->functions[id].line = image == RUN_APP ? 10 * id : 0;
    return id;
}

/* The same names give the same id. `names` is borrowed. */
static inline uint32_t run_stack(struct made_run *run, const char *names)
{
    struct profile *profile = &run->evidence.cpu;
    struct str rest = str_from(names);
    uint32_t stack = 0;
    while (rest.len > 0) {
        uint32_t function = run_function(run, str_cut(&rest, ' ')), found = 0;
        for (uint32_t i = 1; i < profile->stack_count && !found; i++)
            if (run->stacks[i].parent == stack &&
                run->places[run->frames[run->stacks[i].frame].places].function == function)
                found = i;
        if (!found) {
            uint32_t place = (uint32_t)profile->place_count++;
            uint32_t frame = (uint32_t)profile->frame_count++;
            found = (uint32_t)profile->stack_count++;
            if (found >= RUN_MAX)
                abort();
            run->places[place] = (struct profile_place){function, run->functions[function].file,
                                                        run->functions[function].line + 1};
            run->frames[frame] = (struct profile_frame){.places = place, .place_count = 1};
            run->stacks[found] = (struct profile_stack){stack, frame};
        }
        stack = found;
    }
    struct profile *other = &run->evidence.waits.profile;
    other->function_count = profile->function_count;
    other->place_count = profile->place_count;
    other->frame_count = profile->frame_count;
    other->stack_count = profile->stack_count;
    return stack;
}

static inline void run_step(struct made_run *run, enum path_what what, uint32_t thread,
                            uint32_t wait, double ms)
{
    struct critical_path *path = &run->evidence.path;
    uint64_t ns = (uint64_t)(ms * RUN_MS);
    if (path->step_count >= RUN_MAX)
        abort();
    run->steps[path->step_count++] = (struct path_step){what, thread, wait, run->now_ns,
                                                        run->now_ns + ns};
    run->shares[path->share_count++] = (struct path_share){what, thread, wait, ns, 1};
    run->now_ns += ns;
    path->ns += ns;
}

/* A sample of 1 ms at a moment, whatever the path does. */
static inline void run_sample(struct made_run *run, uint32_t thread, const char *names,
                              uint64_t time_ns)
{
    struct profile *cpu = &run->evidence.cpu;
    if (cpu->sample_count >= RUN_MAX)
        abort();
    uint32_t stack = run_stack(run, names);
    run->sample_time[cpu->sample_count] = time_ns;
    run->sample_thread[cpu->sample_count] = thread;
    run->sample_stack[cpu->sample_count] = stack;
    run->sample_weight[cpu->sample_count++] = RUN_MS;
    run->totals[cpu->total_count++] = (struct profile_total){thread, stack, 1, RUN_MS};
    cpu->weight += RUN_MS;
    cpu->count++;
}

/* The path runs in the thread, sampled every millisecond. */
static inline void run_runs(struct made_run *run, uint32_t thread, double ms, const char *names)
{
    for (uint64_t i = 0; i < (uint64_t)ms; i++)
        run_sample(run, thread, names, run->now_ns + i * RUN_MS + RUN_MS / 2);
    run_step(run, PATH_RUNNING, thread, 0, ms);
}

/* And waits, of the class that is given. Returns the row. */
static inline uint32_t run_waits(struct made_run *run, uint32_t thread, double ms,
                                 enum wait_class class, int32_t syscall, const char *names)
{
    uint32_t id = (uint32_t)run->evidence.waits.row_count++;
    run->rows[id].info = (struct wait_info){
        .kind = WAIT_BLOCKED, .thread = thread, .stack = run_stack(run, names), .syscall = syscall};
    run->classes[id] = class;
    run->row_ns[id] = (uint64_t)(ms * RUN_MS);
    run->wait_groups[run->evidence.groups.count] = (struct wait_group){.id = id, .row = id};
    run->group_of[id] = (uint32_t)++run->evidence.groups.count;
    run_step(run, PATH_WAIT, thread, id, ms);
    return id;
}

static inline void run_queues(struct made_run *run, uint32_t thread, double ms)
{
    run_step(run, PATH_RUNQ, thread, 0, ms);
}

/* All steps are there: `wall_ms` is what plain runs take, `cpu_ms` what they use. */
static inline struct evidence *run_end(struct made_run *run, double wall_ms, double cpu_ms)
{
    struct evidence *e = &run->evidence;
    e->costs.wall_ns = wall_ms * RUN_MS;
    e->costs.cpu_ns = cpu_ms * RUN_MS;
    e->costs.user_ns = e->costs.cpu_ns;
    e->cpu_with_waits = true;
    const struct honesty_figure *recorded = &e->cpu_honesty.rusage_ns;
    const struct path_wall wall = {
        .ns = e->costs.wall_ns,
        .low_ns = NAN,
        .high_ns = NAN,
        .cpu_ns = e->costs.cpu_ns,
        .recorded_cpu_ns = recorded->known ? (double)recorded->value : NAN,
    };
    if (hotspots_build(&run->arena, &e->cpu, &e->hotspots) < 0 ||
        path_costs_build(&run->arena, &e->cpu, &e->waits, &e->classes, &e->path, true, &wall,
                         &e->costs_on_path) < 0)
        abort();
    return e;
}

static inline double run_ms(struct estimate estimate)
{
    return estimate.ns / RUN_MS;
}
