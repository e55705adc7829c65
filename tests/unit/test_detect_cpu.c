/* Detectors of CPU time, memory and builds on runs made by hand, each just below and just above its
 * thresholds; and what they say could be saved. */
#include "unit.h"

#include "detect/each.h"
#include "detect/judge_parts.h"
#include "made_evidence.h"

#include <stdio.h>

/* A run of one thread, and a heap whose stacks are those of the samples. */
struct scene {
    struct made_run *run;
    uint32_t thread;
    struct heap_site sites[8];
    size_t site_count;
    struct profile_process processes[2];
    struct heap_process_row process_rows[2];
    struct heap_snapshot_rows snapshots[16];
    struct heap_snapshot_row rows[16];
    size_t snapshot_count;
    struct build_info binary;
    struct findings findings;
};

static struct scene *scene_new(void)
{
    struct scene *scene = run_checked(calloc(1, sizeof(*scene)));
    scene->run = run_new();
    scene->thread = run_process(scene->run, 0);
    scene->site_count = scene->snapshot_count = 1;
    return scene;
}

static void scene_free(struct scene *scene)
{
    run_free(scene->run);
    free(scene);
}

static void runs(struct scene *scene, double ms, const char *names)
{
    run_runs(scene->run, scene->thread, ms, names);
}

static struct heap_tally *site(struct scene *scene, const char *names)
{
    struct heap_site *site = &scene->sites[scene->site_count++];
    site->info = (struct heap_site_info){.thread = scene->thread,
                                         .stack = run_stack(scene->run, names)};
    site->process = 1;
    return &site->tally;
}

/* What lives at the next snapshot, of the one stack. */
static void snapshot(struct scene *scene, const char *names, int64_t bytes)
{
    size_t id = scene->snapshot_count++;
    scene->rows[id] = (struct heap_snapshot_row){.snapshot = (uint32_t)id,
                                                 .stack = run_stack(scene->run, names),
                                                 .count = 1,
                                                 .bytes = bytes};
    scene->snapshots[id] = (struct heap_snapshot_rows){
        .info = {.process = 1, .time_ns = id * 100 * RUN_MS}, .rows = &scene->rows[id], .count = 1};
}

/* Plain runs: as long as the path, `system_ms` of it in the kernel, `faults` page faults. */
static const struct finding *judged(struct scene *scene, const struct detector *detector,
                                    double system_ms, double faults, double rss_mib)
{
    struct made_run *run = scene->run;
    double wall_ms = (double)run->now_ns / RUN_MS;
    struct evidence *e = run_end(run, wall_ms, wall_ms);
    e->costs.system_ns = system_ms * RUN_MS;
    e->costs.user_ns = (wall_ms - system_ms) * RUN_MS;
    e->costs.faults_minor = faults;
    e->costs.faults_major = 0;
    e->costs.peak_rss_bytes = rss_mib * 1024 * 1024;
    e->binary = scene->binary.path ? &scene->binary : NULL;
    e->binary_na = "not read";
    e->command = "./app";
    if (scene->site_count > 1) {
        e->axes[AXIS_HEAP].na = NULL;
        e->heap = (struct heap){.profile = e->cpu,
                                .sites = scene->sites,
                                .site_count = scene->site_count,
                                .processes = scene->process_rows,
                                .process_count = 2,
                                .snapshots = scene->snapshots,
                                .snapshot_count = scene->snapshot_count,
                                .root_process = 1};
        scene->process_rows[1].known = true;
        uint64_t peak = 0;
        for (size_t i = 1; i < scene->site_count; i++)
            peak += (uint64_t)scene->sites[i].tally.peak_bytes;
        scene->process_rows[1].tally.peak_bytes = peak;
        assert_int_equal(heap_sums_build(&run->arena, &e->heap, &e->heap_sums), 0);
    }
    const struct detector *table[] = {detector, NULL};
    assert_int_equal(table_judge(e, table, &scene->findings), 0);
    assert_true(scene->findings.count > 0);
    const struct finding *finding = &scene->findings.items[0];
    assert_true(finding->verdict == FINDING_CONFIRMED || finding->reason);
    return finding;
}

static void confirmed(const struct finding *finding, double ms)
{
    if (finding->verdict != FINDING_CONFIRMED)
        print_error("dismissed: %s\n", finding->reason);
    assert_int_equal(finding->verdict, FINDING_CONFIRMED);
    if (!(fabs(run_ms(finding->recoverable) - ms) <= 0.01 * ms + 1))
        print_error("recoverable is %f ms, not %f\n", run_ms(finding->recoverable), ms);
    assert_true(fabs(run_ms(finding->recoverable) - ms) <= 0.01 * ms + 1);
    assert_true(finding->recoverable.low_ns <= finding->recoverable.ns &&
                finding->recoverable.ns <= finding->recoverable.high_ns);
}

/* As of a build without -g: no line can speak for its function. */
static void lines_forget(struct scene *scene)
{
    for (size_t i = 0; i < RUN_MAX; i++)
        scene->run->places[i].line = 0;
}

static void function_counts_with_its_helpers(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    runs(scene, 200, "main scan");
    runs(scene, 150, "main scan c:__memcmp_avx2_movbe");
    runs(scene, 500, "main other");
    runs(scene, 150, "main third");
    lines_forget(scene);
    const struct finding *finding = judged(scene, &detect_one_function, 0, 0, 1);
    confirmed(finding, 500);
    assert_true(str_is(finding->place.function, "other"));
    assert_non_null(strstr(finding->title, "by itself"));
    scene_free(scene);

    scene = scene_new();
    runs(scene, 200, "main scan");
    runs(scene, 350, "main scan c:__memcmp_avx2_movbe");
    runs(scene, 290, "main other");
    runs(scene, 160, "main third");
    lines_forget(scene);
    finding = judged(scene, &detect_one_function, 0, 0, 1);
    confirmed(finding, 550);
    assert_true(str_is(finding->place.function, "scan"));
    assert_non_null(
        strstr(finding->title, "with what it calls in the standard library (64% of it)"));
    scene_free(scene);
}

static void a_few_samples_confirm_no_share(void **state)
{
    (void)state;
    for (int few = 0; few < 2; few++) {
        struct scene *scene = scene_new();
        runs(scene, few ? 19 : 20, "main scan");
        runs(scene, 10, "main other");
        const struct finding *line = judged(scene, &detect_one_line, 0, 0, 1);
        assert_int_equal(line->verdict, few ? FINDING_DISMISSED : FINDING_CONFIRMED);
        assert_true(line->unsure == few);
        if (few)
            assert_non_null(strstr(line->reason, "19 samples"));
        lines_forget(scene);
        const struct finding *function = judged(scene, &detect_one_function, 0, 0, 1);
        assert_int_equal(function->verdict, few ? FINDING_DISMISSED : FINDING_CONFIRMED);
        assert_true(function->unsure == few);
        scene_free(scene);
    }
}

/* A line of stl_tree.h is nobody's to mend: the line that asks for it is. */
static void templates_count_for_who_calls_them(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    runs(scene, 600, "main scan t:find t:compare");
    runs(scene, 400, "main other");
    const struct finding *finding = judged(scene, &detect_one_line, 0, 0, 1);
    confirmed(finding, 600);
    assert_true(str_is(finding->place.function, "scan"));
    assert_true(str_is(finding->place.file, "app.c"));
    assert_int_equal(finding->place.owner, FINDING_OWNER_USER);
    scene_free(scene);

    scene = scene_new();
    runs(scene, 600, "main scan t:find t:compare");
    runs(scene, 400, "main other");
    lines_forget(scene);
    finding = judged(scene, &detect_one_function, 0, 0, 1);
    confirmed(finding, 600);
    assert_true(str_is(finding->place.function, "scan"));
    scene_free(scene);

    /* A library of templates is a library: it is named itself. */
    scene = scene_new();
    runs(scene, 600, "main scan e:multiply t:compare");
    runs(scene, 400, "main other");
    lines_forget(scene);
    finding = judged(scene, &detect_one_function, 0, 0, 1);
    confirmed(finding, 600);
    assert_true(str_is(finding->place.function, "multiply"));
    assert_int_equal(finding->place.owner, FINDING_OWNER_LIBRARY);
    scene_free(scene);
}

/* Neither the kernel's time nor the allocator's is its own. */
static void function_needs_its_share(void **state)
{
    (void)state;
    for (int enough = 0; enough < 2; enough++) {
        struct scene *scene = scene_new();
        runs(scene, 280 + 40 * enough, "main scan");
        runs(scene, 100, "main scan c:malloc");
        runs(scene, 100, "main scan c:read k:__x64_sys_read");
        runs(scene, 260, "main second");
        runs(scene, 260 - 40 * enough, "main third");
        lines_forget(scene);
        const struct finding *finding = judged(scene, &detect_one_function, 0, 0, 1);
        if (enough)
            confirmed(finding, 320);
        else
            assert_int_equal(finding->verdict, FINDING_DISMISSED);
        scene_free(scene);
    }
}

static void waiting_for_a_cpu_hides_no_function(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    runs(scene, 400, "main scan");
    run_queues(scene->run, scene->thread, 800);
    runs(scene, 100, "main other");
    lines_forget(scene);
    assert_int_equal(judged(scene, &detect_one_function, 0, 0, 1)->verdict, FINDING_CONFIRMED);
    scene_free(scene);
}

/* With the rest of the interpreter, but not with libraries it calls. */
static void interpreter_counts_as_one(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    runs(scene, 200, "main _PyEval_EvalFrameDefault");
    runs(scene, 400, "main _PyEval_EvalFrameDefault long_add");
    runs(scene, 100, "main _PyEval_EvalFrameDefault l:deflate");
    runs(scene, 300, "main gc");
    confirmed(judged(scene, &detect_one_function, 0, 0, 1), 600);
    scene_free(scene);
}

static void line_speaks_for_its_function(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    runs(scene, 310, "main scan");
    runs(scene, 690, "main c:write k:__x64_sys_write");
    const struct finding *line = judged(scene, &detect_one_line, 0, 0, 1);
    confirmed(line, 310);
    assert_true(line->place.line > 0);
    assert_int_equal(judged(scene, &detect_one_function, 0, 0, 1)->verdict, FINDING_CONFIRMED);
    assert_int_equal(scene->findings.items[1].verdict, FINDING_DISMISSED);
    assert_non_null(strstr(scene->findings.items[1].reason, "one_line"));
    scene_free(scene);
}

/* A third of the wall time once belonged to nobody: the function pointed to its line, and the line
 * was not enough by itself. */
static void function_speaks_where_its_line_is_not_enough(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    runs(scene, 220, "main scan");
    runs(scene, 110, "other scan");
    scene->run->places[scene->run->evidence.cpu.place_count - 1].line++;
    runs(scene, 670, "main c:write k:__x64_sys_write");
    assert_int_equal(judged(scene, &detect_one_line, 0, 0, 1)->verdict, FINDING_DISMISSED);
    assert_int_equal(judged(scene, &detect_one_function, 0, 0, 1)->verdict, FINDING_DISMISSED);
    confirmed(&scene->findings.items[1], 330);
    scene_free(scene);
}

static void lines_that_are_not_known_are_not_judged(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    runs(scene, 600, "main scan");
    lines_forget(scene);
    assert_int_equal(judged(scene, &detect_one_line, 0, 0, 1)->verdict, FINDING_NOT_JUDGED);
    scene_free(scene);
}

static void kernel_needs_most_of_the_cpu(void **state)
{
    (void)state;
    for (int enough = 0; enough < 2; enough++) {
        struct scene *scene = scene_new();
        double ms = enough ? 620 : 580;
        runs(scene, ms, "main ask c:getrandom k:__x64_sys_getrandom k:chacha");
        runs(scene, 1000 - ms, "main other");
        const struct finding *finding = judged(scene, &detect_kernel_dominated, ms, 0, 1);
        if (enough)
            confirmed(finding, 0);
        else
            assert_int_equal(finding->verdict, FINDING_DISMISSED);
        /* How much of it is needed nobody knows: it is told, and nothing to save. */
        assert_int_equal(finding->class, FINDING_CONTEXT);
        assert_true(fabs(finding->cost_ns / RUN_MS - ms) < 7);
        assert_null(finding->advice);
        assert_int_equal(finding->angles[ANGLE_COUNTING].verdict, ANGLE_SUPPORTS);
        assert_non_null(strstr(finding->title, "getrandom"));
        scene_free(scene);
    }
}

/* The largest of many small ones is not most of it. */
static void a_call_is_named_for_what_it_has_of_the_kernels_time(void **state)
{
    (void)state;
    for (int most = 0; most < 2; most++) {
        struct scene *scene = scene_new();
        runs(scene, most ? 540 : 200, "main ask c:close k:__x64_sys_close");
        for (int i = 0; i < 4; i++)
            runs(scene, most ? 90 : 175,
                 i % 2   ? "main ask c:getrandom k:__x64_sys_getrandom"
                 : i > 1 ? "main ask c:openat k:__x64_sys_openat"
                         : "main ask k:kernel_of_no_call");
        runs(scene, 100, "main other");
        const struct finding *finding = judged(scene, &detect_kernel_dominated, 900, 0, 1);
        confirmed(finding, 0);
        if (most)
            assert_non_null(strstr(finding->title, ", 60% of that in close()"));
        else
            assert_null(strchr(finding->title, ','));
        scene_free(scene);
    }
}

static void kernel_that_serves_faults_is_left_to_page_faults(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    runs(scene, 500, "main fill k:asm_exc_page_fault k:exc_page_fault");
    runs(scene, 200, "main ask c:getrandom k:__x64_sys_getrandom");
    runs(scene, 300, "main other");
    const struct finding *finding = judged(scene, &detect_kernel_dominated, 700, 1000, 1);
    assert_int_equal(finding->verdict, FINDING_DISMISSED);
    assert_non_null(strstr(finding->reason, "page_faults"));
    scene_free(scene);
}

/* Filling with zeros stays with larger pages; memory that is kept needs no fault again. */
static void faults_are_saved_by_larger_pages_or_by_keeping(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        struct scene *scene = scene_new();
        runs(scene, 300, "main fill k:asm_exc_page_fault k:exc_page_fault");
        runs(scene, 100, "main fill k:asm_exc_page_fault k:exc_page_fault k:clear_page_erms");
        runs(scene, 600, "main other");
        /* 100 MiB are 25,600 pages. */
        const struct finding *finding = judged(scene, &detect_page_faults, 400,
                                               again ? 256000 : 25600, 100);
        confirmed(finding, again ? 360 : 300);
        assert_int_equal(finding->remedy, again ? REMEDY_REUSE : REMEDY_LOCAL);
        scene_free(scene);
    }
    struct scene *scene = scene_new();
    runs(scene, 140, "main fill k:asm_exc_page_fault k:exc_page_fault");
    runs(scene, 860, "main other");
    assert_int_equal(judged(scene, &detect_page_faults, 140, 25600, 100)->verdict,
                     FINDING_DISMISSED);
    scene_free(scene);
}

static void loading_needs_its_share(void **state)
{
    (void)state;
    for (int enough = 0; enough < 2; enough++) {
        struct scene *scene = scene_new();
        runs(scene, enough ? 60 : 40, "d:_dl_start d:_dl_relocate_object d:do_lookup_x");
        runs(scene, 100, "d:_dl_start d:_dl_map_object d:mmap64 k:__x64_sys_mmap");
        runs(scene, 800, "main other");
        const struct finding *finding = judged(scene, &detect_start_up, 0, 0, 1);
        if (enough)
            confirmed(finding, 160);
        else
            assert_int_equal(finding->verdict, FINDING_DISMISSED);
        scene_free(scene);
    }
}

static void build_is_judged_by_its_own_code(void **state)
{
    (void)state;
    for (int enough = 0; enough < 2; enough++) {
        struct scene *scene = scene_new();
        scene->binary = (struct build_info){.path = "./app",
                                            .optimization = "-O0",
                                            .optimized = {BUILD_NO, "-O0 in DW_AT_producer"},
                                            .stripped = {BUILD_NO, ""}};
        runs(scene, enough ? 120 : 80, "main scan");
        runs(scene, 880, "main c:memset");
        const struct finding *finding = judged(scene, &detect_unoptimized_build, 0, 0, 1);
        if (enough)
            confirmed(finding, 60);
        else
            assert_int_equal(finding->verdict, FINDING_DISMISSED);
        assert_true(finding->recoverable.low_ns == 0);
        scene_free(scene);
    }
    struct scene *scene = scene_new();
    runs(scene, 100, "main scan");
    assert_int_equal(judged(scene, &detect_unoptimized_build, 0, 0, 1)->verdict,
                     FINDING_NOT_JUDGED);
    scene_free(scene);
}

/* It saves nothing, and explains nothing that others say. */
static void names_are_a_matter_of_trust(void **state)
{
    (void)state;
    for (int enough = 0; enough < 2; enough++) {
        struct scene *scene = scene_new();
        runs(scene, enough ? 210 : 190, "main app+0x1230");
        runs(scene, 300, "main app+0x1230 c:memset");
        runs(scene, 500, "main other");
        for (size_t i = 0; i < RUN_MAX; i++)
            if (str_starts(scene->run->functions[i].name, "app+"))
                scene->run->functions[i].linkage = (struct str){0};
        const struct finding *finding = judged(scene, &detect_unsymbolised_build, 0, 0, 1);
        if (enough)
            confirmed(finding, 0);
        else
            assert_int_equal(finding->verdict, FINDING_DISMISSED);
        assert_null(finding->covers);
        scene_free(scene);
    }
}

/* `ms` in the allocator for one place, of a second. */
static struct scene *churn(double ms, uint64_t frees, uint64_t lived_ns, const char *call)
{
    struct scene *scene = scene_new();
    const char *names = arena_printf(&scene->run->arena, "main parse %s", call);
    runs(scene, ms / 2, names);
    runs(scene, ms / 2, "main done c:free"); /* frees, and allocates nothing */
    runs(scene, 1000 - ms, "main other");
    struct heap_tally *tally = site(scene, names);
    tally->allocations = tally->samples = 10000;
    tally->frees = frees;
    tally->lived_ns = lived_ns;
    tally->allocated_bytes = 1000000;
    tally->freed_bytes = frees * 100;
    return scene;
}

static void churn_is_what_lives_for_a_moment(void **state)
{
    (void)state;
    struct {
        double ms;
        uint64_t frees, lived_ns;
        const char *call;
        bool trouble;
    } cases[] = {
        {400, 10000, 0, "c:malloc", true},
        {32, 10000, 0, "c:malloc", true},
        {28, 10000, 0, "c:malloc", false},                        /* too little time */
        {400, 7900, 0, "c:malloc", false},                        /* kept */
        {400, 10000, 10000 * UINT64_C(990000), "c:malloc", true}, /* 0.99 ms each */
        {400, 10000, 10000 * UINT64_C(1100000), "c:malloc", false},
        {400, 10000, 0, "c:realloc", false}, /* realloc_growth's */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct scene *scene = churn(cases[i].ms, cases[i].frees, cases[i].lived_ns, cases[i].call);
        const struct finding *finding = judged(scene, &detect_allocation_churn, 0, 0, 1);
        if (cases[i].trouble)
            confirmed(finding, cases[i].ms);
        else
            assert_int_equal(finding->verdict, FINDING_DISMISSED);
        scene_free(scene);
    }
}

/* Pieces that go back to the kernel cost their page faults, too. */
static void churn_of_large_pieces_has_their_faults(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        struct scene *scene = churn(100, 10000, 0, "c:malloc");
        runs(scene, 200, "main parse fill k:asm_exc_page_fault k:exc_page_fault");
        scene->sites[1].tally.allocated_bytes = large ? 10000 * UINT64_C(100000) : 1000000;
        confirmed(judged(scene, &detect_allocation_churn, 0, 0, 1), large ? 300 : 100);
        scene_free(scene);
    }
}

static struct scene *growing(uint64_t step, uint64_t steps, uint64_t chain)
{
    struct scene *scene = scene_new();
    runs(scene, 300, "main add c:realloc c:__memcpy_avx_unaligned_erms");
    runs(scene, 100, "main add c:malloc");
    runs(scene, 600, "main other");
    struct heap_tally *tally = site(scene, "main add c:realloc");
    tally->allocations = tally->samples = steps + 1;
    tally->grown = steps;
    tally->grown_bytes = steps * step;
    tally->moved = steps;
    tally->size_max = (steps + 1) * step;
    tally->allocated_bytes = (steps + 1) * (steps + 2) / 2 * step;
    tally->chain_max = chain;
    return scene;
}

static void growth_in_small_steps_is_what_doubling_saves(void **state)
{
    (void)state;
    struct scene *scene = growing(100, 10000, 15);
    /* One copy of the largest stays of 5,000 of its size. */
    confirmed(judged(scene, &detect_realloc_growth, 0, 0, 1), 300);
    scene_free(scene);

    scene = growing(100, 10000, 3); /* not the same piece */
    assert_int_equal(judged(scene, &detect_realloc_growth, 0, 0, 1)->verdict, FINDING_DISMISSED);
    scene_free(scene);

    scene = growing(100, 4, 4); /* a third larger each time, on average twice */
    assert_int_equal(judged(scene, &detect_realloc_growth, 0, 0, 1)->verdict, FINDING_DISMISSED);
    scene_free(scene);
}

/* 40 MiB in 10,240 pages, half of all faults. */
static struct scene *rising(bool each_time, uint64_t kept_mib)
{
    struct scene *scene = scene_new();
    runs(scene, 200, "main fill k:asm_exc_page_fault k:exc_page_fault");
    runs(scene, 800, "main other");
    struct heap_tally *tally = site(scene, "main keep c:malloc");
    tally->allocations = tally->samples = 1000;
    tally->allocated_bytes = 40 << 20;
    tally->frees = 1000 - 1000 * kept_mib / 40;
    tally->freed_bytes = (40 - kept_mib) << 20;
    tally->peak_bytes = 40 << 20;
    for (int i = 1; i <= 4; i++)
        snapshot(scene, "main keep c:malloc", each_time || i < 3 ? i * (10 << 20) : 20 << 20);
    return scene;
}

static void growth_costs_its_page_faults(void **state)
{
    (void)state;
    struct scene *scene = rising(true, 40);
    confirmed(judged(scene, &detect_memory_growth, 0, 20480, 80), 100);
    scene_free(scene);

    scene = rising(false, 40);
    assert_int_equal(judged(scene, &detect_memory_growth, 0, 20480, 80)->verdict,
                     FINDING_DISMISSED);
    scene_free(scene);

    scene = rising(true, 30);
    assert_int_equal(judged(scene, &detect_memory_growth, 0, 20480, 80)->verdict,
                     FINDING_DISMISSED);
    scene_free(scene);

    scene = rising(true, 40);
    scene->snapshot_count = 3;
    assert_int_equal(judged(scene, &detect_memory_growth, 0, 20480, 80)->verdict,
                     FINDING_NOT_JUDGED);
    scene_free(scene);
}

static const struct finding_fact *fact_of(const struct finding *finding, const char *name)
{
    for (size_t i = 0; i < finding->fact_count; i++)
        if (strcmp(finding->facts[i].name, name) == 0)
            return &finding->facts[i];
    fail_msg("there is no fact %s", name);
    return NULL;
}

/* Figures are estimates then, and said to be: in words, and for machines. */
static void what_samples_of_the_heap_tell_is_said_with_a_tilde(void **state)
{
    (void)state;
    for (int sampled = 0; sampled < 2; sampled++) {
        const char *about = sampled ? "~" : "";
        struct scene *scene = churn(400, 10000, 0, "c:malloc");
        struct arena *arena = &scene->run->arena;
        scene->run->evidence.axes[AXIS_HEAP].sampled = sampled;
        const struct finding *finding = judged(scene, &detect_allocation_churn, 0, 0, 1);
        confirmed(finding, 400);
        assert_true(str_starts(str_from(finding->title),
                               arena_printf(arena, "%s10,000 allocations", about)));
        assert_string_equal(
            finding->whys[1].text,
            arena_printf(arena, "it is asked %s10,000 times, for %s100 B each", about, about));
        assert_true(str_starts(str_from(finding->whys[2].text),
                               arena_printf(arena, "%s100%% of the pieces are freed", about)));
        assert_string_equal(finding->angles[ANGLE_TRACING].text,
                            sampled ? "~20,000 calls were made, by samples: ~20.0 us each"
                                    : "20,000 calls were traced: 20.0 us each");
        assert_int_equal(fact_of(finding, "allocations")->value.about, sampled);
        assert_int_equal(fact_of(finding, "allocated_bytes")->value.about, sampled);
        assert_int_equal(fact_of(finding, "freed_before_next_pct")->value.about, 0); /* it is 0 */
        assert_false(fact_of(finding, "time_share")->value.about);
        scene_free(scene);

        scene = churn(28, 10000, 0, "c:malloc");
        scene->run->evidence.axes[AXIS_HEAP].sampled = sampled;
        finding = judged(scene, &detect_allocation_churn, 0, 0, 1);
        assert_true(str_starts(str_from(finding->reason),
                               sampled ? "~10,000 of ~10,000 allo" : "10,000 of 10,000 allo"));
        scene_free(scene);

        scene = growing(100, 10000, 15);
        scene->run->evidence.axes[AXIS_HEAP].sampled = sampled;
        finding = judged(scene, &detect_realloc_growth, 0, 0, 1);
        assert_true(str_starts(str_from(finding->title),
                               sampled ? "~10,001 reallocations that grow by ~0.0%"
                                       : "10,000 reallocations that grow by 0.0%"));
        assert_int_equal(fact_of(finding, "moved")->value.about, sampled);
        assert_int_equal(fact_of(finding, "chain_max")->value.about, sampled);
        scene_free(scene);

        scene = rising(true, 40);
        scene->run->evidence.axes[AXIS_HEAP].sampled = sampled;
        finding = judged(scene, &detect_memory_growth, 0, 20480, 80);
        assert_true(str_starts(str_from(finding->title),
                               sampled ? "memory grows all the time: ~10.0 MiB to ~40.0 MiB"
                                       : "memory grows all the time: 10.0 MiB to 40.0 MiB"));
        assert_true(str_starts(str_from(finding->whys[1].text), sampled ? "~100% of" : "100% of"));
        assert_int_equal(fact_of(finding, "rise_bytes")->value.about, sampled);
        scene_free(scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(function_counts_with_its_helpers),
        cmocka_unit_test(a_few_samples_confirm_no_share),
        cmocka_unit_test(templates_count_for_who_calls_them),
        cmocka_unit_test(what_samples_of_the_heap_tell_is_said_with_a_tilde),
        cmocka_unit_test(function_needs_its_share),
        cmocka_unit_test(waiting_for_a_cpu_hides_no_function),
        cmocka_unit_test(interpreter_counts_as_one),
        cmocka_unit_test(line_speaks_for_its_function),
        cmocka_unit_test(function_speaks_where_its_line_is_not_enough),
        cmocka_unit_test(lines_that_are_not_known_are_not_judged),
        cmocka_unit_test(kernel_needs_most_of_the_cpu),
        cmocka_unit_test(a_call_is_named_for_what_it_has_of_the_kernels_time),
        cmocka_unit_test(kernel_that_serves_faults_is_left_to_page_faults),
        cmocka_unit_test(faults_are_saved_by_larger_pages_or_by_keeping),
        cmocka_unit_test(loading_needs_its_share),
        cmocka_unit_test(build_is_judged_by_its_own_code),
        cmocka_unit_test(names_are_a_matter_of_trust),
        cmocka_unit_test(churn_is_what_lives_for_a_moment),
        cmocka_unit_test(churn_of_large_pieces_has_their_faults),
        cmocka_unit_test(growth_in_small_steps_is_what_doubling_saves),
        cmocka_unit_test(growth_costs_its_page_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
