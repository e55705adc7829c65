/* Unwind tables as evidence: how much code they cover, and how many functions
 * keep the frame pointer.
 *
 * A function that keeps the frame pointer tells its unwinder so: its frame is
 * based on that register (x86_64 rbp), or the old frame pointer and the return
 * address are saved side by side (aarch64, where compilers keep the base on sp). */
#include "host/build_internal.h"

#include "base/vec.h"

#include <assert.h>
#include <dwarf.h>
#include <errno.h>

enum { FUNCTION_ALIGNMENT = 16 };

struct fde {
    uint64_t offset; /* in the section */
    uint64_t start;
    uint64_t size;
};

struct cfi_walk {
    struct build_elf *file;
    const unsigned char *ident;
    Elf_Data *data;
    bool eh_frame;
    uint64_t address; /* of the section */
    VEC(struct fde) fdes;
    struct {
        uint64_t start;
        uint64_t end;
    } stubs[4];           /* the linker's call stubs, which are no functions */
    Dwarf_Off cie_offset; /* of the one kept in `cie`; -1 when none is */
    Dwarf_CFI_Entry cie;
};

/* A reader that stops at its end instead of running over it. */
struct bytes {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

static uint64_t bytes_fixed(struct bytes *bytes, size_t size)
{
    if ((size_t)(bytes->end - bytes->at) < size) {
        bytes->bad = true;
        bytes->at = bytes->end;
        return 0;
    }
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++)
        number |= (uint64_t)bytes->at[i] << (8 * i);
    bytes->at += size;
    return number;
}

static uint64_t bytes_leb(struct bytes *bytes, bool is_signed)
{
    uint64_t number = 0;
    unsigned shift = 0;
    uint8_t byte = 0x80;
    while ((byte & 0x80) && !bytes->bad) {
        byte = (uint8_t)bytes_fixed(bytes, 1);
        if (shift < 64)
            number |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    }
    if (is_signed && shift < 64 && (byte & 0x40))
        number |= ~0ull << shift;
    return number;
}

static void bytes_skip(struct bytes *bytes, uint64_t size)
{
    if (size > (uint64_t)(bytes->end - bytes->at)) {
        bytes->bad = true;
        size = (uint64_t)(bytes->end - bytes->at);
    }
    bytes->at += size;
}

static uint64_t sign_extend(uint64_t number, unsigned bits)
{
    return (uint64_t)((int64_t)(number << (64 - bits)) >> (64 - bits));
}

static uint64_t bytes_pointer(struct bytes *bytes, uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
        return bytes_fixed(bytes, 8);
    case DW_EH_PE_udata4:
        return bytes_fixed(bytes, 4);
    case DW_EH_PE_sdata4:
        return sign_extend(bytes_fixed(bytes, 4), 32);
    case DW_EH_PE_udata2:
        return bytes_fixed(bytes, 2);
    case DW_EH_PE_sdata2:
        return sign_extend(bytes_fixed(bytes, 2), 16);
    case DW_EH_PE_uleb128:
        return bytes_leb(bytes, false);
    case DW_EH_PE_sleb128:
        return bytes_leb(bytes, true);
    default:
        bytes->bad = true;
        return 0;
    }
}

/* How addresses are written in the FDEs of this CIE. */
static uint8_t cie_encoding(const Dwarf_CIE *cie)
{
    const char *letter = cie->augmentation;
    if (!letter || *letter != 'z' || !cie->augmentation_data)
        return DW_EH_PE_absptr;
    struct bytes data = {cie->augmentation_data,
                         cie->augmentation_data + cie->augmentation_data_size, false};
    for (letter++; *letter && !data.bad; letter++) {
        if (*letter == 'R')
            return (uint8_t)bytes_fixed(&data, 1);
        if (*letter == 'L')
            (void)bytes_fixed(&data, 1);
        else if (*letter == 'P')
            (void)bytes_pointer(&data, (uint8_t)bytes_fixed(&data, 1));
    }
    return DW_EH_PE_absptr;
}

static const Dwarf_CIE *cie_get(struct cfi_walk *walk, Dwarf_Off offset)
{
    if (walk->cie_offset == offset)
        return &walk->cie.cie;
    Dwarf_Off next;
    walk->cie_offset = (Dwarf_Off)-1;
    if (dwarf_next_cfi(walk->ident, walk->data, walk->eh_frame, offset, &next, &walk->cie) != 0 ||
        !dwarf_cfi_cie_p(&walk->cie))
        return NULL;
    walk->cie_offset = offset;
    return &walk->cie.cie;
}

/* The address range of an FDE; *ret_rest is left at its instructions. */
static bool fde_range(struct cfi_walk *walk, const Dwarf_FDE *fde, struct fde *ret,
                      struct bytes *ret_rest)
{
    const Dwarf_CIE *cie = cie_get(walk, fde->CIE_pointer);
    if (!cie)
        return false;
    uint8_t encoding = cie_encoding(cie);
    struct bytes bytes = {fde->start, fde->end, false};
    uint64_t place = walk->address + (uint64_t)(bytes.at - (const uint8_t *)walk->data->d_buf);
    ret->start = bytes_pointer(&bytes, encoding);
    if ((encoding & 0x70) == DW_EH_PE_pcrel)
        ret->start += place;
    ret->size = bytes_pointer(&bytes, encoding & 0x0f);
    if (cie->augmentation && cie->augmentation[0] == 'z')
        bytes_skip(&bytes, bytes_leb(&bytes, false));
    *ret_rest = bytes;
    return !bytes.bad;
}

/* What the instructions of one function come to. */
struct frame_rules {
    unsigned fp;      /* the register's DWARF number */
    unsigned ra;      /* the return address's, where it is one */
    bool based_on_fp; /* at any point of the body */
    bool moves;       /* builds a frame at all */
    int64_t fp_saved; /* where, in slots from the frame's base; 0: nowhere */
    int64_t ra_saved;
};

static void rules_saved(struct frame_rules *rules, uint64_t reg, int64_t slot)
{
    rules->moves = true;
    if (reg == rules->fp)
        rules->fp_saved = slot;
    if (reg == rules->ra)
        rules->ra_saved = slot;
}

/* Opcodes with operands that change neither base nor the two registers. */
static void rules_other(struct bytes *bytes, uint8_t opcode)
{
    switch (opcode) {
    case DW_CFA_set_loc:
        bytes_skip(bytes, 8);
        break;
    case DW_CFA_advance_loc1:
        bytes_skip(bytes, 1);
        break;
    case DW_CFA_advance_loc2:
        bytes_skip(bytes, 2);
        break;
    case DW_CFA_advance_loc4:
        bytes_skip(bytes, 4);
        break;
    case DW_CFA_restore_extended:
    case DW_CFA_undefined:
    case DW_CFA_same_value:
    case DW_CFA_GNU_args_size:
        (void)bytes_leb(bytes, false);
        break;
    case DW_CFA_register:
    case DW_CFA_val_offset:
    case DW_CFA_val_offset_sf:
    case DW_CFA_GNU_negative_offset_extended:
        (void)bytes_leb(bytes, false);
        (void)bytes_leb(bytes, false);
        break;
    case DW_CFA_expression:
    case DW_CFA_val_expression:
        (void)bytes_leb(bytes, false);
        bytes_skip(bytes, bytes_leb(bytes, false));
        break;
    case DW_CFA_nop:
    case DW_CFA_remember_state:
    case DW_CFA_restore_state:
    case DW_CFA_GNU_window_save: /* on aarch64: return addresses are signed from here */
        break;
    default:
        bytes->bad = true;
    }
}

static void rules_read(struct frame_rules *rules, struct bytes bytes)
{
    while (bytes.at < bytes.end && !bytes.bad) {
        uint8_t opcode = (uint8_t)bytes_fixed(&bytes, 1);
        uint64_t reg;
        switch (opcode & 0xc0) {
        case DW_CFA_advance_loc:
        case DW_CFA_restore:
            continue;
        case DW_CFA_offset:
            rules_saved(rules, opcode & 0x3f, (int64_t)bytes_leb(&bytes, false));
            continue;
        default:
            break;
        }
        switch (opcode) {
        case DW_CFA_def_cfa:
        case DW_CFA_def_cfa_sf:
            rules->based_on_fp |= bytes_leb(&bytes, false) == rules->fp;
            (void)bytes_leb(&bytes, false);
            rules->moves = true;
            break;
        case DW_CFA_def_cfa_register:
            rules->based_on_fp |= bytes_leb(&bytes, false) == rules->fp;
            rules->moves = true;
            break;
        case DW_CFA_def_cfa_offset:
        case DW_CFA_def_cfa_offset_sf:
            (void)bytes_leb(&bytes, false);
            rules->moves = true;
            break;
        case DW_CFA_def_cfa_expression:
            bytes_skip(&bytes, bytes_leb(&bytes, false));
            rules->moves = true;
            break;
        case DW_CFA_offset_extended:
        case DW_CFA_offset_extended_sf:
            reg = bytes_leb(&bytes, false);
            rules_saved(rules, reg,
                        (int64_t)bytes_leb(&bytes, opcode == DW_CFA_offset_extended_sf));
            break;
        default:
            rules_other(&bytes, opcode);
        }
    }
}

/* A function that builds no frame at all (a leaf, a thunk) says nothing of the
 * build: even with -fno-omit-frame-pointer some compilers leave it out there. On
 * aarch64 that is one which does not save the return address, even if it moves sp. */
static void frame_count(struct cfi_walk *walk, const struct fde *fde, struct build_cfi *ret)
{
    Dwarf_Off next;
    Dwarf_CFI_Entry entry;
    struct fde range;
    struct bytes instructions;
    if (dwarf_next_cfi(walk->ident, walk->data, walk->eh_frame, fde->offset, &next, &entry) != 0 ||
        dwarf_cfi_cie_p(&entry) || !fde_range(walk, &entry.fde, &range, &instructions))
        return;
    bool arm = walk->file->header.e_machine == EM_AARCH64;
    struct frame_rules rules = {.fp = arm ? 29 : 6, .ra = arm ? 30 : 16};
    rules_read(&rules, instructions);
    if (!rules.moves || (arm && rules.ra_saved == 0 && !rules.based_on_fp))
        return;
    ret->frames_read++;
    /* Saved side by side is the frame record that a walk along x29 follows. */
    bool record = arm && rules.fp_saved != 0 && rules.fp_saved == rules.ra_saved + 1;
    ret->frames_kept += rules.based_on_fp || record;
}

static int fde_order(const void *a, const void *b)
{
    const struct fde *left = a;
    const struct fde *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

/* Bytes of .text inside some FDE; rows that overlap count once. */
static void coverage(struct cfi_walk *walk, struct build_cfi *ret)
{
    GElf_Shdr text;
    if (!build_elf_section(walk->file, ".text", &text) || text.sh_size == 0)
        return;
    uint64_t at = text.sh_addr;
    uint64_t end = text.sh_addr + text.sh_size;
    uint64_t covered = 0;
    for (size_t i = 0; i < walk->fdes.len; i++) {
        const struct fde *fde = &walk->fdes.data[i];
        uint64_t stop = fde->start + fde->size < fde->start ? UINT64_MAX : fde->start + fde->size;
        uint64_t from = MAX(fde->start, at);
        uint64_t to = MIN(stop, end);
        if (from >= to)
            continue;
        if (from - at < FUNCTION_ALIGNMENT)
            from = at; /* padding, which never runs */
        covered += to - from;
        at = to;
    }
    double share = (double)covered / (double)text.sh_size;
    if (share > ret->code_covered || !ret->table) {
        ret->code_covered = share;
        ret->uncovered_bytes = text.sh_size - covered;
    }
}

static bool fde_is_stub(const struct cfi_walk *walk, const struct fde *fde)
{
    for (size_t i = 0; i < ARRAY_SIZE(walk->stubs); i++)
        if (fde->start >= walk->stubs[i].start && fde->start < walk->stubs[i].end)
            return true;
    return false;
}

static void stubs_find(struct cfi_walk *walk)
{
    static const char *const names[] = {".plt", ".plt.got", ".plt.sec", ".iplt"};
    static_assert(ARRAY_SIZE(names) == ARRAY_SIZE(walk->stubs), "one place a name");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        GElf_Shdr header;
        if (build_elf_section(walk->file, names[i], &header)) {
            walk->stubs[i].start = header.sh_addr;
            walk->stubs[i].end = header.sh_addr + header.sh_size;
        }
    }
}

static void fdes_collect(struct cfi_walk *walk)
{
    Dwarf_Off offset = 0;
    Dwarf_Off next = 0;
    for (size_t i = 0; i < BUILD_FDES_MAX; i++, offset = next) {
        Dwarf_CFI_Entry entry;
        struct bytes rest;
        if (i % 1024 == 0 && build_elf_late(walk->file))
            return;
        int r = dwarf_next_cfi(walk->ident, walk->data, walk->eh_frame, offset, &next, &entry);
        if (r > 0 || next <= offset || next == (Dwarf_Off)-1)
            return;
        if (r < 0 || dwarf_cfi_cie_p(&entry))
            continue; /* one bad entry is skipped, as an unwinder would */
        struct fde fde = {.offset = offset};
        if (fde_range(walk, &entry.fde, &fde, &rest) && fde.size > 0 && !fde_is_stub(walk, &fde) &&
            VEC_PUSH(&walk->fdes, fde) < 0)
            return;
    }
}

static void table_read(struct build_elf *file, const char *name, bool eh_frame,
                       struct build_cfi *ret)
{
    GElf_Shdr header;
    Elf_Scn *scn = build_elf_section(file, name, &header);
    if (!scn)
        return;
    if (header.sh_flags & SHF_COMPRESSED) {
        GElf_Chdr compressed;
        if (!gelf_getchdr(scn, &compressed) || compressed.ch_size > BUILD_UNPACKED_BYTES_MAX ||
            elf_compress(scn, 0, 0) < 0)
            return;
    }
    struct cfi_walk walk = {
        .file = file,
        .ident = file->header.e_ident,
        .data = elf_getdata(scn, NULL),
        .eh_frame = eh_frame,
        .address = header.sh_addr,
        .cie_offset = (Dwarf_Off)-1,
    };
    if (!walk.data || !walk.data->d_buf)
        return;
    stubs_find(&walk);
    fdes_collect(&walk);
    if (walk.fdes.len > 0) {
        size_t step = walk.fdes.len / BUILD_FDES_READ_MAX + 1;
        for (size_t i = 0; i < walk.fdes.len; i += step)
            frame_count(&walk, &walk.fdes.data[i], ret);
        ret->functions += walk.fdes.len;
        qsort(walk.fdes.data, walk.fdes.len, sizeof(walk.fdes.data[0]), fde_order);
        coverage(&walk, ret);
        ret->table = ret->table ? ".eh_frame and .debug_frame" : name;
    }
    VEC_FREE(&walk.fdes);
}

void build_cfi_read(struct build_elf *file, struct build_cfi *ret)
{
    *ret = (struct build_cfi){0};
    if (file->header.e_type == ET_REL)
        ret->na = "an object file that is not linked yet";
    else if (file->section_count == 0)
        ret->na = "the file has no section headers";
    else if (!build_elf_is_known_machine(file))
        ret->na = "frame rules are read for x86_64 and aarch64 only";
    if (ret->na)
        return;
    table_read(file, ".eh_frame", true, ret);
    table_read(file, ".debug_frame", false, ret);
}
