/* A new recording appears under its name complete with tables, or not at all.
 *
 * The tables are made in a file of another name in the same folder, which is
 * then given the real one by link(), which never replaces a file. So neither a
 * kill in between nor a second writer can leave a half-made recording. It is for
 * its owner alone from the first moment, and so is what SQLite keeps beside it:
 * it would take what somebody else has put there in time. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/temporary.h"
#include "store/db.h"
#include "store/schema.h"
#include "store/writer_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A recording, and what SQLite keeps beside it. -wal is made first and removed last: whoever makes
 * a recording holds it by a lock until SQLite keeps a log, and has removed -journal. */
enum { SUFFIX_WAL = 1, SUFFIX_JOURNAL };
static const char *const suffixes[] = {"", [SUFFIX_WAL] = "-wal", [SUFFIX_JOURNAL] = "-journal",
                                       "-shm"};
static const char remedy_exists[] = "choose another name with -o, or move that file away";

static void beside_remove(const char *path, size_t end)
{
    for (size_t i = end; i-- > 1;) {
        char name[PATH_MAX + 16];
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static bool is_empty_file(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1 && st->st_size == 0;
}

/* False: others have, or it cannot be told. */
static bool nobody_has(const char *path)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct flock any = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fd >= 0 && fcntl(fd, F_GETLK, &any) == 0 && any.l_type == F_UNLCK;
}

/* What one that was killed has made before SQLite put anything into it. */
static void beside_sweep(const char *path)
{
    struct stat there, mine;
    bool is_made = true;
    AUTO(fd_close) int held = -1;
    for (size_t i = SUFFIX_WAL; i < ARRAY_SIZE(suffixes); i++) {
        char name[PATH_MAX + 16];
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        if (i == SUFFIX_WAL) {
            held = open(name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
            if (held < 0 || flock(held, LOCK_EX | LOCK_NB) < 0 || fstat(held, &mine) < 0)
                return;
            is_made = lstat(path, &there) == 0 || errno != ENOENT;
        }
        if (lstat(name, &there) < 0) {
            if (errno != ENOENT || i == SUFFIX_WAL || (i == SUFFIX_JOURNAL && is_made))
                return;
            continue;
        }
        if (!is_empty_file(&there) ||
            (i == SUFFIX_WAL && (mine.st_dev != there.st_dev || mine.st_ino != there.st_ino)))
            return;
    }
    if (!is_made || nobody_has(path))
        beside_remove(path, ARRAY_SIZE(suffixes));
}

/* SQLite would replay a log that lies beside a new file of the same name, and
 * so mix two recordings. */
static int leftovers_check(const char *path, struct why *why)
{
    struct stat st;
    if (lstat(path, &st) < 0 && errno == ENOENT)
        beside_sweep(path);
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        char name[PATH_MAX];
        int n = snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        if (n < 0 || (size_t)n >= sizeof(name))
            return why_errno(why, ENAMETOOLONG, "choose a shorter name", "cannot create '%s'",
                             path);
        if (lstat(name, &st) == 0)
            return why_set(why, WHY_USAGE, EEXIST, remedy_exists,
                           "'%s' exists already%s; nothing is overwritten", name,
                           i == 0 ? "" : ", left from an earlier recording of this name");
    }
    return 0;
}

/* What SQLite has put beside it, all of it plain files of ours: 1; nothing: 0. */
static int beside_look(const char *path)
{
    int found = 0;
    for (size_t i = 1; i < ARRAY_SIZE(suffixes); i++) {
        char name[PATH_MAX];
        struct stat st;
        int n = snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        if (n < 0 || (size_t)n >= sizeof(name))
            return -ENAMETOOLONG;
        if (lstat(name, &st) < 0)
            continue;
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
            return -EPERM;
        found = 1;
    }
    return found;
}

int recording_fold(const char *path)
{
    char name[PATH_MAX + 8];
    struct stat st;
    int r = beside_look(path);
    if (r <= 0)
        return r;
    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return -EPERM;
    beside_sweep(path);
    if (db_path(path, name, sizeof(name)) < 0)
        return -ENAMETOOLONG;
    AUTO(db_close) sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE, NULL);
    if (rc == SQLITE_OK) {
        db_distrust(db);
        rc = sqlite3_busy_timeout(db, 0);
    }
    if (rc == SQLITE_OK)
        rc = db_exec(db, "PRAGMA journal_mode = DELETE");
    if (rc != SQLITE_OK)
        return -db_errno(db, rc);
    db_close(&db);
    r = beside_look(path);
    return r > 0 ? -EBUSY : r;
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

/* *fd holds it by a lock (temporary.h) from then on, for as long as it has this name. -ESTALE: it
 * was swept away. */
static int make_temporary(const char *temporary, const char *version, int *fd, struct why *why)
{
    *fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*fd < 0)
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
    if (rc != SQLITE_OK)
        return db_why(NULL, rc, "create", temporary, why);
    /* Not before: on NFS and SMB this lock and SQLite's are of one kind, and exclude each other. */
    struct stat st;
    bool swept = flock(*fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (swept || fstat(*fd, &st) < 0 || st.st_nlink == 0)
        return why_errno(why, ESTALE, "run it again", "cannot create a recording at '%s'",
                         temporary);
    return 0;
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

/* *held: see suffixes[]. */
static int beside_make(const char *path, int *held, struct why *why)
{
    for (size_t i = 1; i < ARRAY_SIZE(suffixes); i++) {
        char name[PATH_MAX + 16];
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        AUTO(fd_close) int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0) {
            int error = errno;
            beside_remove(path, i);
            return why_errno(why, error,
                             error == EEXIST ? remedy_exists : "choose a folder you may write to",
                             "cannot create '%s'", name);
        }
        if (i != SUFFIX_WAL)
            continue;
        struct stat st;
        bool swept = flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
        if (swept || fstat(fd, &st) < 0 || st.st_nlink == 0)
            return why_errno(why, EBUSY, "run it again", "cannot create '%s'", name);
        *held = fd_take(&fd);
    }
    return 0;
}

void writer_remove_file(const char *path)
{
    unlink(path);
    beside_remove(path, ARRAY_SIZE(suffixes));
}

int writer_create_file(const char *path, const char *version, int *held, struct why *why)
{
    int r = leftovers_check(path, why);
    if (r < 0)
        return r;
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof(temporary), "%s.%d.new", path, (int)getpid());
    if (n < 0 || (size_t)n >= sizeof(temporary))
        return why_errno(why, ENAMETOOLONG, "choose a shorter name", "cannot create '%s'", path);
    temporary_sweep_beside(path, ".new");
    AUTO(fd_close) int fd = -1;
    r = make_temporary(temporary, version, &fd, why);
    if (r == -EEXIST || r == -ESTALE) {
        /* Left by a killed process that had our number: nobody else uses the name. Or swept away
         * by one that cannot see ours, before we had the lock. */
        unlink(temporary);
        fd_close(&fd);
        r = make_temporary(temporary, version, &fd, why);
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
        r = beside_make(path, held, why);
    if (r == 0) {
        r = give_name(temporary, path, why);
        if (r < 0)
            beside_remove(path, ARRAY_SIZE(suffixes));
    }
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
