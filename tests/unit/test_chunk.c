/* Promises of store/chunk.h. */
#include "unit.h"

#include "base/map.h"
#include "store/chunk.h"

#include <errno.h>
#include <stdlib.h>

struct codec {
    struct chunk_columns columns;
    struct chunk_encoder encoder;
    struct chunk_decoder decoder;
};

static int begin(void **state)
{
    struct codec *codec = calloc(1, sizeof(*codec));
    *state = codec;
    return chunk_columns_init(&codec->columns, CHUNK_SAMPLES) < 0 ||
           chunk_encoder_init(&codec->encoder) < 0 || chunk_decoder_init(&codec->decoder) < 0;
}

static int end(void **state)
{
    struct codec *codec = *state;
    chunk_columns_deinit(&codec->columns);
    chunk_encoder_deinit(&codec->encoder);
    chunk_decoder_deinit(&codec->decoder);
    free(codec);
    return 0;
}

static void set(struct chunk_columns *columns, uint64_t time, uint32_t thread, uint32_t stack,
                uint64_t weight)
{
    uint32_t i = columns->samples++;
    columns->time_ns[i] = time;
    columns->thread[i] = thread;
    columns->stack[i] = stack;
    columns->weight[i] = weight;
}

static void encode(struct codec *codec, const void **data, size_t *size)
{
    uint64_t start, last, low = UINT64_MAX, high = 0;
    assert_int_equal(chunk_encode(&codec->encoder, &codec->columns, data, size, &start, &last), 0);
    for (uint32_t i = 0; i < codec->columns.samples; i++) {
        low = MIN(low, codec->columns.time_ns[i]);
        high = MAX(high, codec->columns.time_ns[i]);
    }
    assert_true(start == low);
    assert_true(last == high);
}

static void assert_round_trip(struct codec *codec)
{
    const void *data;
    size_t size;
    const char *damage = "none";
    encode(codec, &data, &size);
    const struct chunk_columns *in = &codec->columns, *out = &codec->decoder.columns;
    assert_int_equal(chunk_decode(&codec->decoder, CHUNK_CODEC, data, size, in->samples, &damage),
                     0);
    assert_int_equal(out->samples, in->samples);
    assert_memory_equal(out->time_ns, in->time_ns, in->samples * 8);
    assert_memory_equal(out->thread, in->thread, in->samples * 4);
    assert_memory_equal(out->stack, in->stack, in->samples * 4);
    assert_memory_equal(out->weight, in->weight, in->samples * 8);
}

static void any_samples_come_back_as_they_were(void **state)
{
    struct codec *codec = *state;
    for (unsigned bits = 0; bits <= 64; bits += 4) {
        uint64_t mask = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
        codec->columns.samples = 0;
        for (uint32_t i = 0; i < 1 + bits * 37; i++) {
            uint64_t r = hash_u64(i + bits * 1000);
            set(&codec->columns, hash_u64(r) & mask, (uint32_t)(r & mask),
                (uint32_t)(r >> 32 & mask), hash_u64(r + 1) & mask);
        }
        assert_round_trip(codec);
    }
}

static void one_sample_and_a_full_chunk_come_back(void **state)
{
    struct codec *codec = *state;
    set(&codec->columns, UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX);
    assert_round_trip(codec);
    codec->columns.samples = 0;
    for (uint32_t i = 0; i < CHUNK_SAMPLES; i++)
        set(&codec->columns, i % 2 ? UINT64_MAX : 0, i, ~i, hash_u64(i));
    assert_round_trip(codec);
}

static void equal_steps_cost_next_to_nothing(void **state)
{
    struct codec *codec = *state;
    for (uint32_t i = 0; i < CHUNK_SAMPLES; i++)
        set(&codec->columns, 1000000ull * i, 3, 7, 1000000);
    const void *data;
    size_t size;
    encode(codec, &data, &size);
    assert_true(size < 150);
}

static void no_samples_and_too_many_are_refused(void **state)
{
    struct codec *codec = *state;
    const void *data;
    size_t size;
    uint64_t start, last;
    assert_int_equal(chunk_encode(&codec->encoder, &codec->columns, &data, &size, &start, &last),
                     -EINVAL);
    codec->columns.samples = CHUNK_SAMPLES + 1;
    assert_int_equal(chunk_encode(&codec->encoder, &codec->columns, &data, &size, &start, &last),
                     -EINVAL);
}

static void assert_damaged(struct codec *codec, int64_t method, const void *data, size_t size,
                           int64_t samples)
{
    const char *damage = NULL;
    assert_int_equal(chunk_decode(&codec->decoder, method, data, size, samples, &damage), -EBADMSG);
    assert_non_null(damage);
}

static void a_damaged_chunk_is_refused_with_words(void **state)
{
    struct codec *codec = *state;
    for (uint32_t i = 0; i < 500; i++)
        set(&codec->columns, hash_u64(i), i % 4, i, hash_u64(~i));
    const void *data;
    size_t size;
    encode(codec, &data, &size);
    assert_damaged(codec, 2, data, size, 500);
    assert_damaged(codec, CHUNK_CODEC, data, size, 0);
    assert_damaged(codec, CHUNK_CODEC, data, size, -1);
    assert_damaged(codec, CHUNK_CODEC, data, size, 499);
    assert_damaged(codec, CHUNK_CODEC, data, size, 501);
    assert_damaged(codec, CHUNK_CODEC, data, size, CHUNK_SAMPLES_MAX);
    assert_damaged(codec, CHUNK_CODEC, data, size, INT64_MAX);
    assert_damaged(codec, CHUNK_CODEC, "", 0, 500);
    for (size_t len = 0; len < size; len += 1 + len / 16)
        assert_damaged(codec, CHUNK_CODEC, data, len, 500);
    unsigned char *copy = malloc(size);
    assert_non_null(copy);
    for (size_t at = 0; at < size; at++) {
        memcpy(copy, data, size);
        copy[at] ^= (unsigned char)(1u << at % 8);
        /* The checksum sees every flip; only the reserved bit of the frame header is no damage. */
        const char *damage = NULL;
        int r = chunk_decode(&codec->decoder, CHUNK_CODEC, copy, size, 500, &damage);
        if (r == 0)
            assert_memory_equal(codec->decoder.columns.weight, codec->columns.weight, 500 * 8);
        else
            assert_int_equal(r, -EBADMSG);
    }
    free(copy);
}

/* A forged chunk has a good checksum: only the bounds can stop it. */
static void a_forged_header_is_refused(void **state)
{
    struct codec *codec = *state;
    unsigned char raw[72 + 8] = {0}, packed[512];
    static const struct {
        size_t at;
        unsigned char byte;
    } forgeries[] = {{16, 9}, {32, 5}, {48, 255}, {64, 9}, {20, 1}, {71, 0x80}};
    for (size_t i = 0; i < ARRAY_SIZE(forgeries); i++) {
        memset(raw, 0, sizeof(raw));
        raw[16] = 8; /* one sample with 8 bytes of time */
        raw[forgeries[i].at] = forgeries[i].byte;
        size_t size = ZSTD_compress(packed, sizeof(packed), raw, sizeof(raw), 1);
        assert_damaged(codec, CHUNK_CODEC, packed, size, 1);
    }
    size_t size = ZSTD_compress(packed, sizeof(packed), raw, 71, 1);
    assert_damaged(codec, CHUNK_CODEC, packed, size, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_samples_come_back_as_they_were, begin, end),
        cmocka_unit_test_setup_teardown(one_sample_and_a_full_chunk_come_back, begin, end),
        cmocka_unit_test_setup_teardown(equal_steps_cost_next_to_nothing, begin, end),
        cmocka_unit_test_setup_teardown(no_samples_and_too_many_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_damaged_chunk_is_refused_with_words, begin, end),
        cmocka_unit_test_setup_teardown(a_forged_header_is_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
