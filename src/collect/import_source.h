/* Where an importer reads from: a file, a pipe, or bytes in memory (tests, fuzzing).
 *
 * Buffered and bounded. Text is read by lines, records by bytes; a file may also be read at
 * an offset. The first bytes can be looked at before anything is taken. */
#pragma once

#include "base/str.h"
#include "base/why.h"

#include <stdint.h>

enum {
    IMPORT_HEAD_BYTES = 4096,         /* what detection looks at */
    IMPORT_LINE_BYTES_MAX = 16 << 20, /* a longer line is cut */
};

struct import_source {
    const char *path; /* for messages; borrowed */
    int fd;           /* -1: bytes in memory */
    bool seekable;
    uint64_t size_bytes; /* 0 if it cannot be known */
    uint64_t taken;      /* bytes consumed so far, for progress */
    char *buffer;
    size_t begin, end, cap;
    bool eof;
    struct str memory;
    void (*progress)(void *context, uint64_t done, uint64_t total); /* may be NULL */
    void *progress_context;
    uint64_t progress_due;
};

/* "-" is standard input. */
MUST_USE int import_source_open(const char *path, struct import_source *ret, struct why *why);
MUST_USE int import_source_memory(struct str bytes, struct import_source *ret);
void import_source_close(struct import_source *source);

/* Up to `len` bytes from the current place, without taking them; fewer only at the end. */
MUST_USE int import_source_peek(struct import_source *source, size_t len, struct str *ret,
                                struct why *why);
/* Takes what was peeked at. */
void import_source_take(struct import_source *source, size_t len);
/* 1 with a line (without its newline, valid until the next call), 0 at the end. Of a line
 * longer than IMPORT_LINE_BYTES_MAX only the head comes, and *ret_cut says so. */
MUST_USE int import_source_line(struct import_source *source, struct str *ret, bool *ret_cut,
                                struct why *why);
/* Bytes at an offset of a seekable source; -ENODATA when it is shorter. Does not move. */
MUST_USE int import_source_at(struct import_source *source, uint64_t offset, void *ret, size_t len,
                              struct why *why);
/* Goes to an offset of a seekable source. */
MUST_USE int import_source_seek(struct import_source *source, uint64_t offset, struct why *why);
/* All the rest, in memory that the caller frees; -EFBIG beyond `size_max`. */
MUST_USE int import_source_all(struct import_source *source, size_t size_max, char **ret,
                               size_t *ret_len, struct why *why);
