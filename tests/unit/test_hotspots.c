/* Rankings of profiles whose answer is known: recursion, inlines, equal names, the kernel,
 * unequal weights; lines, threads and differences of the same. */
#include "recording_helpers.h"

#include "analyze/categories.h"
#include "analyze/embedded.h"
#include "analyze/hot_lines.h"
#include "analyze/hotspots.h"
#include "analyze/profile_diff.h"
#include "analyze/profile_load.h"
#include "analyze/thread_costs.h"
#include "made_profile.h"

#include <math.h>

struct world {
    struct made made;
    struct recording_writer *writer;
    struct arena arena;
    struct profile profile;
    struct hotspots hotspots;
    uint32_t app, lib, kernel, threads[3];
    uint32_t f_main, f_fib, f_work, f_inner, f_work_lib, f_sys;
    uint32_t main_frame, fib_frame, work_frame, inlined_frame, lib_frame, sys_frame;
};

static void world_begin(struct world *world)
{
    *world = (struct world){.writer = create()};
    struct made *made = &world->made;
    made->sink = recording_writer_sink(world->writer);
    uint32_t process = made_process(made, 7, "/opt/app", "app");
    for (uint32_t i = 0; i < 3; i++)
        world->threads[i] = made_thread(made, process, 7 + i,
                                        i == 0   ? "app"
                                        : i == 1 ? "w1"
                                                 : "w2");
    world->app = made_image(made, IMAGE_FILE, "/opt/app", "aa");
    world->lib = made_image(made, IMAGE_FILE, "/usr/lib/libw.so", "bb");
    world->kernel = made_image(made, IMAGE_KERNEL, "[kernel]", "");
    world->f_main = made_function(made, "main", world->app, "m.c", 1, 0x1000);
    world->f_fib = made_function(made, "fib", world->app, "f.c", 10, 0x2000);
    world->f_work = made_function(made, "work", world->app, "w.c", 20, 0x3000);
    world->f_inner = made_function(made, "inner", world->app, "i.h", 30, 0);
    world->f_work_lib = made_function(made, "work", world->lib, "", 0, 0x400);
    world->f_sys = made_function(made, "vfs_read", world->kernel, "", 0, 0xffffffff81000000);
    world->main_frame = made_code(made, world->app, 0x1010, world->f_main, "m.c", 5);
    world->fib_frame = made_code(made, world->app, 0x2010, world->f_fib, "f.c", 12);
    world->work_frame = made_code(made, world->app, 0x3010, world->f_work, "w.c", 22);
    world->inlined_frame = made_frame(made, FRAME_USER, world->app, 0x3020, NULL, 0);
    made_place(made, world->inlined_frame, 0, world->f_inner, "i.h", 31);
    made_place(made, world->inlined_frame, 1, world->f_work, "w.c", 25);
    world->lib_frame = made_code(made, world->lib, 0x410, world->f_work_lib, "", 0);
    world->sys_frame = made_frame(made, FRAME_KERNEL, world->kernel, 0xffffffff81000010, NULL, 0);
    made_place(made, world->sys_frame, 0, world->f_sys, "", 0);
    made_series(made, "cpu", SERIES_SUM, UNIT_NS);
}

static void world_rank(struct world *world)
{
    struct why why = {0};
    assert_int_equal(recording_writer_finish(world->writer, &why), 0);
    recording_writer_close(world->writer);
    struct recording *recording = open_good();
    assert_int_equal(
        profile_load(&world->arena, recording, &(struct profile_opts){0}, &world->profile, &why),
        0);
    recording_close(recording);
    assert_int_equal(hotspots_build(&world->arena, &world->profile, &world->hotspots), 0);
}

static void world_end(struct world *world)
{
    arena_deinit(&world->arena);
    unlink(path);
}

static void assert_costs(const struct world *world, uint32_t function, uint64_t self,
                         uint64_t total)
{
    const struct hotspot *hotspot = hotspots_find(&world->hotspots, function);
    assert_non_null(hotspot);
    assert_int_equal(hotspot->self_weight, self);
    assert_int_equal(hotspot->total_weight, total);
}

static void total_counts_a_function_once_a_stack_under_recursion(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made *made = &world.made;
    uint32_t m = world.main_frame, f = world.fib_frame, w = world.work_frame;
    made_samples(made, world.threads[0], made_stack(made, m, f, 0), 10, 100);
    made_samples(made, world.threads[0], made_stack(made, m, f, f, f, 0), 20, 100);
    /* Through another function, and twice on the way: fib → work → fib → work. */
    made_samples(made, world.threads[0], made_stack(made, m, f, w, f, w, 0), 40, 100);
    world_rank(&world);
    assert_costs(&world, world.f_fib, 3000, 7000);
    assert_costs(&world, world.f_work, 4000, 4000);
    assert_costs(&world, world.f_main, 0, 7000);
    assert_int_equal(hotspots_find(&world.hotspots, world.f_fib)->self_count, 30);
    assert_int_equal(hotspots_find(&world.hotspots, world.f_fib)->total_count, 70);
    /* By self weight, the rest by total. */
    assert_int_equal(world.hotspots.rows[0].function, world.f_work);
    assert_int_equal(world.hotspots.rows[1].function, world.f_fib);
    assert_int_equal(world.hotspots.rows[2].function, world.f_main);
    assert_int_equal(world.hotspots.count, 3);
    world_end(&world);
}

static void inlined_functions_have_their_own_self_time(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made *made = &world.made;
    made_samples(made, world.threads[0], made_stack(made, world.main_frame, world.inlined_frame, 0),
                 30, 100);
    made_samples(made, world.threads[0], made_stack(made, world.main_frame, world.work_frame, 0),
                 10, 100);
    world_rank(&world);
    assert_costs(&world, world.f_inner, 3000, 3000);
    assert_costs(&world, world.f_work, 1000, 4000);
    const struct hotspot *inner = hotspots_find(&world.hotspots, world.f_inner);
    assert_true(str_is(inner->file, "i.h"));
    assert_int_equal(inner->line, 31); /* where the time is, not where it is declared (30) */
    world_end(&world);
}

static void equal_names_in_two_images_are_two_functions(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made *made = &world.made;
    made_samples(made, world.threads[0], made_stack(made, world.main_frame, world.work_frame, 0),
                 10, 100);
    made_samples(made, world.threads[0], made_stack(made, world.main_frame, world.lib_frame, 0), 20,
                 100);
    world_rank(&world);
    assert_costs(&world, world.f_work, 1000, 1000);
    assert_costs(&world, world.f_work_lib, 2000, 2000);
    uint32_t chosen = 0;
    struct why why = {0};
    assert_int_equal(hotspots_choose(&world.hotspots, "work", &chosen, &why), -EINVAL);
    assert_non_null(strstr(why.remedy, "f3 (app)"));
    assert_non_null(strstr(why.remedy, "f5 (libw.so)"));
    assert_int_equal(hotspots_choose(&world.hotspots, "libw.so:work", &chosen, &why), 0);
    assert_int_equal(chosen, world.f_work_lib);
    assert_int_equal(hotspots_choose(&world.hotspots, "f3", &chosen, &why), 0);
    assert_int_equal(chosen, world.f_work);
    assert_int_equal(hotspots_choose(&world.hotspots, "main", &chosen, &why), 0);
    assert_int_equal(chosen, world.f_main);
    assert_int_equal(hotspots_choose(&world.hotspots, "mai", &chosen, &why), 0);
    assert_int_equal(chosen, world.f_main);
    assert_int_equal(hotspots_choose(&world.hotspots, "AIN", &chosen, &why), 0);
    assert_int_equal(chosen, world.f_main);
    assert_int_equal(hotspots_choose(&world.hotspots, "wor", &chosen, &why), -EINVAL);
    assert_non_null(strstr(why.remedy, "f3 (work)"));
    assert_int_equal(hotspots_choose(&world.hotspots, "f999", &chosen, &why), -ENOENT);
    assert_null(strstr(why.remedy, "did you mean"));
    assert_int_equal(hotspots_choose(&world.hotspots, "wrok", &chosen, &why), -ENOENT);
    assert_string_equal(why.remedy, "did you mean f5 (work)?"); /* the hotter one of two */
    assert_int_equal(hotspots_choose(&world.hotspots, "", &chosen, &why), -ENOENT);
    /* Known to the recording, but never seen in a sample. */
    assert_int_equal(hotspots_choose(&world.hotspots, "vfs_read", &chosen, &why), -ENOENT);
    assert_int_equal(chosen, world.f_main);
    world_end(&world);
}

static void kinds_of_work_are_told_by_name_where_it_is_sure(void **state)
{
    (void)state;
    static const struct {
        const char *name, *category;
    } cases[] = {
        {"malloc", "alloc"},
        {"_int_free_merge_chunk", "alloc"},
        {"operator new(unsigned long)", "alloc"},
        {"operator new[](unsigned long, std::align_val_t)", "alloc"},
        {"__memmove_avx_unaligned_erms", "copy"},
        {"__memset_evex_unaligned", "copy"},
        {"___pthread_mutex_lock", "lock"},
        {"sync.(*Mutex).lockSlow", "lock"},
        {"__strlen_avx2", "string"},
        {"ZSTD_compressBlock_fast", "compress"},
        {"mallocate", NULL},
        {"my_memcpy_wrapper", NULL},
        {"freedom", NULL},
        {"inflate", NULL}, /* a balloon? */
        {"main", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct profile_function function = {.name = str_from(cases[i].name), .linkage = STR("")};
        const char *category = category_of(&function);
        if (cases[i].category)
            assert_string_equal(category, cases[i].category);
        else
            assert_null(category);
    }
    struct profile_function kernel = {.name = STR("malloc"), .linkage = STR(""), .kernel = true};
    assert_string_equal(category_of(&kernel), "kernel");
    struct profile_function mangled = {.name = STR("x"), .linkage = STR("_Znwm")};
    assert_string_equal(category_of(&mangled), "alloc");
}

static void shares_carry_the_interval_of_the_effective_samples(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made *made = &world.made;
    /* 100 of weight 1, 100 of weight 9 in one stack: n = 1000² / 8200. */
    made_samples(made, world.threads[0], made_stack(made, world.main_frame, world.work_frame, 0),
                 100, 1);
    made_samples(made, world.threads[0], made_stack(made, world.main_frame, world.fib_frame, 0),
                 100, 9);
    world_rank(&world);
    double expected = 1000.0 * 1000.0 / 8200.0;
    assert_true(fabs(world.hotspots.effective_samples - expected) < 1e-9);
    const struct hotspot *work = hotspots_find(&world.hotspots, world.f_work);
    struct interval interval = share_interval(0.1, expected);
    assert_true(work->self_share.value == 0.1);
    assert_true(work->self_share.low == interval.low);
    assert_true(work->self_share.high == interval.high);
    /* Wider than 200 equal samples would give. */
    assert_true(interval.high - interval.low >
                share_interval(0.1, 200).high - share_interval(0.1, 200).low);
    world_end(&world);
}

static void kernel_frames_and_missing_stacks_are_rows_too(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made *made = &world.made;
    made_samples(made, world.threads[0], made_stack(made, world.main_frame, world.sys_frame, 0), 5,
                 100);
    made_samples(made, 0, 0, 7, 100);
    world_rank(&world);
    assert_costs(&world, world.f_sys, 500, 500);
    assert_costs(&world, 0, 700, 700);
    assert_string_equal(hotspots_find(&world.hotspots, world.f_sys)->category, "cpu/kernel");
    assert_true(str_is(world.profile.functions[0].name, "[no stack]"));
    uint64_t self = 0;
    for (size_t i = 0; i < world.hotspots.count; i++)
        self += world.hotspots.rows[i].self_weight;
    assert_int_equal(self, world.profile.weight); /* nothing is lost, nothing counted twice */
    world_end(&world);
}

static void threads_and_groups_know_their_top_function(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made *made = &world.made;
    uint32_t work = made_stack(made, world.main_frame, world.work_frame, 0);
    uint32_t fib = made_stack(made, world.main_frame, world.fib_frame, 0);
    made_samples(made, world.threads[0], fib, 10, 100);
    made_samples(made, world.threads[1], work, 30, 100);
    made_samples(made, world.threads[1], fib, 20, 100);
    made_samples(made, world.threads[2], fib, 25, 100);
    world_rank(&world);
    struct thread_costs costs;
    assert_int_equal(thread_costs_build(&world.arena, &world.profile, &costs), 0);
    assert_int_equal(costs.group_count, 2);
    assert_true(str_is(world.profile.thread_groups[costs.groups[0].id], "w*"));
    assert_int_equal(costs.groups[0].threads, 2);
    assert_int_equal(costs.groups[0].weight, 7500);
    assert_int_equal(costs.groups[0].top_function, world.f_fib); /* 45 against 30 */
    assert_int_equal(costs.groups[0].top_weight, 4500);
    assert_int_equal(costs.thread_count, 3);
    assert_int_equal(costs.threads[0].id, world.threads[1]);
    assert_int_equal(costs.threads[0].top_function, world.f_work);
    const struct hotspot *hotspot = hotspots_find(&world.hotspots, world.f_fib);
    assert_int_equal(hotspot->group_count, 2);
    assert_int_equal(hotspot->groups[0], costs.groups[0].id);
    world_end(&world);
}

static void lines_have_self_and_total_costs(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made *made = &world.made;
    uint32_t again = made_code(made, world.app, 0x3014, world.f_work, "w.c", 22);
    uint32_t m = world.main_frame, w = world.work_frame, f = world.fib_frame;
    made_samples(made, world.threads[0], made_stack(made, m, w, 0), 10, 100);
    made_samples(made, world.threads[0], made_stack(made, m, again, 0), 5, 100);
    made_samples(made, world.threads[0], made_stack(made, m, w, f, w, 0), 20, 100);
    made_samples(made, world.threads[0], made_stack(made, m, world.inlined_frame, 0), 40, 100);
    world_rank(&world);
    struct hot_lines lines;
    assert_int_equal(hot_lines_build(&world.arena, &world.profile, &lines), 0);
    hot_lines_rank(&lines);
    assert_int_equal(lines.count, 2);
    assert_int_equal(lines.rows[0].function, world.f_inner);
    assert_int_equal(lines.rows[1].line, 22); /* two addresses, one line */
    assert_int_equal(lines.rows[1].weight, 3500);
    struct line_cost *costs;
    size_t count;
    assert_int_equal(line_costs_build(&world.arena, &world.profile, world.f_work, &costs, &count),
                     0);
    assert_int_equal(count, 2);
    assert_int_equal(costs[0].line, 22);
    assert_int_equal(costs[0].self_weight, 3500);
    assert_int_equal(costs[0].total_weight, 3500); /* the recursive sample once */
    assert_int_equal(costs[1].line, 25);
    assert_int_equal(costs[1].self_weight, 0);
    assert_int_equal(costs[1].total_weight, 4000);
    struct address_cost *addresses;
    assert_int_equal(address_costs_build(&world.arena, &world.profile, world.app, 0x3000, 0x100,
                                         &addresses, &count),
                     0);
    assert_int_equal(count, 3);
    assert_int_equal(addresses[0].address, 0x3010);
    assert_int_equal(addresses[0].weight, 3000);
    assert_int_equal(addresses[2].weight, 4000);
    world_end(&world);
}

/* `work` samples in work, `fib` in fib, both of weight 1 ms, in a recording of its own. */
static void rank_two(struct world *world, uint64_t work, uint64_t fib)
{
    world_begin(world);
    struct made *made = &world->made;
    if (work)
        made_samples(made, world->threads[0],
                     made_stack(made, world->main_frame, world->work_frame, 0), work, 1000000);
    if (fib)
        made_samples(made, world->threads[0],
                     made_stack(made, world->main_frame, world->fib_frame, 0), fib, 1000000);
    made_samples(made, world->threads[0], made_stack(made, world->main_frame, world->lib_frame, 0),
                 300, 1000000);
    world_rank(world);
    assert_int_equal(unlink(path), 0);
}

static const struct diff_row *row_of(const struct profile_diff *diff, const char *name,
                                     const char *image)
{
    for (size_t i = 0; i < diff->count; i++) {
        const struct diff_row *row = &diff->rows[i];
        const struct profile *profile = row->state == DIFF_VANISHED ? diff->before : diff->after;
        const struct profile_function
            *function = &profile->functions[row->state == DIFF_VANISHED ? row->before : row->after];
        if (str_is(function->name, name) && str_ends(profile->images[function->image].path, image))
            return row;
    }
    return NULL;
}

static void a_difference_finds_new_gone_and_changed_functions(void **state)
{
    (void)state;
    struct world before, after;
    rank_two(&before, 400, 100);
    rank_two(&after, 200, 0);
    struct profile_diff diff;
    struct why why = {0};
    struct profile_diff_opts opts = {0};
    assert_int_equal(
        profile_diff_build(&after.arena, &before.profile, &after.profile, &opts, &diff, &why), 0);
    const struct diff_row *work = row_of(&diff, "work", "app");
    assert_ptr_equal(work, &diff.rows[0]); /* the largest change first */
    assert_int_equal(work->state, DIFF_BOTH);
    assert_true(work->change.value == -200e6);
    assert_true(work->sure && work->change.high < 0);
    /* By hand: 200/500 and 400/800 with n = 500 and 800, Newcombe, times the wholes. */
    struct interval b = interval_scale(share_interval(0.5, 800), 800e6);
    struct interval a = interval_scale(share_interval(0.4, 500), 500e6);
    assert_true(fabs(work->change.low - interval_difference(b, a).low) < 1);
    assert_int_equal(row_of(&diff, "fib", "app")->state, DIFF_VANISHED);
    assert_true(row_of(&diff, "fib", "app")->change.value == -100e6);
    const struct diff_row *lib = row_of(&diff, "work", "libw.so");
    assert_int_equal(lib->state, DIFF_BOTH);
    assert_true(lib->change.value == 0 && !lib->sure);
    assert_int_equal(
        profile_diff_build(&after.arena, &after.profile, &before.profile, &opts, &diff, &why), 0);
    assert_int_equal(row_of(&diff, "fib", "app")->state, DIFF_NEW);
    world_end(&before);
    world_end(&after);
}

static void a_difference_is_normalised_to_the_work_done(void **state)
{
    (void)state;
    struct world before, after;
    rank_two(&before, 400, 100);
    rank_two(&after, 400, 100);
    struct profile_diff diff;
    struct why why = {0};
    /* The second did twice the work in the same time. */
    struct profile_diff_opts opts = {.before_work = 100, .after_work = 200};
    assert_int_equal(
        profile_diff_build(&after.arena, &before.profile, &after.profile, &opts, &diff, &why), 0);
    assert_true(row_of(&diff, "work", "app")->before_self.value == 4e6);
    assert_true(row_of(&diff, "work", "app")->after_self.value == 2e6);
    assert_true(row_of(&diff, "work", "app")->sure);
    assert_true(diff.before_weight == 8e6 && diff.after_weight == 4e6);
    after.profile.unit = UNIT_BYTES;
    assert_int_equal(
        profile_diff_build(&after.arena, &before.profile, &after.profile, &opts, &diff, &why),
        -EINVAL);
    assert_int_equal(why.kind, WHY_USAGE);
    world_end(&before);
    world_end(&after);
}

static void embedded_lines_and_instructions_are_found(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct sink *sink = world.made.sink;
    uint32_t b = made_text(&world.made, "b.c"), a = made_text(&world.made, "a.c");
    assert_int_equal(sink_source_line(sink, b, 7, STR("b seven")), 0);
    assert_int_equal(sink_source_line(sink, a, 9, STR("a nine")), 0);
    assert_int_equal(sink_source_line(sink, a, 7, STR("a seven")), 0);
    assert_int_equal(sink_instruction(sink, world.lib, 0x10, 4, STR("nop")), 0);
    assert_int_equal(sink_instruction(sink, world.app, 0xffffffffff600000, 4, STR("ret")), 0);
    made_samples(&world.made, 0, 0, 1, 1);
    struct why why = {0};
    assert_int_equal(recording_writer_finish(world.writer, &why), 0);
    recording_writer_close(world.writer);
    struct recording *recording = open_good();
    struct embedded embedded;
    assert_int_equal(embedded_load(&world.arena, recording, &embedded, &why), 0);
    recording_close(recording);
    assert_true(str_is(embedded_source(&embedded, STR("a.c"), 9), "a nine"));
    assert_true(str_is(embedded_source(&embedded, STR("b.c"), 7), "b seven"));
    assert_int_equal(embedded_source(&embedded, STR("a.c"), 8).len, 0);
    assert_int_equal(embedded_source(&embedded, STR("c.c"), 7).len, 0);
    assert_int_equal(embedded_line_from(&embedded, STR("a.c"), 8)->line, 9);
    assert_null(embedded_line_from(&embedded, STR("a.c"), 10));
    assert_true(str_is(embedded_code_from(&embedded, world.app, 0)->text, "ret"));
    assert_null(embedded_code_from(&embedded, world.lib, 0x11));
    assert_null(embedded_code_from(&embedded, world.kernel, 0));
    world_end(&world);
}

int main(void)
{
#define RANKED(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        RANKED(total_counts_a_function_once_a_stack_under_recursion),
        RANKED(inlined_functions_have_their_own_self_time),
        RANKED(equal_names_in_two_images_are_two_functions),
        cmocka_unit_test(kinds_of_work_are_told_by_name_where_it_is_sure),
        RANKED(shares_carry_the_interval_of_the_effective_samples),
        RANKED(kernel_frames_and_missing_stacks_are_rows_too),
        RANKED(threads_and_groups_know_their_top_function),
        RANKED(lines_have_self_and_total_costs),
        RANKED(a_difference_finds_new_gone_and_changed_functions),
        RANKED(a_difference_is_normalised_to_the_work_done),
        RANKED(embedded_lines_and_instructions_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
