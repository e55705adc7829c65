/* ".gnu_debugdata": an ELF file with a symbol table, packed with xz into a stripped image. */
#include "symbolize/elf_symbols.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

enum { PACKED_MEMORY_BYTES_MAX = 256 << 20, UNPACKED_BYTES_MAX = 256 << 20 };

static int unpack(struct str packed, uint8_t **ret, size_t *ret_len)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&stream, PACKED_MEMORY_BYTES_MAX, 0) != LZMA_OK)
        return -ENOMEM;
    stream.next_in = (const uint8_t *)packed.data;
    stream.avail_in = packed.len;
    uint8_t *bytes = NULL;
    size_t size = 0;
    int r = 0;
    lzma_ret step = LZMA_OK;
    while (step == LZMA_OK && r == 0) {
        if (stream.avail_out == 0) {
            size_t grown = size ? 2 * size : MAX(packed.len * 4, (size_t)1 << 16);
            uint8_t *larger = grown <= UNPACKED_BYTES_MAX ? realloc(bytes, grown) : NULL;
            if (!larger) {
                r = grown > UNPACKED_BYTES_MAX ? -EFBIG : -ENOMEM;
                break;
            }
            bytes = larger;
            stream.next_out = bytes + size;
            stream.avail_out = grown - size;
            size = grown;
        }
        step = lzma_code(&stream, LZMA_FINISH);
    }
    if (r == 0 && step != LZMA_STREAM_END)
        r = -EBADMSG;
    if (r == 0) {
        *ret = bytes;
        *ret_len = size - stream.avail_out;
    } else
        free(bytes);
    lzma_end(&stream);
    return r;
}

int elf_minidebug_open(struct symbols *symbols, struct elf_file *file, struct elf_file *ret)
{
    struct str packed = elf_file_bytes(file, ".gnu_debugdata", NULL);
    if (packed.len == 0)
        return -ENOENT;
    uint8_t *bytes;
    size_t len;
    struct why why;
    int r = unpack(packed, &bytes, &len);
    if (r == 0)
        r = elf_file_open_memory(bytes, len, ".gnu_debugdata", ret, &why);
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        symbols_note(symbols, "damaged .gnu_debugdata: it cannot be unpacked");
        return -ENOENT;
    }
    return 0;
}
