/* LLVM's sample profile as text, for clang -fprofile-sample-use and llvm-profdata.
 *
 *     function:total:head
 *      offset: samples
 *      offset: inlined_function:total
 *       offset: samples
 *
 * Offsets count from a function's first line; names are the linker's. Only innermost user
 * frames matter: where the program counter was. A sample whose function or line is not known
 * cannot be placed and is left out; a comment says how many were. Discriminators are absent,
 * and calls are not counted (samples do not tell how often a function was entered). */
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "present/export_common.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { OFFSET_MASK = 0xffff, DEPTH_MAX = 128 }; /* LLVM keeps 16 bits of an offset */

/* One function, or one inlined at an offset of its parent. Index 0 is the root of all. */
struct context {
    uint32_t parent;
    uint32_t offset; /* in the parent */
    uint32_t name;
    uint64_t total;
};

struct context_key {
    uint32_t parent, offset, name; /* no padding: compared as bytes */
};

struct line {
    uint32_t context;
    uint32_t offset;
    uint64_t count;
};

struct autofdo {
    const struct profile *profile;
    struct intern names;
    struct intern keys; /* struct context_key, as bytes */
    struct map_u64 line_ids;
    VEC(struct context) contexts;
    VEC(struct line) lines;
    VEC(uint32_t) children; /* contexts sorted by parent, offset and name */
    uint64_t placed, left_out;
};

/* The text format has no escapes: a name with a ':', blank or control character in it, or one
 * that begins like a comment or a context, would be read as something else. */
static bool usable(struct str name)
{
    if (name.len == 0 || name.data[0] == '#' || name.data[0] == '[' || name.data[0] == '!')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        uint8_t byte = (uint8_t)name.data[i];
        if (byte <= 0x20 || byte >= 0x7f || byte == ':')
            return false;
    }
    return true;
}

static bool place_usable(const struct autofdo *fdo, const struct profile_place *place)
{
    const struct profile_function *function = &fdo->profile->functions[place->function];
    struct str name = function->linkage.len ? function->linkage : function->name;
    return !function->unnamed && !function->kernel && function->line > 0 && place->line > 0 &&
           usable(name);
}

static uint32_t offset_of(const struct autofdo *fdo, const struct profile_place *place)
{
    return (place->line - fdo->profile->functions[place->function].line) & OFFSET_MASK;
}

static int context_at(struct autofdo *fdo, uint32_t parent, uint32_t offset, struct str name,
                      uint32_t *ret)
{
    struct context_key key = {.parent = parent, .offset = offset};
    if (intern_add(&fdo->names, name, &key.name, NULL) < 0)
        return -1;
    bool fresh;
    /* Ids count from 1, and so do contexts: 0 is the root. */
    if (intern_add(&fdo->keys, (struct str){(const char *)&key, sizeof(key)}, ret, &fresh) < 0)
        return -1;
    struct context context = {parent, offset, key.name, 0};
    return fresh && VEC_PUSH(&fdo->contexts, context) < 0 ? -1 : 0;
}

static int add_line(struct autofdo *fdo, uint32_t context, uint32_t offset, uint64_t count)
{
    bool fresh;
    uint64_t *id = map_u64_at(&fdo->line_ids, (uint64_t)context << 32 | offset, &fresh);
    if (!id)
        return -1;
    if (fresh) {
        *id = fdo->lines.len;
        struct line line = {context, offset, 0};
        if (VEC_PUSH(&fdo->lines, line) < 0)
            return -1;
    }
    fdo->lines.data[*id].count += count;
    for (uint32_t at = context; at != 0; at = fdo->contexts.data[at].parent)
        fdo->contexts.data[at].total += count;
    return 0;
}

static int add_total(struct autofdo *fdo, const struct profile_total *total)
{
    const struct profile *profile = fdo->profile;
    uint32_t frame_id = total->stack ? profile->stacks[total->stack].frame : 0;
    const struct profile_frame *frame = &profile->frames[frame_id];
    bool good = frame->kind == FRAME_USER && frame->place_count > 0 &&
                frame->place_count <= DEPTH_MAX;
    for (uint32_t i = 0; good && i < frame->place_count; i++)
        good = place_usable(fdo, &profile->places[frame->places + i]);
    if (!good) {
        fdo->left_out += total->count;
        return 0;
    }
    uint32_t context = 0, offset = 0;
    for (uint32_t i = frame->place_count; i-- > 0;) {
        const struct profile_place *place = &profile->places[frame->places + i];
        const struct profile_function *function = &profile->functions[place->function];
        struct str name = function->linkage.len ? function->linkage : function->name;
        if (context_at(fdo, context, offset, name, &context) < 0)
            return -1;
        offset = offset_of(fdo, place);
    }
    fdo->placed += total->count;
    return add_line(fdo, context, offset, total->count);
}

static int by_context(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->context != y->context)
        return x->context < y->context ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int by_parent(const void *a, const void *b, void *context)
{
    const struct autofdo *fdo = context;
    const struct context *x = &fdo->contexts.data[*(const uint32_t *)a];
    const struct context *y = &fdo->contexts.data[*(const uint32_t *)b];
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->parent == 0 && x->total != y->total)
        return x->total < y->total ? 1 : -1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

static size_t lines_begin(const struct autofdo *fdo, uint32_t context)
{
    size_t low = 0, high = fdo->lines.len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (fdo->lines.data[middle].context < context)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t children_begin(const struct autofdo *fdo, uint32_t parent)
{
    size_t low = 0, high = fdo->children.len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (fdo->contexts.data[fdo->children.data[middle]].parent < parent)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Recursion is bounded by DEPTH_MAX, the most inlined places of one frame. */
static void print_body(const struct autofdo *fdo, uint32_t context, unsigned depth, FILE *out)
{
    for (size_t i = lines_begin(fdo, context);
         i < fdo->lines.len && fdo->lines.data[i].context == context; i++)
        fprintf(out, "%*s%u: %" PRIu64 "\n", (int)depth, "", fdo->lines.data[i].offset,
                fdo->lines.data[i].count);
    for (size_t i = children_begin(fdo, context); i < fdo->children.len; i++) {
        uint32_t child = fdo->children.data[i];
        const struct context *inlined = &fdo->contexts.data[child];
        if (inlined->parent != context)
            break;
        struct str name = intern_get(&fdo->names, inlined->name);
        fprintf(out, "%*s%u: %.*s:%" PRIu64 "\n", (int)depth, "", inlined->offset, STR_FMT(name),
                inlined->total);
        print_body(fdo, child, depth + 1, out);
    }
}

static void print_all(const struct autofdo *fdo, const struct export_opts *opts, FILE *out)
{
    fprintf(out,
            "# whyslow: %" PRIu64 " samples; %" PRIu64
            " more have no known user function and line\n",
            fdo->placed, fdo->left_out);
    (void)opts;
    for (size_t i = children_begin(fdo, 0); i < fdo->children.len; i++) {
        const struct context *function = &fdo->contexts.data[fdo->children.data[i]];
        if (function->parent != 0)
            break;
        struct str name = intern_get(&fdo->names, function->name);
        fprintf(out, "%.*s:%" PRIu64 ":0\n", STR_FMT(name), function->total);
        print_body(fdo, fdo->children.data[i], 1, out);
    }
}

static int gather(struct autofdo *fdo)
{
    struct context root = {0};
    if (VEC_PUSH(&fdo->contexts, root) < 0)
        return -1;
    for (size_t i = 0; i < fdo->profile->total_count; i++)
        if (add_total(fdo, &fdo->profile->totals[i]) < 0)
            return -1;
    for (uint32_t i = 1; i < fdo->contexts.len; i++)
        if (VEC_PUSH(&fdo->children, i) < 0)
            return -1;
    if (fdo->lines.len > 0)
        qsort(fdo->lines.data, fdo->lines.len, sizeof(struct line), by_context);
    if (fdo->children.len > 0)
        qsort_r(fdo->children.data, fdo->children.len, sizeof(uint32_t), by_parent, fdo);
    return 0;
}

static int autofdo_write(const struct profile *profile, const struct export_opts *opts, FILE *out,
                         struct why *why)
{
    struct autofdo fdo = {.profile = profile};
    int r = gather(&fdo) < 0 ? why_nomem(why) : 0;
    if (r == 0 && fdo.placed == 0)
        r = why_set(why, WHY_DENIED, ENODATA,
                    "build the program with -g (debug information) and record again",
                    "no sample has a user function with a line: there is nothing a compiler "
                    "could use");
    if (r == 0) {
        print_all(&fdo, opts, out);
        r = export_flush(out, why);
    }
    intern_deinit(&fdo.names);
    intern_deinit(&fdo.keys);
    map_u64_deinit(&fdo.line_ids);
    VEC_FREE(&fdo.contexts);
    VEC_FREE(&fdo.lines);
    VEC_FREE(&fdo.children);
    return r;
}

extern const struct exporter exporter_autofdo;
const struct exporter exporter_autofdo = {
    .name = "autofdo",
    .extension = ".afdo",
    .about = "LLVM sample profile (text): clang -fprofile-sample-use, llvm-profdata",
    .write = autofdo_write,
};
