/* Any bytes as what a program prints: lines of its own profile among them. */
#include "store/span_lines.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct spans spans = {0};
    if (span_lines_read(&arena, (struct str){(const char *)data, size}, &spans) < 0)
        abort();
    if (spans.count > SPANS_MAX || spans.hypothesis_count > SPANS_MAX || spans.odd > spans.lines)
        abort();
    for (size_t i = 0; i < spans.count; i++)
        if (spans.items[i].name.len == 0 || spans.items[i].cumulative_us < 0)
            abort();
    return 0;
}
