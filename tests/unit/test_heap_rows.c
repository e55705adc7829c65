/* Promises of model/heap_book.h: what is alike is one row, the last tally stays, moments are
 * thinned without making any up, bounds hold, and what is no figure is refused. */
#include "unit.h"

#include "model/heap_book.h"
#include "model/sink_memory.h"

#include <errno.h>
#include <math.h>

static void sites_with_the_same_fields_are_one(void **state)
{
    (void)state;
    AUTO(heap_book_deinit) struct heap_book book = {0};
    const struct heap_site_info infos[] = {
        {1, 2, HEAP_KIND_HEAP}, {9, 2, HEAP_KIND_HEAP},  {1, 9, HEAP_KIND_HEAP},
        {1, 2, HEAP_KIND_MAP},  {1, 2, HEAP_KIND_UNMAP}, {UINT32_MAX, UINT32_MAX, HEAP_KIND_HEAP},
    };
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < ARRAY_SIZE(infos); i++) {
            uint32_t id = 0;
            assert_int_equal(heap_book_site(&book, &infos[i], &id), 0);
            assert_int_equal(id, i + 1);
        }
    }
    assert_int_equal(book.sites.len, ARRAY_SIZE(infos));
    uint32_t id = 99;
    assert_int_equal(heap_book_site(&book, &(struct heap_site_info){1, 2, HEAP_KINDS}, &id),
                     -EINVAL);
    assert_int_equal(id, 99);
}

static void the_last_tally_stays_and_the_same_again_is_no_change(void **state)
{
    (void)state;
    AUTO(heap_book_deinit) struct heap_book book = {0};
    struct heap_site_info info = {1, 2, HEAP_KIND_HEAP};
    struct heap_tally tally = {.allocations = 5, .peak_bytes = INT64_MIN};
    uint32_t id;
    bool changed = false;
    assert_int_equal(heap_book_site(&book, &info, &id), 0);
    assert_int_equal(heap_book_site_set(&book, id, &tally, &changed), 0);
    assert_true(changed);
    assert_int_equal(heap_book_site_set(&book, id, &tally, &changed), 0);
    assert_false(changed);
    tally.allocations = 3;
    assert_int_equal(heap_book_site_set(&book, id, &tally, &changed), 0);
    assert_true(changed && book.sites.data[0].tally.allocations == 3);
    struct heap_process_tally process = {.peak_bytes = 7};
    size_t at = 9;
    assert_int_equal(heap_book_process_set(&book, 4, &process, &at), 0);
    assert_true(at == 0 && book.processes.data[0].tally_dirty);
    book.processes.data[0].tally_dirty = false;
    assert_int_equal(heap_book_process_set(&book, 4, &process, &at), 0);
    assert_false(book.processes.data[0].tally_dirty);
}

static void what_is_no_figure_is_refused(void **state)
{
    (void)state;
    AUTO(heap_book_deinit) struct heap_book book = {0};
    struct heap_site_info info = {1, 2, HEAP_KIND_HEAP};
    const double bad[] = {NAN, INFINITY, -INFINITY, -1};
    uint32_t id;
    bool changed;
    size_t at;
    assert_int_equal(heap_book_site(&book, &info, &id), 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct heap_tally tally = {.allocations = 1, .variance = bad[i]};
        assert_int_equal(heap_book_site_set(&book, id, &tally, &changed), -EINVAL);
    }
    assert_int_equal(book.sites.data[0].tally.allocations, 0);
    struct heap_tally good = {0};
    assert_int_equal(heap_book_site_set(&book, 0, &good, &changed), -EINVAL);
    assert_int_equal(heap_book_site_set(&book, 2, &good, &changed), -EINVAL);
    assert_int_equal(heap_book_process_set(&book, 0, &(struct heap_process_tally){0}, &at),
                     -EINVAL);
    assert_int_equal(heap_book_moment(&book, &(struct heap_moment){0, 1, 1, 1}, &at), -EINVAL);
    assert_int_equal(
        heap_book_moment(&book, &(struct heap_moment){1, UINT64_C(1) << 63, 1, 1}, &at), -EINVAL);
    assert_false(heap_snapshot_is_good(&(struct heap_snapshot_info){1, 5, HEAP_SNAPSHOT_WHYS}));
    assert_false(heap_snapshot_is_good(&(struct heap_snapshot_info){0, 5, HEAP_SNAPSHOT_TIMER}));
    assert_true(heap_snapshot_is_good(&(struct heap_snapshot_info){1, 5, HEAP_SNAPSHOT_TIMER}));
    assert_false(heap_event_is_good(&(struct heap_event){1, 1, (enum heap_event_kind)2, 0, 0, 0}));
    assert_false(heap_event_is_good(&(struct heap_event){0, 1, HEAP_EVENT_FREED, 0, 0, 0}));
}

/* A peak of one moment among a million is there in the end, at its time, with its RSS. */
static void moments_become_fewer_and_the_highest_stays(void **state)
{
    (void)state;
    AUTO(heap_book_deinit) struct heap_book book = {0};
    enum { TOLD = 1000000, PEAK = 777777 };
    size_t at = 0;
    for (uint64_t i = 1; i <= TOLD; i++) {
        struct heap_moment moment = {3, i * 10, i == PEAK ? 999 : i % 7, i * 2};
        assert_int_equal(heap_book_moment(&book, &moment, &at), 0);
    }
    const struct heap_process_book *row = &book.processes.data[at];
    size_t len = row->moments.len;
    assert_true(len > HEAP_BOOK_PROCESS_MOMENTS / 2 - 1 && len <= HEAP_BOOK_PROCESS_MOMENTS);
    assert_true(book.moments == len && row->merged == 64);
    bool peak = false;
    for (size_t i = 0; i < len; i++) {
        const struct heap_moment *moment = &row->moments.data[i];
        uint64_t told = moment->time_ns / 10;
        assert_true(moment->live_bytes == (told == PEAK ? 999 : told % 7));
        assert_int_equal(moment->rss_bytes, told * 2);
        assert_true(i == 0 || moment[-1].time_ns < moment->time_ns);
        peak = peak || told == PEAK;
    }
    assert_true(peak);
    /* Even shares: no stretch of time is told better than another. */
    for (size_t i = 1; i < len; i++)
        assert_true(row->moments.data[i].time_ns - row->moments.data[i - 1].time_ns < 128 * 10);
}

static void a_moment_that_comes_late_is_merged_with_the_last(void **state)
{
    (void)state;
    AUTO(heap_book_deinit) struct heap_book book = {0};
    const struct heap_moment moments[] = {{1, 10, 5, 1}, {2, 4, 1, 1}, {1, 9, 8, 2}, {1, 10, 3, 3}};
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_SIZE(moments); i++)
        assert_int_equal(heap_book_moment(&book, &moments[i], &at), 0);
    const struct heap_process_book *row = &book.processes.data[0];
    assert_true(row->moments.len == 1 && book.processes.len == 2);
    assert_true(row->moments.data[0].time_ns == 10 && row->moments.data[0].live_bytes == 8);
}

static void moments_of_many_processes_have_a_bound(void **state)
{
    (void)state;
    AUTO(heap_book_deinit) struct heap_book book = {.moments = HEAP_BOOK_MOMENTS_MAX - 1};
    size_t at = 9;
    assert_int_equal(heap_book_moment(&book, &(struct heap_moment){1, 1, 1, 1}, &at), 0);
    assert_int_equal(heap_book_moment(&book, &(struct heap_moment){2, 1, 1, 1}, &at), -E2BIG);
    assert_int_equal(heap_book_moment(&book, &(struct heap_moment){1, 2, 1, 1}, &at), -E2BIG);
    assert_int_equal(at, 0);
}

static void a_sink_refuses_what_was_never_given_out(void **state)
{
    (void)state;
    AUTO(sink_memory_deinit) struct sink_memory memory = SINK_MEMORY_INIT;
    struct sink *sink = &memory.sink;
    uint32_t process, thread, id = 99;
    assert_int_equal(sink_process(sink, &(struct process_info){.pid = 1}, &process), 0);
    assert_int_equal(sink_thread(sink, &(struct thread_info){.process = 1, .tid = 1}, &thread), 0);
    const struct heap_site_info sites[] = {
        {0, 0, HEAP_KIND_HEAP}, {2, 0, HEAP_KIND_HEAP}, {1, 1, HEAP_KIND_HEAP}, {1, 0, HEAP_KINDS}};
    for (size_t i = 0; i < ARRAY_SIZE(sites); i++)
        assert_int_equal(sink_heap_site(sink, &sites[i], &id), -EINVAL);
    assert_int_equal(sink_heap_process_set(sink, 2, &(struct heap_process_tally){0}), -EINVAL);
    assert_int_equal(sink_heap_process_set(sink, 0, &(struct heap_process_tally){0}), -EINVAL);
    assert_int_equal(sink_heap_snapshot(sink, &(struct heap_snapshot_info){2, 0, 0}, &id), -EINVAL);
    assert_int_equal(sink_heap_snapshot_row(sink, &(struct heap_snapshot_row){1, 0, 1, 1}),
                     -EINVAL);
    assert_int_equal(sink_heap_moment(sink, &(struct heap_moment){2, 1, 1, 1}), -EINVAL);
    assert_int_equal(sink_heap_event(sink, &(struct heap_event){.thread = 2}), -EINVAL);
    assert_int_equal(sink_heap_event(sink, &(struct heap_event){.thread = 1, .stack = 1}), -EINVAL);
    assert_int_equal(id, 99);
    assert_int_equal(memory.error, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sites_with_the_same_fields_are_one),
        cmocka_unit_test(the_last_tally_stays_and_the_same_again_is_no_change),
        cmocka_unit_test(what_is_no_figure_is_refused),
        cmocka_unit_test(moments_become_fewer_and_the_highest_stays),
        cmocka_unit_test(a_moment_that_comes_late_is_merged_with_the_last),
        cmocka_unit_test(moments_of_many_processes_have_a_bound),
        cmocka_unit_test(a_sink_refuses_what_was_never_given_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
