/* Writes nonsense into the memory that is shared with whyslow, some of it nearly right. */
#include "format/preload_io.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t state = 1;

static uint64_t noise(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 16;
}

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void record_write(uint8_t *to)
{
    struct preload_stack stack = {
        .record = {.kind = (uint16_t)(noise() % 6),
                   .lock = (uint8_t)(noise() % 10),
                   .flags = (uint8_t)noise(),
                   .bytes = noise() % 2 ? sizeof(struct preload_wait) : (uint32_t)(noise() % 4096)},
        .number = (uint32_t)(noise() % 8),
        .slice_bytes = (uint32_t)(noise() % 4096),
        .time_ns = noise() % 2 ? now_ns() : noise(),
        .at = {.pc = (uint64_t)&now_ns, .sp = (uint64_t)&to},
    };
    memcpy(to, &stack, sizeof(stack));
}

static void place_write(struct preload_thread *place)
{
    place->pid = noise() % 4 ? (uint32_t)getpid() : (uint32_t)noise();
    place->tid = noise() % 4 ? (uint32_t)getpid() : (uint32_t)noise();
    place->serial = (uint32_t)noise();
    place->since_ns = noise() % 4 ? now_ns() - 10000000 : noise();
    place->open_start_ns = noise() % 2 ? now_ns() : noise();
    place->open_lock = (uint32_t)(noise() % 10);
    place->open_object = noise();
    for (size_t i = 0; i < PRELOAD_RING_BYTES / 16; i += 8 * (1 + noise() % 40))
        record_write(place->ring + i);
    for (size_t i = 0; i < PRELOAD_ROWS; i++) {
        struct preload_row *row = &place->rows[i];
        row->kind = (uint16_t)(noise() % 5);
        row->lock = (uint8_t)(noise() % 10);
        row->count = noise() % 100;
        row->total_ns = noise();
        row->first_ns = noise() % 100;
        row->last_ns = noise() % 200;
        row->stack = (uint32_t)(noise() % 8);
        row->buckets[noise() % PRELOAD_BUCKETS] = (uint32_t)row->count;
        row->sequence = (uint32_t)(noise() % 3);
    }
    place->added = noise();
    place->head = noise() % 2 ? place->tail + noise() % PRELOAD_RING_BYTES / 8 * 8 : noise();
    place->state = (uint32_t)(noise() % 4 ? PRELOAD_LIVED : noise() % 4);
}

static void io_place_write(struct preload_io_thread *place)
{
    place_write(&place->thread);
    for (size_t i = 0; i < PRELOAD_RING_BYTES / 16; i += 8 * (1 + noise() % 40)) {
        struct preload_piece piece = {
            .record = {.kind = (uint16_t)(4 + noise() % 2),
                       .flags = (uint8_t)(noise() % 4),
                       .bytes = noise() % 2 ? sizeof(struct preload_call)
                                            : (uint32_t)(noise() % 200 * 8)},
            .object = noise() % 64 << PRELOAD_FD_BITS | noise() % 8,
            .start_ns = noise() % 100,
            .end_ns = noise() % 2 ? now_ns() : noise(),
            .bytes = noise(),
            .stack = (uint32_t)(noise() % 8),
            .len = (uint32_t)(noise() % 2000),
        };
        memcpy(place->thread.ring + i, &piece, sizeof(piece));
    }
    for (size_t i = 0; i < PRELOAD_CALL_ROWS; i++) {
        struct preload_call_row *row = &place->rows[i];
        row->used = (uint32_t)(noise() % 2);
        row->key.object = noise() % 64 << PRELOAD_FD_BITS | noise() % 8;
        row->key.call = (uint16_t)(noise() % 2 ? noise() % 400 : noise());
        row->key.error = (uint16_t)(noise() % 300);
        row->key.flags = (uint32_t)noise();
        row->key.stack = (uint32_t)(noise() % 8);
        row->count = noise() % 100;
        row->total_ns = noise();
        row->bytes = noise();
        row->placed = noise() % 100;
        row->first_ns = noise() % 100;
        row->last_ns = noise() % 200;
        row->buckets[noise() % PRELOAD_BUCKETS] = (uint32_t)row->count;
        row->sizes[noise() % PRELOAD_CALL_SIZES] = (uint32_t)row->count;
        row->sequence = (uint32_t)(noise() % 3);
    }
    place->thread.added = noise();
}

static void objects_write(struct preload_io_objects *objects)
{
    static const uint32_t modes[] = {0, 0100644, 0040755, 0140777, 0010600, 0020666, UINT32_MAX};
    objects->head = noise() % 4 ? objects->tail + noise() % 64 : noise();
    for (int i = 0; i < 64; i++) {
        struct preload_object *object = &objects
                                             ->at[(objects->tail + noise() % 64) % PRELOAD_OBJECTS];
        for (size_t at = 0; at < sizeof(*object); at += 8)
            *(uint64_t *)(void *)((char *)object + at) = noise() << 16 ^ noise();
        object->pid = noise() % 2 ? (uint32_t)getpid() : (uint32_t)noise();
        object->fd = (int32_t)(noise() % 2 ? noise() % 8 : noise());
        object->mode = modes[noise() % (sizeof(modes) / sizeof(modes[0]))];
        object->origin = (uint16_t)(noise() % 8);
        object->number = objects->tail + noise() % 64;
    }
}

int main(void)
{
    const char *path = getenv(PRELOAD_VARIABLE);
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    char *memory = mmap(NULL, PRELOAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return 1;
    struct preload_header *header = (void *)memory;
    struct preload_thread *places = (void *)(memory + PRELOAD_HEADER_BYTES);
    struct preload_io_objects *objects = (void *)(memory + PRELOAD_IO_OFFSET);
    struct preload_io_thread *io_places = (void *)(objects + 1);
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < 4; i++) {
            uint64_t at = noise() % (round % 10 ? 16 : PRELOAD_THREADS_MAX);
            if (header->families[PRELOAD_LOCK_HOOKS].on)
                place_write(&places[at]);
            if (header->families[PRELOAD_IO_HOOKS].on)
                io_place_write(&io_places[at]);
        }
        if (header->families[PRELOAD_IO_HOOKS].on)
            objects_write(objects);
        for (size_t family = 0; family < PRELOAD_FAMILIES; family++) {
            header->families[family].serial = (uint32_t)noise();
            for (size_t i = 0; i < PRELOAD_THREADS_MAX / 64; i++)
                header->families[family].fresh[i] = noise() << 32 | noise();
        }
        usleep(1000);
    }
    puts("scribbled");
    return 0;
}
