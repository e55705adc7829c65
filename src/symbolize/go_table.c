/* The symbolizer for Go programs: .gopclntab, which the runtime itself needs to walk stacks and
 * which therefore survives every stripping. Go 1.16 and later. */
#include "symbolize/internal.h"

#include "symbolize/bytes.h"

#include <errno.h>
#include <stdlib.h>

enum { GO_FUNCTIONS_MAX = 1 << 24, GO_TEXT_BYTES_MAX = 1 << 16, GO_STEPS_MAX = 1 << 20 };

struct go_table {
    struct str bytes;
    unsigned version;      /* 116, 118 or 120: when this form came */
    unsigned pointer_size; /* of the program */
    unsigned quantum;      /* instructions are multiples of it */
    uint64_t count;
    uint64_t text;  /* address that functions are counted from */
    uint64_t names; /* where the parts begin */
    uint64_t units;
    uint64_t files;
    uint64_t steps;
    uint64_t functions;
    struct map_u64 shown; /* function → index of its symbol_function, plus one */
};

struct go_function {
    uint64_t start;
    uint64_t size_bytes;
    uint32_t name, file_steps, line_steps, unit, first_line;
};

static uint64_t part_uint(const struct go_table *table, uint64_t offset, unsigned size)
{
    struct cursor cursor = cursor_at(table->bytes, offset);
    return cursor_uint(&cursor, size);
}

static struct str part_text(const struct go_table *table, uint64_t offset)
{
    if (offset >= table->bytes.len)
        return (struct str){"", 0};
    const char *text = table->bytes.data + offset;
    return (struct str){text,
                        strnlen(text, MIN(table->bytes.len - offset, (size_t)GO_TEXT_BYTES_MAX))};
}

/* Entry `index` of the list of functions: its address. */
static uint64_t function_start(const struct go_table *table, uint64_t index)
{
    unsigned size = table->version >= 118 ? 4 : table->pointer_size;
    uint64_t start = part_uint(table, table->functions + index * 2 * size, size);
    return table->version >= 118 ? table->text + start : start;
}

static bool header_read(struct symbols *symbols, struct go_table *table)
{
    struct cursor cursor = cursor_at(table->bytes, 0);
    uint32_t magic = cursor_u32(&cursor);
    cursor_skip(&cursor, 2);
    table->quantum = cursor_u8(&cursor);
    table->pointer_size = cursor_u8(&cursor);
    table->version = magic == 0xfffffff1   ? 120
                     : magic == 0xfffffff0 ? 118
                     : magic == 0xfffffffa ? 116
                                           : 0;
    if (cursor.bad || table->version == 0 || (table->pointer_size != 4 && table->pointer_size != 8))
        return false;
    table->count = cursor_uint(&cursor, table->pointer_size);
    cursor_uint(&cursor, table->pointer_size); /* how many files */
    if (table->version >= 118)
        table->text = cursor_uint(&cursor, table->pointer_size);
    uint64_t *const parts[] = {&table->names, &table->units, &table->files, &table->steps,
                               &table->functions};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        *parts[i] = cursor_uint(&cursor, table->pointer_size);
        if (*parts[i] > table->bytes.len)
            return false;
    }
    /* Newer linkers, and those of position-independent programs, leave the address out. */
    GElf_Shdr header;
    if (table->version >= 118 && !elf_file_executes(&symbols->elf, table->text) &&
        elf_file_section(&symbols->elf, ".text", &header))
        table->text = header.sh_addr;
    return !cursor.bad && table->count > 0 && table->count <= GO_FUNCTIONS_MAX &&
           table->functions + table->count * 8 <= table->bytes.len;
}

static bool function_find(const struct go_table *table, uint64_t vaddr, uint64_t *ret_index,
                          struct go_function *ret)
{
    uint64_t low = 0;
    uint64_t high = table->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (function_start(table, middle) <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    /* Behind the last entry stands the end of all code. */
    if (low == 0 || vaddr >= function_start(table, table->count))
        return false;
    *ret_index = low - 1;
    unsigned size = table->version >= 118 ? 4 : table->pointer_size;
    uint64_t at = table->functions +
                  part_uint(table, table->functions + (2 * (low - 1) + 1) * size, size);
    struct cursor cursor = cursor_at(table->bytes, at);
    struct go_function function = {.start = function_start(table, low - 1)};
    function.size_bytes = function_start(table, low) - function.start;
    cursor_uint(&cursor, size); /* its address once more */
    function.name = cursor_u32(&cursor);
    cursor_skip(&cursor, 4 + 4 + 4); /* arguments, deferred return, stack steps */
    function.file_steps = cursor_u32(&cursor);
    function.line_steps = cursor_u32(&cursor);
    cursor_u32(&cursor);
    function.unit = cursor_u32(&cursor);
    if (table->version >= 120)
        function.first_line = cursor_u32(&cursor);
    *ret = function;
    return !cursor.bad;
}

/* The value at an address in a list of steps (how much the value changes, how far it holds);
 * -1 if none. */
static int64_t steps_value(const struct go_table *table, uint32_t steps, uint64_t start,
                           uint64_t vaddr)
{
    int64_t value = -1;
    uint64_t at = start;
    if (steps == 0 || table->steps + steps >= table->bytes.len)
        return -1;
    struct cursor cursor = cursor_at(table->bytes, table->steps + steps);
    for (unsigned i = 0; i < GO_STEPS_MAX && !cursor.bad; i++) {
        uint64_t change = cursor_uleb(&cursor);
        if (change == 0 && i > 0)
            return -1;
        value += (int64_t)(change & 1 ? ~(change >> 1) : change >> 1);
        at += cursor_uleb(&cursor) * table->quantum;
        if (vaddr < at)
            return value;
    }
    return -1;
}

static struct str file_of(const struct go_table *table, const struct go_function *function,
                          uint64_t vaddr)
{
    int64_t number = steps_value(table, function->file_steps, function->start, vaddr);
    if (number < 0 || number > INT32_MAX)
        return (struct str){"", 0};
    uint64_t at = table->units + ((uint64_t)function->unit + (uint64_t)number) * 4;
    if (at + 4 > table->bytes.len)
        return (struct str){"", 0};
    return part_text(table, table->files + part_uint(table, at, 4));
}

static void go_close(void *state)
{
    struct go_table *table = state;
    if (table)
        map_u64_deinit(&table->shown);
    free(table);
}

static int go_open(struct symbols *symbols, void **ret_state, struct why *why)
{
    struct str bytes = elf_file_bytes(&symbols->elf, ".gopclntab", NULL);
    if (bytes.len == 0)
        bytes = elf_file_bytes(&symbols->elf, ".data.rel.ro.gopclntab", NULL);
    if (bytes.len == 0)
        return 0;
    struct go_table *table = calloc(1, sizeof(*table));
    if (!table)
        return why_nomem(why);
    table->bytes = bytes;
    if (!header_read(symbols, table)) {
        symbols_note(symbols, "Go's own table has a form that is not known: names may be missing");
        go_close(table);
        return 0;
    }
    symbols->source = "Go's own table";
    *ret_state = table;
    return 0;
}

static size_t go_at(struct symbols *symbols, void *state, uint64_t vaddr, struct symbol_hit *ret,
                    size_t max)
{
    struct go_table *table = state;
    struct go_function function;
    uint64_t index;
    if (max == 0 || !function_find(table, vaddr, &index, &function))
        return 0;
    struct str name = part_text(table, table->names + function.name);
    uint64_t *known = name.len > 0 ? map_u64_at(&table->shown, index, NULL) : NULL;
    if (!known)
        return 0;
    if (*known == 0) {
        struct symbol_function made = {
            .name = name,
            .linkage = name,
            .file = file_of(table, &function, function.start),
            .line = function.first_line,
            .start = function.start,
            .size_bytes = function.size_bytes,
        };
        uint32_t added = symbols_function_add(symbols, &made);
        if (added == UINT32_MAX)
            return 0;
        *known = (uint64_t)added + 1;
    }
    int64_t line = steps_value(table, function.line_steps, function.start, vaddr);
    ret[0] = (struct symbol_hit){
        .function = (uint32_t)*known - 1,
        .file = file_of(table, &function, vaddr),
        .line = line > 0 && line <= INT32_MAX ? (uint32_t)line : 0,
    };
    return 1;
}

const struct symbolizer symbolizer_go = {
    .name = "go",
    .kinds = 1u << IMAGE_FILE,
    .open = go_open,
    .at = go_at,
    .close = go_close,
};
