/* The symbolizer for symbol tables: of the image itself, of its separate debug file, or
 * packed into it. */
#include "symbolize/elf_symbols.h"

#include "symbolize/symbol_cache.h"

#include <errno.h>
#include <stdlib.h>

enum { RANK_WEAK = 8, RANK_LOCAL = 16, RANK_NO_TYPE = 32, UNDERSCORES_MAX = 7 };

struct symtab {
    struct elf_file *file;
    Elf_Data *data;
    struct str strings;
    size_t count;
};

static bool symtab_open(struct elf_file *file, const char *name, struct symtab *ret)
{
    GElf_Shdr header;
    GElf_Shdr strings;
    Elf_Scn *scn = elf_file_section(file, name, &header);
    if (!scn || header.sh_type == SHT_NOBITS || header.sh_size == 0 ||
        header.sh_offset > file->size_bytes || header.sh_size > file->size_bytes - header.sh_offset)
        return false;
    Elf_Scn *text = elf_getscn(file->elf, header.sh_link);
    Elf_Data *data = elf_getdata(scn, NULL);
    size_t entry = gelf_fsize(file->elf, ELF_T_SYM, 1, EV_CURRENT);
    if (!text || !gelf_getshdr(text, &strings) || strings.sh_type == SHT_NOBITS || !data ||
        !data->d_buf || data->d_type != ELF_T_SYM || entry == 0)
        return false;
    Elf_Data *bytes = elf_getdata(text, NULL);
    if (!bytes || !bytes->d_buf)
        return false;
    *ret = (struct symtab){file, data, {bytes->d_buf, bytes->d_size}, data->d_size / entry};
    return true;
}

static struct str symtab_text(const struct symtab *symtab, uint64_t offset)
{
    if (offset >= symtab->strings.len)
        return (struct str){"", 0};
    const char *start = symtab->strings.data + offset;
    return (struct str){
        start, strnlen(start, MIN(symtab->strings.len - offset, (size_t)SYMBOL_NAME_BYTES_MAX))};
}

/* Without its version. */
static struct str symbol_name(const struct symtab *symtab, const GElf_Sym *symbol)
{
    struct str name = symtab_text(symtab, symbol->st_name);
    const char *version = name.len > 1 ? memchr(name.data + 1, '@', name.len - 1) : NULL;
    if (version)
        name.len = (size_t)(version - name.data);
    return name;
}

static bool section_executes(struct elf_file *file, size_t index, const bool *executes)
{
    return index > 0 && index < file->section_count && index < SHN_LORESERVE && executes[index];
}

/* Which sections hold code, by number. */
static bool *code_sections(struct elf_file *file)
{
    bool *executes = calloc(file->section_count + 1, sizeof(*executes));
    for (size_t i = 1; executes && i < file->section_count; i++) {
        GElf_Shdr header;
        Elf_Scn *scn = elf_getscn(file->elf, i);
        executes[i] = scn && gelf_getshdr(scn, &header) && (header.sh_flags & SHF_EXECINSTR);
    }
    return executes;
}

static uint32_t symbol_rank(const GElf_Sym *symbol, struct str name)
{
    uint32_t rank = 0;
    unsigned bind = GELF_ST_BIND(symbol->st_info);
    if (bind == STB_WEAK)
        rank = RANK_WEAK;
    else if (bind == STB_LOCAL)
        rank = RANK_LOCAL;
    if (GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE)
        rank += RANK_NO_TYPE;
    /* Of malloc, __malloc and __libc_malloc people know the first. */
    uint32_t underscores = 0;
    while (underscores < UNDERSCORES_MAX && underscores < name.len && name.data[underscores] == '_')
        underscores++;
    return rank + underscores;
}

/* Mapping symbols ($x, $d.3) and the compiler's own labels are no functions. */
static bool name_counts(struct str name)
{
    return name.len > 0 && name.data[0] != '$' && !str_starts(name, ".L") &&
           !str_is(name, "_end") && !str_is(name, "__end__") && !str_is(name, "_etext");
}

int elf_symbols_add(struct symbols *symbols, struct elf_file *file, const char *section,
                    struct symbol_table *table)
{
    struct symtab symtab;
    int found = 0;
    int r = 0;
    if (!elf_file_has(file, section))
        return 0;
    if (!symtab_open(file, section, &symtab)) {
        symbols_note(symbols, "damaged %s: it cannot be read", section);
        return 0;
    }
    bool *executes = code_sections(file);
    if (!executes)
        return -ENOMEM;
    for (size_t i = 1; i < symtab.count && i < SYMBOL_TABLE_ROWS_MAX && r == 0; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(symtab.data, (int)i, &symbol))
            break;
        unsigned type = GELF_ST_TYPE(symbol.st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
            !section_executes(file, symbol.st_shndx, executes))
            continue;
        struct str name = symbol_name(&symtab, &symbol);
        if (!name_counts(name))
            continue;
        r = symbol_table_add(table, symbol.st_value, symbol.st_size, name,
                             symbol_rank(&symbol, name), 0);
        found++;
    }
    free(executes);
    return r < 0 ? r : found;
}

int elf_variables_add(struct elf_file *file, const char *section, struct symbol_table *table)
{
    struct symtab symtab;
    int found = 0;
    if (!elf_file_has(file, section) || !symtab_open(file, section, &symtab))
        return 0;
    for (size_t i = 1; i < symtab.count && i < SYMBOL_TABLE_ROWS_MAX; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(symtab.data, (int)i, &symbol))
            break;
        unsigned type = GELF_ST_TYPE(symbol.st_info);
        if ((type != STT_OBJECT && type != STT_COMMON) || symbol.st_size == 0 ||
            symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE)
            continue;
        struct str name = symbol_name(&symtab, &symbol);
        int r = name.len > 0 ? symbol_table_add(table, symbol.st_value, symbol.st_size, name,
                                                symbol_rank(&symbol, name), 0)
                             : 0;
        if (r < 0)
            return r;
        found++;
    }
    return found;
}

static int address_order(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static int table_finish(struct elf_file *file, struct symbol_table *table)
{
    size_t count = 0;
    uint64_t *ends = calloc(file->section_count + 1, sizeof(*ends));
    if (!ends)
        return -ENOMEM;
    for (size_t i = 1; i < file->section_count; i++) {
        GElf_Shdr header;
        Elf_Scn *scn = elf_getscn(file->elf, i);
        if (scn && gelf_getshdr(scn, &header) && (header.sh_flags & SHF_EXECINSTR) &&
            header.sh_size <= UINT64_MAX - header.sh_addr)
            ends[count++] = header.sh_addr + header.sh_size;
    }
    qsort(ends, count, sizeof(*ends), address_order);
    int r = symbol_table_finish(table, ends, count);
    free(ends);
    return r;
}

/* Of the tables there are, the fullest. */
static int table_fill(struct symbols *symbols, struct symbol_table *table)
{
    int found = elf_symbols_add(symbols, &symbols->elf, ".symtab", table);
    symbols->source = found > 0 ? "symbol table" : symbols->source;
    if (found == 0 && symbols->debug.elf) {
        found = elf_symbols_add(symbols, &symbols->debug, ".symtab", table);
        if (found > 0)
            symbols->source = arena_printf(&symbols->arena, "separate debug file %s",
                                           symbols->debug_path);
    }
    if (found == 0) {
        struct elf_file packed = ELF_FILE_NONE;
        int r = elf_minidebug_open(symbols, &symbols->elf, &packed);
        if (r == 0) {
            r = elf_symbols_add(symbols, &packed, ".symtab", table);
            elf_file_close(&packed);
            if (r < 0)
                return r;
            symbols->source = r > 0 ? "packed symbol table (.gnu_debugdata)" : symbols->source;
        } else if (r == -ENOMEM)
            return r;
        int exported = elf_symbols_add(symbols, &symbols->elf, ".dynsym", table);
        if (exported > 0 && r <= 0)
            symbols->source = "dynamic symbol table";
        found = exported;
    }
    return found < 0 ? found : elf_plt_add(symbols, &symbols->elf, table);
}

static int elf_open(struct symbols *symbols, void **ret_state, struct why *why)
{
    if (!symbols->elf.elf)
        return 0;
    struct symbol_table *table = calloc(1, sizeof(*table));
    if (!table)
        return why_nomem(why);
    int r = symbol_cache_load(symbols, table);
    if (r == -ENOENT) {
        r = table_fill(symbols, table);
        if (r >= 0)
            r = table_finish(&symbols->elf, table);
        if (r >= 0)
            symbol_cache_store(symbols, table);
    }
    if (r < 0) {
        symbol_table_close(table);
        return why_nomem(why);
    }
    if (table->dropped > 0)
        symbols_note(symbols, "%llu symbols beyond the first %zu were left out",
                     (unsigned long long)table->dropped, table->rows.len);
    symbols->table = table;
    *ret_state = table;
    return 0;
}

const struct symbolizer symbolizer_elf = {
    .name = "elf",
    .kinds = 1u << IMAGE_FILE | 1u << IMAGE_VDSO,
    .open = elf_open,
    .at = symbol_table_at,
    .close = symbol_table_close,
};
