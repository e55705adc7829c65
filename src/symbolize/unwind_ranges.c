/* The symbolizer of last resort: functions without a name, told apart by the unwind table.
 *
 * A stripped program still says where each of its functions starts, in .eh_frame_hdr. A name
 * made of the address ("cc1+0x8a3f40") keeps the time of two functions apart, where the
 * image's name alone would be one row that says nothing. */
#include "symbolize/bytes.h"
#include "symbolize/internal.h"

#include <errno.h>
#include <stdlib.h>

enum {
    HEADER_VERSION = 1,
    COUNT_UDATA4 = 0x03,
    TABLE_DATAREL_SDATA4 = 0x3b, /* what every linker writes, since only it can be searched */
    OMITTED = 0xff,
    RANGES_MAX = 1 << 24,
};

struct unwind_range {
    uint64_t start;
    uint64_t entry; /* where its entry in .eh_frame stands */
};

struct unwind_ranges {
    struct unwind_range *ranges; /* by start */
    size_t count;
    struct str frames; /* .eh_frame */
    uint64_t frames_address;
    struct map_u64 shown; /* start → index of its symbol_function, plus one */
};

/* The size of the pointer to .eh_frame that stands before the table; 0 if it is none we know. */
static unsigned pointer_size(uint8_t encoding)
{
    static const unsigned sizes[16] = {
        [0x00] = 8, [0x02] = 2, [0x03] = 4, [0x04] = 8, [0x0a] = 2, [0x0b] = 4, [0x0c] = 8};
    return encoding == OMITTED ? 0 : sizes[encoding & 0x0f];
}

static int start_order(const void *a, const void *b)
{
    const struct unwind_range *left = a, *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

/* -ENOENT when there is no table to read, -EBADMSG when it is cut short. */
static int ranges_read(struct symbols *symbols, struct unwind_ranges *ranges)
{
    GElf_Shdr header, frames;
    const char *problem = NULL;
    if (!elf_file_section(&symbols->elf, ".eh_frame_hdr", &header) ||
        !elf_file_section(&symbols->elf, ".eh_frame", &frames))
        return -ENOENT;
    ranges->frames = elf_file_bytes(&symbols->elf, ".eh_frame", &problem);
    ranges->frames_address = frames.sh_addr;
    struct str bytes = elf_file_bytes(&symbols->elf, ".eh_frame_hdr", &problem);
    struct cursor cursor = cursor_at(bytes, 0);
    uint8_t version = cursor_u8(&cursor), pointer = cursor_u8(&cursor);
    uint8_t count_encoding = cursor_u8(&cursor), table = cursor_u8(&cursor);
    if (bytes.len == 0 || version != HEADER_VERSION || count_encoding != COUNT_UDATA4 ||
        table != TABLE_DATAREL_SDATA4 || pointer_size(pointer) == 0)
        return -ENOENT;
    cursor_skip(&cursor, pointer_size(pointer));
    uint32_t count = cursor_u32(&cursor);
    if (cursor.bad || count > RANGES_MAX || count > cursor_left(&cursor) / 8)
        return -EBADMSG;
    ranges->ranges = malloc(((size_t)count + 1) * sizeof(*ranges->ranges));
    if (!ranges->ranges)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t start = header.sh_addr + (uint64_t)(int64_t)(int32_t)cursor_u32(&cursor);
        uint64_t entry = header.sh_addr + (uint64_t)(int64_t)(int32_t)cursor_u32(&cursor);
        if (elf_file_executes(&symbols->elf, start))
            ranges->ranges[ranges->count++] = (struct unwind_range){start, entry};
    }
    qsort(ranges->ranges, ranges->count, sizeof(*ranges->ranges), start_order);
    return ranges->count > 0 ? 0 : -ENOENT;
}

static void ranges_close(void *state)
{
    struct unwind_ranges *ranges = state;
    if (!ranges)
        return;
    free(ranges->ranges);
    map_u64_deinit(&ranges->shown);
    free(ranges);
}

static int ranges_open(struct symbols *symbols, void **ret_state, struct why *why)
{
    if (!symbols->elf.elf)
        return 0;
    struct unwind_ranges *ranges = calloc(1, sizeof(*ranges));
    if (!ranges)
        return why_nomem(why);
    int r = ranges_read(symbols, ranges);
    if (r == 0) {
        *ret_state = ranges;
        return 0;
    }
    ranges_close(ranges);
    if (r == -EBADMSG)
        symbols_note(symbols, "damaged .eh_frame_hdr: its table is cut short");
    return r == -ENOMEM ? why_nomem(why) : 0;
}

/* From the entry: length, CIE, start, size. How wide the last two are stands in the CIE; what
 * the table says of the start tells it as well. 0 when the entry says otherwise. */
static uint64_t range_size(const struct unwind_ranges *ranges, const struct unwind_range *range)
{
    struct cursor cursor = cursor_at(ranges->frames, range->entry - ranges->frames_address);
    uint32_t length = cursor_u32(&cursor);
    cursor_u32(&cursor);
    uint64_t here = range->entry + 8;
    struct cursor wide = cursor;
    uint64_t start = (uint64_t)(int64_t)(int32_t)cursor_u32(&cursor);
    uint64_t size = cursor_u32(&cursor);
    if (length < 16 || length == UINT32_MAX || cursor.bad)
        return 0;
    if (here + start == range->start || start == range->start)
        return size;
    start = cursor_u64(&wide);
    size = cursor_u64(&wide);
    bool same = here + start == range->start || start == range->start;
    return same && !wide.bad ? size : 0;
}

static uint32_t function_at(struct symbols *symbols, struct unwind_ranges *ranges, uint64_t start,
                            uint64_t size_bytes)
{
    bool fresh;
    uint64_t *known = map_u64_at(&ranges->shown, start, &fresh);
    if (!known)
        return UINT32_MAX;
    if (!fresh && *known != 0)
        return (uint32_t)*known - 1;
    const char *slash = strrchr(symbols->path, '/');
    const char *name = arena_printf(&symbols->arena, "%s+0x%llx", slash ? slash + 1 : symbols->path,
                                    (unsigned long long)start);
    struct symbol_function function = {
        .name = str_from(name),
        .start = start,
        .size_bytes = size_bytes,
    };
    uint32_t added = symbols_function_add(symbols, &function);
    *known = (uint64_t)added + 1;
    return added;
}

static size_t ranges_at(struct symbols *symbols, void *state, uint64_t vaddr,
                        struct symbol_hit *ret, size_t max)
{
    struct unwind_ranges *ranges = state;
    size_t low = 0, high = ranges->count; /* the first start beyond the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->ranges[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || max == 0)
        return 0;
    const struct unwind_range *range = &ranges->ranges[low - 1];
    uint64_t size_bytes = range_size(ranges, range);
    if (vaddr - range->start >= size_bytes)
        return 0; /* between functions */
    ret[0] = (struct symbol_hit){
        .function = function_at(symbols, ranges, range->start, size_bytes)};
    return ret[0].function != UINT32_MAX;
}

const struct symbolizer symbolizer_unwind_ranges = {
    .name = "unwind table",
    .kinds = 1u << IMAGE_FILE | 1u << IMAGE_VDSO,
    .open = ranges_open,
    .at = ranges_at,
    .close = ranges_close,
};
