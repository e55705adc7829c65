/* Promises of base/opt.h. */
#include "unit.h"

#include "base/opt.h"

struct opts {
    bool json;
    uint32_t rate;
    uint64_t budget_ns;
    uint64_t size_bytes;
    double limit;
    const char *out;
    const char *style;
    struct opt_list names;
    struct opt_list pairs;
    bool dashes;
};

static const struct opt table[] = {
    {"json", 'j', OPT_FLAG, offsetof(struct opts, json), NULL, "", NULL, NULL, false},
    {"rate", 'F', OPT_U32, offsetof(struct opts, rate), "HZ", "", "999", NULL, false},
    {"budget", 0, OPT_DURATION, offsetof(struct opts, budget_ns), "TIME", "", "60s", NULL, false},
    {"size", 0, OPT_SIZE, offsetof(struct opts, size_bytes), "SIZE", "", NULL, NULL, false},
    {"limit", 0, OPT_PERCENT, offsetof(struct opts, limit), "PCT", "", NULL, NULL, false},
    {"out", 'o', OPT_FILE, offsetof(struct opts, out), "FILE", "", NULL, NULL, false},
    {"style", 0, OPT_CHOICE, offsetof(struct opts, style), "S", "", "full", "full|basic", false},
    {"name", 'n', OPT_LIST, offsetof(struct opts, names), "NAME", "", NULL, NULL, false},
    {"pair", 'P', OPT_LIST, offsetof(struct opts, pairs), "A B", "", NULL, NULL, false, 2},
    {"", 0, OPT_FLAG, offsetof(struct opts, dashes), NULL, "", NULL, NULL, true},
    {0},
};

enum { ARGS_MAX = 200 };

static int parse(enum opt_stop stop, struct opts *opts, struct why *why, const char **argv)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    *opts = (struct opts){0};
    *why = (struct why){0};
    return opt_parse(table, stop, argc, (char **)argv, opts, why);
}

#define PARSE(stop, ...)                                                                           \
    const char *argv[ARGS_MAX] = {"cmd", __VA_ARGS__};                                             \
    struct opts opts;                                                                              \
    struct why why;                                                                                \
    int operands = parse((stop), &opts, &why, argv)

static void defaults_come_from_the_table(void **state)
{
    (void)state;
    PARSE(OPT_MIXED, NULL);
    assert_int_equal(operands, 0);
    assert_int_equal(opts.rate, 999);
    assert_true(opts.budget_ns == 60000000000);
    assert_string_equal(opts.style, "full");
    assert_false(opts.json);
    assert_null(opts.out);
}

static void every_spelling_of_an_option_works(void **state)
{
    (void)state;
    PARSE(OPT_MIXED, "-jF", "10", "--budget=5s", "--size", "64KiB", "--limit=10%", "-oout.json",
          "-n", "a", "--name=b", "--style", "basic");
    assert_int_equal(operands, 0);
    assert_true(opts.json);
    assert_int_equal(opts.rate, 10);
    assert_true(opts.budget_ns == 5000000000);
    assert_int_equal(opts.size_bytes, 65536);
    assert_true(opts.limit == 10);
    assert_string_equal(opts.out, "out.json");
    assert_string_equal(opts.style, "basic");
    assert_int_equal(opts.names.len, 2);
    assert_string_equal(opts.names.items[1], "b");
}

static void operands_may_stand_between_options(void **state)
{
    (void)state;
    PARSE(OPT_MIXED, "one", "-j", "two", "--", "--rate");
    assert_int_equal(operands, 3);
    assert_string_equal(argv[0], "one");
    assert_string_equal(argv[1], "two");
    assert_string_equal(argv[2], "--rate");
    assert_null(argv[3]);
    assert_true(opts.json);
}

static void the_targets_own_options_are_left_alone(void **state)
{
    (void)state;
    PARSE(OPT_FIRST_OPERAND, "-j", "./app", "-F", "7", "--", "--json=no");
    assert_int_equal(operands, 5);
    assert_string_equal(argv[0], "./app");
    assert_string_equal(argv[3], "--");
    assert_int_equal(opts.rate, 999);
}

static void a_lone_dash_is_an_operand(void **state)
{
    (void)state;
    PARSE(OPT_MIXED, "-");
    assert_int_equal(operands, 1);
    assert_string_equal(argv[0], "-");
}

#define REFUSED(expected, ...)                                                                     \
    do {                                                                                           \
        PARSE(OPT_MIXED, __VA_ARGS__);                                                             \
        assert_true(operands < 0);                                                                 \
        assert_int_equal(why.kind, WHY_USAGE);                                                     \
        assert_string_equal(why.what, expected);                                                   \
    } while (0)

static void what_cannot_be_meant_is_refused_with_its_name(void **state)
{
    (void)state;
    REFUSED("unknown option '--rat'", "--rat");
    REFUSED("unknown option '-x'", "-x");
    REFUSED("--rate needs HZ after it", "--rate");
    REFUSED("--rate takes a whole number, not 'fast'", "-F", "fast");
    REFUSED("--rate: '4294967296' is out of range", "-F", "4294967296");
    REFUSED("--budget takes a duration such as 500ms, 10s or 2m, not 'soon'", "--budget=soon");
    REFUSED("--json takes no value", "--json=yes");
    REFUSED("--style takes one of full|basic, not 'none'", "--style=none");
}

static void a_near_miss_is_suggested_and_nonsense_is_not(void **state)
{
    (void)state;
    {
        PARSE(OPT_MIXED, "--bugdet=3s");
        assert_true(operands < 0);
        assert_string_equal(why.remedy, "did you mean --budget?");
    }
    PARSE(OPT_MIXED, "--zzzzzz");
    assert_true(operands < 0);
    assert_string_equal(why.remedy, "");
}

static void a_list_has_a_limit(void **state)
{
    (void)state;
    const char *argv[ARGS_MAX] = {"cmd"};
    for (int i = 0; i <= OPT_LIST_MAX; i++)
        argv[i + 1] = "-nx";
    struct opts opts;
    struct why why;
    assert_true(parse(OPT_MIXED, &opts, &why, argv) < 0);
    assert_int_equal(opts.names.len, OPT_LIST_MAX);
}

static void an_option_of_several_words_takes_them_all_each_time(void **state)
{
    (void)state;
    PARSE(OPT_MIXED, "-P", "a", "1", "x", "--pair", "b", "-2", "--pair=c", "3", NULL);
    assert_int_equal(operands, 1);
    assert_string_equal(argv[0], "x");
    static const char *const expected[] = {"a", "1", "b", "-2", "c", "3"};
    assert_int_equal(opts.pairs.len, 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(opts.pairs.items[i], expected[i]);
    const char *cut[ARGS_MAX] = {"cmd", "-P", "a", NULL};
    assert_true(parse(OPT_MIXED, &opts, &why, cut) < 0);
    assert_non_null(strstr(why.what, "--pair needs A B after it"));
}

static void a_command_can_ask_whether_two_dashes_were_given(void **state)
{
    (void)state;
    PARSE(OPT_MIXED, "a", "--", "-n", NULL);
    assert_int_equal(operands, 2);
    assert_true(opts.dashes);
    const char *without[ARGS_MAX] = {"cmd", "a", NULL};
    assert_int_equal(parse(OPT_MIXED, &opts, &why, without), 1);
    assert_false(opts.dashes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_come_from_the_table),
        cmocka_unit_test(every_spelling_of_an_option_works),
        cmocka_unit_test(operands_may_stand_between_options),
        cmocka_unit_test(the_targets_own_options_are_left_alone),
        cmocka_unit_test(a_lone_dash_is_an_operand),
        cmocka_unit_test(what_cannot_be_meant_is_refused_with_its_name),
        cmocka_unit_test(a_near_miss_is_suggested_and_nonsense_is_not),
        cmocka_unit_test(a_list_has_a_limit),
        cmocka_unit_test(an_option_of_several_words_takes_them_all_each_time),
        cmocka_unit_test(a_command_can_ask_whether_two_dashes_were_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
