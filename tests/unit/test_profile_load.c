/* A recording made through the writer comes back as a profile: ids, names, ranges. */
#include "recording_helpers.h"

#include "analyze/profile_load.h"
#include "made_profile.h"

enum { MS = 1000000 };

/* main calls parse; parse has `step` inlined; both call into a library without symbols. */
struct world {
    struct made made;
    struct recording_writer *writer;
    uint32_t app, lib, kernel;
    uint32_t f_main, f_parse, f_step, f_sys;
    uint32_t main_frame, parse_frame, lib_frame, kernel_frame, unknown_frame, named_frame;
    uint32_t alone, workers[3];
};

static void world_begin(struct world *world)
{
    *world = (struct world){.writer = create()};
    struct made *made = &world->made;
    made->sink = recording_writer_sink(world->writer);
    uint32_t process = made_process(made, 7, "/opt/app", "app --fast");
    uint32_t other = made_process(made, 8, "/bin/sh", "sh -c true");
    world->alone = made_thread(made, process, 7, "app2");
    world->workers[0] = made_thread(made, process, 10, "worker-1");
    world->workers[1] = made_thread(made, process, 11, "worker-22");
    world->workers[2] = made_thread(made, other, 12, "");
    world->app = made_image(made, IMAGE_FILE, "/opt/app", "aa");
    world->lib = made_image(made, IMAGE_FILE, "/usr/lib/libfoo.so.1", "bb");
    world->kernel = made_image(made, IMAGE_KERNEL, "[kernel]", "");
    world->f_main = made_function(made, "main", world->app, "main.c", 3, 0x1000);
    world->f_parse = made_function(made, "parse", world->app, "parse.c", 10, 0x2000);
    world->f_step = made_function(made, "step", world->app, "step.h", 5, 0);
    world->f_sys = made_function(made, "do_read", world->kernel, "", 0, 0xffffffff81000000);
    world->main_frame = made_code(made, world->app, 0x1010, world->f_main, "main.c", 5);
    world->parse_frame = made_frame(made, FRAME_USER, world->app, 0x2010, NULL, 0);
    made_place(made, world->parse_frame, 0, world->f_step, "step.h", 6);
    made_place(made, world->parse_frame, 1, world->f_parse, "parse.c", 12);
    world->lib_frame = made_frame(made, FRAME_USER, world->lib, 0x99, NULL, 0);
    world->kernel_frame = made_frame(made, FRAME_KERNEL, world->kernel, 0xffffffff81000010, NULL,
                                     0);
    made_place(made, world->kernel_frame, 0, world->f_sys, "", 0);
    world->unknown_frame = made_frame(made, FRAME_UNKNOWN, 0, 0, NULL, 1);
    world->named_frame = made_frame(made, FRAME_NAMED, 0, 0, "imported<name>", 0);
    made_series(made, "cpu", SERIES_SUM, UNIT_NS);
}

static void world_end(struct world *world)
{
    struct why why = {0};
    assert_int_equal(recording_writer_finish(world->writer, &why), 0);
    recording_writer_close(world->writer);
}

static int load(struct arena *arena, const struct profile_opts *opts, struct profile *ret,
                struct why *why)
{
    struct recording *recording = open_good();
    int r = profile_load(arena, recording, opts, ret, why);
    recording_close(recording);
    return r;
}

static void load_good(struct arena *arena, const struct profile_opts *opts, struct profile *ret)
{
    struct why why = {0};
    int r = load(arena, opts, ret, &why);
    if (r < 0)
        print_error("%s\n", why.what);
    assert_int_equal(r, 0);
}

static void assert_str(struct str text, const char *expected)
{
    if (!str_is(text, expected))
        print_error("got '%.*s'\n", STR_FMT(text));
    assert_true(str_is(text, expected));
}

static void the_command_is_that_of_a_program_if_there_is_one(void **state)
{
    (void)state;
    static const struct {
        const char *exe[2], *command[2], *expected;
    } rows[] = {
        {{"", "/bin/sh"}, {"sh", "sh -c 'exit 3'"}, "sh -c 'exit 3'"}, /* seen before its exec */
        {{"", ""}, {"a", "b"}, "a"},
        {{"/bin/a", "/bin/b"}, {"", "b"}, "/bin/a"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct recording_writer *writer = create();
        struct made made = {.sink = recording_writer_sink(writer)};
        for (size_t j = 0; j < 2; j++)
            made_process(&made, 7, rows[i].exe[j], rows[i].command[j]);
        struct why why = {0};
        assert_int_equal(recording_writer_finish(writer, &why), 0);
        recording_writer_close(writer);
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct profile profile;
        assert_int_equal(load(&arena, &(struct profile_opts){0}, &profile, &why), -ENOENT);
        /* Whoever wants names only does not mind that there is no sample, nor a series. */
        load_good(&arena, &(struct profile_opts){.names_only = true}, &profile);
        assert_string_equal(profile.series, "cpu");
        assert_int_equal(profile.total_count, 0);
        assert_int_equal(profile.process_count, 3);
        assert_str(profile.command, rows[i].expected);
        assert_int_equal(unlink(path), 0);
    }
}

static void the_command_is_what_was_started_where_that_is_known(void **state)
{
    (void)state;
    static const struct {
        const char *json, *expected;
    } rows[] = {
        {"{\"scope\": \"command\", \"command\": \"./wrap 'two words'\"}", "./wrap 'two words'"},
        {"{\"scope\": \"command\"}", "lua -e x"}, /* of an older whyslow */
        {"{\"scope\": \"command\", \"command\": 5}", "lua -e x"},
        {"{\"scope", "lua -e x"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct recording_writer *writer = create();
        struct made made = {.sink = recording_writer_sink(writer)};
        made_process(&made, 7, "/usr/bin/lua", "lua -e x");
        assert_int_equal(sink_document(made.sink, "target", str_from(rows[i].json)), 0);
        struct why why = {0};
        assert_int_equal(recording_writer_finish(writer, &why), 0);
        recording_writer_close(writer);
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct profile profile;
        load_good(&arena, &(struct profile_opts){.names_only = true}, &profile);
        assert_str(profile.command, rows[i].expected);
        assert_int_equal(unlink(path), 0);
    }
}

static void ids_are_those_of_the_recording(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t stack = made_stack(&world.made, world.main_frame, world.parse_frame, 0);
    made_samples(&world.made, world.alone, stack, 3, 1 * MS);
    world_end(&world);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct profile profile;
    load_good(&arena, &(struct profile_opts){0}, &profile);
    assert_string_equal(profile.series, "cpu");
    assert_int_equal(profile.unit, UNIT_NS);
    assert_str(profile.command, "app --fast");
    assert_int_equal(profile.count, 3);
    assert_int_equal(profile.weight, 3 * MS);
    assert_int_equal(profile.start_ns, 1 * MS);
    assert_int_equal(profile.end_ns, 3 * MS);
    assert_int_equal(profile.total_count, 1);
    assert_int_equal(profile.totals[0].stack, stack);
    assert_int_equal(profile.totals[0].thread, world.alone);
    assert_null(profile.sample_time_ns);
    assert_str(profile.functions[world.f_parse].name, "parse");
    assert_str(profile.functions[world.f_parse].file, "parse.c");
    assert_int_equal(profile.functions[world.f_parse].address, 0x2000);
    assert_true(profile.functions[world.f_sys].kernel);
    assert_false(profile.functions[world.f_main].kernel);
    const struct profile_frame *frame = &profile.frames[world.parse_frame];
    assert_int_equal(frame->place_count, 2);
    assert_int_equal(profile.places[frame->places].function, world.f_step);
    assert_int_equal(profile.places[frame->places].line, 6);
    assert_int_equal(profile.places[frame->places + 1].function, world.f_parse);
    assert_int_equal(profile.stacks[stack].frame, world.parse_frame);
    assert_str(profile.images[world.lib].path, "/usr/lib/libfoo.so.1");
}

static const struct profile_function *only_function(const struct profile *profile, uint32_t frame)
{
    assert_int_equal(profile->frames[frame].place_count, 1);
    return &profile->functions[profile->places[profile->frames[frame].places].function];
}

static void frames_without_a_name_get_a_function_of_their_own(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made *made = &world.made;
    uint32_t second = made_frame(made, FRAME_USER, world.lib, 0x77, NULL, 0);
    uint32_t nowhere = made_frame(made, FRAME_USER, 0, 0x55, NULL, 0);
    uint32_t kernel = made_frame(made, FRAME_KERNEL, 0, 0x56, NULL, 0);
    uint32_t odd = made_frame(made, FRAME_UNKNOWN, 0, 0, NULL, 4000000000u);
    made_samples(made, world.alone, made_stack(made, world.lib_frame, 0), 1, MS);
    world_end(&world);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct profile profile;
    load_good(&arena, &(struct profile_opts){0}, &profile);
    const struct profile_function *lib = only_function(&profile, world.lib_frame);
    assert_str(lib->name, "[libfoo.so.1]");
    assert_true(lib->unnamed);
    assert_int_equal(lib->image, world.lib);
    assert_ptr_equal(lib, only_function(&profile, second));
    assert_str(only_function(&profile, world.unknown_frame)->name, "[unknown: stack slice ended]");
    assert_true(only_function(&profile, world.unknown_frame)->unnamed);
    assert_non_null(only_function(&profile, odd)->name.data);
    assert_ptr_not_equal(only_function(&profile, odd),
                         only_function(&profile, world.unknown_frame));
    const struct profile_function *named = only_function(&profile, world.named_frame);
    assert_str(named->name, "imported<name>");
    assert_false(named->unnamed);
    assert_str(only_function(&profile, nowhere)->name, "[unknown code]");
    assert_str(only_function(&profile, kernel)->name, "[kernel]");
    assert_true(only_function(&profile, kernel)->kernel);
}

static void threads_of_one_name_are_a_group(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t stack = made_stack(&world.made, world.main_frame, 0);
    made_samples(&world.made, world.alone, stack, 1, MS);
    world_end(&world);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct profile profile;
    load_good(&arena, &(struct profile_opts){0}, &profile);
    const struct profile_thread *threads = profile.threads;
    assert_int_equal(threads[world.workers[0]].group, threads[world.workers[1]].group);
    assert_str(profile.thread_groups[threads[world.workers[0]].group], "worker-*");
    /* Alone, a name keeps its number: app2 is not app*. */
    assert_str(profile.thread_groups[threads[world.alone].group], "app2");
    assert_str(profile.thread_groups[threads[world.workers[2]].group], "[unnamed]");
    assert_int_equal(profile.thread_group_count, 4);
}

/* What an exec, a new name, and an id that comes back make of threads: one row each. */
static void rows_of_one_thread_lead_to_its_newest(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct sink *sink = world.made.sink;
    uint32_t process, program, again, row[7];
    struct process_info info = {.pid = 50, .start_ns = 10, .exe = STR("/bin/sh")};
    assert_int_equal(sink_process(sink, &info, &process), 0);
    info = (struct process_info){.pid = 50, .start_ns = 20, .exe = STR("/bin/true")};
    assert_int_equal(sink_process(sink, &info, &program), 0);
    info = (struct process_info){.pid = 50, .start_ns = 50, .exe = STR("/bin/sh")};
    assert_int_equal(sink_process(sink, &info, &again), 0);
    const struct thread_info threads[] = {
        {process, 50, 10, STR("sh")},     {program, 50, 20, STR("true")}, /* an exec */
        {program, 51, 22, STR("java")},   {program, 51, 25, STR("GC")},   /* renamed */
        {program, 50, 30, STR("called")}, {again, 50, 50, STR("sh")},     /* the next of that id */
        {again, 51, 60, STR("other")},
    };
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(sink_thread(sink, &threads[i], &row[i]), 0);
    assert_int_equal(sink_thread_end(sink, row[0], 20), 0);
    assert_int_equal(sink_thread_end(sink, row[1], 30), 0);
    assert_int_equal(sink_thread_end(sink, row[2], 25), 0);
    assert_int_equal(sink_thread_end(sink, row[3], 40), 0);
    assert_int_equal(sink_thread_end(sink, row[4], 40), 0);
    uint32_t stack = made_stack(&world.made, world.main_frame, 0);
    made_samples(&world.made, world.alone, stack, 1, MS);
    world_end(&world);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct profile profile;
    load_good(&arena, &(struct profile_opts){0}, &profile);
    const uint32_t newest[] = {row[4], row[4], row[3], row[3], row[4], row[5], row[6]};
    for (size_t i = 0; i < ARRAY_SIZE(newest); i++)
        assert_int_equal(profile_life(&profile, row[i]), newest[i]);
    assert_int_equal(profile_life(&profile, world.alone), world.alone);
    assert_int_equal(profile_life(&profile, 0), 0);
}

static void a_time_range_takes_its_samples_only(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t a = made_stack(&world.made, world.main_frame, 0);
    uint32_t b = made_stack(&world.made, world.main_frame, world.parse_frame, 0);
    made_samples(&world.made, world.alone, a, 10, 2 * MS); /* 1 … 10 ms */
    made_samples(&world.made, world.workers[0], b, 10, 5); /* 11 … 20 ms */
    world_end(&world);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct profile profile;
    /* Since the first sample, which is at 1 ms; both ends included. */
    load_good(&arena, &(struct profile_opts){.from_ns = 8 * MS, .to_ns = 11 * MS}, &profile);
    assert_int_equal(profile.count, 4);
    assert_int_equal(profile.weight, 2 * 2 * MS + 2 * 5);
    assert_int_equal(profile.start_ns, 9 * MS);
    assert_int_equal(profile.end_ns, 12 * MS);
    load_good(&arena, &(struct profile_opts){.to_ns = 2 * MS}, &profile);
    assert_int_equal(profile.count, 3);
    load_good(&arena, &(struct profile_opts){.from_ns = 1, .to_ns = UINT64_MAX}, &profile);
    assert_int_equal(profile.count, 19);
    struct why why = {0};
    struct profile_opts beyond = {.from_ns = 900 * (uint64_t)MS, .to_ns = 901 * (uint64_t)MS};
    assert_int_equal(load(&arena, &beyond, &profile, &why), -ENODATA);
    assert_int_equal(why.kind, WHY_USAGE);
}

static void single_samples_come_in_the_order_of_time(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t stack = made_stack(&world.made, world.main_frame, 0);
    enum { COUNT = 50000 };
    for (uint64_t i = 0; i < COUNT; i++) {
        /* Two rings drained in turns, hours apart from zero: all digits are used. */
        uint64_t time_ns = 7200000000000u + (i % 200 < 100 ? i : i - 100) * 12345678u;
        struct sample sample = {world.made.series, world.alone, stack, time_ns, i};
        assert_int_equal(sink_sample(world.made.sink, &sample), 0);
    }
    world_end(&world);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct profile profile;
    load_good(&arena, &(struct profile_opts){.samples = true}, &profile);
    assert_int_equal(profile.sample_count, COUNT);
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t n = profile.sample_weight[i];
        assert_true(i == 0 || profile.sample_time_ns[i] >= profile.sample_time_ns[i - 1]);
        /* Equal times stay in the order they were given. */
        assert_true(i == 0 || profile.sample_time_ns[i] > profile.sample_time_ns[i - 1] ||
                    n > profile.sample_weight[i - 1]);
        assert_true(profile.sample_time_ns[i] ==
                    7200000000000u + (n % 200 < 100 ? n : n - 100) * 12345678u);
        sum += n;
    }
    assert_int_equal(sum, (uint64_t)COUNT * (COUNT - 1) / 2);
    assert_int_equal(profile.weight, sum);
}

static void a_filter_keeps_threads_processes_and_images_by_name(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made *made = &world.made;
    uint32_t plain = made_stack(made, world.main_frame, 0);
    uint32_t in_lib = made_stack(made, world.main_frame, world.lib_frame, 0);
    made_samples(made, world.alone, plain, 1, 100);
    made_samples(made, world.workers[0], plain, 2, 100);
    made_samples(made, world.workers[2], in_lib, 4, 100);
    made_samples(made, world.alone, in_lib, 8, 100);
    made_samples(made, 0, 0, 16, 100);
    world_end(&world);
    static const struct {
        const char *filter;
        uint64_t count;
    } cases[] = {{"worker", 2}, {"/bin/sh", 4}, {"libfoo", 12}, {"--fast", 11}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct profile profile;
        load_good(&arena, &(struct profile_opts){.filter = cases[i].filter, .samples = true},
                  &profile);
        assert_int_equal(profile.count, cases[i].count);
        assert_int_equal(profile.sample_count, cases[i].count);
        assert_int_equal(profile.weight, 100 * cases[i].count);
    }
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct profile profile;
    struct why why = {0};
    struct profile_opts none = {.filter = "nobody is called this"};
    assert_int_equal(load(&arena, &none, &profile, &why), -ENODATA);
    assert_int_equal(why.kind, WHY_USAGE);
}

static void focus_cuts_stacks_to_begin_at_the_function(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct made *made = &world.made;
    uint32_t without = made_stack(made, world.main_frame, world.lib_frame, 0);
    uint32_t with = made_stack(made, world.main_frame, world.parse_frame, 0);
    uint32_t below = made_stack(made, world.main_frame, world.parse_frame, world.parse_frame, 0);
    made_samples(made, world.alone, without, 1, 100);
    made_samples(made, world.alone, with, 2, 100);
    made_samples(made, world.alone, below, 4, 100);
    world_end(&world);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct profile profile;
    load_good(&arena, &(struct profile_opts){.focus = "step"}, &profile);
    assert_int_equal(profile.count, 6);
    assert_int_equal(profile.stacks[with].parent, 0);
    /* `step` is inlined into `parse`: parse is cut off at the first, not further in. */
    const struct profile_frame *first = &profile.frames[profile.stacks[with].frame];
    assert_int_equal(first->place_count, 1);
    assert_int_equal(profile.places[first->places].function, world.f_step);
    assert_int_equal(profile.stacks[below].parent, with);
    assert_int_equal(profile.frames[profile.stacks[below].frame].place_count, 2);
    load_good(&arena, &(struct profile_opts){.focus = "parse"}, &profile);
    assert_int_equal(profile.count, 6);
    assert_int_equal(profile.frames[profile.stacks[with].frame].place_count, 2);
    load_good(&arena, &(struct profile_opts){.focus = "main"}, &profile);
    assert_int_equal(profile.count, 7);
}

static void what_cannot_be_a_profile_is_refused_with_the_reason(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    made_series(&world.made, "rss", SERIES_LEVEL, UNIT_BYTES);
    made_samples(&world.made, world.alone, 0, 3, 100);
    made_series(&world.made, "many", SERIES_SUM, UNIT_NS);
    made_samples(&world.made, world.alone, 0, 100, 7);
    world_end(&world);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct profile profile = {.count = 77};
    struct why why = {0};
    assert_int_equal(load(&arena, &(struct profile_opts){0}, &profile, &why), -ENODATA);
    assert_non_null(strstr(why.what, "no sample in series 'cpu'"));
    assert_true(why.remedy[0] != '\0');
    struct profile_opts absent = {.series = "heap"};
    assert_int_equal(load(&arena, &absent, &profile, &why), -ENOENT);
    assert_non_null(strstr(why.what, "no series 'heap'"));
    struct profile_opts level = {.series = "rss"};
    assert_int_equal(load(&arena, &level, &profile, &why), -EINVAL);
    assert_non_null(strstr(why.what, "level"));
    struct profile_opts many = {.series = "many", .samples = true, .samples_max = 99};
    assert_int_equal(load(&arena, &many, &profile, &why), -E2BIG);
    assert_non_null(strstr(why.what, "more than 99 samples"));
    assert_non_null(strstr(why.remedy, "--time"));
    assert_int_equal(profile.count, 77);
    many.samples_max = 100;
    assert_int_equal(load(&arena, &many, &profile, &why), 0);
    assert_int_equal(profile.sample_count, 100);
}

static void a_forged_recording_is_damage_and_takes_no_memory(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *words;
    } cases[] = {
        {"UPDATE total SET weight = 9223372036854775807;"
         "INSERT INTO total SELECT series, 2, stack, count, weight FROM total;"
         "INSERT INTO total SELECT series, 3, stack, count, weight FROM total WHERE thread = 2",
         "adds up to more"},
        {"UPDATE total SET count = 9223372036854775807;"
         "INSERT INTO total SELECT series, 2, stack, count, weight FROM total;"
         "INSERT INTO total SELECT series, 3, stack, count, weight FROM total WHERE thread = 2",
         "adds up to more"},
        {"INSERT INTO thread VALUES(2147483647, 1, 1, 1, NULL, 'x')", "table 'thread'"},
        {"INSERT INTO frame VALUES(2147483647, 'user', 0, 0, 0, 0)", "table 'frame'"},
        {"INSERT INTO function VALUES(2147483000, 1, 0, 0, 0, 0, 0, 0)", "table 'function'"},
        {"UPDATE location SET function = 999", "table 'location'"},
        {"UPDATE total SET thread = 999", "table 'total'"},
        {"UPDATE image SET kind = 'toaster'", "table 'image'"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world world;
        world_begin(&world);
        uint32_t stack = made_stack(&world.made, world.main_frame, 0);
        made_samples(&world.made, world.alone, stack, 3, 100);
        world_end(&world);
        patch(cases[i].sql);
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct profile profile;
        struct why why = {0};
        int r = load(&arena, &(struct profile_opts){0}, &profile, &why);
        if (r != -EBADMSG || !strstr(why.what, cases[i].words))
            print_error("case %zu: %d %s\n", i, r, why.what);
        assert_int_equal(r, -EBADMSG);
        assert_non_null(strstr(why.what, cases[i].words));
        assert_true(arena.used_bytes < 1 << 20);
        assert_int_equal(unlink(path), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ids_are_those_of_the_recording, begin, end),
        cmocka_unit_test_setup_teardown(the_command_is_that_of_a_program_if_there_is_one, begin,
                                        end),
        cmocka_unit_test_setup_teardown(the_command_is_what_was_started_where_that_is_known, begin,
                                        end),
        cmocka_unit_test_setup_teardown(frames_without_a_name_get_a_function_of_their_own, begin,
                                        end),
        cmocka_unit_test_setup_teardown(threads_of_one_name_are_a_group, begin, end),
        cmocka_unit_test_setup_teardown(rows_of_one_thread_lead_to_its_newest, begin, end),
        cmocka_unit_test_setup_teardown(a_time_range_takes_its_samples_only, begin, end),
        cmocka_unit_test_setup_teardown(single_samples_come_in_the_order_of_time, begin, end),
        cmocka_unit_test_setup_teardown(a_filter_keeps_threads_processes_and_images_by_name, begin,
                                        end),
        cmocka_unit_test_setup_teardown(focus_cuts_stacks_to_begin_at_the_function, begin, end),
        cmocka_unit_test_setup_teardown(what_cannot_be_a_profile_is_refused_with_the_reason, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_forged_recording_is_damage_and_takes_no_memory, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
