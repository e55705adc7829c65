/* What the files of the kernel tier of io share; nobody else includes this.
 *
 * io_kernel.c         the collector's life
 * io_kernel_calls.c   what is known about system calls, as data
 * io_kernel_rows.c    what the ring and the cells say, to rows of the sink
 * io_kernel_said.c    what is said on sockets, to requests
 * io_files.c          faults on mapped files, names of files for the look at the end
 * io_kernel_finish.c  what still went on, counters, how it was measured */
#pragma once

#include "base/intern.h"
#include "collect/bpf_ring.h"
#include "collect/bpf_scope.h"
#include "collect/bpf_unit.h"
#include "collect/devices.h"
#include "collect/files_look.h"
#include "collect/io_kernel.h"
#include "collect/objects.h"
#include "collect/told_stacks.h"
#include "format/io.h"

enum { IO_ROUND_MS = 90 }; /* how long a table of cells is written to, at least */

struct io_fds {
    int control, threads, deep, cells, used, cpus, folded, known, known_long, faults;
};

struct collector {
    struct io_opts opts;
    struct sink *sink;
    struct stacks *stacks; /* the cpu collector's */
    struct bpf_unit *unit;
    struct bpf_ring ring;
    struct io_fds fds;
    struct told_threads threads;
    struct told_stacks told;
    struct objects *objects;
    struct devices *devices;     /* NULL: */
    char devices_na[512];        /* why not */
    struct io_kernel_said *said; /* NULL: requests are not asked for */
    struct files_look *look;
    struct intern mapped; /* ids of objects whose names were asked of /proc */
    struct io_config config;
    uint32_t ring_bytes;
    char ring_na[512];  /* why it is smaller than it ought to be; empty: it is not */
    uint64_t map_bytes; /* of all maps, about */
    bool cache_na;      /* this kernel does not tell what is added to the page cache */
    bool faults_na;     /* nor of faults on mapped files */

    /* Mapped: two tables by turns of config.cpus * config.cells each. */
    struct io_cell *cells;
    uint64_t *used;
    volatile struct io_cpu *cpus;

    uint64_t round;
    uint64_t round_ns; /* when it began */
    uint64_t until_ns; /* all that the ring had to say up to here is taken */
    uint64_t start_ns, stop_ns;
    bool stopped;

    uint32_t series;
    uint64_t malformed, refused, open_calls, rounds_held;
    uint64_t faults;      /* on mapped files, in rows */
    uint64_t faults_last; /* of them: the last ones of threads that had not ended */
    uint64_t stackless;   /* calls whose stack should be known and is not */
    uint64_t own_ns;      /* CPU time of ours, spent here */
};

/* io_kernel_calls.c */
void io_calls_fill(struct io_call calls[IO_CALLS_MAX]);

/* io_kernel_rows.c */
/* Takes all records up to a moment. */
MUST_USE int io_records_take(struct collector *c, uint64_t time_ns);
/* Whether nobody adds to the table that is not written to any more. */
bool io_table_is_quiet(const struct collector *c);
/* Empties a table of cells, which nobody may be adding to. */
MUST_USE int io_table_take(struct collector *c, unsigned which);
/* A row, or what is new of one; what is beyond a bound of the sink is counted. */
MUST_USE int io_row_put(struct collector *c, const struct io_key *key,
                        const struct io_tally *tally);
/* Calls that have not returned, and those for which there was no room. */
MUST_USE int io_open_take(struct collector *c, uint64_t now_ns);
MUST_USE int io_folded_take(struct collector *c);

/* io_kernel_said.c */
MUST_USE int io_said_start(struct collector *c, const struct collector_target *target,
                           struct why *why);
MUST_USE int io_said_take(struct collector *c, const struct offcpu_head *head, size_t bytes);
MUST_USE int io_said_task(struct collector *c, enum cpu_task task, int pid, int tid);
MUST_USE int io_said_drain(struct collector *c, uint64_t now_ns);
void io_said_stop(struct collector *c); /* nothing further is told by libraries */
MUST_USE int io_said_finish(struct collector *c);
/* Why what is inside of libraries is not seen; NULL: it is. */
const char *io_said_na(const struct collector *c);
/* Some stacks end where the kernel's own address stands for a caller. */
bool io_said_hides_callers(const struct collector *c);
/* Encrypted connections of which nobody tells the inside. */
uint64_t io_said_encrypted(const struct collector *c);
void io_said_close(struct collector *c);

/* io_files.c */
bool io_faults_here(void);
/* A record of the ring that names an object. */
MUST_USE int io_files_told(struct collector *c, const void *told, size_t bytes);
/* A row is about `object`. */
MUST_USE int io_files_row(struct collector *c, const struct io_key *key, uint32_t object,
                          const struct io_tally *tally);
/* The last fault of each thread that has not ended. */
MUST_USE int io_faults_take(struct collector *c);

/* io_kernel_finish.c */
uint64_t io_count(const struct collector *c, unsigned what);
MUST_USE int io_finish_put(struct collector *c);
