/* The line of honesty for calls and requests: how they were seen, how far that can be trusted, and
 * what could not be seen at all.
 *
 * Whoever records writes the counters, zeros too: what has no counter was not measured and is
 * "n/a: reason".
 *
 *     io.calls                      calls that were counted
 *     io.folded                     of these: added up without thread, object or stack, since
 *                                   there was no room
 *     io.unattributed               of all calls: those, and others whose stack or object is not
 *                                   known though they have one; each once
 *     io.stacks_recognised,         stacks that were known again, and those copied to be walked
 *        stacks_copied
 *     io.stacks_walked,             stacks walked, and those that reached their root; without the
 *        stacks_complete            first: complete, truncated and end.* make up all
 *     io.own_ns, io.kernel_ns       what it cost
 *     loss.io_*, io.lost.*,         what was lost, by cause: calls, or parts of them (parts[] in
 *        io.heads_lost              io_honesty.c)
 *     io.requests, io.requests.*,   requests, connections and what became of them
 *        io.connections, io.connections.*
 *     io.uring_calls, io.inside_bytes, io.calls_unseen, io.bytes_unseen
 *
 * Tier, why it is no higher one and what it cannot see are in the document "io". */
#pragma once

#include "analyze/honesty.h"
#include "analyze/io_facts.h"

struct io_honesty {
    struct honesty_figure calls, folded, unattributed, recognised, copied, walked, complete,
        incomplete;
    struct honesty_figure lost, ring_full, parts_lost, own_ns, kernel_ns, cpu_ns;
    struct honesty_figure requests, unanswered, events_left_out, connections;
    /* What cannot be seen inside, or was not. */
    struct honesty_figure uring_calls, inside_bytes, calls_unseen, bytes_unseen;
    struct honesty_figure hopped, unknown, encrypted, broken, switched, middle, beyond;
    struct honesty_figure heads_lost, connections_lost, requests_folded, requests_cut;
    struct honesty_figure compat_calls, calls_before, open_calls, device_lost;
    struct io_facts facts;
    bool finished;
};

/* Texts live in the arena. */
MUST_USE int io_honesty_load(struct arena *arena, struct recording *recording,
                             struct io_honesty *ret, struct why *why);

/* A map: tier, why_not_higher, calls, unattributed, unattributed_pct, folded, recognised_pct,
 * complete_pct, lost, parts_lost, requests, requests_left_out, connections, own_cpu_ms, kernel_ms,
 * unseen. */
struct value io_honesty_value(struct arena *arena, const struct io_honesty *honesty);
/* The same in one sentence; "" when out of memory. */
const char *io_honesty_line(struct arena *arena, const struct io_honesty *honesty);
/* What was lost of the calls that were counted: it comes first, since it says how far tables by
 * file and by stack can be trusted. "" where nothing was, or where it was not counted. */
const char *io_honesty_unattributed(struct arena *arena, const struct io_honesty *honesty);
/* What then is to be called "lost". */
const char *io_honesty_lost_word(const struct io_honesty *honesty);
/* Both into a report's map: `honesty` for machines, `honesty_line` for people. */
void io_honesty_put(struct arena *arena, struct value *root, const struct io_honesty *honesty);
/* What could not be seen, a row each: what, how much of it, why. */
struct value io_honesty_unseen(struct arena *arena, const struct io_honesty *honesty);
