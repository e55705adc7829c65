/* Opening, checking and unpacking ELF files through libelf. */
#include "symbolize/elf_file.h"

#include "base/fd.h"
#include "symbolize/cache_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SECTIONS_MAX = 1 << 20,
    SEGMENTS_MAX = 1 << 16,
    KEPT_BYTES_MIN = 1 << 18, /* less is unpacked as quickly as it is read */
    KEPT_BYTES_MAX = 1 << 26,
};
/* Deflate packs a thousand bytes into one at best: more is a lie. */
static const uint64_t unpacked_bytes_max = 8ull << 30;
static const uint64_t unpacked_ratio_max = 1100;

static int damaged(struct why *why, const char *name, const char *what)
{
    return why_set(why, WHY_USAGE, EBADMSG, "build or copy the file again",
                   "'%s' is a damaged ELF file: %s", name, what);
}

static bool inside(uint64_t offset, uint64_t size, uint64_t limit)
{
    return offset <= limit && size <= limit - offset;
}

static int file_check(struct elf_file *file, const char *name, struct why *why)
{
    const GElf_Ehdr *header = &file->header;
    size_t segments = 0;
    if (header->e_ident[EI_DATA] != ELFDATA2LSB)
        return why_set(why, WHY_DENIED, EOPNOTSUPP, NULL, "'%s' is of a big-endian machine", name);
    if (header->e_phoff != 0 &&
        (elf_getphdrnum(file->elf, &segments) != 0 || segments > SEGMENTS_MAX ||
         !inside(header->e_phoff, (uint64_t)segments * header->e_phentsize, file->size_bytes)))
        return damaged(why, name, "its program headers lie beyond the end of the file");
    if (header->e_shoff == 0)
        return 0; /* legal: a program needs none to run */
    if (!inside(header->e_shoff, header->e_shentsize, file->size_bytes) ||
        elf_getshdrnum(file->elf, &file->section_count) != 0)
        return damaged(why, name, "its section headers lie beyond the end of the file");
    if (file->section_count > SECTIONS_MAX ||
        !inside(header->e_shoff, (uint64_t)file->section_count * header->e_shentsize,
                file->size_bytes))
        return damaged(why, name, "it claims more sections than it can hold");
    return 0;
}

static void code_spans(struct elf_file *file)
{
    size_t count = 0;
    if (file->header.e_phoff == 0 || elf_getphdrnum(file->elf, &count) != 0)
        return;
    for (size_t i = 0; i < MIN(count, (size_t)SEGMENTS_MAX); i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(file->elf, (int)i, &segment) || segment.p_type != PT_LOAD ||
            !(segment.p_flags & PF_X) || segment.p_memsz > UINT64_MAX - segment.p_vaddr)
            continue;
        if (file->code_count == ELF_CODE_SPANS_MAX) {
            file->code_count = 0; /* more than any linker makes: believe every address */
            return;
        }
        file->code[file->code_count++] = (struct elf_span){segment.p_vaddr,
                                                           segment.p_vaddr + segment.p_memsz};
    }
}

static int file_begin(struct elf_file *file, const char *name, struct elf_file *ret,
                      struct why *why)
{
    int r;
    if (!file->elf || elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &file->header))
        r = why_set(why, WHY_USAGE, ENOEXEC, NULL, "'%s' is not an ELF file", name);
    else
        r = file_check(file, name, why);
    if (r < 0) {
        elf_file_close(file);
        return r;
    }
    code_spans(file);
    *ret = *file;
    return 0;
}

int elf_file_open(int fd, const char *name, struct elf_file *ret, struct why *why)
{
    struct elf_file file = {.fd = fd};
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        fd_close(&file.fd);
        return why_set(why, WHY_USAGE, ENOEXEC, NULL, "'%s' is not a regular file", name);
    }
    file.size_bytes = (uint64_t)st.st_size;
    elf_version(EV_CURRENT);
    file.elf = elf_begin(fd, ELF_C_READ, NULL);
    return file_begin(&file, name, ret, why);
}

int elf_file_open_memory(void *memory, size_t len, const char *name, struct elf_file *ret,
                         struct why *why)
{
    struct elf_file file = {.fd = -1, .memory = memory, .size_bytes = len};
    elf_version(EV_CURRENT);
    file.elf = len > 0 ? elf_memory(memory, len) : NULL;
    return file_begin(&file, name, ret, why);
}

void elf_file_close(struct elf_file *file)
{
    if (file->elf)
        elf_end(file->elf);
    if (file->fd >= 0)
        fd_close(&file->fd);
    free(file->memory);
    for (size_t i = 0; i < file->unpacked_count; i++)
        free(file->unpacked[i].data);
    *file = ELF_FILE_NONE;
}

Elf_Scn *elf_file_section(struct elf_file *file, const char *name, GElf_Shdr *ret)
{
    size_t names;
    if (file->section_count == 0 || elf_getshdrstrndx(file->elf, &names) != 0)
        return NULL;
    for (size_t i = 1; i < file->section_count; i++) {
        Elf_Scn *scn = elf_getscn(file->elf, i);
        GElf_Shdr header;
        if (!scn || !gelf_getshdr(scn, &header))
            continue;
        const char *found = elf_strptr(file->elf, names, header.sh_name);
        if (found && strcmp(found, name) == 0) {
            *ret = header;
            return scn;
        }
    }
    return NULL;
}

static bool holds_bytes(const struct elf_file *file, const GElf_Shdr *header)
{
    return header->sh_type != SHT_NOBITS && header->sh_size > 0 &&
           inside(header->sh_offset, header->sh_size, file->size_bytes);
}

static Elf_Scn *section_or_packed(struct elf_file *file, const char *name, GElf_Shdr *ret,
                                  bool *ret_old)
{
    Elf_Scn *scn = elf_file_section(file, name, ret);
    *ret_old = false;
    if (scn || strncmp(name, ".debug", 6) != 0)
        return scn;
    char old[64];
    snprintf(old, sizeof(old), ".z%s", name + 1);
    *ret_old = true;
    return elf_file_section(file, old, ret);
}

bool elf_file_has(struct elf_file *file, const char *name)
{
    GElf_Shdr header;
    bool old;
    return section_or_packed(file, name, &header, &old) && holds_bytes(file, &header);
}

/* The old way to compress: "ZLIB" and the size, most significant byte first. */
static uint64_t old_unpacked_bytes(Elf_Scn *scn)
{
    Elf_Data *data = elf_rawdata(scn, NULL);
    if (!data || !data->d_buf || data->d_size < 12 || memcmp(data->d_buf, "ZLIB", 4) != 0)
        return UINT64_MAX;
    uint64_t size = 0;
    for (size_t i = 4; i < 12; i++)
        size = size << 8 | ((const unsigned char *)data->d_buf)[i];
    return size;
}

static uint64_t unpacked_bytes(Elf_Scn *scn, bool old)
{
    GElf_Chdr packed;
    if (old)
        return old_unpacked_bytes(scn);
    return gelf_getchdr(scn, &packed) ? packed.ch_size : UINT64_MAX;
}

static const char *unpack(Elf_Scn *scn, const GElf_Shdr *header, bool old)
{
    uint64_t size = unpacked_bytes(scn, old);
    if (size > unpacked_bytes_max || size / unpacked_ratio_max > header->sh_size)
        return "its compressed size cannot be true";
    if ((old ? elf_compress_gnu(scn, 0, 0) : elf_compress(scn, 0, 0)) < 0)
        return "it cannot be uncompressed; run 'objcopy --decompress-debug-sections' on it";
    return NULL;
}

/* The file that keeps a section: by build-id, and by place and sizes, since a build-id outlives
 * tools that rewrite the debug information. False for one that is not worth it. */
static bool kept_path(struct elf_file *file, Elf_Scn *scn, const GElf_Shdr *header, uint64_t bytes,
                      char *path)
{
    char build_id[2 * ELF_BUILD_ID_BYTES_MAX + 1], suffix[80];
    if (!file->cache_dir || bytes < KEPT_BYTES_MIN || bytes > KEPT_BYTES_MAX ||
        !elf_file_build_id(file, build_id))
        return false;
    snprintf(suffix, sizeof(suffix), ".%zu-%llx-%llx-%llx", elf_ndxscn(scn),
             (unsigned long long)header->sh_offset, (unsigned long long)header->sh_size,
             (unsigned long long)bytes);
    return cache_file_path(file->cache_dir, build_id, suffix, path);
}

static bool kept_read(const char *path, uint64_t bytes, char **ret)
{
    size_t len;
    AUTO(fd_close) int fd = cache_file_open(path, &len);
    if (fd < 0 || len != bytes)
        return false;
    char *data = malloc(len);
    if (!data || pread(fd, data, len, 0) != (ssize_t)len) {
        free(data);
        return false;
    }
    *ret = data;
    return true;
}

/* A packed section, from the cache or into it. */
static const char *packed_bytes(struct elf_file *file, Elf_Scn *scn, const GElf_Shdr *header,
                                bool old, struct str *ret)
{
    for (size_t i = 0; i < file->unpacked_count; i++) {
        if (file->unpacked[i].scn == scn) {
            *ret = (struct str){file->unpacked[i].data, file->unpacked[i].len};
            return NULL;
        }
    }
    char path[PATH_MAX];
    uint64_t bytes = unpacked_bytes(scn, old);
    bool kept = kept_path(file, scn, header, bytes, path);
    struct elf_unpacked one = {.scn = scn, .len = (size_t)bytes};
    if (kept && file->unpacked_count < ELF_UNPACKED_MAX && kept_read(path, bytes, &one.data)) {
        file->unpacked[file->unpacked_count++] = one;
        *ret = (struct str){one.data, one.len};
        return NULL;
    }
    const char *problem = unpack(scn, header, old);
    Elf_Data *data = problem ? NULL : elf_getdata(scn, NULL);
    if (!problem && (!data || !data->d_buf))
        problem = "it cannot be read";
    if (problem)
        return problem;
    *ret = (struct str){data->d_buf, data->d_size};
    if (kept && data->d_size == bytes)
        cache_file_store(file->cache_dir, path, ret, 1);
    return NULL;
}

struct str elf_file_bytes(struct elf_file *file, const char *name, const char **ret_problem)
{
    static const struct str none = {"", 0};
    GElf_Shdr header;
    bool old;
    Elf_Scn *scn = section_or_packed(file, name, &header, &old);
    if (!scn || header.sh_type == SHT_NOBITS || header.sh_size == 0)
        return none;
    struct str bytes = none;
    const char *problem = NULL;
    if (!inside(header.sh_offset, header.sh_size, file->size_bytes) && !file->memory) {
        problem = "it lies beyond the end of the file";
    } else if (old || (header.sh_flags & SHF_COMPRESSED)) {
        problem = packed_bytes(file, scn, &header, old, &bytes);
    } else {
        Elf_Data *data = elf_getdata(scn, NULL);
        if (!data || (!data->d_buf && data->d_size > 0))
            problem = "it cannot be read";
        else if (data->d_buf)
            bytes = (struct str){data->d_buf, data->d_size};
    }
    if (problem && ret_problem)
        *ret_problem = problem;
    return bytes;
}

static bool build_id_in(struct str notes, char *text)
{
    static const char hex[] = "0123456789abcdef";
    uint64_t at = 0;
    while (at + 12 <= notes.len) {
        uint32_t head[3]; /* sizes of name and contents, type */
        memcpy(head, notes.data + at, sizeof(head));
        uint64_t name = at + 12;
        uint64_t contents = name + ((uint64_t)head[0] + 3) / 4 * 4;
        if (!inside(contents, head[1], notes.len))
            return false;
        if (head[2] == 3 /* NT_GNU_BUILD_ID */ && head[0] == 4 && head[1] > 0 &&
            head[1] <= ELF_BUILD_ID_BYTES_MAX && memcmp(notes.data + name, "GNU", 4) == 0) {
            for (uint32_t i = 0; i < head[1]; i++) {
                uint8_t byte = (uint8_t)notes.data[contents + i];
                text[2 * i] = hex[byte >> 4];
                text[2 * i + 1] = hex[byte & 15];
            }
            text[2 * head[1]] = '\0';
            return true;
        }
        at = contents + ((uint64_t)head[1] + 3) / 4 * 4;
    }
    return false;
}

bool elf_file_build_id(struct elf_file *file, char text[2 * ELF_BUILD_ID_BYTES_MAX + 1])
{
    return build_id_in(elf_file_bytes(file, ".note.gnu.build-id", NULL), text);
}

bool elf_file_executes(const struct elf_file *file, uint64_t vaddr)
{
    for (size_t i = 0; i < file->code_count; i++)
        if (vaddr >= file->code[i].start && vaddr < file->code[i].end)
            return true;
    return file->code_count == 0;
}

size_t elf_file_code(struct elf_file *file, uint64_t vaddr, size_t want, uint64_t *ret_offset)
{
    size_t count = 0;
    if (elf_getphdrnum(file->elf, &count) != 0)
        return 0;
    for (size_t i = 0; i < MIN(count, (size_t)UINT16_MAX); i++) {
        GElf_Phdr phdr;
        if (!gelf_getphdr(file->elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
            !(phdr.p_flags & PF_X) || vaddr - phdr.p_vaddr >= phdr.p_filesz)
            continue;
        uint64_t skip = vaddr - phdr.p_vaddr;
        if (phdr.p_offset > file->size_bytes || skip > file->size_bytes - phdr.p_offset)
            return 0;
        *ret_offset = phdr.p_offset + skip;
        return (size_t)MIN((uint64_t)want, phdr.p_filesz - skip);
    }
    return 0;
}
