/* Writes report.html of a run made by hand, for readers that nobody here wrote:
 *
 *     run_page plain | hostile | nothing | wrong-tool
 *
 * "hostile" has the same shape as "plain" with names that want to be markup; "nothing" is a run of
 * which no axis could be measured. */
#include "present/run_page.h"
#include "analyze/opportunity.h"
#include "made_tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MS = 1000000, RUN_MS = 960 };

static bool hostile;

/* A name, or what a hostile target would call itself. */
static const char *named(const char *name)
{
    static const char *const names[] = {"</script><script>alert(1)</script>",
                                        "\"><img src=x onerror=alert(2)>", "</details></main>",
                                        "<!-- ]]> \033[31m &amp; ' \xff"};
    static size_t next;
    return hostile ? names[next++ % ARRAY_SIZE(names)] : name;
}

static struct value screen_make(struct arena *arena)
{
    static const struct column columns[] = {
        {"rank", "#", SHOW_ALWAYS, true, false},
        {"location", "where", SHOW_ALWAYS, false, true},
        {"value_ms", "time", SHOW_ALWAYS, true, false},
        {"secret", "secret", SHOW_MACHINE, false, false},
    };
    struct value root = value_map(arena);
    value_put(&root, "command", NULL, value_text(named("./app --size 10")));
    value_put(&root, "stability", NULL, value_tone(value_text("stable: 1.2%"), TONE_GOOD));
    value_put_machine(&root, "run_id", value_text("for machines only"));
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    struct table_row *row = table_add(&table);
    if (!row)
        abort();
    row->cells[0] = value_uint(1, UNIT_NONE);
    row->cells[1] = value_text(named("parse (parse.c:41)"));
    row->cells[2] = value_real(480, UNIT_MS);
    row->cells[3] = value_text("for machines only");
    value_put(&root, "opportunities", "What to do first", table);
    struct value brief = value_list(arena);
    value_append(&brief, value_text("supported: forcing data to disk"));
    value_put_for(&root, SHOW_PEOPLE, "hypotheses", "Hypotheses", brief);
    value_put_for(&root, SHOW_PEOPLE, "confirmed", "drawn as findings", value_list(arena));
    struct value bar = value_list(arena);
    value_append(&bar, value_text("#### for terminals only"));
    value_put_for(&root, SHOW_TERMINAL, "bar", "Bar", bar);
    struct value honesty = value_list(arena);
    value_append(&honesty, value_text(named("whyslow itself used 1 ms")));
    value_append(&honesty, value_na("no counters"));
    value_put(&root, "honesty", "How far to trust this", honesty);
    return root;
}

static void finding_fill(struct findings *findings, const char *title, double ms,
                         enum finding_verdict verdict)
{
    struct finding *finding = finding_add(findings, "fsync_per_message");
    if (!finding)
        abort();
    finding->title = named(title);
    finding->verdict = verdict;
    finding->reason = verdict == FINDING_CONFIRMED ? NULL : named("only 3 of them");
    finding->category = CATEGORY_IO_FILE;
    finding->place = (struct place){.function = str_from(named("append")),
                                    .file = str_from(named("journal.c")),
                                    .line = 17,
                                    .owner = FINDING_OWNER_USER};
    finding->recoverable = (struct estimate){ms * MS, ms * MS * 0.9, ms * MS * 1.1};
    finding->cost_ns = ms * MS;
    finding->ceiling = 2;
    finding->angles[ANGLE_SAMPLING] = (struct angle_word){ANGLE_SUPPORTS, named("12% of samples")};
    finding->angles[ANGLE_TRACING] = (struct angle_word){ANGLE_REJECTS, named("no call")};
    finding_fact(findings, finding, "fsyncs", "calls of fsync()", value_uint(2000, UNIT_COUNT),
                 "recording-io.whyslow", NULL);
    finding_fact(findings, finding, "waits", "waits for the disk", value_uint(1999, UNIT_COUNT),
                 "recording.whyslow", "w12");
    finding_why(findings, finding, "recording.whyslow w12", "%s", named("every record is synced"));
    finding_why(findings, finding, NULL, "the journal is opened with O_DSYNC");
    finding->measure_next = named("whyslow io -- ./app");
    finding->advice = named("sync once, in journal.c:17");
    finding->caution = named("after a crash the last records are missing");
    finding->validate = named("whyslow compare ./app ./app.new");
    static struct finding_affected affected;
    affected = (struct finding_affected){.place = finding->place, .recoverable_ns = 5.0 * MS};
    finding->affected = &affected;
    finding->affected_count = 1;
}

/* Two threads: the first runs for the first half and waits for the disk in the second; the other
 * lives in the second half, and half of its time is waits too short to be told. */
static void waits_fill(struct evidence *evidence)
{
    static struct wait_row rows[3];
    static struct wait_event events[] = {{1, RUN_MS / 2 * MS, RUN_MS * MS, RUN_MS * MS}};
    static struct waits_thread threads[] = {
        {0}, {0, RUN_MS * MS, 0, 0, true}, {RUN_MS / 2 * MS, RUN_MS * MS, 0, 0, true}};
    static struct profile_thread names[3];
    static enum wait_class classes[] = {WAIT_CLASS_UNKNOWN, WAIT_CLASS_DISK, WAIT_CLASS_LOCK};
    static uint64_t sums[3][WAIT_CLASSES], unaccounted[3];
    static struct path_step steps[] = {{PATH_RUNNING, 1, 0, 0, RUN_MS / 2 * MS},
                                       {PATH_WAIT, 1, 1, RUN_MS / 2 * MS, RUN_MS * MS}};
    rows[1].info.thread = 1;
    rows[2].info.thread = 2;
    names[1] = (struct profile_thread){.tid = 100, .name = str_from(named("main"))};
    names[2] = (struct profile_thread){.tid = 101, .name = str_from(named("worker"))};
    threads[1].running_ns = sums[1][WAIT_CLASS_RUNNING] = RUN_MS / 2 * MS;
    sums[1][WAIT_CLASS_DISK] = RUN_MS / 2 * MS;
    threads[2].running_ns = sums[2][WAIT_CLASS_RUNNING] = RUN_MS / 4 * MS;
    sums[2][WAIT_CLASS_LOCK] = RUN_MS / 4 * MS;
    evidence->waits = (struct waits){.threads = threads,
                                     .rows = rows,
                                     .row_count = 3,
                                     .events = events,
                                     .event_count = 1,
                                     .end_ns = RUN_MS * MS,
                                     .root_thread = 1};
    evidence->waits.profile.threads = names;
    evidence->waits.profile.thread_count = 3;
    evidence->classes = (struct wait_classes){
        .rows = classes, .threads = sums, .unaccounted = unaccounted};
    static struct path_share shares[] = {{PATH_RUNNING, 1, 0, RUN_MS / 2 * MS, 1},
                                         {PATH_WAIT, 1, 1, RUN_MS / 2 * MS, 1}};
    static struct object_info objects[2];
    static struct wait_group group = {.id = 12};
    static uint32_t of_row[] = {0, 1, 0};
    objects[1] = (struct object_info){.kind = OBJECT_FILE, .name = str_from(named("journal.txt"))};
    rows[1].info.object = 1;
    rows[1].info.syscall = WAIT_SYSCALL_UNKNOWN;
    evidence->waits.objects = objects;
    evidence->waits.object_count = 2;
    evidence->groups = (struct wait_groups){.groups = &group, .count = 1, .of_row = of_row};
    evidence->path = (struct critical_path){.steps = steps,
                                            .step_count = ARRAY_SIZE(steps),
                                            .shares = shares,
                                            .share_count = ARRAY_SIZE(shares),
                                            .ns = RUN_MS * MS};
}

static void evidence_fill(struct evidence *evidence, bool nothing)
{
    static struct heap_moment moments[] = {
        {1, 0, 1000, 0}, {1, RUN_MS / 2 * MS, 4000, 0}, {1, RUN_MS * MS, 2000, 0}};
    evidence->costs.wall_ns = RUN_MS * MS;
    for (int i = 0; nothing && i < AXES; i++)
        evidence->axes[i].na = named("not permitted here");
    evidence->costs_on_path.na = nothing ? named("not permitted here") : NULL;
    evidence->axes[AXIS_IO].na = named("not permitted here");
    if (nothing)
        return;
    waits_fill(evidence);
    evidence->heap = (struct heap){.moments = moments, .moment_count = 3, .end_ns = RUN_MS * MS};
    evidence->axes[AXIS_HEAP].sampled = true;
    evidence->costs_on_path.ns = RUN_MS * MS;
    evidence->costs_on_path.classes[WAIT_CLASS_RUNNING] = 0.5 * RUN_MS * MS;
    evidence->costs_on_path.classes[WAIT_CLASS_DISK] = 0.25 * RUN_MS * MS;
    evidence->costs_on_path.unseen_ns = 0.25 * RUN_MS * MS;
}

static struct call_tree tree_make(struct made_tree *made, const char *leaf)
{
    made_tree_init(made);
    uint32_t main = made_tree_add(made, 0, (struct made_node){.name = named("main"), .self = MS});
    made_tree_add(made, main, (struct made_node){.name = leaf, .self = 3 * MS});
    return made_tree_finish(made);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    AUTO(made_tree_deinit) struct made_tree cpu;
    AUTO(made_tree_deinit) struct made_tree waits;
    AUTO(made_tree_deinit) struct made_tree alloc;
    hostile = strcmp(argv[1], "hostile") == 0;
    bool nothing = strcmp(argv[1], "nothing") == 0;
    struct evidence *evidence = ARENA_NEW(&arena, struct evidence);
    if (!evidence)
        return 1;
    evidence_fill(evidence, nothing);
    struct wrong_tool wrong = {"infrastructure_bound", true, "40% of the time was stolen",
                               "elsewhere"};
    const char *marks[] = {named("measured in spite of a sanitizer"), NULL};
    struct interpretation run = {
        .about = {.command = named("./app --size 10"), .run_id = "r1", .folder = "out/r1"},
        .evidence = evidence,
        .findings = {.arena = &arena},
    };
    run.about.marks = marks;
    struct run_hotspot hotspot = {.rank = 1,
                                  .location = named("scan (scan.c:7)"),
                                  .place = {.function = str_from(named("burn"))},
                                  .metric = "self CPU",
                                  .value = {240.0 * MS, 230.0 * MS, 250.0 * MS},
                                  .share = 0.25,
                                  .share_low = 0.24,
                                  .share_high = 0.26,
                                  .category = "CPU",
                                  .artifact = "recording.whyslow",
                                  .id = "f7",
                                  .command = named("whyslow report --callers f7 REC")};
    struct hypothesis hypothesis = {.id = "fsync",
                                    .statement = "forcing data to disk",
                                    .verdict = LEDGER_SUPPORTED,
                                    .share = 0.5};
    hypothesis.angles[ANGLE_TRACING] = (struct angle_word){ANGLE_SUPPORTS, named("2,000 calls")};
    run.hotspots = (struct run_hotspots){&hotspot, nothing ? 0 : 1, 0};
    run.ledger = (struct ledger){&hypothesis, 1};
    if (strcmp(argv[1], "wrong-tool") == 0)
        run.wrong_tools.first = &wrong;
    if (!nothing) {
        finding_fill(&run.findings, "2,000 fsyncs take 50% of the time", 480, FINDING_CONFIRMED);
        finding_fill(&run.findings, "small reads", 96, FINDING_CONFIRMED);
        finding_fill(&run.findings, "a hot lock", 1, FINDING_DISMISSED);
        finding_fill(&run.findings, "thundering herd", NAN, FINDING_NOT_JUDGED);
        run.findings.items[0].rank = 1;
        run.findings.items[1].rank = 2;
    }
    struct value screen = screen_make(&arena);
    struct call_tree trees[] = {tree_make(&cpu, "burn"),
                                tree_make(&waits, "disk: fsync of journal"),
                                tree_make(&alloc, "malloc")};
    const char *na = nothing ? named("not permitted here") : NULL;
    const struct run_graph graphs[] = {
        {"cpu", "CPU", "Widths are CPU time.", "flame-cpu.svg", na ? NULL : &trees[0], na, NULL},
        {"offcpu", "Off-CPU", "Widths are waits.", "flame-offcpu.svg", na ? NULL : &trees[1], na,
         named("1,000 waits, 0 lost")},
        {"alloc", "Allocation", "Widths are bytes.", "flame-alloc.svg", na ? NULL : &trees[2], na,
         NULL},
        {"io", "I/O", "Widths are time in calls.", "flame-io.svg", NULL,
         named("not permitted here"), NULL},
    };
    struct run_page page = {&run, &screen, graphs, ARRAY_SIZE(graphs)};
    struct why why = {0};
    int r = run_page_write(&page, stdout, &why);
    if (r < 0)
        fprintf(stderr, "%s (%s)\n", why.what, why.remedy);
    return r < 0 || arena_failed(&arena) ? 1 : 0;
}
