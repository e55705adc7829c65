/* Code that nobody describes but that looks the same everywhere: the linker's call
 * stubs, and the restorer that a signal handler returns to. */
#pragma once

#include "unwind/cfi.h"
#include "unwind/image.h"
#include "unwind/unwind_elf.h"

/* Adds them to the sorted functions. Only gaps are searched, except where the table is known
 * to be wrong about the restorer: in an image from memory (the kernel's own on arm64 misses
 * the interrupted address) and in Go's programs. */
MUST_USE int stubs_find(const struct unwind_elf *file, const struct unwind_image *image,
                        const struct rows_builder *builder, cfi_functions *functions,
                        struct why *why);
