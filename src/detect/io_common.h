/* What the detectors of file I/O share: from calls that were traced to seconds of a run.
 *
 * Calls are counted in one recording, seconds come from another (analyze/path_costs.h): the two
 * are joined by site, a place in the program with the system call it makes. A detector says which
 * calls it means; of the path's rows at a site it then means as much as of the calls' time there.
 */
#pragma once

#include "detect/detectors.h"

enum { IO_SHOWN_MAX = 5 }; /* findings of one detector: the longest */

struct io_site_share {
    double ns, meant_ns;
};

struct io_shares {
    const struct evidence *evidence;
    struct arena *arena;
    uint32_t (*call_sites)[4]; /* by row of calls: indexes into sites; the levels of io_common.c */
    uint32_t *path_sites;      /* by row of costs_on_path; 0: not at any of them */
    uint32_t *files;           /* by object: row of io_sums.files, plus one; 0: none */
    struct io_site_share *sites;
    size_t site_count; /* the 0th included */
    double *runq; /* by thread of the path: how much of its run queue is meant; made by io_cost() */
    bool waits_only; /* of the path only what waited, and what is in a sync */
};

/* 0 or -ENOMEM. */
MUST_USE int io_shares_init(const struct evidence *evidence, struct io_shares *ret);
/* Nothing is meant any more. */
void io_shares_clear(struct io_shares *shares);
/* That much of a row of calls is meant, 0 … 1. */
void io_shares_mean(struct io_shares *shares, size_t call, double part);
/* For path_costs_cover(): its context is the shares. */
double io_shares_pick(void *context, const struct path_costs *costs, const struct path_cost *row);
/* The file a call is about; NULL: none. */
const struct io_file *io_shares_file(const struct io_shares *shares, const struct call_row *row);
enum io_kind io_shares_kind(const struct io_shares *shares, const struct call_row *row);

/* Files whose heaviest calls are at one place: one finding. */
struct io_group {
    struct place place;
    size_t first; /* row of io_sums.files */
    size_t files;
};
struct io_groups {
    struct io_group rows[IO_SHOWN_MAX];
    size_t count;
    uint32_t *of; /* by row of io_sums.files: index plus one; 0: none */
};
/* 0 or -ENOMEM. */
MUST_USE int io_groups_init(struct io_groups *groups, const struct io_shares *shares);
/* In the order of io_sums.files; beyond IO_SHOWN_MAX places it is left out. */
void io_groups_add(struct io_groups *groups, const struct io_shares *shares, size_t file);
/* Of the file that a call is about: index plus one; 0: none. */
uint32_t io_groups_of(const struct io_groups *groups, const struct io_shares *shares,
                      const struct call_row *row);

/* Cost and what is covered from the shares; recoverable is `factor` of the cost. Returns the share
 * of the wall time that is recoverable. */
double io_cost(struct io_shares *shares, struct finding *finding, double factor);
/* The three angles: the path, the traced calls, and what the kernel counted over the plain runs.
 * `counted_ns` is what the kernel's account has room for (system time, or time off the CPU); NaN:
 * it has none. */
void io_angles(struct io_shares *shares, struct finding *finding, const char *traced,
               double counted_ns, const char *counted);

/* Off the CPU or in the kernel, a plain run; NaN: several threads hide it. */
double io_off_cpu_ns(const struct evidence *evidence);

/* Where it is: the stack's, or, of calls without stacks, where the path has most of it. */
void io_place_set(const struct io_shares *shares, struct finding *finding, uint32_t stack);
struct place io_place(const struct evidence *evidence, uint32_t stack);
/* " and 3 others"; empty for one. */
const char *io_others(struct arena *arena, size_t files);
/* "1,234", "1.5 s", "64.0 KiB": in the arena. */
const char *io_count_text(struct arena *arena, double count);
const char *io_time_text(struct arena *arena, double ns);
const char *io_bytes_text(struct arena *arena, double bytes);
struct str io_name(const struct evidence *evidence, uint32_t object);
/* It is made durable for every message, as fsync_per_message.c has it. */
bool io_file_syncs_messages(const struct evidence *evidence, const struct io_file *file);
/* Made up by the kernel when asked: what is read is never the same. */
bool io_is_made_up(struct str name);
/* Verdict and reason at once. */
void io_dismiss(struct arena *arena, struct finding *finding, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
