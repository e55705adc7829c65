/* The steps of a run (M23): where the wall time goes as a tree of functions, and the requests that
 * they make of services, with what each read and wrote.
 *
 * Times are those of path_costs.h: nanoseconds of the baseline on the critical path, a step's with
 * its children's. Calls and requests are of another recording and are found again by the names on
 * their stacks. A request is seen a second time: the time it takes is also that of the functions
 * that send it and wait for the answer. */
#pragma once

#include "analyze/evidence.h"

#define RUN_STEPS_SHARE_MIN 0.01 /* of the wall time; what has less is left out */
enum { RUN_STEPS_DEPTH_MAX = 24 };

struct run_step {
    uint32_t parent, first_child, next_sibling; /* index; 0: none. Children: the longest first */
    struct str function;                        /* or what was asked: "GET /users/?" */
    struct place place;
    struct str service; /* name of the program it runs in, or of the peer that was asked */
    enum finding_category type;
    double ns;
    double kinds[CATEGORIES]; /* the same, by what was done meanwhile */
    /* With children's; only if run_steps.io_known. */
    uint64_t calls, read_bytes, write_bytes;
    uint64_t http_round_trips;
    double asked_db_ns, asked_http_ns; /* traced, to tell networks from databases */
    uint64_t requests;                 /* of a request: how many; 0: it is a function */
};

struct run_steps {
    struct run_step *rows; /* the 0th is the whole run */
    size_t count;
    bool io_known;
    double left_out_ns;        /* of the wall time: in no step */
    uint64_t http_round_trips; /* of the whole run */
};

/* Everything lives in the arena. 0 or -ENOMEM. */
MUST_USE int run_steps_build(struct arena *arena, const struct evidence *evidence,
                             struct run_steps *ret);
