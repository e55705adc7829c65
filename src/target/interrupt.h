/* Ctrl-C and its relatives, seen as a fact instead of as a death.
 *
 * While watched, SIGINT, SIGTERM and SIGHUP only leave a note, so that a command
 * can end its target and keep what it has. A signal that was ignored when we
 * started (nohup, a background job) stays ignored, for us and for the target. */
#pragma once

#include <stdbool.h>

void interrupt_watch(void);   /* pairs with interrupt_unwatch(); not nested */
void interrupt_unwatch(void); /* puts back what was there */
int interrupt_signal(void);   /* the last one seen while watched, or 0 */
unsigned interrupt_count(void);

/* SIGUSR2 asks for a snapshot while this is on; it says how often so far. A signal that was ignored
 * when we started stays ignored. */
void interrupt_snapshot_watch(bool on);
unsigned interrupt_snapshot_count(void);
