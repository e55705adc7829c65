/* Getting at the content without touching the file.
 *
 * A finished recording is one file and simply opens; what lies beside it, or
 * will in a moment, is not looked at. One that was cut off has its last part in
 * a log (-wal) beside it, for which SQLite wants an index file (-shm): where it
 * cannot make one (read-only folder, other user), or somebody else has, file and
 * log are copied to a temporary folder and read there. */
#include "base/fd.h"
#include "base/temporary.h"
#include "store/db.h"
#include "store/reader_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Opens and reads something, since SQLite opens lazily. `uri` or plain name. */
static int try_open(const char *name, int flags, sqlite3 **ret)
{
    AUTO(db_close) sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_extended_result_codes(db, 1);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(db, 5000);
    struct db_bound bound;
    int64_t rows;
    if (rc == SQLITE_OK)
        rc = db_bind(db, &bound);
    if (rc == SQLITE_OK)
        rc = db_int(db, "SELECT count(name) FROM sqlite_schema", &rows);
    if (db)
        db_unbind(db); /* `bound` ends here; the reader brings its own */
    if (rc != SQLITE_OK && db && sqlite3_extended_errcode(db) != SQLITE_OK)
        rc = sqlite3_extended_errcode(db);
    /* A failed connection is handed out too: it knows the words. */
    *ret = db;
    db = NULL;
    return rc;
}

/* Nothing that lies in the file may run, write or outgrow us. */
static int harden(sqlite3 *db)
{
    db_distrust(db);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 256 << 20);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    return db_exec(db, "PRAGMA query_only = 1; PRAGMA cell_size_check = 1;"
                       "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768");
}

static int file_copy(const char *from, const char *to, struct why *why)
{
    AUTO(fd_close) int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return why_errno(why, errno, NULL, "cannot open '%s'", from);
    AUTO(fd_close) int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0)
        return why_errno(why, errno, "set TMPDIR to a folder you may write to",
                         "cannot create the temporary '%s'", to);
    char *buffer = malloc(1 << 20);
    if (!buffer)
        return why_nomem(why);
    int r = 0;
    for (;;) {
        ssize_t n = read(in, buffer, 1 << 20);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            break;
        r = n < 0 ? -errno : fd_write_all(out, buffer, (size_t)n);
        if (r < 0)
            break;
    }
    free(buffer);
    return r == 0 ? 0
                  : why_errno(why, -r, "set TMPDIR to a folder with more room",
                              "cannot copy '%s' to a temporary file", from);
}

/* File and log to a folder of our own, folded into one there. The copy has lost
 * its name by the time this returns: nothing is left behind, even by a kill later. */
static int open_copy_in(const char *folder, const char *path, const struct identity *identity,
                        sqlite3 **ret, struct why *why)
{
    char name[PATH_MAX], wal[PATH_MAX + 8], shm[PATH_MAX + 8];
    if (snprintf(name, sizeof(name), "%s/recording", folder) >= (int)sizeof(name))
        return why_errno(why, ENAMETOOLONG, "set TMPDIR to a shorter path", "cannot copy '%s'",
                         path);
    snprintf(wal, sizeof(wal), "%s-wal", name);
    snprintf(shm, sizeof(shm), "%s-shm", name);
    int r = file_copy(path, name, why);
    if (r == 0 && identity->has_wal)
        r = file_copy(identity->wal, wal, why);
    sqlite3 *db = NULL;
    if (r == 0) {
        int rc = try_open(name, SQLITE_OPEN_READWRITE, &db);
        if (rc == SQLITE_OK)
            rc = db_exec(db, "PRAGMA journal_mode = DELETE");
        if (rc != SQLITE_OK)
            r = db_why(db, rc, "read", path, why);
    }
    unlink(name);
    unlink(wal);
    unlink(shm);
    if (r < 0)
        db_close(&db);
    else
        *ret = db;
    return r;
}

static int open_copy(const char *path, const struct identity *identity, sqlite3 **ret,
                     struct why *why)
{
    char folder[PATH_MAX];
    int r = temporary_folder(folder);
    if (r < 0)
        return why_errno(why, -r, "set TMPDIR to a folder you may write to",
                         "'%s' was cut off and lies in a folder where it cannot be completed; "
                         "no temporary folder for a copy",
                         path);
    r = open_copy_in(folder, path, identity, ret, why);
    temporary_remove(folder);
    return r;
}

static bool is_about_place(int rc)
{
    int base = rc & 0xff;
    return base == SQLITE_CANTOPEN || base == SQLITE_READONLY || base == SQLITE_PERM;
}

int reader_connect(const char *path, const struct identity *identity, sqlite3 **ret,
                   struct why *why)
{
    char name[2 * PATH_MAX];
    if ((identity->has_wal ? db_path(path, name, sizeof(name))
                           : db_path_uri(path, "immutable=1", name, sizeof(name))) < 0)
        return why_errno(why, ENAMETOOLONG, "use a shorter path", "cannot open '%s'", path);
    AUTO(db_close) sqlite3 *db = NULL;
    bool copied = identity->has_wal && identity->foreign_index;
    int uri = identity->has_wal ? 0 : SQLITE_OPEN_URI;
    int rc = copied ? SQLITE_OK : try_open(name, SQLITE_OPEN_READONLY | uri, &db);
    if (copied || (is_about_place(rc) && identity->has_wal)) {
        db_close(&db);
        int r = open_copy(path, identity, &db, why);
        if (r < 0)
            return r;
        rc = SQLITE_OK;
    }
    if (rc == SQLITE_OK)
        rc = harden(db);
    if (rc != SQLITE_OK)
        return db_why(db, rc, "read", path, why);
    *ret = db;
    db = NULL;
    return 0;
}

static int copy_content(sqlite3 *from, sqlite3 *to)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    if (!backup)
        return sqlite3_extended_errcode(to);
    int rc = sqlite3_backup_step(backup, -1);
    int finish = sqlite3_backup_finish(backup);
    return rc == SQLITE_DONE ? finish : rc;
}

int reader_migrate(struct recording *recording, struct why *why)
{
    AUTO(db_close) sqlite3 *copy = NULL;
    /* The empty name is a private file that SQLite deletes at the end. */
    int rc = sqlite3_open_v2(
        "", &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = copy_content(recording->db, copy);
    if (rc == SQLITE_OK)
        rc = db_exec(copy, "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY");
    if (rc != SQLITE_OK) {
        int r = db_why(copy, rc, "copy for migration", recording->path, why);
        why_set_remedy(why, "set TMPDIR to a folder with more room");
        return r;
    }
    struct db_bound bound;
    db_distrust(copy);
    rc = db_bind(copy, &bound);
    if (rc != SQLITE_OK)
        return db_why(copy, rc, "read", recording->path, why);
    int r = schema_migrate(copy, recording->steps, recording->version, why);
    db_unbind(copy);
    if (r < 0)
        return r;
    rc = harden(copy);
    if (rc != SQLITE_OK)
        return db_why(copy, rc, "read", recording->path, why);
    db_close(&recording->db);
    recording->db = copy;
    copy = NULL;
    return 0;
}
