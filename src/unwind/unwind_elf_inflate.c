/* Compressed sections. Apart from the reader, so that it builds without the libraries. */
#include "unwind/unwind_elf.h"

#include <errno.h>
#include <zlib.h>
#include <zstd.h>

int unwind_elf_inflate(uint32_t type, const uint8_t *data, size_t len, uint8_t *ret, size_t size,
                       struct why *why)
{
    bool ok = false;
    if (type == ELFCOMPRESS_ZLIB) {
        uLongf got = size;
        ok = uncompress(ret, &got, data, len) == Z_OK && got == size;
    } else if (type == 2) { /* ELFCOMPRESS_ZSTD, newer than some headers */
        size_t got = ZSTD_decompress(ret, size, data, len);
        ok = !ZSTD_isError(got) && got == size;
    } else {
        return why_set(why, WHY_FAILED, ENOTSUP, NULL, "section compressed in unknown way %u",
                       type);
    }
    return ok ? 0 : why_set(why, WHY_FAILED, EBADMSG, NULL, "damaged compressed section");
}
