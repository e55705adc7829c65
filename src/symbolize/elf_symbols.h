/* Symbols of ELF files into a table. */
#pragma once

#include "symbolize/internal.h"
#include "symbolize/symbol_table.h"

/* Functions of ".symtab" or ".dynsym"; how many, or -ENOMEM. Damage is a note. */
MUST_USE int elf_symbols_add(struct symbols *symbols, struct elf_file *file, const char *section,
                             struct symbol_table *table);
/* Variables that have a size, in the same way; those of a thread's own are none. */
MUST_USE int elf_variables_add(struct elf_file *file, const char *section,
                               struct symbol_table *table);
/* Names for the stubs of calls into other images, from the relocations they go through. */
MUST_USE int elf_plt_add(struct symbols *symbols, struct elf_file *file,
                         struct symbol_table *table);
/* The symbol table that was packed into ".gnu_debugdata"; -ENOENT when there is none. */
MUST_USE int elf_minidebug_open(struct symbols *symbols, struct elf_file *file,
                                struct elf_file *ret);
