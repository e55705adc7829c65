/* speedscope's own format: frames once, then for each thread its samples with weights.
 *
 * Up to SAMPLES_MAX samples stand in the order of time, so that speedscope's time view is
 * real; more are written as totals, and the name of the profile says so. */
#include "base/jsonw.h"
#include "present/export_common.h"

#include <errno.h>

enum { SAMPLES_MAX = 500000 };

struct speedscope {
    const struct profile *profile;
    struct arena arena;
    struct export_nodes nodes;
    struct export_rows rows;
    uint32_t *frame_of; /* function to index + 1 among the frames written */
    uint32_t *chain;
    struct jsonw json;
};

static void write_frames(struct speedscope *scope)
{
    const struct profile *profile = scope->profile;
    struct jsonw *json = &scope->json;
    uint32_t count = 0;
    jsonw_key(json, "shared");
    jsonw_object_begin(json);
    jsonw_key(json, "frames");
    jsonw_array_begin(json);
    for (size_t i = 1; i < scope->nodes.count; i++) {
        uint32_t id = profile->places[scope->nodes.nodes[i].place].function;
        if (scope->frame_of[id] != 0)
            continue;
        scope->frame_of[id] = ++count;
        const struct profile_function *function = &profile->functions[id];
        jsonw_object_begin(json);
        jsonw_key(json, "name");
        jsonw_text(json, function->name.len ? function->name : STR("[unnamed]"));
        if (function->file.len > 0) {
            jsonw_key(json, "file");
            jsonw_text(json, function->file);
        } else if (profile->images[function->image].path.len > 0) {
            jsonw_key(json, "file");
            jsonw_text(json, profile->images[function->image].path);
        }
        if (function->line > 0) {
            jsonw_key(json, "line");
            jsonw_u64(json, function->line);
        }
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
    jsonw_object_end(json);
}

static void write_stack(struct speedscope *scope, uint32_t stack)
{
    size_t depth = 0;
    for (uint32_t at = scope->nodes.of_stack[stack]; at != 0; at = scope->nodes.nodes[at].parent)
        scope->chain[depth++] = scope->profile->places[scope->nodes.nodes[at].place].function;
    jsonw_array_begin(&scope->json);
    while (depth-- > 0)
        jsonw_u64(&scope->json, scope->frame_of[scope->chain[depth]] - 1);
    jsonw_array_end(&scope->json);
}

/* Neighbours with the same stack are one: that is what speedscope draws anyway. */
static size_t same_stack(const struct export_rows *rows, size_t at, size_t end,
                         uint64_t *ret_weight)
{
    uint32_t stack = export_rows_at(rows, at).stack;
    uint64_t weight = 0;
    for (; at < end; at++) {
        struct export_row row = export_rows_at(rows, at);
        if (row.stack != stack)
            break;
        weight += row.weight;
    }
    *ret_weight = weight;
    return at;
}

static void write_name(struct speedscope *scope, uint32_t part)
{
    const struct profile *profile = scope->profile;
    const char *merged = scope->rows.single ? "" : " (totals, not in the order of time)";
    const char *text;
    if (scope->rows.by_group) {
        struct str name = profile->thread_groups[part];
        text = arena_printf(&scope->arena, "%.*s%s", STR_FMT(name), merged);
    } else {
        const struct profile_thread *thread = &profile->threads[part];
        text = arena_printf(&scope->arena, "%.*s (%u)%s", STR_FMT(thread->name), thread->tid,
                            merged);
    }
    jsonw_key(&scope->json, "name");
    jsonw_text(&scope->json, str_from(text));
}

static void write_profile(struct speedscope *scope, uint32_t part)
{
    struct jsonw *json = &scope->json;
    const struct export_rows *rows = &scope->rows;
    size_t begin = rows->begin[part], end = rows->begin[part + 1];
    uint64_t weight, sum = 0;
    jsonw_object_begin(json);
    jsonw_key(json, "type");
    jsonw_text(json, STR("sampled"));
    write_name(scope, part);
    jsonw_key(json, "unit");
    const char *unit = export_unit(scope->profile->unit);
    jsonw_text(json, str_from(strcmp(unit, "count") == 0 ? "none" : unit));
    jsonw_key(json, "samples");
    jsonw_array_begin(json);
    for (size_t at = begin; at < end;) {
        write_stack(scope, export_rows_at(rows, at).stack);
        at = same_stack(rows, at, end, &weight);
    }
    jsonw_array_end(json);
    jsonw_key(json, "weights");
    jsonw_array_begin(json);
    for (size_t at = begin; at < end;) {
        at = same_stack(rows, at, end, &weight);
        jsonw_u64(json, weight);
        sum += weight;
    }
    jsonw_array_end(json);
    jsonw_key(json, "startValue");
    jsonw_u64(json, 0);
    jsonw_key(json, "endValue");
    jsonw_u64(json, sum);
    jsonw_object_end(json);
}

static void write_all(struct speedscope *scope, const struct export_opts *opts)
{
    struct jsonw *json = &scope->json;
    jsonw_object_begin(json);
    jsonw_key(json, "$schema");
    jsonw_text(json, STR("https://www.speedscope.app/file-format-schema.json"));
    jsonw_key(json, "exporter");
    jsonw_text(json, STR("whyslow"));
    jsonw_key(json, "name");
    jsonw_text(json, str_from(export_title(scope->profile, opts, &scope->arena)));
    jsonw_key(json, "activeProfileIndex");
    jsonw_u64(json, 0);
    write_frames(scope);
    jsonw_key(json, "profiles");
    jsonw_array_begin(json);
    for (size_t i = 0; i < scope->rows.part_count; i++)
        write_profile(scope, scope->rows.parts[i]);
    jsonw_array_end(json);
    jsonw_object_end(json);
    fputc('\n', json->out);
}

static int speedscope_write(const struct profile *profile, const struct export_opts *opts,
                            FILE *out, struct why *why)
{
    struct speedscope scope = {.profile = profile};
    int r = export_nodes_build(&scope.arena, profile, &scope.nodes, why);
    if (r == 0)
        r = export_rows_build(&scope.arena, profile, SAMPLES_MAX, false, &scope.rows, why);
    if (r == 0) {
        scope.frame_of = arena_alloc(&scope.arena, profile->function_count * sizeof(uint32_t));
        scope.chain = arena_alloc(&scope.arena, scope.nodes.count * sizeof(uint32_t));
        if (!scope.frame_of || !scope.chain)
            r = why_nomem(why);
    }
    if (r == 0) {
        jsonw_init(&scope.json, out, 0);
        write_all(&scope, opts);
        r = arena_failed(&scope.arena) ? why_nomem(why) : export_flush(out, why);
    }
    arena_deinit(&scope.arena);
    return r;
}

extern const struct exporter exporter_speedscope;
const struct exporter exporter_speedscope = {
    .name = "speedscope",
    .extension = ".speedscope.json",
    .about = "speedscope.app, one profile a thread",
    .samples = true,
    .write = speedscope_write,
};
