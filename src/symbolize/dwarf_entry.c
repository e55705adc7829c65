/* Single entries: the root of a unit, and those that others refer to. */
#include "symbolize/dwarf.h"

#include <dwarf.h>

static unsigned entry_values(struct dwarf_unit *unit, const struct dwarf_abbrevs *abbrevs,
                             const struct dwarf_abbrev *abbrev, struct cursor *cursor,
                             struct dwarf_wanted *wanted, size_t count)
{
    for (uint16_t i = 0; i < abbrev->attribute_count; i++) {
        const struct dwarf_attribute *attribute = &abbrevs->attributes.data[abbrev->first + i];
        struct dwarf_value value;
        if (!dwarf_value_read(unit, cursor, attribute, &value))
            return 0;
        for (size_t k = 0; k < count; k++)
            if (wanted[k].name == attribute->name)
                wanted[k].value = value;
    }
    return abbrev->tag;
}

static struct cursor unit_cursor(const struct dwarf_unit *unit, uint64_t offset)
{
    struct cursor cursor = cursor_at(unit->file->sections[DWARF_INFO], offset);
    cursor.end = (const uint8_t *)unit->file->sections[DWARF_INFO].data + unit->end;
    return cursor;
}

unsigned dwarf_entry_read(struct dwarf_unit *unit, uint64_t offset, struct dwarf_wanted *wanted,
                          size_t count)
{
    struct dwarf_abbrevs *abbrevs = dwarf_abbrevs_get(unit);
    if (!abbrevs || offset < unit->entries || offset >= unit->end)
        return 0;
    struct cursor cursor = unit_cursor(unit, offset);
    const struct dwarf_abbrev *abbrev = dwarf_abbrev_find(abbrevs, cursor_uleb(&cursor));
    return abbrev ? entry_values(unit, abbrevs, abbrev, &cursor, wanted, count) : 0;
}

unsigned dwarf_root_read(struct dwarf_unit *unit, struct dwarf_wanted *wanted, size_t count)
{
    struct dwarf_abbrevs one = {0};
    unsigned tag = 0;
    if (unit->entries >= unit->end)
        return 0;
    struct cursor cursor = unit_cursor(unit, unit->entries);
    if (dwarf_abbrevs_one(unit, cursor_uleb(&cursor), &one))
        tag = entry_values(unit, &one, &one.rows.data[0], &cursor, wanted, count);
    dwarf_abbrevs_deinit(&one);
    if (tag == 0)
        dwarf_damaged(unit->file->dwarf, ".debug_info", unit->entries);
    return tag;
}

enum {
    ROOT_NAME,
    ROOT_FOLDER,
    ROOT_LINES,
    ROOT_LOW,
    ROOT_LANGUAGE,
    ROOT_STR_OFFSETS,
    ROOT_ADDR,
    ROOT_GNU_ADDR,
    ROOT_RNGLISTS,
    ROOT_GNU_RANGES,
    ROOT_DWO,
    ROOT_GNU_DWO,
    ROOT_GNU_DWO_ID,
    ROOT_WANTED,
};

/* Bases first: the texts and addresses of the same root are read through them. */
static void root_bases(struct dwarf_unit *unit, const struct dwarf_wanted *root)
{
    /* Behind the header of the table, where a split file does not say it. */
    uint64_t header = unit->offset_size == 8 ? 16 : 8;
    uint64_t number;
    unit->str_offsets_base = unit->part_str_offsets;
    unit->rnglists_base = unit->part_rnglists;
    if (unit->file->split && unit->version >= 5) {
        unit->str_offsets_base += header;
        unit->rnglists_base += unit->offset_size == 8 ? 20 : 12;
    }
    if (dwarf_value_number(&root[ROOT_STR_OFFSETS].value, &number))
        unit->str_offsets_base = number;
    if (dwarf_value_number(&root[ROOT_ADDR].value, &number) ||
        dwarf_value_number(&root[ROOT_GNU_ADDR].value, &number))
        unit->addr_base = number;
    if (dwarf_value_number(&root[ROOT_RNGLISTS].value, &number) ||
        dwarf_value_number(&root[ROOT_GNU_RANGES].value, &number))
        unit->rnglists_base = number;
    if (dwarf_value_number(&root[ROOT_LINES].value, &number))
        unit->stmt_list = number;
    if (dwarf_value_number(&root[ROOT_LANGUAGE].value, &number))
        unit->language = (uint16_t)number;
    if (dwarf_value_number(&root[ROOT_GNU_DWO_ID].value, &number))
        unit->dwo_id = number;
}

bool dwarf_unit_root(struct dwarf_unit *unit)
{
    if (unit->root_read)
        return unit->root_fine;
    unit->root_read = true;
    struct dwarf_wanted root[ROOT_WANTED] = {
        [ROOT_NAME] = {.name = DW_AT_name},
        [ROOT_FOLDER] = {.name = DW_AT_comp_dir},
        [ROOT_LINES] = {.name = DW_AT_stmt_list},
        [ROOT_LOW] = {.name = DW_AT_low_pc},
        [ROOT_LANGUAGE] = {.name = DW_AT_language},
        [ROOT_STR_OFFSETS] = {.name = DW_AT_str_offsets_base},
        [ROOT_ADDR] = {.name = DW_AT_addr_base},
        [ROOT_GNU_ADDR] = {.name = DW_AT_GNU_addr_base},
        [ROOT_RNGLISTS] = {.name = DW_AT_rnglists_base},
        [ROOT_GNU_RANGES] = {.name = DW_AT_GNU_ranges_base},
        [ROOT_DWO] = {.name = DW_AT_dwo_name},
        [ROOT_GNU_DWO] = {.name = DW_AT_GNU_dwo_name},
        [ROOT_GNU_DWO_ID] = {.name = DW_AT_GNU_dwo_id},
    };
    if (dwarf_root_read(unit, root, ROOT_WANTED) == 0)
        return false;
    unit->root_fine = true;
    root_bases(unit, root);
    unit->name = dwarf_value_text(unit, &root[ROOT_NAME].value);
    unit->folder = dwarf_value_text(unit, &root[ROOT_FOLDER].value);
    unit->dwo_name = dwarf_value_text(unit, root[ROOT_DWO].value.form ? &root[ROOT_DWO].value
                                                                      : &root[ROOT_GNU_DWO].value);
    dwarf_value_address(unit, &root[ROOT_LOW].value, &unit->low_pc);
    return true;
}
