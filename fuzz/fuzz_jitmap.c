/* A perf map that may be anything; the first byte chooses between it and kallsyms. */
#include "symbolize/symbols.h"

#include "base/fd.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct symbols_opts opts = {.lines = true};
    struct image_info info = {.path = STR("/nonexistent/map")};
    struct symbols *symbols;
    struct symbol found;
    if (size == 0)
        return 0;
    info.kind = data[0] & 1 ? IMAGE_KERNEL : IMAGE_JIT;
    AUTO(fd_close) int fd = memfd_create("map", MFD_CLOEXEC);
    /* In two parts, so that a file that grows is read, too. */
    size_t half = 1 + (size - 1) / 2;
    if (fd < 0 || fd_write_all(fd, data + 1, half - 1) < 0 ||
        symbols_open(fd, &info, &opts, &symbols, NULL) < 0)
        return 0;
    symbols_at(symbols, 0x1000, &found, 1);
    if (fd_write_all(fd, data + half, size - half) == 0)
        for (uint64_t at = 0; at < 0x4000; at += 0x10)
            symbols_at(symbols, at, &found, 1);
    symbols_at(symbols, UINT64_MAX, &found, 1);
    symbols_close(symbols);
    return 0;
}
