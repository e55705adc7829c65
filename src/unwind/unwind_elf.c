/* ELF headers and sections, every offset checked against the file's size. */
#include "unwind/unwind_elf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int damaged(struct why *why, const char *what, uint64_t offset)
{
    return why_set(why, WHY_FAILED, EBADMSG, "reinstall the file if it is damaged",
                   "damaged ELF file: %s at 0x%" PRIx64, what, offset);
}

/* All or nothing. */
static int read_at(const struct unwind_elf *file, uint64_t offset, void *data, size_t size,
                   struct why *why)
{
    if (offset > file->size || size > file->size - offset)
        return damaged(why, "bytes beyond the end", offset);
    if (file->bytes) {
        memcpy(data, file->bytes + offset, size);
        return 0;
    }
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(file->fd, (char *)data + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return why_errno(why, errno, NULL, "cannot read the image");
        if (n == 0)
            return damaged(why, "the file shrank", offset + done);
        done += (size_t)n;
    }
    return 0;
}

int unwind_elf_read(const struct unwind_elf *file, uint64_t offset, uint64_t size,
                    struct elf_bytes *ret, struct why *why)
{
    if (offset > file->size || size > file->size - offset)
        return damaged(why, "bytes beyond the end", offset);
    if (size > ELF_SECTION_MAX)
        return damaged(why, "a part too large to be true", offset);
    struct elf_bytes bytes = {malloc(size + 1), size}; /* a NUL behind it, for names */
    if (!bytes.data)
        return why_nomem(why);
    bytes.data[size] = 0;
    int r = read_at(file, offset, bytes.data, size, why);
    if (r < 0)
        elf_bytes_free(&bytes);
    else
        *ret = bytes;
    return r;
}

void elf_bytes_free(struct elf_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct elf_bytes){0};
}

/* Section headers are a help, not a must: a file without them, or with damaged ones, runs. */
static int read_sections(struct unwind_elf *file)
{
    const Elf64_Ehdr *header = &file->header;
    struct elf_bytes table = {0}, names = {0};
    size_t count = header->e_shnum;
    if (count == 0 || header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shstrndx >= count)
        return 0;
    int r = unwind_elf_read(file, header->e_shoff, count * sizeof(Elf64_Shdr), &table, NULL);
    if (r < 0 || !table.data)
        return r == -EBADMSG ? 0 : r;
    Elf64_Shdr *shdrs = (Elf64_Shdr *)(void *)table.data;
    const Elf64_Shdr *strings = &shdrs[header->e_shstrndx];
    if (strings->sh_type == SHT_STRTAB)
        r = unwind_elf_read(file, strings->sh_offset, strings->sh_size, &names, NULL);
    if (r < 0 || !names.data) {
        elf_bytes_free(&table);
        return r == -EBADMSG ? 0 : r;
    }
    file->shdrs = shdrs;
    file->shdrs_count = count;
    file->names = (char *)names.data;
    file->names_len = names.len;
    return 0;
}

static int read_headers(struct unwind_elf *file, struct why *why)
{
    Elf64_Ehdr *header = &file->header;
    int r = read_at(file, 0, header, sizeof(*header), why);
    if (r < 0)
        return r;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return why_set(why, WHY_FAILED, EBADMSG, NULL, "not an ELF file");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
        return why_set(why, WHY_DENIED, ENOTSUP, NULL,
                       "an ELF file that is not 64-bit little endian");
    if (header->e_phnum == 0 || header->e_phnum > ELF_PHDRS_MAX ||
        header->e_phentsize != sizeof(Elf64_Phdr))
        return damaged(why, "no usable program headers", header->e_phoff);
    file->phdrs_count = header->e_phnum;
    file->phdrs = malloc(file->phdrs_count * sizeof(Elf64_Phdr));
    if (!file->phdrs)
        return why_nomem(why);
    r = read_at(file, header->e_phoff, file->phdrs, file->phdrs_count * sizeof(Elf64_Phdr), why);
    if (r < 0)
        return r;
    r = read_sections(file);
    return r == -ENOMEM ? why_nomem(why)
           : r < 0      ? why_errno(why, -r, NULL, "cannot read the image")
                        : 0;
}

int unwind_elf_open(int fd, const void *bytes, size_t len, struct unwind_elf *ret, struct why *why)
{
    struct unwind_elf file = {.fd = fd, .bytes = bytes, .size = len};
    if (!bytes) {
        struct stat st;
        if (fstat(fd, &st) < 0)
            return why_errno(why, errno, NULL, "cannot look at the image");
        if (!S_ISREG(st.st_mode))
            return why_set(why, WHY_FAILED, EBADMSG, NULL, "not a regular file");
        file.size = (uint64_t)st.st_size;
    }
    int r = read_headers(&file, why);
    if (r < 0) {
        unwind_elf_close(&file);
        return r;
    }
    *ret = file;
    return 0;
}

void unwind_elf_close(struct unwind_elf *file)
{
    free(file->phdrs);
    free(file->shdrs);
    free(file->names);
    *file = (struct unwind_elf){.fd = -1};
}

const Elf64_Shdr *unwind_elf_section(const struct unwind_elf *file, const char *name)
{
    for (size_t i = 1; i < file->shdrs_count; i++) {
        const Elf64_Shdr *section = &file->shdrs[i];
        if (section->sh_type != SHT_NOBITS && section->sh_size > 0 &&
            section->sh_name < file->names_len && strcmp(file->names + section->sh_name, name) == 0)
            return section;
    }
    return NULL;
}

/* `header` bytes of description, then the packed ones. */
static int unpack(struct elf_bytes *packed, size_t header, uint32_t type, uint64_t size,
                  struct why *why)
{
    /* Neither way packs better than a thousandth for long: what claims to is a bomb. */
    if (size > ELF_SECTION_MAX || size / 2048 > packed->len)
        return damaged(why, "a compressed section too large to be true", 0);
    struct elf_bytes plain = {malloc(size + 1), size};
    if (!plain.data)
        return why_nomem(why);
    int r = unwind_elf_inflate(type, packed->data + header, packed->len - header, plain.data, size,
                               why);
    elf_bytes_free(r < 0 ? &plain : packed);
    if (r == 0)
        *packed = plain;
    return r;
}

int unwind_elf_section_read(const struct unwind_elf *file, const Elf64_Shdr *section,
                            struct elf_bytes *ret, struct why *why)
{
    struct elf_bytes bytes = {0};
    int r = unwind_elf_read(file, section->sh_offset, section->sh_size, &bytes, why);
    if (r < 0)
        return r;
    const char *name = section->sh_name < file->names_len ? file->names + section->sh_name : "";
    if (section->sh_flags & SHF_COMPRESSED) {
        Elf64_Chdr header;
        if (bytes.len < sizeof(header)) {
            r = damaged(why, "a compressed section without header", section->sh_offset);
        } else {
            memcpy(&header, bytes.data, sizeof(header));
            r = unpack(&bytes, sizeof(header), header.ch_type, header.ch_size, why);
        }
    } else if (strncmp(name, ".zdebug", 7) == 0) { /* the GNU way before that */
        uint64_t size;
        if (bytes.len < 12 || memcmp(bytes.data, "ZLIB", 4) != 0) {
            r = damaged(why, "a compressed section without header", section->sh_offset);
        } else {
            memcpy(&size, bytes.data + 4, sizeof(size));
            r = unpack(&bytes, 12, ELFCOMPRESS_ZLIB, __builtin_bswap64(size), why);
        }
    }
    if (r < 0)
        elf_bytes_free(&bytes);
    else
        *ret = bytes;
    return r;
}

static size_t note_build_id(const uint8_t *data, size_t len, uint8_t ret[ELF_BUILD_ID_MAX])
{
    while (len >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, data, sizeof(note));
        uint64_t name = (note.n_namesz + UINT64_C(3)) & ~UINT64_C(3);
        uint64_t desc = (note.n_descsz + UINT64_C(3)) & ~UINT64_C(3);
        uint64_t size = sizeof(note) + name + desc;
        if (size > len)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz > 0 &&
            note.n_descsz <= ELF_BUILD_ID_MAX && memcmp(data + sizeof(note), "GNU", 4) == 0) {
            memcpy(ret, data + sizeof(note) + name, note.n_descsz);
            return note.n_descsz;
        }
        data += size;
        len -= size;
    }
    return 0;
}

size_t unwind_elf_build_id(const struct unwind_elf *file, uint8_t ret[ELF_BUILD_ID_MAX])
{
    enum { NOTES_MAX = 64 << 10 };
    for (size_t i = 0; i < file->phdrs_count; i++) {
        const Elf64_Phdr *phdr = &file->phdrs[i];
        struct elf_bytes notes = {0};
        if (phdr->p_type != PT_NOTE || phdr->p_filesz > NOTES_MAX ||
            unwind_elf_read(file, phdr->p_offset, phdr->p_filesz, &notes, NULL) < 0)
            continue;
        size_t len = note_build_id(notes.data, notes.len, ret);
        elf_bytes_free(&notes);
        if (len > 0)
            return len;
    }
    return 0;
}
