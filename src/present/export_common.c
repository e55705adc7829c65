/* Stacks to nodes, samples by thread, and text that other programs can read. */
#include "present/export_common.h"

#include "base/text.h"

#include <errno.h>
#include <stdlib.h>

/* Marks the stacks of samples and their callers. */
static void mark(const struct profile *profile, bool *used)
{
    for (size_t i = 0; i < profile->total_count; i++)
        used[profile->totals[i].stack] = true;
    for (size_t i = 0; i < profile->sample_count && profile->sample_stack; i++)
        used[profile->sample_stack[i]] = true;
    for (size_t i = profile->stack_count; i-- > 1;)
        if (used[i] && profile->stacks[i].parent != 0)
            used[profile->stacks[i].parent] = true;
}

static void expand(const struct profile *profile, uint32_t stack, struct export_nodes *ret)
{
    uint32_t frame_id = stack ? profile->stacks[stack].frame : 0;
    uint32_t parent = stack ? profile->stacks[stack].parent : 0;
    const struct profile_frame *frame = &profile->frames[frame_id];
    uint32_t node = parent ? ret->of_stack[parent] : 0;
    for (uint32_t i = 0; i < frame->place_count; i++) {
        ret->nodes[ret->count] = (struct export_node){
            .parent = node,
            .frame = frame_id,
            .place = frame->places + frame->place_count - 1 - i,
            .inline_depth = i,
        };
        node = (uint32_t)ret->count++;
    }
    ret->of_stack[stack] = node;
}

int export_nodes_build(struct arena *arena, const struct profile *profile, struct export_nodes *ret,
                       struct why *why)
{
    size_t stacks = MAX(profile->stack_count, (size_t)1);
    bool *used = arena_alloc(arena, stacks * sizeof(*used));
    struct export_nodes made = {.of_stack = arena_alloc(arena, stacks * sizeof(uint32_t))};
    if (!used || !made.of_stack)
        return why_nomem(why);
    mark(profile, used);
    size_t count = 1;
    for (size_t i = 0; i < stacks; i++)
        count += used[i] ? profile->frames[i ? profile->stacks[i].frame : 0].place_count : 0;
    if (count > UINT32_MAX)
        return why_set(why, WHY_FAILED, E2BIG, "narrow it with --time, --filter or --focus",
                       "the profile has too many frames to export");
    made.nodes = arena_alloc(arena, count * sizeof(*made.nodes));
    if (!made.nodes)
        return why_nomem(why);
    made.count = 1;
    for (size_t i = 0; i < stacks; i++)
        if (used[i])
            expand(profile, (uint32_t)i, &made);
    *ret = made;
    return 0;
}

struct export_row export_rows_at(const struct export_rows *rows, size_t at)
{
    const struct profile *profile = rows->profile;
    uint32_t i = rows->order[at];
    if (rows->single)
        return (struct export_row){profile->sample_stack[i], profile->sample_time_ns[i],
                                   profile->sample_weight[i], 1};
    const struct profile_total *total = &profile->totals[i];
    return (struct export_row){total->stack, 0, total->weight, total->count};
}

static uint32_t part_of(const struct export_rows *rows, size_t i)
{
    const struct profile *profile = rows->profile;
    uint32_t thread = rows->single ? profile->sample_thread[i] : profile->totals[i].thread;
    return rows->by_group ? profile->threads[thread].group : thread;
}

struct part_weight {
    uint64_t weight;
    uint32_t part;
};

static int heavier(const void *a, const void *b)
{
    const struct part_weight *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return x->part < y->part ? -1 : x->part > y->part;
}

/* A counting sort by part: keeps the order of time within a part. */
static int arrange(struct arena *arena, struct export_rows *rows, size_t count, size_t parts)
{
    rows->order = arena_alloc(arena, MAX(count, (size_t)1) * sizeof(*rows->order));
    rows->begin = arena_alloc(arena, (parts + 2) * sizeof(*rows->begin));
    rows->parts = arena_alloc(arena, (parts + 1) * sizeof(*rows->parts));
    struct part_weight *weights = arena_alloc(arena, (parts + 1) * sizeof(*weights));
    if (!rows->order || !rows->begin || !rows->parts || !weights)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        rows->begin[part_of(rows, i) + 2]++;
    for (size_t p = 2; p < parts + 2; p++)
        rows->begin[p] += rows->begin[p - 1];
    /* begin[p + 1] is where part p goes on; at the end it is where p + 1 begins. */
    for (size_t i = 0; i < count; i++)
        rows->order[rows->begin[part_of(rows, i) + 1]++] = (uint32_t)i;
    for (size_t p = 0; p < parts; p++) {
        if (rows->begin[p] == rows->begin[p + 1])
            continue;
        struct part_weight *weight = &weights[rows->part_count++];
        weight->part = (uint32_t)p;
        for (size_t at = rows->begin[p]; at < rows->begin[p + 1]; at++)
            weight->weight += export_rows_at(rows, at).weight;
    }
    qsort(weights, rows->part_count, sizeof(*weights), heavier);
    for (size_t i = 0; i < rows->part_count; i++)
        rows->parts[i] = weights[i].part;
    return 0;
}

int export_rows_build(struct arena *arena, const struct profile *profile, size_t samples_max,
                      bool never_group, struct export_rows *ret, struct why *why)
{
    struct export_rows rows = {.profile = profile};
    rows.single = profile->sample_stack && profile->sample_count > 0 &&
                  (samples_max == 0 || profile->sample_count <= samples_max);
    size_t count = rows.single ? profile->sample_count : profile->total_count;
    if (count > UINT32_MAX)
        return why_set(why, WHY_FAILED, E2BIG, "narrow it with --time",
                       "the profile has too many samples to export");
    int r = arrange(arena, &rows, count, profile->thread_count);
    if (r == 0 && rows.part_count > EXPORT_PARTS_MAX && !never_group) {
        rows = (struct export_rows){.profile = profile, .single = rows.single, .by_group = true};
        r = arrange(arena, &rows, count, MAX(profile->thread_group_count, (size_t)1));
    }
    if (r < 0)
        return why_nomem(why);
    *ret = rows;
    return 0;
}

const char *export_unit(enum unit unit)
{
    switch (unit) {
    case UNIT_NS:
        return "nanoseconds";
    case UNIT_MS:
        return "milliseconds";
    case UNIT_BYTES:
        return "bytes";
    default:
        return "count";
    }
}

const char *export_title(const struct profile *profile, const struct export_opts *opts,
                         struct arena *arena)
{
    if (opts->title)
        return opts->title;
    if (profile->command.len > 0)
        return arena_dup_len(arena, profile->command.data, profile->command.len);
    return "whyslow";
}

/* Whether a code point may stand in a line of text as it is. */
static bool plain(int32_t code)
{
    return code >= 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0) && code != 0x2028 &&
           code != 0x2029;
}

static bool all_good(struct str text, bool line)
{
    while (text.len > 0) {
        int32_t code;
        size_t len = utf8_decode(text, &code);
        if (code < 0 || (line && !plain(code)))
            return false;
        text.data += len;
        text.len -= len;
    }
    return true;
}

struct str export_line(struct arena *arena, struct str text)
{
    if (all_good(text, true))
        return text;
    char *copy = arena_alloc(arena, 4 * text.len + 1);
    size_t out = 0;
    while (copy && text.len > 0) {
        int32_t code;
        size_t len = utf8_decode(text, &code);
        if (code == '\n' || code == '\t') {
            copy[out++] = '\\';
            copy[out++] = code == '\n' ? 'n' : 't';
        } else if (code >= 0 && plain(code)) {
            memcpy(copy + out, text.data, len);
            out += len;
        } else {
            static const char hex[] = "0123456789abcdef";
            for (size_t i = 0; i < len; i++) {
                uint8_t byte = (uint8_t)text.data[i];
                const char escape[4] = {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
                memcpy(copy + out, escape, sizeof(escape));
                out += sizeof(escape);
            }
        }
        text.data += len;
        text.len -= len;
    }
    return copy ? (struct str){copy, out} : STR("");
}

struct str export_utf8(struct arena *arena, struct str text)
{
    if (all_good(text, false))
        return text;
    char *copy = arena_alloc(arena, 3 * text.len + 1);
    size_t out = 0;
    while (copy && text.len > 0) {
        int32_t code;
        size_t len = utf8_decode(text, &code);
        memcpy(copy + out, code < 0 ? "\xef\xbf\xbd" : text.data, code < 0 ? 3 : len);
        out += code < 0 ? 3 : len;
        text.data += len;
        text.len -= len;
    }
    return copy ? (struct str){copy, out} : STR("");
}

struct str export_basename(struct str path)
{
    for (size_t i = path.len; i > 0; i--)
        if (path.data[i - 1] == '/')
            return (struct str){path.data + i, path.len - i};
    return path;
}

int export_flush(FILE *out, struct why *why)
{
    errno = 0;
    if (fflush(out) == 0 && !ferror(out))
        return 0;
    return why_errno(why, errno ? errno : EIO, "make room, or choose another place with -o",
                     "cannot write the export");
}
