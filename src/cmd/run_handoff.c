/* What all of it says: on the terminal, and in the folder of the run. */
#include "cmd/run_parts.h"

#include "analyze/evidence_file.h"
#include "cmd/run_artifacts.h"
#include "cmd/run_pictures.h"
#include "cmd/run_report.h"

#include <unistd.h>

static struct run_about about_of(const struct run *run)
{
    return (struct run_about){
        .command = run->plan.command,
        .secrets = run->plan.secrets,
        .run_id = run->run_id,
        .folder = run->folder,
        .scenario = run->plan.scenario,
        .input = run->plan.input,
        .chosen = run->plan.chosen,
        .stability = run_stability_text(run->arena, &run->baseline),
        .runs = run_runs_text(run),
        .golden = run_golden_text(run),
        .marks = run->marks.items,
        .missing = run->missing.items,
        .notes = run->notes.items,
        .elapsed_ns = (double)(clock_mono_ns() - run->start_ns),
        .budget_ns = (double)run->plan.budget_ns,
        .own_cpu_ns = (double)run_own_cpu_ns(run),
    };
}

/* One that cannot be drawn is told by itself; the page is the last of them. */
static void pictures_keep(struct run *run, const struct value *root)
{
    struct why why = {0};
    int r = run_pictures_write(run->arena, &run->said, root, run->folder, run->call->err, &why);
    run_kept(run, "pictures", r, &why);
    if (r == 0 && access(arena_printf(run->arena, "%s/report.html", run->folder), F_OK) < 0)
        run->unkept = true;
}

static void said_keep(struct run *run)
{
    struct why why = {0};
    run_kept(run, "artifacts", artifacts_said(run->arena, run->folder, &run->said, &why), &why);
    why = (struct why){0};
    if (run->plan.summary_out)
        run_kept(run, run->plan.summary_out,
                 artifact_summary(run->arena, run->plan.summary_out, &run->said, &why), &why);
}

/* Files first: the screen lists those that are there. */
static int report(struct run *run, struct why *why)
{
    struct run_facts facts = {
        .arena = run->arena,
        .command = run->plan.command,
        .binary = run->plan.path,
        .run_id = run->run_id,
        .folder = run->folder,
        .metric = run->plan.metric,
        .runs_asked = run->plan.runs,
        .budget_ns = run->plan.budget_ns,
        .baseline = &run->baseline,
        .input = &run->input,
        .fingerprint = &run->fingerprint,
        .checks = &run->checks,
        .checks_failed = run->checks_failed,
        .own_cpu_ns = run_own_cpu_ns(run),
        .marks = run->marks.items,
        .missing = run->missing.items,
        .notes = run->notes.items,
        .said = run->said.evidence ? &run->said : NULL,
    };
    struct value baseline = run_baseline_make(&facts);
    struct why kept = {0};
    run_kept(run, "baseline.json",
             artifact_json(run->folder, "baseline.json", "whyslow.baseline/1", &baseline, &kept),
             &kept);
    if (facts.said)
        said_keep(run);
    struct value root = run_report_make(&facts);
    if (arena_failed(run->arena))
        return why_nomem(why);
    if (facts.said) {
        pictures_keep(run, &root);
        root = run_report_make(&facts); /* again: now the pictures are among the artifacts */
    }
    if (arena_failed(run->arena))
        return why_nomem(why);
    struct report rendered = {.schema = "whyslow.run/1", .root = &root};
    return cmd_render(run->call, &run->opts->output, &rendered, why);
}

/* Before anything is made of it: whoever reads the folder again starts from the same. */
static void evidence_keep(struct run *run)
{
    struct value root = evidence_input_value(run->arena, &run->input);
    struct why why = {0};
    int r = artifact_json(run->folder, "evidence.json", EVIDENCE_SCHEMA, &root, &why);
    run_kept(run, "evidence.json", r, &why);
}

int run_hand_off(struct run *run, struct why *why)
{
    run_step(run, 5, "interpretation");
    evidence_keep(run);
    struct run_about about = about_of(run);
    int r = run_interpret(run->arena, &run->input, &about, &run->said, why);
    return r < 0 ? r : report(run, why);
}
