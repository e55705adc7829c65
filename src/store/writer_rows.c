/* One prepared statement a kind of row, made once at the start. */
#include "store/db.h"
#include "store/writer_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const statements[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN",
    [SQL_COMMIT] = "COMMIT",
    [SQL_META] = "INSERT OR REPLACE INTO meta VALUES(?1, ?2)",
    [SQL_TEXT] = "INSERT INTO text VALUES(?1, ?2)",
    [SQL_PROCESS] = "INSERT INTO process VALUES(?1, ?2, ?3, ?4, NULL, NULL, ?5, ?6)",
    [SQL_PROCESS_PROGRAM] = "UPDATE process SET exe = ?2, command = ?3 WHERE id = ?1",
    [SQL_PROCESS_END] = "UPDATE process SET end_ns = ?2, wait_status = ?3 WHERE id = ?1",
    [SQL_THREAD] = "INSERT INTO thread VALUES(?1, ?2, ?3, ?4, NULL, ?5)",
    [SQL_THREAD_END] = "UPDATE thread SET end_ns = ?2 WHERE id = ?1",
    [SQL_IMAGE] = "INSERT INTO image VALUES(?1, ?2, ?3, ?4, ?5)",
    [SQL_MAPPING] = "INSERT INTO mapping VALUES(?1, ?2, ?3, ?4, NULL, ?5, ?6, ?7)",
    [SQL_MAPPING_END] = "UPDATE mapping SET end_ns = ?2 WHERE id = ?1",
    [SQL_FRAME] = "INSERT INTO frame VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_STACK] = "INSERT INTO stack VALUES(?1, ?2, ?3)",
    [SQL_FUNCTION] = "INSERT INTO function VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [SQL_LOCATION] = "INSERT OR REPLACE INTO location VALUES(?1, ?2, ?3, ?4, ?5)",
    [SQL_SOURCE_LINE] = "INSERT OR REPLACE INTO source_line VALUES(?1, ?2, ?3)",
    [SQL_INSTRUCTION] = "INSERT OR REPLACE INTO instruction VALUES(?1, ?2, ?3, ?4)",
    [SQL_SERIES] = "INSERT INTO series VALUES(?1, ?2, ?3, ?4, ?5)",
    [SQL_TOTAL] = "INSERT OR REPLACE INTO total VALUES(?1, ?2, ?3, ?4, ?5)",
    [SQL_CHUNK_ADD] = "INSERT INTO chunk VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_CHUNK_UPDATE] =
        "UPDATE chunk SET start_ns = ?2, end_ns = ?3, samples = ?4, data = ?5 WHERE id = ?1",
    [SQL_COUNTER] = "INSERT OR REPLACE INTO counter VALUES(?1, ?2, ?3)",
    [SQL_DOCUMENT] = "INSERT OR REPLACE INTO document VALUES(?1, ?2)",
    [SQL_OBJECT] = "INSERT OR REPLACE INTO object VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_WAIT] = ("INSERT OR REPLACE INTO wait VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
                  " ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)"),
    [SQL_WAIT_EVENT] = "INSERT INTO wait_event VALUES(?1, ?2, ?3, ?4, ?5)",
    [SQL_CALL] = ("INSERT OR REPLACE INTO call VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
                  " ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)"),
    [SQL_DEVICE] = ("INSERT OR REPLACE INTO device VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
                    " ?11, ?12, ?13, ?14)"),
    [SQL_CONNECTION] = ("INSERT OR REPLACE INTO connection VALUES(?1, ?2, ?3, ?4, ?5, ?6,"
                        " nullif(?7, 0), nullif(?8, 0), ?9, ?10, ?11, ?12, ?13)"),
    [SQL_REQUEST] = ("INSERT OR REPLACE INTO request VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"
                     " ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)"),
    [SQL_REQUEST_EVENT] = ("INSERT INTO request_event VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"
                           " ?10, ?11)"),
    [SQL_HEAP_SITE_CHUNK] = "INSERT OR REPLACE INTO heap_site_chunk VALUES(?1, ?2, ?3, ?4)",
    [SQL_HEAP_PROCESS] = ("INSERT OR REPLACE INTO heap_process VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7,"
                          " ?8, ?9, ?10, ?11)"),
    [SQL_HEAP_SNAPSHOT] = "INSERT INTO heap_snapshot VALUES(?1, ?2, ?3, ?4, 0, ?5, ?6)",
    [SQL_HEAP_SNAPSHOT_ROWS] = "UPDATE heap_snapshot SET rows = ?2, data = ?3 WHERE id = ?1",
    [SQL_HEAP_MOMENT] = "INSERT OR REPLACE INTO heap_moment VALUES(?1, ?2, ?3, ?4, ?5)",
    [SQL_HEAP_MOMENTS_CUT] = "DELETE FROM heap_moment WHERE process = ?1 AND number >= ?2",
    [SQL_HEAP_CHUNK_ADD] = "INSERT INTO heap_chunk VALUES(NULL, ?1, ?2, ?3)",
    [SQL_HEAP_CHUNK_UPDATE] = "UPDATE heap_chunk SET events = ?2, data = ?3 WHERE id = ?1",
};

int writer_prepare(struct recording_writer *writer)
{
    for (size_t i = 0; i < SQL_COUNT; i++) {
        int rc = sqlite3_prepare_v3(writer->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &writer->sql[i], NULL);
        if (rc != SQLITE_OK)
            return rc;
    }
    return writer_bulk_prepare(writer);
}

void writer_unprepare(struct recording_writer *writer)
{
    for (size_t i = 0; i < SQL_COUNT; i++)
        db_finalize(&writer->sql[i]);
    writer_bulk_unprepare(writer);
}

int writer_run(sqlite3_stmt *stmt)
{
    errno = 0; /* db_errno() looks at it after a failed write */
    int rc = sqlite3_step(stmt);
    int reset = sqlite3_reset(stmt);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : reset != SQLITE_OK ? reset : rc;
}

static int bind(sqlite3_stmt *stmt, int at, char type, va_list *args)
{
    if (type == 'i')
        return sqlite3_bind_int64(stmt, at, va_arg(*args, int64_t));
    struct str text = va_arg(*args, struct str);
    /* A NULL pointer would bind NULL; the row is run before the text can vanish. */
    const char *data = text.data ? text.data : "";
    if (type == 's')
        return sqlite3_bind_text64(stmt, at, data, text.len, SQLITE_STATIC, SQLITE_UTF8);
    assert(type == 'b');
    return sqlite3_bind_blob64(stmt, at, data, text.len, SQLITE_STATIC);
}

int writer_begin(struct recording_writer *writer)
{
    if (writer->in_transaction)
        return 0;
    int rc = writer_run(writer->sql[SQL_BEGIN]);
    if (rc != SQLITE_OK)
        return writer_fail(writer, rc, "write");
    writer->in_transaction = true;
    return 0;
}

int writer_put(struct recording_writer *writer, enum writer_sql sql, const char *types, ...)
{
    int r = writer_begin(writer);
    if (r < 0)
        return r;
    sqlite3_stmt *stmt = writer->sql[sql];
    int rc = SQLITE_OK;
    va_list args;
    va_start(args, types);
    for (int i = 0; types[i] && rc == SQLITE_OK; i++)
        rc = bind(stmt, i + 1, types[i], &args);
    va_end(args);
    if (rc == SQLITE_OK)
        rc = writer_run(stmt);
    return rc == SQLITE_OK ? 0 : writer_fail(writer, rc, "write");
}

/* SQLite may have rolled back by itself already (disk full does that). */
static void roll_back(struct recording_writer *writer)
{
    if (!sqlite3_get_autocommit(writer->db))
        (void)db_exec(writer->db, "ROLLBACK");
    writer->in_transaction = false;
}

int writer_fail(struct recording_writer *writer, int rc, const char *doing)
{
    if (writer->error == 0)
        writer->error = db_why(writer->db, rc, doing, writer->path, &writer->why);
    roll_back(writer);
    return writer->error;
}

int writer_fail_errno(struct recording_writer *writer, int error, const char *doing)
{
    if (writer->error == 0) {
        if (error == ENOMEM)
            writer->error = why_nomem(&writer->why);
        else
            writer->error = why_errno(&writer->why, error, "record for a shorter time",
                                      "cannot %s '%s'", doing, writer->path);
    }
    roll_back(writer);
    return writer->error;
}

int writer_settle(struct recording_writer *writer, int r)
{
    return r == -ENOMEM ? writer_fail_errno(writer, ENOMEM, "add to") : r;
}
