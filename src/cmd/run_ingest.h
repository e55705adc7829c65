/* What the program says of itself while it runs: lines of store/span_lines.h, picked out of what
 * it prints, or read from a file. */
#pragma once

#include "base/vec.h"
#include "cmd/run_parts.h"
#include "store/span_lines.h"

enum { INGEST_BYTES_MAX = 4 << 20, INGEST_FILE_BYTES_MAX = 64 << 20 };

/* The lines of one stream, put together from pieces. */
struct ingest_stream {
    char line[SPAN_LINE_BYTES_MAX];
    size_t len;
    bool passed; /* the line is not for us, or too long: up to its end nothing is kept */
};

/* Listens to the runs of a baseline; keeps the lines of the last one. */
struct ingest {
    struct spawn_listener listener; /* first: it is what is handed around */
    struct ingest_stream streams[2];
    VEC(char) kept;
    uint64_t dropped; /* lines for which there was no room */
};

void ingest_init(struct ingest *ingest);
void ingest_deinit(struct ingest *ingest);

/* Fills run->spans. A file that cannot be read is named in run->missing. 0 or -ENOMEM. */
MUST_USE int run_ingest(struct run *run, struct ingest *ingest, struct why *why);
