/* The documents of a recording of I/O, read as far as reports want to know: "files" (notes on the
 * file systems of files that matter) and "io" (tier, what could not be seen). */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "model/value.h"

#include <stdbool.h>
#include <stdint.h>

#define IO_FACT_UNKNOWN UINT64_MAX

struct io_file_fact {
    uint32_t object; /* id */
    const char *path, *filesystem, *mount;
    uint64_t size_bytes, extents, shared_extents, folder_entries; /* or IO_FACT_UNKNOWN */
    uint64_t free_bytes;
    double free_pct; /* of its file system; NaN: not known */
    bool cow, network;
};

struct io_file_facts {
    struct io_file_fact *facts;
    size_t count;
};

/* Of text that is no such document nothing is taken. 0 or -ENOMEM. */
MUST_USE int io_file_facts_read(struct arena *arena, struct str json, struct io_file_facts *ret);

struct io_unseen {
    const char *what, *reason;
};
struct io_facts {
    const char *tier, *not_higher;  /* NULL: it does not say */
    const char *stacks, *requests;  /* NULL, or a word about them */
    const struct io_unseen *unseen; /* in its words */
    size_t unseen_count;
};
MUST_USE int io_facts_read(struct arena *arena, struct str json, struct io_facts *ret);
