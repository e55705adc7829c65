/* What the files of the reader share; nobody else includes this.
 *
 * reader_open.c     which connection: plain, beside a log, or a temporary copy
 * reader.c          opening, series, stacks
 * reader_samples.c  chunks to blocks
 * reader_rows.c     rows of the plain tables */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "model/interned.h"
#include "store/chunk.h"
#include "store/identify.h"
#include "store/reader.h"

struct recording {
    char *path;
    sqlite3 *db;
    unsigned schema;
    bool finished;
    const char *writer_version;
    struct arena arena;
    uint32_t counts[RECORDING_TABLES];
    VEC(struct recorded_series) series;
    struct stack_node *stacks; /* [id - 1]; NULL until first used */
};

/* A read-only connection that has proved to work. */
MUST_USE int reader_connect(const char *path, const struct identity *identity, sqlite3 **ret,
                            struct why *why);
/* Puts the content of *db, brought to our schema, into a temporary database and
 * replaces *db by it. */
MUST_USE int reader_migrate(sqlite3 **db, const char *path, struct why *why);

/* "damaged WHAT in 'PATH': …" */
int reader_damage(const struct recording *recording, struct why *why, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* Turns a SQLite result code met while reading into words. */
int reader_fail(const struct recording *recording, int rc, struct why *why);
