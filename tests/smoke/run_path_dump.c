/* What is said of recordings, as JSON, for run_path.py to judge:
 *
 *     run_path_dump [-w WALL_NS -c CPU_NS] RECORDING [IO [HEAP]]
 *
 * Without -w the path is as long as it was recorded. */
#include "analyze/interpretation.h"
#include "base/jsonw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAMES_MAX = 256 };

static void through_print(struct jsonw *json, const struct profile *profile, uint32_t stack)
{
    jsonw_array_begin(json);
    for (int i = 0; i < NAMES_MAX && stack; i++, stack = profile->stacks[stack].parent) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[stack].frame];
        for (uint32_t k = 0; k < frame->place_count; k++)
            jsonw_text(json, profile->functions[profile->places[frame->places + k].function].name);
    }
    jsonw_array_end(json);
}

static void number_put(struct jsonw *json, const char *key, double number)
{
    jsonw_key(json, key);
    jsonw_f64(json, number);
}

static void text_put(struct jsonw *json, const char *key, const char *text)
{
    jsonw_key(json, key);
    if (text)
        jsonw_text(json, str_from(text));
    else
        jsonw_null(json);
}

static void rows_print(struct jsonw *json, const struct path_costs *costs)
{
    jsonw_key(json, "rows");
    jsonw_array_begin(json);
    for (size_t i = 0; i < costs->count; i++) {
        const struct path_cost *row = &costs->rows[i];
        const struct profile_thread *thread = &costs->profile->threads[row->thread];
        jsonw_object_begin(json);
        text_put(json, "class", wait_class_name(row->class));
        jsonw_key(json, "place");
        jsonw_text(json, row->place.function);
        jsonw_key(json, "syscall");
        jsonw_text(json, row->syscall);
        jsonw_key(json, "through");
        through_print(json, costs->profile, row->stack);
        number_put(json, "tid", thread->tid);
        number_put(json, "ns", row->ns);
        number_put(json, "count", (double)row->count);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void costs_print(struct jsonw *json, const struct path_costs *costs)
{
    number_put(json, "ns", costs->ns);
    number_put(json, "samples", (double)costs->samples);
    number_put(json, "sampled_ns", costs->sampled_ns);
    number_put(json, "stretch", costs->stretch);
    text_put(json, "na", costs->na);
    jsonw_key(json, "classes");
    jsonw_object_begin(json);
    for (int i = 0; i <= WAIT_CLASS_UNKNOWN; i++)
        number_put(json, wait_class_name((enum wait_class)i), costs->classes[i]);
    jsonw_object_end(json);
    rows_print(json, costs);
}

static void hotspots_print(struct jsonw *json, const struct run_hotspots *hotspots)
{
    jsonw_key(json, "hotspots");
    jsonw_array_begin(json);
    for (size_t i = 0; i < hotspots->count; i++) {
        const struct run_hotspot *row = &hotspots->rows[i];
        jsonw_object_begin(json);
        text_put(json, "location", row->location);
        jsonw_key(json, "function");
        jsonw_text(json, row->place.function);
        text_put(json, "metric", row->metric);
        text_put(json, "category", row->category);
        number_put(json, "ns", row->value.ns);
        number_put(json, "share", row->share);
        number_put(json, "share_low", row->share_low);
        number_put(json, "share_high", row->share_high);
        text_put(json, "artifact", row->artifact);
        text_put(json, "id", row->id);
        text_put(json, "command", row->command);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void ledger_print(struct jsonw *json, const struct ledger *ledger)
{
    jsonw_key(json, "ledger");
    jsonw_object_begin(json);
    for (size_t i = 0; i < ledger->count; i++) {
        const struct hypothesis *row = &ledger->rows[i];
        jsonw_key(json, row->id);
        jsonw_object_begin(json);
        text_put(json, "verdict", ledger_verdict_name(row->verdict));
        number_put(json, "share", row->share);
        for (int k = 0; k < ANGLES; k++) {
            text_put(json, angle_name((enum angle)k), angle_verdict_name(row->angles[k].verdict));
            jsonw_key(json, k == 0 ? "sampling_text" : k == 1 ? "tracing_text" : "counting_text");
            jsonw_text(json, str_from(row->angles[k].text));
        }
        jsonw_object_end(json);
    }
    jsonw_object_end(json);
}

static void wrong_print(struct jsonw *json, const struct wrong_tools *tools)
{
    jsonw_key(json, "wrong_tools");
    jsonw_object_begin(json);
    for (size_t i = 0; i < tools->count; i++) {
        jsonw_key(json, tools->rows[i].id);
        jsonw_object_begin(json);
        jsonw_key(json, "holds");
        jsonw_bool(json, tools->rows[i].holds);
        text_put(json, "why", tools->rows[i].why);
        jsonw_object_end(json);
    }
    jsonw_object_end(json);
}

int main(int argc, char **argv)
{
    struct arena arena = ARENA_INIT;
    struct evidence_input input = {.costs = {.wall_ns = NAN,
                                             .wall_low_ns = NAN,
                                             .wall_high_ns = NAN,
                                             .cpu_ns = NAN,
                                             .throttled_ns = NAN,
                                             .others_ns = NAN,
                                             .steal_ns = NAN,
                                             .system_ns = NAN,
                                             .switches_voluntary = NAN,
                                             .switches_involuntary = NAN,
                                             .faults_minor = NAN,
                                             .faults_major = NAN}};
    for (int option; (option = getopt(argc, argv, "w:c:v:")) >= 0;) {
        double value = strtod(optarg, NULL);
        *(option == 'w'   ? &input.costs.wall_ns
          : option == 'c' ? &input.costs.cpu_ns
                          : &input.costs.switches_voluntary) = value;
    }
    for (int i = 0; i < AXES; i++) {
        int at = optind + MAX(i - 1, 0); /* CPU and waits are one file */
        input.axes[i].recording = at < argc ? argv[at] : NULL;
        input.axes[i].artifact = i < AXIS_IO ? "recording.whyslow" : "other.whyslow";
        input.axes[i].wall_ns = NAN;
    }
    struct evidence *evidence = ARENA_NEW(&arena, struct evidence);
    struct findings findings = {.arena = &arena};
    struct run_hotspots hotspots;
    struct ledger ledger;
    struct wrong_tools tools;
    struct why why = {0};
    if (!evidence || evidence_load(&arena, &input, evidence, &why) < 0 ||
        run_hotspots_build(&arena, evidence, 50, &hotspots) < 0 ||
        ledger_build(&arena, evidence, &findings, &ledger) < 0 ||
        wrong_tools_build(&arena, evidence, &findings, &tools) < 0) {
        fprintf(stderr, "run_path_dump: %s\n", why.what);
        return 4;
    }
    struct jsonw json;
    jsonw_init(&json, stdout, 0);
    jsonw_object_begin(&json);
    costs_print(&json, &evidence->costs_on_path);
    hotspots_print(&json, &hotspots);
    ledger_print(&json, &ledger);
    wrong_print(&json, &tools);
    jsonw_object_end(&json);
    putchar('\n');
    arena_deinit(&arena);
    return 0;
}
