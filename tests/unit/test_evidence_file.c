/* Promises of evidence.json: what is read back is what was written, to the last bit; what is not
 * known stays so; and what is read is in the folder. */
#include "unit.h"

#include "analyze/evidence_file.h"
#include "base/fd.h"
#include "cmd/run_artifacts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct arena arena;
static char folder[] = "/tmp/whyslow-evidence-XXXXXX";
static char path[sizeof(folder) + sizeof("/evidence.json")];

static int begin(void **state)
{
    (void)state;
    arena = ARENA_INIT;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/evidence.json", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    rmdir(folder);
    arena_deinit(&arena);
    return 0;
}

static struct evidence_input again(const struct evidence_input *input)
{
    struct evidence_input ret;
    struct why why = {0};
    struct value root = evidence_input_value(&arena, input);
    assert_int_equal(artifact_json(folder, "evidence.json", EVIDENCE_SCHEMA, &root, &why), 0);
    assert_int_equal(evidence_input_read(&arena, folder, &ret, &why), 0);
    return ret;
}

/* Every figure another one, with digits that need all 53 bits. */
static struct run_costs costs_made(void)
{
    struct run_costs costs = {.runs = 7, .outputs_differ = true, .cpus = 3};
    double *figures[] = {
        &costs.wall_ns,
        &costs.wall_low_ns,
        &costs.wall_high_ns,
        &costs.wall_min_ns,
        &costs.wall_max_ns,
        &costs.cpu_ns,
        &costs.user_ns,
        &costs.system_ns,
        &costs.faults_minor,
        &costs.faults_major,
        &costs.switches_voluntary,
        &costs.switches_involuntary,
        &costs.read_bytes,
        &costs.written_bytes,
        &costs.storage_read_bytes,
        &costs.peak_rss_bytes,
        &costs.storage_written_bytes,
        &costs.throttled_ns,
        &costs.steal_ns,
        &costs.others_ns,
    };
    for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
        *figures[i] = 1e9 / 3 + (double)i * 1e6;
    return costs;
}

static void costs_come_back_to_the_last_bit(void **state)
{
    (void)state;
    struct evidence_input input = {.costs = costs_made(), .command = "./a 'b c'"};
    struct evidence_input read = again(&input);
    assert_memory_equal(&read.costs, &input.costs, sizeof(input.costs));
    assert_string_equal(read.command, "./a 'b c'");
}

static void what_is_not_known_stays_so(void **state)
{
    (void)state;
    struct evidence_input input = {.costs = costs_made(), .binary_na = "no ELF"};
    input.costs.steal_ns = input.costs.wall_low_ns = NAN;
    input.axes[AXIS_HEAP].na = "too little is allocated";
    struct evidence_input read = again(&input);
    assert_true(isnan(read.costs.steal_ns) && isnan(read.costs.wall_low_ns));
    assert_null(read.binary);
    assert_string_equal(read.binary_na, "no ELF");
    assert_null(read.axes[AXIS_HEAP].recording);
    assert_string_equal(read.axes[AXIS_HEAP].na, "too little is allocated");
    assert_true(isnan(read.axes[AXIS_HEAP].wall_ns));
    assert_null(read.spans);
}

static void a_recording_is_the_one_in_the_folder(void **state)
{
    (void)state;
    struct evidence_input input = {.costs = costs_made()};
    input.axes[AXIS_IO].recording = "/somewhere/else/recording-io.whyslow";
    input.axes[AXIS_IO].artifact = "recording-io.whyslow";
    input.axes[AXIS_IO].wall_ns = 123456789;
    input.axes[AXIS_IO].is_dear = true;
    struct evidence_input read = again(&input);
    assert_string_equal(read.axes[AXIS_IO].recording,
                        arena_printf(&arena, "%s/recording-io.whyslow", folder));
    assert_string_equal(read.axes[AXIS_IO].artifact, "recording-io.whyslow");
    assert_true(read.axes[AXIS_IO].wall_ns == 123456789);
    assert_true(read.axes[AXIS_IO].is_dear && !read.axes[AXIS_CPU].is_dear);
}

static void the_binary_comes_back_as_it_was_read(void **state)
{
    (void)state;
    struct build_info binary = {.path = "/p", .build_id = "ab", .optimization = "-O0"};
    binary.optimized = (struct build_fact){BUILD_NO, "the switches"};
    binary.stripped = (struct build_fact){BUILD_YES, "no .symtab"};
    struct evidence_input input = {.costs = costs_made(), .binary = &binary};
    struct evidence_input read = again(&input);
    assert_non_null(read.binary);
    assert_string_equal(read.binary->path, "/p");
    assert_string_equal(read.binary->build_id, "ab");
    assert_string_equal(read.binary->optimization, "-O0");
    assert_null(read.binary->script);
    assert_int_equal(read.binary->optimized.answer, BUILD_NO);
    assert_int_equal(read.binary->stripped.answer, BUILD_YES);
    assert_string_equal(read.binary->stripped.because, "no .symtab");
}

static void what_the_program_said_comes_back(void **state)
{
    (void)state;
    struct span items[] = {
        {str_from("parse"), 1.5, NAN, 2.5, 9, str_from("cpu"), str_from("because")}};
    struct span_hypothesis hypotheses[] = {{str_from("gc"), str_from("no pauses"), false}};
    struct spans spans = {items, 1, hypotheses, 1, str_from("load"), 4, 1, "perf.jsonl"};
    struct evidence_input input = {.costs = costs_made(), .spans = &spans};
    const struct spans *read = again(&input).spans;
    assert_non_null(read);
    assert_int_equal(read->count, 1);
    assert_true(str_is(read->items[0].name, "parse") && str_is(read->items[0].evidence, "because"));
    assert_true(read->items[0].cumulative_us == 1.5 && isnan(read->items[0].p50_us));
    assert_true(read->items[0].p95_us == 2.5 && read->items[0].count == 9);
    assert_int_equal(read->hypothesis_count, 1);
    assert_true(str_is(read->hypotheses[0].name, "gc") && !read->hypotheses[0].supports);
    assert_true(str_is(read->scenario, "load") && read->lines == 4 && read->odd == 1);
    assert_string_equal(read->artifact, "perf.jsonl");
}

static void what_is_no_evidence_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{", "[]", "{\"schema\": 1}",
                                        "{\"schema\": \"whyslow.baseline/1\"}"};
    struct evidence_input input;
    struct why why = {0};
    assert_int_equal(evidence_input_read(&arena, folder, &input, &why), -ENOENT);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        assert_int_equal(file_write_atomic(path, texts[i], strlen(texts[i]), &why), 0);
        assert_int_equal(evidence_input_read(&arena, folder, &input, &why), -EINVAL);
        assert_non_null(strstr(why.what, "evidence.json"));
    }
}

static void odd_values_are_not_known_and_no_path_leaves_the_folder(void **state)
{
    (void)state;
    static const char text[] =
        "{\"schema\": \"" EVIDENCE_SCHEMA
        "\", \"command\": 3, \"costs\": {\"runs\": -1, \"wall_ns\": \"5\"},"
        " \"axes\": {\"cpu\": {\"recording\": \"../../etc/passwd\"}, \"io\": [1]},"
        " \"binary\": {\"optimized\": {\"answer\": \"perhaps\"}}, \"said\": {\"spans\": [7]}}";
    struct evidence_input read;
    struct why why = {0};
    assert_int_equal(file_write_atomic(path, text, strlen(text), &why), 0);
    assert_int_equal(evidence_input_read(&arena, folder, &read, &why), 0);
    assert_null(read.command);
    assert_int_equal(read.costs.runs, 0);
    assert_true(isnan(read.costs.wall_ns));
    assert_null(read.axes[AXIS_CPU].recording);
    assert_null(read.axes[AXIS_IO].recording);
    assert_int_equal(read.binary->optimized.answer, BUILD_UNKNOWN);
    assert_non_null(read.binary->optimized.because);
    assert_int_equal(read.spans->items[0].name.len, 0);
}

#define TEST(promise) cmocka_unit_test_setup_teardown(promise, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(costs_come_back_to_the_last_bit),
        TEST(what_is_not_known_stays_so),
        TEST(a_recording_is_the_one_in_the_folder),
        TEST(the_binary_comes_back_as_it_was_read),
        TEST(what_the_program_said_comes_back),
        TEST(what_is_no_evidence_is_refused),
        TEST(odd_values_are_not_known_and_no_path_leaves_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
