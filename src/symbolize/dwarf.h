/* Reading DWARF 2 to 5 for functions, inlined calls and lines; private to symbolize/.
 *
 *     dwarf_file     the sections of one ELF file, and its units
 *     dwarf_unit     a compile, partial, skeleton or split unit; its header is read at once,
 *                    the rest only when an address falls into it
 *     dwarf_scope    a function, or a call that was inlined, with its place in the tree
 *     dwarf_lines    the line table of a unit
 *
 * Our own reader, since what a profile needs is little and must be quick: a unit is walked
 * once from its start to its end, and skips whatever is no function. Everything read is
 * bounded: by the bytes there are, and by the budgets below where bytes can be read twice. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "symbolize/bytes.h"
#include "symbolize/elf_file.h"
#include "symbolize/range_map.h"

enum dwarf_section {
    DWARF_INFO,
    DWARF_ABBREV,
    DWARF_STR,
    DWARF_LINE,
    DWARF_LINE_STR,
    DWARF_RANGES,
    DWARF_RNGLISTS,
    DWARF_ADDR,
    DWARF_STR_OFFSETS,
    DWARF_SECTIONS,
};

enum {
    DWARF_UNITS_MAX = 1 << 19,
    DWARF_DEPTH_MAX = 1 << 12, /* of entries inside each other */
    DWARF_HOPS_MAX = 16,       /* from an entry to the one it is a copy of */
    DWARF_TEXT_BYTES_MAX = 1 << 20,
    DWARF_ABBREV_ATTRIBUTES_MAX = 256,
    DWARF_FILES_MAX = 1 << 20,
};
/* Sums over an image of what hostile files could make us read again and again. */
enum {
    DWARF_BUDGET_ABBREVS = 1 << 24,
    DWARF_BUDGET_RANGES = 1 << 25,
    DWARF_BUDGET_ROWS = 1 << 26,
    DWARF_BUDGET_FILES = 1 << 24,
};

struct dwarf_attribute {
    uint16_t name;
    uint16_t form;
    uint8_t size;     /* of the value in bytes, where it is fixed; else DWARF_SIZE_VARIES */
    int32_t implicit; /* the value itself, for DW_FORM_implicit_const */
};
enum { DWARF_SIZE_VARIES = 0xff };

struct dwarf_abbrev {
    uint64_t code;
    uint16_t tag;
    bool children;
    uint16_t attribute_count;
    uint32_t first;      /* in the attributes of the table */
    uint32_t fixed_size; /* of the whole entry behind its code; UINT32_MAX when it varies */
    bool sibling;        /* tells where its next sibling is */
};

struct dwarf_abbrevs {
    VEC(struct dwarf_abbrev) rows; /* rows[code - 1] for the usual numbering */
    VEC(struct dwarf_attribute) attributes;
    bool in_order;
};

/* A value as it stands in an entry; what it refers to is looked up when it is wanted. */
struct dwarf_value {
    uint16_t form; /* 0: absent */
    uint64_t number;
    struct str text; /* DW_FORM_string only */
};

struct dwarf_scope {
    uint64_t entry;  /* offset of the DIE */
    uint32_t parent; /* index; UINT32_MAX for a function */
    uint32_t call_file;
    uint32_t call_line;
    uint32_t function; /* index into symbols->functions + 1, once it was asked for */
    uint64_t origin;   /* offset of what it is a copy of, 0 if none; see origin_alternate */
    uint64_t start;    /* its first instruction */
    uint64_t size_bytes;
    uint16_t depth;
    bool inlined;
    bool origin_alternate; /* `origin` lies in the supplementary file */
};

/* Where names are nested: a namespace, class or structure. */
struct dwarf_nest {
    uint64_t entry;
    uint64_t end;
    uint32_t parent; /* index, UINT32_MAX if none */
};

struct dwarf_row {
    uint64_t address;
    uint32_t line;
    uint32_t file;
};

struct dwarf_sequence {
    size_t first;
    size_t count;
    uint64_t end;
};

struct dwarf_file_name {
    struct str name;
    struct str folder;
    struct str path; /* joined, once it was asked for */
};

/* Files and rows; a unit that only lends names has no rows read. */
struct dwarf_lines {
    VEC(struct dwarf_file_name) files;
    uint32_t first_file; /* 1 before DWARF 5 */
    VEC(struct dwarf_row) rows;
    VEC(struct dwarf_sequence) sequences;
    struct range_map map; /* address → sequence */
    bool rows_read;
};

struct dwarf_unit {
    struct dwarf_file *file;
    uint64_t offset;
    uint64_t end;
    uint64_t entries; /* offset of the root DIE */
    uint64_t abbrev_offset;
    uint16_t version;
    uint8_t address_size;
    uint8_t offset_size;
    uint8_t type; /* DW_UT_… */
    bool root_read;
    bool root_fine;
    bool walked;
    uint16_t language;
    uint64_t str_offsets_base;
    uint64_t addr_base;
    uint64_t rnglists_base;
    uint64_t part_str_offsets; /* where its part of a package's section begins */
    uint64_t part_rnglists;
    uint64_t low_pc;
    uint64_t stmt_list; /* UINT64_MAX: none */
    uint64_t dwo_id;
    struct str name;
    struct str folder;
    struct str dwo_name;
    struct dwarf_abbrevs *abbrevs; /* of the file */
    struct dwarf_unit *skeleton;   /* of a split unit: has the addresses and lines */
    struct dwarf_unit *split;      /* of a skeleton: has the entries */
    bool split_sought;
    VEC(struct dwarf_scope) scopes;
    struct range_map scope_map;
    struct map_u64 concrete; /* origin → scope + 1 of the function outside of any caller */
    VEC(struct dwarf_nest) nests;
    struct dwarf_lines *lines; /* of the file, by stmt_list */
};

/* What a file owns on the heap, by index. */
struct dwarf_lines_slot {
    struct dwarf_lines *lines;
};
struct dwarf_abbrevs_slot {
    struct dwarf_abbrevs *abbrevs;
};
struct dwarf_split_slot {
    struct dwarf_file *file;
};

struct dwarf_file {
    struct dwarf *dwarf;
    struct elf_file *elf; /* borrowed for the image's own, else `owned` */
    struct elf_file owned;
    struct str sections[DWARF_SECTIONS];
    bool sections_read;
    VEC(struct dwarf_unit) units; /* by offset; does not grow once it is filled */
    struct map_u64 abbrevs;       /* offset → index + 1 */
    VEC(struct dwarf_abbrevs_slot) abbrev_tables;
    struct map_u64 lines; /* offset → index + 1 */
    VEC(struct dwarf_lines_slot) line_tables;
    bool split; /* sections are named ".debug_….dwo" */
};

struct symbols;

struct dwarf {
    struct symbols *symbols;
    struct dwarf_file main;
    struct dwarf_file alternate; /* shared entries that dwz moved out */
    bool alternate_sought;
    VEC(struct dwarf_split_slot) splits;
    struct dwarf_file *package; /* one of them */
    bool package_sought;
    struct range_map units; /* address → unit of `main` */
    struct map_u64 inlined; /* origin → function + 1 of those seen only inlined */
    uint64_t budget_abbrevs, budget_ranges, budget_rows, budget_files;
};

/* dwarf_file.c */
void dwarf_file_sections(struct dwarf_file *file);
MUST_USE int dwarf_file_units(struct dwarf_file *file);
void dwarf_file_deinit(struct dwarf_file *file);
/* The unit that holds an offset of .debug_info; NULL if none. */
struct dwarf_unit *dwarf_file_unit(struct dwarf_file *file, uint64_t offset);
/* The supplementary file, opened when first asked for; NULL if there is none. */
struct dwarf_file *dwarf_alternate(struct dwarf *dwarf);
void dwarf_damaged(struct dwarf *dwarf, const char *section, uint64_t offset);

/* dwarf_abbrev.c: the table of a unit, or NULL with a note. */
struct dwarf_abbrevs *dwarf_abbrevs_get(struct dwarf_unit *unit);
/* Only the row of one code into an empty table: a root needs no more. */
bool dwarf_abbrevs_one(struct dwarf_unit *unit, uint64_t code, struct dwarf_abbrevs *ret);
const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrevs *abbrevs, uint64_t code);
void dwarf_abbrevs_deinit(struct dwarf_abbrevs *abbrevs);
void dwarf_abbrevs_free(struct dwarf_abbrevs *abbrevs);

/* dwarf_form.c */
uint8_t dwarf_form_size(const struct dwarf_unit *unit, unsigned form);
/* Reads a value and passes it; false when the form is unknown. */
bool dwarf_value_read(const struct dwarf_unit *unit, struct cursor *cursor,
                      const struct dwarf_attribute *attribute, struct dwarf_value *ret);
struct str dwarf_value_text(struct dwarf_unit *unit, const struct dwarf_value *value);
bool dwarf_value_address(struct dwarf_unit *unit, const struct dwarf_value *value, uint64_t *ret);
bool dwarf_value_number(const struct dwarf_value *value, uint64_t *ret);
/* The offset in .debug_info that it refers to, and in which file. */
bool dwarf_value_reference(struct dwarf_unit *unit, const struct dwarf_value *value,
                           bool *ret_alternate, uint64_t *ret);

/* dwarf_entry.c: the values of one entry that are asked for, by attribute name. */
struct dwarf_wanted {
    uint16_t name;
    struct dwarf_value value;
};
/* The tag, or 0 when it cannot be read. */
unsigned dwarf_entry_read(struct dwarf_unit *unit, uint64_t offset, struct dwarf_wanted *wanted,
                          size_t count);
/* The same for the root of a unit, without reading the whole table of abbreviations. */
unsigned dwarf_root_read(struct dwarf_unit *unit, struct dwarf_wanted *wanted, size_t count);
/* Reads the root of a unit, once; false when it is damaged. */
bool dwarf_unit_root(struct dwarf_unit *unit);

/* dwarf_ranges.c: calls back for each range that lies in code. */
typedef int dwarf_range_fn(void *opaque, uint64_t start, uint64_t end);
int dwarf_ranges_read(struct dwarf_unit *unit, const struct dwarf_value *ranges, dwarf_range_fn *fn,
                      void *opaque);
/* Low and high pc, or ranges: of a unit, function or inlined call. */
int dwarf_pcs_read(struct dwarf_unit *unit, const struct dwarf_value *low,
                   const struct dwarf_value *high, const struct dwarf_value *ranges,
                   dwarf_range_fn *fn, void *opaque);

/* dwarf_functions.c: fills scopes, scope_map and nests, once. 0 or -ENOMEM. */
MUST_USE int dwarf_unit_walk(struct dwarf_unit *unit);

/* dwarf_lines.c: NULL when the unit has none. */
struct dwarf_lines *dwarf_unit_lines(struct dwarf_unit *unit, bool rows);
bool dwarf_lines_find(const struct dwarf_lines *lines, uint64_t vaddr, uint32_t *ret_file,
                      uint32_t *ret_line);
struct str dwarf_lines_path(struct dwarf_unit *unit, struct dwarf_lines *lines, uint32_t file);
void dwarf_lines_free(struct dwarf_lines *lines);

/* dwarf_split.c: the entries of a skeleton, from its .dwo or .dwp file; itself otherwise. */
struct dwarf_unit *dwarf_unit_entries(struct dwarf_unit *unit);

/* dwarf_names.c: what an entry is called and where it is declared, through what it copies. */
struct dwarf_named {
    struct str name;
    struct str linkage;
    struct str file;
    uint32_t line;
    struct dwarf_unit *unit; /* where the name stands */
    uint64_t entry;
};
void dwarf_name(struct dwarf_unit *unit, uint64_t entry, struct dwarf_named *ret);
/* The name with the namespaces and classes around it, for languages that have them. */
struct str dwarf_name_qualified(const struct dwarf_named *named);
