/* What the files of the reader share; nobody else includes this.
 *
 * reader_open.c     which connection: plain, beside a log, or a temporary copy
 * reader.c          opening, series, stacks
 * reader_samples.c  chunks to blocks
 * reader_heap.c     chunks to events of the heap
 * reader_rows.c     rows of the plain tables */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "model/interned.h"
#include "store/chunk.h"
#include "store/identify.h"
#include "store/reader.h"
#include "store/schema.h"

struct recording {
    const struct schema_step *steps; /* to the schema this reader knows */
    unsigned version;
    char *path;
    sqlite3 *db;
    unsigned schema;
    bool finished;
    const char *writer_version;
    struct arena arena;
    uint32_t counts[RECORDING_TABLES];
    VEC(struct recorded_series) series;
    VEC(struct stack_node) stacks; /* [id - 1]; loaded when first used */
    bool stacks_loaded;
    uint64_t size_bytes; /* of all pages: no table has more text */
};

/* A read-only connection that has proved to work. */
MUST_USE int reader_connect(const char *path, const struct identity *identity, sqlite3 **ret,
                            struct why *why);
/* Puts the content of recording->db, brought to our schema, into a temporary
 * database and reads that one from now on. */
MUST_USE int reader_migrate(struct recording *recording, struct why *why);
/* recording_open() with steps of its own, so that tests can have a newer schema. */
MUST_USE int reader_open(const char *path, const struct schema_step *steps, unsigned version,
                         struct recording **ret, struct why *why);

/* "damaged WHAT in 'PATH': …" */
int reader_damage(const struct recording *recording, struct why *why, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* Turns a SQLite result code met while reading into words. */
int reader_fail(const struct recording *recording, int rc, struct why *why);
