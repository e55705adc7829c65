/* The kinds of symbolizer. A new one is one file and one row here. They are opened in this
 * order and asked from the end: a later row knows more about an address than those before. */
#include "symbolize/internal.h"

const struct symbolizer *const symbolizers[] = {
    &symbolizer_elf, &symbolizer_go, &symbolizer_dwarf, &symbolizer_kallsyms, &symbolizer_jitmap,
};
const size_t symbolizers_count = ARRAY_SIZE(symbolizers);
static_assert(ARRAY_SIZE(symbolizers) <= SYMBOLIZERS_MAX, "each row has a place for its state");
