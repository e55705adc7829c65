/* What the exporters share; nobody else includes this.
 *
 * Stacks of a profile are expanded once into nodes, one a place: an inlined function is a
 * node of its own below its caller, as every format wants it. */
#pragma once

#include "base/arena.h"
#include "present/exporters.h"

/* Node 0 is "none"; a parent's index is smaller than its children's. */
struct export_node {
    uint32_t parent;
    uint32_t frame;
    uint32_t place;
    uint32_t inline_depth; /* 0: the function the code belongs to; its inlined ones count up */
};

struct export_nodes {
    struct export_node *nodes;
    size_t count;
    uint32_t *of_stack; /* innermost node; 0 for a stack that no sample has */
};

/* Only of stacks that samples have (and their callers). A sample without a stack gets the
 * profile's frame 0, "[no stack]": its weight must not vanish. */
MUST_USE int export_nodes_build(struct arena *arena, const struct profile *profile,
                                struct export_nodes *ret, struct why *why);

/* Samples, one by one if the profile has them and there are at most `samples_max` (0: any
 * number), else the totals; put together by thread (or group of threads). */
struct export_row {
    uint32_t stack;
    uint64_t time_ns; /* 0 for totals */
    uint64_t weight;
    uint64_t count;
};
struct export_rows {
    const struct profile *profile;
    bool single;     /* samples, in the order of time within a part */
    bool by_group;   /* parts are groups of threads, not threads */
    uint32_t *order; /* samples or totals, part by part */
    size_t *begin;   /* part p is order[begin[p]] up to order[begin[p + 1]] */
    uint32_t *parts; /* those that have rows, heaviest first */
    size_t part_count;
};
enum { EXPORT_PARTS_MAX = 100 }; /* more threads than this are put together by group */
MUST_USE int export_rows_build(struct arena *arena, const struct profile *profile,
                               size_t samples_max, bool never_group, struct export_rows *ret,
                               struct why *why);
struct export_row export_rows_at(const struct export_rows *rows, size_t at);

/* "nanoseconds", "bytes", "count": as pprof and speedscope call them. */
const char *export_unit(enum unit unit);
const char *export_title(const struct profile *profile, const struct export_opts *opts,
                         struct arena *arena);
/* Valid UTF-8 without control characters (they become \n, \t, \xNN), for formats of lines. */
struct str export_line(struct arena *arena, struct str text);
/* Valid UTF-8; what is none becomes U+FFFD. */
struct str export_utf8(struct arena *arena, struct str text);
/* What a path ends with. */
struct str export_basename(struct str path);
/* 0, or the stream's failure. */
MUST_USE int export_flush(FILE *out, struct why *why);
