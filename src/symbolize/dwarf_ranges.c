/* Where code lies: low and high pc, and the two kinds of range list. */
#include "symbolize/dwarf.h"

#include <dwarf.h>
#include <errno.h>

struct range_walk {
    struct dwarf_unit *unit; /* whose addresses and base count: the skeleton of a split one */
    dwarf_range_fn *fn;
    void *opaque;
    uint64_t base;
};

/* What the linker dropped stands at 0, 1 or the end of all addresses; only code counts. */
static int range_give(const struct range_walk *walk, uint64_t start, uint64_t end)
{
    struct dwarf *dwarf = walk->unit->file->dwarf;
    if (start == 0 || end <= start || !elf_file_executes(dwarf->main.elf, start))
        return 0;
    if (dwarf->budget_ranges == 0)
        return -E2BIG;
    dwarf->budget_ranges--;
    return walk->fn(walk->opaque, start, end);
}

static int old_ranges(const struct range_walk *walk, uint64_t offset)
{
    const struct dwarf_unit *unit = walk->unit;
    uint64_t base = walk->base;
    uint64_t select = unit->address_size == 8 ? UINT64_MAX : UINT32_MAX;
    struct cursor cursor = cursor_at(unit->file->sections[DWARF_RANGES], offset);
    while (cursor_left(&cursor) > 0) {
        uint64_t start = cursor_uint(&cursor, unit->address_size);
        uint64_t end = cursor_uint(&cursor, unit->address_size);
        if (cursor.bad || (start == 0 && end == 0))
            return 0;
        if (start == select) {
            base = end;
            continue;
        }
        int r = range_give(walk, base + start, base + end);
        if (r < 0)
            return r;
    }
    return 0;
}

static uint64_t indexed(const struct range_walk *walk, uint64_t index)
{
    struct dwarf_value value = {.form = DW_FORM_addrx, .number = index};
    uint64_t address = 0;
    dwarf_value_address(walk->unit, &value, &address);
    return address;
}

static int new_ranges(struct range_walk *walk, struct cursor cursor)
{
    unsigned size = walk->unit->address_size;
    while (cursor_left(&cursor) > 0) {
        uint64_t start = 0;
        uint64_t end = 0;
        switch (cursor_u8(&cursor)) {
        case DW_RLE_end_of_list:
            return 0;
        case DW_RLE_base_addressx:
            walk->base = indexed(walk, cursor_uleb(&cursor));
            continue;
        case DW_RLE_base_address:
            walk->base = cursor_uint(&cursor, size);
            continue;
        case DW_RLE_startx_endx:
            start = indexed(walk, cursor_uleb(&cursor));
            end = indexed(walk, cursor_uleb(&cursor));
            break;
        case DW_RLE_startx_length:
            start = indexed(walk, cursor_uleb(&cursor));
            end = start + cursor_uleb(&cursor);
            break;
        case DW_RLE_offset_pair:
            start = walk->base + cursor_uleb(&cursor);
            end = walk->base + cursor_uleb(&cursor);
            break;
        case DW_RLE_start_end:
            start = cursor_uint(&cursor, size);
            end = cursor_uint(&cursor, size);
            break;
        case DW_RLE_start_length:
            start = cursor_uint(&cursor, size);
            end = start + cursor_uleb(&cursor);
            break;
        default:
            return 0;
        }
        int r = cursor.bad ? 0 : range_give(walk, start, end);
        if (r < 0)
            return r;
    }
    return 0;
}

int dwarf_ranges_read(struct dwarf_unit *unit, const struct dwarf_value *ranges, dwarf_range_fn *fn,
                      void *opaque)
{
    struct dwarf_unit *home = unit->skeleton ? unit->skeleton : unit;
    struct range_walk walk = {home, fn, opaque, home->low_pc};
    uint64_t offset;
    if (!dwarf_value_number(ranges, &offset))
        return 0;
    if (unit->version < 5) {
        /* GNU's split units count from the skeleton's base. */
        return old_ranges(&walk, offset + (unit->skeleton ? home->rnglists_base : 0));
    }
    struct str section = unit->file->sections[DWARF_RNGLISTS];
    if (ranges->form == DW_FORM_rnglistx) {
        struct cursor index = cursor_at(section, unit->rnglists_base);
        if (offset > section.len / unit->offset_size ||
            !cursor_skip(&index, offset * unit->offset_size))
            return 0;
        offset = unit->rnglists_base + cursor_uint(&index, unit->offset_size);
        if (index.bad)
            return 0;
    }
    return new_ranges(&walk, cursor_at(section, offset));
}

int dwarf_pcs_read(struct dwarf_unit *unit, const struct dwarf_value *low,
                   const struct dwarf_value *high, const struct dwarf_value *ranges,
                   dwarf_range_fn *fn, void *opaque)
{
    uint64_t start;
    uint64_t end;
    if (ranges->form)
        return dwarf_ranges_read(unit, ranges, fn, opaque);
    if (!low->form || !high->form || !dwarf_value_address(unit, low, &start))
        return 0;
    if (!dwarf_value_address(unit, high, &end)) {
        if (!dwarf_value_number(high, &end))
            return 0;
        end += start;
    }
    struct range_walk walk = {unit, fn, opaque, 0};
    return range_give(&walk, start, end);
}
