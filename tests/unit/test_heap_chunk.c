/* Promises of store/heap_chunk.h: events come back as they were, those of a thread in their order;
 * a pair takes eight bytes at most in programs as they are; damaged bytes are refused. */
#include "unit.h"

#include "store/heap_chunk.h"
#include "store/planes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct heap_encoder encoder;
static struct heap_decoder decoder;

static int begin(void **state)
{
    (void)state;
    return heap_encoder_init(&encoder) == 0 && heap_decoder_init(&decoder) == 0 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    heap_encoder_deinit(&encoder);
    heap_decoder_deinit(&decoder);
    return 0;
}

static struct heap_event *events_new(void)
{
    struct heap_event *events = calloc(HEAP_CHUNK_EVENTS, sizeof(*events));
    assert_non_null(events);
    return events;
}

static uint64_t random_state;
static uint64_t random_next(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

/* Encodes and decodes; how many bytes it took. */
static size_t through(const struct heap_event *events, uint32_t count)
{
    const void *data = NULL;
    size_t size = 0;
    const char *damage = NULL;
    assert_int_equal(heap_encode(&encoder, events, count, &data, &size), 0);
    int r = heap_decode(&decoder, HEAP_CHUNK_CODEC, data, size, count, &damage);
    if (r < 0)
        print_error("%s\n", damage);
    assert_int_equal(r, 0);
    assert_int_equal(decoder.count, count);
    return size;
}

static bool same(const struct heap_event *a, const struct heap_event *b)
{
    return a->thread == b->thread && a->stack == b->stack && a->kind == b->kind &&
           a->address == b->address && a->size == b->size && a->time_ns == b->time_ns;
}

/* Each thread's events in their order. */
static void assert_came_back(const struct heap_event *events, uint32_t count)
{
    uint32_t at = 0, thread = 0;
    for (uint32_t seen = 0; seen < count;) {
        uint32_t next = UINT32_MAX;
        for (uint32_t i = 0; i < count; i++)
            if (events[i].thread > thread)
                next = MIN(next, events[i].thread);
        thread = next;
        for (uint32_t i = 0; i < count; i++) {
            if (events[i].thread != thread)
                continue;
            assert_true(same(&events[i], &decoder.events[at]));
            at++;
            seen++;
        }
    }
}

/* An allocator as most are: pieces of a size are given out again, the last freed one first. */
struct allocator {
    uint64_t top;
    uint64_t freed[128][4096];
    uint32_t count[128];
};

static uint64_t piece_new(struct allocator *allocator, uint64_t size)
{
    uint64_t class = (size + 23) / 16;
    if (class < 128 && allocator->count[class] > 0)
        return allocator->freed[class][--allocator->count[class]];
    uint64_t address = allocator->top;
    allocator->top += class * 16;
    return address;
}

static void piece_free(struct allocator *allocator, uint64_t address, uint64_t size)
{
    uint64_t class = (size + 23) / 16;
    if (class < 128 && allocator->count[class] < 4096)
        allocator->freed[class][allocator->count[class]++] = address;
}

/* Pieces of random sizes out of many stacks that are freed in random order: worse than programs
 * are. */
static void random_fill(struct heap_event *events, uint32_t threads, bool told)
{
    enum { LIVE = 1000 };
    struct allocator *allocators = calloc(threads, sizeof(*allocators));
    struct heap_event *live = calloc((size_t)threads * LIVE, sizeof(*live));
    assert_true(allocators && live);
    for (uint32_t i = 0; i < threads; i++)
        allocators[i].top = 0x7f0000000000 + i * UINT64_C(0x4000000);
    for (uint32_t i = 0; i < HEAP_CHUNK_EVENTS; i++) {
        uint32_t thread = (uint32_t)random_next() % threads;
        struct heap_event *slot = &live[thread * LIVE + random_next() % LIVE];
        if (slot->address) {
            piece_free(&allocators[thread], slot->address, slot->size);
            events[i] = *slot;
            events[i].kind = HEAP_EVENT_FREED;
            if (!told)
                events[i].stack = 0, events[i].size = 0;
            slot->address = 0;
        } else {
            uint64_t size = 1 + random_next() % (random_next() % 8 ? 64 : 1024);
            *slot = (struct heap_event){.thread = thread + 1,
                                        .stack = 1 + (uint32_t)(random_next() % 500),
                                        .address = piece_new(&allocators[thread], size),
                                        .size = size};
            events[i] = *slot;
        }
        events[i].time_ns = UINT64_C(1000000000) + i / 4000 * 4000000;
    }
    free(live);
    free(allocators);
}

static void assert_small(uint32_t threads, bool told)
{
    struct heap_event *events = events_new();
    random_state = 7;
    random_fill(events, threads, told);
    size_t size = through(events, HEAP_CHUNK_EVENTS);
    print_message("# %u threads, %s: %.2f bytes a pair\n", threads, told ? "told" : "bare",
                  2.0 * (double)size / HEAP_CHUNK_EVENTS);
    assert_came_back(events, HEAP_CHUNK_EVENTS);
    assert_true(size * 2 <= (size_t)8 * HEAP_CHUNK_EVENTS);
    free(events);
}

static void a_pair_takes_eight_bytes_at_most(void **state)
{
    (void)state;
    assert_small(1, true);
    assert_small(1, false);
    assert_small(8, true);
}

static void what_is_freed_right_after_takes_next_to_nothing(void **state)
{
    (void)state;
    struct heap_event *events = events_new();
    for (uint32_t i = 0; i < HEAP_CHUNK_EVENTS; i++)
        events[i] = (struct heap_event){1,      7,  i % 2 ? HEAP_EVENT_FREED : HEAP_EVENT_ALLOCATED,
                                        0x1000, 32, 5};
    assert_true(through(events, HEAP_CHUNK_EVENTS) < 500);
    assert_came_back(events, HEAP_CHUNK_EVENTS);
    free(events);
}

static void the_highest_of_everything_comes_back(void **state)
{
    (void)state;
    struct heap_event events[] = {
        {UINT32_MAX, UINT32_MAX, HEAP_EVENT_ALLOCATED, UINT64_MAX, UINT64_MAX, INT64_MAX},
        {UINT32_MAX, UINT32_MAX, HEAP_EVENT_FREED, UINT64_MAX, UINT64_MAX, 0},
        {UINT32_MAX, 3, HEAP_EVENT_FREED, UINT64_MAX, 4, INT64_MAX}, /* once more */
        {1, 0, HEAP_EVENT_FREED, 0, 0, 1},
        {1, 0, HEAP_EVENT_ALLOCATED, 0, 0, 1},
        {1, 9, HEAP_EVENT_FREED, 0, 0, 1}, /* says another stack than it was */
        {2, 1, HEAP_EVENT_ALLOCATED, 16, 8, 1},
        {2, 1, HEAP_EVENT_ALLOCATED, 16, 9, 1}, /* not seen freed */
        {2, 0, HEAP_EVENT_FREED, 16, 0, 1},
    };
    (void)through(events, ARRAY_SIZE(events));
    assert_came_back(events, ARRAY_SIZE(events));
    for (uint32_t i = 0; i < ARRAY_SIZE(events); i++) {
        (void)through(&events[i], 1);
        assert_true(same(&events[i], &decoder.events[0]));
    }
    const void *data;
    size_t size;
    assert_int_equal(heap_encode(&encoder, events, 0, &data, &size), -EINVAL);
}

static void many_frees_of_one_size_come_back(void **state)
{
    (void)state;
    struct heap_event *events = events_new();
    uint32_t half = HEAP_CHUNK_EVENTS / 2; /* more than is remembered of a size */
    for (uint32_t i = 0; i < half; i++) {
        events[i] = (struct heap_event){1, 1, HEAP_EVENT_ALLOCATED, 0x1000 + i * 48, 40, i};
        events[half + i] = events[i];
        events[half + i].kind = HEAP_EVENT_FREED;
    }
    assert_true(through(events, HEAP_CHUNK_EVENTS) < 20000);
    assert_came_back(events, HEAP_CHUNK_EVENTS);
    free(events);
}

static void assert_damaged(int64_t codec, const void *data, size_t size, int64_t count,
                           const char *words)
{
    const char *damage = "";
    assert_int_equal(heap_decode(&decoder, codec, data, size, count, &damage), -EBADMSG);
    if (words && !strstr(damage, words))
        fail_msg("'%s' is not about '%s'", damage, words);
    assert_int_equal(decoder.count, 0);
}

/* A forged frame: the checksum is right, the content is not. */
static void assert_forged(unsigned char *raw, size_t size, const char *words)
{
    unsigned char packed[4096];
    size_t len = ZSTD_compress(packed, sizeof(packed), raw, size, 1);
    assert_false(ZSTD_isError(len));
    assert_damaged(HEAP_CHUNK_CODEC, packed, len, 2, words);
}

static void damage_is_refused(void **state)
{
    (void)state;
    struct heap_event events[] = {{1, 1, HEAP_EVENT_ALLOCATED, 4096, 8, 5},
                                  {1, 1, HEAP_EVENT_FREED, 4096, 8, 6}};
    const void *data = NULL;
    size_t size = 0;
    assert_int_equal(heap_encode(&encoder, events, 2, &data, &size), 0);
    assert_damaged(2, data, size, 2, "codec");
    assert_damaged(HEAP_CHUNK_CODEC, data, size, 0, "number of events");
    assert_damaged(HEAP_CHUNK_CODEC, data, size, HEAP_CHUNK_EVENTS + 1, "number of events");
    assert_damaged(HEAP_CHUNK_CODEC, data, size, 1, NULL);
    assert_damaged(HEAP_CHUNK_CODEC, data, size, 3, NULL);
    assert_damaged(HEAP_CHUNK_CODEC, data, size - 1, 2, NULL);
    assert_damaged(HEAP_CHUNK_CODEC, "x", 1, 2, "length");
    unsigned char raw[512];
    size_t raw_size = ZSTD_decompress(raw, sizeof(raw), data, size);
    assert_false(ZSTD_isError(raw_size));
    enum { BACK = 3, SIZE = 5 };
    raw[8] = 9;
    assert_forged(raw, raw_size, "wider");
    raw[8] = 1;
    planes_put(raw, 2); /* two frees, of which the second is of no kind */
    assert_forged(raw, raw_size, NULL);
    planes_put(raw, 9);
    assert_forged(raw, raw_size, "unknown kind");
    planes_put(raw, 0);
    planes_put(raw + BACK * PLANES_HEADER_BYTES, 1);
    assert_forged(raw, raw_size, "of no allocation");
    planes_put(raw + BACK * PLANES_HEADER_BYTES, 0);
    assert_forged(raw, raw_size - 1, NULL);
    raw[raw_size] = 0;
    assert_forged(raw, raw_size + 1, "add up");
}

static void any_flipped_bit_is_noticed_or_harmless(void **state)
{
    (void)state;
    struct heap_event *events = events_new();
    random_state = 3;
    random_fill(events, 3, true);
    const void *data = NULL;
    size_t size = 0;
    assert_int_equal(heap_encode(&encoder, events, 500, &data, &size), 0);
    unsigned char *copy = malloc(size);
    assert_non_null(copy);
    for (size_t i = 0; i < size * 8; i++) {
        const char *damage;
        memcpy(copy, data, size);
        copy[i / 8] ^= (unsigned char)(1u << i % 8);
        if (heap_decode(&decoder, HEAP_CHUNK_CODEC, copy, size, 500, &damage) == 0)
            assert_came_back(events, 500);
    }
    free(copy);
    free(events);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_pair_takes_eight_bytes_at_most),
        TEST(what_is_freed_right_after_takes_next_to_nothing),
        TEST(the_highest_of_everything_comes_back),
        TEST(many_frees_of_one_size_come_back),
        TEST(damage_is_refused),
        TEST(any_flipped_bit_is_noticed_or_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
