/* Events to bytes and back; the layout is in docs/recording.md. Both sides play the same game:
 * what they know of an event before the next one is the same. */
#include "store/heap_chunk.h"

#include "store/planes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd_errors.h>

enum column { WHAT, THREAD, TIME, BACK, STACK, SIZE, STEP, COLUMNS };
enum {
    HEADER_BYTES = COLUMNS * PLANES_HEADER_BYTES,
    RAW_BYTES_MAX = HEADER_BYTES + COLUMNS * 8 * HEAP_CHUNK_EVENTS,
    /* As for samples: the gain comes from the entropy coder. */
    ZSTD_LEVEL = 1,
};
static const unsigned widths_max[COLUMNS] = {1, 4, 8, 4, 4, 8, 8};

/* The first two have a stack, a size and an address of their own; a free that is known says how
 * many allocations ago that was, and of a bare one neither stack nor size was told. */
enum what { ALLOCATED, FREED, FREED_KNOWN, FREED_BARE, WHATS };

struct heap_columns {
    uint64_t values[COLUMNS][HEAP_CHUNK_EVENTS];
};

/* What an allocator that is like most of them would answer: freed pieces of a size are given out
 * again, the last one first; else the memory behind the piece before. */
enum { CLASS_BYTES = 16, CLASSES = 256, CLASS_DEPTH = 64, PIECE_HEADER_BYTES = 8 };
struct heap_guess {
    uint32_t thread;
    uint64_t next;  /* behind the last piece */
    uint64_t freed; /* last */
    uint8_t depth[CLASSES], top[CLASSES];
    uint64_t pieces[CLASSES][CLASS_DEPTH];
};

static void guess_begin(struct heap_guess *guess, uint32_t thread)
{
    guess->thread = thread;
    guess->next = guess->freed = 0;
    memset(guess->depth, 0, sizeof(guess->depth));
    memset(guess->top, 0, sizeof(guess->top));
}

static uint64_t piece_bytes(uint64_t size)
{
    uint64_t bytes = (size + PIECE_HEADER_BYTES + CLASS_BYTES - 1) / CLASS_BYTES * CLASS_BYTES;
    return MAX(bytes, (uint64_t)2 * CLASS_BYTES);
}

static unsigned class_of(uint64_t size)
{
    return (unsigned)MIN(piece_bytes(size) / CLASS_BYTES, (uint64_t)CLASSES - 1);
}

static uint64_t guess_allocation(struct heap_guess *guess, uint64_t size)
{
    unsigned class = class_of(size);
    if (guess->depth[class] == 0)
        return guess->next;
    guess->depth[class]--;
    guess->top[class] = (uint8_t)((guess->top[class] + CLASS_DEPTH - 1) % CLASS_DEPTH);
    return guess->pieces[class][guess->top[class]];
}

static void guess_allocated(struct heap_guess *guess, uint64_t address, uint64_t size)
{
    guess->next = address + piece_bytes(size);
}

static void guess_freed(struct heap_guess *guess, uint64_t address, uint64_t size)
{
    unsigned class = class_of(size);
    guess->pieces[class][guess->top[class]] = address;
    guess->top[class] = (uint8_t)((guess->top[class] + 1) % CLASS_DEPTH);
    guess->depth[class] = MIN((uint8_t)(guess->depth[class] + 1), (uint8_t)CLASS_DEPTH);
    guess->freed = address;
}

int heap_encoder_init(struct heap_encoder *encoder)
{
    *encoder = (struct heap_encoder){.packed_cap = ZSTD_compressBound(RAW_BYTES_MAX)};
    encoder->zstd = ZSTD_createCCtx();
    encoder->raw = malloc(RAW_BYTES_MAX);
    encoder->packed = malloc(encoder->packed_cap);
    encoder->order = malloc(HEAP_CHUNK_EVENTS * sizeof(*encoder->order));
    encoder->columns = malloc(sizeof(*encoder->columns));
    encoder->guess = malloc(sizeof(*encoder->guess));
    encoder->allocations = malloc((HEAP_CHUNK_EVENTS + 1) * sizeof(*encoder->allocations));
    if (!encoder->zstd || !encoder->raw || !encoder->packed || !encoder->order ||
        !encoder->columns || !encoder->guess || !encoder->allocations ||
        ZSTD_isError(ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_checksumFlag, 1))) {
        heap_encoder_deinit(encoder);
        return -ENOMEM;
    }
    return 0;
}

void heap_encoder_deinit(struct heap_encoder *encoder)
{
    ZSTD_freeCCtx(encoder->zstd);
    free(encoder->raw);
    free(encoder->packed);
    free(encoder->order);
    free(encoder->columns);
    free(encoder->guess);
    free(encoder->allocations);
    map_u64_deinit(&encoder->allocated);
    *encoder = (struct heap_encoder){0};
}

static int order_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Thread and index in one number: the order of a thread's own events stays. */
static void order_make(struct heap_encoder *encoder, const struct heap_event *events,
                       uint32_t count)
{
    bool sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        encoder->order[i] = (uint64_t)events[i].thread << 32 | i;
        sorted = sorted && (i == 0 || encoder->order[i - 1] < encoder->order[i]);
    }
    if (!sorted)
        qsort(encoder->order, count, sizeof(encoder->order[0]), order_compare);
}

/* How many values each column has so far. */
struct filling {
    uint32_t all, full, back; /* events; of these with an address of their own; and without */
    uint32_t allocations;
};

static void event_full(struct heap_columns *columns, struct filling *filling,
                       const struct heap_event *event, uint64_t guessed)
{
    uint32_t at = filling->full++;
    columns->values[STACK][at] = event->stack;
    columns->values[SIZE][at] = event->size;
    columns->values[STEP][at] = zigzag(event->address - guessed);
}

static enum what free_kind(const struct heap_event *freed, const struct heap_event *allocated)
{
    if (freed->stack == allocated->stack && freed->size == allocated->size)
        return FREED_KNOWN;
    return freed->stack == 0 && freed->size == 0 ? FREED_BARE : FREED;
}

static enum what freed_put(struct heap_encoder *encoder, const struct heap_event *events,
                           const struct heap_event *event, struct filling *filling)
{
    uint64_t *number = map_u64_find(&encoder->allocated, event->address);
    uint64_t size = event->size;
    enum what what = FREED;
    if (number && *number > 0) {
        const struct heap_event *allocated = &events[encoder->allocations[*number]];
        what = free_kind(event, allocated);
        size = what == FREED ? size : allocated->size;
    }
    if (what == FREED)
        event_full(encoder->columns, filling, event, encoder->guess->freed);
    else
        encoder->columns->values[BACK][filling->back++] = filling->allocations - *number;
    if (number)
        *number = 0;
    guess_freed(encoder->guess, event->address, size);
    return what;
}

static int allocated_put(struct heap_encoder *encoder, const struct heap_event *event,
                         uint32_t index, struct filling *filling)
{
    uint64_t *number = map_u64_at(&encoder->allocated, event->address, NULL);
    if (!number)
        return -ENOMEM;
    *number = ++filling->allocations;
    encoder->allocations[*number] = index;
    event_full(encoder->columns, filling, event, guess_allocation(encoder->guess, event->size));
    guess_allocated(encoder->guess, event->address, event->size);
    return 0;
}

static int columns_fill(struct heap_encoder *encoder, const struct heap_event *events,
                        uint32_t count, struct filling *filling)
{
    struct heap_columns *columns = encoder->columns;
    uint64_t before_ns = 0;
    map_u64_clear(&encoder->allocated);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = (uint32_t)encoder->order[i];
        const struct heap_event *event = &events[index];
        if (i == 0 || event->thread != encoder->guess->thread)
            guess_begin(encoder->guess, event->thread);
        columns->values[THREAD][i] = event->thread;
        columns->values[TIME][i] = zigzag(event->time_ns - before_ns);
        before_ns = event->time_ns;
        if (event->kind == HEAP_EVENT_ALLOCATED) {
            columns->values[WHAT][i] = ALLOCATED;
            if (allocated_put(encoder, event, index, filling) < 0)
                return -ENOMEM;
        } else {
            columns->values[WHAT][i] = freed_put(encoder, events, event, filling);
        }
    }
    filling->all = count;
    return 0;
}

/* The first three columns have a value an event; of the others see enum what. */
static uint32_t column_count(const struct filling *filling, enum column column)
{
    return column < BACK ? filling->all : column == BACK ? filling->back : filling->full;
}

int heap_encode(struct heap_encoder *encoder, const struct heap_event *events, uint32_t count,
                const void **ret_data, size_t *ret_size)
{
    struct filling filling = {0};
    if (count == 0 || count > HEAP_CHUNK_EVENTS)
        return -EINVAL;
    order_make(encoder, events, count);
    if (columns_fill(encoder, events, count, &filling) < 0)
        return -ENOMEM;
    unsigned char *at = encoder->raw + HEADER_BYTES;
    for (enum column column = 0; column < COLUMNS; column++)
        at = planes_put_u64(encoder->raw + (size_t)column * PLANES_HEADER_BYTES, at,
                            encoder->columns->values[column], column_count(&filling, column));
    size_t size = ZSTD_compress2(encoder->zstd, encoder->packed, encoder->packed_cap, encoder->raw,
                                 (size_t)(at - encoder->raw));
    if (ZSTD_isError(size))
        return -ENOMEM; /* the only thing left that can go wrong: room was made for the worst */
    *ret_data = encoder->packed;
    *ret_size = size;
    return 0;
}

int heap_decoder_init(struct heap_decoder *decoder)
{
    *decoder = (struct heap_decoder){.zstd = ZSTD_createDCtx()};
    decoder->raw = malloc(RAW_BYTES_MAX);
    decoder->columns = malloc(sizeof(*decoder->columns));
    decoder->guess = malloc(sizeof(*decoder->guess));
    decoder->allocations = malloc((HEAP_CHUNK_EVENTS + 1) * sizeof(*decoder->allocations));
    decoder->events = malloc(HEAP_CHUNK_EVENTS * sizeof(*decoder->events));
    if (!decoder->zstd || !decoder->raw || !decoder->columns || !decoder->guess ||
        !decoder->allocations || !decoder->events) {
        heap_decoder_deinit(decoder);
        return -ENOMEM;
    }
    return 0;
}

void heap_decoder_deinit(struct heap_decoder *decoder)
{
    ZSTD_freeDCtx(decoder->zstd);
    free(decoder->raw);
    free(decoder->columns);
    free(decoder->guess);
    free(decoder->allocations);
    free(decoder->events);
    *decoder = (struct heap_decoder){0};
}

static int damaged(const char **ret_damage, const char *text)
{
    *ret_damage = text;
    return -EBADMSG;
}

/* The first column says how many values the others have; all widths must be possible, and account
 * for every byte there is. */
static int columns_read(struct heap_decoder *decoder, size_t size, uint32_t events,
                        const char **ret_damage)
{
    struct filling filling = {.all = events};
    const unsigned char *at = decoder->raw + HEADER_BYTES, *end = decoder->raw + size;
    for (enum column column = 0; column < COLUMNS; column++) {
        const unsigned char *header = decoder->raw + (size_t)column * PLANES_HEADER_BYTES;
        uint64_t width = planes_width(header);
        uint32_t count = column_count(&filling, column);
        if (width > widths_max[column])
            return damaged(ret_damage, "a column is wider than its values can be");
        if (width * count > (size_t)(end - at))
            return damaged(ret_damage, "its columns do not add up to its length");
        at = planes_get_u64(header, at, decoder->columns->values[column], count);
        for (uint32_t i = 0; column == WHAT && i < count; i++) {
            uint64_t what = decoder->columns->values[WHAT][i];
            if (what >= WHATS)
                return damaged(ret_damage, "an event is of an unknown kind");
            *(what < FREED_KNOWN ? &filling.full : &filling.back) += 1;
        }
    }
    return at == end ? 0 : damaged(ret_damage, "its columns do not add up to its length");
}

static void full_get(const struct heap_columns *columns, struct filling *filling,
                     struct heap_event *event, struct heap_guess *guess)
{
    uint32_t at = filling->full++;
    event->stack = (uint32_t)columns->values[STACK][at];
    event->size = columns->values[SIZE][at];
    uint64_t guessed = event->kind == HEAP_EVENT_ALLOCATED ? guess_allocation(guess, event->size)
                                                           : guess->freed;
    event->address = guessed + unzigzag(columns->values[STEP][at]);
}

/* False when there was no such allocation. */
static bool back_get(const struct heap_decoder *decoder, struct filling *filling, enum what what,
                     struct heap_event *event, uint64_t *ret_size)
{
    uint64_t back = decoder->columns->values[BACK][filling->back++];
    if (back >= filling->allocations)
        return false;
    const struct heap_event
        *allocated = &decoder->events[decoder->allocations[filling->allocations - back]];
    event->address = allocated->address;
    event->stack = what == FREED_KNOWN ? allocated->stack : 0;
    event->size = what == FREED_KNOWN ? allocated->size : 0;
    *ret_size = allocated->size;
    return true;
}

static int events_make(struct heap_decoder *decoder, uint32_t count, const char **ret_damage)
{
    const struct heap_columns *columns = decoder->columns;
    struct filling filling = {0};
    uint64_t time_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        enum what what = (enum what)columns->values[WHAT][i];
        time_ns += unzigzag(columns->values[TIME][i]);
        struct heap_event event = {.thread = (uint32_t)columns->values[THREAD][i],
                                   .kind = what == ALLOCATED ? HEAP_EVENT_ALLOCATED
                                                             : HEAP_EVENT_FREED,
                                   .time_ns = time_ns};
        if (i == 0 || event.thread != decoder->guess->thread)
            guess_begin(decoder->guess, event.thread);
        uint64_t size = 0;
        if (what < FREED_KNOWN) {
            full_get(columns, &filling, &event, decoder->guess);
            size = event.size;
        } else if (!back_get(decoder, &filling, what, &event, &size)) {
            return damaged(ret_damage, "a free is of no allocation");
        }
        if (what == ALLOCATED) {
            decoder->allocations[++filling.allocations] = i;
            guess_allocated(decoder->guess, event.address, size);
        } else {
            guess_freed(decoder->guess, event.address, size);
        }
        decoder->events[i] = event;
    }
    decoder->count = count;
    return 0;
}

int heap_decode(struct heap_decoder *decoder, int64_t codec, const void *data, size_t size,
                int64_t events, const char **ret_damage)
{
    decoder->count = 0;
    if (codec != HEAP_CHUNK_CODEC)
        return damaged(ret_damage, "its codec is unknown");
    if (events < 1 || events > HEAP_CHUNK_EVENTS)
        return damaged(ret_damage, "its number of events is impossible");
    unsigned long long raw_size = ZSTD_getFrameContentSize(data, size);
    if (raw_size < HEADER_BYTES || raw_size > RAW_BYTES_MAX)
        return damaged(ret_damage, "its length is impossible");
    size_t got = ZSTD_decompressDCtx(decoder->zstd, decoder->raw, RAW_BYTES_MAX, data, size);
    if (ZSTD_isError(got))
        return ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation
                   ? -ENOMEM
                   : damaged(ret_damage, ZSTD_getErrorName(got));
    if (got < HEADER_BYTES)
        return damaged(ret_damage, "it is shorter than its header");
    if (columns_read(decoder, got, (uint32_t)events, ret_damage) < 0)
        return -EBADMSG;
    return events_make(decoder, (uint32_t)events, ret_damage);
}
