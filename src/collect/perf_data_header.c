/* What a perf.data says about itself: events, and where it was recorded. In a file it stands
 * in sections before and behind the records, in a pipe in records of its own. */
#include "collect/perf_data_parts.h"

#include <errno.h>

enum {
    FILE_HEADER_BYTES = 104,
    FEATURE_BYTES_MAX = 64 << 20,
    FEATURES = 256,
};

/* perf's numbers of features. */
enum {
    FEATURE_BUILD_ID = 2,
    FEATURE_HOSTNAME = 3,
    FEATURE_OSRELEASE = 4,
    FEATURE_ARCH = 6,
    FEATURE_CMDLINE = 11,
    FEATURE_EVENT_DESC = 12,
    FEATURE_CLOCK_DATA = 29,
};

int perf_data_attr_add(struct perf_data *data, const uint8_t *bytes, size_t len, const uint8_t *ids,
                       size_t ids_len)
{
    struct perf_data_attr attr = {.index = (uint32_t)data->attrs.len};
    if (bytes && len > 0)
        memcpy(&attr.attr, bytes, MIN(len, sizeof(attr.attr)));
    if (data->attrs.len >= PERF_DATA_ATTRS_MAX)
        return perf_data_damaged(data, "too many events");
    if (VEC_PUSH(&data->attrs, attr) < 0)
        return why_nomem(data->why);
    for (size_t i = 0; i + 8 <= ids_len; i += 8) {
        if (data->ids.len >= PERF_DATA_IDS_MAX)
            return perf_data_damaged(data, "too many event ids");
        uint64_t *slot = map_u64_at(&data->ids, perf_data_u64(ids + i), NULL);
        if (!slot)
            return why_nomem(data->why);
        *slot = data->attrs.len;
    }
    return 0;
}

/* A length, then that many bytes with a NUL somewhere among them. */
static size_t take_text(const uint8_t *bytes, size_t len, char *to, size_t size)
{
    if (len < 4)
        return 0;
    size_t text = perf_data_u32(bytes);
    if (text > len - 4)
        return 0;
    size_t copied = MIN(strnlen((const char *)bytes + 4, text), size - 1);
    memcpy(to, bytes + 4, copied);
    to[copied] = '\0';
    return 4 + text;
}

static void read_command(struct perf_data *data, const uint8_t *bytes, size_t len)
{
    char *to = data->about.command;
    size_t size = sizeof(data->about.command), used = 0;
    uint32_t words = len >= 4 ? perf_data_u32(bytes) : 0;
    size_t at = 4;
    for (uint32_t i = 0; i < words && at < len && used + 2 < size; i++) {
        if (i > 0)
            to[used++] = ' ';
        size_t taken = take_text(bytes + at, len - at, to + used, size - used);
        if (taken == 0)
            break;
        used += strlen(to + used);
        at += taken;
    }
    to[used] = '\0';
}

/* Names of events, matched by the first id, or by order where there are none. */
static void read_event_desc(struct perf_data *data, const uint8_t *bytes, size_t len)
{
    if (len < 8)
        return;
    uint32_t events = perf_data_u32(bytes);
    size_t attr_size = perf_data_u32(bytes + 4), at = 8;
    for (uint32_t i = 0; i < events && i < PERF_DATA_ATTRS_MAX; i++) {
        char name[PERF_DATA_NAME_BYTES] = "";
        if (attr_size > len || len - at < attr_size + 4)
            return;
        uint32_t ids = perf_data_u32(bytes + at + attr_size);
        at += attr_size + 4;
        size_t taken = take_text(bytes + at, len - at, name, sizeof(name));
        if (taken == 0)
            return;
        at += taken;
        size_t index = i;
        if (ids > 0 && len - at >= 8) {
            const uint64_t *found = map_u64_find(&data->ids, perf_data_u64(bytes + at));
            index = found ? *found - 1 : i;
        }
        if (index < data->attrs.len)
            memcpy(data->attrs.data[index].name, name, sizeof(name));
        if ((len - at) / 8 < ids)
            return;
        at += (size_t)ids * 8;
    }
}

void perf_data_build_id(struct perf_data *data, const uint8_t *record, size_t len)
{
    /* head, pid, 20 bytes of build-id, its length and padding, path */
    enum { ID_AT = 12, LENGTH_AT = 32, PATH_AT = 36, HAS_LENGTH = 1 << 15 };
    if (len <= PATH_AT)
        return;
    uint16_t misc = perf_data_u16(record + 4);
    uint8_t id_len = misc & HAS_LENGTH ? record[LENGTH_AT] : PERF_BUILD_ID_BYTES;
    struct str path = {(const char *)record + PATH_AT,
                       strnlen((const char *)record + PATH_AT, len - PATH_AT)};
    if (id_len == 0 || id_len > PERF_BUILD_ID_BYTES || path.len == 0 ||
        data->build_id_paths.len >= PERF_DATA_BUILD_IDS_MAX)
        return;
    uint32_t id;
    bool fresh;
    if (VEC_RESERVE(&data->build_ids, data->build_ids.len + PERF_BUILD_ID_BYTES + 1) < 0 ||
        intern_add(&data->build_id_paths, path, &id, &fresh) < 0 || !fresh)
        return;
    memcpy(data->build_ids.data + data->build_ids.len, record + ID_AT, PERF_BUILD_ID_BYTES);
    data->build_ids.data[data->build_ids.len + PERF_BUILD_ID_BYTES] = id_len;
    data->build_ids.len += PERF_BUILD_ID_BYTES + 1;
}

/* EVENT_UPDATE: a name that follows an attribute in a pipe. */
void perf_data_update(struct perf_data *data, const uint8_t *record, size_t len)
{
    enum { TYPE_AT = 8, ID_AT = 16, NAME_AT = 24, TYPE_NAME = 2 };
    if (len <= NAME_AT || perf_data_u64(record + TYPE_AT) != TYPE_NAME)
        return;
    const uint64_t *found = map_u64_find(&data->ids, perf_data_u64(record + ID_AT));
    if (!found || *found == 0 || *found > data->attrs.len)
        return;
    char *name = data->attrs.data[*found - 1].name;
    size_t copied = MIN(strnlen((const char *)record + NAME_AT, len - NAME_AT),
                        (size_t)PERF_DATA_NAME_BYTES - 1);
    memcpy(name, record + NAME_AT, copied);
    name[copied] = '\0';
}

static void read_build_ids(struct perf_data *data, const uint8_t *bytes, size_t len)
{
    for (size_t at = 0; len - at >= 8;) {
        size_t record = perf_data_u16(bytes + at + 6);
        if (record < 8 || record > len - at)
            return;
        perf_data_build_id(data, bytes + at, record);
        at += record;
    }
}

void perf_data_feature(struct perf_data *data, uint64_t feature, const uint8_t *bytes, size_t len)
{
    struct perf_data_about *about = &data->about;
    switch (feature) {
    case FEATURE_BUILD_ID:
        read_build_ids(data, bytes, len);
        break;
    case FEATURE_HOSTNAME:
        take_text(bytes, len, about->hostname, sizeof(about->hostname));
        break;
    case FEATURE_OSRELEASE:
        take_text(bytes, len, about->osrelease, sizeof(about->osrelease));
        break;
    case FEATURE_ARCH:
        take_text(bytes, len, about->arch, sizeof(about->arch));
        break;
    case FEATURE_CMDLINE:
        read_command(data, bytes, len);
        break;
    case FEATURE_EVENT_DESC:
        read_event_desc(data, bytes, len);
        break;
    case FEATURE_CLOCK_DATA:
        about->has_clock = len >= 24;
        if (about->has_clock) {
            about->wall_clock_ns = perf_data_u64(bytes + 8);
            about->clock_ns = perf_data_u64(bytes + 16);
        }
        break;
    default:
        break;
    }
}

struct section {
    uint64_t offset, size;
};

static struct section section_at(const uint8_t *bytes)
{
    return (struct section){perf_data_u64(bytes), perf_data_u64(bytes + 8)};
}

static bool section_inside(const struct perf_data *data, struct section section)
{
    uint64_t size = data->source->size_bytes;
    return section.offset <= size && section.size <= size - section.offset;
}

/* A section of limited size, in memory that the caller frees. */
static int section_read(struct perf_data *data, struct section section, uint8_t **ret)
{
    if (!section_inside(data, section) || section.size > FEATURE_BYTES_MAX)
        return perf_data_damaged(data, "a section beyond the end of the file");
    uint8_t *bytes = malloc((size_t)section.size + 1);
    if (!bytes)
        return why_nomem(data->why);
    int r = import_source_at(data->source, section.offset, bytes, (size_t)section.size, data->why);
    if (r < 0)
        free(bytes);
    else
        *ret = bytes;
    return r;
}

static int read_attrs(struct perf_data *data, struct section section, uint64_t attr_size)
{
    if (attr_size < PERF_ATTR_SIZE_VER0 + 16 || attr_size > 4096 ||
        section.size / attr_size > PERF_DATA_ATTRS_MAX)
        return perf_data_damaged(data, "attributes of a bad size");
    uint8_t *bytes = NULL;
    int r = section_read(data, section, &bytes);
    if (r < 0)
        return r;
    for (uint64_t at = 0; r == 0 && at + attr_size <= section.size; at += attr_size) {
        struct section ids = section_at(bytes + at + attr_size - 16);
        uint8_t *id_bytes = NULL;
        r = section_read(data, ids, &id_bytes);
        if (r < 0)
            break;
        r = perf_data_attr_add(data, bytes + at, (size_t)attr_size - 16, id_bytes,
                               (size_t)ids.size);
        free(id_bytes);
    }
    free(bytes);
    return r;
}

/* The table of sections stands behind the records, one row a feature that is there. A file
 * whose recorder was killed has none of it. */
static void read_features(struct perf_data *data, const uint8_t *bits, uint64_t at)
{
    for (unsigned feature = 0; feature < FEATURES; feature++) {
        if (!(bits[feature / 8] & 1 << feature % 8))
            continue;
        uint8_t row[16];
        struct why ignored;
        if (import_source_at(data->source, at, row, sizeof(row), &ignored) < 0) {
            perf_data_skip(data, "feature_missing");
            return;
        }
        at += sizeof(row);
        struct section section = section_at(row);
        if (!section_inside(data, section) || section.size > FEATURE_BYTES_MAX) {
            perf_data_skip(data, "feature_damaged");
            continue;
        }
        uint8_t *bytes = malloc((size_t)section.size + 1);
        if (bytes && import_source_at(data->source, section.offset, bytes, (size_t)section.size,
                                      &ignored) == 0)
            perf_data_feature(data, feature, bytes, (size_t)section.size);
        free(bytes);
    }
}

int perf_data_file_header(struct perf_data *data, uint64_t *ret_offset, uint64_t *ret_end)
{
    uint8_t header[FILE_HEADER_BYTES];
    int r = import_source_at(data->source, 0, header, sizeof(header), data->why);
    if (r < 0)
        return r;
    /* magic, size, size of an attribute; sections attributes, data, event types; bits */
    struct section records = section_at(header + 40);
    r = read_attrs(data, section_at(header + 24), perf_data_u64(header + 16));
    if (r < 0)
        return r;
    if (data->attrs.len == 0)
        return perf_data_damaged(data, "it has no events");
    uint64_t size = data->source->size_bytes;
    if (records.offset > size)
        return perf_data_damaged(data, "its records would begin behind its end");
    /* A killed recorder leaves the size 0: then the records go on to the end. */
    bool whole = records.size > 0 && records.size <= size - records.offset;
    if (whole)
        read_features(data, header + 72, records.offset + records.size);
    else
        perf_data_skip(data, "recorder_was_killed");
    *ret_offset = records.offset;
    *ret_end = whole ? records.offset + records.size : UINT64_MAX;
    return 0;
}
