/* In place of unwind_elf_inflate.c where zlib and zstd are not at hand for the other machine. */
#include "unwind/unwind_elf.h"

#include <errno.h>

int unwind_elf_inflate(uint32_t type, const uint8_t *data, size_t len, uint8_t *ret, size_t size,
                       struct why *why)
{
    (void)type, (void)data, (void)len, (void)ret, (void)size;
    return why_set(why, WHY_FAILED, ENOTSUP, NULL, "built without decompression");
}
