/* SQL with its values taken out, so that statements that differ in values only are one.
 *
 * Literals become ?, a list of them (IN, VALUES rows) one "(?)", comments and repeated blanks go,
 * keywords stay as they are written. Any dialect of PostgreSQL, MySQL and SQLite; text that is no
 * SQL, cut off in the middle or not UTF-8 does no harm. */
#pragma once

#include "base/str.h"

#include <stdint.h>

enum sql_dialect { SQL_POSTGRESQL, SQL_MYSQL, SQL_SQLITE };

/* Into `to` (room for PROTOCOL_TEXT_BYTES), whose length is returned. *ret_hash changes with the
 * values, 0: there were none. */
size_t sql_normalise(enum sql_dialect dialect, struct str sql, char *to, size_t room,
                     uint64_t *ret_hash);
