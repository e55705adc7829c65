/* An image: from a file or from memory to segments and rows. */
#include "unwind/image.h"

#include "unwind/cfi.h"
#include "unwind/machine.h"
#include "unwind/rows_file.h"
#include "unwind/stubs.h"
#include "unwind/unwind_elf.h"

#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EH_FRAME, DEBUG_FRAME, OTHER_DEBUG_FRAME, SECTIONS };

struct loader {
    const struct unwind_elf *file;
    struct unwind_image *image;
    uint64_t base; /* the first executable vaddr */
    struct cfi_range code[UNWIND_SEGMENTS_MAX];
    size_t code_count;
    struct elf_bytes bytes[SECTIONS];
    struct cfi_section sections[SECTIONS];
};

static void loader_deinit(struct loader *loader)
{
    for (size_t i = 0; i < SECTIONS; i++)
        elf_bytes_free(&loader->bytes[i]);
}

void unwind_image_free(struct unwind_image *image)
{
    if (!image)
        return;
    free(image->memory);
    free(image->index);
    free(image->segments);
    free(image);
}

size_t unwind_image_rows(const struct unwind_image *image)
{
    return image->rows.count;
}

/* A mapping starts on a page, a segment anywhere inside of one: `slack` looks at the rest
 * of the segment's first and last page too. */
static bool segment_has(const struct unwind_segment *segment, uint64_t offset, bool slack)
{
    uint64_t start = segment->offset, end = segment->offset + segment->file_size;
    if (slack) {
        start &= ~(segment->page - 1);
        end = (end + segment->page - 1) & ~(segment->page - 1);
    }
    return offset >= start && offset < end;
}

bool unwind_image_vaddr(const struct unwind_image *image, uint64_t file_offset, uint64_t *ret)
{
    /* Two segments may share a page of the file; code is what we are asked for. */
    for (unsigned pass = 0; pass < 4; pass++)
        for (size_t i = 0; i < image->segments_count; i++) {
            const struct unwind_segment *segment = &image->segments[i];
            if (segment->executable == (pass < 2) && segment_has(segment, file_offset, pass & 1)) {
                *ret = segment->vaddr + (file_offset - segment->offset);
                return true;
            }
        }
    return false;
}

static int too_large(struct why *why, const char *what)
{
    return why_set(why, WHY_FAILED, EBADMSG, "reinstall the file if it is damaged",
                   "damaged ELF file: %s", what);
}

static int read_segments(struct loader *loader, struct why *why)
{
    const struct unwind_elf *file = loader->file;
    struct unwind_image *image = loader->image;
    image->segments = calloc(UNWIND_SEGMENTS_MAX, sizeof(*image->segments));
    if (!image->segments)
        return why_nomem(why);
    uint64_t end = 0;
    loader->base = UINT64_MAX;
    for (size_t i = 0; i < file->phdrs_count; i++) {
        const Elf64_Phdr *phdr = &file->phdrs[i];
        if (phdr->p_type != PT_LOAD || phdr->p_memsz == 0)
            continue;
        if (image->segments_count == UNWIND_SEGMENTS_MAX)
            return too_large(why, "more segments than any program has");
        if (phdr->p_vaddr + phdr->p_memsz < phdr->p_vaddr ||
            phdr->p_offset + phdr->p_filesz < phdr->p_offset ||
            phdr->p_offset + phdr->p_filesz > INT64_MAX)
            return too_large(why, "a segment that wraps around");
        bool sane_align = phdr->p_align >= 4096 && phdr->p_align <= 65536 &&
                          (phdr->p_align & (phdr->p_align - 1)) == 0;
        struct unwind_segment segment = {
            .offset = phdr->p_offset,
            .file_size = phdr->p_filesz,
            .vaddr = phdr->p_vaddr,
            .memory_size = phdr->p_memsz,
            .page = sane_align ? phdr->p_align : 4096,
            .executable = phdr->p_flags & PF_X,
        };
        image->segments[image->segments_count++] = segment;
        if (!segment.executable)
            continue;
        loader->code[loader->code_count++] = (struct cfi_range){
            segment.vaddr, segment.vaddr + segment.memory_size};
        loader->base = MIN(loader->base, segment.vaddr);
        end = MAX(end, segment.vaddr + segment.memory_size);
    }
    if (loader->code_count == 0)
        loader->base = 0;
    else if (end - loader->base > UINT32_MAX)
        return too_large(why, "code that spans more than 4 GiB");
    return 0;
}

static uint64_t got_address(const struct unwind_elf *file)
{
    const Elf64_Shdr *got = unwind_elf_section(file, ".got.plt");
    if (!got)
        got = unwind_elf_section(file, ".got");
    return got ? got->sh_addr : 0;
}

/* A file without section headers still says where .eh_frame_hdr is, and that says where
 * .eh_frame starts; it ends at its zero entry. */
static int read_eh_frame_by_header(struct loader *loader, struct why *why)
{
    const struct unwind_elf *file = loader->file;
    for (size_t i = 0; i < file->phdrs_count; i++) {
        const Elf64_Phdr *phdr = &file->phdrs[i];
        struct elf_bytes header;
        if (phdr->p_type != PT_GNU_EH_FRAME || phdr->p_filesz < 8)
            continue;
        int r = unwind_elf_read(file, phdr->p_offset, MIN(phdr->p_filesz, 32u), &header, why);
        if (r < 0)
            return r;
        struct cfi_bytes bytes = {header.data + 4, header.data + header.len, false};
        bool version_1 = header.data[0] == 1;
        uint64_t at = cfi_pointer(&bytes, header.data[1], phdr->p_vaddr + 4, phdr->p_vaddr);
        elf_bytes_free(&header);
        if (!version_1 || bytes.bad)
            return too_large(why, ".eh_frame_hdr cannot be read");
        for (size_t j = 0; j < loader->image->segments_count; j++) {
            const struct unwind_segment *segment = &loader->image->segments[j];
            if (at < segment->vaddr || at - segment->vaddr >= segment->file_size)
                continue;
            uint64_t skip = at - segment->vaddr;
            uint64_t len = MIN(segment->file_size - skip, (uint64_t)ELF_SECTION_MAX);
            r = unwind_elf_read(file, segment->offset + skip, len, &loader->bytes[EH_FRAME], why);
            if (r < 0)
                return r;
            loader->sections[EH_FRAME] = (struct cfi_section){
                .name = ".eh_frame", .vaddr = at, .eh = true, .open_ended = true};
            return 0;
        }
    }
    return 0;
}

static int read_frame_section(struct loader *loader, const struct unwind_elf *file, unsigned number,
                              const char *name, struct why *why)
{
    const Elf64_Shdr *section = unwind_elf_section(file, name);
    if (!section || loader->bytes[number].data)
        return 0;
    loader->sections[number] = (struct cfi_section){.name = number == EH_FRAME ? ".eh_frame"
                                                                               : ".debug_frame",
                                                    .vaddr = section->sh_addr,
                                                    .got = got_address(file),
                                                    .eh = number == EH_FRAME};
    return unwind_elf_section_read(file, section, &loader->bytes[number], why);
}

/* Only a help: a debug file that is gone or damaged is as good as none. */
static int read_debug_file(struct loader *loader, const char *path)
{
    struct unwind_elf debug;
    AUTO(fd_close) int fd = file_open_regular(path);
    if (fd < 0 || unwind_elf_open(fd, NULL, 0, &debug, NULL) < 0)
        return 0;
    uint8_t ours[ELF_BUILD_ID_MAX], theirs[ELF_BUILD_ID_MAX];
    size_t len = unwind_elf_build_id(loader->file, ours);
    bool same = debug.header.e_machine == loader->file->header.e_machine &&
                unwind_elf_build_id(&debug, theirs) == len && memcmp(ours, theirs, len) == 0;
    int r = 0;
    if (same)
        r = read_frame_section(loader, &debug, OTHER_DEBUG_FRAME, ".debug_frame", NULL);
    if (same && r == 0)
        r = read_frame_section(loader, &debug, OTHER_DEBUG_FRAME, ".zdebug_frame", NULL);
    unwind_elf_close(&debug);
    return r == -ENOMEM ? r : 0;
}

static int read_tables(struct loader *loader, const char *debug_path, struct why *why)
{
    int r = read_frame_section(loader, loader->file, EH_FRAME, ".eh_frame", why);
    if (r == 0 && !loader->bytes[EH_FRAME].data)
        r = read_eh_frame_by_header(loader, why);
    if (r == 0)
        r = read_frame_section(loader, loader->file, DEBUG_FRAME, ".debug_frame", why);
    if (r == 0)
        r = read_frame_section(loader, loader->file, DEBUG_FRAME, ".zdebug_frame", why);
    if (r == 0 && debug_path && read_debug_file(loader, debug_path) < 0)
        r = why_nomem(why);
    for (size_t i = 0; i < SECTIONS; i++) {
        loader->sections[i].data = loader->bytes[i].data;
        loader->sections[i].len = loader->bytes[i].len;
    }
    return r;
}

/* Rows of `builder` from all tables; .eh_frame's word counts, the others fill its gaps. */
static int build_rows(struct loader *loader, struct rows_builder *builder, struct why *why)
{
    struct cfi cfi = {.builder = builder,
                      .code = loader->code,
                      .code_count = loader->code_count,
                      .sections = loader->sections};
    cfi_functions all = {0}, more = {0};
    int r = 0;
    for (uint8_t i = 0; i < SECTIONS && r == 0; i++) {
        if (loader->sections[i].len == 0)
            continue;
        more.len = 0;
        r = cfi_read(&cfi, i, &more, i == OTHER_DEBUG_FRAME ? NULL : why);
        if (i == OTHER_DEBUG_FRAME && r == -EBADMSG) { /* only a help, as above */
            more.len = 0;
            r = 0;
        }
        if (r < 0)
            break;
        cfi_sort(&more);
        if (cfi_fill(&all, &more) < 0)
            r = why_nomem(why);
    }
    if (r == 0)
        r = stubs_find(loader->file, loader->image, builder, &all, why);
    if (r == 0) {
        r = cfi_emit(&cfi, &all);
        if (r == -EFBIG)
            r = too_large(why, "more unwind rows than any program has");
        else if (r == -ENOMEM)
            r = why_nomem(why);
    }
    loader->image->skipped = cfi.skipped;
    VEC_FREE(&all);
    VEC_FREE(&more);
    cfi_deinit(&cfi);
    return r;
}

static int load_rows(struct loader *loader, const struct unwind_image_opts *opts, struct why *why)
{
    struct unwind_image *image = loader->image;
    struct rows_key key = {0};
    if (opts && opts->cache_dir && opts->cache_dir[0] &&
        rows_key_make(loader->file, opts->debug_path, &key) &&
        rows_file_load(opts->cache_dir, &key, image->machine, loader->base, &image->rows,
                       &image->memory)) {
        image->cached = true;
        return 0;
    }
    int r = read_tables(loader, opts ? opts->debug_path : NULL, why);
    if (r < 0)
        return r;
    struct rows_builder builder;
    if (rows_builder_init(&builder, image->machine, loader->base) < 0)
        return why_nomem(why);
    r = build_rows(loader, &builder, why);
    if (r == 0 && rows_builder_finish(&builder, &image->rows, &image->memory) < 0)
        r = why_nomem(why);
    rows_builder_deinit(&builder);
    if (r == 0 && key.len > 0)
        rows_file_save(opts->cache_dir, &key, image->machine, &image->rows);
    return r;
}

static int image_load(const struct unwind_elf *file, const struct unwind_image_opts *opts,
                      struct unwind_image **ret, struct why *why)
{
    enum unwind_machine machine;
    if (!unwind_machine_of_elf(file->header.e_machine, &machine))
        return why_set(why, WHY_DENIED, ENOTSUP, NULL,
                       "an image for another machine (ELF number %u)", file->header.e_machine);
    struct unwind_image *image = calloc(1, sizeof(*image));
    if (!image)
        return why_nomem(why);
    image->machine = machine;
    struct loader loader = {.file = file, .image = image};
    int r = read_segments(&loader, why);
    if (r == 0)
        r = load_rows(&loader, opts, why);
    if (r == 0 && unwind_rows_index(&image->rows, &image->index) < 0)
        r = why_nomem(why);
    loader_deinit(&loader);
    if (r < 0)
        unwind_image_free(image);
    else
        *ret = image;
    return r;
}

int unwind_image_load(int fd, const struct unwind_image_opts *opts, struct unwind_image **ret,
                      struct why *why)
{
    struct unwind_elf file;
    int r = unwind_elf_open(fd, NULL, 0, &file, why);
    if (r < 0)
        return r;
    r = image_load(&file, opts, ret, why);
    unwind_elf_close(&file);
    return r;
}

int unwind_image_load_memory(const void *bytes, size_t len, struct unwind_image **ret,
                             struct why *why)
{
    struct unwind_elf file;
    int r = unwind_elf_open(-1, bytes, len, &file, why);
    if (r < 0)
        return r;
    r = image_load(&file, NULL, ret, why);
    unwind_elf_close(&file);
    return r;
}

bool unwind_image_bare_at(const struct unwind_image *image, uint64_t vaddr)
{
    const struct unwind_machine_info *info = unwind_machine_info(image->machine);
    uint32_t number = unwind_rows_find(&image->rows, vaddr);
    if (number == UNWIND_RULES_NONE)
        return false;
    const struct unwind_rules *rules = &image->rows.rules[number];
    bool in_register = info->lr < UNWIND_REGISTERS;
    if (rules->cfa != UNWIND_CFA_REGISTER || rules->cfa_base != info->sp)
        return false;
    return in_register ? rules->cfa_offset == 0 && rules->ra == UNWIND_SAME
                       : rules->cfa_offset == 8;
}
