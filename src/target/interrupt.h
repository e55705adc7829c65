/* Ctrl-C and its relatives, seen as a fact instead of as a death; the same for every command that
 * starts or watches a target ([docs/record.md] tells users of it).
 *
 * While watched, SIGINT, SIGTERM and SIGHUP leave a note. The first one is handed to the target,
 * unless it has got it from the terminal itself, and ends what whyslow is doing; the second ends
 * the target and all that it started (spawn.c does both); the third ends whyslow at once, wherever
 * it is. With no target of ours the second does. A signal that was ignored when we started (nohup,
 * a background job) stays ignored, for us and for the target.
 *
 * SIGPIPE ends nothing meanwhile: a pipe that nobody reads any more is an error of who writes to
 * it.
 *
 * One signal may come twice: timeout(1) sends it to its child and then to its group. What the same
 * sender sends within INTERRUPT_ECHO_MS is one. So is SIGHUP after SIGHUP, whoever sends it: a
 * closing terminal does it twice. */
#pragma once

#include <stdbool.h>

/* INTERRUPT_TARGETS: that run at once; two do where `compare --duet` measures. */
enum { INTERRUPT_ECHO_MS = 50, INTERRUPT_PATIENCE_MS = 5000, INTERRUPT_TARGETS = 2 };

/* What a signal is about at the moment. */
enum interrupt_target {
    INTERRUPT_NONE,
    INTERRUPT_OWN,    /* a target that is recorded: it may go on without us */
    INTERRUPT_APART,  /* one that only runs to be measured, in a process group of its own */
    INTERRUPT_OTHERS, /* processes that somebody else has started */
};

struct interrupt_note {
    int signal;
    unsigned count;
    enum interrupt_target target;
    unsigned running;            /* targets of ours */
    int pids[INTERRUPT_TARGETS]; /* theirs; 0: it has none yet */
    bool terminal;               /* it came from there */
    bool reached;                /* the target has got it from there, too */
    bool leaves;                 /* whyslow ends now */
};
/* Called in the signal handler: nothing that is not safe there. */
typedef void interrupt_tell_fn(const struct interrupt_note *note);

void interrupt_watch(interrupt_tell_fn *tell); /* NULL: nothing is said; pairs with
                                                  interrupt_unwatch(); not nested */
void interrupt_unwatch(void);                  /* puts back what was there */
int interrupt_signal(void);                    /* the last one seen while watched, or 0 */
unsigned interrupt_count(void);
bool interrupt_has_reached_target(void); /* from the terminal: nobody needs to hand it on */

/* Until `owner` says INTERRUPT_NONE. Any thread may; of more than INTERRUPT_TARGETS at once the
 * last ones are not known to signals. */
void interrupt_target_set(const void *owner, enum interrupt_target target, int pid);

/* SIGUSR2 asks for a snapshot while this is on; it says how often so far. A signal that was ignored
 * when we started stays ignored. */
void interrupt_snapshot_watch(bool on);
unsigned interrupt_snapshot_count(void);
