/* What the steps of `whyslow run` share.
 *
 *     plan → look (fingerprint, pre-flight) → measure (baseline) → passes (one recorded run an
 *     axis) → interpret → report and artifacts
 *
 * A step that cannot be finished says so in `missing` and leaves the rest to those that can. */
#pragma once

#include "base/clock.h"
#include "cmd/baseline.h"
#include "cmd/cmd.h"
#include "cmd/run_golden.h"
#include "cmd/run_interpret.h"
#include "host/build_info.h"
#include "host/host.h"
#include "host/taken.h"

#include <limits.h>

/* What it takes to read what was recorded and to draw it. */
#define RUN_INTERPRET_NS NS_PER_SEC

enum run_depth { RUN_NORMAL, RUN_QUICK, RUN_DEEP };

struct run_opts {
    const char *runs, *warmup;
    uint64_t budget_ns, timeout_ns; /* 0: not said */
    bool quick, deep;
    const char *scenario, *input, *golden, *ingest;
    const char *out, *summary_out;
    bool force, yes, keep_arguments;
    struct output_opts output;
};

/* What is to be done: all that was typed or written down, checked. */
struct run_plan {
    char *const *argv;
    char path[PATH_MAX];    /* of the program */
    const char *command;    /* as a shell would take it, without secrets */
    unsigned secrets;       /* of argv, that are not in it */
    const char *scenario;   /* where it came from */
    const char *discovered; /* the folder or scenario it was found in; NULL: it was named */
    const char *check;      /* a functional check that was found with it; NULL */
    const char *chosen;     /* why this command; NULL: the user named it */
    const char *input;      /* NULL: /dev/null */
    struct golden golden;
    const char *metric;
    uint32_t runs, warmup;
    uint64_t budget_ns, timeout_ns;
    enum run_depth depth;
    const char *out, *summary_out, *ingest; /* good from where we work */
};

/* Sentences; the last of a full list says that there were more. */
enum { RUN_NOTES_MAX = 32 };
struct run_notes {
    const char *items[RUN_NOTES_MAX + 1]; /* ends with NULL */
    size_t len;
};

struct run {
    const struct run_opts *opts;
    const struct cmd_call *call;
    struct arena *arena;
    uint64_t start_ns;
    struct run_plan plan;
    const char *run_id;
    const char *folder; /* of this run */
    struct host host;
    struct build_info binary;
    const char *binary_na; /* NULL when `binary` is filled */
    struct value fingerprint;
    struct value checks;
    unsigned checks_failed;
    struct run_notes marks;   /* what spoils the result and was forced or could not be helped */
    struct run_notes missing; /* what was not done, and why */
    struct run_notes notes;   /* what else there is to know: what was cut, repeated, escalated */
    struct run_golden golden;
    struct baseline baseline;
    bool unstable;
    unsigned passes_left; /* recorded runs that are still to come: what plain ones leave time for */
    struct taken taken;   /* while the baseline ran */
    double others_ns;     /* CPU time of other programs meanwhile; NaN */
    struct spans spans;   /* what the program says of itself */
    struct evidence_input input;
    bool unkept;                /* an artifact could not be written */
    struct interpretation said; /* .evidence NULL: not reached */
};

void run_note(struct run *run, struct run_notes *notes, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* What came of writing an artifact: a failure is told, and ends nothing. */
void run_kept(struct run *run, const char *name, int r, const struct why *why);
/* "[2/5] fingerprint and pre-flight (0.1 s of 60 s)", on stderr. */
void run_step(const struct run *run, int number, const char *text);
/* Of the budget; 0 when it is spent. */
uint64_t run_left_ns(const struct run *run);

/* 1: what is to be run. Everything that was mistyped is found here. */
MUST_USE int run_plan_make(struct run *run, struct why *why);
/* 2: the machine and the binary. What would spoil the result ends it here, without --force. */
MUST_USE int run_look(struct run *run, struct why *why);
/* 3: what a run costs, and how surely. Above 0: the exit status, all is said already. */
MUST_USE int run_measure(struct run *run, struct why *why);
/* A first run was so long that it was ended, and one that ended by itself came after it: plain runs
 * in what is left of the budget. As above. */
MUST_USE int run_measure_again(struct run *run, struct why *why);
/* What came of a first run that was ended: said once it is known what could be recorded. */
void run_cut_say(struct run *run);
/* Of the budget, without what reading the recordings takes. */
uint64_t run_left_to_record_ns(const struct run *run);
struct run_costs run_costs_of(const struct run *run);
/* 4: see run_passes.h.
 * 5: what all of it says, on the terminal and in files. */
MUST_USE int run_hand_off(struct run *run, struct why *why);
