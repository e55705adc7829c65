/* The cache file: a header with counts and a checksum, then the tables as they lie in
 * memory. A checksum against accidents, and every number checked against its range,
 * since the walk trusts them. */
#include "unwind/rows_file.h"

#include "unwind/machine.h"

#include "base/fd.h"
#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Raise VERSION whenever rows are made or meant differently. */
enum { VERSION = 1 };
static const char magic[8] = "WHYROWS";

struct rows_header {
    char magic[8];
    uint32_t version;
    uint32_t machine;
    uint64_t tables; /* of the key */
    uint64_t base;
    uint64_t rules_count;
    uint64_t saves_count;
    uint64_t count;
    uint64_t pool_len;
    uint64_t checksum; /* of all that follows */
};
_Static_assert(sizeof(struct rows_header) == 72, "kept in files");

static uint64_t checksum(const uint8_t *data, size_t len, uint64_t hash)
{
    for (; len >= 8; data += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    for (; len > 0; data++, len--)
        hash = (hash ^ *data) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t rows_file_sum(const void *body, size_t len)
{
    return checksum(body, len, 1);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return checksum((const uint8_t *)&value, sizeof(value), hash);
}

static uint64_t mix_tables(uint64_t hash, const struct unwind_elf *file)
{
    static const char *const names[] = {".eh_frame", ".debug_frame", ".zdebug_frame"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const Elf64_Shdr *section = unwind_elf_section(file, names[i]);
        hash = mix(hash, section ? section->sh_size : 0);
        hash = mix(hash, section ? section->sh_addr : 0);
    }
    return checksum((const uint8_t *)file->phdrs, file->phdrs_count * sizeof(*file->phdrs), hash);
}

bool rows_key_make(const struct unwind_elf *file, const char *debug_path, struct rows_key *ret)
{
    struct rows_key key = {0};
    key.len = unwind_elf_build_id(file, key.build_id);
    if (key.len == 0)
        return false;
    key.tables = mix_tables(1, file);
    if (debug_path) {
        struct unwind_elf debug;
        AUTO(fd_close) int fd = file_open_regular(debug_path);
        if (fd >= 0 && unwind_elf_open(fd, NULL, 0, &debug, NULL) == 0) {
            key.tables = mix_tables(mix(key.tables, debug.size), &debug);
            unwind_elf_close(&debug);
        }
    }
    *ret = key;
    return true;
}

static bool rows_path(const char *dir, const struct rows_key *key, char path[PATH_MAX])
{
    char hex[2 * ELF_BUILD_ID_MAX + 1];
    for (size_t i = 0; i < key->len; i++)
        snprintf(hex + 2 * i, 3, "%02x", key->build_id[i]);
    int n = snprintf(path, PATH_MAX, "%s/%s-%016llx.rows", dir, hex,
                     (unsigned long long)key->tables);
    return n > 0 && n < PATH_MAX;
}

static bool place_is_sound(const struct unwind_rows *rows, uint8_t place, uint8_t base,
                           int32_t offset)
{
    if (place >= UNWIND_PLACES || base >= UNWIND_REGISTERS)
        return false;
    if (place != UNWIND_AT_EXPRESSION && place != UNWIND_VAL_EXPRESSION)
        return true;
    uint16_t len;
    if (offset < 0 || rows->pool_len < sizeof(len) || (size_t)offset > rows->pool_len - sizeof(len))
        return false;
    memcpy(&len, rows->pool + offset, sizeof(len));
    return len <= rows->pool_len - sizeof(len) - (size_t)offset;
}

/* Everything that the walk takes for granted. */
static bool rows_are_sound(const struct unwind_rows *rows)
{
    for (size_t i = 0; i < rows->saves_count; i++) {
        const struct unwind_save *save = &rows->saves[i];
        if (save->target >= UNWIND_REGISTERS ||
            !place_is_sound(rows, save->place, save->base, save->offset))
            return false;
    }
    for (size_t i = 0; i < rows->rules_count; i++) {
        const struct unwind_rules *rules = &rows->rules[i];
        uint8_t expression = rules->cfa == UNWIND_CFA_EXPRESSION ? UNWIND_AT_EXPRESSION
                                                                 : UNWIND_SAME;
        if (rules->cfa >= UNWIND_CFAS || rules->saves_first > rows->saves_count ||
            rules->saves_count > rows->saves_count - rules->saves_first ||
            !place_is_sound(rows, expression, rules->cfa_base, rules->cfa_offset) ||
            !place_is_sound(rows, rules->ra, rules->ra_base, rules->ra_offset))
            return false;
    }
    for (size_t i = 0; i < rows->count; i++)
        if (rows->rule_of[i] >= rows->rules_count ||
            (i > 0 && rows->starts[i] <= rows->starts[i - 1]))
            return false;
    return true;
}

/* Points into a block that starts after the header; false if the counts do not add up. */
static bool rows_lay_out(const struct rows_header *header, const uint8_t *at, size_t len,
                         struct unwind_rows *ret)
{
    const struct {
        uint64_t count;
        size_t size;
    } parts[] = {
        {header->rules_count, sizeof(struct unwind_rules)},
        {header->saves_count, sizeof(struct unwind_save)},
        {header->count, 2 * sizeof(uint32_t)},
        {header->pool_len, 1},
    };
    size_t left = len;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (parts[i].count > left / parts[i].size)
            return false;
        left -= parts[i].count * parts[i].size;
    }
    if (left != 0 || header->rules_count == 0)
        return false;
    *ret = (struct unwind_rows){.base = header->base,
                                .count = header->count,
                                .rules_count = header->rules_count,
                                .saves_count = header->saves_count,
                                .pool_len = header->pool_len};
    ret->rules = (const void *)at;
    at += header->rules_count * sizeof(struct unwind_rules);
    ret->saves = (const void *)at;
    at += header->saves_count * sizeof(struct unwind_save);
    ret->starts = (const void *)at;
    at += header->count * sizeof(uint32_t);
    ret->rule_of = (const void *)at;
    ret->pool = at + header->count * sizeof(uint32_t);
    return true;
}

static bool read_whole(int fd, uint8_t *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

bool rows_file_parse(const void *bytes, size_t size, const struct rows_key *key,
                     enum unwind_machine machine, uint64_t base, struct unwind_rows *ret)
{
    struct rows_header header;
    struct unwind_rows rows;
    if (size < sizeof(header))
        return false;
    memcpy(&header, bytes, sizeof(header));
    const uint8_t *body = (const uint8_t *)bytes + sizeof(header);
    size_t len = size - sizeof(header);
    if (memcmp(header.magic, magic, sizeof(magic)) != 0 || header.version != VERSION ||
        header.machine != (uint32_t)machine || header.tables != key->tables ||
        header.base != base || rows_file_sum(body, len) != header.checksum ||
        !rows_lay_out(&header, body, len, &rows) || !rows_are_sound(&rows))
        return false;
    *ret = rows;
    return true;
}

bool rows_file_load(const char *dir, const struct rows_key *key, enum unwind_machine machine,
                    uint64_t base, struct unwind_rows *ret, void **ret_memory)
{
    char path[PATH_MAX];
    struct stat st;
    if (!rows_path(dir, key, path))
        return false;
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        !trust_stat(&st) || st.st_size < (off_t)sizeof(struct rows_header) ||
        st.st_size > ELF_SECTION_MAX)
        return false;
    size_t size = (size_t)st.st_size;
    uint8_t *memory = malloc(size);
    if (memory && read_whole(fd, memory, size) &&
        rows_file_parse(memory, size, key, machine, base, ret)) {
        *ret_memory = memory;
        return true;
    }
    free(memory);
    return false;
}

void rows_file_save(const char *dir, const struct rows_key *key, enum unwind_machine machine,
                    const struct unwind_rows *rows)
{
    char path[PATH_MAX];
    size_t len = rows->rules_count * sizeof(*rows->rules) +
                 rows->saves_count * sizeof(*rows->saves) + rows->count * 2 * sizeof(uint32_t) +
                 rows->pool_len;
    if (!rows_path(dir, key, path) || folder_make(dir, NULL) < 0)
        return;
    struct rows_header *header = malloc(sizeof(*header) + len);
    if (!header)
        return;
    /* The rows are one block already, in this order (rows_builder_finish). */
    memcpy(header + 1, rows->rules, len);
    *header = (struct rows_header){.version = VERSION,
                                   .machine = (uint32_t)machine,
                                   .tables = key->tables,
                                   .base = rows->base,
                                   .rules_count = rows->rules_count,
                                   .saves_count = rows->saves_count,
                                   .count = rows->count,
                                   .pool_len = rows->pool_len,
                                   .checksum = rows_file_sum(header + 1, len)};
    memcpy(header->magic, magic, sizeof(magic));
    (void)!file_write_atomic(path, header, sizeof(*header) + len, NULL);
    free(header);
}
