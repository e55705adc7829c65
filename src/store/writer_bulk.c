/* Rows of the tables that grow with every sample, written many at a time: half of what SQLite
 * does for a row is to begin and end the statement. */
#include "store/db.h"
#include "store/schema.h"
#include "store/writer_parts.h"

#include <errno.h>
#include <stdio.h>

static const struct bulk_table {
    enum writer_sql one;
    const char *begin; /* of the statement, up to the rows */
    unsigned columns;
    unsigned kind_column; /* of an enum frame_kind, which is stored as its name; 0: none */
} tables[WRITER_BULKS] = {
    [BULK_FRAME] = {SQL_FRAME, "INSERT INTO frame VALUES", 6, 1},
    [BULK_STACK] = {SQL_STACK, "INSERT INTO stack VALUES", 3, 0},
    [BULK_LOCATION] = {SQL_LOCATION, "INSERT OR REPLACE INTO location VALUES", 5, 0},
    [BULK_TOTAL] = {SQL_TOTAL, "INSERT OR REPLACE INTO total VALUES", 5, 0},
    [BULK_WAIT_EVENT] = {SQL_WAIT_EVENT, "INSERT INTO wait_event VALUES", 5, 0},
    [BULK_REQUEST_EVENT] = {SQL_REQUEST_EVENT, "INSERT INTO request_event VALUES", 11, 0},
    [BULK_HEAP_MOMENT] = {SQL_HEAP_MOMENT, "INSERT OR REPLACE INTO heap_moment VALUES", 5, 0},
};

int writer_bulk_prepare(struct recording_writer *writer)
{
    for (size_t i = 0; i < WRITER_BULKS; i++) {
        char sql[BULK_ROWS * (2 * BULK_COLUMNS_MAX + 2) + 64];
        size_t len = (size_t)snprintf(sql, sizeof(sql), "%s", tables[i].begin);
        for (unsigned row = 0; row < BULK_ROWS; row++)
            for (unsigned column = 0; column < tables[i].columns; column++)
                len += (size_t)snprintf(sql + len, sizeof(sql) - len, "%s?%s",
                                        column > 0 ? ","
                                        : row > 0  ? ",("
                                                   : "(",
                                        column + 1 == tables[i].columns ? ")" : "");
        int rc = sqlite3_prepare_v3(writer->db, sql, (int)len, SQLITE_PREPARE_PERSISTENT,
                                    &writer->bulks[i].many, NULL);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

void writer_bulk_unprepare(struct recording_writer *writer)
{
    for (size_t i = 0; i < WRITER_BULKS; i++)
        db_finalize(&writer->bulks[i].many);
}

static int bind_rows(sqlite3_stmt *stmt, const struct bulk_table *table, const int64_t *values,
                     unsigned rows)
{
    int rc = SQLITE_OK, at = 1;
    for (unsigned row = 0; row < rows; row++) {
        for (unsigned column = 0; column < table->columns && rc == SQLITE_OK; column++, at++) {
            int64_t value = *values++;
            if (column > 0 && column == table->kind_column)
                rc = sqlite3_bind_text(stmt, at, schema_frame_kind_name((enum frame_kind)value), -1,
                                       SQLITE_STATIC);
            else
                rc = sqlite3_bind_int64(stmt, at, value);
        }
    }
    return rc;
}

static int rows_write(struct recording_writer *writer, enum writer_bulk_kind kind)
{
    const struct bulk_table *table = &tables[kind];
    struct writer_bulk *bulk = &writer->bulks[kind];
    unsigned rows = bulk->rows, step = rows == BULK_ROWS ? BULK_ROWS : 1;
    bulk->rows = 0;
    sqlite3_stmt *stmt = step == 1 ? writer->sql[table->one] : bulk->many;
    int r = writer_begin(writer);
    for (unsigned row = 0; row < rows && r == 0; row += step) {
        int rc = bind_rows(stmt, table, bulk->values + row * table->columns, step);
        if (rc == SQLITE_OK)
            rc = writer_run(stmt);
        if (rc != SQLITE_OK)
            r = writer_fail(writer, rc, "write");
    }
    return r;
}

int writer_bulk_put(struct recording_writer *writer, enum writer_bulk_kind kind,
                    const int64_t *values)
{
    struct writer_bulk *bulk = &writer->bulks[kind];
    unsigned columns = tables[kind].columns;
    for (unsigned i = 0; i < columns; i++)
        bulk->values[bulk->rows * columns + i] = values[i];
    return ++bulk->rows == BULK_ROWS ? rows_write(writer, kind) : 0;
}

int writer_bulk_flush(struct recording_writer *writer)
{
    int r = 0;
    for (unsigned i = 0; i < WRITER_BULKS && r == 0; i++)
        if (writer->bulks[i].rows > 0)
            r = rows_write(writer, (enum writer_bulk_kind)i);
    return r;
}
