/* The numbers the ledger judges by: one pass over the critical path. */
#include "analyze/ledger_parts.h"

#include "analyze/categories.h"
#include "analyze/places.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define THREAD_SHARE_MIN 0.01 /* of the CPU time: fewer is no thread that works */

/* What a stack passes through; bits. */
enum { THROUGH_ALLOC = 1, THROUGH_FAULT = 2, THROUGH_LOADER = 4, THROUGH_MAIN = 8 };

static bool is_fault(struct str name)
{
    static const char *const names[] = {"asm_exc_page_fault",
                                        "exc_page_fault",
                                        "do_user_addr_fault",
                                        "handle_mm_fault",
                                        "do_page_fault",
                                        "do_mem_abort",
                                        "el0_da",
                                        "el0_ia"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (str_is(name, names[i]))
            return true;
    return false;
}

static bool is_loader(struct str path)
{
    const char *slash = path.len > 0 ? memrchr(path.data, '/', path.len) : NULL;
    struct str name = slash ? (struct str){slash + 1, path.len - (size_t)(slash + 1 - path.data)}
                            : path;
    return str_starts(name, "ld-linux") || str_starts(name, "ld-musl") || str_is(name, "ld.so.1");
}

static uint8_t function_bits(const struct profile *profile, const struct profile_function *function)
{
    const char *category = category_of(function);
    uint8_t bits = 0;
    if (category && strcmp(category, "alloc") == 0)
        bits |= THROUGH_ALLOC;
    if (function->kernel && is_fault(function->name))
        bits |= THROUGH_FAULT;
    if (!function->kernel && is_loader(profile->images[function->image].path))
        bits |= THROUGH_LOADER;
    if (!function->kernel && str_is(function->name, "main"))
        bits |= THROUGH_MAIN;
    return bits;
}

/* By stack; NULL when out of memory. */
static uint8_t *stack_bits(const struct profile *profile)
{
    uint8_t *bits = calloc(profile->stack_count + 1, 1);
    uint8_t *functions = calloc(profile->function_count + 1, 1);
    for (size_t i = 0; bits && functions && i < profile->function_count; i++)
        functions[i] = function_bits(profile, &profile->functions[i]);
    for (size_t i = 1; bits && functions && i < profile->stack_count; i++) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[i].frame];
        bits[i] = bits[profile->stacks[i].parent];
        for (uint32_t k = 0; k < frame->place_count; k++)
            bits[i] |= functions[profile->places[frame->places + k].function];
    }
    if (!functions) {
        free(bits);
        bits = NULL;
    }
    free(functions);
    return bits;
}

static bool is_sync(struct str call)
{
    static const char *const calls[] = {"fsync", "fdatasync",       "msync",
                                        "sync",  "sync_file_range", "syncfs"};
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        if (str_is(call, calls[i]))
            return true;
    return false;
}

/* A process that the command started; a program that took the place of the first is none. */
static bool is_child(const struct evidence *evidence, uint32_t thread)
{
    const struct profile *profile = &evidence->waits.profile;
    if (!evidence_has(evidence, AXIS_WAITS) || thread >= profile->thread_count)
        return false;
    uint32_t process = profile->threads[thread].process, root = evidence->waits.root_process;
    return process != 0 && process < profile->process_count && root < profile->process_count &&
           profile->processes[process].pid != profile->processes[root].pid;
}

static void row_add(struct ledger_facts *facts, const struct path_cost *row, uint8_t bits,
                    bool kernel, double *threads)
{
    double share = facts->wall_ns > 0 ? row->ns / facts->wall_ns : 0;
    bool running = row->class == WAIT_CLASS_RUNNING, child = is_child(facts->evidence, row->thread);
    facts->classes[row->class] += share;
    facts->steps[row->class] += row->count;
    facts->children += child * share;
    if (is_sync(row->syscall)) {
        double own_ns = path_cost_own_ns(&facts->evidence->costs_on_path, row);
        facts->syncs += facts->wall_ns > 0 ? own_ns / facts->wall_ns : 0;
        facts->sync_steps += running ? 0 : row->count;
    }
    if (((bits & THROUGH_LOADER) && !(bits & THROUGH_MAIN)) || str_is(row->syscall, "execve")) {
        facts->starting += share;
        facts->starting_waits += running ? 0 : share;
    }
    if (!running)
        return;
    facts->children_running += child * share;
    facts->alloc += (bits & THROUGH_ALLOC) ? share : 0;
    facts->faults += (bits & THROUGH_FAULT) ? share : 0;
    facts->kernel += kernel ? share : 0;
    facts->kernel_seen |= kernel;
    threads[row->thread] += share;
    facts->alone = fmax(facts->alone, threads[row->thread]);
}

static bool leaf_is_kernel(const struct profile *profile, uint32_t stack)
{
    const struct profile_frame *frame = &profile->frames[profile->stacks[stack].frame];
    return stack && profile->functions[profile->places[frame->places].function].kernel;
}

/* The function at the leaf that has most: by itself. */
static int hottest_find(const struct path_costs *costs, double *ret_share)
{
    const struct profile *profile = costs->profile;
    double *sums = calloc(profile->function_count + 1, sizeof(*sums)), most = 0;
    if (!sums)
        return -ENOMEM;
    for (size_t i = 0; i < costs->count; i++) {
        const struct path_cost *row = &costs->rows[i];
        if (row->class != WAIT_CLASS_RUNNING || row->stack == 0)
            continue;
        const struct profile_frame *frame = &profile->frames[profile->stacks[row->stack].frame];
        uint32_t function = profile->places[frame->places].function;
        sums[function] += row->ns;
        most = fmax(most, sums[function]);
    }
    free(sums);
    *ret_share = costs->ns > 0 ? most / costs->ns : 0;
    return 0;
}

static uint32_t threads_working(const struct profile *cpu)
{
    double *sums = calloc(cpu->thread_count + 1, sizeof(*sums));
    uint32_t working = 0;
    for (size_t i = 0; sums && i < cpu->total_count; i++)
        if (cpu->totals[i].thread < cpu->thread_count)
            sums[cpu->totals[i].thread] += (double)cpu->totals[i].weight;
    for (size_t i = 0; sums && i < cpu->thread_count; i++)
        working += sums[i] > THREAD_SHARE_MIN * (double)cpu->weight;
    free(sums);
    return working;
}

int ledger_facts_build(struct arena *arena, const struct evidence *evidence,
                       struct ledger_facts *ret)
{
    const struct path_costs *costs = &evidence->costs_on_path;
    struct ledger_facts facts = {
        .arena = arena,
        .evidence = evidence,
        .wall_ns = costs->ns,
        .sampled = evidence_has(evidence, AXIS_CPU) && costs->samples > 0,
        .traced = evidence_has(evidence, AXIS_WAITS) && !costs->na,
        .counted = evidence->costs.cpu_ns >= 0 && evidence->costs.wall_ns > 0,
        .cpu_used = evidence->costs.cpu_ns / evidence->costs.wall_ns,
    };
    facts.on_cpu = costs->ns > 0 ? fmin(costs->sampled_ns / costs->ns, 1) : 0;
    if (!costs->profile) {
        *ret = facts;
        return 0;
    }
    uint8_t *bits = stack_bits(costs->profile);
    size_t room = costs->profile->thread_count;
    for (size_t i = 0; i < costs->count; i++)
        room = MAX(room, (size_t)costs->rows[i].thread + 1);
    double *threads = calloc(room + 1, sizeof(*threads));
    for (size_t i = 0; bits && threads && i < costs->count; i++) {
        const struct path_cost *row = &costs->rows[i];
        row_add(&facts, row, bits[row->stack], leaf_is_kernel(costs->profile, row->stack), threads);
    }
    bool done = bits && threads && hottest_find(costs, &facts.hottest) == 0;
    free(bits);
    free(threads);
    if (!done)
        return -ENOMEM;
    facts.threads = evidence_has(evidence, AXIS_CPU) ? threads_working(&evidence->cpu) : 0;
    *ret = facts;
    return 0;
}
