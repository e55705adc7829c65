/* Kernel settings that make measurements steadier or richer (mission M4).
 *
 * A knob is one row of the table in knobs.c. Reading is harmless; a change goes
 * plan → save the old values → write → read back, and revert undoes it from
 * what was saved, also after a crash. All paths go through the host's root. */
#pragma once

#include "base/vec.h"
#include "host/host.h"
#include "host/knob_state.h"
#include "model/value.h"

enum knob_kind {
    KNOB_SETTING, /* a file with a value */
    KNOB_PER_CPU, /* one such file a CPU: "%u" in the path is its number */
    KNOB_ACTION,  /* done once, only when named; nothing to revert */
    KNOB_ADVICE,  /* no setting of the machine: a way to start the target */
};

enum knob_fit {
    FIT_EXACT,
    FIT_AT_MOST,
    FIT_AT_LEAST,
    FIT_ANY_OF, /* wanted is "a|b": any will do, the first is written */
};

struct knob_place {
    const char *path;
    const char *wanted;
};

struct knob {
    const char *name; /* NULL ends the table */
    enum knob_kind kind;
    enum knob_fit fit;
    struct knob_place places[2]; /* the first that exists counts; the second may be empty */
    const char *effect;          /* of the wanted value, one line */
    const char *note;            /* what it costs or risks */
};

extern const struct knob knobs[];

/* NULL when there is none. */
const struct knob *knob_find(const char *name);

/* knob, now, wanted, state ("ok", "change", "advice", "action", "n/a"), effect, note, command. */
struct value knobs_table(const struct host *host);

enum knob_result {
    KNOB_PLANNED,
    KNOB_CHANGED,
    KNOB_RESTORED,
    KNOB_ALREADY,    /* revert: it has the old value */
    KNOB_LEFT_ALONE, /* revert: somebody else changed it since */
    KNOB_DENIED,
    KNOB_FAILED,
};

/* One file to be written. */
struct knob_change {
    const char *knob; /* name; of a state file it may be one that is no knob any more */
    bool action;
    const char *path; /* without the root */
    const char *now;  /* value before */
    const char *to;   /* value to be written */
    enum knob_result result;
    const char *detail; /* what went wrong; NULL when nothing did */
};

struct knob_changes {
    VEC(struct knob_change) items;
};

void knob_changes_deinit(struct knob_changes *changes);

/* What would be written to bring the named knobs (none: all settings) to their wanted
 * values. A name that is no knob, is not to be had here or is only advice is an error. */
MUST_USE int knobs_plan(const struct host *host, char **names, int count, struct knob_changes *ret,
                        struct why *why);

/* Marks the files that may not be written as KNOB_DENIED and returns their number. */
unsigned knobs_check_permission(const struct host *host, struct knob_changes *changes);

/* First half of a change: remembers the old values on disk. Values remembered earlier
 * stay: they are the original ones. */
MUST_USE int knobs_remember(const struct host *host, const struct knob_changes *changes,
                            struct why *why);
/* Second half: writes and reads back; each change gets its result. An error is one of
 * the state file; a file that could not be written is a result. */
MUST_USE int knobs_write(const struct host *host, struct knob_changes *changes, struct why *why);

/* Puts remembered values back, of the named knobs or of all. A file that holds neither
 * the value whyslow set nor the old one is left alone unless `force`. What could not be
 * restored stays remembered. */
MUST_USE int knobs_revert(const struct host *host, char **names, int count, bool force,
                          struct knob_changes *ret, struct why *why);

/* The shell command that does the change by hand. */
const char *knob_command(struct arena *arena, const char *path, const char *value);

/* A value as people say it: "off" where the kernel says no_turbo=1. */
const char *knob_shown(const char *path, const char *value);

const char *knob_result_name(enum knob_result result);
