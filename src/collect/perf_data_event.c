/* A record's bytes become an event. Which fields a sample has, and what stands at the end of
 * the other records, is said by the attribute of its event. */
#include "collect/perf_data_parts.h"

#include <errno.h>
#include <sys/mman.h>

enum {
    HEAD_BYTES = 8,
    CONTEXT_MIN = 4095, /* addresses above -4095 are marks in a chain, not addresses */
    MMAP2_BUILD_ID = 1 << 14,
};

struct cursor {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t take(struct cursor *cursor)
{
    if (cursor->end - cursor->at < 8) {
        cursor->bad = true;
        return 0;
    }
    uint64_t value = perf_data_u64(cursor->at);
    cursor->at += 8;
    return value;
}

static const uint8_t *take_bytes(struct cursor *cursor, uint64_t len)
{
    if (len > (uint64_t)(cursor->end - cursor->at)) {
        cursor->bad = true;
        return NULL;
    }
    const uint8_t *bytes = cursor->at;
    cursor->at += len;
    return bytes;
}

static unsigned bits_before(uint64_t sample_type, uint64_t mask)
{
    return (unsigned)__builtin_popcountll(sample_type & mask);
}

/* Which event a record is of. All events of a file place the id at the same spot: perf uses
 * IDENTIFIER where they would not. */
static const struct perf_data_attr *attr_of(const struct perf_data *data, const uint8_t *record,
                                            size_t len)
{
    const struct perf_data_attr *first = &data->attrs.data[0];
    uint64_t type = first->attr.sample_type;
    bool sample = perf_data_u32(record) == PERF_RECORD_SAMPLE;
    if (data->attrs.len == 1)
        return first;
    size_t at;
    if (sample) {
        at = HEAD_BYTES;
        if (!(type & PERF_SAMPLE_IDENTIFIER))
            at += 8 * bits_before(type, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                            PERF_SAMPLE_ADDR);
    } else {
        size_t behind = type & PERF_SAMPLE_IDENTIFIER
                            ? 8
                            : 8 + 8 * bits_before(type, PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
        if (!first->attr.sample_id_all || len < HEAD_BYTES + behind)
            return first;
        at = len - behind;
    }
    if (!(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)) || at + 8 > len)
        return first;
    const uint64_t *found = map_u64_find(&data->ids, perf_data_u64(record + at));
    return found && *found > 0 && *found <= data->attrs.len ? &data->attrs.data[*found - 1] : first;
}

bool perf_data_time(const struct perf_data *data, const uint8_t *record, size_t len,
                    uint64_t *ret_ns)
{
    const struct perf_event_attr *attr = &attr_of(data, record, len)->attr;
    uint64_t type = attr->sample_type;
    if (!(type & PERF_SAMPLE_TIME))
        return false;
    size_t at;
    if (perf_data_u32(record) == PERF_RECORD_SAMPLE) {
        at = HEAD_BYTES +
             8 * bits_before(type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID);
    } else {
        size_t behind = 8 + 8 * bits_before(type, PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                                                      PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER);
        if (!attr->sample_id_all || len < HEAD_BYTES + behind)
            return false;
        at = len - behind;
    }
    if (at + 8 > len)
        return false;
    *ret_ns = perf_data_u64(record + at);
    return true;
}

static void skip_read(struct cursor *cursor, uint64_t format)
{
    unsigned per_value = 1 + bits_before(format, PERF_FORMAT_ID | PERF_FORMAT_LOST);
    unsigned times = bits_before(format,
                                 PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    if (!(format & PERF_FORMAT_GROUP)) {
        take_bytes(cursor, 8 * (uint64_t)(per_value + times));
        return;
    }
    uint64_t count = take(cursor);
    if (count > UINT16_MAX)
        cursor->bad = true;
    else
        take_bytes(cursor, 8 * (times + count * per_value));
}

/* Marks split a chain into the kernel's and the user's part; without one, the record's own
 * mode tells. What belongs to a guest is left out. */
static void split_chain(struct perf_data *data, const uint8_t *chain, uint64_t count, bool kernel,
                        struct perf_data_sample *sample)
{
    enum { IN_KERNEL, IN_USER, ELSEWHERE } part = kernel ? IN_KERNEL : IN_USER;
    bool cut = false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t address = perf_data_u64(chain + 8 * i);
        if (address > (uint64_t)-CONTEXT_MIN) {
            part = address == (uint64_t)PERF_CONTEXT_KERNEL ? IN_KERNEL
                   : address == (uint64_t)PERF_CONTEXT_USER ? IN_USER
                                                            : ELSEWHERE;
            continue;
        }
        if (part == IN_KERNEL && sample->kernel_count < PERF_DATA_CHAIN_MAX)
            data->kernel[sample->kernel_count++] = address;
        else if (part == IN_USER && sample->user_count < PERF_DATA_CHAIN_MAX)
            data->user[sample->user_count++] = address;
        else
            cut = cut || part != ELSEWHERE;
    }
    if (cut)
        perf_data_skip(data, "chain_too_deep");
}

static void take_branches(struct cursor *cursor, const struct perf_event_attr *attr)
{
    uint64_t count = take(cursor);
    if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
        take(cursor);
    if (count > UINT16_MAX)
        cursor->bad = true;
    else
        take_bytes(cursor, count * 24);
}

static void take_user_stack(struct cursor *cursor, const struct perf_event_attr *attr,
                            struct perf_data_sample *sample)
{
    if (attr->sample_type & PERF_SAMPLE_REGS_USER) {
        sample->regs_abi = take(cursor);
        sample->regs_mask = attr->sample_regs_user;
        if (sample->regs_abi != PERF_SAMPLE_REGS_ABI_NONE)
            sample->regs = take_bytes(cursor,
                                      8 * (uint64_t)__builtin_popcountll(sample->regs_mask));
    }
    if (attr->sample_type & PERF_SAMPLE_STACK_USER) {
        uint64_t size = take(cursor);
        if (size > 0) {
            sample->stack = take_bytes(cursor, size);
            uint64_t used = take(cursor);
            sample->stack_len = (size_t)MIN(used, size);
        }
    }
}

/* The order of the fields is that of perf_event_open(2). */
static bool parse_sample(struct perf_data *data, const uint8_t *record, size_t len,
                         struct perf_data_event *event)
{
    struct perf_data_sample *sample = &event->sample;
    sample->attr = attr_of(data, record, len);
    const struct perf_event_attr *attr = &sample->attr->attr;
    uint64_t type = attr->sample_type, ip = 0;
    struct cursor cursor = {record + HEAD_BYTES, record + len, false};
    bool kernel = (perf_data_u16(record + 4) & PERF_RECORD_MISC_CPUMODE_MASK) ==
                  PERF_RECORD_MISC_KERNEL;
    if (type & PERF_SAMPLE_IDENTIFIER)
        take(&cursor);
    if (type & PERF_SAMPLE_IP)
        ip = take(&cursor);
    if (type & PERF_SAMPLE_TID) {
        uint64_t both = take(&cursor);
        event->pid = (int)(uint32_t)both;
        event->tid = (int)(uint32_t)(both >> 32);
    }
    if (type & PERF_SAMPLE_TIME)
        event->time_ns = take(&cursor);
    take_bytes(&cursor,
               8 * (uint64_t)bits_before(type, PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
                                                   PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
    if (type & PERF_SAMPLE_PERIOD)
        sample->period = take(&cursor);
    if (type & PERF_SAMPLE_READ)
        skip_read(&cursor, attr->read_format);
    if (type & PERF_SAMPLE_CALLCHAIN) {
        uint64_t count = take(&cursor);
        const uint8_t *chain = count <= len / 8 ? take_bytes(&cursor, count * 8) : NULL;
        if (!chain)
            return false;
        split_chain(data, chain, count, kernel, sample);
    }
    if (type & PERF_SAMPLE_RAW) {
        const uint8_t *size = take_bytes(&cursor, 4);
        if (size)
            take_bytes(&cursor, perf_data_u32(size));
    }
    if (type & PERF_SAMPLE_BRANCH_STACK)
        take_branches(&cursor, attr);
    take_user_stack(&cursor, attr, sample);
    if (sample->kernel_count == 0 && sample->user_count == 0 && ip != 0) {
        if (kernel)
            data->kernel[sample->kernel_count++] = ip;
        else if (!sample->regs)
            data->user[sample->user_count++] = ip;
    }
    sample->kernel = data->kernel;
    sample->user = data->user;
    return !cursor.bad;
}

static struct str text_at(const uint8_t *record, size_t len, size_t at)
{
    if (at >= len)
        return STR("");
    return (struct str){(const char *)record + at, strnlen((const char *)record + at, len - at)};
}

/* A build-id of the file's list, where the mapping itself has none. */
static void look_up_build_id(const struct perf_data *data, struct perf_data_mmap *mmap)
{
    uint32_t id = intern_find(&data->build_id_paths, mmap->path);
    if (id == 0)
        return;
    mmap->build_id = data->build_ids.data + (size_t)(id - 1) * (PERF_BUILD_ID_BYTES + 1);
    mmap->build_id_len = mmap->build_id[PERF_BUILD_ID_BYTES];
}

static bool parse_mmap(const struct perf_data *data, const uint8_t *record, size_t len,
                       struct perf_data_event *event)
{
    enum { PATH_AT = 40, DETAILS_AT = 40, PROT_AT = 64, PATH2_AT = 72 };
    struct perf_data_mmap *mmap = &event->mmap;
    bool second = perf_data_u32(record) == PERF_RECORD_MMAP2;
    uint16_t misc = perf_data_u16(record + 4);
    if (len <= (second ? PATH2_AT : PATH_AT))
        return false;
    event->pid = (int)perf_data_u32(record + 8);
    event->tid = (int)perf_data_u32(record + 12);
    mmap->address = perf_data_u64(record + 16);
    mmap->size_bytes = perf_data_u64(record + 24);
    mmap->file_offset = perf_data_u64(record + 32);
    mmap->path = text_at(record, len, second ? PATH2_AT : PATH_AT);
    mmap->executable = second ? perf_data_u32(record + PROT_AT) & PROT_EXEC
                              : !(misc & PERF_RECORD_MISC_MMAP_DATA);
    if (mmap->size_bytes == 0 || mmap->address + mmap->size_bytes < mmap->address)
        return false;
    if (second && misc & MMAP2_BUILD_ID) {
        mmap->build_id_len = MIN(record[DETAILS_AT], PERF_BUILD_ID_BYTES);
        mmap->build_id = mmap->build_id_len ? record + DETAILS_AT + 4 : NULL;
    } else {
        if (second) {
            mmap->device_major = perf_data_u32(record + DETAILS_AT);
            mmap->device_minor = perf_data_u32(record + DETAILS_AT + 4);
            mmap->inode = perf_data_u64(record + DETAILS_AT + 8);
        }
        look_up_build_id(data, mmap);
    }
    return true;
}

static bool parse_task(const uint8_t *record, size_t len, struct perf_data_event *event)
{
    if (len < HEAD_BYTES + 24)
        return false;
    event->pid = (int)perf_data_u32(record + 8);
    event->parent_pid = (int)perf_data_u32(record + 12);
    event->tid = (int)perf_data_u32(record + 16);
    if (event->time_ns == 0)
        event->time_ns = perf_data_u64(record + 24);
    return true;
}

static bool parse_comm(const uint8_t *record, size_t len, struct perf_data_event *event)
{
    if (len <= HEAD_BYTES + 8)
        return false;
    event->pid = (int)perf_data_u32(record + 8);
    event->tid = (int)perf_data_u32(record + 12);
    event->exec = perf_data_u16(record + 4) & PERF_RECORD_MISC_COMM_EXEC;
    event->comm = text_at(record, len, HEAD_BYTES + 8);
    return true;
}

static bool parse_lost(const uint8_t *record, size_t len, struct perf_data_event *event)
{
    size_t at = perf_data_u32(record) == PERF_RECORD_LOST ? 16 : 8;
    if (len < at + 8)
        return false;
    event->lost = perf_data_u64(record + at);
    return true;
}

/* False: the record makes no sense. *ret_wanted: it is one that a profile needs. */
static bool parse(struct perf_data *data, const uint8_t *record, size_t len,
                  struct perf_data_event *event, bool *ret_wanted)
{
    *ret_wanted = true;
    switch (perf_data_u32(record)) {
    case PERF_RECORD_SAMPLE:
        event->kind = PERF_DATA_SAMPLE;
        return parse_sample(data, record, len, event);
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        event->kind = PERF_DATA_MMAP;
        return parse_mmap(data, record, len, event);
    case PERF_RECORD_COMM:
        event->kind = PERF_DATA_COMM;
        return parse_comm(record, len, event);
    case PERF_RECORD_FORK:
        event->kind = PERF_DATA_FORK;
        return parse_task(record, len, event);
    case PERF_RECORD_EXIT:
        event->kind = PERF_DATA_EXIT;
        return parse_task(record, len, event);
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        event->kind = PERF_DATA_LOST;
        return parse_lost(record, len, event);
    case PERF_RECORD_THROTTLE:
        event->kind = PERF_DATA_THROTTLE;
        return true;
    default:
        *ret_wanted = false;
        return true;
    }
}

int perf_data_deliver(struct perf_data *data, const uint8_t *record, size_t len)
{
    struct perf_data_event event = {.comm = STR("")};
    bool wanted;
    if (!perf_data_time(data, record, len, &event.time_ns) || event.time_ns == UINT64_MAX)
        event.time_ns = 0;
    if (!parse(data, record, len, &event, &wanted)) {
        perf_data_skip(data, "bad_record");
        return 0;
    }
    return wanted ? data->ops->event(data->context, &event, data->why) : 0;
}
