/* Rows of the path, looked at once for all that detectors ask of them. */
#include "detect/cpu_common.h"

#include "analyze/categories.h"
#include "analyze/places.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { WALKED_MAX = 512 };

static bool is_any(struct str name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(name, names[i]))
            return true;
    return false;
}

static bool is_fault(struct str name)
{
    static const char *const names[] = {"asm_exc_page_fault", "exc_page_fault", "handle_mm_fault",
                                        "do_user_addr_fault", "do_page_fault",  "el0_da"};
    return is_any(name, names, ARRAY_SIZE(names));
}

static bool is_zeroing(struct str name)
{
    return str_starts(name, "clear_page") || str_starts(name, "clear_huge_page") ||
           str_starts(name, "clear_user_highpage") || str_starts(name, "folio_zero");
}

static bool is_populating(struct str syscall)
{
    static const char *const names[] = {"mmap", "munmap", "mremap", "brk", "madvise", "exit_group"};
    return is_any(syscall, names, ARRAY_SIZE(names));
}

static bool is_loader(struct str path)
{
    struct str name = path;
    while (path.len > 0)
        name = str_cut(&path, '/');
    return str_starts(name, "ld-linux") || str_starts(name, "ld-musl") || str_starts(name, "ld-2");
}

bool cpu_nameless(const struct profile_function *function)
{
    return function->unnamed || (function->linkage.len == 0 && str_contains(function->name, "+0x"));
}

/* The loop of an interpreter: what it calls in its own image is the interpreted program's time. */
static bool is_interpreter(struct str name)
{
    static const char *const names[] = {"_PyEval_EvalFrameDefault",
                                        "Perl_runops_standard",
                                        "luaV_execute",
                                        "vm_exec_core",
                                        "execute_ex",
                                        "execute_command_internal"};
    return is_any(name, names, ARRAY_SIZE(names));
}

/* What is known of functions, asked once each. */
enum {
    FUNCTION_ASKED = 1,
    FUNCTION_ALLOC = 2,
    FUNCTION_HELPER = 4,
    FUNCTION_REALLOC = 8,
    FUNCTION_INTERPRETER = 16
};

struct looking {
    const struct profile *profile;
    uint8_t *functions;
};

static uint8_t function_kind(struct looking *looking, uint32_t id)
{
    uint8_t *known = &looking->functions[id];
    if (*known)
        return *known;
    const struct profile_function *function = &looking->profile->functions[id];
    const char *category = category_of(function);
    bool alloc = category && strcmp(category, "alloc") == 0;
    /* A copy or a comparison is a helper's work wherever it was linked into. */
    bool helper = place_is_standard(looking->profile, function) ||
                  (category && (strcmp(category, "copy") == 0 || strcmp(category, "string") == 0));
    *known = (uint8_t)(FUNCTION_ASKED |
                       (alloc    ? FUNCTION_ALLOC
                        : helper ? FUNCTION_HELPER
                                 : 0) |
                       (alloc && str_contains(function->name, "realloc") ? FUNCTION_REALLOC : 0) |
                       (is_interpreter(function->name) ? FUNCTION_INTERPRETER : 0));
    return *known;
}

/* Frames of the program, innermost first, until somebody is found whose time it is. */
static bool user_place_look(struct looking *looking, const struct profile_frame *frame,
                            const struct profile_place *place, struct cpu_row *row)
{
    const struct profile_function *function = &looking->profile->functions[place->function];
    uint8_t kind = function_kind(looking, place->function);
    uint32_t last = frame->places + frame->place_count - 1;
    if (!row->place) { /* the innermost, should there be no better one */
        row->function = place->function;
        row->outer = looking->profile->places[last].function;
        row->place = place;
        row->nameless = row->running && !row->kernel && cpu_nameless(function);
        row->loader = is_loader(looking->profile->images[function->image].path);
    }
    row->alloc |= (kind & FUNCTION_ALLOC) != 0;
    row->reallocs |= (kind & FUNCTION_REALLOC) != 0;
    if (row->loader || (kind & (FUNCTION_ALLOC | FUNCTION_HELPER)))
        return row->loader;
    row->helped = row->function && row->function != place->function;
    row->function = place->function;
    row->outer = looking->profile->places[last].function;
    row->place = place;
    return true;
}

static void interpreter_look(struct looking *looking, const struct profile_place *place,
                             struct cpu_row *row)
{
    const struct profile_function *functions = looking->profile->functions;
    if (!row->interpreter && (function_kind(looking, place->function) & FUNCTION_INTERPRETER) &&
        functions[place->function].image == functions[row->function].image)
        row->interpreter = place->function;
}

static void stack_look(struct looking *looking, uint32_t stack, struct cpu_row *row)
{
    const struct profile *profile = looking->profile;
    unsigned walked = 0;
    bool found = false;
    for (uint32_t at = stack; at != 0 && walked < WALKED_MAX && !row->interpreter; walked++) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[at].frame];
        for (uint32_t i = 0; i < frame->place_count; i++) {
            const struct profile_place *place = &profile->places[frame->places + i];
            const struct profile_function *function = &profile->functions[place->function];
            if (found) {
                interpreter_look(looking, place, row);
            } else if (function->kernel) {
                row->kernel = true;
                row->fault |= is_fault(function->name);
                row->zeroing |= is_zeroing(function->name);
            } else {
                found = user_place_look(looking, frame, place, row);
                if (found)
                    interpreter_look(looking, place, row);
            }
        }
        at = profile->stacks[at].parent;
    }
}

static void row_look(struct looking *looking, const struct path_cost *cost, struct cpu_row *row)
{
    row->running = cost->class == WAIT_CLASS_RUNNING;
    if (cost->stack && (row->running || cost->class == WAIT_CLASS_PAGEFAULT))
        stack_look(looking, cost->stack, row);
    row->fault |= cost->class == WAIT_CLASS_PAGEFAULT;
    row->zeroing &= row->fault;
    row->populates = row->running && is_populating(cost->syscall);
    row->loader |= row->running &&
                   (str_is(cost->syscall, "execve") || str_is(cost->syscall, "execveat"));
}

int cpu_rows_build(struct arena *arena, const struct evidence *evidence, struct cpu_rows *ret)
{
    const struct path_costs *costs = &evidence->costs_on_path;
    *ret = (struct cpu_rows){.costs = costs};
    size_t functions = costs->profile ? costs->profile->function_count : 0;
    struct looking looking = {.profile = costs->profile,
                              .functions = arena_alloc(arena, functions + 1)};
    ret->rows = arena_alloc(arena, (costs->count + 1) * sizeof(*ret->rows));
    if (!looking.functions || !ret->rows)
        return -ENOMEM;
    for (size_t i = 0; i < costs->count; i++) {
        struct cpu_row *row = &ret->rows[i];
        if (costs->profile)
            row_look(&looking, &costs->rows[i], row);
        double ns = costs->rows[i].ns;
        ret->running_ns += row->running ? ns : 0;
        ret->kernel_ns += row->running && row->kernel ? ns : 0;
        ret->fault_ns += row->fault ? ns : 0;
        ret->alloc_ns += row->running && row->alloc ? ns : 0;
        ret->own_ns += cpu_row_own(row) ? ns : 0;
        ret->kernel_seen |= row->running && row->kernel;
    }
    return 0;
}

int cpu_top_find(struct arena *arena, const struct cpu_rows *rows, cpu_key *key, void *context,
                 size_t count, struct cpu_top *ret)
{
    double *sums = arena_alloc(arena, (count + 1) * sizeof(*sums));
    if (!sums)
        return -ENOMEM;
    for (size_t i = 0; i < rows->costs->count; i++) {
        uint32_t id = key(context, rows, i);
        if (id != 0 && id <= count)
            sums[id] += rows->costs->rows[i].ns;
    }
    *ret = (struct cpu_top){0};
    for (size_t i = 1; i <= count; i++)
        if (sums[i] > ret->ns)
            *ret = (struct cpu_top){(uint32_t)i, sums[i]};
    return 0;
}

bool cpu_same_line(const struct profile_place *a, const struct profile_place *b)
{
    return a->function == b->function && a->line == b->line && str_eq(a->file, b->file);
}

/* Lines of one function are few: looked for one after another. */
struct line_sum {
    const struct profile_place *place;
    double ns;
    uint32_t next; /* of the same function, plus one */
};

int cpu_top_line(struct arena *arena, const struct cpu_rows *rows,
                 const struct profile_place **ret_place, uint32_t *ret_function, double *ret_ns)
{
    const struct path_costs *costs = rows->costs;
    size_t functions = costs->profile ? costs->profile->function_count : 0;
    uint32_t *first = arena_alloc(arena, (functions + 1) * sizeof(*first));
    VEC(struct line_sum) lines = {0};
    int r = first ? 0 : -ENOMEM;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < costs->count && r == 0; i++) {
        const struct cpu_row *row = &rows->rows[i];
        if (!cpu_row_own(row) || !row->place || row->place->line == 0)
            continue;
        uint32_t at = first[row->function];
        while (at && lines.data && !cpu_same_line(lines.data[at - 1].place, row->place))
            at = lines.data[at - 1].next;
        if (!at) {
            struct line_sum made = {.place = row->place, .next = first[row->function]};
            r = VEC_PUSH(&lines, made);
            at = first[row->function] = (uint32_t)lines.len;
        }
        if (r < 0 || !lines.data)
            break;
        lines.data[at - 1].ns += costs->rows[i].ns;
        if (best == SIZE_MAX || lines.data[at - 1].ns > lines.data[best].ns)
            best = at - 1;
    }
    bool found = r == 0 && best != SIZE_MAX;
    *ret_place = found ? lines.data[best].place : NULL;
    *ret_function = found ? lines.data[best].place->function : 0;
    *ret_ns = found ? lines.data[best].ns : 0;
    VEC_FREE(&lines);
    return r;
}

double cpu_parts_pick(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    const float *parts = context;
    return (double)parts[row - costs->rows];
}

float *cpu_parts(struct arena *arena, const struct path_costs *costs)
{
    return arena_alloc(arena, (costs->count + 1) * sizeof(float));
}

uint64_t cpu_parts_samples(const struct path_costs *costs, const float *parts)
{
    double samples = 0;
    for (size_t i = 0; i < costs->count; i++)
        if (costs->rows[i].class == WAIT_CLASS_RUNNING)
            samples += (double)parts[i] * (double)costs->rows[i].count;
    return (uint64_t)samples;
}

bool cpu_too_few(struct arena *arena, struct finding *finding)
{
    if (finding->occurrences >= CPU_SAMPLES_MIN)
        return false;
    finding->verdict = FINDING_DISMISSED;
    finding->unsure = true;
    finding->reason = arena_printf(
        arena,
        "%s, but that rests on %llu samples; fewer than %d say little of "
        "a share",
        finding->title, (unsigned long long)finding->occurrences, CPU_SAMPLES_MIN);
    return true;
}

const char *cpu_number(struct arena *arena, double number, enum unit unit)
{
    char text[48];
    return arena_dup(arena, units_format(number, unit, text, sizeof(text)));
}

const char *cpu_ns_text(struct arena *arena, double ns)
{
    return cpu_number(arena, ns, UNIT_NS);
}

const char *cpu_function_id(struct arena *arena, uint32_t function)
{
    return arena_printf(arena, "f%u", function);
}

double cpu_share(const struct evidence *evidence, double ns)
{
    const struct path_costs *costs = &evidence->costs_on_path;
    return costs->ns > 0 ? fmin(ns / costs->ns, 1) : 0;
}

struct estimate cpu_at_most(struct estimate cost, double part)
{
    return (struct estimate){cost.ns * part, 0, cost.high_ns};
}

/* Of what the switches say that the path ran, the samples must have seen as much; and what plain
 * runs were charged must be enough for it. */
#define AGREE_WITHIN 0.25

void cpu_angles(const struct evidence *evidence, struct findings *findings, struct finding *finding,
                const float *parts)
{
    struct arena *arena = findings->arena;
    const struct path_costs *costs = &evidence->costs_on_path;
    uint64_t samples = cpu_parts_samples(costs, parts);
    finding->angles[ANGLE_SAMPLING] = (struct angle_word){
        samples > 0 ? ANGLE_SUPPORTS : ANGLE_SILENT,
        arena_printf(arena, "%s of %s samples on the critical path",
                     cpu_number(arena, (double)samples, UNIT_COUNT),
                     cpu_number(arena, (double)costs->samples, UNIT_COUNT))};
    double ran = costs->classes[WAIT_CLASS_RUNNING];
    if (costs->na || !(ran > 0)) {
        finding->angles[ANGLE_TRACING].text = costs->na ? costs->na : "nothing ran on the path";
    } else {
        bool agree = costs->sampled_ns > (1 - AGREE_WITHIN) * ran;
        finding->angles[ANGLE_TRACING] = (struct angle_word){
            agree ? ANGLE_SUPPORTS : ANGLE_REJECTS,
            arena_printf(arena, "by its switches the path ran for %s, samples cover %s of it",
                         cpu_ns_text(arena, ran), cpu_ns_text(arena, costs->sampled_ns))};
    }
    double charged = evidence->costs.cpu_ns;
    if (isnan(charged)) {
        finding->angles[ANGLE_COUNTING].text = "the CPU time of plain runs is not known";
        return;
    }
    finding->angles[ANGLE_COUNTING] = (struct angle_word){
        finding->cost_ns <= charged * (1 + AGREE_WITHIN) ? ANGLE_SUPPORTS : ANGLE_REJECTS,
        arena_printf(arena, "plain runs were charged %s of CPU time", cpu_ns_text(arena, charged))};
}
