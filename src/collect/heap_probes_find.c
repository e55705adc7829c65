/* From names to functions, and from a function to its ways out.
 *
 * A probe on a return instruction costs a trap more than it takes on x86, where the kernel cannot
 * do it itself and has to step over it: some microseconds, or tens in a virtual machine. To ask
 * the kernel for the return costs a tenth of that. Its address then stands in the stack while the
 * thread is inside of malloc(); our own stacks are taken before that. */
#include "collect/heap_probes_find.h"

#include "base/macros.h"
#include "format/heap_kernel.h"
#include "symbolize/function_paths.h"

#include <string.h>

enum { SYMBOLS_MAX = 4 << 20, PREFIX_LEN = 3 };

static const struct {
    const char *name;
    enum heap_kernel_place place;
} names[] = {
    {"malloc", HEAP_KERNEL_MALLOC},
    {"free", HEAP_KERNEL_FREE},
    {"calloc", HEAP_KERNEL_CALLOC},
    {"realloc", HEAP_KERNEL_REALLOC},
    {"reallocarray", HEAP_KERNEL_REALLOCARRAY},
    {"posix_memalign", HEAP_KERNEL_POSIX_MEMALIGN},
    {"aligned_alloc", HEAP_KERNEL_MEMALIGN},
    {"memalign", HEAP_KERNEL_MEMALIGN},
    {"valloc", HEAP_KERNEL_MALLOC},
    {"pvalloc", HEAP_KERNEL_MALLOC},
    {"cfree", HEAP_KERNEL_FREE},
    {"_Znwm", HEAP_KERNEL_NEW},
    {"_Znam", HEAP_KERNEL_NEW},
    {"_ZnwmRKSt9nothrow_t", HEAP_KERNEL_NEW},
    {"_ZnamRKSt9nothrow_t", HEAP_KERNEL_NEW},
    {"_ZnwmSt11align_val_t", HEAP_KERNEL_NEW},
    {"_ZnamSt11align_val_t", HEAP_KERNEL_NEW},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", HEAP_KERNEL_NEW},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", HEAP_KERNEL_NEW},
    {"_ZdlPv", HEAP_KERNEL_FREE},
    {"_ZdaPv", HEAP_KERNEL_FREE},
    {"_ZdlPvm", HEAP_KERNEL_FREE},
    {"_ZdaPvm", HEAP_KERNEL_FREE},
    {"_ZdlPvRKSt9nothrow_t", HEAP_KERNEL_FREE},
    {"_ZdaPvRKSt9nothrow_t", HEAP_KERNEL_FREE},
    {"_ZdlPvSt11align_val_t", HEAP_KERNEL_FREE},
    {"_ZdaPvSt11align_val_t", HEAP_KERNEL_FREE},
    {"_ZdlPvmSt11align_val_t", HEAP_KERNEL_FREE},
    {"_ZdaPvmSt11align_val_t", HEAP_KERNEL_FREE},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", HEAP_KERNEL_FREE},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", HEAP_KERNEL_FREE},
};
/* Of allocators that are built with names of their own: jemalloc, mimalloc, tcmalloc. */
static const char prefixes[][PREFIX_LEN + 1] = {"je_", "mi_", "tc_"};

struct function {
    uint64_t address; /* 0: not there */
};

struct finding {
    struct elf_file *file;
    struct function_paths paths; /* of the function that is looked at */
    struct function functions[ARRAY_SIZE(names)];
    struct heap_places *places;
};

static void symbol_look(struct finding *finding, const GElf_Sym *symbol, const char *name,
                        const char *prefix)
{
    if (prefix && strncmp(name, prefix, PREFIX_LEN) != 0)
        return;
    name += prefix ? PREFIX_LEN : 0;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (finding->functions[i].address == 0 && strcmp(name, names[i].name) == 0)
            finding->functions[i] = (struct function){symbol->st_value};
}

static void symbols_look(struct finding *finding, const char *section, const char *prefix)
{
    GElf_Shdr header;
    Elf_Scn *scn = elf_file_section(finding->file, section, &header);
    Elf_Data *data = scn && header.sh_type != SHT_NOBITS ? elf_getdata(scn, NULL) : NULL;
    size_t count = data && header.sh_entsize > 0 ? header.sh_size / header.sh_entsize : 0;
    for (size_t i = 0; i < MIN(count, (size_t)SYMBOLS_MAX); i++) {
        GElf_Sym symbol;
        /* A function of a file's own that is called like one of these is something else. */
        if (!gelf_getsym(data, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
            symbol.st_shndx == SHN_UNDEF || GELF_ST_BIND(symbol.st_info) == STB_LOCAL)
            continue;
        const char *name = elf_strptr(finding->file->elf, header.sh_link, symbol.st_name);
        if (name)
            symbol_look(finding, &symbol, name, prefix);
    }
}

static bool functions_find(struct finding *finding, bool whole)
{
    for (size_t i = 0; i <= ARRAY_SIZE(prefixes); i++) {
        const char *prefix = i == 0 ? NULL : prefixes[i - 1];
        memset(finding->functions, 0, sizeof(finding->functions));
        symbols_look(finding, ".dynsym", prefix);
        if (whole)
            symbols_look(finding, ".symtab", prefix);
        if (finding->functions[0].address != 0 && finding->functions[1].address != 0)
            return true;
    }
    return false;
}

/* ---- places ---- */

static void call_add(struct finding *finding, uint64_t address, enum heap_kernel_place place)
{
    struct heap_places *places = finding->places;
    uint64_t offset;
    if (places->call_count == HEAP_PLACES_MAX ||
        elf_file_code(finding->file, address, 1, &offset) == 0)
        return;
    places->call_at[places->call_count] = offset;
    places->call_cookie[places->call_count++] = place;
}

static void return_add(struct finding *finding, uint64_t address)
{
    struct heap_places *places = finding->places;
    uint64_t offset;
    if (places->return_count < HEAP_PLACES_MAX &&
        elf_file_code(finding->file, address, 1, &offset) > 0)
        places->return_at[places->return_count++] = offset;
}

/* Ways out that are found in the code; nobody's stack is touched. False: they are not all known, or
 * it is not needed, since all it does is to call another of ours. */
static bool paths_add(struct finding *finding, const struct function *function)
{
    struct function_paths *paths = &finding->paths;
    uint64_t known[ARRAY_SIZE(names)];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (finding->functions[i].address != 0 && names[i].place != HEAP_KERNEL_FREE &&
            names[i].place != HEAP_KERNEL_NEW && finding->functions[i].address != function->address)
            known[count++] = finding->functions[i].address;
    if (function_paths(finding->file, function->address, known, count, paths) < 0)
        paths->blind = true;
    paths->calls_known |= paths->return_count == 0 && paths->jump_count > 0;
    if (paths->blind || paths->calls_known)
        return false;
    for (size_t i = 0; i < paths->return_count; i++)
        call_add(finding, paths->returns[i], HEAP_KERNEL_LEAVES);
    for (size_t i = 0; i < paths->jump_count; i++)
        call_add(finding, paths->jumps[i], HEAP_KERNEL_HANDS_ON);
    return true;
}

/* An exception cannot pass where the kernel's address stands in the stack: operator new is never
 * asked about in that way. */
static void function_add(struct finding *finding, const struct function *function,
                         enum heap_kernel_place place)
{
    uint64_t at = function_probe_at(finding->file, function->address);
    bool by_kernel = finding->file->header.e_machine == EM_X86_64 && place != HEAP_KERNEL_NEW;
    if (place == HEAP_KERNEL_FREE || by_kernel) {
        call_add(finding, at, place);
        if (by_kernel && place != HEAP_KERNEL_FREE) {
            return_add(finding, at);
            finding->places->trampolines++;
        }
        return;
    }
    if (paths_add(finding, function))
        call_add(finding, at, place);
    else if (!finding->paths.calls_known)
        finding->places->left_out++;
}

/* One address has several names. */
static bool is_seen(const struct finding *finding, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (finding->functions[i].address == finding->functions[index].address)
            return true;
    return false;
}

void heap_places_find(struct elf_file *file, bool whole, struct heap_places *ret)
{
    struct finding finding = {.file = file, .places = ret};
    ret->call_count = ret->return_count = ret->trampolines = ret->left_out = 0;
    if (!functions_find(&finding, whole))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct function *function = &finding.functions[i];
        if (function->address == 0 || is_seen(&finding, i))
            continue;
        function_add(&finding, function, names[i].place);
    }
}
