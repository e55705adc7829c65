/* JSON to struct bench_result; see bench_file.h. */
#include "store/bench_file.h"

#include "base/fd.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char remedy[] = "make one with 'whyslow bench --export-json FILE' or hyperfine's "
                             "--export-json";

/* In any of our units. Sums and squares of such figures are still numbers. */
static const double figure_max = 1e18;

/* Where in the file we are, for messages. */
struct place {
    struct arena *arena;
    const char *path;
    size_t result;
    struct why *why;
};

static void json_release(json_t **json)
{
    json_decref(*json);
}

static int refuse(const struct place *place, const char *where, const char *what)
{
    return why_set(place->why, WHY_USAGE, EINVAL, remedy, "'%s': results[%zu]%s%s %s", place->path,
                   place->result, *where ? "." : "", where, what);
}

static int refuse_run(const struct place *place, size_t run, const char *key, const char *what)
{
    char where[128];
    snprintf(where, sizeof(where), "runs[%zu].%s", run, key);
    return refuse(place, where, what);
}

/* No reason is longer than a line; a hostile file's may be. */
static const char *reason_keep(const struct place *place, const char *text)
{
    return arena_dup_len(place->arena, text, strnlen(text, 300));
}

static int figure_read(const struct place *place, const json_t *json, size_t run, int metric,
                       double *ret, const char **missing)
{
    const char *key = bench_metrics[metric].key;
    const json_t *value = json_object_get(json, key);
    const char *text = json_string_value(value);
    if (json_is_number(value)) {
        double number = json_number_value(value);
        if (!isfinite(number) || number < 0 || number > figure_max)
            return refuse_run(place, run, key, "is no figure: negative, or beyond all measure");
        *ret = number;
        return 0;
    }
    if (value && !(text && strncmp(text, "n/a", 3) == 0))
        return refuse_run(place, run, key, "is neither a number nor \"n/a: reason\"");
    *ret = NAN;
    if (!*missing)
        *missing = text ? reason_keep(place, text) : "n/a: not in the file";
    return 0;
}

/* As from wait4. */
static int status_read(const struct place *place, const json_t *json, size_t run, int *ret)
{
    const json_t *code = json_object_get(json, "exit_code");
    const json_t *signal = json_object_get(json, "signal");
    if (json_is_integer(signal)) {
        json_int_t number = json_integer_value(signal);
        if (number < 1 || number > 127)
            return refuse_run(place, run, "signal", "is no signal");
        *ret = (int)number;
        return 0;
    }
    if (!json_is_integer(code) || json_integer_value(code) < 0 || json_integer_value(code) > 255)
        return refuse_run(place, run, "exit_code", "is no exit status, and there is no signal");
    *ret = (int)json_integer_value(code) << 8;
    return 0;
}

static void output_read(const json_t *json, struct bench_run *run)
{
    const char *sha = json_string_value(json_object_get(json, "output_sha256"));
    const json_t *bytes = json_object_get(json, "output_bytes");
    run->output_known = sha && strlen(sha) == SHA256_TEXT_BYTES - 1 &&
                        strspn(sha, "0123456789abcdef") == SHA256_TEXT_BYTES - 1;
    if (run->output_known)
        memcpy(run->output_sha256, sha, SHA256_TEXT_BYTES);
    if (json_is_integer(bytes) && json_integer_value(bytes) >= 0)
        run->output_bytes = (uint64_t)json_integer_value(bytes);
}

static int run_read(const struct place *place, const json_t *json, size_t index,
                    struct bench_result *result)
{
    if (!json_is_object(json))
        return refuse_run(place, index, "", "is no object");
    struct bench_run run = {.running_share = NAN};
    for (int i = 0; i < BENCH_METRICS; i++) {
        int r = figure_read(place, json, index, i, &run.value[i], &result->missing[i]);
        if (r < 0)
            return r;
    }
    if (isnan(run.value[BENCH_WALL]))
        return refuse_run(place, index, "wall_ms", "is missing");
    int r = status_read(place, json, index, &run.status);
    if (r < 0)
        return r;
    const json_t *share = json_object_get(json, "running_share");
    if (json_is_number(share) && json_number_value(share) >= 0 && json_number_value(share) <= 1)
        run.running_share = json_number_value(share);
    const json_t *start = json_object_get(json, "start_ns");
    if (json_is_integer(start) && json_integer_value(start) >= 0)
        run.start_ns = (uint64_t)json_integer_value(start);
    run.timed_out = json_is_true(json_object_get(json, "timed_out"));
    run.failed = json_is_true(json_object_get(json, "failed"));
    output_read(json, &run);
    return VEC_PUSH(&result->runs, run) < 0 ? why_nomem(place->why) : 0;
}

/* hyperfine: seconds, and of single runs only the wall time, the status and, in new
 * versions, the memory. */
static int time_read(const struct place *place, const json_t *json, size_t index,
                     struct bench_result *result)
{
    const json_t *value = json_array_get(json_object_get(json, "times"), index);
    const json_t *code = json_array_get(json_object_get(json, "exit_codes"), index);
    const json_t *memory = json_array_get(json_object_get(json, "memory_usage_byte"), index);
    struct bench_run run = {.running_share = NAN};
    for (int i = 0; i < BENCH_METRICS; i++)
        run.value[i] = NAN;
    double seconds = json_number_value(value);
    char where[64];
    snprintf(where, sizeof(where), "times[%zu]", index);
    if (!json_is_number(value) || !isfinite(seconds) || seconds < 0 || seconds > figure_max / 1000)
        return refuse(place, where, "is no time in seconds");
    run.value[BENCH_WALL] = seconds * 1000;
    if (json_is_integer(memory) && json_integer_value(memory) > 0)
        run.value[BENCH_PEAK_RSS] = (double)json_integer_value(memory) / 1024;
    /* null: it was killed; the export does not say by what. */
    run.failed = code && (!json_is_integer(code) || json_integer_value(code) != 0);
    if (json_is_integer(code) && json_integer_value(code) >= 0 && json_integer_value(code) <= 255)
        run.status = (int)json_integer_value(code) << 8;
    for (int i = 0; i < BENCH_METRICS; i++)
        if (isnan(run.value[i]))
            result->missing[i] = "n/a: hyperfine does not keep it for every run";
    return VEC_PUSH(&result->runs, run) < 0 ? why_nomem(place->why) : 0;
}

static int text_read(const struct place *place, const json_t *json, const char *key,
                     const char *fallback, const char **ret)
{
    const json_t *value = json_object_get(json, key);
    if (!value && fallback) {
        *ret = fallback;
        return 0;
    }
    if (!json_is_string(value))
        return refuse(place, key, value ? "is no text" : "is missing");
    *ret = arena_dup_len(place->arena, json_string_value(value), json_string_length(value));
    return 0;
}

static int runs_read(const struct place *place, const json_t *json, bool hyperfine,
                     struct bench_result *result)
{
    const char *key = hyperfine ? "times" : "runs";
    const json_t *runs = json_object_get(json, key);
    if (!json_is_array(runs))
        return refuse(place, key, runs ? "is no list" : "is missing");
    size_t count = json_array_size(runs);
    if (count == 0)
        return refuse(place, key, "is empty: no run was finished");
    if (count > BENCH_FILE_RUNS_MAX)
        return refuse(place, key, "has more than a million runs");
    for (size_t i = 0; i < count; i++) {
        int r = hyperfine ? time_read(place, json, i, result)
                          : run_read(place, json_array_get(runs, i), i, result);
        if (r < 0)
            return r;
    }
    return 0;
}

static int result_read(const struct place *place, const json_t *json, bool hyperfine,
                       struct bench_result *result)
{
    if (!json_is_object(json))
        return refuse(place, "", "is no object");
    int r = text_read(place, json, "command", NULL, &result->command);
    if (r == 0)
        r = text_read(place, json, "name", result->command, &result->name);
    if (r < 0)
        return r;
    const json_t *warmup = json_object_get(json, "warmup");
    if (json_is_integer(warmup) && json_integer_value(warmup) > 0)
        result->warmup = (size_t)json_integer_value(warmup);
    return runs_read(place, json, hyperfine, result);
}

static int results_read(struct place *place, const json_t *results, struct bench_file *file)
{
    size_t count = json_array_size(results);
    if (count > BENCH_FILE_RESULTS_MAX)
        return why_set(place->why, WHY_USAGE, EINVAL, remedy, "'%s' has more than %d results",
                       place->path, BENCH_FILE_RESULTS_MAX);
    for (size_t i = 0; i < count; i++) {
        place->result = i;
        if (VEC_PUSH(&file->results, (struct bench_result){0}) < 0)
            return why_nomem(place->why);
        int r = result_read(place, json_array_get(results, i), file->hyperfine,
                            &file->results.data[i]);
        if (r < 0)
            return r;
    }
    return arena_failed(place->arena) ? why_nomem(place->why) : 0;
}

static int load(struct arena *arena, const char *path, json_t **ret, struct why *why)
{
    struct str text;
    int r = file_read(arena, path, BENCH_FILE_BYTES_MAX, &text, why);
    if (r < 0)
        return r;
    json_error_t error;
    json_t *json = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        return why_set(why, WHY_USAGE, EINVAL, remedy, "'%s' is no JSON: line %d, column %d: %s",
                       path, error.line, error.column, error.text);
    *ret = json;
    return 0;
}

/* Sets `hyperfine` and returns the list of results, borrowed; NULL after a refusal. */
static const json_t *identify(const struct place *place, const json_t *json,
                              struct bench_file *file)
{
    const char *schema = json_string_value(json_object_get(json, "schema"));
    const json_t *results = json_object_get(json, "results");
    if (schema && strncmp(schema, "whyslow.bench/", 14) == 0 && strcmp(schema, BENCH_SCHEMA) != 0)
        why_set(place->why, WHY_USAGE, EINVAL, "read it with the whyslow that wrote it, or newer",
                "'%s' has schema %.60s; this whyslow knows %s", place->path, schema, BENCH_SCHEMA);
    else if (schema && strcmp(schema, BENCH_SCHEMA) != 0)
        why_set(place->why, WHY_USAGE, EINVAL, remedy, "'%s' holds no benchmark, but %.60s",
                place->path, schema);
    else if (!json_is_array(results) || json_array_size(results) == 0)
        why_set(place->why, WHY_USAGE, EINVAL, remedy, "'%s' holds no results", place->path);
    else {
        file->hyperfine = !schema;
        return results;
    }
    return NULL;
}

/* A text of the fingerprint; empty when it is not there or was not measured. */
static const char *fact(struct arena *arena, const json_t *fingerprint, const char *group,
                        const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(fingerprint, group), key));
    return text && strncmp(text, "n/a:", 4) != 0 ? arena_dup(arena, text) : "";
}

static struct bench_origin origin_read(struct arena *arena, const json_t *fingerprint)
{
    const json_t *threads = json_object_get(json_object_get(fingerprint, "cpu"), "threads");
    const char *model = fact(arena, fingerprint, "cpu", "model");
    return (struct bench_origin){
        .time = fact(arena, fingerprint, "run", "time"),
        .revision = fact(arena, fingerprint, "run", "git_revision"),
        .branch = fact(arena, fingerprint, "run", "git_branch"),
        .machine = *model && json_is_integer(threads)
                       ? bench_machine(arena, model, (uint64_t)json_integer_value(threads))
                       : "",
    };
}

int bench_file_read(struct arena *arena, const char *path, struct bench_file *ret, struct why *why)
{
    AUTO(json_release) json_t *json = NULL;
    struct why local = {0};
    struct place place = {.arena = arena, .path = path, .why = why ? why : &local};
    int r = load(arena, path, &json, place.why);
    if (r < 0)
        return r;
    struct bench_file file = {.path = arena_dup(arena, path)};
    const json_t *results = identify(&place, json, &file);
    r = results ? results_read(&place, results, &file) : -place.why->error;
    if (r < 0) {
        bench_file_deinit(&file);
        return r;
    }
    const json_t *fingerprint = json_object_get(json, "fingerprint");
    file.has_fingerprint = json_is_object(fingerprint);
    file.origin = origin_read(arena, fingerprint);
    *ret = file;
    return 0;
}

void bench_file_deinit(struct bench_file *file)
{
    for (size_t i = 0; i < file->results.len; i++)
        bench_result_deinit(&file->results.data[i]);
    VEC_FREE(&file->results);
}
