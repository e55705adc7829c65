/* The functions of a unit and the calls inlined into them: one walk over its entries. */
#include "symbolize/dwarf.h"

#include "symbolize/internal.h"

#include <dwarf.h>
#include <errno.h>

enum { NONE = UINT32_MAX };

/* What is read of a function or an inlined call. */
struct scope_values {
    struct dwarf_value low, high, ranges, entry, origin, specification, call_file, call_line;
    struct dwarf_value sibling;
};

struct unit_walk {
    struct dwarf_unit *unit;
    VEC(struct range) ranges;
    struct level {
        uint32_t scope; /* that entries of this depth belong to */
        uint32_t nest;
        uint64_t owner; /* nest to close at the end of this level, plus one */
    } * levels;
    unsigned depth;
    struct dwarf_scope *current; /* that ranges are being read for */
    uint32_t current_index;
    bool current_any;
};

static int scope_range(void *opaque, uint64_t start, uint64_t end)
{
    struct unit_walk *walk = opaque;
    struct range range = {start, end, walk->current_index, walk->current->depth};
    if (!walk->current_any) { /* the first range has the entry; a cold part comes later */
        walk->current->start = start;
        walk->current->size_bytes = end - start;
        walk->current_any = true;
    }
    return VEC_PUSH(&walk->ranges, range);
}

/* Passes over an entry; with `values` keeps what a function may tell. */
static bool entry_pass(struct unit_walk *walk, struct cursor *cursor,
                       const struct dwarf_abbrev *abbrev, struct scope_values *values)
{
    const struct dwarf_abbrevs *abbrevs = walk->unit->abbrevs;
    const struct dwarf_attribute *attribute = &abbrevs->attributes.data[abbrev->first];
    for (unsigned i = 0; i < abbrev->attribute_count; i++, attribute++) {
        struct dwarf_value *into = NULL;
        switch (attribute->name) {
        case DW_AT_low_pc:
            into = &values->low;
            break;
        case DW_AT_high_pc:
            into = &values->high;
            break;
        case DW_AT_ranges:
            into = &values->ranges;
            break;
        case DW_AT_entry_pc:
            into = &values->entry;
            break;
        case DW_AT_abstract_origin:
            into = &values->origin;
            break;
        case DW_AT_specification:
            into = &values->specification;
            break;
        case DW_AT_call_file:
            into = &values->call_file;
            break;
        case DW_AT_call_line:
            into = &values->call_line;
            break;
        case DW_AT_sibling:
            into = &values->sibling;
            break;
        default:
            break;
        }
        struct dwarf_value ignored;
        if (!into && attribute->size != DWARF_SIZE_VARIES) {
            if (!cursor_skip(cursor, attribute->size))
                return false;
        } else if (!dwarf_value_read(walk->unit, cursor, attribute, into ? into : &ignored))
            return false;
    }
    return true;
}

static bool reference(struct dwarf_unit *unit, const struct dwarf_value *value,
                      struct dwarf_scope *scope)
{
    return value->form &&
           dwarf_value_reference(unit, value, &scope->origin_alternate, &scope->origin);
}

/* Adds a function or inlined call that has code: its index, NONE, or -ENOMEM as `ret`. */
static int scope_add(struct unit_walk *walk, unsigned tag, uint64_t entry,
                     const struct scope_values *values, uint32_t *ret)
{
    struct dwarf_unit *unit = walk->unit;
    const struct level *level = &walk->levels[walk->depth];
    struct dwarf_scope scope = {.entry = entry, .parent = NONE};
    uint64_t number;
    *ret = NONE;
    if (!values->low.form && !values->ranges.form)
        return 0;
    if (tag == DW_TAG_inlined_subroutine) {
        if (level->scope == NONE)
            return 0; /* in a function without code */
        scope.inlined = true;
        scope.parent = level->scope;
        scope.depth = (uint16_t)(unit->scopes.data[level->scope].depth + 1);
        if (dwarf_value_number(&values->call_file, &number))
            scope.call_file = (uint32_t)number;
        if (dwarf_value_number(&values->call_line, &number))
            scope.call_line = (uint32_t)number;
    } else
        scope.depth = level->scope == NONE
                          ? 0 /* a function inside another hides that one's own code */
                          : (uint16_t)(unit->scopes.data[level->scope].depth + 1);
    if (!reference(unit, &values->origin, &scope))
        reference(unit, &values->specification, &scope);
    walk->current = &scope;
    walk->current_index = (uint32_t)unit->scopes.len;
    walk->current_any = false;
    int r = dwarf_pcs_read(unit, &values->low, &values->high, &values->ranges, scope_range, walk);
    if (r < 0)
        return r;
    if (!walk->current_any)
        return 0;
    if (!scope.inlined && scope.origin != 0 && !scope.origin_alternate) {
        uint64_t *known = map_u64_at(&unit->concrete, scope.origin, NULL);
        if (!known)
            return -ENOMEM;
        if (*known == 0)
            *known = unit->scopes.len + 1;
    }
    if (VEC_PUSH(&unit->scopes, scope) < 0)
        return -ENOMEM;
    *ret = (uint32_t)unit->scopes.len - 1;
    return 0;
}

static bool tag_nests(unsigned tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_interface_type || tag == DW_TAG_module;
}

/* Types whose children are never functions with code; C++ and C only: others may put a
 * method's code into its type. */
static bool tag_skips(const struct dwarf_unit *unit, unsigned tag)
{
    switch (tag) {
    case DW_TAG_enumeration_type:
    case DW_TAG_array_type:
    case DW_TAG_subroutine_type:
        return true;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
        return unit->language != DW_LANG_Rust && unit->language != DW_LANG_Swift &&
               unit->language != DW_LANG_D;
    default:
        return false;
    }
}

static int nest_add(struct unit_walk *walk, uint64_t entry, uint64_t end, uint32_t *ret)
{
    struct dwarf_nest nest = {entry, end, walk->levels[walk->depth].nest};
    if (VEC_PUSH(&walk->unit->nests, nest) < 0)
        return -ENOMEM;
    *ret = (uint32_t)walk->unit->nests.len - 1;
    return 0;
}

/* Goes down one level; false when entries are nested deeper than any compiler does. */
static bool level_enter(struct unit_walk *walk, uint32_t scope, uint32_t nest, bool owns)
{
    if (walk->depth + 1 >= DWARF_DEPTH_MAX)
        return false;
    walk->levels[++walk->depth] = (struct level){scope, nest, owns ? (uint64_t)nest + 1 : 0};
    return true;
}

static void level_leave(struct unit_walk *walk, uint64_t offset)
{
    const struct level *level = &walk->levels[walk->depth];
    if (level->owner)
        walk->unit->nests.data[level->owner - 1].end = offset;
    walk->depth--;
}

/* One entry. 1 to go on, 0 when the unit ends or makes no sense, -ENOMEM. */
static int entry_step(struct unit_walk *walk, struct cursor *cursor, const uint8_t *start)
{
    struct dwarf_unit *unit = walk->unit;
    uint64_t entry = (uint64_t)(cursor->at - start);
    uint64_t code = cursor_uleb(cursor);
    if (code == 0) {
        if (walk->depth == 0)
            return 0;
        level_leave(walk, entry);
        return walk->depth > 0;
    }
    const struct dwarf_abbrev *abbrev = dwarf_abbrev_find(unit->abbrevs, code);
    if (!abbrev)
        return -EBADMSG;
    unsigned tag = abbrev->tag;
    bool function = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
    bool nests = abbrev->children && tag_nests(tag);
    bool skips = abbrev->children && abbrev->sibling && tag_skips(unit, tag);
    struct scope_values values = {0};
    if (!function && !nests && !skips && abbrev->fixed_size != UINT32_MAX) {
        if (!cursor_skip(cursor, abbrev->fixed_size))
            return -EBADMSG;
    } else if (!entry_pass(walk, cursor, abbrev, &values))
        return -EBADMSG;
    uint32_t scope = walk->levels[walk->depth].scope;
    uint32_t nest = walk->levels[walk->depth].nest;
    int r = 0;
    if (function)
        r = scope_add(walk, tag, entry, &values, &scope);
    bool alternate;
    uint64_t sibling = 0;
    if (skips && (!dwarf_value_reference(unit, &values.sibling, &alternate, &sibling) ||
                  alternate || sibling <= (uint64_t)(cursor->at - start) || sibling > unit->end))
        sibling = 0;
    if (r == 0 && nests)
        r = nest_add(walk, entry, sibling ? sibling : unit->end, &nest);
    if (r < 0)
        return r;
    if (sibling) {
        cursor->at = start + sibling;
        return 1;
    }
    if (tag == DW_TAG_inlined_subroutine && scope == NONE)
        scope = walk->levels[walk->depth].scope; /* what is inside belongs to the caller */
    if (abbrev->children && !level_enter(walk, scope, nest, nests))
        return -EBADMSG;
    return walk->depth > 0; /* a root without children is all there is */
}

static int entries_walk(struct unit_walk *walk)
{
    struct dwarf_unit *unit = walk->unit;
    struct str info = unit->file->sections[DWARF_INFO];
    const uint8_t *start = (const uint8_t *)info.data;
    struct cursor cursor = cursor_at(info, unit->entries);
    cursor.end = start + unit->end;
    walk->levels[0] = (struct level){NONE, NONE, 0};
    int r = 1;
    while (r > 0 && cursor_left(&cursor) > 0) {
        const uint8_t *at = cursor.at;
        r = entry_step(walk, &cursor, start);
        if (r == -EBADMSG || r == -E2BIG) {
            dwarf_damaged(unit->file->dwarf, ".debug_info", (uint64_t)(at - start));
            r = 0; /* what was read before it holds */
        }
    }
    return r < 0 ? r : 0;
}

int dwarf_unit_walk(struct dwarf_unit *unit)
{
    if (unit->walked)
        return 0;
    unit->walked = true;
    if (!dwarf_unit_root(unit) || !dwarf_abbrevs_get(unit))
        return 0;
    struct unit_walk walk = {.unit = unit};
    walk.levels = calloc(DWARF_DEPTH_MAX, sizeof(*walk.levels));
    int r = walk.levels ? entries_walk(&walk) : -ENOMEM;
    if (r == 0)
        r = range_map_build(walk.ranges.data, walk.ranges.len, &unit->scope_map);
    VEC_FREE(&walk.ranges);
    free(walk.levels);
    return r;
}
