/* From names to symbols, and from a function to its ways out.
 *
 * A way out is a return, or a jump to another function when the own frame has been taken down.
 * Before a return the program runs by itself. At such a jump the stack is as it is at the
 * beginning of a function, so that the kernel can be asked for the return of what is jumped to:
 * only for as long as that takes its address stands in the stack. Where a function goes on
 * elsewhere with its frame (a cold part) its ways out are not all known: the kernel is asked for
 * its return from the beginning. */
#include "collect/uprobe_places.h"

#include "symbolize/function_exits.h"
#include "unwind/unwind.h"

#include <string.h>

enum { SYMBOLS_MAX = 4 << 20 };

struct symbol_at {
    uint64_t address, size_bytes; /* address 0: not there */
};

struct finding {
    struct elf_file *file;
    struct unwind_image *image; /* NULL: not needed so far, or there is none */
    bool image_asked;
    struct uprobe_places *places;
};

static void symbols_look(struct elf_file *file, const char *section,
                         const struct uprobe_function *functions, size_t function_count,
                         struct symbol_at symbols[UPROBE_FUNCTIONS_MAX])
{
    GElf_Shdr header;
    Elf_Scn *scn = elf_file_section(file, section, &header);
    Elf_Data *data = scn && header.sh_type != SHT_NOBITS ? elf_getdata(scn, NULL) : NULL;
    size_t count = data && header.sh_entsize > 0 ? header.sh_size / header.sh_entsize : 0;
    for (size_t i = 0; i < MIN(count, (size_t)SYMBOLS_MAX); i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
            symbol.st_shndx == SHN_UNDEF)
            continue;
        const char *name = elf_strptr(file->elf, header.sh_link, symbol.st_name);
        for (size_t j = 0; name && j < function_count; j++)
            if (symbols[j].address == 0 && strcmp(name, functions[j].name) == 0)
                symbols[j] = (struct symbol_at){symbol.st_value, symbol.st_size};
    }
}

static void place_add(struct finding *finding, uint64_t address, int program_fd, bool at_return)
{
    struct uprobe_places *places = finding->places;
    uint64_t offset;
    if (places->count < UPROBE_PLACES_MAX && elf_file_code(finding->file, address, 1, &offset) > 0)
        places->at[places->count++] = (struct uprobe_place){offset, program_fd, at_return};
}

static bool is_bare_at(struct finding *finding, uint64_t address)
{
    const struct unwind_image_opts opts = {0};
    if (!finding->image_asked && unwind_image_load(finding->file->fd, &opts, &finding->image, NULL))
        finding->image = NULL;
    finding->image_asked = true;
    return finding->image && unwind_image_bare_at(finding->image, address);
}

/* False: not all ways out are known, and nothing has been added. */
static bool exits_add(struct finding *finding, const struct symbol_at *symbol, int program_fd)
{
    struct function_exit exits[FUNCTION_EXITS_MAX];
    bool bare[FUNCTION_EXITS_MAX] = {false};
    size_t count = 0;
    if (function_exits(finding->file, symbol->address, symbol->size_bytes, exits, &count) < 0 ||
        finding->places->count + count > UPROBE_PLACES_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        bare[i] = exits[i].kind != FUNCTION_RETURNS && is_bare_at(finding, exits[i].address);
        if (exits[i].kind == FUNCTION_JUMPS && !bare[i])
            return false;
    }
    for (size_t i = 0; i < count; i++)
        if (exits[i].kind == FUNCTION_RETURNS || bare[i]) /* else a switch: it stays inside */
            place_add(finding, exits[i].address, program_fd, bare[i]);
    return true;
}

void uprobe_places_find(struct elf_file *file, const struct uprobe_function *functions,
                        size_t count, bool whole, struct uprobe_places *ret)
{
    struct symbol_at symbols[UPROBE_FUNCTIONS_MAX] = {0};
    struct finding finding = {.file = file, .places = ret};
    count = MIN(count, (size_t)UPROBE_FUNCTIONS_MAX);
    symbols_look(file, ".dynsym", functions, count, symbols);
    if (whole && symbols[0].address == 0)
        symbols_look(file, ".symtab", functions, count, symbols);
    if (whole && symbols[0].address == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct symbol_at *symbol = &symbols[i];
        int program_fd = functions[i].program_fd;
        if (symbol->address == 0 ||
            (functions[i].at_return && exits_add(&finding, symbol, program_fd)))
            continue;
        place_add(&finding, symbol->address, program_fd, functions[i].at_return);
        ret->trampolines += functions[i].at_return;
    }
    unwind_image_free(finding.image);
}
