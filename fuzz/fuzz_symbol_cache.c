/* A cache file that may be anything. The checksum is put right first: a fuzzer would never
 * get past it, somebody who means harm would. */
#include "symbolize/internal.h"
#include "symbolize/symbol_cache.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { AT_ORIGIN = 40, AT_SUM = 48, AT_BODY = 568 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symbol_table table = {0};
    uint64_t origin = 0;
    const char *source;
    uint8_t *bytes = malloc(size + 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    if (size >= AT_BODY) {
        uint64_t sum = hash_bytes(bytes + AT_BODY, size - AT_BODY);
        memcpy(bytes + AT_SUM, &sum, sizeof(sum));
        memcpy(&origin, bytes + AT_ORIGIN, sizeof(origin));
    }
    if (symbol_cache_parse(bytes, size, origin, &table, &source) == 0)
        for (uint64_t at = 0; at < 4096; at += 8) {
            const struct symbol_row *row = symbol_table_find(&table, at);
            struct str name = row ? symbol_table_name(&table, row) : (struct str){"", 0};
            for (size_t i = 0; i < name.len; i++)
                origin += (uint8_t)name.data[i]; /* every byte is ours to read */
        }
    symbol_table_deinit(&table);
    free(bytes);
    return (int)(origin & 0);
}
