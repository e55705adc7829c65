/* Promises of model/sink_memory.h and model/interned.h. */
#include "unit.h"

#include "fixture.h"
#include "model/sink_memory.h"

#include <errno.h>
#include <stdlib.h>

static void what_is_given_lies_in_the_vectors(void **state)
{
    (void)state;
    AUTO(sink_memory_deinit) struct sink_memory memory = SINK_MEMORY_INIT;
    struct fixture fixture;
    assert_int_equal(fixture_begin(&memory.sink, &fixture), 0);
    assert_int_equal(fixture_samples(&memory.sink, &fixture, 500), 0);
    assert_int_equal(fixture_samples(&memory.sink, &fixture, 500), 0);
    assert_int_equal(memory.samples.len, 1000);
    for (size_t i = 0; i < 1000; i++) {
        struct sample sample = fixture_sample(&fixture, i);
        assert_memory_equal(&memory.samples.data[i].time_ns, &sample.time_ns, 16);
        assert_int_equal(memory.samples.data[i].stack, sample.stack);
    }
    assert_int_equal(sink_memory_counter(&memory, "loss.ring_full")->value, 6);
    assert_null(sink_memory_counter(&memory, "nothing"));
    assert_int_equal(sink_memory_series(&memory, "rss"), fixture.rss);
    assert_int_equal(memory.documents.len, 1);
    assert_memory_equal(memory.documents.data[0].json.data, "{\"cpu\"", 6);
    assert_int_equal(memory.threads.data[1].end_ns, 9000000);
    assert_string_equal(memory.threads.data[2].info.name.data, "worker-2");
    assert_int_equal(memory.processes.data[0].wait_status, 0x8b06);
    assert_int_equal(memory.locations.len, 2);
}

static void a_location_given_again_replaces_the_first(void **state)
{
    (void)state;
    AUTO(sink_memory_deinit) struct sink_memory memory = SINK_MEMORY_INIT;
    uint32_t name, function, frame;
    assert_int_equal(sink_text(&memory.sink, STR("f"), &name), 0);
    assert_int_equal(sink_function(&memory.sink, &(struct function_info){.name = name}, &function),
                     0);
    struct frame_info info = {.kind = FRAME_NAMED, .name = name};
    assert_int_equal(sink_frame(&memory.sink, &info, &frame), 0);
    for (uint32_t line = 1; line <= 3; line++)
        assert_int_equal(
            sink_location(&memory.sink, &(struct location_info){frame, 0, function, 0, line}), 0);
    assert_int_equal(memory.locations.len, 1);
    assert_int_equal(memory.locations.data[0].line, 3);
}

static void equal_things_share_an_id_and_different_ones_do_not(void **state)
{
    (void)state;
    AUTO(sink_memory_deinit) struct sink_memory memory = SINK_MEMORY_INIT;
    struct sink *sink = &memory.sink;
    uint32_t a, b, c;
    struct image_info image = {.path = STR("/x"), .build_id = STR("aa"), .size_bytes = 1};
    assert_int_equal(sink_image(sink, &image, &a), 0);
    assert_int_equal(sink_image(sink, &image, &b), 0);
    image.build_id = STR("ab"); /* rebuilt while we looked */
    assert_int_equal(sink_image(sink, &image, &c), 0);
    assert_true(a == b && b != c);
    assert_int_equal(memory.images.len, 2);
    struct frame_info frame = {.image = a, .address = UINT64_MAX};
    assert_int_equal(sink_frame(sink, &frame, &a), 0);
    assert_int_equal(sink_frame(sink, &frame, &b), 0);
    frame.reason = 1;
    assert_int_equal(sink_frame(sink, &frame, &c), 0);
    assert_true(a == b && b != c);
    uint32_t root, leaf;
    assert_int_equal(sink_stack(sink, 0, a, &root), 0);
    assert_int_equal(sink_stack(sink, root, a, &leaf), 0);
    assert_true(root == 1 && leaf == 2);
    assert_int_equal(sink_stack(sink, 0, a, &b), 0);
    assert_int_equal(b, root);
}

static void a_full_sink_counts_what_it_drops(void **state)
{
    (void)state;
    AUTO(sink_memory_deinit) struct sink_memory memory = SINK_MEMORY_INIT;
    memory.samples_max = 10;
    struct fixture fixture;
    assert_int_equal(fixture_begin(&memory.sink, &fixture), 0);
    struct sample sample = fixture_sample(&fixture, 1);
    for (int i = 0; i < 15; i++)
        assert_int_equal(sink_sample(&memory.sink, &sample), i < 10 ? 0 : -ENOSPC);
    assert_int_equal(memory.samples.len, 10);
    assert_int_equal(memory.dropped, 5);
    uint32_t id = 7;
    assert_int_equal(sink_text(&memory.sink, STR("late"), &id), -ENOSPC);
    assert_int_equal(id, 7);
}

static void ids_never_given_out_are_refused(void **state)
{
    (void)state;
    AUTO(sink_memory_deinit) struct sink_memory memory = SINK_MEMORY_INIT;
    struct sink *sink = &memory.sink;
    uint32_t id = 7;
    assert_int_equal(sink_stack(sink, 0, 1, &id), -EINVAL);
    assert_int_equal(sink_frame(sink, &(struct frame_info){.name = 1}, &id), -EINVAL);
    assert_int_equal(sink_sample(sink, &(struct sample){.series = 1}), -EINVAL);
    assert_int_equal(sink_source_line(sink, 1, 1, STR("x")), -EINVAL);
    assert_int_equal(sink_process_end(sink, 1, 1, 0), -EINVAL);
    assert_int_equal(sink_process_program(sink, 1, STR("x"), STR("x")), -EINVAL);
    assert_int_equal(id, 7);
    assert_int_equal(memory.error, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_given_lies_in_the_vectors),
        cmocka_unit_test(a_location_given_again_replaces_the_first),
        cmocka_unit_test(equal_things_share_an_id_and_different_ones_do_not),
        cmocka_unit_test(a_full_sink_counts_what_it_drops),
        cmocka_unit_test(ids_never_given_out_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
