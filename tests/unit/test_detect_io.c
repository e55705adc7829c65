/* Detectors of file I/O on runs made by hand, each just below and just above its thresholds; and
 * what they say could be saved. */
#include "unit.h"

#include "detect/each.h"
#include "detect/judge_parts.h"
#include "made_evidence.h"
#include "made_io.h"

#include <errno.h>
#include <stdio.h>

/* A second: 600 ms of the program's own, 400 ms at `site` in `call`. */
struct scene {
    struct made_run *run;
    struct made_io *io;
    struct evidence *evidence;
    struct findings findings;
    uint32_t thread, stack;
};

static struct scene scene_new(void)
{
    struct scene scene = {.run = run_new(), .io = made_io_new()};
    scene.thread = run_process(scene.run, 0);
    return scene;
}

static void scene_free(struct scene *scene)
{
    run_free(scene->run);
    free(scene->io);
}

static uint32_t scene_file(struct scene *scene, const char *name)
{
    return made_io_object(scene->io, OBJECT_FILE, 0, name);
}

/* `ms` of the path in a call, and calls that take as much: `count` of them. */
static struct call_row *scene_call(struct scene *scene, const char *names, const char *call,
                                   uint32_t object, uint64_t count, double ms, uint64_t bytes)
{
    uint32_t stack = run_stack(scene->run, names);
    struct call_row *row = made_io_call(scene->io, 1, stack, call, object, count,
                                        ms / (double)count, bytes);
    row->tally.placed = row->tally.sequential = count;
    return row;
}

/* What ran is sampled in the kernel's own function for the call. */
static void scene_runs(struct scene *scene, const char *names, const char *call, double ms)
{
    run_runs(scene->run, scene->thread, ms,
             arena_printf(&scene->run->arena, "%s c:%s k:__x64_sys_%s", names, call, call));
}

static void scene_waits(struct scene *scene, const char *names, const char *call, double ms,
                        enum wait_class class, uint64_t count)
{
    uint32_t row = run_waits(
        scene->run, scene->thread, ms, class, made_io_syscall(call),
        arena_printf(&scene->run->arena, "%s c:%s k:__x64_sys_%s", names, call, call));
    scene->run->rows[row].tally.count = count;
}

static const struct finding *scene_judge(struct scene *scene, const struct detector *detector)
{
    struct made_run *run = scene->run;
    const struct detector *table[] = {detector, NULL};
    if (!scene->evidence)
        scene->evidence = run_end(run, (double)run->now_ns / RUN_MS, 600);
    struct evidence *e = scene->evidence;
    e->costs.system_ns = 400 * (double)RUN_MS;
    e->axes[AXIS_IO].na = NULL;
    e->io = scene->io->io;
    struct profile profile = e->cpu;
    profile.threads = scene->io->threads;
    profile.thread_count = scene->io->io.profile.thread_count;
    profile.processes = scene->io->processes;
    profile.process_count = scene->io->io.profile.process_count;
    e->io.profile = profile;
    assert_int_equal(io_sums_build(&run->arena, &e->io, &e->io_sums), 0);
    scene->findings = (struct findings){0};
    assert_int_equal(table_judge(e, table, &scene->findings), 0);
    assert_true(scene->findings.count > 0);
    return &scene->findings.items[0];
}

static void assert_verdict(const struct finding *finding, enum finding_verdict verdict)
{
    if (finding->verdict != verdict)
        fprintf(stderr, "%s: %s: %s\n", finding->detector, finding->title,
                finding->reason ? finding->reason : "confirmed");
    assert_int_equal(finding->verdict, verdict);
    assert_true(verdict == FINDING_CONFIRMED || finding->reason);
}

/* All that a confirmed one owes its reader. */
static void assert_told(const struct finding *finding, const char *function, double ms)
{
    assert_verdict(finding, FINDING_CONFIRMED);
    assert_true(str_is(finding->place.function, function));
    assert_true(fabs(run_ms(finding->recoverable) - ms) < 0.02 * ms);
    assert_true(finding->recoverable.low_ns <= finding->recoverable.ns);
    assert_true(finding->recoverable.high_ns >= finding->recoverable.ns);
    assert_non_null(finding->covers);
    assert_non_null(finding->advice);
    assert_true(finding->fact_count >= 2);
    assert_true(finding->why_count >= 3);
    for (int i = 0; i < ANGLES; i++)
        assert_int_equal(finding->angles[i].verdict, ANGLE_SUPPORTS);
}

/* ---- small I/O ---- */

struct small {
    uint64_t count, bytes;
    double ms;         /* on the path */
    double sequential; /* share */
    uint32_t flags;
    enum object_kind kind;
};

static struct scene small_scene(struct small small)
{
    struct scene scene = scene_new();
    uint32_t file = made_io_object(scene.io, small.kind, 0, "/data/records");
    run_runs(scene.run, scene.thread, 1000 - small.ms, "main work");
    scene_runs(&scene, "main put", "write", small.ms);
    struct call_row *row = scene_call(&scene, "main put", "write", file, small.count, small.ms,
                                      small.bytes);
    row->tally.sequential = (uint64_t)(small.sequential * (double)small.count);
    row->info.flags = small.flags;
    return scene;
}

static enum finding_verdict small_verdict(struct small small)
{
    struct scene scene = small_scene(small);
    const struct finding *finding = scene_judge(&scene, &detect_small_io);
    enum finding_verdict verdict = finding->verdict;
    assert_true(verdict == FINDING_CONFIRMED || finding->reason[0]);
    scene_free(&scene);
    return verdict;
}

static void small_calls_one_after_the_other_could_be_joined(void **state)
{
    (void)state;
    struct scene scene = small_scene((struct small){100000, 64, 400, 1, 0, OBJECT_FILE});
    /* All but one in a thousand, and moving 6.4 MB. */
    assert_told(scene_judge(&scene, &detect_small_io), "put", 400 * (1 - 64.0 / 65536) - 2.56);
    scene_free(&scene);
}

static void small_calls_count_by_number_size_order_and_time(void **state)
{
    (void)state;
    const struct small base = {1000, 64, 400, 1, 0, OBJECT_FILE};
    struct small other = base;
    assert_int_equal(small_verdict(base), FINDING_CONFIRMED);
    other.count = 999;
    assert_int_equal(small_verdict(other), FINDING_DISMISSED);
    other = base, other.bytes = 511;
    assert_int_equal(small_verdict(other), FINDING_CONFIRMED);
    other.bytes = 513;
    assert_int_equal(small_verdict(other), FINDING_DISMISSED);
    other = base, other.sequential = 0.81;
    assert_int_equal(small_verdict(other), FINDING_CONFIRMED);
    other.sequential = 0.79;
    assert_int_equal(small_verdict(other), FINDING_DISMISSED);
    other = base, other.ms = 21;
    assert_int_equal(small_verdict(other), FINDING_CONFIRMED);
    other.ms = 19;
    assert_int_equal(small_verdict(other), FINDING_DISMISSED);
    other = base, other.kind = OBJECT_CHAR_DEVICE;
    assert_int_equal(small_verdict(other), FINDING_DISMISSED);
    other = base, other.flags = CALL_DIRECT;
    assert_int_equal(small_verdict(other), FINDING_DISMISSED);
    other = base, other.flags = CALL_SYNC; /* waits for the disk: another trouble */
    assert_int_equal(small_verdict(other), FINDING_DISMISSED);
}

/* ---- a sync a message ---- */

struct syncs {
    uint64_t syncs, writes, bytes;
    double ms;
};

static struct scene sync_scene(struct syncs syncs)
{
    struct scene scene = scene_new();
    uint32_t file = scene_file(&scene, "/data/journal");
    run_runs(scene.run, scene.thread, 1000 - syncs.ms, "main work");
    scene_runs(&scene, "main commit", "fsync", syncs.ms / 4);
    scene_waits(&scene, "main commit", "fsync", syncs.ms - syncs.ms / 4, WAIT_CLASS_DISK,
                syncs.syncs);
    scene_call(&scene, "main commit", "fsync", file, syncs.syncs, syncs.ms, 0);
    scene_call(&scene, "main put", "write", file, syncs.writes, 0.001, syncs.bytes);
    return scene;
}

static enum finding_verdict sync_verdict(struct syncs syncs)
{
    struct scene scene = sync_scene(syncs);
    enum finding_verdict verdict = scene_judge(&scene, &detect_fsync_per_message)->verdict;
    scene_free(&scene);
    return verdict;
}

static void of_many_syncs_one_stays(void **state)
{
    (void)state;
    struct scene scene = sync_scene((struct syncs){100, 100, 100, 400});
    const struct finding *finding = scene_judge(&scene, &detect_fsync_per_message);
    assert_told(finding, "commit", 400 * 0.99);
    assert_true(str_contains(str_from(finding->caution), "Durability"));
    scene_free(&scene);
}

static void syncs_count_by_number_writes_bytes_and_time(void **state)
{
    (void)state;
    assert_int_equal(sync_verdict((struct syncs){20, 40, 100, 400}), FINDING_CONFIRMED);
    assert_int_equal(sync_verdict((struct syncs){19, 19, 100, 400}), FINDING_DISMISSED);
    assert_int_equal(sync_verdict((struct syncs){20, 41, 100, 400}), FINDING_DISMISSED);
    assert_int_equal(sync_verdict((struct syncs){20, 20, 64 << 10, 400}), FINDING_CONFIRMED);
    assert_int_equal(sync_verdict((struct syncs){20, 20, 65 << 10, 400}), FINDING_DISMISSED);
    assert_int_equal(sync_verdict((struct syncs){20, 20, 100, 52}), FINDING_CONFIRMED);
    assert_int_equal(sync_verdict((struct syncs){20, 20, 100, 48}), FINDING_DISMISSED);
}

static void writes_with_o_dsync_are_syncs(void **state)
{
    (void)state;
    struct scene scene = scene_new();
    uint32_t file = scene_file(&scene, "/data/journal");
    run_runs(scene.run, scene.thread, 600, "main work");
    scene_waits(&scene, "main put", "write", 400, WAIT_CLASS_DISK, 200);
    scene_call(&scene, "main put", "write", file, 200, 400, 100)->info.flags = CALL_SYNC;
    assert_told(scene_judge(&scene, &detect_fsync_per_message), "put", 400 * (1 - 1 / 200.0));
    scene_free(&scene);
}

static void a_journal_beside_the_file_belongs_to_its_commits(void **state)
{
    (void)state;
    struct scene scene = sync_scene((struct syncs){100, 100, 100, 200});
    uint32_t journal = scene_file(&scene, "/data/journal-journal");
    uint32_t elsewhere = scene_file(&scene, "/other/file");
    scene_waits(&scene, "main log", "fdatasync", 200, WAIT_CLASS_DISK, 100);
    scene_call(&scene, "main log", "fdatasync", journal, 100, 200, 0);
    scene_call(&scene, "main log", "write", journal, 900, 1, 10); /* too many for itself */
    scene_waits(&scene, "main far", "fdatasync", 100, WAIT_CLASS_DISK, 100);
    scene_call(&scene, "main far", "fdatasync", elsewhere, 100, 100, 0);
    scene_call(&scene, "main far", "write", elsewhere, 900, 1, 10);
    const struct finding *finding = scene_judge(&scene, &detect_fsync_per_message);
    assert_verdict(finding, FINDING_CONFIRMED);
    assert_int_equal(finding->occurrences, 200);
    assert_true(fabs(run_ms(finding->recoverable) - 400 * (1 - 1 / 200.0)) < 4);
    scene_free(&scene);
}

static struct scene commit_scene(uint64_t writes)
{
    struct scene scene = scene_new();
    uint32_t data = scene_file(&scene, "/data/shop.db");
    uint32_t journal = scene_file(&scene, "/data/shop.db-journal");
    run_runs(scene.run, scene.thread, 600, "main work");
    scene_waits(&scene, "main step", "fdatasync", 400, WAIT_CLASS_DISK, 300);
    scene_call(&scene, "main step", "fdatasync", journal, 200, 250, 0);
    scene_call(&scene, "main step", "fdatasync", data, 100, 150, 0);
    scene_call(&scene, "main step", "pwrite64", journal, writes * 3 / 4, 1, 1000);
    scene_call(&scene, "main step", "pwrite64", data, writes / 4, 1, 1000);
    return scene;
}

static void a_commit_of_several_files_is_several_writes(void **state)
{
    (void)state;
    struct scene scene = commit_scene(1196);
    const struct finding *finding = scene_judge(&scene, &detect_fsync_per_message);
    assert_told(finding, "step", 400 * (1 - 1 / 300.0));
    assert_int_equal(scene.findings.count, 1);
    assert_int_equal(finding->affected_count, 0);
    scene_free(&scene);
    scene = commit_scene(1204);
    assert_verdict(scene_judge(&scene, &detect_fsync_per_message), FINDING_DISMISSED);
    /* Unless the statements are known: then they are the messages. */
    uint32_t inserts = made_io_request(scene.io, REQUEST_SQLITE, 1, 0, "shop.db",
                                       "INSERT INTO t VALUES (?)", "");
    scene.io->requests[inserts].tally.count = 600;
    finding = scene_judge(&scene, &detect_fsync_per_message);
    assert_verdict(finding, FINDING_CONFIRMED);
    assert_true(str_contains(str_from(finding->advice), "transaction"));
    scene.io->requests[inserts].tally.count = 601;
    assert_verdict(scene_judge(&scene, &detect_fsync_per_message), FINDING_DISMISSED);
    scene_free(&scene);
}

/* ---- read again ---- */

struct again {
    uint64_t opens, bytes; /* bytes read in all */
    double ms;
    const char *name;
    bool written;
};

static struct scene again_scene(struct again again)
{
    struct scene scene = scene_new();
    uint32_t file = scene_file(&scene, again.name);
    run_runs(scene.run, scene.thread, 1000 - again.ms, "main work");
    scene_runs(&scene, "main load", "read", again.ms);
    scene_call(&scene, "main load", "openat", file, again.opens, 0.001, 0);
    scene_call(&scene, "main load", "read", file, 10, again.ms, again.bytes / 10);
    if (again.written)
        scene_call(&scene, "main store", "write", file, 1, 0.001, 1);
    scene.io->io.files_json = str_from(arena_printf(
        &scene.run->arena, "{\"files\": [{\"object\": %u, \"size_bytes\": 1000}]}", file));
    return scene;
}

static enum finding_verdict again_verdict(struct again again)
{
    struct scene scene = again_scene(again);
    enum finding_verdict verdict = scene_judge(&scene, &detect_file_reread)->verdict;
    scene_free(&scene);
    return verdict;
}

static void of_many_times_read_one_stays(void **state)
{
    (void)state;
    struct scene scene = again_scene((struct again){10, 10000, 400, "/data/table", false});
    assert_told(scene_judge(&scene, &detect_file_reread), "load", 400 * 0.9);
    scene_free(&scene);
}

static void a_file_is_read_again_by_its_opens_while_nobody_writes_it(void **state)
{
    (void)state;
    const char *name = "/data/table";
    assert_int_equal(again_verdict((struct again){5, 1000, 400, name, false}), FINDING_CONFIRMED);
    assert_int_equal(again_verdict((struct again){4, 1000, 400, name, false}), FINDING_DISMISSED);
    assert_int_equal(again_verdict((struct again){5, 1000, 400, name, true}), FINDING_DISMISSED);
    assert_int_equal(again_verdict((struct again){5, 1000, 400, "/proc/stat", false}),
                     FINDING_DISMISSED);
    assert_int_equal(again_verdict((struct again){5, 1000, 11, name, false}), FINDING_DISMISSED);
    assert_int_equal(again_verdict((struct again){5, 1000, 14, name, false}), FINDING_CONFIRMED);
}

static void what_every_process_reads_once_is_not_read_again(void **state)
{
    (void)state;
    struct scene scene = scene_new();
    uint32_t file = scene_file(&scene, "/data/table");
    run_runs(scene.run, scene.thread, 600, "main work");
    scene_runs(&scene, "main load", "read", 400);
    for (uint32_t i = 1; i < 8; i++) {
        scene.io->threads[i].process = i; /* each its own */
        scene_call(&scene, "main load", "openat", file, 1, 0.001, 0)->info.thread = i;
        scene_call(&scene, "main load", "read", file, 1, 57, 1000)->info.thread = i;
    }
    assert_verdict(scene_judge(&scene, &detect_file_reread), FINDING_DISMISSED);
    scene_free(&scene);
}

/* ---- lookups ---- */

static struct scene lookup_scene(uint64_t count, double ms)
{
    struct scene scene = scene_new();
    uint32_t path = made_io_object(scene.io, OBJECT_PATH, 0, "/usr/include/none.h");
    run_runs(scene.run, scene.thread, 1000 - ms, "main work");
    scene_runs(&scene, "main find", "newfstatat", ms);
    scene_call(&scene, "main find", "newfstatat", path, count, ms, 0)->info.error = ENOENT;
    return scene;
}

static void lookups_that_fail_need_not_be_made(void **state)
{
    (void)state;
    struct scene scene = lookup_scene(1000, 400);
    assert_told(scene_judge(&scene, &detect_failed_lookups), "find", 400 * 0.999);
    scene_free(&scene);
}

static void failed_lookups_count_by_number_and_time(void **state)
{
    (void)state;
    const struct {
        uint64_t count;
        double ms;
        enum finding_verdict verdict;
    } cases[] = {{500, 100, FINDING_CONFIRMED},
                 {499, 100, FINDING_DISMISSED},
                 {5000, 11, FINDING_CONFIRMED},
                 {5000, 9, FINDING_DISMISSED}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct scene scene = lookup_scene(cases[i].count, cases[i].ms);
        assert_verdict(scene_judge(&scene, &detect_failed_lookups), cases[i].verdict);
        scene_free(&scene);
    }
}

static void lookups_that_find_something_are_not_meant(void **state)
{
    (void)state;
    struct scene scene = lookup_scene(1000, 400);
    uint32_t path = made_io_object(scene.io, OBJECT_PATH, 0, "/usr/include/some.h");
    /* Three quarters of the time at this site. */
    scene_call(&scene, "main find", "newfstatat", path, 3000, 1200, 0);
    assert_told(scene_judge(&scene, &detect_failed_lookups), "find", 100 * 0.999);
    scene_free(&scene);
}

/* ---- temporary files ---- */

static struct scene churn_scene(uint64_t count, double ms, bool removed)
{
    struct scene scene = scene_new();
    run_runs(scene.run, scene.thread, 1000 - ms, "main work");
    scene_runs(&scene, "main spill", "openat", ms / 2);
    scene_runs(&scene, "main spill", "unlink", ms / 2);
    for (uint64_t i = 0; i < count; i++) {
        const char *name = arena_printf(&scene.run->arena, "/tmp/x%u", (unsigned)i);
        uint32_t file = scene_file(&scene, name);
        double each = ms / (double)count / 2;
        scene_call(&scene, "main spill", "openat", file, 1, each, 0)->info.flags = CALL_CREATES;
        if (removed)
            scene_call(&scene, "main spill", "unlink",
                       made_io_object(scene.io, OBJECT_PATH, 0, name), 1, each, 0);
    }
    return scene;
}

static void temporary_files_need_not_be_made(void **state)
{
    (void)state;
    struct scene scene = churn_scene(200, 400, true);
    assert_told(scene_judge(&scene, &detect_temporary_files), "spill", 400);
    scene_free(&scene);
}

static void temporary_files_count_by_number_time_and_removal(void **state)
{
    (void)state;
    const struct {
        uint64_t count;
        double ms;
        bool removed;
        enum finding_verdict verdict;
    } cases[] = {{100, 400, true, FINDING_CONFIRMED},
                 {99, 400, true, FINDING_DISMISSED},
                 {100, 400, false, FINDING_DISMISSED},
                 {200, 12, true, FINDING_CONFIRMED},
                 {200, 8, true, FINDING_DISMISSED}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct scene scene = churn_scene(cases[i].count, cases[i].ms, cases[i].removed);
        assert_verdict(scene_judge(&scene, &detect_temporary_files), cases[i].verdict);
        scene_free(&scene);
    }
}

static void a_journal_is_no_temporary_file(void **state)
{
    (void)state;
    struct scene scene = churn_scene(200, 400, true);
    size_t objects = scene.io->io.object_count;
    for (uint32_t i = 1; i < objects; i++)
        if (scene.io->objects[i].kind == OBJECT_FILE)
            scene_call(&scene, "main spill", "fsync", i, 1, 0.001, 0);
    assert_verdict(scene_judge(&scene, &detect_temporary_files), FINDING_DISMISSED);
    scene_free(&scene);
}

/* ---- event loops ---- */

struct loop {
    uint64_t polls, served, blocks;
    double ms; /* that it stands still */
    const char *call;
    uint64_t bytes; /* written between two of them */
};

static struct scene loop_scene(struct loop loop)
{
    struct scene scene = scene_new();
    bool sleeps = strcmp(loop.call, "nanosleep") == 0;
    uint32_t file = sleeps ? 0 : scene_file(&scene, "/data/log");
    uint32_t pipe = made_io_object(scene.io, OBJECT_PIPE, 0, "pipe:[1]");
    run_runs(scene.run, scene.thread, 1000 - loop.ms, "main work");
    scene_waits(&scene, "main handle", loop.call, loop.ms,
                sleeps ? WAIT_CLASS_TIMER : WAIT_CLASS_DISK, loop.blocks);
    scene_call(&scene, "main serve", "epoll_wait", 0, loop.polls, 1, 0)->tally.last_ns = 900 *
                                                                                         RUN_MS;
    scene_call(&scene, "main handle", "read", pipe, loop.served, 0.001, 1);
    if (file)
        scene_call(&scene, "main handle", "pwrite64", file, loop.blocks, 0.001, loop.bytes);
    scene_call(&scene, "main handle", loop.call, file, loop.blocks, loop.ms, 0)->tally.first_ns = 1;
    return scene;
}

static enum finding_verdict loop_verdict(struct loop loop)
{
    struct scene scene = loop_scene(loop);
    enum finding_verdict verdict = scene_judge(&scene, &detect_event_loop_io)->verdict;
    scene_free(&scene);
    return verdict;
}

static void what_blocks_a_loop_could_go_on_beside_it(void **state)
{
    (void)state;
    struct scene scene = loop_scene((struct loop){100, 100, 100, 400, "fsync", 256 << 10});
    assert_told(scene_judge(&scene, &detect_event_loop_io), "handle", 400);
    scene_free(&scene);
    /* Elsewhere it takes as long: no more than the rest is gained. */
    scene = loop_scene((struct loop){100, 100, 100, 700, "fsync", 256 << 10});
    assert_told(scene_judge(&scene, &detect_event_loop_io), "handle", 300);
    scene_free(&scene);
}

static void a_loop_counts_by_polls_events_blocks_and_time(void **state)
{
    (void)state;
    const struct loop base = {100, 100, 100, 400, "fsync", 256 << 10};
    struct loop other = base;
    other.polls = other.served = 20;
    assert_int_equal(loop_verdict(other), FINDING_CONFIRMED);
    other.polls = 19;
    assert_int_equal(loop_verdict(other), FINDING_DISMISSED);
    other = base, other.served = 50;
    assert_int_equal(loop_verdict(other), FINDING_CONFIRMED);
    other.served = 49; /* it asks without being answered: another trouble */
    assert_int_equal(loop_verdict(other), FINDING_DISMISSED);
    other = base, other.blocks = 10;
    assert_int_equal(loop_verdict(other), FINDING_CONFIRMED);
    other.blocks = 9;
    assert_int_equal(loop_verdict(other), FINDING_DISMISSED);
    other = base, other.ms = 21;
    assert_int_equal(loop_verdict(other), FINDING_CONFIRMED);
    other.ms = 19;
    assert_int_equal(loop_verdict(other), FINDING_DISMISSED);
    other = base, other.bytes = 100; /* a sync a message: better mended there */
    assert_int_equal(loop_verdict(other), FINDING_DISMISSED);
    other = base, other.call = "nanosleep";
    assert_int_equal(loop_verdict(other), FINDING_CONFIRMED);
    other.call = "write"; /* into the cache: nobody waits for the disk */
    assert_int_equal(loop_verdict(other), FINDING_DISMISSED);
}

/* ---- the join of two recordings ---- */

static void calls_without_stacks_are_joined_by_their_name(void **state)
{
    (void)state;
    struct scene scene = small_scene((struct small){100000, 64, 400, 1, 0, OBJECT_FILE});
    for (size_t i = 1; i < scene.io->io.call_count; i++)
        scene.io->calls[i].info.stack = 0;
    assert_told(scene_judge(&scene, &detect_small_io), "put", 400 * (1 - 64.0 / 65536) - 2.56);
    scene_free(&scene);
}

static void a_call_at_another_place_is_not_meant(void **state)
{
    (void)state;
    struct scene scene = small_scene((struct small){100000, 64, 200, 1, 0, OBJECT_FILE});
    uint32_t other = scene_file(&scene, "/data/other");
    scene_runs(&scene, "main dump", "write", 200);
    scene_call(&scene, "main dump", "write", other, 10, 200, 1 << 20);
    assert_told(scene_judge(&scene, &detect_small_io), "put", 200 * (1 - 64.0 / 65536) - 2.56);
    scene_free(&scene);
}

static void who_waits_less_also_queues_less(void **state)
{
    (void)state;
    struct scene scene = sync_scene((struct syncs){100, 100, 100, 300});
    run_queues(scene.run, scene.thread, 50); /* after that wait */
    run_runs(scene.run, scene.thread, 1, "main work");
    run_queues(scene.run, scene.thread, 50); /* and after waits that are not told one by one */
    uint32_t row = (uint32_t)scene.run->evidence.waits.row_count++;
    scene.run->rows[row].info = (struct wait_info){.kind = WAIT_RUNQ, .thread = scene.thread};
    scene.run->rows[row].tally.count = 100;
    scene.run->rows[row].tally.buckets[wait_bucket(RUN_MS)] = 100;
    assert_told(scene_judge(&scene, &detect_fsync_per_message), "commit", 400 * 0.99);
    scene_free(&scene);
    /* Driven off the CPU while it worked: as much of it as of the work. */
    scene = sync_scene((struct syncs){100, 100, 100, 400}); /* 100 of 700 ms that run */
    run_runs(scene.run, scene.thread, 1, "main work");
    run_queues(scene.run, scene.thread, 100);
    row = (uint32_t)scene.run->evidence.waits.row_count++;
    scene.run->rows[row].info = (struct wait_info){.kind = WAIT_RUNQ, .thread = scene.thread};
    scene.run->rows[row].tally.buckets[wait_bucket(1000)] = 100;
    scene.run->rows[row].tally.buckets[wait_bucket(10 * RUN_MS)] = 10;
    assert_told(scene_judge(&scene, &detect_fsync_per_message), "commit",
                (400 + 100 * 100 / 701.0) * 0.99);
    scene_free(&scene);
}

static void without_anything_to_look_at_it_is_said_so(void **state)
{
    (void)state;
    static const struct detector *const all[] = {&detect_event_loop_io, &detect_failed_lookups,
                                                 &detect_file_reread,   &detect_fsync_per_message,
                                                 &detect_small_io,      &detect_temporary_files};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        struct scene scene = scene_new();
        run_runs(scene.run, scene.thread, 1000, "main work");
        assert_verdict(scene_judge(&scene, all[i]), FINDING_DISMISSED);
        assert_int_equal(scene.findings.count, 1);
        scene_free(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_calls_one_after_the_other_could_be_joined),
        cmocka_unit_test(small_calls_count_by_number_size_order_and_time),
        cmocka_unit_test(of_many_syncs_one_stays),
        cmocka_unit_test(syncs_count_by_number_writes_bytes_and_time),
        cmocka_unit_test(writes_with_o_dsync_are_syncs),
        cmocka_unit_test(a_journal_beside_the_file_belongs_to_its_commits),
        cmocka_unit_test(a_commit_of_several_files_is_several_writes),
        cmocka_unit_test(of_many_times_read_one_stays),
        cmocka_unit_test(a_file_is_read_again_by_its_opens_while_nobody_writes_it),
        cmocka_unit_test(what_every_process_reads_once_is_not_read_again),
        cmocka_unit_test(lookups_that_fail_need_not_be_made),
        cmocka_unit_test(failed_lookups_count_by_number_and_time),
        cmocka_unit_test(lookups_that_find_something_are_not_meant),
        cmocka_unit_test(temporary_files_need_not_be_made),
        cmocka_unit_test(temporary_files_count_by_number_time_and_removal),
        cmocka_unit_test(a_journal_is_no_temporary_file),
        cmocka_unit_test(what_blocks_a_loop_could_go_on_beside_it),
        cmocka_unit_test(a_loop_counts_by_polls_events_blocks_and_time),
        cmocka_unit_test(calls_without_stacks_are_joined_by_their_name),
        cmocka_unit_test(a_call_at_another_place_is_not_meant),
        cmocka_unit_test(who_waits_less_also_queues_less),
        cmocka_unit_test(without_anything_to_look_at_it_is_said_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
