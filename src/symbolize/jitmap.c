/* The symbolizer for code that a program made while it ran: /tmp/perf-PID.map.
 *
 * The file grows while the program runs, and code is replaced: of ranges that overlap the
 * last line counts. What was written since it was last read is read before a batch of
 * lookups, and when an address is not found. */
#include "symbolize/internal.h"
#include "symbolize/symbol_table.h"

#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JITMAP_BYTES_MAX = 1 << 28, JITMAP_LINES_MAX = 1 << 22 };

struct jitmap {
    struct symbol_table table;
    uint64_t read_bytes; /* of the file, complete lines only */
    uint64_t seen_bytes; /* the size when it was last looked at */
};

/* "START SIZE name with blanks", both numbers in hex with or without 0x. */
static int line_add(struct symbol_table *table, struct str line)
{
    uint64_t start;
    uint64_t size;
    struct str first = str_word(&line);
    struct str second = str_word(&line);
    struct str *numbers[] = {&first, &second};
    for (size_t i = 0; i < 2; i++)
        if (str_starts(*numbers[i], "0x") || str_starts(*numbers[i], "0X"))
            *numbers[i] = (struct str){numbers[i]->data + 2, numbers[i]->len - 2};
    if (str_to_u64(first, 16, &start) < 0 || str_to_u64(second, 16, &size) < 0 || size == 0)
        return 0;
    if (line.len > 0) /* the one blank between size and name */
        line = (struct str){line.data + 1, line.len - 1};
    if (line.len > 0 && line.data[line.len - 1] == '\r')
        line.len--;
    if (line.len == 0 || table->rows.len >= JITMAP_LINES_MAX)
        return 0;
    return symbol_table_add(table, start, size, line, 0, SYMBOL_TEXT);
}

static int jitmap_read(struct symbols *symbols, struct jitmap *map)
{
    struct stat st;
    if (fstat(symbols->fd, &st) < 0 || (uint64_t)st.st_size == map->seen_bytes)
        return 0;
    map->seen_bytes = (uint64_t)st.st_size;
    if (map->seen_bytes < map->read_bytes) { /* another file by now */
        symbol_table_deinit(&map->table);
        map->table = (struct symbol_table){.last_wins = true};
        map->read_bytes = 0;
    }
    uint64_t wanted = MIN(map->seen_bytes, (uint64_t)JITMAP_BYTES_MAX);
    if (wanted <= map->read_bytes)
        return 0;
    size_t len = (size_t)(wanted - map->read_bytes);
    char *text = malloc(len);
    if (!text)
        return -ENOMEM;
    ssize_t n = pread(symbols->fd, text, len, (off_t)map->read_bytes);
    struct str rest = {text, n > 0 ? (size_t)n : 0};
    /* A line that is being written is left for the next time. */
    const char *last = rest.len > 0 ? memrchr(rest.data, '\n', rest.len) : NULL;
    rest.len = last ? (size_t)(last + 1 - rest.data) : 0;
    map->read_bytes += rest.len;
    int r = 0;
    while (rest.len > 0 && r == 0)
        r = line_add(&map->table, str_cut(&rest, '\n'));
    free(text);
    return r < 0 ? r : symbol_table_finish(&map->table, NULL, 0);
}

/* /tmp is everybody's: a map that another user left there for this pid would put his names into
 * our report, and his link those of a file that is none. One that was handed to us open is the
 * caller's to judge. */
static int map_file_open(struct symbols *symbols)
{
    struct stat st;
    bool given = symbols->fd >= 0;
    if (!given)
        symbols->fd = root_open(symbols->root, symbols->path, false);
    if (symbols->fd < 0)
        return symbols->fd;
    if (fstat(symbols->fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    bool named = (st.st_uid == 0 || st.st_uid == symbols->owner) &&
                 (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    return given || named || trust_stat(&st) ? 0 : -EPERM;
}

static const char *map_refusal(int error)
{
    return error == -EINVAL || error == -EISDIR ? "not a regular file"
           : error == -ELOOP                    ? "it is a link"
           : error == -EPERM ? "it belongs to another user than the program, or others may write it"
                             : strerror(-error);
}

static void jitmap_close(void *state)
{
    struct jitmap *map = state;
    if (map)
        symbol_table_deinit(&map->table);
    free(map);
}

static int jitmap_open(struct symbols *symbols, void **ret_state, struct why *why)
{
    int r = map_file_open(symbols);
    if (r < 0) {
        if (symbols->fd < 0)
            symbols->fd = -1;
        symbols_note(symbols,
                     "no names for code made at run time: '%s' cannot be read (%s); start the "
                     "program so that it writes one (node --perf-basic-prof, "
                     "PYTHONPERFSUPPORT=1)",
                     symbols->path, map_refusal(r));
        return 0;
    }
    struct jitmap *map = calloc(1, sizeof(*map));
    if (!map)
        return why_nomem(why);
    map->table.last_wins = true;
    if (jitmap_read(symbols, map) < 0) {
        jitmap_close(map);
        return why_nomem(why);
    }
    symbols->source = "perf map";
    *ret_state = map;
    return 0;
}

static size_t jitmap_at(struct symbols *symbols, void *state, uint64_t vaddr,
                        struct symbol_hit *ret, size_t max)
{
    struct jitmap *map = state;
    if (jitmap_read(symbols, map) < 0)
        return 0;
    return symbol_table_at(symbols, &map->table, vaddr, ret, max);
}

const struct symbolizer symbolizer_jitmap = {
    .name = "jitmap",
    .kinds = 1u << IMAGE_JIT,
    .open = jitmap_open,
    .at = jitmap_at,
    .close = jitmap_close,
};
