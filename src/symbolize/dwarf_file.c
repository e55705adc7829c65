/* The sections of a file with debug information, and the headers of its units. */
#include "symbolize/dwarf.h"

#include "symbolize/internal.h"

#include <dwarf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const section_names[DWARF_SECTIONS] = {
    [DWARF_INFO] = ".debug_info",
    [DWARF_ABBREV] = ".debug_abbrev",
    [DWARF_STR] = ".debug_str",
    [DWARF_LINE] = ".debug_line",
    [DWARF_LINE_STR] = ".debug_line_str",
    [DWARF_RANGES] = ".debug_ranges",
    [DWARF_RNGLISTS] = ".debug_rnglists",
    [DWARF_ADDR] = ".debug_addr",
    [DWARF_STR_OFFSETS] = ".debug_str_offsets",
};

void dwarf_damaged(struct dwarf *dwarf, const char *section, uint64_t offset)
{
    symbols_note(dwarf->symbols, "damaged %s at %#" PRIx64 ": what it tells of is left out",
                 section, offset);
}

void dwarf_file_sections(struct dwarf_file *file)
{
    if (file->sections_read)
        return;
    file->sections_read = true;
    for (size_t i = 0; i < DWARF_SECTIONS; i++) {
        char name[64];
        const char *problem = NULL;
        snprintf(name, sizeof(name), "%s%s", section_names[i], file->split ? ".dwo" : "");
        file->sections[i] = elf_file_bytes(file->elf, name, &problem);
        if (problem)
            symbols_note(file->dwarf->symbols, "%s cannot be used: %s", name, problem);
    }
}

/* False at the end or when the header makes no sense. */
static bool unit_header(struct dwarf_file *file, uint64_t offset, struct dwarf_unit *ret)
{
    struct cursor cursor = cursor_at(file->sections[DWARF_INFO], offset);
    const uint8_t *start = (const uint8_t *)file->sections[DWARF_INFO].data;
    struct dwarf_unit unit = {.file = file, .offset = offset, .stmt_list = UINT64_MAX};
    uint64_t length = cursor_u32(&cursor);
    unit.offset_size = 4;
    if (length == 0xffffffff) {
        length = cursor_u64(&cursor);
        unit.offset_size = 8;
    }
    if (cursor.bad || length > cursor_left(&cursor) || length < 7)
        return false;
    cursor.end = cursor.at + length;
    unit.end = (uint64_t)(cursor.end - start);
    unit.version = cursor_u16(&cursor);
    if (unit.version >= 5) {
        unit.type = cursor_u8(&cursor);
        unit.address_size = cursor_u8(&cursor);
        unit.abbrev_offset = cursor_uint(&cursor, unit.offset_size);
        if (unit.type == DW_UT_skeleton || unit.type == DW_UT_split_compile)
            unit.dwo_id = cursor_u64(&cursor);
        else if (unit.type == DW_UT_type || unit.type == DW_UT_split_type)
            cursor_skip(&cursor, 8 + (uint64_t)unit.offset_size);
    } else {
        unit.type = DW_UT_compile;
        unit.abbrev_offset = cursor_uint(&cursor, unit.offset_size);
        unit.address_size = cursor_u8(&cursor);
    }
    unit.entries = (uint64_t)(cursor.at - start);
    /* A unit of a kind that we do not know is passed over, its neighbours are read. */
    if (cursor.bad || unit.version < 2 || unit.version > 5 ||
        (unit.address_size != 4 && unit.address_size != 8))
        unit.entries = unit.end;
    *ret = unit;
    return true;
}

int dwarf_file_units(struct dwarf_file *file)
{
    uint64_t offset = 0;
    dwarf_file_sections(file);
    while (offset < file->sections[DWARF_INFO].len) {
        struct dwarf_unit unit;
        if (file->units.len >= DWARF_UNITS_MAX) {
            symbols_note(file->dwarf->symbols, "only the first %d compile units are read",
                         DWARF_UNITS_MAX);
            return 0;
        }
        if (!unit_header(file, offset, &unit)) {
            dwarf_damaged(file->dwarf, ".debug_info", offset);
            return 0;
        }
        if (VEC_PUSH(&file->units, unit) < 0)
            return -ENOMEM;
        offset = unit.end;
    }
    return 0;
}

struct dwarf_unit *dwarf_file_unit(struct dwarf_file *file, uint64_t offset)
{
    size_t low = 0;
    size_t high = file->units.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (file->units.data[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    struct dwarf_unit *unit = low > 0 ? &file->units.data[low - 1] : NULL;
    return unit && offset >= unit->entries && offset < unit->end ? unit : NULL;
}

void dwarf_file_deinit(struct dwarf_file *file)
{
    for (size_t i = 0; i < file->units.len; i++) {
        struct dwarf_unit *unit = &file->units.data[i];
        VEC_FREE(&unit->scopes);
        VEC_FREE(&unit->nests);
        range_map_deinit(&unit->scope_map);
        map_u64_deinit(&unit->concrete);
    }
    VEC_FREE(&file->units);
    for (size_t i = 0; i < file->abbrev_tables.len; i++)
        dwarf_abbrevs_free(file->abbrev_tables.data[i].abbrevs);
    VEC_FREE(&file->abbrev_tables);
    for (size_t i = 0; i < file->line_tables.len; i++)
        dwarf_lines_free(file->line_tables.data[i].lines);
    VEC_FREE(&file->line_tables);
    map_u64_deinit(&file->abbrevs);
    map_u64_deinit(&file->lines);
    elf_file_close(&file->owned);
}

struct dwarf_file *dwarf_alternate(struct dwarf *dwarf)
{
    struct dwarf_file *file = &dwarf->alternate;
    if (!dwarf->alternate_sought) {
        dwarf->alternate_sought = true;
        if (debug_file_alternate(dwarf->symbols, dwarf->main.elf, &file->owned) < 0)
            return NULL;
        file->dwarf = dwarf;
        file->elf = &file->owned;
        if (dwarf_file_units(file) < 0)
            return NULL;
    }
    return file->units.len > 0 ? file : NULL;
}
