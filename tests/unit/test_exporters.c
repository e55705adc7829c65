/* Which exporter is meant, and what the formats of lines do with names. What whole exports
 * are worth is seen by other programs: tests/readers/exchange.py. */
#include "unit.h"

#include "present/export_common.h"

#include <errno.h>
#include <stdlib.h>

static void an_exporter_is_found_by_name_and_by_file(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"cpu.pb.gz", "pprof"},
        {"/a.b/profile.json", "firefox"},
        {"profile.json.gz", "firefox-gz"},
        {"x.speedscope.json", "speedscope"},
        {"stacks.folded", "folded"},
        {"callgrind.out.123", "callgrind"},
        {"/tmp/callgrind.json", "callgrind"},
        {"x.callgrind", "callgrind"},
        {"hot.afdo", "autofdo"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct exporter *found = exporter_for_file(cases[i][0]);
        assert_non_null(found);
        assert_string_equal(found->name, cases[i][1]);
        assert_ptr_equal(exporter_find(cases[i][1]), found);
    }
    assert_null(exporter_for_file("cpu.txt"));
    assert_null(exporter_for_file("folder.folded/x"));
    assert_null(exporter_find("nonsense"));
    for (size_t i = 0; exporters[i]; i++) {
        assert_true(exporters[i]->about && exporters[i]->write);
        assert_int_equal(exporters[i]->extension[0], '.');
    }
}

static void a_line_of_text_stays_one_line(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    static const struct {
        struct str name;
        const char *line;
    } cases[] = {
        {STR("plain <name> \xc3\xa9"), "plain <name> \xc3\xa9"},
        {STR("a\nb\tc"), "a\\nb\\tc"},
        {STR("\r\x1b[0m\x7f"), "\\x0d\\x1b[0m\\x7f"},
        {STR("nul\0!"), "nul\\x00!"},
        {STR("\xff\xfe"), "\\xff\\xfe"},
        {STR("\xe2\x80\xa8"), "\\xe2\\x80\\xa8"}, /* U+2028, a line end to some */
        {STR(""), ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct str line = export_line(&arena, cases[i].name);
        assert_true(str_is(line, cases[i].line));
    }
    assert_true(str_is(export_utf8(&arena, STR("a\xff\nb")), "a\xef\xbf\xbd\nb"));
    assert_true(str_is(export_basename(STR("/usr/lib/libc.so")), "libc.so"));
    assert_true(str_is(export_basename(STR("libc.so")), "libc.so"));
    arena_deinit(&arena);
}

/* One sample without a stack: the least a profile can be. */
static struct profile smallest(void)
{
    static struct profile_process processes[] = {{.exe = {"", 0}, .command = {"", 0}}};
    static struct profile_thread threads[] = {{.name = {"[no thread]", 11}}};
    static struct str groups[] = {{"[no thread]", 11}};
    static struct image_info images[] = {{.path = {"", 0}, .build_id = {"", 0}}};
    static struct profile_function functions[] = {
        {.name = {"[no stack]", 10}, .linkage = {"", 0}, .file = {"", 0}, .unnamed = true}};
    static struct profile_place places[] = {{.file = {"", 0}}};
    static struct profile_frame frames[] = {{.kind = FRAME_UNKNOWN, .place_count = 1}};
    static struct profile_stack stacks[] = {{0}};
    static struct profile_total totals[] = {{.count = 2, .weight = 7}};
    return (struct profile){
        .series = "cpu",
        .unit = UNIT_NS,
        .about = "time",
        .processes = processes,
        .process_count = 1,
        .threads = threads,
        .thread_count = 1,
        .thread_groups = groups,
        .thread_group_count = 1,
        .images = images,
        .image_count = 1,
        .functions = functions,
        .function_count = 1,
        .places = places,
        .place_count = 1,
        .frames = frames,
        .frame_count = 1,
        .stacks = stacks,
        .stack_count = 1,
        .totals = totals,
        .total_count = 1,
        .weight = 7,
        .count = 2,
    };
}

static void a_sample_without_a_stack_keeps_its_weight(void **state)
{
    (void)state;
    struct profile profile = smallest();
    struct export_opts opts = {0};
    for (size_t i = 0; exporters[i]; i++) {
        char *text = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);
        struct why why = {0};
        int r = exporters[i]->write(&profile, &opts, out, &why);
        fclose(out);
        if (strcmp(exporters[i]->name, "autofdo") == 0) {
            assert_int_equal(r, -ENODATA); /* nothing that a compiler could use */
            assert_true(why.remedy[0] != '\0');
        } else {
            assert_int_equal(r, 0);
            assert_true(len > 10);
        }
        if (strcmp(exporters[i]->name, "folded") == 0)
            assert_string_equal(text, "[no stack] 7\n");
        free(text);
    }
}

static void a_full_disk_is_an_error_in_every_format(void **state)
{
    (void)state;
    struct profile profile = smallest();
    profile.functions[0].unnamed = false;
    struct export_opts opts = {0};
    for (size_t i = 0; exporters[i]; i++) {
        FILE *full = fopen("/dev/full", "we");
        struct why why = {0};
        assert_true(exporters[i]->write(&profile, &opts, full, &why) < 0);
        assert_true(why.what[0] != '\0');
        fclose(full);
    }
    profile.functions[0].unnamed = true;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exporter_is_found_by_name_and_by_file),
        cmocka_unit_test(a_line_of_text_stays_one_line),
        cmocka_unit_test(a_sample_without_a_stack_keeps_its_weight),
        cmocka_unit_test(a_full_disk_is_an_error_in_every_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
