/* Call trees of profiles whose answer can be seen by eye. The profile is built in memory:
 * one function a frame unless a test says otherwise. */
#include "unit.h"

#include "analyze/call_tree.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAIN = 1, WORK, HELP, FIB, FUNCTIONS };
enum { STACKS_MAX = 5000 };

/* Frame n is function n; frame 5 is HELP inlined into WORK. */
enum { INLINED_FRAME = 5, FRAMES };

struct sheet {
    struct profile profile;
    struct profile_function functions[FUNCTIONS];
    struct profile_place places[8];
    struct profile_frame frames[FRAMES];
    struct profile_stack stacks[STACKS_MAX];
    struct profile_total totals[STACKS_MAX];
};

static struct sheet *sheet_new(void)
{
    struct sheet *sheet = calloc(1, sizeof(*sheet));
    assert_non_null(sheet);
    for (uint32_t i = 1; i < FUNCTIONS; i++) {
        sheet->places[i].function = i;
        sheet->frames[i] = (struct profile_frame){.places = i, .place_count = 1};
    }
    sheet->places[5] = (struct profile_place){.function = HELP};
    sheet->places[6] = (struct profile_place){.function = WORK};
    sheet->frames[INLINED_FRAME] = (struct profile_frame){.places = 5, .place_count = 2};
    sheet->profile = (struct profile){
        .functions = sheet->functions,
        .function_count = FUNCTIONS,
        .places = sheet->places,
        .place_count = 8,
        .frames = sheet->frames,
        .frame_count = FRAMES,
        .stacks = sheet->stacks,
        .stack_count = 1,
        .totals = sheet->totals,
    };
    return sheet;
}

static uint32_t stack(struct sheet *sheet, uint32_t parent, uint32_t frame)
{
    uint32_t id = (uint32_t)sheet->profile.stack_count++;
    assert_true(id < STACKS_MAX);
    sheet->stacks[id] = (struct profile_stack){parent, frame};
    return id;
}

static void total(struct sheet *sheet, uint32_t thread, uint32_t of, uint64_t count,
                  uint64_t weight)
{
    sheet->totals[sheet->profile.total_count++] = (struct profile_total){thread, of, count, weight};
    sheet->profile.count += count;
    sheet->profile.weight += weight;
}

/* "main(10/60){work(20/50){help(30/30)}}": name(self/total), inlined with a '*'. */
static void write_node(const struct call_tree *tree, uint32_t id, FILE *out)
{
    static const char *const names[] = {"all", "main", "work", "help", "fib"};
    const struct call_node *node = &tree->nodes[id];
    fprintf(out, "%s%s(%llu/%llu)", names[node->function], node->inlined ? "*" : "",
            (unsigned long long)node->self_weight, (unsigned long long)node->total_weight);
    if (!node->first_child)
        return;
    fputc('{', out);
    for (uint32_t child = node->first_child; child; child = tree->nodes[child].next_sibling) {
        assert_int_equal(tree->nodes[child].parent, id);
        assert_true(child > id);
        assert_int_equal(tree->nodes[child].depth, node->depth + 1);
        if (child != node->first_child)
            fputc(' ', out);
        write_node(tree, child, out);
    }
    fputc('}', out);
}

static void assert_tree(const struct sheet *sheet, struct call_tree_opts opts, const char *expected)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct call_tree tree;
    assert_int_equal(call_tree_build(&arena, &sheet->profile, &opts, &tree), 0);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    write_node(&tree, 0, out);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

/* main → work → help, and main → help; two threads share a stack. */
static struct sheet *plain(void)
{
    struct sheet *sheet = sheet_new();
    uint32_t m = stack(sheet, 0, MAIN), w = stack(sheet, m, WORK);
    uint32_t wh = stack(sheet, w, HELP), h = stack(sheet, m, HELP);
    stack(sheet, w, FIB); /* seen in another series: not in this tree */
    total(sheet, 1, m, 1, 10);
    total(sheet, 1, w, 2, 20);
    total(sheet, 1, wh, 3, 30);
    total(sheet, 2, wh, 1, 5);
    total(sheet, 1, h, 7, 70);
    return sheet;
}

static void stacks_merge_from_the_root_heaviest_child_first(void **state)
{
    (void)state;
    struct sheet *sheet = plain();
    assert_tree(sheet, (struct call_tree_opts){0},
                "all(0/135){main(10/135){help(70/70) work(20/55){help(35/35)}}}");
    free(sheet);
}

static void inverted_stacks_merge_from_the_leaf(void **state)
{
    (void)state;
    struct sheet *sheet = plain();
    assert_tree(
        sheet, (struct call_tree_opts){.inverted = true},
        "all(0/135){help(0/105){main(70/70) work(0/35){main(35/35)}} work(0/20){main(20/20)}"
        " main(10/10)}");
    free(sheet);
}

static void callees_and_callers_of_one_function(void **state)
{
    (void)state;
    struct sheet *sheet = plain();
    assert_tree(sheet, (struct call_tree_opts){.function = WORK},
                "all(0/55){work(20/55){help(35/35)}}");
    assert_tree(sheet, (struct call_tree_opts){.function = WORK, .inverted = true},
                "all(0/55){work(0/55){main(55/55)}}");
    assert_tree(sheet, (struct call_tree_opts){.function = FIB}, "all(0/0)");
    free(sheet);
}

static void recursion_counts_each_sample_once(void **state)
{
    (void)state;
    struct sheet *sheet = sheet_new();
    uint32_t m = stack(sheet, 0, MAIN), f = stack(sheet, m, FIB), ff = stack(sheet, f, FIB);
    uint32_t fff = stack(sheet, ff, FIB);
    total(sheet, 1, f, 1, 1);
    total(sheet, 1, ff, 2, 2);
    total(sheet, 1, fff, 4, 4);
    assert_tree(sheet, (struct call_tree_opts){0},
                "all(0/7){main(0/7){fib(1/7){fib(2/6){fib(4/4)}}}}");
    /* Callees begin at the outermost call, callers at the innermost. */
    assert_tree(sheet, (struct call_tree_opts){.function = FIB},
                "all(0/7){fib(1/7){fib(2/6){fib(4/4)}}}");
    assert_tree(sheet, (struct call_tree_opts){.function = FIB, .inverted = true},
                "all(0/7){fib(0/7){fib(0/6){fib(0/4){main(4/4)} main(2/2)} main(1/1)}}");
    free(sheet);
}

static void inlined_functions_are_nodes_or_count_as_their_callers(void **state)
{
    (void)state;
    struct sheet *sheet = sheet_new();
    uint32_t m = stack(sheet, 0, MAIN), w = stack(sheet, m, INLINED_FRAME);
    total(sheet, 1, w, 1, 10);
    assert_tree(sheet, (struct call_tree_opts){0},
                "all(0/10){main(0/10){work(0/10){help*(10/10)}}}");
    assert_tree(sheet, (struct call_tree_opts){.inverted = true},
                "all(0/10){help*(0/10){work(0/10){main(10/10)}}}");
    assert_tree(sheet, (struct call_tree_opts){.no_inlined = true},
                "all(0/10){main(0/10){work(10/10)}}");
    assert_tree(sheet, (struct call_tree_opts){.no_inlined = true, .inverted = true},
                "all(0/10){work(0/10){main(10/10)}}");
    /* Called as well as inlined from one place: then it is not marked as inlined. */
    uint32_t plain_work = stack(sheet, m, WORK);
    total(sheet, 1, stack(sheet, plain_work, HELP), 1, 1);
    assert_tree(sheet, (struct call_tree_opts){0},
                "all(0/11){main(0/11){work(0/11){help(11/11)}}}");
    free(sheet);
}

static void samples_without_a_stack_belong_to_the_root(void **state)
{
    (void)state;
    struct sheet *sheet = sheet_new();
    total(sheet, 1, 0, 5, 50);
    total(sheet, 1, stack(sheet, 0, MAIN), 1, 10);
    assert_tree(sheet, (struct call_tree_opts){0}, "all(50/60){main(10/10)}");
    assert_tree(sheet, (struct call_tree_opts){.inverted = true}, "all(50/60){main(10/10)}");
    assert_tree(sheet, (struct call_tree_opts){.function = MAIN}, "all(0/10){main(10/10)}");
    free(sheet);
}

static void a_stack_without_end_is_cut_and_no_weight_is_lost(void **state)
{
    (void)state;
    struct sheet *sheet = sheet_new();
    uint32_t at = 0;
    for (int i = 0; i < STACKS_MAX - 1; i++) {
        at = stack(sheet, at, i % 2 ? FIB : HELP);
        total(sheet, 1, at, 1, 1);
    }
    for (int inverted = 0; inverted < 2; inverted++) {
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct call_tree tree;
        struct call_tree_opts opts = {.inverted = inverted};
        assert_int_equal(call_tree_build(&arena, &sheet->profile, &opts, &tree), 0);
        assert_int_equal(tree.nodes[0].total_weight, STACKS_MAX - 1);
        assert_int_equal(tree.inverted, inverted);
        uint64_t self = 0;
        uint32_t deepest = 0;
        for (size_t i = 0; i < tree.count; i++) {
            self += tree.nodes[i].self_weight;
            deepest = MAX(deepest, tree.nodes[i].depth);
        }
        assert_int_equal(self, STACKS_MAX - 1);
        assert_int_equal(deepest, inverted ? 512 : 4096);
    }
    free(sheet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_merge_from_the_root_heaviest_child_first),
        cmocka_unit_test(inverted_stacks_merge_from_the_leaf),
        cmocka_unit_test(callees_and_callers_of_one_function),
        cmocka_unit_test(recursion_counts_each_sample_once),
        cmocka_unit_test(inlined_functions_are_nodes_or_count_as_their_callers),
        cmocka_unit_test(samples_without_a_stack_belong_to_the_root),
        cmocka_unit_test(a_stack_without_end_is_cut_and_no_weight_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
