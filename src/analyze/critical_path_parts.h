/* What the files of the critical path share; nobody else includes this.
 *
 * critical_path_threads.c  every thread's long waits in order, and what lies between them
 * critical_path_cut.c      a run that was cut short: what its last wait was for
 * critical_path_ends.c     waits for processes whose waker nobody saw
 * critical_path.c          the walk backwards, steps and shares */
#pragma once

#include "analyze/critical_path.h"

/* A long wait, put right: those of a thread follow each other without overlap, start < wake. */
struct path_event {
    uint64_t start_ns, wake_ns, run_ns;
    uint64_t covered_ns; /* by this thread's events before it */
    uint32_t row;
    uint32_t waker; /* a thread of the recording; 0 if none */
    bool entered;   /* the walk is inside of it: it is not entered again */
};

/* Waits of a row that were only added up. */
struct path_short {
    uint32_t row;
    uint64_t first_ns, last_ns;
    /* Ns a ns of the time between long waits, from first to last; of those beyond
     * PATH_SHORT_MAX the sum of their times up to here. */
    double density;
    double carry_ns; /* charged, but too little so far for a step */
};

/* Who is back at the same place this soon has only looked, and waits on. */
#define PATH_LOOK_NS_MAX 1000000u

/* Rows beyond this many of a thread, the least of them, share one place in each span. */
enum { PATH_SHORT_MAX = 32 };

struct path_thread {
    size_t event_first, event_count; /* in path_threads.events */
    size_t short_first, short_count; /* in path_threads.shorts, the largest first */
    double rest_density;             /* of those beyond PATH_SHORT_MAX together */
    double rest_carry_ns;
    double rest_at; /* how much of them was charged: they take turns by size */
    double runq_density, runq_carry_ns;
    uint32_t runq_row; /* 0: none */
    uint32_t before;   /* the same thread under another name, or before exec; 0: none */
    uint32_t creator;  /* thread that can have made it, its last name; 0: not known */
};

struct path_threads {
    struct path_thread *threads; /* by thread id */
    struct path_event *events;
    struct path_short *shorts;
    size_t count;
};

/* 0 or -ENOMEM. */
MUST_USE int path_threads_build(struct arena *arena, const struct waits *waits,
                                struct path_threads *ret);
/* Waits for a process whose waker nobody saw: then it is the child whose end was the wait's. */
MUST_USE int path_threads_ends(const struct waits *waits, struct path_threads *threads);
/* The last wait of the root's main thread, when the run was cut short in it. */
void path_threads_cut(const struct waits *waits, struct path_threads *threads);
/* Is the second the same wait as the first, which only its time limit or a signal had ended? */
bool path_goes_on(const struct waits *waits, const struct path_event *first,
                  const struct path_event *second);
/* Who ended the waits of a row: a thread of the recording, 0 if none. */
uint32_t path_waker_of(const struct waits *waits, uint32_t row);
/* The last event of a thread that began before `time_ns`; NULL if none. */
struct path_event *path_threads_before(const struct path_threads *threads, uint32_t thread,
                                       uint64_t time_ns);
/* Of the rows beyond PATH_SHORT_MAX the one whose turn it is, when so much was charged, and how
 * much of its turn is left. */
uint32_t path_threads_rest_row(const struct path_threads *threads, uint32_t thread, double at_ns,
                               uint64_t *ret_left_ns);
