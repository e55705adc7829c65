/* Facts about the heap that are worth a sentence, each with the numbers behind it.
 *
 * No suspicion and no advice: what is said was counted, or estimated from samples. When something
 * is worth a sentence is data: heap_note_bounds[]. */
#pragma once

#include "analyze/heap_sure.h"

enum heap_note_kind {
    HEAP_NOTE_GROWING,      /* more at every snapshot */
    HEAP_NOTE_NOT_FREED,    /* at the end */
    HEAP_NOTE_ONE_PLACE,    /* has most of the peak */
    HEAP_NOTE_TEMPORARY,    /* freed right after they were made */
    HEAP_NOTE_SMALL_PIECES, /* very many */
    HEAP_NOTE_GROWN_AGAIN,  /* realloc() in small steps */
    HEAP_NOTE_RESIDENT,     /* far more than the heap holds */
    HEAP_NOTE_FAILED,       /* calls that returned NULL */
    HEAP_NOTE_KINDS,
};
const char *heap_note_name(enum heap_note_kind kind); /* "growing": stable */

/* From which on it is worth a sentence; what is 0 is not asked. */
struct heap_note_bound {
    const char *name;
    uint64_t count; /* at least so many */
    uint64_t bytes; /* and so many bytes */
    double pct;     /* and such a share: of what, see heap_notes.c */
    double ratio;
    uint64_t size_most; /* bytes of a piece on average, at most */
};
extern const struct heap_note_bound heap_note_bounds[HEAP_NOTE_KINDS];

struct heap_note {
    enum heap_note_kind kind;
    const char *text; /* for people; names in it are hostile text */
    uint64_t count;
    uint64_t bytes;
    uint32_t stack; /* where; 0: no single place */
};

struct heap_notes {
    struct heap_note *notes; /* in the order of kinds, the largest first */
    size_t count;
    size_t left_out; /* beyond HEAP_NOTES_MAX of a kind */
};
enum { HEAP_NOTES_MAX = 3 };

/* Estimates are said with "~", bytes with what they may be off by; of what may as well be 0 nothing
 * is said. 0 or -ENOMEM. */
MUST_USE int heap_notes_build(struct arena *arena, const struct heap_sums *sums,
                              const struct heap_sure *sure, struct heap_notes *ret);
