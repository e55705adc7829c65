/* Which source lines are wanted, and the files that have them. */
#include "symbolize/embed_parts.h"

#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINES_AROUND = 2,
    FUNCTION_LINES_MAX = 2000,
    WANTED_MAX = 1 << 20,
    LINES_EMBEDDED_MAX = 50000,
    LINE_BYTES_MAX = 1000,
    FILE_BYTES_MAX = 16 << 20,
    FILES_MAX = 1000,
};

static int want(struct embedding *embedding, struct str file, uint32_t line)
{
    if (file.len == 0 || line == 0 || embedding->wanted.len >= WANTED_MAX)
        return 0;
    struct wanted_line wanted = {file, line};
    return VEC_PUSH(&embedding->wanted, wanted);
}

int embed_line_want(struct embedding *embedding, uint64_t vaddr)
{
    struct symbol symbols[SYMBOLS_INLINE_MAX];
    size_t depth = symbols_at(embedding->symbols, vaddr, symbols, SYMBOLS_INLINE_MAX);
    for (size_t i = 0; i < depth; i++) {
        int r = want(embedding, symbols[i].file, symbols[i].line);
        if (r < 0)
            return r;
    }
    return 0;
}

int embed_function_want(struct embedding *embedding, const struct embed_function *function,
                        size_t first)
{
    struct symbol symbols[SYMBOLS_INLINE_MAX];
    size_t depth = symbols_at(embedding->symbols, function->start, symbols, SYMBOLS_INLINE_MAX);
    if (depth == 0 || symbols[depth - 1].function_line == 0)
        return 0;
    struct str file = symbols[depth - 1].function_file;
    uint32_t low = symbols[depth - 1].function_line, high = low;
    for (size_t i = first; i < embedding->wanted.len; i++) {
        const struct wanted_line *line = &embedding->wanted.data[i];
        /* Functions inlined from further down in the same file would stretch it: a bound. */
        if (str_eq(line->file, file) && line->line > high && line->line - low <= FUNCTION_LINES_MAX)
            high = line->line;
    }
    for (uint32_t line = low; line <= high; line++) {
        int r = want(embedding, file, line);
        if (r < 0)
            return r;
    }
    return 0;
}

static int wanted_order(const void *left, const void *right)
{
    const struct wanted_line *a = left, *b = right;
    int order = memcmp(a->file.data, b->file.data, MIN(a->file.len, b->file.len));
    if (order == 0)
        order = (a->file.len > b->file.len) - (a->file.len < b->file.len);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

/* Files of reproducible builds carry a made-up time: then nothing can be told from it. */
static bool newer(const struct stat *source, int image_fd)
{
    static const time_t plausible = 631152000; /* 1990 */
    struct stat image;
    if (image_fd < 0 || fstat(image_fd, &image) < 0 || image.st_mtime < plausible)
        return false;
    if (source->st_mtime != image.st_mtime)
        return source->st_mtime > image.st_mtime;
    return source->st_mtim.tv_nsec > image.st_mtim.tv_nsec;
}

/* A binary may name any file as its source, /etc/shadow too, and so may its debug files. For root
 * it is shown only what their owner, or anybody, could have read; files that nobody else can change
 * may name what they like. */
static bool source_may_be_read(int fd, const struct stat *source, const struct symbols *symbols)
{
    struct stat st;
    if (geteuid() != 0)
        return true;
    if (symbols->elf.fd < 0)
        return false;
    if (!symbols->named_by_other || (!symbols->named_by_many && symbols->namer == source->st_uid))
        return true;
    char link[32], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    bool open = len > 0 && (source->st_mode & S_IROTH);
    path[MAX(len, 0)] = '\0';
    for (char *slash; open && (slash = strrchr(path, '/')) && slash > path;) {
        *slash = '\0';
        open = stat(path, &st) == 0 && (st.st_mode & S_IXOTH);
    }
    return open;
}

/* The whole file as text; an empty one where it must not or cannot be read. */
static struct str source_read(struct embedding *embedding, struct arena *arena, struct str path)
{
    char name[4096];
    struct str nothing = {"", 0};
    struct stat st;
    if (path.len >= sizeof(name) || path.data[0] != '/' || memchr(path.data, '\0', path.len)) {
        embedding->counts.files_missing++;
        return nothing;
    }
    memcpy(name, path.data, path.len);
    name[path.len] = '\0';
    AUTO(fd_close) int fd = root_open(embedding->opts->root, name, true);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > FILE_BYTES_MAX ||
        !source_may_be_read(fd, &st, embedding->symbols)) {
        embedding->counts.files_missing++;
        return nothing;
    }
    if (newer(&st, embedding->fd)) {
        embedding->counts.files_newer++;
        return nothing;
    }
    char *text = arena_alloc(arena, (size_t)st.st_size);
    size_t len = 0;
    while (text && len < (size_t)st.st_size) {
        ssize_t got = read(fd, text + len, (size_t)st.st_size - len);
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    return (struct str){text ? text : "", text ? len : 0};
}

/* Lines [first, end) of `wanted` are of one file and in order. */
static int file_emit(struct embedding *embedding, struct str text, size_t first, size_t end)
{
    uint32_t file, number = 0;
    const struct wanted_line *wanted = embedding->wanted.data;
    int r = text.len > 0 ? sink_text(embedding->sink, wanted[first].file, &file) : 0;
    while (r == 0 && text.len > 0 && first < end) {
        struct str line = str_cut(&text, '\n');
        number++;
        while (first < end && wanted[first].line + LINES_AROUND < number)
            first++;
        bool near = first < end && number + LINES_AROUND >= wanted[first].line;
        if (!near)
            continue;
        if (embedding->counts.source_lines++ >= LINES_EMBEDDED_MAX)
            return 0;
        line.len = MIN(line.len, (size_t)LINE_BYTES_MAX);
        if (line.len > 0 && line.data[line.len - 1] == '\r')
            line.len--;
        r = sink_source_line(embedding->sink, file, number, line);
    }
    return r;
}

int embed_source(struct embedding *embedding)
{
    const struct wanted_line *wanted = embedding->wanted.data;
    size_t count = embedding->wanted.len, files = 0;
    if (count > 0)
        qsort(embedding->wanted.data, count, sizeof(*wanted), wanted_order);
    for (size_t first = 0, end; first < count && files < FILES_MAX; first = end, files++) {
        end = first + 1;
        while (end < count && str_eq(wanted[end].file, wanted[first].file))
            end++;
        AUTO(arena_deinit) struct arena arena = ARENA_INIT; /* a file at a time */
        struct str text = source_read(embedding, &arena, wanted[first].file);
        int r = arena_failed(&arena) ? -ENOMEM : file_emit(embedding, text, first, end);
        if (r < 0)
            return r;
    }
    return 0;
}
