/* The little of SQLite that writer, reader and query share: result codes to
 * errno and words, statements that free themselves. */
#pragma once

#include "base/macros.h"
#include "base/str.h"
#include "base/why.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* SQLite's result code as a positive errno value. */
int db_errno(sqlite3 *db, int rc);

/* Fills `why` from a result code: "cannot DOING 'PATH': reason", with a remedy
 * that fits the reason. Returns -errno. */
int db_why(sqlite3 *db, int rc, const char *doing, const char *path, struct why *why);

int db_exec(sqlite3 *db, const char *sql); /* a SQLite result code */

/* For AUTO(): both take NULL. */
void db_finalize(sqlite3_stmt **stmt);
void db_close(sqlite3 **db);

/* A file name is only ever a file name: SQLite would take "file:x?mode=rw" and
 * ":memory:" for something else. -ENAMETOOLONG when it does not fit. */
MUST_USE int db_path(const char *path, char *ret, size_t size);
/* The same as a URI, with `query` ("immutable=1") behind it. */
MUST_USE int db_path_uri(const char *path, const char *query, char *ret, size_t size);

/* A file of somebody else: nothing that lies in it (views, triggers, functions in its schema)
 * may run. */
void db_distrust(sqlite3 *db);

/* How long statements may take together on a file whose pages may lead in circles, or down to
 * the same page a million times, which SQLite does not notice: some steps a byte of the file,
 * and a fraction of a second for small ones. Beyond it they end with SQLITE_INTERRUPT, which is
 * EBADMSG in our words. Counted are the steps of SQLite's machine; count(*) alone makes none,
 * so count a column. `bound` lives as long as the connection or until db_unbind(). */
struct db_bound {
    uint64_t left;
};
MUST_USE int db_bind(sqlite3 *db, struct db_bound *bound); /* a SQLite result code */
void db_unbind(sqlite3 *db);

/* Is `name` a table of the file, with nothing but stored columns? A view, a virtual table, or
 * one that computes its columns while it is read is not. */
MUST_USE int db_is_plain_table(sqlite3 *db, const char *name, bool *ret); /* a SQLite code */

/* The one integer a statement gives; *ret is untouched on failure. */
MUST_USE int db_int(sqlite3 *db, const char *sql, int64_t *ret); /* a SQLite result code */
