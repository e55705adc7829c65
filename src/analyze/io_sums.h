/* Rows of calls added up the ways people ask for them: by call, by file, by peer, by place in the
 * program, by name that was looked up, by folder.
 *
 * What is idle (analyze/io_kinds.h) is in the table of calls; everywhere else it is counted apart
 * and ranks nothing. Lists are in the order of reports: the longest first. */
#pragma once

#include "analyze/io_kinds.h"

struct io_error {
    uint32_t error; /* errno */
    uint64_t count;
};

struct io_syscall {
    int32_t syscall;
    enum io_kind kind;
    struct call_tally tally;
    uint64_t errors;
    uint32_t error_first, error_count; /* in io_sums.errors, the most frequent first */
};

/* What calls of a kind moved. */
struct io_moved {
    uint64_t calls, ns, bytes;
};

/* A file, folder, device, pipe, terminal: whatever is no socket. What has one name is one, also
 * where it was made again and again. */
struct io_file {
    uint32_t object;         /* the first of them */
    uint32_t objects;        /* how many there were */
    struct call_tally tally; /* calls that are not idle; sizes: of those that move bytes */
    uint64_t errors;
    struct io_moved reads, writes, copies, faults;
    struct io_moved syncs;       /* fsync and its kind */
    struct io_moved sync_writes; /* of writes: on a file that is open with O_SYNC or O_DSYNC */
    uint64_t direct;             /* of reads and writes: with O_DIRECT */
    uint64_t idle_calls, idle_ns;
    uint64_t opens, stats;
    uint64_t size_bytes; /* from document "files", of the last; UINT64_MAX: not known */
    bool created, removed;
    uint32_t stack; /* the heaviest, and its time */
    uint64_t stack_ns;
};

/* All sockets with one name and role: "10.0.0.5:5432", asked by us. */
struct io_peer {
    uint32_t object; /* one of them */
    uint32_t flags;  /* enum object_flag, of all */
    struct call_tally tally;
    uint64_t errors;
    struct io_moved received, sent, copies;
    struct io_moved connects, accepts;
    uint64_t idle_calls, idle_ns;
    uint64_t sockets;
    struct str service;     /* from the protocol; empty: not known */
    uint32_t protocol;      /* enum request_protocol; 0: not known */
    uint32_t connect_stack; /* of the last connect; 0: not known */
    uint32_t stack;
    uint64_t stack_ns;
};

/* One call at one place of the program. */
struct io_site {
    int32_t syscall;
    uint32_t stack;
    uint32_t object; /* with the most time */
    uint64_t object_ns;
    uint32_t objects, threads; /* different ones */
    struct call_tally tally;
    uint64_t errors;
};

/* Names that were looked up, by what for. */
struct io_lookups {
    struct io_moved opens, stats, removes, others;
    uint64_t opens_failed, stats_failed, removes_failed, others_failed;
    uint64_t missing;    /* of all: nothing had that name */
    uint64_t missing_ns; /* and the time it took to know */
};

/* Lookups that found nothing, by folder and call site. */
struct io_missing {
    struct str folder;
    uint32_t stack;
    uint32_t example; /* an object whose name it was */
    uint32_t names;   /* different ones */
    uint64_t count, ns;
};

/* Files that were opened or moved bytes, by folder. */
struct io_folder {
    struct str folder;
    uint64_t files, opens, bytes, ns;
    uint64_t temporary; /* of files: made and removed again meanwhile */
};

struct io_sums {
    const struct io *io;
    struct io_kinds kinds;
    struct io_syscall *syscalls;
    size_t syscall_count;
    struct io_error *errors;
    size_t error_count;
    struct io_file *files;
    size_t file_count;
    struct io_peer *peers;
    size_t peer_count;
    struct io_site *sites;
    size_t site_count;
    struct io_lookups lookups;
    struct io_missing *missing;
    size_t missing_count;
    struct io_folder *folders;
    size_t folder_count;
    /* Over all threads. Calls and idle ones make up what the table of calls sums up to; faults
     * are none of them. Calls and faults are what ranks. */
    uint64_t calls, calls_ns;
    uint64_t idle_calls, idle_ns;
    uint64_t faults, faults_ns;
    uint64_t busy_ns; /* calls and faults */
    uint64_t wall_ns; /* of the recording */
    uint32_t threads; /* that made a call */
    bool placed;      /* places in files are known to whoever recorded */
};

/* 0 or -ENOMEM. Texts are borrowed from `io`. */
MUST_USE int io_sums_build(struct arena *arena, const struct io *io, struct io_sums *ret);

/* The part of a path before its last slash: "/etc" of "/etc/passwd"; "." without one. */
struct str io_folder_of(struct str path);
/* A quantile (0 to 1) of a list of buckets as in call_tally, never beyond max_ns. */
double io_quantile(const uint32_t *buckets, uint64_t count, uint64_t max_ns, double quantile);
/* The size that half of the calls that moved bytes do not exceed, by its bucket's upper end. */
uint64_t io_median_size(const struct call_tally *tally);
