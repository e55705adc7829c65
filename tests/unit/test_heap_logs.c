/* Promises of collect/heap_logs.h, with the library's own writer (preload/heap_log.c): every word
 * arrives, in the order of its thread, however full the rings get; nonsense is not followed; a
 * target whose reader is gone goes on. */
#include "unit.h"

#include "collect/heap_logs.h"
/* The writer, with what the library around it would give it. */
/* NOLINTNEXTLINE(bugprone-suspicious-include): all of it is to be seen */
#include "../../preload/heap_log.c"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, EVENTS = 300000, LOGS_AT = 1 << 20, WINDOW = 2 };

struct heap_header *heap_header;
struct heap_process *heap_process;
static int fd;

long heap_raw6(long number, long a, long b, long c, long d, long e, long f)
{
    return syscall(number, a, b, c, d, e, f);
}

static int setup(void **state)
{
    (void)state;
    fd = memfd_create("test", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)(HEAP_HEADER_BYTES + (WINDOW + 1) * HEAP_WINDOW_BYTES)) < 0)
        return -1;
    heap_header = mmap(NULL, sizeof(*heap_header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    heap_process = mmap(NULL, HEAP_WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                        (off_t)(HEAP_HEADER_BYTES + WINDOW * HEAP_WINDOW_BYTES));
    if (heap_header == MAP_FAILED || heap_process == MAP_FAILED)
        return -1;
    heap_process->threads_at = 4096;
    heap_process->threads_max = heap_process->threads = THREADS;
    heap_process->logs_at = LOGS_AT;
    heap_process->logs_max = THREADS;
    heap_process->magic = HEAP_MAGIC;
    heap_header->windows = heap_header->windows_max = WINDOW + 1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    munmap(heap_header, sizeof(*heap_header));
    munmap(heap_process, HEAP_WINDOW_BYTES);
    close(fd);
    return 0;
}

static struct heap_thread_place *place_of(uint32_t index)
{
    return (struct heap_thread_place *)(void *)((char *)heap_process + 4096) + index;
}

static void *write_events(void *context)
{
    uint32_t index = (uint32_t)(uintptr_t)context;
    struct heap_thread thread = {.place = place_of(index)};
    for (uint64_t i = 0; i < EVENTS; i++) {
        if (i % 1000 == 0)
            __atomic_fetch_add(&heap_header->tick, 1, __ATOMIC_RELAXED);
        if (i % 3 == 2)
            heap_log_freed(&thread, (void *)(uintptr_t)(16 * i));
        else
            heap_log_allocated(&thread, (void *)(uintptr_t)(16 * i), i, index + 1);
    }
    return NULL;
}

struct reading {
    uint64_t events;
    uint64_t pending; /* an allocation whose second word is to come */
    bool allocated;
    uint64_t tick;
};

static void word_check(struct reading *reading, uint32_t place, uint64_t word)
{
    uint64_t value = word & ((UINT64_C(1) << HEAP_LOG_SHIFT) - 1);
    if (reading->allocated) {
        assert_int_equal(reading->pending, 16 * reading->events);
        assert_int_equal(word, (uint64_t)(place + 1) << 40 | reading->events);
        reading->allocated = false;
        reading->events++;
        return;
    }
    switch (word >> HEAP_LOG_SHIFT) {
    case HEAP_LOG_TICK:
        assert_true(value >= reading->tick);
        reading->tick = value;
        return;
    case HEAP_LOG_ALLOCATED:
        assert_true(reading->tick > 0);
        reading->pending = value;
        reading->allocated = true;
        return;
    case HEAP_LOG_FREED:
        assert_int_equal(value, 16 * reading->events);
        assert_int_equal(reading->events % 3, 2);
        reading->events++;
        return;
    default:
        fail();
    }
}

static void take_all(struct heap_logs *logs, struct reading *readings)
{
    struct heap_logs_piece *piece;
    while ((piece = heap_logs_take(logs)) != NULL) {
        assert_int_equal(piece->window, WINDOW);
        assert_true(piece->place < THREADS);
        for (uint32_t i = 0; i < piece->count; i++)
            word_check(&readings[piece->place], piece->place, piece->words[i]);
        free(piece);
    }
}

static void all_arrives_in_order(void **state)
{
    (void)state;
    struct heap_logs *logs;
    struct why why = {0};
    pthread_t threads[THREADS];
    struct reading readings[THREADS] = {0};
    assert_int_equal(heap_logs_start(fd, &logs, &why), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_events, (void *)(uintptr_t)i), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        take_all(logs, readings);
        pthread_join(threads[i], NULL);
    }
    heap_logs_window_done(logs, WINDOW);
    heap_logs_stop(logs);
    take_all(logs, readings);
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(readings[i].events, EVENTS);
        assert_int_equal(place_of(i)->log_lost, 0);
    }
    heap_logs_free(logs);
}

static void nonsense_is_not_followed(void **state)
{
    (void)state;
    struct heap_logs *logs;
    struct why why = {0};
    place_of(0)->log = THREADS + 5; /* there is none such */
    place_of(0)->log_written = 10;
    place_of(1)->log = 1;
    place_of(1)->log_written = UINT64_MAX;
    heap_process->threads = UINT32_MAX;
    assert_int_equal(heap_logs_start(fd, &logs, &why), 0);
    heap_logs_window_done(logs, WINDOW);
    assert_null(heap_logs_take(logs));
    heap_logs_free(logs);

    heap_process->logs_at = HEAP_WINDOW_BYTES - 8;
    place_of(0)->log = 1;
    assert_int_equal(heap_logs_start(fd, &logs, &why), 0);
    heap_logs_window_done(logs, WINDOW);
    assert_null(heap_logs_take(logs));
    heap_logs_free(logs);
}

static void without_a_reader_it_goes_on(void **state)
{
    (void)state;
    heap_header->over = 1;
    write_events((void *)0);
    assert_true(place_of(0)->log_lost > EVENTS / 2);
    assert_true(place_of(0)->log_written <= HEAP_LOG_WORDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_arrives_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_not_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_reader_it_goes_on, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
