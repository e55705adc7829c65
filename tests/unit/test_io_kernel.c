/* What the kernel tier of calls makes of what its program tells, hostile bytes included. */
#include "bpf_ring_fake.h"
#include "unit.h"

#include "base/clock.h"
#include "collect/io_kernel_parts.h"
#include "model/sink_memory.h"

#include <sys/syscall.h>

enum { RING_BYTES = 1 << 20 };

struct taken {
    struct sink_memory memory;
    struct fake_ring ring;
    struct collector c;
};

static int taken_start(void **state)
{
    struct taken *taken = calloc(1, sizeof(*taken));
    struct stacks_opts opts = {.live = true, .machine = unwind_machine_here()};
    struct told_stacks_fds fds = {-1, -1, -1};
    struct why why = {0};
    taken->memory = SINK_MEMORY_INIT;
    fake_ring_init(&taken->ring, RING_BYTES);
    struct collector *c = &taken->c;
    c->sink = &taken->memory.sink;
    assert_int_equal(stacks_open(&opts, c->sink, &c->stacks, &why), 0);
    assert_int_equal(stacks_attach(c->stacks, getpid(), clock_mono_ns(), &why), 0);
    c->threads.stacks = c->stacks;
    assert_int_equal(told_stacks_init(&c->told, &fds, c->stacks, &c->threads), 0);
    assert_int_equal(objects_open(c->sink, &c->objects), 0);
    assert_int_equal(files_look_open(&c->look), 0);
    struct series_info info = {.name = "io", .unit = UNIT_NS, .about = "time in calls"};
    assert_int_equal(sink_series(c->sink, &info, &c->series), 0);
    *state = taken;
    return 0;
}

static int taken_end(void **state)
{
    struct taken *taken = *state;
    struct collector *c = &taken->c;
    told_stacks_deinit(&c->told);
    told_threads_deinit(&c->threads);
    objects_close(c->objects);
    files_look_close(c->look);
    intern_deinit(&c->mapped);
    stacks_close(c->stacks);
    fake_ring_deinit(&taken->ring);
    sink_memory_deinit(&taken->memory);
    free(taken);
    return 0;
}

static void put(struct taken *taken, const void *record, size_t len)
{
    assert_true(fake_ring_put(&taken->ring, record, len, 0));
}

static void take(struct taken *taken)
{
    taken->c.ring = taken->ring.ring;
    assert_int_equal(io_records_take(&taken->c, clock_mono_ns()), 0);
    taken->ring.ring = taken->c.ring;
}

static struct io_cell cell_make(int call, uint64_t count)
{
    uint64_t now_ns = clock_mono_ns();
    struct io_cell cell = {
        .head = {.record = IO_ROW, .time_ns = now_ns - 1000},
        .key = {.tid = (uint32_t)gettid(), .tgid = (uint32_t)getpid(), .call = (int16_t)call},
        .tally = {.count = count,
                  .total_ns = 10 * count,
                  .max_ns = 20,
                  .first_ns = now_ns - 5000,
                  .last_ns = now_ns - 2000,
                  .bytes = 7 * count},
    };
    cell.tally.buckets[0] = (uint32_t)count;
    cell.tally.sizes[3] = (uint32_t)count;
    return cell;
}

static struct io_path path_make(const char *path, uint64_t key)
{
    struct io_path made = {
        .head = {.record = IO_PATH},
        .id = {.ino = key, .kind = OBJECT_ID_PATH},
        .bytes = (uint32_t)strlen(path) + 1,
    };
    memcpy(made.path, path, made.bytes);
    return made;
}

static struct str path_name(struct taken *taken, uint64_t key)
{
    struct object_id id = {.ino = key, .kind = OBJECT_ID_PATH};
    uint32_t object = 0;
    assert_int_equal(objects_find(taken->c.objects, &id, &object), 0);
    return taken->memory.book.objects.data[object - 1].info.name;
}

static void sizes_and_latencies_go_where_the_model_puts_them(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 64; shift++)
        for (uint64_t add = 0; add < 3; add++) {
            uint64_t value = (UINT64_C(1) << shift) - 1 + add;
            assert_int_equal(io_size(value), call_size(value));
            assert_int_equal(offcpu_bucket(value), wait_bucket(value));
        }
}

static uint32_t copies_of(struct io_thread *thread, uint64_t place, bool is_roomy, uint32_t calls)
{
    uint32_t allowed = 0;
    for (uint32_t i = 0; i < calls; i++)
        allowed += io_copy_allowed(thread, place, is_roomy);
    return allowed;
}

static void a_burst_from_one_place_is_copied_as_long_as_there_is_room(void **state)
{
    (void)state;
    struct io_thread thread = {.round = 70};
    assert_int_equal(copies_of(&thread, 1, true, 5000), 5000);
    /* Where it gets full, one place leaves what is left to others. */
    assert_int_equal(copies_of(&thread, 1, false, 10), 0);
    assert_int_equal(copies_of(&thread, 2, false, 5000), IO_COPIES_A_PLACE);
    thread.round++;
    assert_int_equal(copies_of(&thread, 1, false, 5000), IO_COPIES_A_PLACE);
}

static void who_never_stops_surprising_us_is_copied_seldom(void **state)
{
    (void)state;
    struct io_thread thread = {.round = 70};
    assert_int_equal(copies_of(&thread, 1, true, 100000), IO_COPIES_MAX);
    for (int i = 0; i < 10; i++) {
        thread.round++;
        assert_int_equal(copies_of(&thread, 1, true, 100000), IO_COPIES_A_ROUND);
    }
    thread.round += 1000;
    assert_int_equal(copies_of(&thread, 1, true, 100000), IO_COPIES_MAX);
}

static void every_argument_of_the_table_is_one_a_call_has(void **state)
{
    static struct io_call calls[IO_CALLS_MAX];
    (void)state;
    io_calls_fill(calls);
    for (size_t i = 0; i < IO_CALLS_MAX; i++) {
        const struct io_call *call = &calls[i];
        assert_true(call->fd <= 6 && call->other <= 6 && call->asked <= 6 && call->place <= 6);
        assert_true(call->path <= 6 && call->folder <= 6 && call->flags <= 6);
        if (call->asked)
            assert_true(call->kind & IO_BYTES);
        if (call->kind & IO_OPENS)
            assert_int_equal(call->fd, 0);
        if (call->folder)
            assert_true(call->path);
    }
    assert_int_equal(calls[SYS_read].fd, 1);
    assert_int_equal(calls[SYS_read].asked, 3);
    assert_int_equal(calls[SYS_openat].path, 2);
    assert_int_equal(calls[SYS_openat].folder, 1);
    assert_true(calls[SYS_close].kind & IO_CLOSES_ONE);
    assert_int_equal(calls[SYS_getpid].kind, 0);
}

static void rows_that_came_through_the_ring_add_up(void **state)
{
    struct taken *taken = *state;
    struct io_cell first = cell_make(SYS_read, 5), second = cell_make(SYS_read, 3);
    put(taken, &first, sizeof(first));
    put(taken, &second, sizeof(second));
    take(taken);
    assert_int_equal(taken->memory.calls.calls.len, 1);
    const struct call_row *row = &taken->memory.calls.calls.data[0];
    assert_int_equal(row->info.syscall, SYS_read);
    assert_int_equal(row->tally.count, 8);
    assert_int_equal(row->tally.bytes, 56);
    assert_int_equal(row->tally.buckets[0], 8);
    assert_int_equal(row->tally.sizes[3], 8);
    assert_int_equal(taken->c.malformed, 0);
}

static void a_row_of_one_call_gets_its_buckets_back(void **state)
{
    struct taken *taken = *state;
    struct io_cell read = cell_make(SYS_read, 1), nothing = cell_make(SYS_write, 1);
    struct io_cell untimed = cell_make(CALL_NO_SYSCALL, 1);
    read.head.record = nothing.head.record = untimed.head.record = IO_ROW_ONE;
    read.tally.total_ns = 5000;
    nothing.tally.bytes = 0;
    nothing.head.tid = 1; /* it moved nothing, but could have */
    untimed.tally.total_ns = untimed.tally.bytes = 0;
    const size_t bytes = offsetof(struct io_cell, tally.buckets);
    put(taken, &read, bytes);
    put(taken, &nothing, bytes);
    put(taken, &untimed, bytes);
    take(taken);
    assert_int_equal(taken->memory.calls.calls.len, 3);
    const struct call_row *rows = taken->memory.calls.calls.data;
    assert_int_equal(rows[0].tally.buckets[wait_bucket(5000)], 1);
    assert_int_equal(rows[0].tally.sizes[call_size(7)], 1);
    assert_int_equal(rows[1].tally.buckets[0], 1);
    assert_int_equal(rows[1].tally.sizes[0], 1);
    assert_int_equal(rows[2].tally.buckets[0], 0);
    assert_int_equal(rows[2].tally.sizes[0], 0);
}

static struct io_cell cell_about(uint64_t key, uint64_t stack, uint64_t count)
{
    struct io_cell cell = cell_make(SYS_unlink, count);
    cell.key.object = (struct object_id){.ino = key, .kind = OBJECT_ID_PATH};
    cell.key.stack = stack;
    return cell;
}

static void each_call_without_its_stack_or_name_counts_once_and_what_is_named_late_does_not(
    void **state)
{
    struct taken *taken = *state;
    struct io_path late = path_make("/late", 1);
    struct io_cell cells[] = {
        cell_about(1, 0, 5),                /* without a stack by nature; named below */
        cell_about(2, 0, 7),                /* never named */
        cell_about(3, IO_STACK_MISSED, 11), /* neither stack nor name */
        cell_about(1, 4711, 13),            /* a stack that nobody told of */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
        put(taken, &cells[i], sizeof(cells[i]));
    take(taken);
    assert_int_equal(taken->c.stackless, 11 + 13);
    assert_int_equal(objects_counts(taken->c.objects).nameless_calls, 5 + 7);
    put(taken, &late, offsetof(struct io_path, path) + late.bytes);
    take(taken);
    assert_int_equal(objects_counts(taken->c.objects).nameless_calls, 7);
    assert_int_equal(taken->c.told.stray, 1); /* what was missed is no ref */
}

static void a_row_of_later_waits_for_its_time(void **state)
{
    struct taken *taken = *state;
    struct io_cell cell = cell_make(SYS_write, 1);
    cell.head.time_ns = clock_mono_ns() + 3600 * NS_PER_SEC;
    put(taken, &cell, sizeof(cell));
    take(taken);
    assert_int_equal(taken->memory.calls.calls.len, 0);
    taken->c.ring = taken->ring.ring;
    assert_int_equal(io_records_take(&taken->c, UINT64_MAX), 0);
    taken->ring.ring = taken->c.ring;
    assert_int_equal(taken->memory.calls.calls.len, 1);
}

static void paths_are_called_as_they_were_said(void **state)
{
    struct taken *taken = *state;
    struct io_path whole = path_make("/etc/none", 1), part = path_make("sub/none", 2);
    struct io_path top = path_make("none", 3);
    part.relative = top.relative = 1;
    part.folder.type = top.folder.type = OBJECT_RECORD_TYPE;
    part.folder.id.kind = top.folder.id.kind = OBJECT_ID_DIRECTORY;
    part.folder.text_kind = top.folder.text_kind = OBJECT_TEXT_PATH;
    memcpy(part.folder.text, "inner\0home", 11);
    part.folder.text_bytes = 11;
    put(taken, &whole, offsetof(struct io_path, path) + whole.bytes); /* no more is told */
    put(taken, &part, offsetof(struct io_path, folder.text) + part.folder.text_bytes);
    put(taken, &top, sizeof(top));
    take(taken);
    assert_true(str_is(path_name(taken, 1), "/etc/none"));
    assert_true(str_is(path_name(taken, 2), "/home/inner/sub/none"));
    assert_true(str_is(path_name(taken, 3), "/none"));
}

static void records_that_make_no_sense_are_counted_and_passed_over(void **state)
{
    struct taken *taken = *state;
    struct io_cell cell = cell_make(SYS_read, 1);
    struct io_path none = path_make("x", 1), beyond = path_make("y", 2), open = path_make("z", 3);
    struct offcpu_head strange = {.record = 4711};
    struct io_cell one = cell_make(SYS_read, 1);
    one.head.record = IO_ROW_ONE;
    none.bytes = 0;
    beyond.bytes = IO_PATH_BYTES + 1;
    memset(open.path, 'a', sizeof(open.path)); /* no end */
    open.bytes = IO_PATH_BYTES;
    put(taken, &cell, sizeof(cell) - 8);
    put(taken, &cell, sizeof(cell.head) - 4);
    put(taken, &none, sizeof(none));
    put(taken, &beyond, sizeof(beyond));
    put(taken, &open, sizeof(open.head) + 8);
    put(taken, &open, offsetof(struct io_path, path) + open.bytes - 1);
    put(taken, &one, sizeof(one));
    put(taken, &strange, sizeof(strange));
    put(taken, &open, sizeof(open));
    put(taken, &cell, sizeof(cell));
    take(taken);
    assert_int_equal(taken->c.malformed, 8);
    assert_int_equal(taken->memory.calls.calls.len, 1);
    assert_int_equal(path_name(taken, 3).len, IO_PATH_BYTES - 1);
}

static void cells_are_taken_once_and_free_afterwards(void **state)
{
    struct taken *taken = *state;
    struct collector *c = &taken->c;
    static struct io_cell cells[2 * IO_CELLS_MIN];
    static uint64_t used[2 * IO_CELLS_MIN / 64];
    c->config.cpus = 1;
    c->config.cells = IO_CELLS_MIN;
    c->cells = cells;
    c->used = used;
    cells[5] = cell_make(SYS_read, 4);
    cells[63] = cell_make(SYS_write, 2);
    cells[IO_CELLS_MIN + 5] = cell_make(SYS_read, 100); /* of the other table */
    used[0] = UINT64_C(1) << 5 | UINT64_C(1) << 63;
    used[1] = UINT64_C(1) << 5;
    assert_int_equal(io_table_take(c, 0), 0);
    assert_int_equal(io_table_take(c, 0), 0);
    assert_int_equal(taken->memory.calls.calls.len, 2);
    assert_int_equal(taken->memory.calls.calls.data[0].tally.count, 4);
    assert_int_equal(taken->memory.calls.calls.data[1].tally.count, 2);
    assert_int_equal(used[0], 0);
    assert_int_equal(cells[5].tally.count, 0);
    assert_int_equal(cells[5].tally.buckets[0], 0);
    assert_int_equal(io_table_take(c, 1), 0);
    assert_int_equal(taken->memory.calls.calls.data[0].tally.count, 104);
}

static void a_table_is_quiet_when_nobody_adds_to_it(void **state)
{
    struct taken *taken = *state;
    struct collector *c = &taken->c;
    static struct io_cpu cpus[3];
    c->config.cpus = 3;
    c->cpus = cpus;
    c->round = 7;
    assert_true(io_table_is_quiet(c));
    cpus[1].busy = 7 + 2; /* in the round that goes on */
    assert_true(io_table_is_quiet(c));
    cpus[2].busy = 6 + 2;
    assert_false(io_table_is_quiet(c));
    cpus[2].busy = 1; /* cannot be told yet */
    assert_false(io_table_is_quiet(c));
    cpus[2].busy = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_latencies_go_where_the_model_puts_them),
        cmocka_unit_test(a_burst_from_one_place_is_copied_as_long_as_there_is_room),
        cmocka_unit_test(who_never_stops_surprising_us_is_copied_seldom),
        cmocka_unit_test(every_argument_of_the_table_is_one_a_call_has),
        cmocka_unit_test_setup_teardown(rows_that_came_through_the_ring_add_up, taken_start,
                                        taken_end),
        cmocka_unit_test_setup_teardown(a_row_of_one_call_gets_its_buckets_back, taken_start,
                                        taken_end),
        cmocka_unit_test_setup_teardown(
            each_call_without_its_stack_or_name_counts_once_and_what_is_named_late_does_not,
            taken_start, taken_end),
        cmocka_unit_test_setup_teardown(a_row_of_later_waits_for_its_time, taken_start, taken_end),
        cmocka_unit_test_setup_teardown(paths_are_called_as_they_were_said, taken_start, taken_end),
        cmocka_unit_test_setup_teardown(records_that_make_no_sense_are_counted_and_passed_over,
                                        taken_start, taken_end),
        cmocka_unit_test_setup_teardown(cells_are_taken_once_and_free_afterwards, taken_start,
                                        taken_end),
        cmocka_unit_test_setup_teardown(a_table_is_quiet_when_nobody_adds_to_it, taken_start,
                                        taken_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
