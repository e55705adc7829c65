/* Stubs that call into other images: "foo@plt".
 *
 * A stub jumps through a slot of the global offset table, and a relocation says which
 * function that slot is for. The slot is read from the stub's own instructions, which is
 * right for every layout that linkers have come up with; lazy stubs that only push the number
 * of their relocation are named by that number. */
#include "symbolize/elf_symbols.h"

#include <errno.h>
#include <stdlib.h>

enum { RELOCATIONS_MAX = 1 << 22, STUB_BYTES_MAX = 64 };

struct plt {
    struct symbols *symbols;
    struct elf_file *file;
    struct symbol_table *table;
    struct map_u64 slots;    /* address of a slot → offset of its name + 1 */
    VEC(struct str) names;   /* of slots */
    VEC(uint32_t) by_number; /* relocation of .rela.plt → its name, UINT32_MAX if none */
};

static struct str relocation_name(struct plt *plt, Elf_Scn *symbols_scn, Elf_Data *symbols_data,
                                  const GElf_Rela *relocation)
{
    static const struct str none = {"", 0};
    GElf_Shdr header;
    GElf_Sym symbol;
    size_t index = GELF_R_SYM(relocation->r_info);
    struct arena *arena = &plt->symbols->arena;
    if (index == 0) {
        /* An indirect function of this image: the addend is its resolver. Symbols are not
         * sorted yet, so it is looked for one by one; there are a few dozen at most. */
        for (size_t i = 0; i < plt->table->rows.len; i++) {
            const struct symbol_row *row = &plt->table->rows.data[i];
            if (row->start == (uint64_t)relocation->r_addend && row->name_len > 0) {
                struct str name = symbol_table_name(plt->table, row);
                return str_from(arena_printf(arena, "%.*s@plt", STR_FMT(name)));
            }
        }
        return none;
    }
    if (!symbols_data || !gelf_getshdr(symbols_scn, &header) ||
        !gelf_getsym(symbols_data, (int)index, &symbol))
        return none;
    const char *name = elf_strptr(plt->file->elf, header.sh_link, symbol.st_name);
    if (!name || !*name)
        return none;
    size_t len = strnlen(name, SYMBOL_NAME_BYTES_MAX);
    return str_from(arena_printf(arena, "%.*s@plt", (int)len, name));
}

static int relocations_read(struct plt *plt, const char *section, bool numbered)
{
    GElf_Shdr header;
    Elf_Scn *scn = elf_file_section(plt->file, section, &header);
    if (!scn || header.sh_type != SHT_RELA || !elf_file_has(plt->file, section))
        return 0;
    Elf_Data *data = elf_getdata(scn, NULL);
    size_t entry = gelf_fsize(plt->file->elf, ELF_T_RELA, 1, EV_CURRENT);
    Elf_Scn *symbols_scn = header.sh_link ? elf_getscn(plt->file->elf, header.sh_link) : NULL;
    Elf_Data *symbols_data = symbols_scn ? elf_getdata(symbols_scn, NULL) : NULL;
    if (!data || !data->d_buf || data->d_type != ELF_T_RELA || entry == 0)
        return 0;
    if (symbols_data && symbols_data->d_type != ELF_T_SYM)
        symbols_data = NULL;
    bool arm = plt->file->header.e_machine == EM_AARCH64;
    size_t count = MIN(data->d_size / entry, (size_t)RELOCATIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        GElf_Rela relocation;
        if (!gelf_getrela(data, (int)i, &relocation))
            return 0;
        uint32_t type = (uint32_t)GELF_R_TYPE(relocation.r_info);
        bool wanted = arm ? type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT ||
                                type == R_AARCH64_IRELATIVE
                          : type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
                                type == R_X86_64_IRELATIVE;
        struct str name = {"", 0};
        if (wanted)
            name = relocation_name(plt, symbols_scn, symbols_data, &relocation);
        uint32_t index = UINT32_MAX;
        if (name.len > 0) {
            uint64_t *slot = map_u64_at(&plt->slots, relocation.r_offset, NULL);
            if (!slot || VEC_PUSH(&plt->names, name) < 0)
                return -ENOMEM;
            *slot = plt->names.len;
            index = (uint32_t)plt->names.len - 1;
        }
        if (numbered && VEC_PUSH(&plt->by_number, index) < 0)
            return -ENOMEM;
    }
    return 0;
}

static struct str name_at(const struct plt *plt, uint64_t index)
{
    return plt->names.data && index < plt->names.len ? plt->names.data[index] : (struct str){"", 0};
}

static int32_t i32_at(const uint8_t *bytes)
{
    uint32_t value = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                     (uint32_t)bytes[3] << 24;
    return (int32_t)value;
}

/* The name a stub goes to, or an empty one: jmp *slot(%rip), or push $number. */
static struct str stub_x86(const struct plt *plt, const uint8_t *bytes, size_t len, uint64_t vaddr)
{
    for (size_t i = 0; i + 6 <= len; i++)
        if (bytes[i] == 0xff && bytes[i + 1] == 0x25) {
            uint64_t slot = vaddr + i + 6 + (uint64_t)(int64_t)i32_at(bytes + i + 2);
            uint64_t *name = map_u64_find(&plt->slots, slot);
            if (name)
                return name_at(plt, *name - 1);
        }
    for (size_t i = 0; i + 5 <= len; i++)
        if (bytes[i] == 0x68) {
            uint32_t number = (uint32_t)i32_at(bytes + i + 1);
            if (number < plt->by_number.len && plt->by_number.data)
                return name_at(plt, plt->by_number.data[number]);
        }
    return (struct str){"", 0};
}

/* adrp x16, page; ldr x17, [x16, #offset] */
static struct str stub_arm(const struct plt *plt, const uint8_t *bytes, size_t len, uint64_t vaddr)
{
    for (size_t i = 0; i + 8 <= len; i += 4) {
        uint32_t adrp = (uint32_t)i32_at(bytes + i);
        uint32_t ldr = (uint32_t)i32_at(bytes + i + 4);
        if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
            continue;
        uint64_t immediate = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
        if (immediate & 0x100000)
            immediate |= ~0x1fffffull;
        uint64_t slot = ((vaddr + i) & ~0xfffull) + (immediate << 12) +
                        ((uint64_t)(ldr >> 10 & 0xfff) << 3);
        uint64_t *name = map_u64_find(&plt->slots, slot);
        if (name)
            return name_at(plt, *name - 1);
    }
    return (struct str){"", 0};
}

static int stubs_add(struct plt *plt, const char *section)
{
    GElf_Shdr header;
    if (!elf_file_section(plt->file, section, &header) || header.sh_type != SHT_PROGBITS)
        return 0;
    struct str bytes = elf_file_bytes(plt->file, section, NULL);
    bool arm = plt->file->header.e_machine == EM_AARCH64;
    uint64_t stride = header.sh_entsize;
    if (stride < 8 || stride > STUB_BYTES_MAX)
        stride = 16;
    /* aarch64: a header of 32 bytes, then stubs of 16 (24 with branch protection). */
    for (uint64_t at = 0; at + stride <= bytes.len; at += arm ? 8 : stride) {
        const uint8_t *stub = (const uint8_t *)bytes.data + at;
        struct str name = arm ? stub_arm(plt, stub, 8, header.sh_addr + at)
                              : stub_x86(plt, stub, stride, header.sh_addr + at);
        if (name.len > 0 &&
            symbol_table_add(plt->table, header.sh_addr + at, arm ? 16 : stride, name, 0, 0) < 0)
            return -ENOMEM;
    }
    return 0;
}

int elf_plt_add(struct symbols *symbols, struct elf_file *file, struct symbol_table *table)
{
    unsigned machine = file->header.e_machine;
    if (machine != EM_X86_64 && machine != EM_AARCH64)
        return 0;
    struct plt plt = {.symbols = symbols, .file = file, .table = table};
    static const char *const sections[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
    int r = relocations_read(&plt, ".rela.plt", true);
    if (r == 0)
        r = relocations_read(&plt, ".rela.dyn", false);
    for (size_t i = 0; i < ARRAY_SIZE(sections) && r == 0; i++)
        r = stubs_add(&plt, sections[i]);
    map_u64_deinit(&plt.slots);
    VEC_FREE(&plt.names);
    VEC_FREE(&plt.by_number);
    return r;
}
