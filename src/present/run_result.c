/* The whole result as one object (M23): names and words as its readers expect them. */
#include "present/run_parts.h"

#include "analyze/places.h"
#include "present/run_screen.h"

/* ---- where it begins ---- */

/* The heaviest request that the program itself answered: it is a server then. */
static const struct io_request_group *served(const struct evidence *evidence)
{
    for (size_t i = 0; evidence_has(evidence, AXIS_IO) && i < evidence->requests.count; i++)
        if (evidence->requests.groups[i].role == REQUEST_SERVER)
            return &evidence->requests.groups[i];
    return NULL;
}

/* Several programs, one feeding the other: a shell's pipeline, a build. */
static bool is_pipeline(const struct evidence *evidence)
{
    const struct profile *profile = evidence->costs_on_path.profile;
    struct str first = {0};
    for (size_t i = 1; profile && i < profile->process_count; i++) {
        struct str exe = profile->processes[i].exe;
        if (exe.len == 0)
            continue;
        if (first.len == 0)
            first = exe;
        else if (!str_eq(first, exe))
            return true;
    }
    return false;
}

static struct place main_place(const struct evidence *evidence)
{
    const struct profile *profile = evidence->costs_on_path.profile;
    for (size_t i = 1; profile && i < profile->function_count; i++) {
        const struct profile_function *function = &profile->functions[i];
        if (!function->kernel && str_is(function->name, "main"))
            return place_of_function(profile, (uint32_t)i);
    }
    return (struct place){0};
}

static struct value entry_point(struct arena *arena, const struct interpretation *run)
{
    const struct evidence *evidence = run->evidence;
    const struct io_request_group *group = served(evidence);
    struct place place = main_place(evidence);
    const char *source = run_source(arena, &place);
    struct value map = value_map(arena);
    value_put(&map, "type", NULL,
              value_text(group                   ? "api_endpoint"
                         : is_pipeline(evidence) ? "pipeline"
                                                 : "function"));
    value_put(&map, "location", NULL,
              *source                  ? value_text(source)
              : evidence->binary       ? value_text(evidence->binary->path)
              : place.function.len > 0 ? value_na(run_source_na(arena, &place))
                                       : value_na("main() was not seen in a stack"));
    value_put(&map, "route", NULL,
              group && group->text < evidence->io.text_count
                  ? value_str(evidence->io.texts[group->text])
                  : value_na("it answers no requests"));
    value_put(&map, "function", NULL,
              place.function.len > 0 ? value_str(place.function)
                                     : value_na("main() was not seen in a stack"));
    return map;
}

/* ---- what may be done ---- */

static struct value text_or(const char *text, const char *reason)
{
    return text && *text ? value_text(text) : value_na(reason);
}

static struct value hint_value(struct arena *arena, const struct interpretation *run,
                               const struct finding *finding, const char *compare)
{
    struct value map = value_map(arena);
    const char *source = run_source(arena, &finding->place);
    value_put(&map, "rank", NULL, value_uint(finding->rank, UNIT_NONE));
    value_put(&map, "category", NULL, value_text(finding_category_name(finding->category)));
    value_put(&map, "location", NULL,
              value_text(*source ? source : place_text(arena, &finding->place)));
    value_put(&map, "hint", NULL, value_text(finding->advice ? finding->advice : finding->title));
    value_put(&map, "expected_effect", NULL, value_text(run_gain_text(arena, run, finding)));
    value_put(&map, "metric", NULL, value_text("wall"));
    value_put(&map, "recoverable_ms", NULL, run_ms(finding->recoverable.ns, "not known"));
    value_put(&map, "recoverable_low_ms", NULL, run_ms(finding->recoverable.low_ns, "not known"));
    value_put(&map, "recoverable_high_ms", NULL, run_ms(finding->recoverable.high_ns, "not known"));
    value_put(&map, "score", NULL, value_real(finding->score, UNIT_NONE));
    value_put(&map, "caution", NULL, text_or(finding->caution, "none"));
    value_put(&map, "validate", NULL, value_text(finding->validate ? finding->validate : compare));
    value_put(&map, "evidence", NULL, run_facts_list(arena, finding));
    return map;
}

/* From confirmed suspicions only; where changing code is the wrong tool, none. */
static struct value hints_list(struct arena *arena, const struct interpretation *run)
{
    struct value list = value_list(arena);
    struct run_validation validation = run_validate(arena, run);
    for (size_t i = 0; !run->wrong_tools.first && i < run->findings.count; i++)
        if (finding_is_fix(&run->findings.items[i]))
            value_append(&list,
                         hint_value(arena, run, &run->findings.items[i], validation.compare));
    return list;
}

static const char *description(const struct finding *finding)
{
    return finding->title && *finding->title ? finding->title : finding->detector;
}

static void stack_put(struct arena *arena, const struct interpretation *run, struct value *root)
{
    struct value stack = value_list(arena), open = value_list(arena);
    for (size_t i = 0; i < run->findings.count; i++) {
        const struct finding *finding = &run->findings.items[i];
        if (finding->class != FINDING_FIX)
            continue;
        bool judged = finding->verdict != FINDING_NOT_JUDGED;
        struct value *one = value_append(judged ? &stack : &open, value_map(arena));
        if (!judged) {
            value_put(one, "description", NULL, value_text(description(finding)));
            value_put(one, "reason", NULL, text_or(finding->reason, "none was given"));
            continue;
        }
        value_put(one, "category", NULL, value_text(finding_category_name(finding->category)));
        value_put(one, "location", NULL, value_text(place_text(arena, &finding->place)));
        value_put(one, "description", NULL, value_text(description(finding)));
        value_put(one, "verdict", NULL, value_text(finding_verdict_name(finding->verdict)));
        value_put(one, "evidence", NULL, run_facts_list(arena, finding));
        value_put(one, "verification_note", NULL, value_text(run_verification(arena, finding)));
        value_put(one, "affected_steps", NULL, run_affected_list(arena, finding));
    }
    value_put(root, "suspicion_stack", NULL, stack);
    value_put(root, "not_judged", NULL, open);
}

static struct value indicators_list(struct arena *arena, const struct interpretation *run)
{
    struct value list = value_list(arena);
    for (size_t i = 0; i < run->wrong_tools.count; i++)
        if (run->wrong_tools.rows[i].holds)
            value_append(&list, value_text(run->wrong_tools.rows[i].id));
    return list;
}

struct value run_profile_result(struct arena *arena, const struct interpretation *run)
{
    struct value root = value_map(arena);
    value_put(&root, "run_id", NULL, value_text(run->about.run_id));
    value_put(&root, "entry_point_info", NULL, entry_point(arena, run));
    struct value *map = value_put(&root, "performance_map", NULL, value_map(arena));
    if (map)
        run_map_put(arena, run, map);
    run_bottlenecks_put(arena, run, &root);
    value_put(&root, "optimization_hints", NULL, hints_list(arena, run));
    stack_put(arena, run, &root);
    value_put(&root, "context", NULL, run_apart_table(arena, run, FINDING_CONTEXT));
    value_put(&root, "environment", NULL, run_apart_table(arena, run, FINDING_ENVIRONMENT));
    struct value *test = value_put(&root, "e2e_test", NULL, value_map(arena));
    value_put(test, "command", NULL, value_text(run->about.command));
    value_put(test, "redacted", NULL, value_uint(run->about.secrets, UNIT_NONE));
    value_put(test, "source", NULL, value_text(run->about.chosen ? "module" : "user"));
    /* Nothing is put into anybody's source. */
    value_put(&root, "instrumented_files", NULL, value_list(arena));
    value_put(&root, "wrong_tool_indicators", NULL, indicators_list(arena, run));
    value_put(&root, "honesty", NULL, run_screen_honesty(arena, run));
    return root;
}
