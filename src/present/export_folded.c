/* Folded stacks, "main;decode;inner 1234": what flamegraph.pl, inferno and many others read.
 *
 * The format has no escapes, so a ';' in a name becomes ':' (as inferno writes it) and control
 * characters become \n or \xNN. The number is the weight; threads and lines are lost. */
#include "base/intern.h"
#include "base/map.h"
#include "present/export_common.h"

#include <errno.h>
#include <inttypes.h>

struct path {
    uint32_t parent;
    uint32_t name;
    uint64_t weight;
};

struct folding {
    const struct profile *profile;
    struct arena arena;
    struct export_nodes nodes;
    struct intern names;
    uint32_t *name_of; /* function to name id; 0: not looked at yet */
    struct map_u64 path_ids;
    struct path *paths;
    size_t path_count;
    uint32_t *path_of; /* node to path */
    uint32_t *chain;   /* of the line being written */
};

static int name_id(struct folding *folding, uint32_t function, uint32_t *ret)
{
    if (folding->name_of[function] == 0) {
        struct str name = export_line(&folding->arena, folding->profile->functions[function].name);
        if (name.len == 0)
            name = STR("[unnamed]");
        char *copy = arena_alloc(&folding->arena, name.len);
        if (!copy)
            return -ENOMEM;
        memcpy(copy, name.data, name.len);
        for (size_t i = 0; i < name.len; i++)
            if (copy[i] == ';')
                copy[i] = ':';
        int r = intern_add(&folding->names, (struct str){copy, name.len},
                           &folding->name_of[function], NULL);
        if (r < 0)
            return r;
    }
    *ret = folding->name_of[function];
    return 0;
}

/* Nodes of the same names become one path: two lines of one function are one frame here. */
static int fold(struct folding *folding)
{
    const struct profile *profile = folding->profile;
    for (size_t i = 1; i < folding->nodes.count; i++) {
        const struct export_node *node = &folding->nodes.nodes[i];
        uint32_t name, parent = folding->path_of[node->parent];
        int r = name_id(folding, profile->places[node->place].function, &name);
        if (r < 0)
            return r;
        bool fresh;
        uint64_t *id = map_u64_at(&folding->path_ids, (uint64_t)parent << 32 | name, &fresh);
        if (!id)
            return -ENOMEM;
        if (fresh) {
            *id = folding->path_count++;
            folding->paths[*id] = (struct path){parent, name, 0};
        }
        folding->path_of[i] = (uint32_t)*id;
    }
    for (size_t i = 0; i < profile->total_count; i++) {
        const struct profile_total *total = &profile->totals[i];
        folding->paths[folding->path_of[folding->nodes.of_stack[total->stack]]]
            .weight += total->weight;
    }
    return 0;
}

static void print(const struct folding *folding, FILE *out)
{
    for (size_t i = 1; i < folding->path_count; i++) {
        if (folding->paths[i].weight == 0)
            continue;
        size_t depth = 0;
        for (uint32_t at = (uint32_t)i; at != 0; at = folding->paths[at].parent)
            folding->chain[depth++] = folding->paths[at].name;
        while (depth-- > 0) {
            struct str name = intern_get(&folding->names, folding->chain[depth]);
            fwrite(name.data, 1, name.len, out);
            fputc(depth > 0 ? ';' : ' ', out);
        }
        fprintf(out, "%" PRIu64 "\n", folding->paths[i].weight);
    }
}

static int folded_write(const struct profile *profile, const struct export_opts *opts, FILE *out,
                        struct why *why)
{
    (void)opts;
    struct folding folding = {.profile = profile};
    int r = export_nodes_build(&folding.arena, profile, &folding.nodes, why);
    if (r == 0) {
        size_t count = folding.nodes.count;
        folding.name_of = arena_alloc(&folding.arena, profile->function_count * sizeof(uint32_t));
        folding.paths = arena_alloc(&folding.arena, count * sizeof(*folding.paths));
        folding.path_of = arena_alloc(&folding.arena, count * sizeof(uint32_t));
        folding.chain = arena_alloc(&folding.arena, count * sizeof(uint32_t));
        folding.path_count = 1;
        bool made = folding.name_of && folding.paths && folding.path_of && folding.chain;
        if (!made || fold(&folding) < 0 || arena_failed(&folding.arena))
            r = why_nomem(why);
    }
    if (r == 0)
        print(&folding, out);
    intern_deinit(&folding.names);
    map_u64_deinit(&folding.path_ids);
    arena_deinit(&folding.arena);
    return r < 0 ? r : export_flush(out, why);
}

extern const struct exporter exporter_folded;
const struct exporter exporter_folded = {
    .name = "folded",
    .extension = ".folded",
    .about = "folded stacks: flamegraph.pl, inferno, speedscope",
    .write = folded_write,
};
