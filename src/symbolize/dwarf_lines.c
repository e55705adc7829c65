/* Line tables: the header with its files, and the program that makes the rows. */
#include "symbolize/dwarf.h"

#include "symbolize/internal.h"

#include <dwarf.h>
#include <errno.h>

struct line_header {
    struct cursor program; /* behind the header */
    uint16_t version;
    uint8_t offset_size;
    uint8_t address_size;
    uint8_t minimum_length;
    uint8_t maximum_operations;
    int8_t line_base;
    uint8_t line_range;
    uint8_t opcode_base;
    uint8_t lengths[256]; /* operands of standard opcodes */
};

struct folders {
    VEC(struct str) names;
};

static bool file_add(struct dwarf *dwarf, struct dwarf_lines *lines, struct str name,
                     struct str folder)
{
    struct dwarf_file_name file = {.name = name, .folder = folder};
    if (dwarf->budget_files == 0 || lines->files.len >= DWARF_FILES_MAX)
        return false;
    dwarf->budget_files--;
    return VEC_PUSH(&lines->files, file) == 0;
}

static struct str folder_at(const struct folders *folders, uint64_t index)
{
    return index < folders->names.len ? folders->names.data[index] : (struct str){"", 0};
}

/* DWARF 2 to 4: texts that end with an empty one; folder 0 is the unit's own. */
static bool names_old(struct dwarf *dwarf, struct cursor *cursor, struct folders *folders,
                      struct dwarf_lines *lines)
{
    struct str own = {"", 0};
    if (VEC_PUSH(&folders->names, own) < 0)
        return false;
    for (;;) {
        struct str folder = cursor_text(cursor);
        if (cursor->bad || dwarf->budget_files == 0)
            return false;
        if (folder.len == 0)
            break;
        dwarf->budget_files--;
        if (VEC_PUSH(&folders->names, folder) < 0)
            return false;
    }
    lines->first_file = 1;
    for (;;) {
        struct str name = cursor_text(cursor);
        if (cursor->bad)
            return false;
        if (name.len == 0)
            return true;
        uint64_t folder = cursor_uleb(cursor);
        cursor_uleb(cursor); /* time and size, which nobody fills in */
        cursor_uleb(cursor);
        if (cursor->bad || !file_add(dwarf, lines, name, folder_at(folders, folder)))
            return false;
    }
}

struct name_formats {
    struct dwarf_attribute rows[8];
    unsigned count;
};

static bool formats_read(const struct dwarf_unit *shape, struct cursor *cursor,
                         struct name_formats *ret)
{
    ret->count = cursor_u8(cursor);
    if (ret->count > ARRAY_SIZE(ret->rows))
        return false;
    for (unsigned i = 0; i < ret->count; i++) {
        uint64_t type = cursor_uleb(cursor);
        uint64_t form = cursor_uleb(cursor);
        ret->rows[i] = (struct dwarf_attribute){(uint16_t)MIN(type, 0xffffu),
                                                (uint16_t)MIN(form, 0xffffu), 0, 0};
        ret->rows[i].size = dwarf_form_size(shape, ret->rows[i].form);
    }
    return !cursor->bad;
}

/* DWARF 5: each list says first which values its entries have. */
static bool list_new(struct dwarf_unit *shape, struct cursor *cursor, struct folders *folders,
                     struct dwarf_lines *lines)
{
    struct dwarf *dwarf = shape->file->dwarf;
    struct name_formats formats;
    if (!formats_read(shape, cursor, &formats))
        return false;
    uint64_t count = cursor_uleb(cursor);
    if (count > 0 && formats.count == 0)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        struct str name = {"", 0};
        uint64_t folder = 0;
        for (unsigned k = 0; k < formats.count; k++) {
            struct dwarf_value value;
            if (!dwarf_value_read(shape, cursor, &formats.rows[k], &value))
                return false;
            if (formats.rows[k].name == DW_LNCT_path)
                name = dwarf_value_text(shape, &value);
            else if (formats.rows[k].name == DW_LNCT_directory_index)
                dwarf_value_number(&value, &folder);
        }
        if (lines) {
            if (!file_add(dwarf, lines, name, folder_at(folders, folder)))
                return false;
        } else {
            if (dwarf->budget_files == 0 || VEC_PUSH(&folders->names, name) < 0)
                return false;
            dwarf->budget_files--;
        }
    }
    return true;
}

static bool header_read(struct dwarf_unit *unit, struct dwarf_lines *lines, struct line_header *ret)
{
    struct cursor cursor = cursor_at(unit->file->sections[DWARF_LINE], unit->stmt_list);
    uint64_t length = cursor_u32(&cursor);
    ret->offset_size = 4;
    if (length == 0xffffffff) {
        length = cursor_u64(&cursor);
        ret->offset_size = 8;
    }
    if (cursor.bad || length > cursor_left(&cursor))
        return false;
    cursor.end = cursor.at + length;
    ret->version = cursor_u16(&cursor);
    ret->address_size = unit->address_size;
    if (ret->version < 2 || ret->version > 5)
        return false;
    if (ret->version >= 5) {
        ret->address_size = cursor_u8(&cursor);
        cursor_u8(&cursor); /* segment selectors: nobody has them */
    }
    uint64_t header = cursor_uint(&cursor, ret->offset_size);
    if (cursor.bad || header > cursor_left(&cursor) ||
        (ret->address_size != 4 && ret->address_size != 8))
        return false;
    ret->program = cursor;
    cursor_skip(&ret->program, header);
    ret->minimum_length = cursor_u8(&cursor);
    ret->maximum_operations = ret->version >= 4 ? cursor_u8(&cursor) : 1;
    cursor_u8(&cursor); /* default_is_stmt */
    ret->line_base = (int8_t)cursor_u8(&cursor);
    ret->line_range = cursor_u8(&cursor);
    ret->opcode_base = cursor_u8(&cursor);
    for (unsigned i = 1; i < ret->opcode_base; i++)
        ret->lengths[i] = cursor_u8(&cursor);
    if (cursor.bad || ret->line_range == 0 || ret->opcode_base == 0)
        return false;
    struct folders folders = {0};
    bool fine;
    if (ret->version >= 5) {
        struct dwarf_unit shape = *unit; /* forms here are those of the table, not the unit */
        shape.version = ret->version;
        shape.offset_size = ret->offset_size;
        shape.address_size = ret->address_size;
        fine = list_new(&shape, &cursor, &folders, NULL) &&
               list_new(&shape, &cursor, &folders, lines);
    } else
        fine = names_old(unit->file->dwarf, &cursor, &folders, lines);
    VEC_FREE(&folders.names);
    return fine;
}

struct line_state {
    uint64_t address;
    uint64_t file;
    uint64_t line;
    size_t first; /* row of this sequence */
    bool in_order;
};

static int row_order(const void *a, const void *b)
{
    const struct dwarf_row *left = a;
    const struct dwarf_row *right = b;
    return left->address < right->address ? -1 : left->address > right->address;
}

static int row_add(struct dwarf_unit *unit, struct dwarf_lines *lines, struct line_state *state)
{
    struct dwarf *dwarf = unit->file->dwarf;
    struct dwarf_row row = {state->address, (uint32_t)MIN(state->line, UINT32_MAX),
                            (uint32_t)MIN(state->file, UINT32_MAX)};
    if (lines->rows.len > state->first) {
        struct dwarf_row *last = &lines->rows.data[lines->rows.len - 1];
        if (last->address == row.address) { /* the last of equal ones counts */
            *last = row;
            return 0;
        }
        state->in_order = state->in_order && last->address < row.address;
    }
    if (dwarf->budget_rows == 0)
        return -E2BIG;
    dwarf->budget_rows--;
    return VEC_PUSH(&lines->rows, row);
}

static int sequence_end(struct dwarf_unit *unit, struct dwarf_lines *lines,
                        struct line_state *state)
{
    size_t count = lines->rows.len - state->first;
    int r = 0;
    if (count > 0) {
        struct dwarf_row *rows = &lines->rows.data[state->first];
        if (!state->in_order)
            qsort(rows, count, sizeof(*rows), row_order);
        struct dwarf_sequence sequence = {state->first, count, state->address};
        if (rows[0].address != 0 && state->address > rows[0].address &&
            elf_file_executes(unit->file->dwarf->main.elf, rows[0].address))
            r = VEC_PUSH(&lines->sequences, sequence);
        else
            lines->rows.len = state->first; /* code that the linker dropped */
    }
    *state = (struct line_state){.file = 1, .line = 1, .first = lines->rows.len, .in_order = true};
    return r;
}

static int extended(struct dwarf_unit *unit, struct dwarf_lines *lines,
                    const struct line_header *header, struct cursor *cursor,
                    struct line_state *state)
{
    uint64_t length = cursor_uleb(cursor);
    if (cursor->bad || length > cursor_left(cursor))
        return -EBADMSG;
    if (length == 0)
        return 0;
    const uint8_t *next = cursor->at + length;
    int r = 0;
    switch (cursor_u8(cursor)) {
    case DW_LNE_end_sequence:
        r = sequence_end(unit, lines, state);
        break;
    case DW_LNE_set_address:
        state->address = cursor_uint(cursor, length - 1 == 4 ? 4 : header->address_size);
        break;
    case DW_LNE_define_file: {
        struct str name = cursor_text(cursor);
        if (cursor->bad || !file_add(unit->file->dwarf, lines, name, (struct str){"", 0}))
            return -EBADMSG;
        break;
    }
    default:
        break;
    }
    cursor->at = next;
    return r;
}

static int standard(struct dwarf_unit *unit, struct dwarf_lines *lines,
                    const struct line_header *header, uint8_t opcode, struct cursor *cursor,
                    struct line_state *state)
{
    switch (opcode) {
    case DW_LNS_copy:
        return row_add(unit, lines, state);
    case DW_LNS_advance_pc:
        state->address += cursor_uleb(cursor) * header->minimum_length;
        return 0;
    case DW_LNS_advance_line:
        state->line += (uint64_t)cursor_sleb(cursor);
        return 0;
    case DW_LNS_set_file:
        state->file = cursor_uleb(cursor);
        return 0;
    case DW_LNS_const_add_pc:
        state->address += (uint64_t)((255 - header->opcode_base) / header->line_range) *
                          header->minimum_length;
        return 0;
    case DW_LNS_fixed_advance_pc:
        state->address += cursor_u16(cursor);
        return 0;
    default: /* columns, statements, and what later versions may bring */
        for (unsigned i = 0; i < header->lengths[opcode]; i++)
            cursor_uleb(cursor);
        return 0;
    }
}

static int program_run(struct dwarf_unit *unit, struct dwarf_lines *lines,
                       const struct line_header *header)
{
    struct cursor cursor = header->program;
    struct line_state state = {.file = 1, .line = 1, .in_order = true};
    while (cursor_left(&cursor) > 0) {
        uint8_t opcode = cursor_u8(&cursor);
        int r;
        if (opcode >= header->opcode_base) {
            uint8_t adjusted = (uint8_t)(opcode - header->opcode_base);
            state.address += (uint64_t)(adjusted / header->line_range) * header->minimum_length;
            state.line += (uint64_t)(int64_t)(header->line_base + adjusted % header->line_range);
            r = row_add(unit, lines, &state);
        } else if (opcode == 0)
            r = extended(unit, lines, header, &cursor, &state);
        else
            r = standard(unit, lines, header, opcode, &cursor, &state);
        if (r < 0)
            return r;
    }
    lines->rows.len = state.first; /* a sequence without an end tells nothing for sure */
    return cursor.bad ? -EBADMSG : 0;
}

static int rows_read(struct dwarf_unit *unit, struct dwarf_lines *lines,
                     const struct line_header *header)
{
    int r = program_run(unit, lines, header);
    if (r == -EBADMSG || r == -E2BIG) {
        dwarf_damaged(unit->file->dwarf, ".debug_line", unit->stmt_list);
        r = 0;
    }
    if (r < 0)
        return r;
    struct range *ranges = malloc((lines->sequences.len + 1) * sizeof(*ranges));
    if (!ranges)
        return -ENOMEM;
    for (size_t i = 0; i < lines->sequences.len; i++) {
        const struct dwarf_sequence *sequence = &lines->sequences.data[i];
        ranges[i] = (struct range){lines->rows.data[sequence->first].address, sequence->end,
                                   (uint32_t)i, (uint32_t)i};
    }
    r = range_map_build(ranges, lines->sequences.len, &lines->map);
    free(ranges);
    return r;
}

struct dwarf_lines *dwarf_unit_lines(struct dwarf_unit *unit, bool rows)
{
    struct dwarf_unit *home = unit->skeleton ? unit->skeleton : unit;
    struct dwarf_file *file = home->file;
    if (!dwarf_unit_root(home) || home->stmt_list == UINT64_MAX)
        return NULL;
    uint64_t *known = map_u64_at(&file->lines, home->stmt_list, NULL);
    if (!known)
        return NULL;
    if (*known == 0) {
        struct dwarf_lines *lines = calloc(1, sizeof(*lines));
        if (!lines || VEC_PUSH(&file->line_tables, (struct dwarf_lines_slot){lines}) < 0) {
            free(lines);
            return NULL;
        }
        *known = file->line_tables.len;
    }
    struct dwarf_lines *lines = file->line_tables.data[*known - 1].lines;
    if (lines->rows_read || (!rows && lines->files.len > 0))
        return lines;
    struct line_header header = {0};
    VEC_FREE(&lines->files);
    if (!header_read(home, lines, &header))
        dwarf_damaged(file->dwarf, ".debug_line", home->stmt_list);
    else if (rows && rows_read(home, lines, &header) < 0)
        return NULL;
    lines->rows_read = lines->rows_read || rows;
    return lines;
}

bool dwarf_lines_find(const struct dwarf_lines *lines, uint64_t vaddr, uint32_t *ret_file,
                      uint32_t *ret_line)
{
    uint32_t index = range_map_find(&lines->map, vaddr);
    if (index >= lines->sequences.len)
        return false;
    const struct dwarf_sequence *sequence = &lines->sequences.data[index];
    const struct dwarf_row *rows = &lines->rows.data[sequence->first];
    size_t low = 0;
    size_t high = sequence->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows[middle].address <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    *ret_file = rows[low - 1].file;
    *ret_line = rows[low - 1].line;
    return true;
}

struct str dwarf_lines_path(struct dwarf_unit *unit, struct dwarf_lines *lines, uint32_t file)
{
    uint32_t index = file - lines->first_file;
    if (file < lines->first_file || index >= lines->files.len)
        return (struct str){"", 0};
    struct dwarf_file_name *found = &lines->files.data[index];
    if (found->path.data || found->name.len == 0)
        return found->path.data ? found->path : (struct str){"", 0};
    struct arena *arena = &unit->file->dwarf->symbols->arena;
    struct str home = unit->skeleton ? unit->skeleton->folder : unit->folder;
    struct str folder = found->folder;
    if (folder.len > 0 && folder.data[0] == '/')
        home.len = 0; /* the folder says it all */
    if (found->name.data[0] == '/' || (home.len == 0 && folder.len == 0))
        found->path = found->name;
    else
        found->path = str_from(arena_printf(arena, "%.*s%s%.*s%s%.*s", STR_FMT(home),
                                            home.len > 0 ? "/" : "", STR_FMT(folder),
                                            folder.len > 0 ? "/" : "", STR_FMT(found->name)));
    return found->path;
}

void dwarf_lines_free(struct dwarf_lines *lines)
{
    if (!lines)
        return;
    VEC_FREE(&lines->files);
    VEC_FREE(&lines->rows);
    VEC_FREE(&lines->sequences);
    range_map_deinit(&lines->map);
    free(lines);
}
