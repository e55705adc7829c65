/* The table of files, and those that are one table each. */
#include "present/run_files.h"

#include "present/run_screen.h"
#include "present/run_tables.h"

const struct run_file run_files[] = {
    {"hotspots.json", "where the time goes, place by place", "json", "whyslow.hotspots/1",
     run_hotspots_file, NULL},
    {"ledger.json", "every classic explanation, judged from three angles", "json",
     "whyslow.ledger/1", run_ledger_file, NULL},
    {"suspicions.json", "what was suspected, confirmed or dismissed, with evidence", "json",
     "whyslow.suspicions/1", run_suspicions_file, NULL},
    {"map.json", "the steps of the program with their times", "json", "whyslow.map/1", run_map_file,
     NULL},
    {"map.yaml", "the same as YAML", "yaml", "whyslow.map/1", run_map_file, NULL},
    {"profile_result.json", "all of it as one object, for programs", "json",
     "whyslow.profile_result/1", run_profile_result, NULL},
    {"handoff.md", "for whoever mends it: causes, advice, and how to check it", NULL, NULL, NULL,
     run_handoff_draw},
    {0},
};

struct value run_file_begin(struct arena *arena, const struct interpretation *run)
{
    const struct run_costs *costs = &run->evidence->costs;
    struct value root = value_map(arena);
    value_put(&root, "run_id", NULL, value_text(run->about.run_id));
    value_put(&root, "command", NULL, value_text(run->about.command));
    value_put(&root, "wall_ms", NULL, run_ms(costs->wall_ns, "no plain run was finished"));
    value_put(&root, "wall_low_ms", NULL, run_ms(costs->wall_low_ns, "too few runs"));
    value_put(&root, "wall_high_ms", NULL, run_ms(costs->wall_high_ns, "too few runs"));
    return root;
}

struct value run_hotspots_file(struct arena *arena, const struct interpretation *run)
{
    struct value root = run_file_begin(arena, run);
    value_put(&root, "time", NULL, run_screen_time(arena, run));
    value_put(&root, "hotspots", NULL, run_hotspot_table(arena, run, 0));
    value_put(&root, "left_out", NULL, value_uint(run->hotspots.left_out, UNIT_COUNT));
    value_put(&root, "honesty", NULL, run_screen_honesty(arena, run));
    return root;
}

struct value run_ledger_file(struct arena *arena, const struct interpretation *run)
{
    struct value root = run_file_begin(arena, run);
    value_put(&root, "hypotheses", NULL, run_ledger_table(arena, run));
    value_put(&root, "honesty", NULL, run_screen_honesty(arena, run));
    return root;
}

struct value run_suspicions_file(struct arena *arena, const struct interpretation *run)
{
    struct value root = run_file_begin(arena, run);
    value_put(&root, "confirmed", NULL,
              value_uint(run_verdicts(run, FINDING_CONFIRMED), UNIT_COUNT));
    value_put(&root, "dismissed", NULL,
              value_uint(run_verdicts(run, FINDING_DISMISSED), UNIT_COUNT));
    value_put(&root, "not_judged", NULL,
              value_uint(run_verdicts(run, FINDING_NOT_JUDGED), UNIT_COUNT));
    value_put(&root, "suspicions", NULL, run_suspicion_table(arena, run));
    value_put(&root, "context", NULL, run_apart_table(arena, run, FINDING_CONTEXT));
    value_put(&root, "environment", NULL, run_apart_table(arena, run, FINDING_ENVIRONMENT));
    value_put(&root, "opportunities", NULL, run_opportunity_table(arena, run, 0));
    value_put(&root, "together", NULL, run_together(arena, run));
    value_put(&root, "wrong_tools", NULL, run_wrong_tool_table(arena, run));
    value_put(&root, "honesty", NULL, run_screen_honesty(arena, run));
    return root;
}
