/* Reads the first 100 bytes of a file: SQLite's header, or anything else. */
#include "store/identify.h"

#include "base/fd.h"
#include "base/text.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SQLITE_HEADER_BYTES = 100, HEAD_BYTES = 512 };

static const struct magic {
    const char *bytes;
    size_t len;
    const char *what;
} magics[] = {
    {"SQLite format 3", 16, "a SQLite database"},
    {"\177ELF", 4, "an ELF program or library"},
    {"PERFILE2", 8, "a perf.data file"},
    {"\x1f\x8b", 2, "gzip data (a pprof profile?)"},
    {"\x28\xb5\x2f\xfd", 4, "zstd data"},
    {"PK\3\4", 4, "a zip archive"},
    {"#!", 2, "a script"},
    {"{", 1, "JSON or other text"},
    {"[", 1, "JSON or other text"},
};

const char *identify_bytes(const unsigned char *head, size_t len)
{
    if (len == 0)
        return "empty";
    for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
        if (len >= magics[i].len && memcmp(head, magics[i].bytes, magics[i].len) == 0)
            return magics[i].what;
    struct str rest = {(const char *)head, len};
    while (rest.len > 0) {
        int32_t code;
        size_t n = utf8_decode(rest, &code);
        /* The head may end inside a character. */
        if ((code < 0 && rest.len >= 4) || (code >= 0 && code < 32 && !strchr("\t\n\r\f", code)))
            return "binary data of an unknown kind";
        rest.data += n;
        rest.len -= n;
    }
    return "text";
}

static uint32_t be32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int not_a_recording(const char *path, const char *what, struct why *why)
{
    return why_set(why, WHY_USAGE, EINVAL,
                   "give the path of a file that 'whyslow' has recorded (recording.whyslow)",
                   "'%s' is no recording: it is %s", path, what);
}

/* The header counts the pages. With a log beside it the file may be shorter:
 * a checkpoint that was cut off is redone from the log. */
static int size_check(const char *path, const unsigned char *head, const struct identity *identity,
                      struct why *why)
{
    uint64_t page = (uint32_t)head[16] << 8 | head[17];
    if (page == 1)
        page = 65536;
    uint64_t wanted = page * be32(head + 28);
    bool counted = be32(head + 24) == be32(head + 92); /* the count is up to date */
    if (identity->has_wal || !counted || identity->size_bytes >= wanted)
        return 0;
    return why_set(why, WHY_FAILED, EBADMSG, "copy it again from where it was recorded",
                   "'%s' is truncated: it has %llu of its %llu bytes", path,
                   (unsigned long long)identity->size_bytes, (unsigned long long)wanted);
}

/* Is what lies beside the recording of the same owner, or of somebody who may change it anyway? */
static bool is_of_owner(const struct stat *st, const struct stat *recording)
{
    return S_ISREG(st->st_mode) &&
           (st->st_uid == recording->st_uid || st->st_uid == 0 || st->st_uid == geteuid());
}

/* The log overrides what the recording says: whoever left one there would speak for it. */
static int wal_look(const char *path, const struct stat *recording, struct identity *identity,
                    struct why *why)
{
    char real[PATH_MAX], index[PATH_MAX + 8]; /* SQLite looks beside the file, not beside a link */
    const char *beside = realpath(path, real) ? real : path;
    int n = snprintf(identity->wal, sizeof(identity->wal), "%s-wal", beside);
    if (n < 0 || (size_t)n >= sizeof(identity->wal))
        return why_errno(why, ENAMETOOLONG, "use a shorter path", "cannot open '%s'", path);
    snprintf(index, sizeof(index), "%s-shm", beside);
    struct stat st;
    identity->foreign_index = lstat(index, &st) == 0 && !is_of_owner(&st, recording);
    if (lstat(identity->wal, &st) < 0 || (S_ISREG(st.st_mode) && st.st_size == 0))
        return 0;
    if (!is_of_owner(&st, recording))
        return why_set(why, WHY_DENIED, EPERM,
                       "copy the recording alone to another folder to read it without that log",
                       "'%s' beside '%s' belongs to another user or is a link: its log is not "
                       "believed",
                       identity->wal, path);
    identity->has_wal = true;
    if (access(identity->wal, R_OK) < 0)
        return why_errno(why, errno, "ask the owner for it, or run as the user who recorded",
                         "'%s' was cut off and continues in '%s', which cannot be read", path,
                         identity->wal);
    return 0;
}

static int open_regular(const char *path, int *ret_fd, struct stat *ret_stat, struct why *why)
{
    /* A pipe would block here; it is refused below. */
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        const char *remedy = "check the path";
        if (errno == EACCES)
            remedy = "ask the owner for it, or run as the user who recorded";
        return why_errno(why, errno, remedy, "cannot open '%s'", path);
    }
    if (fstat(fd, ret_stat) < 0)
        return why_errno(why, errno, NULL, "cannot open '%s'", path);
    if (S_ISDIR(ret_stat->st_mode))
        return why_set(why, WHY_USAGE, EISDIR, "name the recording inside it",
                       "'%s' is a folder, not a recording", path);
    if (!S_ISREG(ret_stat->st_mode))
        return why_set(why, WHY_USAGE, EINVAL, "save it to a file first",
                       "'%s' is no ordinary file", path);
    *ret_fd = fd_take(&fd);
    return 0;
}

int identify_recording(const char *path, struct identity *ret, struct why *why)
{
    AUTO(fd_close) int fd = -1;
    struct stat st;
    int r = open_regular(path, &fd, &st, why);
    if (r < 0)
        return r;
    unsigned char head[HEAD_BYTES];
    ssize_t n = pread(fd, head, sizeof(head), 0);
    if (n < 0)
        return why_errno(why, errno, "check the disk", "cannot read '%s'", path);
    size_t len = (size_t)n;
    if (len == 0)
        return why_set(why, WHY_USAGE, EINVAL,
                       "record again; a recording is never empty, even when it was cut off",
                       "'%s' is no recording: it is empty", path);
    if (len < 16 || memcmp(head, magics[0].bytes, 16) != 0)
        return not_a_recording(path, identify_bytes(head, len), why);
    if (len < SQLITE_HEADER_BYTES)
        return why_set(why, WHY_FAILED, EBADMSG, "copy it again from where it was recorded",
                       "'%s' is truncated: it has only %zu bytes", path, len);
    if (be32(head + 68) != SCHEMA_APPLICATION_ID)
        return not_a_recording(path, "a SQLite database of another program", why);
    struct identity identity = {
        .size_bytes = (uint64_t)st.st_size,
        .schema = be32(head + 60),
        .wal_mode = head[18] == 2 || head[19] == 2,
    };
    r = wal_look(path, &st, &identity, why);
    if (r == 0)
        r = size_check(path, head, &identity, why);
    if (r == 0)
        *ret = identity;
    return r;
}
