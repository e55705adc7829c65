/* Code that nobody describes but that looks the same everywhere: the linker's call
 * stubs, and the restorer that a signal handler returns to. */
#pragma once

#include "unwind/cfi.h"
#include "unwind/elf_file.h"
#include "unwind/image.h"

/* Adds them to the sorted functions. Only gaps are searched, except in an image from
 * memory: the kernel's own, whose restorer has a table that misses the interrupted
 * address (arm64) and is told by its bytes. */
MUST_USE int stubs_find(const struct elf_file *file, const struct unwind_image *image,
                        const struct rows_builder *builder, cfi_functions *functions,
                        struct why *why);
