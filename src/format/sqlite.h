/* What bpf/sqlite.bpf.c and collect/sqlite_calls.c say to each other: databases, statements, and
 * each time that one is run.
 *
 * Plain structs of fixed size: one side is compiled for the machine, the other for BPF. */
#pragma once

#include "format/offcpu.h"

#include <stdint.h>

enum {
    SQLITE_PATH_BYTES = 256,
    SQLITE_TEXT_BYTES = 2048, /* of a statement, that are looked at */
    SQLITE_CALLS_MAX = 16384, /* functions that threads are in */
    SQLITE_RUNS_MAX = 16384,  /* statements that are run or have parameters */
    SQLITE_BOUND_WORDS = 8,   /* of a text that is bound, that go into the hash */
};

/* .rodata */
struct sqlite_config {
    uint32_t ring_bytes;
    uint32_t stacks; /* 1: with the stack of every run */
};

/* Map "calls": a function that a thread is in, by where its stack was: they are entered again from
 * inside. */
struct sqlite_call_key {
    uint64_t sp;
    uint32_t pid; /* thread, as the kernel counts */
    uint32_t unused;
};
struct sqlite_call {
    uint64_t subject; /* the statement; of prepare and open the database, or where it is put */
    uint64_t text, text_bytes;
    uint64_t result; /* where the statement is put */
};
_Static_assert(sizeof(struct sqlite_call) == 32, "shared with BPF");

/* Map "runs", by statement. */
struct sqlite_run_key {
    uint64_t statement;
    uint32_t kernel_tgid;
    uint32_t unused;
};
struct sqlite_run {
    uint64_t start_ns; /* 0: not begun */
    uint64_t rows;
    uint64_t parameters; /* hash of what was bound since it was last run */
    uint64_t stack;
};
_Static_assert(sizeof(struct sqlite_run) == 32, "shared with BPF");

/* In the ring "told" of the io program. */
enum sqlite_record {
    SQLITE_OPENED = 120,
    SQLITE_PREPARED = 121,
    SQLITE_RAN = 122,
    SQLITE_GONE = 123, /* a statement */
};

struct sqlite_opened {
    struct offcpu_head head;
    uint64_t database;
    uint32_t len;
    uint32_t unused;
    char path[SQLITE_PATH_BYTES];
};
_Static_assert(sizeof(struct sqlite_opened) == 40 + SQLITE_PATH_BYTES, "shared with BPF");

struct sqlite_prepared {
    struct offcpu_head head;
    uint64_t database, statement;
    uint32_t len;
    uint32_t unused;
    char text[SQLITE_TEXT_BYTES];
};
_Static_assert(sizeof(struct sqlite_prepared) == 48 + SQLITE_TEXT_BYTES, "shared with BPF");

struct sqlite_ran {
    struct offcpu_head head; /* time_ns: when it was over */
    uint64_t statement;      /* SQLITE_GONE has no more than this */
    struct sqlite_run run;
    int32_t error; /* as the library numbers them; 0: none */
    uint32_t unused;
};
_Static_assert(sizeof(struct sqlite_ran) == 72, "shared with BPF");

/* Map "sqlite_counts", per CPU. */
enum sqlite_count {
    SQLITE_TOLD,
    SQLITE_LOST, /* the ring was full */
    SQLITE_COUNTS,
};
