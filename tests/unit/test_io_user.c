/* What the user tier of calls makes of the table of objects that it shares with the target. */
#include "unit.h"

#include "base/clock.h"
#include "collect/io_user_parts.h"
#include "model/sink_memory.h"
#include "target/preload.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct shared {
    struct sink_memory memory;
    struct collector c;
};

static int shared_start(void **state)
{
    struct shared *shared = calloc(1, sizeof(*shared));
    struct stacks_opts opts = {.live = true, .machine = unwind_machine_here()};
    struct why why = {0};
    shared->memory = SINK_MEMORY_INIT;
    struct collector *c = &shared->c;
    c->sink = &shared->memory.sink;
    assert_int_equal(preload_open(&c->preload, &why), 0);
    assert_int_equal(stacks_open(&opts, c->sink, &c->stacks, &why), 0);
    assert_int_equal(stacks_attach(c->stacks, getpid(), clock_mono_ns(), &why), 0);
    assert_int_equal(objects_open(c->sink, &c->objects), 0);
    *state = shared;
    return 0;
}

static int shared_end(void **state)
{
    struct shared *shared = *state;
    struct collector *c = &shared->c;
    io_user_objects_deinit(c);
    objects_close(c->objects);
    stacks_close(c->stacks);
    preload_close(c->preload);
    sink_memory_deinit(&shared->memory);
    free(shared);
    return 0;
}

/* So many paths, as the hooks tell them. */
static struct preload_io_objects *paths_tell(struct collector *c, uint64_t count)
{
    struct preload_io_objects *objects = preload_io_objects(c->preload);
    for (uint64_t number = 1; number <= count; number++) {
        struct preload_object *object = &objects->at[number % PRELOAD_OBJECTS];
        object->pid = (uint32_t)getpid();
        object->fd = -1;
        object->origin = PRELOAD_PATH;
        object->hash = number;
        object->text_bytes = (uint16_t)snprintf(object->text, sizeof(object->text), "/path/%llu",
                                                (unsigned long long)number);
        object->number = number;
    }
    objects->head = count;
    return objects;
}

static void objects_of_calls_make_room_for_others_at_once(void **state)
{
    struct collector *c = &((struct shared *)*state)->c;
    enum { PATHS = 5000 };
    struct preload_io_objects *objects = paths_tell(c, PATHS);
    struct preload_place place = {.pid = (uint32_t)getpid()};
    /* Calls come after what they are about, and are read faster. */
    for (uint64_t number = 1; number <= PATHS; number++) {
        uint32_t object = 0;
        assert_int_equal(io_user_object(c, &place, number << PRELOAD_FD_BITS, &object), 0);
        assert_int_not_equal(object, 0);
    }
    assert_int_equal(objects->tail, 0);
    assert_int_equal(io_user_objects_take(c), 0);
    assert_int_equal(objects->tail, PATHS);
}

static void others_are_looked_at_a_few_at_a_time(void **state)
{
    struct collector *c = &((struct shared *)*state)->c;
    struct preload_io_objects *objects = paths_tell(c, 5000);
    assert_int_equal(io_user_objects_take(c), 0);
    assert_in_range(objects->tail, 1, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(objects_of_calls_make_room_for_others_at_once, shared_start,
                                        shared_end),
        cmocka_unit_test_setup_teardown(others_are_looked_at_a_few_at_a_time, shared_start,
                                        shared_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
