#include "unit.h"

#include "base/gzip.h"
#include "base/protor.h"
#include "base/protow.h"

#include <errno.h>
#include <stdlib.h>

static struct str written(const struct protow *out)
{
    return (struct str){(const char *)out->data, out->len};
}

static void numbers_and_texts_come_back(void **state)
{
    (void)state;
    struct protow out = {0};
    protow_uint(&out, 1, 150);
    protow_uint(&out, 2, 0); /* the default: left out */
    protow_text(&out, 3, STR("hi"), false);
    protow_text(&out, 4, STR(""), false);
    protow_text(&out, 5, STR(""), true);
    protow_uint(&out, 600, UINT64_MAX);
    assert_false(out.failed);
    /* As in protobuf's documentation: field 1, 150 is 08 96 01. */
    assert_memory_equal(out.data, "\x08\x96\x01\x1a\x02hi", 7);
    struct protor in = protor_from(written(&out));
    struct protor_field field;
    assert_true(protor_next(&in, &field));
    assert_int_equal(field.number, 1);
    assert_int_equal(field.value, 150);
    assert_true(protor_next(&in, &field));
    assert_int_equal(field.number, 3);
    assert_true(str_is(field.bytes, "hi"));
    assert_true(protor_next(&in, &field));
    assert_int_equal(field.number, 5);
    assert_int_equal(field.bytes.len, 0);
    assert_true(protor_next(&in, &field));
    assert_int_equal(field.number, 600);
    assert_true(field.value == UINT64_MAX);
    assert_false(protor_next(&in, &field));
    assert_false(in.bad);
    protow_deinit(&out);
}

static int sum(void *context, uint64_t value)
{
    *(uint64_t *)context += value;
    return value == 13 ? -ERANGE : 0;
}

static void messages_nest_and_lists_are_packed(void **state)
{
    (void)state;
    struct protow out = {0};
    const uint64_t values[] = {3, 270, 86942};
    protow_begin(&out, 9);
    protow_begin(&out, 2);
    protow_packed(&out, 4, values, ARRAY_SIZE(values));
    protow_end(&out);
    protow_uint(&out, 1, 5);
    protow_end(&out);
    struct protor in = protor_from(written(&out));
    struct protor_field outer, inner, list;
    assert_true(protor_next(&in, &outer));
    assert_int_equal(outer.number, 9);
    struct protor nested = protor_from(outer.bytes);
    assert_true(protor_next(&nested, &inner));
    assert_int_equal(inner.number, 2);
    struct protor packed = protor_from(inner.bytes);
    assert_true(protor_next(&packed, &list));
    assert_memory_equal(list.bytes.data, "\x03\x8e\x02\x9e\xa7\x05", 6);
    uint64_t total = 0;
    assert_int_equal(protor_each(&list, sum, &total), 0);
    assert_int_equal(total, 3 + 270 + 86942);
    assert_true(protor_next(&nested, &inner));
    assert_int_equal(inner.value, 5);
    protow_deinit(&out);
}

static void a_list_ends_where_its_reader_says(void **state)
{
    (void)state;
    uint64_t total = 0;
    struct protor_field field = {.wire = PROTOR_BYTES, .bytes = STR("\x01\x0d\x02")};
    assert_int_equal(protor_each(&field, sum, &total), -ERANGE);
    assert_int_equal(total, 14);
    field.bytes = STR("\x01\xff");
    assert_int_equal(protor_each(&field, sum, &total), -EBADMSG);
    field = (struct protor_field){.wire = PROTOR_VARINT, .value = 2};
    total = 0;
    assert_int_equal(protor_each(&field, sum, &total), 0);
    assert_int_equal(total, 2);
}

static void bad_bytes_are_noticed_not_read(void **state)
{
    (void)state;
    static const struct str bad[] = {
        STR("\x08"),                                             /* a number that is not there */
        STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* and one without an end */
        STR("\x1a\x05hi"),                                       /* a text beyond the end */
        STR("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),         /* by almost all of 64 bits */
        STR("\x0b"),                                             /* a group, long gone */
        STR("\x00\x01"),                                         /* field 0 */
        STR("\x09\x01\x02"),                                     /* 8 bytes that are 2 */
        STR("\x0d\x01"),                                         /* 4 bytes that are 1 */
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct protor in = protor_from(bad[i]);
        struct protor_field field;
        assert_false(protor_next(&in, &field));
        assert_true(in.bad);
        assert_false(protor_next(&in, &field));
    }
}

static void gzip_gives_back_what_was_written(void **state)
{
    (void)state;
    char *packed = NULL, *again = NULL;
    size_t packed_len = 0, len = 0;
    FILE *memory = open_memstream(&packed, &packed_len);
    FILE *stream = gzip_stream(memory);
    assert_non_null(stream);
    for (int i = 0; i < 50000; i++)
        fprintf(stream, "line %d\n", i);
    assert_int_equal(fclose(stream), 0);
    fclose(memory);
    struct str bytes = {packed, packed_len};
    assert_true(gzip_is(bytes));
    assert_int_equal(gzip_unpack(bytes, 1 << 20, &again, &len), 0);
    assert_int_equal(len, 538890);
    assert_memory_equal(again + len - 11, "line 49999\n", 11);
    free(again);
    again = NULL;
    assert_int_equal(gzip_unpack(bytes, 538890, &again, &len), 0);
    free(again);
    again = NULL;
    assert_int_equal(gzip_unpack(bytes, 538889, &again, &len), -EFBIG);
    assert_null(again);
    for (size_t cut = 0; cut < packed_len; cut += 997) {
        bytes.len = cut;
        assert_int_equal(gzip_unpack(bytes, 1 << 20, &again, &len), -EBADMSG);
    }
    packed[packed_len / 2] ^= 0x55;
    bytes.len = packed_len;
    assert_int_equal(gzip_unpack(bytes, 1 << 20, &again, &len), -EBADMSG);
    free(packed);
}

static void gzip_members_stand_one_after_the_other(void **state)
{
    (void)state;
    char *packed = NULL, *again = NULL;
    size_t packed_len = 0, len = 0;
    FILE *memory = open_memstream(&packed, &packed_len);
    for (int i = 0; i < 3; i++) {
        FILE *stream = gzip_stream(memory);
        fputs("abc", stream);
        assert_int_equal(fclose(stream), 0);
    }
    fclose(memory);
    assert_int_equal(gzip_unpack((struct str){packed, packed_len}, 100, &again, &len), 0);
    assert_int_equal(len, 9);
    assert_memory_equal(again, "abcabcabc", 9);
    free(again);
    free(packed);
}

static void a_full_disk_fails_the_stream(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "we");
    setvbuf(full, NULL, _IONBF, 0);
    FILE *stream = gzip_stream(full);
    fputs("abc", stream);
    assert_int_not_equal(fclose(stream), 0);
    fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_texts_come_back),
        cmocka_unit_test(messages_nest_and_lists_are_packed),
        cmocka_unit_test(a_list_ends_where_its_reader_says),
        cmocka_unit_test(bad_bytes_are_noticed_not_read),
        cmocka_unit_test(gzip_gives_back_what_was_written),
        cmocka_unit_test(gzip_members_stand_one_after_the_other),
        cmocka_unit_test(a_full_disk_fails_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
