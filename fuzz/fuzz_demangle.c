/* Names that a target chose: the first byte decides whether suffixes and stubs are looked at. */
#include "symbolize/internal.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    if (size == 0)
        return 0;
    struct str name = {(const char *)data + 1, size - 1};
    if (data[0] & 1)
        symbol_pretty(&arena, name);
    else
        symbol_demangle(&arena, name);
    return 0;
}
