/* Promises of collect/heap_count.c and collect/heap_live.c: figures of a process from its
 * allocations and frees, in order. */
#include "unit.h"

#include "base/str.h"
#include "collect/heap_count.h"
#include "model/sink_memory.h"

#include <errno.h>
#include <string.h>

struct fixture {
    struct sink_memory memory;
    struct heap_count count;
    struct heap_count_thread one, two;
    uint32_t stacks[3]; /* of the sink */
    uint64_t now_ns;
};

static uint32_t stack_make(struct sink *sink, uint32_t parent, const char *name)
{
    struct frame_info frame = {.kind = FRAME_NAMED};
    uint32_t id, stack;
    assert_int_equal(sink_text(sink, str_from(name), &frame.name), 0);
    assert_int_equal(sink_frame(sink, &frame, &id), 0);
    assert_int_equal(sink_stack(sink, parent, id, &stack), 0);
    return stack;
}

static void thread_make(struct fixture *f, uint32_t process, uint32_t tid,
                        struct heap_count_thread *ret)
{
    struct thread_info info = {.process = process, .tid = tid, .name = STR("t")};
    assert_int_equal(sink_thread(&f->memory.sink, &info, &ret->thread), 0);
    ret->number = tid;
}

static void setup(struct fixture *f)
{
    struct process_info process = {.pid = 1, .exe = STR("x"), .command = STR("x")};
    *f = (struct fixture){.memory = SINK_MEMORY_INIT, .now_ns = 1000};
    heap_count_init(&f->count, 0);
    assert_int_equal(sink_process(&f->memory.sink, &process, &f->count.process), 0);
    thread_make(f, f->count.process, 1, &f->one);
    thread_make(f, f->count.process, 2, &f->two);
    f->stacks[0] = stack_make(&f->memory.sink, 0, "a");
    f->stacks[1] = stack_make(&f->memory.sink, 0, "b");
    f->stacks[2] = stack_make(&f->memory.sink, 0, "c");
}

static void teardown(struct fixture *f)
{
    heap_count_deinit(&f->count);
    sink_memory_deinit(&f->memory);
}

static struct heap_count_event event(struct fixture *f, struct heap_count_thread *thread,
                                     uint64_t address, uint64_t size, unsigned stack)
{
    f->now_ns += 1000;
    return (struct heap_count_event){
        .thread = thread,
        .time_ns = f->now_ns,
        .address = address,
        .size = size,
        .stack = f->stacks[stack],
    };
}

static void allocate(struct fixture *f, struct heap_count_thread *thread, uint64_t address,
                     uint64_t size, unsigned stack)
{
    struct heap_count_event made = event(f, thread, address, size, stack);
    assert_int_equal(heap_count_allocated(&f->count, &made), 0);
}

static void give_back(struct fixture *f, struct heap_count_thread *thread, uint64_t address)
{
    struct heap_live_entry entry;
    struct heap_count_event freed = event(f, thread, address, 0, 0);
    assert_int_equal(heap_count_freed(&f->count, &freed, &entry), 0);
}

static void reallocate(struct fixture *f, uint64_t before, uint64_t address, uint64_t size,
                       unsigned stack)
{
    struct heap_live_entry old = heap_count_take(&f->count, before);
    struct heap_count_event made = event(f, &f->one, address, size, stack);
    assert_int_equal(heap_count_reallocated(&f->count, before, &old, &made), 0);
}

/* As it is in the sink. */
static struct heap_tally tally_of(struct fixture *f, const struct heap_count_thread *thread,
                                  unsigned stack)
{
    assert_int_equal(heap_count_put(&f->count, &f->memory.sink, true), 0);
    const struct heap_book *book = &f->memory.heap;
    for (size_t i = 0; i < book->sites.len; i++)
        if (book->sites.data[i].info.thread == thread->thread &&
            book->sites.data[i].info.stack == f->stacks[stack])
            return book->sites.data[i].tally;
    return (struct heap_tally){0};
}

static void test_frees_count_where_it_was_allocated_in_the_thread_that_frees(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    allocate(&f, &f.one, 0x1000, 100, 0);
    allocate(&f, &f.one, 0x2000, 50, 1);
    give_back(&f, &f.two, 0x1000);
    give_back(&f, &f.one, 0x2000);
    struct heap_tally first = tally_of(&f, &f.one, 0), second = tally_of(&f, &f.two, 0);
    assert_int_equal(first.allocations, 1);
    assert_int_equal(first.frees, 0);
    assert_int_equal(second.allocations, 0);
    assert_int_equal(second.frees, 1);
    assert_int_equal(second.freed_bytes, 100);
    assert_int_equal(second.lived_ns, 2000);
    assert_int_equal(second.temporary, 0); /* another thread's */
    assert_int_equal(tally_of(&f, &f.one, 1).temporary, 1);
    teardown(&f);
}

static void test_the_peak_is_what_lived_then_of_each_site(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    allocate(&f, &f.one, 0x1000, 100, 0);
    allocate(&f, &f.one, 0x2000, 200, 1);
    give_back(&f, &f.one, 0x1000); /* 300 were the peak */
    allocate(&f, &f.one, 0x3000, 60, 2);
    give_back(&f, &f.one, 0x2000);
    assert_int_equal(f.count.tally.peak_bytes, 300);
    assert_int_equal(f.count.tally.peak_count, 2);
    assert_int_equal(tally_of(&f, &f.one, 0).peak_bytes, 100);
    assert_int_equal(tally_of(&f, &f.one, 1).peak_bytes, 200);
    assert_int_equal(tally_of(&f, &f.one, 2).peak_bytes, 0);
    allocate(&f, &f.one, 0x4000, 240, 0); /* as high as it was: no new one */
    assert_int_equal(tally_of(&f, &f.one, 2).peak_bytes, 0);
    allocate(&f, &f.one, 0x5000, 1, 2);
    assert_int_equal(f.count.tally.peak_bytes, 301);
    assert_int_equal(tally_of(&f, &f.one, 0).peak_bytes, 240);
    assert_int_equal(tally_of(&f, &f.one, 1).peak_bytes, 0);
    assert_int_equal(tally_of(&f, &f.one, 2).peak_bytes, 61);
    teardown(&f);
}

static void test_realloc_is_a_free_and_an_allocation(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    allocate(&f, &f.one, 0x1000, 10, 0);
    reallocate(&f, 0x1000, 0x1000, 20, 1);
    reallocate(&f, 0x1000, 0x2000, 40, 1);
    reallocate(&f, 0x2000, 0x2000, 30, 2); /* smaller */
    struct heap_tally grown = tally_of(&f, &f.one, 1);
    assert_int_equal(grown.allocations, 2);
    assert_int_equal(grown.frees, 2);
    assert_int_equal(grown.grown, 2);
    assert_int_equal(grown.grown_bytes, 30);
    assert_int_equal(grown.moved, 1);
    assert_int_equal(grown.chain_max, 2);
    assert_int_equal(tally_of(&f, &f.one, 2).grown, 0);
    assert_int_equal(f.count.live_bytes, 30);
    reallocate(&f, 0x2000, 0, 0, 2); /* to nothing */
    assert_int_equal(f.count.live_bytes, 0);
    teardown(&f);
}

static void test_a_realloc_that_fails_leaves_all_as_it_was(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    allocate(&f, &f.one, 0x1000, 10, 0);
    struct heap_live_entry old = heap_count_take(&f.count, 0x1000);
    assert_int_equal(heap_count_put_back(&f.count, &old), 0);
    assert_int_equal(f.count.tally.failed, 1);
    assert_int_equal(tally_of(&f, &f.one, 0).frees, 0);
    give_back(&f, &f.one, 0x1000);
    assert_int_equal(f.count.tally.unseen_frees, 0);
    assert_int_equal(f.count.live_bytes, 0);
    teardown(&f);
}

static void test_what_nobody_saw_allocated_is_unseen(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    give_back(&f, &f.one, 0x7000);
    reallocate(&f, 0x8000, 0x9000, 10, 0);
    assert_int_equal(f.count.tally.unseen_frees, 2);
    assert_int_equal(tally_of(&f, &f.one, 0).allocations, 1);
    assert_int_equal(tally_of(&f, &f.one, 0).grown, 0);
    teardown(&f);
}

static void test_what_is_freed_again_was_not_unseen(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    allocate(&f, &f.one, 0x1000, 10, 0);
    give_back(&f, &f.one, 0x1000);
    give_back(&f, &f.two, 0x1000);
    assert_int_equal(f.count.again, 1);
    assert_int_equal(f.count.tally.unseen_frees, 0);
    assert_int_equal(f.count.live_count, 0);
    teardown(&f);
}

static void test_memory_that_is_given_again_was_freed(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    allocate(&f, &f.one, 0x1000, 10, 0);
    allocate(&f, &f.two, 0x1000, 20, 1);
    assert_int_equal(f.count.missed, 1);
    assert_int_equal(f.count.live_bytes, 20);
    assert_int_equal(tally_of(&f, &f.one, 0).frees, 1);
    assert_int_equal(tally_of(&f, &f.one, 0).temporary, 0);
    teardown(&f);
}

static void test_a_child_inherits_what_lived_and_counts_it_apart(void **state)
{
    (void)state;
    struct fixture f;
    struct heap_count child, grandchild;
    struct heap_live_entry entry;
    setup(&f);
    allocate(&f, &f.one, 0x1000, 10, 0);
    allocate(&f, &f.one, 0x2000, 20, 0);
    heap_count_init(&child, 1);
    heap_count_init(&grandchild, 1);
    assert_int_equal(heap_count_forked(&f.count, &child), 0);
    give_back(&f, &f.one, 0x1000); /* the parent's, not the child's */
    struct heap_count_event freed = event(&f, &f.two, 0x1000, 0, 0);
    assert_int_equal(heap_count_freed(&child, &freed, &entry), 0);
    assert_int_equal(heap_count_forked(&child, &grandchild), 0);
    assert_int_equal(heap_count_freed(&child, &freed, &entry), 0); /* twice is once too often */
    assert_int_equal(child.tally.inherited_frees, 1);
    assert_int_equal(child.tally.inherited_bytes, 10);
    assert_int_equal(child.tally.unseen_frees, 1);
    freed.address = 0x2000;
    assert_int_equal(heap_count_freed(&grandchild, &freed, &entry), 0);
    freed.address = 0x1000;
    assert_int_equal(heap_count_freed(&grandchild, &freed, &entry), 0);
    assert_int_equal(grandchild.tally.inherited_bytes, 20);
    assert_int_equal(grandchild.tally.unseen_frees, 1);
    assert_int_equal(child.tally.peak_bytes, 0);
    heap_count_deinit(&grandchild);
    heap_count_deinit(&child);
    teardown(&f);
}

static void test_a_snapshot_is_what_lives_by_stack(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    allocate(&f, &f.one, 0x1000, 10, 0);
    allocate(&f, &f.two, 0x2000, 20, 0);
    allocate(&f, &f.two, 0x3000, 30, 1);
    give_back(&f, &f.one, 0x3000);
    assert_int_equal(heap_count_snapshot(&f.count, &f.memory.sink, f.now_ns, HEAP_SNAPSHOT_TIMER),
                     0);
    assert_int_equal(f.memory.heap_snapshots.len, 1);
    assert_int_equal(f.memory.heap_snapshot_rows.len, 1);
    assert_int_equal(f.memory.heap_snapshot_rows.data[0].count, 2);
    assert_int_equal(f.memory.heap_snapshot_rows.data[0].bytes, 30);
    teardown(&f);
}

/* Beside a plain table: entries that stand behind one that goes are found still. */
static void test_the_table_keeps_what_is_there_and_nothing_else(void **state)
{
    (void)state;
    enum { PLACES = 4096, STEPS = 200000 };
    static bool there[PLACES];
    struct heap_live live = {0};
    uint64_t random = 1;
    size_t count = 0;
    memset(there, 0, sizeof(there));
    for (int i = 0; i < STEPS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        size_t place = (size_t)(random >> 40) % PLACES;
        struct heap_live_entry entry = {.address = (place + 1) * 16, .size = place}, taken;
        if (there[place]) {
            assert_true(heap_live_take(&live, entry.address, &taken));
            assert_int_equal(taken.size, place);
            count--;
        } else {
            assert_false(heap_live_take(&live, entry.address, &taken));
            assert_int_equal(heap_live_put(&live, &entry), 0);
            count++;
        }
        there[place] = !there[place];
        assert_int_equal(live.len, count);
    }
    for (size_t i = 0; i < PLACES; i++)
        assert_int_equal(heap_live_find(&live, (i + 1) * 16) != NULL, there[i]);
    heap_live_deinit(&live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frees_count_where_it_was_allocated_in_the_thread_that_frees),
        cmocka_unit_test(test_the_peak_is_what_lived_then_of_each_site),
        cmocka_unit_test(test_realloc_is_a_free_and_an_allocation),
        cmocka_unit_test(test_a_realloc_that_fails_leaves_all_as_it_was),
        cmocka_unit_test(test_what_nobody_saw_allocated_is_unseen),
        cmocka_unit_test(test_what_is_freed_again_was_not_unseen),
        cmocka_unit_test(test_memory_that_is_given_again_was_freed),
        cmocka_unit_test(test_a_child_inherits_what_lived_and_counts_it_apart),
        cmocka_unit_test(test_a_snapshot_is_what_lives_by_stack),
        cmocka_unit_test(test_the_table_keeps_what_is_there_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
