/* Rows into sorted arrays; looked up by binary search. */
#include "analyze/embedded.h"

#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct arena *arena;
    struct why *why;
    struct map_u64 file_at; /* text id to index in files */
    VEC(struct str) files;
    VEC(struct embedded_line) lines; /* file.len is the index until the names are known */
    VEC(struct embedded_instruction) instructions;
};

static struct str keep(struct arena *arena, struct str text)
{
    return (struct str){arena_dup_len(arena, text.data, text.len), text.len};
}

static int add_line(void *context, const struct recorded_source_line *row)
{
    struct reading *reading = context;
    bool fresh;
    uint64_t *at = map_u64_at(&reading->file_at, row->file, &fresh);
    if (!at)
        return why_nomem(reading->why);
    if (fresh) {
        *at = reading->files.len;
        if (VEC_PUSH(&reading->files, STR("")) < 0)
            return why_nomem(reading->why);
    }
    struct embedded_line line = {{"", *at}, row->line, keep(reading->arena, row->text)};
    return VEC_PUSH(&reading->lines, line) < 0 ? why_nomem(reading->why) : 0;
}

static int add_file(void *context, const struct recorded_text *row)
{
    struct reading *reading = context;
    const uint64_t *at = map_u64_find(&reading->file_at, row->id);
    if (at)
        reading->files.data[*at] = keep(reading->arena, row->text);
    return 0;
}

static int add_instruction(void *context, const struct recorded_instruction *row)
{
    struct reading *reading = context;
    struct embedded_instruction instruction = {row->image, row->address, row->size,
                                               keep(reading->arena, row->text)};
    return VEC_PUSH(&reading->instructions, instruction) < 0 ? why_nomem(reading->why) : 0;
}

static int file_order(struct str a, struct str b)
{
    int order = memcmp(a.data, b.data, MIN(a.len, b.len));
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int lines_order(const void *left, const void *right)
{
    const struct embedded_line *a = left, *b = right;
    int order = file_order(a->file, b->file);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

static int code_order(const void *left, const void *right)
{
    const struct embedded_instruction *a = left, *b = right;
    if (a->image != b->image)
        return a->image < b->image ? -1 : 1;
    return (a->address > b->address) - (a->address < b->address);
}

/* Into the arena, in order. */
static int reading_keep(struct reading *reading, struct embedded *ret)
{
    size_t lines = reading->lines.len, code = reading->instructions.len;
    struct embedded embedded = {
        .lines = arena_alloc(reading->arena, (lines + 1) * sizeof(*embedded.lines)),
        .line_count = lines,
        .instructions = arena_alloc(reading->arena, (code + 1) * sizeof(*embedded.instructions)),
        .instruction_count = code,
    };
    if (!embedded.lines || !embedded.instructions || arena_failed(reading->arena))
        return -ENOMEM;
    if (lines > 0) {
        memcpy(embedded.lines, reading->lines.data, lines * sizeof(*embedded.lines));
        qsort(embedded.lines, lines, sizeof(*embedded.lines), lines_order);
    }
    if (code > 0) {
        memcpy(embedded.instructions, reading->instructions.data,
               code * sizeof(*embedded.instructions));
        qsort(embedded.instructions, code, sizeof(*embedded.instructions), code_order);
    }
    *ret = embedded;
    return 0;
}

static void reading_deinit(struct reading *reading)
{
    map_u64_deinit(&reading->file_at);
    VEC_FREE(&reading->files);
    VEC_FREE(&reading->lines);
    VEC_FREE(&reading->instructions);
}

int embedded_load(struct arena *arena, struct recording *recording, struct embedded *ret,
                  struct why *why)
{
    struct reading reading = {.arena = arena, .why = why};
    int r = recording_each_source_line(recording, add_line, &reading, why);
    if (r == 0 && reading.files.len > 0)
        r = recording_each_text(recording, add_file, &reading, why);
    if (r == 0)
        r = recording_each_instruction(recording, add_instruction, &reading, why);
    for (size_t i = 0; r == 0 && i < reading.lines.len; i++)
        reading.lines.data[i].file = reading.files.data[reading.lines.data[i].file.len];
    if (r == 0 && reading_keep(&reading, ret) < 0)
        r = why_nomem(why);
    reading_deinit(&reading);
    return r;
}

int embedded_from_memory(struct arena *arena, const struct sink_memory *memory, uint32_t image,
                         struct embedded *ret)
{
    struct reading reading = {.arena = arena};
    int r = 0;
    for (size_t i = 0; r == 0 && i < memory->source_lines.len; i++) {
        const struct memory_source_line *row = &memory->source_lines.data[i];
        struct embedded_line line = {keep(arena, intern_get(&memory->interned.texts, row->file)),
                                     row->line, keep(arena, row->text)};
        r = VEC_PUSH(&reading.lines, line);
    }
    for (size_t i = 0; r == 0 && i < memory->instructions.len; i++) {
        const struct memory_instruction *row = &memory->instructions.data[i];
        struct embedded_instruction instruction = {image, row->address, row->size,
                                                   keep(arena, row->text)};
        r = VEC_PUSH(&reading.instructions, instruction);
    }
    if (r == 0)
        r = reading_keep(&reading, ret);
    reading_deinit(&reading);
    return r;
}

const struct embedded_line *embedded_line_from(const struct embedded *embedded, struct str file,
                                               uint32_t line)
{
    struct embedded_line wanted = {.file = file, .line = line};
    size_t low = 0, high = embedded->line_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lines_order(&embedded->lines[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == embedded->line_count || !str_eq(embedded->lines[low].file, file))
        return NULL;
    return &embedded->lines[low];
}

struct str embedded_source(const struct embedded *embedded, struct str file, uint32_t line)
{
    const struct embedded_line *found = embedded_line_from(embedded, file, line);
    return found && found->line == line ? found->text : STR("");
}

const struct embedded_instruction *embedded_code_from(const struct embedded *embedded,
                                                      uint32_t image, uint64_t address)
{
    struct embedded_instruction wanted = {.image = image, .address = address};
    size_t low = 0, high = embedded->instruction_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code_order(&embedded->instructions[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == embedded->instruction_count || embedded->instructions[low].image != image)
        return NULL;
    return &embedded->instructions[low];
}
