/* Opening an ELF file that may be damaged, and the plain facts of its headers. */
#include "host/build_internal.h"

#include "base/fd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char damaged_remedy[] = "build or copy the file again";

static int damaged(struct why *why, const char *path, const char *what)
{
    return why_set(why, WHY_USAGE, EBADMSG, damaged_remedy, "'%s' is a damaged ELF file: %s", path,
                   what);
}

static bool inside(uint64_t offset, uint64_t size, uint64_t limit)
{
    return offset <= limit && size <= limit - offset;
}

static int segments_check(struct build_elf *file, struct why *why)
{
    const GElf_Ehdr *header = &file->header;
    size_t count;
    if (header->e_phoff == 0)
        return 0;
    if (elf_getphdrnum(file->elf, &count) != 0)
        return damaged(why, file->path, "its program headers cannot be read");
    if (!inside(header->e_phoff, (uint64_t)count * header->e_phentsize, file->size_bytes))
        return damaged(why, file->path, "its program headers lie beyond the end of the file");
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(file->elf, (int)i, &segment))
            return damaged(why, file->path, "its program headers cannot be read");
        if (segment.p_type == PT_LOAD &&
            !inside(segment.p_offset, segment.p_filesz, file->size_bytes)) {
            const char *what = arena_printf(
                file->arena,
                "segment %zu ends at byte %" PRIu64 " of %" PRIu64 ": the file is cut off", i,
                segment.p_offset + segment.p_filesz, file->size_bytes);
            return damaged(why, file->path, what);
        }
    }
    return 0;
}

static int sections_check(struct build_elf *file, struct why *why)
{
    const GElf_Ehdr *header = &file->header;
    if (header->e_shoff == 0)
        return 0; /* legal: a program needs none to run */
    if (!inside(header->e_shoff, header->e_shentsize, file->size_bytes))
        return damaged(why, file->path,
                       "its section headers lie beyond the end of the file: it is cut off");
    if (elf_getshdrnum(file->elf, &file->section_count) != 0)
        return damaged(why, file->path, "its section headers cannot be read");
    if (file->section_count == 0 && header->e_shnum != 0) /* libelf gave up on them */
        file->section_count = header->e_shnum;
    if (file->section_count > BUILD_SECTIONS_MAX ||
        !inside(header->e_shoff, (uint64_t)file->section_count * header->e_shentsize,
                file->size_bytes))
        return damaged(why, file->path,
                       arena_printf(file->arena, "it claims %zu sections, more than it can hold",
                                    file->section_count));
    for (size_t i = 1; i < file->section_count; i++) {
        GElf_Shdr section;
        Elf_Scn *scn = elf_getscn(file->elf, i);
        if (!scn || !gelf_getshdr(scn, &section))
            return damaged(why, file->path,
                           arena_printf(file->arena, "section %zu cannot be read", i));
        if (section.sh_type != SHT_NOBITS &&
            !inside(section.sh_offset, section.sh_size, file->size_bytes))
            return damaged(why, file->path,
                           arena_printf(file->arena,
                                        "section %zu claims %" PRIu64 " bytes at %" PRIu64
                                        " of a file of %" PRIu64 " bytes",
                                        i, section.sh_size, section.sh_offset, file->size_bytes));
    }
    return 0;
}

static int file_check(struct build_elf *file, struct why *why)
{
    struct stat st;
    if (file->fd == -EISDIR)
        return why_errno(why, EISDIR, "name the program in it", "cannot read '%s'", file->path);
    if (file->fd == -EINVAL)
        return why_set(why, WHY_USAGE, ENOEXEC, "name a program", "'%s' is not a regular file",
                       file->path);
    if (file->fd < 0)
        return why_errno(why, -file->fd,
                         file->fd == -EACCES ? "run as a user who may read it" : NULL,
                         "cannot open '%s'", file->path);
    if (fstat(file->fd, &st) < 0)
        return why_errno(why, errno, NULL, "cannot look at '%s'", file->path);
    file->size_bytes = (uint64_t)st.st_size;
    char magic[SELFMAG];
    if (pread(file->fd, magic, sizeof(magic), 0) != sizeof(magic) ||
        memcmp(magic, ELFMAG, SELFMAG) != 0)
        return why_set(why, WHY_USAGE, ENOEXEC, "name a program or a script that starts with #!",
                       "'%s' is neither an ELF file nor a script", file->path);
    return 0;
}

int build_elf_open(struct arena *arena, const char *path, uint64_t deadline_ns,
                   struct build_elf *ret, struct why *why)
{
    AUTO(build_elf_close)
    struct build_elf file = {.arena = arena, .path = path, .fd = -1, .deadline_ns = deadline_ns};
    file.fd = file_open_regular(path);
    int r = file_check(&file, why);
    if (r < 0)
        return r;
    if (elf_version(EV_CURRENT) == EV_NONE)
        return why_set(why, WHY_FAILED, EPROTO, "install the libelf whyslow was built with",
                       "libelf is older than whyslow needs");
    file.elf = elf_begin(file.fd, ELF_C_READ_MMAP, NULL);
    if (!file.elf || elf_kind(file.elf) != ELF_K_ELF || !gelf_getehdr(file.elf, &file.header))
        return damaged(why, path, "its header cannot be read");
    r = segments_check(&file, why);
    if (r >= 0)
        r = sections_check(&file, why);
    if (r < 0)
        return r;
    *ret = file;
    file = (struct build_elf){.fd = -1};
    return 0;
}

void build_elf_close(struct build_elf *file)
{
    if (file->elf)
        elf_end(file->elf);
    if (file->elf || file->fd > 0)
        fd_close(&file->fd);
    file->elf = NULL;
}

bool build_elf_late(struct build_elf *file)
{
    if (!file->late && clock_mono_ns() > file->deadline_ns)
        file->late = true;
    return file->late;
}

Elf_Scn *build_elf_section(struct build_elf *file, const char *name, GElf_Shdr *ret)
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
            return header.sh_type == SHT_NOBITS || header.sh_size == 0 ? NULL : scn;
        }
    }
    return NULL;
}

struct str build_elf_bytes(struct build_elf *file, const char *name)
{
    GElf_Shdr header;
    Elf_Scn *scn = build_elf_section(file, name, &header);
    Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
    if (!data || !data->d_buf)
        return (struct str){"", 0};
    return (struct str){data->d_buf, data->d_size};
}

/* The old way to compress: a section .zdebug_… that starts "ZLIB" and a size. */
static uint64_t zdebug_bytes(Elf_Scn *scn)
{
    Elf_Data *data = elf_rawdata(scn, NULL);
    if (!data || !data->d_buf || data->d_size < 12 || memcmp(data->d_buf, "ZLIB", 4) != 0)
        return 0;
    uint64_t size = 0;
    for (size_t i = 4; i < 12; i++)
        size = size << 8 | ((const unsigned char *)data->d_buf)[i];
    return size;
}

uint64_t build_elf_unpacked_bytes(struct build_elf *file, const char *prefix)
{
    uint64_t sum = 0;
    size_t names;
    if (file->section_count == 0 || elf_getshdrstrndx(file->elf, &names) != 0)
        return 0;
    for (size_t i = 1; i < file->section_count; i++) {
        Elf_Scn *scn = elf_getscn(file->elf, i);
        GElf_Shdr header;
        GElf_Chdr compressed;
        uint64_t size = 0;
        if (!scn || !gelf_getshdr(scn, &header))
            continue;
        const char *name = elf_strptr(file->elf, names, header.sh_name);
        if (name && strncmp(name, ".zdebug", 7) == 0)
            size = zdebug_bytes(scn);
        else if (!name || strncmp(name, prefix, strlen(prefix)) != 0 ||
                 !(header.sh_flags & SHF_COMPRESSED))
            continue;
        else if (gelf_getchdr(scn, &compressed))
            size = compressed.ch_size;
        if (__builtin_add_overflow(sum, size, &sum))
            return UINT64_MAX;
    }
    return sum;
}

const char *build_elf_machine(const struct build_elf *file)
{
    static const struct {
        unsigned machine;
        const char *name;
    } machines[] = {
        {EM_X86_64, "x86_64"},   {EM_AARCH64, "aarch64"}, {EM_386, "i386"},
        {EM_ARM, "arm"},         {EM_RISCV, "riscv"},     {EM_PPC64, "ppc64"},
        {EM_S390, "s390"},       {EM_MIPS, "mips"},       {EM_PPC, "ppc"},
        {EM_SPARCV9, "sparc64"}, {EM_BPF, "bpf"},         {EM_LOONGARCH, "loongarch"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
        if (machines[i].machine == file->header.e_machine)
            return machines[i].name;
    return arena_printf(file->arena, "machine %u", file->header.e_machine);
}

bool build_elf_is_known_machine(const struct build_elf *file)
{
    return (file->header.e_machine == EM_X86_64 || file->header.e_machine == EM_AARCH64) &&
           file->header.e_ident[EI_CLASS] == ELFCLASS64 &&
           file->header.e_ident[EI_DATA] == ELFDATA2LSB;
}

/* What the dynamic section says of the file's own nature. */
struct nature {
    bool pie;  /* flagged as a program */
    bool name; /* has the name a library is asked for by */
};

static struct nature dynamic_nature(struct build_elf *file)
{
    GElf_Shdr header;
    struct nature nature = {0};
    Elf_Scn *scn = build_elf_section(file, ".dynamic", &header);
    Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
    size_t count = data && header.sh_entsize ? header.sh_size / header.sh_entsize : 0;
    for (size_t i = 0; i < MIN(count, 65536u); i++) {
        GElf_Dyn entry;
        if (!gelf_getdyn(data, (int)i, &entry) || entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_FLAGS_1)
            nature.pie = entry.d_un.d_val & DF_1_PIE;
        nature.name |= entry.d_tag == DT_SONAME;
    }
    return nature;
}

const char *build_elf_kind(struct build_elf *file, bool *ret_static)
{
    bool loader = false;
    size_t count = 0;
    if (file->header.e_phoff && elf_getphdrnum(file->elf, &count) != 0)
        count = 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(file->elf, (int)i, &segment) && segment.p_type == PT_INTERP)
            loader = true;
    }
    *ret_static = false;
    switch (file->header.e_type) {
    case ET_EXEC:
        *ret_static = !loader;
        return "executable";
    case ET_REL:
        return "object";
    case ET_CORE:
        return "core dump";
    case ET_DYN:
        break;
    default:
        return "unknown kind";
    }
    struct nature nature = dynamic_nature(file);
    *ret_static = !loader && nature.pie; /* -static-pie relocates itself */
    /* Old linkers set no flag, and some libraries can be run: the C library for one. */
    return nature.pie || (loader && !nature.name) ? "PIE" : "shared library";
}

const char *build_elf_build_id(struct build_elf *file)
{
    GElf_Shdr header;
    Elf_Scn *scn = build_elf_section(file, ".note.gnu.build-id", &header);
    Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
    GElf_Nhdr note;
    size_t name;
    size_t id;
    if (!data || gelf_getnote(data, 0, &note, &name, &id) == 0 || note.n_type != NT_GNU_BUILD_ID ||
        note.n_descsz == 0 || note.n_descsz > 64)
        return NULL;
    char text[129];
    const unsigned char *bytes = (const unsigned char *)data->d_buf + id;
    for (size_t i = 0; i < note.n_descsz; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return arena_dup(file->arena, text);
}
