/* Data symbols of ELF files, for the names of locks. */
#include "symbolize/variables.h"

#include "symbolize/elf_symbols.h"
#include "symbolize/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

static const uint64_t page_bytes_max = 65536; /* of any machine: mappings begin at a page */

struct variables {
    struct symbol_table table;
};

static int file_open(int fd, const char *name, struct elf_file *ret)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return copy < 0 ? -errno : elf_file_open(copy, name, ret, NULL);
}

int variables_layout_read(int fd, struct variables_layout *ret)
{
    struct elf_file file = ELF_FILE_NONE;
    struct variables_layout layout = {0};
    size_t count = 0;
    int r = file_open(fd, "image", &file);
    if (r < 0)
        return r;
    if (file.header.e_phoff != 0 && elf_getphdrnum(file.elf, &count) != 0)
        count = 0;
    for (size_t i = 0; i < count && layout.count < VARIABLES_SEGMENTS_MAX; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(file.elf, (int)i, &segment) || segment.p_type != PT_LOAD ||
            segment.p_memsz > UINT64_MAX - segment.p_vaddr)
            continue;
        layout.segments[layout.count++] = (struct variables_segment){
            .vaddr = segment.p_vaddr,
            .size_bytes = segment.p_memsz,
            .file_offset = segment.p_offset,
            .file_bytes = segment.p_filesz,
            .executable = segment.p_flags & PF_X,
        };
    }
    elf_file_close(&file);
    if (layout.count == 0)
        return -ENOEXEC;
    *ret = layout;
    return 0;
}

/* A mapping begins at the page that the segment begins in, or (a part of it) within it. */
static bool segment_holds(const struct variables_segment *segment, uint64_t file_offset)
{
    if (!segment->executable)
        return false;
    if (file_offset >= segment->file_offset)
        return file_offset - segment->file_offset < segment->file_bytes;
    return segment->file_offset - file_offset <= (segment->vaddr & (page_bytes_max - 1));
}

bool variables_layout_vaddr(const struct variables_layout *layout, uint64_t mapped,
                            uint64_t file_offset, uint64_t address, uint64_t *ret_vaddr)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct variables_segment *code = &layout->segments[i];
        if (!segment_holds(code, file_offset))
            continue;
        uint64_t bias = mapped - (code->vaddr + (file_offset - code->file_offset));
        for (size_t j = 0; j < layout->count; j++) {
            const struct variables_segment *data = &layout->segments[j];
            if (address - bias - data->vaddr < data->size_bytes) {
                *ret_vaddr = address - bias;
                return true;
            }
        }
        return false;
    }
    return false;
}

static int debug_add(int fd, const struct image_info *info, const char *root,
                     struct symbol_table *table)
{
    char path[PATH_MAX];
    int debug = symbols_debug_file(fd, info, root, path, sizeof(path));
    struct elf_file file = ELF_FILE_NONE;
    if (debug < 0 || elf_file_open(debug, path, &file, NULL) < 0)
        return 0;
    int r = elf_variables_add(&file, ".symtab", table);
    elf_file_close(&file);
    return r;
}

int variables_open(int fd, const struct image_info *info, const char *root, struct variables **ret)
{
    struct elf_file file = ELF_FILE_NONE;
    int r = file_open(fd, "image", &file);
    if (r < 0)
        return r;
    struct variables *variables = calloc(1, sizeof(*variables));
    if (!variables) {
        elf_file_close(&file);
        return -ENOMEM;
    }
    r = elf_variables_add(&file, ".symtab", &variables->table);
    if (r == 0)
        r = debug_add(fd, info, root, &variables->table);
    if (r == 0)
        r = elf_variables_add(&file, ".dynsym", &variables->table);
    if (r >= 0)
        r = symbol_table_finish(&variables->table, NULL, 0);
    elf_file_close(&file);
    if (r < 0) {
        variables_close(variables);
        return r;
    }
    *ret = variables;
    return 0;
}

void variables_close(struct variables *variables)
{
    if (!variables)
        return;
    symbol_table_deinit(&variables->table);
    free(variables);
}

bool variables_at(const struct variables *variables, uint64_t vaddr, struct variable *ret)
{
    const struct symbol_row *row = symbol_table_find(&variables->table, vaddr);
    if (!row)
        return false;
    *ret = (struct variable){
        .linkage = symbol_table_name(&variables->table, row),
        .start = row->start,
        .size_bytes = row->size_bytes,
    };
    return true;
}
