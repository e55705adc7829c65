/* What detectors of requests and networks share: which part of the path is whose request.
 *
 * Requests are known from one recording, seconds on the path from another. They are put together by
 * stacks: a request is sent at one stack and waited for at another, and what both have in common,
 * seen from the root, is the call that asks. A row of the path belongs to the group of requests
 * with which it has most in common; where that is a helper that several use, it is shared among
 * them by the time that each took. */
#pragma once

#include "analyze/places.h"
#include "detect/each.h"

/* Of groups and of rows of the path the longest, of stacks the outermost part. */
enum { NET_GROUPS_MAX = 64, NET_ROWS_MAX = 4096, NET_DEPTH_MAX = 128 };

/* A stack by its places, the outermost first; the kernel's are left out. */
struct net_stack {
    const struct profile *profile;
    const struct profile_place **places;
    unsigned count;
    bool cut; /* the outermost are not known */
};

struct net_group { /* requests of the recorded program to others */
    const struct io_request_group *group;
    struct net_stack *stack;
    struct place place; /* the innermost call that asks and waits; empty: not known */
    unsigned least;     /* what a row must have in common with it; 0: not known */
    bool whole;         /* all of that call is the request's, what it computes, too */
};

struct net {
    struct arena *arena;
    const struct evidence *evidence;
    struct net_group *groups; /* the longest first */
    size_t count;
    float (*rows)[NET_GROUPS_MAX]; /* by row of the path: how much of it is whose */
};

/* 0 or -ENOMEM. */
MUST_USE int net_build(struct arena *arena, const struct evidence *evidence, struct net *ret);

/* Waiting for a peer, and for a CPU after that. */
bool net_is_wait(const struct evidence *evidence, const struct path_cost *row);

/* Sets of groups are bits. What of the path they are; with the finding's cost and rows. */
struct estimate net_sum(const struct net *net, uint64_t set);
struct estimate net_cover(const struct net *net, uint64_t set, struct finding *finding);

/* Groups with the same protocol, peer, text and place as the one at `index`, itself among them;
 * also those whose place is not known. */
uint64_t net_alike(const struct net *net, size_t index);
/* What they are together; texts and the like are those of the first. */
struct io_request_group net_together(const struct net *net, uint64_t set);
struct str net_text(const struct net *net, uint32_t id);
bool net_is_sql(enum request_protocol protocol);
/* "1,234", "12.3 ms". */
const char *net_count(struct arena *arena, uint64_t count);
const char *net_time(struct arena *arena, double ns);

/* Frames in common from the root, twice: one less where only the function of the last is. Where a
 * stack was cut, from its outermost on; counted in the first of the two. */
unsigned net_common(const struct net_stack *a, const struct net_stack *b);
/* The place of two stacks that ask and wait, as a group's. */
struct net_place {
    struct place place;
    unsigned least;
    bool whole;
};
struct place net_place_at(const struct net_stack *stack, unsigned index); /* from the root */
struct net_place net_place_of(const struct net_stack *stack, unsigned common);
struct net_stack *net_stack_of(struct arena *arena, const struct profile *profile, uint32_t stack);

/* The angles of findings about waiting for a peer `count` times, `cost` on the path. */
void net_angles(const struct net *net, struct finding *finding, uint64_t count, double cost_ns,
                const char *traced);
/* Facts that all of them have. */
void net_facts(const struct net *net, struct findings *ret, struct finding *finding,
               const struct io_request_group *group);
/* For a dismissal by what it is worth. NULL: it is worth enough. */
const char *net_too_little(struct arena *arena, double ns, double wall_ns, double ns_min,
                           double share_min, bool both);
