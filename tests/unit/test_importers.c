/* The importers on small files whose answer is known by hand. */
#include "unit.h"

#include "base/arena.h"
#include "base/protow.h"
#include "collect/importers.h"
#include "model/sink_memory.h"

#include <errno.h>
#include <stdlib.h>

static struct sink_memory memory;
static struct arena arena;
static struct import_result result;
static struct why why;

static int begin(void **state)
{
    (void)state;
    memory = SINK_MEMORY_INIT;
    arena = ARENA_INIT;
    result = (struct import_result){0};
    why = (struct why){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    sink_memory_deinit(&memory);
    arena_deinit(&arena);
    return 0;
}

static int import_unit(const char *format, struct str bytes, enum unit unit)
{
    struct import_source source;
    assert_int_equal(import_source_memory(bytes, &source), 0);
    struct import_opts opts = {.unit = unit};
    int r = importer_find(format)->import(&source, &memory.sink, &opts, &arena, &result, &why);
    import_source_close(&source);
    return r;
}

static int import(const char *format, struct str bytes)
{
    return import_unit(format, bytes, UNIT_COUNT);
}

static uint64_t skipped(const char *reason)
{
    for (size_t i = 0; i < result.skip_count; i++)
        if (strcmp(result.skips[i].reason, reason) == 0)
            return result.skips[i].count;
    return 0;
}

/* "a;b;c", root first, of a stack in the sink. */
static const char *stack_text(uint32_t stack)
{
    const char *text = "";
    for (; stack != 0; stack = memory.interned.stacks.data[stack - 1].parent) {
        struct frame_info frame = interned_frame_get(&memory.interned,
                                                     memory.interned.stacks.data[stack - 1].frame);
        struct str name = intern_get(&memory.interned.texts, frame.name);
        if (frame.kind == FRAME_UNKNOWN)
            name = STR("?");
        const char *tail = *text ? arena_printf(&arena, ";%s", text) : "";
        text = arena_printf(&arena, "%.*s%s", STR_FMT(name), tail);
    }
    return text;
}

/* Weight and number of the samples of a stack. */
static uint64_t weight_of(const char *stack, uint64_t *ret_count)
{
    uint64_t weight = 0, count = 0;
    for (size_t i = 0; i < memory.samples.len; i++) {
        if (strcmp(stack_text(memory.samples.data[i].stack), stack) == 0) {
            weight += memory.samples.data[i].weight;
            count++;
        }
    }
    if (ret_count)
        *ret_count = count;
    return weight;
}

static void a_format_is_told_by_its_first_bytes(void **state)
{
    (void)state;
    static const struct {
        struct str head;
        const char *name;
    } cases[] = {
        {STR("PERFILE2\x68\0\0\0\0\0\0\0"), "perf.data"},
        {STR("2ELIFREP\0\0\0\0\0\0\0\x68"), "perf.data"},
        {STR("# started\n#\napp 12 [003] 1.000001:  250000 cycles:u: \n\t 12 f+0x1 (/a)\n"),
         "perf-script"},
        {STR("main;f 5\nmain;g 7\n"), "folded"},
        {STR("main 5\n"), "folded"},
        {STR("\x1f\x8b\x08"), "pprof"},
        {STR("\x0a\x04\x08\x01\x10\x02\x12\x02\x0a\x00"), "pprof"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct importer *found = importer_detect(cases[i].head);
        assert_non_null(found);
        assert_string_equal(found->name, cases[i].name);
    }
    static const struct str unknown[] = {
        STR("#!/bin/sh\necho hello\n"),
        STR("{\"json\": true}\n"),
        STR("\x7f"
            "ELF\x02\x01\x01"),
        STR("SQLite format 3\0\x10"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
        assert_null(importer_detect(unknown[i]));
}

static void folded_counts_become_samples(void **state)
{
    (void)state;
    uint64_t count;
    /* Lines share beginnings, part in the middle of a name, and come back. */
    assert_int_equal(import("folded", STR("main;alpha;x 3\nmain;alpha;xy 2\nmain;alp 1\nmain 4\n"
                                          "main;alpha;x;deep 5\r\nmain;alpha;x 6\nother;x 1")),
                     0);
    assert_int_equal(weight_of("main;alpha;x", &count), 9);
    assert_int_equal(count, 9);
    assert_int_equal(weight_of("main;alpha;xy", NULL), 2);
    assert_int_equal(weight_of("main;alp", NULL), 1);
    assert_int_equal(weight_of("main", NULL), 4);
    assert_int_equal(weight_of("main;alpha;x;deep", NULL), 5);
    assert_int_equal(weight_of("other;x", NULL), 1);
    assert_int_equal(result.samples, 22);
    assert_int_equal(result.skip_count, 0);
    assert_string_equal(result.series[0], "cpu");
    assert_int_equal(sink_memory_counter(&memory, "cpu.samples")->value, 22);
}

static void folded_weights_of_a_known_unit_stay_whole(void **state)
{
    (void)state;
    uint64_t count;
    assert_int_equal(import_unit("folded", STR("a;b 1000000\na;b 5\n"), UNIT_NS), 0);
    assert_int_equal(weight_of("a;b", &count), 1000005);
    assert_int_equal(count, 2);
    assert_int_equal(memory.series.data[0].unit, UNIT_NS);
}

static void a_huge_count_is_a_weight_not_a_loop(void **state)
{
    (void)state;
    assert_int_equal(import("folded", STR("a 9000000000000000000\nb 1\n")), 0);
    assert_int_equal(memory.samples.len, 2);
    assert_true(memory.samples.data[0].weight == 9000000000000000000u);
}

static void folded_lines_without_sense_are_counted(void **state)
{
    (void)state;
    assert_int_equal(
        import("folded", STR("# comment\nno number\na;b 0\na;b 12x\n99999999999999999999"
                             "\nc 99999999999999999999\n7\na;b 3\n\n")),
        0);
    assert_int_equal(result.samples, 3);
    assert_int_equal(skipped("no_count"), 5);
    assert_int_equal(skipped("zero_count"), 1);
    assert_int_equal(sink_memory_counter(&memory, "import.skipped.no_count")->value, 5);
}

static void a_file_without_a_sample_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(import("folded", STR("nothing\n")), -ENODATA);
    assert_non_null(strstr(why.what, "no_count"));
    assert_true(why.remedy[0] != '\0');
    static const char *const formats[] = {"folded", "perf-script"};
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        assert_int_equal(import(formats[i], STR("")), -ENODATA);
    assert_int_equal(import("pprof", STR("")), -EBADMSG);
    assert_int_equal(import("perf.data", STR("")), -EBADMSG);
}

static void a_stack_too_deep_is_skipped_with_a_count(void **state)
{
    (void)state;
    enum { FRAMES = 20000 };
    char *line = malloc(2 * FRAMES + 16);
    for (size_t i = 0; i < FRAMES; i++) {
        line[2 * i] = 'f';
        line[2 * i + 1] = ';';
    }
    memcpy(line + 2 * FRAMES - 1, " 1\na 2\n", 8);
    assert_int_equal(import("folded", str_from(line)), 0);
    assert_int_equal(skipped("too_deep_or_too_many"), 1);
    assert_int_equal(result.samples, 2);
    free(line);
}

static void perf_script_gives_threads_frames_and_inlines(void **state)
{
    (void)state;
    assert_int_equal(
        import(
            "perf-script",
            STR("# captured on: now\nmy app 2  123/124 [003]  77.000001:    1001001 cpu-clock:u: \n"
                "\t    55d0c0de1234 std::vector<int (*)(char)>::at+0x14 (/usr/bin/app (deleted))\n"
                "\t    55d0c0de1180 tiny (inlined)\n"
                "\t    55d0c0de1180 outer+0x8 (/usr/bin/app)\n"
                "\t    7f0000000000 [unknown] (/lib/libx.so)\n"
                "\t    7f0000000001 [unknown] ([unknown])\n\n"
                "swapper     0 [000]    78.5:  7 cycles:  ffff81 idle+0x1 ([kernel.kallsyms])\n"
                "swapper     0 [000]    78.6:  8 cycles:  ffff81 idle+0x2 ([kernel.kallsyms])\n")),
        0);
    assert_int_equal(result.samples, 3);
    assert_int_equal(result.skip_count, 0);
    assert_string_equal(stack_text(memory.samples.data[0].stack),
                        "?;;outer;tiny;std::vector<int (*)(char)>::at");
    assert_true(memory.samples.data[0].time_ns == 77000001000);
    assert_int_equal(memory.samples.data[0].weight, 1001001);
    const struct thread_info *thread = &memory.threads.data[memory.samples.data[0].thread - 1].info;
    assert_true(str_is(thread->name, "my app 2"));
    assert_int_equal(thread->tid, 124);
    assert_int_equal(memory.series.data[0].unit, UNIT_NS);
    assert_int_equal(memory.series.data[1].unit, UNIT_COUNT);
    assert_string_equal(memory.series.data[0].name, "cpu");
    assert_string_equal(memory.series.data[1].name, "cycles");
    assert_int_equal(weight_of("idle", NULL), 15);
    /* The inlined frame lies in the image of the one around it. */
    bool kernel = false, app = false;
    for (size_t i = 0; i < memory.images.len; i++) {
        kernel = kernel || memory.images.data[i].kind == IMAGE_KERNEL;
        app = app || str_is(memory.images.data[i].path, "/usr/bin/app");
    }
    assert_true(kernel && app);
}

static void perf_script_skips_what_it_does_not_understand(void **state)
{
    (void)state;
    assert_int_equal(
        import("perf-script",
               STR("garbage\napp 1 1.5: 10 cpu-clock: \n\tzz not hex (/a)\n\t12 f (/a\n"
                   "\t13 f+0x1 (/a)\n\n   \n")),
        0);
    assert_int_equal(result.samples, 1);
    assert_int_equal(skipped("line_not_understood"), 1);
    assert_int_equal(skipped("frame_not_understood"), 2);
    assert_string_equal(stack_text(memory.samples.data[0].stack), "f");
}

/* A pprof with two functions and the given sample types (name, unit, …), one sample of values. */
static struct str pprof_make(struct protow *out, const char *const *types, size_t type_count,
                             const uint64_t *values, size_t value_count)
{
    protow_text(out, 6, STR(""), true);
    for (size_t i = 0; i < 2 * type_count; i++)
        protow_text(out, 6, str_from(types[i]), true);
    protow_text(out, 6, STR("inner"), true);
    protow_text(out, 6, STR("outer"), true);
    for (size_t i = 0; i < type_count; i++) {
        protow_begin(out, 1);
        protow_uint(out, 1, 2 * i + 1);
        protow_uint(out, 2, 2 * i + 2);
        protow_end(out);
    }
    for (uint64_t i = 0; i < 2; i++) {
        protow_begin(out, 5);
        protow_uint(out, 1, 70 + i);
        protow_uint(out, 2, 2 * type_count + 1 + i);
        protow_end(out);
        protow_begin(out, 4);
        protow_uint(out, 1, UINT64_MAX - i); /* ids are any numbers */
        protow_begin(out, 4);
        protow_uint(out, 1, 70 + i);
        protow_uint(out, 2, 12 + i);
        protow_end(out);
        protow_end(out);
    }
    const uint64_t locations[] = {UINT64_MAX, UINT64_MAX - 1};
    protow_begin(out, 2);
    protow_packed(out, 1, locations, 2);
    protow_packed(out, 2, values, value_count);
    protow_end(out);
    return (struct str){(const char *)out->data, out->len};
}

static void pprof_types_become_series(void **state)
{
    (void)state;
    const char *const types[] = {"alloc_objects", "count", "alloc_space",
                                 "kilobytes",     "wall",  "microseconds"};
    const uint64_t values[] = {3, 5, 7};
    struct protow out = {0};
    assert_int_equal(import("pprof", pprof_make(&out, types, 3, values, 3)), 0);
    assert_int_equal(result.series_count, 3);
    assert_string_equal(result.series[0], "alloc_objects"); /* none of them is "cpu" */
    assert_int_equal(memory.series.data[1].unit, UNIT_BYTES);
    assert_int_equal(memory.series.data[2].unit, UNIT_NS);
    assert_int_equal(memory.samples.data[1].weight, 5 * 1024);
    assert_int_equal(memory.samples.data[2].weight, 7000);
    assert_string_equal(stack_text(memory.samples.data[0].stack), "outer;inner");
    protow_deinit(&out);
}

static void pprof_samples_say_how_many_a_weight_stands_for(void **state)
{
    (void)state;
    const char *const types[] = {"samples", "count", "cpu", "nanoseconds"};
    const uint64_t values[] = {3, 30000001};
    struct protow out = {0};
    uint64_t count;
    assert_int_equal(import("pprof", pprof_make(&out, types, 2, values, 2)), 0);
    assert_int_equal(result.series_count, 1);
    assert_string_equal(result.series[0], "cpu");
    assert_int_equal(weight_of("outer;inner", &count), 30000001);
    assert_int_equal(count, 3);
    protow_deinit(&out);
}

static void pprof_values_that_cannot_be_are_counted(void **state)
{
    (void)state;
    const char *const types[] = {"cpu", "seconds", "x", "count"};
    const uint64_t values[] = {(uint64_t)-5, 2};
    struct protow out = {0};
    assert_int_equal(import("pprof", pprof_make(&out, types, 2, values, 2)), 0);
    assert_int_equal(skipped("negative_value"), 1);
    protow_deinit(&out);
    end(NULL);
    begin(NULL);
    const uint64_t large[] = {INT64_MAX, 2};
    assert_int_equal(import("pprof", pprof_make(&out, types, 2, large, 2)), 0);
    assert_int_equal(skipped("value_too_large"), 1);
    protow_deinit(&out);
}

static void a_pprof_sample_of_another_shape_is_skipped(void **state)
{
    (void)state;
    const char *const types[] = {"cpu", "nanoseconds"};
    const uint64_t values[] = {1, 2, 3};
    struct protow out = {0};
    assert_int_equal(import("pprof", pprof_make(&out, types, 1, values, 3)), -ENODATA);
    assert_int_equal(skipped("bad_sample"), 1);
    protow_deinit(&out);
    assert_int_equal(import("pprof", STR("\x12\x00")), -EBADMSG);
    assert_non_null(strstr(why.what, "no sample types"));
}

static void perf_data_of_strangers_is_refused_by_name(void **state)
{
    (void)state;
    assert_int_equal(import("perf.data", STR("2ELIFREP\0\0\0\0\0\0\0\x68")), -EOPNOTSUPP);
    assert_non_null(strstr(why.what, "big-endian"));
    assert_int_equal(import("perf.data", STR("PERFFILE\x68\0\0\0\0\0\0\0")), -EOPNOTSUPP);
    assert_non_null(strstr(why.what, "version 1"));
    assert_int_equal(import("perf.data", STR("PERFILE2\x68\0\0\0\0\0\0\0")), -ENODATA);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_format_is_told_by_its_first_bytes),
        TEST(folded_counts_become_samples),
        TEST(folded_weights_of_a_known_unit_stay_whole),
        TEST(a_huge_count_is_a_weight_not_a_loop),
        TEST(folded_lines_without_sense_are_counted),
        TEST(a_file_without_a_sample_is_an_error),
        TEST(a_stack_too_deep_is_skipped_with_a_count),
        TEST(perf_script_gives_threads_frames_and_inlines),
        TEST(perf_script_skips_what_it_does_not_understand),
        TEST(pprof_types_become_series),
        TEST(pprof_samples_say_how_many_a_weight_stands_for),
        TEST(pprof_values_that_cannot_be_are_counted),
        TEST(a_pprof_sample_of_another_shape_is_skipped),
        TEST(perf_data_of_strangers_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
