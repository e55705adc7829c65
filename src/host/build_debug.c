/* Where the debug information went that was split off: by build-id, or by the
 * name and checksum in .gnu_debuglink. A file that does not belong to this very
 * build is worse than none, so each candidate is proved. */
#include "host/build_internal.h"

#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* CRC-32 as zlib and the debuglink format have it, eight bytes a step. */
static uint32_t crc_table[8][256];

static void crc_table_fill(void)
{
    if (crc_table[0][1])
        return;
    for (unsigned i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        crc_table[0][i] = crc;
    }
    for (unsigned i = 0; i < 256; i++)
        for (unsigned slice = 1; slice < 8; slice++)
            crc_table[slice][i] = crc_table[slice - 1][i] >> 8 ^
                                  crc_table[0][crc_table[slice - 1][i] & 0xff];
}

uint32_t build_crc32(uint32_t crc, const void *data, size_t len)
{
    const unsigned char *at = data;
    crc_table_fill();
    crc = ~crc;
    for (; len >= 8; len -= 8, at += 8) {
        crc ^= at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        crc = crc_table[7][crc & 0xff] ^ crc_table[6][crc >> 8 & 0xff] ^
              crc_table[5][crc >> 16 & 0xff] ^ crc_table[4][crc >> 24] ^ crc_table[3][at[4]] ^
              crc_table[2][at[5]] ^ crc_table[1][at[6]] ^ crc_table[0][at[7]];
    }
    for (; len > 0; len--, at++)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *at) & 0xff];
    return ~crc;
}

static int file_crc32(const char *path, uint64_t deadline_ns, uint32_t *ret)
{
    AUTO(fd_close) int fd = file_open_regular(path);
    if (fd < 0)
        return fd;
    uint32_t crc = 0;
    char buffer[1 << 16];
    for (uint64_t sum = 0; sum <= BUILD_CRC_BYTES_MAX;) {
        ssize_t len = read(fd, buffer, sizeof(buffer));
        if (len < 0)
            return -errno;
        if (len == 0) {
            *ret = crc;
            return 0;
        }
        if (clock_mono_ns() > deadline_ns)
            return -ETIME;
        crc = build_crc32(crc, buffer, (size_t)len);
        sum += (uint64_t)len;
    }
    return -EFBIG;
}

/* Does the candidate carry debug information and this build-id? */
static bool candidate_has(struct build_elf *file, const char *path, const char *build_id,
                          const char **ret_problem)
{
    AUTO(build_elf_close) struct build_elf debug = {.fd = -1};
    struct why why;
    GElf_Shdr header;
    if (build_elf_open(file->arena, path, file->deadline_ns, &debug, &why) < 0) {
        *ret_problem = arena_dup(file->arena, why.what);
        return false;
    }
    const char *found = build_elf_build_id(&debug);
    if (build_id && (!found || strcmp(found, build_id) != 0)) {
        *ret_problem = arena_printf(file->arena, "'%s' has another build-id", path);
        return false;
    }
    if (!build_elf_section(&debug, ".debug_info", &header) &&
        !build_elf_section(&debug, ".zdebug_info", &header) &&
        !build_elf_section(&debug, ".symtab", &header)) {
        *ret_problem = arena_printf(file->arena, "'%s' holds no debug information", path);
        return false;
    }
    return true;
}

static bool by_build_id(struct build_elf *file, const char *folder, const char *build_id,
                        struct build_debug_file *ret)
{
    const char *path = arena_printf(file->arena, "%s/.build-id/%.2s/%s.debug", folder, build_id,
                                    build_id + 2);
    const char *problem;
    if (access(path, F_OK) != 0)
        return false;
    if (!candidate_has(file, path, build_id, &problem)) {
        ret->because = problem;
        return false;
    }
    ret->path = path;
    ret->because = "found by build-id";
    return true;
}

static bool by_link_at(struct build_elf *file, const char *path, uint32_t want,
                       const char *build_id, struct build_debug_file *ret)
{
    uint32_t crc = 0;
    const char *problem;
    if (access(path, F_OK) != 0)
        return false;
    int r = file_crc32(path, file->deadline_ns, &crc);
    if (r < 0)
        ret->because = arena_printf(file->arena, "the checksum of '%s' could not be taken: %s",
                                    path, r == -EFBIG ? "it is too large" : strerror(-r));
    else if (crc != want)
        ret->because = arena_printf(
            file->arena, "'%s' has checksum %08x, the binary wants %08x: it is of another build",
            path, crc, want);
    else if (!candidate_has(file, path, NULL, &problem))
        ret->because = problem;
    else {
        ret->path = path;
        ret->because = "found by .gnu_debuglink, checksum equal";
        return true;
    }
    /* Too large for the checksum: a build-id that is equal proves as much. */
    if ((r == -EFBIG || r == -ETIME) && build_id && candidate_has(file, path, build_id, &problem)) {
        ret->path = path;
        ret->because = "found by .gnu_debuglink, build-id equal";
        return true;
    }
    return false;
}

static void by_link(struct build_elf *file, const char *folder, const char *build_id,
                    struct build_debug_file *ret)
{
    struct str link = build_elf_bytes(file, ".gnu_debuglink");
    size_t len = strnlen(link.data, link.len);
    size_t crc_at = (len + 4) & ~(size_t)3;
    if (len == 0 || crc_at + 4 > link.len || memchr(link.data, '/', len))
        return;
    ret->linked = true;
    const unsigned char *bytes = (const unsigned char *)link.data + crc_at;
    uint32_t crc = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                   (uint32_t)bytes[3] << 24;
    if (file->header.e_ident[EI_DATA] == ELFDATA2MSB)
        crc = __builtin_bswap32(crc);
    char *real = realpath(file->path, NULL);
    if (!real)
        return;
    const char *full = arena_dup(file->arena, real);
    free(real);
    const char *slash = strrchr(full, '/');
    struct str dir = {full, slash ? (size_t)(slash - full) : 0};
    const char *name = arena_dup_len(file->arena, link.data, len);
    ret->because = arena_printf(file->arena,
                                "the binary names '%s', which is neither beside it nor under %s",
                                name, folder);
    const char *const places[] = {
        arena_printf(file->arena, "%.*s/%s", STR_FMT(dir), name),
        arena_printf(file->arena, "%.*s/.debug/%s", STR_FMT(dir), name),
        arena_printf(file->arena, "%s%.*s/%s", folder, STR_FMT(dir), name),
    };
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (strcmp(places[i], full) != 0 && by_link_at(file, places[i], crc, build_id, ret))
            return;
}

void build_debug_find(struct build_elf *file, const char *folder, struct build_debug_file *ret)
{
    const char *build_id = build_elf_build_id(file);
    *ret = (struct build_debug_file){.because = build_id ? "no separate debug file is installed"
                                                         : "it has no build-id to look for"};
    if (build_id && strlen(build_id) > 2 && by_build_id(file, folder, build_id, ret))
        return;
    by_link(file, folder, build_id, ret);
}
