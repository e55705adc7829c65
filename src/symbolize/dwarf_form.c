/* Values of attributes, in all the forms that DWARF 2 to 5 and GNU's extensions know. */
#include "symbolize/dwarf.h"

#include <dwarf.h>

/* The size in bytes of forms whose value is as long as it is in every entry. */
uint8_t dwarf_form_size(const struct dwarf_unit *unit, unsigned form)
{
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
        return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
        return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
        return 8;
    case DW_FORM_data16:
        return 16;
    case DW_FORM_addr:
        return unit->address_size;
    case DW_FORM_ref_addr:
        return unit->version == 2 ? unit->address_size : unit->offset_size;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
        return unit->offset_size;
    default:
        return DWARF_SIZE_VARIES;
    }
}

static bool varying_read(struct cursor *cursor, unsigned form, struct dwarf_value *ret)
{
    switch (form) {
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        ret->number = cursor_uleb(cursor);
        return !cursor->bad;
    case DW_FORM_sdata:
        ret->number = (uint64_t)cursor_sleb(cursor);
        return !cursor->bad;
    case DW_FORM_string:
        ret->text = cursor_text(cursor);
        ret->text.len = MIN(ret->text.len, (size_t)DWARF_TEXT_BYTES_MAX);
        return !cursor->bad;
    case DW_FORM_block:
    case DW_FORM_exprloc:
        return cursor_skip(cursor, cursor_uleb(cursor));
    case DW_FORM_block1:
        return cursor_skip(cursor, cursor_u8(cursor));
    case DW_FORM_block2:
        return cursor_skip(cursor, cursor_u16(cursor));
    case DW_FORM_block4:
        return cursor_skip(cursor, cursor_u32(cursor));
    default:
        return false;
    }
}

bool dwarf_value_read(const struct dwarf_unit *unit, struct cursor *cursor,
                      const struct dwarf_attribute *attribute, struct dwarf_value *ret)
{
    unsigned form = attribute->form;
    uint8_t size = attribute->size;
    if (form == DW_FORM_indirect) {
        uint64_t real = cursor_uleb(cursor);
        if (cursor->bad || real > UINT16_MAX || real == DW_FORM_indirect ||
            real == DW_FORM_implicit_const)
            return false;
        form = (unsigned)real;
        size = dwarf_form_size(unit, form);
    }
    *ret = (struct dwarf_value){.form = (uint16_t)form};
    if (form == DW_FORM_flag_present)
        ret->number = 1;
    else if (form == DW_FORM_implicit_const)
        ret->number = (uint64_t)attribute->implicit;
    else if (size == DWARF_SIZE_VARIES)
        return varying_read(cursor, form, ret);
    else if (size > 8)
        return cursor_skip(cursor, size);
    else
        ret->number = cursor_uint(cursor, size);
    return !cursor->bad;
}

static struct str section_text(struct str section, uint64_t offset)
{
    if (offset >= section.len)
        return (struct str){"", 0};
    const char *start = section.data + offset;
    size_t most = MIN(section.len - offset, (size_t)DWARF_TEXT_BYTES_MAX);
    return (struct str){start, strnlen(start, most)};
}

/* An entry of a table of offsets or addresses that starts at `base`. */
static bool table_entry(struct str section, uint64_t base, uint64_t index, unsigned size,
                        uint64_t *ret)
{
    if (index > section.len / size || base > section.len)
        return false;
    struct cursor cursor = cursor_at(section, base);
    if (!cursor_skip(&cursor, index * size))
        return false;
    *ret = cursor_uint(&cursor, size);
    return !cursor.bad;
}

struct str dwarf_value_text(struct dwarf_unit *unit, const struct dwarf_value *value)
{
    static const struct str none = {"", 0};
    struct dwarf_file *file = unit->file;
    struct dwarf_file *other;
    uint64_t offset;
    switch (value->form) {
    case DW_FORM_string:
        return value->text;
    case DW_FORM_strp:
        return section_text(file->sections[DWARF_STR], value->number);
    case DW_FORM_line_strp:
        return section_text(file->sections[DWARF_LINE_STR], value->number);
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_strp_sup:
        other = dwarf_alternate(file->dwarf);
        return other ? section_text(other->sections[DWARF_STR], value->number) : none;
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index:
        return table_entry(file->sections[DWARF_STR_OFFSETS], unit->str_offsets_base, value->number,
                           unit->offset_size, &offset)
                   ? section_text(file->sections[DWARF_STR], offset)
                   : none;
    default:
        return none;
    }
}

bool dwarf_value_address(struct dwarf_unit *unit, const struct dwarf_value *value, uint64_t *ret)
{
    switch (value->form) {
    case DW_FORM_addr:
        *ret = value->number;
        return true;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index: {
        /* The addresses of a split unit stand in the file that was linked. */
        struct dwarf_unit *home = unit->skeleton ? unit->skeleton : unit;
        return table_entry(home->file->sections[DWARF_ADDR], home->addr_base, value->number,
                           unit->address_size, ret);
    }
    default:
        return false;
    }
}

bool dwarf_value_number(const struct dwarf_value *value, uint64_t *ret)
{
    switch (value->form) {
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_udata:
    case DW_FORM_sdata:
    case DW_FORM_implicit_const:
    case DW_FORM_sec_offset:
    case DW_FORM_rnglistx:
        *ret = value->number;
        return true;
    default:
        return false;
    }
}

bool dwarf_value_reference(struct dwarf_unit *unit, const struct dwarf_value *value,
                           bool *ret_alternate, uint64_t *ret)
{
    *ret_alternate = false;
    switch (value->form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
        if (value->number > unit->end - unit->offset)
            return false;
        *ret = unit->offset + value->number;
        return true;
    case DW_FORM_ref_addr:
        *ret = value->number;
        return true;
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
        *ret_alternate = true;
        *ret = value->number;
        return true;
    default:
        return false;
    }
}
