/* Promises of present/flame_*.h: where rectangles stand, what they are called, how they differ. */
#include "unit.h"

#include "capture.h"
#include "made_tree.h"
#include "present/export_flame.h"
#include "present/flame.h"
#include "present/flame_colors.h"
#include "present/flame_diff.h"
#include "present/flame_layout.h"
#include "present/flame_words.h"
#include "present/html.h"
#include "present/markup.h"

#include <errno.h>

static const struct flame_limits roomy = {.rect_count_max = 1000, .levels_max = 100};

static uint32_t add(struct made_tree *made, uint32_t parent, const char *name, uint64_t self)
{
    return made_tree_add(made, parent, (struct made_node){.name = name, .self = self});
}

static struct flame_layout lay(struct arena *arena, const struct call_tree *tree,
                               const struct flame_limits *limits)
{
    struct flame_layout layout;
    struct why why = {0};
    assert_int_equal(flame_layout_build(arena, tree, limits, &layout, &why), 0);
    return layout;
}

static void children_tile_their_parent_heaviest_first(void **state)
{
    (void)state;
    AUTO(made_tree_deinit) struct made_tree made;
    made_tree_init(&made);
    uint32_t main_node = add(&made, 0, "main", 5);
    uint32_t light = add(&made, main_node, "light", 10);
    uint32_t heavy = add(&made, main_node, "heavy", 20);
    add(&made, heavy, "leaf", 7);
    struct call_tree tree = made_tree_finish(&made);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct flame_layout layout = lay(&arena, &tree, &roomy);

    assert_int_equal(layout.count, 5);
    assert_int_equal(layout.levels, 4);
    assert_int_equal(layout.left_out, 0);
    const struct flame_rect *rects = layout.rects;
    assert_int_equal(rects[0].weight, 42);
    assert_int_equal(rects[0].end, 5);
    assert_int_equal(rects[1].node, main_node);
    assert_int_equal(rects[1].end, 5);
    assert_int_equal(rects[2].node, heavy);
    assert_int_equal(rects[2].start, 0);
    assert_int_equal(rects[2].weight, 27);
    assert_int_equal(rects[2].end, 4);
    assert_int_equal(rects[3].parent, 2);
    assert_int_equal(rects[3].end, 4);
    assert_int_equal(rects[4].node, light);
    assert_int_equal(rects[4].start, 27);
    assert_int_equal(rects[4].parent, 1);
}

static void narrow_ones_are_left_out_with_all_above_them_and_counted(void **state)
{
    (void)state;
    AUTO(made_tree_deinit) struct made_tree made;
    made_tree_init(&made);
    add(&made, 0, "wide", 985);
    uint32_t narrow = add(&made, 0, "narrow", 5);
    add(&made, narrow, "above", 4);
    add(&made, 0, "also narrow", 6);
    struct call_tree tree = made_tree_finish(&made);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct flame_limits limits = roomy;
    limits.narrow_share = 0.01;
    struct flame_layout layout = lay(&arena, &tree, &limits);
    assert_int_equal(layout.count, 2);
    assert_int_equal(layout.left_out, 3);
    assert_int_equal(layout.left_out_weight, 15);
    assert_int_equal(layout.levels_cut, 0);

    limits.narrow_share = 0.009; /* exactly 9 of 1000: drawn */
    layout = lay(&arena, &tree, &limits);
    assert_int_equal(layout.count, 3);
    char note[200];
    assert_string_equal(flame_note_left_out(&layout, note, sizeof(note)),
                        "Too narrow to draw: 2 frames, 1.00% of all together.");
}

static void never_more_rectangles_than_asked_for_and_the_heaviest_stay(void **state)
{
    (void)state;
    AUTO(made_tree_deinit) struct made_tree made;
    made_tree_init(&made);
    for (int i = 1; i <= 100; i++)
        add(&made, add(&made, 0, "caller", 0), "callee", (uint64_t)i);
    struct call_tree tree = made_tree_finish(&made);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    for (size_t max = 1; max <= 201; max++) {
        struct flame_limits limits = roomy;
        limits.rect_count_max = max;
        struct flame_layout layout = lay(&arena, &tree, &limits);
        assert_int_equal(layout.count, max);
        assert_int_equal(layout.left_out, 201 - max);
        for (size_t i = 1; i < layout.count; i++) {
            assert_true(layout.rects[i].weight >= 100 - (max - 1) / 2);
            assert_true(layout.rects[i].parent < i);
        }
    }
}

static void a_chain_of_equal_weights_is_cut_at_the_limits_not_dropped(void **state)
{
    (void)state;
    AUTO(made_tree_deinit) struct made_tree made;
    made_tree_init(&made);
    uint32_t at = 0;
    for (int i = 0; i < 50000; i++)
        at = add(&made, at, "recurse", 0);
    add(&made, at, "bottom", 10);
    struct call_tree tree = made_tree_finish(&made);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct flame_limits limits = {.rect_count_max = 30, .levels_max = 100};
    struct flame_layout layout = lay(&arena, &tree, &limits);
    assert_int_equal(layout.count, 30);
    assert_int_equal(layout.levels, 30);
    limits = (struct flame_limits){.rect_count_max = 1000, .levels_max = 100};
    layout = lay(&arena, &tree, &limits);
    assert_int_equal(layout.levels, 100);
    assert_int_equal(layout.rects[99].end, 100);
    assert_int_equal(layout.left_out_weight, 10);
    char note[200];
    assert_string_equal(flame_note_left_out(&layout, note, sizeof(note)),
                        "Too narrow or beyond 100 levels to draw: 49,902 frames, 100.00% of all "
                        "together.");
}

static void a_tree_without_weight_is_refused_with_a_reason(void **state)
{
    (void)state;
    AUTO(made_tree_deinit) struct made_tree made;
    made_tree_init(&made);
    add(&made, 0, "idle", 0);
    struct call_tree tree = made_tree_finish(&made);
    struct why why = {0};
    struct capture capture;
    capture_begin(&capture);
    struct flame_opts opts = {.title = "t"};
    assert_int_equal(flame_svg(&opts, &tree, NULL, 0, capture.out, &why), -ENODATA);
    assert_non_null(strstr(why.what, "no samples"));
    struct html_opts html = {.title = "t", .tree = &tree};
    assert_int_equal(html_write(&html, capture.out, &why), -ENODATA);
    assert_int_equal(strlen(capture_text(&capture)), 0);
    capture_end(&capture);
}

static void kinds_have_hues_of_their_own_and_colours_do_not_move(void **state)
{
    (void)state;
    AUTO(made_tree_deinit) struct made_tree made;
    made_tree_init(&made);
    struct made_node nodes[] = {
        {.name = "plain", .self = 1},
        {.name = "kernel", .self = 1, .kind = MADE_KERNEL},
        {.name = "jit", .self = 1, .kind = MADE_JIT},
        {.name = "[x]", .self = 1, .kind = MADE_UNKNOWN},
        {.name = "inlined", .self = 1, .inlined = true},
        {.name = "kernel inlined", .self = 1, .inlined = true, .kind = MADE_KERNEL},
        {.name = "plain", .self = 1, .image = "/elsewhere/app"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
        made_tree_add(&made, 0, nodes[i]);
    struct call_tree tree = made_tree_finish(&made);
    static const enum flame_kind kinds[] = {FLAME_ROOT,    FLAME_USER,    FLAME_KERNEL, FLAME_JIT,
                                            FLAME_UNKNOWN, FLAME_INLINED, FLAME_KERNEL, FLAME_USER};
    for (uint32_t i = 0; i < ARRAY_SIZE(kinds); i++)
        assert_int_equal(flame_kind_of(&tree, i), kinds[i]);
    assert_in_range(flame_color(&tree, 1), FLAME_COLOR_USER, FLAME_COLOR_KERNEL - 1);
    assert_in_range(flame_color(&tree, 2), FLAME_COLOR_KERNEL, FLAME_COLOR_INLINED - 1);
    assert_in_range(flame_color(&tree, 3), FLAME_COLOR_JIT, FLAME_COLOR_UNKNOWN - 1);
    assert_int_equal(flame_color(&tree, 4), FLAME_COLOR_UNKNOWN);
    assert_in_range(flame_color(&tree, 5), FLAME_COLOR_INLINED, FLAME_COLOR_JIT - 1);
    assert_int_equal(flame_color(&tree, 1), flame_color(&tree, 7)); /* the folder does not count */
    assert_int_equal(flame_color_change(0, 10), FLAME_COLOR_DIFF);
    assert_int_equal(flame_color_change(10, 10), FLAME_COLOR_DIFF + FLAME_DIFF_STEPS);
    assert_int_equal(flame_color_change(-99, 10), FLAME_COLOR_DIFF - FLAME_DIFF_STEPS);
    assert_int_equal(flame_color_change(5, 0), FLAME_COLOR_DIFF);
}

struct pair {
    struct made_tree now, before;
    struct call_tree now_tree, before_tree;
};

static void pair_deinit(struct pair *pair)
{
    made_tree_deinit(&pair->now);
    made_tree_deinit(&pair->before);
}

/* Twice the work; "slow" was 30 of 100 and is 100 of 200, "gone" was 20. */
static void pair_init(struct pair *pair)
{
    made_tree_init(&pair->now);
    made_tree_init(&pair->before);
    uint32_t at = add(&pair->before, 0, "main", 50);
    add(&pair->before, at, "slow", 30);
    add(&pair->before, add(&pair->before, at, "gone", 5), "below", 15);
    at = add(&pair->now, 0, "main", 60);
    add(&pair->now, at, "slow", 70);
    add(&pair->now, at, "new", 40);
    made_tree_add(&pair->now, at,
                  (struct made_node){.name = "slow", .self = 30, .image = "/usr/lib/other.so"});
    pair->now_tree = made_tree_finish(&pair->now);
    pair->before_tree = made_tree_finish(&pair->before);
}

static void shares_are_compared_by_path_and_what_is_gone_is_said(void **state)
{
    (void)state;
    AUTO(pair_deinit) struct pair pair;
    pair_init(&pair);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct flame_diff diff;
    struct why why = {0};
    assert_int_equal(flame_diff_build(&arena, &pair.now_tree, &pair.before_tree, 0, &diff, &why),
                     0);
    assert_true(diff.shares);
    assert_float_equal(diff.change_pct[0], 0, 1e-9);
    assert_float_equal(diff.change_pct[1], 0, 1e-9);
    assert_float_equal(diff.change_pct[2], 20, 1e-9); /* both functions called "slow" */
    assert_float_equal(diff.change_pct[4], 20, 1e-9);
    assert_float_equal(diff.before_pct[2], 30, 1e-9);
    assert_float_equal(diff.change_pct[3], 20, 1e-9);
    assert_float_equal(diff.before_pct[3], 0, 1e-9);
    assert_int_equal(diff.gone, 1);
    assert_float_equal(diff.gone_pct, 20, 1e-9);
    char note[400];
    assert_string_equal(flame_note_gone(&diff, note, sizeof(note)),
                        "Not drawn, since gone: 1 path that took 20.00% before; the largest is "
                        "gone with 20.00%.");
    struct flame_layout layout = lay(&arena, &pair.now_tree, &roomy);
    assert_float_equal(flame_diff_limit(&diff, &layout), 20, 1e-9);
}

static void a_scale_normalises_to_the_work_done(void **state)
{
    (void)state;
    AUTO(pair_deinit) struct pair pair;
    pair_init(&pair);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct flame_diff diff;
    struct why why = {0};
    /* The same work: everything above what it was is more. */
    assert_int_equal(flame_diff_build(&arena, &pair.now_tree, &pair.before_tree, 1, &diff, &why),
                     0);
    assert_false(diff.shares);
    assert_float_equal(diff.change_pct[0], 100, 1e-9);
    assert_float_equal(diff.change_pct[2], 70, 1e-9);
    /* Four times the work: half of each. */
    assert_int_equal(flame_diff_build(&arena, &pair.now_tree, &pair.before_tree, 0.25, &diff, &why),
                     0);
    assert_float_equal(diff.change_pct[0], -50, 1e-9);
    assert_float_equal(diff.change_pct[2], -5, 1e-9);
    /* No number is no scale. */
    assert_int_equal(
        flame_diff_build(&arena, &pair.now_tree, &pair.before_tree, 0.0 / 0.0, &diff, &why), 0);
    assert_true(diff.shares);
    struct call_tree empty = pair.before_tree;
    empty.count = 0;
    assert_int_equal(flame_diff_build(&arena, &pair.now_tree, &empty, 1, &diff, &why), -ENODATA);
    assert_non_null(strstr(why.what, "earlier"));
}

static void labels_begin_with_the_change_and_stay_bounded(void **state)
{
    (void)state;
    static char huge[100000];
    memset(huge, 'x', sizeof(huge));
    AUTO(made_tree_deinit) struct made_tree made;
    made_tree_init(&made);
    made_tree_add(&made, 0, (struct made_node){.name = huge, .name_len = sizeof(huge), .self = 9});
    struct call_tree tree = made_tree_finish(&made);
    char buffer[FLAME_LABEL_BYTES_MAX];
    struct str label = flame_label(&tree, NULL, 1, buffer);
    assert_in_range(label.len, 1000, MARKUP_TEXT_BYTES_MAX);
    assert_true(str_ends(label, "x…"));
    double change[] = {0, -3.456};
    struct flame_diff diff = {.change_pct = change};
    label = flame_label(&tree, &diff, 1, buffer);
    assert_true(str_starts(label, "-3.46% xxx"));
    label = flame_label(&tree, &diff, 0, buffer);
    assert_true(str_is(label, "+0.00% all"));
}

static void costs_say_time_share_and_samples(void **state)
{
    (void)state;
    AUTO(made_tree_deinit) struct made_tree made;
    made_tree_init(&made);
    uint32_t a = add(&made, 0, "a", 250000000);
    add(&made, a, "b", 750000000);
    struct call_tree tree = made_tree_finish(&made);
    char text[200];
    assert_string_equal(flame_cost(&tree, a, text, sizeof(text)),
                        "1.00 s, 100.00% of all, 1,000 samples; itself 250 ms, 25.00%");
    tree.inverted = true;
    assert_string_equal(flame_cost(&tree, a, text, sizeof(text)),
                        "1.00 s, 100.00% of all, 1,000 samples");
}

/* Two stacks: main calls work; main alone. */
static void exporters_draw_a_profile(void **state)
{
    (void)state;
    struct profile_function functions[] = {{0}, {.name = STR("main<int>")}, {.name = STR("work")}};
    struct profile_place places[] = {{.function = 1}, {.function = 2}};
    struct profile_frame frames[] = {
        {0}, {.places = 0, .place_count = 1}, {.places = 1, .place_count = 1}};
    struct profile_stack stacks[] = {{0}, {0, 1}, {1, 2}};
    struct profile_total totals[] = {{.stack = 1, .count = 1, .weight = 1000000},
                                     {.stack = 2, .count = 3, .weight = 3000000}};
    struct profile_thread threads[] = {{0}};
    struct str groups[] = {STR("")};
    struct image_info images[] = {{0}};
    struct profile profile = {
        .threads = threads,
        .thread_count = 1,
        .thread_groups = groups,
        .thread_group_count = 1,
        .images = images,
        .image_count = 1,
        .series = "cpu",
        .unit = UNIT_NS,
        .functions = functions,
        .function_count = 3,
        .places = places,
        .place_count = 2,
        .frames = frames,
        .frame_count = 3,
        .stacks = stacks,
        .stack_count = 3,
        .totals = totals,
        .total_count = 2,
        .weight = 4000000,
        .count = 4,
        .command = STR("app \"x\""),
    };
    const struct exporter *rows[] = {&exporter_flame, &exporter_icicle, &exporter_html};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct capture capture;
        struct why why = {0};
        capture_begin(&capture);
        assert_int_equal(rows[i]->write(&profile, &(struct export_opts){0}, capture.out, &why), 0);
        const char *text = capture_text(&capture);
        assert_non_null(strstr(text, "app &quot;x&quot;"));
        assert_non_null(strstr(text, "cpu: 4.00 ms in 4 samples"));
        assert_null(strstr(text, "main<int>"));
        rewind(capture.out);
        const char *const trust[] = {"cpu: made", "99% complete", NULL};
        struct export_opts opts = {.title = "other", .comments = trust};
        assert_int_equal(rows[i]->write(&profile, &opts, capture.out, &why), 0);
        text = capture_text(&capture);
        assert_non_null(strstr(text, ">other<"));
        assert_non_null(strstr(text, "cpu: made; 99% complete<"));
        if (i < 2)
            assert_non_null(strstr(text, "work\n3.00 ms, 75.00% of all, 3 samples"));
        else
            assert_non_null(strstr(text, ">work</td>")); /* the hotspots are in the page */
        capture_end(&capture);
    }
}

static void a_page_shows_figures_of_trust_and_says_when_a_table_is_empty(void **state)
{
    (void)state;
    AUTO(made_tree_deinit) struct made_tree made;
    made_tree_init(&made);
    add(&made, 0, "a", 5);
    struct call_tree tree = made_tree_finish(&made);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value honesty = value_map(&arena);
    value_put(&honesty, "samples", "samples", value_uint(1234, UNIT_COUNT));
    value_put(&honesty, "lost", "lost <b>", value_na("the ring has no counter"));
    static const struct column columns[] = {{"function", "function", SHOW_ALWAYS, false, true}};
    struct value table = value_table(&arena, columns, 1);
    struct capture capture;
    struct why why = {0};
    capture_begin(&capture);
    struct html_opts opts = {.title = "t", .honesty = &honesty, .hotspots = &table, .tree = &tree};
    assert_int_equal(html_write(&opts, capture.out, &why), 0);
    const char *text = capture_text(&capture);
    assert_non_null(strstr(text, "<dt>samples</dt><dd>1,234</dd>"));
    assert_non_null(strstr(text, "<dt>lost &lt;b&gt;</dt><dd>n/a: the ring has no counter</dd>"));
    assert_non_null(strstr(text, "<p class=\"dim\">none</p>"));
    assert_null(strstr(text, "<table"));
    capture_end(&capture);
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    AUTO(made_tree_deinit) struct made_tree made;
    made_tree_init(&made);
    add(&made, 0, "a", 5);
    struct call_tree tree = made_tree_finish(&made);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    struct why why = {0};
    struct flame_opts opts = {.title = "t"};
    assert_int_equal(flame_svg(&opts, &tree, NULL, 0, full, &why), -ENOSPC);
    assert_non_null(strstr(why.what, "cannot write the flame graph"));
    struct html_opts html = {.title = "t", .tree = &tree};
    assert_true(html_write(&html, full, &why) < 0);
    fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_tile_their_parent_heaviest_first),
        cmocka_unit_test(narrow_ones_are_left_out_with_all_above_them_and_counted),
        cmocka_unit_test(never_more_rectangles_than_asked_for_and_the_heaviest_stay),
        cmocka_unit_test(a_chain_of_equal_weights_is_cut_at_the_limits_not_dropped),
        cmocka_unit_test(a_tree_without_weight_is_refused_with_a_reason),
        cmocka_unit_test(kinds_have_hues_of_their_own_and_colours_do_not_move),
        cmocka_unit_test(shares_are_compared_by_path_and_what_is_gone_is_said),
        cmocka_unit_test(a_scale_normalises_to_the_work_done),
        cmocka_unit_test(labels_begin_with_the_change_and_stay_bounded),
        cmocka_unit_test(costs_say_time_share_and_samples),
        cmocka_unit_test(exporters_draw_a_profile),
        cmocka_unit_test(a_page_shows_figures_of_trust_and_says_when_a_table_is_empty),
        cmocka_unit_test(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
