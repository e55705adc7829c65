/* callgrind's format, for callgrind_annotate and kcachegrind.
 *
 * Self costs stand at their lines; calls carry the inclusive cost on the line after
 * `calls=`. callgrind_annotate takes what comes in through calls as a function's inclusive
 * cost, KCachegrind its own cost plus what goes out: both are right only if a sample passes
 * through each function once. So under recursion a function counts where it stands innermost,
 * and the call to it comes from the nearest other function above. How often a function was
 * called is not known from samples: the count of a call is its number of samples. */
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "present/export_common.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct cost {
    uint32_t function;
    uint32_t place;  /* gives file and line */
    uint32_t callee; /* function; 0 with `call` false: own cost */
    bool call;
    uint64_t weight, count;
};

struct callgrind {
    const struct profile *profile;
    struct arena arena;
    struct export_nodes nodes;
    VEC(struct cost) costs;
    struct map_u64 cost_ids;             /* of a key below */
    uint32_t *line_ids;                  /* place to the first place of the same file and line */
    uint64_t *seen;                      /* function: the last total it was met in, plus one */
    uint32_t *chain;                     /* places of one stack, innermost first */
    bool *object_known, *function_known; /* named before */
    struct intern files;
};

/* Places of the same function, file and line are the same line of cost. */
static int line_ids_build(struct callgrind *grind)
{
    const struct profile *profile = grind->profile;
    AUTO(map_u64_deinit) struct map_u64 known = {0};
    for (size_t i = 0; i < profile->place_count; i++) {
        const struct profile_place *place = &profile->places[i];
        uint64_t file = hash_bytes(place->file.data, place->file.len);
        uint64_t key = hash_u64(file ^ ((uint64_t)place->function << 32 | place->line));
        bool fresh;
        uint64_t *id = map_u64_at(&known, key, &fresh);
        if (!id)
            return -ENOMEM;
        if (fresh)
            *id = i;
        /* A hash that collides must not mix two lines: then the place stays its own. */
        const struct profile_place *first = &profile->places[*id];
        bool same = first->function == place->function && first->line == place->line &&
                    str_eq(first->file, place->file);
        grind->line_ids[i] = same ? (uint32_t)*id : (uint32_t)i;
    }
    return 0;
}

static int add(struct callgrind *grind, uint32_t place, bool call, uint32_t callee,
               const struct profile_total *total)
{
    place = grind->line_ids[place];
    /* A callee's id is below 2^31 (there are at most 2^22 functions and as many made up). */
    uint64_t key = (uint64_t)place << 32 | callee << 1 | call;
    bool fresh;
    uint64_t *id = map_u64_at(&grind->cost_ids, key, &fresh);
    if (!id)
        return -ENOMEM;
    if (fresh) {
        *id = grind->costs.len;
        struct cost cost = {.function = grind->profile->places[place].function,
                            .place = place,
                            .callee = callee,
                            .call = call};
        if (VEC_PUSH(&grind->costs, cost) < 0)
            return -ENOMEM;
    }
    grind->costs.data[*id].weight += total->weight;
    grind->costs.data[*id].count += total->count;
    return 0;
}

static int add_total(struct callgrind *grind, size_t index)
{
    const struct profile *profile = grind->profile;
    const struct profile_total *total = &profile->totals[index];
    size_t depth = 0;
    for (uint32_t at = grind->nodes.of_stack[total->stack]; at != 0;
         at = grind->nodes.nodes[at].parent)
        grind->chain[depth++] = grind->nodes.nodes[at].place;
    if (depth == 0)
        return 0;
    int r = add(grind, grind->chain[0], false, 0, total);
    uint32_t callee = profile->places[grind->chain[0]].function;
    grind->seen[callee] = index + 1;
    for (size_t i = 1; i < depth && r == 0; i++) {
        uint32_t caller = profile->places[grind->chain[i]].function;
        if (grind->seen[caller] == index + 1)
            continue;
        grind->seen[caller] = index + 1;
        r = add(grind, grind->chain[i], true, callee, total);
        callee = caller;
    }
    return r;
}

static int by_function(const void *a, const void *b)
{
    const struct cost *x = a, *y = b;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if (x->call != y->call)
        return x->call ? 1 : -1;
    return x->callee < y->callee ? -1 : x->callee > y->callee;
}

/* "(7) name" the first time, "(7)" later. */
static void print_name(struct callgrind *grind, FILE *out, const char *key, uint64_t id,
                       bool *known, struct str name)
{
    fprintf(out, "%s=(%" PRIu64 ")", key, id);
    if (!*known) {
        struct str line = export_line(&grind->arena, name.len ? name : STR("???"));
        fprintf(out, " %.*s", STR_FMT(line));
    }
    *known = true;
    fputc('\n', out);
}

static void print_object(struct callgrind *grind, FILE *out, const char *key, uint32_t image)
{
    print_name(grind, out, key, (uint64_t)image + 1, &grind->object_known[image],
               grind->profile->images[image].path);
}

static void print_file(struct callgrind *grind, FILE *out, const char *key, struct str file)
{
    uint32_t id = 0;
    bool fresh = true;
    if (intern_add(&grind->files, file.len ? file : STR("???"), &id, &fresh) < 0)
        grind->arena.failed = true;
    bool known = !fresh;
    print_name(grind, out, key, id, &known, file);
}

static void print_function(struct callgrind *grind, FILE *out, const char *key, uint32_t id)
{
    print_name(grind, out, key, (uint64_t)id + 1, &grind->function_known[id],
               grind->profile->functions[id].name);
}

static void print_cost(struct callgrind *grind, FILE *out, const struct cost *cost)
{
    const struct profile *profile = grind->profile;
    uint32_t line = profile->places[cost->place].line;
    if (cost->call) {
        const struct profile_function *callee = &profile->functions[cost->callee];
        print_object(grind, out, "cob", callee->image);
        print_file(grind, out, "cfi", callee->file);
        print_function(grind, out, "cfn", cost->callee);
        fprintf(out, "calls=%" PRIu64 " %u\n", cost->count, callee->line);
    }
    fprintf(out, "%u %" PRIu64 " %" PRIu64 "\n", line, cost->weight, cost->count);
}

static void print_all(struct callgrind *grind, const struct export_opts *opts, FILE *out)
{
    const struct profile *profile = grind->profile;
    const char *title = export_title(profile, opts, &grind->arena);
    struct str line = export_line(&grind->arena, str_from(title));
    const char *event = profile->unit == UNIT_NS      ? "ns"
                        : profile->unit == UNIT_BYTES ? "bytes"
                                                      : "weight";
    fprintf(out, "# callgrind format\nversion: 1\ncreator: whyslow\ncmd: %.*s\n", STR_FMT(line));
    for (size_t i = 0; opts->comments && opts->comments[i]; i++) {
        line = export_line(&grind->arena, str_from(opts->comments[i]));
        fprintf(out, "desc: whyslow: %.*s\n", STR_FMT(line));
    }
    fprintf(out, "positions: line\nevents: %s samples\n", event);
    fprintf(out, "summary: %" PRIu64 " %" PRIu64 "\n", profile->weight, profile->count);
    uint32_t function = UINT32_MAX;
    struct str file = {0};
    for (size_t i = 0; i < grind->costs.len; i++) {
        const struct cost *cost = &grind->costs.data[i];
        const struct profile_function *of = &profile->functions[cost->function];
        if (cost->function != function) {
            function = cost->function;
            file = of->file;
            fputc('\n', out);
            print_object(grind, out, "ob", of->image);
            print_file(grind, out, "fl", file);
            print_function(grind, out, "fn", function);
        }
        /* A line of another file (a macro, an included body) inside the same function. */
        struct str place_file = profile->places[cost->place].file;
        if (place_file.len > 0 && !str_eq(place_file, file)) {
            file = place_file;
            print_file(grind, out, str_eq(file, of->file) ? "fe" : "fi", file);
        }
        print_cost(grind, out, cost);
    }
    fprintf(out, "\ntotals: %" PRIu64 " %" PRIu64 "\n", profile->weight, profile->count);
}

static int gather(struct callgrind *grind)
{
    const struct profile *profile = grind->profile;
    struct arena *arena = &grind->arena;
    grind->line_ids = arena_alloc(arena, MAX(profile->place_count, (size_t)1) * sizeof(uint32_t));
    grind->seen = arena_alloc(arena, profile->function_count * sizeof(uint64_t));
    grind->chain = arena_alloc(arena, grind->nodes.count * sizeof(uint32_t));
    grind->object_known = arena_alloc(arena, profile->image_count);
    grind->function_known = arena_alloc(arena, profile->function_count);
    if (!grind->line_ids || !grind->seen || !grind->chain || !grind->object_known ||
        !grind->function_known)
        return -ENOMEM;
    int r = line_ids_build(grind);
    for (size_t i = 0; i < profile->total_count && r == 0; i++)
        r = add_total(grind, i);
    if (r == 0 && grind->costs.len > 0)
        qsort(grind->costs.data, grind->costs.len, sizeof(struct cost), by_function);
    return r;
}

static int callgrind_write(const struct profile *profile, const struct export_opts *opts, FILE *out,
                           struct why *why)
{
    struct callgrind grind = {.profile = profile};
    int r = export_nodes_build(&grind.arena, profile, &grind.nodes, why);
    if (r == 0 && gather(&grind) < 0)
        r = why_nomem(why);
    if (r == 0) {
        print_all(&grind, opts, out);
        r = arena_failed(&grind.arena) ? why_nomem(why) : export_flush(out, why);
    }
    VEC_FREE(&grind.costs);
    map_u64_deinit(&grind.cost_ids);
    intern_deinit(&grind.files);
    arena_deinit(&grind.arena);
    return r;
}

extern const struct exporter exporter_callgrind;
const struct exporter exporter_callgrind = {
    .name = "callgrind",
    .extension = ".callgrind",
    .about = "callgrind_annotate, KCachegrind, QCachegrind",
    .write = callgrind_write,
};
