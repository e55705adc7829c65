/* The records of a perf.data, one after the other: those of perf are dealt with here, those of
 * the kernel go on to be put into order. */
#include "collect/perf_data.h"

#include "collect/perf_data_parts.h"

#include <errno.h>
#include <zstd.h>

enum {
    RECORD_HEAD_BYTES = 8,
    PIPE_HEADER_BYTES = 16,
    UNPACK_BYTES = 128 << 10,
};

static const char magic[8] = {'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'};
static const char magic_swapped[8] = {'2', 'E', 'L', 'I', 'F', 'R', 'E', 'P'};
static const char magic_old[8] = {'P', 'E', 'R', 'F', 'F', 'I', 'L', 'E'};

int perf_data_damaged(struct perf_data *data, const char *what)
{
    return why_set(data->why, WHY_FAILED, EBADMSG,
                   "copy the file again, or check it with 'perf report --stdio -i FILE'",
                   "'%s': damaged perf.data: %s", data->source->path, what);
}

bool perf_data_detect(struct str head)
{
    return head.len >= sizeof(magic) && (memcmp(head.data, magic, sizeof(magic)) == 0 ||
                                         memcmp(head.data, magic_swapped, sizeof(magic)) == 0 ||
                                         memcmp(head.data, magic_old, sizeof(magic)) == 0);
}

static int refuse(struct perf_data *data, const char *what, const char *remedy)
{
    return why_set(data->why, WHY_DENIED, EOPNOTSUPP, remedy, "'%s' is %s", data->source->path,
                   what);
}

/* Bytes that follow a record and belong to it: of tracing data and AUX traces. */
static int skip_payload(struct perf_data *data, uint64_t len)
{
    while (len > 0) {
        struct str some;
        int r = import_source_peek(data->source, (size_t)MIN(len, (uint64_t)UNPACK_BYTES), &some,
                                   data->why);
        if (r < 0)
            return r;
        if (some.len == 0)
            break; /* cut off: the loop over records notices */
        import_source_take(data->source, some.len);
        len -= some.len;
    }
    return 0;
}

static int record_add(struct perf_data *data, const uint8_t *record, size_t len, bool unpacked);

/* Whole records of what was unpacked so far; the rest waits for more. */
static int unpacked_records(struct perf_data *data)
{
    size_t at = 0;
    while (data->unpacked.len - at >= RECORD_HEAD_BYTES) {
        size_t len = perf_data_u16(data->unpacked.data + at + 6);
        if (len < RECORD_HEAD_BYTES)
            return perf_data_damaged(data, "a compressed record without a length");
        if (len > data->unpacked.len - at)
            break;
        int r = record_add(data, data->unpacked.data + at, len, true);
        if (r < 0)
            return r;
        at += len;
    }
    memmove(data->unpacked.data, data->unpacked.data + at, data->unpacked.len - at);
    data->unpacked.len -= at;
    return 0;
}

/* One stream of zstd goes through all compressed records; a record of ours may begin in one
 * of them and end in the next. Unpacked in small steps, so that a bomb costs no memory. */
static int unpack(struct perf_data *data, const uint8_t *bytes, size_t len)
{
    data->about.compressed = true;
    if (!data->zstd)
        data->zstd = ZSTD_createDCtx();
    if (!data->zstd)
        return why_nomem(data->why);
    ZSTD_inBuffer in = {bytes, len, 0};
    for (;;) {
        if (VEC_RESERVE(&data->unpacked, data->unpacked.len + UNPACK_BYTES) < 0)
            return why_nomem(data->why);
        ZSTD_outBuffer out = {data->unpacked.data + data->unpacked.len, UNPACK_BYTES, 0};
        size_t before = in.pos;
        size_t rc = ZSTD_decompressStream(data->zstd, &out, &in);
        if (ZSTD_isError(rc))
            return perf_data_damaged(data, ZSTD_getErrorName(rc));
        data->unpacked.len += out.pos;
        int r = unpacked_records(data);
        if (r < 0)
            return r;
        if (out.pos < UNPACK_BYTES && (in.pos == in.size || in.pos == before))
            return 0;
    }
}

static int header_attr(struct perf_data *data, const uint8_t *record, size_t len)
{
    if (len < RECORD_HEAD_BYTES + PERF_ATTR_SIZE_VER0)
        return perf_data_damaged(data, "an attribute that is too short");
    size_t size = perf_data_u32(record + RECORD_HEAD_BYTES + 4);
    size = size == 0 ? PERF_ATTR_SIZE_VER0 : size;
    if (size < PERF_ATTR_SIZE_VER0 || size > len - RECORD_HEAD_BYTES)
        return perf_data_damaged(data, "an attribute of a bad size");
    const uint8_t *ids = record + RECORD_HEAD_BYTES + size;
    return perf_data_attr_add(data, record + RECORD_HEAD_BYTES, size, ids,
                              len - RECORD_HEAD_BYTES - size);
}

static int user_record(struct perf_data *data, uint32_t type, const uint8_t *record, size_t len,
                       bool unpacked)
{
    switch (type) {
    case USER_HEADER_ATTR:
        return header_attr(data, record, len);
    case USER_HEADER_FEATURE:
        if (len >= RECORD_HEAD_BYTES + 8)
            perf_data_feature(data, perf_data_u64(record + 8), record + 16, len - 16);
        return 0;
    case USER_HEADER_BUILD_ID:
        perf_data_build_id(data, record, len);
        return 0;
    case USER_EVENT_UPDATE:
        perf_data_update(data, record, len);
        return 0;
    case USER_FINISHED_ROUND:
        return perf_data_round(data);
    case USER_COMPRESSED:
    case USER_COMPRESSED2:
        if (unpacked)
            return perf_data_damaged(data, "a compressed record inside a compressed one");
        if (type == USER_COMPRESSED)
            return unpack(data, record + RECORD_HEAD_BYTES, len - RECORD_HEAD_BYTES);
        if (len < 16 || perf_data_u64(record + 8) > len - 16)
            return perf_data_damaged(data, "a compressed record of a bad size");
        return unpack(data, record + 16, (size_t)perf_data_u64(record + 8));
    default:
        return 0; /* maps of CPUs, statistics, time conversion: nothing for a profile */
    }
}

static int record_add(struct perf_data *data, const uint8_t *record, size_t len, bool unpacked)
{
    uint32_t type = perf_data_u32(record);
    if (type >= USER_TYPE_START)
        return user_record(data, type, record, len, unpacked);
    if (data->attrs.len == 0) {
        perf_data_skip(data, "before_any_attribute");
        return 0;
    }
    if (!data->begun) {
        int r = data->ops->begin(data->context, &data->about, data->why);
        if (r < 0)
            return r;
        data->begun = true;
    }
    return perf_data_queue(data, record, len);
}

static uint64_t payload_of(const uint8_t *record, size_t len)
{
    uint32_t type = perf_data_u32(record);
    if (type == USER_HEADER_TRACING_DATA && len >= 12)
        return ((uint64_t)perf_data_u32(record + 8) + 7) & ~7ull;
    if (type == USER_AUXTRACE && len >= 16)
        return perf_data_u64(record + 8);
    return 0;
}

/* From the source's place up to `end` (a file's data section) or the end of the stream. */
static int read_records(struct perf_data *data, uint64_t end)
{
    struct import_source *source = data->source;
    while (source->taken < end) {
        struct str head;
        int r = import_source_peek(source, RECORD_HEAD_BYTES, &head, data->why);
        if (r < 0)
            return r;
        if (head.len == 0)
            break;
        size_t len = head.len < RECORD_HEAD_BYTES ? 0
                                                  : perf_data_u16((const uint8_t *)head.data + 6);
        if (head.len == RECORD_HEAD_BYTES && len < RECORD_HEAD_BYTES)
            return perf_data_damaged(data, "a record without a length");
        r = import_source_peek(source, len, &head, data->why);
        if (r < 0)
            return r;
        if (head.len < len || len == 0) {
            /* The recorder was killed: everything before is good. */
            perf_data_skip(data, "cut_off");
            break;
        }
        const uint8_t *record = (const uint8_t *)head.data;
        uint64_t payload = payload_of(record, len);
        r = record_add(data, record, len, false);
        if (r < 0)
            return r;
        import_source_take(source, len);
        r = skip_payload(data, payload);
        if (r < 0)
            return r;
    }
    if (data->unpacked.len > 0)
        perf_data_skip(data, "cut_off");
    return perf_data_flush(data);
}

static int read_all(struct perf_data *data)
{
    struct str head;
    int r = import_source_peek(data->source, PIPE_HEADER_BYTES, &head, data->why);
    if (r < 0)
        return r;
    if (head.len < PIPE_HEADER_BYTES)
        return perf_data_damaged(data, "it ends inside its header");
    if (memcmp(head.data, magic_swapped, sizeof(magic)) == 0)
        return refuse(data, "a perf.data of a big-endian machine, which whyslow does not read",
                      "turn it into text there: perf script -i FILE > FILE.txt");
    if (memcmp(head.data, magic_old, sizeof(magic)) == 0)
        return refuse(data, "a perf.data of version 1 (before 2009), which whyslow does not read",
                      "turn it into text: perf script -i FILE > FILE.txt");
    if (memcmp(head.data, magic, sizeof(magic)) != 0)
        return perf_data_damaged(data, "it does not begin with PERFILE2");
    uint64_t size = perf_data_u64((const uint8_t *)head.data + 8);
    if (size == PIPE_HEADER_BYTES) {
        data->about.pipe = true;
        import_source_take(data->source, PIPE_HEADER_BYTES);
        return read_records(data, UINT64_MAX);
    }
    if (!data->source->seekable)
        return why_set(data->why, WHY_USAGE, ESPIPE, "name the file itself, or record with -o -",
                       "a perf.data file cannot be read from a pipe: it must be read out of order");
    uint64_t offset, end;
    r = perf_data_file_header(data, &offset, &end);
    if (r == 0)
        r = import_source_seek(data->source, offset, data->why);
    return r < 0 ? r : read_records(data, end);
}

int perf_data_read(struct import_source *source, const struct perf_data_ops *ops, void *context,
                   struct why *why)
{
    struct perf_data *data = calloc(1, sizeof(*data));
    if (!data)
        return why_nomem(why);
    data->source = source;
    data->ops = ops;
    data->context = context;
    data->why = why;
    int r = read_all(data);
    VEC_FREE(&data->attrs);
    map_u64_deinit(&data->ids);
    intern_deinit(&data->build_id_paths);
    VEC_FREE(&data->build_ids);
    VEC_FREE(&data->bytes);
    VEC_FREE(&data->queue);
    VEC_FREE(&data->unpacked);
    ZSTD_freeDCtx(data->zstd);
    free(data);
    return r;
}
