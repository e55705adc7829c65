/* An importer on any bytes, into a sink in memory with a small bound: what it refuses or
 * skips is its own affair, but it must end, and leave nothing behind. */
#pragma once

#include "base/arena.h"
#include "collect/importers.h"
#include "model/sink_memory.h"

#include <stdlib.h>

static inline void fuzz_import(const char *format, const uint8_t *data, size_t size)
{
    struct import_source source;
    if (import_source_memory((struct str){(const char *)data, size}, &source) < 0)
        return;
    struct sink_memory memory = SINK_MEMORY_INIT;
    memory.samples_max = 1 << 14;
    struct arena arena = ARENA_INIT;
    struct import_result result = {0};
    struct why why = {0};
    struct import_opts opts = {.unit = UNIT_COUNT, .no_symbols = true};
    const struct importer *importer = importer_find(format);
    if (!importer)
        abort();
    /* Detection sees the same bytes as a rule. */
    importer_detect((struct str){(const char *)data, MIN(size, (size_t)IMPORT_HEAD_BYTES)});
    int r = importer->import(&source, &memory.sink, &opts, &arena, &result, &why);
    /* A failure says why; a success has a sample. */
    if (r < 0 ? why.what[0] == '\0' : result.samples == 0)
        abort();
    arena_deinit(&arena);
    sink_memory_deinit(&memory);
    import_source_close(&source);
}
