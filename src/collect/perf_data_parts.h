/* What the files of the perf.data reader share; nobody else includes this.
 *
 * perf_data.c         headers, records, compression
 * perf_data_header.c  attributes and features
 * perf_data_order.c   events wait until it is their turn
 * perf_data_event.c   a record's bytes become an event */
#pragma once

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/perf_data.h"

/* Records of perf itself, not of the kernel. */
enum {
    USER_TYPE_START = 64,
    USER_HEADER_ATTR = 64,
    USER_HEADER_TRACING_DATA = 66,
    USER_HEADER_BUILD_ID = 67,
    USER_FINISHED_ROUND = 68,
    USER_AUXTRACE = 71,
    USER_EVENT_UPDATE = 78,
    USER_HEADER_FEATURE = 80,
    USER_COMPRESSED = 81,
    USER_COMPRESSED2 = 83,
};

enum { PERF_BUILD_ID_BYTES = 20 };

struct queued {
    uint64_t time_ns;
    uint64_t number; /* in the order of arrival */
    size_t offset;   /* in bytes */
};

struct perf_data {
    struct import_source *source;
    const struct perf_data_ops *ops;
    void *context;
    struct why *why;
    struct perf_data_about about;
    bool begun;
    VEC(struct perf_data_attr) attrs;
    struct map_u64 ids; /* event id to attribute + 1 */
    struct intern build_id_paths;
    VEC(uint8_t) build_ids; /* PERF_BUILD_ID_BYTES + 1 (its length) each, beside the paths */
    /* order */
    VEC(uint8_t) bytes;
    VEC(struct queued) queue;
    uint64_t number;
    uint64_t latest_ns; /* of all events so far */
    uint64_t round_ns;  /* latest when the last round ended: nothing older will come */
    uint64_t delivered_ns;
    /* compression */
    struct ZSTD_DCtx_s *zstd;
    VEC(uint8_t) unpacked; /* what did not make a whole record yet */
    /* of one event */
    uint64_t kernel[PERF_DATA_CHAIN_MAX], user[PERF_DATA_CHAIN_MAX];
};

static inline uint16_t perf_data_u16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}
static inline uint32_t perf_data_u32(const uint8_t *at)
{
    uint32_t value = 0;
    if (at)
        memcpy(&value, at, sizeof(value));
    return value;
}
static inline uint64_t perf_data_u64(const uint8_t *at)
{
    uint64_t value = 0;
    if (at)
        memcpy(&value, at, sizeof(value));
    return value;
}

int perf_data_damaged(struct perf_data *data, const char *what);
static inline void perf_data_skip(struct perf_data *data, const char *reason)
{
    data->ops->skip(data->context, reason);
}

/* perf_data_header.c */
MUST_USE int perf_data_attr_add(struct perf_data *data, const uint8_t *bytes, size_t len,
                                const uint8_t *ids, size_t ids_len);
void perf_data_feature(struct perf_data *data, uint64_t feature, const uint8_t *bytes, size_t len);
void perf_data_build_id(struct perf_data *data, const uint8_t *record, size_t len);
void perf_data_update(struct perf_data *data, const uint8_t *record, size_t len);
/* A file's header: attributes and features; where its records are. */
MUST_USE int perf_data_file_header(struct perf_data *data, uint64_t *ret_offset, uint64_t *ret_end);

/* perf_data_order.c */
MUST_USE int perf_data_queue(struct perf_data *data, const uint8_t *record, size_t len);
MUST_USE int perf_data_round(struct perf_data *data);
MUST_USE int perf_data_flush(struct perf_data *data); /* all that is left */

/* perf_data_event.c */
/* False when the record does not tell. */
bool perf_data_time(const struct perf_data *data, const uint8_t *record, size_t len,
                    uint64_t *ret_ns);
MUST_USE int perf_data_deliver(struct perf_data *data, const uint8_t *record, size_t len);
