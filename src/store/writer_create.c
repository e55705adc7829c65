/* A new recording appears under its name complete with tables, or not at all.
 *
 * The tables are made in a file of another name in the same folder, which is
 * then given the real one by link(), which never replaces a file. So neither a
 * kill in between nor a second writer can leave a half-made recording. */
#include "base/clock.h"
#include "base/fd.h"
#include "store/db.h"
#include "store/schema.h"
#include "store/writer_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char remedy_exists[] = "choose another name with -o, or move that file away";

/* SQLite would replay a log that lies beside a new file of the same name, and
 * so mix two recordings. */
static int leftovers_check(const char *path, struct why *why)
{
    static const char *const suffixes[] = {"", "-wal", "-journal", "-shm"};
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        char name[PATH_MAX];
        int n = snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        if (n < 0 || (size_t)n >= sizeof(name))
            return why_errno(why, ENAMETOOLONG, "choose a shorter name", "cannot create '%s'",
                             path);
        struct stat st;
        if (lstat(name, &st) == 0)
            return why_set(why, WHY_USAGE, EEXIST, remedy_exists,
                           "'%s' exists already%s; nothing is overwritten", name,
                           i == 0 ? "" : ", left from an earlier recording of this name");
    }
    return 0;
}

static int fill_tables(sqlite3 *db, const char *version, struct why *why)
{
    char sql[640];
    /* No log while the file is not yet anyone's: if this fails it is thrown away. */
    snprintf(sql, sizeof(sql),
             "PRAGMA page_size = 4096; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
             "PRAGMA application_id = %d;",
             SCHEMA_APPLICATION_ID);
    int rc = db_exec(db, sql);
    if (rc != SQLITE_OK)
        return db_why(db, rc, "create", "the recording", why);
    int r = schema_migrate(db, schema_steps, schema_version, why);
    if (r < 0)
        return r;
    /* Both clocks at one moment: samples have the first, people want the second. */
    char *meta = sqlite3_mprintf("INSERT INTO meta VALUES('format', 'whyslow recording'),"
                                 "('writer', %Q), ('finished', 0), ('created_mono_ns', %lld),"
                                 "('created_real_ns', %lld)",
                                 version ? version : "unknown", (long long)clock_mono_ns(),
                                 (long long)clock_real_ns());
    rc = meta ? db_exec(db, meta) : SQLITE_NOMEM;
    sqlite3_free(meta);
    return rc == SQLITE_OK ? 0 : db_why(db, rc, "create", "the recording", why);
}

static int make_temporary(const char *temporary, const char *version, struct why *why)
{
    AUTO(fd_close) int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return why_errno(why, errno, "choose a folder you may write to",
                         "cannot create a recording at '%s'", temporary);
    char name[PATH_MAX + 8];
    if (db_path(temporary, name, sizeof(name)) < 0)
        return why_errno(why, ENAMETOOLONG, "choose a shorter name", "cannot create '%s'",
                         temporary);
    AUTO(db_close) sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE, NULL);
    if (rc != SQLITE_OK)
        return db_why(db, rc, "create", temporary, why);
    int r = fill_tables(db, version, why);
    if (r < 0)
        return r;
    rc = sqlite3_close(db);
    db = NULL;
    return rc == SQLITE_OK ? 0 : db_why(NULL, rc, "create", temporary, why);
}

/* File systems without hard links have a rename that does not replace. */
static int give_name(const char *temporary, const char *path, struct why *why)
{
    if (link(temporary, path) == 0)
        return 0;
    int error = errno;
    if (error != EEXIST && renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (error == EEXIST || errno == EEXIST)
        return why_set(why, WHY_USAGE, EEXIST, remedy_exists,
                       "'%s' exists already; nothing is overwritten", path);
    return why_errno(why, error, "choose a folder you may write to", "cannot create '%s'", path);
}

int writer_create_file(const char *path, const char *version, struct why *why)
{
    int r = leftovers_check(path, why);
    if (r < 0)
        return r;
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof(temporary), "%s.%d.new", path, (int)getpid());
    if (n < 0 || (size_t)n >= sizeof(temporary))
        return why_errno(why, ENAMETOOLONG, "choose a shorter name", "cannot create '%s'", path);
    r = make_temporary(temporary, version, why);
    if (r == -EEXIST) {
        /* Left by a killed process that had our number: nobody else uses the name. */
        unlink(temporary);
        r = make_temporary(temporary, version, why);
    }
    if (r < 0 && r != -EEXIST) {
        unlink(temporary);
        /* The user did not ask for this name. */
        if (why && strncmp(why->what, "cannot create a recording at", 28) == 0)
            return why_errno(why, -r, "choose a folder you may write to", "cannot create '%s'",
                             path);
        return r;
    }
    if (r == 0)
        r = give_name(temporary, path, why);
    unlink(temporary);
    return r;
}

/* Write-ahead log: a commit is an append, readers do not block us, and a kill
 * loses nothing committed. synchronous = OFF: an fsync in the middle of a
 * recording waits for the target's own writes and makes them wait for ours,
 * which would spoil what we measure. The price is that a power cut during a
 * recording may lose it; a finished one has been synced. */
int writer_open_file(const char *path, sqlite3 **ret, struct why *why)
{
    char name[PATH_MAX + 8];
    if (db_path(path, name, sizeof(name)) < 0)
        return why_errno(why, ENAMETOOLONG, "choose a shorter name", "cannot open '%s'", path);
    AUTO(db_close) sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_extended_result_codes(db, 1);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(db, 5000);
    if (rc == SQLITE_OK)
        rc = db_exec(db, "PRAGMA synchronous = OFF; PRAGMA secure_delete = OFF;"
                         "PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY;"
                         "PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_mode = WAL");
    if (rc != SQLITE_OK)
        return db_why(db, rc, "open", path, why);
    *ret = db;
    db = NULL;
    return 0;
}
