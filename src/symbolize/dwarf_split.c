/* Split DWARF: the linked file has a skeleton with addresses and lines, the entries stand in
 * a .dwo file beside the object, or all together in one .dwp file beside the image. */
#include "symbolize/dwarf.h"

#include "symbolize/internal.h"

#include "base/fd.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

enum { SPLIT_FILES_MAX = 1 << 14, SPLIT_FILE_BYTES_MAX = 1 << 30, PACKAGE_COLUMNS_MAX = 16 };

/* Columns of a package's index that concern us. */
enum { COLUMN_INFO = 1, COLUMN_ABBREV = 3, COLUMN_STR_OFFSETS = 6, COLUMN_RNGLISTS = 8 };

static int file_open(struct dwarf *dwarf, const char *path, struct dwarf_file **ret)
{
    char *bytes = NULL;
    size_t len = 0;
    if (dwarf->splits.len >= SPLIT_FILES_MAX)
        return -E2BIG;
    /* Read whole and closed again: a program has hundreds of them. */
    AUTO(fd_close) int fd = root_open(dwarf->symbols->root, path, true);
    int r = fd < 0 ? fd : symbols_read_all(fd, SPLIT_FILE_BYTES_MAX, &bytes, &len);
    if (r < 0)
        return r;
    struct dwarf_file *file = calloc(1, sizeof(*file));
    if (!file) {
        free(bytes);
        return -ENOMEM;
    }
    *file = (struct dwarf_file){.dwarf = dwarf, .owned = ELF_FILE_NONE, .split = true};
    file->elf = &file->owned;
    r = elf_file_open_memory(bytes, len, path, &file->owned, NULL);
    if (r == 0)
        r = dwarf_file_units(file);
    if (r == 0)
        r = VEC_PUSH(&dwarf->splits, (struct dwarf_split_slot){file});
    if (r < 0) {
        dwarf_file_deinit(file);
        free(file);
        return r;
    }
    symbols_named_by(dwarf->symbols, fd);
    *ret = file;
    return 0;
}

static struct dwarf_unit *unit_adopt(struct dwarf_unit *split, struct dwarf_unit *skeleton)
{
    split->skeleton = skeleton;
    skeleton->split = split;
    return split;
}

/* The compile unit of a .dwo file that belongs to the skeleton. */
static struct dwarf_unit *unit_of_file(struct dwarf_file *file, struct dwarf_unit *skeleton)
{
    for (size_t i = 0; i < file->units.len; i++) {
        struct dwarf_unit *unit = &file->units.data[i];
        if ((unit->type == DW_UT_split_compile || unit->type == DW_UT_compile) && !unit->skeleton &&
            dwarf_unit_root(unit) && unit->dwo_id == skeleton->dwo_id)
            return unit_adopt(unit, skeleton);
    }
    return NULL;
}

struct package_row {
    bool found;
    uint64_t info, abbrev, str_offsets, rnglists;
};

/* Where the parts of the unit with this id begin in the sections of a package. */
static struct package_row package_find(struct str index, uint64_t dwo_id)
{
    struct package_row row = {0};
    struct cursor cursor = cursor_at(index, 0);
    uint32_t version = cursor_u32(&cursor) & 0xffff; /* 16 bits since version 5 */
    uint32_t columns = cursor_u32(&cursor);
    uint32_t units = cursor_u32(&cursor);
    uint32_t slots = cursor_u32(&cursor);
    if (cursor.bad || (version != 2 && version != 5) || columns == 0 ||
        columns > PACKAGE_COLUMNS_MAX || slots > index.len / 12)
        return row;
    struct cursor ids = cursor;
    struct cursor rows = cursor;
    cursor_skip(&rows, (uint64_t)slots * 8);
    uint32_t number = 0;
    for (uint32_t i = 0; i < slots && number == 0; i++) {
        uint64_t id = cursor_u64(&ids);
        uint32_t found = cursor_u32(&rows);
        if (id == dwo_id && found != 0)
            number = found;
    }
    if (number == 0 || number > units)
        return row;
    struct cursor names = cursor;
    cursor_skip(&names, (uint64_t)slots * 12);
    struct cursor offsets = names;
    cursor_skip(&offsets, (uint64_t)columns * 4 * number);
    for (uint32_t i = 0; i < columns; i++) {
        uint32_t name = cursor_u32(&names);
        uint64_t offset = cursor_u32(&offsets);
        if (name == COLUMN_INFO)
            row.info = offset;
        else if (name == COLUMN_ABBREV)
            row.abbrev = offset;
        else if (name == COLUMN_STR_OFFSETS)
            row.str_offsets = offset;
        else if (name == COLUMN_RNGLISTS && version == 5)
            row.rnglists = offset;
    }
    row.found = !offsets.bad && !names.bad;
    return row;
}

static struct dwarf_unit *unit_of_package(struct dwarf_file *file, struct dwarf_unit *skeleton)
{
    struct str index = elf_file_bytes(file->elf, ".debug_cu_index", NULL);
    struct package_row row = package_find(index, skeleton->dwo_id);
    for (size_t i = 0; row.found && i < file->units.len; i++) {
        struct dwarf_unit *unit = &file->units.data[i];
        if (unit->offset != row.info || unit->skeleton || unit->root_read)
            continue;
        unit->abbrev_offset += row.abbrev;
        unit->part_str_offsets = row.str_offsets;
        unit->part_rnglists = row.rnglists;
        return dwarf_unit_root(unit) ? unit_adopt(unit, skeleton) : NULL;
    }
    return NULL;
}

static struct dwarf_file *package_open(struct dwarf *dwarf)
{
    char path[PATH_MAX];
    if (dwarf->package_sought)
        return dwarf->package;
    dwarf->package_sought = true;
    snprintf(path, sizeof(path), "%s.dwp", dwarf->symbols->path);
    struct dwarf_file *file;
    if (file_open(dwarf, path, &file) == 0)
        dwarf->package = file;
    return dwarf->package;
}

static struct dwarf_unit *split_find(struct dwarf_unit *unit)
{
    struct dwarf *dwarf = unit->file->dwarf;
    struct dwarf_file *package = package_open(dwarf);
    struct dwarf_unit *split = package ? unit_of_package(package, unit) : NULL;
    char path[PATH_MAX];
    if (split)
        return split;
    if (unit->dwo_name.data[0] == '/' || unit->folder.len == 0)
        snprintf(path, sizeof(path), "%.*s", STR_FMT(unit->dwo_name));
    else
        snprintf(path, sizeof(path), "%.*s/%.*s", STR_FMT(unit->folder), STR_FMT(unit->dwo_name));
    struct dwarf_file *file;
    if (file_open(dwarf, path, &file) == 0)
        split = unit_of_file(file, unit);
    if (!split)
        symbols_note(dwarf->symbols,
                     "split debug information is missing: '%s' is not here or of another build",
                     path);
    return split;
}

struct dwarf_unit *dwarf_unit_entries(struct dwarf_unit *unit)
{
    if (!dwarf_unit_root(unit) || unit->dwo_name.len == 0)
        return unit;
    if (!unit->split_sought) {
        unit->split_sought = true;
        unit->split = split_find(unit);
    }
    return unit->split ? unit->split : unit;
}
