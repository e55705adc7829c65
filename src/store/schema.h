/* What a recording looks like inside, as steps from one version to the next.
 *
 * The file's `user_version` is the number of steps applied to it. A step never
 * changes once it has been released: a new version is a new row at the end. */
#pragma once

#include "base/macros.h"
#include "base/why.h"
#include "model/sink.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

/* "whys" in ASCII, in bytes 68 to 71 of the file; `file` and others may know it by this. */
#define SCHEMA_APPLICATION_ID 0x77687973

struct schema_step {
    const char *sql;
};

extern const struct schema_step schema_steps[];
extern const unsigned schema_version; /* how many steps there are */

/* Brings `db` from its user_version to `count`, each step in a transaction of
 * its own: a step that fails leaves the version before it. -EBADMSG with the
 * step's number and SQLite's message. */
MUST_USE int schema_migrate(sqlite3 *db, const struct schema_step *steps, unsigned count,
                            struct why *why);

/* One line about each table, for `whyslow query --tables`. */
struct schema_table {
    const char *name;
    const char *about;
    const char *rows_sql; /* how many rows; NULL: as SQLite counts them */
    bool made;            /* while reading: it is not in the file */
};
extern const struct schema_table schema_tables[]; /* ends with a NULL name */

/* Kinds and units are stored by name: numbers would tie the file to one
 * version of the program. The functions back give -1 for an unknown name. */
const char *schema_unit_name(enum unit value);
int schema_unit_find(const char *name);
const char *schema_image_kind_name(enum image_kind value);
int schema_image_kind_find(const char *name);
const char *schema_frame_kind_name(enum frame_kind value);
int schema_frame_kind_find(const char *name);
const char *schema_series_kind_name(enum series_kind value);
int schema_series_kind_find(const char *name);
const char *schema_object_kind_name(enum object_kind value);
int schema_object_kind_find(const char *name);
const char *schema_wait_kind_name(enum wait_kind value);
int schema_wait_kind_find(const char *name);
const char *schema_device_op_name(enum device_op value);
int schema_device_op_find(const char *name);
const char *schema_request_protocol_name(enum request_protocol value);
int schema_request_protocol_find(const char *name);
const char *schema_request_role_name(enum request_role value);
int schema_request_role_find(const char *name);
const char *schema_heap_kind_name(enum heap_kind value);
int schema_heap_kind_find(const char *name);
const char *schema_heap_why_name(enum heap_snapshot_why value);
int schema_heap_why_find(const char *name);
