/* The tables below are read and written by the same loops: a figure is a row. */
#include "analyze/evidence_file.h"

#include "base/fd.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

enum { FILE_BYTES_MAX = 16 << 20, SPANS_MAX = 100000 };

#define COST(field) #field, offsetof(struct run_costs, field)

static const struct {
    const char *key;
    size_t at;
} costs_rows[] = {
    {COST(wall_ns)},
    {COST(wall_low_ns)},
    {COST(wall_high_ns)},
    {COST(wall_min_ns)},
    {COST(wall_max_ns)},
    {COST(recorded_ns)},
    {COST(cpu_ns)},
    {COST(user_ns)},
    {COST(system_ns)},
    {COST(faults_minor)},
    {COST(faults_major)},
    {COST(switches_voluntary)},
    {COST(switches_involuntary)},
    {COST(read_bytes)},
    {COST(written_bytes)},
    {COST(storage_read_bytes)},
    {COST(storage_written_bytes)},
    {COST(peak_rss_bytes)},
    {COST(throttled_ns)},
    {COST(steal_ns)},
    {COST(others_ns)},
};

#define BUILD(field) #field, offsetof(struct build_info, field)

/* What is said of a binary in findings and in how to check a change. */
static const struct {
    const char *key;
    size_t at;
} build_texts[] = {{BUILD(path)}, {BUILD(script)}, {BUILD(build_id)}, {BUILD(optimization)}},
  build_facts[] = {{BUILD(optimized)}, {BUILD(stripped)}};

static const char *const tri_names[] = {
    [BUILD_UNKNOWN] = "unknown", [BUILD_NO] = "no", [BUILD_YES] = "yes"};

#define SPAN(field) #field, offsetof(struct span, field)

static const struct {
    const char *key;
    size_t at;
} span_texts[] = {{SPAN(name)}, {SPAN(category)}, {SPAN(evidence)}},
  span_numbers[] = {{SPAN(cumulative_us)}, {SPAN(p50_us)}, {SPAN(p95_us)}};

static double *double_at(const void *object, size_t at)
{
    return (double *)((char *)object + at);
}

static const char **text_at(const void *object, size_t at)
{
    return (const char **)((char *)object + at);
}

static struct str *str_at(const void *object, size_t at)
{
    return (struct str *)((char *)object + at);
}

/* Writing. */

static void number_put(struct value *map, const char *key, double number)
{
    value_put(map, key, NULL,
              isfinite(number) ? value_real(number, UNIT_NONE) : value_na("not known"));
}

static void text_put(struct value *map, const char *key, const char *text)
{
    if (text)
        value_put(map, key, NULL, value_text(text));
}

static void costs_put(struct value *root, struct arena *arena, const struct run_costs *costs)
{
    struct value *map = value_put(root, "costs", NULL, value_map(arena));
    value_put(map, "runs", NULL, value_uint(costs->runs, UNIT_NONE));
    for (size_t i = 0; i < ARRAY_SIZE(costs_rows); i++)
        number_put(map, costs_rows[i].key, *double_at(costs, costs_rows[i].at));
    value_put(map, "recorded_whole", NULL, value_bool(costs->recorded_whole));
    value_put(map, "outputs_differ", NULL, value_bool(costs->outputs_differ));
    value_put(map, "cpus", NULL, value_uint(costs->cpus, UNIT_NONE));
}

static void axes_put(struct value *root, struct arena *arena, const struct evidence_input *input)
{
    struct value *map = value_put(root, "axes", NULL, value_map(arena));
    for (int i = 0; i < AXES; i++) {
        const char *path = input->axes[i].recording;
        const char *slash = path ? strrchr(path, '/') : NULL;
        struct value *axis = value_put(map, axis_name((enum axis)i), NULL, value_map(arena));
        text_put(axis, "recording", slash ? slash + 1 : path);
        text_put(axis, "artifact", input->axes[i].artifact);
        text_put(axis, "na", input->axes[i].na);
        number_put(axis, "wall_ns", path ? input->axes[i].wall_ns : NAN);
        value_put(axis, "is_dear", NULL, value_bool(input->axes[i].is_dear));
    }
}

static void binary_put(struct value *root, struct arena *arena, const struct evidence_input *input)
{
    const struct build_info *binary = input->binary;
    text_put(root, "binary_na", binary ? NULL : input->binary_na);
    if (!binary)
        return;
    struct value *map = value_put(root, "binary", NULL, value_map(arena));
    for (size_t i = 0; i < ARRAY_SIZE(build_texts); i++)
        text_put(map, build_texts[i].key, *text_at(binary, build_texts[i].at));
    for (size_t i = 0; i < ARRAY_SIZE(build_facts); i++) {
        const struct build_fact *fact = (const void *)((const char *)binary + build_facts[i].at);
        struct value *pair = value_put(map, build_facts[i].key, NULL, value_map(arena));
        text_put(pair, "answer", tri_names[fact->answer]);
        text_put(pair, "because", fact->because);
    }
}

static void spans_put(struct value *root, struct arena *arena, const struct spans *spans)
{
    struct value *map = value_put(root, "said", NULL, value_map(arena));
    text_put(map, "artifact", spans->artifact);
    value_put(map, "scenario", NULL, value_str(spans->scenario));
    value_put(map, "lines", NULL, value_uint(spans->lines, UNIT_NONE));
    value_put(map, "odd", NULL, value_uint(spans->odd, UNIT_NONE));
    struct value *list = value_put(map, "spans", NULL, value_list(arena));
    for (size_t i = 0; i < spans->count; i++) {
        struct value *row = value_append(list, value_map(arena));
        for (size_t j = 0; j < ARRAY_SIZE(span_texts); j++)
            value_put(row, span_texts[j].key, NULL,
                      value_str(*str_at(&spans->items[i], span_texts[j].at)));
        for (size_t j = 0; j < ARRAY_SIZE(span_numbers); j++)
            number_put(row, span_numbers[j].key, *double_at(&spans->items[i], span_numbers[j].at));
        value_put(row, "count", NULL, value_uint(spans->items[i].count, UNIT_NONE));
    }
    list = value_put(map, "hypotheses", NULL, value_list(arena));
    for (size_t i = 0; i < spans->hypothesis_count; i++) {
        struct value *row = value_append(list, value_map(arena));
        value_put(row, "name", NULL, value_str(spans->hypotheses[i].name));
        value_put(row, "evidence", NULL, value_str(spans->hypotheses[i].evidence));
        value_put(row, "supports", NULL, value_bool(spans->hypotheses[i].supports));
    }
}

struct value evidence_input_value(struct arena *arena, const struct evidence_input *input)
{
    struct value root = value_map(arena);
    text_put(&root, "command", input->command);
    costs_put(&root, arena, &input->costs);
    axes_put(&root, arena, input);
    binary_put(&root, arena, input);
    if (input->spans)
        spans_put(&root, arena, input->spans);
    return root;
}

/* Reading. */

static double number_get(const json_t *map, const char *key)
{
    const json_t *value = json_object_get(map, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static uint64_t uint_get(const json_t *map, const char *key)
{
    const json_t *value = json_object_get(map, key);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;
    return number > 0 ? (uint64_t)number : 0;
}

static const char *text_get(struct arena *arena, const json_t *map, const char *key)
{
    const char *text = json_string_value(json_object_get(map, key));
    return text ? arena_dup(arena, text) : NULL;
}

static struct str str_get(struct arena *arena, const json_t *map, const char *key)
{
    const char *text = text_get(arena, map, key);
    return text ? str_from(text) : (struct str){0};
}

static void costs_get(const json_t *map, struct run_costs *ret)
{
    *ret = (struct run_costs){
        .runs = uint_get(map, "runs"),
        .recorded_whole = json_is_true(json_object_get(map, "recorded_whole")),
        .outputs_differ = json_is_true(json_object_get(map, "outputs_differ")),
        .cpus = (uint32_t)uint_get(map, "cpus"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(costs_rows); i++)
        *double_at(ret, costs_rows[i].at) = number_get(map, costs_rows[i].key);
}

/* A name is taken, a path is not: what is read is in the folder. */
static const char *recording_get(struct arena *arena, const json_t *axis, const char *folder)
{
    const char *name = json_string_value(json_object_get(axis, "recording"));
    return name && !strchr(name, '/') ? arena_printf(arena, "%s/%s", folder, name) : NULL;
}

static void axes_get(struct arena *arena, const json_t *map, const char *folder,
                     struct evidence_input *ret)
{
    for (int i = 0; i < AXES; i++) {
        const json_t *axis = json_object_get(map, axis_name((enum axis)i));
        ret->axes[i].recording = recording_get(arena, axis, folder);
        ret->axes[i].artifact = text_get(arena, axis, "artifact");
        ret->axes[i].na = text_get(arena, axis, "na");
        ret->axes[i].wall_ns = number_get(axis, "wall_ns");
        ret->axes[i].is_dear = json_is_true(json_object_get(axis, "is_dear"));
    }
}

static void build_fact_get(struct arena *arena, const json_t *pair, struct build_fact *ret)
{
    const char *answer = json_string_value(json_object_get(pair, "answer"));
    const char *because = text_get(arena, pair, "because");
    *ret = (struct build_fact){BUILD_UNKNOWN, because ? because : "not known"};
    for (int i = BUILD_NO; answer && i <= BUILD_YES; i++)
        if (strcmp(answer, tri_names[i]) == 0)
            ret->answer = (enum build_tri)i;
}

static void binary_get(struct arena *arena, const json_t *root, struct evidence_input *ret)
{
    const json_t *map = json_object_get(root, "binary");
    ret->binary_na = text_get(arena, root, "binary_na");
    struct build_info *binary = json_is_object(map) ? ARENA_NEW(arena, struct build_info) : NULL;
    if (!binary)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(build_texts); i++)
        *text_at(binary, build_texts[i].at) = text_get(arena, map, build_texts[i].key);
    for (size_t i = 0; i < ARRAY_SIZE(build_facts); i++)
        build_fact_get(arena, json_object_get(map, build_facts[i].key),
                       (void *)((char *)binary + build_facts[i].at));
    ret->binary = binary;
}

static void spans_get(struct arena *arena, const json_t *map, struct evidence_input *ret)
{
    const json_t *list = json_object_get(map, "spans"), *words = json_object_get(map, "hypotheses");
    struct spans *spans = json_is_object(map) ? ARENA_NEW(arena, struct spans) : NULL;
    if (!spans)
        return;
    spans->artifact = text_get(arena, map, "artifact");
    spans->scenario = str_get(arena, map, "scenario");
    spans->lines = uint_get(map, "lines");
    spans->odd = uint_get(map, "odd");
    size_t count = MIN(json_array_size(list), (size_t)SPANS_MAX);
    spans->items = arena_alloc(arena, count * sizeof(*spans->items));
    for (size_t i = 0; spans->items && i < count; i++) {
        const json_t *row = json_array_get(list, i);
        struct span *span = &spans->items[spans->count++];
        for (size_t j = 0; j < ARRAY_SIZE(span_texts); j++)
            *str_at(span, span_texts[j].at) = str_get(arena, row, span_texts[j].key);
        for (size_t j = 0; j < ARRAY_SIZE(span_numbers); j++)
            *double_at(span, span_numbers[j].at) = number_get(row, span_numbers[j].key);
        span->count = uint_get(row, "count");
    }
    count = MIN(json_array_size(words), (size_t)SPANS_MAX);
    spans->hypotheses = arena_alloc(arena, count * sizeof(*spans->hypotheses));
    for (size_t i = 0; spans->hypotheses && i < count; i++) {
        const json_t *row = json_array_get(words, i);
        spans->hypotheses[spans->hypothesis_count++] = (struct span_hypothesis){
            str_get(arena, row, "name"), str_get(arena, row, "evidence"),
            json_is_true(json_object_get(row, "supports"))};
    }
    ret->spans = spans;
}

int evidence_input_read(struct arena *arena, const char *folder, struct evidence_input *ret,
                        struct why *why)
{
    const char *path = arena_printf(arena, "%s/evidence.json", folder);
    struct str text;
    json_error_t error;
    int r = file_read(arena, path, FILE_BYTES_MAX, &text, why);
    if (r < 0)
        return r;
    json_t *root = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &error);
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (!schema || strcmp(schema, EVIDENCE_SCHEMA) != 0) {
        json_decref(root);
        return why_set(why, WHY_USAGE, EINVAL, "take the folder of a run",
                       "'%s' is no " EVIDENCE_SCHEMA ": %s", path,
                       root ? "it has another schema" : error.text);
    }
    *ret = (struct evidence_input){.command = text_get(arena, root, "command")};
    costs_get(json_object_get(root, "costs"), &ret->costs);
    axes_get(arena, json_object_get(root, "axes"), folder, ret);
    binary_get(arena, root, ret);
    spans_get(arena, json_object_get(root, "said"), ret);
    json_decref(root);
    return arena_failed(arena) ? why_nomem(why) : 0;
}
