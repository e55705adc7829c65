/* Buffered reading with bounds. */
#include "collect/import_source.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20, PROGRESS_EVERY_BYTES = 4 << 20 };

static int failed(const struct import_source *source, int error, struct why *why)
{
    return why_errno(why, error, NULL, "cannot read '%s'", source->path);
}

int import_source_open(const char *path, struct import_source *ret, struct why *why)
{
    bool standard = strcmp(path, "-") == 0;
    struct import_source source = {.path = standard ? "standard input" : path};
    source.fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                         : open(path, O_RDONLY | O_CLOEXEC);
    if (source.fd < 0)
        return why_errno(why, errno, "check the name", "cannot open '%s'", source.path);
    struct stat st;
    if (fstat(source.fd, &st) < 0 || S_ISDIR(st.st_mode)) {
        int error = S_ISDIR(st.st_mode) ? EISDIR : errno;
        fd_close(&source.fd);
        return why_errno(why, error, "name a file", "cannot read '%s'", source.path);
    }
    source.seekable = S_ISREG(st.st_mode);
    source.size_bytes = source.seekable ? (uint64_t)st.st_size : 0;
    source.cap = BUFFER_BYTES;
    source.buffer = malloc(source.cap);
    if (!source.buffer) {
        fd_close(&source.fd);
        return why_nomem(why);
    }
    *ret = source;
    return 0;
}

int import_source_memory(struct str bytes, struct import_source *ret)
{
    struct import_source source = {.path = "memory",
                                   .fd = -1,
                                   .seekable = true,
                                   .size_bytes = bytes.len,
                                   .memory = bytes,
                                   .cap = IMPORT_HEAD_BYTES};
    source.buffer = malloc(source.cap);
    if (!source.buffer)
        return -ENOMEM;
    *ret = source;
    return 0;
}

void import_source_close(struct import_source *source)
{
    if (source->fd >= 0)
        fd_close(&source->fd);
    free(source->buffer);
    *source = (struct import_source){.fd = -1};
}

/* Where the next read begins in the file. */
static uint64_t read_offset(const struct import_source *source)
{
    return source->taken + (source->end - source->begin);
}

static ssize_t read_some(struct import_source *source, char *to, size_t len)
{
    if (source->fd < 0) {
        size_t offset = MIN(read_offset(source), source->memory.len);
        len = MIN(len, source->memory.len - offset);
        if (len > 0)
            memcpy(to, source->memory.data + offset, len);
        return (ssize_t)len;
    }
    ssize_t n;
    do
        n = source->seekable ? pread(source->fd, to, len, (off_t)read_offset(source))
                             : read(source->fd, to, len);
    while (n < 0 && errno == EINTR);
    return n;
}

/* More bytes behind those that are there; moves them to the front and grows for them. */
static int fill(struct import_source *source, size_t want, struct why *why)
{
    if (source->begin > 0) {
        memmove(source->buffer, source->buffer + source->begin, source->end - source->begin);
        source->end -= source->begin;
        source->begin = 0;
    }
    if (want > source->cap) {
        char *buffer = realloc(source->buffer, want);
        if (!buffer)
            return why_nomem(why);
        source->buffer = buffer;
        source->cap = want;
    }
    ssize_t n = read_some(source, source->buffer + source->end, source->cap - source->end);
    if (n < 0)
        return failed(source, errno, why);
    source->eof = n == 0;
    source->end += (size_t)n;
    if (source->progress && read_offset(source) >= source->progress_due) {
        source->progress_due = read_offset(source) + PROGRESS_EVERY_BYTES;
        source->progress(source->progress_context, source->taken, source->size_bytes);
    }
    return 0;
}

int import_source_peek(struct import_source *source, size_t len, struct str *ret, struct why *why)
{
    while (source->end - source->begin < len && !source->eof) {
        int r = fill(source, len, why);
        if (r < 0)
            return r;
    }
    *ret = (struct str){source->buffer + source->begin, MIN(len, source->end - source->begin)};
    return 0;
}

void import_source_take(struct import_source *source, size_t len)
{
    len = MIN(len, source->end - source->begin);
    source->begin += len;
    source->taken += len;
}

/* The rest of a line that is too long, up to and with its newline. */
static int skip_line(struct import_source *source, struct why *why)
{
    for (;;) {
        size_t len = source->end - source->begin;
        const char *newline = memchr(source->buffer + source->begin, '\n', len);
        if (newline) {
            import_source_take(source, (size_t)(newline - source->buffer) - source->begin + 1);
            return 0;
        }
        import_source_take(source, len);
        if (source->eof)
            return 0;
        int r = fill(source, 1, why);
        if (r < 0)
            return r;
    }
}

int import_source_line(struct import_source *source, struct str *ret, bool *ret_cut,
                       struct why *why)
{
    size_t searched = 0;
    *ret_cut = false;
    for (;;) {
        size_t len = source->end - source->begin;
        const char *begin = source->buffer + source->begin;
        const char *newline = memchr(begin + searched, '\n', len - searched);
        if (newline || (source->eof && len > 0)) {
            size_t taken = newline ? (size_t)(newline - begin) + 1 : len;
            *ret = (struct str){begin, newline ? taken - 1 : len};
            if (ret->len > 0 && ret->data[ret->len - 1] == '\r')
                ret->len--;
            import_source_take(source, taken);
            return 1;
        }
        if (source->eof)
            return 0;
        if (len >= IMPORT_LINE_BYTES_MAX) {
            *ret = (struct str){"", 0};
            *ret_cut = true;
            int r = skip_line(source, why);
            return r < 0 ? r : 1;
        }
        searched = len;
        size_t want = len == source->cap ? MIN(2 * len, (size_t)IMPORT_LINE_BYTES_MAX)
                                         : source->cap;
        int r = fill(source, want, why);
        if (r < 0)
            return r;
    }
}

int import_source_at(struct import_source *source, uint64_t offset, void *ret, size_t len,
                     struct why *why)
{
    if (!source->seekable || offset > source->size_bytes || len > source->size_bytes - offset)
        return why_set(why, WHY_FAILED, ENODATA, "copy the file again: it may have been cut off",
                       "'%s' ends before byte %llu", source->path,
                       (unsigned long long)offset + len);
    if (source->fd < 0) {
        memcpy(ret, source->memory.data + offset, len);
        return 0;
    }
    for (size_t done = 0; done < len;) {
        ssize_t n = pread(source->fd, (char *)ret + done, len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(source, n < 0 ? errno : ENODATA, why);
        done += (size_t)n;
    }
    return 0;
}

int import_source_seek(struct import_source *source, uint64_t offset, struct why *why)
{
    if (!source->seekable || offset > source->size_bytes)
        return why_set(why, WHY_FAILED, ENODATA, "copy the file again: it may have been cut off",
                       "'%s' ends before byte %llu", source->path, (unsigned long long)offset);
    source->begin = source->end = 0;
    source->taken = offset;
    source->eof = false;
    return 0;
}

int import_source_all(struct import_source *source, size_t size_max, char **ret, size_t *ret_len,
                      struct why *why)
{
    struct str all = {0};
    size_t want = source->seekable ? MIN(source->size_bytes - source->taken, size_max) + 1
                                   : (size_t)BUFFER_BYTES;
    for (;;) {
        int r = import_source_peek(source, want, &all, why);
        if (r < 0)
            return r;
        if (all.len > size_max)
            return why_set(why, WHY_FAILED, EFBIG, "export a smaller part of the profile there",
                           "'%s' is larger than %zu MiB", source->path, size_max >> 20);
        if (all.len < want)
            break;
        want = MIN(want * 2, size_max + 1);
    }
    char *copy = malloc(all.len + 1);
    if (!copy)
        return why_nomem(why);
    memcpy(copy, all.data, all.len);
    copy[all.len] = '\0';
    *ret = copy;
    *ret_len = all.len;
    import_source_take(source, all.len);
    return 0;
}
