/* Abbreviation tables: which attributes the entries with a code have. */
#include "symbolize/dwarf.h"

#include "symbolize/internal.h"

#include <dwarf.h>
#include <errno.h>

static bool attributes_read(const struct dwarf_unit *unit, struct cursor *cursor,
                            struct dwarf_abbrevs *abbrevs, struct dwarf_abbrev *abbrev)
{
    uint64_t size = 0;
    abbrev->first = (uint32_t)abbrevs->attributes.len;
    for (;;) {
        uint64_t name = cursor_uleb(cursor);
        uint64_t form = cursor_uleb(cursor);
        struct dwarf_attribute attribute = {(uint16_t)name, (uint16_t)form, 0, 0};
        if (form == DW_FORM_implicit_const)
            attribute.implicit = (int32_t)cursor_sleb(cursor);
        if (cursor->bad || name > UINT16_MAX || form > UINT16_MAX)
            return false;
        if (name == 0 && form == 0)
            break;
        if (abbrev->attribute_count >= DWARF_ABBREV_ATTRIBUTES_MAX)
            return false;
        attribute.size = dwarf_form_size(unit, attribute.form);
        if (attribute.size == DWARF_SIZE_VARIES)
            size = UINT32_MAX;
        else if (size != UINT32_MAX)
            size += attribute.size;
        abbrev->sibling = abbrev->sibling || name == DW_AT_sibling;
        if (VEC_PUSH(&abbrevs->attributes, attribute) < 0)
            return false;
        abbrev->attribute_count++;
    }
    abbrev->fixed_size = (uint32_t)size;
    return true;
}

enum step { STEP_ROW, STEP_END, STEP_DAMAGED };

static enum step abbrev_read(struct dwarf_unit *unit, struct cursor *cursor,
                             struct dwarf_abbrevs *abbrevs, struct dwarf_abbrev *ret)
{
    struct dwarf *dwarf = unit->file->dwarf;
    struct dwarf_abbrev abbrev = {.code = cursor_uleb(cursor)};
    if (abbrev.code == 0)
        return cursor->bad ? STEP_DAMAGED : STEP_END;
    abbrev.tag = (uint16_t)cursor_uleb(cursor);
    abbrev.children = cursor_u8(cursor) != 0;
    if (!attributes_read(unit, cursor, abbrevs, &abbrev) ||
        dwarf->budget_abbrevs < abbrev.attribute_count + 1u)
        return STEP_DAMAGED;
    dwarf->budget_abbrevs -= abbrev.attribute_count + 1u;
    *ret = abbrev;
    return STEP_ROW;
}

static bool abbrevs_read(struct dwarf_unit *unit, struct dwarf_abbrevs *abbrevs)
{
    struct cursor cursor = cursor_at(unit->file->sections[DWARF_ABBREV], unit->abbrev_offset);
    enum step step = STEP_END;
    abbrevs->in_order = true;
    while (cursor_left(&cursor) > 0) {
        struct dwarf_abbrev abbrev;
        step = abbrev_read(unit, &cursor, abbrevs, &abbrev);
        if (step != STEP_ROW)
            break;
        abbrevs->in_order = abbrevs->in_order && abbrev.code == abbrevs->rows.len + 1;
        if (VEC_PUSH(&abbrevs->rows, abbrev) < 0)
            return false;
    }
    return step != STEP_DAMAGED && abbrevs->rows.len > 0;
}

bool dwarf_abbrevs_one(struct dwarf_unit *unit, uint64_t code, struct dwarf_abbrevs *ret)
{
    struct cursor cursor = cursor_at(unit->file->sections[DWARF_ABBREV], unit->abbrev_offset);
    struct dwarf_abbrev abbrev;
    while (cursor_left(&cursor) > 0) {
        ret->attributes.len = 0;
        if (abbrev_read(unit, &cursor, ret, &abbrev) != STEP_ROW)
            return false;
        if (abbrev.code == code)
            return VEC_PUSH(&ret->rows, abbrev) == 0;
    }
    return false;
}

static int abbrev_order(const void *a, const void *b)
{
    const struct dwarf_abbrev *left = a;
    const struct dwarf_abbrev *right = b;
    return left->code < right->code ? -1 : left->code > right->code;
}

void dwarf_abbrevs_deinit(struct dwarf_abbrevs *abbrevs)
{
    VEC_FREE(&abbrevs->rows);
    VEC_FREE(&abbrevs->attributes);
}

void dwarf_abbrevs_free(struct dwarf_abbrevs *abbrevs)
{
    if (abbrevs)
        dwarf_abbrevs_deinit(abbrevs);
    free(abbrevs);
}

struct dwarf_abbrevs *dwarf_abbrevs_get(struct dwarf_unit *unit)
{
    struct dwarf_file *file = unit->file;
    if (unit->abbrevs)
        return unit->abbrevs;
    /* Sizes of values depend on the unit's own, so that only alike units share a table. */
    uint64_t key = unit->abbrev_offset << 8 | (uint64_t)unit->version << 5 |
                   (uint64_t)(unit->address_size == 8) << 1 | (unit->offset_size == 8);
    uint64_t *known = map_u64_at(&file->abbrevs, key, NULL);
    if (!known)
        return NULL;
    if (*known == 0) {
        struct dwarf_abbrevs *abbrevs = calloc(1, sizeof(*abbrevs));
        if (!abbrevs || VEC_PUSH(&file->abbrev_tables, (struct dwarf_abbrevs_slot){abbrevs}) < 0) {
            free(abbrevs);
            return NULL;
        }
        *known = file->abbrev_tables.len;
        if (!abbrevs_read(unit, abbrevs)) {
            dwarf_damaged(file->dwarf, ".debug_abbrev", unit->abbrev_offset);
            VEC_FREE(&abbrevs->rows);
        } else if (!abbrevs->in_order)
            qsort(abbrevs->rows.data, abbrevs->rows.len, sizeof(struct dwarf_abbrev), abbrev_order);
    }
    struct dwarf_abbrevs *abbrevs = file->abbrev_tables.data[*known - 1].abbrevs;
    if (abbrevs->rows.len == 0)
        return NULL;
    unit->abbrevs = abbrevs;
    return abbrevs;
}

const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrevs *abbrevs, uint64_t code)
{
    if (abbrevs->in_order)
        return code - 1 < abbrevs->rows.len ? &abbrevs->rows.data[code - 1] : NULL;
    struct dwarf_abbrev key = {.code = code};
    return bsearch(&key, abbrevs->rows.data, abbrevs->rows.len, sizeof(key), abbrev_order);
}
