/* Where in a file the programs on functions go: at the beginning of each, and on its ways out. */
#pragma once

#include "collect/uprobes.h"
#include "symbolize/elf_file.h"

enum { UPROBE_FUNCTIONS_MAX = 32, UPROBE_PLACES_MAX = 512 };

struct uprobe_place {
    uint64_t offset;
    int program_fd;
    bool at_return; /* when what begins there has returned, by the kernel's own address */
};

struct uprobe_places {
    struct uprobe_place at[UPROBE_PLACES_MAX];
    size_t count;
    size_t trampolines; /* functions that get the kernel's address from their beginning on */
};

/* `whole`: a program, which has all of them built in or is left alone, and whose own symbols are
 * looked through. Nothing is found in what cannot be read. */
void uprobe_places_find(struct elf_file *file, const struct uprobe_function *functions,
                        size_t count, bool whole, struct uprobe_places *ret);
