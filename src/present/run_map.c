/* The performance map (M23): a tree of steps, what a run costs, and what is slow about it. */
#include "present/run_parts.h"

#include "analyze/run_steps.h"
#include "present/run_screen.h"

#include <math.h>

enum { TOP_MAX = 5 };

static struct value count_or(bool known, uint64_t number, enum unit unit)
{
    return known ? value_uint(number, unit) : value_na("calls were not recorded");
}

static struct value bytes_or(double bytes, const char *reason)
{
    return isnan(bytes) ? value_na(reason) : value_uint((uint64_t)bytes, UNIT_BYTES);
}

static struct value text_or(struct str text, const char *reason)
{
    return text.len > 0 ? value_str(text) : value_na(reason);
}

/* ---- steps ---- */

static struct value step_value(struct arena *arena, const struct interpretation *run,
                               const struct run_steps *steps, uint32_t index)
{
    const struct run_step *step = &steps->rows[index];
    double wall = run->evidence->costs_on_path.ns;
    const char *source = run_source(arena, &step->place);
    struct value map = value_map(arena);
    value_put(&map, "id", NULL, value_text(arena_printf(arena, "s%u", index)));
    value_put(&map, "kind", NULL, value_text(step->requests ? "request" : "function"));
    value_put(&map, "function", NULL, text_or(step->function, "it has no name"));
    value_put(&map, "location", NULL, *source ? value_text(source) : value_na("not known"));
    value_put(&map, "service", NULL, text_or(step->service, "not known"));
    value_put(&map, "wall_time_ms", NULL, value_real(step->ns / 1e6, UNIT_MS));
    value_put(&map, "share_pct", NULL,
              value_real(wall > 0 ? step->ns / wall * 100 : 0, UNIT_PERCENT));
    value_put(&map, "type", NULL, value_text(finding_category_name(step->type)));
    struct value *io = value_put(&map, "io", NULL, value_map(arena));
    value_put(io, "calls", NULL,
              step->requests ? value_na("see the function that asks")
                             : count_or(steps->io_known, step->calls, UNIT_COUNT));
    value_put(io, "read_bytes", NULL, count_or(steps->io_known, step->read_bytes, UNIT_BYTES));
    value_put(io, "write_bytes", NULL, count_or(steps->io_known, step->write_bytes, UNIT_BYTES));
    value_put(&map, "http_round_trips", NULL,
              count_or(steps->io_known, step->http_round_trips, UNIT_COUNT));
    if (step->requests)
        value_put(&map, "requests", NULL, value_uint(step->requests, UNIT_COUNT));
    struct value *children = value_put(&map, "children", NULL, value_list(arena));
    for (uint32_t at = step->first_child; at; at = steps->rows[at].next_sibling)
        value_append(children, step_value(arena, run, steps, at));
    return map;
}

/* ---- what a run costs ---- */

/* What the heap held at the end and had not at the beginning. */
static struct value memory_delta(const struct evidence *evidence)
{
    if (!evidence_has(evidence, AXIS_HEAP))
        return value_na(evidence->axes[AXIS_HEAP].na);
    double live = 0;
    for (size_t i = 1; i < evidence->heap.site_count; i++) {
        const struct heap_tally *tally = &evidence->heap.sites[i].tally;
        if (evidence->heap.sites[i].info.kind == HEAP_KIND_HEAP)
            live += (double)tally->allocated_bytes - (double)tally->freed_bytes;
    }
    return value_real(live / (1024 * 1024), UNIT_NONE);
}

static void baseline_put(struct arena *arena, const struct interpretation *run,
                         const struct run_steps *steps, struct value *map)
{
    const struct run_costs *costs = &run->evidence->costs;
    const char *none = "not known";
    struct value *baseline = value_put(map, "baseline", NULL, value_map(arena));
    value_put(baseline, "wall_time_ms", NULL, run_ms(costs->wall_ns, "no plain run was finished"));
    value_put(baseline, "cpu_time_ms", NULL, run_ms(costs->cpu_ns, none));
    value_put(baseline, "memory_peak_mb", NULL,
              isnan(costs->peak_rss_bytes)
                  ? value_na(none)
                  : value_real(costs->peak_rss_bytes / (1024 * 1024), UNIT_NONE));
    value_put(baseline, "memory_delta_mb", NULL, memory_delta(run->evidence));
    value_put(baseline, "io_read_bytes", NULL, bytes_or(costs->read_bytes, none));
    value_put(baseline, "io_write_bytes", NULL, bytes_or(costs->written_bytes, none));
    value_put(baseline, "http_round_trips", NULL,
              count_or(steps->io_known, steps->http_round_trips, UNIT_COUNT));
}

/* ---- what is slow ---- */

static const struct finding *first_confirmed(const struct interpretation *run)
{
    const struct finding *first = run->findings.count > 0 ? &run->findings.items[0] : NULL;
    return first && finding_is_fix(first) ? first : NULL;
}

static const char *evidence_of(struct arena *arena, const struct finding *finding)
{
    for (size_t i = 0; i < finding->fact_count; i++)
        if (finding->facts[i].artifact)
            return arena_printf(arena, "%s%s%s", finding->facts[i].artifact,
                                finding->facts[i].id ? " " : "",
                                finding->facts[i].id ? finding->facts[i].id : "");
    return "suspicions.json";
}

static struct value *top_begin(struct arena *arena, struct value *list, uint32_t rank,
                               const char *location, const char *type, const char *detail)
{
    struct value *one = value_append(list, value_map(arena));
    value_put(one, "rank", NULL, value_uint(rank, UNIT_NONE));
    value_put(one, "location", NULL, value_text(location));
    value_put(one, "type", NULL, value_text(type));
    value_put(one, "detail", NULL, value_text(detail));
    return one;
}

/* Confirmed suspicions first; where there is none, the places with the most time. */
static struct value top_list(struct arena *arena, const struct interpretation *run)
{
    struct value list = value_list(arena);
    double wall = run->evidence->costs_on_path.ns;
    size_t told = 0;
    for (size_t i = 0; i < run->findings.count && told < TOP_MAX; i++) {
        const struct finding *finding = &run->findings.items[i];
        if (!finding_is_fix(finding))
            continue;
        struct value *one = top_begin(arena, &list, (uint32_t)++told,
                                      place_text(arena, &finding->place),
                                      finding_category_name(finding->category), finding->title);
        value_put(one, "wall_time_ms", NULL, run_ms(finding->cost_ns, "not known"));
        value_put(one, "share_pct", NULL,
                  run_pct(wall > 0 ? finding->cost_ns / wall : NAN, "not known"));
        value_put(one, "recoverable_ms", NULL, run_ms(finding->recoverable.ns, "not known"));
        value_put(one, "evidence", NULL, value_text(evidence_of(arena, finding)));
    }
    for (size_t i = 0; told == 0 && i < run->hotspots.count && i < TOP_MAX; i++) {
        const struct run_hotspot *spot = &run->hotspots.rows[i];
        const char *where = spot->location ? spot->location : place_text(arena, &spot->place);
        struct value *one = top_begin(arena, &list, spot->rank, where,
                                      spot->category ? spot->category : "Unknown",
                                      spot->metric ? spot->metric : "time");
        value_put(one, "wall_time_ms", NULL, run_ms(spot->value.ns, "not known"));
        value_put(one, "share_pct", NULL, run_pct(spot->share, "not known"));
        value_put(one, "recoverable_ms", NULL, value_na("no suspicion was confirmed"));
        value_put(one, "evidence", NULL,
                  value_text(arena_printf(arena, "%s%s%s",
                                          spot->artifact ? spot->artifact : "hotspots.json",
                                          spot->id ? " " : "", spot->id ? spot->id : "")));
    }
    return list;
}

static const char *detail_text(struct arena *arena, const struct interpretation *run)
{
    const struct finding *first = first_confirmed(run);
    if (run->wrong_tools.first)
        return arena_printf(arena, "%s: %s", run->wrong_tools.first->id,
                            run->wrong_tools.first->why ? run->wrong_tools.first->why : "");
    if (first)
        return arena_printf(arena, "%s; mending it %s", first->title,
                            run_gain_text(arena, run, first));
    if (run->hotspots.count > 0)
        return arena_printf(arena, "no suspicion was confirmed; the most time is in %s: %s of %s",
                            run->hotspots.rows[0].location
                                ? run->hotspots.rows[0].location
                                : place_text(arena, &run->hotspots.rows[0].place),
                            run->hotspots.rows[0].metric ? run->hotspots.rows[0].metric : "time",
                            run_estimate_text(arena, run->hotspots.rows[0].value));
    return "no suspicion was confirmed, and no place has much of the time";
}

/* Without a confirmed suspicion: what the run mostly did. */
static enum finding_category classify(const struct interpretation *run)
{
    static const enum finding_category kinds[] = {
        [WAIT_CLASS_RUNNING] = CATEGORY_CPU,        [WAIT_CLASS_RUNQ] = CATEGORY_CPU,
        [WAIT_CLASS_LOCK] = CATEGORY_LOCK,          [WAIT_CLASS_DISK] = CATEGORY_IO_FILE,
        [WAIT_CLASS_NET] = CATEGORY_IO_NETWORK,     [WAIT_CLASS_PAGEFAULT] = CATEGORY_MEMORY,
        [WAIT_CLASS_CHILD] = CATEGORY_EXTERNAL,     [WAIT_CLASS_PIPE] = CATEGORY_EXTERNAL,
        [WAIT_CLASS_TIMER] = CATEGORY_ARCHITECTURE, [WAIT_CLASS_IDLE] = CATEGORY_UNKNOWN,
        [WAIT_CLASS_UNKNOWN] = CATEGORY_UNKNOWN,
    };
    const struct finding *first = first_confirmed(run);
    if (first)
        return first->category;
    const struct path_costs *costs = &run->evidence->costs_on_path;
    enum finding_category most = CATEGORY_UNKNOWN;
    double ns = run_unseen_ns(costs);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (costs->classes[i] > ns) {
            ns = costs->classes[i];
            most = kinds[i];
        }
    return most;
}

void run_bottlenecks_put(struct arena *arena, const struct interpretation *run, struct value *map)
{
    value_put(map, "bottleneck_classification", NULL,
              value_text(finding_category_name(classify(run))));
    value_put(map, "bottleneck_detail", NULL, value_text(detail_text(arena, run)));
    value_put(map, "top_bottlenecks", NULL, top_list(arena, run));
}

void run_map_put(struct arena *arena, const struct interpretation *run, struct value *map)
{
    struct run_steps steps;
    value_put(map, "test_command", NULL, value_text(run->about.command));
    if (run_steps_build(arena, run->evidence, &steps) < 0) {
        arena->failed = true; /* so that whoever asked hears of it */
        return;
    }
    baseline_put(arena, run, &steps, map);
    struct value *list = value_put(map, "steps", NULL, value_list(arena));
    for (uint32_t at = steps.rows[0].first_child; at; at = steps.rows[at].next_sibling)
        value_append(list, step_value(arena, run, &steps, at));
    value_put(map, "steps_left_out_ms", NULL, value_real(steps.left_out_ns / 1e6, UNIT_MS));
    run_bottlenecks_put(arena, run, map);
}

struct value run_map_file(struct arena *arena, const struct interpretation *run)
{
    struct value root = run_file_begin(arena, run);
    run_map_put(arena, run, &root);
    value_put(&root, "honesty", NULL, run_screen_honesty(arena, run));
    return root;
}
