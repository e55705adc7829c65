/* SQLite's answers in our words. */
#include "store/db.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int db_errno(sqlite3 *db, int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_FULL:
        return ENOSPC;
    case SQLITE_NOMEM:
        return ENOMEM;
    case SQLITE_IOERR:
        if (rc == SQLITE_IOERR_NOMEM)
            return ENOMEM;
        /* SQLite tells a full disk apart, but not a quota or a file size limit;
         * nothing after the failed write sets errno to these. */
        if (rc == SQLITE_IOERR_WRITE && (errno == EFBIG || errno == EDQUOT))
            return errno;
        return EIO;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_INTERRUPT: /* only db_bind() interrupts */
        return EBADMSG;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return EBUSY;
    case SQLITE_READONLY:
        return EROFS;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return EACCES;
    case SQLITE_CANTOPEN:
        return db && sqlite3_system_errno(db) != 0 ? sqlite3_system_errno(db) : EACCES;
    case SQLITE_TOOBIG:
        return EFBIG;
    default:
        return EIO;
    }
}

static const char *remedy_for(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "free some space, or choose a folder on another disk";
    case EFBIG:
        return "raise the file size limit (ulimit -f), or record for a shorter time";
    case EROFS:
    case EACCES:
    case EPERM:
        return "choose a folder you may write to";
    case EBADMSG:
        return "the file is damaged: copy it again, or record again";
    case EBUSY:
        return "wait until the other program has closed the recording";
    case ENOMEM:
        return "free some memory and run it again";
    default:
        return "check the disk (dmesg tells of read and write errors)";
    }
}

int db_why(sqlite3 *db, int rc, const char *doing, const char *path, struct why *why)
{
    if (rc == SQLITE_READONLY_DBMOVED) /* which SQLite calls a file that is only for reading */
        return why_set(why, WHY_FAILED, ESTALE,
                       "record again, and leave the file where it is until whyslow ends",
                       "cannot %s '%s': it was moved or removed meanwhile", doing, path);
    int error = db_errno(db, rc);
    enum why_kind kind = error == EROFS || error == EACCES || error == EPERM ? WHY_DENIED
                                                                             : WHY_FAILED;
    if (error == ENOENT || error == ENOTDIR)
        kind = WHY_USAGE;
    /* SQLite's message says more than strerror only where it is about the content. */
    bool content = error == EBADMSG || error == EIO;
    const char *said = content && db ? sqlite3_errmsg(db) : strerror(error);
    if ((rc & 0xff) == SQLITE_INTERRUPT)
        said = "it takes longer than its size allows, so its pages must lead in circles";
    return why_set(why, kind, error, remedy_for(error), "cannot %s '%s': %s (SQLite code %d)",
                   doing, path, said, rc);
}

int db_exec(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

void db_finalize(sqlite3_stmt **stmt)
{
    sqlite3_finalize(*stmt);
    *stmt = NULL;
}

void db_close(sqlite3 **db)
{
    sqlite3_close_v2(*db);
    *db = NULL;
}

int db_path(const char *path, char *ret, size_t size)
{
    int n = snprintf(ret, size, "%s%s", path[0] == '/' ? "" : "./", path);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int db_path_uri(const char *path, const char *query, char *ret, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    /* With no host: else "//tmp/x" would be a file of the host "tmp". */
    size_t at = (size_t)snprintf(ret, size, "file:%s", path[0] == '/' ? "//" : "./");
    for (const char *c = path; *c; c++) {
        if (at + 4 > size)
            return -ENAMETOOLONG;
        if (strchr("?#%", *c)) {
            ret[at++] = '%';
            ret[at++] = hex[(unsigned char)*c >> 4];
            ret[at++] = hex[(unsigned char)*c & 15];
        } else {
            ret[at++] = *c;
        }
    }
    int n = snprintf(ret + at, size - at, "?%s", query);
    return n < 0 || (size_t)n >= size - at ? -ENAMETOOLONG : 0;
}

void db_distrust(sqlite3 *db)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
}

/* Reading a row takes about 15 steps and at least 6 bytes of the file, and a table is read a
 * few times; our slowest statement (a migration) takes ten times that. */
enum { BOUND_EVERY = 100000, BOUND_STEPS_A_BYTE = 256, BOUND_STEPS_LEAST = 5000000 };

static int bound_check(void *context)
{
    struct db_bound *bound = context;
    if (bound->left < BOUND_EVERY)
        return 1;
    bound->left -= BOUND_EVERY;
    return 0;
}

int db_bind(sqlite3 *db, struct db_bound *bound)
{
    int64_t pages = 0, page_bytes = 0;
    *bound = (struct db_bound){BOUND_STEPS_LEAST};
    sqlite3_progress_handler(db, BOUND_EVERY, bound_check, bound);
    int rc = db_int(db, "PRAGMA page_count", &pages);
    if (rc == SQLITE_OK)
        rc = db_int(db, "PRAGMA page_size", &page_bytes);
    if (rc == SQLITE_OK)
        bound->left += (uint64_t)pages * (uint64_t)page_bytes * BOUND_STEPS_A_BYTE;
    return rc;
}

void db_unbind(sqlite3 *db)
{
    sqlite3_progress_handler(db, 0, NULL, NULL);
}

int db_is_plain_table(sqlite3 *db, const char *name, bool *ret)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db,
                                "SELECT (SELECT count(rootpage) FROM sqlite_schema WHERE name = ?1"
                                "   AND type = 'table' AND rootpage > 0"
                                "   AND sql LIKE 'CREATE TABLE%') = 1"
                                " AND NOT EXISTS(SELECT 1 FROM pragma_table_xinfo(?1)"
                                "   WHERE hidden <> 0)",
                                -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
    *ret = sqlite3_column_int(stmt, 0) != 0;
    return SQLITE_OK;
}

int db_int(sqlite3 *db, const char *sql, int64_t *ret)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
    *ret = sqlite3_column_int64(stmt, 0);
    return SQLITE_OK;
}
