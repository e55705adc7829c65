/* Reading perf.data: file and pipe mode, compressed records, events put into the order of time.
 *
 *     perf_data_read(source, &ops, context, why)
 *
 * calls back for every event in the order of time. It knows the bytes, not what they mean for
 * a profile: that is import_perf.c. Nothing in the file is trusted; what makes no sense is
 * told to ops->skip by reason. Memory: at most PERF_DATA_QUEUE_BYTES_MAX of events that wait
 * for their turn, whatever the file says. */
#pragma once

#include "collect/import_source.h"

#include <linux/perf_event.h>

enum {
    PERF_DATA_ATTRS_MAX = 4096,
    PERF_DATA_IDS_MAX = 1 << 20,
    PERF_DATA_BUILD_IDS_MAX = 1 << 16,
    PERF_DATA_QUEUE_BYTES_MAX = 256 << 20,
    PERF_DATA_CHAIN_MAX = 1024,
    PERF_DATA_NAME_BYTES = 64,
};

struct perf_data_attr {
    struct perf_event_attr attr;
    uint32_t index;                  /* in the file */
    char name[PERF_DATA_NAME_BYTES]; /* "cycles:u"; empty if the file does not say */
};

/* What the file says about where it comes from; empty texts if it does not. */
struct perf_data_about {
    char hostname[256];
    char osrelease[256];
    char arch[64];
    char command[1024];
    bool has_clock; /* the two below are of the same moment */
    uint64_t wall_clock_ns, clock_ns;
    bool compressed, pipe;
};

enum perf_data_kind {
    PERF_DATA_MMAP,
    PERF_DATA_COMM,
    PERF_DATA_FORK,
    PERF_DATA_EXIT,
    PERF_DATA_LOST,
    PERF_DATA_THROTTLE,
    PERF_DATA_SAMPLE,
};

struct perf_data_sample {
    const struct perf_data_attr *attr;
    uint64_t period;               /* 0: not told */
    const uint64_t *kernel, *user; /* innermost first */
    size_t kernel_count, user_count;
    uint64_t regs_abi;   /* 0: no registers */
    uint64_t regs_mask;  /* perf's numbers */
    const uint8_t *regs; /* unaligned u64, in the order of the mask's bits */
    const uint8_t *stack;
    size_t stack_len;
};

struct perf_data_mmap {
    uint64_t address, size_bytes, file_offset;
    struct str path;
    bool executable;
    const uint8_t *build_id; /* NULL: not told */
    size_t build_id_len;
    uint64_t inode;
    uint32_t device_major, device_minor;
};

/* Texts and pointers are valid during the callback. */
struct perf_data_event {
    enum perf_data_kind kind;
    uint64_t time_ns; /* 0: not told */
    int pid, tid;
    int parent_pid; /* of a fork */
    bool exec;      /* of a comm */
    struct str comm;
    uint64_t lost;
    struct perf_data_mmap mmap;
    struct perf_data_sample sample;
};

struct perf_data_ops {
    /* Before the first event; what is known by then. */
    int (*begin)(void *context, const struct perf_data_about *about, struct why *why);
    /* A negative result ends the reading with it; `why` is the callee's to fill. */
    int (*event)(void *context, const struct perf_data_event *event, struct why *why);
    void (*skip)(void *context, const char *reason);
};

bool perf_data_detect(struct str head);
MUST_USE int perf_data_read(struct import_source *source, const struct perf_data_ops *ops,
                            void *context, struct why *why);
