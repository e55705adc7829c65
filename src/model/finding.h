/* What whyslow says about a run: suspicions with their verdicts, and what each rests on.
 *
 * Made by detect/, ranked by analyze/, drawn by present/. Times are nanoseconds of one run of the
 * program as the baseline measured it, on its critical path: one currency for all axes. Texts and
 * arrays live in the arena of the list. Texts with names in them are hostile text. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "model/value.h"

#include <stdbool.h>
#include <stdint.h>

/* 95%. NaN in all: not known. */
struct estimate {
    double ns;
    double low_ns, high_ns;
};

enum finding_verdict {
    FINDING_CONFIRMED,
    FINDING_DISMISSED,  /* with the numbers that decide it */
    FINDING_NOT_JUDGED, /* what it needs was not measured; `reason` says why */
};

/* What a finding is good for. Only what can be fixed is ranked and has a gain: the rest is stated
 * apart, whatever it costs. */
enum finding_class {
    FINDING_FIX,         /* a change of the program, or of how it is built, takes the time away */
    FINDING_CONTEXT,     /* true, and worth knowing: no fix follows from it */
    FINDING_ENVIRONMENT, /* the machine's, not the program's: stolen time, other load, limits */
    FINDING_CLASSES,
};

/* M24. In JSON: "CPU", "I/O-DB", … */
enum finding_category {
    CATEGORY_CPU,
    CATEGORY_IO_DB,
    CATEGORY_IO_NETWORK,
    CATEGORY_IO_FILE,
    CATEGORY_LOCK,
    CATEGORY_MEMORY,
    CATEGORY_ARCHITECTURE,
    CATEGORY_EXTERNAL,
    CATEGORY_CACHE,
    CATEGORY_UNKNOWN,
    CATEGORIES,
};

/* Whose code would have to change. */
enum finding_owner {
    FINDING_OWNER_UNKNOWN,
    FINDING_OWNER_USER,    /* files outside of the system's folders */
    FINDING_OWNER_LIBRARY, /* installed on the system, or compiled into the program from there */
    FINDING_OWNER_KERNEL,
    /* An interpreter or a runtime: somebody's program runs in it, and which line of that is not
     * known. Its own source is never the place to look at. */
    FINDING_OWNER_INTERPRETER,
    FINDING_OWNERS,
};

/* What kind of change mends it; with the owner it gives the effort (analyze/opportunity.h). */
enum finding_remedy {
    REMEDY_SETTING,   /* a flag, a configuration, a build option */
    REMEDY_LOCAL,     /* a few lines at one place: a buffer, a reserve() */
    REMEDY_REUSE,     /* keep what is made again and again: a connection, a cache */
    REMEDY_BATCH,     /* many of one kind at once */
    REMEDY_ALGORITHM, /* other work for the same answer */
    REMEDY_REDESIGN,  /* who does what, when: locks, threads, event loops */
    REMEDIES,
};

/* A place in a program, by names: the same in every recording of it. Empty: not known. */
struct place {
    struct str function;
    struct str image; /* path */
    struct str file;
    uint32_t line;
    enum finding_owner owner;
};

/* Three independent ways to see the same thing. */
enum angle { ANGLE_SAMPLING, ANGLE_TRACING, ANGLE_COUNTING, ANGLES };
enum angle_verdict {
    ANGLE_SILENT, /* cannot say; `text` is the reason */
    ANGLE_SUPPORTS,
    ANGLE_REJECTS,
};
struct angle_word {
    enum angle_verdict verdict;
    const char *text; /* the numbers that decide it; NULL with ANGLE_SILENT: was not asked */
};

/* A number with where it comes from. */
struct finding_fact {
    const char *name; /* "fsyncs", "bytes_between" : a JSON key */
    const char *title;
    struct value value;
    const char *artifact; /* "recording.whyslow": in the folder of the run */
    const char *id;       /* in it, as its reports call it: "w12", "l3", "f7"; NULL */
};

/* One level of "why": from what is slow down to configuration or design. Recorded facts only. */
struct finding_why {
    const char *text;
    const char *evidence; /* artifact and id */
};
enum { FINDING_WHYS_MAX = 5 };

struct finding_affected { /* one of several places with the same trouble (M25) */
    struct place place;
    double recoverable_ns;
    uint64_t occurrences;
};

struct finding {
    const char *detector; /* id of its row in detect/detectors.c */
    const char *title;    /* one line for people, with the number that matters */
    enum finding_class class;
    enum finding_verdict verdict;
    const char *reason; /* of a verdict that is no confirmation: the numbers that decide it */
    enum finding_category category;
    enum finding_remedy remedy;
    struct place place;
    uint64_t occurrences;
    unsigned axes; /* bits of enum axis (analyze/evidence.h) it rests on */
    /* By mending it: what a fixed program would not spend. Of the environment: what it took from a
     * run. Of context nothing. Never more than there is (detect/gates.c). */
    struct estimate recoverable;
    double cost_ns; /* all that is spent in it on the path: the Amdahl ceiling */
    /* How much of each row of path_costs its cost is, 0 … 1: so that two findings that speak of
     * the same time are known. NULL: it cannot be said. */
    float *covers;
    struct angle_word angles[ANGLES];
    struct finding_fact *facts;
    size_t fact_count, fact_room;
    struct finding_why whys[FINDING_WHYS_MAX];
    size_t why_count;
    const char *measure_next; /* the command that shows what the chain does not; NULL */
    const char *advice;       /* what to do, in a sentence; NULL where nothing can be advised */
    const char *caution;      /* what it would cost: "after a crash the last …"; NULL */
    const char *validate;     /* the command that checks the effect; NULL: the usual compare */
    struct finding_affected *affected; /* beyond `place`, when merged */
    size_t affected_count;

    /* It gave way to others that explain the same time: dismissed, yet not wrong. */
    bool explained;
    /* Dismissed for what the recording lacks, not for what it shows. */
    bool unsure;

    /* Filled by analyze/opportunity.h. */
    uint32_t rank;     /* from 1 among confirmed ones that can be fixed; 0 */
    double confidence; /* 0 … 1 */
    double impact, effort, score;
    double path_share; /* of the critical path that is its cost, 0 … 1 */
    double ceiling;    /* speed-up if all of its cost went away: 1.25 */
};

struct findings {
    struct arena *arena;
    struct finding *items;
    size_t count, room;
};

/* A new one at the end, zeroed, with NaN for times; NULL when out of memory. A pointer is good
 * until the next is added. */
struct finding *finding_add(struct findings *findings, const char *detector);
/* Out of memory is told by arena_failed(). */
void finding_fact(struct findings *findings, struct finding *finding, const char *name,
                  const char *title, struct value value, const char *artifact, const char *id);
void finding_why(struct findings *findings, struct finding *finding, const char *evidence,
                 const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Confirmed, and something to fix: nothing else is ranked or advised. */
static inline bool finding_is_fix(const struct finding *finding)
{
    return finding->verdict == FINDING_CONFIRMED && finding->class == FINDING_FIX;
}
/* The evidence sources with that verdict. */
unsigned finding_angles(const struct finding *finding, enum angle_verdict verdict);

const char *finding_verdict_name(enum finding_verdict verdict);    /* "confirmed" */
const char *finding_class_name(enum finding_class class);          /* "environment" */
const char *finding_category_name(enum finding_category category); /* "I/O-DB" */
const char *finding_owner_name(enum finding_owner owner);          /* "user" */
const char *finding_remedy_name(enum finding_remedy remedy);       /* "batch" */
const char *angle_name(enum angle angle);                          /* "sampling" */
const char *angle_verdict_name(enum angle_verdict verdict);        /* "supports" */

/* "parse (parse.c:41)", "read (libc.so.6)", "[unknown place]". In the arena. */
const char *place_text(struct arena *arena, const struct place *place);
