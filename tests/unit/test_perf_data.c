/* The reader of perf.data on files made by hand: what stands where is known to the byte. */
#include "unit.h"

#include "base/vec.h"
#include "collect/perf_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

enum { COMPRESSED = 81, FINISHED_ROUND = 68, HEADER_ATTR = 64, ATTR_BYTES = 136 };

static struct {
    uint8_t *data;
    size_t len, cap;
} file;

static void put(const void *bytes, size_t len)
{
    if (len == 0)
        return;
    assert_int_equal(VEC_RESERVE(&file, file.len + len), 0);
    memcpy(file.data + file.len, bytes, len);
    file.len += len;
}

static void put_u64(uint64_t value)
{
    put(&value, sizeof(value));
}

static void put_head(uint32_t type, uint16_t misc, size_t body)
{
    struct perf_event_header head = {type, misc, (uint16_t)(sizeof(head) + body)};
    put(&head, sizeof(head));
}

static void put_attr(uint64_t sample_type, const uint64_t *ids, size_t id_count)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = ATTR_BYTES,
                                   .sample_type = sample_type,
                                   .sample_period = 1000};
    attr.sample_id_all = 1;
    uint8_t bytes[ATTR_BYTES] = {0};
    memcpy(bytes, &attr, MIN(sizeof(attr), sizeof(bytes)));
    put_head(HEADER_ATTR, 0, ATTR_BYTES + 8 * id_count);
    put(bytes, sizeof(bytes));
    put(ids, 8 * id_count);
}

/* IP, TID, TIME */
enum { TYPE = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME };
static void put_sample(uint64_t time_ns, uint64_t ip)
{
    put_head(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 24);
    put_u64(ip);
    put_u64(7ull << 32 | 6);
    put_u64(time_ns);
}

static void put_round(void)
{
    put_head(FINISHED_ROUND, 0, 0);
}

struct seen {
    uint64_t times[64];
    uint64_t ips[64];
    size_t count;
    uint64_t lost, skips;
    uint32_t attr; /* of the last sample */
    char last_skip[64];
    struct perf_data_event last;
    char path[64];
    uint8_t build_id[20];
};

static int on_begin(void *context, const struct perf_data_about *about, struct why *why)
{
    (void)context;
    (void)why;
    assert_true(about->pipe);
    return 0;
}

static int on_event(void *context, const struct perf_data_event *event, struct why *why)
{
    struct seen *seen = context;
    (void)why;
    seen->last = *event;
    if (event->kind == PERF_DATA_LOST)
        seen->lost += event->lost;
    if (event->kind == PERF_DATA_MMAP) {
        snprintf(seen->path, sizeof(seen->path), "%.*s", STR_FMT(event->mmap.path));
        if (event->mmap.build_id)
            memcpy(seen->build_id, event->mmap.build_id, event->mmap.build_id_len);
    }
    if (event->kind == PERF_DATA_SAMPLE && seen->count < 64) {
        seen->attr = event->sample.attr->index;
        seen->times[seen->count] = event->time_ns;
        seen->ips[seen->count++] = event->sample.user_count ? event->sample.user[0] : 0;
    }
    return 0;
}

static void on_skip(void *context, const char *reason)
{
    struct seen *seen = context;
    seen->skips++;
    snprintf(seen->last_skip, sizeof(seen->last_skip), "%s", reason);
}

static int read_file(struct seen *seen, struct why *why)
{
    static const struct perf_data_ops ops = {on_begin, on_event, on_skip};
    struct import_source source;
    *seen = (struct seen){0};
    *why = (struct why){0};
    assert_int_equal(import_source_memory((struct str){(const char *)file.data, file.len}, &source),
                     0);
    int r = perf_data_read(&source, &ops, seen, why);
    import_source_close(&source);
    return r;
}

static int begin(void **state)
{
    (void)state;
    file.len = 0;
    put("PERFILE2", 8);
    put_u64(16);
    return 0;
}

static int end(void **state)
{
    (void)state;
    VEC_FREE(&file);
    return 0;
}

static void events_of_two_buffers_come_in_the_order_of_time(void **state)
{
    (void)state;
    struct seen seen;
    struct why why;
    put_attr(TYPE, NULL, 0);
    /* Two rounds; in each, the buffer of one CPU and then that of the other. */
    static const uint64_t times[] = {10, 30, 50, 5, 20, 40, 0, 60, 80, 45, 70, 0, 90, 65};
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        if (times[i] == 0)
            put_round();
        else
            put_sample(times[i], times[i] + 1000);
    }
    assert_int_equal(read_file(&seen, &why), 0);
    assert_int_equal(seen.count, 12);
    for (size_t i = 1; i < seen.count; i++)
        assert_true(seen.times[i - 1] < seen.times[i]);
    for (size_t i = 0; i < seen.count; i++)
        assert_int_equal(seen.ips[i], seen.times[i] + 1000);
    assert_int_equal(seen.skips, 0);
}

static void a_late_event_is_kept_and_told(void **state)
{
    (void)state;
    struct seen seen;
    struct why why;
    put_attr(TYPE, NULL, 0);
    put_sample(100, 1);
    put_round();
    put_sample(200, 1);
    put_round(); /* delivers up to 100 */
    put_sample(50, 1);
    assert_int_equal(read_file(&seen, &why), 0);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.times[1], 50);
    assert_string_equal(seen.last_skip, "out_of_order");
}

static void an_event_is_known_by_its_id(void **state)
{
    (void)state;
    struct seen seen;
    struct why why;
    const uint64_t first[] = {11, 12}, second[] = {21};
    put_attr(PERF_SAMPLE_IDENTIFIER | TYPE, first, 2);
    put_attr(PERF_SAMPLE_IDENTIFIER | TYPE | PERF_SAMPLE_PERIOD, second, 1);
    put_head(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 40);
    put_u64(21);
    put_u64(0x400);
    put_u64(7ull << 32 | 6);
    put_u64(99);
    put_u64(4242);
    assert_int_equal(read_file(&seen, &why), 0);
    assert_int_equal(seen.attr, 1);
    assert_int_equal(seen.last.sample.period, 4242);
    assert_int_equal(seen.last.pid, 6);
    assert_int_equal(seen.last.tid, 7);
}

static void chains_are_split_at_their_marks(void **state)
{
    (void)state;
    struct seen seen;
    struct why why;
    put_attr(TYPE | PERF_SAMPLE_CALLCHAIN, NULL, 0);
    const uint64_t chain[] = {(uint64_t)PERF_CONTEXT_KERNEL,
                              0xffffffff81000000,
                              0xffffffff81000010,
                              (uint64_t)PERF_CONTEXT_USER,
                              0x401000,
                              (uint64_t)PERF_CONTEXT_GUEST,
                              0x99};
    put_head(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, 24 + 8 + sizeof(chain));
    put_u64(1);
    put_u64(0);
    put_u64(5);
    put_u64(ARRAY_SIZE(chain));
    put(chain, sizeof(chain));
    assert_int_equal(read_file(&seen, &why), 0);
    assert_int_equal(seen.last.sample.kernel_count, 2);
    assert_int_equal(seen.last.sample.user_count, 1);
}

static void a_chain_beyond_its_record_is_skipped(void **state)
{
    (void)state;
    struct seen seen;
    struct why why;
    put_attr(TYPE | PERF_SAMPLE_CALLCHAIN, NULL, 0);
    put_head(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 32);
    put_u64(1);
    put_u64(0);
    put_u64(5);
    put_u64(UINT64_MAX / 8);
    assert_int_equal(read_file(&seen, &why), 0);
    assert_int_equal(seen.count, 0);
    assert_string_equal(seen.last_skip, "bad_record");
}

static void lost_events_are_added_up(void **state)
{
    (void)state;
    struct seen seen;
    struct why why;
    put_attr(TYPE, NULL, 0);
    for (int i = 0; i < 2; i++) {
        put_head(PERF_RECORD_LOST, 0, 32);
        put_u64(1);
        put_u64(17);
        put_u64(0); /* sample_id: pid and tid, time */
        put_u64(5);
    }
    put_head(PERF_RECORD_LOST_SAMPLES, 0, 24);
    put_u64(3);
    put_u64(0);
    put_u64(6);
    assert_int_equal(read_file(&seen, &why), 0);
    assert_int_equal(seen.lost, 37);
}

static void a_mapping_brings_its_build_id(void **state)
{
    (void)state;
    struct seen seen;
    struct why why;
    put_attr(TYPE, NULL, 0);
    put_head(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | 1 << 14, 64 + 16 + 16);
    put_u64(7ull << 32 | 6);
    put_u64(0x400000);
    put_u64(0x1000);
    put_u64(0x2000);
    uint8_t id[24] = {20, 0, 0, 0, 0xab, 0xcd};
    put(id, sizeof(id));
    const uint32_t prot[2] = {5, 2};
    put(prot, sizeof(prot));
    put("/usr/bin/app\0\0\0\0", 16);
    put_u64(0);
    put_u64(5);
    assert_int_equal(read_file(&seen, &why), 0);
    assert_string_equal(seen.path, "/usr/bin/app");
    assert_true(seen.last.mmap.executable);
    assert_int_equal(seen.build_id[0], 0xab);
    assert_int_equal(seen.last.mmap.build_id_len, 20);
    assert_int_equal(seen.last.mmap.file_offset, 0x2000);
}

/* All that follows the attributes, in two compressed records cut at any place. */
static void compressed_records_may_end_anywhere(void **state)
{
    (void)state;
    struct seen seen;
    struct why why;
    put_attr(TYPE, NULL, 0);
    size_t plain_at = file.len;
    for (uint64_t i = 1; i <= 20; i++)
        put_sample(i, i);
    size_t plain_len = file.len - plain_at;
    uint8_t packed[4096];
    size_t packed_len = ZSTD_compress(packed, sizeof(packed), file.data + plain_at, plain_len, 3);
    assert_false(ZSTD_isError(packed_len));
    file.len = plain_at;
    size_t first = packed_len / 3;
    put_head(COMPRESSED, 0, first);
    put(packed, first);
    put_head(COMPRESSED, 0, packed_len - first);
    put(packed + first, packed_len - first);
    assert_int_equal(read_file(&seen, &why), 0);
    assert_int_equal(seen.count, 20);
    assert_int_equal(seen.ips[19], 20);
    /* Damaged in the middle: a named error. */
    file.data[file.len - packed_len / 2] ^= 0xff;
    file.data[plain_at + 8] ^= 0xff;
    assert_int_equal(read_file(&seen, &why), -EBADMSG);
    assert_true(why.remedy[0] != '\0');
}

static void a_file_that_was_cut_off_keeps_what_is_whole(void **state)
{
    (void)state;
    struct seen seen;
    struct why why;
    put_attr(TYPE, NULL, 0);
    put_sample(1, 1);
    put_sample(2, 2);
    for (size_t cut = 1; cut < 32; cut++) {
        size_t whole = file.len;
        file.len -= cut;
        assert_int_equal(read_file(&seen, &why), 0);
        assert_int_equal(seen.count, 1);
        assert_string_equal(seen.last_skip, "cut_off");
        file.len = whole;
    }
}

static void a_record_without_a_length_is_damage(void **state)
{
    (void)state;
    struct seen seen;
    struct why why;
    put_attr(TYPE, NULL, 0);
    put_u64(9);
    assert_int_equal(read_file(&seen, &why), -EBADMSG);
    assert_non_null(strstr(why.what, "without a length"));
}

static void records_before_any_attribute_are_skipped(void **state)
{
    (void)state;
    struct seen seen;
    struct why why;
    put_sample(1, 1);
    assert_int_equal(read_file(&seen, &why), 0);
    assert_int_equal(seen.count, 0);
    assert_string_equal(seen.last_skip, "before_any_attribute");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(events_of_two_buffers_come_in_the_order_of_time),
        TEST(a_late_event_is_kept_and_told),
        TEST(an_event_is_known_by_its_id),
        TEST(chains_are_split_at_their_marks),
        TEST(a_chain_beyond_its_record_is_skipped),
        TEST(lost_events_are_added_up),
        TEST(a_mapping_brings_its_build_id),
        TEST(compressed_records_may_end_anywhere),
        TEST(a_file_that_was_cut_off_keeps_what_is_whole),
        TEST(a_record_without_a_length_is_damage),
        TEST(records_before_any_attribute_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
