/* The cache of symbol tables: one file a build-id.
 *
 * What is read back is as hostile as any file: it may be damaged, cut short or written by
 * somebody else, so that it is checked in full before a lookup trusts it, and dropped
 * without a word when it does not hold. */
#include "symbolize/symbol_cache.h"

#include "base/fd.h"
#include "symbolize/cache_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    CACHE_VERSION = 1,     /* also when tables are made otherwise from the same file */
    CACHE_ROWS_MIN = 4096, /* smaller tables are made as quickly as they are read */
    CACHE_SOURCE_BYTES = 512,
};

struct cache_header {
    char magic[8];
    uint32_t version;
    uint32_t row_bytes;
    uint64_t row_count;
    uint64_t map_count;
    uint64_t name_bytes;
    uint64_t origin;   /* of the files that it was made from */
    uint64_t checksum; /* of all that follows */
    char source[CACHE_SOURCE_BYTES];
};
static_assert(sizeof(struct cache_header) == 56 + CACHE_SOURCE_BYTES, "has no holes");
static_assert(sizeof(struct symbol_row) == 32, "is written as it stands");
static const char cache_magic[8] = "WHYSYMS";

/* A debug file that is installed later, or replaced, makes another table. */
static uint64_t cache_origin(const struct symbols *symbols)
{
    struct {
        uint64_t image_bytes, debug_bytes, debug_time, debug_inode;
    } origin = {symbols->elf.size_bytes, 0, 0, 0};
    struct stat st;
    if (symbols->debug.elf && symbols->debug.fd >= 0 && fstat(symbols->debug.fd, &st) == 0) {
        origin.debug_bytes = (uint64_t)st.st_size;
        origin.debug_time = (uint64_t)st.st_mtim.tv_sec * 1000000000u +
                            (uint64_t)st.st_mtim.tv_nsec;
        origin.debug_inode = st.st_ino;
    }
    return hash_bytes(&origin, sizeof(origin));
}

static bool cache_path(const struct symbols *symbols, char *path)
{
    bool kept = symbols->kind == IMAGE_FILE || symbols->kind == IMAGE_KERNEL;
    return kept && cache_file_path(symbols->cache_dir, symbols->build_id, "", path);
}

struct cache_parts {
    const struct cache_header *header;
    const struct symbol_row *rows;
    const uint64_t *starts;
    const uint32_t *values;
    const char *names;
};

/* Finds the parts in the bytes; false when their sizes do not add up. */
static bool parts_find(const void *bytes, size_t len, struct cache_parts *ret)
{
    const struct cache_header *header = bytes;
    if (len < sizeof(*header) || memcmp(header->magic, cache_magic, sizeof(cache_magic)) != 0 ||
        header->version != CACHE_VERSION || header->row_bytes != sizeof(struct symbol_row) ||
        header->row_count > SYMBOL_TABLE_ROWS_MAX ||
        header->map_count > 2ull * SYMBOL_TABLE_ROWS_MAX || header->name_bytes > UINT32_MAX / 2 ||
        !memchr(header->source, 0, sizeof(header->source)))
        return false;
    uint64_t rows = header->row_count * sizeof(struct symbol_row);
    uint64_t starts = header->map_count * sizeof(uint64_t);
    uint64_t values = header->map_count * sizeof(uint32_t);
    if (len != sizeof(*header) + rows + starts + values + header->name_bytes)
        return false;
    const char *at = (const char *)(header + 1);
    ret->header = header;
    ret->rows = (const struct symbol_row *)at;
    ret->starts = (const uint64_t *)(at + rows);
    ret->values = (const uint32_t *)(at + rows + starts);
    ret->names = at + rows + starts + values;
    return header->checksum == hash_bytes(at, len - sizeof(*header));
}

static bool parts_check(const struct cache_parts *parts)
{
    const struct cache_header *header = parts->header;
    for (uint64_t i = 0; i < header->row_count; i++) {
        const struct symbol_row *row = &parts->rows[i];
        if (row->name > header->name_bytes || row->name_len > header->name_bytes - row->name ||
            row->size_bytes > UINT64_MAX - row->start)
            return false;
    }
    for (uint64_t i = 0; i < header->map_count; i++)
        if ((i > 0 && parts->starts[i] <= parts->starts[i - 1]) ||
            (parts->values[i] >= header->row_count && parts->values[i] != (uint32_t)RANGE_MAP_NONE))
            return false;
    return true;
}

static int parts_take(const struct cache_parts *parts, struct symbol_table *table)
{
    const struct cache_header *header = parts->header;
    size_t map_count = (size_t)header->map_count;
    table->map.starts = malloc((map_count + 1) * sizeof(uint64_t));
    table->map.values = malloc((map_count + 1) * sizeof(uint32_t));
    if (!table->map.starts || !table->map.values ||
        VEC_RESERVE(&table->rows, (size_t)header->row_count + 1) < 0 ||
        VEC_RESERVE(&table->names, (size_t)header->name_bytes + 1) < 0)
        return -ENOMEM; /* the caller frees what is there */
    memcpy(table->map.starts, parts->starts, map_count * sizeof(uint64_t));
    memcpy(table->map.values, parts->values, map_count * sizeof(uint32_t));
    table->map.len = map_count;
    memcpy(table->rows.data, parts->rows, header->row_count * sizeof(struct symbol_row));
    table->rows.len = (size_t)header->row_count;
    memcpy(table->names.data, parts->names, header->name_bytes);
    table->names.len = (size_t)header->name_bytes;
    return 0;
}

int symbol_cache_parse(const void *bytes, size_t len, uint64_t origin, struct symbol_table *table,
                       const char **ret_source)
{
    struct cache_parts parts;
    if (!parts_find(bytes, len, &parts) || parts.header->origin != origin || !parts_check(&parts))
        return -ENOENT;
    *ret_source = parts.header->source;
    return parts_take(&parts, table);
}

int symbol_cache_load(struct symbols *symbols, struct symbol_table *table)
{
    char path[PATH_MAX];
    char *bytes = NULL;
    size_t len = 0;
    if (!cache_path(symbols, path))
        return -ENOENT;
    AUTO(fd_close) int fd = cache_file_open(path, &len);
    if (fd < 0 || symbols_read_all(fd, len + 1, &bytes, &len) < 0)
        return -ENOENT;
    const char *source = NULL;
    int r = symbol_cache_parse(bytes, len, cache_origin(symbols), table, &source);
    if (r == 0)
        symbols->source = arena_dup(&symbols->arena, source);
    free(bytes);
    return r;
}

static char *body_make(const struct symbol_table *table, size_t *ret_len)
{
    size_t rows = table->rows.len * sizeof(struct symbol_row);
    size_t starts = table->map.len * sizeof(uint64_t);
    size_t values = table->map.len * sizeof(uint32_t);
    char *body = malloc(rows + starts + values + table->names.len + 1);
    if (!body)
        return NULL;
    memcpy(body, table->rows.data, rows);
    memcpy(body + rows, table->map.starts, starts);
    memcpy(body + rows + starts, table->map.values, values);
    memcpy(body + rows + starts + values, table->names.data, table->names.len);
    *ret_len = rows + starts + values + table->names.len;
    return body;
}

void symbol_cache_store(const struct symbols *symbols, const struct symbol_table *table)
{
    char path[PATH_MAX];
    size_t len;
    if (table->rows.len < CACHE_ROWS_MIN || table->dropped > 0 || table->names.len == 0 ||
        strlen(symbols->source) >= CACHE_SOURCE_BYTES || !cache_path(symbols, path))
        return;
    char *body = body_make(table, &len);
    if (!body)
        return;
    struct cache_header header = {
        .version = CACHE_VERSION,
        .row_bytes = sizeof(struct symbol_row),
        .row_count = table->rows.len,
        .map_count = table->map.len,
        .name_bytes = table->names.len,
        .origin = cache_origin(symbols),
        .checksum = hash_bytes(body, len), /* after a crash of the machine it tells */
    };
    memcpy(header.magic, cache_magic, sizeof(cache_magic));
    snprintf(header.source, sizeof(header.source), "%s", symbols->source);
    const struct str parts[] = {{(const char *)&header, sizeof(header)}, {body, len}};
    cache_file_store(symbols->cache_dir, path, parts, ARRAY_SIZE(parts));
    free(body);
}
