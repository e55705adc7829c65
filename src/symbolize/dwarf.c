/* The symbolizer for DWARF: which unit an address is in, which functions, which lines. */
#include "symbolize/dwarf.h"

#include "symbolize/internal.h"
#include "symbolize/symbol_table.h"

#include <dwarf.h>
#include <errno.h>

struct unit_index {
    struct dwarf *dwarf;
    VEC(struct range) ranges;
    uint32_t unit;
    bool any;
};

static int unit_range(void *opaque, uint64_t start, uint64_t end)
{
    struct unit_index *index = opaque;
    struct range range = {start, end, index->unit, 0};
    index->any = true;
    return VEC_PUSH(&index->ranges, range);
}

/* A unit that does not say where its code is: its functions do. */
static int unit_by_functions(struct unit_index *index, struct dwarf_unit *unit)
{
    struct dwarf_unit *entries = dwarf_unit_entries(unit);
    int r = dwarf_unit_walk(entries);
    const struct range_map *map = &entries->scope_map;
    for (size_t i = 0; i + 1 < map->len && r == 0; i++)
        if (map->values[i] != (uint32_t)RANGE_MAP_NONE)
            r = unit_range(index, map->starts[i], map->starts[i + 1]);
    return r;
}

static int unit_index_add(struct unit_index *index, struct dwarf_unit *unit)
{
    struct dwarf_wanted root[] = {
        {.name = DW_AT_low_pc}, {.name = DW_AT_high_pc}, {.name = DW_AT_ranges}};
    if (unit->type != DW_UT_compile && unit->type != DW_UT_skeleton)
        return 0;
    if (!dwarf_unit_root(unit))
        return 0;
    unsigned tag = dwarf_root_read(unit, root, ARRAY_SIZE(root));
    if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit)
        return 0;
    index->any = false;
    int r = dwarf_pcs_read(unit, &root[0].value, &root[1].value, &root[2].value, unit_range, index);
    if (r == 0 && !index->any && !root[1].value.form && !root[2].value.form)
        r = unit_by_functions(index, unit);
    return r == -E2BIG ? 0 : r;
}

static int units_index(struct dwarf *dwarf)
{
    struct unit_index index = {.dwarf = dwarf};
    int r = 0;
    for (size_t i = 0; i < dwarf->main.units.len && r == 0; i++) {
        index.unit = (uint32_t)i;
        r = unit_index_add(&index, &dwarf->main.units.data[i]);
    }
    if (r == 0)
        r = range_map_build(index.ranges.data, index.ranges.len, &dwarf->units);
    VEC_FREE(&index.ranges);
    return r;
}

static void dwarf_close(void *state)
{
    struct dwarf *dwarf = state;
    if (!dwarf)
        return;
    for (size_t i = 0; i < dwarf->splits.len; i++) {
        dwarf_file_deinit(dwarf->splits.data[i].file);
        free(dwarf->splits.data[i].file);
    }
    VEC_FREE(&dwarf->splits);
    dwarf_file_deinit(&dwarf->alternate);
    dwarf_file_deinit(&dwarf->main);
    range_map_deinit(&dwarf->units);
    map_u64_deinit(&dwarf->inlined);
    free(dwarf);
}

static int dwarf_open(struct symbols *symbols, void **ret_state, struct why *why)
{
    struct elf_file *elf = NULL;
    if (symbols->elf.elf && elf_file_has(&symbols->elf, ".debug_info"))
        elf = &symbols->elf;
    else if (symbols->debug.elf && elf_file_has(&symbols->debug, ".debug_info"))
        elf = &symbols->debug;
    if (!symbols->lines || !elf)
        return 0;
    if (elf->header.e_type == ET_REL) {
        symbols_note(symbols, "not linked: its debug information has no addresses yet");
        return 0;
    }
    struct dwarf *dwarf = calloc(1, sizeof(*dwarf));
    if (!dwarf)
        return why_nomem(why);
    dwarf->symbols = symbols;
    dwarf->budget_abbrevs = DWARF_BUDGET_ABBREVS;
    dwarf->budget_ranges = DWARF_BUDGET_RANGES;
    dwarf->budget_rows = DWARF_BUDGET_ROWS;
    dwarf->budget_files = DWARF_BUDGET_FILES;
    dwarf->main = (struct dwarf_file){.dwarf = dwarf, .elf = elf, .owned = ELF_FILE_NONE};
    dwarf->alternate.owned = ELF_FILE_NONE;
    int r = dwarf_file_units(&dwarf->main);
    if (r == 0)
        r = units_index(dwarf);
    if (r < 0) {
        dwarf_close(dwarf);
        return why_nomem(why);
    }
    if (dwarf->units.len == 0) {
        symbols_note(symbols, "its debug information tells of no code");
        dwarf_close(dwarf);
        return 0;
    }
    symbols->source = elf == &symbols->elf ? "DWARF"
                                           : arena_printf(&symbols->arena, "separate debug file %s",
                                                          symbols->debug_path);
    *ret_state = dwarf;
    return 0;
}

/* Linkage names as the linker has them: of a clone, DWARF only knows the original's. */
static void function_symbol(struct symbols *symbols, const struct dwarf_scope *scope,
                            struct symbol_function *function)
{
    const struct symbol_row *row = symbols->table ? symbol_table_find(symbols->table, scope->start)
                                                  : NULL;
    if (!row || row->start != scope->start)
        return;
    struct str name = symbol_table_name(symbols->table, row);
    struct str base = symbol_base_name(name);
    if (function->linkage.len == 0 || str_eq(base, function->linkage)) {
        /* Without a linkage name C has its own name; of C++'s, the symbol knows arguments. */
        if (function->linkage.len == 0 && str_starts(name, "_Z"))
            function->name = symbol_pretty(&symbols->arena, name);
        function->linkage = name;
    }
}

static uint32_t function_make(struct dwarf *dwarf, struct dwarf_unit *unit,
                              const struct dwarf_scope *scope)
{
    struct symbols *symbols = dwarf->symbols;
    struct dwarf_named named;
    dwarf_name(unit, scope->entry, &named);
    struct symbol_function function = {
        .name = named.linkage.len > 0 ? symbol_pretty(&symbols->arena, named.linkage) : named.name,
        .linkage = named.linkage,
        .file = named.file,
        .line = named.line,
    };
    /* Go and C write plain names, and newer compilers mangle in ways that cannot be undone
     * yet: what is still as the linker knows it is better as DWARF has it. */
    if (named.name.len > 0 && (named.linkage.len == 0 || str_eq(function.name, named.linkage)))
        function.name = dwarf_name_qualified(&named);
    if (!scope->inlined) {
        function.start = scope->start;
        function.size_bytes = scope->size_bytes;
        function_symbol(symbols, scope, &function);
    }
    if (function.name.len == 0)
        function.name = function.linkage;
    return symbols_function_add(symbols, &function);
}

/* The function of a scope; one that is inlined here and stands alone elsewhere in the unit is
 * the same function. */
static uint32_t scope_function(struct dwarf *dwarf, struct dwarf_unit *unit, uint32_t index)
{
    struct dwarf_scope *scope = &unit->scopes.data[index];
    if (scope->function)
        return scope->function - 1;
    uint32_t function;
    uint64_t *concrete = scope->inlined && scope->origin && !scope->origin_alternate
                             ? map_u64_find(&unit->concrete, scope->origin)
                             : NULL;
    if (concrete)
        function = scope_function(dwarf, unit, (uint32_t)*concrete - 1);
    else if (scope->inlined && scope->origin && unit->file == &dwarf->main) {
        uint64_t key = scope->origin << 1 | scope->origin_alternate;
        uint64_t *known = map_u64_find(&dwarf->inlined, key);
        function = known ? (uint32_t)*known - 1 : function_make(dwarf, unit, scope);
        known = map_u64_at(&dwarf->inlined, key, NULL);
        if (known && function != UINT32_MAX)
            *known = (uint64_t)function + 1;
    } else
        function = function_make(dwarf, unit, scope);
    scope->function = function + 1;
    return function;
}

static size_t dwarf_at(struct symbols *symbols, void *state, uint64_t vaddr, struct symbol_hit *ret,
                       size_t max)
{
    struct dwarf *dwarf = state;
    uint32_t index = range_map_find(&dwarf->units, vaddr);
    if (index >= dwarf->main.units.len || max == 0)
        return 0;
    struct dwarf_unit *unit = &dwarf->main.units.data[index];
    struct dwarf_unit *entries = dwarf_unit_entries(unit);
    if (dwarf_unit_walk(entries) < 0)
        return 0;
    struct dwarf_lines *lines = dwarf_unit_lines(unit, true);
    uint32_t file = 0;
    uint32_t line = 0;
    bool placed = lines && dwarf_lines_find(lines, vaddr, &file, &line);
    uint32_t at = range_map_find(&entries->scope_map, vaddr);
    size_t count = 0;
    while (at < entries->scopes.len) {
        const struct dwarf_scope *scope = &entries->scopes.data[at];
        /* Too deep: the outermost is kept, since it owns the code. */
        size_t slot = MIN(count, max - 1);
        ret[slot] = (struct symbol_hit){
            .function = scope_function(dwarf, entries, at),
            .file = placed ? dwarf_lines_path(unit, lines, file) : (struct str){"", 0},
            .line = placed ? line : 0,
        };
        if (ret[slot].function == UINT32_MAX)
            return 0;
        count = slot + 1;
        placed = lines != NULL && (scope->call_file | scope->call_line) != 0;
        file = scope->call_file;
        line = scope->call_line;
        at = scope->parent;
    }
    if (count > 0 || !placed)
        return count;
    /* Lines without a function, as assemblers write them: the symbol table has the name. */
    if (!symbols->table || symbol_table_at(symbols, symbols->table, vaddr, ret, max) == 0)
        return 0;
    ret[0].file = dwarf_lines_path(unit, lines, file);
    ret[0].line = line;
    return 1;
}

const struct symbolizer symbolizer_dwarf = {
    .name = "dwarf",
    .kinds = 1u << IMAGE_FILE | 1u << IMAGE_VDSO,
    .open = dwarf_open,
    .at = dwarf_at,
    .close = dwarf_close,
};
