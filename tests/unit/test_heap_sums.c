/* What rows of the heap add up to: by stack, function, thread and process; whose memory it is; what
 * grows from snapshot to snapshot; what changed between two recordings. */
#include "unit.h"

#include "analyze/heap_diff.h"
#include "made_heap.h"

#include <stdio.h>

static struct arena arena;
static struct heap_sums sums;

static void build(struct made_heap *made)
{
    assert_int_equal(heap_sums_build(&arena, &made->heap, &sums), 0);
}

static void end(struct made_heap *made)
{
    arena_deinit(&arena);
    arena = ARENA_INIT;
    free(made);
}

static const struct heap_sum *row_of(const struct made_heap *made, enum heap_per per,
                                     const char *name)
{
    for (size_t i = 0; i < sums.per[per].count; i++) {
        const struct heap_sum *sum = &sums.per[per].rows[i];
        if (per == HEAP_PER_FUNCTION && str_is(made->functions[sum->id].name, name))
            return sum;
        if (per == HEAP_PER_STACK && strcmp(heap_where(&arena, &sums.owners, sum->id), name) == 0)
            return sum;
    }
    fail_msg("no row '%s'", name);
    return NULL;
}

static void who_frees_need_not_be_who_allocated(void **state)
{
    (void)state;
    struct made_heap *made = made_heap_new();
    *made_heap_site(made, 1, "malloc;make;main") = (struct heap_tally){
        .allocations = 10, .allocated_bytes = 1000, .peak_count = 10, .peak_bytes = 1000};
    *made_heap_site(made, 2, "malloc;make;main") = (struct heap_tally){
        .frees = 7, .freed_bytes = 700, .peak_count = -2, .peak_bytes = -200};
    made->process_rows[1] = (struct heap_process_row){
        .known = true, .tally = {.peak_bytes = 800, .peak_count = 8, .peak_ns = 5}};
    build(made);
    assert_int_equal(sums.per[HEAP_PER_STACK].count, 1);
    const struct heap_sum *site = &sums.per[HEAP_PER_STACK].rows[0];
    assert_int_equal(heap_live_bytes(&site->figures), 300);
    assert_int_equal(heap_live_count(&site->figures), 3);
    assert_int_equal(site->figures.peak_bytes, 800);
    assert_int_equal(site->threads, 2);
    assert_int_equal(sums.per[HEAP_PER_THREAD].count, 2);
    assert_int_equal(sums.per[HEAP_PER_THREAD].rows[0].id, 1); /* allocated most */
    assert_int_equal(heap_live_bytes(&sums.per[HEAP_PER_THREAD].rows[1].figures), -700);
    assert_int_equal(sums.peak_bytes, 800);
    end(made);
}

static void a_thread_is_one_whatever_it_was_called(void **state)
{
    (void)state;
    struct made_heap *made = made_heap_new();
    made->threads[1].life = made->threads[3].life = 3;
    for (uint32_t thread = 1; thread <= 3; thread++)
        *made_heap_site(made, thread, "malloc;make;main") = (struct heap_tally){
            .allocations = 10, .allocated_bytes = 1000};
    build(made);
    assert_int_equal(sums.threads, 2);
    assert_int_equal(sums.per[HEAP_PER_STACK].rows[0].threads, 2);
    assert_int_equal(sums.per[HEAP_PER_THREAD].rows[0].id, 3); /* by its newest name */
    assert_int_equal(sums.per[HEAP_PER_THREAD].rows[0].figures.allocations, 20);
    end(made);
}

static void a_peak_is_that_of_one_process(void **state)
{
    (void)state;
    struct made_heap *made = made_heap_new();
    *made_heap_site(made, 1, "malloc;make;main") = (struct heap_tally){
        .allocations = 1, .allocated_bytes = 100, .peak_count = 1, .peak_bytes = 100};
    *made_heap_site(made, 4, "malloc;make;main") = (struct heap_tally){
        .allocations = 3, .allocated_bytes = 300, .peak_count = 3, .peak_bytes = 300};
    made->process_rows[1] = (struct heap_process_row){true, {.peak_bytes = 100, .peak_count = 1}};
    made->process_rows[2] = (struct heap_process_row){true, {.peak_bytes = 300, .peak_count = 3}};
    build(made);
    assert_int_equal(sums.peak_process, 2);
    assert_int_equal(sums.peak_bytes, 300);
    assert_int_equal(sums.per[HEAP_PER_STACK].rows[0].figures.peak_bytes, 300);
    assert_int_equal(sums.all.allocated_bytes, 400); /* what adds up does */
    assert_int_equal(sums.per[HEAP_PER_PROCESS].rows[1].figures.peak_bytes, 100);
    end(made);
}

static void mappings_are_no_heap(void **state)
{
    (void)state;
    struct made_heap *made = made_heap_new();
    *made_heap_site(made, 1, "malloc;main") = (struct heap_tally){.allocations = 1,
                                                                  .allocated_bytes = 8};
    *made_heap_site(made, 1, "mmap;map_it;main") = (struct heap_tally){
        .allocations = 2, .allocated_bytes = 8192, .frees = 1, .freed_bytes = 4096};
    made->sites[2].info.kind = HEAP_KIND_MAP;
    *made_heap_site(made, 1, "munmap;drop_it;main") = (struct heap_tally){.allocations = 1,
                                                                          .allocated_bytes = 4096};
    made->sites[3].info.kind = HEAP_KIND_UNMAP;
    build(made);
    assert_int_equal(sums.all.allocations, 1);
    assert_int_equal(sums.per[HEAP_PER_STACK].count, 1);
    assert_int_equal(sums.mapped_count, 2);
    assert_int_equal(sums.all_mapped.mapped_bytes, 8192);
    assert_int_equal(sums.all_mapped.unmapped, 2);
    assert_int_equal(sums.all_mapped.unmapped_bytes, 8192);
    assert_int_equal(sums.mapped[0].mapped_bytes, 8192);
    end(made);
}

static void memory_is_asked_for_by_the_program_not_by_wrappers(void **state)
{
    (void)state;
    static const struct {
        const char *stack, *function, *where, *entry;
    } cases[] = {
        {"malloc;parse;load;main", "parse", "parse ← load ← main", "malloc"},
        {"malloc;xmalloc;parse;main", "parse", "parse ← main", "malloc"},
        {"malloc;operator new(unsigned long);std::vector<int>::push_back(int);fill;main", "fill",
         "fill ← main", "malloc"},
        {"malloc;libc:__GI___strdup;keep_name;main", "keep_name", "keep_name ← main", "malloc"},
        {"malloc;libc:fopen;libc:__libc_start_main", "fopen", "fopen", "malloc"},
        {"odd_name;parse;main", "parse", "parse ← main", "odd_name"},
        {"malloc;operator new(unsigned long)", "operator new(unsigned long)",
         "operator new(unsigned long)", "malloc"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made_heap *made = made_heap_new();
        struct heap_owners owners;
        uint32_t stack = made_heap_stack(made, cases[i].stack);
        assert_int_equal(heap_owners_init(&arena, &made->heap.profile, &owners), 0);
        struct heap_place place = heap_place_of(&owners, stack);
        assert_true(str_is(made->functions[place.function].name, cases[i].function));
        assert_int_equal(place.line, place.function);
        assert_string_equal(heap_where(&arena, &owners, stack), cases[i].where);
        assert_true(str_is(heap_entry_of(&owners, stack), cases[i].entry));
        end(made);
    }
    struct made_heap *made = made_heap_new();
    struct heap_owners owners;
    assert_int_equal(heap_owners_init(&arena, &made->heap.profile, &owners), 0);
    assert_string_equal(heap_where(&arena, &owners, 0), "[no stack]");
    assert_int_equal(heap_entry_of(&owners, 0).len, 0);
    end(made);
}

static void wrappers_without_a_name_are_known_by_their_callers(void **state)
{
    (void)state;
    enum { CALLERS = 9 };
    static char stacks[CALLERS][64]; /* names are parts of them */
    struct made_heap *made = made_heap_new();
    for (int i = 0; i < CALLERS; i++) {
        snprintf(stacks[i], sizeof(stacks[i]), "malloc;lib+0x10;user%d;main", i);
        made_heap_site(made, 1, stacks[i])->allocations = 10;
    }
    made_heap_site(made, 1, "malloc;lib+0x30;sqlite3Malloc;query;main")->allocations = 10;
    made_heap_site(made, 1, "malloc;lib+0x40;few;main")->allocations = 10;
    struct heap_tally *named = made_heap_site(made, 1, "malloc;named;user0;main");
    for (size_t i = 1; i < made->heap.profile.function_count; i++)
        if (str_starts(made->functions[i].name, "lib+"))
            made->functions[i].linkage = STR(""); /* what has no symbol */
    named->allocations = 1000;                    /* it is less than a tenth of all calls then */
    build(made);
    row_of(made, HEAP_PER_FUNCTION, "lib+0x10");
    named->allocations = 100;
    build(made);
    row_of(made, HEAP_PER_FUNCTION, "named"); /* a name is believed */
    row_of(made, HEAP_PER_FUNCTION, "lib+0x40");
    row_of(made, HEAP_PER_FUNCTION, "query");
    row_of(made, HEAP_PER_FUNCTION, "user0");
    row_of(made, HEAP_PER_FUNCTION, "user8");
    assert_int_equal(sums.per[HEAP_PER_FUNCTION].count, CALLERS + 3);
    end(made);
}

static void long_names_lose_what_stands_in_brackets(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"short<int>(char const*)", "short<int>(char const*)"},
        {"std::_Rb_tree_node<std::pair<std::string const, int> >* "
         "std::_Rb_tree<std::string, std::pair<std::string const, int> "
         ">::_M_create_node<int>(int&&)",
         "std::_Rb_tree<…>::_M_create_node<…>(…)"},
        {"(anonymous namespace)::Loader::operator()(std::vector<int, std::allocator<int> > const&)",
         "(anonymous namespace)::Loader::operator()(…)"},
        {"std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*, int)",
         "std::operator<< <…>(…)"},
        {"Catalog<Item, std::allocator<Item> >::find_by_name_and_price(std::string const&) const",
         "Catalog<…>::find_by_name_and_price(…) const"},
        {"a_function_of_C_whose_name_is_longer_than_sixty_bytes_but_has_no_bracket_at_all",
         "a_function_of_C_whose_name_is_longer_than_sixty_bytes_but_has_no_bracket_at_all"},
        {"unclosed_template_in_a_name_that_is_certainly_longer_than_sixty<int, char, long",
         "unclosed_template_in_a_name_that_is_certainly_longer_than_sixty<…>"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(heap_name(&arena, str_from(cases[i][0])), cases[i][1]);
    char name[400];
    memset(name, 'x', sizeof(name));
    const char *cut = heap_name(&arena, (struct str){name, sizeof(name)});
    assert_int_equal(strlen(cut), 120 + strlen("…"));
    arena_deinit(&arena);
    arena = ARENA_INIT;
}

static void stacks_of_one_function_add_up(void **state)
{
    (void)state;
    struct made_heap *made = made_heap_new();
    *made_heap_site(made, 1, "malloc;parse;load;main") = (struct heap_tally){
        .allocations = 1, .allocated_bytes = 100, .chain_max = 3, .size_max = 100};
    *made_heap_site(made, 1, "calloc;parse;reload;main") = (struct heap_tally){
        .allocations = 2, .allocated_bytes = 500, .chain_max = 2, .size_max = 400};
    build(made);
    const struct heap_sum *parse = row_of(made, HEAP_PER_FUNCTION, "parse");
    assert_int_equal(parse->stacks, 2);
    assert_int_equal(parse->threads, 1);
    assert_int_equal(parse->figures.allocated_bytes, 600);
    assert_int_equal(parse->figures.chain_max, 3);
    assert_int_equal(parse->figures.size_max, 400);
    assert_string_equal(heap_where(&arena, &sums.owners, parse->stack),
                        "parse ← reload ← main"); /* the stack with the most bytes */
    end(made);
}

static void what_grows_at_each_of_three_snapshots_is_growing(void **state)
{
    (void)state;
    struct made_heap *made = made_heap_new();
    static const char *const stacks[] = {"malloc;grows;main", "malloc;stays;main",
                                         "malloc;falls;main", "malloc;comes;main",
                                         "malloc;late;main",  "malloc;goes;main"};
    static const int64_t bytes[3][6] = {
        {10, 5, 9, 0, 0, 1}, {20, 5, 8, 1, 0, 2}, {30, 5, 30, 2, 7, 0}};
    for (size_t i = 0; i < 6; i++)
        made_heap_site(made, 1, stacks[i])->allocations = 1;
    for (size_t s = 0; s < 3; s++) {
        made_heap_snapshot(made, 1, 1000 * (s + 1));
        for (size_t i = 0; i < 6; i++)
            if (bytes[s][i] > 0)
                made_heap_lives(made, stacks[i], bytes[s][i]);
    }
    build(made);
    static const struct {
        const char *name;
        bool each_time;
        int64_t first, last;
    } expected[] = {{"grows", true, 10, 30}, {"stays", false, 5, 5}, {"falls", false, 9, 30},
                    {"comes", true, 0, 2},   {"late", false, 0, 7},  {"goes", false, 1, 0}};
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        const struct heap_rise *rise = &row_of(made, HEAP_PER_FUNCTION, expected[i].name)->rise;
        assert_true(rise->known);
        assert_int_equal(rise->each_time, expected[i].each_time);
        assert_int_equal(rise->first_bytes, expected[i].first);
        assert_int_equal(rise->last_bytes, expected[i].last);
        assert_int_equal(rise->snapshots, 3);
    }
    end(made);
}

static void two_snapshots_say_nothing_about_growth(void **state)
{
    (void)state;
    struct made_heap *made = made_heap_new();
    made_heap_site(made, 1, "malloc;grows;main")->allocations = 1;
    for (size_t s = 0; s < 2; s++) {
        made_heap_snapshot(made, 1, 1000 * (s + 1));
        made_heap_lives(made, "malloc;grows;main", (int64_t)(s + 1) * 10);
    }
    /* Two more, of another process: they do not count for this one. */
    made_heap_snapshot(made, 2, 3000);
    made_heap_snapshot(made, 2, 4000);
    build(made);
    assert_false(row_of(made, HEAP_PER_FUNCTION, "grows")->rise.known);
    assert_int_equal(sums.snapshots, 2);
    end(made);
}

static void ranks_leave_out_what_has_none(void **state)
{
    (void)state;
    struct made_heap *made = made_heap_new();
    *made_heap_site(made, 1, "malloc;a;main") = (struct heap_tally){
        .allocations = 5, .allocated_bytes = 50, .frees = 5, .freed_bytes = 50, .temporary = 5};
    *made_heap_site(made, 1, "malloc;b;main") = (struct heap_tally){
        .allocations = 2, .allocated_bytes = 0, .frees = 1}; /* pieces without a size */
    *made_heap_site(made, 1, "malloc;c;main") = (struct heap_tally){
        .allocations = 1, .allocated_bytes = 9, .grown = 1, .grown_bytes = 4};
    build(made);
    struct heap_sum_list list;
    static const struct {
        enum heap_rank rank;
        const char *names;
    } expected[] = {{HEAP_RANK_LEAK, "cb"},     {HEAP_RANK_CHURN, "abc"}, {HEAP_RANK_BYTES, "ac"},
                    {HEAP_RANK_TEMPORARY, "a"}, {HEAP_RANK_GROWTH, "c"},  {HEAP_RANK_PEAK, ""}};
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        assert_int_equal(
            heap_sums_rank(&arena, &sums.per[HEAP_PER_FUNCTION], expected[i].rank, &list), 0);
        assert_int_equal(list.count, strlen(expected[i].names));
        for (size_t r = 0; r < list.count; r++)
            assert_int_equal(made->functions[list.rows[r].id].name.data[0], expected[i].names[r]);
    }
    end(made);
}

static void an_interval_grows_with_the_root_of_the_variance(void **state)
{
    (void)state;
    struct heap_figures figures = {.variance = 10000};
    assert_true(heap_plus_minus(&figures) == 196);
    figures.variance = 0;
    assert_true(heap_plus_minus(&figures) == 0);
}

static void functions_of_two_recordings_are_matched_by_name(void **state)
{
    (void)state;
    struct made_heap *before = made_heap_new(), *after = made_heap_new();
    struct heap_sums was;
    *made_heap_site(before, 1, "malloc;gone;main") = (struct heap_tally){.allocations = 1,
                                                                         .allocated_bytes = 30};
    *made_heap_site(before, 1, "malloc;same;main") = (struct heap_tally){.allocations = 4,
                                                                         .allocated_bytes = 90};
    *made_heap_site(after, 1, "malloc;same;other;main") = (struct heap_tally){
        .allocations = 4, .allocated_bytes = 90};
    *made_heap_site(after, 1, "malloc;fresh;main") = (struct heap_tally){.allocations = 2,
                                                                         .allocated_bytes = 50};
    assert_int_equal(heap_sums_build(&arena, &before->heap, &was), 0);
    build(after);
    struct heap_diff diff;
    assert_int_equal(heap_diff_build(&arena, &was, &sums, HEAP_RANK_BYTES, &diff), 0);
    assert_int_equal(diff.count, 3);
    assert_int_equal(diff.changed, 2);
    assert_true(str_is(diff.rows[0].function, "fresh"));
    assert_true(diff.rows[0].is_after && !diff.rows[0].is_before);
    assert_true(str_is(diff.rows[1].function, "gone"));
    assert_true(diff.rows[1].is_before && !diff.rows[1].is_after);
    assert_true(str_is(diff.rows[2].function, "same"));
    assert_true(diff.rows[2].is_before && diff.rows[2].is_after);
    assert_int_equal(heap_diff_build(&arena, &was, &sums, HEAP_RANK_CHURN, &diff), 0);
    assert_true(str_is(diff.rows[0].function, "fresh"));
    free(before);
    end(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_frees_need_not_be_who_allocated),
        cmocka_unit_test(a_thread_is_one_whatever_it_was_called),
        cmocka_unit_test(a_peak_is_that_of_one_process),
        cmocka_unit_test(mappings_are_no_heap),
        cmocka_unit_test(memory_is_asked_for_by_the_program_not_by_wrappers),
        cmocka_unit_test(wrappers_without_a_name_are_known_by_their_callers),
        cmocka_unit_test(long_names_lose_what_stands_in_brackets),
        cmocka_unit_test(stacks_of_one_function_add_up),
        cmocka_unit_test(what_grows_at_each_of_three_snapshots_is_growing),
        cmocka_unit_test(two_snapshots_say_nothing_about_growth),
        cmocka_unit_test(ranks_leave_out_what_has_none),
        cmocka_unit_test(an_interval_grows_with_the_root_of_the_variance),
        cmocka_unit_test(functions_of_two_recordings_are_matched_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
