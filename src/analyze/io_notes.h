/* Facts about I/O that are worth a sentence, each with the numbers behind it.
 *
 * No suspicion and no advice: what is said was counted. When something is worth a sentence is
 * data: io_note_bounds[]. */
#pragma once

#include "analyze/io_honesty.h"
#include "analyze/io_request_groups.h"
#include "analyze/io_sums.h"

enum io_note_kind {
    NOTE_SEQUENTIAL_REQUESTS,
    NOTE_REPEATED_STATEMENT, /* with different parameters */
    NOTE_DUPLICATE_STATEMENT,
    NOTE_REPEATED_NAME, /* DNS */
    NOTE_CONNECTIONS,
    NOTE_SMALL_CALLS,
    NOTE_SYNCS,
    NOTE_READ_AGAIN,
    NOTE_MISSING_NAMES,
    NOTE_TINY_FILES,
    NOTE_TEMPORARY_FILES,
    NOTE_FRAGMENTED,
    NOTE_NEARLY_FULL,
    NOTE_COPY_ON_WRITE,
    NOTE_KINDS,
};
const char *io_note_name(enum io_note_kind kind); /* "sequential_requests": stable */

/* From which on it is worth a sentence; what is 0 is not asked. */
struct io_note_bound {
    const char *name;
    uint64_t count;  /* at least so many */
    uint64_t ns;     /* and so much time, */
    double wall_pct; /* or such a share of the recording's; both where `both` */
    bool both;
    uint64_t bytes_most; /* sizes: at most */
    double ratio;        /* what of what: see io_notes.c */
};
extern const struct io_note_bound io_note_bounds[NOTE_KINDS];

struct io_note {
    enum io_note_kind kind;
    const char *text; /* for people; names in it are hostile text */
    uint64_t count;
    uint64_t ns;    /* the time it is about; UINT64_MAX: none was measured */
    uint32_t stack; /* where; 0: no single place */
};

struct io_notes {
    struct io_note *notes; /* the longest first */
    size_t count;
    size_t left_out; /* beyond IO_NOTES_MAX of a kind */
};
enum { IO_NOTES_MAX = 5 };

/* A text of a request as far as one line has room for it: "SELECT … …". */
enum { IO_TEXT_SHOWN_BYTES = 160 };
const char *io_text_short(struct arena *arena, struct str text);

/* 0 or -ENOMEM. */
MUST_USE int io_notes_build(struct arena *arena, const struct io_sums *sums,
                            const struct io_request_groups *groups, struct io_notes *ret);
