/* What a function is called: an entry says it itself, or is a copy of one that does. */
#include "symbolize/dwarf.h"

#include "symbolize/internal.h"

#include <dwarf.h>

enum {
    N_NAME,
    N_LINKAGE,
    N_OLD_LINKAGE,
    N_FILE,
    N_LINE,
    N_ORIGIN,
    N_SPECIFICATION,
    N_WANTED,
};

/* The innermost namespace or class around an offset, or UINT32_MAX. Nests are in the order of
 * their offsets, so that the last one before it, or one around that, is it. */
static uint32_t nest_around(const struct dwarf_unit *unit, uint64_t entry)
{
    size_t low = 0;
    size_t high = unit->nests.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (unit->nests.data[middle].entry < entry)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t at = low > 0 ? (uint32_t)low - 1 : UINT32_MAX;
    for (unsigned hops = 0; at != UINT32_MAX && hops < DWARF_DEPTH_MAX; hops++) {
        if (entry < unit->nests.data[at].end)
            return at;
        at = unit->nests.data[at].parent;
    }
    return UINT32_MAX;
}

static bool nested_names(unsigned language)
{
    return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 ||
           language == DW_LANG_C_plus_plus_11 || language == DW_LANG_C_plus_plus_14 ||
           language == DW_LANG_Rust || language == 0x2a /* C++17 */ || language == 0x2b;
}

/* "space::Class::name": for functions whose linkage name the compiler did not write down. */
struct str dwarf_name_qualified(const struct dwarf_named *named)
{
    struct dwarf_unit *unit = named->unit;
    struct arena *arena = &unit->file->dwarf->symbols->arena;
    struct str name = named->name;
    if (!nested_names(unit->language) || dwarf_unit_walk(unit) < 0)
        return name;
    uint32_t at = nest_around(unit, named->entry);
    for (unsigned hops = 0; at != UINT32_MAX && hops < DWARF_HOPS_MAX; hops++) {
        const struct dwarf_nest *nest = &unit->nests.data[at];
        struct dwarf_wanted wanted[] = {{.name = DW_AT_name}};
        unsigned tag = dwarf_entry_read(unit, nest->entry, wanted, 1);
        struct str outer = dwarf_value_text(unit, &wanted[0].value);
        if (outer.len == 0)
            outer = tag == DW_TAG_namespace ? STR("(anonymous namespace)") : STR("(anonymous)");
        name = str_from(arena_printf(arena, "%.*s::%.*s", STR_FMT(outer), STR_FMT(name)));
        at = nest->parent;
    }
    return name;
}

static void place_read(struct dwarf_unit *unit, const struct dwarf_wanted *wanted,
                       struct dwarf_named *named)
{
    uint64_t number;
    if (named->line == 0 && dwarf_value_number(&wanted[N_LINE].value, &number))
        named->line = (uint32_t)number;
    if (named->file.len == 0 && dwarf_value_number(&wanted[N_FILE].value, &number)) {
        struct dwarf_lines *lines = dwarf_unit_lines(unit, false);
        if (lines)
            named->file = dwarf_lines_path(unit, lines, (uint32_t)number);
    }
}

void dwarf_name(struct dwarf_unit *unit, uint64_t entry, struct dwarf_named *ret)
{
    *ret = (struct dwarf_named){.unit = unit, .entry = entry};
    for (unsigned hops = 0; unit && hops < DWARF_HOPS_MAX; hops++) {
        struct dwarf_wanted wanted[N_WANTED] = {
            [N_NAME] = {.name = DW_AT_name},
            [N_LINKAGE] = {.name = DW_AT_linkage_name},
            [N_OLD_LINKAGE] = {.name = DW_AT_MIPS_linkage_name},
            [N_FILE] = {.name = DW_AT_decl_file},
            [N_LINE] = {.name = DW_AT_decl_line},
            [N_ORIGIN] = {.name = DW_AT_abstract_origin},
            [N_SPECIFICATION] = {.name = DW_AT_specification},
        };
        if (!dwarf_unit_root(unit) || dwarf_entry_read(unit, entry, wanted, N_WANTED) == 0)
            break;
        if (ret->linkage.len == 0)
            ret->linkage = dwarf_value_text(unit, wanted[N_LINKAGE].value.form
                                                      ? &wanted[N_LINKAGE].value
                                                      : &wanted[N_OLD_LINKAGE].value);
        struct str name = dwarf_value_text(unit, &wanted[N_NAME].value);
        if (ret->name.len == 0 && name.len > 0) {
            ret->name = name;
            ret->unit = unit; /* a declaration stands inside its class, its definition may not */
            ret->entry = entry;
        }
        place_read(unit, wanted, ret);
        const struct dwarf_value *next = wanted[N_ORIGIN].value.form
                                             ? &wanted[N_ORIGIN].value
                                             : &wanted[N_SPECIFICATION].value;
        bool alternate;
        if (!dwarf_value_reference(unit, next, &alternate, &entry))
            break;
        struct dwarf_file *file = alternate ? dwarf_alternate(unit->file->dwarf) : unit->file;
        unit = file ? dwarf_file_unit(file, entry) : NULL;
    }
}
